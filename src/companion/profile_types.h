/* profile_types.h - a parsed profile: its sizes, its metadata keys and its tensors. */
#ifndef HEFT_PROFILE_TYPES_H
#define HEFT_PROFILE_TYPES_H
#include "base/text.h"
#include "companion/companion_text.h"

enum {
    HEFT_PROFILE_NAME = 512, /* bytes of a tensor's name, at most */
    HEFT_PROFILE_GROUPS = 4  /* {...} in a name */
};

typedef struct heft_profile_size { /* a name that shapes may use */
    heft_str name;
    uint64_t value;
} heft_profile_size;

typedef enum heft_profile_wish { /* of a metadata key */
                                 HEFT_PROFILE_PRESENT,
                                 HEFT_PROFILE_TEXT,
                                 HEFT_PROFILE_NUMBER
} heft_profile_wish;

typedef struct heft_profile_key {
    heft_str key, text; /* text: the value wanted, or an expression for it */
    heft_profile_wish wish;
    bool is_optional; /* its absence is a warning at most */
} heft_profile_key;

typedef struct heft_profile_tensor {
    heft_str name;        /* with {0..5} and {a|b} in it */
    uint32_t shape, rank; /* from here on, so many of the texts */
    uint32_t types, type_count;
    bool has_shape, is_optional;
} heft_profile_tensor;

struct heft_profile {
    heft_memory mem;
    heft_arena arena;
    heft_str name;
    heft_vec sizes, keys, tensors;
    heft_vec texts;    /* heft_str: shapes, element types */
    heft_vec prefixes; /* heft_str: what names may begin with besides */
    heft_vec homes;    /* heft_str: "FORMAT VERSION" of files that have metadata and vocabulary */
    heft_str tokens, special[HEFT_SPECIALS]; /* expressions; ptr NULL: not asked */
};

/* The value of a text such as "3*hidden_size": numbers, and names of sizes or of metadata of f (which may be
 * NULL), with + - * / between them.  False: it has none. */
bool heft_profile_value(uint64_t *out, const heft_profile *p, const heft_file *f, heft_str text);
/* The metadata value of that key; false: there is none. */
bool heft_profile_meta(heft_value *out, const heft_file *f, heft_str key);
/* A metadata value as a number. */
bool heft_profile_number(uint64_t *out, const heft_value *v);

/* A name with its groups, and which of each is meant. */
typedef struct heft_profile_pattern {
    heft_str text;
    uint32_t count;
    struct heft_profile_group {
        size_t at, len;         /* of what stands between { and } */
        uint64_t first, last;   /* of a range */
        uint64_t chosen, count; /* of the alternatives, or of the range */
        bool is_range;
    } group[HEFT_PROFILE_GROUPS];
} heft_profile_pattern;

/* False: a group is no range and no list, or there are too many. */
bool heft_profile_pattern_open(heft_profile_pattern *out, const heft_profile *p, const heft_file *f,
                               heft_str text);
/* The next name, in the ranges or in the alternatives; false: it began anew. */
bool heft_profile_pattern_next(heft_profile_pattern *x, bool in_ranges);
/* The name that is meant; its length, or 0 when it is too long. */
size_t heft_profile_pattern_name(char out[HEFT_PROFILE_NAME], const heft_profile_pattern *x,
                                 heft_str prefix);

#endif
