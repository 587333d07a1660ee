/* qfloat_encode.c - integers of 8 or 4 bits with scales, as Burn stores them: the integers, then
 * the scales in f32, as the bytes of one tensor with the layout "burn.qfloat".
 *
 *   number = integer * scale, in f32
 *   integers of 8 bits have a byte each; of 4 bits, eight share a word, the first in its lowest
 *       bits, and rows fill whole words; both are in two's complement
 *   one scale, or one for each block, in the order of the blocks
 *
 * A block has whole trailing dimensions and a part of the dimension before them, so that it is a
 * run of elements: releases of Burn differ in how they find the blocks of other shapes.  A source
 * with longer runs repeats its scales.
 *
 * Nothing is computed: a source with other numbers is left alone.  Burn has integers of the full
 * range (Q8F, from -128) and of a symmetric one (Q8S, from -127), which it decodes alike.  Sources
 * do not say whether they have the least integer, so that the full range is stated. */
#include "base/checked_math.h"
#include "base/out.h"
#include "model/float.h"
#include "scheme/encoding.h"

enum { MOST_SIZE = 255, BLOCK_RANK = 5, SCALE = 4 };

static const heft_integer_form *form_of(const heft_encoded *e)
{
    static const struct {
        const heft_scheme *scheme;
        const heft_integer_form *form;
    } forms[] = {
        { &heft_scheme_torch, &heft_integers_of_torch },
        { &heft_scheme_compressed_tensors, &heft_integers_of_compressed_tensors },
        { &heft_scheme_comfyui, &heft_integers_of_comfyui },
        { &heft_scheme_gptq, &heft_integers_of_gptq },
        { &heft_scheme_onnx, &heft_integers_of_onnx },
        { NULL, &heft_integers_of_blocks },
    };
    for (size_t i = 0; e->decoding && i < sizeof forms / sizeof *forms; i++)
        if (e->decoding->scheme == forms[i].scheme)
            return forms[i].form;
    return NULL;
}

/* ---- blocks ---- */

static bool divides(uint64_t n, uint64_t by)
{
    return heft_div(n, by) * by == n;
}

/* Return the size of a block in a dimension that is not a whole part of it. */
static uint64_t largest_size(uint64_t dim, uint64_t run)
{
    enum { LARGEST_POWER = 128, LEAST_POWER = 16 };
    for (uint64_t n = LARGEST_POWER; n >= LEAST_POWER; n /= 2)
        if (divides(dim, n) && divides(run, n))
            return n;
    uint64_t n = MOST_SIZE;
    while (!divides(dim, n) || !divides(run, n))
        n--;
    return n;
}

/* Return the elements of the largest block in which all elements have the same scale, if `run` of
 * them have, one after the other. */
static uint64_t block_of(const heft_encoded *e, uint64_t run)
{
    uint64_t block = 1;
    for (uint32_t i = e->rank; i && e->rank - i < BLOCK_RANK; i--) {
        uint64_t dim = e->dims[i - 1];
        bool is_whole = dim <= MOST_SIZE && divides(run, dim);
        uint64_t size = is_whole ? dim : largest_size(dim, run);
        block *= size;
        run = heft_div(run, size);
        if (!is_whole)
            break;
    }
    return block;
}

/* Write the sizes of a block of so many elements. */
static void put_block(heft_out *o, const heft_encoded *e, uint64_t block)
{
    uint64_t sizes[BLOCK_RANK];
    uint32_t count = 0;
    for (uint32_t i = e->rank; i && block > 1; i--) {
        uint64_t dim = e->dims[i - 1];
        uint64_t size = dim <= MOST_SIZE && divides(block, dim) ? dim : block;
        sizes[count++] = size;
        block = heft_div(block, size);
    }
    heft_out_str(o, heft_lit("{\"Block\":{\"storage\":["));
    for (uint32_t i = 0; i < BLOCK_RANK; i++) {
        char digits[20];
        heft_out_str(o, heft_lit(i ? "," : ""));
        heft_out_bytes(o, digits, heft_u64_text(digits, i < count ? sizes[count - 1 - i] : 1));
    }
    heft_out_str(o, heft_lit("],\"len\":"));
    heft_out_u8(o, (uint8_t)('0' + count));
    heft_out_str(o, heft_lit("}}"));
}

/* ---- the tensor ---- */

static uint64_t elements_of(const heft_encoded *e)
{
    return e->stack * e->rows * e->columns;
}

static uint64_t value_bytes(const heft_encoded *e)
{
    return elements_of(e) / 8 * e->bits + elements_of(e) % 8 * e->bits / 8;
}

static bool copies(const heft_encoded *e)
{
    (void)e;
    return true;
}

