/* test_part_digests.c - stored digests of parts, verified by functions that read whole parts. */
#include "layers.h"
#include "models.h"

#include <unistd.h>

enum { MIB = 1 << 20 };

static const test_tensor tensors[] = {
    { "first", HEFT_F32, 1, { 5000 } },
    { "large", HEFT_F32, 2, { 2500, 1001 } },
    { "last", HEFT_F32, 1, { 77 } },
};
enum { TENSORS = HEFT_COUNT(tensors), DAMAGED = 1 };

/* ---- files with digests --------------------------------------------------------------------- */

typedef struct variant {
    const char *name, *format, *version, *digest;
    heft_encoding encoding;
    bool joins, still_decodes; /* still_decodes: damaged bytes decode without an error */
} variant;

static const variant variants[] = {
    { "crc32c", "ztensor", NULL, "crc32c", HEFT_RAW, true, true },
    { "sha256", "ztensor", NULL, "sha256", HEFT_RAW, false, true },
    { "zstd", "ztensor", NULL, "sha256", HEFT_ZSTD, false, false },
    { "zTensor 2", "ztensor", "2", "sha256", HEFT_RAW, false, true },
    { "npz", "npz", NULL, NULL, HEFT_RAW, true, true },
};

static heft_bytes with_digests(const variant *w)
{
    heft_write_options write = HEFT_WRITE_OPTIONS_INIT;
    heft_convert_options opt = HEFT_CONVERT_OPTIONS_INIT;
    opt.write = &write;
    write.version = w->version;
    write.storage.digest = w->digest;
    write.storage.encoding = w->encoding;
    return heft_test_converted("safetensors", tensors, TENSORS, w->format, &opt);
}

static uint32_t part_of(const heft_file *f, size_t tensor)
{
    const char *name = tensors[tensor].name;
    return heft_tensor_at(f, heft_tensor_find(f, heft_str_from(name))).first_part;
}

/* Flip a bit in the middle of a tensor. */
static void damage(heft_bytes b, size_t tensor)
{
    heft_file *f = heft_test_opened(b, NULL, false);
    heft_part p = heft_part_at(f, part_of(f, tensor));
    heft_file_close(f);
    b.p[p.offset + p.stored / 2] ^= 0x20;
}

/* Damaged compressed bytes may fail to decode instead. */
static void assert_damage_reported(const variant *w, heft_status st, const heft_error *err)
{
    if (!w->still_decodes && st == HEFT_E_FORMAT)
        return;
    heft_assert_fails(st, HEFT_E_CHECKSUM, err, "tensor 'large', part 'data': ");
}

/* ---- one part ------------------------------------------------------------------------------- */

static heft_status read_whole(const heft_file *f, size_t tensor, heft_error *err)
{
    size_t len = (size_t)heft_part_at(f, part_of(f, tensor)).length;
    uint8_t *buf = malloc(len);
    assert_non_null(buf);
    heft_status st = heft_part_read(buf, f, part_of(f, tensor), 0, len, err);
    free(buf);
    return st;
}

static void verifies_a_part_that_is_read_as_a_whole(void **state)
{
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(variants); i++) {
        heft_bytes b = with_digests(&variants[i]);
        heft_error err;
        damage(b, DAMAGED);
        heft_file *f = heft_test_opened(b, NULL, true);
        for (size_t t = 0; t < TENSORS; t++) {
            heft_status st = read_whole(f, t, &err);
            if (t == DAMAGED)
                assert_damage_reported(&variants[i], st, &err);
            else
                heft_assert_ok(st, &err);
        }
        heft_file_close(f);
        f = heft_test_opened(b, NULL, false);
        if (variants[i].still_decodes)
            heft_assert_ok(read_whole(f, DAMAGED, &err), &err);
        heft_file_close(f);
        heft_test_free(&b);
    }
}

static void does_not_verify_a_slice(void **state)
{
    heft_bytes b = with_digests(&variants[0]);
    uint8_t byte[4];
    heft_error err;
    (void)state;
    damage(b, DAMAGED);
    heft_file *f = heft_test_opened(b, NULL, true);
    uint64_t length = heft_part_at(f, part_of(f, DAMAGED)).length;
    heft_assert_ok(heft_part_read(byte, f, part_of(f, DAMAGED), 0, 4, &err), &err);
    heft_assert_ok(heft_part_read(byte, f, part_of(f, DAMAGED), length - 4, 4, &err), &err);
    heft_file_close(f);
    heft_test_free(&b);
}

