/* block_encode.c - the block types that rows can be encoded to. */
#include "model/block_encode.h"

#include "model/dtype.h"
#include "model/encode_rows.h"

static const struct {
    heft_row_encoder *encode;
    bool uses_importance;
    const char *refusal; /* of a type that has no encoder; NULL: the general one */
} rows[HEFT_DTYPES] = {
    [HEFT_Q4_0] = { heft_encode_q4_0, true, NULL },  [HEFT_Q4_1] = { heft_encode_q4_1, true, NULL },
    [HEFT_Q5_0] = { heft_encode_q5_0, true, NULL },  [HEFT_Q5_1] = { heft_encode_q5_1, true, NULL },
    [HEFT_Q8_0] = { heft_encode_q8_0, false, NULL },
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

void heft_row_encode(uint8_t *out, heft_dtype to, const float *row, size_t n,
                     const float *importance)
{
    rows[to].encode(out, row, n, importance);
}
