/* cmd_stats.c - `heft stats`: minimum, maximum, mean and further statistics of every tensor. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "models/model.h"
#include "models/module_tree.h"
#include "options/command.h"
#include "process/columns.h"
#include "text/number_text.h"
#include "values/summary.h"

typedef struct stats_run {
    const session *session;
    model_view view;
    const heft_file *f; /* the view of the model */
    const char *path;
    selection chosen;
    summary *sums;      /* one per selected tensor */
    module_tree tree;   /* with --tree, else empty */
    summary *tree_sums; /* one per row of the tree */
    bool as_json, raw, finite, as_tree, quantiles;
    int digits; /* digits of real numbers in the table */
    uint64_t depth;
} stats_run;

static heft_tensor tensor_of(const stats_run *v, uint32_t row)
{
    return heft_tensor_at(v->f, selected(&v->chosen, row));
}

/* ---- what is known of a tensor, in a table and in JSON ---- */

enum { NAME, DTYPE, COUNT, REAL, SPARSITY, HISTOGRAM, QUANTILE };

static const struct {
    const char *key;
    int kind;
    size_t at; /* offset of the member in summary */
} fields[] = {
    { "name", NAME, 0 },
    { "dtype", DTYPE, 0 },
    { "count", COUNT, offsetof(summary, count) },
    { "min", REAL, offsetof(summary, min) },
    { "max", REAL, offsetof(summary, max) },
    { "mean", REAL, offsetof(summary, mean) },
    { "std", REAL, offsetof(summary, deviation) },
    { "zeros", COUNT, offsetof(summary, zeros) },
    { "nan", COUNT, offsetof(summary, nans) },
    { "inf", COUNT, offsetof(summary, infinities) },
    { "sparsity", SPARSITY, 0 },
    { "histogram", HISTOGRAM, offsetof(summary, bins) },
};
enum { FIELDS = sizeof fields / sizeof *fields };

enum { COLUMNS = FIELDS + QUANTILES, FIRST_QUANTILE = FIELDS };
_Static_assert((int)COLUMNS <= (int)TABLE_COLUMNS, "the table is too wide");
static const column columns[COLUMNS] = {
    { "NAME", false, 0 },
    { "DTYPE", false, 1 },
    { "COUNT", true, 2 },
    { "MIN", true, 3 },
    { "MAX", true, 4 },
    { "MEAN", true, 5 },
    { "STD", true, 6 },
    { "ZEROS", true, 7 },
    { "NAN", true, 8 },
    { "INF", true, 9 },
    { "SPARSITY", true, 10 },
    { "HISTOGRAM", false, 11 },
    { "P1", true, FIRST_QUANTILE },
    { "P5", true, FIRST_QUANTILE + 1 },
    { "P25", true, FIRST_QUANTILE + 2 },
    { "P50", true, FIRST_QUANTILE + 3 },
    { "P75", true, FIRST_QUANTILE + 4 },
    { "P95", true, FIRST_QUANTILE + 5 },
    { "P99", true, FIRST_QUANTILE + 6 },
};

/* The order in which columns are hidden on a narrow terminal; the counts of NaN and infinities only
 * if all are 0. */
static const uint8_t hides[COLUMNS] = {
    0, 9, 11, 1, 1, 3, 4, 13, 12, 12, 10, 5, 6, 8, 7, 2, 7, 8, 6
};
enum { NAN_COLUMN = 8, INF_COLUMN = 9 };

/* Draw one of eight block characters per bin, scaled to the fullest bin, and a space for an empty
 * bin. The last bin that is not empty ends the cell. */
static void put_histogram(outbuf *o, const summary *s)
{
    static const char *const blocks[] = { "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█" };
    uint64_t most = 0;
    size_t end = SUMMARY_BINS;
    for (size_t i = 0; i < SUMMARY_BINS; i++)
        most = s->bins[i] > most ? s->bins[i] : most;
    while (end && !s->bins[end - 1])
        end--;
    for (size_t i = 0; i < end; i++)
        out_text(o, s->bins[i] ? blocks[(size_t)((double)s->bins[i] / (double)most * 7.0 + 0.5)]
                               : " ");
    if (!most)
        out_char(o, '-');
}

static void put_quantile(outbuf *o, const stats_run *v, const summary *s, size_t i)
{
    if (s->has_quantiles)
        out_format(o, "%.*g", v->digits, s->quantiles[i]);
    else
        out_char(o, '-');
}

