/* gguf_pre.h - the pre-tokenizers of llama.cpp, and the steps of tokenizer.json that each has.
 *
 * llama.cpp splits texts by expressions of its own for each name.  A row has the steps that
 * tokenizer.json has for it, in a short form of one line for each:
 *   S expression   split, isolated
 *   D              digits one by one
 *   N              digits together
 *   P              punctuation one by one
 *   C              punctuation together
 *   G              bytes to letters, after the split of GPT-2
 *   B              bytes to letters
 * A line that ends with REST_OF_LINE fits any expression that begins so. */
#ifndef HEFT_GGUF_PRE_H
#define HEFT_GGUF_PRE_H
#include "gguf/gguf_build.h"

#define HEFT_GGUF_REST_OF_LINE "\1"

typedef struct heft_gguf_pre_row {
    const char *name;
    bool ignores_merges; /* a token of the vocabulary needs no merges */
    const char *steps;
} heft_gguf_pre_row;

/* Return row i; NULL after the last.  The first row that fits the steps of a file counts. */
const heft_gguf_pre_row *heft_gguf_pre_row_at(size_t i);
/* Return the first row of that name, of another name that llama.cpp takes for the same, or of a
 * class of transformers; NULL: there is none. */
const heft_gguf_pre_row *heft_gguf_pre_row_of(heft_str name);
/* Return true if llama.cpp knows the name, also without a row. */
bool heft_gguf_pre_is_known(heft_str name);

#endif
