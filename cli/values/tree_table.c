#include "values/tree_table.h"

#include "models/module_tree.h"
#include "process/columns.h"

typedef struct tree_table {
    const model_view *v;
    const module_tree *tree;
    const tree_style *style;
} tree_table;

enum { NAME, DTYPE, SHAPE, PARAMETERS, SIZE };

static const column columns[] = {
    { "NAME", false, NAME },   { "DTYPE", false, DTYPE },
    { "SHAPE", false, SHAPE }, { "PARAMETERS", true, PARAMETERS },
    { "SIZE", true, SIZE },
};

/* The order in which columns are hidden on a narrow terminal. */
static const uint8_t hides[] = { 0, 2, 1, 3, 0 };

static void put_name(outbuf *o, const tree_table *t, const module_row *r)
{
    if (t->style->raw)
        out_name(o, module_prefix(t->tree, r));
    else
        out_module(o, t->tree, r);
}

/* Write the element type that all tensors of the row have, or "mixed". */
static void put_dtype(outbuf *o, const tree_table *t, const module_row *r)
{
    const module_member *m = t->tree->members;
    for (uint32_t i = r->first + 1; i < r->end; i++)
        if (!view_has_same_type(t->v, m[i].id, m[r->first].id)) {
            out_text(o, "mixed");
            return;
        }
    view_put_type(o, t->v, m[r->first].id);
}

static void put_shape(outbuf *o, const tree_table *t, const module_row *r)
{
    heft_tensor info = heft_tensor_at(t->v->f, t->tree->members[r->first].id);
    if (r->is_module)
        out_format(o, "%u %s", r->end - r->first, r->end - r->first == 1 ? "tensor" : "tensors");
    else
        out_shape(o, info.dims, info.rank);
}

static void put_cell(outbuf *o, const table_row *row, int field)
{
    const tree_table *t = row->ctx;
    const module_row *r = &t->tree->rows[row->id];
    totals sum = { 0, 0, 0 };
    for (uint32_t i = r->first; i < r->end && field >= PARAMETERS; i++)
        totals_add(&sum, t->v, NULL, t->tree->members[i].id);
    if (field == NAME)
        put_name(o, t, r);
    else if (field == DTYPE)
        put_dtype(o, t, r);
    else if (field == SHAPE)
        put_shape(o, t, r);
    else if (field == SIZE)
        out_size_or_bytes(o, sum.bytes, t->style->bytes || t->style->raw);
    else if (t->style->raw || t->style->bytes)
        out_u64(o, sum.parameters);
    else
        out_count(o, sum.parameters);
}

bool tree_table_print(outbuf *o, const model_view *v, const char *path, const selection *s,
                      const tree_style *style)
{
    module_tree tree;
    if (!module_tree_open(&tree, v->f, path, s, style->depth))
        return false;
    tree_table t = { v, &tree, style };
    table rows = { .columns = columns,
                   .width = sizeof columns / sizeof *columns,
                   .cell = put_cell,
                   .ctx = &t,
                   .count = tree.row_count,
                   .threads = style->threads,
                   .raw = style->raw,
                   .hides = hides };
    table_print(o, &rows);
    module_tree_close(&tree);
    return true;
}
