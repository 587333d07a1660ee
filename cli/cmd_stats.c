/* cmd_stats.c - `heft stats`: minimum, maximum, mean and further statistics of every tensor. */
#include <stdlib.h>
#include <unistd.h>

#include "columns.h"
#include "model.h"
#include "number_text.h"
#include "opt.h"
#include "statistics.h"

enum { POSITION_RANK = 64 }; /* positions in tensors of more dimensions are a single number */

typedef struct stats_run {
    const heft_file *f;
    const char *path;
    selection chosen;
    summary *sums; /* one per selected tensor */
} stats_run;

static heft_tensor tensor_of(const stats_run *v, uint32_t row)
{
    return heft_tensor_at(v->f, selected(&v->chosen, row));
}

/* ---- what is known of a tensor, in a table and in JSON ---- */

enum { NAME, DTYPE, COUNT, REAL, HISTOGRAM };

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
    { "histogram", HISTOGRAM, offsetof(summary, bins) },
};
enum { FIELDS = sizeof fields / sizeof *fields };

static const column columns[FIELDS] = {
    { "NAME", false, 0 }, { "DTYPE", false, 1 }, { "COUNT", true, 2 },       { "MIN", true, 3 },
    { "MAX", true, 4 },   { "MEAN", true, 5 },   { "STD", true, 6 },         { "ZEROS", true, 7 },
    { "NAN", true, 8 },   { "INF", true, 9 },    { "HISTOGRAM", false, 10 },
};

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

/* row->id is an index into the selection. */
static void put_cell(outbuf *o, const table_row *row, int field)
{
    const stats_run *v = row->ctx;
    const summary *s = &v->sums[row->id];
    int kind = fields[field].kind;
    const void *at = (const char *)s + fields[field].at;
    if (kind == NAME)
        out_name(o, tensor_of(v, row->id).name);
    else if (kind == DTYPE)
        out_dtype(o, tensor_of(v, row->id).dtype);
    else if (kind == HISTOGRAM)
        put_histogram(o, s);
    else if (!s->numeric || (kind == REAL && !s->finite))
        out_char(o, '-');
    else if (kind == COUNT)
        out_u64(o, *(const uint64_t *)at);
    else
        out_format(o, "%.6g", *(const double *)at);
}

/* Set the position of the tensor's first NaN or infinity, of which the tensor has one. Return the
 * number of dimensions: of the tensor or, for a tensor that is not dense, of the list of values. */
static uint32_t first_position(uint64_t *at, const stats_run *v, uint32_t row)
{
    heft_tensor t = tensor_of(v, row);
    uint64_t element = v->sums[row].first_not_finite;
    element /= number_kind_of(t.dtype) == NUMBER_COMPLEX ? 2 : 1;
    if (t.layout != HEFT_DENSE || t.rank > POSITION_RANK) {
        at[0] = element;
        return 1;
    }
    for (uint32_t axis = t.rank; axis-- > 0; element /= t.dims[axis])
        at[axis] = element % t.dims[axis];
    return t.rank;
}

static bool has_not_finite(const summary *s)
{
    return s->first_not_finite != UINT64_MAX;
}

static void json_extras(json *j, const stats_run *v, uint32_t row)
{
    const summary *s = &v->sums[row];
    uint64_t at[POSITION_RANK];
    if (s->numeric && s->count)
        json_member_f64(j, "sparsity", (double)s->zeros / (double)s->count);
    else
        json_member_null(j, "sparsity");
    if (has_not_finite(s))
        json_member_shape(j, "first_not_finite", at, first_position(at, v, row));
    else
        json_member_null(j, "first_not_finite");
}

static void json_tensor(json *j, const stats_run *v, uint32_t row)
{
    heft_tensor t = tensor_of(v, row);
    const summary *s = &v->sums[row];
    json_begin(j, '{');
    json_member_str(j, "name", t.name);
    json_member_dtype(j, "dtype", t.dtype);
    json_member_shape(j, "shape", t.dims, t.rank);
    for (size_t i = 0; i < FIELDS; i++) {
        const void *at = (const char *)s + fields[i].at;
        if (fields[i].kind == COUNT && s->numeric)
            json_member_u64(j, fields[i].key, *(const uint64_t *)at);
        else if (fields[i].kind == REAL && s->numeric && s->finite)
            json_member_f64(j, fields[i].key, *(const double *)at);
        else if (fields[i].kind == COUNT || fields[i].kind == REAL)
            json_member_null(j, fields[i].key);
    }
    json_member_begin(j, "histogram", '[');
    for (size_t i = 0; s->numeric && i < SUMMARY_BINS; i++)
        json_u64(j, s->bins[i]);
    json_end(j, ']');
    json_extras(j, v, row);
    json_end(j, '}');
}

static void print_json(outbuf *o, const stats_run *v)
{
    json j = json_open(o);
    json_file_head(&j, v->f, v->path);
    json_member_begin(&j, "tensors", '[');
    for (uint32_t i = 0; i < v->chosen.count; i++) {
        json_line(&j);
        json_tensor(&j, v, i);
    }
    json_end(&j, ']');
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

static int stats(stats_run *v, bool as_json, bool raw, bool finite)
{
    outbuf o;
    int code = statistics_compute(&v->sums, v->f, v->path, &v->chosen, true);
    if (code)
        return code;
    table t = { .columns = columns,
                .width = FIELDS,
                .cell = put_cell,
                .ctx = v,
                .count = v->chosen.count,
                .raw = raw };
    out_open(&o, STDOUT_FILENO);
    if (as_json)
        print_json(&o, v);
    else
        table_print(&o, &t);
    return out_end(&o, finite ? say_not_finite(v) : CODE_DONE);
}

int cmd_stats(int argc, char **argv)
{
    bool as_json = false, raw = false, finite = false;
    stats_run v = { .f = NULL };
    const opt options[] = {
        { "finite", 0, OPT_FLAG, &finite, NULL, "exit with 1 if there is a NaN or an infinity" },
        { "raw", 0, OPT_FLAG, &raw, NULL, "print tab-separated rows, no titles" },
        { "json", 0, OPT_FLAG, &as_json, NULL, "print one JSON document" },
    };
    const opt_usage usage = {
        "stats",
        "FILE [GLOB...]",
        "Computes statistics of every tensor: minimum, maximum, mean, standard deviation,\n"
        "numbers of zeros, NaN and infinities, and a histogram. NaN and infinities are\n"
        "excluded from the other figures; a complex number counts as two values.",
        "heft stats model.safetensors '*.bias'",
        options,
        sizeof options / sizeof *options,
        1,
        -1,
    };
    opt_args args;
    heft_file *f = NULL;
    int code;
    if (!opt_parse(&args, &code, &usage, argc, argv))
        return code;
    v.path = args.item[0];
    code = model_open_whole(&f, v.path);
    v.f = f;
    if (!code)
        code = model_select(&v.chosen, f, v.path, args.item + 1, args.count - 1)
                   ? stats(&v, as_json, raw, finite)
                   : CODE_SYSTEM;
    free(v.chosen.ids);
    free(v.sums);
    heft_file_close(f);
    return code;
}
