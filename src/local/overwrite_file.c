/* overwrite_file.c - new values of tensors over the old ones.
 *
 * The new values are first collected in a file without a name in the folder of the file that
 * changes, so that an error in them is found before a byte changes.  The journal lists the old
 * bytes of all pieces that differ; docs/edit.md says what an interruption leaves. */
#include "local/overwrite_file.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <heft/check.h>

#include "base/bisect.h"
#include "port/save/sink_file.h"
#include "port/save/value_journal.h"

enum { PIECE = 65536 };

typedef struct swap {
    uint32_t tensor, part; /* the part of `from` with the new values */
    heft_range at;         /* in the file that changes */
    uint64_t staged;       /* offset of the new values in the collection */
} swap;

typedef struct overwriting {
    const heft_append_settings *o;
    const heft_file *f, *from;
    const heft_target *t; /* the file that changes */
    heft_target data;     /* a file of external data, if it is this one */
    heft_staged staged;
    swap *swaps; /* by offset */
    uint32_t count, shard;
    uint64_t done, total;
    uint8_t *old, *new; /* a piece each */
    heft_error *err;
} overwriting;

static heft_status no_memory(const overwriting *w)
{
    return heft_error_no_memory(w->err, "to replace tensors");
}

/* ---- what may be replaced ---- */

static heft_status refuse(const overwriting *w, heft_str name, const char *why)
{
    return heft_error_plain(w->err, HEFT_E_UNSUPPORTED, "tensor %q %s", name, why);
}

static bool is_same_type(const heft_tensor *a, const heft_tensor *b)
{
    return a->dtype == b->dtype && a->rank == b->rank &&
           (!a->rank || !memcmp(a->dims, b->dims, a->rank * sizeof *a->dims));
}

static heft_status check_place(overwriting *w, const heft_tensor *t, const heft_part *p)
{
    if (p->encoding != HEFT_RAW)
        return refuse(w, t->name,
                      "is stored as numbers of varying length, which others do not fit: 'heft "
                      "convert --external-data' makes those of 1024 bytes and more plain; only "
                      "the program that wrote the model changes smaller ones");
    if (w->count && p->shard != w->shard)
        return refuse(w, t->name,
                      "is not in the file of the others: replace those of one file "
                      "at a time, so that each edit is atomic");
    w->shard = p->shard;
    return HEFT_OK;
}

/* Replace one tensor by tensor u of `from`. */
static heft_status add_swap(overwriting *w, const heft_tensor *u, heft_str name)
{
    uint32_t id = heft_tensor_find(w->f, name);
    if (id == HEFT_NONE)
        return heft_error_rule(
            w->err,
            heft_error_plain(w->err, HEFT_E_NOTFOUND, "no tensor named %q to replace", name),
            "heft/no-tensor");
    heft_tensor t = heft_tensor_at(w->f, id);
    if (t.part_count != 1 || t.layout != HEFT_DENSE || u->part_count != 1 ||
        u->layout != HEFT_DENSE)
        return refuse(w, name, "is sparse, or its replacement is: only dense tensors are replaced");
    if (!is_same_type(&t, u))
        return heft_error_plain(w->err, HEFT_E_ARGUMENT,
                                "tensor %q has another type or shape than its replacement, which "
                                "would break the graph: 'heft convert --cast' rounds the "
                                "replacement to type %s",
                                name, heft_dtype_get(t.dtype)->name);
    heft_part p = heft_part_at(w->f, t.first_part), q = heft_part_at(w->from, u->first_part);
    HEFT_TRY(check_place(w, &t, &p));
    if (p.stored != q.length)
        return refuse(w, name, "has another number of bytes than its replacement");
    w->swaps[w->count++] = (swap){ id, u->first_part, { p.offset, p.stored }, 0 };
    w->total += p.stored;
    return HEFT_OK;
}

