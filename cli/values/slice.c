#include "values/slice.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <heft/check.h>

#include "process/textfile.h"
#include "text/number_text.h"

/* Values are a list in row-major order, so that the list can be written while it is read. */
static heft_status put_values(json *j, slice_reader *r, heft_error *err)
{
    heft_status st = HEFT_OK;
    size_t skip, n;
    json_member_begin(j, "values", '[');
    for (uint64_t at = 0; at < r->slice.elements && !st && !j->o->os; at += n) {
        const void *data;
        st = slice_read(&data, &skip, &n, r, at, SLICE_RUN, err);
        for (size_t i = 0; i < n && !st; i++) {
            number value = number_at(r->type, data, skip + i);
            json_number(j, &value);
        }
    }
    json_end(j, ']');
    return st ? st : heft_file_is_unchanged(r->f, err);
}

static int put_document(outbuf *o, slice_reader *r, const char *path, uint32_t tensor)
{
    heft_error err;
    json j = json_open(o);
    json_member_str(&j, "file", str_of(stdin_name(path)));
    json_member_str(&j, "tensor", heft_tensor_at(r->f, tensor).name);
    json_member_dtype(&j, "dtype", r->type);
    json_member_shape(&j, "shape", r->slice.shape, r->slice.shape_rank);
    heft_status st = put_values(&j, r, &err);
    json_close(&j);
    return st ? say_error(path, &err) : CODE_DONE;
}

int show_json(outbuf *o, const session *s, const model_view *v, const char *path, uint32_t tensor,
              const char *slice_text, heft_dtype as)
{
    slice_reader *r = malloc(sizeof *r);
    if (!r)
        return say_status(HEFT_E_NOMEM, path, "no memory for a buffer");
    int code = slice_reader_open(r, s, v, path, tensor, slice_text, as);
    if (!code && number_kind_of(r->type) == NUMBER_NONE)
        code = say_status(HEFT_E_UNSUPPORTED, path, "elements of %s cannot be shown",
                          dtype_name(r->type));
    if (!code)
        code = put_document(o, r, path, tensor);
    slice_reader_close(r);
    free(r);
    return code;
}

uint32_t slice_find(const char **text, const model_view *v, const char *path, const char *word)
{
    const heft_file *f = v->f;
    size_t len = strlen(word);
    const char *open = len && word[len - 1] == ']' ? strrchr(word, '[') : NULL;
    *text = NULL;
    uint32_t id = heft_tensor_find(f, heft_str_from(word));
    if (id != HEFT_NONE || !open)
        return id != HEFT_NONE ? id : view_find(v, path, word);
    id = heft_tensor_find(f, (heft_str){ word, (size_t)(open - word) });
    if (id == HEFT_NONE)
        return view_find(v, path, word);
    *text = open + 1;
    return id;
}

/* ---- parsing ---- */

typedef struct bound {
    int64_t value;
    bool is_given;
} bound;

/* Parse an optional integer. Return false if a number does not fit. */
static bool read_bound(bound *out, const char **p)
{
    char *end;
    *p += strspn(*p, " ");
    *out = (bound){ 0, false };
    if (!strchr("+-0123456789", **p) || !**p)
        return true;
    errno = 0;
    out->value = strtoll(*p, &end, 10);
    out->is_given = end != *p;
    *p = end + strspn(end, " ");
    return out->is_given && !errno;
}

/* Return a bound counted from the start, clipped to [least, most]. */
static int64_t clipped(bound b, int64_t size, int64_t least, int64_t most, int64_t otherwise)
{
    if (!b.is_given)
        return otherwise;
    int64_t v = b.value < 0 ? (b.value < -size ? least : b.value + size) : b.value;
    return v < least ? least : v > most ? most : v;
}

static bool set_range(slice_axis *a, bound from, bound to, bound by, int64_t size)
{
    int64_t step = by.is_given ? by.value : 1;
    bool back = step < 0;
    if (!step || step == INT64_MIN)
        return false;
    int64_t start = clipped(from, size, back ? -1 : 0, back ? size - 1 : size, back ? size - 1 : 0);
    int64_t stop = clipped(to, size, back ? -1 : 0, back ? size - 1 : size, back ? -1 : size);
    int64_t distance = back ? start - stop : stop - start, stride = back ? -step : step;
    *a = (slice_axis){ .step = step };
    if (distance > 0) {
        a->start = (uint64_t)start;
        a->count = (uint64_t)((distance - 1) / stride + 1);
    }
    return true;
}

static int say_bad(const char *path, const char *text, const char *why)
{
    return say_status(HEFT_E_ARGUMENT, path, "slice '[%s': %s", text, why);
}

