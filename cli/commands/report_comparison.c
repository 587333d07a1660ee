/* report_comparison.c - the rows of a comparison, and the tensors that have pictures. */
#include "commands/report_comparison.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "models/model.h"

/* ---- rows ---- */

static void add_row(compared *x, uint32_t a, uint32_t b, const pair *p)
{
    x->rows[x->count++] = (compared_row){ a, b, p };
}

static int list_rows(compared *x)
{
    const comparison *c = x->c;
    size_t most = (size_t)c->only_a + c->only_b + c->renamed_count + c->count;
    x->rows = calloc(most + 1, sizeof *x->rows);
    if (!x->rows)
        return say_status(HEFT_E_NOMEM, c->path_b, "no memory for the differences");
    for (uint32_t i = 0; i < heft_tensor_count(c->a); i++)
        if (c->partner_a[i] == HEFT_NONE)
            add_row(x, i, HEFT_NONE, NULL);
    for (uint32_t i = 0; i < heft_tensor_count(c->b); i++)
        if (c->partner_b[i] == HEFT_NONE)
            add_row(x, HEFT_NONE, i, NULL);
    for (size_t i = 0; i < c->renamed_count; i++)
        add_row(x, c->renamed[i].a, c->renamed[i].b, NULL);
    for (size_t i = 0; i < c->count; i++)
        if (c->pairs[i].changes)
            add_row(x, c->pairs[i].a, c->pairs[i].b, &c->pairs[i]);
    return CODE_DONE;
}

/* ---- pictures ---- */

typedef struct candidate {
    uint32_t row;
    double score; /* greater for tensors that differ more */
} candidate;

/* Other values come first, by their squares relative to those of B; then other types and shapes,
 * tensors of one file, and renamed ones. */
static double score_of(const compared_row *r)
{
    if (!r->p)
        return r->a == HEFT_NONE || r->b == HEFT_NONE ? -2 : -3;
    double nmse = r->p->changes & CHANGED_VALUE ? difference_nmse(&r->p->d) : -1;
    return isnan(nmse) ? HUGE_VAL : nmse;
}

static int by_score(const void *a, const void *b)
{
    const candidate *x = a, *y = b;
    if (x->score != y->score)
        return x->score > y->score ? -1 : 1;
    return x->row < y->row ? -1 : 1;
}

static bool has_numbers(const heft_file *f, uint32_t tensor)
{
    return tensor != HEFT_NONE && summary_part(f, tensor) != HEFT_NONE;
}

/* Choose the rows that have pictures. */
static int choose(compared *x)
{
    candidate *all = calloc(x->count + 1, sizeof *all);
    size_t n = 0;
    if (!all)
        return say_status(HEFT_E_NOMEM, x->c->path_b, "no memory for the differences");
    for (uint32_t i = 0; i < x->count; i++)
        if (has_numbers(x->c->a, x->rows[i].a) || has_numbers(x->c->b, x->rows[i].b))
            all[n++] = (candidate){ i, score_of(&x->rows[i]) };
    qsort(all, n, sizeof *all, by_score);
    for (size_t i = 0; i < n && i < REPORT_PICTURES; i++)
        x->drawn[x->drawn_count++] = all[i].row;
    free(all);
    return CODE_DONE;
}

static void draw_one(void *ctx, size_t i)
{
    work *w = ctx;
    compared *x = w->ctx;
    const compared_row *r = &x->rows[x->drawn[i]];
    const side sides[2] = { { x->c->a, x->c->path_a, r->a, NULL },
                            { x->c->b, x->c->path_b, r->b, NULL } };
    if (work_step(w, 0))
        (void)pair_picture_draw(&x->pictures[i], w, sides);
}

static int draw(compared *x)
{
    const comparison *c = x->c;
    work w = { .session = c->session, .ctx = x, .path = c->path_b };
    x->pictures = calloc((size_t)x->drawn_count + 1, sizeof *x->pictures);
    if (!x->pictures)
        return say_status(HEFT_E_NOMEM, c->path_b, "no memory for the pictures");
    for (uint32_t i = 0; i < x->drawn_count; i++) {
        const compared_row *r = &x->rows[x->drawn[i]];
        w.total = add_length(w.total, r->a == HEFT_NONE ? 0 : heft_tensor_bytes(c->a, r->a));
        w.total = add_length(w.total, r->b == HEFT_NONE ? 0 : heft_tensor_bytes(c->b, r->b));
    }
    w.total *= 2; /* the second pass fills the histograms */
    return work_run(&w, x->drawn_count, draw_one) ? say_error(w.path, &w.err) : CODE_DONE;
}