static heft_status choose(overwriting *w)
{
    const heft_convert_options *c = &w->o->convert;
    uint32_t all = heft_tensor_count(w->from);
    w->swaps = calloc((size_t)all + 1, sizeof *w->swaps);
    if (!w->swaps)
        return no_memory(w);
    for (uint32_t i = 0; i < all; i++) {
        heft_tensor u = heft_tensor_at(w->from, i);
        if (!c->keep || c->keep(c->ctx, &u))
            HEFT_TRY(add_swap(w, &u, c->rename ? c->rename(c->ctx, &u) : u.name));
    }
    return HEFT_OK;
}

static int by_offset(const void *a, const void *b)
{
    const swap *x = a, *y = b;
    return (x->at.offset > y->at.offset) - (x->at.offset < y->at.offset);
}

/* Return the first swap that ends after the offset, or NULL. */
static const swap *swap_after(const overwriting *w, uint64_t offset)
{
    heft_bisect b = { .end = w->count };
    while (heft_bisect_next(&b))
        heft_bisect_narrow(&b, w->swaps[b.mid].at.offset + w->swaps[b.mid].at.length <= offset);
    return b.first < w->count ? w->swaps + b.first : NULL;
}

/* Refuse a swap that shares bytes with a part of another tensor. */
static heft_status check_part(const overwriting *w, uint32_t tensor, uint32_t part)
{
    heft_part p = heft_part_at(w->f, part);
    const swap *s = swap_after(w, p.offset);
    if (!s || p.shard != w->shard || !p.stored || s->tensor == tensor || !s->at.length ||
        p.offset + p.stored <= s->at.offset)
        return HEFT_OK;
    return refuse(w, heft_tensor_at(w->f, s->tensor).name,
                  "shares its bytes with another one, so that neither is replaced alone: 'heft "
                  "convert --inline' writes a model in which each has its own");
}

static heft_status check_shared(const overwriting *w)
{
    for (uint32_t i = 1; i < w->count; i++)
        if (w->swaps[i - 1].at.offset + w->swaps[i - 1].at.length > w->swaps[i].at.offset)
            return refuse(w, heft_tensor_at(w->f, w->swaps[i].tensor).name,
                          "is replaced twice, or shares its bytes with another one");
    for (uint32_t t = 0; t < heft_tensor_count(w->f); t++) {
        heft_tensor row = heft_tensor_at(w->f, t);
        for (uint32_t i = 0; i < row.part_count; i++)
            HEFT_TRY(check_part(w, t, row.first_part + i));
    }
    uint32_t first, parts = heft_file_parts(w->f, &first);
    for (uint32_t i = first; i < first + parts; i++)
        HEFT_TRY(check_part(w, HEFT_NONE, i));
    return HEFT_OK;
}

/* Refuse to make a stated checksum of a file wrong. */
static heft_status check_checksums(const overwriting *w)
{
    for (uint32_t i = 0; w->shard && i < heft_notice_count(w->f); i++) {
        heft_finding n = heft_notice_at(w->f, i);
        bool is_stated = !strcmp(n.rule, "onnx/checksum") && n.tensor != HEFT_NONE;
        heft_tensor t = heft_tensor_at(w->f, is_stated ? n.tensor : 0);
        if (is_stated && t.part_count && heft_part_at(w->f, t.first_part).shard == w->shard)
            return heft_error_plain(w->err, HEFT_E_UNSUPPORTED,
                                    "the model states a checksum of %q, which would become "
                                    "wrong: 'heft convert --external-data' writes the model "
                                    "without it",
                                    heft_shard_file_at(w->f, w->shard - 1).name);
    }
    return HEFT_OK;
}

/* ---- the file that changes ---- */

/* Require the path, without symbolic links, to be inside of the folder of the model, and no name of
 * the model itself. */
