#include "models/module_tree.h"
#include "text/number_text.h"

/* ---- sums over tensors ---- */

void totals_add(totals *sum, const model_view *v, const uint32_t *tied, uint32_t id)
{
    sum->tensors++;
    if (tied && tied[id] != id)
        return;
    sum->parameters = add_saturated(sum->parameters, view_parameters(v, id));
    sum->bytes = add_length(sum->bytes, view_bytes(v, id));
}

void out_size_or_bytes(outbuf *o, uint64_t bytes, bool as_bytes)
{
    if (as_bytes)
        out_u64(o, bytes);
    else
        out_size(o, bytes);
}

void out_totals(outbuf *o, const totals *sum, bool as_bytes)
{
    out_u64(o, sum->tensors);
    out_text(o, sum->tensors == 1 ? " tensor, " : " tensors, ");
    out_count(o, sum->parameters);
    out_text(o, sum->parameters == 1 ? " parameter, " : " parameters, ");
    out_size_or_bytes(o, sum->bytes, as_bytes);
    out_text(o, as_bytes ? " bytes\n" : "\n");
}

/* ---- sums over a model ---- */

/* Add the sums of the element types, in their order. */
static void sum_stored_types(model_sums *s)
{
    type_sum of[HEFT_DTYPES] = { { 0, { 0, 0, 0 } } };
    for (uint32_t i = 0; i < heft_tensor_count(s->v->f); i++) {
        heft_dtype t = heft_tensor_at(s->v->f, i).dtype;
        type_sum *one = &of[t < HEFT_DTYPES ? t : HEFT_UNTYPED];
        if (view_quantised(s->v, i) != HEFT_NONE)
            continue;
        one->first = one->sum.tensors ? one->first : i;
        totals_add(&one->sum, s->v, s->tied, i);
    }
    for (heft_dtype t = 0; t < HEFT_DTYPES; t++)
        if (of[t].sum.tensors)
            s->types[s->type_count++] = of[t];
}

/* Add the sums of the types of quantised tensors, in the order of the file. */
static void sum_quantised_types(model_sums *s)
{
    view_types of = { .count = 0 };
    uint32_t begin = s->type_count;
    for (uint32_t i = 0; i < heft_tensor_count(s->v->f); i++) {
        uint32_t k = view_quantised(s->v, i) == HEFT_NONE ? VIEW_TYPES
                                                          : view_types_add(&of, s->v, i);
        if (k == VIEW_TYPES)
            continue;
        s->types[begin + k].first = of.first[k];
        totals_add(&s->types[begin + k].sum, s->v, s->tied, i);
    }
    s->type_count += of.count;
}

bool model_sums_open(model_sums *s, const model_view *v, const char *path, const uint32_t *tied)
{
    selection every = { NULL, heft_tensor_count(v->f) };
    *s = (model_sums){ .v = v, .tied = tied };
    for (uint32_t i = 0; i < every.count; i++)
        totals_add(&s->all, v, tied, i);
    sum_stored_types(s);
    sum_quantised_types(s);
    if (!module_tree_open(&s->tree, v->f, path, &every, 1))
        return false;
    s->depth = module_tree_common(&s->tree);
    return !s->depth || module_tree_fold(&s->tree, path, s->depth + 1);
}

void model_sums_close(model_sums *s)
{
    module_tree_close(&s->tree);
}

static totals sum_of(const model_sums *s, const module_row *row)
{
    totals sum = { 0, 0, 0 };
    for (uint32_t i = row->first; i < row->end; i++)
        totals_add(&sum, s->v, s->tied, s->tree.members[i].id);
    return sum;
}

/* Return whether the row is a module that is listed, or a tensor beside such modules. */
static bool is_listed(const model_sums *s, const module_row *row)
{
    return row->depth == s->depth;
}

/* ---- text ---- */

static void begin_line(outbuf *o, const char *label, bool is_first)
{
    out_format(o, "%-11s ", is_first ? label : "");
}

void model_sums_put_type(outbuf *o, const model_sums *s, uint32_t type)
{
    uint32_t first = s->types[type].first;
    if (dtype_name(heft_tensor_at(s->v->f, first).dtype))
        view_put_type(o, s->v, first);
    else
        out_text(o, "untyped");
}

static void print_types(outbuf *o, const model_sums *s)
{
    for (uint32_t i = 0; i < s->type_count; i++) {
        begin_line(o, "Types", !i);
        model_sums_put_type(o, s, i);
        out_text(o, ": ");
        out_totals(o, &s->types[i].sum, false);
    }
}

static void print_modules(outbuf *o, const model_sums *s)
{
    enum { MAX_SHOWN = 10 };
    uint32_t listed = 0;
    for (uint32_t i = 0; i < s->tree.row_count; i++) {
        const module_row *row = &s->tree.rows[i];
        if (!is_listed(s, row) || listed++ >= MAX_SHOWN)
            continue;
        totals sum = sum_of(s, row);
        begin_line(o, "Modules", listed == 1);
        out_name(o, module_prefix(&s->tree, row));
        out_text(o, ": ");
        out_totals(o, &sum, false);
    }
    if (listed > MAX_SHOWN) {
        begin_line(o, "", true);
        out_format(o, "... and %u more (`heft ls --tree`)\n", listed - MAX_SHOWN);
    }
}

void model_sums_print(outbuf *o, const model_sums *s)
{
    begin_line(o, "Parameters", true);
    out_count(o, s->all.parameters);
    out_char(o, '\n');
    print_types(o, s);
    print_modules(o, s);
}

/* ---- JSON ---- */

static void json_sum(json *j, const totals *sum)
{
    json_member_u64(j, "tensors", sum->tensors);
    json_member_u64(j, "parameters", sum->parameters);
    json_member_u64(j, "bytes", sum->bytes);
    json_end(j, '}');
}

void model_sums_json(json *j, const model_sums *s)
{
    json_member_u64(j, "parameters", s->all.parameters);
    json_member_begin(j, "by_dtype", '[');
    for (uint32_t i = 0; i < s->type_count; i++) {
        uint32_t first = s->types[i].first;
        json_begin(j, '{');
        json_member_dtype(j, "dtype", heft_tensor_at(s->v->f, first).dtype);
        view_json_type(j, s->v, first);
        json_sum(j, &s->types[i].sum);
    }
    json_end(j, ']');
    json_member_begin(j, "modules", '[');
    for (uint32_t i = 0; i < s->tree.row_count; i++)
        if (is_listed(s, &s->tree.rows[i])) {
            totals sum = sum_of(s, &s->tree.rows[i]);
            json_begin(j, '{');
            json_member_str(j, "name", module_prefix(&s->tree, &s->tree.rows[i]));
            json_sum(j, &sum);
        }
    json_end(j, ']');
}
