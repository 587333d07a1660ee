/* logical_values.c - copies the metadata of a model whose weights are stored in another way,
 * without those about their quantisation, which are no longer true. */
#include "base/error.h"
#include "base/text.h"
#include "logical/config_text.h"
#include "logical/logical.h"

static bool is_of_weights(heft_str key)
{
    return heft_is_about_quantisation(key) || heft_str_is(key, "_quantization_metadata");
}

static bool is_of_mix(heft_str key)
{
    return heft_str_is(key, "general.file_type") ||
           heft_str_is(key, "general.quantization_version") ||
           heft_str_begins(key, "quantize.imatrix.");
}

/* Copy the text of a config.json; one that is not JSON is anything else, and stays. */
static heft_status copy_config(heft_index *x, heft_value v, const heft_allocator *al)
{
    heft_config_text c;
    heft_error unused;
    heft_status st = heft_config_text_read(&c, v.as.s, al, heft_error_begin(NULL, &unused));
    if (st == HEFT_E_NOMEM)
        return heft_error_no_memory(x->err, "to read metadata");
    if (st || !c.cuts)
        return heft_ix_meta(x, v);
    heft_out o = { .buf = heft_arena_alloc(&x->arena, v.as.s.len, 1), .cap = v.as.s.len };
    if (!o.buf)
        return heft_error_no_memory(x->err, "to copy metadata");
    heft_config_text_put(&o, &c, 0, v.as.s.len);
    v.as.s = (heft_str){ (const char *)o.buf, o.len };
    return heft_ix_meta(x, v);
}

heft_status heft_logical_values(heft_index *x, const heft_index *from, bool had_blocks,
                                const heft_allocator *al)
{
    heft_status st = HEFT_OK;
    for (uint32_t i = 0; i < from->values.len && !st; i = heft_ix_value_next(from, i)) {
        const heft_value *v = heft_ix_value(from, i);
        if (is_of_weights(v->key) || (had_blocks && is_of_mix(v->key)))
            continue;
        st = v->kind == HEFT_KIND_STR && heft_str_is(v->key, "config")
                 ? copy_config(x, *v, al)
                 : heft_ix_copy_value(x, from, i, HEFT_NONE);
    }
    return st;
}
