/* byte_range.c - reads the header "Range: bytes=A-B" (RFC 9110, section 14). */
#include "port/serve/server.h"

#include <string.h>

/* Read digits; a number above 2^64 - 1 is the largest. Return false without a digit. */
static bool read_number(uint64_t *out, const char **text)
{
    const char *p = *text;
    *out = 0;
    for (; *p >= '0' && *p <= '9'; p++) {
        uint64_t digit = (uint64_t)(*p - '0');
        *out = *out > (UINT64_MAX - digit) / 10 ? UINT64_MAX : *out * 10 + digit;
    }
    bool has_digits = p != *text;
    *text = p;
    return has_digits;
}

byte_range_kind heft_byte_range_read(uint64_t *from, uint64_t *length, const char *text,
                                     uint64_t size)
{
    static const char unit[] = "bytes=";
    uint64_t first, last;
    *from = 0;
    *length = size;
    if (!text || strncmp(text, unit, sizeof unit - 1) != 0)
        return RANGE_NONE;
    text += sizeof unit - 1;
    bool has_first = read_number(&first, &text);
    if (*text++ != '-')
        return RANGE_NONE;
    bool has_last = read_number(&last, &text);
    if (*text || (!has_first && !has_last) || (has_first && has_last && last < first))
        return RANGE_NONE;
    if (!has_first) { /* the last bytes */
        *length = last < size ? last : size;
        *from = size - *length;
        return *length ? RANGE_ONE : RANGE_OUTSIDE;
    }
    if (first >= size)
        return RANGE_OUTSIDE;
    *from = first;
    *length = has_last && last < size ? last - first + 1 : size - first;
    return RANGE_ONE;
}