/* Read the stream in chunks of an odd size; is_view: borrow the bytes where possible. */
static heft_status read_to_end(heft_stream *s, uint64_t length, bool is_view, heft_error *err)
{
    enum { CHUNK = 77777 };
    uint8_t *buf = malloc(CHUNK);
    heft_status st = HEFT_OK;
    for (uint64_t at = 0; at < length && !st; at += CHUNK) {
        size_t n = length - at < CHUNK ? (size_t)(length - at) : CHUNK;
        const void *data = buf;
        st = is_view ? heft_stream_view(&data, s, buf, n, err) : heft_stream_read(buf, s, n, err);
        assert_non_null(data);
    }
    free(buf);
    return st;
}

static void verifies_a_stream_at_its_end(void **state)
{
    (void)state;
    for (size_t i = 0; i < 4 * HEFT_COUNT(variants); i++) {
        const variant *w = &variants[i / 4];
        heft_bytes b = with_digests(w);
        heft_stream *s;
        heft_error err;
        damage(b, DAMAGED);
        heft_file *f = heft_test_opened(b, NULL, i & 1);
        for (size_t t = 0; t < TENSORS; t++) {
            uint32_t part = part_of(f, t);
            heft_assert_ok(i & 1 ? heft_stream_open(&s, f, part, &err)
                                 : heft_stream_open_checked(&s, f, part, &err),
                           &err);
            heft_status st = read_to_end(s, heft_part_at(f, part).length, i & 2, &err);
            if (t == DAMAGED)
                assert_damage_reported(w, st, &err);
            else
                heft_assert_ok(st, &err);
            heft_stream_close(s);
        }
        heft_file_close(f);
        heft_test_free(&b);
    }
}

static void does_not_verify_an_unfinished_stream(void **state)
{
    heft_bytes b = with_digests(&variants[1]);
    heft_stream *s;
    heft_error err;
    uint8_t byte;
    (void)state;
    heft_file *f = heft_test_opened(b, NULL, true);
    heft_assert_ok(heft_stream_open(&s, f, part_of(f, DAMAGED), &err), &err);
    heft_assert_ok(heft_stream_read(&byte, s, 1, &err), &err);
    heft_stream_close(s);
    heft_assert_fails(heft_stream_open_checked(&s, f, 99, &err), HEFT_E_ARGUMENT, &err, "no part");
    assert_null(s);
    heft_file_close(f);
    heft_test_free(&b);
}

static void part_verify_finds_damage(void **state)
{
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(variants); i++) {
        heft_bytes b = with_digests(&variants[i]);
        heft_error err;
        bool checked;
        damage(b, DAMAGED);
        heft_file *f = heft_test_opened(b, NULL, false);
        heft_status st = heft_part_verify(&checked, f, part_of(f, DAMAGED), &err);
        assert_damage_reported(&variants[i], st, &err);
        heft_assert_ok(heft_part_verify(&checked, f, part_of(f, 0), &err), &err);
        assert_true(checked);
        heft_assert_ok(heft_part_verify(NULL, f, part_of(f, 0), &err), &err);
        heft_assert_fails(heft_part_verify(&checked, f, 99, &err), HEFT_E_ARGUMENT, &err, "part");
        assert_false(checked);
        heft_file_close(f);
        heft_test_free(&b);
    }
}

static void stated_digests_are_those_of_decoded_bytes(void **state)
{
    heft_part_digest sha256 = { .algorithm = NULL }, d;
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(variants); i++) {
        heft_bytes b = with_digests(&variants[i]);
        heft_file *f = heft_test_opened(b, NULL, false);
        bool is_stated = heft_part_stated_digest(&d, f, part_of(f, 0));
        assert_int_equal(is_stated, variants[i].digest != NULL);
        assert_false(heft_part_stated_digest(&d, f, 99));
        if (is_stated)
            assert_string_equal(d.algorithm, variants[i].digest);
        if (is_stated && !strcmp(d.algorithm, "sha256")) {
            sha256 = sha256.len ? sha256 : d;
            assert_int_equal(d.len, 32);
            assert_memory_equal(d.bytes, sha256.bytes, d.len);
            /* zTensor 1 states digests of the stored bytes, here of a zstd frame. */
            bool is_of_frame = heft_part_at(f, part_of(f, DAMAGED)).encoding != HEFT_RAW;
            is_stated = heft_part_stated_digest(&d, f, part_of(f, DAMAGED));
            assert_int_equal(is_stated, !is_of_frame);
            if (is_stated)
                assert_memory_not_equal(d.bytes, sha256.bytes, d.len);
        }
        heft_file_close(f);
        heft_test_free(&b);
    }
    assert_int_equal(sha256.len, 32);
}

