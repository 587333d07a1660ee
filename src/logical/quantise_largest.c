/* quantise_largest.c - finds the largest magnitudes that scales of whole tensors need, before the
 * first byte is encoded.
 *
 * Tensors that programs join to one matrix get the same scale: the largest of their magnitudes. */
#include "base/error.h"
#include "base/text.h"
#include "logical/quantisation.h"

static heft_status find_largest(heft_quantisation *q, heft_encoded *e, heft_error *err)
{
    heft_encoder *r = heft_mem_alloc(&q->mem, sizeof *r);
    if (!r)
        return heft_error_no_memory(err, "to quantise a model");
    memset(r, 0, sizeof *r);
    heft_encoder_begin(r, e, err);
    heft_status st = heft_encoder_largest(r, 0, e->stack * e->rows, &e->largest);
    heft_encoder_free(r, q->mem.al);
    heft_mem_free(&q->mem, r, sizeof *r);
    return st;
}

heft_status heft_quantise_largest(heft_quantisation *q, heft_error *err)
{
    for (uint32_t i = 0; i < q->count; i++) {
        heft_encoded *e = &q->all[i];
        if (!e->needs_largest)
            continue;
        HEFT_TRY(find_largest(q, e, err));
        if (e->encoder->begin)
            e->encoder->begin(e);
    }
    return HEFT_OK;
}
