/* msgpack_write.c - writes MessagePack items: a first byte, and a big-endian number. */
#include "grammar/msgpack.h"

/* First bytes of a kind of item: with the count inside, and before a count of one, two or four
 * bytes; 0: there is no such form. */
typedef struct head {
    uint8_t small, most, wide[3];
} head;

static const head heads[] = {
    [HEFT_MSGPACK_TEXT] = { 0xA0, 31, { 0xD9, 0xDA, 0xDB } },
    [HEFT_MSGPACK_BYTES] = { 0, 0, { 0xC4, 0xC5, 0xC6 } },
    [HEFT_MSGPACK_EXT] = { 0, 0, { 0xC7, 0xC8, 0xC9 } },
    [HEFT_MSGPACK_ARRAY] = { 0x90, 15, { 0, 0xDC, 0xDD } },
    [HEFT_MSGPACK_MAP] = { 0x80, 15, { 0, 0xDE, 0xDF } },
};

/* Emit a first byte and a number of `bytes` bytes. */
static void put_number(heft_out *o, uint8_t first, uint64_t v, unsigned bytes)
{
    uint8_t item[9] = { first };
    for (unsigned i = 0; i < bytes; i++)
        item[1 + i] = (uint8_t)(v >> 8 * (bytes - 1 - i));
    heft_out_bytes(o, item, 1 + bytes);
}

void heft_msgpack_put_head(heft_out *o, heft_msgpack_kind kind, uint32_t count)
{
    const head *h = &heads[kind];
    if (h->small && count <= h->most)
        heft_out_u8(o, (uint8_t)(h->small | count));
    else if (count <= UINT8_MAX && h->wide[0])
        put_number(o, h->wide[0], count, 1);
    else if (count <= UINT16_MAX)
        put_number(o, h->wide[1], count, 2);
    else
        put_number(o, h->wide[2], count, 4);
}

void heft_msgpack_put_ext(heft_out *o, int8_t type, uint32_t bytes)
{
    enum { FIXED = 0xD4 }; /* one byte; the next first bytes: 2, 4, 8 and 16 bytes */
    bool is_power = bytes && bytes <= 16 && !(bytes & (bytes - 1));
    uint8_t log2 = 0;
    while (is_power && 1u << log2 < bytes)
        log2++;
    if (is_power)
        heft_out_u8(o, (uint8_t)(FIXED + log2));
    else
        heft_msgpack_put_head(o, HEFT_MSGPACK_EXT, bytes);
    heft_out_u8(o, (uint8_t)type);
}

void heft_msgpack_put_text(heft_out *o, heft_str s)
{
    heft_msgpack_put_head(o, HEFT_MSGPACK_TEXT, (uint32_t)s.len);
    heft_out_str(o, s);
}

void heft_msgpack_put_bytes(heft_out *o, heft_str s)
{
    heft_msgpack_put_head(o, HEFT_MSGPACK_BYTES, (uint32_t)s.len);
    heft_out_str(o, s);
}

void heft_msgpack_put_nil(heft_out *o)
{
    heft_out_u8(o, 0xC0);
}

void heft_msgpack_put_bool(heft_out *o, bool v)
{
    heft_out_u8(o, v ? 0xC3 : 0xC2);
}

void heft_msgpack_put_u64(heft_out *o, uint64_t v)
{
    uint8_t size = v <= UINT8_MAX ? 0 : v <= UINT16_MAX ? 1 : v <= UINT32_MAX ? 2 : 3;
    if (v < 0x80)
        heft_out_u8(o, (uint8_t)v);
    else
        put_number(o, 0xCC | size, v, 1u << size);
}

void heft_msgpack_put_i64(heft_out *o, int64_t v)
{
    uint8_t size = v >= INT8_MIN ? 0 : v >= INT16_MIN ? 1 : v >= INT32_MIN ? 2 : 3;
    if (v >= 0)
        heft_msgpack_put_u64(o, (uint64_t)v);
    else if (v >= -32)
        heft_out_u8(o, (uint8_t)v);
    else
        put_number(o, 0xD0 | size, (uint64_t)v, 1u << size);
}

void heft_msgpack_put_f32(heft_out *o, uint32_t bits)
{
    put_number(o, 0xCA, bits, 4);
}

void heft_msgpack_put_f64(heft_out *o, uint64_t bits)
{
    put_number(o, 0xCB, bits, 8);
}