static heft_status check_inside(const overwriting *w, const heft_target *model, const char *path,
                                heft_str name)
{
    struct stat now;
    if (!path || stat(path, &now))
        return heft_error_os(
            w->err, heft_error_plain(w->err, HEFT_E_IO, "%q cannot be opened", name), errno);
    if (strncmp(path, model->path, (size_t)(model->name - model->path)) != 0)
        return heft_error_plain(w->err, HEFT_E_UNSUPPORTED,
                                "%q leads out of the folder of the model", name);
    if (now.st_dev == model->stat_at_open.st_dev && now.st_ino == model->stat_at_open.st_ino)
        return heft_error_plain(w->err, HEFT_E_UNSUPPORTED,
                                "%q is the model itself, whose graph an edit could break", name);
    return HEFT_OK;
}

/* Return the path of the file of external data, without symbolic links, for free(); NULL: it is not
 * there, or there is no memory. */
static char *data_path(const overwriting *w, const heft_target *model)
{
    heft_str name = heft_shard_file_at(w->f, w->shard - 1).name;
    size_t folder = (size_t)(model->name - model->path), room = folder + name.len + 1;
    char *path = malloc(room);
    if (!path)
        return NULL;
    memcpy(path, model->path, folder);
    memcpy(path + folder, name.ptr, name.len);
    path[room - 1] = '\0';
    char *real = realpath(path, NULL);
    free(path);
    return real;
}

/* Open the file of external data; roll back an interrupted edit of it, unless this is a dry run. */
static heft_status open_data(overwriting *w, const heft_target *model, bool *undone)
{
    heft_str name = heft_shard_file_at(w->f, w->shard - 1).name;
    char *path = data_path(w, model);
    heft_status st = check_inside(w, model, path, name);
    if (!st)
        st = heft_target_open(&w->data, undone, model->disk, path, w->o->write.host,
                              w->o->convert.dry_run, w->err);
    if (!st)
        st = check_inside(w, model, w->data.path, name); /* it may have changed meanwhile */
    w->t = &w->data;
    free(path);
    return st;
}

/* Refuse a model in an archive, which has other offsets than the file. */
static heft_status check_whole(const overwriting *w, const heft_target *model)
{
    if (heft_file_size(w->f) == (uint64_t)model->stat_at_open.st_size)
        return HEFT_OK;
    return heft_error_plain(w->err, HEFT_E_UNSUPPORTED,
                            "the model is in an archive, which an edit would destroy: unpack it "
                            "first");
}

/* Require the bytes to be in the file that is open now. */
static heft_status check_size(const overwriting *w)
{
    uint64_t size = (uint64_t)w->t->stat_at_open.st_size;
    for (uint32_t i = 0; i < w->count; i++)
        if (w->swaps[i].at.offset > size || w->swaps[i].at.length > size - w->swaps[i].at.offset)
            return heft_error_plain(w->err, HEFT_E_IO, "another program shortened the file");
    return HEFT_OK;
}

/* ---- the new values ---- */

static heft_status collect_one(overwriting *w, heft_checked_read *r, swap *s, uint64_t *at)
{
    heft_stream *stream;
    s->staged = *at;
    HEFT_TRY(heft_checked_read_stream(&stream, r, s->part, w->err));
    heft_status st = s->at.length ? HEFT_OK : heft_stream_read(w->new, stream, 0, w->err);
    for (uint64_t from = 0, n; from < s->at.length && !st; from += n, *at += n) {
        n = s->at.length - from < PIECE ? s->at.length - from : PIECE;
        st = heft_stream_read(w->new, stream, (size_t)n, w->err);
        heft_error_about(w->err, st, HEFT_ABOUT_SOURCE);
        if (!st)
            st = heft_disk_write_all(w->t->disk, w->staged.fd, *at, w->new, (size_t)n, w->err);
    }
    heft_stream_close(stream);
    return st;
}

