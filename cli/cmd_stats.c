/* cmd_stats.c - minimum, maximum, mean and so on of every tensor. */
#include <stdlib.h>
#include <unistd.h>

#include "checks.h"
#include "columns.h"
#include "model.h"
#include "opt.h"
#include "summary.h"

typedef struct survey {
    const heft_file *f;
    const char *path;
    selection chosen;
    summary *sums; /* one for each chosen tensor */
    checks checks;
} survey;

/* ---- columns; rows are places in the selection ---- */

static heft_tensor tensor_of(const survey *v, uint32_t row)
{
    return heft_tensor_at(v->f, selected(&v->chosen, row));
}

static void cell_name(outbuf *o, const table_row *row)
{
    out_name(o, tensor_of(row->ctx, row->id).name);
}

static void cell_dtype(outbuf *o, const table_row *row)
{
    out_dtype(o, tensor_of(row->ctx, row->id).dtype);
}

static void put_count(outbuf *o, const summary *s, uint64_t v)
{
    if (s->numeric)
        out_u64(o, v);
    else
        out_char(o, '-');
}

static void put_value(outbuf *o, const summary *s, double v)
{
    if (s->numeric && s->finite)
        out_format(o, "%.6g", v);
    else
        out_char(o, '-');
}

static const summary *sum_of(const table_row *row)
{
    const survey *v = row->ctx;
    return &v->sums[row->id];
}

static void cell_count(outbuf *o, const table_row *row)
{
    put_count(o, sum_of(row), sum_of(row)->count);
}

static void cell_min(outbuf *o, const table_row *row)
{
    put_value(o, sum_of(row), sum_of(row)->min);
}

static void cell_max(outbuf *o, const table_row *row)
{
    put_value(o, sum_of(row), sum_of(row)->max);
}

static void cell_mean(outbuf *o, const table_row *row)
{
    put_value(o, sum_of(row), sum_of(row)->mean);
}

static void cell_deviation(outbuf *o, const table_row *row)
{
    put_value(o, sum_of(row), sum_of(row)->deviation);
}

static void cell_zeros(outbuf *o, const table_row *row)
{
    put_count(o, sum_of(row), sum_of(row)->zeros);
}

static void cell_nans(outbuf *o, const table_row *row)
{
    put_count(o, sum_of(row), sum_of(row)->nans);
}

static void cell_infinities(outbuf *o, const table_row *row)
{
    put_count(o, sum_of(row), sum_of(row)->infinities);
}

/* Eight blocks, the fullest bin the highest. */
static void cell_histogram(outbuf *o, const table_row *row)
{
    static const char *const blocks[] = { "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█" };
    const summary *s = sum_of(row);
    uint64_t most = 0;
    for (size_t i = 0; i < SUMMARY_BINS; i++)
        most = s->bins[i] > most ? s->bins[i] : most;
    for (size_t i = 0; most && i < SUMMARY_BINS; i++)
        out_text(o, blocks[(size_t)((double)s->bins[i] / (double)most * 7.0 + 0.5)]);
    if (!most)
        out_char(o, '-');
}

static const column columns[] = {
    { "NAME", false, cell_name },
    { "DTYPE", false, cell_dtype },
    { "COUNT", true, cell_count },
    { "MIN", true, cell_min },
    { "MAX", true, cell_max },
    { "MEAN", true, cell_mean },
    { "STD", true, cell_deviation },
    { "ZEROS", true, cell_zeros },
    { "NAN", true, cell_nans },
    { "INF", true, cell_infinities },
    { "HISTOGRAM", false, cell_histogram },
};

/* ---- JSON ---- */

static void json_count(json *j, const char *key, const summary *s, uint64_t v)
{
    json_key(j, str_of(key));
    if (s->numeric)
        json_u64(j, v);
    else
        json_null(j);
}

static void json_value(json *j, const char *key, const summary *s, double v)
{
    json_key(j, str_of(key));
    if (s->numeric && s->finite)
        json_f64(j, v);
    else
        json_null(j);
}