/* Return the kind of a field of the table, where the quantiles follow the rows of fields[]. */
static int kind_of(int field)
{
    return field < FIELDS ? fields[field].kind : QUANTILE;
}

static void put_number(outbuf *o, const stats_run *v, const summary *s, int field)
{
    int kind = fields[field].kind;
    const void *at = (const char *)s + fields[field].at;
    if (kind == HISTOGRAM)
        put_histogram(o, s);
    else if (!s->numeric || (kind == REAL && !s->finite) || (kind == SPARSITY && !s->count))
        out_char(o, '-');
    else if (kind == COUNT)
        out_u64(o, *(const uint64_t *)at);
    else if (kind == SPARSITY)
        out_format(o, "%.3g%%", 100 * (double)s->zeros / (double)s->count);
    else
        out_format(o, "%.*g", v->digits, *(const double *)at);
}

/* row->id is an index into the selection. */
static void put_cell(outbuf *o, const table_row *row, int field)
{
    const stats_run *v = row->ctx;
    const summary *s = &v->sums[row->id];
    if (kind_of(field) == QUANTILE)
        put_quantile(o, v, s, (size_t)(field - FIRST_QUANTILE));
    else if (kind_of(field) == NAME)
        out_name(o, tensor_of(v, row->id).name);
    else if (kind_of(field) == DTYPE)
        view_put_type(o, &v->view, selected(&v->chosen, row->id));
    else
        put_number(o, v, s, field);
}

/* ---- modules ---- */

/* Return the element type that all tensors of a module have, or HEFT_UNTYPED. Quantised tensors
 * have those of their numbers. */
static heft_dtype common_type(const stats_run *v, const module_row *r)
{
    heft_dtype type = heft_tensor_at(v->f, v->tree.members[r->first].id).dtype;
    for (uint32_t i = r->first + 1; i < r->end; i++)
        if (heft_tensor_at(v->f, v->tree.members[i].id).dtype != type)
            return HEFT_UNTYPED;
    return type;
}

/* row->id is a row of the tree. */
static void put_tree_cell(outbuf *o, const table_row *row, int field)
{
    const stats_run *v = row->ctx;
    const module_row *r = &v->tree.rows[row->id];
    const summary *s = &v->tree_sums[row->id];
    if (kind_of(field) == QUANTILE)
        put_quantile(o, v, s, (size_t)(field - FIRST_QUANTILE));
    else if (kind_of(field) == NAME && v->raw)
        out_name(o, module_prefix(&v->tree, r));
    else if (kind_of(field) == NAME)
        out_module(o, &v->tree, r);
    else if (kind_of(field) == DTYPE && !common_type(v, r))
        out_text(o, "mixed");
    else if (kind_of(field) == DTYPE)
        out_dtype(o, common_type(v, r));
    else
        put_number(o, v, s, field);
}

/* Merge the statistics of the tensors in each module. index_of: index into the selection by id. */
static void merge_modules(stats_run *v, const uint32_t *index_of)
{
    for (uint32_t i = 0; i < v->tree.row_count; i++) {
        const module_row *r = &v->tree.rows[i];
        summary sum = summary_of_nothing();
        for (uint32_t k = r->first; k < r->end; k++)
            summary_merge(&sum, &v->sums[index_of[v->tree.members[k].id]]);
        v->tree_sums[i] = r->is_module ? sum : v->sums[index_of[v->tree.members[r->first].id]];
    }
}

static int build_tree(stats_run *v)
{
    if (!module_tree_open(&v->tree, v->f, v->path, &v->chosen, v->depth))
        return CODE_SYSTEM;
    uint32_t *index_of = malloc(((size_t)heft_tensor_count(v->f) + 1) * sizeof *index_of);
    v->tree_sums = malloc(((size_t)v->tree.row_count + 1) * sizeof *v->tree_sums);
    for (uint32_t i = 0; index_of && i < v->chosen.count; i++)
        index_of[selected(&v->chosen, i)] = i;
    bool ok = index_of && v->tree_sums;
    if (ok)
        merge_modules(v, index_of);
    free(index_of);
    return ok ? CODE_DONE : say_status(HEFT_E_NOMEM, v->path, "no memory for the modules");
}

/* ---- JSON ---- */

/* Set the position of the tensor's first NaN or infinity, of which the tensor has one. Return the
 * number of dimensions: of the tensor or, for a tensor that is not dense, of the list of values. */
