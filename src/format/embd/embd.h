/* embd.h - what the files of the EMBD format share; embd.c and embd_simple.c show the layouts. */
#ifndef HEFT_EMBD_H
#define HEFT_EMBD_H
#include "format/format.h"

enum {
    HEFT_EMBD_HEADER = 64,
    HEFT_EMBD_FOOTER = 16,
    HEFT_EMBD_ALIGN = 64,
    HEFT_EMBD_DESCRIPTOR = 32,
    HEFT_EMBD_RANK = 4,
    HEFT_EMBD_CHECKED = 56, /* bytes of the header that its checksum covers */
    HEFT_EMBD_META_HEAD = 8,
    HEFT_EMBD_META_ENTRY = 4,
    HEFT_EMBD_TYPES = 9,
    /* flags */
    HEFT_EMBD_VOCAB = 1,
    HEFT_EMBD_ALIGNED = 2,
    HEFT_EMBD_CHECKSUMS = 4,
    HEFT_EMBD_COMPRESSED = 8,
    /* the head of the vocabulary section, and the ids of special tokens */
    HEFT_EMBD_VOCAB_HEAD = 12,
    HEFT_EMBD_SPECIAL = 4 * HEFT_SPECIALS,
    /* the reference reader of the simple stream goes no further */
    HEFT_EMBD_SIMPLE_TEXT = 1 << 20,
    HEFT_EMBD_SIMPLE_TOKENS = 100000
};

extern const heft_dtype heft_embd_types[HEFT_EMBD_TYPES]; /* by code */
extern const char heft_embd_version[], heft_embd_simple_version[];
/* rules */
extern const char heft_embd_header_crc[], heft_embd_data_crc[], heft_embd_file_crc[];

/* embd_vocab.c: the vocabulary section, and the tokens of a simple stream, from their count on. */
heft_status heft_embd_read_vocab(heft_window *in, heft_index *x, heft_range section);
heft_status heft_embd_read_simple_vocab(heft_window *in, heft_index *x, uint64_t at, uint64_t *end);
/* Bytes of the tokens, with lengths of so many bytes in front. */
uint64_t heft_embd_token_bytes(const heft_vocab *v, uint32_t length_bytes);
void heft_embd_put_vocab(heft_out *o, const heft_vocab *v, uint32_t section_at);
void heft_embd_put_simple_vocab(heft_out *o, const heft_vocab *v); /* NULL: none */
/* Losses: *out is the vocabulary to be written, or NULL. */
heft_status heft_embd_plan_vocab(heft_plan *p, bool simple, const heft_vocab **out);

/* embd_simple.c */
heft_status heft_embd_simple_parse(heft_window *in, heft_index *x);
heft_status heft_embd_simple_lay_out(heft_plan *p, const heft_vocab *v);
heft_status heft_embd_simple_write_header(const heft_plan *p, heft_out *o);
heft_status heft_embd_simple_write_record_header(const heft_plan *p, uint32_t part, heft_out *o);

heft_status heft_embd_check(heft_check *c); /* embd_check.c */

/* embd_write.c: both layouts. */
heft_status heft_embd_plan(heft_plan *p);
heft_status heft_embd_write_header(const heft_plan *p, heft_out *o);
heft_status heft_embd_write_record_header(const heft_plan *p, uint32_t part, heft_out *o);
heft_status heft_embd_write_trailer(const heft_plan *p, heft_out *o);

#endif
