/* damage_cases.c - enumerates damaged versions of a file: bytes, lengths, integers and pairs of
 * integers. */
#include "damage_cases.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { VALUES = 255, FILLS = 4, PAIR_CASES = DAMAGE_EDGES * DAMAGE_EDGES };
enum { LITTLE, BIG, DIGITS, FORMS };

static const char *const form_names[FORMS] = { "little-endian", "big-endian", "decimal" };

/* ---- integers ------------------------------------------------------------------------------- */

static uint64_t get_integer(const uint8_t *p, damage_field f)
{
    uint64_t v = 0;
    for (unsigned i = 0; i < f.width; i++)
        if (f.form == DIGITS)
            v = v * 10 + (p[f.at + i] - '0');
        else
            v = v << 8 | p[f.at + (f.form == BIG ? i : f.width - 1u - i)];
    return v;
}

static void put_integer(uint8_t *p, damage_field f, uint64_t v)
{
    unsigned base = f.form == DIGITS ? 10 : 256;
    for (unsigned i = 0; i < f.width; i++, v /= base) {
        uint8_t low = (uint8_t)(v % base);
        p[f.at + (f.form == LITTLE ? i : f.width - 1u - i)] = f.form == DIGITS
                                                                  ? (uint8_t)(low + '0')
                                                                  : low;
    }
}

/* Return the largest value of a field. */
static uint64_t max_of(damage_field f)
{
    uint64_t max = 0;
    for (unsigned i = 0; i < f.width; i++)
        max = f.form == DIGITS ? max * 10 + 9 : max << 8 | 255;
    return max;
}

/* Return an edge value. Decimal fields are as wide as before, so that nothing else moves. */
static uint64_t edge_value(const damage_file *d, damage_field f, unsigned edge)
{
    uint64_t max = max_of(f), sign = max / 2 + 1, v = get_integer(d->bytes, f), n = d->len;
    uint64_t edges[DAMAGE_EDGES] = { 0,       1,     2,        max,
                                     max - 1, sign,  sign - 1, sign + 1,
                                     n,       n - 1, n + 1,    n - f.at,
                                     v + 1,   v - 1, v * 2,    max >> 4 * f.width };
    return f.form == DIGITS && edges[edge] > max ? max : edges[edge];
}

static bool is_digit(const damage_file *d, size_t at)
{
    return at < d->len && d->bytes[at] >= '0' && d->bytes[at] <= '9';
}

/* Return the length of the decimal number that begins at `at`, or 0. */
static unsigned digits_at(const damage_file *d, size_t at)
{
    enum { MAX_DIGITS = 19 };
    unsigned n = 0;
    if (at && is_digit(d, at - 1))
        return 0;
    while (n < MAX_DIGITS && is_digit(d, at + n))
        n++;
    return n;
}

static void add_field(damage_file *d, size_t at, unsigned width, unsigned form)
{
    if (width && at + width <= d->len)
        d->fields[d->field_count++] = (damage_field){ (uint32_t)at, (uint8_t)width, (uint8_t)form };
}

void damage_list_fields(damage_file *d, const bool *is_payload)
{
    enum { FIELDS_PER_BYTE = 8 };
    d->fields = malloc((d->len + 1) * FIELDS_PER_BYTE * sizeof *d->fields);
    d->pairs_of = malloc((d->len + 1) * FIELDS_PER_BYTE * sizeof *d->pairs_of);
    d->field_count = d->pairs_count = 0;
    if (!d->fields || !d->pairs_of)
        abort();
    for (size_t at = 0; at < d->len; at++) {
        if (is_payload[at])
            continue;
        add_field(d, at, 1, LITTLE);
        for (unsigned width = 2; width <= 8; width *= 2) {
            add_field(d, at, width, LITTLE);
            add_field(d, at, width, BIG);
        }
        add_field(d, at, digits_at(d, at), DIGITS);
    }
}

/* ---- pairs ---------------------------------------------------------------------------------- */

static bool overlap(damage_field a, damage_field b)
{
    return a.at < b.at + b.width && b.at < a.at + a.width;
}

/* True if the reader gave the same answers for the edge values of two fields. */
static bool is_same_field(const damage_file *d, const uint32_t *outcomes, uint32_t a, uint32_t b)
{
    return overlap(d->fields[a], d->fields[b]) &&
           !memcmp(outcomes + (size_t)a * DAMAGE_EDGES, outcomes + (size_t)b * DAMAGE_EDGES,
                   DAMAGE_EDGES * sizeof *outcomes);
}

