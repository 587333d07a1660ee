/* stream.h - the decoded bytes of a part, front to back. */
#ifndef HEFT_STREAM_H
#define HEFT_STREAM_H
#include "core/read/part_check.h"
#include "core/read/partial_crcs.h"
#include "core/read/spill.h"
#include "core/read/strided.h"
#include "model/msgpack_numbers.h"

enum { HEFT_STREAM_PARTIAL = 8 };

struct heft_stream {
    const heft_file *f;
    uint32_t part;
    heft_ix_part_row row;
    const heft_codec *codec; /* NULL: raw */
    void *state;
    heft_msgpack_numbers numbers; /* instead of state, of HEFT_MSGPACK */
    uint8_t *buf;                 /* stored bytes on their way, unless the source lends them */
    const uint8_t *in;
    size_t in_len;
    uint64_t content_bytes; /* bytes to be decoded: row.length, and what a view leaves out */
    uint64_t fetched, decoded, delivered; /* bytes fetched, decoded, and handed out */
    bool frame_ended;                     /* a frame has just ended */
    bool is_measuring;                    /* row.length is only a limit */
    heft_strided_reader strided;          /* of a raw part, or of one in `all` */
    heft_spill spill;      /* the content of a compressed part whose elements lie apart … */
    heft_sink *spill_sink; /* … which is kept on the disk that this writes to; or NULL */
    uint8_t partial[HEFT_STREAM_PARTIAL]; /* the rest of one that was cut and turned */
    uint32_t partial_left;
    /* Is shown the stored bytes of a compressed part as they are fetched, and those of a raw one that is not
     * plain but lies in order; decoded, the whole content of a compressed part.  May be NULL. */
    void (*on_stored)(void *ctx, const void *data, size_t len);
    void (*on_decoded)(void *ctx, const void *data, size_t len);
    void *callback_ctx;
    heft_part_check check; /* of the part's digest, once all of it was read */
    heft_partial_crcs
        *crcs; /* digests the stored bytes of a raw part that lies in order; or NULL */
};

/* A part whose length is not known is measured first. */
heft_status heft_stream_start(heft_stream *s, const heft_file *f, uint32_t part, heft_error *err);
void heft_stream_stop(heft_stream *s);
/* heft_stream_open() with a checksum, see heft_stream_check(), and pieces, or NULL. */
heft_status heft_stream_open_with(heft_stream **out, const heft_file *f, uint32_t part,
                                  uint32_t checksum, heft_partial_crcs *crcs, heft_error *err);
/* Before the first byte: reading the last one compares this checksum, one of heft_part_checksum(), or HEFT_NONE. */
heft_status heft_stream_check(heft_stream *s, uint32_t checksum, heft_error *err);
/* Passes over the next len bytes, of which the part must have as many left. */
heft_status heft_stream_skip(heft_stream *s, uint64_t len, heft_error *err);

/* As heft_part_read(), without a digest. */
heft_status heft_read_unchecked(void *buf, const heft_file *f, uint32_t part, uint64_t from,
                                size_t len, heft_error *err);

/* All of a part, with the digest `claim`. */
heft_status heft_read_checked(void *buf, const heft_file *f, uint32_t part, uint32_t checksum,
                              heft_error *err);

/* How many bytes a part decodes to, for one whose row does not tell. */
heft_status heft_stream_decoded_length(uint64_t *length, const heft_file *f, uint32_t part,
                                       heft_error *err);

/* Whether the part's stored bytes can decode to so many at all: HEFT_E_FORMAT. */
heft_status heft_stream_check_ratio(const heft_file *f, uint32_t part, uint64_t length,
                                    heft_error *err);

#endif
