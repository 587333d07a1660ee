#include "base/rank_name.h"

#include <string.h>

#include "base/text.h"

enum { MAX_DIGITS = 6 };

/* Remove the text from the beginning of *s; false: *s begins with another text. */
static bool skip(heft_str *s, const char *text)
{
    heft_str prefix = heft_lit(text);
    if (!heft_str_begins(*s, text))
        return false;
    *s = (heft_str){ s->ptr + prefix.len, s->len - prefix.len };
    return true;
}

/* Remove the digits from the beginning of *s; false: there are none, or too many. */
static bool read_number(uint32_t *out, heft_str *s)
{
    size_t n = 0;
    *out = 0;
    for (; n < s->len && s->ptr[n] >= '0' && s->ptr[n] <= '9' && n <= MAX_DIGITS; n++)
        *out = *out * 10 + (uint32_t)(s->ptr[n] - '0');
    *s = (heft_str){ s->ptr + n, s->len - n };
    return n && n <= MAX_DIGITS;
}

bool heft_rank_name_read(heft_rank_name *out, heft_str name)
{
    *out = (heft_rank_name){ .rank = 0 };
    (void)skip(&name, "bf16_");
    out->is_cut = skip(&name, "zero_pp_rank_");
    if (out->is_cut && (!read_number(&out->rank, &name) || !skip(&name, "_")))
        return false;
    if (!skip(&name, "mp_rank_") || !read_number(&out->parallel, &name))
        return false;
    out->is_states = heft_str_is(name, "_model_states.pt");
    return out->is_states || (out->is_cut && heft_str_is(name, "_optim_states.pt"));
}

bool heft_rank_name_read_tensor(heft_str *tensor, heft_str name)
{
    static const char tail[] = "/fp32.pt";
    size_t end = sizeof tail - 1;
    if (!skip(&name, "zero/") || name.len <= end || !heft_str_ends(name, tail))
        return false;
    *tensor = (heft_str){ name.ptr, name.len - end };
    return true;
}
