/* report_comparison.c - the part of a report that compares two files. */
#include <math.h>

#include "commands/report.h"
#include "models/model.h"
#include "text/number_text.h"

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
static void put_tensor(json *j, const model_view *v, uint32_t id, outbuf *text)
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

static void put_lonely(json *j, const comparison *c, outbuf *text)
{
    for (uint32_t i = 0; i < heft_tensor_count(c->a); i++) {
        if (c->partner_a[i] != HEFT_NONE)
            continue;
        begin_row(j, c->names[i], "only in A");
        put_tensor(j, c->view_a, i, text);
        json_null(j);
        end_without_numbers(j);
    }
    for (uint32_t i = 0; i < heft_tensor_count(c->b); i++) {
        if (c->partner_b[i] != HEFT_NONE)
            continue;
        begin_row(j, heft_tensor_at(c->b, i).name, "only in B");
        json_null(j);
        put_tensor(j, c->view_b, i, text);
        end_without_numbers(j);
    }
}

static void put_renamed(json *j, const comparison *c)
{
    for (size_t i = 0; i < c->renamed_count; i++) {
        heft_str name = heft_tensor_at(c->b, c->renamed[i].b).name;
        begin_row(j, name, "renamed");
        json_str(j, c->names[c->renamed[i].a]);
        json_str(j, name);
        end_without_numbers(j);
    }
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
    put_tensor(j, c->view_a, p->a, text);
    put_tensor(j, c->view_b, p->b, text);
    put_number(j, has_value && !d->incomparable, (double)d->differing);
    put_number(j, has_numbers, d->max_abs);
    put_number(j, has_numbers && d->finite, difference_rmse(d));
    put_number(j, has_numbers, difference_cosine(d));
    json_end(j, ']');
}

void report_put_comparison(json *j, const comparison *c)
{
    outbuf text = { .fd = -1 };
    comparison_put_summary(&text, c);
    json_member_begin(j, "comparison", '{');
    json_member_bool(j, "equal", c->equal);
    json_member_str(j, "path", str_of(c->path_b));
    json_member_str(j, "summary", (heft_str){ text.buf, text.used });
    json_member_begin(j, "titles", '[');
    for (size_t i = 0; i < TITLES; i++)
        json_str(j, str_of(titles[i]));
    json_end(j, ']');
    json_member_begin(j, "rows", '[');
    put_lonely(j, c, &text);
    put_renamed(j, c);
    for (size_t i = 0; i < c->count; i++)
        if (c->pairs[i].changes)
            put_pair(j, c, &c->pairs[i], &text);
    json_end(j, ']');
    json_end(j, '}');
    if (!j->o->os)
        j->o->os = text.os;
    out_free(&text);
}
