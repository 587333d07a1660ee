/* shard_index_check.c - compares an index's list of tensors, and the shard numbers stated in the
 * files, with the joined model. */
#include "base/bisect.h"
#include "base/sort.h"
#include "core/shards/shard_join.h"

/* ---- the list of an index ---- */

static heft_status check_entry(heft_file *f, const heft_ix_shard_entry *entry, uint8_t *seen)
{
    heft_index *x = &f->x;
    uint32_t id = heft_ix_find(x, entry->name);
    if (id != HEFT_NONE)
        seen[id] = 1;
    if (f->opened_shards[entry->shard - 1].status) /* reported once per shard */
        return HEFT_OK;
    if (id == HEFT_NONE)
        return heft_join_note(f, HEFT_FAULT, "heft/shard-tensor", entry->at, HEFT_NONE,
                              "tensor %q is listed in %q, which does not contain it", entry->name,
                              entry->file);
    uint32_t part = heft_ix_row(x, id)->first_part;
    uint32_t number = heft_global_offset_file(x, heft_ix_part_row_at(x, part)->offset);
    if (number == entry->shard)
        return HEFT_OK;
    return heft_join_note(f, HEFT_FAULT, "heft/shard-tensor", entry->at, id,
                          "tensor %q is listed in %q, but stored in %q", entry->name, entry->file,
                          heft_shard_name(f, number));
}

static heft_status check_unlisted(heft_file *f, const uint8_t *seen)
{
    const heft_index *x = &f->x;
    for (uint32_t i = 0; i < heft_ix_tensors(x); i++)
        if (!seen[i])
            HEFT_TRY(heft_join_note(f, HEFT_WARNING, "heft/shard-unlisted", HEFT_NOWHERE, i,
                                    "tensor %q is stored in a shard, but not listed in the index",
                                    heft_ix_name(x, i)));
    return HEFT_OK;
}

static heft_status check_total(heft_file *f)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < f->x.parts.len; i++)
        if (!heft_add(&sum, sum, heft_ix_part_row_at(&f->x, i)->length))
            sum = HEFT_UNKNOWN_LENGTH;
    if (f->x.stated_tensor_bytes == HEFT_UNKNOWN_LENGTH || f->x.stated_tensor_bytes == sum ||
        f->missing)
        return HEFT_OK;
    return heft_join_note(f, HEFT_WARNING, "heft/shard-total", 0, HEFT_NONE,
                          "the index states %U bytes of tensors, the shards have %U",
                          f->x.stated_tensor_bytes, sum);
}

/* ---- an index that lists groups, each with its files ---- */

static const char purpose[] = "to join the files of a model";

static int compare_entry(const heft_ix_shard_entry *e, heft_str group, uint32_t shard)
{
    int by_name = heft_str_order(e->name, group);
    return by_name ? by_name : (e->shard > shard) - (e->shard < shard);
}

static bool entry_below(const void *ctx, uint32_t a, uint32_t b)
{
    const heft_ix_shard_entry *e = ctx;
    return compare_entry(&e[a], e[b].name, e[b].shard) < 0;
}

/* Mark the entry of the group and the file of a tensor.  Keras names only the first file of a group
 * that passes the end of a file, so that other files may have tensors of the group, too. */
static heft_status find_group(heft_file *f, uint32_t tensor, const uint32_t *order, uint8_t *seen)
{
    heft_index *x = &f->x;
    const heft_ix_shard_entry *e = x->shard_groups.ptr;
    uint32_t part = heft_ix_row(x, tensor)->first_part;
    uint32_t shard = heft_global_offset_file(x, heft_ix_part_row_at(x, part)->offset);
    heft_str name = heft_ix_name(x, tensor), group = name;
    while (group.len && group.ptr[group.len - 1] != '/')
        group.len--;
    group.len -= group.len > 0;
    heft_bisect b = { .end = x->shard_groups.len };
    while (heft_bisect_next(&b))
        heft_bisect_narrow(&b, compare_entry(&e[order[b.mid]], group, shard) < 0);
    bool is_found = b.first < x->shard_groups.len &&
                    !compare_entry(&e[order[b.first]], group, shard);
    seen[b.first] = seen[b.first] || is_found;
    bool is_listed = (b.first < x->shard_groups.len &&
                      heft_str_eq(e[order[b.first]].name, group)) ||
                     (b.first && heft_str_eq(e[order[b.first - 1]].name, group));
    if (is_listed)
        return HEFT_OK;
    return heft_join_note(
        f, HEFT_WARNING, "heft/shard-unlisted", HEFT_NOWHERE, tensor,
        "tensor %q is stored in a shard, but its group is not listed in the index", name);
}

