/* profile_types.h - a parsed profile: sizes, metadata keys, tensors and vocabulary that a model
 * must have. */
#ifndef HEFT_PROFILE_TYPES_H
#define HEFT_PROFILE_TYPES_H
#include <heft/companion.h>
#include <heft/vocabulary.h>

#include "base/text.h"
#include "companion/companion_text.h"

enum {
    HEFT_PROFILE_NAME = 512, /* maximum length of a tensor's name */
    HEFT_PROFILE_GROUPS = 4  /* maximum number of {...} in a name */
};

typedef struct heft_profile_size { /* named number for use in shapes */
    heft_str name;
    uint64_t value;
} heft_profile_size;

/* requirement for the value of a metadata key */
typedef enum heft_profile_requirement {
    HEFT_PROFILE_PRESENT,
    HEFT_PROFILE_TEXT,
    HEFT_PROFILE_NUMBER
} heft_profile_requirement;

typedef struct heft_profile_key {
    heft_str key, text; /* text: required value, or an expression */
    heft_profile_requirement requirement;
    bool is_optional; /* a missing key is a warning, not a fault */
} heft_profile_key;

typedef struct heft_profile_tensor {
    heft_str name;              /* pattern with groups such as {0..5} and {a|b} */
    uint32_t shape, rank;       /* range of `texts`: dimensions */
    uint32_t types, type_count; /* range of `texts`: allowed element types */
    bool has_shape, is_optional;
} heft_profile_tensor;

struct heft_profile {
    heft_memory mem;
    heft_arena arena;
    heft_str name;
    heft_vec sizes, keys, tensors;
    heft_vec texts;    /* heft_str: shapes, element types */
    heft_vec prefixes; /* heft_str: optional prefixes of tensor names */
    /* heft_str: globs of "FORMAT VERSION" for formats that store metadata and vocabulary */
    heft_vec complete_in;
    heft_str tokens, special[HEFT_SPECIALS]; /* expressions; ptr NULL: no requirement */
};

/* A tensor name with groups, and the selected alternative of each group. */
typedef struct heft_profile_pattern {
    heft_str text;
    uint32_t count;
    struct heft_profile_group {
        size_t at, len;         /* range of the text between { and } */
        uint64_t first, last;   /* bounds of a numeric range */
        uint64_t chosen, count; /* selected alternative, number of alternatives */
        bool is_range;
    } group[HEFT_PROFILE_GROUPS];
} heft_profile_pattern;

#endif
