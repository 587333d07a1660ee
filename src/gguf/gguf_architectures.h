/* gguf_architectures.h - architectures of llama.cpp as data: keys, and the settings that they are
 * made of. */
#ifndef HEFT_GGUF_ARCHITECTURES_H
#define HEFT_GGUF_ARCHITECTURES_H
#include <heft/gguf_texts.h>

typedef enum heft_gguf_rule_type {
    HEFT_RULE_U32,
    HEFT_RULE_F32,
    HEFT_RULE_BOOL
} heft_gguf_rule_type;

/* The consequence if config.json has none of the settings. */
typedef enum heft_gguf_absence {
    HEFT_RULE_NEEDED,
    HEFT_RULE_LEFT_OUT,
    HEFT_RULE_DEFAULT
} heft_gguf_absence;

typedef struct heft_gguf_rule {
    const char *key; /* after the name of the architecture and a dot */
    /* Paths in config.json, separated by '|', the first that is there counts.  "=NAME" is a value
     * that gguf_config.c computes. */
    const char *from;
    heft_gguf_rule_type type;
    heft_gguf_absence absence;
    double value; /* the default */
} heft_gguf_rule;

/* A setting that llama.cpp does not read: the architecture has one value. */
typedef struct heft_gguf_fixed {
    const char *from;
    const char *values; /* separated by '|' */
    const char *note;   /* a warning about another value; NULL: an error */
    /* The value of a config.json without the setting; NULL: the first of `values`. */
    const char *absent;
} heft_gguf_fixed;

enum { HEFT_GGUF_RULE_SETS = 4 };
typedef struct heft_gguf_architecture {
    const char *name;                                  /* name in llama.cpp */
    const char *model_types;                           /* values of config.json, separated by '|' */
    const char *class_name;                            /* class of transformers, for config.json */
    const heft_gguf_rule *rules[HEFT_GGUF_RULE_SETS];  /* each ends with a key of NULL */
    const heft_gguf_fixed *fixed[HEFT_GGUF_RULE_SETS]; /* likewise */
    double rotary_factor; /* part of the head that is rotated, unless config.json says */
} heft_gguf_architecture;

/* Return architecture i, or NULL past the last. */
const heft_gguf_architecture *heft_gguf_architecture_at(uint32_t i);
/* Return the architecture for a model type of config.json, or NULL. */
const heft_gguf_architecture *heft_gguf_architecture_of(heft_str model_type);
/* Return whether a text is one of several, separated by '|'. */
bool heft_gguf_is_among(heft_str text, const char *several);

#endif
