/* embd.h - constants and functions of the EMBD format; embd.c and embd_simple.c show the
 * layouts. */
#ifndef HEFT_EMBD_H
#define HEFT_EMBD_H
#include <heft/vocabulary.h>

#include "format/format.h"

enum {
    HEFT_EMBD_HEADER = 64,
    HEFT_EMBD_FOOTER = 16,
    HEFT_EMBD_ALIGN = 64,
    HEFT_EMBD_DESCRIPTOR = 32,
    HEFT_EMBD_RANK = 4,
    HEFT_EMBD_CHECKED = 56, /* bytes of the header that its checksum covers */
    HEFT_EMBD_META_HEADER = 8,
    HEFT_EMBD_META_ENTRY = 4, /* bytes of an entry without key and value */
    HEFT_EMBD_TYPES = 9,
    /* flags of the header */
    HEFT_EMBD_VOCAB = 1,
    HEFT_EMBD_ALIGNED = 2,
    HEFT_EMBD_CHECKSUMS = 4,
    HEFT_EMBD_COMPRESSED = 8,
    /* vocabulary section: bytes before the tokens, bytes of the ids of special tokens */
    HEFT_EMBD_VOCAB_HEADER = 12,
    HEFT_EMBD_SPECIAL = 4 * HEFT_SPECIALS,
    /* limits of the reference reader of the simple stream: bytes of a text, number of tokens */
    HEFT_EMBD_SIMPLE_TEXT = 1 << 20,
    HEFT_EMBD_SIMPLE_TOKENS = 100000
};

extern const heft_dtype heft_embd_types[HEFT_EMBD_TYPES]; /* by element type code */
extern const char heft_embd_version[], heft_embd_simple_version[];
/* rules of the checksums */
extern const char heft_embd_header_crc[], heft_embd_data_crc[], heft_embd_file_crc[];

/* ---- embd_vocab.c ---- */

/* Read the vocabulary section of the specified layout. */
heft_status heft_embd_read_vocab(heft_window *in, heft_index *x, heft_range section);
/* Read the vocabulary of a simple stream, which begins at offset `at`; set *end to the offset after
 * the vocabulary. */
heft_status heft_embd_read_simple_vocab(heft_window *in, heft_index *x, uint64_t at, uint64_t *end);
/* Return the size in bytes of all tokens, each with a length field of length_bytes bytes. */
uint64_t heft_embd_token_bytes(const heft_vocab *v, uint32_t length_bytes);
/* Emit the vocabulary section, which begins at offset section_at of the file. */
void heft_embd_put_vocab(heft_out *o, const heft_vocab *v, uint32_t section_at);
/* Emit the vocabulary of a simple stream; v NULL: zero tokens. */
void heft_embd_put_simple_vocab(heft_out *o, const heft_vocab *v);
/* Report losses of the vocabulary; set *out to the vocabulary to be written, or NULL. */
heft_status heft_embd_plan_vocab(heft_plan *p, bool is_simple, const heft_vocab **out);

/* ---- embd_simple.c ---- */

/* may_be_specified: some bytes are those of the specified layout, so that bytes after the
 * vocabulary tell of a damaged header. */
heft_status heft_embd_simple_parse(heft_window *in, heft_index *x, bool may_be_specified);
heft_status heft_embd_simple_plan_layout(heft_plan *p, const heft_vocab *v);
heft_status heft_embd_simple_write_header(const heft_plan *p, heft_out *o);
heft_status heft_embd_simple_write_record_header(const heft_plan *p, uint32_t part, heft_out *o);

/* ---- embd_write.c, for both layouts ---- */

heft_status heft_embd_plan(heft_plan *p);
heft_status heft_embd_write_header(const heft_plan *p, heft_out *o);
heft_status heft_embd_write_record_header(const heft_plan *p, uint32_t part, heft_out *o);
heft_status heft_embd_write_trailer(const heft_plan *p, heft_out *o);

#endif
