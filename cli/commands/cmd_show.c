/* cmd_show.c - `heft show`: print a tensor's values as NumPy prints an array. Only the printed
 * values of a raw part are read; a compressed part is decoded to the end. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "models/model.h"
#include "models/model_view.h"
#include "options/cast_rules.h"
#include "options/command.h"
#include "text/number_text.h"
#include "values/slice.h"

enum {
    SUMMARIZED = 1000, /* number of elements above which only the edges are printed */
    EDGE = 3,          /* elements printed at each edge of an axis */
    LINE = 75,         /* characters per line */
    /* limit on printed elements; only arrays of very many dimensions exceed the limit */
    MAX_SHOWN = 1 << 20,
    ELEMENT = 16,          /* bytes of the largest element type */
    SKIP_BYTES = 32 << 10, /* decoded bytes discarded per read */
    /* decoded bytes kept for the next run; more than any quantised block has */
    TAIL_BYTES = 512
};

/* Sequential reader for a part that is compressed or verified. */
typedef struct stream {
    heft_stream *s;           /* NULL: the part is read at random offsets */
    uint64_t at;              /* bytes read so far */
    uint8_t tail[TAIL_BYTES]; /* the last tail_bytes bytes read */
    size_t tail_bytes;
} stream;

typedef struct array {
    const heft_file *f;
    const char *path;
    uint32_t part;
    heft_dtype type;
    const uint64_t *dims;
    uint32_t rank;
    bool summarized;
    number *shown;
    size_t count;
    stream decoded;
    slice_reader *sliced; /* NULL: the whole part */
} array;

static bool is_elided(const array *a, uint32_t axis)
{
    return a->summarized && a->dims[axis] > 2 * EDGE;
}

static uint64_t shown_in_axis(const array *a, uint32_t axis)
{
    return is_elided(a, axis) ? 2 * EDGE : a->dims[axis];
}

/* ---- reading ---- */

static heft_status skip_to(stream *s, uint64_t to, heft_error *err)
{
    uint8_t drop[SKIP_BYTES];
    heft_status st = HEFT_OK;
    while (s->at < to && !st) {
        size_t n = to - s->at < SKIP_BYTES ? (size_t)(to - s->at) : SKIP_BYTES;
        st = heft_stream_read(drop, s->s, n, err);
        s->at += n;
    }
    return st;
}

/* Read bytes [from, from + len) of a run. Runs ascend, but two runs may share a quantised block, so
 * the shared bytes are copied from the tail of the previous read. */
static heft_status read_run(array *a, uint64_t from, size_t len, uint8_t *buf, heft_error *err)
{
    stream *s = &a->decoded;
    if (!s->s)
        return heft_part_read(buf, a->f, a->part, from, len, err);
    size_t again = from < s->at ? (size_t)(s->at - from) : 0;
    again = again < len ? again : len;
    if (again)
        memcpy(buf, s->tail + s->tail_bytes - (size_t)(s->at - from), again);
    heft_status st = skip_to(s, from, err);
    if (!st && len > again)
        st = heft_stream_read(buf + again, s->s, len - again, err);
    if (!st && len > again) {
        s->at = from + len;
        s->tail_bytes = len < TAIL_BYTES ? len : TAIL_BYTES;
        memcpy(s->tail, buf + len - s->tail_bytes, s->tail_bytes);
    }
    return st;
}

static heft_status load_sliced(array *a, uint64_t first, uint64_t n, heft_error *err)
{
    heft_status st = HEFT_OK;
    size_t skip, got = 0;
    for (uint64_t done = 0; done < n && !st; done += got) {
        const void *data;
        st = slice_read(&data, &skip, &got, a->sliced, first + done, (size_t)(n - done), err);
        for (size_t i = 0; i < got && !st; i++)
            a->shown[a->count++] = number_at(a->type, data, skip + i);
    }
    return st;
}

