/* fuzz_cast.c - fuzzes casts between element types: many blocks at once give the same bytes as one
 * block after another, and reading as f64 gives the same numbers as a cast to f64. */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"

static heft_dtype choose_type(fuzz_script *s)
{
    return (heft_dtype)(1 + fuzz_next(s) % (HEFT_DTYPES - 1));
}

static size_t bytes_of(heft_dtype t, size_t elements)
{
    const heft_dtype_info *d = heft_dtype_get(t);
    return (elements + d->block_elems - 1) / d->block_elems * d->block_bytes;
}

/* The number of elements that make up whole blocks of both types. */
static size_t step_of(heft_dtype a, heft_dtype b)
{
    size_t x = heft_dtype_get(a)->block_elems, y = heft_dtype_get(b)->block_elems;
    return x > y ? x : y; /* both are powers of two */
}

static void compare_numbers(const uint8_t *src, heft_dtype from, size_t count)
{
    double *numbers = malloc(2 * count * sizeof *numbers + 1);
    double *cast = malloc(count * sizeof *cast + 1);
    fuzz_require(numbers && cast);
    if (heft_dtype_get(from)->kind != HEFT_DTYPE_COMPLEX &&
        heft_dtype_to_f64(numbers, from, src, 0, count) &&
        heft_dtype_cast(cast, HEFT_F64, src, from, count))
        for (size_t i = 0; i < count; i++)
            fuzz_require(numbers[i] == cast[i] || (numbers[i] != numbers[i] && cast[i] != cast[i]));
    free(numbers);
    free(cast);
}

static void run(const uint8_t *data, size_t size, fuzz_script *s)
{
    heft_dtype from = choose_type(s), to = choose_type(s);
    const heft_dtype_info *d = heft_dtype_get(from);
    size_t step = step_of(from, to), count = size / d->block_bytes * d->block_elems;
    count -= fuzz_next(s) % 4 && count > step ? count % step : 0;
    uint8_t *all = malloc(bytes_of(to, count) + 1), *single = malloc(bytes_of(to, count) + 1);
    fuzz_require(all && single);
    bool is_done = heft_dtype_cast(all, to, data, from, count);
    fuzz_require(is_done == heft_dtype_can_cast(to, from));
    for (size_t i = 0; is_done && i < count; i += step) {
        size_t n = count - i < step ? count - i : step;
        fuzz_require(
            heft_dtype_cast(single + bytes_of(to, i), to, data + bytes_of(from, i), from, n));
    }
    fuzz_require(!is_done || !memcmp(all, single, bytes_of(to, count)));
    compare_numbers(data, from, count);
    free(all);
    free(single);
}

const fuzz_target fuzz_this = { .run = run, .script_bytes = 3 };
