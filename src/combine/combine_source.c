/* combine_source.c - a source whose bytes are computed when they are read, in strips. */
#include "base/bisect.h"
#include "base/checked_math.h"
#include "base/error.h"
#include "base/kept.h"
#include "combine/combine.h"
#include "model/cast_batch.h"
#include "model/float.h"

enum { ALIGN = 64, WIDEST = 8 }; /* bytes of the largest element of a result */
static const char purpose[] = "to compute a tensor";

typedef struct scratch { /* belongs to one thread; the feature's part follows */
    float numbers[HEFT_COMBINE_STRIP];
    uint8_t bytes[HEFT_COMBINE_STRIP * WIDEST]; /* a strip of which not all bytes are wanted */
} scratch;

typedef struct combine_source {
    heft_source base;
    const heft_allocator *al;
    heft_combine_row *rows;
    uint32_t count;
    bool allow_nan;
    const heft_combine_ops *ops;
    void *ctx;
    heft_kept pool;
    scratch *kept[HEFT_KEPT]; /* NULL: was not used */
} combine_source;

typedef struct strip { /* a read of one tensor */
    const combine_source *s;
    const heft_combine_row *row;
    scratch *scratch;
    heft_error *err;
} strip;

/* ---- scratch objects ---- */

static size_t bytes_of_scratch(const combine_source *s)
{
    return sizeof(scratch) + s->ops->scratch_bytes;
}

static void *own_part(scratch *c)
{
    return c + 1;
}

static scratch *new_scratch(const combine_source *s)
{
    scratch *c = heft_alloc(s->al, bytes_of_scratch(s), ALIGN);
    if (c)
        memset(own_part(c), 0, s->ops->scratch_bytes);
    return c;
}

static void free_scratch(const combine_source *s, scratch *c)
{
    if (c && s->ops->free_scratch)
        s->ops->free_scratch(s->ctx, own_part(c));
    heft_free(s->al, c, bytes_of_scratch(s), ALIGN);
}

/* ---- numbers ---- */

static heft_status refuse(const strip *w, uint64_t element, const char *what)
{
    heft_status st = heft_error_plain(w->err, HEFT_E_LOSSY, "tensor %q would have %s (element %U)",
                                      w->row->name, what, element);
    return heft_error_rule(w->err, st, "heft/not-finite");
}

/* Refuse the first number that is not finite, or that becomes infinite or smaller in the type. */
static heft_status find_refused(const strip *w, uint64_t first, size_t count)
{
    const uint32_t infinite = UINT32_C(0x7F800000);
    for (size_t i = 0; i < count; i++) {
        uint64_t lost[HEFT_CAST_LOSSES] = { 0 };
        uint8_t out[WIDEST];
        float x = w->scratch->numbers[i];
        uint32_t bits = heft_f32_bits(x);
        if ((bits & INT32_MAX) >= infinite)
            return refuse(w, first + i, (bits & INT32_MAX) > infinite ? "a NaN" : "an infinity");
        heft_f32_from_little(&x, 1); /* also turns a number back */
        (void)heft_cast_counted(out, w->row->dtype, &x, HEFT_F32, 1, lost);
        if (lost[HEFT_LOST_RANGE] || lost[HEFT_LOST_CLAMPED])
            return refuse(w, first + i, "a number too large for its type");
    }
    return HEFT_OK;
}

/* The exponent of a NaN or an infinity has only ones. */
static bool all_finite(const float *x, size_t n)
{
    const uint32_t exponent = UINT32_C(0x7F800000);
    heft_u32_lanes found = { 0 }, v;
    uint32_t each[HEFT_U32_LANES], any = 0;
    size_t i = 0;
    for (; i + HEFT_U32_LANES <= n; i += HEFT_U32_LANES) {
        memcpy(&v, x + i, sizeof v);
        found |= (heft_u32_lanes)((v & exponent) == exponent);
    }
    for (; i < n; i++)
        any |= (heft_f32_bits(x[i]) & exponent) == exponent;
    memcpy(each, &found, sizeof each);
    for (size_t k = 0; k < HEFT_U32_LANES; k++)
        any |= each[k];
    return !any;
}

/* Compute elements [first, first + count) as elements of the tensor's type. */
static heft_status compute(const strip *w, uint64_t first, size_t count, uint8_t *out)
{
    const combine_source *s = w->s;
    float *x = w->scratch->numbers;
    uint64_t lost[HEFT_CAST_LOSSES] = { 0 };
    uint32_t i = (uint32_t)(w->row - s->rows);
    HEFT_TRY(s->ops->floats(s->ctx, own_part(w->scratch), i, first, count, x, w->err));
    bool is_finite = s->allow_nan || all_finite(x, count);
    if (is_finite) {
        if (heft_is_big_endian())
            heft_f32_from_little(x, count); /* turns the numbers back, too */
        (void)heft_cast_counted(out, w->row->dtype, x, HEFT_F32, count, s->allow_nan ? NULL : lost);
    }
    if (is_finite && !lost[HEFT_LOST_RANGE] && !lost[HEFT_LOST_CLAMPED])
        return HEFT_OK;
    HEFT_TRY(s->ops->floats(s->ctx, own_part(w->scratch), i, first, count, x, w->err));
    return find_refused(w, first, count);
}

