/* cmd_diff.c - `heft diff`: compare names, element types, shapes, layouts and values of two
 * files. */
#include <math.h>
#include <unistd.h>

#include "comparison_share.h"
#include "model.h"
#include "opt.h"
#include "stdin_file.h"

static const char *change_name(uint32_t change)
{
    return change == CHANGED_DTYPE    ? "dtype"
           : change == CHANGED_SHAPE  ? "shape"
           : change == CHANGED_LAYOUT ? "layout"
                                      : "value";
}

/* Store the position of the first difference: in the shape of the tensor, in the list of all
 * compared elements, or in the bytes. Return the number of dimensions. */
static uint32_t first_position(uint64_t at[POSITION_RANK], const comparison *c, const pair *p)
{
    heft_tensor t = heft_tensor_at(c->b, p->b);
    if (!p->d.bytewise && p->d.first < tensor_elements(&t))
        return tensor_position(at, &t, p->d.first);
    at[0] = p->d.first;
    return 1;
}

/* ---- text ---- */

static void put_lonely(outbuf *o, const heft_file *f, const char *path, const uint32_t *partner)
{
    for (uint32_t i = 0; i < heft_tensor_count(f); i++) {
        if (partner[i] != HEFT_NONE)
            continue;
        out_name(o, heft_tensor_at(f, i).name);
        out_text(o, ": only in ");
        out_message(o, stdin_label(path));
        out_char(o, '\n');
    }
}

static void put_renamed(outbuf *o, const comparison *c)
{
    for (size_t i = 0; i < c->renamed_count; i++) {
        out_name(o, c->names[c->renamed[i].a]);
        out_text(o, ": renamed to ");
        out_name(o, heft_tensor_at(c->b, c->renamed[i].b).name);
        out_char(o, '\n');
    }
}

static void put_statistics(outbuf *o, const difference *d)
{
    out_format(o, ", max abs %.6g, max rel %.6g", d->max_abs, d->max_rel);
    if (d->finite)
        out_format(o, ", mean abs %.6g, rmse %.6g, nmse %.6g", difference_mean_abs(d),
                   difference_rmse(d), difference_nmse(d));
    double cosine = difference_cosine(d);
    if (!isnan(cosine))
        out_format(o, ", cosine %.9g", cosine);
}

static void put_value_change(outbuf *o, const comparison *c, const pair *p)
{
    const difference *d = &p->d;
    uint64_t at[POSITION_RANK];
    if (d->incomparable) {
        out_text(o, "values: different parts or sizes");
        return;
    }
    out_format(o, "values: %llu of %llu %s differ", (unsigned long long)d->differing,
               (unsigned long long)d->compared, d->bytewise ? "bytes" : "elements");
    if (!d->bytewise)
        put_statistics(o, d);
    out_text(o, ", first at ");
    out_shape(o, at, first_position(at, c, p));
}

static void put_change(outbuf *o, const comparison *c, const pair *p, uint32_t change)
{
    heft_tensor a = heft_tensor_at(c->a, p->a), b = heft_tensor_at(c->b, p->b);
    out_name(o, b.name);
    out_text(o, ": ");
    if (change == CHANGED_DTYPE) {
        out_text(o, "dtype ");
        out_dtype(o, a.dtype);
        out_text(o, " -> ");
        out_dtype(o, b.dtype);
    } else if (change == CHANGED_SHAPE) {
        out_text(o, "shape ");
        out_shape(o, a.dims, a.rank);
        out_text(o, " -> ");
        out_shape(o, b.dims, b.rank);
    } else if (change == CHANGED_LAYOUT) {
        out_text(o, "layout ");
        out_name(o, heft_tensor_layout_name(c->a, p->a));
        out_text(o, " -> ");
        out_name(o, heft_tensor_layout_name(c->b, p->b));
    } else {
        put_value_change(o, c, p);
    }
    out_char(o, '\n');
}