static void part_verify_reports_a_missing_digest(void **state)
{
    static const char *const formats[] = { "safetensors", "gguf", "mag", "gptrs-archive", "embd" };
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(formats); i++) {
        heft_bytes b = heft_test_model(formats[i], tensors, TENSORS);
        heft_error err;
        bool checked = true;
        heft_file *f = heft_test_opened(b, NULL, true);
        heft_assert_ok(heft_part_verify(&checked, f, part_of(f, 0), &err), &err);
        assert_false(checked);
        heft_assert_ok(read_whole(f, 0, &err), &err);
        heft_file_close(f);
        heft_test_free(&b);
    }
}

/* A digest of an algorithm that the host lacks is not verified, and is not an error. */
static void does_not_verify_an_unsupported_algorithm(void **state)
{
    heft_bytes b = with_digests(&variants[1]);
    heft_host host = *heft_host_default();
    heft_error err;
    bool checked = true;
    (void)state;
    host.digests = NULL;
    damage(b, DAMAGED);
    heft_file *f = heft_test_opened(b, &host, true);
    heft_assert_ok(heft_part_verify(&checked, f, part_of(f, DAMAGED), &err), &err);
    assert_false(checked);
    heft_assert_ok(read_whole(f, DAMAGED, &err), &err);
    heft_file_close(f);
    heft_test_free(&b);
}

static void count_unchecked(void *ctx, const heft_finding *x)
{
    uint32_t *count = ctx;
    assert_string_equal(x->rule, "heft/unchecked");
    assert_int_equal(x->severity, HEFT_WARNING);
    ++*count;
}

/* zTensor 2 needs xxh3 itself; digests of compressed parts cover the decoded bytes. */
static void verify_warns_of_digests_that_the_host_lacks(void **state)
{
    static const test_tensor flags = { "flags", HEFT_BOOL, 1, { 5000 } };
    const heft_digest *digests[] = { NULL, NULL };
    heft_write_options write = HEFT_WRITE_OPTIONS_INIT;
    heft_convert_options opt = HEFT_CONVERT_OPTIONS_INIT;
    heft_verify_options verify = HEFT_VERIFY_OPTIONS_INIT;
    heft_host host = *heft_host_default();
    uint32_t unchecked = 0;
    heft_error err;
    (void)state;
    if (heft_test_lacks_libraries())
        skip();
    opt.write = &write;
    write.version = "2";
    write.storage.digest = "sha256";
    write.storage.encoding = HEFT_ZSTD;
    heft_bytes b = heft_test_converted("safetensors", &flags, 1, "ztensor", &opt);
    for (size_t i = 0; host.digests[i]; i++)
        if (!strcmp(host.digests[i]->name, "xxh3"))
            digests[0] = host.digests[i];
    assert_non_null(digests[0]);
    verify.on_finding = count_unchecked;
    verify.ctx = &unchecked;
    for (uint32_t lacks = 0; lacks < 2; lacks++) {
        host.digests = lacks ? digests : heft_host_default()->digests;
        heft_file *f = heft_test_opened(b, &host, false);
        assert_int_not_equal(heft_part_at(f, 0).encoding, HEFT_RAW);
        heft_assert_ok(heft_file_verify(NULL, f, &verify, &err), &err);
        assert_int_equal(unchecked, lacks);
        heft_file_close(f);
    }
    heft_test_free(&b);
}

static void note_lost_digests(void *ctx, heft_severity severity, const char *rule, heft_str tensor,
                              const char *text)
{
    char expected[80];
    (void)tensor;
    if (strcmp(rule, "heft/digest-lost") != 0)
        return;
    snprintf(expected, sizeof expected, "are left out: %d", TENSORS);
    assert_int_equal(severity, HEFT_WARNING);
    assert_non_null(strstr(text, expected));
    ++*(int *)ctx;
}

