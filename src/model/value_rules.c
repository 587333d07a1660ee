/* value_rules.c - finds values that some formats forbid. */
#include "model/value_rules.h"

#include "base/checked_math.h"

static const struct {
    const char *name, *text;
} rules[] = {
    [HEFT_ANY_VALUE] = { "", "" },
    [HEFT_BOOL_VALUE] = { "heft/bool-value", "a boolean is neither 0 nor 1" },
    [HEFT_HALF_BYTE] = { "heft/half-byte", "the unused half byte after the last element is not 0" },
};

heft_value_rule heft_value_rule_of(const heft_index *x, uint32_t part)
{
    const heft_ix_part_row *p = heft_ix_part_row_at(x, part);
    uint32_t t = p->dtype == HEFT_F4_E2M1 && p->length ? heft_ix_owner(x, part) : HEFT_NONE;
    uint64_t n;
    if (p->dtype == HEFT_BOOL && p->length)
        return HEFT_BOOL_VALUE;
    if (t == HEFT_NONE || heft_ix_row(x, t)->layout != HEFT_DENSE)
        return HEFT_ANY_VALUE;
    bool is_odd = heft_product(&n, heft_ix_dims(x, t), heft_ix_row(x, t)->rank) && n & 1;
    return is_odd ? HEFT_HALF_BYTE : HEFT_ANY_VALUE;
}

static size_t first_above_one(const uint8_t *p, size_t len)
{
    size_t i = 0;
    for (; i + 64 <= len; i += 64) {
        uint8_t any = 0;
        for (size_t k = 0; k < 64; k++)
            any |= p[i + k];
        if (any > 1)
            break;
    }
    while (i < len && p[i] <= 1)
        i++;
    return i;
}

size_t heft_value_rule_broken_at(heft_value_rule rule, const uint8_t *p, size_t len, bool is_end)
{
    if (rule == HEFT_BOOL_VALUE)
        return first_above_one(p, len);
    return rule == HEFT_HALF_BYTE && is_end && len && p[len - 1] >> 4 ? len - 1 : len;
}

const char *heft_value_rule_name(heft_value_rule rule)
{
    return rules[rule].name;
}

const char *heft_value_rule_text(heft_value_rule rule)
{
    return rules[rule].text;
}
