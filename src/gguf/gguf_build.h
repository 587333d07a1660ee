/* gguf_build.h - metadata of a GGUF file while they are made from the texts of a model.
 *
 * This folder knows what llama.cpp reads: architectures and their keys (gguf_architectures.c),
 * tokenizers, names of pre-tokenizers.  It reads no tensor. */
#ifndef HEFT_GGUF_BUILD_H
#define HEFT_GGUF_BUILD_H
#include <heft/companion.h>
#include <heft/gguf_texts.h>
#include <heft/vocabulary.h>

#include "base/arena.h"

/* Numbers of llama.cpp for tokenizer.ggml.token_type. */
typedef enum heft_gguf_token_type {
    HEFT_TOKEN_NORMAL = 1,
    HEFT_TOKEN_UNKNOWN = 2,
    HEFT_TOKEN_CONTROL = 3,
    HEFT_TOKEN_USER = 4,
    HEFT_TOKEN_UNUSED = 5,
    HEFT_TOKEN_BYTE = 6
} heft_gguf_token_type;

typedef struct heft_gguf_token {
    heft_str text; /* ptr NULL: no token has the id */
    float score;
    int32_t type;
} heft_gguf_token;

typedef struct heft_gguf_architecture heft_gguf_architecture;

struct heft_gguf_metadata {
    heft_gguf_options opt;
    const heft_host *host;
    heft_memory mem;
    heft_arena arena;
    heft_vec values;                      /* heft_value */
    heft_vec notes;                       /* heft_str */
    heft_vec extras;                      /* heft_gguf_extra */
    heft_vec tokens;                      /* heft_gguf_token, by id */
    heft_settings *json[HEFT_GGUF_TEXTS]; /* the texts that are small objects, or NULL */
    const heft_gguf_architecture *architecture;
    heft_vocab *vocab; /* the tokens, to find them */
    heft_error *err;
    bool has_tokenizer;
    bool is_out_of_memory; /* some value or note is missing */
};

/* ---- values ---- */

/* Append metadata.  Keys and texts are borrowed. */
void heft_gguf_add(heft_gguf_metadata *m, heft_value v);
void heft_gguf_add_u32(heft_gguf_metadata *m, heft_str key, uint64_t v);
void heft_gguf_add_f32(heft_gguf_metadata *m, heft_str key, double v);
void heft_gguf_add_bool(heft_gguf_metadata *m, const char *key, bool v);
void heft_gguf_add_str(heft_gguf_metadata *m, const char *key, heft_str v);
/* Append the head of a list of `count` values, which the caller appends. */
void heft_gguf_add_list(heft_gguf_metadata *m, const char *key, uint64_t count);
/* Append an array of numbers of 4 bytes. */
void heft_gguf_add_array(heft_gguf_metadata *m, const char *key, const void *numbers,
                         uint32_t count, heft_dtype type);
/* Note a fact for the user; the conversions are those of heft_error_set(). */
void heft_gguf_note(heft_gguf_metadata *m, const char *fmt, heft_str text);
/* Append a tensor and return its numbers for the caller to fill; NULL if out of memory. */
float *heft_gguf_add_extra(heft_gguf_metadata *m, const char *name, uint32_t count);

/* ---- texts ---- */

/* Return the value at a path; HEFT_KIND_NULL: there is none, or s is NULL. */
heft_value heft_gguf_setting_at(const heft_settings *s, heft_str path);
/* Return the value at a path in a text; HEFT_KIND_NULL: there is none, or it is null. */
heft_value heft_gguf_setting(const heft_gguf_metadata *m, heft_gguf_text text, const char *path);
/* Return the first value of config.json among the paths, separated by '|'.  A path is looked up
 * below "text_config" first. */
heft_value heft_gguf_config(const heft_gguf_metadata *m, const char *paths);
/* Return the first value among settings of the rotary embedding, wherever a version of transformers
 * stores them. */
heft_value heft_gguf_rope(const heft_gguf_metadata *m, const char *keys);
/* Read a number; false: the value is not one, or not finite. */
bool heft_gguf_number(double *out, const heft_value *v);
bool heft_gguf_is_text(const heft_value *v, const char *text);

/* The rotary scaling "llama3". */
typedef struct heft_gguf_stretching {
    double base, factor, low, high, length;
} heft_gguf_stretching;
/* Compute the factors for `count` waves: slow ones are stretched by the factor, fast ones not, and
 * those between in part. */
void heft_gguf_stretch(float *out, uint32_t count, const heft_gguf_stretching *s);

/* ---- steps, in their order ---- */

/* Find the architecture and append the keys of config.json. */
heft_status heft_gguf_read_config(heft_gguf_metadata *m);
/* Refuse settings for which llama.cpp computes another value, which depends on other settings. */
heft_status heft_gguf_check_computed(heft_gguf_metadata *m);
/* Append the keys of the rotary embedding, and its tensors. */
heft_status heft_gguf_read_rope(heft_gguf_metadata *m);
/* Append the tokenizer, if there is one. */
heft_status heft_gguf_read_tokenizer(heft_gguf_metadata *m);

#endif
