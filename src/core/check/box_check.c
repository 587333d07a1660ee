/* box_check.c - checks the boxes of assembled tensors. */
#include "core/check/box_check.h"

#include "base/error.h"
#include "core/shards/box_file.h"

/* Report what is wrong; an error of the system ends the check. */
static heft_status report(heft_check *c, const heft_file *f, uint32_t row, heft_status st,
                          const heft_error *why)
{
    uint32_t tensor = ((const heft_ix_assembled *)f->x.assembled.ptr)[row].tensor;
    if (st == HEFT_E_IO || st == HEFT_E_NOMEM || st == HEFT_E_CANCELLED) {
        *c->err = *why;
        return st;
    }
    if (st)
        c->report(c, HEFT_FAULT, "heft/piece", (heft_range){ HEFT_NOWHERE, 0 }, tensor,
                  why->message);
    return HEFT_OK;
}

static bool has_replicas(const heft_boxes *b)
{
    uint32_t i = 0;
    while (i < b->count && !heft_box_is_replica(&b->rows[i]))
        i++;
    return i < b->count;
}

/* Read the tensor: the source compares copies. */
static heft_status compare_replicas(const heft_file *f, uint32_t row, heft_error *why)
{
    enum { CHUNK = 4096 };
    const heft_ix_assembled *a = (const heft_ix_assembled *)f->x.assembled.ptr + row;
    uint32_t part = heft_ix_row(&f->x, a->tensor)->first_part;
    uint8_t buf[CHUNK];
    for (uint64_t at = 0, n; at < a->bytes; at += n) {
        n = a->bytes - at < CHUNK ? a->bytes - at : CHUNK;
        HEFT_TRY(heft_part_read(buf, f, part, at, (size_t)n, why));
    }
    return HEFT_OK;
}

heft_status heft_check_boxes(heft_check *c, const heft_file *f)
{
    heft_error why;
    for (uint32_t row = 0; heft_ix_has_assembled(&f->x) && row < f->x.assembled.len; row++) {
        heft_boxes b = heft_ix_boxes(&f->x, row);
        heft_status st = HEFT_OK;
        for (uint32_t i = 0; i < b.count; i++) {
            heft_status of_box = heft_box_verify(f, row, i, &why);
            st = st ? st : of_box;
            HEFT_TRY(report(c, f, row, of_box, &why));
        }
        if (!st && !f->missing && has_replicas(&b)) {
            st = compare_replicas(f, row, &why);
            HEFT_TRY(report(c, f, row, st, &why));
        }
    }
    return HEFT_OK;
}
