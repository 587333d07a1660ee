/* cmd_diff.c - `heft diff`: compare names, element types, shapes, layouts and values of two
 * files. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "checks.h"
#include "compare.h"
#include "model.h"
#include "opt.h"

enum { CHANGED_DTYPE = 1, CHANGED_SHAPE = 2, CHANGED_LAYOUT = 4, CHANGED_VALUE = 8 };

typedef struct pair { /* two tensors with the same name */
    uint32_t a, b;
    uint32_t changes;
    difference d;
} pair;

typedef struct comparison {
    const heft_file *a, *b;
    const char *path_a, *path_b;
    tolerance t;
    pair *pairs;
    size_t count;
    bool equal;
    checks checks_a, checks_b;
} comparison;

/* Return the tensor in `in` that has the name of tensor `id` in `from`, or HEFT_NONE. */
static uint32_t find_same_name(const heft_file *from, uint32_t id, const heft_file *in)
{
    heft_str name = heft_tensor_at(from, id).name;
    return heft_tensor_find(in, name);
}

static uint32_t compare_shapes(const comparison *c, const pair *p)
{
    heft_tensor a = heft_tensor_at(c->a, p->a), b = heft_tensor_at(c->b, p->b);
    uint32_t changes = a.dtype != b.dtype ? CHANGED_DTYPE : 0;
    if (a.rank != b.rank || (a.rank && memcmp(a.dims, b.dims, a.rank * sizeof *a.dims) != 0))
        changes |= CHANGED_SHAPE;
    if (!str_same(heft_tensor_layout_name(c->a, p->a), heft_tensor_layout_name(c->b, p->b)))
        changes |= CHANGED_LAYOUT;
    return changes;
}

static bool find_pairs(comparison *c)
{
    uint32_t count = heft_tensor_count(c->a);
    c->pairs = calloc((size_t)count + 1, sizeof *c->pairs);
    for (uint32_t i = 0; i < count && c->pairs; i++) {
        pair p = { .a = i, .b = find_same_name(c->a, i, c->b) };
        if (p.b == HEFT_NONE)
            continue;
        p.changes = compare_shapes(c, &p);
        c->pairs[c->count++] = p;
    }
    return c->pairs;
}

static void compare_pair(void *ctx, size_t i)
{
    work *w = ctx;
    const comparison *c = w->ctx;
    pair *p = &c->pairs[i];
    side a = { c->a, c->path_a, p->a, c->checks_a.read };
    side b = { c->b, c->path_b, p->b, c->checks_b.read };
    if (p->changes)
        return;
    compare_tensors(&p->d, w, &a, &b, c->t);
    if (p->d.incomparable || p->d.differing)
        p->changes = CHANGED_VALUE;
}

static bool add_parts(checks *c, const heft_file *f, uint32_t tensor)
{
    heft_tensor t = heft_tensor_at(f, tensor);
    bool ok = true;
    for (uint32_t i = 0; i < t.part_count && ok; i++)
        ok = checks_add(c, t.first_part + i);
    return ok;
}

/* Register the parts of all tensors whose values will be compared. */
static int begin_checks(comparison *c)
{
    bool ok = true;
    for (size_t i = 0; i < c->count && ok; i++)
        if (!c->pairs[i].changes)
            ok = add_parts(&c->checks_a, c->a, c->pairs[i].a) &&
                 add_parts(&c->checks_b, c->b, c->pairs[i].b);
    int code = checks_begin(&c->checks_a, c->a, c->path_a);
    return code ? code : checks_begin(&c->checks_b, c->b, c->path_b);
}

static heft_status compare_values(comparison *c, work *w)
{
    *w = (work){ .ctx = c, .path = c->path_a };
    for (size_t i = 0; i < c->count; i++)
        w->total += c->pairs[i].changes ? 0 : heft_tensor_bytes(c->a, c->pairs[i].a);
    heft_status st = work_run(w, c->count, compare_pair);
    c->equal = c->count == heft_tensor_count(c->a) && c->count == heft_tensor_count(c->b);
    for (size_t i = 0; i < c->count; i++)
        c->equal &= !c->pairs[i].changes;
    return st;
}

/* ---- text ---- */

static void put_missing(outbuf *o, const heft_file *f, const char *path, const heft_file *other)
{
    for (uint32_t i = 0; i < heft_tensor_count(f); i++) {
        if (find_same_name(f, i, other) != HEFT_NONE)
            continue;
        out_name(o, heft_tensor_at(f, i).name);
        out_text(o, ": only in ");
        out_message(o, path);
        out_char(o, '\n');
    }
}

static void put_value_change(outbuf *o, const difference *d)
{
    if (d->incomparable) {
        out_text(o, "values: different parts or sizes");
        return;
    }
    out_format(o, "values: %llu of %llu %s differ", (unsigned long long)d->differing,
               (unsigned long long)d->compared, d->bytewise ? "bytes" : "elements");
    if (!d->bytewise)
        out_format(o, ", max abs %.6g, max rel %.6g", d->max_abs, d->max_rel);
}

