/* cmd_diff.c - `heft diff`: compare names, element types, shapes, layouts and values of two
 * files. */
#include <unistd.h>

#include "models/mapped.h"
#include "models/model.h"
#include "options/command.h"
#include "values/comparison.h"
#include "values/diff_table.h"

typedef struct request {
    comparison c;
    model_view view_a, view_b;
    diff_style style;
    metadata_diff metadata; /* without changes if --ignore-metadata is given */
    bool as_json, ignores_metadata;
} request;

static bool is_equal(const request *r)
{
    return r->c.equal && r->metadata.equal;
}

static const char *change_name(uint32_t change)
{
    return change == CHANGED_DTYPE    ? "dtype"
           : change == CHANGED_SHAPE  ? "shape"
           : change == CHANGED_LAYOUT ? "layout"
                                      : "value";
}

/* ---- text ---- */

static int print_text(outbuf *o, const request *r)
{
    enum { SHOWN = 20 };
    int code = diff_table_print(o, &r->c, &r->style);
    if (r->style.raw)
        return code;
    if (!code)
        code = diff_table_print_worst(o, &r->c, &r->style);
    metadata_diff_print(o, &r->metadata, r->c.session->verbose ? UINT32_MAX : SHOWN);
    comparison_put_summary(o, &r->c);
    if (r->metadata.count)
        out_format(o, "; metadata: %u %s", r->metadata.count,
                   r->metadata.count == 1 ? "key differs" : "keys differ");
    out_char(o, '\n');
    return code;
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
        json_member_shape(j, "first", at, diff_first_position(at, c, p));
}