int compared_begin(compared *x, const comparison *c, bool quick)
{
    *x = (compared){ .c = c };
    int code = list_rows(x);
    if (!code && !quick)
        code = choose(x);
    return code || quick ? code : draw(x);
}

void compared_release(compared *x)
{
    free(x->rows);
    free(x->pictures);
}

/* ---- the document ---- */

static const char *const titles[] = { "Tensor",    "Change",  "A",    "B",
                                      "Differing", "Max abs", "RMSE", "Cosine" };
enum { TITLES = sizeof titles / sizeof *titles, FIRST_NUMBER = 4 };

static void begin_row(json *j, heft_str name, const char *change)
{
    json_line(j);
    json_begin(j, '[');
    json_str(j, name);
    json_str(j, str_of(change));
}

/* Write nulls for the numbers of a row that has none, and end the row. */
static void end_without_numbers(json *j)
{
    for (size_t i = FIRST_NUMBER; i < TITLES; i++)
        json_null(j);
    json_end(j, ']');
}

/* Write "f32 [2,3]", and the layout unless dense. */
static void put_compared(json *j, const model_view *v, uint32_t id, outbuf *text)
{
    const heft_file *f = v->f;
    heft_tensor t = heft_tensor_at(f, id);
    heft_str layout = heft_tensor_layout_name(f, id);
    text->used = 0;
    view_put_type(text, v, id);
    out_char(text, ' ');
    out_shape(text, t.dims, t.rank);
    if (t.layout != HEFT_DENSE) {
        out_char(text, ' ');
        out_bytes(text, layout.ptr, layout.len);
    }
    json_str(j, (heft_str){ text->buf, text->used });
}

static void put_number(json *j, bool exists, double v)
{
    if (exists && !isnan(v))
        json_f64(j, v);
    else
        json_null(j);
}

static void put_pair(json *j, const comparison *c, const pair *p, outbuf *text)
{
    const difference *d = &p->d;
    bool has_value = p->changes & CHANGED_VALUE, has_numbers = has_value && !d->bytewise;
    has_numbers = has_numbers && !d->incomparable;
    begin_row(j, heft_tensor_at(c->b, p->b).name,
              p->changes & CHANGED_SHAPE    ? "shape"
              : p->changes & CHANGED_LAYOUT ? "layout"
              : has_value                   ? "values"
                                            : "type");
    put_compared(j, c->view_a, p->a, text);
    put_compared(j, c->view_b, p->b, text);
    put_number(j, has_value && !d->incomparable, (double)d->differing);
    put_number(j, has_numbers, d->max_abs);
    put_number(j, has_numbers && d->finite, difference_rmse(d));
    put_number(j, has_numbers, difference_cosine(d));
    json_end(j, ']');
}

static void put_row(json *j, const compared *x, const compared_row *r, outbuf *text)
{
    const comparison *c = x->c;
    if (r->p) {
        put_pair(j, c, r->p, text);
        return;
    }
    bool has_a = r->a != HEFT_NONE, has_b = r->b != HEFT_NONE, is_renamed = has_a && has_b;
    heft_str name = has_b ? heft_tensor_at(c->b, r->b).name : c->names[r->a];
    begin_row(j, name, is_renamed ? "renamed" : has_a ? "only in A" : "only in B");
    if (is_renamed) {
        json_str(j, c->names[r->a]);
        json_str(j, name);
    } else {
        if (!has_a)
            json_null(j);
        put_compared(j, has_a ? c->view_a : c->view_b, has_a ? r->a : r->b, text);
        if (has_a)
            json_null(j);
    }
    end_without_numbers(j);
}

static void put_finite(json *j, const char *key, double v)
{
    if (isfinite(v))
        json_member_f64(j, key, v);
    else
        json_member_null(j, key);
}