/* Convert a file to its own format; return how often lost digests are reported. */
static int lost_digests(heft_bytes b, const heft_host *host, const char *digest)
{
    heft_write_options write = HEFT_WRITE_OPTIONS_INIT;
    heft_convert_options opt = HEFT_CONVERT_OPTIONS_INIT;
    heft_test_sink sink;
    heft_error err;
    int reports = 0;
    heft_file *f = heft_test_opened(b, host, true);
    opt.write = &write;
    write.host = host;
    write.storage.digest = digest;
    write.on_loss = note_lost_digests;
    write.ctx = &reports;
    heft_assert_ok(
        heft_file_convert(f, heft_file_format(f), heft_test_sink_init(&sink, false), &opt, &err),
        &err);
    heft_test_sink_free(&sink);
    heft_file_close(f);
    return reports;
}

static void a_conversion_reports_digests_that_it_leaves_out(void **state)
{
    heft_bytes b = with_digests(&variants[1]);
    heft_host host = *heft_host_default();
    (void)state;
    assert_int_equal(lost_digests(b, &host, NULL), 0);
    host.digests = NULL;
    assert_int_equal(lost_digests(b, &host, NULL), 1);
    assert_int_equal(lost_digests(b, &host, "crc32c"), 0);
    heft_test_free(&b);
}

/* ---- many parts ----------------------------------------------------------------------------- */

/* Read the parts from the last to the first, the first tensor twice. */
static heft_status read_all(const heft_file *f, heft_error *err)
{
    uint32_t parts[TENSORS + 1];
    void *buffers[TENSORS + 1];
    for (size_t i = 0; i <= TENSORS; i++) {
        parts[i] = part_of(f, i < TENSORS ? TENSORS - 1 - i : 0);
        buffers[i] = malloc((size_t)heft_part_at(f, parts[i]).length);
    }
    heft_status st = heft_part_read_many(buffers, f, parts, TENSORS + 1, NULL, NULL, err);
    for (size_t i = 0; i <= TENSORS; i++)
        free(buffers[i]);
    return st;
}

static heft_status hash_all(const heft_file *f, heft_error *err)
{
    heft_hash model, tensors_of[TENSORS];
    return heft_file_hash(&model, tensors_of, f, NULL, NULL, err);
}

/* Hash the tensors from the last to the first, the first tensor twice. */
static heft_status hash_listed(const heft_file *f, heft_error *err)
{
    uint32_t ids[TENSORS + 1];
    heft_hash hashes[TENSORS + 1];
    for (uint32_t i = 0; i <= TENSORS; i++)
        ids[i] = i < TENSORS ? TENSORS - 1 - i : 0;
    return heft_tensor_hash_many(hashes, f, ids, TENSORS + 1, NULL, NULL, err);
}

static void verifies_many_parts_on_any_number_of_threads(void **state)
{
    static heft_status (*const readers[])(const heft_file *, heft_error *) = { read_all, hash_all,
                                                                               hash_listed };
    enum { READERS = HEFT_COUNT(readers) };
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(variants) * 2 * READERS; i++) {
        const variant *w = &variants[i / (2 * READERS)];
        heft_bytes b = with_digests(w);
        heft_test_host h;
        heft_error err;
        heft_test_host_init(&h, i & 1 ? 3 : 1);
        heft_file *f = heft_test_opened(b, &h.host, true);
        heft_assert_ok(readers[i / 2 % READERS](f, &err), &err);
        heft_file_close(f);
        damage(b, DAMAGED);
        f = heft_test_opened(b, &h.host, true);
        assert_damage_reported(w, readers[i / 2 % READERS](f, &err), &err);
        heft_file_close(f);
        f = heft_test_opened(b, &h.host, false);
        if (w->still_decodes)
            heft_assert_ok(readers[i / 2 % READERS](f, &err), &err);
        heft_file_close(f);
        heft_test_free(&b);
    }
}

