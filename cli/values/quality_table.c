/* quality_table.c - prints how far the numbers of a quantised model are from the source. */
#include <stdlib.h>
#include <unistd.h>

#include "process/columns.h"
#include "process/message.h"
#include "values/compare.h"

enum { WORST = 10 };

typedef struct row {
    heft_quality_item item;
    difference d;
    uint32_t number; /* in the order of the model */
} row;

typedef struct rows {
    row *rows; /* of the tensors that have been written */
    uint32_t count;
    int digits;
} rows;

/* Return the statistics in the terms of `heft diff SOURCE OUT`. */
static difference difference_of(const heft_quality_item *i)
{
    return (difference){ .compared = i->elements,
                         .differing = i->differing,
                         .max_abs = i->max_abs,
                         .finite = i->finite,
                         .sum_squares = i->sum_squares,
                         .squares_a = i->squares_source,
                         .squares_b = i->squares_written,
                         .products = i->products };
}

static bool read_rows(rows *out, const heft_quality *q)
{
    uint32_t count = heft_quality_count(q);
    out->rows = calloc((size_t)count + 1, sizeof *out->rows);
    for (uint32_t i = 0; out->rows && i < count; i++) {
        heft_quality_item item = heft_quality_at(q, i);
        if (item.elements)
            out->rows[out->count++] = (row){ item, difference_of(&item), i };
    }
    return out->rows;
}

/* ---- JSON ---- */

static void json_row(json *j, const difference *d)
{
    json_statistics(j, d, true, false);
    json_member_u64(j, "differing", d->differing);
    json_member_u64(j, "compared", d->compared);
}

static void print_json(outbuf *o, const rows *r, const difference *total)
{
    json j = json_open(o);
    json_member_begin(&j, "tensors", '[');
    for (uint32_t i = 0; i < r->count; i++) {
        const row *of = &r->rows[i];
        json_line(&j);
        json_begin(&j, '{');
        json_member_str(&j, "name", of->item.name);
        json_member_str(&j, "type_a", str_of(dtype_name(of->item.from)));
        json_member_str(&j, "type_b", str_of(of->item.type));
        json_row(&j, &of->d);
        json_end(&j, '}');
    }
    json_end(&j, ']');
    json_line(&j);
    json_member_begin(&j, "total", '{');
    json_member_u64(&j, "tensors", r->count);
    json_row(&j, total);
    json_end(&j, '}');
    json_close(&j);
}

/* ---- text ---- */

enum { FIELD_NAME, FIELD_TYPES, FIELD_MAX_ABS, FIELD_RMSE, FIELD_NMSE, FIELD_COSINE };

static void put_cell(outbuf *o, const table_row *at, int field)
{
    const rows *all = at->ctx;
    const row *r = &all->rows[at->id];
    if (field == FIELD_NAME)
        out_name(o, r->item.name);
    else if (field == FIELD_TYPES)
        out_format(o, "%s -> %s", dtype_name(r->item.from), r->item.type);
    else if (field == FIELD_COSINE)
        out_statistic(o, COSINE_DIGITS, difference_cosine(&r->d));
    else
        out_statistic(o, all->digits,
                      field == FIELD_MAX_ABS ? r->d.max_abs
                      : field == FIELD_RMSE  ? difference_rmse(&r->d)
                                             : difference_nmse(&r->d));
}

/* The farthest apart come first, and of equal ones the first in the model. */
static int order(const void *a, const void *b)
{
    const row *x = a, *y = b;
    int order = statistic_order(difference_nmse(&x->d), difference_nmse(&y->d));
    return order ? order : (x->number > y->number) - (x->number < y->number);
}

static void print_text(outbuf *o, rows *r, const session *s, const difference *total)
{
    static const column columns[] = {
        { "NAME", false, FIELD_NAME },      { "A -> B", false, FIELD_TYPES },
        { "MAX ABS", true, FIELD_MAX_ABS }, { "RMSE", true, FIELD_RMSE },
        { "NMSE", true, FIELD_NMSE },       { "COSINE", true, FIELD_COSINE },
    };
    static const uint8_t hides[] = { 0, 1, 2, 3, 5, 4 };
    table t = { .columns = columns,
                .width = sizeof columns / sizeof *columns,
                .cell = put_cell,
                .ctx = r,
                .count = r->count < WORST ? r->count : WORST,
                .threads = s->threads,
                .hides = hides };
    qsort(r->rows, r->count, sizeof *r->rows, order);
    if (r->count > WORST)
        out_format(o, "The %d of %u quantised tensors that are farthest apart (by NMSE):\n", WORST,
                   r->count);
    table_print(o, &t);
    out_format(o, "%u quantised tensor%s: RMSE ", r->count, r->count == 1 ? "" : "s");
    out_statistic(o, r->digits, difference_rmse(total));
    out_text(o, ", NMSE ");
    out_statistic(o, r->digits, difference_nmse(total));
    out_text(o, ", max abs ");
    out_statistic(o, r->digits, total->max_abs);
    out_text(o, ", cosine ");
    out_statistic(o, COSINE_DIGITS, difference_cosine(total));
    out_char(o, '\n');
}

int quality_print(const heft_quality *q, const session *s, int fd, bool as_json)
{
    outbuf o;
    rows r = { .digits = term_is_stdout() ? 4 : 6 };
    heft_quality_item all = heft_quality_total(q);
    difference total = difference_of(&all);
    if (!read_rows(&r, q))
        return say_status(HEFT_E_NOMEM, NULL, "no memory for the table");
    out_open(&o, fd);
    if (as_json)
        print_json(&o, &r, &total);
    else
        print_text(&o, &r, s, &total);
    free(r.rows);
    if (fd == STDOUT_FILENO)
        return out_end(&o, CODE_DONE);
    bool ok = out_flush(&o);
    out_free(&o);
    return ok ? CODE_DONE : CODE_SYSTEM;
}
