/* fuzz_writer.c - fuzzes the writer: the input is a program of calls.  Calls in the wrong order are
 * refused; a finished file opens without faults and holds the declared bytes. */
#include <stdlib.h>
#include <string.h>

#include <heft/write.h>

#include "fuzz.h"

enum { MAX_TENSORS = 24, MAX_ELEMENTS = 64, MAX_CALLS = 48 };

typedef struct declared {
    char name[16];
    heft_dtype dtype;
    uint32_t first_part, parts;
    uint64_t bytes; /* size of each part */
    bool is_dense;
} declared;

typedef struct program {
    fuzz_script calls;
    heft_writer *w;
    declared tensors[MAX_TENSORS];
    uint32_t count, next_tensor, next_part; /* the part to be written next */
    uint64_t written;                       /* bytes of that part */
    uint32_t losses;
    bool has_begun, has_failed;
} program;

static void count_loss(void *ctx, heft_severity severity, const char *rule, heft_str tensor,
                       const char *text)
{
    fuzz_use(strlen(rule) + strlen(text));
    ((program *)ctx)->losses += severity != HEFT_NOTE || tensor.ptr;
}

/* After a failure other than HEFT_E_ARGUMENT, the file cannot be completed. */
static bool did(program *p, heft_status st, const heft_error *err)
{
    fuzz_require_error(st, err);
    p->has_failed = p->has_failed ||
                    (st && st != HEFT_E_ARGUMENT && !(p->has_begun && st == HEFT_E_LOSSY));
    return !st;
}

/* ---- calls ---------------------------------------------------------------------------------- */

static void add_meta(program *p, uint32_t bits)
{
    static const char *const keys[] = { "a", "b", "general.architecture", "", "x.y" };
    heft_error err = fuzz_no_error();
    heft_value v = { .kind = (heft_kind)(bits % 11), .key = heft_str_from(keys[bits / 16 % 5]) };
    static const uint8_t bytes[16] = { 1 };
    if (v.kind == HEFT_KIND_STR || v.kind == HEFT_KIND_BYTES)
        v.as.s = (heft_str){ (const char *)bytes, bits % 3 };
    else if (v.kind == HEFT_KIND_ID128)
        v.as.s = (heft_str){ (const char *)bytes, 16 };
    else if (v.kind == HEFT_KIND_ARRAY) {
        v.as.array.ptr = bytes;
        v.as.array.count = bits % 5;
        v.as.array.dtype = HEFT_U8;
    } else if (v.kind == HEFT_KIND_FLOAT) {
        v.as.f = bits / 8.0;
    } else if (v.kind == HEFT_KIND_BOOL) {
        v.as.b = bits & 16;
    } else {
        v.as.u = bits;
    }
    did(p, heft_writer_add_meta(p->w, v, &err), &err);
}

static void end_meta(program *p, uint32_t bits)
{
    heft_error err = fuzz_no_error();
    (void)bits;
    did(p, heft_writer_end_meta(p->w, &err), &err);
}

static uint64_t count_elements(const uint64_t *dims, uint32_t rank)
{
    uint64_t n = 1;
    for (uint32_t i = 0; i < rank; i++)
        n *= dims[i];
    return n;
}

static void add_tensor(program *p, uint32_t bits)
{
    static const heft_dtype types[] = { HEFT_F32, HEFT_U8,  HEFT_BOOL, HEFT_BF16,
                                        HEFT_I64, HEFT_C64, HEFT_Q8_0, HEFT_F64 };
    heft_error err = fuzz_no_error();
    heft_tensor_spec spec = HEFT_TENSOR_SPEC_INIT;
    heft_storage how = { .encoding = bits & 64 ? HEFT_ZSTD : HEFT_RAW,
                         .digest = bits & 128 ? "crc32c" : NULL };
    uint64_t dims[4];
    if (p->count == MAX_TENSORS)
        return;
    declared *t = &p->tensors[p->count];
    *t = (declared){ .dtype = types[bits % 8], .parts = 1, .is_dense = true };
    memcpy(t->name, "blocks.0.w", 11);
    t->name[7] = (char)('0' + fuzz_next(&p->calls) % 32);
    spec.rank = bits / 8 % 4;
    for (uint32_t i = 0; i < spec.rank; i++)
        dims[i] = fuzz_next(&p->calls) % 5;
    if (spec.rank && t->dtype == HEFT_Q8_0)
        dims[spec.rank - 1] = 32;
    spec.name = heft_str_from(t->name);
    spec.dtype = t->dtype;
    spec.dims = dims;
    spec.storage = bits & 192 ? &how : NULL;
    const heft_dtype_info *d = heft_dtype_get(t->dtype);
    t->bytes = count_elements(dims, spec.rank) / d->block_elems * d->block_bytes;
    if (did(p, heft_writer_add_tensor(&t->first_part, p->w, &spec, &err), &err))
        p->count++;
}

/* Add a matrix in coordinates; every entry has other coordinates. */
static void add_sparse(program *p, uint32_t bits)
{
    heft_error err = fuzz_no_error();
    heft_tensor_spec spec = HEFT_TENSOR_SPEC_INIT;
    uint64_t dims[] = { 8, 8 }, entries = bits % 3;
    const heft_component parts[] = { { HEFT_STR("values"), HEFT_U8, entries, NULL },
                                     { HEFT_STR("coords"), HEFT_U8, 2 * entries, NULL } };
    if (p->count == MAX_TENSORS)
        return;
    declared *t = &p->tensors[p->count];
    *t = (declared){ .dtype = HEFT_U8, .parts = 2, .bytes = entries };
    memcpy(t->name, "sparse.0", 9);
    t->name[7] = (char)('0' + bits / 4 % 32);
    spec.name = heft_str_from(t->name);
    spec.dtype = HEFT_U8;
    spec.rank = 2;
    spec.dims = dims;
    spec.layout = heft_str_from("sparse_coo");
    spec.components = parts;
    spec.component_count = 2;
    if (did(p, heft_writer_add_tensor(&t->first_part, p->w, &spec, &err), &err))
        p->count++;
}