/* Write the statistics, or null for values that are not numbers and for undefined statistics. */
static void json_value_change(json *j, const comparison *c, const pair *p)
{
    const difference *d = &p->d;
    json_statistics(j, d, !d->bytewise && !d->incomparable, true);
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

/* Write the types of a pair that holds a quantised tensor, or a block type. */
static void json_types(json *j, const comparison *c, const pair *p)
{
    char buf[VIEW_TYPE_BYTES];
    if (!comparison_is_lossy(c, p))
        return;
    json_member_str(j, "type_a", view_type(buf, c->view_a, p->a));
    json_member_str(j, "type_b", view_type(buf, c->view_b, p->b));
}

static void json_change(json *j, const comparison *c, const pair *p, uint32_t change)
{
    json_line(j);
    json_begin(j, '{');
    json_member_str(j, "name", heft_tensor_at(c->b, p->b).name);
    json_member_str(j, "what", str_of(change_name(change)));
    if (change == CHANGED_VALUE) {
        json_value_change(j, c, p);
        json_types(j, c, p);
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

static void print_json(outbuf *o, const request *r)
{
    const comparison *c = &r->c;
    json j = json_open(o);
    json_member_bool(&j, "equal", is_equal(r));
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
    if (!r->ignores_metadata)
        metadata_diff_json(&j, &r->metadata);
    json_summary(&j, c);
    json_close(&j);
}

/* ---- the command ---- */

static int diff(request *r)
{
    outbuf o;
    comparison *c = &r->c;
    int code = comparison_run(c);
    if (code)
        return code;
    r->metadata = (metadata_diff){ .equal = true };
    if (!r->ignores_metadata)
        code = metadata_diff_find(&r->metadata, c->view_a->stored, c->view_b->stored, c->path_a);
    if (code)
        return code;
    out_open(&o, STDOUT_FILENO);
    if (r->as_json)
        print_json(&o, r);
    else if (!r->c.session->quiet)
        code = print_text(&o, r);
    if (!code)
        code = model_check_unchanged(c->view_a->stored, c->path_a);
    if (!code)
        code = model_check_unchanged(c->view_b->stored, c->path_b);
    return out_end(&o, code || is_equal(r) ? code : CODE_FOUND);
}

static const opt options[] = {
    { "atol", 0, OPT_REAL, AT(request, c.t.absolute), "X", "tolerate differences up to X" },
    { "rtol", 0, OPT_REAL, AT(request, c.t.relative), "X",
      "tolerate differences up to X times the value in B" },
    { "ulp", 0, OPT_NUMBER, AT(request, c.t.ulp), "N",
      "tolerate N spacings of the less precise type" },
    { "ignore-dtype", 0, OPT_FLAG, AT(request, c.ignore_dtype), NULL,
      "equal values of different element types are equal" },
    { "ignore-metadata", 0, OPT_FLAG, AT(request, ignores_metadata), NULL,
      "compare the tensors only" },
    { "trust-digests", 0, OPT_FLAG, AT(request, c.trusts_digests), NULL,
      "do not read tensors with equal SHA-256 in both files" },
    { "rename", 0, OPT_LIST, AT_NAME(request, c.rename.args, NAMES_TENSOR), RENAMES_VALUE,
      "rename tensors of A before the comparison" },
    { "map", 0, OPT_FILE, SETTING(map), "NAME|FILE",
      "compare A under a map: auto, a name of `heft maps`, or a file" },
    { "allow-unmatched", 0, OPT_FLAG, SETTING(allow_unmatched), NULL,
      "keep tensors that no rule of the map matches" },
    { "tree", 0, OPT_FLAG, AT(request, style.tree), NULL, "show the modules with sums" },
    { "depth", 0, OPT_NUMBER, AT(request, style.depth), "N",
      "fold modules at this depth of --tree" },
    { "sort", 0, OPT_TEXT,
      AT_WORD(request, style.sort, "name differ max-abs max-rel rmse nmse cosine"), "KEY",
      "sort by name, differ, max-abs, max-rel, rmse, nmse or cosine" },
    { "limit", 0, OPT_NUMBER, AT(request, style.limit), "N", "show at most N tensors" },
    { "raw-tensors", 0, OPT_FLAG, SETTING(raw_tensors), NULL, RAW_TENSORS_HELP },
    { "raw", 0, OPT_FLAG, AT(request, style.raw), NULL,
      "print tab-separated rows of tensors, no titles" },
    { "json", 0, OPT_FLAG, AT(request, as_json), NULL, "print one JSON document" },
    { "verbose", 'v', OPT_FLAG, SETTING(verbose), NULL, "also print equal tensors, and notes" },
    { .name = NULL },
};

static int run(const session *s, void *ctx)
{
    request *r = ctx;
    comparison *c = &r->c;
    heft_file *a = NULL, *b = NULL;
    mapped m = { .model = NULL };
    c->session = s;
    c->view_a = &r->view_a;
    c->view_b = &r->view_b;
    c->path_a = s->args.item[0];
    c->path_b = s->args.item[1];
    c->globs = s->args.item + 2;
    c->glob_count = s->args.count - 2;
    r->style.equal = s->verbose;
    r->ignores_metadata = r->ignores_metadata || c->glob_count;
    int code = diff_style_check(&r->style);
    if (!code)
        code = renames_prepare(&c->rename, "diff");
    if (!code)
        code = model_open_key_optional(s, &a, c->path_a);
    if (!code)
        code = model_open_key_optional(s, &b, c->path_b);
    if (!code)
        code = array_types_check(s, b, c->path_b);
    if (!code)
        code = mapped_open(&m, s, a, c->path_a, MAPPED_OTHER);
    if (!code)
        code = model_view_open(&r->view_a, s, m.model ? m.model : a, c->path_a, VIEW_TO_READ);
    if (!code)
        code = model_view_open(&r->view_b, s, b, c->path_b, VIEW_TO_READ);
    if (!code)
        code = diff(r);
    metadata_diff_free(&r->metadata);
    comparison_release(c);
    model_view_close(&r->view_a);
    model_view_close(&r->view_b);
    mapped_release(&m);
    heft_file_close(a);
    heft_file_close(b);
    return code;
}

const command command_diff = {
    .name = "diff",
    .args = "A B [GLOB...]",
    .summary = "compare two files, across formats",
    .description =
        "Compares two files of any formats: names, element types, shapes, layouts, values and\n"
        "metadata. With patterns, only the tensors whose names match one of them are compared.\n"
        "Values are close if |a - b| <= atol + rtol * |b|; NaN equals NaN. Values of different\n"
        "element types are compared as numbers. Tensors with other names are found by their\n"
        "content. The exit status is 1 if the files differ; --quiet prints nothing else.",
    .example = "heft diff --atol 1e-6 model.pt model.safetensors",
    .group = GROUP_CHECK,
    .traits = COMMAND_PAGED | COMMAND_CHECKS_PARTS,
    .operands = { 0, 1, 0, NO_OUTPUT },
    .options = options,
    .request_bytes = sizeof(request),
    .run = run,
};
