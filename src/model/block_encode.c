/* block_encode.c - the block types that rows can be encoded to. */
#include "model/block_encode.h"

#include "model/dtype.h"
#include "model/encode_fits.h"

static const char code_book[] = "has codes that are searched in a book, with importance of the "
                                "columns, which only llama-quantize does";

static const struct {
    heft_row_encoder *encode;
    bool uses_importance;
    const char *refusal; /* set for a block type that has no encoder */
} rows[HEFT_DTYPES] = {
    [HEFT_Q4_0] = { .encode = heft_encode_q4_0, .uses_importance = true },
    [HEFT_Q4_1] = { .encode = heft_encode_q4_1, .uses_importance = true },
    [HEFT_Q5_0] = { .encode = heft_encode_q5_0, .uses_importance = true },
    [HEFT_Q5_1] = { .encode = heft_encode_q5_1, .uses_importance = true },
    [HEFT_Q8_0] = { .encode = heft_encode_q8_0 },
    [HEFT_Q2_K] = { .encode = heft_encode_q2_k, .uses_importance = true },
    [HEFT_Q3_K] = { .encode = heft_encode_q3_k, .uses_importance = true },
    [HEFT_Q4_K] = { .encode = heft_encode_q4_k, .uses_importance = true },
    [HEFT_Q5_K] = { .encode = heft_encode_q5_k, .uses_importance = true },
    [HEFT_Q6_K] = { .encode = heft_encode_q6_k, .uses_importance = true },
    [HEFT_Q8_K] = { .encode = heft_encode_q8_k },
    [HEFT_IQ4_NL] = { .encode = heft_encode_iq4_nl, .uses_importance = true },
    [HEFT_IQ4_XS] = { .encode = heft_encode_iq4_xs, .uses_importance = true },
    [HEFT_MXFP4] = { .encode = heft_encode_mxfp4 },
    [HEFT_NVFP4] = { .encode = heft_encode_nvfp4 },
    [HEFT_Q1_0] = { .encode = heft_encode_q1_0 },
    [HEFT_Q2_0] = { .encode = heft_encode_q2_0 },
    [HEFT_TQ1_0] = { .encode = heft_encode_tq1_0 },
    [HEFT_TQ2_0] = { .encode = heft_encode_tq2_0 },
    [HEFT_Q8_1] = { .refusal = "is a type of intermediate results, which files do not have" },
    [HEFT_IQ1_S] = { .refusal = code_book },
    [HEFT_IQ1_M] = { .refusal = code_book },
    [HEFT_IQ2_XXS] = { .refusal = code_book },
    [HEFT_IQ2_XS] = { .refusal = code_book },
    [HEFT_IQ2_S] = { .refusal = code_book },
    [HEFT_IQ3_XXS] = { .refusal = code_book },
    [HEFT_IQ3_S] = { .refusal = code_book },
};

bool heft_block_can_encode(heft_dtype t)
{
    return t < HEFT_DTYPES && rows[t].encode;
}

const char *heft_block_encode_refusal(heft_dtype t)
{
    if (heft_block_can_encode(t))
        return NULL;
    return t < HEFT_DTYPES && rows[t].refusal ? rows[t].refusal : "is not a type of blocks";
}

bool heft_block_uses_importance(heft_dtype t)
{
    return t < HEFT_DTYPES && rows[t].uses_importance;
}

void heft_row_encode_with(const heft_fits *fits, uint8_t *out, heft_dtype to, const float *row,
                          size_t n, const float *importance)
{
    importance = rows[to].uses_importance ? importance : NULL;
    size_t done = importance ? 0 : fits->blocks(out, to, row, n);
    out += done / heft_dtype_rows[to].info.block_elems * heft_dtype_rows[to].info.block_bytes;
    rows[to].encode(out, row + done, n - done, importance, fits);
}

void heft_row_encode(uint8_t *out, heft_dtype to, const float *row, size_t n,
                     const float *importance)
{
    heft_row_encode_with(heft_fits_now(), out, to, row, n, importance);
}
