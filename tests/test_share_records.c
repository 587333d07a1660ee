/* test_share_records.c - shares of a conversion with sinks of the caller: the joined output has the
 * bytes of a conversion by one process, and every wrong record is refused. */
#include <heft/private.h>
#include <heft/share.h>

#include "base/blake3.h"
#include "models.h"
#include "share/share_plan.h"

enum { SHARES = 3, TAIL = sizeof ",\"blake3\":\"\"}\n" - 1 + 2 * HEFT_HASH_BYTES };

static const test_tensor tensors[] = {
    { "a", HEFT_F32, 1, { 1000 } }, { "b", HEFT_F32, 2, { 33, 41 } }, { "c", HEFT_F32, 1, { 7 } },
    { "d", HEFT_F32, 1, { 900 } },  { "e", HEFT_F32, 1, { 500 } },
};

/* ---- a conversion with records ----------------------------------------------------------- */

static heft_dtype to_f16(void *ctx, const heft_tensor *t)
{
    (void)ctx;
    return t->dtype == HEFT_F32 ? HEFT_F16 : t->dtype;
}

typedef struct conversion {
    const char *digest; /* of source and target, where the formats have digests */
    const char *to;
    bool casts;
} conversion;

static const conversion crc = { "crc32c", "ztensor", false };
static const conversion sha = { "sha256", "ztensor", true };
static const conversion plain = { NULL, "burnpack", false };

typedef struct fixture {
    heft_bytes source;
    heft_file *in;
    heft_share_plan *plan;
    heft_convert_options opt;
    heft_blob records[SHARES];
    heft_bytes data; /* the bytes that the shares have written */
} fixture;

static void set_options(fixture *f, const conversion *c)
{
    f->opt = (heft_convert_options)HEFT_CONVERT_OPTIONS_INIT;
    f->opt.cast = c->casts ? to_f16 : NULL;
}

static void open_source(fixture *f, const conversion *c)
{
    heft_write_options write = HEFT_WRITE_OPTIONS_INIT;
    heft_convert_options opt = HEFT_CONVERT_OPTIONS_INIT;
    opt.write = &write;
    write.storage.digest = c->digest;
    f->source = heft_test_converted("safetensors", tensors, HEFT_COUNT(tensors), "ztensor", &opt);
    f->in = heft_test_opened(f->source, NULL, false);
    set_options(f, c);
}

static void write_share(fixture *f, uint32_t number)
{
    heft_test_sink sink;
    heft_error err;
    heft_range r = heft_share_range(f->plan, number);
    heft_assert_ok(heft_share_write(&f->records[number - 1], f->plan, number,
                                    heft_test_sink_init(&sink, false), &err),
                   &err);
    if (r.length)
        memcpy(f->data.p + r.offset, sink.p + r.offset, (size_t)r.length);
    heft_test_sink_free(&sink);
}

static void make(fixture *f, const conversion *c)
{
    heft_error err;
    memset(f, 0, sizeof *f);
    open_source(f, c);
    heft_assert_ok(heft_share_open(&f->plan, f->in, heft_format_find(heft_str_from(c->to)), SHARES,
                                   &f->opt, &err),
                   &err);
    f->data.len = (size_t)heft_share_size(f->plan);
    f->data.p = calloc(1, f->data.len);
    assert_non_null(f->data.p);
    for (uint32_t i = SHARES; i > 0; i--)
        write_share(f, i);
}

static void drop(fixture *f)
{
    for (uint32_t i = 0; i < SHARES; i++)
        heft_blob_free(&f->records[i]);
    heft_share_close(f->plan);
    heft_file_close(f->in);
    heft_test_free(&f->source);
    heft_test_free(&f->data);
}

static heft_str text_of(const heft_blob *b)
{
    return (heft_str){ b->data, b->size };
}

