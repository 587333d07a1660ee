/* test_blake3.c - tests of BLAKE3 against vectors of tests/py/blake3_ref.py and, if the files
 * exist, against the ids in ../shared/fixtures. */
#include "base/blake3.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "grammar/json.h"
#include "test_memory.h"

static const struct {
    size_t len;
    const char *hex;
} vectors[] = {
#include "blake3_vectors.h"
};
enum { VECTORS = sizeof vectors / sizeof *vectors, MAX_LENGTH = 102400, IDS = 24 };

static uint8_t input[MAX_LENGTH];

static int fill_input(void **state)
{
    (void)state;
    for (size_t i = 0; i < MAX_LENGTH; i++)
        input[i] = (uint8_t)(i % 251);
    return 0;
}

static void assert_hex(const uint8_t *bytes, size_t n, const char *hex, size_t len)
{
    char text[65];
    for (size_t i = 0; i < n; i++)
        snprintf(text + 2 * i, 3, "%02x", bytes[i]);
    if (memcmp(text, hex, 2 * n) != 0)
        fail_msg("%zu bytes: %s instead of %s", len, text, hex);
}

/* Hash the input of a vector in chunks of `chunk` bytes. */
static void check_chunks(size_t vector, size_t chunk)
{
    heft_blake3 h;
    uint8_t out[32];
    heft_blake3_init(&h);
    for (size_t at = 0; at < vectors[vector].len; at += chunk) {
        size_t rest = vectors[vector].len - at;
        heft_blake3_update(&h, input + at, rest < chunk ? rest : chunk);
    }
    heft_blake3_final(&h, out);
    assert_hex(out, 32, vectors[vector].hex, vectors[vector].len);
    heft_blake3_final(&h, out); /* final() does not change the state */
    assert_hex(out, 32, vectors[vector].hex, vectors[vector].len);
}

static void hashes_agree_with_the_reference(void **state)
{
    (void)state;
    for (size_t i = 0; i < VECTORS; i++)
        check_chunks(i, MAX_LENGTH);
}

static void chunks_of_any_size_give_the_same_hash(void **state)
{
    (void)state;
    static const size_t chunk_sizes[] = { 1,    7,    63,   64,   65,   1000, 1023,  1024, 1025,
                                          2048, 3072, 4096, 4097, 8192, 9999, 15360, 65536 };
    for (size_t i = 0; i < VECTORS; i++)
        for (size_t k = 0; k < sizeof chunk_sizes / sizeof *chunk_sizes; k++)
            check_chunks(i, chunk_sizes[k]);
}

static void check_first(size_t first)
{
    heft_blake3 h;
    uint8_t out[32];
    heft_blake3_init(&h);
    heft_blake3_update(&h, input, first);
    heft_blake3_update(&h, NULL, 0);
    heft_blake3_update(&h, input + first, MAX_LENGTH - first);
    heft_blake3_final(&h, out);
    assert_hex(out, 32, vectors[VECTORS - 1].hex, MAX_LENGTH);
}

static void a_first_update_of_any_length_gives_the_same_hash(void **state)
{
    (void)state;
    for (size_t first = 0; first <= 5000; first += 61)
        check_first(first);
    for (size_t first = 0; first <= MAX_LENGTH; first += 1024) /* chunks */
        check_first(first);
}

static void the_chunk_counter_has_64_bits(void **state)
{
    (void)state;
    /* Start in the middle of a very long input, with a subtree for each bit of the chunk number.
     * Hash the same bytes in large updates, which use SIMD lanes, and in small updates. */
    heft_blake3 a;
    heft_blake3_init(&a);
    a.chunk = (UINT64_C(1) << 32) - 7; /* four lanes straddle 2^32 */
    a.depth = 30;
    for (int i = 0; i < 30; i++)
        memset(a.stack[i], i, sizeof a.stack[i]);
    heft_blake3 b = a;
    heft_blake3_update(&a, input, 20000);
    for (size_t at = 0; at < 20000; at += 100)
        heft_blake3_update(&b, input + at, 100);
    uint8_t sum_a[32], sum_b[32];
    heft_blake3_final(&a, sum_a);
    heft_blake3_final(&b, sum_b);
    assert_true(a.chunk > UINT64_C(1) << 32);
    assert_int_equal(a.chunk, b.chunk);
    assert_memory_equal(sum_a, sum_b, 32);
}

static void ids_are_the_first_sixteen_bytes(void **state)
{
    (void)state;
    uint8_t id[16];
    for (size_t i = 0; i < VECTORS; i++) {
        heft_blake3_id(id, input, vectors[i].len);
        assert_hex(id, 16, vectors[i].hex, vectors[i].len);
    }
}

/* Compare the id of "name" with "on_disk_bytes" in a vector. */
static void check_id(heft_json *j)
{
    heft_str name = { NULL, 0 }, bytes = { NULL, 0 };
    while (heft_json_next(j) == HEFT_JSON_KEY) {
        heft_str key = j->text;
        heft_json_kind k = heft_json_next(j);
        if (heft_str_is(key, "name"))
            name = j->text;
        else if (heft_str_is(key, "on_disk_bytes"))
            bytes = j->text;
        assert_int_equal(heft_json_skip(j, k), HEFT_OK);
    }
    assert_true(name.ptr && bytes.len == 32);
    uint8_t id[16];
    heft_blake3_id(id, name.ptr, name.len);
    assert_hex(id, 16, bytes.ptr, name.len);
}

static void ids_agree_with_the_fixtures_of_gpt_rs(void **state)
{
    (void)state;
    static char text[200000];
    FILE *file = fopen("../shared/fixtures/gptrs/ids.json", "rb");
    if (!file)
        skip();
    size_t len = fread(text, 1, sizeof text, file), count = 0;
    fclose(file);
    heft_error err = { .message = "" };
    test_memory t;
    test_memory_init(&t, 0);
    heft_memory m = { .al = &t.al, .limit = UINT64_MAX };
    heft_arena arena = { .mem = &m };
    heft_json j = heft_json_open((heft_str){ text, len }, 0, 10, &arena, &err);
    assert_int_equal(heft_json_next(&j), HEFT_JSON_OBJECT);
    while (heft_json_next(&j) == HEFT_JSON_KEY) {
        bool is_vectors = heft_str_is(j.text, "vectors");
        heft_json_kind k = heft_json_next(&j);
        for (; is_vectors && heft_json_next(&j) == HEFT_JSON_OBJECT; count++)
            check_id(&j);
        if (!is_vectors)
            assert_int_equal(heft_json_skip(&j, k), HEFT_OK);
    }
    assert_string_equal(err.message, "");
    assert_int_equal(count, IDS);
    heft_arena_free(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hashes_agree_with_the_reference),
        cmocka_unit_test(chunks_of_any_size_give_the_same_hash),
        cmocka_unit_test(a_first_update_of_any_length_gives_the_same_hash),
        cmocka_unit_test(the_chunk_counter_has_64_bits),
        cmocka_unit_test(ids_are_the_first_sixteen_bytes),
        cmocka_unit_test(ids_agree_with_the_fixtures_of_gpt_rs),
    };
    return cmocka_run_group_tests_name("blake3", tests, fill_input, NULL);
}
