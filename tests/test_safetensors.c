/* test_safetensors.c - reading and writing of safetensors, byte by byte. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <heft/check.h>
#include <heft/heft.h>
#include <heft/heft_ext.h>
#include <heft/write.h>

#include "base/text.h"
#include "format/format.h"
#include "test_memory.h"

enum { MAX_BYTES = 64 << 10, TEST_SKIPPED = 77 };

static const heft_format *the_format(void)
{
    return heft_format_find(HEFT_STR("safetensors"));
}

typedef struct sample {
    uint8_t bytes[MAX_BYTES];
    size_t len;
} sample;

/* Make a file of the header text and `data` bytes of data: 1, 2, 3, ... */
static void make(sample *s, const char *header, size_t data)
{
    size_t n = strlen(header);
    for (int i = 0; i < 8; i++)
        s->bytes[i] = (uint8_t)((uint64_t)n >> 8 * i);
    memcpy(s->bytes + 8, header, n);
    for (size_t i = 0; i < data; i++)
        s->bytes[8 + n + i] = (uint8_t)(i + 1);
    s->len = 8 + n + data;
}

static heft_status open_sample(heft_file **f, const sample *s, heft_error *err)
{
    heft_open_options opt = HEFT_OPEN_OPTIONS_INIT;
    heft_source *source = NULL;
    opt.format = the_format();
    assert_int_equal(heft_source_open_memory(&source, s->bytes, s->len, err), HEFT_OK);
    return heft_file_open_source(f, source, &opt, err);
}

static heft_file *open_ok(const sample *s)
{
    heft_file *f = NULL;
    heft_error err;
    if (open_sample(&f, s, &err))
        fail_msg("%s", err.message);
    return f;
}

/* ---- reading ---- */

#define W "{\"w\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}"