/* Join records; *out: the output, to be freed. */
static heft_status join(const fixture *f, const heft_str *records, uint32_t count, heft_bytes *out,
                        heft_error *err)
{
    heft_test_sink sink;
    heft_sink *take = heft_test_sink_init(&sink, false);
    heft_status st = heft_share_join(f->plan, records, count, take, err);
    *out = (heft_bytes){ calloc(1, f->data.len), f->data.len };
    assert_non_null(out->p);
    if (!st)
        memcpy(out->p, sink.p, sink.len < out->len ? sink.len : out->len);
    for (uint32_t i = 1; i <= SHARES; i++) {
        heft_range r = heft_share_range(f->plan, i);
        memcpy(out->p + r.offset, f->data.p + r.offset, (size_t)r.length);
    }
    heft_test_sink_free(&sink);
    return st;
}

static void the_output_is_that_of_one_process(void **state)
{
    const conversion *const all[] = { &crc, &sha, &plain };
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(all); i++) {
        fixture f;
        heft_error err;
        heft_test_sink one;
        heft_bytes out;
        make(&f, all[i]);
        heft_str records[] = { text_of(&f.records[2]), text_of(&f.records[0]),
                               text_of(&f.records[1]) };
        heft_assert_ok(join(&f, records, SHARES, &out, &err), &err);
        heft_assert_ok(heft_file_convert(f.in, heft_format_find(heft_str_from(all[i]->to)),
                                         heft_test_sink_init(&one, false), &f.opt, &err),
                       &err);
        heft_assert_same_bytes(out, heft_test_sink_bytes(&one));
        for (uint32_t k = 1; k <= SHARES; k++)
            heft_assert_ok(heft_share_check(f.plan, records[k % SHARES], k, &err), &err);
        heft_test_sink_free(&one);
        heft_test_free(&out);
        drop(&f);
    }
}

/* ---- changed records ------------------------------------------------------------------------ */

/* Return the record with `from` replaced by `to`, and with a hash that matches. */
static heft_bytes changed(heft_str record, const char *from, const char *to)
{
    size_t len = record.len - TAIL, cut = strlen(from), added = strlen(to);
    char *text = calloc(1, record.len + added + 1);
    assert_non_null(text);
    memcpy(text, record.ptr, len);
    char *at = strstr(text, from);
    assert_non_null(at);
    memmove(at + added, at + cut, len - (size_t)(at - text) - cut + 1);
    memcpy(at, to, added);
    len = strlen(text);
    heft_blake3 h;
    heft_hash hash;
    heft_blake3_init(&h);
    heft_blake3_update(&h, text, len);
    heft_blake3_final(&h, hash.bytes);
    heft_out o = { .buf = (uint8_t *)text + len, .cap = TAIL };
    heft_share_record_end(&o, &hash);
    heft_bytes out = heft_test_copy(text, len + TAIL);
    free(text);
    return out;
}