/* Collect the new values, and compare the checksums of their file. */
static heft_status collect(overwriting *w)
{
    heft_checked_read *r;
    uint64_t at = 0;
    uint32_t *parts = calloc((size_t)w->count + 1, sizeof *parts);
    if (!parts)
        return no_memory(w);
    for (uint32_t i = 0; i < w->count; i++)
        parts[i] = w->swaps[i].part;
    heft_status st = heft_checked_read_open(&r, w->from, parts, w->count, w->err);
    int os = st ? 0 : heft_staged_open(&w->staged, w->t->disk, w->t->dir, w->t->name, 0600);
    if (os)
        st = heft_os_error(w->err, os, "a temporary file cannot be created in its directory");
    for (uint32_t i = 0; i < w->count && !st; i++)
        st = collect_one(w, r, &w->swaps[i], &at);
    if (!st)
        st = heft_error_about(w->err, heft_checked_read_end(r, w->err), HEFT_ABOUT_SOURCE);
    heft_checked_read_close(r);
    free(parts);
    return st;
}

/* ---- the change ---- */

/* Call `take` for each piece whose old and new bytes differ; both are in the buffers. */
static heft_status each_piece(overwriting *w,
                              heft_status (*take)(overwriting *w, heft_range at, void *ctx),
                              void *ctx)
{
    const heft_disk *d = w->t->disk;
    for (uint32_t i = 0; i < w->count; i++) {
        const swap *s = &w->swaps[i];
        for (uint64_t from = 0, n; from < s->at.length; from += n) {
            n = s->at.length - from < PIECE ? s->at.length - from : PIECE;
            heft_range at = { s->at.offset + from, n };
            HEFT_TRY(heft_disk_read_all(d, w->t->fd, at.offset, w->old, (size_t)n, w->err));
            HEFT_TRY(
                heft_disk_read_all(d, w->staged.fd, s->staged + from, w->new, (size_t)n, w->err));
            if (memcmp(w->old, w->new, (size_t)n))
                HEFT_TRY(take(w, at, ctx));
        }
    }
    return HEFT_OK;
}

typedef struct noting {
    heft_value_journal journal;
    uint64_t bytes; /* of all pieces that differ */
} noting;

static heft_status note_piece(overwriting *w, heft_range at, void *ctx)
{
    noting *n = ctx;
    uint32_t length = (uint32_t)at.length;
    heft_value_record r = {
        .at = at.offset, .length = length, .unit = 1, .count = length, .old = w->old
    };
    n->bytes += length;
    return heft_value_journal_add(&n->journal, &r, w->err);
}

static heft_status write_piece(overwriting *w, heft_range at, void *ctx)
{
    const uint64_t *all = ctx;
    const heft_convert_options *c = &w->o->convert;
    w->done += at.length;
    if (c->progress && !c->progress(c->ctx, w->done, *all))
        return heft_error_plain(w->err, HEFT_E_CANCELLED, "interrupted: the file is unchanged");
    return heft_target_write(w->t, w->t->fd, at.offset, w->new, (size_t)at.length, w->err);
}

static heft_status write_pieces(overwriting *w, uint64_t *all)
{
    HEFT_TRY(each_piece(w, write_piece, all));
    return heft_disk_sync(w->t->disk, w->t->fd)
               ? heft_os_error(w->err, errno, "writing to disk failed")
               : HEFT_OK;
}

static heft_status change(overwriting *w, noting *n)
{
    heft_error ignored;
    HEFT_TRY(heft_value_journal_commit(&n->journal, w->err));
    heft_status st = heft_target_check_unchanged(w->t, w->err);
    if (!st)
        return write_pieces(w, &n->bytes) ? heft_journal_undo_after(w->t, w->err)
                                          : heft_value_journal_remove(&n->journal, w->err);
    /* The file was not touched: a journal that cannot be removed does no harm. */
    (void)!heft_value_journal_remove(&n->journal, &ignored);
    return st;
}

