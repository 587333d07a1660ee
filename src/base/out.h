/* out.h - an append-only encoder: into a buffer that is flushed when full, or only counting. */
#ifndef HEFT_OUT_H
#define HEFT_OUT_H
#include <heft/heft.h>

typedef struct heft_out {
    uint8_t *buf; /* NULL: nothing is kept, only counted */
    size_t cap, len;
    uint64_t total; /* bytes so far */
    /* Takes the bytes at [at, at + len).  NULL: overflowing cap is an error. */
    heft_status (*flush)(void *ctx, uint64_t at, const void *data, size_t len);
    void *ctx;
    heft_status st; /* sticky: after a failure everything is counted and dropped */
} heft_out;

heft_out heft_out_counting(void);
/* CRC-32C of what is written, in *crc, which starts as the caller set it; buf is scratch.  Flush
 * before reading it. */
heft_out heft_out_crc32c(uint32_t *crc, uint8_t *buf, size_t cap);

void heft_out_bytes(heft_out *o, const void *data, size_t len);
void heft_out_str(heft_out *o, heft_str s);
void heft_out_u8(heft_out *o, uint8_t v);
void heft_out_u16(heft_out *o, uint16_t v);
void heft_out_u32(heft_out *o, uint32_t v);
void heft_out_u64(heft_out *o, uint64_t v);
/* Write v in decimal, with zeros in front up to `least` digits. */
void heft_out_decimal(heft_out *o, uint64_t v, size_t least);
void heft_out_fill(heft_out *o, uint8_t byte, uint64_t count);
heft_status heft_out_flush(heft_out *o);

#endif