static const struct wrong_record {
    const conversion *of;
    const char *from, *to;
    const char *words; /* of the message */
} wrong_records[] = {
    /* names of share and plan */
    { &crc, "{\"heft_share\":1", "{\"heft_share\":2", "another plan" },
    { &crc, "{\"heft_share\":1", "{\"heft_share\":\"1\"", "out of range" },
    { &crc, "{\"heft_share\":1", "{\"heft_share\":-1", "out of range" },
    { &crc, "{\"heft_share\":1,", "{", "another plan" },
    { &crc, "\"plan\":\"", "\"plan\":\"0", "out of range" },
    { &crc, "\"plan\":\"", "\"plan\":\"zz\",\"plan\":\"", "out of range" },
    { &crc, "\"plan\":\"", "\"plan\":7,\"plan\":\"", "out of range" },
    { &crc, "\"plan\":", "\"plam\":", "another plan" },
    { &crc, "\"count\":3", "\"count\":4", "another plan" },
    { &crc, "\"count\":3", "\"count\":99999999999999999999", "out of range" },
    { &crc, "\"share\":2", "\"share\":0", "out of range" },
    { &crc, "\"share\":2", "\"share\":4", "out of range" },
    { &crc, "\"share\":2", "\"share\":4294967298", "out of range" },
    { &crc, "\"share\":2", "\"share\":1", "is there twice" },
    /* syntax */
    { &crc, "{", "[", "" },
    { &crc, "{", "7{", "" },
    { &crc, "\"lost\":[]", "\"lost\":[]}", "" },
    { &crc, "\"lost\":[]", "\"lost\":[", "" },
    { &crc, "\"lost\":[]", "\"lost\":{}", "out of range" },
    { &crc, "\"target\":[", "\"target\":5,\"target\":[", "out of range" },
    { &crc, "\"target\":[", "\"target\":[1.5,", "whole number" },
    { &crc, "\"target\":[", "\"target\":[\"a\",", "whole number" },
    { &crc, "\"target\":[", "\"target\":[[[[[[1]]]]]],\"target\":[", "" },
    { &crc, "\"lost\":[]", "\"lost\":[],\"\\u0041\":1", "" },
    /* runs of bytes */
    { &crc, "\"target\":[", "\"target\":[64],\"target\":[", "ends early" },
    { &crc, "\"source\":[", "\"source\":[64,8],\"source\":[", "ends early" },
    { &crc, "\"source\":[", "\"source\":[64,0,1,", "out of range" },
    { &crc, "\"source\":[", "\"source\":[18446744073709551615,1,1,", "out of range" },
    { &crc, "\"source\":[", "\"source\":[1,1,4294967296,", "out of range" },
    /* digests in order */
    { &crc, "\"digests\":[", "\"digests\":[1,\"00\"", "out of range" },
    { &sha, "\"digests\":[", "\"digests\":[99,\"00\",", "out of range" },
    { &sha, "\"digests\":[", "\"digests\":[1,\"00\",", "out of range" },
    { &sha, "\"digests\":[", "\"digests\":[1,2,", "out of range" },
    { &sha, "\"digests\":[", "\"digests\":[1,", "out of range" },
    { &sha, "\"digests\":[", "\"digests\":[],\"digest\":[", "lack a digest" },
    { &crc, "\"checksums\":[", "\"checksums\":[0,0", "out of range" }, /* compared when joined */
    { &sha, "\"checksums\":[", "\"checksums\":[99,0,", "out of range" },
    { &sha, "\"checksums\":[", "\"checksums\":[1,9,", "out of range" },
    { &sha, "\"checksums\":[", "\"checksums\":[1],\"checksums\":[", "ends early" },
    { &sha, "\"checksums\":[", "\"checksums\":[],\"checks\":[", "lack a digest" },
    /* values that casts lose */
    { &crc, "\"lost\":[", "\"lost\":[0,1,1,1,1,1,1,1,1", "" },
    { &sha, "\"lost\":[", "\"lost\":[99,1,1,1,1,1,1,1,1", "out of range" },
    { &sha, "\"lost\":[", "\"lost\":[1,1", "ends early" },
};

static void each_wrong_record_is_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(wrong_records); i++) {
        const struct wrong_record *w = &wrong_records[i];
        fixture f;
        heft_error err;
        heft_bytes out;
        make(&f, w->of);
        heft_bytes record = changed(text_of(&f.records[1]), w->from, w->to);
        heft_str records[] = { text_of(&f.records[0]),
                               { (const char *)record.p, record.len },
                               text_of(&f.records[2]) };
        heft_test_poison(&err);
        heft_status st = join(&f, records, SHARES, &out, &err);
        if (st != HEFT_E_ARGUMENT || !strstr(err.message, w->words))
            print_error("%s to %s\n", w->from, w->to);
        heft_assert_fails(st, HEFT_E_ARGUMENT, &err, w->words);
        heft_test_free(&out);
        heft_test_free(&record);
        drop(&f);
    }
}

static void a_changed_byte_is_noticed(void **state)
{
    fixture f;
    heft_error err;
    (void)state;
    make(&f, &sha);
    heft_bytes record = heft_test_copy(f.records[1].data, f.records[1].size);
    for (size_t i = 0; i < record.len; i++) {
        record.p[i] ^= 1;
        heft_assert_fails(
            heft_share_check(f.plan, (heft_str){ (const char *)record.p, record.len }, 2, &err),
            HEFT_E_ARGUMENT, &err, "its hash does not match");
        record.p[i] ^= 1;
        heft_assert_status(
            heft_share_check(f.plan, (heft_str){ (const char *)record.p, i }, 2, &err),
            HEFT_E_ARGUMENT, &err);
    }
    heft_assert_ok(
        heft_share_check(f.plan, (heft_str){ (const char *)record.p, record.len }, 2, &err), &err);
    heft_assert_fails(
        heft_share_check(f.plan, (heft_str){ (const char *)record.p, record.len }, 3, &err),
        HEFT_E_ARGUMENT, &err, "share 2, not 3");
    heft_test_free(&record);
    drop(&f);
}

