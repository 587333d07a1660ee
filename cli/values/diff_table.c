#include "values/diff_table.h"
#include "text/number_text.h"

#include <stdlib.h>
#include <string.h>

#include "models/module_tree.h"
#include "process/columns.h"

enum { LINE_PAIR, LINE_RENAMED, LINE_ONLY_A, LINE_ONLY_B };

typedef struct diff_line { /* a tensor; or, in a tree, a module with the sum of its tensors */
    int kind;
    uint32_t a, b;
    uint32_t changes;  /* changed pairs */
    uint32_t differ;   /* modules: tensors that are not equal */
    heft_str name;     /* the name of the tensor */
    const pair *first; /* pair of a tensor; NULL for others */
    difference d;
} diff_line;

typedef struct diff_table {
    const comparison *c;
    const diff_style *style;
    diff_line *lines;
    uint32_t count;
    module_tree tree; /* empty without --tree */
    diff_line *sums;  /* one per row of the tree */
    int digits;       /* digits of real numbers */
} diff_table;

/* ---- lines ---- */

static void add_line(diff_table *t, diff_line line)
{
    t->lines[t->count++] = line;
}

static void add_lonely(diff_table *t, bool of_b)
{
    const comparison *c = t->c;
    const heft_file *f = of_b ? c->b : c->a;
    const uint32_t *partner = of_b ? c->partner_b : c->partner_a;
    for (uint32_t i = 0; i < heft_tensor_count(f); i++)
        if (partner[i] == HEFT_NONE)
            add_line(t, (diff_line){ .kind = of_b ? LINE_ONLY_B : LINE_ONLY_A,
                                     .a = of_b ? HEFT_NONE : i,
                                     .b = of_b ? i : HEFT_NONE,
                                     .differ = 1,
                                     .name = of_b ? heft_tensor_at(f, i).name : c->names[i] });
}

static void add_pair(diff_table *t, const pair *p)
{
    add_line(t, (diff_line){ .kind = LINE_PAIR,
                             .a = p->a,
                             .b = p->b,
                             .changes = p->changes,
                             .differ = p->changes != 0,
                             .name = heft_tensor_at(t->c->b, p->b).name,
                             .first = p,
                             .d = p->d });
}

/* Return whether a quantised tensor of the pair has other values. */
static bool is_lossy_change(const comparison *c, const pair *p)
{
    return p->changes & CHANGED_VALUE && comparison_is_lossy(c, p);
}

static void list_changes(diff_table *t)
{
    const comparison *c = t->c;
    add_lonely(t, false);
    add_lonely(t, true);
    for (size_t i = 0; i < c->renamed_count; i++)
        add_line(t, (diff_line){ .kind = LINE_RENAMED,
                                 .a = c->renamed[i].a,
                                 .b = c->renamed[i].b,
                                 .differ = 1,
                                 .name = c->names[c->renamed[i].a] });
    for (size_t i = 0; i < c->count; i++)
        if (c->pairs[i].changes || t->style->equal)
            add_pair(t, &c->pairs[i]);
}

/* List what the table shows. Return false without memory. */
static bool list_lines(diff_table *t)
{
    const comparison *c = t->c;
    t->lines = malloc((c->all_count + 1) * sizeof *t->lines);
    if (t->lines && !t->style->lossy)
        list_changes(t);
    for (size_t i = 0; t->lines && t->style->lossy && i < c->count; i++)
        if (is_lossy_change(c, &c->pairs[i]))
            add_pair(t, &c->pairs[i]);
    return t->lines;
}

/* ---- order ---- */

static double max_abs(const diff_line *l)
{
    return l->d.max_abs;
}

static double max_rel(const diff_line *l)
{
    return l->d.max_rel;
}

static double rmse(const diff_line *l)
{
    return difference_rmse(&l->d);
}

static double nmse(const diff_line *l)
{
    return difference_nmse(&l->d);
}

/* The least similar tensor comes first. */
static double dissimilarity(const diff_line *l)
{
    return -difference_cosine(&l->d);
}

static double differing(const diff_line *l)
{
    return (double)l->d.differing;
}

/* Numbers are sorted from the largest to the smallest; a number that is not defined comes last. */
static const struct {
    const char *name;
    double (*number)(const diff_line *l); /* NULL: the name */
} keys[] = {
    { "name", NULL }, { "differ", differing }, { "max-abs", max_abs },      { "max-rel", max_rel },
    { "rmse", rmse }, { "nmse", nmse },        { "cosine", dissimilarity },
};
enum { KEYS = sizeof keys / sizeof *keys };