static void refuses_malformed_headers_with_reason_and_offset(void **state)
{
    (void)state;
    static const struct refusal {
        const char *header;
        size_t data;
        uint64_t at;
        const char *says;
    } refusals[] = {
        { "[1]", 0, 8, "not a JSON object" },
        { "{\"w\":1}", 0, 13, "'w': the entry is not an object" },
        { "{\"w\":{}}", 0, 9, "'w': the entry has no dtype" },
        { "{\"w\":{\"dtype\":\"F32\"}}", 0, 9, "'w': the entry has no shape" },
        { "{\"w\":{\"dtype\":\"F32\",\"shape\":[]}}", 0, 9, "'w': the entry has no data_offsets" },
        { "{\"w\":{\"dtype\":32}}", 0, 22, "'w': dtype is not a string" },
        { "{\"w\":{\"dtype\":\"F31\"}}", 0, 22, "'w': dtype 'F31' is unknown" },
        { "{\"w\":{\"dtype\":\"U8\",\"dtype\":\"U8\"}}", 0, 27, "'w': dtype occurs twice" },
        { "{\"w\":{\"shape\":[],\"shape\":[]}}", 0, 25, "'w': shape occurs twice" },
        { "{\"w\":{\"shape\":2}}", 0, 22, "'w': shape is not a list" },
        { "{\"w\":{\"shape\":[2,null]}}", 0, 25, "'w': a dimension is not a number" },
        { "{\"w\":{\"shape\":[-1]}}", 0, 23, "'w': dimension '-1' is not an integer" },
        { "{\"w\":{\"shape\":[1.5]}}", 0, 23, "'w': dimension '1.5' is not an integer" },
        { "{\"w\":{\"shape\":[9223372036854775808]}}", 0, 23, "is not an integer below 2^63" },
        { "{\"w\":{\"shape\":[4294967296,4294967296,0]}}", 0, 34, "more than 2^64 elements" },
        { "{\"w\":{\"data_offsets\":[0]}}", 8, 31, "'w': data_offsets are not two" },
        { "{\"w\":{\"data_offsets\":[0,1,2]}}", 8, 34, "'w': data_offsets are not two" },
        { "{\"w\":{\"data_offsets\":[0,9]}}", 8, 33,
          "tensor 'w' needs data up to byte 9 of the data section, only 8" },
        { "{\"w\":{\"data_offsets\":[8,0]}}", 8, 33, "data_offsets 8 and 0 are descending" },
        { "{\"w\":{\"data_offsets\":[0,8],\"data_offsets\":[0,8]}}", 8, 35,
          "'w': data_offsets occurs twice" },
        { "{\"w\":{\"dtype\":\"F4\",\"shape\":[3],\"data_offsets\":[0,2]}}", 2, 9,
          "3 elements of f4_e2m1 do not fill whole bytes" },
        { "{\"w\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[0,8]}}", 8, 9,
          "8 bytes are stored, its shape as f32 takes 12" },
        { W, 9, 8 + 54 + 8, "unexpected bytes after the data of the last tensor: 1" },
        { "{\"w\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[2,5]}}", 5, 8 + 53,
          "'w': data begins at offset 2 of the data section, but the preceding data ends at 0" },
        { "{\"v\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[0,3]},"
          "\"w\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[2,5]}}",
          5, 8 + 105 + 2,
          "'w': data begins at offset 2 of the data section, inside another tensor" },
        { "{\"w\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[1,1]},"
          "\"v\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[0,3]}}",
          3, 8 + 105 + 1,
          "'w': data begins at offset 1 of the data section, inside another tensor" },
        { "{\"__metadata__\":1}", 0, 24, "__metadata__ is not an object" },
        { "{\"__metadata__\":{\"a\":1}}", 0, 29, "__metadata__: the value of 'a' is not a string" },
        { "{\"__metadata__\":{},\"__metadata__\":{}}", 0, 27, "__metadata__ occurs twice" },
        { "{\"__metadata__\":{\"a\":\"\",\"a\":\"\"}}", 0, 33, "'a' occurs twice" },
        { "{\"w\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]},"
          "\"w\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}}",
          0, 62, "'w' occurs twice" },
        { W "x", 8, 8 + 54, "the end of the text is expected" },
    };
    sample *s = malloc(sizeof *s);
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        heft_file *f = NULL;
        heft_error err;
        make(s, refusals[i].header, refusals[i].data);
        assert_int_equal(open_sample(&f, s, &err), HEFT_E_FORMAT);
        assert_null(f);
        if (!strstr(err.message, refusals[i].says))
            fail_msg("%s: says '%s', not '%s'", refusals[i].header, err.message, refusals[i].says);
        if (err.offset != refusals[i].at)
            fail_msg("%s: at %llu, not %llu", refusals[i].header, (unsigned long long)err.offset,
                     (unsigned long long)refusals[i].at);
    }
    free(s);
}

static void refuses_impossible_header_lengths(void **state)
{
    (void)state;
    static const struct length {
        uint64_t n;
        size_t len;
        const char *says;
    } lengths[] = {
        { 2, 7, "the file has 7 bytes" },
        { 0, 0, "the file has 0 bytes" },
        { 3, 10, "the header has 3 bytes, only 2 are present" },
        { 100000000, 10, "only 2 are present" },
        { 100000001, 10, "at most 100000000 are allowed" },
        { UINT64_MAX, 10, "18446744073709551615 bytes, but at most 100000000" },
        { 0, 8, "the text ends where a value is expected" },
        { 1, 10, "the text ends where" },
    };
    sample *s = malloc(sizeof *s);
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        heft_file *f = NULL;
        heft_error err;
        make(s, "{}", 0);
        for (int b = 0; b < 8; b++)
            s->bytes[b] = (uint8_t)(lengths[i].n >> 8 * b);
        s->len = lengths[i].len;
        assert_int_equal(open_sample(&f, s, &err), HEFT_E_FORMAT);
        if (!strstr(err.message, lengths[i].says))
            fail_msg("length %zu: says '%s', not '%s'", i, err.message, lengths[i].says);
    }
    free(s);
}

static void refuses_deep_nesting(void **state)
{
    (void)state;
    char header[512] = "{\"w\":{\"x\":";
    sample *s = malloc(sizeof *s);
    heft_file *f = NULL;
    heft_error err;
    memset(header + strlen(header), '[', 200);
    make(s, header, 0);
    assert_int_equal(open_sample(&f, s, &err), HEFT_E_LIMIT);
    assert_int_equal(err.offset, 8 + 10 + 126); /* the header and the entry count as levels */
    free(s);
}

