/* bitsandbytes.c - indexes of 4 bits into a map of 16 numbers, times the largest number of a block;
 * or integers of 8 bits, times SCB / 127 of the row. */
#include "base/checked_math.h"
#include "base/text.h"
#include "grammar/json.h"
#include "scheme/decoding.h"

/* ---- the description of a packed tensor, as JSON ---- */

enum { MAX_STATE = 4096, STATE_DEPTH = 4, NESTED_BLOCK = 256 };

/* Return the number of a text without a sign and with at most 19 digits; its error is far below
 * the distance of two floats. */
static bool parse_number(double *out, heft_str s)
{
    enum { DIGITS = 19, MOST_POWER = 60 };
    uint64_t digits = 0;
    int power = 0, exponent = 0, count = 0;
    bool is_fraction = false, negative = s.len && *s.ptr == '-', is_small = false;
    size_t i = negative;
    for (; i < s.len && s.ptr[i] != 'e' && s.ptr[i] != 'E'; i++) {
        bool is_digit = s.ptr[i] >= '0' && s.ptr[i] <= '9';
        if (!is_digit && (s.ptr[i] != '.' || is_fraction))
            return false;
        is_fraction = is_fraction || !is_digit;
        if (is_digit && count < DIGITS) {
            digits = digits * 10 + (uint64_t)(s.ptr[i] - '0');
            count += digits > 0;
            power -= is_fraction;
        } else if (is_digit) {
            power += !is_fraction;
        }
    }
    if (i < s.len && ++i < s.len && (s.ptr[i] == '-' || s.ptr[i] == '+'))
        is_small = s.ptr[i++] == '-';
    for (; i < s.len && exponent <= MOST_POWER; i++)
        exponent = exponent * 10 + (s.ptr[i] - '0');
    power += is_small ? -exponent : exponent;
    double value = (double)digits;
    for (; power > 0 && power <= MOST_POWER; power--)
        value *= 10;
    for (; power < 0 && power >= -MOST_POWER; power++)
        value /= 10;
    *out = negative ? -value : value;
    return !power;
}

typedef struct state {
    uint64_t block, nested_block, dims[HEFT_LOGICAL_RANK];
    uint32_t rank;
    double offset;
    heft_str type;
    bool is_good;
} state;

static void read_shape(state *s, heft_json *j)
{
    heft_json_kind k = heft_json_next(j);
    s->is_good = s->is_good && k == HEFT_JSON_ARRAY;
    if (k != HEFT_JSON_ARRAY)
        return;
    while ((k = heft_json_next(j)) == HEFT_JSON_NUMBER && s->rank < HEFT_LOGICAL_RANK)
        s->is_good = heft_json_u64(&s->dims[s->rank++], j->text) && s->is_good;
    s->is_good = s->is_good && k == HEFT_JSON_ARRAY_END;
}

static void read_value(state *s, heft_json *j, heft_str key)
{
    bool is_block = heft_str_is(key, "blocksize"), is_nested = heft_str_is(key, "nested_blocksize");
    if (heft_str_is(key, "shape")) {
        read_shape(s, j);
        return;
    }
    heft_json_kind k = heft_json_next(j);
    if (is_block || is_nested)
        s->is_good = k == HEFT_JSON_NUMBER &&
                     heft_json_u64(is_block ? &s->block : &s->nested_block, j->text) && s->is_good;
    else if (heft_str_is(key, "nested_offset"))
        s->is_good = k == HEFT_JSON_NUMBER && parse_number(&s->offset, j->text) && s->is_good;
    else if (heft_str_is(key, "dtype"))
        s->type = j->text;
    else if (heft_json_skip(j, k))
        s->is_good = false;
}

static heft_status read_state(heft_decoding *d, heft_error *err)
{
    const heft_decoding_part *p = heft_decoding_part_of(d, HEFT_ROLE_QUANT_STATE);
    char text[MAX_STATE];
    state s = { .nested_block = NESTED_BLOCK, .is_good = true };
    if (!p || !p->bytes || p->bytes > sizeof text)
        return heft_decoding_refuse(d, HEFT_ROLE_QUANT_STATE, "is not a short text", err);
    HEFT_TRY(heft_part_read(text, d->f, p->part, 0, (size_t)p->bytes, err));
    heft_json j = heft_json_open((heft_str){ text, (size_t)p->bytes }, 0, STATE_DEPTH, NULL, NULL);
    s.is_good = heft_json_next(&j) == HEFT_JSON_OBJECT;
    while (s.is_good && heft_json_next(&j) == HEFT_JSON_KEY)
        read_value(&s, &j, j.text);
    if (!s.is_good || j.st || !s.block || s.nested_block != NESTED_BLOCK || !s.rank)
        return heft_decoding_refuse(d, HEFT_ROLE_QUANT_STATE,
                                    "does not state shape and block size as JSON", err);
    d->group = s.block;
    d->offset = (float)s.offset;
    d->dtype = heft_str_is(s.type, "float16")   ? HEFT_F16
               : heft_str_is(s.type, "float32") ? HEFT_F32
                                                : HEFT_BF16;
    d->rank = s.rank;
    memcpy(d->dims, s.dims, sizeof d->dims);
    return HEFT_OK;
}

/* ---- 4 bits ---- */

