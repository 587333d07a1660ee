/* lora_compute.c - computes strips of merged weights.
 *
 * A strip is cut into boxes: rows of a matrix as a whole, or a part of one row. The left matrix of
 * a product is read for the rows of a box, the right one in panels of columns; a scratch object
 * keeps the last panel. */
#include "base/checked_math.h"
#include "base/error.h"
#include "lora/lora_matrix.h"
#include "lora/merging.h"
#include "model/float.h"
#include "model/products.h"

enum { STRIP = HEFT_COMBINE_STRIP, PANEL = 1 << 20, ALIGN = 64 };

typedef struct buffers {
    float left[STRIP];    /* rows of the left matrix */
    float product[STRIP]; /* a product that is rounded, or numbers that are added */
    float norm[STRIP];    /* a row of which the norm is found */
    uint8_t rounded[STRIP * sizeof(uint16_t)];
    float right[PANEL];
    heft_lora_span span;
} buffers;

typedef struct scratch {
    heft_combine_reader base, other;
    heft_combine_reader left, right;
    const heft_allocator *al;
    buffers *b;
    const heft_lora_step *of; /* whose panel is in b->right; NULL: none */
    uint64_t matrix, panel;
    const heft_lora_target *row_of; /* whose row has these factors; NULL: none */
    uint64_t row;
    float factors[HEFT_LORA_MAGNITUDES];
} scratch;

typedef struct work { /* on a target */
    const heft_lora *l;
    const heft_lora_target *t;
    scratch *s;
    uint32_t end; /* the step before which evaluation stops, or HEFT_NONE */
    bool is_bare; /* without the magnitudes of the last step */
    heft_error *err;
} work;

typedef struct box { /* rows [row, row + rows) of a matrix of the stack, and columns of them */
    uint64_t matrix, row, column;
    size_t rows, columns;
    float *out; /* a row begins t->columns after the one before */
} box;

/* ---- products ---- */

static size_t panel_width(const heft_lora_step *s, uint64_t columns)
{
    uint64_t most = PANEL / s->rank;
    return (size_t)(columns < most ? columns : most);
}

/* Read the panel of the right matrix that begins at column `from`. */
static heft_status load_panel(const work *w, const heft_lora_step *s, uint64_t matrix,
                              uint64_t from, size_t width)
{
    scratch *c = w->s;
    if (c->of == s && c->matrix == matrix && c->panel == from)
        return HEFT_OK;
    heft_lora_box b = { matrix, 0, from, s->rank, width };
    c->of = NULL;
    HEFT_TRY(heft_lora_matrix_read(&c->right, &c->b->span, &s->right, &b, c->b->right, w->err));
    c->of = s;
    c->matrix = matrix;
    c->panel = from;
    return HEFT_OK;
}

/* Add the product to `out`, whose rows begin `stride` after each other. */
static heft_status add_panels(const work *w, const heft_lora_step *s, const box *b, float *out,
                              size_t stride)
{
    scratch *c = w->s;
    uint64_t columns = w->t->columns;
    size_t width = panel_width(s, columns);
    heft_lora_box left = { b->matrix, b->row, 0, b->rows, s->rank };
    HEFT_TRY(heft_lora_matrix_read(&c->left, &c->b->span, &s->left, &left, c->b->left, w->err));
    for (size_t done = 0, n; done < b->columns; done += n) {
        uint64_t at = b->column + done, first = heft_div(at, width) * width;
        size_t whole = (size_t)(columns - first < width ? columns - first : width);
        n = whole - (size_t)(at - first);
        n = n < b->columns - done ? n : b->columns - done;
        HEFT_TRY(load_panel(w, s, b->matrix, first, whole));
        heft_products p = { .out = out + done,
                            .stride = stride,
                            .rows = b->rows,
                            .columns = n,
                            .left = c->b->left,
                            .rank = s->rank,
                            .right = c->b->right + (at - first),
                            .right_stride = whole,
                            .scale = (float)s->scale };
        heft_products_add(&p);
    }
    return HEFT_OK;
}