static void missing_and_further_records_are_refused(void **state)
{
    fixture f;
    heft_error err;
    heft_bytes out;
    (void)state;
    make(&f, &crc);
    heft_str records[] = { text_of(&f.records[0]), text_of(&f.records[2]), text_of(&f.records[2]) };
    heft_assert_fails(join(&f, records, 2, &out, &err), HEFT_E_ARGUMENT, &err,
                      "share 2 of 3 is missing");
    heft_test_free(&out);
    heft_assert_fails(join(&f, records, 0, &out, &err), HEFT_E_ARGUMENT, &err,
                      "share 1 of 3 is missing");
    heft_test_free(&out);
    heft_assert_fails(join(&f, records, 3, &out, &err), HEFT_E_ARGUMENT, &err,
                      "share 3 is there twice");
    heft_test_free(&out);
    drop(&f);
}

/* Records may lie about bytes.  The output then has a wrong checksum, or an error names the source,
 * but nothing is read or written outside of the plan. */
static void false_sums_are_noticed(void **state)
{
    fixture f;
    heft_error err;
    heft_bytes out;
    (void)state;
    make(&f, &crc);
    heft_bytes record = changed(text_of(&f.records[1]), "\"source\":[",
                                "\"source\":[],\"sources\":[");
    heft_str records[] = { text_of(&f.records[0]),
                           { (const char *)record.p, record.len },
                           text_of(&f.records[2]) };
    heft_assert_ok(join(&f, records, SHARES, &out, &err), &err); /* reads the bytes again */
    heft_test_free(&out);
    heft_test_free(&record);
    char false_run[96], text[1024];
    unsigned long long offset, bytes, sum;
    snprintf(text, sizeof text, "%.*s", (int)f.records[1].size, (const char *)f.records[1].data);
    const char *runs = strstr(text, "\"source\":[");
    assert_int_equal(sscanf(runs, "\"source\":[%llu,%llu,%llu", &offset, &bytes, &sum), 3);
    snprintf(false_run, sizeof false_run, "\"source\":[%llu,%llu,%llu],\"sources\":[", offset,
             bytes, sum ^ 1);
    record = changed(text_of(&f.records[1]), "\"source\":[", false_run);
    records[1] = (heft_str){ (const char *)record.p, record.len };
    heft_status st = join(&f, records, SHARES, &out, &err);
    heft_assert_status(st, HEFT_E_CHECKSUM, &err);
    heft_test_free(&out);
    heft_test_free(&record);
    drop(&f);
}

/* ---- arguments ------------------------------------------------------------------------------ */

static void numbers_of_shares_have_bounds(void **state)
{
    fixture f;
    heft_error err;
    heft_share_plan *plan;
    heft_write_options write = HEFT_WRITE_OPTIONS_INIT;
    const heft_format *zt = heft_format_find(HEFT_STR("ztensor"));
    (void)state;
    make(&f, &crc);
    for (uint32_t count = 0; count <= HEFT_SHARE_MAX_COUNT + 1; count += HEFT_SHARE_MAX_COUNT + 1)
        heft_assert_fails(heft_share_open(&plan, f.in, zt, count, NULL, &err), HEFT_E_ARGUMENT,
                          &err, "1 to 65535");
    assert_null(plan);
    f.opt.dry_run = true;
    heft_assert_fails(heft_share_open(&plan, f.in, zt, 2, &f.opt, &err), HEFT_E_ARGUMENT, &err,
                      "dry run");
    f.opt.dry_run = false;
    f.opt.write = &write;
    write.storage.encoding = HEFT_ZSTD;
    heft_assert_fails(heft_share_open(&plan, f.in, zt, 2, &f.opt, &err), HEFT_E_UNSUPPORTED, &err,
                      "store them raw");
    drop(&f);
}