static void put_change(outbuf *o, const comparison *c, const pair *p, uint32_t change)
{
    heft_tensor a = heft_tensor_at(c->a, p->a), b = heft_tensor_at(c->b, p->b);
    out_name(o, a.name);
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
        put_value_change(o, &p->d);
    }
    out_char(o, '\n');
}

static void print_text(outbuf *o, const comparison *c)
{
    put_missing(o, c->a, c->path_a, c->b);
    put_missing(o, c->b, c->path_b, c->a);
    for (size_t i = 0; i < c->count; i++)
        for (uint32_t change = CHANGED_DTYPE; change <= CHANGED_VALUE; change <<= 1)
            if (c->pairs[i].changes & change)
                put_change(o, c, &c->pairs[i], change);
}

/* ---- JSON ---- */

static void json_missing(json *j, const char *key, const heft_file *f, const heft_file *other)
{
    json_member_begin(j, key, '[');
    for (uint32_t i = 0; i < heft_tensor_count(f); i++)
        if (find_same_name(f, i, other) == HEFT_NONE)
            json_str(j, heft_tensor_at(f, i).name);
    json_end(j, ']');
}

/* Write max_abs and max_rel, or null for values that are not numbers. */
static void json_value_change(json *j, const difference *d)
{
    bool has_numbers = !d->bytewise && !d->incomparable;
    if (has_numbers) {
        json_member_f64(j, "max_abs", d->max_abs);
        json_member_f64(j, "max_rel", d->max_rel);
    } else {
        json_member_null(j, "max_abs");
        json_member_null(j, "max_rel");
    }
    json_member_length(j, "differing", d->incomparable ? HEFT_UNKNOWN_LENGTH : d->differing);
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
    json_member_str(j, "name", heft_tensor_at(c->a, p->a).name);
    json_member_str(j, "what",
                    str_of(change == CHANGED_DTYPE    ? "dtype"
                           : change == CHANGED_SHAPE  ? "shape"
                           : change == CHANGED_LAYOUT ? "layout"
                                                      : "value"));
    if (change == CHANGED_VALUE) {
        json_value_change(j, &p->d);
    } else {
        json_side(j, "a", c->a, p->a, change);
        json_side(j, "b", c->b, p->b, change);
    }
    json_end(j, '}');
}

static void print_json(outbuf *o, const comparison *c)
{
    json j = json_open(o);
    json_member_bool(&j, "equal", c->equal);
    json_missing(&j, "only_in_a", c->a, c->b);
    json_missing(&j, "only_in_b", c->b, c->a);
    json_member_begin(&j, "changed", '[');
    for (size_t i = 0; i < c->count; i++)
        for (uint32_t change = CHANGED_DTYPE; change <= CHANGED_VALUE; change <<= 1)
            if (c->pairs[i].changes & change)
                json_change(&j, c, &c->pairs[i], change);
    json_end(&j, ']');
    json_close(&j);
}

/* ---- the command ---- */

static int diff(comparison *c, bool as_json)
{
    work w;
    outbuf o;
    if (!find_pairs(c))
        return say_status(HEFT_E_NOMEM, c->path_a, "no memory for the comparison");
    int code = begin_checks(c);
    if (!code && compare_values(c, &w))
        code = say_error(w.path, &w.err);
    if (!code)
        code = checks_end(&c->checks_a, c->path_a);
    if (!code)
        code = checks_end(&c->checks_b, c->path_b);
    if (code)
        return code;
    out_open(&o, STDOUT_FILENO);
    if (as_json)
        print_json(&o, c);
    else
        print_text(&o, c);
    return out_end(&o, c->equal ? CODE_DONE : CODE_FOUND);
}

int cmd_diff(int argc, char **argv)
{
    comparison c = { .a = NULL };
    bool as_json = false;
    const opt options[] = {
        { "atol", 0, OPT_REAL, &c.t.absolute, "X", "tolerate differences up to X" },
        { "rtol", 0, OPT_REAL, &c.t.relative, "X",
          "tolerate differences up to X times the value in B" },
        { "json", 0, OPT_FLAG, &as_json, NULL, "print one JSON document" },
    };
    const opt_usage usage = {
        "diff",
        "A B",
        "Compares two files of any formats: names, element types, shapes, layouts, values.\n"
        "Values are close if |a - b| <= atol + rtol * |b|; NaN equals NaN. The exit status\n"
        "is 1 if the files differ.",
        "heft diff --atol 1e-6 model.pt model.safetensors",
        options,
        sizeof options / sizeof *options,
        2,
        2,
    };
    opt_args args;
    heft_file *a = NULL, *b = NULL;
    int code;
    if (!opt_parse(&args, &code, &usage, argc, argv))
        return code;
    c.path_a = args.item[0];
    c.path_b = args.item[1];
    code = model_open_key_optional(&a, c.path_a);
    if (!code)
        code = model_open_key_optional(&b, c.path_b);
    c.a = a;
    c.b = b;
    if (!code)
        code = diff(&c, as_json);
    free(c.pairs);
    checks_close(&c.checks_a);
    checks_close(&c.checks_b);
    heft_file_close(a);
    heft_file_close(b);
    return code;
}
