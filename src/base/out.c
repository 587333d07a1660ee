/* out.c - an encoder that appends to a buffer and flushes the buffer when full. */
#include "base/out.h"

#include <string.h>

#include "base/crc.h"
#include "base/text.h"

static heft_status add_to_crc32c(void *ctx, uint64_t at, const void *data, size_t len)
{
    (void)at;
    uint32_t *crc = ctx;
    *crc = heft_crc32c(*crc, data, len);
    return HEFT_OK;
}

/* Return true if bytes are stored, not only counted. */
static bool is_storing(const heft_out *o)
{
    return o->buf && !o->st;
}

heft_status heft_out_flush(heft_out *o)
{
    if (is_storing(o) && o->flush && o->len) {
        o->st = o->flush(o->ctx, o->total - o->len, o->buf, o->len);
        o->len = 0;
    }
    return o->st;
}

/* Empty the full buffer, or set the status. */
static void flush_full(heft_out *o)
{
    if (!o->flush || !o->cap)
        o->st = HEFT_E_ARGUMENT;
    heft_out_flush(o);
}

heft_out heft_out_counting(void)
{
    return (heft_out){ .buf = NULL };
}

heft_out heft_out_crc32c(uint32_t *crc, uint8_t *buf, size_t cap)
{
    return (heft_out){ .buf = buf, .cap = cap, .flush = add_to_crc32c, .ctx = crc };
}

void heft_out_bytes(heft_out *o, const void *data, size_t len)
{
    if (is_storing(o) && len > o->cap - o->len)
        flush_full(o);
    if (is_storing(o) && len > o->cap)
        o->st = o->flush(o->ctx, o->total, data, len);
    else if (is_storing(o) && len) {
        memcpy(o->buf + o->len, data, len);
        o->len += len;
    }
    o->total += len;
}

void heft_out_str(heft_out *o, heft_str s)
{
    heft_out_bytes(o, s.ptr, s.len);
}

void heft_out_u8(heft_out *o, uint8_t v)
{
    heft_out_bytes(o, &v, 1);
}

void heft_out_u16(heft_out *o, uint16_t v)
{
    uint8_t b[2] = { (uint8_t)v, (uint8_t)(v >> 8) };
    heft_out_bytes(o, b, sizeof b);
}

void heft_out_u32(heft_out *o, uint32_t v)
{
    uint8_t b[4] = { (uint8_t)v, (uint8_t)(v >> 8), (uint8_t)(v >> 16), (uint8_t)(v >> 24) };
    heft_out_bytes(o, b, sizeof b);
}

void heft_out_u64(heft_out *o, uint64_t v)
{
    uint8_t b[8];
    for (unsigned i = 0; i < sizeof b; i++)
        b[i] = (uint8_t)(v >> 8 * i);
    heft_out_bytes(o, b, sizeof b);
}

void heft_out_fill(heft_out *o, uint8_t byte, uint64_t count)
{
    while (count && is_storing(o)) {
        if (o->len == o->cap)
            flush_full(o);
        size_t left = o->cap - o->len, n = count < left ? (size_t)count : left;
        memset(o->buf + o->len, byte, n);
        o->len += n;
        o->total += n;
        count -= n;
    }
    o->total += count;
}

void heft_out_decimal(heft_out *o, uint64_t v, size_t min_digits)
{
    char digits[20];
    size_t len = heft_u64_text(digits, v);
    heft_out_fill(o, '0', len < min_digits ? min_digits - len : 0);
    heft_out_bytes(o, digits, len);
}
