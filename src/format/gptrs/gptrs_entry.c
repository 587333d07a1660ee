/* gptrs_entry.c - element types of gpt-rs files by tag, and the validation of index entries. */
#include "format/gptrs/gptrs_entry.h"

const heft_dtype heft_gptrs_types[] = { HEFT_F32, HEFT_F16, HEFT_BF16, HEFT_I32 };

heft_status heft_gptrs_check_entry(heft_index *x, const heft_gptrs_entry *e, bool is_checkpoint)
{
    if (e->tag >= HEFT_GPTRS_TYPES)
        return heft_error_set(x->err, HEFT_E_FORMAT, e->at,
                              "tensor %q: element type %U is unknown (0 to 3 are known)", e->name,
                              (uint64_t)e->tag);
    if (is_checkpoint && !heft_is_ascii(e->name.ptr, e->name.len))
        return heft_error_set(x->err, HEFT_E_FORMAT, e->at,
                              "tensor %q: names in a checkpoint must be ASCII", e->name);
    if (e->rank > UINT16_MAX)
        return heft_error_set(x->err, HEFT_E_LIMIT, e->at,
                              "tensor %q: %U dimensions exceed the limit of 65535", e->name,
                              e->rank);
    return HEFT_OK;
}