static uint32_t first_position(uint64_t at[POSITION_RANK], const stats_run *v, uint32_t row)
{
    heft_tensor t = tensor_of(v, row);
    uint64_t element = v->sums[row].first_not_finite;
    element /= number_kind_of(t.dtype) == NUMBER_COMPLEX ? 2 : 1;
    return tensor_position(at, &t, element);
}

static bool has_not_finite(const summary *s)
{
    return s->first_not_finite != UINT64_MAX;
}

static void json_extras(json *j, const stats_run *v, uint32_t row)
{
    const summary *s = &v->sums[row];
    uint64_t at[POSITION_RANK];
    if (has_not_finite(s))
        json_member_shape(j, "first_not_finite", at, first_position(at, v, row));
    else
        json_member_null(j, "first_not_finite");
}

static void json_quantiles(json *j, const summary *s)
{
    if (!s->has_quantiles) {
        json_member_null(j, "quantiles");
        return;
    }
    json_member_begin(j, "quantiles", '{');
    for (size_t i = 0; i < QUANTILES; i++) {
        char key[4];
        snprintf(key, sizeof key, "%u", quantile_percents[i] % 1000);
        json_member_f64(j, key, s->quantiles[i]);
    }
    json_end(j, '}');
}

static void json_numbers(json *j, const summary *s)
{
    for (size_t i = 0; i < FIELDS; i++) {
        const void *at = (const char *)s + fields[i].at;
        if (fields[i].kind == COUNT && s->numeric)
            json_member_u64(j, fields[i].key, *(const uint64_t *)at);
        else if (fields[i].kind == REAL && s->numeric && s->finite)
            json_member_f64(j, fields[i].key, *(const double *)at);
        else if (fields[i].kind == COUNT || fields[i].kind == REAL)
            json_member_null(j, fields[i].key);
    }
    if (s->numeric && s->count)
        json_member_f64(j, "sparsity", (double)s->zeros / (double)s->count);
    else
        json_member_null(j, "sparsity");
}

static void json_tensor(json *j, const stats_run *v, uint32_t row)
{
    heft_tensor t = tensor_of(v, row);
    const summary *s = &v->sums[row];
    json_begin(j, '{');
    json_member_str(j, "name", t.name);
    json_member_dtype(j, "dtype", t.dtype);
    json_member_shape(j, "shape", t.dims, t.rank);
    view_json_type(j, &v->view, selected(&v->chosen, row));
    json_numbers(j, s);
    json_quantiles(j, s);
    json_member_begin(j, "histogram", '[');
    for (size_t i = 0; s->numeric && i < SUMMARY_BINS; i++)
        json_u64(j, s->bins[i]);
    json_end(j, ']');
    json_extras(j, v, row);
    json_end(j, '}');
}

static void json_modules(json *j, const stats_run *v)
{
    json_member_begin(j, "modules", '[');
    for (uint32_t i = 0; i < v->tree.row_count; i++) {
        const module_row *r = &v->tree.rows[i];
        if (!r->is_module)
            continue;
        json_line(j);
        json_begin(j, '{');
        json_member_str(j, "name", module_prefix(&v->tree, r));
        json_member_dtype(j, "dtype", common_type(v, r));
        json_member_u64(j, "tensors", r->end - r->first);
        json_numbers(j, &v->tree_sums[i]);
        json_end(j, '}');
    }
    json_end(j, ']');
}

static void print_json(outbuf *o, const stats_run *v)
{
    json j = json_open(o);
    json_file_head(&j, v->view.stored, v->path);
    json_member_begin(&j, "tensors", '[');
    for (uint32_t i = 0; i < v->chosen.count; i++) {
        json_line(&j);
        json_tensor(&j, v, i);
    }
    json_end(&j, ']');
    if (v->as_tree)
        json_modules(&j, v);
    json_close(&j);
}

/* ---- the command ---- */

/* Name the tensors with NaN or infinities. Return CODE_FOUND if there are any. */
static int say_not_finite(const stats_run *v)
{
    int code = CODE_DONE;
    for (uint32_t i = 0; i < v->chosen.count; i++) {
        const summary *s = &v->sums[i];
        uint64_t at[POSITION_RANK];
        outbuf text;
        if (!has_not_finite(s))
            continue;
        out_open(&text, -1);
        out_format(&text, "%llu NaN, %llu infinite, the first at ", (unsigned long long)s->nans,
                   (unsigned long long)s->infinities);
        out_shape(&text, at, first_position(at, v, i));
        message_print(&(message){ .kind = MESSAGE_FAULT,
                                  .file = v->path,
                                  .text = out_cstr(&text),
                                  .tensor = tensor_of(v, i).name,
                                  .offset = HEFT_NOWHERE });
        out_free(&text);
        code = CODE_FOUND;
    }
    return code;
}

