/* box_checksums.c - compares the checksums that files store for the boxes of assembled tensors.
 *
 * A box that is a file of its own has its checksums inside.  Other boxes are ranges of a shard,
 * whose checksums the index of the model lists.  Readers of a part gather the boxes in any order
 * and in portions, so that all bytes of the boxes are compared before. */
#include "core/read/box_checksums.h"
#include "base/error.h"
#include "core/read/stored_checksum.h"
#include "model/boxes.h"

typedef struct box_checks {
    const heft_file *f;
    uint32_t *rows;  /* by checksum, of f and then of each shard: row of heft_index.assembled that
                        needs it plus 1, or 0; NULL: compare at once */
    uint32_t *first; /* by number of the file: its first checksum in rows */
    heft_error *err;
} box_checks;

static const heft_ix_assembled *row_at(const heft_index *x, uint32_t row)
{
    return (const heft_ix_assembled *)x->assembled.ptr + row;
}

/* ---- ranges of shards ---- */

/* Return the file, f or a shard, whose index lists the checksums of file `number` of the model. */
static const heft_file *file_at(const heft_file *f, uint32_t number)
{
    const heft_file *model = number ? f->opened_shards[number - 1].model : NULL;
    return model ? model : f;
}

/* Return the range of the file that has the elements of a box. */
static heft_range range_of(const heft_file *f, const heft_file *file, const heft_ix_box *box)
{
    if (heft_box_holds(box) == HEFT_BOX_PART) {
        const heft_ix_part_row *p = heft_ix_part_row_at(&file->x, (uint32_t)box->length);
        return (heft_range){ p->offset, p->stored };
    }
    uint64_t local = heft_global_offset_local(&f->x, box->offset);
    return (heft_range){ file == f ? box->offset : local, box->length };
}

static heft_status add_range(void *ctx, const heft_digest *d, heft_range r, void *state,
                             heft_error *err)
{
    return heft_digest_stored(ctx, d, state, r, err);
}

/* Compare a checksum; a shard that is missing is another finding. */
static heft_status compare(const box_checks *k, uint32_t number, uint32_t checksum, uint32_t row)
{
    const heft_file *f = file_at(k->f, number);
    heft_stored_checksum c;
    bool holds = true;
    HEFT_TRY(heft_stored_checksum_get(&c, f, checksum, k->err));
    const heft_digest *d = heft_host_digest(f->host, c.algorithm);
    if (!d || !heft_file_source(f, heft_global_offset_file(&f->x, c.range[0].offset)))
        return HEFT_OK;
    HEFT_TRY(heft_stored_checksum_compute(&holds, &c, d, f->host->allocator, add_range,
                                          (void *)(uintptr_t)f, k->err));
    if (holds)
        return HEFT_OK;
    uint32_t tensor = row_at(&k->f->x, row)->tensor;
    heft_error_plain(k->err, HEFT_E_CHECKSUM,
                     "tensor %q: its piece of %U bytes at offset %U: %s: the %s checksum does not "
                     "match the bytes",
                     heft_ix_name(&k->f->x, tensor), c.range[0].length,
                     heft_global_offset_local(&f->x, c.range[0].offset), c.rule, c.algorithm);
    heft_error_rule(k->err, HEFT_E_CHECKSUM, c.rule);
    uint64_t at = f == k->f ? c.range[0].offset : heft_global_offset(number, c.range[0].offset);
    return heft_file_error_at(k->f, at, HEFT_E_CHECKSUM, k->err);
}

/* ---- boxes ---- */