/* The first and the last element of the range may be cut. */
static heft_status read_numbers(const strip *w, uint64_t from, uint8_t *to, size_t len)
{
    uint32_t size = heft_dtype_size(w->row->dtype);
    while (len) {
        uint64_t first = heft_div(from, size), skip = from - first * size;
        size_t bytes = HEFT_COMBINE_STRIP * (size_t)size - (size_t)skip;
        bytes = bytes < len ? bytes : len;
        size_t count = ((size_t)skip + bytes + size - 1) / size;
        bool is_whole = !skip && count * size == bytes;
        uint8_t *out = is_whole ? to : w->scratch->bytes;
        HEFT_TRY(compute(w, first, count, out));
        if (!is_whole)
            memcpy(to, out + skip, bytes);
        to += bytes;
        from += bytes;
        len -= bytes;
    }
    return HEFT_OK;
}

/* ---- the source ---- */

/* The scratch object of a group has what was computed for another tensor. */
static bool is_of_group(const void *ctx, uint32_t i)
{
    (void)i;
    return ((const heft_combine_row *)ctx)->group;
}

static heft_status read_tensor(combine_source *s, const heft_combine_row *row, uint64_t from,
                               uint8_t *to, size_t len, heft_error *err)
{
    heft_kept_wish wish = { .of = s->rows + row->first,
                            .from = from,
                            .goes_forward = true,
                            .has_more = is_of_group,
                            .ctx = row };
    uint32_t i = heft_kept_take(&s->pool, &wish);
    strip w = { .s = s, .row = row, .err = err, .scratch = i < HEFT_KEPT ? s->kept[i] : NULL };
    if (!w.scratch)
        w.scratch = new_scratch(s);
    if (i < HEFT_KEPT)
        s->kept[i] = w.scratch;
    heft_status st = HEFT_OK;
    if (!w.scratch)
        st = heft_error_no_memory(err, purpose);
    else if (row->is_bytes)
        st = s->ops->bytes(s->ctx, own_part(w.scratch), (uint32_t)(row - s->rows), from, to, len,
                           err);
    else
        st = read_numbers(&w, from, to, len);
    if (i < HEFT_KEPT)
        heft_kept_return(&s->pool, i, from + len);
    else
        free_scratch(s, w.scratch);
    return st;
}

static heft_status read_computed(heft_source *base, uint64_t offset, void *buf, size_t len,
                                 heft_error *err)
{
    combine_source *s = (combine_source *)base;
    uint8_t *to = buf;
    heft_bisect b = { .end = s->count };
    while (heft_bisect_next(&b))
        heft_bisect_narrow(&b, s->rows[b.mid].start + s->rows[b.mid].bytes <= offset);
    heft_status st = HEFT_OK;
    for (const heft_combine_row *row = s->rows + b.first; len && !st; row++) {
        uint64_t from = offset - row->start, left = row->bytes - from;
        size_t n = left < len ? (size_t)left : len;
        st = n ? read_tensor(s, row, from, to, n, err) : HEFT_OK;
        to += n;
        offset += n;
        len -= n;
    }
    return st;
}

static void close_source(heft_source *base)
{
    combine_source *s = (combine_source *)base;
    for (uint32_t i = 0; i < HEFT_KEPT; i++)
        free_scratch(s, s->kept[i]);
    if (s->ops->close)
        s->ops->close(s->ctx);
    heft_free(s->al, s->rows, ((size_t)s->count + 1) * sizeof *s->rows, ALIGN);
    heft_free(s->al, s, sizeof *s, ALIGN);
}

static const heft_source_ops ops = { .size = sizeof(heft_source_ops),
                                     .read = read_computed,
                                     .close = close_source };

heft_status heft_combine_source(heft_source **out, const heft_combination *c,
                                heft_combine_row *take, const heft_allocator *al, heft_error *err)
{
    combine_source *s = heft_alloc(al, sizeof *s, ALIGN);
    *out = NULL;
    if (!s) {
        heft_free(al, take, ((size_t)c->count + 1) * sizeof *take, ALIGN);
        if (c->ops->close)
            c->ops->close(c->ctx);
        return heft_error_no_memory(err, purpose);
    }
    memset(s, 0, sizeof *s);
    s->al = al;
    s->rows = take;
    s->count = c->count;
    s->allow_nan = c->allow_nan;
    s->ops = c->ops;
    s->ctx = c->ctx;
    s->base.ops = &ops;
    s->base.size = c->count ? take[c->count - 1].start + take[c->count - 1].bytes : 0;
    *out = &s->base;
    return HEFT_OK;
}
