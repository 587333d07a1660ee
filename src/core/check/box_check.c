/* box_check.c - checks the boxes of assembled tensors. */
#include "core/check/box_check.h"

#include "base/checked_math.h"
#include "core/read/box_checksums.h"
#include "core/read/chunks.h"
#include "core/shards/box_file.h"

typedef struct box_check {
    heft_check *check;
    const heft_file *f; /* the model, to which the assembling file was joined, or that file */
    heft_progress *progress;
    heft_verify_result *result;
} box_check;

/* Report what is wrong; an error of the system ends the check. */
static heft_status report(const box_check *k, uint32_t part, heft_status st, const heft_error *why)
{
    if (st == HEFT_E_IO || st == HEFT_E_NOMEM || st == HEFT_E_CANCELLED) {
        *k->check->err = *why;
        return st;
    }
    if (st)
        k->check->report(k->check, HEFT_FAULT, "heft/piece", (heft_range){ HEFT_NOWHERE, 0 },
                         heft_ix_owner(&k->f->x, part), why->message);
    return HEFT_OK;
}

static bool has_replicas(const heft_assembled_part *a)
{
    heft_boxes b = heft_ix_boxes(&a->file->x, a->row);
    uint32_t i = 0;
    while (i < b.count && !heft_box_is_replica(&b.rows[i]))
        i++;
    return !a->file->missing && i < b.count;
}

/* Read the tensor: the source compares copies. */
static heft_status compare_replicas(const box_check *k, uint32_t part, heft_error *why)
{
    heft_chunks c;
    uint64_t length = heft_ix_part_row_at(&k->f->x, part)->length;
    heft_status st = heft_chunks_open(&c, k->f->host->allocator, NULL, length, why);
    while (!st && !heft_progress_halted(k->progress) && heft_chunks_next(&c)) {
        st = heft_part_read(c.buf, k->f, part, c.at, c.len, why);
        heft_progress_add(k->progress, c.len);
    }
    heft_chunks_close(&c);
    return st;
}

/* Count the elements of a box that is a file; those of others are in ranges of checksums. */
static void count_payload(const box_check *k, const heft_assembled_part *a, uint32_t box,
                          bool is_compared)
{
    const heft_index *x = &a->file->x;
    const heft_ix_assembled *row = (const heft_ix_assembled *)x->assembled.ptr + a->row;
    heft_boxes b = heft_ix_boxes(x, a->row);
    uint64_t n = 0;
    if (heft_box_holds(&b.rows[box]) != HEFT_BOX_FILE)
        return;
    (void)heft_product(&n, heft_box_sizes(&b, box), b.rank); /* not more than the tensor has */
    n *= heft_dtype_size(heft_ix_row(x, row->tensor)->dtype);
    k->result->payload_bytes += n;
    k->result->payload_checked += is_compared ? n : 0;
    k->result->bytes_checked += is_compared ? n : 0;
}

static heft_status check_part(const box_check *k, uint32_t part, const heft_assembled_part *a)
{
    heft_error why;
    heft_status st = HEFT_OK;
    for (uint32_t i = 0; i < heft_ix_boxes(&a->file->x, a->row).count; i++) {
        bool is_compared;
        heft_status of_box = heft_box_verify(a->file, a->row, i, &is_compared, &why);
        st = st ? st : of_box;
        count_payload(k, a, i, is_compared);
        HEFT_TRY(report(k, part, of_box, &why));
    }
    if (st || !has_replicas(a))
        return HEFT_OK;
    st = compare_replicas(k, part, &why);
    return report(k, part, st, &why);
}

uint64_t heft_check_boxes_bytes(const heft_file *f)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < f->x.parts.len; i++) {
        heft_assembled_part a = heft_assembled_part_of(f, i);
        if (a.file && has_replicas(&a))
            sum += heft_ix_part_row_at(&f->x, i)->length;
    }
    return sum;
}

heft_status heft_check_boxes(heft_check *c, const heft_file *f, heft_progress *progress,
                             heft_verify_result *result)
{
    box_check k = { c, f, progress, result };
    for (uint32_t i = 0; i < f->x.parts.len && !heft_progress_halted(progress); i++) {
        heft_assembled_part a = heft_assembled_part_of(f, i);
        if (a.file)
            HEFT_TRY(check_part(&k, i, &a));
    }
    return heft_progress_end(progress, c->err);
}
