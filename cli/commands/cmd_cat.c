/* cmd_cat.c - `heft cat`: write the decoded bytes of a part to stdout, raw or as a .npy file. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "models/companions.h"
#include "models/inputs.h"
#include "models/model.h"
#include "models/model_view.h"
#include "options/cast_rules.h"
#include "options/command.h"
#include "process/interrupt.h"
#include "process/sinkwatch.h"
#include "text/number_text.h"
#include "values/slice.h"

enum { CHUNK = 1 << 20 };

/* The part to write, and its shape and type in a NumPy header. */
typedef struct content {
    const heft_file *f;
    const char *path;
    uint32_t part;
    const char *descr; /* NumPy's name for the element type */
    const uint64_t *dims;
    uint32_t rank;
    uint64_t length[1]; /* dims of a one-dimensional part */
} content;

/* ---- the NumPy header ---- */

static const struct {
    heft_dtype dtype;
    const char *descr;
} numpy_types[] = {
    { HEFT_UNTYPED, "|u1" }, { HEFT_BOOL, "|b1" }, { HEFT_U8, "|u1" },    { HEFT_I8, "|i1" },
    { HEFT_U16, "<u2" },     { HEFT_I16, "<i2" },  { HEFT_U32, "<u4" },   { HEFT_I32, "<i4" },
    { HEFT_U64, "<u8" },     { HEFT_I64, "<i8" },  { HEFT_F16, "<f2" },   { HEFT_F32, "<f4" },
    { HEFT_F64, "<f8" },     { HEFT_C64, "<c8" },  { HEFT_C128, "<c16" },
};

/* Choose the tensor's own shape if the part is its dense data, otherwise a single dimension. */
static bool set_shape(content *c, uint32_t tensor, bool has_role)
{
    heft_part p = heft_part_at(c->f, c->part);
    for (size_t i = 0; i < sizeof numpy_types / sizeof *numpy_types; i++)
        if (numpy_types[i].dtype == p.dtype)
            c->descr = numpy_types[i].descr;
    if (!c->descr) {
        say_status(HEFT_E_UNSUPPORTED, c->path,
                   "NumPy has no element type for %s: omit --npy, or convert with --cast first",
                   dtype_name(p.dtype));
        return false;
    }
    c->length[0] = p.dtype ? p.length / heft_dtype_get(p.dtype)->block_bytes : p.length;
    c->dims = c->length;
    c->rank = 1;
    if (tensor == HEFT_NONE)
        return true;
    heft_tensor t = heft_tensor_at(c->f, tensor);
    if (t.dtype == p.dtype && tensor_elements(&t) == c->length[0]) {
        c->dims = t.dims;
        c->rank = t.rank;
    } else if (!has_role) {
        say_status(HEFT_E_UNSUPPORTED, c->path,
                   "tensor '%.*s' is not a dense array: choose a part with --part", (int)t.name.len,
                   t.name.ptr);
        return false;
    }
    return true;
}

static void put_dict(outbuf *o, const content *c)
{
    out_format(o, "{'descr': '%s', 'fortran_order': False, 'shape': (", c->descr);
    for (uint32_t i = 0; i < c->rank; i++) {
        out_u64(o, c->dims[i]);
        if (i + 1 < c->rank || c->rank == 1)
            out_text(o, i + 1 < c->rank ? ", " : ",");
    }
    out_text(o, "), }");
}

/* Magic, version, length, dictionary, spaces and a newline; padded to a multiple of 64 bytes. */
static void put_header(outbuf *o, const content *c)
{
    enum { MAGIC = 8, ALIGN = 64, LONGEST_V1 = 65535 };
    outbuf dict;
    out_open(&dict, -1);
    put_dict(&dict, c);
    size_t field = dict.used + ALIGN > LONGEST_V1 ? 4 : 2;
    size_t unpadded = MAGIC + field + dict.used + 1;
    size_t total = (unpadded + ALIGN - 1) / ALIGN * ALIGN, rest = total - MAGIC - field;
    out_bytes(o, "\x93NUMPY", 6);
    out_char(o, field == 2 ? 1 : 2);
    out_char(o, 0);
    for (size_t i = 0; i < field; i++)
        out_char(o, (char)(rest >> (8 * i) & 0xFF));
    out_bytes(o, dict.buf, dict.used);
    out_fill(o, ' ', total - unpadded);
    out_char(o, '\n');
    o->os = dict.os ? dict.os : o->os;
    out_free(&dict);
}

