/* e2m1_encode.c - reads runs as codes of E2M1 and bytes of scales, and lays them out.
 *
 * Codes come from numbers that are encoded, from bytes with two codes each, the low half first, or
 * from blocks of GGUF: the scales of a block of 32 (mxfp4) or 64 elements (nvfp4), then for each 32
 * or 16 elements the first half of them in the low halves of bytes, the second in the high ones.
 *
 * Codes and scales that exist are copied, so that no number changes. */
#include "scheme/e2m1_encode.h"

#include "base/checked_math.h"
#include "base/error.h"
#include "base/text.h"

enum { WANTED = 64 * HEFT_RUN }; /* elements to read ahead */

typedef struct codes {
    uint8_t code[HEFT_RUN];
    uint8_t scale[HEFT_RUN / 16];
    float by[HEFT_RUN / 16]; /* the numbers that the scales stand for, if they are known */
} codes;

static uint64_t group_of(const heft_encoded *e)
{
    return e->choice->block[1];
}

/* Every group has one scale, and the scales are in the order of the groups. */
static bool has_scale_of_each_group(const heft_encoded *e)
{
    const heft_decoding *d = e->decoding;
    const heft_scale_grid *g = &d->grid;
    return g->height == 1 && g->width == group_of(e) && !g->is_tiled &&
           (d->stack == 1 || g->matrix == g->down * g->across);
}

bool heft_has_e2m1(const heft_encoded *e, const heft_scheme *scheme, heft_dtype block,
                   heft_dtype scale)
{
    const heft_decoding *d = e->decoding;
    if (!d)
        return heft_ix_row(&e->f->x, e->tensor)->dtype == block;
    if (d->scheme != scheme || d->has_factors || heft_decoding_part_of(d, HEFT_ROLE_PRE_SCALE))
        return false;
    return d->part[HEFT_ROLE_WEIGHT].dtype == block ||
           (d->part[HEFT_ROLE_SCALE].dtype == scale && has_scale_of_each_group(e));
}

/* ---- how far the codes are from the numbers ---- */

/* Set the numbers that scales stand for. */
static void load_scales(const heft_encoded *e, codes *c, size_t groups)
{
    bool is_power = group_of(e) == 32, divides = !e->choice->form;
    (void)heft_floats_from(c->by, is_power ? HEFT_F8_E8M0 : HEFT_F8_E4M3FN, c->scale, groups);
    for (size_t g = 0; g < groups && !is_power; g++)
        c->by[g] = divides ? c->by[g] / e->factor : c->by[g] * e->factor;
}

/* Compare the numbers of the run in r->x with what the codes decode to. */
static void measure_codes(heft_encoder *r, const codes *c, const float *from, size_t count)
{
    static const float magnitudes[] = { 0, 0.5F, 1, 1.5F, 2, 3, 4, 6 };
    size_t group = (size_t)group_of(r->e);
    float *decoded = r->measured.decoded;
    for (size_t i = 0; i < count; i++) {
        float x = magnitudes[c->code[i] & 7] * c->by[i / group];
        decoded[i] = c->code[i] & 8 ? -x : x;
    }
    heft_pairs_add(r->sums, from, decoded, count);
}

/* Compare codes that are copied with the numbers of the source, which are the same but for the
 * rounding of a factor. */
static bool measure_copy(heft_encoder *r, uint64_t row, uint64_t column, size_t count, codes *c)
{
    if (!heft_encoder_run(r, row, column, count))
        return false;
    load_scales(r->e, c, count / (size_t)group_of(r->e));
    measure_codes(r, c, r->x, count);
    return true;
}

/* ---- sources ---- */

static bool encode_codes(heft_encoder *r, uint64_t row, uint64_t column, size_t count, codes *c)
{
    const heft_encoded *e = r->e;
    size_t group = (size_t)group_of(e);
    uint8_t pairs[HEFT_RUN / 2];
    if (!heft_encoder_run(r, row, column, count))
        return false;
    if (r->measures)
        memcpy(r->measured.from, r->x, count * sizeof *r->x);
    for (size_t i = 0; i < count; i += group) {
        float most;
        if (!heft_encoder_magnitude(r, i, group, &most))
            return false;
        heft_encoded_scale s = e->encoder->scale(e, most);
        c->scale[i / group] = s.stored[0];
        c->by[i / group] = s.by;
        for (size_t k = i; k < i + group; k++)
            r->x[k] /= s.by;
    }
    r->has_run = false;
    heft_drop_nan(r->x, count);
    heft_floats_to(pairs, HEFT_F4_E2M1, r->x, count); /* saturates */
    for (size_t i = 0; i < count; i++)
        c->code[i] = (uint8_t)(pairs[i / 2] >> 4 * (i % 2) & 15);
    if (r->measures)
        measure_codes(r, c, r->measured.from, count);
    return true;
}

static bool copy_pairs(heft_encoder *r, uint64_t first, size_t count, codes *c)
{
    size_t group = (size_t)group_of(r->e), groups = count / group;
    const uint8_t *p = heft_decoder_bytes(&r->input, HEFT_ROLE_WEIGHT, first / 2, count / 2);
    for (size_t i = 0; p && i < count; i++)
        c->code[i] = (uint8_t)(p[i / 2] >> 4 * (i % 2) & 15);
    p = p ? heft_decoder_bytes(&r->input, HEFT_ROLE_SCALE, heft_div(first, group), groups) : NULL;
    if (p)
        memcpy(c->scale, p, groups);
    r->st = r->input.st;
    return p;
}

