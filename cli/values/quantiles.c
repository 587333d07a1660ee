#include "values/quantiles.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "text/number_text.h"

enum { FEW_CODES = 256, MANY_CODES = 65536 };

static size_t codes_of(heft_dtype type)
{
    const heft_dtype_info *d = heft_dtype_get(type);
    number_kind kind = number_kind_of(type);
    if (!d || d->block_elems != 1 || kind == NUMBER_NONE || kind == NUMBER_COMPLEX)
        return 0;
    return d->block_bytes == 1 ? FEW_CODES : d->block_bytes == 2 ? MANY_CODES : 0;
}

bool value_counts_suit(heft_dtype type, uint64_t elements)
{
    size_t codes = codes_of(type);
    return codes && elements >= 4 * codes && elements <= UINT32_MAX;
}

bool value_counts_open(value_counts *c, heft_dtype type)
{
    uint8_t code[2 * FEW_CODES] = { 0 };
    size_t bytes = codes_of(type) == FEW_CODES ? 1 : 2;
    c->codes = codes_of(type);
    c->counts = calloc(2 * c->codes, sizeof *c->counts);
    c->values = malloc(c->codes * sizeof *c->values);
    bool ok = c->counts && c->values;
    for (size_t from = 0; ok && from < c->codes; from += FEW_CODES) {
        for (size_t i = 0; i < FEW_CODES; i++) {
            code[bytes * i + bytes - 1] = (uint8_t)(from / FEW_CODES); /* little-endian */
            code[bytes * i] = (uint8_t)i;
        }
        ok = heft_dtype_to_f64(c->values + from, type, code, 0, FEW_CODES);
    }
    return ok;
}

static size_t code_at(const value_counts *c, const uint8_t *bytes, size_t i)
{
    return c->codes == FEW_CODES ? bytes[i] : bytes[2 * i] | (size_t)bytes[2 * i + 1] << 8;
}

/* Neighbours are often equal, and an increment must wait for the previous increment of the same
 * counter: so they have two counters. */
void value_counts_add(value_counts *c, const uint8_t *bytes, size_t elements)
{
    uint32_t *even = c->counts, *odd = c->counts + c->codes;
    size_t i = 0;
    if (c->codes == FEW_CODES) {
        for (; i + 2 <= elements; i += 2) {
            even[bytes[i]]++;
            odd[bytes[i + 1]]++;
        }
    } else {
        for (; i + 2 <= elements; i += 2) {
            const uint8_t *p = bytes + 2 * i;
            even[p[0] | (size_t)p[1] << 8]++;
            odd[p[2] | (size_t)p[3] << 8]++;
        }
    }
    for (; i < elements; i++)
        even[code_at(c, bytes, i)]++;
}

uint64_t value_counts_at(const value_counts *c, size_t code)
{
    return (uint64_t)c->counts[code] + c->counts[c->codes + code];
}

size_t value_counts_find_not_finite(const value_counts *c, const uint8_t *bytes, size_t elements)
{
    size_t i = 0;
    while (i < elements && isfinite(c->values[code_at(c, bytes, i)]))
        i++;
    return i;
}

void value_counts_close(value_counts *c)
{
    free(c->counts);
    free(c->values);
    *c = (value_counts){ .counts = NULL };
}

enum { SORTED = 4096, HALF = 1 << 16 };

const unsigned quantile_percents[QUANTILES] = { 1, 5, 25, 50, 75, 95, 99 };

/* ---- keys ---- */

static quantile_key key_of_type(heft_dtype type)
{
    const heft_dtype_info *info = heft_dtype_get(type);
    bool is_narrow = info->block_elems > 1 || info->block_bytes <= 4;
    switch (number_kind_of(type)) {
    case NUMBER_INT:
        return is_narrow ? KEY_INT : KEY_DOUBLE;
    case NUMBER_BOOL:
    case NUMBER_UINT:
        return is_narrow ? KEY_UINT : KEY_DOUBLE;
    case NUMBER_COMPLEX:
        return info->block_bytes <= 8 ? KEY_FLOAT : KEY_DOUBLE;
    default:
        return is_narrow ? KEY_FLOAT : KEY_DOUBLE;
    }
}

static uint32_t key_of_float(float v)
{
    uint32_t bits;
    v = v == 0 ? 0 : v; /* -0 equals 0 */
    memcpy(&bits, &v, sizeof bits);
    return bits >> 31 ? ~bits : bits | UINT32_C(1) << 31;
}

static uint32_t key_of_double(double v)
{
    uint64_t bits;
    v = v == 0 ? 0 : v;
    memcpy(&bits, &v, sizeof bits);
    return (uint32_t)((bits >> 63 ? ~bits : bits | UINT64_C(1) << 63) >> 32);
}

static uint32_t key_of(quantile_key kind, double v)
{
    switch (kind) {
    case KEY_FLOAT:
        return key_of_float((float)v);
    case KEY_INT:
        return (uint32_t)((int64_t)v - INT32_MIN);
    case KEY_UINT:
        return (uint32_t)v;
    default:
        return key_of_double(v);
    }
}