static void reads_tensors_in_the_order_of_the_header(void **state)
{
    (void)state;
    sample *s = malloc(sizeof *s);
    make(s,
         " { \"b\" : {\"data_offsets\":[4,6] ,\"x\":[{\"y\":null}], \"shape\" : [ 2 , 1 ],"
         "\"dtype\":\"U8\"},\n\"__metadata__\":{\"k\":\"v\\n\"},"
         "\"\\u0061\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[0,4]},"
         "\"none\":{\"dtype\":\"I64\",\"shape\":[3,0],\"data_offsets\":[4,4]} }  ",
         6);
    heft_file *f = open_ok(s);
    assert_int_equal(heft_tensor_count(f), 3);
    heft_tensor b = heft_tensor_at(f, 0), a = heft_tensor_at(f, 1), none = heft_tensor_at(f, 2);
    assert_true(b.rank == 2 && b.dims[0] == 2 && b.dims[1] == 1 && b.dtype == HEFT_U8);
    assert_true(a.rank == 0 && a.dtype == HEFT_F32 && a.name.len == 1 && a.name.ptr[0] == 'a');
    assert_true(none.rank == 2 && none.dims[0] == 3 && none.dims[1] == 0);
    const uint8_t *bytes = heft_part_view(f, b.first_part);
    assert_true(bytes && bytes[0] == 5 && bytes[1] == 6);
    assert_int_equal(heft_part_at(f, a.first_part).offset, s->len - 6);
    assert_int_equal(heft_tensor_find(f, HEFT_STR("none")), 2);
    heft_value v;
    assert_true(heft_meta_find(&v, f, HEFT_STR("k")));
    assert_true(v.kind == HEFT_KIND_STR && v.as.s.len == 2 && !memcmp(v.as.s.ptr, "v\n", 2));
    heft_file_close(f);
    free(s);
}

typedef struct findings {
    char rules[256];
} findings;

static void collect(void *ctx, const heft_finding *finding)
{
    findings *all = ctx;
    strncat(all->rules, finding->rule, sizeof all->rules - strlen(all->rules) - 1);
    strncat(all->rules, finding->severity == HEFT_NOTE ? " " : "! ",
            sizeof all->rules - strlen(all->rules) - 1);
}

static void reports_accepted_deviations(void **state)
{
    (void)state;
    static const struct lenient {
        const char *header, *rules;
    } rows[] = {
        { W "  ", "" },
        { W " \n", "safetensors/padding " },
        { "\t " W, "safetensors/leading-space! " },
        { W, "safetensors/align " },
        { "{\"w\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8],\"a\":1}}    ",
          "safetensors/unknown-field " },
    };
    sample *s = malloc(sizeof *s);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        findings all = { "" };
        heft_verify_result result;
        heft_error err;
        make(s, rows[i].header, 8);
        heft_file *f = open_ok(s);
        assert_int_equal(
            heft_file_verify(&result, f,
                             &(heft_verify_options){ sizeof(heft_verify_options),
                                                     .on_finding = collect, .ctx = &all },
                             &err),
            HEFT_OK);
        assert_string_equal(all.rules, rows[i].rules);
        heft_file_close(f);
    }
    free(s);
}

static void probe_recognises_safetensors(void **state)
{
    (void)state;
    static const struct row {
        const char *header;
        size_t cut;
        bool is_certain, is_possible;
    } rows[] = {
        { W, 0, true, true },          { " \n" W, 0, true, true },
        { W, 4, true, true }, /* the data are truncated */
        { W, 20, false, true },        { "[]", 0, false, false },
        { "\x0b{}", 0, false, false }, { "{", 0, false, true },
        { "", 0, false, false },
    };
    sample *s = malloc(sizeof *s);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        make(s, rows[i].header, 8);
        size_t len = s->len - rows[i].cut;
        int bits = the_format()->probe(s->bytes, len, s->bytes, len, len);
        assert_int_equal(bits >= 24, rows[i].is_certain);
        assert_int_equal(bits > 0, rows[i].is_possible);
    }
    assert_int_equal(the_format()->probe(s->bytes, 8, s->bytes, 8, 8), 0);
    assert_int_equal(the_format()->probe(s->bytes, 0, s->bytes, 0, 0), 0);
    free(s);
}

