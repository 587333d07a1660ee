/* torch_pickle.c - reads the main pickle, and limits the work of listing shared values. */
#include "format/torch/torch.h"

heft_status heft_torch_read_pickle(heft_torch *t, heft_window *in, heft_range where,
                                   uint64_t decoded_from, const char *what)
{
    enum { PER_BYTE = 16, BASE = 64 << 10 };
    heft_status st = heft_pickle_read(&t->p, in, where, &t->x->arena, what);
    t->pickle_bytes = heft_pickle_end(&t->p) - where.offset;
    t->budget = t->pickle_bytes * PER_BYTE + BASE;
    t->p.decoded_from = decoded_from;
    return st;
}

heft_status heft_torch_charge(heft_torch *t, uint64_t work, uint64_t at)
{
    if (work > t->budget)
        return heft_error_set(
            t->x->err, HEFT_E_LIMIT, at,
            "%s: values are shared so often that listing takes too much work for a "
            "pickle of %U bytes",
            t->p.c.what, t->pickle_bytes);
    t->budget -= work;
    return HEFT_OK;
}
