/* index_write.c - writes the index of shards that exist. */
#include <heft/split.h>

#include "base/sort.h"
#include "base/text.h"
#include "core/write/plan/plan.h"
#include "core/write/split/index_output.h"
#include "format/format.h"

static const char purpose[] = "to write the index of a model";

static const heft_sharding *sharding_of(const heft_file *shard)
{
    const heft_format_writer *writer = heft_registry_writer(shard->format);
    const heft_sharding *s = writer ? writer->sharding : NULL;
    return s && s->index ? s : NULL;
}

static heft_status check(const heft_file *const *shards, const char *const *names, uint32_t count,
                         heft_error *err)
{
    if (!count || !sharding_of(shards[0]))
        return heft_error_plain(err, HEFT_E_UNSUPPORTED, "%s files have no index of this kind",
                                count ? shards[0]->format->name : "no");
    for (uint32_t i = 0; i < count; i++) {
        if (!heft_str_is_utf8(heft_lit(names[i])))
            return heft_error_plain(err, HEFT_E_ARGUMENT,
                                    "the name of shard %q is not UTF-8, as an index in JSON must "
                                    "be: rename the files",
                                    heft_lit(names[i]));
        if (shards[i]->format != shards[0]->format)
            return heft_error_plain(err, HEFT_E_ARGUMENT,
                                    "shards are in different formats: %s and %s",
                                    shards[0]->format->name, shards[i]->format->name);
        if (shards[i]->x.is_shard_index || shards[i]->x.shards.len)
            return heft_error_plain(err, HEFT_E_ARGUMENT, "%q is not a shard, but has shards",
                                    shards[i]->name);
    }
    return HEFT_OK;
}

/* Note the shard of each tensor of the joined file, and sort the tensors by name. */
static void list_tensors(const heft_file *joined, const heft_file *const *shards, uint32_t count,
                         uint32_t *order, uint32_t *file, heft_shard_set *set)
{
    uint32_t n = heft_ix_tensors(&joined->x);
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t t = 0; t < heft_ix_tensors(&shards[i]->x); t++)
            file[heft_ix_find(&joined->x, heft_ix_name(&shards[i]->x, t))] = i;
    for (uint32_t t = 0; t < n; t++) {
        order[t] = t;
        set->bytes += heft_tensor_bytes(joined, t);
    }
    heft_sort(order, order + n, n, heft_ix_name_before, &joined->x);
    set->order = order;
    set->file = file;
}

/* An index that is compared, instead of one that is written. */
typedef struct comparison {
    const heft_file *index;
    bool is_right;
} comparison;

static bool entry_before(const void *ctx, uint32_t a, uint32_t b)
{
    const heft_ix_shard_entry *entries = ctx;
    return heft_str_order(entries[a].name, entries[b].name) < 0;
}

/* Compare the entries with the tensors of the set in the order of their names; ids: two numbers for
 * each entry. */
static heft_status compare(comparison *c, const heft_shard_set *set, uint32_t *ids, heft_error *err)
{
    const heft_index *x = &c->index->x;
    const heft_ix_shard_entry *entries = x->shard_entries.ptr;
    uint32_t n = x->shard_entries.len;
    uint8_t first;
    HEFT_TRY(heft_file_read_stored(c->index, 0, &first, 1, err));
    bool has_mark = first == 0xEF; /* a byte order mark, which other programs refuse */
    for (uint32_t i = 0; i < n; i++)
        ids[i] = i;
    heft_sort(ids, ids + n, n, entry_before, entries);
    c->is_right = !has_mark && x->stated_tensor_bytes == set->bytes;
    for (uint32_t i = 0; i < n && c->is_right; i++) {
        const heft_ix_shard_entry *e = &entries[ids[i]];
        uint32_t t = set->order[i];
        c->is_right = heft_str_eq(e->name, heft_ix_name(set->x, t)) &&
                      heft_str_is(e->file, set->names[set->file[t]]);
    }
    return HEFT_OK;
}

static heft_status put(const heft_file *joined, const heft_file *const *shards, heft_shard_set *set,
                       heft_sink *sink, comparison *c, heft_error *err)
{
    const heft_allocator *al = joined->host->allocator;
    size_t n = heft_ix_tensors(&joined->x), bytes = (5 * n + 1) * sizeof(uint32_t);
    if (c && c->index->x.shard_entries.len != n)
        return HEFT_OK;
    uint32_t *ids = heft_alloc(al, bytes, 16);
    if (!ids)
        return heft_error_no_memory(err, purpose);
    heft_file_enter(joined);
    list_tensors(joined, shards, set->count, ids, ids + 2 * n, set);
    heft_status st = c ? compare(c, set, ids + 3 * n, err)
                       : heft_index_output(sharding_of(shards[0]), set, sink, al, err);
    heft_free(al, ids, bytes, 16);
    return heft_file_leave_after(joined, st, err);
}

/* Write the index to the sink, or compare one. */
static heft_status put_or_compare(heft_sink *sink, comparison *c, const heft_file *const *shards,
                                  const char *const *names, uint32_t count,
                                  const heft_file *settings, heft_error *err)
{
    heft_file *joined = NULL;
    heft_status st = check(shards, names, count, err);
    if (!st)
        st = heft_file_join(&joined, shards, count, NULL, err);
    heft_shard_set set = { .stem = heft_lit(""), .count = count, .names = names };
    if (!st) {
        set.x = &joined->x;
        set.settings = settings ? &settings->x : NULL;
        st = put(joined, shards, &set, sink, c, err);
    }
    heft_file_close(joined);
    return st;
}

heft_status heft_index_write(heft_sink *take, const heft_file *const *shards,
                             const char *const *names, uint32_t count, const heft_file *settings,
                             heft_error *err)
{
    heft_error own;
    err = heft_error_begin(err, &own);
    heft_status st = put_or_compare(take, NULL, shards, names, count, settings, err);
    return heft_error_end(err, heft_sink_end(take, st, err));
}

heft_status heft_index_is_right(bool *out, const heft_file *index, const heft_file *const *shards,
                                const char *const *names, uint32_t count, heft_error *err)
{
    heft_error own;
    comparison c = { index, false };
    err = heft_error_begin(err, &own);
    *out = false;
    heft_status st = index->x.is_shard_index
                         ? put_or_compare(NULL, &c, shards, names, count, NULL, err)
                         : heft_error_plain(err, HEFT_E_ARGUMENT, "%q is no index of shards",
                                            index->name);
    *out = !st && c.is_right;
    return heft_error_end(err, st);
}