static void opens_a_file_fed_byte_by_byte(void **state)
{
    (void)state;
    sample *s = malloc(sizeof *s);
    heft_file *f = NULL;
    heft_error err;
    heft_open_options opt = HEFT_OPEN_OPTIONS_INIT;
    const heft_range *needs;
    heft_status st;
    int rounds = 0;
    make(s, W, 8);
    opt.format = the_format();
    assert_int_equal(heft_file_begin(&f, s->len, &opt, &err), HEFT_OK);
    for (; (st = heft_file_step(f, &err)) == HEFT_AGAIN; rounds++) {
        assert_in_range(heft_file_needs(f, &needs), 1, 4);
        assert_int_equal(heft_file_feed(f, needs->offset, s->bytes + needs->offset, 1, &err),
                         HEFT_OK);
    }
    assert_int_equal(st, HEFT_OK);
    assert_in_range(rounds, 40, 200);
    assert_int_equal(heft_tensor_count(f), 1);
    heft_file_close(f);
    free(s);
}

static void reports_every_failed_allocation(void **state)
{
    (void)state;
    sample *s = malloc(sizeof *s);
    make(s,
         "{\"__metadata__\":{\"\\n\":\"\\t\",\"a\":\"b\"},"
         "\"\\r\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[1,2]},"
         "\"w\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1],\"x\":0}}",
         2);
    heft_status st = HEFT_E_NOMEM;
    uint32_t n = 1;
    for (; st; n++) {
        test_memory m;
        test_memory_init(&m, n);
        heft_host host = *heft_host_default();
        host.allocator = &m.al;
        heft_open_options opt = HEFT_OPEN_OPTIONS_INIT;
        opt.host = &host;
        heft_file *f = NULL;
        heft_error err;
        st = heft_file_begin(&f, s->len, &opt, &err);
        if (!st)
            st = heft_file_feed(f, 0, s->bytes, s->len, &err);
        if (!st)
            st = heft_file_step(f, &err);
        assert_true(!st || st == HEFT_E_NOMEM);
        heft_file_close(f);
        assert_int_equal(m.live, 0);
    }
    assert_in_range(n, 8, 100);
    free(s);
}

/* ---- writing ---- */

typedef struct written {
    char losses[512];
    heft_write_options opt;
    heft_writer *w;
    char path[64];
    heft_error err;
} written;

static void add_loss(void *ctx, heft_severity severity, const char *rule, heft_str tensor,
                     const char *text)
{
    written *out = ctx;
    size_t at = strlen(out->losses);
    (void)text;
    snprintf(out->losses + at, sizeof out->losses - at, "%s%s %.*s\n",
             severity == HEFT_FAULT     ? "!"
             : severity == HEFT_WARNING ? "?"
                                        : "",
             rule, (int)tensor.len, tensor.ptr ? tensor.ptr : "");
}

static void begin_writing(written *out)
{
    const char *dir = getenv("TMPDIR");
    heft_write_options opt = HEFT_WRITE_OPTIONS_INIT;
    out->losses[0] = 0;
    out->opt = opt;
    out->opt.on_loss = add_loss;
    out->opt.ctx = out;
    snprintf(out->path, sizeof out->path, "%s/heft-st-XXXXXX", dir ? dir : "/tmp");
    int fd = mkstemp(out->path);
    assert_true(fd >= 0);
    close(fd);
}

static void open_writer(written *out)
{
    heft_sink *sink = NULL;
    assert_int_equal(heft_sink_open_file(&sink, out->path, HEFT_SINK_REPLACE, &out->err), HEFT_OK);
    assert_int_equal(heft_writer_open(&out->w, the_format(), sink, &out->opt, &out->err), HEFT_OK);
}