/* Round the product to a type of 16 bits before it is added, as PEFT does. */
static heft_status add_rounded(const work *w, const heft_lora_step *s, const box *b)
{
    buffers *m = w->s->b;
    size_t n = b->rows * b->columns;
    for (size_t i = 0; i < n; i++)
        m->product[i] = -0.0F; /* plus x is x, even if x is -0 */
    HEFT_TRY(add_panels(w, s, b, m->product, b->columns));
    heft_f32_from_little(m->product, n);
    (void)heft_dtype_cast(m->rounded, s->round_to, m->product, HEFT_F32, n);
    (void)heft_dtype_cast(m->product, HEFT_F32, m->rounded, s->round_to, n);
    heft_f32_from_little(m->product, n);
    for (size_t i = 0; i < b->rows; i++)
        for (size_t k = 0; k < b->columns; k++)
            b->out[i * w->t->columns + k] += m->product[i * b->columns + k];
    return HEFT_OK;
}

/* ---- steps ---- */

static heft_status apply_step(const work *w, const heft_lora_step *s, const box *b, uint32_t number)
{
    const heft_lora_target *t = w->t;
    bool is_last = w->is_bare && s->next == w->end;
    HEFT_TRY(s->round_to ? add_rounded(w, s, b) : add_panels(w, s, b, b->out, (size_t)t->columns));
    for (size_t k = 0; s->magnitude.f && !is_last && k < b->columns; k++)
        b->out[k] *= w->s->factors[number]; /* a box has one row then */
    return HEFT_OK;
}

/* Cut elements [from, from + count) into boxes. */
static heft_status apply_product(const work *w, const heft_lora_step *s, uint64_t from,
                                 size_t count, float *out, uint32_t number)
{
    const heft_lora_target *t = w->t;
    uint64_t line = heft_div(from, t->columns);
    box b = { .column = from - line * t->columns, .out = out };
    b.matrix = heft_div(line, t->rows);
    b.row = line - b.matrix * t->rows;
    while (count) {
        uint64_t left = t->columns - b.column, rows = t->rows - b.row;
        uint64_t most = s->magnitude.f ? 1 : STRIP / s->rank;
        uint64_t whole = b.column || count < t->columns ? 1 : heft_div(count, t->columns);
        whole = whole < rows ? whole : rows;
        b.rows = (size_t)(whole < most ? whole : most);
        b.columns = left < count ? (size_t)left : count;
        HEFT_TRY(apply_step(w, s, &b, number));
        size_t done = b.rows > 1 ? b.rows * b.columns : b.columns;
        count -= done;
        b.out += done;
        b.column += b.columns;
        if (b.column < t->columns)
            continue;
        b.column = 0;
        b.row += b.rows;
        if (b.row == t->rows) {
            b.row = 0;
            b.matrix++;
        }
    }
    return HEFT_OK;
}

static heft_status apply_numbers(const work *w, const heft_lora_step *s, uint64_t from,
                                 size_t count, float *out)
{
    float *x = s->replaces ? out : w->s->b->product, scale = (float)s->scale;
    HEFT_TRY(heft_combine_read(&w->s->other, &s->left.in, from, count, x, w->err));
    for (size_t i = 0; i < count && !s->replaces; i++)
        out[i] += scale * x[i];
    return HEFT_OK;
}

/* Apply the steps up to w->end to elements [from, from + count). */
static heft_status evaluate(const work *w, uint64_t from, size_t count, float *out)
{
    const heft_lora_target *t = w->t;
    uint32_t number = 0;
    if (!heft_lora_step_at(w->l, t->first)->replaces)
        HEFT_TRY(heft_combine_read(&w->s->base, &t->base, from, count, out, w->err));
    for (uint32_t i = t->first; i != w->end; i = heft_lora_step_at(w->l, i)->next) {
        const heft_lora_step *s = heft_lora_step_at(w->l, i);
        HEFT_TRY(s->rank ? apply_product(w, s, from, count, out, number)
                         : apply_numbers(w, s, from, count, out));
        number += s->magnitude.f != NULL;
    }
    return HEFT_OK;
}

/* ---- magnitudes (DoRA) ---- */

/* Compute the factor of a row: its magnitude by its norm. The squares are added in f64, from the
 * first column on. */
