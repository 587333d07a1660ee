/* test_board.c - tests of heft_arena_allocator() and of files fed and opened in 64 KiB of
 * memory, as on a board without an operating system. */
#include "dump.h"
#include "models.h"

enum { MEMORY = 64 << 10 };

static const heft_arena_memory empty;

/* ---- the allocator -------------------------------------------------------------------------- */

static void the_last_block_is_resized_and_freed_in_place(void **state)
{
    static _Alignas(64) uint8_t memory[1000];
    heft_arena_memory m = { memory, sizeof memory, 7, 7 };
    heft_allocator al = heft_arena_allocator(&m);
    (void)state;
    assert_int_equal(m.used, 0);
    uint8_t *a = al.resize(al.ctx, NULL, 0, 100, 16), *b = al.resize(al.ctx, NULL, 0, 50, 16);
    assert_ptr_equal(a, memory);
    memset(b, 7, 50);
    assert_ptr_equal(al.resize(al.ctx, b, 50, 500, 16), b); /* in place */
    assert_int_equal(b[49], 7);
    assert_ptr_equal(al.resize(al.ctx, b, 500, 20, 16), b);
    assert_null(al.resize(al.ctx, b, 20, 0, 16));
    assert_int_equal(m.used, 112);
    assert_null(al.resize(al.ctx, a, 100, 0, 16));
    assert_int_equal(m.used, 0);
    assert_int_equal(m.peak, 112 + 512);
}

static void any_other_block_moves_to_grow(void **state)
{
    static _Alignas(64) uint8_t memory[1000];
    heft_arena_memory m = { memory, sizeof memory, 0, 0 };
    heft_allocator al = heft_arena_allocator(&m);
    (void)state;
    uint8_t *a = al.resize(al.ctx, NULL, 0, 100, 16), *b = al.resize(al.ctx, NULL, 0, 50, 16);
    memset(a, 5, 100);
    assert_ptr_equal(al.resize(al.ctx, a, 100, 60, 16), a); /* shrinks in place */
    uint8_t *c = al.resize(al.ctx, a, 60, 200, 16);
    assert_true(c > b);
    for (int i = 0; i < 60; i++)
        assert_int_equal(c[i], 5);
    assert_null(al.resize(al.ctx, b, 50, 0, 16)); /* not the last block: the bytes stay used */
    assert_int_equal(m.used, 112 + 64 + 208);
}

static void a_request_that_does_not_fit_changes_nothing(void **state)
{
    static _Alignas(64) uint8_t memory[208];
    heft_arena_memory m = { memory, sizeof memory, 0, 0 };
    heft_allocator al = heft_arena_allocator(&m);
    (void)state;
    uint8_t *a = al.resize(al.ctx, NULL, 0, 100, 64);
    memset(a, 5, 100);
    assert_null(al.resize(al.ctx, NULL, 0, 97, 1));
    assert_null(al.resize(al.ctx, a, 100, 209, 64));
    assert_null(al.resize(al.ctx, NULL, 0, SIZE_MAX, 16));
    assert_null(al.resize(al.ctx, a, 100, SIZE_MAX, 64));
    assert_null(al.resize(al.ctx, NULL, 0, 81, 64)); /* the aligned block would exceed the memory */
    assert_int_equal(m.used, 112);
    assert_int_equal(a[99], 5);
    assert_non_null(al.resize(al.ctx, NULL, 0, 80, 64));
}

static void blocks_are_aligned_wherever_the_memory_begins(void **state)
{
    static _Alignas(64) uint8_t memory[4000];
    (void)state;
    for (size_t at = 0; at < 64; at++) {
        heft_arena_memory m = { memory + at, 1000, 0, 0 };
        heft_allocator al = heft_arena_allocator(&m);
        for (size_t align = 1; align <= 64; align *= 2) {
            uint8_t *p = al.resize(al.ctx, NULL, 0, align + 1, align);
            assert_int_equal((uintptr_t)p % align, 0);
            assert_true(p >= memory + at && p + align + 1 <= memory + at + 1000);
        }
    }
}