typedef struct sort_row {
    double number;
    uint32_t at; /* index of the line, for equal numbers and names */
    diff_line line;
} sort_row;

static int by_number(const void *a, const void *b)
{
    const sort_row *x = a, *y = b;
    int order = statistic_order(x->number, y->number);
    return order ? order : (x->at > y->at) - (x->at < y->at);
}

static int by_name(const void *a, const void *b)
{
    const sort_row *x = a, *y = b;
    int order = name_order(x->line.name, y->line.name);
    return order ? order : (x->at > y->at) - (x->at < y->at);
}

static bool sort_lines(diff_table *t, size_t key)
{
    sort_row *rows = malloc(((size_t)t->count + 1) * sizeof *rows);
    for (uint32_t i = 0; rows && i < t->count; i++) {
        double v = keys[key].number ? keys[key].number(&t->lines[i]) : 0;
        rows[i] = (sort_row){ v, i, t->lines[i] };
    }
    if (rows)
        qsort(rows, t->count, sizeof *rows, keys[key].number ? by_number : by_name);
    for (uint32_t i = 0; rows && i < t->count; i++)
        t->lines[i] = rows[i].line;
    free(rows);
    return rows;
}

static size_t key_of(const char *sort)
{
    size_t k = 0;
    while (k + 1 < KEYS && strcmp(keys[k].name, sort) != 0)
        k++;
    return k;
}

int diff_style_check(const diff_style *s)
{
    if (s->tree && (s->sort || s->limit))
        return say_usage("diff", "--tree is a table in the order of names: use it without --sort "
                                 "and --limit");
    if (s->depth && !s->tree)
        return say_usage("diff", "--depth needs --tree");
    return CODE_DONE;
}

/* ---- modules ---- */

static double larger(double a, double b)
{
    return b > a ? b : a;
}

static void add_difference(difference *to, const difference *d)
{
    to->differing += d->differing;
    to->compared += d->compared;
    to->max_abs = larger(to->max_abs, d->max_abs);
    to->max_rel = larger(to->max_rel, d->max_rel);
    to->finite += d->finite;
    to->sum_abs += d->sum_abs;
    to->sum_squares += d->sum_squares;
    to->squares_a += d->squares_a;
    to->squares_b += d->squares_b;
    to->products += d->products;
    to->incomparable = to->incomparable || d->incomparable;
    to->bytewise = to->bytewise || d->bytewise;
}

static void sum_modules(diff_table *t)
{
    for (uint32_t i = 0; i < t->tree.row_count; i++) {
        const module_row *r = &t->tree.rows[i];
        diff_line sum = t->lines[t->tree.members[r->first].id];
        for (uint32_t k = r->first + 1; k < r->end; k++) {
            const diff_line *more = &t->lines[t->tree.members[k].id];
            add_difference(&sum.d, &more->d);
            sum.changes |= more->changes;
            sum.differ += more->differ;
            sum.kind = sum.kind == more->kind ? sum.kind : LINE_PAIR;
        }
        sum.first = r->is_module ? NULL : sum.first;
        t->sums[i] = sum;
    }
}

static bool build_tree(diff_table *t)
{
    heft_str *names = malloc(((size_t)t->count + 1) * sizeof *names);
    for (uint32_t i = 0; names && i < t->count; i++)
        names[i] = t->lines[i].name;
    bool ok = names &&
              module_tree_open_names(&t->tree, names, t->count, t->c->path_a, t->style->depth);
    t->sums = ok ? malloc(((size_t)t->tree.row_count + 1) * sizeof *t->sums) : NULL;
    if (t->sums)
        sum_modules(t);
    free(names);
    return t->sums;
}

/* ---- cells ---- */

enum {
    NAME,
    CHANGE,
    DETAIL,
    DIFFER,
    ELEMENTS,
    MAX_ABS,
    MAX_REL,
    MEAN_ABS,
    RMSE,
    NMSE,
    COSINE,
    FIRST,
    COLUMNS
};

