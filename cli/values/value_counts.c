#include "values/value_counts.h"

#include <math.h>
#include <stdlib.h>

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
