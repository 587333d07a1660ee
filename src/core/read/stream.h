/* stream.h - reads the decoded bytes of a part sequentially. */
#ifndef HEFT_STREAM_H
#define HEFT_STREAM_H
#include "core/read/ledger.h"
#include "core/read/strided.h"
#include "model/msgpack_numbers.h"
#include "model/protobuf_numbers.h"

enum { HEFT_STREAM_PARTIAL = 16 }; /* a complex number whose sign changes */

struct heft_stream {
    const heft_file *f;
    uint32_t part;
    heft_ix_part_row row;
    const heft_codec *codec; /* NULL: raw */
    void *state;
    union { /* decoders of HEFT_MSGPACK and HEFT_PROTOBUF, without a state */
        heft_msgpack_numbers msgpack;
        heft_protobuf_numbers protobuf;
    } numbers;
    uint8_t *buf; /* stored bytes; NULL if the source is mapped */
    const uint8_t *in;
    size_t in_len;
    uint64_t content_bytes;               /* decoded bytes, including bytes that a view skips */
    uint64_t fetched, decoded, delivered; /* bytes read, decoded, and returned */
    bool frame_ended;                     /* the codec is at the end of a frame */
    bool is_measuring;                    /* row.length is an upper bound, not the length */
    bool is_for_finding;                  /* errors become findings, and name no place */
    heft_strided_reader strided;          /* reads a raw part, or the content in `spill` */
    heft_spill spill;                     /* decoded content of a compressed part with strides */
    heft_sink *spill_sink;                /* preferred place of `spill`, or NULL */
    /* Byte-swapped number that a read has returned only in part; the last bytes follow. */
    uint8_t partial[HEFT_STREAM_PARTIAL];
    uint32_t partial_left;
    heft_part_check check; /* compares the part's digest after the last byte */
    /* Collects CRCs of the stored bytes of a part that is compressed or contiguous; or NULL. */
    heft_partial_crcs *crcs;
};

/* Initialise s; a part of unknown length is decoded once to count the bytes.  Call
 * heft_stream_stop() afterwards. */
heft_status heft_stream_start(heft_stream *s, const heft_file *f, uint32_t part, heft_error *err);
/* heft_stream_start(); is_for_finding, here and below: the text of an error becomes a finding, and
 * therefore names neither tensor nor shard. */
heft_status heft_stream_start_for(heft_stream *s, const heft_file *f, uint32_t part,
                                  bool is_for_finding, heft_error *err);
void heft_stream_stop(heft_stream *s);
/* heft_stream_open() with a checksum, see heft_stream_check(), and with CRCs to collect, or
 * NULL. */
heft_status heft_stream_open_with(heft_stream **out, const heft_file *f, uint32_t part,
                                  uint32_t checksum, heft_partial_crcs *crcs, heft_error *err);
/* Before the first byte: request to compare a checksum after the last byte.  checksum: from
 * heft_part_checksum(), or HEFT_NONE. */
heft_status heft_stream_check(heft_stream *s, uint32_t checksum, heft_error *err);
/* Before the first byte: show the stored bytes to the ledger, which also gets the result of the
 * digest of the part that is compared in order. */
heft_status heft_stream_show(heft_stream *s, heft_ledger *l, heft_error *err);
/* Skip the next len bytes; at least len bytes must be left. */
heft_status heft_stream_skip(heft_stream *s, uint64_t len, heft_error *err);

/* heft_part_read() without verifying a digest. */
heft_status heft_read_unchecked(void *buf, const heft_file *f, uint32_t part, uint64_t from,
                                size_t len, heft_error *err);

/* Read the whole part and verify `checksum`. */
heft_status heft_read_checked(void *buf, const heft_file *f, uint32_t part, uint32_t checksum,
                              heft_error *err);

/* Decode a part of unknown length and count the bytes. */
heft_status heft_stream_decoded_length(uint64_t *length, const heft_file *f, uint32_t part,
                                       bool is_for_finding, heft_error *err);

/* Return HEFT_E_FORMAT if no codec can expand the part's stored bytes to `length`. */
heft_status heft_stream_check_ratio(const heft_file *f, uint32_t part, uint64_t length,
                                    bool is_for_finding, heft_error *err);

#endif
