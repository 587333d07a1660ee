/* shard_files.c - opens the shards that a parser has named, through the caller's heft_shard_folder.
 * All shards are opened with the file, because an open file is immutable.  A missing or wrong shard
 * is recorded as such and does not prevent opening. */
#include "base/path_risk.h"
#include "core/read/decode.h"
#include "core/read/file.h"
#include "core/read/input_window.h"
#include "core/read/opened_container.h"
#include "core/shards/shard_join.h"

enum { EXPECTED_SHARDS = 16 };

/* ---- names ---- */

static char *append(char *to, heft_str s)
{
    memcpy(to, s.ptr, s.len);
    return to + s.len;
}

/* Return the shard's file name, NUL-terminated; ptr NULL: out of memory. */
static heft_str file_name(heft_file *f, const heft_ix_shard *s)
{
    heft_str stem = { "", 0 }, suffix = heft_lit(s->suffix ? s->suffix : ""), name = { NULL, 0 };
    if (s->suffix)
        stem = heft_lit(f->shards->name);
    heft_str own = s->own_suffix ? heft_lit(s->own_suffix) : suffix;
    if (stem.len > own.len && !memcmp(stem.ptr + (stem.len - own.len), own.ptr, own.len))
        stem.len -= own.len;
    char *to = heft_arena_alloc(&f->x.arena, stem.len + s->label.len + suffix.len + 2, 1), *end;
    if (!to)
        return name;
    end = append(to, stem);
    if (s->suffix)
        *end++ = '-';
    end = append(append(end, s->label), suffix);
    *end = '\0';
    return (heft_str){ to, (size_t)(end - to) };
}

/* ---- opening ---- */

static heft_status record_failure(heft_file *f, heft_shard *shard, heft_status st,
                                  const heft_error *why)
{
    shard->status = st;
    shard->error = heft_arena_alloc(&f->x.arena, sizeof *why, _Alignof(heft_error));
    if (!shard->error)
        return HEFT_E_NOMEM;
    *shard->error = *why;
    return HEFT_OK;
}

/* Record that a shard is not a valid file of the model's format; the message names the shard. */
static heft_status record_bad_model(heft_file *f, heft_shard *shard, const heft_error *cause)
{
    heft_error why;
    heft_status st = cause->status == HEFT_E_IO ? HEFT_E_IO : HEFT_E_FORMAT;
    shard->source = NULL;
    shard->whole_file = NULL;
    if (cause->status == HEFT_E_NOMEM)
        return HEFT_E_NOMEM;
    shard->is_unreadable = st == HEFT_E_IO;
    heft_error_plain(&why, st,
                     shard->is_unreadable ? "the file %q cannot be read: %s"
                                          : "the file %q is not a shard of this model: %s",
                     shard->name, cause->message);
    why.os = cause->os;
    shard->rule = "heft/shard";
    return record_failure(f, shard, st, &why);
}

/* Parse a shard by itself; a shard must not name other files. */
static heft_status parse_shard(heft_file *f, heft_error *err)
{
    HEFT_TRY(heft_file_parse(f, err));
    if (!HEFT_IS_LEAN && f->container && f->x.shards.len)
        return heft_error_plain(err, HEFT_E_UNSUPPORTED,
                                "it has arrays in chunks, which are read in a model of one file "
                                "only: 'h5repack -f NONE -l CONTI' writes them one after another");
    if (f->x.shards.len)
        return heft_error_plain(err, HEFT_E_FORMAT, "it is itself an index of other files");
    return heft_file_finish(f, err);
}

