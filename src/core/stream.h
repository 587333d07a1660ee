/* stream.h - the decoded bytes of a part, front to back. */
#ifndef HEFT_STREAM_H
#define HEFT_STREAM_H
#include "core/core.h"

struct heft_stream {
    const heft_file *f;
    heft_ix_part_row row;
    const heft_codec *codec; /* NULL: raw */
    void *state;
    uint8_t *buf; /* stored bytes on their way, unless the source lends them */
    const uint8_t *in;
    size_t in_len;
    uint64_t taken, made; /* stored bytes fetched, decoded bytes given */
    bool whole;           /* a frame has just ended */
    bool counts;          /* row.length is only a limit */
    /* Is shown the stored bytes as they are fetched; may be NULL. */
    void (*seen)(void *ctx, const void *data, size_t len);
    void *seen_ctx;
};

/* A part whose length is not known is measured first. */
heft_status heft_stream_start(heft_stream *s, const heft_file *f, uint32_t part, heft_error *err);
void heft_stream_stop(heft_stream *s);
/* Passes over the next len bytes, of which the part must have as many left. */
heft_status heft_stream_skip(heft_stream *s, uint64_t len, heft_error *err);

/* How many bytes a part decodes to, for one whose row does not tell. */
heft_status heft_stream_measure(uint64_t *length, const heft_file *f, uint32_t part,
                                heft_error *err);

/* Whether so many stored bytes can decode to so many at all: HEFT_E_FORMAT. */
heft_status heft_stream_possible(const heft_ix_part_row *row, heft_error *err);

const heft_codec *heft_host_codec(const heft_host *h, heft_encoding e); /* or NULL */

#endif
