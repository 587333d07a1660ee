/* test_limits.c - heft_limits, enforced for every format. */
#include "models.h"

static heft_status open_within(const heft_test_open_method *method, heft_bytes b,
                               const heft_limits *limits, heft_test_memory *m, heft_error *err)
{
    heft_test_input in = { NULL, b };
    heft_open_options opt = HEFT_OPEN_OPTIONS_INIT;
    heft_file *f;
    heft_test_memory_init(m, 0);
    opt.host = &m->host;
    opt.limits = limits;
    heft_status st = method->open(&f, &in, &opt, err);
    uint64_t live = atomic_load(&m->live);
    if (!st)
        assert_true(heft_file_memory(f) <= live + 64 && live <= heft_file_memory(f) + 64);
    heft_file_close(f);
    heft_assert_all_freed(m);
    return st;
}

/* Indexes of heft_test_open_methods: memory, a source that cannot map, fed in small chunks. */
static const size_t chosen_methods[] = { 0, 3, 5 };

static void refuses_tensors_beyond_the_limit(void **state)
{
    const char *format;
    (void)state;
    for (size_t i = 0; (format = heft_test_writable(i / HEFT_COUNT(chosen_methods))); i++) {
        heft_bytes b = heft_test_many(format, 1000);
        const heft_test_open_method *method =
            &heft_test_open_methods[chosen_methods[i % HEFT_COUNT(chosen_methods)]];
        heft_limits limits = { .size = sizeof limits, .tensors = 1000 };
        heft_test_memory m;
        heft_error err;
        heft_assert_ok(open_within(method, b, &limits, &m, &err), &err);
        limits.tensors = 999;
        heft_assert_fails(open_within(method, b, &limits, &m, &err), HEFT_E_LIMIT, &err, "999");
        heft_test_free(&b);
    }
}

static void index_memory_stays_within_the_limit(void **state)
{
    const char *format;
    (void)state;
    for (size_t i = 0; (format = heft_test_writable(i / HEFT_COUNT(chosen_methods))); i++) {
        heft_bytes b = heft_test_many(format, 3000);
        const heft_test_open_method *method =
            &heft_test_open_methods[chosen_methods[i % HEFT_COUNT(chosen_methods)]];
        heft_test_memory m;
        heft_error err;
        heft_status st = HEFT_E_NOMEM;
        for (uint64_t memory = 1000; st; memory = memory * 3 / 2) {
            heft_limits limits = { .size = sizeof limits, .memory = memory };
            st = open_within(method, b, &limits, &m, &err);
            /* a growing block exists twice during the copy */
            assert_in_range(atomic_load(&m.peak), 0, 2 * memory + 1000);
            if (st)
                heft_assert_fails(st, HEFT_E_NOMEM, &err, "memory");
            assert_in_range(memory, 0, 10 << 20);
        }
        heft_test_free(&b);
    }
}

static void refuses_an_index_beyond_the_byte_limit(void **state)
{
    const char *format;
    (void)state;
    for (size_t i = 0; (format = heft_test_writable(i)); i++) {
        heft_bytes b = heft_test_many(format, 30000);
        heft_limits limits = { .size = sizeof limits, .index_bytes = 400 << 10 };
        heft_test_memory m;
        heft_error err;
        for (size_t k = 1; k < HEFT_COUNT(chosen_methods); k++) {
            const heft_test_open_method *method = &heft_test_open_methods[chosen_methods[k]];
            heft_assert_fails(open_within(method, b, &limits, &m, &err), HEFT_E_LIMIT, &err,
                              "the index exceeds the limit of 409600 bytes");
            assert_in_range(atomic_load(&m.peak), 0, 10 << 20);
        }
        heft_test_free(&b);
    }
}

/* ---- nesting -------------------------------------------------------------------------------- */

static heft_bytes nested(uint32_t depth)
{
    heft_bytes b = { malloc(8 + 2 * depth + 64), 0 };
    assert_non_null(b.p);
    char *p = (char *)b.p + 8;
    p += sprintf(p, "{\"t\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0],\"x\":");
    memset(p, '[', depth);
    memset(p + depth, ']', depth);
    p += 2 * depth;
    p += sprintf(p, "}}");
    b.len = (size_t)((uint8_t *)p - b.p);
    heft_test_put(b.p, b.len - 8, 8);
    return b;
}

static void refuses_nesting_beyond_the_limit_without_recursion(void **state)
{
    static const struct {
        uint32_t limit, depth;
        bool opens;
    } rows[] = { { 0, 126, true },   { 0, 127, false },   { 10, 8, true },      { 10, 9, false },
                 { 500, 254, true }, { 500, 255, false }, { 0, 5000000, false } };
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(rows); i++) {
        heft_bytes b = nested(rows[i].depth);
        heft_limits limits = { .size = sizeof limits, .depth = rows[i].limit };
        heft_test_memory m;
        heft_error err;
        heft_status st = open_within(&heft_test_open_methods[0], b, &limits, &m, &err);
        heft_assert_status(st, rows[i].opens ? HEFT_OK : HEFT_E_LIMIT, &err);
        heft_test_free(&b);
    }
}

/* ---- counts beyond the file ----------------------------------------------------------------- */

/* Files of a few bytes that announce huge counts or sizes. */
static void refuses_announced_counts_without_reserving_memory(void **state)
{
    static const struct {
        const char *bytes;
        size_t len;
    } rows[] = {
        { "MAG!\1\0\0\0....\xff\xff\xff\xff\0\0\0\0\0\0\0\0", 24 },
        { "MAG!\1\0\0\0....\0\0\0\0\xff\xff\xff\xff\0\0\0\0", 24 },
        { "GPTRSTEN\2\0\0\0\4\0\0\0\xff\xff\xff\xff", 20 },
        { "GPTRSTEN\2\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff", 20 },
        { "GPTRSTEN\1\0\0\0\xff\xff\xff\xff", 16 },
        { "GPTRSCHK\2\0\0\0\xff\xff\xff\xff{}", 18 },
        { "\xff\xff\xff\xff\xff\xff\xff\x7f{}", 10 },
        { "\0\0\0\0\1\0\0\0{}", 10 },
    };
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(rows) * heft_test_open_method_count; i++) {
        heft_bytes b = heft_test_copy(rows[i / heft_test_open_method_count].bytes,
                                      rows[i / heft_test_open_method_count].len);
        const heft_test_open_method *method =
            &heft_test_open_methods[i % heft_test_open_method_count];
        heft_limits limits = HEFT_LIMITS_INIT;
        heft_test_memory m;
        heft_error err;
        if (!method->needs_path) {
            heft_assert_status(open_within(method, b, &limits, &m, &err), HEFT_E_FORMAT, &err);
            assert_in_range(atomic_load(&m.peak), 0, 4096);
        }
        heft_test_free(&b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refuses_tensors_beyond_the_limit),
        cmocka_unit_test(index_memory_stays_within_the_limit),
        cmocka_unit_test(refuses_an_index_beyond_the_byte_limit),
        cmocka_unit_test(refuses_nesting_beyond_the_limit_without_recursion),
        cmocka_unit_test(refuses_announced_counts_without_reserving_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
