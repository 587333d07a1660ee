/* blend_strips.c - the formulas, in f32: each operation rounds once, in the order of docs/blend.md.
 *
 * A strip is computed in pieces that fit in a cache, from one piece of each model. */
#include "base/error.h"
#include "blend/blending.h"
#include "model/float.h"

enum { PIECE = 8192, ALIGN = 64 };
static const char purpose[] = "to blend a tensor";

typedef struct pieces {           /* the scratch object of a thread */
    heft_combine_reader *readers; /* one for the base, then one for each input */
    float *numbers;               /* PIECE of the base, then of each input, then sums of weights */
    const heft_allocator *al;
    uint32_t count;
} pieces;

static size_t bytes_of_readers(uint32_t count)
{
    return ((size_t)count + 1) * sizeof(heft_combine_reader);
}

static size_t bytes_of_numbers(uint32_t count)
{
    return ((size_t)count + 2) * PIECE * sizeof(float);
}

static heft_status begin(pieces *p, const heft_blend *b, heft_error *err)
{
    if (p->numbers)
        return HEFT_OK;
    p->al = b->base->host->allocator;
    p->count = b->most_inputs;
    if (!p->readers) {
        p->readers = heft_alloc(p->al, bytes_of_readers(p->count), ALIGN);
        if (p->readers)
            memset(p->readers, 0, bytes_of_readers(p->count));
    }
    p->numbers = p->readers ? heft_alloc(p->al, bytes_of_numbers(p->count), ALIGN) : NULL;
    return p->numbers ? HEFT_OK : heft_error_no_memory(err, purpose);
}

static void free_pieces(void *ctx, void *scratch)
{
    pieces *p = scratch;
    (void)ctx;
    if (!p->readers)
        return;
    for (uint32_t i = 0; i <= p->count; i++)
        heft_combine_reader_free(&p->readers[i]);
    heft_free(p->al, p->readers, bytes_of_readers(p->count), ALIGN);
    if (p->numbers)
        heft_free(p->al, p->numbers, bytes_of_numbers(p->count), ALIGN);
}

/* ---- differences ---- */

static void trim(float *x, const heft_blend_input *in, uint64_t from, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint32_t size = heft_f32_bits(x[i]) & INT32_MAX;
        if (size < in->least || (size == in->least && from + i > in->last))
            x[i] = 0;
    }
}

static void drop(float *x, const heft_blend_input *in, bool rescales, uint64_t from, size_t n)
{
    float density = (float)in->density;
    for (size_t i = 0; i < n; i++) {
        if (!heft_blend_keeps(in->key, from + i, in->density))
            x[i] = 0;
        else if (rescales)
            x[i] = x[i] / density;
    }
}

/* Turn the numbers of an input into weighted differences to the base. */
static void weigh_differences(const heft_blend *b, const heft_blend_tensor *t,
                              const heft_blend_input *in, const float *base, float *x,
                              uint64_t from, size_t n)
{
    for (size_t i = 0; i < n; i++)
        x[i] = x[i] - base[i];
    if (b->s->method->trims && in->density < 1)
        trim(x, in, from, n);
    if (b->s->method->drops && in->density < 1)
        drop(x, in, t->rescales, from, n);
    for (size_t i = 0; i < n; i++)
        x[i] = in->weight * x[i];
}

/* ---- sums; x has PIECE numbers of each input ---- */

static void sum(float *out, const float *x, uint32_t count, size_t n)
{
    memcpy(out, x, n * sizeof *out);
    for (uint32_t k = 1; k < count; k++) {
        const float *y = x + (size_t)k * PIECE;
        for (size_t i = 0; i < n; i++)
            out[i] = out[i] + y[i];
    }
}

/* Sum the numbers with the sign of the sum of all; `weights` becomes the sum of their weights. */
static void elect(float *out, float *weights, const float *x, const heft_blend_input *in,
                  uint32_t count, size_t n)
{
    sum(out, x, count, n);
    for (size_t i = 0; i < n; i++) {
        bool is_positive = out[i] >= 0;
        float total = 0, weight = 0;
        for (uint32_t k = 0; k < count; k++) {
            float y = x[(size_t)k * PIECE + i];
            bool agrees = y != 0 && (y > 0) == is_positive;
            total = agrees ? total + y : total;
            weight = agrees ? weight + in[k].weight : weight;
        }
        out[i] = total;
        weights[i] = weight;
    }
}

