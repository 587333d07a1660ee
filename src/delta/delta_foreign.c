/* delta_foreign.c - reads the changes that other programs store. */
#include "delta/delta_foreign.h"
#include "base/error.h"

heft_status heft_delta_read_foreign(heft_delta *d, bool *is_known, heft_error *err)
{
    (void)d;
    (void)err;
    *is_known = false;
    return HEFT_OK;
}

heft_status heft_delta_load_foreign(heft_delta_loaded *l, const heft_delta *d,
                                    const heft_delta_item *item, heft_error *err)
{
    (void)l;
    (void)d;
    return heft_delta_bad(err, item->row.name, "is unknown");
}