/* Parse one index or range. Return NULL, or why the text is wrong. */
static const char *read_axis(slice_axis *a, const char **p, uint64_t dim)
{
    bound b[3] = { { 0, false } };
    size_t colons = 0;
    bool ok = dim <= INT64_MAX && read_bound(&b[0], p);
    for (; ok && **p == ':' && colons < 2;) {
        ++*p;
        ok = read_bound(&b[++colons], p);
    }
    if (!ok)
        return "a number does not fit into 64 bits";
    if (colons)
        return set_range(a, b[0], b[1], b[2], (int64_t)dim) ? NULL : "a step must not be 0";
    if (!b[0].is_given)
        return "expected an index, a range START:STOP:STEP, or ...";
    int64_t size = (int64_t)dim, v = b[0].value;
    if (v < -size || v >= size)
        return "an index is outside of the tensor";
    *a = (slice_axis){ (uint64_t)(v < 0 ? v + size : v), 1, 1, true };
    return NULL;
}

/* Return the number of axes that the text names, apart from "...". */
static uint32_t count_axes(const char *text, bool *has_dots)
{
    uint32_t n = 0;
    *has_dots = false;
    for (const char *p = text; *p && *p != ']'; p += strcspn(p, ",]")) {
        p += *p == ',';
        p += strspn(p, " ");
        bool is_dots = !strncmp(p, "...", 3);
        *has_dots = *has_dots || is_dots;
        n += !is_dots;
    }
    return n;
}

static void take_all(slice *out, uint32_t *axis, uint32_t n)
{
    for (; n; n--, ++*axis)
        out->axes[*axis] = (slice_axis){ 0, out->dims[*axis], 1, false };
}

static void set_shape(slice *out)
{
    out->elements = 1;
    for (uint32_t i = 0; i < out->rank; i++) {
        out->elements *= out->axes[i].count; /* at most the elements of the tensor */
        if (!out->axes[i].is_index)
            out->shape[out->shape_rank++] = out->axes[i].count;
    }
}

int slice_parse(slice *out, const char *text, const heft_tensor *t, const char *path)
{
    bool has_dots, dots_seen = false;
    uint32_t named = count_axes(text, &has_dots), axis = 0;
    *out = (slice){ .dims = t->dims, .rank = t->rank };
    if (t->rank > SLICE_RANK)
        return say_bad(path, text, "the tensor has too many dimensions");
    if (named > t->rank)
        return say_bad(path, text, "more indices than the tensor has dimensions");
    for (const char *p = text; *p != ']';) {
        const char *why = NULL;
        p += strspn(p, " ");
        if (!strncmp(p, "...", 3) && !dots_seen) {
            dots_seen = true;
            take_all(out, &axis, t->rank - named);
            p += 3;
            p += strspn(p, " ");
        } else {
            why = axis < t->rank ? read_axis(&out->axes[axis], &p, t->dims[axis])
                                 : "more indices than the tensor has dimensions";
            axis++;
        }
        if (!why && *p != ',' && *p != ']')
            why = "expected an index, a range START:STOP:STEP, or ...";
        if (!why && *p == ']' && p[1])
            why = "text follows the closing bracket";
        if (why)
            return say_bad(path, text, why);
        p += *p == ',';
    }
    take_all(out, &axis, t->rank - axis);
    set_shape(out);
    return CODE_DONE;
}

/* ---- reading ---- */

/* Return the tensor's element at which a run of the result's elements begins, in row-major order.
 * *n becomes the number of consecutive elements from there on, at most `most`. */
static uint64_t find_run(size_t *n, const slice *s, uint64_t from, size_t most)
{
    uint64_t element = 0, stride = 1, rest = from;
    *n = 1;
    for (uint32_t i = s->rank; i-- > 0; stride *= s->dims[i]) {
        const slice_axis *a = &s->axes[i];
        uint64_t k = rest % a->count;
        rest /= a->count;
        element += (a->start + k * (uint64_t)a->step) * stride;
        if (i + 1 == s->rank && a->step == 1)
            *n = a->count - k < most ? (size_t)(a->count - k) : most;
    }
    return element;
}

static int say_not_dense(const char *path, const heft_tensor *t)
{
    return say_status(HEFT_E_UNSUPPORTED, path,
                      "tensor '%.*s' is not a dense array of numbers, which slices, --cast and "
                      "--json need",
                      (int)t->name.len, t->name.ptr);
}

static int say_no_cast(const char *path, heft_dtype from, heft_dtype to)
{
    return say_status(HEFT_E_UNSUPPORTED, path, "cannot convert %s to %s", dtype_name(from),
                      dtype_name(to));
}