/* Check a box that is a file, and note the checksum of another. */
static heft_status check_box(box_checks *k, uint32_t row, uint32_t box)
{
    const heft_ix_box *at = heft_ix_boxes(&k->f->x, row).rows + box;
    if (heft_box_holds(at) == HEFT_BOX_FILE)
        return k->f->verify_box ? k->f->verify_box(k->f, row, box, k->err) : HEFT_OK;
    uint32_t number = heft_global_offset_file(&k->f->x, at->offset);
    const heft_file *file = file_at(k->f, number);
    uint32_t checksum = heft_ix_checksum_of_range(&file->x, range_of(k->f, file, at));
    if (checksum != HEFT_NONE && !k->rows)
        return compare(k, number, checksum, row);
    if (checksum != HEFT_NONE)
        k->rows[k->first[file == k->f ? 0 : number] + checksum] = row + 1;
    return HEFT_OK;
}

static heft_status check_row(box_checks *k, uint32_t row)
{
    for (uint32_t i = 0; i < row_at(&k->f->x, row)->box_count; i++)
        HEFT_TRY(check_box(k, row, i));
    return HEFT_OK;
}

static heft_status check_chosen(box_checks *k, bool (*is_chosen)(void *ctx, uint32_t part),
                                void *ctx)
{
    const heft_index *x = &k->f->x;
    for (uint32_t row = 0; row < x->assembled.len; row++)
        if (is_chosen(ctx, heft_ix_row(x, row_at(x, row)->tensor)->first_part))
            HEFT_TRY(check_row(k, row));
    for (uint32_t number = 0; number <= k->f->opened_shard_count; number++) {
        const uint32_t *rows = k->rows + k->first[number];
        uint32_t count = k->first[number + 1] - k->first[number];
        for (uint32_t i = 0; i < count; i++)
            if (rows[i])
                HEFT_TRY(compare(k, number, i, rows[i] - 1));
    }
    return HEFT_OK;
}

/* Return the number of checksums that the index of file `number` lists. */
static uint32_t checksums_of(const heft_file *f, uint32_t number)
{
    const heft_file *file = file_at(f, number);
    return number && file == f ? 0 : file->x.checksums.len;
}

heft_status heft_box_checksums_check(const heft_file *f,
                                     bool (*is_chosen)(void *ctx, uint32_t part), void *ctx,
                                     heft_error *err)
{
    heft_memory mem = { f->host->allocator, UINT64_MAX, 0 };
    uint32_t files = f->opened_shard_count + 1;
    uint64_t all = (uint64_t)files + 1;
    heft_error own;
    if (!heft_ix_has_assembled(&f->x))
        return HEFT_OK;
    err = heft_error_begin(err, &own);
    for (uint32_t i = 0; i < files; i++)
        all += checksums_of(f, i);
    size_t bytes = (size_t)all * sizeof(uint32_t);
    box_checks k = { .f = f, .err = err };
    k.first = all <= UINT32_MAX / sizeof(uint32_t) ? heft_mem_alloc(&mem, bytes) : NULL;
    if (!k.first)
        return heft_error_end(err, heft_error_no_memory(err, "to check pieces"));
    memset(k.first, 0, bytes);
    k.rows = k.first + files + 1;
    for (uint32_t i = 0; i < files; i++)
        k.first[i + 1] = k.first[i] + checksums_of(f, i);
    heft_file_enter(f); /* names are mapped */
    heft_status st = heft_file_leave_after(f, check_chosen(&k, is_chosen, ctx), err);
    heft_mem_free(&mem, k.first, bytes);
    return heft_error_end(err, st);
}

heft_status heft_box_checksums_check_part(const heft_file *f, uint32_t part, heft_error *err)
{
    uint32_t owner = heft_ix_has_assembled(&f->x) ? heft_ix_owner(&f->x, part) : HEFT_NONE;
    uint32_t row = owner == HEFT_NONE ? HEFT_NONE : heft_ix_assembled_find(&f->x, owner);
    heft_error own;
    if (row == HEFT_NONE)
        return HEFT_OK;
    err = heft_error_begin(err, &own);
    box_checks k = { .f = f, .err = err };
    heft_file_enter(f);
    return heft_error_end(err, heft_file_leave_after(f, check_row(&k, row), err));
}
