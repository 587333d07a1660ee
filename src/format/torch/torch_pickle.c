/* torch_pickle.c - the pickle of a file, and the limit of the work that listing its values may take. */
#include "format/torch/torch.h"

heft_status heft_torch_read_pickle(heft_torch *t, heft_window *in, heft_range where, uint64_t apart,
                                   const char *what)
{
    enum { WORK = 16, LEAST_WORK = 64 << 10 };
    heft_status st = heft_pickle_read(&t->p, in, where, &t->x->arena, what);
    t->pickle_bytes = heft_pickle_end(&t->p) - where.offset;
    t->work = t->pickle_bytes * WORK + LEAST_WORK;
    t->p.decoded_from = apart;
    return st;
}

heft_status heft_torch_charge(heft_torch *t, uint64_t work, uint64_t at)
{
    if (work > t->work)
        return heft_error_set(t->x->err, HEFT_E_LIMIT, at,
                              "%s: its values share so much that listing them takes more than the "
                              "pickle's %U bytes warrant",
                              t->p.c.what, t->pickle_bytes);
    t->work -= work;
    return HEFT_OK;
}