static void divide_by_elected(float *out, const float *weights, size_t n)
{
    const float least = 1e-8f;
    for (size_t i = 0; i < n; i++) {
        bool is_zero = weights[i] < least && weights[i] > -least;
        out[i] = out[i] / (is_zero ? 1.0f : weights[i]);
    }
}

/* ---- a piece ---- */

static void blend_differences(const heft_blend *b, const heft_blend_tensor *t, float *base,
                              float *x, float *out, uint64_t from, size_t n)
{
    const heft_blend_input *in = heft_blend_inputs(b, t);
    float *weights = x + (size_t)b->most_inputs * PIECE;
    for (uint32_t k = 0; k < t->count; k++)
        weigh_differences(b, t, &in[k], base, x + (size_t)k * PIECE, from, n);
    if (b->s->method->has_election)
        elect(out, weights, x, in, t->count, n);
    else
        sum(out, x, t->count, n);
    if (t->normalizes && b->s->method->has_election)
        divide_by_elected(out, weights, n);
    for (size_t i = 0; t->normalizes && !b->s->method->has_election && i < n; i++)
        out[i] = out[i] / t->weights;
    for (size_t i = 0; i < n; i++)
        out[i] = base[i] + t->lambda * out[i];
}

static void blend_linear(const heft_blend *b, const heft_blend_tensor *t, float *x, float *out,
                         size_t n)
{
    const heft_blend_input *in = heft_blend_inputs(b, t);
    for (uint32_t k = 0; k < t->count; k++)
        for (size_t i = 0; i < n; i++)
            x[(size_t)k * PIECE + i] = in[k].weight * x[(size_t)k * PIECE + i];
    sum(out, x, t->count, n);
    for (size_t i = 0; t->normalizes && i < n; i++)
        out[i] = out[i] / t->weights;
}

static void blend_slerp(const heft_blend_tensor *t, const float *base, const float *x, float *out,
                        size_t n)
{
    for (size_t i = 0; i < n; i++)
        out[i] = t->share[0] * base[i] + t->share[1] * x[i];
}

static heft_status read_piece(const heft_blend *b, pieces *p, const heft_blend_tensor *t,
                              uint64_t from, size_t n, heft_error *err)
{
    const heft_blend_input *in = heft_blend_inputs(b, t);
    if (t->base.f)
        HEFT_TRY(heft_combine_read(&p->readers[0], &t->base, from, n, p->numbers, err));
    for (uint32_t k = 0; k < t->count; k++)
        HEFT_TRY(heft_combine_read(&p->readers[k + 1], &in[k].in, from, n,
                                   p->numbers + (k + (size_t)1) * PIECE, err));
    return HEFT_OK;
}

static heft_status floats(void *ctx, void *scratch, uint32_t i, uint64_t from, size_t count,
                          float *out, heft_error *err)
{
    const heft_blend *b = ctx;
    pieces *p = scratch;
    const heft_blend_tensor *t = (const heft_blend_tensor *)b->tensors.ptr + i;
    HEFT_TRY(begin(p, b, err));
    float *base = p->numbers, *x = p->numbers + PIECE;
    for (size_t n; count; from += n, out += n, count -= n) {
        n = count < PIECE ? count : PIECE;
        HEFT_TRY(read_piece(b, p, t, from, n, err));
        if (b->s->method->has_deltas)
            blend_differences(b, t, base, x, out, from, n);
        else if (b->s->method->is_slerp)
            blend_slerp(t, base, x, out, n);
        else
            blend_linear(b, t, x, out, n);
    }
    return HEFT_OK;
}

void heft_blend_set_ops(heft_blend *b)
{
    b->ops = (heft_combine_ops){ .scratch_bytes = sizeof(pieces),
                                 .floats = floats,
                                 .free_scratch = free_pieces };
}
