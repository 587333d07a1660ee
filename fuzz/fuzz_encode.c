/* fuzz_encode.c - fuzzes rows of block types: a row gives the same bytes as its blocks one after
 * another, nothing else is written, and the blocks can be decoded. */
#include <stdlib.h>
#include <string.h>

#include <heft/block_rows.h>

#include "fuzz.h"

enum { MARK = 0xA5 };

static uint8_t *encoded(heft_dtype to, const float *row, size_t columns, const float *importance)
{
    const heft_dtype_info *d = heft_dtype_get(to);
    size_t bytes = columns / d->block_elems * d->block_bytes;
    uint8_t *out = malloc(bytes + 1);
    heft_error err;
    fuzz_require(out);
    out[bytes] = MARK;
    fuzz_require(!heft_block_encode(out, bytes, to, row, columns, importance, &err));
    fuzz_require(out[bytes] == MARK);
    return out;
}

static void decode(heft_dtype from, const uint8_t *blocks, size_t columns)
{
    const heft_dtype_info *d = heft_dtype_get(from);
    float *out = malloc(columns * sizeof *out + 1);
    heft_error err;
    fuzz_require(out);
    fuzz_require(!heft_block_decode(out, from, blocks, columns / d->block_elems * d->block_bytes,
                                    columns, &err));
    free(out);
}

/* Encode whole rows, and without importance also single blocks: these fill one lane of a vector. */
static void compare(heft_dtype to, const float *row, size_t columns, const float *importance)
{
    const heft_dtype_info *d = heft_dtype_get(to);
    uint8_t *all = encoded(to, row, columns, importance);
    decode(to, all, columns);
    for (size_t i = 0; !importance && i < columns / d->block_elems; i++) {
        uint8_t *one = encoded(to, row + i * d->block_elems, d->block_elems, NULL);
        fuzz_require(!memcmp(one, all + i * d->block_bytes, d->block_bytes));
        free(one);
    }
    free(all);
}

static void run(const uint8_t *data, size_t size, fuzz_script *s)
{
    heft_dtype to = (heft_dtype)(1 + fuzz_next(s) % (HEFT_DTYPES - 1));
    const heft_dtype_info *d = heft_dtype_get(to);
    bool is_weighted = fuzz_next(s) % 2;
    size_t columns = d ? size / sizeof(float) / d->block_elems * d->block_elems : 0;
    heft_error err;
    if (!heft_block_can_encode(to)) {
        fuzz_require(heft_block_encode(NULL, 0, to, NULL, 0, NULL, &err) == HEFT_E_UNSUPPORTED);
        return;
    }

    float *row = malloc(columns * sizeof *row + 1), *importance = malloc(columns * sizeof *row + 1);
    fuzz_require(row && importance);
    memcpy(row, data, columns * sizeof *row);
    for (size_t i = 0; i < columns; i++) {
        float v = row[columns - 1 - i];
        importance[i] = v - v != 0 ? 1 : v < 0 ? -v : v;
    }
    compare(to, row, columns, is_weighted ? importance : NULL);
    free(row);
    free(importance);
}

const fuzz_target fuzz_this = { .run = run, .script_bytes = 2 };