/* Means have as many digits as the page shows; those of fields without a finite value are null. */
static void put_map(json *j, const value_map *m)
{
    bool has_kinds = false;
    json_member_u64(j, "rows", m->rows);
    json_member_u64(j, "columns", m->columns);
    json_member_u64(j, "height", m->height);
    json_member_u64(j, "width", m->width);
    json_member_begin(j, "means", '[');
    for (size_t i = 0; i < m->height * m->width; i++) {
        char mean[32];
        double v = m->counts[i] ? m->sums[i] / (double)m->counts[i] : (double)NAN;
        has_kinds = has_kinds || m->kinds[i];
        snprintf(mean, sizeof mean, "%.6g", v);
        if (isfinite(v))
            json_f64(j, strtod(mean, NULL));
        else
            json_null(j);
    }
    json_end(j, ']');
    if (!has_kinds)
        return;
    json_member_begin(j, "kinds", '[');
    for (size_t i = 0; i < m->height * m->width; i++)
        json_u64(j, m->kinds[i]);
    json_end(j, ']');
}

static void put_figures(json *j, const char *key, const summary *s, const value_map *m)
{
    if (!s->numeric) {
        json_member_null(j, key);
        return;
    }
    json_member_begin(j, key, '{');
    json_member_u64(j, "count", s->count);
    put_finite(j, "min", s->finite ? s->min : (double)NAN);
    put_finite(j, "max", s->finite ? s->max : (double)NAN);
    put_finite(j, "mean", s->finite ? s->mean : (double)NAN);
    put_finite(j, "std", s->finite ? s->deviation : (double)NAN);
    json_member_u64(j, "nan", s->nans);
    json_member_u64(j, "inf", s->infinities);
    put_map(j, m);
    json_end(j, '}');
}

static void put_bins(json *j, const char *key, const pair_picture *p, int k)
{
    json_member_begin(j, key, '[');
    for (size_t i = 0; p->figures[k].finite && i < PICTURE_BINS; i++)
        json_u64(j, p->bins[k][i]);
    json_end(j, ']');
}

static void put_shape(json *j, const heft_file *f, uint32_t tensor)
{
    heft_tensor t = { .rank = 0 };
    if (tensor != HEFT_NONE)
        t = heft_tensor_at(f, tensor);
    json_begin(j, '[');
    for (uint32_t k = 0; k < t.rank; k++)
        json_u64(j, t.dims[k]);
    json_end(j, ']');
}

static void put_picture(json *j, const compared *x, uint32_t i)
{
    const pair_picture *p = &x->pictures[i];
    const compared_row *r = &x->rows[x->drawn[i]];
    json_line(j);
    json_begin(j, '{');
    json_member_u64(j, "row", x->drawn[i]);
    json_member_begin(j, "shapes", '[');
    put_shape(j, x->c->a, r->a);
    put_shape(j, x->c->b, r->b);
    json_end(j, ']');
    put_finite(j, "min", p->min);
    put_finite(j, "max", p->max);
    put_bins(j, "bins_a", p, 0);
    put_bins(j, "bins_b", p, 1);
    put_figures(j, "a", &p->figures[0], &p->maps[0]);
    put_figures(j, "b", &p->figures[1], &p->maps[1]);
    put_figures(j, "difference", &p->difference, &p->difference_map);
    json_end(j, '}');
}

void compared_put(json *j, const compared *x)
{
    outbuf text = { .fd = -1 };
    comparison_put_summary(&text, x->c);
    json_member_begin(j, "comparison", '{');
    json_member_bool(j, "equal", x->c->equal);
    json_member_str(j, "path", str_of(x->c->path_b));
    json_member_str(j, "summary", (heft_str){ text.buf, text.used });
    json_member_begin(j, "titles", '[');
    for (size_t i = 0; i < TITLES; i++)
        json_str(j, str_of(titles[i]));
    json_end(j, ']');
    json_member_begin(j, "rows", '[');
    for (size_t i = 0; i < x->count; i++)
        put_row(j, x, &x->rows[i], &text);
    json_end(j, ']');
    json_member_begin(j, "pictures", '[');
    for (uint32_t i = 0; i < x->drawn_count; i++)
        put_picture(j, x, i);
    json_end(j, ']');
    json_end(j, '}');
    if (!j->o->os)
        j->o->os = text.os;
    out_free(&text);
}