static const struct {
    column column;
    uint8_t hides; /* see table.hides */
} columns[COLUMNS] = {
    { { "NAME", false, NAME }, 0 },      { { "CHANGE", false, CHANGE }, 0 },
    { { "A -> B", false, DETAIL }, 1 },  { { "DIFFER", true, DIFFER }, 2 },
    { { "OF", true, ELEMENTS }, 5 },     { { "MAX ABS", true, MAX_ABS }, 1 },
    { { "MAX REL", true, MAX_REL }, 3 }, { { "MEAN ABS", true, MEAN_ABS }, 9 },
    { { "RMSE", true, RMSE }, 4 },       { { "NMSE", true, NMSE }, 8 },
    { { "COSINE", true, COSINE }, 7 },   { { "FIRST AT", false, FIRST }, 6 },
};

static const char *const kinds[] = { NULL, "renamed", "only in A", "only in B" };

static void put_change(outbuf *o, const diff_line *l)
{
    static const char *const names[] = { "dtype", "shape", "layout", "values" };
    const char *separator = "";
    if (l->kind != LINE_PAIR)
        out_text(o, kinds[l->kind]);
    for (uint32_t i = 0; l->kind == LINE_PAIR && i < sizeof names / sizeof *names; i++)
        if (l->changes >> i & 1) {
            out_format(o, "%s%s", separator, names[i]);
            separator = ", ";
        }
    if (l->kind == LINE_PAIR && !l->changes)
        out_text(o, l->differ ? "names" : "equal");
}

static void put_kind(outbuf *o, const model_view *v, uint32_t tensor, uint32_t changes)
{
    heft_tensor t = heft_tensor_at(v->f, tensor);
    if (changes & CHANGED_DTYPE)
        view_put_type(o, v, tensor);
    if (changes & CHANGED_SHAPE)
        out_shape(o, t.dims, t.rank);
    if (changes & CHANGED_LAYOUT)
        out_name(o, heft_tensor_layout_name(v->f, tensor));
}

static void put_detail(outbuf *o, const diff_table *t, const diff_line *l)
{
    const uint32_t kinds_of_tensors = CHANGED_DTYPE | CHANGED_SHAPE | CHANGED_LAYOUT;
    uint32_t changes = l->changes & kinds_of_tensors;
    if (l->first && comparison_changes_type(t->c, l->first))
        changes |= CHANGED_DTYPE;
    if (l->kind == LINE_RENAMED && l->differ == 1) {
        out_text(o, "-> ");
        out_name(o, heft_tensor_at(t->c->b, l->b).name);
    } else if (l->first && l->first->d.incomparable) {
        out_text(o, "other parts or sizes");
    } else if (l->first && changes) {
        put_kind(o, t->c->view_a, l->a, changes);
        out_text(o, " -> ");
        put_kind(o, t->c->view_b, l->b, changes);
    } else {
        out_char(o, '-');
    }
}

/* Write a number of a tensor whose values differ. */
static void put_number(outbuf *o, const diff_table *t, const diff_line *l, int field)
{
    const difference *d = &l->d;
    double reals[] = { [MAX_ABS] = d->max_abs,
                       [MAX_REL] = d->max_rel,
                       [MEAN_ABS] = difference_mean_abs(d),
                       [RMSE] = difference_rmse(d),
                       [NMSE] = difference_nmse(d),
                       [COSINE] = difference_cosine(d) };
    uint64_t at[POSITION_RANK];
    bool has_value = l->changes & CHANGED_VALUE && !d->incomparable;
    bool has_reals = has_value && !d->bytewise;
    if (has_value && (field == DIFFER || field == ELEMENTS))
        out_u64(o, field == DIFFER ? d->differing : d->compared);
    else if (has_value && field == FIRST && l->first)
        out_shape(o, at, diff_first_position(at, t->c, l->first));
    else if (field == FIRST || !has_reals)
        out_char(o, '-');
    else
        out_statistic(o, field == COSINE ? COSINE_DIGITS : t->digits, reals[field]);
}

static void put_name(outbuf *o, const diff_table *t, uint32_t row, const diff_line *l)
{
    if (!t->style->tree)
        out_name(o, l->name);
    else if (t->style->raw)
        out_name(o, module_prefix(&t->tree, &t->tree.rows[row]));
    else
        out_module(o, &t->tree, &t->tree.rows[row]);
}

static const diff_line *line_at(const diff_table *t, uint32_t row)
{
    return t->style->tree ? &t->sums[row] : &t->lines[row];
}