static heft_status load_run(array *a, uint64_t first, uint64_t n, heft_error *err)
{
    if (a->sliced)
        return load_sliced(a, first, n, err);
    uint8_t buf[(SUMMARIZED + 8) * ELEMENT];
    const heft_dtype_info *d = heft_dtype_get(a->type);
    uint64_t block = first / d->block_elems, skip = first % d->block_elems;
    uint64_t blocks = (skip + n + d->block_elems - 1u) / d->block_elems;
    heft_status st = read_run(a, block * d->block_bytes, (size_t)blocks * d->block_bytes, buf, err);
    for (uint64_t i = 0; i < n && !st; i++)
        a->shown[a->count++] = number_at(a->type, buf, skip + i);
    return st;
}

/* Advance at[], which counts over all axes but the last, to the next printed row. Return the number
 * of axes that wrapped around, or the rank after the last row. */
static uint32_t advance(const array *a, uint64_t *at)
{
    for (uint32_t axis = a->rank - 1; axis-- > 0;) {
        if (++at[axis] < shown_in_axis(a, axis))
            return a->rank - 1 - axis;
        at[axis] = 0;
    }
    return a->rank;
}

/* Load the row at at[], or only its edges if the last axis is elided. */
static heft_status load_row(array *a, const uint64_t *at, heft_error *err)
{
    uint32_t last = a->rank - 1;
    uint64_t row = 0;
    for (uint32_t axis = 0; axis < last; axis++) {
        bool is_tail = is_elided(a, axis) && at[axis] >= EDGE;
        row = row * a->dims[axis] + at[axis] + (is_tail ? a->dims[axis] - 2 * EDGE : 0);
    }
    uint64_t first = row * a->dims[last];
    if (!is_elided(a, last))
        return load_run(a, first, a->dims[last], err);
    heft_status st = load_run(a, first, EDGE, err);
    return st ? st : load_run(a, first + a->dims[last] - EDGE, EDGE, err);
}

/* ---- writing ---- */

typedef struct formatter {
    const array *a;
    size_t next; /* index of the next value in a->shown */
    int width;   /* width of integers */
    real_format real, imaginary;
    outbuf word;
} formatter;

static void put_integer(outbuf *o, const number *n)
{
    if (n->kind == NUMBER_INT)
        out_i64(o, n->i);
    else
        out_u64(o, n->u);
}

/* Return the type of a complex number's components; any other type is returned unchanged. */
static heft_dtype component_type(heft_dtype t)
{
    return t == HEFT_C64 ? HEFT_F32 : t == HEFT_C128 ? HEFT_F64 : t;
}

static void choose_formats(formatter *w)
{
    const array *a = w->a;
    number_kind kind = number_kind_of(a->type);
    heft_dtype component = component_type(a->type);
    if (kind == NUMBER_REAL || kind == NUMBER_COMPLEX)
        w->real = real_format_for(a->shown, a->count, component, false);
    if (kind == NUMBER_COMPLEX)
        w->imaginary = real_format_for(a->shown, a->count, component, true);
    for (size_t i = 0; i < a->count && (kind == NUMBER_INT || kind == NUMBER_UINT); i++) {
        w->word.used = 0;
        put_integer(&w->word, &a->shown[i]);
        if ((int)w->word.used > w->width)
            w->width = (int)w->word.used;
    }
}

/* Write "j" directly after the digits, before the padding. */
static void put_complex(formatter *w, const number *n)
{
    outbuf *o = &w->word;
    out_real(o, &w->real, n->f);
    size_t from = o->used;
    out_real(o, &w->imaginary, n->imaginary);
    size_t end = o->used;
    while (end > from && o->buf[end - 1] == ' ')
        end--;
    size_t spaces = o->used - end;
    o->used = end;
    out_char(o, 'j');
    out_fill(o, ' ', spaces);
}

static void next_word(formatter *w)
{
    const number *n = &w->a->shown[w->next++];
    w->word.used = 0;
    switch (n->kind) {
    case NUMBER_REAL:
        out_real(&w->word, &w->real, n->f);
        break;
    case NUMBER_COMPLEX:
        put_complex(w, n);
        break;
    case NUMBER_BOOL:
        out_text(&w->word, n->u ? " True" : "False");
        break;
    default:
        put_integer(&w->word, n);
        size_t len = w->word.used;
        w->word.used = 0;
        out_fill(&w->word, ' ', (size_t)w->width - len);
        put_integer(&w->word, n);
    }
}

