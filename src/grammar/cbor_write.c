/* cbor_write.c - writes CBOR in shortest form; containers have definite lengths. */
#include <string.h>

#include "grammar/cbor.h"

/* Emit a first byte and a big-endian number of `bytes` bytes. */
static void put_number(heft_out *o, uint8_t first, uint64_t v, unsigned bytes)
{
    uint8_t head[9] = { first };
    for (unsigned i = 0; i < bytes; i++)
        head[1 + i] = (uint8_t)(v >> 8 * (bytes - 1 - i));
    heft_out_bytes(o, head, 1 + bytes);
}

static void put_head(heft_out *o, uint8_t major, uint64_t v)
{
    uint8_t top = (uint8_t)(major << 5);
    uint32_t size = v <= UINT8_MAX ? 0 : v <= UINT16_MAX ? 1 : v <= UINT32_MAX ? 2 : 3;
    if (v < ONE_BYTE)
        heft_out_u8(o, top | (uint8_t)v);
    else
        put_number(o, (uint8_t)(top | (ONE_BYTE + size)), v, 1u << size);
}

void heft_cbor_put_u64(heft_out *o, uint64_t v)
{
    put_head(o, MAJOR_UINT, v);
}

void heft_cbor_put_i64(heft_out *o, int64_t v)
{
    put_head(o, v < 0 ? MAJOR_NINT : MAJOR_UINT, v < 0 ? ~(uint64_t)v : (uint64_t)v);
}

void heft_cbor_put_text(heft_out *o, heft_str s)
{
    put_head(o, MAJOR_TEXT, s.len);
    heft_out_str(o, s);
}

void heft_cbor_put_key(heft_out *o, const char *key)
{
    heft_cbor_put_text(o, heft_lit(key));
}

void heft_cbor_put_bytes(heft_out *o, heft_str s)
{
    put_head(o, MAJOR_BYTES, s.len);
    heft_out_str(o, s);
}

void heft_cbor_put_array(heft_out *o, uint64_t members)
{
    put_head(o, MAJOR_ARRAY, members);
}

void heft_cbor_put_map(heft_out *o, uint64_t pairs)
{
    put_head(o, MAJOR_MAP, pairs);
}

void heft_cbor_put_bool(heft_out *o, bool v)
{
    put_head(o, MAJOR_7, v ? TRUE : FALSE);
}

void heft_cbor_put_null(heft_out *o)
{
    put_head(o, MAJOR_7, NIL);
}

void heft_cbor_put_f64(heft_out *o, double v)
{
    uint64_t bits, narrow;
    memcpy(&bits, &v, sizeof bits);
    if (heft_cbor_narrow(&narrow, bits, F16_MANT, F16_EXP))
        put_number(o, MAJOR_7 << 5 | TWO_BYTES, narrow, 2);
    else if (heft_cbor_narrow(&narrow, bits, F32_MANT, F32_EXP))
        put_number(o, MAJOR_7 << 5 | FOUR_BYTES, narrow, 4);
    else
        put_number(o, MAJOR_7 << 5 | EIGHT_BYTES, bits, 8);
}