static heft_status check_group_entries(heft_file *f, const uint32_t *order, uint8_t *seen)
{
    const heft_ix_shard_entry *e = f->x.shard_groups.ptr;
    for (uint32_t i = 0; i < heft_ix_tensors(&f->x); i++)
        HEFT_TRY(find_group(f, i, order, seen));
    for (uint32_t i = 0; i < f->x.shard_groups.len; i++) {
        const heft_ix_shard_entry *own = &e[order[i]];
        bool is_again = i && !compare_entry(&e[order[i - 1]], own->name, own->shard);
        seen[i] = seen[i] || (is_again && seen[i - 1]);
        if (!seen[i] && !f->opened_shards[own->shard - 1].status)
            HEFT_TRY(heft_join_note(f, HEFT_FAULT, "heft/shard-tensor", own->at, HEFT_NONE,
                                    "%q is listed in %q, which has no tensor of this group",
                                    own->name, own->file));
    }
    return HEFT_OK;
}

static heft_status check_groups(heft_file *f, heft_error *err)
{
    heft_index *x = &f->x;
    uint32_t n = x->shard_groups.len;
    size_t bytes = 2 * ((size_t)n + 1) * sizeof(uint32_t);
    uint32_t *order = heft_mem_alloc(&x->mem, bytes);
    uint8_t *seen = heft_mem_alloc(&x->mem, (size_t)n + 1);
    heft_status st = order && seen ? HEFT_OK : heft_error_no_memory(err, purpose);
    if (!st) {
        memset(seen, 0, (size_t)n + 1);
        heft_sort_numbers(order, n, entry_below, x->shard_groups.ptr);
        st = check_group_entries(f, order, seen);
    }
    heft_mem_free(&x->mem, order, bytes);
    heft_mem_free(&x->mem, seen, (size_t)n + 1);
    return st ? st : check_total(f);
}

heft_status heft_check_shard_index(heft_file *f, heft_error *err)
{
    if (!HEFT_IS_LEAN && f->x.shard_groups.len)
        return check_groups(f, err);
    heft_index *x = &f->x;
    const heft_ix_shard_entry *entries = x->shard_entries.ptr;
    size_t bytes = heft_ix_tensors(x) + (size_t)1;
    uint8_t *seen = x->shard_entries.len ? heft_mem_alloc(&x->mem, bytes) : NULL;
    if (!x->shard_entries.len)
        return HEFT_OK;
    if (!seen)
        return heft_error_no_memory(err, purpose);
    memset(seen, 0, bytes);
    heft_status st = HEFT_OK;
    for (uint32_t i = 0; i < x->shard_entries.len && !st; i++)
        st = check_entry(f, &entries[i], seen);
    if (!st)
        st = check_unlisted(f, seen);
    heft_mem_free(&x->mem, seen, bytes);
    return st ? st : check_total(f);
}

/* ---- numbers stated by the shards ---- */

/* joined_files[m] is shard m + 1 of the set; shard 0 is this file. */
static heft_status check_joined_file(heft_file *f, uint32_t m)
{
    const heft_ix_shard_info *own = &f->joined_files[m].file->x.shard_info, *set = &f->x.shard_info;
    uint32_t number = f->joined_files[m].first_shard;
    if (own->count == set->count && own->number == number)
        return HEFT_OK;
    if (!own->count)
        return heft_join_note(f, HEFT_FAULT, "heft/shard", HEFT_NOWHERE, HEFT_NONE,
                              "%q does not state that it is one of %U shards",
                              heft_shard_name(f, number), (uint64_t)set->count);
    return heft_join_note(f, HEFT_FAULT, "heft/shard", HEFT_NOWHERE, HEFT_NONE,
                          "%q states that it is shard %U of %U, expected %U of %U",
                          heft_shard_name(f, number), (uint64_t)own->number + 1,
                          (uint64_t)own->count, (uint64_t)number + 1, (uint64_t)set->count);
}

heft_status heft_check_shard_info(heft_file *f)
{
    const heft_ix_shard_info *set = &f->x.shard_info;
    uint64_t tensors = heft_ix_tensors(&f->x);
    heft_status st = HEFT_OK;
    if (!set->count)
        return HEFT_OK;
    for (uint32_t m = 0; m < f->joined_count && !st; m++)
        st = check_joined_file(f, m);
    if (st || set->tensors == HEFT_NOWHERE || set->tensors == tensors || f->missing)
        return st;
    return heft_join_note(f, HEFT_FAULT, "heft/shard-tensor", HEFT_NOWHERE, HEFT_NONE,
                          "the first shard states %U tensors, the shards have %U", set->tensors,
                          tensors);
}