/* A cast of stored numbers would lose the scale of a quantised tensor that is not decoded. */
static int refuse_quantised(const model_view *v, const char *path, uint32_t tensor)
{
    uint32_t stored = view_stored(v, tensor), i = HEFT_NONE;
    if (v->schemes && view_quantised(v, tensor) == HEFT_NONE && stored != HEFT_NONE)
        i = heft_schemes_find(v->schemes, stored);
    if (i == HEFT_NONE)
        return CODE_DONE;
    heft_quantised q = heft_schemes_at(v->schemes, i);
    heft_str name = heft_tensor_at(v->f, tensor).name;
    heft_error err = { .status = HEFT_E_UNSUPPORTED,
                       .rule = "heft/quantised",
                       .offset = HEFT_NOWHERE };
    snprintf(err.message, sizeof err.message,
             "tensor '%.*s' is part of the quantised tensor '%.*s' (%.*s): --cast would lose "
             "what its numbers mean. --raw-tensors casts the stored numbers",
             (int)name.len, name.ptr, (int)q.name.len, q.name.ptr, (int)q.scheme.len, q.scheme.ptr);
    return say_error(path, &err);
}

/* Decode a compressed part as a whole, since decoding always starts at the beginning. */
static heft_status decode(slice_reader *r, heft_error *err)
{
    heft_part p = heft_part_at(r->f, r->part);
    if (p.encoding == HEFT_RAW)
        return HEFT_OK;
    r->decoded = p.length < SIZE_MAX ? malloc((size_t)p.length + 1) : NULL;
    if (r->decoded)
        return heft_part_read(r->decoded, r->f, r->part, 0, (size_t)p.length, err);
    *err = (heft_error){ .status = HEFT_E_NOMEM,
                         .offset = HEFT_NOWHERE,
                         .message = "no memory to decode the tensor" };
    return err->status;
}

int slice_reader_open(slice_reader *r, const session *s, const model_view *v, const char *path,
                      uint32_t tensor, const char *text, heft_dtype as)
{
    const heft_file *f = v->f;
    heft_error err;
    heft_tensor t = heft_tensor_at(f, tensor);
    uint32_t part = heft_part_find(f, tensor, HEFT_STR("data"));
    *r = (slice_reader){ .f = f, .part = part, .stored = t.dtype };
    r->type = as == HEFT_UNTYPED ? t.dtype : as;
    int code = slice_parse(&r->slice, text ? text : "...]", &t, path);
    if (code)
        return code;
    if (part == HEFT_NONE || t.layout != HEFT_DENSE || t.part_count != 1 ||
        heft_part_at(f, part).dtype != t.dtype || !heft_dtype_get(t.dtype) ||
        elements_in(t.dtype, heft_part_at(f, part).length, tensor_elements(&t)) !=
            tensor_elements(&t))
        return say_not_dense(path, &t);
    if (r->type != r->stored &&
        (heft_dtype_get(r->type)->block_elems > 1 || !heft_dtype_can_cast(r->type, r->stored)))
        return say_no_cast(path, r->stored, r->type);
    if (r->type != r->stored)
        code = refuse_quantised(v, path, tensor);
    if (!code && !text)
        code = view_verify(v, s, path, tensor);
    if (code)
        return code;
    heft_status st = r->slice.elements ? decode(r, &err) : HEFT_OK;
    bool is_whole = !text && !r->decoded; /* decode() has compared the digest already */
    if (!st && is_whole && !s->no_verify)
        st = heft_part_verify(NULL, f, part, &err);
    return st ? say_error(path, &err) : CODE_DONE;
}

void slice_reader_close(slice_reader *r)
{
    free(r->decoded);
    r->decoded = NULL;
}

heft_status slice_read(const void **data, size_t *skip, size_t *n, slice_reader *r, uint64_t from,
                       size_t most, heft_error *err)
{
    const heft_dtype_info *d = heft_dtype_get(r->stored);
    uint64_t first = find_run(n, &r->slice, from, most < SLICE_RUN ? most : SLICE_RUN);
    uint64_t at = first / d->block_elems * d->block_bytes;
    *skip = (size_t)(first % d->block_elems);
    size_t blocks = (*skip + *n + d->block_elems - 1u) / d->block_elems;
    heft_status st = HEFT_OK;
    if (r->decoded)
        memcpy(r->raw, r->decoded + at, blocks * d->block_bytes);
    else
        st = heft_part_read(r->raw, r->f, r->part, at, blocks * d->block_bytes, err);
    *data = r->raw;
    if (!st && r->type != r->stored) {
        (void)heft_dtype_cast(r->cast, r->type, r->raw, r->stored, blocks * d->block_elems);
        *data = r->cast;
    }
    return st;
}