static void declare(written *out, const char *name, heft_dtype t, uint64_t dim)
{
    uint32_t part;
    assert_int_equal(heft_writer_add_dense(&part, out->w, heft_lit(name), t, &dim, 1, &out->err),
                     HEFT_OK);
}

/* Fill part i with the byte i + 1, and finish the file. */
static void write_parts(written *out, const size_t *sizes, uint32_t count)
{
    uint8_t bytes[64];
    if (heft_writer_begin(out->w, &out->err))
        fail_msg("%s", out->err.message);
    for (uint32_t i = 0; i < count; i++) {
        memset(bytes, (int)i + 1, sizeof bytes);
        assert_int_equal(heft_writer_write(out->w, i, bytes, sizes[i], &out->err), HEFT_OK);
    }
    if (heft_writer_finish(out->w, &out->err))
        fail_msg("%s", out->err.message);
}

/* Read the file's bytes after an independent reader has accepted the file. */
static void read_back(sample *s, const written *out)
{
    char command[256];
    const char *python = getenv("HEFT_PYTHON");
    snprintf(command, sizeof command, "%s tests/py/read_safetensors.py --writer %s >/dev/null",
             python ? python : "python3", out->path);
    assert_int_equal(system(command), 0);
    FILE *f = fopen(out->path, "rb");
    assert_non_null(f);
    s->len = fread(s->bytes, 1, MAX_BYTES, f);
    fclose(f);
    unlink(out->path);
}

static void assert_header(const sample *s, const char *header)
{
    size_t n = strlen(header), padded = (size_t)(s->bytes[0] | s->bytes[1] << 8);
    assert_memory_equal(s->bytes + 8, header, n < padded ? n : padded);
    assert_in_range(padded, n, s->len - 8);
    for (size_t i = n; i < padded; i++)
        assert_int_equal(s->bytes[8 + i], ' ');
}

static void writes_a_compact_header_padded_to_the_alignment(void **state)
{
    (void)state;
    static const struct padding {
        uint32_t align;
        size_t data;
    } paddings[] = { { 0, 128 }, { 1, 72 }, { 8, 72 }, { 64, 128 }, { 4096, 4096 } };
    sample *s = malloc(sizeof *s);
    for (size_t i = 0; i < sizeof paddings / sizeof *paddings; i++) {
        written out;
        begin_writing(&out);
        out.opt.align = paddings[i].align;
        open_writer(&out);
        declare(&out, "weights", HEFT_F32, 2);
        write_parts(&out, (const size_t[]){ 8 }, 1);
        read_back(s, &out);
        assert_header(s, "{\"weights\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}");
        assert_int_equal(s->len, paddings[i].data + 8);
        assert_int_equal(s->bytes[paddings[i].data], 1);
    }
    free(s);
}

static void writes_data_in_model_order_if_aligned(void **state)
{
    (void)state;
    written out;
    sample *s = malloc(sizeof *s);
    begin_writing(&out);
    open_writer(&out);
    declare(&out, "a", HEFT_U8, 8);
    declare(&out, "b", HEFT_F64, 1);
    declare(&out, "c", HEFT_F4_E2M1, 6);
    write_parts(&out, (const size_t[]){ 8, 8, 3 }, 3);
    read_back(s, &out);
    assert_header(s, "{\"a\":{\"dtype\":\"U8\",\"shape\":[8],\"data_offsets\":[0,8]},"
                     "\"b\":{\"dtype\":\"F64\",\"shape\":[1],\"data_offsets\":[8,16]},"
                     "\"c\":{\"dtype\":\"F4\",\"shape\":[6],\"data_offsets\":[16,19]}}");
    free(s);
}

