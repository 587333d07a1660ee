/* fuzz_delta.c - fuzzes deltas.  The data become the parts of a sparse change, a stream of another
 * program, or the difference between two models: what is applied has the new values at the
 * positions and the old ones elsewhere, and a delta that was made gives the new model. */
#include <stdlib.h>
#include <string.h>

#include "delta/delta_file.h"
#include "fuzz.h"

enum { UNITS = 70000, UNIT = 2, BYTES = UNITS * UNIT, PER_BYTE = 64, ROOM = 8 << 20 };

static const heft_str tensor_name = { "w", 1 };

/* ---- models --------------------------------------------------------------------------------- */

static fuzz_bytes make_model(const uint8_t *values)
{
    static const uint64_t dims[] = { UNITS };
    fuzz_bytes out = { .ptr = NULL };
    heft_writer *w;
    uint32_t part;
    fuzz_require(!heft_writer_open(&w, heft_format_find(HEFT_STR("safetensors")), fuzz_sink(&out),
                                   NULL, NULL));
    fuzz_require(!heft_writer_add_dense(&part, w, tensor_name, HEFT_BF16, dims, 1, NULL));
    fuzz_require(!heft_writer_begin(w, NULL));
    fuzz_require(!heft_writer_write(w, part, values, BYTES, NULL));
    fuzz_require(!heft_writer_finish(w, NULL));
    return out;
}

static uint8_t *old_values(void)
{
    static uint8_t values[BYTES];
    for (size_t i = 0; i < BYTES; i++)
        values[i] = (uint8_t)(i * i >> 7);
    return values;
}

/* ---- a delta of these parts ----------------------------------------------------------------- */

typedef struct cut { /* the data, in three */
    const uint8_t *ptr[3];
    size_t len[3];
} cut;

static heft_status put_text(heft_writer *w, const char *key, const char *text)
{
    return heft_writer_add_meta(w, heft_value_str(heft_str_from(key), heft_str_from(text)), NULL);
}

static heft_status begin(heft_writer *w, const char *key)
{
    heft_value v = { .kind = HEFT_KIND_MAP, .key = heft_str_from(key) };
    return heft_writer_add_meta(w, v, NULL);
}

static void put_list(heft_writer *w)
{
    char digest[2 * HEFT_HASH_BYTES + 1];
    memset(digest, '0', sizeof digest - 1);
    digest[sizeof digest - 1] = 0;
    fuzz_require(!begin(w, HEFT_DELTA_KEY));
    fuzz_require(!heft_writer_add_meta(w, heft_value_int(HEFT_STR("version"), 1), NULL));
    fuzz_require(!begin(w, "tensors") && !begin(w, "w"));
    fuzz_require(!put_text(w, "change", "sparse") && !put_text(w, "dtype", "bf16"));
    fuzz_require(!put_text(w, "base", digest) && !put_text(w, "result", digest));
    fuzz_require(!put_text(w, "replaced", digest));
    for (int i = 0; i < 3; i++)
        fuzz_require(!heft_writer_end_meta(w, NULL));
}

static fuzz_bytes make_sparse(const cut *c)
{
    static const uint64_t dims[] = { UNITS };
    const heft_component parts[] = { { HEFT_STR("counts"), HEFT_U32, c->len[0] / 4, NULL },
                                     { HEFT_STR("gaps"), HEFT_U16, c->len[1] / 2, NULL },
                                     { HEFT_STR("values"), HEFT_U16, c->len[2] / 2, NULL } };
    fuzz_bytes out = { .ptr = NULL };
    heft_tensor_spec s = HEFT_TENSOR_SPEC_INIT;
    heft_write_options o = HEFT_WRITE_OPTIONS_INIT;
    heft_writer *w;
    uint32_t part;
    o.version = "1.2";
    s.name = tensor_name;
    s.dtype = HEFT_U16;
    s.rank = 1;
    s.dims = dims;
    s.layout = HEFT_STR(HEFT_DELTA_SPARSE);
    s.components = parts;
    s.component_count = 3;
    fuzz_require(
        !heft_writer_open(&w, heft_format_find(HEFT_STR("ztensor")), fuzz_sink(&out), &o, NULL));
    put_list(w);
    fuzz_require(!heft_writer_add_tensor(&part, w, &s, NULL) && !heft_writer_begin(w, NULL));
    fuzz_require(!heft_writer_write(w, part, c->ptr[0], c->len[0] / 4 * 4, NULL));
    fuzz_require(!heft_writer_write(w, part + 1, c->ptr[1], c->len[1] / 2 * 2, NULL));
    fuzz_require(!heft_writer_write(w, part + 2, c->ptr[2], c->len[2] / 2 * 2, NULL));
    fuzz_require(!heft_writer_finish(w, NULL));
    return out;
}

