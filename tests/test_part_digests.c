/* test_part_digests.c - digests of parts, checked by whatever reads a part as a whole. */
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

typedef struct way {
    const char *name, *format, *version, *digest;
    heft_encoding encoding;
    bool joins, keeps_bytes; /* what is damaged decodes all the same */
} way;

static const way ways[] = {
    { "crc32c", "ztensor", NULL, "crc32c", HEFT_RAW, true, true },
    { "sha256", "ztensor", NULL, "sha256", HEFT_RAW, false, true },
    { "zstd", "ztensor", NULL, "sha256", HEFT_ZSTD, false, false },
    { "zTensor 2", "ztensor", "2", "sha256", HEFT_RAW, false, true },
    { "npz", "npz", NULL, NULL, HEFT_RAW, true, true },
};

static heft_bytes with_digests(const way *w)
{
    heft_write_options write = HEFT_WRITE_OPTIONS_INIT;
    heft_convert_options opt = HEFT_CONVERT_OPTIONS_INIT;
    opt.write = &write;
    write.version = w->version;
    write.digest = w->digest;
    write.encoding = w->encoding;
    return heft_test_converted("safetensors", tensors, TENSORS, w->format, &opt);
}

static uint32_t part_of(const heft_file *f, size_t tensor)
{
    const char *name = tensors[tensor].name;
    return heft_tensor_at(f, heft_tensor_find(f, heft_str_from(name))).first_part;
}

/* One byte in the middle of a tensor is another. */
static void damage(heft_bytes b, size_t tensor)
{
    heft_file *f = heft_test_opened(b, NULL, false);
    heft_part p = heft_part_at(f, part_of(f, tensor));
    heft_file_close(f);
    b.p[p.offset + p.stored / 2] ^= 0x20;
}

/* What is damaged may not decode either. */
static void assert_found(const way *w, heft_status st, const heft_error *err)
{
    if (!w->keeps_bytes && st == HEFT_E_FORMAT)
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

static void a_part_is_checked_when_all_of_it_is_read(void **state)
{
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(ways); i++) {
        heft_bytes b = with_digests(&ways[i]);
        heft_error err;
        damage(b, DAMAGED);
        heft_file *f = heft_test_opened(b, NULL, true);
        for (size_t t = 0; t < TENSORS; t++) {
            heft_status st = read_whole(f, t, &err);
            if (t == DAMAGED)
                assert_found(&ways[i], st, &err);
            else
                heft_assert_ok(st, &err);
        }
        heft_file_close(f);
        f = heft_test_opened(b, NULL, false);
        if (ways[i].keeps_bytes)
            heft_assert_ok(read_whole(f, DAMAGED, &err), &err);
        heft_file_close(f);
        heft_test_free(&b);
    }
}

static void a_slice_is_not_checked(void **state)
{
    heft_bytes b = with_digests(&ways[0]);
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

/* In pieces of odd sizes; buf NULL: lent where that is possible. */
static heft_status drain(heft_stream *s, uint64_t length, bool lend, heft_error *err)
{
    enum { ODD = 77777 };
    uint8_t *buf = malloc(ODD);
    heft_status st = HEFT_OK;
    for (uint64_t at = 0; at < length && !st; at += ODD) {
        size_t n = length - at < ODD ? (size_t)(length - at) : ODD;
        const void *data = buf;
        st = lend ? heft_stream_view(&data, s, buf, n, err) : heft_stream_read(buf, s, n, err);
        assert_non_null(data);
    }
    free(buf);
    return st;
}

static void a_stream_is_checked_at_its_end(void **state)
{
    (void)state;
    for (size_t i = 0; i < 4 * HEFT_COUNT(ways); i++) {
        const way *w = &ways[i / 4];
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
            heft_status st = drain(s, heft_part_at(f, part).length, i & 2, &err);
            if (t == DAMAGED)
                assert_found(w, st, &err);
            else
                heft_assert_ok(st, &err);
            heft_stream_close(s);
        }
        heft_file_close(f);
        heft_test_free(&b);
    }
}