static void writes_larger_elements_first_if_not_aligned(void **state)
{
    (void)state;
    written out;
    sample *s = malloc(sizeof *s);
    begin_writing(&out);
    open_writer(&out);
    declare(&out, "a", HEFT_U8, 3);
    declare(&out, "b", HEFT_F16, 1);
    declare(&out, "c", HEFT_F64, 1);
    declare(&out, "d", HEFT_C64, 1);
    declare(&out, "e", HEFT_BF16, 2);
    write_parts(&out, (const size_t[]){ 3, 2, 8, 8, 4 }, 5);
    read_back(s, &out);
    assert_header(s, "{\"a\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[22,25]},"
                     "\"b\":{\"dtype\":\"F16\",\"shape\":[1],\"data_offsets\":[16,18]},"
                     "\"c\":{\"dtype\":\"F64\",\"shape\":[1],\"data_offsets\":[0,8]},"
                     "\"d\":{\"dtype\":\"C64\",\"shape\":[1],\"data_offsets\":[8,16]},"
                     "\"e\":{\"dtype\":\"BF16\",\"shape\":[2],\"data_offsets\":[18,22]}}");
    const uint8_t order[] = { 3, 3, 3, 3, 3, 3, 3, 3, 4, 4, 4, 4, 4,
                              4, 4, 4, 2, 2, 5, 5, 5, 5, 1, 1, 1 };
    assert_memory_equal(s->bytes + s->len - sizeof order, order, sizeof order);
    free(s);
}

static void writes_an_empty_model_as_two_braces(void **state)
{
    (void)state;
    written out;
    sample *s = malloc(sizeof *s);
    begin_writing(&out);
    open_writer(&out);
    write_parts(&out, NULL, 0);
    read_back(s, &out);
    assert_header(s, "{}");
    assert_int_equal(s->len, 64);
    free(s);
}

static void put_meta(written *out, const char *key, heft_value v)
{
    v.key = heft_lit(key);
    assert_int_equal(heft_writer_add_meta(out->w, v, &out->err), HEFT_OK);
}

static void writes_metadata_as_text_or_reports_a_loss(void **state)
{
    (void)state;
    written out;
    sample *s = malloc(sizeof *s);
    begin_writing(&out);
    open_writer(&out);
    put_meta(&out, "text \"1\"",
             (heft_value){ .kind = HEFT_KIND_STR, .as.s = heft_lit("a\n\xc3\xa9") });
    put_meta(&out, "empty", (heft_value){ .kind = HEFT_KIND_STR, .as.s = heft_lit("") });
    put_meta(&out, "least", (heft_value){ .kind = HEFT_KIND_INT, .as.i = INT64_MIN });
    put_meta(&out, "most", (heft_value){ .kind = HEFT_KIND_UINT, .as.u = UINT64_MAX });
    put_meta(&out, "rate", (heft_value){ .kind = HEFT_KIND_FLOAT, .as.f = 0.1 });
    put_meta(&out, "yes", (heft_value){ .kind = HEFT_KIND_BOOL, .as.b = true });
    put_meta(&out, "no", (heft_value){ .kind = HEFT_KIND_BOOL });
    put_meta(&out, "nothing", (heft_value){ .kind = HEFT_KIND_NULL });
    put_meta(&out, "bytes", (heft_value){ .kind = HEFT_KIND_BYTES, .as.s = heft_lit("x") });
    heft_value latin = { .kind = HEFT_KIND_STR, .key = heft_lit("l"), .as.s = heft_lit("\xe9") };
    assert_int_equal(heft_writer_add_meta(out.w, latin, &out.err), HEFT_E_ARGUMENT);
    put_meta(&out, "list", (heft_value){ .kind = HEFT_KIND_LIST });
    put_meta(&out, "", (heft_value){ .kind = HEFT_KIND_STR, .as.s = heft_lit("inner") });
    assert_int_equal(heft_writer_end_meta(out.w, &out.err), HEFT_OK);
    declare(&out, "w", HEFT_U8, 1);
    write_parts(&out, (const size_t[]){ 1 }, 1);
    assert_string_equal(out.losses, "safetensors/metadata-text \nsafetensors/metadata-text \n"
                                    "safetensors/metadata-text \nsafetensors/metadata-text \n"
                                    "safetensors/metadata-text \n?safetensors/metadata \n"
                                    "?safetensors/metadata \n?safetensors/metadata \n");
    read_back(s, &out);
    assert_header(s, "{\"__metadata__\":{\"text \\\"1\\\"\":\"a\\n\xc3\xa9\",\"empty\":\"\","
                     "\"least\":\"-9223372036854775808\",\"most\":\"18446744073709551615\","
                     "\"rate\":\"0.1\",\"yes\":\"true\",\"no\":\"false\"},"
                     "\"w\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}");
    free(s);
}

