/* comfyui.c - weights as ComfyUI stores them: a tensor comfy_quant in the module, or the metadata
 * of the file, states the format.
 *
 *   float8_e4m3fn, float8_e5m2   number * scale, one scale for the tensor or for each row
 *   int8_tensorwise              the same; perhaps rotated, see below
 *   int8_blockwise               number * scale of a block of group_size x group_size
 *   mxfp8                        number * 2^(e - 127), a tile of scales (scales.c)
 *   nvfp4                        number * (scale * scale of the tensor), a tile of scales; the
 *                                first of two numbers in a byte is the high half
 *
 * A rotated row was multiplied, `convrot_groupsize` columns at a time, by the Kronecker power of
 *
 *     1  1  1 -1
 *     1  1 -1  1
 *     1 -1  1  1     divided by the root of the group's size.  The matrix is its own inverse.
 *    -1  1  1  1 */
#include "base/checked_math.h"
#include "base/error.h"
#include "base/text.h"
#include "grammar/json.h"
#include "scheme/encoding.h"

/* ---- the description ---- */

enum { MOST_TEXT = 4096, DEPTH = 8, MX_GROUP = 32, NV_GROUP = 16, BLOCK = 128, ROTATION = 256 };

typedef struct form {
    const char *name;
    heft_dtype weight;
    heft_dtype scale; /* type in tiles; HEFT_UNTYPED: a grid */
    uint32_t group;   /* elements of a row with the same scale; 0: one scale, or one for each row */
    bool is_square;   /* blocks of group x group, of which the description states the size */
} form;

static const form forms[] = {
    { "float8_e4m3fn", HEFT_F8_E4M3FN, HEFT_UNTYPED, 0, false },
    { "float8_e5m2", HEFT_F8_E5M2, HEFT_UNTYPED, 0, false },
    { "int8_tensorwise", HEFT_I8, HEFT_UNTYPED, 0, false },
    { "int8_blockwise", HEFT_I8, HEFT_UNTYPED, BLOCK, true },
    { "mxfp8", HEFT_F8_E4M3FN, HEFT_F8_E8M0, MX_GROUP, false },
    { "nvfp4", HEFT_U8, HEFT_F8_E4M3FN, NV_GROUP, false },
};

typedef struct description {
    char text[MOST_TEXT];
    heft_str form; /* in text */
    uint64_t group, rotation;
    bool is_rotated, is_good;
} description;

static void read_value(description *s, heft_json *j, heft_str key)
{
    heft_json_kind k = heft_json_next(j);
    bool is_group = heft_str_is(key, "group_size"), is_size = heft_str_is(key, "convrot_groupsize");
    if (heft_str_is(key, "format") && k == HEFT_JSON_STRING)
        s->form = j->text;
    else if (is_group || is_size)
        s->is_good = k == HEFT_JSON_NUMBER &&
                     heft_json_u64(is_group ? &s->group : &s->rotation, j->text) && s->is_good;
    else if (heft_str_is(key, "convrot"))
        s->is_rotated = k == HEFT_JSON_TRUE;
    else if (heft_json_skip(j, k))
        s->is_good = false;
}

static heft_status read_description(description *s, const heft_decoding *d, heft_error *err)
{
    const heft_decoding_part *p = heft_decoding_part_of(d, HEFT_ROLE_DESCRIPTION);
    s->rotation = ROTATION;
    s->group = 0;
    s->is_rotated = false;
    s->form = (heft_str){ NULL, 0 };
    if (!p || !p->bytes || p->bytes > sizeof s->text)
        return heft_decoding_refuse(d, HEFT_ROLE_DESCRIPTION, "is not a short text", err);
    HEFT_TRY(heft_part_read(s->text, d->f, p->part, 0, (size_t)p->bytes, err));
    heft_json j = heft_json_open((heft_str){ s->text, (size_t)p->bytes }, 0, DEPTH, NULL, NULL);
    s->is_good = heft_json_next(&j) == HEFT_JSON_OBJECT;
    while (s->is_good && heft_json_next(&j) == HEFT_JSON_KEY)
        read_value(s, &j, j.text);
    return s->is_good && !j.st && s->form.len
               ? HEFT_OK
               : heft_decoding_refuse(d, HEFT_ROLE_DESCRIPTION, "does not state a format as JSON",
                                      err);
}