/* ---- bytes ---- */

/* The stream verifies the digest with the last read. A part that fits the buffer is verified before
 * a byte is written; a larger part is already on stdout when a mismatch is found. */
static int put_bytes(outbuf *o, const content *c, void *buf)
{
    bool begun = false; /* bytes have been written */
    heft_error err;
    heft_stream *stream;
    uint64_t from = 0, length = heft_part_at(c->f, c->part).length;
    if (!heft_part_view(c->f, c->part)) /* a server answers several requests at the same time */
        heft_part_prefetch(c->f, &c->part, 1);
    heft_status st = heft_stream_open(&stream, c->f, c->part, &err);
    while (!st && !o->os) {
        size_t n = length - from < CHUNK ? (size_t)(length - from) : CHUNK;
        st = heft_stream_read(buf, stream, n, &err);
        from += n;
        if (!st || (st == HEFT_E_CHECKSUM && begun)) {
            if (c->descr && !begun)
                put_header(o, c);
            out_bytes(o, buf, n);
            begun = true;
        }
        if (from == length)
            break;
    }
    heft_stream_close(stream);
    if (!st)
        st = heft_file_is_unchanged(c->f, &err);
    int code = st ? say_error(c->path, &err) : CODE_DONE;
    if (st == HEFT_E_CHECKSUM)
        say(MESSAGE_INFO, c->path,
            begun ? "all %llu bytes were already written: discard them"
                  : "none of the %llu bytes were written; --no-verify writes them anyway",
            (unsigned long long)length);
    return code;
}

/* ---- slices and casts ---- */

static const char *numpy_name(heft_dtype t)
{
    for (size_t i = 0; i < sizeof numpy_types / sizeof *numpy_types; i++)
        if (numpy_types[i].dtype == t)
            return numpy_types[i].descr;
    return NULL;
}

/* ---- the output ---- */

/* Standard output, or the file of --output. */
typedef struct output {
    outbuf o;
    const char *path; /* NULL: standard output */
    bool force, no_sync;
    heft_sink *sink;
    uint64_t at; /* bytes written to the sink */
    heft_error err;
} output;

static int write_to_sink(void *ctx, const void *p, size_t n)
{
    output *to = ctx;
    if (interrupt_is_pending()) {
        (void)interrupt_error(&to->err);
        return EINTR;
    }
    heft_status st = sink_put(to->sink, to->at, p, n, &to->err);
    to->at += n;
    return st ? EIO : 0;
}

static int output_open(output *to)
{
    out_open(&to->o, STDOUT_FILENO);
    if (!to->path)
        return CODE_DONE;
    if (sink_open(&to->sink, to->path, to->force, to->no_sync, NULL, &to->err))
        return say_error(to->path, &to->err);
    to->o.write = write_to_sink;
    to->o.ctx = to;
    return CODE_DONE;
}

/* Complete the output, or remove it if there is an exit code already. Return the exit code. */
static int output_end(output *to, int code)
{
    if (!to->path)
        return out_end(&to->o, code);
    bool is_written = out_flush(&to->o);
    int os = to->o.os;
    out_free(&to->o);
    if (code || !is_written)
        heft_sink_discard(to->sink);
    else
        is_written = !to->sink->ops->finish(to->sink, &to->err);
    if (code || is_written)
        return code;
    return to->err.status ? say_error(to->path, &to->err) : say_system(os, to->path);
}