static const char *prepare(heft_encoded *e)
{
    const heft_integer_form *form = form_of(e);
    uint64_t run = 0, elements;
    const char *why = form ? form->check(e->decoding, &e->bits, &run)
                           : "its numbers are not integers with scales, in the order of the tensor";
    if (!why && e->bits == 4 && e->columns % 8)
        why = "its rows do not fill words of 32 bits";
    if (!why && (!heft_product(&elements, e->dims, e->rank) || elements >> 60))
        why = "it is too large";
    if (why)
        return why;
    e->grid.width = run ? block_of(e, run) : 0;
    if (e->grid.width == 1)
        return "its scales do not belong to blocks of 2 to 255 numbers";
    heft_encoded_part *p = &e->parts[e->part_count++];
    *p = (heft_encoded_part){ .suffix = "", .dtype = HEFT_U8, .rank = e->rank };
    memcpy(p->dims, e->dims, sizeof p->dims);
    p->bytes = value_bytes(e) + SCALE * (run ? heft_div(elements, e->grid.width) : 1);
    return NULL;
}

/* State the type as Burn 0.21 does. */
static void put_type(const heft_encoded *e, heft_out *o)
{
    bool is_byte = e->bits == 8;
    heft_out_str(o, heft_lit(is_byte ? "{\"QFloat\":{\"value\":\"Q8F\",\"param\":\"F32\","
                                       "\"store\":\"Native\",\"level\":"
                                     : "{\"QFloat\":{\"value\":\"Q4F\",\"param\":\"F32\","
                                       "\"store\":{\"PackedU32\":0},\"level\":"));
    if (e->grid.width)
        put_block(o, e, e->grid.width);
    else
        heft_out_str(o, heft_lit("\"Tensor\""));
    heft_out_str(o, heft_lit(",\"mode\":\"Symmetric\"}}"));
}

/* ---- bytes ---- */

typedef struct place { /* an element of the tensor, in the source */
    uint64_t row, column;
} place;

static place find(heft_encoder *r, uint64_t element)
{
    enum { WANTED = 64 * HEFT_RUN }; /* elements to read ahead */
    const heft_decoding *d = r->e->decoding;
    uint64_t row = heft_div(element, d->columns);
    r->input.matrix = heft_div(row, d->rows);
    r->input.wanted = WANTED;
    return (place){ row, element - row * d->columns };
}

/* Set r->x to the integers of a run; it may have several rows of the source, or a part of one. */
static bool read_integers(heft_encoder *r, uint64_t first, size_t count)
{
    const heft_integer_form *form = form_of(r->e);
    r->has_run = false;
    for (size_t done = 0, n; done < count; done += n) {
        place at = find(r, first + done);
        uint64_t left = r->e->decoding->columns - at.column;
        n = left < count - done ? (size_t)left : count - done;
        if (!form->numbers(&r->input, at.row, at.column, n, r->x + done)) {
            r->st = r->input.st;
            return false;
        }
    }
    return true;
}

static bool write_run(heft_encoder *r, uint64_t row, uint64_t column, size_t count, uint8_t *out)
{
    bool ok = read_integers(r, row * r->e->columns + column, count);
    for (size_t i = 0; ok && r->e->bits == 8 && i < count; i++)
        out[i] = (uint8_t)(int32_t)r->x[i];
    for (size_t i = 0; ok && r->e->bits == 4 && i < count; i += 2)
        out[i / 2] = (uint8_t)(((uint32_t)(int32_t)r->x[i] & 15) |
                               ((uint32_t)(int32_t)r->x[i + 1] & 15) << 4);
    return ok;
}

static heft_status read_scales(heft_encoder *r, uint64_t from, uint8_t *buf, size_t len)
{
    const heft_encoded *e = r->e;
    while (len) {
        uint8_t raw[SCALE];
        float scale;
        place at = find(r, from / SCALE * e->grid.width);
        if (!form_of(e)->scale(&r->input, at.row, at.column, &scale))
            return r->st = r->input.st;
        heft_put_f32(raw, scale);
        size_t skip = (size_t)(from % SCALE), n = SCALE - skip < len ? SCALE - skip : len;
        memcpy(buf, raw + skip, n);
        from += n;
        buf += n;
        len -= n;
    }
    return HEFT_OK;
}

static heft_status read_bytes(heft_encoder *r, uint32_t k, uint64_t from, uint8_t *buf, size_t len)
{
    uint64_t values = value_bytes(r->e);
    (void)k;
    if (from < values) {
        size_t n = values - from < len ? (size_t)(values - from) : len;
        HEFT_TRY(heft_encoder_read_runs(r, HEFT_RUN / 8 * r->e->bits, write_run, from, buf, n));
        from += n;
        buf += n;
        len -= n;
    }
    return read_scales(r, from - values, buf, len);
}

const heft_scheme_encoder heft_encoder_of_qfloat = { .scheme = "qfloat",
                                                     .layout = "burn.qfloat",
                                                     .copies = copies,
                                                     .prepare = prepare,
                                                     .put_type = put_type,
                                                     .read = read_bytes };
