/* index_folder.c - writes or repairs the index of the shards in a folder. */
#include <heft/split.h>

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/path_risk.h"
#include "base/sized.h"
#include "folder/folder_choice.h"
#include "port/port.h"

typedef struct job {
    const char *folder;
    heft_index_options opt;
    heft_folder_listing listing;
    char (*written_names)[NAME_MAX + 1]; /* the numbered shards */
    const char **names;
    heft_file **shards;
    uint32_t count;
    heft_file *before; /* the index that is there, or NULL */
    heft_index_result result;
    heft_error *err;
} job;

static const char purpose[] = "for the index of a folder";

static heft_status no_memory(const job *j)
{
    return heft_error_no_memory(j->err, purpose);
}

/* ---- the shards ---- */

static const heft_weight_name *weight_at(const job *j, uint32_t i)
{
    return (const heft_weight_name *)j->listing.weights.ptr + i;
}

static bool is_numbered_shard(const heft_weight_name *w)
{
    return w->numbered.count > 1 && !w->is_index && !w->is_piece && !w->is_adapter;
}

/* Find the set of numbered shards; safetensors come before the same weights of PyTorch. */
static heft_status find_set(const job *j, const heft_weight_name **out)
{
    const heft_weight_name *best = NULL, *other = NULL;
    for (uint32_t i = 0; i < j->listing.weights.len; i++) {
        const heft_weight_name *w = weight_at(j, i);
        if (!is_numbered_shard(w) || (best && w->is_torch && !best->is_torch))
            continue;
        bool is_same = best && heft_numbered_name_is_sibling(&best->numbered, &w->numbered);
        bool is_better = !best || (best->is_torch && !w->is_torch);
        other = is_better ? NULL : is_same ? other : w;
        best = is_better ? w : best;
    }
    *out = best;
    if (!best)
        return heft_error_plain(j->err, HEFT_E_IO,
                                "the folder has no numbered shards (NAME-00001-of-00002.SUFFIX): "
                                "name the files that are the shards");
    if (other)
        return heft_error_plain(j->err, HEFT_E_IO,
                                "the folder has several sets of shards, with %q and %q: name the "
                                "files of one of them",
                                heft_str_from(best->name), heft_str_from(other->name));
    return HEFT_OK;
}

static heft_status reserve(job *j, uint32_t count)
{
    if (count > HEFT_MAX_SHARDS)
        return heft_error_plain(j->err, HEFT_E_LIMIT, "the model has more than %U files",
                                (uint64_t)HEFT_MAX_SHARDS);
    j->names = calloc(count + 1U, sizeof *j->names);
    j->shards = calloc(count + 1U, sizeof *j->shards);
    j->count = count;
    return j->names && j->shards ? HEFT_OK : no_memory(j);
}

/* Spell the names of all shards of the set: a missing one is found when it is opened. */
static heft_status use_set(job *j)
{
    const heft_weight_name *w;
    HEFT_TRY(find_set(j, &w));
    HEFT_TRY(reserve(j, w->numbered.count));
    j->written_names = calloc(j->count, sizeof *j->written_names);
    if (!j->written_names)
        return no_memory(j);
    uint32_t first = w->numbered.number && strstr(w->name, "-of-") ? 1 : 0;
    for (uint32_t i = 0; i < j->count; i++) {
        size_t width = w->numbered.digits.len;
        if (heft_numbered_name_write(NULL, &w->numbered, i + first, width) > NAME_MAX)
            return heft_error_plain(j->err, HEFT_E_LIMIT, "the name of a shard is too long");
        heft_numbered_name_write(j->written_names[i], &w->numbered, i + first, width);
        j->names[i] = j->written_names[i];
    }
    return HEFT_OK;
}

static heft_status use_named(job *j)
{
    HEFT_TRY(reserve(j, j->opt.shard_count));
    for (uint32_t i = 0; i < j->count; i++)
        j->names[i] = j->opt.shards[i];
    return HEFT_OK;
}

/* A shard is opened alone: the files that its name refers to are not sought. */
static heft_status refuse_shard(heft_source **out, void *ctx, const char *name, heft_error *err)
{
    (void)ctx;
    (void)name;
    *out = NULL;
    return heft_error_plain(err, HEFT_E_NOTFOUND, "is not opened");
}

static heft_status open_alone(heft_file **out, const job *j, const char *name, heft_error *err)
{
    heft_shard_folder alone = { sizeof alone, name, refuse_shard, NULL, NULL, NULL };
    heft_open_options o = HEFT_OPEN_OPTIONS_INIT;
    heft_source *s;
    *out = NULL;
    o.shards = &alone;
    o.limits = j->opt.limits;
    HEFT_TRY(heft_source_open_in_folder(&s, j->folder, name, HEFT_ACCESS_AUTO, err));
    return heft_file_open_source(out, s, &o, err);
}

static heft_status open_shards(job *j)
{
    for (uint32_t i = 0; i < j->count; i++) {
        heft_error why;
        heft_status st = open_alone(&j->shards[i], j, j->names[i], &why);
        if (st)
            return heft_error_plain(j->err, st, "shard %q: %s", heft_str_from(j->names[i]),
                                    why.message);
        j->result.tensors += heft_tensor_count(j->shards[i]);
        for (uint32_t t = 0; t < heft_tensor_count(j->shards[i]); t++)
            j->result.bytes += heft_tensor_bytes(j->shards[i], t);
    }
    return HEFT_OK;
}