/* A disk delta, with the data as a stream of zstd. */
static fuzz_bytes make_disk(const uint8_t *data, size_t size, const char *encoding)
{
    const uint64_t dims[] = { size };
    fuzz_bytes out = { .ptr = NULL };
    heft_writer *w;
    uint32_t part;
    fuzz_require(!heft_writer_open(&w, heft_format_find(HEFT_STR("safetensors")), fuzz_sink(&out),
                                   NULL, NULL));
    fuzz_require(!put_text(w, "delta_encoding", encoding) && !put_text(w, "w", "00000000"));
    fuzz_require(!put_text(w, "compression_format", "zstd"));
    fuzz_require(!put_text(w, "checksum_format", "adler32"));
    fuzz_require(!heft_writer_add_dense(&part, w, tensor_name, HEFT_U8, dims, 1, NULL));
    fuzz_require(!heft_writer_begin(w, NULL) && !heft_writer_write(w, part, data, size, NULL));
    fuzz_require(!heft_writer_finish(w, NULL));
    return out;
}

/* ---- applying ------------------------------------------------------------------------------- */

typedef struct opened {
    fuzz_memory m;
    heft_file *base, *file, *result;
    heft_delta *delta;
} opened;

static heft_status apply(opened *o, const fuzz_bytes *base, const fuzz_bytes *delta, bool verifies)
{
    heft_open_options open = HEFT_OPEN_OPTIONS_INIT;
    heft_apply_options opt = HEFT_APPLY_OPTIONS_INIT;
    heft_error err = fuzz_no_error();
    fuzz_memory_init(&o->m, (uint32_t)(ROOM + PER_BYTE * delta->len));
    open.host = &o->m.host;
    opt.no_verify = !verifies;
    o->delta = NULL;
    o->result = NULL;
    fuzz_require(!fuzz_open(&o->base, base->ptr, base->len, &open));
    fuzz_require(!fuzz_open(&o->file, delta->ptr, delta->len, &open));
    heft_status st = heft_delta_open(&o->delta, o->file, &err);
    if (!st)
        st = heft_delta_apply(&o->result, o->base, o->delta, &opt, &err);
    fuzz_require_error(st, &err);
    fuzz_require(!st == (o->result != NULL));
    return st;
}

static void close_all(opened *o)
{
    heft_file_close(o->result);
    heft_delta_close(o->delta);
    heft_file_close(o->file);
    heft_file_close(o->base);
}

/* Read the result as a whole and in sections. */
static void read_result(const opened *o, uint8_t *to, fuzz_script *s)
{
    uint32_t t = heft_tensor_find(o->result, tensor_name);
    fuzz_require(t != HEFT_NONE && heft_tensor_bytes(o->result, t) == BYTES);
    uint32_t part = heft_tensor_at(o->result, t).first_part;
    fuzz_require(!heft_part_read(to, o->result, part, 0, BYTES, NULL));
    for (int i = 0; i < 8; i++) {
        static uint8_t section[BYTES];
        size_t from = (size_t)fuzz_next(s) * fuzz_next(s) * 2 % BYTES;
        size_t len = (BYTES - from) * (fuzz_next(s) % 5) / 4;
        fuzz_require(!heft_part_read(section, o->result, part, from, len, NULL));
        fuzz_require(!memcmp(section, to + from, len));
    }
}