static heft_status apply(overwriting *w, bool *changed)
{
    noting n = { .bytes = 0 };
    const swap *last = w->swaps + (w->count - 1);
    uint64_t first = w->swaps->at.offset;
    heft_range within = { first, last->at.offset + last->at.length - first };
    heft_status st = heft_value_journal_begin(&n.journal, w->t, within, w->err);
    if (!st)
        st = each_piece(w, note_piece, &n);
    *changed = !st && n.bytes;
    if (*changed)
        st = change(w, &n);
    heft_value_journal_close(&n.journal);
    return st;
}

/* ---- the whole ---- */

static heft_status prepare(overwriting *w, const heft_target *model, bool *undone)
{
    heft_status st = check_whole(w, model);
    if (!st)
        st = heft_file_is_complete(w->f, w->err);
    if (!st)
        st = choose(w);
    if (st)
        return heft_error_about(w->err, st, HEFT_ABOUT_TARGET);
    qsort(w->swaps, w->count, sizeof *w->swaps, by_offset);
    HEFT_TRY(check_shared(w));
    HEFT_TRY(check_checksums(w));
    if (w->shard)
        HEFT_TRY(open_data(w, model, undone));
    if (!heft_journal_fits(w->t))
        return heft_error_plain(w->err, HEFT_E_UNSUPPORTED,
                                "the name of the file is too long for that of a journal");
    return check_size(w);
}

static heft_status run(overwriting *w, bool *changed)
{
    w->old = malloc(PIECE);
    w->new = malloc(PIECE);
    heft_status st = w->old && w->new ? collect(w) : no_memory(w);
    return st ? st : apply(w, changed);
}

heft_status heft_overwrite_file(heft_append_result *out, const heft_target *t, heft_file **f,
                                const heft_file *from, const heft_append_settings *o,
                                heft_error *err)
{
    overwriting w = { .o = o, .f = *f, .from = from, .t = t, .err = err };
    heft_edit_result *r = &out->edit;
    w.data = (heft_target){ .fd = -1, .dir = -1, .added_fd = -1 };
    w.staged = (heft_staged){ .disk = t->disk, .fd = -1 };
    bool undone = false;
    heft_status st = prepare(&w, t, &undone);
    heft_file_close(*f); /* unmap the file before it changes */
    *f = NULL;
    r->rolled_back = r->rolled_back || undone;
    r->in_place = true;
    r->size = (uint64_t)w.t->stat_at_open.st_size;
    r->written = w.total;
    r->hard_links = st ? 0 : (uint32_t)(w.t->stat_at_open.st_nlink - 1);
    if (!st && w.count && !o->convert.dry_run)
        st = run(&w, &r->changed);
    out->tensors = st ? 0 : w.count;
    (void)heft_staged_close(&w.staged); /* errors on discarded data do not matter */
    heft_target_close(&w.data);
    free(w.swaps);
    free(w.old);
    free(w.new);
    return st;
}

heft_status heft_overwrite_recover(bool *undone, const heft_target *model, heft_error *err)
{
    const heft_format *format = heft_format_for_path(model->path);
    heft_append_settings none = { .write = HEFT_WRITE_OPTIONS_INIT };
    heft_error ignored;
    heft_file *f;
    heft_status st = HEFT_OK;
    if (!format || !(heft_format_caps(format) & HEFT_CAN_REPLACE) ||
        heft_file_open(&f, model->path, NULL, &ignored))
        return HEFT_OK;
    for (uint32_t i = 0; i < heft_shard_file_count(f) && !st; i++) {
        overwriting w = { .o = &none, .f = f, .t = model, .shard = i + 1, .err = err };
        bool is_undone = false;
        w.data = (heft_target){ .fd = -1, .dir = -1, .added_fd = -1 };
        char *path = heft_shard_file_at(f, i).status == HEFT_E_IO ? data_path(&w, model) : NULL;
        if (path)
            st = open_data(&w, model, &is_undone);
        heft_target_close(&w.data);
        free(path);
        *undone = *undone || is_undone;
    }
    heft_file_close(f);
    return st;
}