static heft_status prepare_4_bits(heft_decoding *d, heft_error *err)
{
    const heft_decoding_part *w = &d->part[HEFT_ROLE_WEIGHT];
    const heft_decoding_part *a = heft_decoding_part_of(d, HEFT_ROLE_ABSMAX);
    const heft_decoding_part *map = heft_decoding_part_of(d, HEFT_ROLE_QUANT_MAP);
    uint64_t elements = 1, bytes;
    HEFT_TRY(read_state(d, err));
    bool fits = true;
    for (uint32_t i = 0; i < d->rank; i++)
        fits = fits && heft_mul(&elements, elements, d->dims[i]);
    if (!fits || !heft_dtype_bytes(&bytes, HEFT_F32, elements) ||
        w->bytes != elements / 2 + elements % 2)
        return heft_decoding_refuse(d, HEFT_ROLE_QUANT_STATE, "contradicts the weight", err);
    if (!map || map->elements != 16 || map->dtype != HEFT_F32)
        return heft_decoding_refuse(d, HEFT_ROLE_QUANT_MAP, "does not have 16 numbers", err);
    uint64_t blocks = heft_div_up(elements, d->group);
    if (!a || a->elements != blocks)
        return heft_decoding_refuse(d, HEFT_ROLE_ABSMAX, "does not have a number for each block",
                                    err);
    const heft_decoding_part *nested = heft_decoding_part_of(d, HEFT_ROLE_NESTED_ABSMAX);
    const heft_decoding_part *nested_map = heft_decoding_part_of(d, HEFT_ROLE_NESTED_MAP);
    if ((a->dtype == HEFT_U8) != (nested && nested_map))
        return heft_decoding_refuse(d, HEFT_ROLE_ABSMAX, "and its nested scales do not agree", err);
    if (nested && nested->elements != (blocks + NESTED_BLOCK - 1) / NESTED_BLOCK)
        return heft_decoding_refuse(d, HEFT_ROLE_NESTED_ABSMAX,
                                    "does not have a number for each block of scales", err);
    if (nested_map && (nested_map->elements != NESTED_BLOCK || nested_map->dtype != HEFT_F32))
        return heft_decoding_refuse(d, HEFT_ROLE_NESTED_MAP, "does not have 256 numbers", err);
    d->rows = 1;
    d->columns = elements;
    return HEFT_OK;
}

/* Set scale[i] for `n` blocks from block `first` on. */
static bool read_absmax(heft_decoder *r, uint64_t first, size_t n, float *scale)
{
    const heft_decoding *d = r->d;
    if (d->part[HEFT_ROLE_ABSMAX].dtype != HEFT_U8)
        return heft_decoder_floats(r, HEFT_ROLE_ABSMAX, first, n, scale);
    float map[NESTED_BLOCK], outer;
    const uint8_t *p = heft_decoder_floats(r, HEFT_ROLE_NESTED_MAP, 0, NESTED_BLOCK, map)
                           ? heft_decoder_bytes(r, HEFT_ROLE_ABSMAX, first, n)
                           : NULL;
    for (size_t i = 0; p && i < n; i++) {
        if (!heft_decoder_floats(r, HEFT_ROLE_NESTED_ABSMAX, (first + i) / NESTED_BLOCK, 1, &outer))
            return false;
        float product = map[p[i]] * outer;
        scale[i] = product + d->offset;
    }
    return p;
}

/* The high half of a byte comes first; blocks go on from row to row. */
static heft_status decode_4_bits(heft_decoder *r, uint64_t at, size_t count, float *out)
{
    const heft_decoding *d = r->d;
    float map[16], scale[HEFT_RUN];
    uint64_t first = heft_div(at, d->group);
    size_t blocks = (size_t)(heft_div(at + count - 1, d->group) - first + 1);
    const uint8_t *p = heft_decoder_floats(r, HEFT_ROLE_QUANT_MAP, 0, 16, map) &&
                               read_absmax(r, first, blocks, scale)
                           ? heft_decoder_bytes(r, HEFT_ROLE_WEIGHT, at / 2,
                                                (size_t)(at % 2 + count + 1) / 2)
                           : NULL;
    uint64_t end = (first + 1) * d->group;
    for (size_t i = 0, block = 0; p && i < count; i++) {
        uint64_t k = at % 2 + i;
        if (at + i == end) {
            block++;
            end += d->group;
        }
        out[i] = map[k % 2 ? p[k / 2] & 15 : p[k / 2] >> 4] * scale[block];
    }
    return r->st;
}

/* ---- 8 bits ---- */

static heft_status prepare(heft_decoding *d, heft_error *err)
{
    const heft_decoding_part *format = heft_decoding_part_of(d, HEFT_ROLE_FORMAT);
    float form = 0;
    if (d->bits == 4)
        return prepare_4_bits(d, err);
    HEFT_TRY(heft_decoding_take_shape(d, 1, err));
    HEFT_TRY(heft_decoding_set_grid(d, HEFT_ROLE_SCALE, err));
    if (d->grid.down != d->rows)
        HEFT_TRY(
            heft_decoding_refuse(d, HEFT_ROLE_SCALE, "does not have a number for each row", err));
    if (format)
        HEFT_TRY(heft_decoding_scalar(d, HEFT_ROLE_FORMAT, &form, err));
    if (form != 0)
        HEFT_TRY(heft_decoding_refuse(
            d, HEFT_ROLE_FORMAT, "names an order of numbers other than rows, which is not decoded",
            err));
    return HEFT_OK;
}

static heft_status decode(heft_decoder *r, uint64_t row, uint64_t column, size_t count, float *out)
{
    const float unit = 1.0F / 127;
    float scale;
    if (r->d->bits == 4)
        return decode_4_bits(r, column, count, out);
    if (heft_decoder_floats(r, HEFT_ROLE_WEIGHT, row * r->d->columns + column, count, out) &&
        heft_decoder_floats(r, HEFT_ROLE_SCALE, row, 1, &scale))
        for (size_t i = 0; i < count; i++) {
            float product = out[i] * scale;
            out[i] = product * unit;
        }
    return r->st;
}

const heft_scheme_decoder heft_decoder_of_bitsandbytes = { prepare, decode, NULL };