static uint32_t number(const uint8_t *p, size_t bytes)
{
    uint32_t v = 0;
    for (size_t i = 0; i < bytes; i++)
        v |= (uint32_t)p[i] << 8 * i;
    return v;
}

/* Compare the result with what the parts say, computed in another way. */
static void require_values(const cut *c, const uint8_t *old, const uint8_t *result)
{
    static uint8_t want[BYTES];
    size_t next = 0;
    memcpy(want, old, BYTES);
    for (size_t b = 0; b < c->len[0] / 4; b++) {
        size_t at = b * 65536;
        for (uint32_t n = number(c->ptr[0] + 4 * b, 4); n--; next++) {
            at += number(c->ptr[1] + 2 * next, 2);
            memcpy(want + UNIT * at, c->ptr[2] + UNIT * next, UNIT);
        }
    }
    fuzz_require(!memcmp(want, result, BYTES));
}

static void run_sparse(const fuzz_bytes *base, const uint8_t *data, size_t size, fuzz_script *s)
{
    static uint8_t result[BYTES];
    size_t changes = size > 8 ? (size - 8) / 4 : 0;
    cut c = { { data, data + (size < 8 ? size : 8), NULL }, { size < 8 ? size : 8, 0, 0 } };
    opened o;
    c.len[1] = 2 * changes;
    c.ptr[2] = c.ptr[1] + c.len[1];
    c.len[2] = 2 * changes;
    fuzz_bytes delta = make_sparse(&c);
    if (!apply(&o, base, &delta, false)) {
        read_result(&o, result, s);
        require_values(&c, old_values(), result);
    }
    close_all(&o);
    free(delta.ptr);
}

static void run_disk(const fuzz_bytes *base, const uint8_t *data, size_t size, fuzz_script *s)
{
    static uint8_t result[BYTES];
    opened o;
    fuzz_bytes delta = make_disk(data, size, fuzz_next(s) % 2 ? "xor" : "overwrite");
    if (!apply(&o, base, &delta, false))
        read_result(&o, result, s);
    close_all(&o);
    free(delta.ptr);
}

/* ---- making --------------------------------------------------------------------------------- */

static void run_made(const fuzz_bytes *base, const uint8_t *data, size_t size, fuzz_script *s)
{
    static uint8_t new_values[BYTES], result[BYTES];
    fuzz_bytes delta = { .ptr = NULL };
    heft_file *old, *new;
    opened o;
    size_t step = 1 + (size_t)fuzz_next(s) * fuzz_next(s);
    memcpy(new_values, old_values(), BYTES);
    for (size_t i = 0; i < size; i++)
        new_values[i * step % BYTES] ^= data[i];
    fuzz_bytes model = make_model(new_values);
    fuzz_require(!fuzz_open(&old, base->ptr, base->len, NULL));
    fuzz_require(!fuzz_open(&new, model.ptr, model.len, NULL));
    fuzz_require(!heft_delta_make(NULL, old, new, fuzz_sink(&delta), NULL, NULL));
    fuzz_require(!apply(&o, base, &delta, true));
    read_result(&o, result, s);
    fuzz_require(!memcmp(result, new_values, BYTES));
    close_all(&o);
    heft_file_close(old);
    heft_file_close(new);
    free(model.ptr);
    free(delta.ptr);
}

static void run(const uint8_t *data, size_t size, fuzz_script *s)
{
    static fuzz_bytes base;
    if (!base.ptr)
        base = make_model(old_values());
    switch (fuzz_next(s) % 3) {
    case 0:
        run_sparse(&base, data, size, s);
        break;
    case 1:
        run_disk(&base, data, size, s);
        break;
    default:
        run_made(&base, data, size, s);
    }
}

const fuzz_target fuzz_this = { .run = run, .script_bytes = 20 };