static void put_pairs(outbuf *o, const comparison *c)
{
    for (size_t i = 0; i < c->count; i++) {
        const pair *p = &c->pairs[i];
        if (!p->changes && model_settings.verbose) {
            out_name(o, heft_tensor_at(c->b, p->b).name);
            out_text(o, ": equal\n");
        }
        for (uint32_t change = CHANGED_DTYPE; change <= CHANGED_VALUE; change <<= 1)
            if (p->changes & change)
                put_change(o, c, p, change);
    }
}

static void print_text(outbuf *o, const comparison *c)
{
    put_lonely(o, c->a, c->path_a, c->partner_a);
    put_lonely(o, c->b, c->path_b, c->partner_b);
    put_renamed(o, c);
    put_pairs(o, c);
    comparison_put_summary(o, c);
    out_char(o, '\n');
}

/* ---- JSON ---- */

static void json_lonely(json *j, const char *key, const heft_file *f, const uint32_t *partner)
{
    json_member_begin(j, key, '[');
    for (uint32_t i = 0; i < heft_tensor_count(f); i++)
        if (partner[i] == HEFT_NONE)
            json_str(j, heft_tensor_at(f, i).name);
    json_end(j, ']');
}

static void json_renamed(json *j, const comparison *c)
{
    json_member_begin(j, "renamed", '[');
    for (size_t i = 0; i < c->renamed_count; i++) {
        json_line(j);
        json_begin(j, '{');
        json_member_str(j, "a", heft_tensor_at(c->a, c->renamed[i].a).name);
        json_member_str(j, "b", heft_tensor_at(c->b, c->renamed[i].b).name);
        json_end(j, '}');
    }
    json_end(j, ']');
}

static void json_first(json *j, const comparison *c, const pair *p)
{
    uint64_t at[POSITION_RANK];
    if (p->d.first == HEFT_NOWHERE)
        json_member_null(j, "first");
    else
        json_member_shape(j, "first", at, first_position(at, c, p));
}

