/* gguf_texts.h - what a GGUF file needs beyond weights to run: metadata and tokenizer, from the
 * texts next to Hugging Face weights, and back.  The general rules of heft.h apply.
 *
 * llama.cpp reads sizes, rotary settings and the tokenizer from the metadata of a file.
 * heft_gguf_metadata_open() makes them from config.json, tokenizer.json and so on;
 * heft_gguf_texts_open() makes these texts from a GGUF file.  docs/gguf.md lists architectures,
 * keys and tokenizers.  Names and layouts of the weights are not changed here.
 *
 * Several threads may read an object at the same time.
 *
 * Stability: provisional. */
#ifndef HEFT_GGUF_TEXTS_H
#define HEFT_GGUF_TEXTS_H
#include <heft/heft.h>

#ifdef __cplusplus
extern "C" {
#endif
/* ---- texts -------------------------------------------------------------------------------- */

/* The files next to Hugging Face weights. */
typedef enum heft_gguf_text {
    HEFT_GGUF_CONFIG,           /* config.json */
    HEFT_GGUF_GENERATION,       /* generation_config.json */
    HEFT_GGUF_TOKENIZER,        /* tokenizer.json */
    HEFT_GGUF_TOKENIZER_CONFIG, /* tokenizer_config.json */
    HEFT_GGUF_SPECIAL_TOKENS,   /* special_tokens_map.json */
    HEFT_GGUF_ADDED_TOKENS,     /* added_tokens.json */
    HEFT_GGUF_VOCAB,            /* vocab.json */
    HEFT_GGUF_MERGES,           /* merges.txt */
    HEFT_GGUF_PIECES,           /* tokenizer.model, not a text but a message of SentencePiece */
    HEFT_GGUF_WORDS,            /* vocab.txt */
    HEFT_GGUF_TEMPLATE,         /* chat_template.jinja */
    HEFT_GGUF_POOLING,          /* 1_Pooling/config.json */
    HEFT_GGUF_TEXTS             /* their number */
} heft_gguf_text;
/* Return the name of the file in the folder of the model; NULL from HEFT_GGUF_TEXTS on. */
HEFT_API const char *heft_gguf_text_file(uint32_t text);

/* ---- to GGUF ------------------------------------------------------------------------------ */

typedef struct heft_gguf_options {
    size_t size; /* = sizeof(heft_gguf_options) */
    /* By heft_gguf_text; ptr NULL: there is no such file.  config.json is required.  Borrowed until
     * the object is closed. */
    heft_str texts[HEFT_GGUF_TEXTS];
    const char *pre;      /* name of the pre-tokenizer in llama.cpp; NULL: by tokenizer.json */
    heft_str name;        /* general.name; may be empty */
    uint64_t rows;        /* tokens of the embedding; 0: "vocab_size" of config.json */
    uint32_t file_type;   /* general.file_type, see heft_mix_info; HEFT_NONE: no such key */
    uint8_t reserved[28]; /* 0 */
} heft_gguf_options;
#define HEFT_GGUF_OPTIONS_INIT                                                       \
    {                                                                                \
        sizeof(heft_gguf_options), { { NULL, 0 } }, NULL, { NULL, 0 }, 0, HEFT_NONE, \
        {                                                                            \
            0                                                                        \
        }                                                                            \
    }

/* Metadata of a GGUF file. */
typedef struct heft_gguf_metadata heft_gguf_metadata;
/* Make the metadata.  host: NULL for the default; must outlive the object.
 *   HEFT_E_FORMAT       a text is malformed, lacks a key that llama.cpp requires, or contradicts
 *                       another: the message names file and key
 *   HEFT_E_UNSUPPORTED  llama.cpp has no such architecture, tokenizer or setting; or the
 *                       pre-tokenizer is unknown: opt->pre names one */
HEFT_API HEFT_MUST_CHECK heft_status heft_gguf_metadata_open(heft_gguf_metadata **out,
                                                             const heft_gguf_options *opt,
                                                             const heft_host *host,
                                                             heft_error *err);
/* Close the object.  NULL is ignored. */
HEFT_API void heft_gguf_metadata_close(heft_gguf_metadata *m);
/* Return the metadata, a list precedes its elements as in heft_convert_options.set. */
HEFT_API const heft_value *heft_gguf_metadata_values(size_t *count, const heft_gguf_metadata *m);
/* Return whether there is a tokenizer.  llama.cpp loads no file without one. */
HEFT_API bool heft_gguf_metadata_has_tokenizer(const heft_gguf_metadata *m);
/* Return note i, a sentence about what llama.cpp computes otherwise; ptr NULL after the last. */
HEFT_API heft_str heft_gguf_metadata_note(const heft_gguf_metadata *m, uint32_t i);
/* A tensor that the weights lack, such as rope_freqs.weight: f32, one dimension. */
typedef struct heft_gguf_extra {
    const char *name; /* NULL: there is no further one */
    const float *values;
    uint32_t count;
} heft_gguf_extra;
/* Return extra tensor i, borrowed from the object. */
HEFT_API heft_gguf_extra heft_gguf_metadata_extra(const heft_gguf_metadata *m, uint32_t i);

/* ---- from GGUF ---------------------------------------------------------------------------- */

/* Texts made of the metadata of a GGUF file. */
typedef struct heft_gguf_texts heft_gguf_texts;
/* Make config.json, and tokenizer.json with tokenizer_config.json if the tokenizer is byte-level
 * BPE of a known pre-tokenizer.  f need not outlive the object.
 *   HEFT_E_UNSUPPORTED  f states no architecture that this version knows
 *   HEFT_E_FORMAT       the metadata are incomplete: the message names the key */
HEFT_API HEFT_MUST_CHECK heft_status heft_gguf_texts_open(heft_gguf_texts **out, const heft_file *f,
                                                          heft_error *err);
/* Close the object.  NULL is ignored. */
HEFT_API void heft_gguf_texts_close(heft_gguf_texts *t);
/* Return a text by heft_gguf_text; ptr NULL: it was not made. */
HEFT_API heft_str heft_gguf_texts_get(const heft_gguf_texts *t, uint32_t text);
/* Return whether the texts state what the metadata state under a key, or a tensor of that name. */
HEFT_API bool heft_gguf_texts_has(const heft_gguf_texts *t, heft_str key);
/* Return why there is no tokenizer.json; NULL: there is one.  Static. */
HEFT_API const char *heft_gguf_texts_refusal(const heft_gguf_texts *t);

#ifdef __cplusplus
}
#endif
#endif