static void hashes_only_the_listed_tensors(void **state)
{
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(variants) * 2; i++) {
        heft_bytes b = with_digests(&variants[i / 2]);
        heft_hash model, all[TENSORS], some[3];
        heft_test_host h;
        heft_error err;
        heft_test_host_init(&h, i & 1 ? 3 : 1);
        heft_file *f = heft_test_opened(b, &h.host, true);
        uint32_t first = heft_tensor_find(f, HEFT_STR("first"));
        uint32_t last = heft_tensor_find(f, HEFT_STR("last"));
        heft_assert_ok(heft_file_hash(&model, all, f, NULL, NULL, &err), &err);
        heft_file_close(f);
        damage(b, DAMAGED);
        f = heft_test_opened(b, &h.host, true);
        uint32_t ids[] = { last, first, last };
        heft_assert_ok(heft_tensor_hash_many(some, f, ids, 3, NULL, NULL, &err), &err);
        for (size_t k = 0; k < 3; k++)
            assert_memory_equal(&some[k], &all[ids[k]], sizeof *some);
        heft_assert_ok(heft_tensor_hash_many(NULL, f, NULL, 0, NULL, NULL, &err), &err);
        ids[1] = TENSORS;
        heft_assert_fails(heft_tensor_hash_many(some, f, ids, 3, NULL, NULL, &err), HEFT_E_ARGUMENT,
                          &err, "tensor 3 does not exist: the file has 3");
        heft_file_close(f);
        heft_test_free(&b);
    }
}

static heft_status stream_all(const heft_file *f, const size_t *which, uint32_t count,
                              bool announce, heft_error *err)
{
    heft_checked_read *r;
    heft_stream *s;
    uint32_t parts[TENSORS];
    for (uint32_t i = 0; i < count; i++)
        parts[i] = part_of(f, which[i]);
    heft_status st = heft_checked_read_open(&r, f, announce ? parts : NULL, count, err);
    for (uint32_t i = 0; i < count && !st; i++) {
        st = heft_checked_read_stream(&s, r, parts[i], err);
        if (!st)
            st = read_to_end(s, heft_part_at(f, parts[i]).length, i & 1, err);
        heft_stream_close(s);
    }
    if (!st)
        st = heft_checked_read_end(r, err);
    heft_checked_read_close(r);
    return st;
}

static void verifies_a_shared_digest_when_all_parts_are_read(void **state)
{
    static const size_t all[] = { 2, 0, 1 };
    heft_bytes b = heft_test_model("embd", tensors, TENSORS);
    heft_error err;
    (void)state;
    heft_file *f = heft_test_opened(b, NULL, true);
    heft_assert_ok(stream_all(f, all, 3, true, &err), &err);
    heft_file_close(f);
    damage(b, DAMAGED);
    f = heft_test_opened(b, NULL, true);
    heft_assert_fails(stream_all(f, all, 3, true, &err), HEFT_E_CHECKSUM, &err, "embd/data-crc");
    heft_assert_fails(stream_all(f, all, 2, false, &err), HEFT_E_CHECKSUM, &err, "embd/data-crc");
    heft_assert_ok(stream_all(f, all, 2, true, &err), &err);
    heft_assert_fails(read_all(f, &err), HEFT_E_CHECKSUM, &err, "embd/data-crc");
    heft_assert_fails(hash_all(f, &err), HEFT_E_CHECKSUM, &err, "embd/data-crc");
    heft_assert_ok(read_whole(f, DAMAGED, &err), &err);
    heft_file_close(f);
    heft_test_free(&b);
}

static void verifies_many_streams(void **state)
{
    static const size_t all[] = { 0, 2, 1 };
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(variants); i++) {
        heft_bytes b = with_digests(&variants[i]);
        heft_error err;
        heft_file *f = heft_test_opened(b, NULL, false);
        heft_assert_ok(stream_all(f, all, 3, true, &err), &err);
        heft_file_close(f);
        damage(b, DAMAGED);
        f = heft_test_opened(b, NULL, false);
        assert_damage_reported(&variants[i], stream_all(f, all, 3, true, &err), &err);
        heft_assert_ok(stream_all(f, all, 2, true, &err), &err);
        heft_file_close(f);
        heft_test_free(&b);
    }
}