/* ---- files ---------------------------------------------------------------------------------- */

typedef struct board {
    heft_arena_memory memory;
    heft_allocator al;
    heft_host host;
} board;

static void start(board *b)
{
    static _Alignas(64) uint8_t memory[MEMORY];
    *b = (board){ .memory = empty };
    b->memory.base = memory;
    b->memory.size = MEMORY;
    b->al = heft_arena_allocator(&b->memory);
    b->host = (heft_host){ .size = sizeof b->host, .allocator = &b->al };
}

static const test_tensor small_model[] = { { "embedding.weight", HEFT_F32, 2, { 40, 30 } },
                                           { "layer.0.weight", HEFT_F32, 2, { 30, 30 } },
                                           { "layer.0.bias", HEFT_F32, 1, { 30 } } };

static void a_small_file_opens_in_64_kib(void **state)
{
    const char *format;
    (void)state;
    for (size_t i = 0; (format = heft_test_writable(i)); i++) {
        heft_test_input in = { NULL,
                               heft_test_model(format, small_model, HEFT_COUNT(small_model)) };
        char *expected = NULL;
        for (size_t method = 4; method < heft_test_open_method_count; method++) {
            heft_open_options opt = HEFT_OPEN_OPTIONS_INIT;
            heft_error err;
            heft_file *f;
            board b;
            start(&b);
            opt.host = &b.host;
            heft_status st = heft_test_open_methods[method].open(&f, &in, &opt, &err);
            if (method > 5 &&
                st == HEFT_E_NOMEM) /* chunks fed backwards leave old copies in memory */
                continue;
            heft_assert_ok(st, &err);
            char *dump = heft_test_dump(f, DUMP_ALL);
            if (expected)
                heft_assert_same_text(dump, expected);
            else
                expected = strdup(dump);
            free(dump);
            if (method == 4) { /* all bytes of the file stay available */
                heft_verify_result result;
                heft_assert_ok(heft_file_verify(&result, f, NULL, &err), &err);
                assert_int_equal(result.faults, 0);
                heft_assert_ok(heft_test_read_all(f, &err), &err);
            }
            heft_file_close(f);
        }
        free(expected);
        heft_test_free(&in.bytes);
    }
}

static void a_file_that_does_not_fit_is_refused(void **state)
{
    heft_test_input in = { NULL, heft_test_many("mag", 3000) };
    (void)state;
    for (size_t method = 4; method < heft_test_open_method_count; method++) {
        heft_open_options opt = HEFT_OPEN_OPTIONS_INIT;
        heft_error err;
        heft_file *f;
        board b;
        start(&b);
        opt.host = &b.host;
        heft_assert_status(heft_test_open_methods[method].open(&f, &in, &opt, &err), HEFT_E_NOMEM,
                           &err);
    }
    heft_test_free(&in.bytes);
}

/* ---- files in place ------------------------------------------------------------------------- */

static heft_status open_in_place(heft_file **out, board *b, const void *data, size_t len,
                                 heft_error *err)
{
    heft_open_options opt = HEFT_OPEN_OPTIONS_INIT;
    start(b);
    opt.host = &b->host;
    return heft_file_open_in_place(out, data, len, &opt, err);
}

static void a_file_in_place_is_the_file_that_is_fed(void **state)
{
    const char *format;
    (void)state;
    for (size_t i = 0; (format = heft_test_writable(i)); i++) {
        heft_bytes bytes = heft_test_model(format, small_model, HEFT_COUNT(small_model));
        heft_error err;
        heft_file *f, *fed;
        board b;
        heft_assert_ok(open_in_place(&f, &b, bytes.p, bytes.len, &err), &err);
        heft_assert_ok(heft_file_begin(&fed, bytes.len, NULL, &err), &err);
        heft_assert_ok(heft_file_feed(fed, 0, bytes.p, bytes.len, &err), &err);
        heft_assert_ok(heft_file_step(fed, &err), &err);
        char *dump = heft_test_dump(f, DUMP_ALL), *other = heft_test_dump(fed, DUMP_ALL);
        heft_assert_same_text(dump, other);
        uint32_t part = heft_tensor_at(f, 0).first_part;
        const uint8_t *view = heft_part_view(f, part);
        assert_ptr_equal(view, bytes.p + heft_part_at(f, part).offset);
        free(dump);
        free(other);
        heft_file_close(f);
        heft_file_close(fed);
        heft_test_free(&bytes);
    }
}

