/* unscaled.c - finds packed numbers that have lost their scale.
 *
 * Alone, a weight of 8 bits is an ordinary tensor. Beside weights that are quantised it is one
 * whose scale is missing: its numbers mean nothing. */
#include "base/error.h"
#include "base/text.h"
#include "logical/logical.h"

static bool has_word(heft_str s, const char *word)
{
    const uint8_t *p = (const uint8_t *)s.ptr;
    return s.len && heft_str_seek(p, p + s.len, word, heft_lit(word).len);
}

static size_t module_length(heft_str name)
{
    size_t len = name.len;
    while (len && name.ptr[len - 1] != '.')
        len--;
    return len;
}

static bool is_scale_name(heft_str name)
{
    return has_word(name, "scale") || has_word(name, "absmax") || has_word(name, "zero");
}

/* Packed numbers and floats of 8 bits whose name is that of a weight. */
static bool looks_quantised(const heft_index *x, uint32_t tensor)
{
    const heft_ix_tensor_row *t = heft_ix_row(x, tensor);
    heft_str name = heft_ix_name(x, tensor);
    size_t module = module_length(name);
    heft_str own = { name.ptr + module, name.len - module };
    return t->rank > 1 && (heft_is_float8(t->dtype) || heft_is_packed(t->dtype)) &&
           (heft_str_ends(own, "weight") || heft_str_ends(own, "weight_packed") ||
            heft_str_ends(own, "_blocks")) &&
           !is_scale_name(own);
}

/* Return a tensor of the same module that may be the scale, or HEFT_NONE. */
static uint32_t find_loose_scale(const heft_index *x, const heft_schemes *s, heft_str weight)
{
    size_t module = module_length(weight);
    for (uint32_t i = 0; i < heft_ix_tensors(x); i++) {
        heft_str name = heft_ix_name(x, i);
        bool is_beside = name.len > module && !memcmp(name.ptr, weight.ptr, module) &&
                         heft_schemes_find(s, i) == HEFT_NONE;
        heft_str own = { name.ptr + module, name.len - module };
        if (is_beside && is_scale_name(own))
            return i;
    }
    return HEFT_NONE;
}

heft_status heft_refuse_unscaled(const heft_file *f, const heft_schemes *s, heft_error *err)
{
    const heft_index *x = &f->x;
    uint64_t work = HEFT_PATTERN_WORK;
    for (uint32_t i = 0; i < heft_ix_tensors(x); i++) {
        heft_str name = heft_ix_name(x, i);
        if (heft_schemes_find(s, i) != HEFT_NONE || !looks_quantised(x, i) ||
            heft_module_is_exempt(heft_schemes_modules(s), name, &work))
            continue;
        uint32_t scale = find_loose_scale(x, s, name);
        return scale == HEFT_NONE
                   ? heft_error_plain(err, HEFT_E_FORMAT,
                                      "tensor %q has no scale, though other weights of the model "
                                      "are quantised: its numbers mean nothing alone",
                                      name)
                   : heft_error_plain(err, HEFT_E_FORMAT,
                                      "tensor %q has no scale that suits it: %q does not, or more "
                                      "is missing",
                                      name, heft_ix_name(x, scale));
    }
    return HEFT_OK;
}