/* Write the statistics, or null for values that are not numbers and for undefined statistics. */
static void json_value_change(json *j, const comparison *c, const pair *p)
{
    const difference *d = &p->d;
    bool has_numbers = !d->bytewise && !d->incomparable;
    const struct {
        const char *key;
        double value;
    } rows[] = {
        { "max_abs", d->max_abs },
        { "max_rel", d->max_rel },
        { "mean_abs", difference_mean_abs(d) },
        { "rmse", difference_rmse(d) },
        { "nmse", difference_nmse(d) },
        { "cosine", difference_cosine(d) },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (has_numbers && !isnan(rows[i].value))
            json_member_f64(j, rows[i].key, rows[i].value);
        else
            json_member_null(j, rows[i].key);
    json_member_length(j, "differing", d->incomparable ? HEFT_UNKNOWN_LENGTH : d->differing);
    json_member_length(j, "compared", d->incomparable ? HEFT_UNKNOWN_LENGTH : d->compared);
    json_first(j, c, p);
}

static void json_side(json *j, const char *key, const heft_file *f, uint32_t id, uint32_t change)
{
    heft_tensor t = heft_tensor_at(f, id);
    if (change == CHANGED_DTYPE)
        json_member_dtype(j, key, t.dtype);
    else if (change == CHANGED_SHAPE)
        json_member_shape(j, key, t.dims, t.rank);
    else
        json_member_str(j, key, heft_tensor_layout_name(f, id));
}

static void json_change(json *j, const comparison *c, const pair *p, uint32_t change)
{
    json_line(j);
    json_begin(j, '{');
    json_member_str(j, "name", heft_tensor_at(c->b, p->b).name);
    json_member_str(j, "what", str_of(change_name(change)));
    if (change == CHANGED_VALUE) {
        json_value_change(j, c, p);
    } else {
        json_side(j, "a", c->a, p->a, change);
        json_side(j, "b", c->b, p->b, change);
    }
    json_end(j, '}');
}

static void json_summary(json *j, const comparison *c)
{
    json_member_begin(j, "summary", '{');
    json_member_u64(j, "tensors", c->all_count);
    json_member_u64(j, "equal", c->equal_count);
    json_member_u64(j, "differ", c->count - c->equal_count);
    json_member_u64(j, "renamed", c->renamed_count);
    json_member_u64(j, "only_in_a", c->only_a);
    json_member_u64(j, "only_in_b", c->only_b);
    json_end(j, '}');
}

static void print_json(outbuf *o, const comparison *c)
{
    json j = json_open(o);
    json_member_bool(&j, "equal", c->equal);
    if (c->left_out)
        json_member_str(&j, "left_out", str_of(c->left_out));
    json_lonely(&j, "only_in_a", c->a, c->partner_a);
    json_lonely(&j, "only_in_b", c->b, c->partner_b);
    json_renamed(&j, c);
    json_member_begin(&j, "changed", '[');
    for (size_t i = 0; i < c->count; i++)
        for (uint32_t change = CHANGED_DTYPE; change <= CHANGED_VALUE; change <<= 1)
            if (c->pairs[i].changes & change)
                json_change(&j, c, &c->pairs[i], change);
    json_end(&j, ']');
    json_summary(&j, c);
    json_close(&j);
}

/* ---- the command ---- */

static int diff(comparison *c, result_share *shares, bool as_json)
{
    outbuf o;
    int code = comparison_run_shares(c, shares);
    if (code || shares->share.count)
        return code;
    out_open(&o, STDOUT_FILENO);
    if (as_json)
        print_json(&o, c);
    else if (!model_settings.quiet)
        print_text(&o, c);
    code = model_check_unchanged(c->a, c->path_a);
    if (!code)
        code = model_check_unchanged(c->b, c->path_b);
    return out_end(&o, code || c->equal ? code : CODE_FOUND);
}

int cmd_diff(int argc, char **argv)
{
    comparison c = { .a = NULL };
    bool as_json = false;
    result_share shares = { .command = "diff", .words = COMPARISON_WORDS };
    const opt options[] = {
        { "atol", 0, OPT_REAL, &c.t.absolute, "X", "tolerate differences up to X" },
        { "rtol", 0, OPT_REAL, &c.t.relative, "X",
          "tolerate differences up to X times the value in B" },
        { "ulp", 0, OPT_NUMBER, &c.t.ulp, "N", "tolerate N spacings of the less precise type" },
        { "ignore-dtype", 0, OPT_FLAG, &c.ignore_dtype, NULL,
          "equal values of different element types are equal" },
        { "trust-digests", 0, OPT_FLAG, &c.trusts_digests, NULL,
          "do not read tensors with equal SHA-256 in both files" },
        { "rename", 0, OPT_LIST, &c.rename.args, RENAMES_VALUE,
          "rename tensors of A before the comparison" },
        { "json", 0, OPT_FLAG, &as_json, NULL, "print one JSON document" },
        { "verbose", 'v', OPT_FLAG, &model_settings.verbose, NULL,
          "also print equal tensors, and notes" },
        result_share_option(&shares, 0),
        result_share_option(&shares, 1),
        result_share_option(&shares, 2),
    };
    const opt_usage usage = {
        "diff",
        "A B",
        "Compares two files of any formats: names, element types, shapes, layouts, values.\n"
        "Values are close if |a - b| <= atol + rtol * |b|; NaN equals NaN. Values of different\n"
        "element types are compared as numbers. Tensors with other names are found by their\n"
        "content. The exit status is 1 if the files differ; --quiet prints nothing else.",
        "heft diff --atol 1e-6 model.pt model.safetensors",
        options,
        sizeof options / sizeof *options,
        2,
        2,
    };
    opt_args args;
    int code;
    if (!opt_parse(&args, &code, &usage, argc, argv))
        return code;
    model_settings.check_parts = true; /* digests of tensors that are compared by hashes */
    c.path_a = args.item[0];
    c.path_b = args.item[1];
    code = result_share_prepare(&shares);
    if (!code)
        code = renames_prepare(&c.rename, "diff");
    if (!code)
        code = model_open_key_optional(&c.a, c.path_a);
    if (!code)
        code = model_open_key_optional(&c.b, c.path_b);
    if (!code)
        code = diff(&c, &shares, as_json);
    comparison_release(&c);
    heft_file_close(c.a);
    heft_file_close(c.b);
    opt_release(&usage);
    return code;
}