static void print_table(outbuf *o, const stats_run *v)
{
    uint8_t order[COLUMNS];
    memcpy(order, hides, sizeof order);
    for (uint32_t i = 0; i < v->chosen.count; i++) {
        order[NAN_COLUMN] = v->sums[i].nans ? 0 : order[NAN_COLUMN];
        order[INF_COLUMN] = v->sums[i].infinities ? 0 : order[INF_COLUMN];
    }
    table t = { .columns = columns,
                .width = v->quantiles ? COLUMNS : FIELDS,
                .cell = v->as_tree ? put_tree_cell : put_cell,
                .ctx = v,
                .count = v->as_tree ? v->tree.row_count : v->chosen.count,
                .threads = v->session->threads,
                .raw = v->raw,
                .hides = order };
    table_print(o, &t);
}

static int stats(stats_run *v)
{
    outbuf o;
    const statistics_options options = { true, v->quantiles || v->as_json };
    int code = statistics_compute(v->session, &v->sums, &v->view, v->path, &v->chosen, &options);
    if (!code && v->as_tree)
        code = build_tree(v);
    if (code)
        return code;
    out_open(&o, STDOUT_FILENO);
    if (v->as_json)
        print_json(&o, v);
    else
        print_table(&o, v);
    int found = v->finite ? say_not_finite(v) : CODE_DONE;
    code = model_check_unchanged(v->view.stored, v->path);
    return out_end(&o, code ? code : found);
}

static const opt options[] = {
    { "quantiles", 0, OPT_FLAG, AT(stats_run, quantiles), NULL,
      "add columns of percentiles; P50 is the median" },
    { "tree", 0, OPT_FLAG, AT(stats_run, as_tree), NULL,
      "show the modules, with joint statistics" },
    { "depth", 0, OPT_NUMBER, AT(stats_run, depth), "N", "fold modules at this depth of --tree" },
    { "finite", 0, OPT_FLAG, AT(stats_run, finite), NULL,
      "exit with 1 if there is a NaN or an infinity" },
    { "raw-tensors", 0, OPT_FLAG, SETTING(raw_tensors), NULL, RAW_TENSORS_HELP },
    { "raw", 0, OPT_FLAG, AT(stats_run, raw), NULL, "print tab-separated rows, no titles" },
    { "json", 0, OPT_FLAG, AT(stats_run, as_json), NULL, "print one JSON document" },
    { .name = NULL },
};

static int run(const session *s, void *ctx)
{
    stats_run *v = ctx;
    heft_file *f = NULL;
    v->digits = term_is_stdout() && !v->raw ? 4 : 6;
    if (v->depth && !v->as_tree)
        return say_usage("stats", "--depth needs --tree");
    v->session = s;
    v->path = s->args.item[0];
    int code = model_open_whole(s, &f, v->path);
    if (!code)
        code = model_view_open(&v->view, s, f, v->path, VIEW_TO_READ);
    v->f = v->view.f;
    if (!code)
        code = model_select(s, &v->chosen, v->f, v->path, s->args.item + 1, s->args.count - 1)
                   ? stats(v)
                   : CODE_SYSTEM;
    free(v->chosen.ids);
    free(v->sums);
    free(v->tree_sums);
    module_tree_close(&v->tree);
    model_view_close(&v->view);
    heft_file_close(f);
    return code;
}

const command command_stats = {
    .name = "stats",
    .args = "FILE [GLOB...]",
    .summary = "compute minimum, maximum, mean and more of every tensor",
    .description =
        "Computes statistics of every tensor: minimum, maximum, mean, standard deviation,\n"
        "numbers of zeros, NaN and infinities, sparsity and a histogram. NaN and infinities are\n"
        "excluded from the other figures; a complex number counts as two values.",
    .example = "heft stats model.safetensors '*.bias'",
    .group = GROUP_LOOK,
    .traits = COMMAND_PAGED,
    .options = options,
    .request_bytes = sizeof(stats_run),
    .run = run,
};