static void put_cell(outbuf *o, const table_row *row, int field)
{
    const diff_table *t = row->ctx;
    const diff_line *l = line_at(t, row->id);
    bool is_module = t->style->tree && t->tree.rows[row->id].is_module;
    if (field == NAME)
        put_name(o, t, row->id, l);
    else if (field == CHANGE)
        put_change(o, l);
    else if (field == DETAIL && is_module)
        out_format(o, "%u %s", l->differ, l->differ == 1 ? "tensor" : "tensors");
    else if (field == DETAIL)
        put_detail(o, t, l);
    else
        put_number(o, t, l, field);
}

static term_colour colour_of(const table_row *row)
{
    static const term_colour colours[] = { [LINE_PAIR] = COLOUR_NONE,
                                           [LINE_RENAMED] = COLOUR_YELLOW,
                                           [LINE_ONLY_A] = COLOUR_RED,
                                           [LINE_ONLY_B] = COLOUR_GREEN };
    return colours[line_at(row->ctx, row->id)->kind];
}

/* ---- the table ---- */

/* A column appears if a row of the table has something in it; with --raw all columns do. */
static size_t choose_columns(column out[COLUMNS], uint8_t hides[COLUMNS], const diff_table *t)
{
    bool has_details = t->style->tree || t->style->raw, has_values = t->style->raw;
    size_t n = 0;
    for (uint32_t i = 0; i < t->count; i++) {
        const diff_line *l = &t->lines[i];
        has_values = has_values || l->changes & CHANGED_VALUE;
        has_details = has_details || l->kind == LINE_RENAMED ||
                      l->changes & ~(uint32_t)CHANGED_VALUE || l->d.incomparable ||
                      (l->first && comparison_changes_type(t->c, l->first));
    }
    for (size_t i = 0; i < COLUMNS; i++) {
        int field = columns[i].column.field;
        if ((field == DETAIL && !has_details) || (field > DETAIL && !has_values))
            continue;
        out[n] = columns[i].column;
        hides[n++] = columns[i].hides;
    }
    return n;
}

static void print_rows(outbuf *o, const diff_table *t)
{
    column chosen[COLUMNS];
    uint8_t hides[COLUMNS];
    uint32_t rows = t->style->tree ? t->tree.row_count : t->count;
    uint64_t limit = t->style->limit;
    table printed = { .columns = chosen,
                      .width = choose_columns(chosen, hides, t),
                      .cell = put_cell,
                      .ctx = t,
                      .count = limit && limit < rows ? (uint32_t)limit : rows,
                      .threads = t->c->session->threads,
                      .raw = t->style->raw,
                      .hides = hides,
                      .colour = colour_of };
    table_print(o, &printed);
    if (printed.count < rows && !t->style->raw && !t->style->lossy)
        out_format(o, "... and %u more; --limit %u shows all\n", rows - printed.count, rows);
}

int diff_table_print(outbuf *o, const comparison *c, const diff_style *s)
{
    diff_table t = { .c = c, .style = s, .digits = term_is_stdout() && !s->raw ? 4 : 6 };
    bool ok = list_lines(&t);
    if (ok && s->sort)
        ok = sort_lines(&t, key_of(s->sort));
    if (ok && s->tree)
        ok = build_tree(&t);
    if (ok)
        print_rows(o, &t);
    module_tree_close(&t.tree);
    free(t.sums);
    free(t.lines);
    return ok ? CODE_DONE : say_status(HEFT_E_NOMEM, c->path_a, "no memory for the table");
}

/* Return the number of tensors with other values of which one side is quantised. */
static size_t count_lossy(const comparison *c)
{
    size_t n = 0;
    for (size_t i = 0; i < c->count; i++)
        n += is_lossy_change(c, &c->pairs[i]);
    return n;
}

int diff_table_print_worst(outbuf *o, const comparison *c, const diff_style *s)
{
    enum { WORST = 10 };
    const diff_style worst = { .sort = "nmse", .limit = WORST, .lossy = true };
    size_t count = count_lossy(c);
    if (count <= WORST || s->sort || s->limit || s->tree || s->raw)
        return CODE_DONE;
    out_format(o, "\nThe %d of %zu quantised tensors that are farthest apart (by NMSE):\n", WORST,
               count);
    int code = diff_table_print(o, c, &worst);
    out_char(o, '\n');
    return code;
}

uint32_t diff_first_position(uint64_t at[POSITION_RANK], const comparison *c, const pair *p)
{
    heft_tensor t = heft_tensor_at(c->b, p->b);
    if (!p->d.bytewise && p->d.first < tensor_elements(&t))
        return tensor_position(at, &t, p->d.first);
    at[0] = p->d.first;
    return 1;
}
