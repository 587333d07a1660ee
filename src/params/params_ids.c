/* params_ids.c - identities of parameters: base ids, namespaces and keys of gpt-rs; ids of Burn as
 * text. */
#include <stdatomic.h>
#include <string.h>

#include <heft/heft_ext.h>
#include <heft/params.h>

#include "base/blake3.h"
#include "base/text.h"

bool heft_param_base_id(heft_id128 *out, heft_str name)
{
    if (!heft_is_ascii(name.ptr, name.len))
        return false;
    heft_blake3_id(out->bytes, name.ptr, name.len);
    return true;
}

heft_id128 heft_param_key(heft_id128 space, heft_id128 base)
{
    static const char domain[] = "gpt-rs:param-key:v1";
    heft_blake3 h;
    uint8_t digest[32];
    heft_id128 key;
    heft_blake3_init(&h);
    heft_blake3_update(&h, domain, sizeof domain - 1);
    heft_blake3_update(&h, space.bytes, sizeof space.bytes);
    heft_blake3_update(&h, base.bytes, sizeof base.bytes);
    heft_blake3_final(&h, digest);
    memcpy(key.bytes, digest, sizeof key.bytes);
    return key;
}

heft_id128 heft_id128_from(uint64_t low, uint64_t high)
{
    heft_id128 id;
    for (int i = 0; i < 8; i++) {
        id.bytes[i] = (uint8_t)(low >> 8 * i);
        id.bytes[8 + i] = (uint8_t)(high >> 8 * i);
    }
    return id;
}

/* The counter is global, so that no two namespaces of a process are equal. */
heft_id128 heft_param_namespace_new(void)
{
    static atomic_uint_fast64_t last;
    return heft_id128_from(atomic_fetch_add(&last, 1) + 1, 0);
}

void heft_id128_text(char out[33], heft_id128 id)
{
    for (int i = 0; i < 16; i++)
        heft_hex_text(out + 2 * i, &id.bytes[15 - i], 1);
    out[32] = '\0';
}

/* ---- Burn's ids ---- */

enum { DIGITS = HEFT_PARAM_ID_TEXT - 1, DIGIT_BITS = 5 };

heft_status heft_param_id_new(uint64_t *out, heft_error *err)
{
    return heft_random_u64(out, err);
}

/* Burn encodes the bytes of an id from the least significant to the most significant. */
static uint64_t byte_swapped(uint64_t v)
{
    uint64_t swapped = 0;
    for (int i = 0; i < 8; i++)
        swapped |= (v >> 8 * i & 0xFF) << 8 * (7 - i);
    return swapped;
}

/* 64 bits fill twelve digits and four bits of the thirteenth, whose lowest bit is zero. */
void heft_param_id_text(char out[HEFT_PARAM_ID_TEXT], uint64_t id)
{
    static const char digits[] = "0123456789abcdefghijklmnopqrstuv";
    uint64_t bits = byte_swapped(id);
    for (int i = 0; i < DIGITS - 1; i++)
        out[i] = digits[bits >> (64 - DIGIT_BITS * (i + 1)) & 31];
    out[DIGITS - 1] = digits[bits << 1 & 31];
    out[DIGITS] = '\0';
}

bool heft_param_id_parse(uint64_t *out, heft_str text)
{
    uint64_t bits = 0;
    if (text.len != DIGITS)
        return false;
    for (int i = 0; i < DIGITS; i++) {
        char c = text.ptr[i];
        int digit = c >= '0' && c <= '9'   ? c - '0'
                    : c >= 'a' && c <= 'v' ? c - 'a' + 10
                    : c >= 'A' && c <= 'V' ? c - 'A' + 10
                                           : -1;
        bool is_last = i == DIGITS - 1;
        if (digit < 0 || (is_last && digit & 1))
            return false;
        bits = is_last ? bits << 4 | (uint64_t)digit >> 1 : bits << DIGIT_BITS | (uint64_t)digit;
    }
    *out = byte_swapped(bits);
    return true;
}
