/* strided.h - reads a part in tensor order (little-endian, row-major), whatever the stored byte
 * order and strides. */
#ifndef HEFT_STRIDED_H
#define HEFT_STRIDED_H
#include "core/read/file.h"

typedef struct heft_strided_reader { /* random access to a part */
    const heft_file *f;
    heft_ix_part_row row;
    const uint8_t *content;  /* all decoded bytes; NULL: raw, read from the file */
    uint64_t first;          /* offset of element 0, in bytes */
    const uint64_t *strides; /* in elements; NULL: contiguous */
    const uint64_t *dims;
    uint32_t rank;
} heft_strided_reader;

/* Create a reader of a raw part, or of a compressed part with the decoded `content`. */
heft_strided_reader heft_strided_reader_of(const heft_file *f, uint32_t part,
                                           const uint8_t *content);
/* Read bytes [from, from + len).  Allocates nothing; adjacent elements are read together. */
heft_status heft_strided_reader_read(const heft_strided_reader *r, uint64_t from, void *buf,
                                     size_t len, heft_error *err);
/* Return the bytes that are byte-swapped as a unit in a big-endian part: a number, or a block. */
uint32_t heft_byteswap_unit(heft_dtype t);
/* Byte-swap whole units in place. */
void heft_byteswap(uint8_t *p, size_t len, heft_dtype t);

/* Return the bytes of a part with HEFT_P_RESTORED that heft_restore() takes as a unit. */
uint32_t heft_restored_unit(const heft_ix_part_row *row);
/* Restore the byte order and the signs of whole units in place. */
void heft_restore(uint8_t *p, size_t len, const heft_ix_part_row *row);

/* ---- random access to bytes that are produced in order ---- */

typedef struct heft_spill {
    const heft_host *host;
    const uint8_t *bytes;
    uint64_t len;
    void *memory;          /* the bytes, or NULL … */
    heft_scratch *scratch; /* … if they are in scratch space */
    bool uses_sink;        /* the scratch space is the sink's */
} heft_spill;

/* Produce the next len bytes. */
typedef heft_status (*heft_spill_read)(void *ctx, uint8_t *buf, size_t len, heft_error *err);

/* Reserve len bytes, in the sink's scratch space if possible, and fill this space.  Call
 * heft_spill_close() whatever is returned. */
heft_status heft_spill_fill(heft_spill *out, const heft_host *h, heft_sink *sink, uint64_t len,
                            heft_spill_read read, void *ctx, heft_error *err);
/* Return an error if bytes of the mapped scratch file could not be read. */
heft_status heft_spill_state(const heft_spill *s, heft_error *err);
void heft_spill_close(heft_spill *s); /* a zeroed s is harmless */

#endif