static void json_tensor(json *j, const survey *v, uint32_t row)
{
    heft_tensor t = tensor_of(v, row);
    const summary *s = &v->sums[row];
    json_begin(j, '{');
    json_member_str(j, "name", t.name);
    json_key(j, str_of("dtype"));
    json_dtype(j, t.dtype);
    json_key(j, str_of("shape"));
    json_shape(j, t.dims, t.rank);
    json_count(j, "count", s, s->count);
    json_value(j, "min", s, s->min);
    json_value(j, "max", s, s->max);
    json_value(j, "mean", s, s->mean);
    json_value(j, "std", s, s->deviation);
    json_count(j, "zeros", s, s->zeros);
    json_count(j, "nan", s, s->nans);
    json_count(j, "inf", s, s->infinities);
    json_member_begin(j, "histogram", '[');
    for (size_t i = 0; s->numeric && i < SUMMARY_BINS; i++)
        json_u64(j, s->bins[i]);
    json_end(j, ']');
    json_end(j, '}');
}

static void print_json(outbuf *o, const survey *v)
{
    json j = { o, false };
    json_begin(&j, '{');
    json_file_head(&j, v->f, v->path);
    json_member_begin(&j, "tensors", '[');
    for (uint32_t i = 0; i < v->chosen.count; i++) {
        json_line(&j);
        json_tensor(&j, v, i);
    }
    json_end(&j, ']');
    json_end(&j, '}');
    out_char(o, '\n');
}

/* ---- the command ---- */

static void summarise_one(void *ctx, size_t i)
{
    work *w = ctx;
    survey *v = w->ctx;
    if (work_step(w, 0))
        (void)summarise(&v->sums[i], w, v->f, v->path, selected(&v->chosen, (uint32_t)i),
                        v->checks.read);
}

static int begin_checks(survey *v)
{
    bool room = true;
    for (uint32_t i = 0; i < v->chosen.count && room && !model_opening.no_verify; i++) {
        uint32_t part = summary_part(v->f, selected(&v->chosen, i));
        room = part == HEFT_NONE || checks_add(&v->checks, part);
    }
    if (room)
        return model_opening.no_verify ? CODE_DONE : checks_begin(&v->checks, v->f, v->path);
    say(v->path, "no memory for a list of parts");
    return CODE_SYSTEM;
}

static int survey_all(survey *v)
{
    work w = { .ctx = v, .path = v->path };
    v->sums = calloc((size_t)v->chosen.count + 1, sizeof *v->sums);
    if (!v->sums) {
        say(v->path, "no memory for the results");
        return CODE_SYSTEM;
    }
    int code = begin_checks(v);
    if (code)
        return code;
    for (uint32_t i = 0; i < v->chosen.count; i++)
        w.total += 2 * heft_tensor_bytes(v->f, selected(&v->chosen, i));
    if (work_run(&w, v->chosen.count, summarise_one))
        return say_error(w.path, &w.err);
    return checks_end(&v->checks, v->path);
}

static int stats(survey *v, bool as_json, bool raw)
{
    outbuf o;
    int code = survey_all(v);
    if (code)
        return code;
    table t = { .columns = columns,
                .width = sizeof columns / sizeof *columns,
                .ctx = v,
                .count = v->chosen.count,
                .raw = raw };
    out_open(&o, STDOUT_FILENO);
    if (as_json)
        print_json(&o, v);
    else
        table_print(&o, &t);
    return out_end(&o, CODE_DONE);
}

int cmd_stats(int argc, char **argv)
{
    bool as_json = false, raw = false;
    survey v = { .f = NULL };
    const opt options[] = {
        { "raw", 0, OPT_FLAG, &raw, NULL, "tab separated, no titles" },
        { "json", 0, OPT_FLAG, &as_json, NULL, "one JSON document" },
    };
    const opt_usage usage = {
        "stats",
        "FILE [GLOB...]",
        "Says what the values of every tensor come to: minimum, maximum, mean, standard\n"
        "deviation, how many are zero, NaN or infinite, and how they are spread.  NaN and\n"
        "infinities are left out of the rest; complex numbers count as two.",
        "heft stats model.safetensors '*.bias'",
        options,
        sizeof options / sizeof *options,
        1,
        -1,
    };
    opt_args args;
    heft_file *f;
    int code;
    if (!opt_parse(&args, &code, &usage, argc, argv))
        return code;
    v.path = args.item[0];
    code = model_open_whole(&f, v.path);
    if (code)
        return code;
    v.f = f;
    code = CODE_SYSTEM;
    if (model_select(&v.chosen, f, v.path, args.item + 1, args.count - 1))
        code = stats(&v, as_json, raw);
    free(v.chosen.ids);
    free(v.sums);
    checks_close(&v.checks);
    heft_file_close(f);
    return code;
}