/* Say what the first bytes of a shard are instead of a file of the format. */
static void describe_foreign(const heft_file *f, const heft_shard *shard, heft_error *cause)
{
    enum { HEAD = 512 };
    uint8_t head[HEAD];
    heft_source *s;
    heft_error ignored;
    if (cause->status != HEFT_E_FORMAT ||
        f->shards->open(&s, f->shards->ctx, shard->name.ptr, &ignored))
        return;
    size_t len = s->size < HEAD ? (size_t)s->size : HEAD;
    bool is_read = !heft_source_check(s, &ignored) && !s->ops->read(s, 0, head, len, &ignored);
    bool is_zip = is_read && len > 1 && head[0] == 'P' && head[1] == 'K'; /* needs the end */
    const heft_foreign_kind *kind = is_read && !is_zip &&
                                            heft_detect(head, len, head, 0, s->size) != f->format
                                        ? heft_foreign_find(head, len, head, 0)
                                        : NULL;
    bool is_download = kind && heft_str_begins(heft_lit(kind->advice), "download");
    if (kind)
        heft_error_plain(cause, HEFT_E_FORMAT, "it is %s; %s", kind->description,
                         is_download ? "download this shard" : kind->advice);
    heft_source_close(s);
}

static heft_status open_shard_model(heft_file *f, heft_shard *shard)
{
    heft_error cause;
    heft_limits limits = f->x.limits;
    heft_open_options opt = HEFT_OPEN_OPTIONS_INIT;
    opt.host = f->host;
    opt.format = f->format;
    opt.limits = &limits;
    opt.no_verify = f->no_verify;
    opt.array_types = f->x.array_types;
    uint64_t used = f->x.mem.used;
    for (uint32_t i = 0; i < f->opened_shard_count; i++)
        used += f->opened_shards[i].model ? f->opened_shards[i].model->x.mem.used : 0;
    limits.memory = used < limits.memory ? limits.memory - used : 1;
    if (!heft_file_open_one(&shard->model, shard->source, &opt, parse_shard, &cause))
        return HEFT_OK;
    describe_foreign(f, shard, &cause);
    return record_bad_model(f, shard, &cause);
}

static heft_status check_size(heft_shard *shard, const heft_ix_shard *s, heft_error *why)
{
    uint64_t size = shard->source->size;
    if (size <= UINT64_C(1) << HEFT_GLOBAL_OFFSET_BITS &&
        (s->size == HEFT_UNKNOWN_LENGTH || size == s->size))
        return HEFT_OK;
    heft_source_close(shard->source);
    shard->source = NULL;
    return heft_error_plain(why, HEFT_E_FORMAT, "the file %q has %U bytes, expected %U",
                            shard->name, size, s->size);
}

/* Present what the host's library decodes as the last shard, as assembled tensors are. */
static void use_container(const heft_file *f, heft_shard *shard)
{
    shard->source = heft_opened_container_source(f->container);
    shard->is_borrowed = shard->is_assembled = true;
}

/* A format that joins ranks, and one that says so, may have files in folders of the model's
 * folder. */
static bool is_inside(const heft_file *f, heft_str name)
{
    return f->has_ranks || f->x.has_inner_paths ? heft_str_is_inner_path(name)
                                                : heft_str_is_file_name(name);
}

static heft_status open_shard_file(heft_file *f, heft_shard *shard, const heft_ix_shard *s,
                                   bool may_open)
{
    heft_error cause = { .message = "" }, why;
    heft_status st = HEFT_E_IO;
    if (!f->shards)
        heft_error_plain(&why, st, "shard %q cannot be opened: its folder is not known",
                         shard->name);
    else if (heft_archive_of(f)) /* a file of that name beside the archive is another one */
        heft_error_plain(&why, st,
                         "shard %q is not opened: the file that refers to it is in an archive, "
                         "which has to be unpacked first",
                         shard->name);
    else if (!is_inside(f, shard->name))
        heft_error_plain(&why, st, "shard %q is not the name of a file in the model's folder",
                         shard->name);
    else if (!may_open)
        heft_error_plain(&why, st, "shard %q exceeds the limit of %U shards", shard->name,
                         (uint64_t)HEFT_MAX_SHARDS);
    else if (f->shards->open(&shard->source, f->shards->ctx, shard->name.ptr, &cause)) {
        shard->source = NULL;
        heft_error_plain(&why, st, "shard %q %s", shard->name, cause.message);
        why.os = cause.os;
        if (cause.status == HEFT_E_NOMEM)
            return HEFT_E_NOMEM;
        shard->is_unreadable = cause.os && cause.status != HEFT_E_NOTFOUND;
    } else if ((st = heft_source_check(shard->source, &why)))
        shard->source = NULL; /* a table without its size has no close() to call */
    else
        st = check_size(shard, s, &why);
    if (st)
        return record_failure(f, shard, st, &why);
    if (shard->source->ops->map && shard->source->size)
        shard->whole_file = shard->source->ops->map(shard->source, 0, shard->source->size);
    return s->is_model ? open_shard_model(f, shard) : HEFT_OK;
}