static int put_slice(outbuf *o, slice_reader *r, const char *path)
{
    heft_error err;
    heft_status st = HEFT_OK;
    size_t bytes = heft_dtype_get(r->type)->block_bytes, skip, n;
    for (uint64_t at = 0; at < r->slice.elements && !st && !o->os; at += n) {
        const void *data;
        st = slice_read(&data, &skip, &n, r, at, SLICE_RUN, &err);
        if (!st)
            out_bytes(o, (const char *)data + skip * bytes, n * bytes);
    }
    if (!st)
        st = heft_file_is_unchanged(r->f, &err);
    return st ? say_error(path, &err) : CODE_DONE;
}

static int cat_slice(const session *s, const model_view *v, const char *path, uint32_t tensor,
                     const char *text, heft_dtype as, bool npy, output *to)
{
    slice_reader *r = malloc(sizeof *r);
    if (!r)
        return say_status(HEFT_E_NOMEM, path, "no memory for a buffer");
    int code = slice_reader_open(r, s, v, path, tensor, text, as);
    content c = { .f = v->f,
                  .path = path,
                  .descr = numpy_name(r->type),
                  .dims = r->slice.shape,
                  .rank = r->slice.shape_rank };
    if (!code && heft_dtype_get(r->type)->block_elems > 1)
        code = say_status(HEFT_E_UNSUPPORTED, path,
                          "elements of %s are smaller than a byte or in blocks: add --cast f32",
                          dtype_name(r->type));
    else if (!code && npy && !c.descr)
        code = say_status(HEFT_E_UNSUPPORTED, path,
                          "NumPy has no element type for %s: omit --npy, or add --cast f32",
                          dtype_name(r->type));
    if (!code)
        code = output_open(to);
    if (!code && npy)
        put_header(&to->o, &c);
    if (!code)
        code = output_end(to, put_slice(&to->o, r, path));
    slice_reader_close(r);
    free(r);
    return code;
}

static int put_content(const content *c, output *to)
{
    void *buf = malloc(CHUNK);
    if (!buf)
        return say_status(HEFT_E_NOMEM, c->path, "no memory for a buffer");
    int code = output_open(to);
    if (!code)
        code = output_end(to, put_bytes(&to->o, c, buf));
    free(buf);
    return code;
}

typedef struct request {
    const char *name, *id; /* of the tensor; both NULL for a part of the file */
    const char *role;
    const char *cast; /* --cast, or NULL */
    heft_dtype as;    /* element type of --cast */
    bool npy;
    output to;
} request;

static int put_vocabulary(const heft_vocab *v, const heft_file *f, const char *path, output *to)
{
    int code = output_open(to);
    if (code)
        return code;
    vocab_put(&to->o, v);
    return output_end(to, model_check_unchanged(f, path));
}

static int cat(const session *s, const model_view *v, const char *path, request *r)
{
    const char *text = NULL;
    bool has_tensor = r->name || r->id;
    const heft_file *f = has_tensor ? v->f : v->stored;
    content c = { .f = f, .path = path };
    uint32_t tensor = HEFT_NONE;
    if (has_tensor)
        tensor = r->id ? model_find_id(f, path, r->id) : slice_find(&text, v, path, r->name);
    if (has_tensor && tensor == HEFT_NONE)
        return model_code_of_missing(v->stored);
    if ((text || r->cast) && r->role)
        return say_usage("cat", "--part has no slices and no --cast");
    if (text || r->cast)
        return cat_slice(s, v, path, tensor, text, r->as, r->npy, &r->to);
    if (has_tensor && !r->npy && view_has_own_layout(v, tensor)) {
        tensor = view_stored(v, tensor);
        c.f = f = v->stored;
    }
    c.part = model_part(f, path, tensor, r->role);
    if (c.part == HEFT_NONE)
        return model_code_of_missing(v->stored);
    if (r->npy && !set_shape(&c, tensor, r->role))
        return CODE_CANNOT;
    int code = has_tensor && f == v->f ? view_verify(v, s, path, tensor) : CODE_DONE;
    return code ? code : put_content(&c, &r->to);
}

