/* mix_table.h - mixes of block types as data: which type each kind of tensor gets.
 *
 * This folder chooses the types of a quantised GGUF file and the importance of columns, as the
 * users of llama-quantize know them.  It encodes nothing: types become casts of a conversion. */
#ifndef HEFT_MIX_TABLE_H
#define HEFT_MIX_TABLE_H
#include <heft/mix.h>

/* Numbers of llama.cpp for the key general.file_type. */
typedef enum heft_mix_number {
    HEFT_MIX_F32 = 0,
    HEFT_MIX_F16 = 1,
    HEFT_MIX_Q4_0 = 2,
    HEFT_MIX_Q4_1 = 3,
    HEFT_MIX_Q8_0 = 7,
    HEFT_MIX_Q5_0 = 8,
    HEFT_MIX_Q5_1 = 9,
    HEFT_MIX_Q2_K = 10,
    HEFT_MIX_Q3_K_S = 11,
    HEFT_MIX_Q3_K_M = 12,
    HEFT_MIX_Q3_K_L = 13,
    HEFT_MIX_Q4_K_S = 14,
    HEFT_MIX_Q4_K_M = 15,
    HEFT_MIX_Q5_K_S = 16,
    HEFT_MIX_Q5_K_M = 17,
    HEFT_MIX_Q6_K = 18,
    HEFT_MIX_Q2_K_S = 21,
    HEFT_MIX_IQ4_NL = 25,
    HEFT_MIX_IQ4_XS = 30,
    HEFT_MIX_BF16 = 32,
    HEFT_MIX_TQ1_0 = 36,
    HEFT_MIX_TQ2_0 = 37,
    HEFT_MIX_MXFP4_MOE = 38,
    HEFT_MIX_Q1_0 = 40,
    HEFT_MIX_Q2_0 = 41
} heft_mix_number;

/* Kinds of tensors, by name. */
enum {
    HEFT_MIX_OTHER = 1,
    HEFT_MIX_OUTPUT = 2,
    HEFT_MIX_EMBEDDING = 4,
    HEFT_MIX_V = 8, /* also QKV and KV_B */
    HEFT_MIX_K = 16,
    HEFT_MIX_Q = 32,
    HEFT_MIX_O = 64,
    HEFT_MIX_UP = 128,
    HEFT_MIX_GATE = 256,
    HEFT_MIX_DOWN = 512,
    HEFT_MIX_ANY = 1023
};

/* Facts about a tensor and its model.  "First eighth" and "more" count the layers of DOWN
 * tensors, and the V tensors themselves. */
enum {
    HEFT_MIX_FALCON = 1, /* the architecture */
    HEFT_MIX_NOT_FALCON = 2,
    HEFT_MIX_GQA_4 = 4, /* at least four heads share a key */
    HEFT_MIX_EIGHT_EXPERTS = 8,
    HEFT_MIX_70B = 16,  /* a model that llama.cpp counts as one of 70B: is_70b() */
    HEFT_MIX_MORE = 32, /* first eighth, last eighth, and every third layer between */
    HEFT_MIX_FIRST_EIGHTH = 64,
    HEFT_MIX_FIRST_SIXTEENTH = 128,
    HEFT_MIX_FIRST_TWO = 256,
    HEFT_MIX_FIRST_FOUR = 512,
    HEFT_MIX_IMATRIX = 1024,
    HEFT_MIX_NO_IMATRIX = 2048,
    HEFT_MIX_STACKED = 4096,  /* a third dimension: the matrices of experts */
    HEFT_MIX_UNDIVIDED = 8192 /* the columns do not fill blocks of the default type */
};

typedef struct heft_mix_rule {
    uint64_t mixes;   /* a bit for each number */
    uint16_t kinds;   /* a bit for each kind */
    uint16_t needs;   /* facts that must all be true */
    heft_dtype dtype; /* HEFT_UNTYPED: the default type of the mix */
} heft_mix_rule;

/* Return the first rule for the tensor, or NULL: the default type counts.  facts: what is true;
 * *unknown: what is not known, reduced to the facts that decide. */
const heft_mix_rule *heft_mix_rule_for(uint32_t number, uint32_t kind, uint32_t facts,
                                       uint32_t *unknown);
/* Return the kind of the tensor with that name. */
uint32_t heft_mix_kind(heft_str name);
/* Return why the tensor with that name keeps its type in all mixes, or NULL. */
const char *heft_mix_keeps(heft_str name);
/* Return true for a tensor of one dimension, not counting those of size 1 in front. */
bool heft_mix_is_vector(const heft_tensor *t);
/* Return the type in place of t for rows of that many columns, which do not fill blocks of t;
 * HEFT_UNTYPED: only f16 remains. */
heft_dtype heft_mix_fallback(heft_dtype t, uint64_t columns);

#endif
