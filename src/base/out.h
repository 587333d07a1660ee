/* out.h - an append-only encoder that fills a buffer and flushes the buffer when full, or only
 * counts bytes. */
#ifndef HEFT_OUT_H
#define HEFT_OUT_H
#include <heft/heft.h>

typedef struct heft_out {
    uint8_t *buf; /* NULL: bytes are counted and dropped */
    size_t cap, len;
    uint64_t total; /* bytes so far */
    /* Store the bytes of the range [at, at + len).  NULL: exceeding cap is an error. */
    heft_status (*flush)(void *ctx, uint64_t at, const void *data, size_t len);
    void *ctx;
    heft_status st; /* sticky: after a failure all bytes are counted and dropped */
} heft_out;

heft_out heft_out_counting(void);
/* Return an encoder that extends *crc, a CRC-32C, by the bytes written; the caller sets the first
 * value and provides a buffer.  Flush the encoder before reading *crc. */
heft_out heft_out_crc32c(uint32_t *crc, uint8_t *buf, size_t cap);

void heft_out_bytes(heft_out *o, const void *data, size_t len);
void heft_out_str(heft_out *o, heft_str s);
void heft_out_u8(heft_out *o, uint8_t v);
void heft_out_u16(heft_out *o, uint16_t v);
void heft_out_u32(heft_out *o, uint32_t v);
void heft_out_u64(heft_out *o, uint64_t v);
/* Write v in decimal, padded with leading zeros to min_digits. */
void heft_out_decimal(heft_out *o, uint64_t v, size_t min_digits);
void heft_out_fill(heft_out *o, uint8_t byte, uint64_t count);
heft_status heft_out_flush(heft_out *o);

#endif