/* The metadata of the file state the same. */
static heft_status take_settings(description *s, const heft_decoding *d, heft_error *err)
{
    s->form = d->settings->form;
    s->group = d->settings->group;
    s->rotation = d->settings->rotation;
    s->is_rotated = s->rotation;
    return s->form.len ? HEFT_OK
                       : heft_error_plain(err, HEFT_E_FORMAT,
                                          "quantised tensor %q: the metadata "
                                          "_quantization_metadata state no format for it",
                                          d->name);
}

static const form *find_form(heft_str name)
{
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        if (heft_str_is(name, forms[i].name))
            return &forms[i];
    return NULL;
}

/* ---- preparing ---- */

/* Name what describes the weight: a tensor, or the metadata. */
static heft_status refuse_description(const heft_decoding *d, const char *why, heft_error *err)
{
    if (heft_decoding_part_of(d, HEFT_ROLE_DESCRIPTION))
        return heft_decoding_refuse(d, HEFT_ROLE_DESCRIPTION, why, err);
    return heft_error_plain(err, HEFT_E_FORMAT,
                            "quantised tensor %q (comfyui): the metadata _quantization_metadata %s",
                            d->name, why);
}

static heft_status set_rotation(heft_decoding *d, const description *s, heft_error *err)
{
    bool is_power = s->rotation >= 4 && s->rotation <= HEFT_RUN;
    for (uint64_t n = s->rotation; is_power && n > 1; n /= 4)
        is_power = n % 4 == 0;
    bool is_whole = is_power && heft_div(d->columns, s->rotation) * s->rotation == d->columns;
    if (!s->is_rotated)
        return HEFT_OK;
    if (!is_power || d->rank != 2 || !is_whole)
        return refuse_description(d, "states a rotation that does not divide the columns", err);
    d->group = s->rotation;
    return HEFT_OK;
}

static heft_status set_scales(heft_decoding *d, const form *f, uint64_t group, heft_error *err)
{
    heft_decoding_part *s = &d->part[HEFT_ROLE_SCALE];
    bool is_byte = s->dtype == f->scale || s->dtype == HEFT_U8;
    if (!heft_decoding_part_of(d, HEFT_ROLE_SCALE))
        return heft_decoding_refuse(d, HEFT_ROLE_SCALE, "is missing", err);
    if (f->scale ? !is_byte : !heft_is_scale(s->dtype))
        return heft_decoding_refuse(d, HEFT_ROLE_SCALE,
                                    "has another type than the description states", err);
    if (f->scale) {
        s->dtype = f->scale;
        return heft_decoding_set_tiles(d, f->group, err);
    }
    d->block[0] = d->block[1] = f->is_square ? group : 0;
    HEFT_TRY(heft_decoding_set_grid(d, HEFT_ROLE_SCALE, err));
    return f->is_square || d->grid.across == 1
               ? HEFT_OK
               : heft_decoding_refuse(d, HEFT_ROLE_SCALE,
                                      "is neither a single number nor one for each row", err);
}