static void checked_read_refuses_unknown_parts(void **state)
{
    heft_bytes b = with_digests(&variants[0]);
    heft_checked_read *r;
    heft_stream *s;
    heft_error err;
    uint32_t none = 99;
    (void)state;
    heft_file *f = heft_test_opened(b, NULL, false);
    heft_assert_fails(heft_checked_read_open(&r, f, &none, 1, &err), HEFT_E_ARGUMENT, &err,
                      "no part");
    assert_null(r);
    heft_assert_ok(heft_checked_read_open(&r, f, NULL, 0, &err), &err);
    heft_assert_fails(heft_checked_read_stream(&s, r, none, &err), HEFT_E_ARGUMENT, &err,
                      "no part");
    heft_checked_read_close(r);
    heft_checked_read_close(NULL);
    heft_file_close(f);
    heft_test_free(&b);
}

static void joined_files_verify_as_their_members(void **state)
{
    heft_bytes b = with_digests(&variants[4]);
    heft_error err;
    heft_file *joined, *f;
    (void)state;
    damage(b, DAMAGED);
    for (int check = 0; check < 2; check++) {
        f = heft_test_opened(b, NULL, check);
        const heft_file *files[] = { f };
        heft_assert_ok(heft_file_join(&joined, files, 1, NULL, &err), &err);
        heft_status st = read_whole(joined, DAMAGED, &err);
        heft_assert_status(st, check ? HEFT_E_CHECKSUM : HEFT_OK, &err);
        heft_file_close(joined);
        heft_file_close(f);
    }
    heft_test_free(&b);
}

/* ---- changing files, failing allocations ---------------------------------------------------- */

/* Bytes are read once: the digest covers the returned bytes. */
static void finds_a_change_during_reading(void **state)
{
    const char *path = heft_test_path(*state, "m.zt");
    heft_bytes b = with_digests(&variants[0]);
    heft_open_options opt = HEFT_OPEN_OPTIONS_INIT;
    heft_stream *s;
    heft_error err;
    heft_file *f;
    heft_source *source;
    heft_test_fault_handler(*state);
    opt.check_parts = true;
    for (heft_access access = HEFT_ACCESS_AUTO; access <= HEFT_ACCESS_READ; access++) {
        heft_test_save(path, b.p, b.len);
        heft_assert_ok(heft_source_open_file(&source, path, access, &err), &err);
        heft_assert_ok(heft_file_open_source(&f, source, &opt, &err), &err);
        heft_part p = heft_part_at(f, part_of(f, DAMAGED));
        size_t half = (size_t)p.length / 2;
        uint8_t *buf = malloc((size_t)p.length);
        heft_assert_ok(heft_stream_open(&s, f, part_of(f, DAMAGED), &err), &err);
        heft_assert_ok(heft_stream_read(buf, s, half, &err), &err);
        FILE *to = fopen(path, "r+b");
        assert_true(to && !fseek(to, (long)(p.offset + half + 9), SEEK_SET));
        assert_int_equal(fputc(~b.p[p.offset + half + 9] & 0xFF, to),
                         ~b.p[p.offset + half + 9] & 0xFF);
        fclose(to);
        heft_assert_fails(heft_stream_read(buf + half, s, (size_t)p.length - half, &err),
                          HEFT_E_CHECKSUM, &err, "large");
        heft_stream_close(s);
        free(buf);
        heft_file_close(f);
    }
    heft_test_free(&b);
}

static void reports_a_truncated_file_as_an_io_error(void **state)
{
    const char *path = heft_test_path(*state, "m.zt");
    heft_bytes b = with_digests(&variants[0]);
    heft_open_options opt = HEFT_OPEN_OPTIONS_INIT;
    heft_error err;
    heft_file *f;
    heft_test_save(path, b.p, b.len);
    heft_test_fault_handler(*state);
    opt.check_parts = true;
    heft_assert_ok(heft_file_open(&f, path, &opt, &err), &err);
    uint32_t part = part_of(f, DAMAGED);
    size_t length = (size_t)heft_part_at(f, part).length;
    uint8_t *buf = malloc(length);
    assert_int_equal(truncate(path, 4096), 0);
    heft_assert_status(heft_part_verify(NULL, f, part, &err), HEFT_E_IO, &err);
    heft_assert_status(heft_part_read(buf, f, part, 0, length, &err), HEFT_E_IO, &err);
    free(buf);
    heft_file_close(f);
    heft_test_free(&b);
}

