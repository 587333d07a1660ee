/* vocab.h - builds a vocabulary: copies of the tokens, in order of id. */
#ifndef HEFT_VOCAB_H
#define HEFT_VOCAB_H
#include "model/names.h"

struct heft_vocab {
    heft_memory mem;
    uint64_t key[2]; /* hash key; set before heft_vocab_end() */
    char *text;      /* concatenated tokens; capacity text_bytes */
    size_t text_bytes;
    uint32_t *ends; /* end offset of each token in text; capacity entries, count in use */
    uint32_t count, capacity;
    heft_names names;
    uint32_t special[HEFT_SPECIALS];
};

/* Copy a vocabulary: tokens, hash key and special ids. */
heft_status heft_vocab_copy(heft_vocab **out, const heft_vocab *v, const heft_allocator *al,
                            heft_error *err);
/* Create an empty vocabulary with capacity for `count` tokens of `bytes` bytes in total; return
 * HEFT_E_LIMIT if either needs more than 32 bits. */
heft_status heft_vocab_begin(heft_vocab **out, const heft_allocator *al, uint64_t count,
                             uint64_t bytes, heft_error *err);
/* Append a token within the reserved capacity.  The token may lie in v->text itself, at or after
 * the destination offset. */
void heft_vocab_add(heft_vocab *v, heft_str token);
/* Build the lookup table after the last token.  by_name: set the special ids by the conventional
 * spellings, for example "[PAD]". */
heft_status heft_vocab_end(heft_vocab *v, bool by_name, heft_error *err);

/* Return the id of the token with the conventional spelling of `s`, for example "[PAD]", or
 * HEFT_NONE. */
uint32_t heft_vocab_find_special(const heft_vocab *v, heft_special s);

#endif