static void declare_obstacles(written *out)
{
    const uint64_t wide[] = { (uint64_t)1 << 40, (uint64_t)1 << 40, 0 };
    uint32_t part;
    declare(out, "fine", HEFT_U8, 4);
    declare(out, "__metadata__", HEFT_U8, 4);
    declare(out, "wide", HEFT_C128, 1);
    declare(out, "odd", HEFT_F6_E2M3, 3);
    declare(out, "huge", HEFT_U8, 0);
    assert_int_equal(
        heft_writer_add_dense(&part, out->w, heft_lit("late zero"), HEFT_U8, wide, 3, &out->err),
        HEFT_OK);
    assert_int_equal(heft_writer_add_model_part(out->w, heft_lit("vocab"), "a", 1, &out->err),
                     HEFT_OK);
}

static void refuses_unrepresentable_tensors(void **state)
{
    (void)state;
    written out;
    begin_writing(&out);
    open_writer(&out);
    declare_obstacles(&out);
    assert_int_equal(heft_writer_begin(out.w, &out.err), HEFT_E_LOSSY);
    heft_writer_discard(out.w);
    assert_string_equal(out.losses, "?safetensors/parts \n!safetensors/tensor __metadata__\n"
                                    "!safetensors/dtype wide\n!safetensors/tensor odd\n"
                                    "!safetensors/tensor late zero\n");
    unlink(out.path);
}

static void drops_unrepresentable_tensors_if_allowed(void **state)
{
    (void)state;
    written out;
    sample *s = malloc(sizeof *s);
    begin_writing(&out);
    out.opt.allow_loss = true;
    open_writer(&out);
    declare_obstacles(&out);
    write_parts(&out, (const size_t[]){ 4, 4, 16, 3, 0, 0 }, 6);
    read_back(s, &out);
    assert_header(s, "{\"fine\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]},"
                     "\"huge\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[4,4]}}");
    free(s);
}

static void refuses_a_header_beyond_the_limit(void **state)
{
    (void)state;
    written out;
    heft_value v = { .kind = HEFT_KIND_STR, .key = heft_lit("long") };
    size_t n = 99999980; /* {"__metadata__":{"long":""}} takes 28 more */
    char *text = malloc(n);
    memset(text, 'x', n);
    v.as.s = (heft_str){ text, n };
    begin_writing(&out);
    open_writer(&out);
    assert_int_equal(heft_writer_add_meta(out.w, v, &out.err), HEFT_OK);
    assert_int_equal(heft_writer_begin(out.w, &out.err), HEFT_E_LOSSY);
    assert_non_null(strstr(out.err.message, "100000008 bytes"));
    heft_writer_discard(out.w);
    unlink(out.path);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refuses_malformed_headers_with_reason_and_offset),
        cmocka_unit_test(refuses_impossible_header_lengths),
        cmocka_unit_test(refuses_deep_nesting),
        cmocka_unit_test(reads_tensors_in_the_order_of_the_header),
        cmocka_unit_test(reports_accepted_deviations),
        cmocka_unit_test(probe_recognises_safetensors),
        cmocka_unit_test(opens_a_file_fed_byte_by_byte),
        cmocka_unit_test(reports_every_failed_allocation),
        cmocka_unit_test(writes_a_compact_header_padded_to_the_alignment),
        cmocka_unit_test(writes_data_in_model_order_if_aligned),
        cmocka_unit_test(writes_larger_elements_first_if_not_aligned),
        cmocka_unit_test(writes_an_empty_model_as_two_braces),
        cmocka_unit_test(writes_metadata_as_text_or_reports_a_loss),
        cmocka_unit_test(refuses_unrepresentable_tensors),
        cmocka_unit_test(drops_unrepresentable_tensors_if_allowed),
        cmocka_unit_test(refuses_a_header_beyond_the_limit),
    };
    if (!the_format())
        return TEST_SKIPPED; /* a build without safetensors */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
