/* assembly.c - adds the source of the assembled tensors to a model. */
#include "core/shards/assembly.h"

#include "base/error.h"
#include "core/shards/box_file.h"

static const char purpose[] = "to assemble tensors";

/* Reserve a row for one more shard. */
static bool reserve_shard(heft_file *f)
{
    size_t row = sizeof *f->opened_shards, capacity = f->opened_shard_capacity;
    if (f->opened_shard_count < capacity)
        return true;
    void *grown = heft_mem_resize(&f->x.mem, f->opened_shards, capacity * row,
                                  (capacity + 1) * row);
    if (!grown)
        return false;
    f->opened_shards = grown;
    f->opened_shard_capacity++;
    return true;
}

/* Reserve a number for each checksum. */
static bool reserve_matching(heft_file *f)
{
    size_t count = (size_t)f->x.checksums.len + 1;
    f->matching = heft_arena_alloc(&f->x.arena, count * sizeof *f->matching, 4);
    if (f->matching)
        memset(f->matching, 0, count * sizeof *f->matching);
    return f->matching;
}

static void place_parts(heft_index *x)
{
    for (uint32_t i = 0; i < x->assembled.len; i++) {
        const heft_ix_assembled *a = (const heft_ix_assembled *)x->assembled.ptr + i;
        heft_ix_part_row *p = heft_ix_part_row_at(x, heft_ix_row(x, a->tensor)->first_part);
        p->offset = heft_global_offset(x->assembled_shard, a->start);
    }
}

heft_status heft_assembly_add(heft_file *f, heft_error *err)
{
    heft_source *source;
    heft_index *x = &f->x;
    uint32_t number;
    if (!heft_ix_has_assembled(x))
        return HEFT_OK;
    f->verify_box = heft_box_verify;
    if (x->assembled_shard)
        return HEFT_OK;
    if (!reserve_shard(f) || !reserve_matching(f))
        return heft_error_no_memory(err, purpose);
    HEFT_TRY(heft_assembled_source(&source, f, err));
    heft_ix_shard shard = { heft_lit("assembled tensors"), NULL, source->size, false, NULL };
    f->opened_shards[f->opened_shard_count++] =
        (heft_shard){ .name = shard.label, .source = source, .is_assembled = true };
    if (heft_ix_shard_add(x, shard, &number))
        return heft_error_no_memory(err, purpose);
    x->assembled_shard = number;
    place_parts(x);
    return HEFT_OK;
}