/* Append a word to the line, or to a new line if it does not fit. Return the length of the current
 * line. */
static size_t put_word(outbuf *line, const outbuf *word, size_t used, uint32_t rank)
{
    size_t columns = LINE > rank ? LINE - rank : 1;
    if (used + word->used > columns && used > rank) {
        while (line->used && line->buf[line->used - 1] == ' ')
            line->used--;
        out_char(line, '\n');
        out_fill(line, ' ', rank);
        used = rank;
    }
    out_bytes(line, word->buf, word->used);
    return used + word->used;
}

/* Write the values between the innermost brackets. */
static void put_row(outbuf *o, formatter *w)
{
    uint32_t rank = w->a->rank;
    uint64_t n = shown_in_axis(w->a, rank - 1);
    outbuf gap = { .buf = "...", .used = 3, .capacity = 3, .fd = -1 };
    size_t used = rank;
    for (uint64_t i = 0; i < n; i++) {
        if (i == EDGE && is_elided(w->a, rank - 1)) {
            used = put_word(o, &gap, used, rank) + 1;
            out_char(o, ' ');
        }
        next_word(w);
        used = put_word(o, &w->word, used, rank);
        if (i + 1 < n)
            out_char(o, ' ');
        used++;
    }
}

/* Close and reopen one bracket per wrapped axis, with as many newlines between. */
static void put_row_break(outbuf *o, const array *a, const uint64_t *at, uint32_t wrapped)
{
    uint32_t axis = a->rank - 1 - wrapped;
    out_fill(o, ']', wrapped);
    out_fill(o, '\n', wrapped);
    if (is_elided(a, axis) && at[axis] == EDGE) {
        out_fill(o, ' ', axis + 1);
        out_text(o, "...");
        out_fill(o, '\n', wrapped);
    }
    out_fill(o, ' ', axis + 1);
    out_fill(o, '[', wrapped);
}

static void put_scalar(outbuf *o, const array *a)
{
    const number *n = &a->shown[0];
    if (n->kind == NUMBER_BOOL)
        out_text(o, n->u ? "True" : "False");
    else if (n->kind == NUMBER_REAL)
        out_real_alone(o, a->type, n->f);
    else if (n->kind == NUMBER_COMPLEX)
        out_complex_alone(o, component_type(a->type), n->f, n->imaginary);
    else
        put_integer(o, n);
}

/* Format in memory, so that trailing spaces of a line can be removed. */
static void put_array(outbuf *o, const array *a, uint64_t *at)
{
    formatter w = { .a = a };
    outbuf text;
    out_open(&text, -1);
    out_open(&w.word, -1);
    choose_formats(&w);
    if (!a->rank) {
        put_scalar(&text, a);
    } else {
        uint32_t wrapped = 0;
        out_fill(&text, '[', a->rank);
        do {
            if (wrapped)
                put_row_break(&text, a, at, wrapped);
            put_row(&text, &w);
        } while ((wrapped = advance(a, at)) < a->rank);
        out_fill(&text, ']', a->rank);
    }
    out_char(&text, '\n');
    out_bytes(o, text.buf, text.used);
    if (text.os || w.word.os)
        o->os = text.os ? text.os : w.word.os;
    out_free(&w.word);
    out_free(&text);
}

/* ---- one array ---- */

/* Load all printed runs in ascending order, so that a compressed part is decoded once. An array
 * that is printed completely is read as a stream, to verify the digest. */
static heft_status read_all(array *a, uint64_t *at, heft_error *err)
{
    heft_part p = heft_part_at(a->f, a->part);
    bool by_stream = !a->sliced && (p.encoding != HEFT_RAW || !a->summarized);
    heft_status st = by_stream ? heft_stream_open(&a->decoded.s, a->f, a->part, err) : HEFT_OK;
    if (!st && !a->rank)
        st = load_run(a, 0, 1, err);
    else if (!st)
        do
            st = load_row(a, at, err);
        while (!st && advance(a, at) < a->rank);
    if (!st && by_stream)
        st = skip_to(&a->decoded, p.length, err);
    heft_stream_close(a->decoded.s);
    return st;
}