static size_t block_groups(const heft_encoded *e)
{
    return group_of(e) == 32 ? 1 : 4;
}

static bool copy_blocks(heft_encoder *r, uint64_t first, size_t count, codes *c)
{
    const heft_encoded *e = r->e;
    size_t group = (size_t)group_of(e), scales = block_groups(e), block = scales * group;
    size_t bytes = scales + block / 2, blocks = count / block;
    uint64_t at = heft_div(first, block) * bytes;
    const uint8_t *p = e->decoding
                           ? heft_decoder_bytes(&r->input, HEFT_ROLE_WEIGHT, at, blocks * bytes)
                           : heft_encoder_source(r, at, blocks * bytes);
    if (e->decoding)
        r->st = r->input.st;
    for (size_t g = 0; p && g < count / group; g++) {
        const uint8_t *b = p + g / scales * bytes;
        const uint8_t *half = b + scales + g % scales * group / 2;
        c->scale[g] = b[g % scales];
        for (size_t i = 0; i < group / 2; i++) {
            c->code[g * group + i] = half[i] & 15;
            c->code[g * group + group / 2 + i] = half[i] >> 4;
        }
    }
    return p;
}

static bool read_codes(heft_encoder *r, uint64_t row, uint64_t column, size_t count, codes *c)
{
    const heft_encoded *e = r->e;
    uint64_t first = row * e->columns + column;
    if (!e->is_copy)
        return encode_codes(r, row, column, count, c);
    r->input.wanted = WANTED;
    r->input.matrix = heft_div(row, e->rows);
    bool is_block = !e->decoding || heft_dtype_kind_of(e->decoding->part[HEFT_ROLE_WEIGHT].dtype) ==
                                        HEFT_DTYPE_BLOCK;
    if (!(is_block ? copy_blocks(r, first, count, c) : copy_pairs(r, first, count, c)))
        return false;
    return !r->measures || measure_copy(r, row, column, count, c);
}

/* ---- layouts ---- */

static bool write_pairs(heft_encoder *r, uint64_t row, uint64_t column, size_t count, uint8_t *out)
{
    codes c;
    bool ok = read_codes(r, row, column, count, &c);
    for (size_t i = 0; ok && i < count; i += 2)
        out[i / 2] = (uint8_t)(c.code[i] | c.code[i + 1] << 4);
    return ok;
}

static bool write_scales(heft_encoder *r, uint64_t row, uint64_t column, size_t count, uint8_t *out)
{
    codes c;
    bool ok = read_codes(r, row, column, count, &c);
    if (ok)
        memcpy(out, c.scale, count / (size_t)group_of(r->e));
    return ok;
}

/* NaN and negative numbers are scales in other layouts, and mean something else in GGUF. */
static bool check_scale(heft_encoder *r, uint8_t scale)
{
    bool is_power = group_of(r->e) == 32, is_good = is_power ? scale != 255 : scale < 127;
    if (is_good)
        return true;
    r->st = heft_error_plain(r->err, HEFT_E_LOSSY,
                             "tensor %q has a scale that is %s: GGUF cannot store it", r->e->name,
                             is_power || scale == 127 || scale == 255 ? "a NaN" : "negative");
    return false;
}

static bool write_blocks(heft_encoder *r, uint64_t row, uint64_t column, size_t count, uint8_t *out)
{
    const heft_encoded *e = r->e;
    size_t group = (size_t)group_of(e), scales = block_groups(e), bytes = scales * (1 + group / 2);
    codes c;
    if (!read_codes(r, row, column, count, &c))
        return false;
    for (size_t g = 0; g < count / group; g++) {
        uint8_t *b = out + g / scales * bytes, *half = b + scales + g % scales * group / 2;
        const uint8_t *code = c.code + g * group;
        if (!check_scale(r, c.scale[g]))
            return false;
        b[g % scales] = c.scale[g];
        for (size_t i = 0; i < group / 2; i++)
            half[i] = (uint8_t)(code[i] | code[group / 2 + i] << 4);
    }
    return true;
}

heft_status heft_read_e2m1(heft_encoder *r, uint32_t k, uint64_t from, uint8_t *buf, size_t len)
{
    const heft_encoded *e = r->e;
    const heft_encoded_part *p = &e->parts[k];
    uint32_t groups = HEFT_RUN / (uint32_t)group_of(e);
    if (p->role == HEFT_ROLE_SCALE)
        return heft_encoder_read_runs(r, groups, write_scales, from, buf, len);
    if (p->role == HEFT_ROLE_WEIGHT && heft_encoded_has_form(e, "gguf"))
        return heft_encoder_read_runs(r, groups + HEFT_RUN / 2, write_blocks, from, buf, len);
    if (p->role == HEFT_ROLE_WEIGHT)
        return heft_encoder_read_runs(r, HEFT_RUN / 2, write_pairs, from, buf, len);
    memcpy(buf, p->fixed + from, len);
    return HEFT_OK;
}