static void ranges_cover_the_payload_once(void **state)
{
    static const uint32_t counts[] = { 1, 2, 7, 64, HEFT_SHARE_MAX_COUNT };
    fixture f;
    heft_error err;
    (void)state;
    make(&f, &plain);
    for (size_t i = 0; i < HEFT_COUNT(counts); i++) {
        heft_share_plan *plan;
        heft_assert_ok(heft_share_open(&plan, f.in, heft_format_find(HEFT_STR("burnpack")),
                                       counts[i], NULL, &err),
                       &err);
        uint64_t at = heft_share_range(plan, 1).offset;
        for (uint32_t k = 1; k <= counts[i]; k++) {
            heft_range r = heft_share_range(plan, k);
            assert_true(r.offset == at);
            at += r.length;
        }
        assert_true(at == heft_share_size(plan));
        assert_true(!heft_share_range(plan, 0).length);
        assert_true(!heft_share_range(plan, counts[i] + 1).length);
        heft_share_close(plan);
    }
    drop(&f);
}

/* A sink that counts how often each byte is written. */
typedef struct counting_sink {
    heft_sink base;
    uint8_t *written; /* by byte of the output */
    size_t size;
} counting_sink;

static heft_status count_bytes(heft_sink *s, uint64_t offset, const void *data, size_t len,
                               heft_error *err)
{
    const counting_sink *c = (const counting_sink *)s;
    (void)data;
    (void)err;
    assert_true(offset <= c->size && len <= c->size - offset);
    for (size_t i = 0; i < len; i++)
        c->written[offset + i]++;
    return HEFT_OK;
}

static heft_status end_counting(heft_sink *s, heft_error *err)
{
    (void)s;
    (void)err;
    return HEFT_OK;
}

static void discard_counting(heft_sink *s)
{
    (void)s;
    fail();
}

static void require_counts(const heft_share_plan *plan, uint32_t number, const counting_sink *c)
{
    for (size_t from = 0; from <= c->size; from += 97)
        for (uint64_t length = 0; length < 3000; length = 3 * length + 1) {
            uint64_t count = 0;
            for (size_t i = from; i < c->size && i - from < length; i++)
                count += c->written[i];
            assert_true(heft_share_bytes_in(plan, number, (heft_range){ from, length }) == count);
        }
    assert_true(!heft_share_bytes_in(plan, number, (heft_range){ UINT64_MAX, UINT64_MAX }));
    assert_true(!heft_share_bytes_in(plan, SHARES + 1, (heft_range){ 0, c->size }));
}

static void the_bytes_of_a_share_in_a_range_are_known(void **state)
{
    static const char *const formats[] = { "npz", "ztensor", "safetensors" };
    static const heft_sink_ops ops = { .size = sizeof ops,
                                       .write_at = count_bytes,
                                       .finish = end_counting,
                                       .discard = discard_counting };
    fixture f;
    heft_error err;
    (void)state;
    make(&f, &crc);
    for (size_t i = 0; i < HEFT_COUNT(formats); i++) {
        heft_share_plan *plan;
        heft_assert_ok(heft_share_open(&plan, f.in, heft_format_find(heft_str_from(formats[i])),
                                       SHARES, NULL, &err),
                       &err);
        for (uint32_t number = 1; number <= SHARES; number++) {
            heft_blob record;
            counting_sink c = { { &ops }, NULL, (size_t)heft_share_size(plan) };
            c.written = calloc(1, c.size);
            assert_non_null(c.written);
            heft_assert_ok(heft_share_write(&record, plan, number, &c.base, &err), &err);
            require_counts(plan, number, &c);
            heft_blob_free(&record);
            free(c.written);
        }
        heft_share_close(plan);
    }
    drop(&f);
}

