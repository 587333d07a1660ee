/* base64.c - base64 with padding (RFC 4648, section 4). */
#include "grammar/base64.h"

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

enum { INVALID = 64 };

static uint32_t value_of(char c)
{
    if (c >= 'A' && c <= 'Z')
        return (uint32_t)(c - 'A');
    if (c >= 'a' && c <= 'z')
        return (uint32_t)(c - 'a') + 26;
    if (c >= '0' && c <= '9')
        return (uint32_t)(c - '0') + 52;
    return c == '+' ? 62 : c == '/' ? 63 : INVALID;
}

/* Decode four characters, the last `padding` of which are '='.  The unused bits must be 0. */
static bool decode_group(uint8_t *to, const char *from, size_t padding)
{
    uint32_t bits = 0;
    for (size_t i = 0; i < 4; i++) {
        uint32_t v = i < 4 - padding ? value_of(from[i]) : 0;
        if (v == INVALID)
            return false;
        bits = bits << 6 | v;
    }
    if (bits & ((1u << 8 * padding) - 1))
        return false;
    for (size_t i = 0; i < 3 - padding; i++)
        to[i] = (uint8_t)(bits >> (16 - 8 * i));
    return true;
}

heft_str heft_base64_decode(bool *is_valid, heft_arena *a, heft_str text)
{
    size_t padding = 0, groups = text.len / 4;
    *is_valid = text.len % 4 == 0;
    while (*is_valid && padding < 2 && padding < text.len &&
           text.ptr[text.len - 1 - padding] == '=')
        padding++;
    uint8_t *out = *is_valid ? heft_arena_alloc(a, 3 * groups + 1, 1) : NULL;
    for (size_t i = 0; out && *is_valid && i < groups; i++)
        *is_valid = decode_group(out + 3 * i, text.ptr + 4 * i, i + 1 < groups ? 0 : padding);
    return out && *is_valid ? (heft_str){ (const char *)out, 3 * groups - padding }
                            : (heft_str){ NULL, 0 };
}

heft_str heft_base64_encode(heft_arena *a, heft_str bytes)
{
    size_t len = (bytes.len + 2) / 3 * 4;
    char *out = heft_arena_alloc(a, len + 1, 1);
    for (size_t i = 0, k = 0; out && i < bytes.len; i += 3, k += 4) {
        size_t n = bytes.len - i < 3 ? bytes.len - i : 3;
        uint32_t bits = 0;
        for (size_t b = 0; b < 3; b++)
            bits = bits << 8 | (b < n ? (uint8_t)bytes.ptr[i + b] : 0);
        for (size_t c = 0; c < 4; c++)
            out[k + c] = c <= n ? alphabet[bits >> (18 - 6 * c) & 63] : '=';
    }
    return (heft_str){ out, out ? len : 0 };
}
