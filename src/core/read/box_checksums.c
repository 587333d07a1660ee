/* box_checksums.c - finds and compares the checksums that files store for the boxes of assembled
 * tensors.
 *
 * A box that is a file of its own has its checksums inside.  Other boxes are ranges of a shard,
 * whose checksums the index of the model lists.  Readers of a part gather the boxes in any order
 * and in portions, so that all bytes of the boxes are compared before. */

#include "base/bisect.h"
#include "base/error.h"
#include "core/read/stored_checksum.h"
#include "model/boxes.h"

static const heft_ix_assembled *row_at(const heft_file *f, uint32_t row)
{
    return (const heft_ix_assembled *)f->x.assembled.ptr + row;
}

/* ---- where a part is assembled ---- */

/* Return the joined file that shard `number` is, or belongs to; NULL: f has opened the shard. */
static const heft_joined_file *joined_with(const heft_file *f, uint32_t number)
{
    heft_bisect b = { .end = f->joined_count };
    while (heft_bisect_next(&b))
        heft_bisect_narrow(&b, f->joined_files[b.mid].first_shard <= number);
    return b.first ? &f->joined_files[b.first - 1] : NULL;
}

/* Return the row whose bytes include byte `at` of the assembled tensors. */
static uint32_t row_with(const heft_file *f, uint64_t at)
{
    heft_bisect b = { .end = f->x.assembled.len };
    while (heft_bisect_next(&b))
        heft_bisect_narrow(&b, row_at(f, b.mid)->start <= at);
    return b.first - 1;
}

heft_assembled_part heft_assembled_part_of(const heft_file *f, uint32_t part)
{
    const heft_assembled_part none = { .file = NULL };
    heft_assembled_part a = { .file = f };
    if (HEFT_IS_LEAN || (!f->x.assembled.len && !f->joined_count) || part >= f->x.parts.len)
        return none;
    const heft_ix_part_row *p = heft_ix_part_row_at(&f->x, part);
    uint32_t number = heft_global_offset_file(&f->x, p->offset);
    while (number && number != a.file->x.assembled_shard) {
        const heft_joined_file *j = joined_with(a.file, number);
        if (!j)
            return none;
        a.file = j->file;
        a.base += j->first_shard;
        number -= j->first_shard;
    }
    if (!number || (!p->length && a.base)) /* no byte tells which of the empty tensors it is */
        return none;
    a.row = a.base ? row_with(a.file, heft_global_offset_local(&f->x, p->offset))
                   : heft_ix_assembled_find(&f->x, heft_ix_owner(&f->x, part));
    return a;
}

/* Return the range that has the elements of a box, in the files of the file that assembles. */
static heft_range range_of(const heft_file *f, const heft_ix_box *box)
{
    if (heft_box_holds(box) != HEFT_BOX_PART)
        return (heft_range){ box->offset, box->length };
    uint32_t number = heft_global_offset_file(&f->x, box->offset);
    const heft_file *model = f->opened_shards[number - 1].model;
    const heft_ix_part_row *p = heft_ix_part_row_at(&model->x, (uint32_t)box->length);
    return (heft_range){ heft_global_offset(number, p->offset), p->stored };
}

bool heft_assembled_box(heft_range *out, const heft_assembled_part *a, uint32_t box)
{
    const heft_index *x = &a->file->x;
    const heft_ix_box *at = heft_ix_boxes(x, a->row).rows + box;
    if (heft_box_holds(at) == HEFT_BOX_FILE || !heft_file_has_bytes(a->file, at->offset))
        return false;
    *out = range_of(a->file, at);
    out->offset = heft_global_offset(a->base + heft_global_offset_file(x, out->offset),
                                     heft_global_offset_local(x, out->offset));
    return true;
}

bool heft_part_has_bytes(const heft_file *f, uint32_t part)
{
    heft_assembled_part a = heft_assembled_part_of(f, part);
    if (!a.file)
        return heft_file_has_bytes(f, heft_ix_part_row_at(&f->x, part)->offset);
    heft_boxes boxes = heft_ix_boxes(&a.file->x, a.row);
    bool has_all = true;
    for (uint32_t i = 0; i < row_at(a.file, a.row)->box_count && has_all; i++)
        has_all = heft_file_has_bytes(a.file, boxes.rows[i].offset);
    return has_all;
}

/* ---- boxes ---- */

typedef struct box_checks {
    const heft_file *f;
    uint8_t *needed; /* by checksum of f; NULL: compare at once */
    uint8_t way;
    heft_error *err;
} box_checks;

static heft_status add_range(void *ctx, const heft_digest *d, heft_range r, void *state,
                             heft_error *err)
{
    return heft_digest_stored(ctx, d, state, r, err);
}