static int show_elements(outbuf *o, array *a, size_t shown)
{
    heft_error err;
    uint64_t *at = calloc((size_t)a->rank + 1, sizeof *at);
    a->shown = malloc(shown * sizeof *a->shown);
    int code = CODE_DONE;
    if (!a->shown || !at) {
        say_status(HEFT_E_NOMEM, a->path, "no memory for the values");
        code = CODE_SYSTEM;
    } else if (read_all(a, at, &err)) {
        code = say_error(a->path, &err);
    } else {
        put_array(o, a, at);
    }
    free(at);
    free(a->shown);
    return code;
}

/* Read even a part without elements: it may have a digest to verify. */
static int show_empty(outbuf *o, const array *a)
{
    heft_error err;
    heft_stream *s;
    uint8_t none[1];
    heft_status st = heft_stream_open(&s, a->f, a->part, &err);
    if (!st)
        st = heft_stream_read(none, s, 0, &err);
    heft_stream_close(s);
    if (st)
        return say_error(a->path, &err);
    out_text(o, "[]\n");
    return CODE_DONE;
}

static int show_array(outbuf *o, array *a)
{
    uint64_t elements = 1, shown = 1;
    for (uint32_t i = 0; i < a->rank; i++)
        elements *= a->dims[i];
    a->summarized = elements > SUMMARIZED;
    for (uint32_t i = 0; i < a->rank && shown <= MAX_SHOWN; i++)
        shown *= shown_in_axis(a, i);
    if (!elements && a->sliced)
        out_text(o, "[]\n");
    if (!elements)
        return a->sliced ? CODE_DONE : show_empty(o, a);
    if (shown > MAX_SHOWN)
        return say_status(HEFT_E_UNSUPPORTED, a->path,
                          "too many dimensions to show: the edges alone have more than %d values",
                          MAX_SHOWN);
    return show_elements(o, a, (size_t)shown);
}

/* Print a part as a list of elements, or of bytes if the type has no numeric values. */
static int show_part(outbuf *o, const heft_file *f, const char *path, uint32_t part)
{
    heft_part p = heft_part_at(f, part);
    heft_dtype t = number_kind_of(p.dtype) != NUMBER_NONE ? p.dtype : HEFT_U8;
    uint64_t length = elements_in(t, p.length, UINT64_MAX);
    array a = { .f = f, .path = path, .part = part, .type = t, .dims = &length, .rank = 1 };
    out_escaped(o, p.role);
    out_text(o, ":\n");
    return show_array(o, &a);
}

static int show(outbuf *o, const heft_file *f, const char *path, uint32_t tensor)
{
    heft_tensor t = heft_tensor_at(f, tensor);
    uint32_t data = heft_part_find(f, tensor, HEFT_STR("data"));
    uint64_t elements = tensor_elements(&t);
    if (data != HEFT_NONE && t.layout == HEFT_DENSE && t.part_count == 1 &&
        elements_in(t.dtype, heft_part_at(f, data).length, elements) == elements &&
        number_kind_of(t.dtype) != NUMBER_NONE) {
        array a = {
            .f = f, .path = path, .part = data, .type = t.dtype, .dims = t.dims, .rank = t.rank
        };
        return show_array(o, &a);
    }
    int code = CODE_DONE;
    for (uint32_t i = 0; i < t.part_count && !code; i++)
        code = show_part(o, f, path, t.first_part + i);
    return code;
}

static int show_slice(outbuf *o, const session *s, const model_view *v, const char *path,
                      uint32_t tensor, const char *text, heft_dtype as)
{
    slice_reader *r = malloc(sizeof *r);
    if (!r)
        return say_status(HEFT_E_NOMEM, path, "no memory for a buffer");
    int code = slice_reader_open(r, s, v, path, tensor, text, as);
    array a = { .f = v->f,
                .path = path,
                .part = r->part,
                .type = r->type,
                .dims = r->slice.shape,
                .rank = r->slice.shape_rank,
                .sliced = r };
    if (!code && number_kind_of(r->type) == NUMBER_NONE)
        code = say_status(HEFT_E_UNSUPPORTED, path, "elements of %s cannot be shown",
                          dtype_name(r->type));
    if (!code)
        code = show_array(o, &a);
    slice_reader_close(r);
    free(r);
    return code;
}