static void a_stream_that_is_left_is_not_checked(void **state)
{
    heft_bytes b = with_digests(&ways[1]);
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

static void a_part_is_verified_on_its_own(void **state)
{
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(ways); i++) {
        heft_bytes b = with_digests(&ways[i]);
        heft_error err;
        bool checked;
        damage(b, DAMAGED);
        heft_file *f = heft_test_opened(b, NULL, false);
        heft_status st = heft_part_verify(&checked, f, part_of(f, DAMAGED), &err);
        assert_found(&ways[i], st, &err);
        heft_assert_ok(heft_part_verify(&checked, f, part_of(f, 0), &err), &err);
        assert_true(checked);
        heft_assert_ok(heft_part_verify(NULL, f, part_of(f, 0), &err), &err);
        heft_assert_fails(heft_part_verify(&checked, f, 99, &err), HEFT_E_ARGUMENT, &err, "part");
        assert_false(checked);
        heft_file_close(f);
        heft_test_free(&b);
    }
}

static void a_part_without_a_digest_is_said_to_have_none(void **state)
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

/* An algorithm that this build lacks is no digest that could be wrong. */
static void an_algorithm_that_is_missing_checks_nothing(void **state)
{
    heft_bytes b = with_digests(&ways[1]);
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

/* ---- many parts ----------------------------------------------------------------------------- */

/* The parts from the last to the first, one of them twice. */
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

static void many_parts_are_checked_on_any_number_of_threads(void **state)
{
    static heft_status (*const readers[])(const heft_file *, heft_error *) = { read_all, hash_all };
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(ways) * 4; i++) {
        const way *w = &ways[i / 4];
        heft_bytes b = with_digests(w);
        heft_test_host h;
        heft_error err;
        heft_test_host_init(&h, i & 1 ? 3 : 1);
        heft_file *f = heft_test_opened(b, &h.host, true);
        heft_assert_ok(readers[i >> 1 & 1](f, &err), &err);
        heft_file_close(f);
        damage(b, DAMAGED);
        f = heft_test_opened(b, &h.host, true);
        assert_found(w, readers[i >> 1 & 1](f, &err), &err);
        heft_file_close(f);
        f = heft_test_opened(b, &h.host, false);
        if (w->keeps_bytes)
            heft_assert_ok(readers[i >> 1 & 1](f, &err), &err);
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
            st = drain(s, heft_part_at(f, parts[i]).length, i & 1, err);
        heft_stream_close(s);
    }
    if (!st)
        st = heft_checked_read_end(r, err);
    heft_checked_read_close(r);
    return st;
}

static void what_covers_several_parts_is_checked_when_all_are_read(void **state)
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

static void many_streams_are_checked_each_by_its_digest(void **state)
{
    static const size_t all[] = { 0, 2, 1 };
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(ways); i++) {
        heft_bytes b = with_digests(&ways[i]);
        heft_error err;
        heft_file *f = heft_test_opened(b, NULL, false);
        heft_assert_ok(stream_all(f, all, 3, true, &err), &err);
        heft_file_close(f);
        damage(b, DAMAGED);
        f = heft_test_opened(b, NULL, false);
        assert_found(&ways[i], stream_all(f, all, 3, true, &err), &err);
        heft_assert_ok(stream_all(f, all, 2, true, &err), &err);
        heft_file_close(f);
        heft_test_free(&b);
    }
}

