/* shard_index_check.c - compares an index's list of tensors, and the shard numbers stated in the
 * files, with the joined model. */
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

heft_status heft_check_shard_index(heft_file *f, heft_error *err)
{
    heft_index *x = &f->x;
    const heft_ix_shard_entry *entries = x->shard_entries.ptr;
    size_t bytes = heft_ix_tensors(x) + (size_t)1;
    uint8_t *seen = x->shard_entries.len ? heft_mem_alloc(&x->mem, bytes) : NULL;
    if (!x->shard_entries.len)
        return HEFT_OK;
    if (!seen)
        return heft_error_no_memory(err, "to join the files of a model");
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