static void a_file_that_needs_other_bytes_is_refused_in_place(void **state)
{
    static const char with_shards[] = "{\"metadata\": {\"total_size\": 4}, \"weight_map\": "
                                      "{\"a\": \"model-00001-of-00001.safetensors\"}}";
    static const uint8_t gzip[20] = { 0x1F, 0x8B, 8 };
    heft_error err;
    heft_file *f;
    board b;
    (void)state;
    heft_assert_status(open_in_place(&f, &b, with_shards, sizeof with_shards - 1, &err),
                       HEFT_E_UNSUPPORTED, &err);
    assert_null(f);
    heft_assert_status(open_in_place(&f, &b, gzip, sizeof gzip, &err), HEFT_E_FORMAT, &err);
    assert_string_equal(err.rule, "heft/unknown-format");
    heft_assert_status(open_in_place(&f, &b, gzip, 0, &err), HEFT_E_FORMAT, &err);
}

static void a_compressed_index_is_refused_in_place(void **state)
{
    /* An archive with the member "a.npy": 5 bytes that decode to 3 bytes. */
    static const uint8_t bytes[] =
        "PK\3\4\24\0\0\0\10\0\0\0\0\0\0\0\0\0\5\0\0\0\3\0\0\0\5\0\0\0a.npy"
        "\113\4\0\0\0"
        "PK\1\2\24\0\24\0\0\0\10\0\0\0\0\0\0\0\0\0\5\0\0\0\3\0\0\0\5\0\0\0\0\0"
        "\0\0\0\0\0\0\0\0\0\0\0\0a.npy"
        "PK\5\6\0\0\0\0\1\0\1\0\63\0\0\0\50\0\0\0\0";
    (void)state;
    if (!heft_format_find(HEFT_STR("npz")))
        skip();
    heft_error err;
    heft_file *f;
    board b;
    heft_assert_status(open_in_place(&f, &b, bytes, sizeof bytes, &err), HEFT_E_UNSUPPORTED, &err);
    assert_null(f);
    assert_non_null(strstr(err.message, "the index is compressed"));
}

static void a_file_in_place_opens_without_an_error_object(void **state)
{
    heft_bytes bytes = heft_test_one("mag", 64);
    heft_file *f;
    board b;
    (void)state;
    assert_int_equal(open_in_place(&f, &b, bytes.p, bytes.len, NULL), HEFT_OK);
    assert_int_equal(heft_tensor_count(f), 1);
    heft_file_close(f);
    assert_int_equal(open_in_place(&f, &b, bytes.p, bytes.len / 2, NULL), HEFT_E_FORMAT);
    assert_null(f);
    heft_test_free(&bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_last_block_is_resized_and_freed_in_place),
        cmocka_unit_test(any_other_block_moves_to_grow),
        cmocka_unit_test(a_request_that_does_not_fit_changes_nothing),
        cmocka_unit_test(blocks_are_aligned_wherever_the_memory_begins),
        cmocka_unit_test(a_small_file_opens_in_64_kib),
        cmocka_unit_test(a_file_that_does_not_fit_is_refused),
        cmocka_unit_test(a_file_in_place_is_the_file_that_is_fed),
        cmocka_unit_test(a_file_that_needs_other_bytes_is_refused_in_place),
        cmocka_unit_test(a_compressed_index_is_refused_in_place),
        cmocka_unit_test(a_file_in_place_opens_without_an_error_object),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
