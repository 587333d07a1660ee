/* gguf_tokenizer.h - a tokenizer while it is read. */
#ifndef HEFT_GGUF_TOKENIZER_H
#define HEFT_GGUF_TOKENIZER_H
#include "gguf/gguf_build.h"

enum { HEFT_GGUF_ADDED_SCORE = -1000 }; /* tokens that are not part of the vocabulary */

/* A token in the order of the texts; later ones replace earlier ones of the same id. */
typedef struct heft_gguf_entry {
    heft_str text;
    uint64_t id;
    float score;
    int32_t type;
} heft_gguf_entry;

typedef struct heft_gguf_merge {
    heft_str left, right;
} heft_gguf_merge;

typedef struct heft_gguf_tokenizer {
    heft_gguf_metadata *m;
    heft_vec entries;  /* heft_gguf_entry */
    heft_vec merges;   /* heft_gguf_merge */
    heft_str kind;     /* "type" of the model in tokenizer.json */
    const char *model; /* tokenizer.ggml.model: gpt2, llama, bert, t5 */
    const char *pre;   /* tokenizer.ggml.pre */
    heft_str unknown;  /* "unk_token" of the model; may be empty */
    /* Objects of tokenizer.json, or NULL. */
    heft_settings *normalizer, *pre_tokenizer, *post_processor;
    bool ignore_merges, byte_fallback;
    bool has_scores;
    bool adds_bos, adds_eos, adds_sep; /* around a text */
    bool knows_additions;              /* the three above are stated */
    heft_str first, last;              /* tokens of a template around a text; may be empty */
    bool adds_space, knows_space;      /* before a text */
    uint32_t unknown_id;               /* HEFT_NONE: there is none */
} heft_gguf_tokenizer;

/* Append a token. */
heft_status heft_gguf_add_token(heft_gguf_tokenizer *t, heft_str text, uint64_t id, float score,
                                heft_gguf_token_type type);
/* Append a token that is not part of the vocabulary of the model: special, or one whose text looks
 * like that, are of the type CONTROL. */
heft_status heft_gguf_added_token(heft_gguf_tokenizer *t, heft_str text, uint64_t id, bool special);

/* Read tokenizer.json. */
heft_status heft_gguf_read_json_tokens(heft_gguf_tokenizer *t);
/* Read vocab.json, merges.txt and added_tokens.json. */
heft_status heft_gguf_read_vocab(heft_gguf_tokenizer *t);
/* Read vocab.txt. */
heft_status heft_gguf_read_words(heft_gguf_tokenizer *t);
/* Read tokenizer.model. */
heft_status heft_gguf_read_pieces(heft_gguf_tokenizer *t);
/* Read the tokens of added_tokens.json and "added_tokens_decoder" of tokenizer_config.json. */
heft_status heft_gguf_read_added(heft_gguf_tokenizer *t);

/* Find the name of the pre-tokenizer of a byte-level tokenizer. */
heft_status heft_gguf_find_pre(heft_gguf_tokenizer *t);
/* Return the steps of the pre-tokenizer with that name in llama.cpp, in the short form of
 * gguf_pre.c, and whether merges are ignored for tokens of the vocabulary; NULL: the steps are not
 * known. */
const char *heft_gguf_pre_steps(heft_str name, bool *ignores_merges);
/* Add what llama.cpp does with characters and spaces for a Unigram tokenizer of tokenizer.json. */
heft_status heft_gguf_shape_unigram(heft_gguf_tokenizer *t);
/* Append ids of special tokens, what is added around a text, and the chat template. */
heft_status heft_gguf_read_special(heft_gguf_tokenizer *t);

#endif
