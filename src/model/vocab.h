/* vocab.h - making a vocabulary: tokens in the order of their ids, in memory of their own. */
#ifndef HEFT_VOCAB_H
#define HEFT_VOCAB_H
#include "model/names.h"

struct heft_vocab {
    heft_memory mem;
    uint64_t key[2]; /* of the hash; set before heft_vocab_end() */
    char *text;      /* the tokens, end to end; room for text_bytes */
    size_t text_bytes;
    uint32_t *ends; /* of each token in text */
    uint32_t count, room;
    heft_names names;
    uint32_t special[HEFT_SPECIALS];
};

/* Tokens and special ids of another one. */
heft_status heft_vocab_copy(heft_vocab **out, const heft_vocab *v, const heft_allocator *al,
                            heft_error *err);
/* Room for so many tokens of so many bytes in all. */
heft_status heft_vocab_begin(heft_vocab **out, const heft_allocator *al, uint64_t count,
                             uint64_t bytes, heft_error *err);
/* The next token; it may lie in v->text, at its place or behind it. */
void heft_vocab_add(heft_vocab *v, heft_str token);
/* All are there: makes them findable.  by_name: special tokens are those of their names. */
heft_status heft_vocab_end(heft_vocab *v, bool by_name, heft_error *err);

/* The id of the token that is called as such a special token is, "[PAD]"; HEFT_NONE: there is none. */
uint32_t heft_vocab_named(const heft_vocab *v, heft_special s);

#endif