/* Print all parts of the tensor, or nothing if one of the parts is damaged or the file has
 * changed. */
static int show_whole(outbuf *o, const session *s, const model_view *v, const char *path,
                      uint32_t tensor, const char *slice_text, heft_dtype as)
{
    outbuf text;
    out_open(&text, -1);
    bool is_slice = slice_text || as;
    heft_tensor t = heft_tensor_at(v->f, tensor);
    bool is_read_whole = !is_slice && tensor_elements(&t) <= SUMMARIZED;
    int code = is_read_whole ? view_verify(v, s, path, tensor) : CODE_DONE;
    if (!code)
        code = is_slice ? show_slice(&text, s, v, path, tensor, slice_text, as)
                        : show(&text, v->f, path, tensor);
    if (!code)
        code = model_check_unchanged(v->stored, path);
    if (!code)
        out_bytes(o, text.buf, text.used);
    o->os = text.os ? text.os : o->os;
    out_free(&text);
    return code;
}

typedef struct request {
    const char *id, *cast;
    heft_dtype as; /* element type of --cast */
    bool as_json;
} request;

static const opt options[] = {
    { "json", 0, OPT_FLAG, AT(request, as_json), NULL, "print all values as one JSON document" },
    { "cast", 0, OPT_TEXT, AT_NAME(request, cast, NAMES_DTYPE), "DTYPE",
      "convert to another element type" },
    { "raw-tensors", 0, OPT_FLAG, SETTING(raw_tensors), NULL, RAW_TENSORS_HELP },
    { "id", 0, OPT_TEXT, AT(request, id), "ID", MODEL_ID_HELP },
    { .name = NULL },
};

static int show_tensor(const session *s, request *r, const model_view *v, const char *path,
                       const char *name)
{
    const char *text = NULL;
    outbuf o;
    int code;
    uint32_t tensor = r->id ? model_find_id(v->f, path, r->id) : slice_find(&text, v, path, name);
    out_open(&o, STDOUT_FILENO);
    if (tensor == HEFT_NONE)
        code = model_code_of_missing(v->stored);
    else if (r->as_json)
        code = show_json(&o, s, v, path, tensor, text, r->as);
    else
        code = show_whole(&o, s, v, path, tensor, text, r->as);
    return out_end(&o, code);
}

static int run(const session *s, void *ctx)
{
    request *r = ctx;
    heft_file *f;
    model_view v;
    if ((s->args.count == 1) == !r->id)
        return say_usage("show", r->id ? "both TENSOR and --id given: use only one"
                                       : "expected TENSOR or --id");
    if (r->cast && !(r->as = heft_dtype_find(heft_str_from(r->cast))))
        return say_unknown_dtype("show", r->cast);
    int code = model_open(s, &f, s->args.item[0]);
    if (code)
        return code;
    code = model_view_open(&v, s, f, s->args.item[0], VIEW_TO_READ);
    if (!code)
        code = show_tensor(s, r, &v, s->args.item[0], s->args.item[1]);
    model_view_close(&v);
    heft_file_close(f);
    return code;
}

const command command_show = {
    .name = "show",
    .args = "FILE [TENSOR]",
    .summary = "print the values of a tensor, summarised",
    .description =
        "Prints the values of a tensor as NumPy prints an array: above 1000 elements, three\n"
        "at each edge. A tensor that is not dense is printed part by part. TENSOR may be a\n"
        "slice, with the rules of NumPy: 'NAME[0:10,:,-1]'.",
    .example = "heft show model.safetensors embed.weight",
    .group = GROUP_LOOK,
    .traits = COMMAND_PAGED | COMMAND_CHECKS_PARTS,
    .options = options,
    .request_bytes = sizeof(request),
    .run = run,
};