static int open_and_cat(const session *s, const heft_file *f, const char *path, request *r)
{
    model_view v = model_view_of_stored(f);
    int code = r->name || r->id ? model_view_open(&v, s, f, path, VIEW_TO_READ) : CODE_DONE;
    if (!code)
        code = cat(s, &v, path, r);
    model_view_close(&v);
    return code;
}

static const opt options[] = {
    { "part", 'p', OPT_TEXT, AT_NAME(request, role, NAMES_ROLE), "ROLE",
      "write this part instead of the data" },
    { "id", 0, OPT_TEXT, AT(request, id), "ID", MODEL_ID_HELP },
    { "cast", 0, OPT_TEXT, AT_NAME(request, cast, NAMES_DTYPE), "DTYPE",
      "convert to another element type" },
    { "raw-tensors", 0, OPT_FLAG, SETTING(raw_tensors), NULL, RAW_TENSORS_HELP },
    { "npy", 0, OPT_FLAG, AT(request, npy), NULL, "write a NumPy file (.npy)" },
    { "output", 'o', OPT_OUTPUT, AT(request, to.path), "OUT", "write to this file; - is stdout" },
    { "force", 'f', OPT_FLAG, AT(request, to.force), NULL,
      "replace OUT; write to a terminal, too" },
    { "no-sync", 0, OPT_FLAG, AT(request, to.no_sync), NULL, "do not wait for the disk" },
    { .name = NULL },
};

static int run(const session *s, void *ctx)
{
    request *r = ctx;
    heft_file *f;
    int code;
    r->name = s->args.count > 1 ? s->args.item[1] : NULL;
    if (r->name && r->id)
        return say_usage("cat", "both TENSOR and --id given: use only one");
    if (!r->name && !r->id && !r->role)
        return say_usage("cat", "expected TENSOR, --id or --part");
    if (r->cast && !(r->as = heft_dtype_find(heft_str_from(r->cast))))
        return say_unknown_dtype("cat", r->cast);
    if (r->to.path && !strcmp(r->to.path, "-"))
        r->to.path = NULL;
    if (!r->to.path && term_is_stdout() && !r->to.force)
        return say_usage("cat", "stdout is a terminal: use -o OUT, redirect it, or use --force");
    code = model_open(s, &f, s->args.item[0]);
    if (code)
        return code;
    const input in = { s->args.item[0], "the input itself", f };
    code = inputs_check_output(r->to.path, &in, r->to.force);
    if (code) {
        heft_file_close(f);
        return code;
    }
    heft_vocab *v = NULL; /* set if the part is a vocabulary, which is written as text */
    if (!r->name && !r->id && !r->npy && !strcmp(r->role, "vocab"))
        code = vocab_find(&v, f, s->args.item[0]);
    if (!code && v)
        code = put_vocabulary(v, f, s->args.item[0], &r->to);
    else if (!code)
        code = open_and_cat(s, f, s->args.item[0], r);
    heft_vocab_close(v);
    heft_file_close(f);
    return code;
}

const command command_cat = {
    .name = "cat",
    .args = "FILE [TENSOR]",
    .summary = "write the decoded bytes of a tensor or of a part of the file",
    .description =
        "Writes the decoded bytes of a tensor to stdout or to OUT, row by row and little-endian.\n"
        "TENSOR may be a slice, with the rules of NumPy: 'NAME[0:10,:,-1]'.\n"
        "Without TENSOR, --part names a part of the file itself, such as vocab or config;\n"
        "vocab is written with one token per line.",
    .example = "heft cat --npy model.safetensors embed.weight > embed.npy",
    .group = GROUP_LOOK,
    .traits = COMMAND_CHECKS_PARTS,
    .options = options,
    .request_bytes = sizeof(request),
    .run = run,
};