void damage_choose_pairs(damage_file *d, const uint32_t *outcomes, uint32_t intact)
{
    d->pairs_count = 0;
    for (uint32_t i = 0; i < d->field_count; i++) {
        bool is_read = false, is_known = false;
        for (unsigned e = 0; e < DAMAGE_EDGES && !is_read; e++) {
            uint32_t o = outcomes[(size_t)i * DAMAGE_EDGES + e];
            is_read = o && o != intact;
        }
        for (size_t k = d->pairs_count; k-- && !is_known && is_read;) {
            if (d->fields[d->pairs_of[k]].at + 20 < d->fields[i].at)
                break;
            is_known = is_same_field(d, outcomes, i, d->pairs_of[k]);
        }
        if (is_read && !is_known)
            d->pairs_of[d->pairs_count++] = i;
    }
}

/* Set *a and *b to the fields of pair number `pair`. */
static void pair_at(damage_field *a, damage_field *b, const damage_file *d, uint64_t pair)
{
    size_t i = 0;
    while (pair >= d->pairs_count - 1 - i)
        pair -= d->pairs_count - 1 - i++;
    *a = d->fields[d->pairs_of[i]];
    *b = d->fields[d->pairs_of[i + 1 + pair]];
}

/* ---- cases ---------------------------------------------------------------------------------- */

uint64_t damage_cases(const damage_file *d, damage_kind kind)
{
    uint64_t n = d->pairs_count;
    switch (kind) {
    case DAMAGE_BYTE:
        return d->len * VALUES;
    case DAMAGE_CUT:
        return d->len;
    case DAMAGE_APPEND:
        return DAMAGE_APPENDED * FILLS;
    case DAMAGE_FIELD:
        return d->field_count * DAMAGE_EDGES;
    case DAMAGE_PAIR:
        return n ? n * (n - 1) / 2 * PAIR_CASES : 0;
    default:
        return 0;
    }
}

/* Append n bytes: zeros, 0xFF, the beginning of the file, or the end of the file. */
static void append(uint8_t *out, const damage_file *d, unsigned fill, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        size_t from = fill == 2 ? i : d->len - n % d->len + i;
        out[d->len + i] = fill == 0 ? 0 : fill == 1 ? 0xFF : d->bytes[from % d->len];
    }
}

size_t damage_apply(uint8_t *out, const damage_file *d, damage_kind kind, uint64_t i)
{
    damage_field a, b;
    size_t n = (size_t)(i % DAMAGE_APPENDED) + 1;
    memcpy(out, d->bytes, d->len);
    switch (kind) {
    case DAMAGE_BYTE:
        out[i / VALUES] ^= (uint8_t)(i % VALUES + 1);
        return d->len;
    case DAMAGE_CUT:
        return (size_t)i;
    case DAMAGE_APPEND:
        append(out, d, (unsigned)(i / DAMAGE_APPENDED), n);
        return d->len + n;
    case DAMAGE_FIELD:
        a = d->fields[i / DAMAGE_EDGES];
        put_integer(out, a, edge_value(d, a, i % DAMAGE_EDGES));
        return d->len;
    default:
        pair_at(&a, &b, d, i / PAIR_CASES);
        put_integer(out, a, edge_value(d, a, i % DAMAGE_EDGES));
        put_integer(out, b, edge_value(d, b, i / DAMAGE_EDGES % DAMAGE_EDGES));
        return d->len;
    }
}

static void describe_field(char *text, size_t size, const damage_file *d, damage_field f,
                           unsigned edge)
{
    size_t n = strlen(text);
    snprintf(text + n, size - n, "; %s integer of %d bytes at %" PRIu32 " is %" PRIu64,
             form_names[f.form], f.width, f.at, edge_value(d, f, edge) & max_of(f));
}

void damage_describe(char *text, size_t size, const damage_file *d, damage_kind kind, uint64_t i)
{
    static const char *const names[] = { "byte", "cut", "append", "field", "pair" };
    damage_field a, b;
    int n = snprintf(text, size, "%s %" PRIu64, names[kind], i);
    if (kind == DAMAGE_BYTE)
        snprintf(text + n, size - (size_t)n, "; byte %" PRIu64 " is 0x%02x", i / VALUES,
                 (unsigned)(d->bytes[i / VALUES] ^ (i % VALUES + 1)));
    if (kind == DAMAGE_FIELD)
        describe_field(text, size, d, d->fields[i / DAMAGE_EDGES], i % DAMAGE_EDGES);
    if (kind == DAMAGE_PAIR) {
        pair_at(&a, &b, d, i / PAIR_CASES);
        describe_field(text, size, d, a, i % DAMAGE_EDGES);
        describe_field(text, size, d, b, i / DAMAGE_EDGES % DAMAGE_EDGES);
    }
}