/* Compare a checksum; a shard that is missing is another finding. */
static heft_status compare(const box_checks *k, uint32_t checksum)
{
    heft_stored_checksum c;
    bool holds = true;
    HEFT_TRY(heft_stored_checksum_get(&c, k->f, checksum, k->err));
    const heft_digest *d = heft_host_digest(k->f->host, c.algorithm);
    if (!d || !heft_file_has_bytes(k->f, c.range[0].offset))
        return HEFT_OK;
    HEFT_TRY(heft_stored_checksum_compute(&holds, &c, d, k->f->host->allocator, add_range,
                                          (void *)(uintptr_t)k->f, k->err));
    return holds ? HEFT_OK : heft_stored_checksum_mismatch(k->f, &c, k->err);
}

/* Compare the checksum of a box.  One that covers more than the box is compared once. */
static heft_status compare_for(const box_checks *k, uint32_t checksum, heft_range box)
{
    const heft_stored_checksum *c = k->f->x.checksums.ptr;
    bool is_kept = k->f->matching && checksum < k->f->x.checksums.len &&
                   c[checksum].range[0].length > box.length;
    if (is_kept && heft_atomic_load(&k->f->matching[checksum]))
        return HEFT_OK;
    HEFT_TRY(compare(k, checksum));
    if (is_kept)
        heft_atomic_store(&k->f->matching[checksum], 1);
    return HEFT_OK;
}

/* Check a box that is a file, and note the checksum of another. */
static heft_status check_box(box_checks *k, const heft_assembled_part *a, uint32_t box)
{
    const heft_file *f = a->file;
    const heft_ix_box *at = heft_ix_boxes(&f->x, a->row).rows + box;
    if (heft_box_holds(at) == HEFT_BOX_FILE)
        return f->verify_box ? f->verify_box(f, a->row, box, NULL, k->err) : HEFT_OK;
    heft_range r;
    uint32_t checksum = heft_assembled_box(&r, a, box) ? heft_ix_checksum_of_range(&k->f->x, r)
                                                       : HEFT_NONE;
    if (checksum != HEFT_NONE && !k->needed)
        return compare_for(k, checksum, r);
    if (checksum != HEFT_NONE)
        k->needed[checksum] = k->way;
    return HEFT_OK;
}

static heft_status check_part(box_checks *k, uint32_t part)
{
    heft_assembled_part a = heft_assembled_part_of(k->f, part);
    for (uint32_t i = 0; a.file && i < row_at(a.file, a.row)->box_count; i++)
        HEFT_TRY(check_box(k, &a, i));
    return HEFT_OK;
}

static bool may_assemble(const heft_file *f)
{
    return !HEFT_IS_LEAN && (f->x.assembled.len || f->joined_count);
}

heft_status heft_box_checksums_choose(const heft_file *f, uint8_t *needed, uint8_t way,
                                      bool (*is_chosen)(void *ctx, uint32_t part), void *ctx,
                                      heft_error *err)
{
    box_checks k = { .f = f, .needed = needed, .way = way, .err = err };
    heft_status st = HEFT_OK;
    heft_error own;
    if (!may_assemble(f))
        return HEFT_OK;
    k.err = heft_error_begin(err, &own);
    heft_file_enter(f); /* names are mapped */
    for (uint32_t i = 0; i < f->x.parts.len && !st; i++)
        if (!is_chosen || is_chosen(ctx, i))
            st = check_part(&k, i);
    return heft_error_end(k.err, heft_file_leave_after(f, st, k.err));
}

heft_status heft_box_checksums_check(const heft_file *f,
                                     bool (*is_chosen)(void *ctx, uint32_t part), void *ctx,
                                     heft_error *err)
{
    heft_memory mem = { f->host->allocator, UINT64_MAX, 0 };
    size_t bytes = (size_t)f->x.checksums.len + 1;
    if (!may_assemble(f))
        return HEFT_OK;
    heft_error own;
    box_checks k = { .f = f, .err = heft_error_begin(err, &own) };
    k.needed = heft_mem_alloc(&mem, bytes);
    if (!k.needed)
        return heft_error_end(k.err, heft_error_no_memory(k.err, "to check pieces"));
    memset(k.needed, 0, bytes);
    heft_status st = heft_box_checksums_choose(f, k.needed, 1, is_chosen, ctx, k.err);
    for (uint32_t i = 0; i < f->x.checksums.len && !st; i++)
        if (k.needed[i])
            st = compare(&k, i);
    heft_mem_free(&mem, k.needed, bytes);
    return heft_error_end(k.err, st);
}

heft_status heft_box_checksums_check_part(const heft_file *f, uint32_t part, heft_error *err)
{
    box_checks k = { .f = f, .err = err };
    heft_error own;
    if (!may_assemble(f))
        return HEFT_OK;
    k.err = heft_error_begin(err, &own);
    heft_file_enter(f);
    return heft_error_end(k.err, heft_file_leave_after(f, check_part(&k, part), k.err));
}