/* ---- the index ---- */

/* Write the name that programs give the index of numbered shards.  A variant comes last:
 * transformers and diffusers seek model.safetensors.index.fp16.json, whether the shards are
 * model.fp16-00001-of-00002.safetensors or model-00001-of-00002.fp16.safetensors. */
static int write_name(char *to, size_t room, const heft_weight_name *first)
{
    heft_str stem = heft_numbered_name_stem(&first->numbered), tail = first->numbered.tail;
    heft_str variant = heft_weight_name_variant(first);
    size_t dotted = variant.len + 1;
    bool in_stem = variant.len && variant.ptr + variant.len == stem.ptr + stem.len,
         in_tail = variant.len && variant.ptr == tail.ptr + 1;
    if (in_stem)
        stem.len -= dotted;
    if (in_tail)
        tail = (heft_str){ tail.ptr + dotted, tail.len - dotted };
    bool moves = in_stem || in_tail;
    return snprintf(to, room, "%.*s%.*s.index%s%.*s.json", (int)stem.len, stem.ptr, (int)tail.len,
                    tail.ptr, moves ? "." : "", moves ? (int)variant.len : 0, variant.ptr);
}

/* Choose the name of the index that lists the first shard, or that programs give such an index. */
static heft_status choose_name(job *j)
{
    heft_weight_name first = heft_weight_name_of(j->names[0]);
    char *to = j->result.name;
    int room = (int)sizeof j->result.name, n = 0;
    for (uint32_t i = 0; i < j->listing.weights.len && !*to; i++) {
        const heft_weight_name *w = weight_at(j, i);
        bool lists = first.numbered.count ? heft_weight_name_may_list(w, &first)
                                          : heft_weight_name_may_be_index_of(w->name, first.name);
        if (w->is_index && lists)
            n = snprintf(to, (size_t)room, "%s", w->name);
    }
    const char *dot = strrchr(j->names[0], '.');
    if (!*to && first.numbered.count)
        n = write_name(to, (size_t)room, &first);
    else if (!*to)
        n = snprintf(to, (size_t)room, "%s%s.index.json",
                     dot && !strcmp(dot, ".bin") ? "pytorch_model" : "model", dot ? dot : "");
    return n > 0 && n < room
               ? HEFT_OK
               : heft_error_plain(j->err, HEFT_E_LIMIT, "the name of the index is too long");
}

/* Open the index that is there; one that cannot be parsed is replaced. */
static heft_status open_before(job *j)
{
    heft_error why;
    heft_status st = open_alone(&j->before, j, j->result.name, &why);
    if (st == HEFT_E_NOMEM || (st == HEFT_E_IO && why.os != ENOENT)) {
        heft_error_plain(j->err, st, "%q %s", heft_str_from(j->result.name), why.message);
        return heft_error_os(j->err, st, why.os);
    }
    j->result.existed = st != HEFT_E_IO;
    j->result.is_unreadable = st && j->result.existed;
    return HEFT_OK;
}

static const heft_file *const *shards_of(const job *j)
{
    return (const heft_file *const *)j->shards;
}

static heft_status replace(const job *j)
{
    heft_sink_dir *set;
    heft_sink *sink;
    HEFT_TRY(heft_sink_dir_open(&set, j->folder, HEFT_SINK_REPLACE, j->err));
    heft_status st = heft_sink_dir_add(&sink, set, j->result.name, j->err);
    if (!st)
        st = heft_index_write(sink, shards_of(j), j->names, j->count, j->before, j->err);
    if (!st)
        return heft_sink_dir_finish(set, j->err);
    heft_sink_dir_discard(set);
    return st;
}

/* An index that lists the same is left as it is: other programs spell it otherwise, and state more
 * in its metadata, such as total_parameters. */
static heft_status write_index(job *j)
{
    bool is_right = false;
    HEFT_TRY(choose_name(j));
    HEFT_TRY(open_before(j));
    if (j->before)
        HEFT_TRY(
            heft_index_is_right(&is_right, j->before, shards_of(j), j->names, j->count, j->err));
    j->result.shards = j->count;
    j->result.changed = !is_right;
    return is_right || j->opt.dry_run ? HEFT_OK : replace(j);
}

static heft_status run(job *j, const heft_index_options *opt)
{
    HEFT_TRY(heft_sized_copy(&j->opt, sizeof j->opt, opt, j->err));
    HEFT_TRY(heft_folder_listing_read(&j->listing, j->folder, j->err));
    HEFT_TRY(j->opt.shards ? use_named(j) : use_set(j));
    HEFT_TRY(open_shards(j));
    return write_index(j);
}

heft_status heft_index_folder(heft_index_result *out, const char *folder,
                              const heft_index_options *opt, heft_error *err)
{
    heft_error own;
    job j = { .folder = folder,
              .opt = HEFT_INDEX_OPTIONS_INIT,
              .err = heft_error_begin(err, &own) };
    heft_folder_listing_init(&j.listing, &heft_libc_allocator);
    heft_status st = run(&j, opt);
    if (!st && out)
        *out = j.result;
    for (uint32_t i = 0; i < j.count && j.shards; i++)
        heft_file_close(j.shards[i]);
    heft_file_close(j.before);
    free(j.written_names);
    free(j.names);
    free(j.shards);
    heft_folder_listing_free(&j.listing);
    return heft_error_end(j.err, st);
}