static void add_text(program *p, uint32_t bits)
{
    heft_error err = fuzz_no_error();
    if (bits % 2)
        did(p, heft_writer_set_generator(p->w, heft_str_from("fuzz 1"), &err), &err);
    else
        did(p,
            heft_writer_add_model_part(p->w, heft_str_from(bits & 2 ? "config" : "other"),
                                       "{\"kind\":\"k\",\"config\":{}}", 24, &err),
            &err);
}

static void begin(program *p, uint32_t bits)
{
    heft_error err = fuzz_no_error();
    (void)bits;
    if (did(p, heft_writer_begin(p->w, &err), &err))
        p->has_begun = true;
    else if (err.status == HEFT_E_LOSSY)
        p->has_failed = true;
}

/* The byte at an offset of a part; 0 and 1 suit every element type. */
static uint8_t content(const declared *t, uint64_t offset)
{
    return t->is_dense ? (t->dtype == HEFT_BOOL ? offset % 3 == 1 : offset % 5 == 2)
                       : (uint8_t)offset;
}

static void write_bytes(program *p, uint64_t most)
{
    uint8_t bytes[MAX_ELEMENTS * 64];
    heft_error err = fuzz_no_error();
    if (p->next_tensor >= p->count)
        return;
    const declared *t = &p->tensors[p->next_tensor];
    uint64_t size = t->bytes * (p->next_part ? 2 : 1), left = size - p->written;
    uint64_t n = left < most ? left : most;
    n = n < sizeof bytes ? n : sizeof bytes;
    for (uint64_t i = 0; i < n; i++)
        bytes[i] = content(t, p->written + i);
    if (!did(p, heft_writer_write(p->w, t->first_part + p->next_part, bytes, (size_t)n, &err),
             &err))
        return;
    p->written += n;
    if (p->written < size)
        return;
    p->written = 0;
    p->next_part = (p->next_part + 1) % t->parts;
    p->next_tensor += !p->next_part;
}

static void write_some(program *p, uint32_t bits)
{
    write_bytes(p, bits);
}

static void run_calls(program *p)
{
    static void (*const calls[])(program *, uint32_t) = { add_meta,   add_tensor, add_tensor,
                                                          add_sparse, add_text,   end_meta,
                                                          write_some, begin };
    for (uint32_t i = 0; i < MAX_CALLS && p->calls.at < p->calls.len && !p->has_failed; i++) {
        uint32_t call = fuzz_next(&p->calls);
        calls[call % 8](p, fuzz_next(&p->calls));
    }
    for (int i = 0; i < 8 && !p->has_begun; i++) /* open lists and maps are ended first */
        end_meta(p, 0);
    if (!p->has_begun && !p->has_failed)
        begin(p, 0);
    for (uint32_t i = 0; i < 4 * MAX_TENSORS && !p->has_failed; i++)
        write_bytes(p, UINT64_MAX);
}

/* ---- the file ------------------------------------------------------------------------------- */

static void check_tensor(const heft_file *f, const declared *t)
{
    heft_array a;
    uint32_t id = heft_tensor_find(f, heft_str_from(t->name));
    fuzz_require(id != HEFT_NONE);
    if (!t->is_dense)
        return;
    fuzz_require(!heft_array_read(&a, f, heft_str_from(t->name), HEFT_UNTYPED, NULL, 0, NULL));
    fuzz_require(a.bytes == t->bytes && a.dtype == t->dtype);
    for (uint64_t i = 0; i < a.bytes; i++)
        fuzz_require(((const uint8_t *)a.data)[i] == content(t, i));
    heft_array_free(&a);
}

static void check_file(const program *p, fuzz_bytes b, const heft_host *host)
{
    heft_open_options opt = HEFT_OPEN_OPTIONS_INIT;
    heft_file *f = NULL;
    opt.host = host;
    fuzz_require(!fuzz_open(&f, b.ptr, b.len, &opt) && !fuzz_faults(f));
    for (uint32_t i = 0; i < p->count && !p->losses; i++)
        check_tensor(f, &p->tensors[i]);
    heft_file_close(f);
}

static void run(const uint8_t *data, size_t size, fuzz_script *s)
{
    fuzz_memory m;
    fuzz_bytes b = { .ptr = NULL };
    program p = { .calls = { data, size, 0 } };
    heft_write_options opt = HEFT_WRITE_OPTIONS_INIT;
    const heft_format *to = fuzz_writable(fuzz_next(s));
    heft_error err = fuzz_no_error();
    uint32_t flags = fuzz_next(s);
    fuzz_memory_init(&m, UINT32_MAX);
    opt.host = &m.host;
    opt.allow_loss = flags & 1;
    opt.storage.digest = flags & 2 ? "crc32c" : NULL;
    opt.on_loss = count_loss;
    opt.ctx = &p;
    heft_status st = heft_writer_open(&p.w, to, flags & 4 ? fuzz_sink(&b) : fuzz_sink_at(&b), &opt,
                                      &err);
    fuzz_require_error(st, &err);
    if (!st) {
        run_calls(&p);
        heft_status finished = heft_writer_finish(p.w, &err);
        fuzz_require_error(finished, &err);
        fuzz_require(finished || !p.has_failed);
        if (!finished)
            check_file(&p, b, &m.host);
    }
    free(b.ptr);
    fuzz_require(!m.live);
}

const fuzz_target fuzz_this = { .run = run, .script_bytes = 2 };