/* Announce shard i, which will be opened later. */
static void expect_shard(heft_file *f, uint32_t i)
{
    const heft_shard_folder *folder = f->shards;
    bool can_expect = folder && !heft_archive_of(f) &&
                      folder->size > offsetof(heft_shard_folder, expect) && folder->expect;
    if (can_expect && i < f->opened_shard_count && i < HEFT_MAX_SHARDS &&
        is_inside(f, f->opened_shards[i].name))
        folder->expect(folder->ctx, f->opened_shards[i].name.ptr);
}

heft_status heft_shards_open(heft_file *f, heft_error *err)
{
    uint32_t count = f->x.shards.len;
    heft_status st = HEFT_OK;
    heft_shards_close(f);
    if (!count)
        return HEFT_OK;
    f->opened_shards = heft_mem_alloc(&f->x.mem, count * sizeof *f->opened_shards);
    if (!f->opened_shards)
        return heft_error_no_memory(err, "for the shards");
    memset(f->opened_shards, 0, count * sizeof *f->opened_shards);
    f->opened_shard_count = f->opened_shard_capacity = count;
    for (uint32_t i = 0; i < count && !st; i++) {
        const heft_ix_shard *s = heft_ix_shard_at(&f->x, i + 1);
        f->opened_shards[i].name = f->shards ? file_name(f, s) : s->label;
        st = f->opened_shards[i].name.ptr ? HEFT_OK : HEFT_E_NOMEM;
    }
    for (uint32_t i = 0; i < EXPECTED_SHARDS && !st; i++)
        expect_shard(f, i);
    for (uint32_t i = 0; i < count && !st; i++) {
        bool is_decoded = !HEFT_IS_LEAN && f->container && i + 1 == f->x.assembled_shard;
        if (is_decoded)
            use_container(f, &f->opened_shards[i]);
        else
            st = open_shard_file(f, &f->opened_shards[i], heft_ix_shard_at(&f->x, i + 1),
                                 i < HEFT_MAX_SHARDS);
        expect_shard(f, i + EXPECTED_SHARDS);
    }
    return st ? heft_error_no_memory(err, "for the shards") : HEFT_OK;
}

/* ---- getters ---- */

/* The source of the assembled tensors is the last shard, and no file. */
uint32_t heft_shard_file_count(const heft_file *f)
{
    uint32_t all = f->x.shards.len;
    return all && f->x.assembled_shard == all ? all - 1 : all;
}

heft_shard_file heft_shard_file_at(const heft_file *f, uint32_t i)
{
    if (i >= f->x.shards.len)
        return (heft_shard_file){ .size = HEFT_UNKNOWN_LENGTH, .status = HEFT_E_ARGUMENT };
    const heft_shard *shard = &f->opened_shards[i];
    return (heft_shard_file){ .name = shard->name,
                              .size = shard->source ? shard->source->size
                                                    : heft_ix_shard_at(&f->x, i + 1)->size,
                              .status = shard->status,
                              .is_assembled = shard->is_assembled };
}