static void reports_every_failed_allocation(void **state)
{
    static const size_t all[] = { 2, 0, 1 };
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(variants); i++) {
        heft_bytes b = with_digests(&variants[i]);
        heft_test_memory m;
        for (uint32_t fail_at = 1, ended = 0; !ended; fail_at++) {
            heft_error err;
            heft_test_memory_init(&m, 0);
            heft_file *f = heft_test_opened(b, &m.host, true);
            heft_test_memory_rewind(&m);
            m.fail_at = fail_at;
            heft_status st = read_whole(f, DAMAGED, &err);
            st = st ? st : stream_all(f, all, 3, true, &err);
            st = st ? st : read_all(f, &err);
            st = st ? st : heft_part_verify(NULL, f, part_of(f, 0), &err);
            st = st ? st : hash_listed(f, &err);
            ended = !st;
            if (st)
                heft_assert_status(st, HEFT_E_NOMEM, &err);
            heft_file_close(f);
            heft_assert_all_freed(&m);
        }
        heft_test_free(&b);
    }
}

/* ---- the parameter store -------------------------------------------------------------------- */

static void parameter_store_verifies_at_loading(void **state)
{
    const char *path = heft_test_path(*state, "m.npz");
    heft_bytes b = with_digests(&variants[4]);
    damage(b, DAMAGED);
    heft_test_save(path, b.p, b.len);
    for (int i = 0; i < 8; i++) {
        heft_params_options opt = HEFT_PARAMS_OPTIONS_INIT;
        heft_open_options open = HEFT_OPEN_OPTIONS_INIT;
        bool by_store = i & 1, copy = i & 2, by_file = i & 4;
        heft_params *p;
        heft_param w;
        heft_id128 namespace, key;
        heft_file *f;
        heft_error err;
        opt.check_parts = by_store;
        opt.copy = copy;
        open.check_parts = by_file;
        heft_assert_ok(heft_file_open(&f, path, &open, &err), &err);
        heft_assert_ok(heft_params_open(&p, &opt, &err), &err);
        heft_assert_ok(heft_params_add(&namespace, p, f, &err), &err);
        assert_true(heft_params_find(&key, p, namespace, HEFT_STR("large")));
        heft_status st = heft_params_acquire(&w, p, key, &err);
        if (by_store || (by_file && copy)) {
            heft_assert_fails(st, HEFT_E_CHECKSUM, &err, "large");
            assert_int_equal(heft_params_statistics(p).resident, 0);
        } else {
            heft_assert_ok(st, &err);
            heft_params_release(p, key);
        }
        assert_true(heft_params_find(&key, p, namespace, HEFT_STR("first")));
        heft_assert_ok(heft_params_acquire(&w, p, key, &err), &err);
        heft_params_release(p, key);
        heft_params_close(p);
    }
    heft_test_free(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verifies_a_part_that_is_read_as_a_whole),
        cmocka_unit_test(does_not_verify_a_slice),
        cmocka_unit_test(verifies_a_stream_at_its_end),
        cmocka_unit_test(does_not_verify_an_unfinished_stream),
        cmocka_unit_test(part_verify_finds_damage),
        cmocka_unit_test(stated_digests_are_those_of_decoded_bytes),
        cmocka_unit_test(verify_warns_of_digests_that_the_host_lacks),
        cmocka_unit_test(part_verify_reports_a_missing_digest),
        cmocka_unit_test(does_not_verify_an_unsupported_algorithm),
        cmocka_unit_test(a_conversion_reports_digests_that_it_leaves_out),
        cmocka_unit_test(verifies_many_parts_on_any_number_of_threads),
        cmocka_unit_test(hashes_only_the_listed_tensors),
        cmocka_unit_test(verifies_a_shared_digest_when_all_parts_are_read),
        cmocka_unit_test(verifies_many_streams),
        cmocka_unit_test(checked_read_refuses_unknown_parts),
        cmocka_unit_test(joined_files_verify_as_their_members),
        cmocka_unit_test_setup_teardown(finds_a_change_during_reading, heft_test_dir_make,
                                        heft_test_dir_remove),
        cmocka_unit_test_setup_teardown(reports_a_truncated_file_as_an_io_error, heft_test_dir_make,
                                        heft_test_dir_remove),
        cmocka_unit_test(reports_every_failed_allocation),
        cmocka_unit_test_setup_teardown(parameter_store_verifies_at_loading, heft_test_dir_make,
                                        heft_test_dir_remove),
    };
    return cmocka_run_group_tests_name("part_digests", tests, NULL, NULL);
}