static void wrong_sinks_and_numbers_are_refused(void **state)
{
    fixture f;
    heft_error err;
    heft_blob record;
    heft_test_sink sink;
    heft_str none = { NULL, 0 };
    (void)state;
    make(&f, &crc);
    for (uint32_t number = 0; number <= SHARES + 1; number += SHARES + 1) {
        heft_assert_fails(
            heft_share_write(&record, f.plan, number, heft_test_sink_init(&sink, false), &err),
            HEFT_E_ARGUMENT, &err, "there is no share");
        assert_true(sink.discarded && !record.data);
        heft_test_sink_free(&sink);
    }
    for (uint32_t number = 0; number < 2; number++)
        heft_assert_fails(heft_share_write(&record, f.plan, number, NULL, &err), HEFT_E_ARGUMENT,
                          &err, "no sink");
    heft_assert_fails(heft_share_write(&record, f.plan, 1, heft_test_sink_init(&sink, true), &err),
                      HEFT_E_ARGUMENT, &err, "stream");
    assert_true(sink.discarded);
    heft_test_sink_free(&sink);
    heft_assert_fails(heft_share_join(f.plan, &none, 0, heft_test_sink_init(&sink, true), &err),
                      HEFT_E_ARGUMENT, &err, "stream");
    heft_test_sink_free(&sink);
    (void)heft_test_sink_init(&sink, false);
    sink.ops.size = 0;
    heft_assert_fails(heft_share_write(&record, f.plan, 1, &sink.base, &err), HEFT_E_ARGUMENT, &err,
                      "");
    heft_test_sink_free(&sink);
    (void)heft_test_sink_init(&sink, false);
    sink.ops.size = 0;
    heft_assert_fails(heft_share_join(f.plan, &none, 0, &sink.base, &err), HEFT_E_ARGUMENT, &err,
                      "");
    heft_test_sink_free(&sink);
    (void)heft_test_sink_init(&sink, false);
    sink.fail_from = 0;
    heft_assert_status(heft_share_write(&record, f.plan, 1, &sink.base, &err), HEFT_E_IO, &err);
    assert_true(sink.discarded && !record.data);
    heft_test_sink_free(&sink);
    heft_share_close(NULL);
    drop(&f);
}

/* ---- memory --------------------------------------------------------------------------------- */

/* Plan, write a single share and join, with the allocator of the test. */
static heft_status convert_starved(heft_bytes source, heft_test_memory *m, heft_error *err)
{
    heft_file *f = NULL;
    heft_share_plan *plan = NULL;
    heft_blob record = { NULL, 0, NULL };
    heft_test_sink sink, again;
    heft_convert_options opt = HEFT_CONVERT_OPTIONS_INIT;
    opt.cast = to_f16;
    heft_hash id;
    heft_status st = heft_test_open(&f, source, &m->host, err);
    if (!st)
        st = heft_share_file_id(&id, f, err);
    if (!st)
        st = heft_share_open(&plan, f, heft_format_find(HEFT_STR("ztensor")), 1, &opt, err);
    if (!st) {
        st = heft_share_write(&record, plan, 1, heft_test_sink_init(&sink, false), err);
        heft_test_sink_free(&sink);
    }
    if (!st) {
        heft_str text = text_of(&record);
        st = heft_share_join(plan, &text, 1, heft_test_sink_init(&again, false), err);
        heft_test_sink_free(&again);
    }
    heft_blob_free(&record);
    heft_share_close(plan);
    heft_file_close(f);
    return st;
}

static void each_lack_of_memory_is_an_error(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        fixture x;
        heft_test_memory m;
        heft_status st;
        uint32_t fail_at = 0;
        memset(&x, 0, sizeof x);
        open_source(&x, i ? &crc : &sha);
        do {
            heft_error err;
            heft_test_memory_init(&m, ++fail_at);
            heft_test_poison(&err);
            st = convert_starved(x.source, &m, &err);
            if (st)
                heft_assert_status(st, HEFT_E_NOMEM, &err);
            heft_assert_all_freed(&m);
        } while (st && fail_at < 10000);
        heft_assert_status(st, HEFT_OK, NULL);
        drop(&x);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_output_is_that_of_one_process),
        cmocka_unit_test(each_wrong_record_is_refused),
        cmocka_unit_test(a_changed_byte_is_noticed),
        cmocka_unit_test(missing_and_further_records_are_refused),
        cmocka_unit_test(false_sums_are_noticed),
        cmocka_unit_test(numbers_of_shares_have_bounds),
        cmocka_unit_test(ranges_cover_the_payload_once),
        cmocka_unit_test(the_bytes_of_a_share_in_a_range_are_known),
        cmocka_unit_test(wrong_sinks_and_numbers_are_refused),
        cmocka_unit_test(each_lack_of_memory_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