static heft_status find_factor(const work *w, const heft_lora_step *s, uint64_t row, float *out)
{
    const heft_lora_target *t = w->t;
    work inner = *w;
    double sum = 0;
    float magnitude, *x = w->s->b->norm;
    inner.end = s->next;
    inner.is_bare = true;
    for (uint64_t at = 0, n; at < t->columns; at += n) {
        n = t->columns - at < STRIP ? t->columns - at : STRIP;
        HEFT_TRY(evaluate(&inner, row * t->columns + at, (size_t)n, x));
        for (size_t i = 0; i < n; i++)
            sum += (double)x[i] * (double)x[i];
    }
    HEFT_TRY(heft_combine_read(&w->s->other, &s->magnitude, row, 1, &magnitude, w->err));
    *out = magnitude / (float)heft_lora_square_root(sum);
    return HEFT_OK;
}

/* The factor of a step depends on those before it. */
static heft_status find_factors(const work *w, uint64_t row)
{
    scratch *c = w->s;
    uint32_t number = 0;
    if (c->row_of == w->t && c->row == row)
        return HEFT_OK;
    c->row_of = NULL;
    for (uint32_t i = w->t->first; i != HEFT_NONE; i = heft_lora_step_at(w->l, i)->next) {
        const heft_lora_step *s = heft_lora_step_at(w->l, i);
        if (s->magnitude.f)
            HEFT_TRY(find_factor(w, s, row, &c->factors[number++]));
    }
    c->row_of = w->t;
    c->row = row;
    return HEFT_OK;
}

/* Evaluate row by row. */
static heft_status evaluate_rows(const work *w, uint64_t from, size_t count, float *out)
{
    uint64_t columns = w->t->columns, row = heft_div(from, columns), at = from - row * columns;
    for (size_t n; count; count -= n, out += n, from += n, row++, at = 0) {
        n = columns - at < count ? (size_t)(columns - at) : count;
        HEFT_TRY(find_factors(w, row));
        HEFT_TRY(evaluate(w, from, n, out));
    }
    return HEFT_OK;
}

static bool has_magnitudes(const heft_lora *l, const heft_lora_target *t)
{
    bool has = false;
    for (uint32_t i = t->first; i != HEFT_NONE; i = heft_lora_step_at(l, i)->next)
        has = has || heft_lora_step_at(l, i)->magnitude.f;
    return has;
}

/* ---- the table ---- */

static heft_status compute(void *ctx, void *own, uint32_t i, uint64_t from, size_t count,
                           float *out, heft_error *err)
{
    const heft_lora *l = ctx;
    scratch *c = own;
    work w = { l, heft_lora_target_at(l, i), c, HEFT_NONE, false, err };
    c->al = l->mem.al;
    if (!c->b)
        c->b = heft_alloc(c->al, sizeof *c->b, ALIGN);
    if (!c->b)
        return heft_error_no_memory(err, "to merge adapters");
    return (has_magnitudes(l, w.t) ? evaluate_rows : evaluate)(&w, from, count, out);
}

/* Read a tensor that replaces one which is not of floating-point numbers. */
static heft_status copy_bytes(void *ctx, void *own, uint32_t i, uint64_t from, uint8_t *out,
                              size_t len, heft_error *err)
{
    const heft_lora *l = ctx;
    scratch *c = own;
    const heft_lora_step *s = heft_lora_step_at(l, heft_lora_target_at(l, i)->last);
    return heft_combine_read_bytes(&c->other, &s->left.in, from, out, len, err);
}

static void free_scratch(void *ctx, void *own)
{
    scratch *c = own;
    (void)ctx;
    heft_combine_reader_free(&c->base);
    heft_combine_reader_free(&c->other);
    heft_combine_reader_free(&c->left);
    heft_combine_reader_free(&c->right);
    if (c->b)
        heft_free(c->al, c->b, sizeof *c->b, ALIGN);
}

const heft_combine_ops heft_lora_ops = { .scratch_bytes = sizeof(scratch),
                                         .floats = compute,
                                         .bytes = copy_bytes,
                                         .free_scratch = free_scratch };
