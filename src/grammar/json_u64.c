/* json_u64.c - converts JSON numbers to integers, and reads arrays of integers in a single pass. */
#include "base/checked_math.h"
#include "grammar/json.h"

enum { SAFE = 19 }; /* digits that always fit in 64 bits */

/* Convert the digits at p, modulo 2^64; return the end of the digits. */
static inline const char *read_digits(uint64_t *out, const char *p, const char *end)
{
    uint64_t v = 0;
    for (uint64_t digit; p < end && (digit = (uint64_t)(uint8_t)*p - '0') < 10; p++)
        v = v * 10 + digit;
    *out = v;
    return p;
}

bool heft_json_u64(uint64_t *out, heft_str number)
{
    const char *p = number.ptr, *end = p + number.len;
    bool leads_zero = number.len > 1 && *p == '0';
    p = read_digits(out, p, number.len > SAFE ? p + SAFE : end);
    for (; p < end && !leads_zero; p++) {
        uint64_t digit = (uint64_t)(uint8_t)*p - '0';
        if (digit > 9 || !heft_mul(out, *out, 10) || !heft_add(out, *out, digit))
            break;
    }
    return number.len && p == end && !leads_zero;
}

static inline const char *skip_blanks(const char *p, const char *end)
{
    while (p < end && *p == ' ')
        p++;
    return p;
}

uint32_t heft_json_fast_u64s(const heft_json *j, uint64_t *out, uint32_t max, const char **after)
{
    const char *p = skip_blanks(j->p, j->end), *end = j->end;
    uint32_t n = 0;
    if (j->st || j->depth >= j->max_depth || p == end || *p != '[')
        return HEFT_JSON_NOT_PLAIN;
    do {
        const char *first = skip_blanks(p + 1, end);
        if (n == max)
            return HEFT_JSON_NOT_PLAIN;
        p = read_digits(&out[n++], first, end);
        if (p == first || p - first > SAFE || (*first == '0' && p - first > 1))
            return HEFT_JSON_NOT_PLAIN;
        p = skip_blanks(p, end);
    } while (p < end && *p == ',');
    if (p == end || *p != ']')
        return HEFT_JSON_NOT_PLAIN;
    *after = p + 1;
    return n;
}