static heft_status prepare(heft_decoding *d, heft_error *err)
{
    description s;
    heft_decoding_part *w = &d->part[HEFT_ROLE_WEIGHT];
    bool is_described = heft_decoding_part_of(d, HEFT_ROLE_DESCRIPTION);
    HEFT_TRY(is_described ? read_description(&s, d, err) : take_settings(&s, d, err));
    const form *f = find_form(s.form);
    if (!f)
        return heft_error_plain(err, HEFT_E_UNSUPPORTED,
                                "tensor %q is quantised in ComfyUI's format %q, which is "
                                "recognised and not decoded: start from the model before it was "
                                "quantised",
                                d->name, s.form);
    if (w->dtype != f->weight && !(w->dtype == HEFT_U8 && heft_is_float8(f->weight)))
        return refuse_description(d, "states another type than the weight has", err);
    w->dtype = f->weight;
    d->is_high_first = f->weight == HEFT_U8;
    HEFT_TRY(heft_decoding_take_shape(d, d->is_high_first ? 2 : 1, err));
    HEFT_TRY(set_scales(d, f, s.group ? s.group : BLOCK, err));
    if (!f->scale)
        heft_decoding_set_type(d, HEFT_ROLE_SCALE);
    HEFT_TRY(set_rotation(d, &s, err));
    return d->is_high_first ? heft_decoding_scalar(d, HEFT_ROLE_GLOBAL_SCALE, &d->factor, err)
                            : HEFT_OK;
}

/* ---- numbers ---- */

static heft_status decode_stored(heft_decoder *r, uint64_t row, uint64_t column, size_t count,
                                 float *out)
{
    float scale[HEFT_RUN];
    uint64_t first = row * r->d->columns + column;
    if (r->d->is_high_first)
        return heft_decode_e2m1(r, row, column, count, out);
    if (heft_decoder_floats(r, HEFT_ROLE_WEIGHT, first, count, out) &&
        heft_decoder_scales(r, HEFT_ROLE_SCALE, row, column, count, scale))
        heft_decoder_multiply(r->d, column, count, scale, out);
    return r->st;
}

/* Multiply a group of columns by the matrix: a factor of the Kronecker power at a time. */
static void rotate(float *x, size_t size)
{
    size_t root = 1;
    for (size_t step = 1; step < size; step *= 4, root *= 2)
        for (size_t i = 0; i < size; i++) {
            if (i / step % 4)
                continue;
            float *v = x + i, a = v[0], b = v[step], c = v[2 * step], d = v[3 * step];
            v[0] = a + b + c - d;
            v[step] = a + b - c + d;
            v[2 * step] = a - b + c + d;
            v[3 * step] = b + c + d - a;
        }
    for (size_t i = 0; i < size; i++)
        x[i] /= (float)root;
}

/* A group is decoded as a whole, whatever part of the group is wanted. */
static heft_status decode(heft_decoder *r, uint64_t row, uint64_t column, size_t count, float *out)
{
    float whole[HEFT_RUN];
    size_t size = (size_t)r->d->group;
    if (!size)
        return decode_stored(r, row, column, count, out);
    while (count && !r->st) {
        size_t skip = (size_t)(column - heft_div(column, size) * size);
        size_t n = size - skip < count ? size - skip : count;
        r->st = decode_stored(r, row, column - skip, size, whole);
        rotate(whole, size);
        memcpy(out, whole + skip, n * sizeof *out);
        column += n;
        out += n;
        count -= n;
    }
    return r->st;
}

const heft_scheme_decoder heft_decoder_of_comfyui = { prepare, decode, NULL };

/* ---- integers ---- */

static const char *check(const heft_decoding *d, uint32_t *bits, uint64_t *run)
{
    *bits = 8;
    *run = heft_integer_run(d);
    if (d->part[HEFT_ROLE_WEIGHT].dtype != HEFT_I8)
        return "its numbers are not integers";
    if (d->group)
        return "its columns are rotated";
    return heft_decoding_part_of(d, HEFT_ROLE_PRE_SCALE) ? "its columns have scales, too" : NULL;
}

static bool integers(heft_decoder *r, uint64_t row, uint64_t column, size_t count, float *out)
{
    return heft_decoder_floats(r, HEFT_ROLE_WEIGHT, row * r->d->columns + column, count, out);
}

static bool scale_of(heft_decoder *r, uint64_t row, uint64_t column, float *out)
{
    return heft_decoder_scales(r, HEFT_ROLE_SCALE, row, column, 1, out);
}

const heft_integer_form heft_integers_of_comfyui = { check, integers, scale_of };