static void a_checked_read_knows_its_parts(void **state)
{
    heft_bytes b = with_digests(&ways[0]);
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

static void joined_files_check_what_their_files_do(void **state)
{
    heft_bytes b = with_digests(&ways[4]);
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

/* ---- files that change, memory that ends ---------------------------------------------------- */

/* Bytes are read once: what was digested is what was handed out. */
static void what_changes_while_it_is_read_is_found(void **state)
{
    const char *path = heft_test_path(*state, "m.zt");
    heft_bytes b = with_digests(&ways[0]);
    heft_open_options opt = HEFT_OPEN_OPTIONS_INIT;
    heft_stream *s;
    heft_error err;
    heft_file *f;
    heft_source *source;
    heft_test_fault_handler(*state);
    opt.check_parts = true;
    for (heft_access how = HEFT_ACCESS_AUTO; how <= HEFT_ACCESS_READ; how++) {
        heft_test_save(path, b.p, b.len);
        heft_assert_ok(heft_source_open_file(&source, path, how, &err), &err);
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

static void a_file_that_is_cut_short_is_an_error_of_the_system(void **state)
{
    const char *path = heft_test_path(*state, "m.zt");
    heft_bytes b = with_digests(&ways[0]);
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

static void without_memory_nothing_is_said_to_be_right(void **state)
{
    static const size_t all[] = { 2, 0, 1 };
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(ways); i++) {
        heft_bytes b = with_digests(&ways[i]);
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

static void parameters_are_checked_when_they_are_loaded(void **state)
{
    const char *path = heft_test_path(*state, "m.npz");
    heft_bytes b = with_digests(&ways[4]);
    damage(b, DAMAGED);
    heft_test_save(path, b.p, b.len);
    for (int i = 0; i < 8; i++) {
        heft_params_options opt = HEFT_PARAMS_OPTIONS_INIT;
        heft_open_options how = HEFT_OPEN_OPTIONS_INIT;
        bool by_store = i & 1, copy = i & 2, by_file = i & 4;
        heft_params *p;
        heft_param w;
        heft_id128 space, key;
        heft_file *f;
        heft_error err;
        opt.check_parts = by_store;
        opt.copy = copy;
        how.check_parts = by_file;
        heft_assert_ok(heft_file_open(&f, path, &how, &err), &err);
        heft_assert_ok(heft_params_open(&p, &opt, &err), &err);
        heft_assert_ok(heft_params_add(&space, p, f, &err), &err);
        assert_true(heft_params_find(&key, p, space, HEFT_STR("large")));
        heft_status st = heft_params_acquire(&w, p, key, &err);
        if (by_store || (by_file && copy)) {
            heft_assert_fails(st, HEFT_E_CHECKSUM, &err, "large");
            assert_int_equal(heft_params_statistics(p).resident, 0);
        } else {
            heft_assert_ok(st, &err);
            heft_params_release(p, key);
        }
        assert_true(heft_params_find(&key, p, space, HEFT_STR("first")));
        heft_assert_ok(heft_params_acquire(&w, p, key, &err), &err);
        heft_params_release(p, key);
        heft_params_close(p);
    }
    heft_test_free(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_part_is_checked_when_all_of_it_is_read),
        cmocka_unit_test(a_slice_is_not_checked),
        cmocka_unit_test(a_stream_is_checked_at_its_end),
        cmocka_unit_test(a_stream_that_is_left_is_not_checked),
        cmocka_unit_test(a_part_is_verified_on_its_own),
        cmocka_unit_test(a_part_without_a_digest_is_said_to_have_none),
        cmocka_unit_test(an_algorithm_that_is_missing_checks_nothing),
        cmocka_unit_test(many_parts_are_checked_on_any_number_of_threads),
        cmocka_unit_test(what_covers_several_parts_is_checked_when_all_are_read),
        cmocka_unit_test(many_streams_are_checked_each_by_its_digest),
        cmocka_unit_test(a_checked_read_knows_its_parts),
        cmocka_unit_test(joined_files_check_what_their_files_do),
        cmocka_unit_test_setup_teardown(what_changes_while_it_is_read_is_found, heft_test_dir_make,
                                        heft_test_dir_remove),
        cmocka_unit_test_setup_teardown(a_file_that_is_cut_short_is_an_error_of_the_system,
                                        heft_test_dir_make, heft_test_dir_remove),
        cmocka_unit_test(without_memory_nothing_is_said_to_be_right),
        cmocka_unit_test_setup_teardown(parameters_are_checked_when_they_are_loaded,
                                        heft_test_dir_make, heft_test_dir_remove),
    };
    return cmocka_run_group_tests_name("part_digests", tests, NULL, NULL);
}