static double float_of_key(uint32_t key)
{
    uint32_t bits = key >> 31 ? key & INT32_MAX : ~key;
    float v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

/* Return the value nearest to zero that has the key. */
static double double_of_key(uint32_t key)
{
    uint64_t bits = key >> 31 ? (uint64_t)(key & INT32_MAX) << 32 : (uint64_t)~key << 32;
    double v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

static double value_of_key(quantile_key kind, uint32_t key)
{
    switch (kind) {
    case KEY_FLOAT:
        return float_of_key(key);
    case KEY_INT:
        return (double)((int64_t)key + INT32_MIN);
    case KEY_UINT:
        return key;
    default:
        return double_of_key(key);
    }
}

/* ---- the passes ---- */

bool quantiles_open(quantiles *q, heft_dtype type, uint64_t most)
{
    *q = (quantiles){ .key = key_of_type(type) };
    if (most <= SORTED)
        q->sorted = malloc(SORTED * sizeof *q->sorted);
    else
        q->coarse = calloc(HALF, sizeof *q->coarse);
    return q->sorted || q->coarse;
}

void quantiles_count(quantiles *q, const double *values, size_t n)
{
    if (q->sorted) { /* the file may have grown */
        n = n < SORTED - q->count ? n : SORTED - (size_t)q->count;
        memcpy(q->sorted + q->count, values, n * sizeof *values);
    }
    for (size_t i = 0; i < n && q->coarse; i++)
        q->coarse[key_of(q->key, values[i]) >> 16]++;
    q->count += n;
}

void quantiles_count_floats(quantiles *q, const float *values, size_t n)
{
    for (size_t i = 0; i < n && q->coarse; i++)
        q->coarse[key_of_float(values[i]) >> 16]++;
    for (size_t i = 0; i < n && q->sorted && q->count + i < SORTED; i++)
        q->sorted[q->count + i] = (double)values[i];
    q->count += q->sorted && n > SORTED - q->count ? SORTED - q->count : n;
}

void quantiles_count_equal(quantiles *q, double value, uint64_t times)
{
    if (q->coarse) {
        q->coarse[key_of(q->key, value) >> 16] += times;
        q->count += times;
        return;
    }
    for (; times && q->count < SORTED; times--) /* the file may have grown */
        q->sorted[q->count++] = value;
}

/* Return the rank of the lower neighbour of a quantile, and set the upper neighbour's weight. */
static uint64_t rank_of(double *weight, uint64_t count, unsigned percent)
{
    double place = (double)(count - 1) * percent / 100;
    uint64_t rank = (uint64_t)place;
    rank = rank < count - 1 ? rank : count - 1;
    *weight = place - (double)rank;
    return rank;
}

static void find_rank(quantiles *q, quantile_rank *r, uint64_t rank)
{
    uint32_t upper = 0;
    while (upper < HALF - 1 && rank >= q->coarse[upper])
        rank -= q->coarse[upper++];
    *r = (quantile_rank){ rank, upper };
    if (!q->slots[upper])
        q->slots[upper] = (uint8_t)++q->slot_count;
}

bool quantiles_find_ranks(quantiles *q)
{
    double weight;
    if (q->sorted || !q->count)
        return true;
    q->slots = calloc(HALF, sizeof *q->slots);
    for (size_t i = 0; q->slots && i < QUANTILES; i++) {
        uint64_t rank = rank_of(&weight, q->count, quantile_percents[i]);
        find_rank(q, &q->ranks[2 * i], rank);
        find_rank(q, &q->ranks[2 * i + 1], rank + (rank + 1 < q->count));
    }
    q->fine = calloc((size_t)q->slot_count * HALF + 1, sizeof *q->fine);
    return q->slots && q->fine;
}

static void refine(quantiles *q, uint32_t key, uint64_t times)
{
    uint32_t slot = q->slots[key >> 16];
    if (slot)
        q->fine[(size_t)(slot - 1) * HALF + (key & (HALF - 1))] += times;
}

void quantiles_refine_equal(quantiles *q, double value, uint64_t times)
{
    if (q->fine)
        refine(q, key_of(q->key, value), times);
}

void quantiles_refine_floats(quantiles *q, const float *values, size_t n)
{
    for (size_t i = 0; i < n && q->fine; i++)
        refine(q, key_of_float(values[i]), 1);
}

void quantiles_refine(quantiles *q, const double *values, size_t n)
{
    for (size_t i = 0; i < n && q->fine; i++)
        refine(q, key_of(q->key, values[i]), 1);
}

/* ---- results ---- */

static int compare_values(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double value_at(const quantiles *q, const quantile_rank *r)
{
    const uint64_t *counts = q->fine + (size_t)(q->slots[r->upper] - 1) * HALF;
    uint64_t rank = r->rank;
    uint32_t lower = 0;
    while (lower < HALF - 1 && rank >= counts[lower])
        rank -= counts[lower++];
    return value_of_key(q->key, r->upper << 16 | lower);
}

void quantiles_end(double out[QUANTILES], quantiles *q, double min, double max)
{
    if (q->sorted)
        qsort(q->sorted, (size_t)q->count, sizeof *q->sorted, compare_values);
    for (size_t i = 0; i < QUANTILES; i++) {
        double weight, low, high;
        uint64_t rank = rank_of(&weight, q->count, quantile_percents[i]);
        low = q->sorted ? q->sorted[rank] : value_at(q, &q->ranks[2 * i]);
        high = q->sorted ? q->sorted[rank + (rank + 1 < q->count)]
                         : value_at(q, &q->ranks[2 * i + 1]);
        /* high - low may overflow */
        double v = low * (1 - weight) + high * weight;
        out[i] = low == high ? low : v;
        out[i] = out[i] < min ? min : out[i] > max ? max : out[i];
    }
}

void quantiles_close(quantiles *q)
{
    free(q->sorted);
    free(q->coarse);
    free(q->fine);
    free(q->slots);
    *q = (quantiles){ .count = 0 };
}
