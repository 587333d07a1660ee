/* test_index.c - the index of a model: adding, finding, dropping and sorting of rows. */
#include "heft_test.h"

#include "base/error.h"
#include "base/text.h"
#include "model/index.h"
#include "model/values.h"

typedef struct fixture {
    heft_test_memory m;
    heft_index x;
    heft_error err;
} fixture;

static void begin(fixture *f, const heft_limits *limits)
{
    memset(&f->err, 0, sizeof f->err);
    heft_test_memory_init(&f->m, 0);
    heft_ix_init(&f->x, &f->m.al, limits, (uint64_t[2]){ 0, 0 });
    f->x.err = &f->err;
    f->x.file_bytes = 10000;
}

static void end(fixture *f)
{
    heft_ix_free(&f->x);
    heft_assert_all_freed(&f->m);
}

static uint32_t add(fixture *f, const char *name, heft_dtype t, uint64_t elements)
{
    uint64_t *dims;
    uint32_t id;
    heft_str copy = heft_ix_copy(&f->x, heft_test_str(name));
    heft_assert_ok(heft_ix_tensor(&f->x, copy, t, 1, &dims, &id), &f->err);
    dims[0] = elements;
    return id;
}

static uint32_t add_dense(fixture *f, const char *name, uint64_t offset, uint64_t elements)
{
    uint32_t id = add(f, name, HEFT_U8, elements);
    heft_assert_ok(heft_ix_dense(&f->x, id, 0, offset, HEFT_UNKNOWN_LENGTH), &f->err);
    return id;
}

/* ---- refusals ------------------------------------------------------------------------------- */

static void refuses_counts_beyond_the_bytes_left_or_the_limit(void **state)
{
    static const struct {
        uint64_t count, left, min_bytes;
        heft_status st;
        const char *words;
    } rows[] = {
        { 0, 0, 10, HEFT_OK, "" },
        { 10, 100, 10, HEFT_OK, "" },
        { 11, 109, 10, HEFT_E_FORMAT, "11 tensors are announced, but 109 bytes are left" },
        { UINT64_MAX, 100, 10, HEFT_E_FORMAT, "18446744073709551615 tensors are announced" },
        { (uint64_t)1 << 63, UINT64_MAX, 2, HEFT_E_FORMAT, "9223372036854775808 tensors" },
        { 1001, 100000, 10, HEFT_E_LIMIT, "1001 tensors pass the limit of 1000" },
        { UINT32_MAX, UINT64_MAX, 1, HEFT_E_LIMIT, "pass the limit" },
    };
    heft_limits limits = { .size = sizeof limits, .tensors = 1000 };
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(rows); i++) {
        fixture f;
        begin(&f, &limits);
        heft_status st = heft_ix_reserve(&f.x, 77, rows[i].count, rows[i].left, rows[i].min_bytes);
        heft_assert_status(st, rows[i].st, &f.err);
        if (st) {
            heft_assert_fails(st, rows[i].st, &f.err, rows[i].words);
            assert_int_equal(f.err.offset, 77);
            assert_int_equal(atomic_load(&f.m.peak), 0); /* no memory was requested */
        }
        end(&f);
    }
}

static void refuses_tensors_beyond_the_memory_limit(void **state)
{
    heft_limits limits = { .size = sizeof limits, .memory = 20000 };
    fixture f;
    uint32_t n = 0;
    heft_status st = HEFT_OK;
    (void)state;
    begin(&f, &limits);
    while (!st) {
        uint64_t *dims;
        uint32_t id;
        st = heft_ix_tensor(&f.x, (heft_str){ "name", 4 }, HEFT_F32, 3, &dims, &id);
        n += !st;
    }
    heft_assert_fails(st, HEFT_E_NOMEM, &f.err, "no memory: the index takes");
    assert_in_range(n, 50, 300);
    assert_in_range(atomic_load(&f.m.live), 10000, 20000);
    end(&f);
}

static void refuses_tensors_and_dimensions_beyond_the_limit(void **state)
{
    heft_limits limits = { .size = sizeof limits, .tensors = 3 };
    fixture f;
    uint64_t *dims;
    uint32_t id;
    heft_str name = { "x", 1 };
    (void)state;
    begin(&f, &limits);
    for (int i = 0; i < 3; i++)
        heft_assert_ok(heft_ix_tensor(&f.x, name, HEFT_F32, 0, &dims, &id), &f.err);
    heft_assert_fails(heft_ix_tensor(&f.x, name, HEFT_F32, 0, &dims, &id), HEFT_E_LIMIT, &f.err,
                      "tensor 'x': more than 3 tensors");
    heft_assert_fails(heft_ix_tensor(&f.x, name, HEFT_F32, 65536, &dims, &id), HEFT_E_LIMIT, &f.err,
                      "more than 65535 dimensions");
    end(&f);
}

static void refuses_dense_tensors_that_do_not_fit(void **state)
{
    static const struct {
        uint64_t dims[3], offset, length;
        heft_dtype t;
        heft_status st;
        const char *words;
    } rows[] = {
        { { 2, 3, 4 }, 0, 96, HEFT_F32, HEFT_OK, "" },
        { { 2, 3, 4 }, 9904, 96, HEFT_F32, HEFT_OK, "" },
        { { 2, 3, 4 }, 9905, 96, HEFT_F32, HEFT_E_FORMAT, "96 bytes at offset 9905 pass the end" },
        { { 2, 3, 4 }, UINT64_MAX, 96, HEFT_F32, HEFT_E_FORMAT, "pass the end" },
        { { 2, 3, 4 }, 0, 95, HEFT_F32, HEFT_E_FORMAT, "95 bytes are stored, its shape as f32" },
        { { 0, 3, 4 }, 10000, 0, HEFT_F32, HEFT_OK, "" },
        { { 0, 3, 4 }, 10001, 0, HEFT_F32, HEFT_E_FORMAT, "pass the end" },
        { { 0, UINT64_MAX, UINT64_MAX }, 0, 0, HEFT_F32, HEFT_OK, "" },
        { { UINT64_MAX, 2, 1 }, 0, HEFT_UNKNOWN_LENGTH, HEFT_U8, HEFT_E_FORMAT, "passes 64 bits" },
        { { UINT64_MAX, 1, 1 }, 0, HEFT_UNKNOWN_LENGTH, HEFT_F32, HEFT_E_FORMAT, "passes 64 bits" },
        { { (uint64_t)1 << 32, (uint64_t)1 << 32, 1 }, 0, 0, HEFT_U8, HEFT_E_FORMAT, "64 bits" },
        { { 5, 1, 1 }, 0, 3, HEFT_F4_E2M1, HEFT_OK, "" },
    };
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(rows); i++) {
        fixture f;
        uint64_t *dims;
        uint32_t id;
        begin(&f, NULL);
        heft_assert_ok(heft_ix_tensor(&f.x, heft_test_str("t"), rows[i].t, 3, &dims, &id), &f.err);
        memcpy(dims, rows[i].dims, sizeof rows[i].dims);
        heft_status st = heft_ix_dense(&f.x, id, 7, rows[i].offset, rows[i].length);
        heft_assert_status(st, rows[i].st, &f.err);
        if (st)
            heft_assert_fails(st, rows[i].st, &f.err, rows[i].words);
        end(&f);
    }
}

/* ---- names ---------------------------------------------------------------------------------- */

static void finds_every_name_and_no_unknown_name(void **state)
{
    enum { COUNT = 20000 };
    fixture f;
    char name[32];
    (void)state;
    begin(&f, NULL);
    for (uint32_t i = 0; i < COUNT; i++) {
        snprintf(name, sizeof name, "layers.%u.weight", i);
        assert_int_equal(add(&f, name, HEFT_F32, 1), i);
    }
    assert_int_equal(heft_ix_find(&f.x, heft_test_str("layers.7.weight")), HEFT_NONE);
    heft_assert_ok(heft_ix_build_name_table(&f.x), &f.err);
    for (uint32_t i = 0; i < 2 * COUNT; i++) {
        snprintf(name, sizeof name, "layers.%u.weight", i);
        assert_int_equal(heft_ix_find(&f.x, heft_test_str(name)), i < COUNT ? i : HEFT_NONE);
    }
    assert_int_equal(heft_ix_find(&f.x, heft_test_str("")), HEFT_NONE);
    end(&f);
}

static void refuses_a_duplicate_name(void **state)
{
    fixture f;
    char name[32];
    (void)state;
    begin(&f, NULL);
    for (int i = 0; i < 1000; i++) {
        snprintf(name, sizeof name, "t%d", i == 999 ? 500 : i);
        add(&f, name, HEFT_F32, 1);
    }
    heft_assert_fails(heft_ix_build_name_table(&f.x), HEFT_E_FORMAT, &f.err,
                      "tensor 't500' occurs twice");
    assert_int_equal(heft_ix_find(&f.x, heft_test_str("t1")), HEFT_NONE);
    end(&f);
}

static void finds_empty_names_and_names_with_nul(void **state)
{
    static const heft_str names[] = { { "", 0 },     { "\0", 1 }, { "\0\0", 2 },
                                      { "a\0b", 3 }, { "a", 1 },  { "a\0", 2 } };
    fixture f;
    uint64_t *dims;
    uint32_t id;
    (void)state;
    begin(&f, NULL);
    for (size_t i = 0; i < HEFT_COUNT(names); i++)
        heft_assert_ok(heft_ix_tensor(&f.x, names[i], HEFT_F32, 0, &dims, &id), &f.err);
    heft_assert_ok(heft_ix_build_name_table(&f.x), &f.err);
    for (size_t i = 0; i < HEFT_COUNT(names); i++)
        assert_int_equal(heft_ix_find(&f.x, names[i]), i);
    end(&f);
}

/* ---- roles and parts ------------------------------------------------------------------------ */

static void stores_each_role_once(void **state)
{
    enum { ROLES = 3000 };
    fixture f;
    char role[16];
    (void)state;
    begin(&f, NULL);
    uint32_t id = add(&f, "t", HEFT_F32, 1);
    for (int i = 0; i < 2 * ROLES; i++) {
        snprintf(role, sizeof role, "role%d", i % ROLES);
        heft_str copy = heft_ix_copy(&f.x, heft_test_str(role));
        heft_range where = { (uint64_t)i, 1 };
        heft_assert_ok(heft_ix_part(&f.x, id, copy, HEFT_U8, where, 1, HEFT_RAW), &f.err);
    }
    assert_int_equal(f.x.roles.len, ROLES);
    assert_int_equal(heft_ix_row(&f.x, id)->part_count, 2 * ROLES);
    for (uint32_t i = 0; i < ROLES; i++) {
        snprintf(role, sizeof role, "role%u", i);
        assert_int_equal(heft_ix_part_find(&f.x, id, heft_test_str(role)), i);
    }
    assert_int_equal(heft_ix_part_find(&f.x, id, heft_test_str("data")), HEFT_NONE);
    end(&f);
}

static void numbers_file_parts_after_tensor_parts(void **state)
{
    fixture f;
    heft_range where = { 5, 6 };
    (void)state;
    begin(&f, NULL);
    heft_assert_ok(
        heft_ix_part(&f.x, HEFT_NONE, heft_test_str("config"), HEFT_UNTYPED, where, 6, HEFT_RAW),
        &f.err);
    add_dense(&f, "a", 100, 10);
    add_dense(&f, "b", 50, 10);
    assert_int_equal(heft_ix_part_find(&f.x, HEFT_NONE, heft_test_str("config")), 2);
    assert_int_equal(heft_ix_part_row_at(&f.x, 2)->offset, 5);
    assert_int_equal(heft_ix_owner(&f.x, 1), 1);
    assert_int_equal(heft_ix_owner(&f.x, 2), HEFT_NONE);
    end(&f);
}

static void orders_parts_by_offset_without_empty_parts(void **state)
{
    static const uint64_t offsets[] = { 500, 20, 300, 20, 9000, 0 };
    static const uint64_t lengths[] = { 10, 7, 0, 3, 1, 4 };
    static const uint32_t expected[] = { 5, 3, 1, 0, 4 };
    fixture f;
    char name[8];
    uint32_t *order, count;
    (void)state;
    begin(&f, NULL);
    for (size_t i = 0; i < HEFT_COUNT(offsets); i++) {
        snprintf(name, sizeof name, "%zu", i);
        add_dense(&f, name, offsets[i], lengths[i]);
    }
    heft_assert_ok(heft_ix_order(&f.x, &order, &count), &f.err);
    assert_int_equal(count, HEFT_COUNT(expected));
    assert_memory_equal(order, expected, sizeof expected);
    heft_ix_order_free(&f.x, order);
    end(&f);
}

/* ---- attributes and compaction -------------------------------------------------------------- */

static heft_value number(const char *key, uint64_t u)
{
    heft_value v = { .kind = HEFT_KIND_UINT, .key = heft_test_str(key) };
    v.as.u = u;
    return v;
}

/* Add tensor i with i % 3 attributes of value 100 i + k, and a base id if i is even. */
static void add_with_attributes(fixture *f, uint32_t i)
{
    char name[8];
    uint8_t base_id[16];
    snprintf(name, sizeof name, "t%u", i);
    uint32_t id = add_dense(f, name, i, 1);
    for (uint32_t k = 0; k < i % 3; k++)
        heft_assert_ok(heft_ix_attr(&f->x, id, number("n", 100 * i + k)), &f->err);
    memset(base_id, (int)i + 1, sizeof base_id);
    if (i % 2 == 0)
        heft_assert_ok(heft_ix_base_id(&f->x, id, base_id), &f->err);
}

static void assert_attributes(const fixture *f, uint32_t id, uint32_t i)
{
    heft_value v;
    uint32_t at = 0;
    if (i % 2 == 0) {
        assert_true(heft_ix_attribute(&v, &f->x, id, at++));
        assert_int_equal(v.kind, HEFT_KIND_ID128);
        assert_int_equal(v.as.s.ptr[15], i + 1);
    }
    for (uint32_t k = 0; k < i % 3; k++) {
        assert_true(heft_ix_attribute(&v, &f->x, id, at++));
        assert_int_equal(v.as.u, 100 * i + k);
    }
    assert_false(heft_ix_attribute(&v, &f->x, id, at));
    assert_false(heft_ix_attribute(&v, &f->x, id, at + 1));
}

static void stores_attributes_for_each_tensor(void **state)
{
    fixture f;
    (void)state;
    begin(&f, NULL);
    for (uint32_t i = 0; i < 50; i++)
        add_with_attributes(&f, i);
    for (uint32_t i = 0; i < 50; i++)
        assert_attributes(&f, i, i);
    end(&f);
}

static void compaction_keeps_the_remaining_tensors_intact(void **state)
{
    for (uint32_t modulus = 1; modulus < 8; modulus++) {
        fixture f;
        uint32_t kept = 0;
        char name[8];
        (void)state;
        begin(&f, NULL);
        for (uint32_t i = 0; i < 50; i++)
            add_with_attributes(&f, i);
        for (uint32_t i = 0; i < 50; i += modulus)
            heft_ix_row(&f.x, i)->flags |= HEFT_T_DROPPED;
        heft_ix_compact(&f.x);
        /* the name table is not built yet */
        assert_int_equal(heft_ix_find(&f.x, heft_test_str("t1")), HEFT_NONE);
        heft_assert_ok(heft_ix_build_name_table(&f.x), &f.err);
        for (uint32_t i = 0; i < 50; i++) {
            snprintf(name, sizeof name, "t%u", i);
            uint32_t id = heft_ix_find(&f.x, heft_test_str(name));
            assert_int_equal(id, i % modulus ? kept++ : HEFT_NONE);
            if (id == HEFT_NONE)
                continue;
            assert_attributes(&f, id, i);
            assert_int_equal(heft_ix_row(&f.x, id)->first_part, i); /* parts keep their ids */
        }
        assert_int_equal(heft_ix_tensors(&f.x), kept);
        end(&f);
    }
}

static void reshape_replaces_the_shape(void **state)
{
    const uint64_t dims[] = { 2, 3, 4 };
    fixture f;
    (void)state;
    begin(&f, NULL);
    uint32_t a = add(&f, "a", HEFT_F32, 24), b = add(&f, "b", HEFT_F32, 9);
    heft_assert_ok(heft_ix_reshape(&f.x, a, dims, 3), &f.err);
    assert_int_equal(heft_ix_row(&f.x, a)->rank, 3);
    assert_memory_equal(heft_ix_dims(&f.x, a), dims, sizeof dims);
    assert_int_equal(heft_ix_dims(&f.x, b)[0], 9);
    heft_assert_ok(heft_ix_reshape(&f.x, b, NULL, 0), &f.err);
    assert_int_equal(heft_ix_row(&f.x, b)->rank, 0);
    end(&f);
}

/* ---- metadata ------------------------------------------------------------------------------- */

static void put(fixture *f, heft_kind kind, const char *key)
{
    heft_value v = { .kind = kind, .key = heft_test_str(key) };
    heft_assert_ok(heft_ix_meta(&f->x, v), &f->err);
}

static void containers_count_and_skip_their_children(void **state)
{
    fixture f;
    (void)state;
    begin(&f, NULL);
    put(&f, HEFT_KIND_MAP, "m");     /* 0 */
    put(&f, HEFT_KIND_NULL, "a");    /* 1 */
    put(&f, HEFT_KIND_LIST, "l");    /* 2 */
    put(&f, HEFT_KIND_MAP, "");      /* 3 */
    heft_ix_meta_end(&f.x);          /* end of the empty map */
    put(&f, HEFT_KIND_NULL, "");     /* 4 */
    heft_ix_meta_end(&f.x);          /* l */
    put(&f, HEFT_KIND_NULL, "z");    /* 5 */
    heft_ix_meta_end(&f.x);          /* m */
    put(&f, HEFT_KIND_NULL, "next"); /* 6 */
    assert_int_equal(heft_ix_value(&f.x, 0)->as.container.count, 3);
    assert_int_equal(heft_ix_value(&f.x, 2)->as.container.count, 2);
    assert_int_equal(heft_ix_value(&f.x, 3)->as.container.count, 0);
    assert_int_equal(heft_ix_value_next(&f.x, 0), 6);
    assert_int_equal(heft_ix_value_next(&f.x, 1), 2);
    assert_int_equal(heft_ix_value_next(&f.x, 2), 5);
    assert_int_equal(heft_ix_value_next(&f.x, 3), 4);
    assert_int_equal(heft_ix_value_next(&f.x, 6), 7);
    end(&f);
}

static void refuses_metadata_nested_beyond_the_limit(void **state)
{
    heft_limits limits = { .size = sizeof limits, .depth = 5 };
    fixture f;
    heft_value list = { .kind = HEFT_KIND_LIST, .key = { "deep", 4 } };
    (void)state;
    begin(&f, &limits);
    for (int i = 0; i < 5; i++) {
        heft_assert_ok(heft_ix_meta(&f.x, list), &f.err);
        list.key.len = 0; /* elements of lists have no keys */
    }
    heft_assert_fails(heft_ix_meta(&f.x, list), HEFT_E_LIMIT, &f.err,
                      "metadata 'deep' is nested deeper than 5");
    put(&f, HEFT_KIND_NULL, "");
    end(&f);
}

static void limits_have_defaults_and_the_depth_a_maximum(void **state)
{
    heft_limits huge = { .size = sizeof huge,
                         .index_bytes = UINT64_MAX,
                         .memory = UINT64_MAX,
                         .tensors = UINT32_MAX,
                         .depth = UINT32_MAX };
    fixture f;
    (void)state;
    begin(&f, NULL);
    assert_int_equal(f.x.limits.depth, 128);
    assert_int_equal(f.x.limits.tensors, 16 << 20);
    assert_true(f.x.limits.memory == (uint64_t)4 << 30);
    assert_true(f.x.limits.index_bytes == (uint64_t)4 << 30);
    end(&f);
    begin(&f, &huge);
    assert_int_equal(f.x.limits.depth, HEFT_MAX_DEPTH);
    end(&f);
}

/* ---- layouts, parameter ids ----------------------------------------------------------------- */

static void assert_layout(const fixture *f, uint32_t id, const char *name, unsigned layout)
{
    heft_str got = heft_ix_layout(&f->x, id);
    assert_int_equal(got.len, strlen(name));
    assert_memory_equal(got.ptr, name, got.len);
    assert_int_equal(heft_ix_row(&f->x, id)->layout, layout);
}

static void sets_layouts_by_name(void **state)
{
    static const char *const names[] = { "dense", "sparse_csr", "sparse_coo", "burn.qfloat",
                                         "zt.mx/1" };
    fixture f;
    (void)state;
    begin(&f, NULL);
    for (uint32_t i = 0; i < 20; i++) {
        char name[8];
        snprintf(name, sizeof name, "t%u", i);
        uint32_t id = add_dense(&f, name, i, 1);
        assert_layout(&f, id, "dense", HEFT_DENSE);
        heft_assert_ok(heft_ix_attr(&f.x, id, number("n", i)), &f.err);
        heft_assert_ok(heft_ix_set_layout(&f.x, id, heft_test_str(names[i % 5])), &f.err);
    }
    for (uint32_t i = 0; i < 20; i++) {
        heft_value v;
        assert_layout(&f, i, names[i % 5], i % 5);
        assert_true(heft_ix_attribute(&v, &f.x, i, 0)); /* a layout is not an attribute */
        assert_int_equal(v.as.u, i);
        assert_false(heft_ix_attribute(&v, &f.x, i, 1));
    }
    end(&f);
}

static void refuses_more_than_253_unknown_layouts(void **state)
{
    static char names[300][4];
    fixture f;
    (void)state;
    begin(&f, NULL);
    uint32_t id = add_dense(&f, "t", 0, 1);
    for (uint32_t i = 0; i < 300; i++) {
        snprintf(names[i], sizeof names[i], "%u", i);
        heft_status st = heft_ix_set_layout(&f.x, id, heft_test_str(names[i]));
        heft_assert_status(st, i < 253 ? HEFT_OK : HEFT_E_LIMIT, &f.err);
        if (!st)
            assert_layout(&f, id, names[i], HEFT_LAYOUT_OTHER + i);
    }
    end(&f);
}

static void lists_parameter_ids_as_attributes(void **state)
{
    fixture f;
    (void)state;
    begin(&f, NULL);
    for (uint32_t i = 0; i < 30; i++)
        add_with_attributes(&f, i);
    for (uint32_t i = 1; i < 30; i += 2) /* the tensors without a base id */
        heft_assert_ok(heft_ix_param_id(&f.x, i, UINT64_MAX - i), &f.err);
    for (uint32_t i = 1; i < 30; i += 2) {
        heft_value v;
        assert_true(heft_ix_attribute(&v, &f.x, i, 0));
        assert_int_equal(v.kind, HEFT_KIND_UINT);
        assert_true(v.as.u == UINT64_MAX - i);
        assert_memory_equal(v.key.ptr, "burn.param_id", v.key.len);
    }
    for (uint32_t i = 0; i < 30; i += 2)
        assert_attributes(&f, i, i);
    end(&f);
}

/* ---- sorting -------------------------------------------------------------------------------- */

/* Offsets in steps of ten bytes; in groups of five, the fifth equals the fourth. */
static uint64_t offset_of(uint64_t position)
{
    return 10 * (position - position % 5 / 4);
}

/* Add n tensors; tensor i has position 7 i mod n. Every fifth position is empty. */
static void fill_out_of_order(fixture *f, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        char name[12];
        snprintf(name, sizeof name, "t%u", i);
        uint32_t position = i * 7 % n;
        uint32_t id = add_dense(f, name, offset_of(position), position % 5 == 4 ? 0 : 3);
        heft_assert_ok(heft_ix_attr(&f->x, id, number("place", position)), &f->err);
        if (i % 3 == 0)
            heft_assert_ok(heft_ix_param_id(&f->x, id, position), &f->err);
        if (i % 4 == 0)
            heft_ix_note(&f->x, HEFT_NOTE, "test/note", position, id, "");
    }
}

static void assert_sorted(const fixture *f, uint32_t i)
{
    const heft_ix_part_row *part = heft_ix_part_row_at(&f->x, i), *preceding = i ? part - 1 : part;
    bool has_id = heft_ix_row(&f->x, i)->flags & HEFT_T_PARAM_ID;
    heft_value v, id;
    assert_int_equal(heft_ix_row(&f->x, i)->first_part, i);
    assert_true(preceding->offset <= part->offset);
    assert_true(!i || preceding->offset < part->offset || !preceding->stored);
    assert_int_equal(heft_ix_find(&f->x, heft_ix_name(&f->x, i)), i);
    assert_int_equal(*heft_ix_dims(&f->x, i), part->length);
    assert_true(heft_ix_attribute(&v, &f->x, i, has_id));
    assert_int_equal(part->offset, offset_of(v.as.u));
    assert_true(!has_id || (heft_ix_attribute(&id, &f->x, i, 0) && id.as.u == v.as.u));
}

static void sorting_keeps_the_data_of_each_tensor(void **state)
{
    fixture f;
    (void)state;
    begin(&f, NULL);
    fill_out_of_order(&f, 100);
    heft_assert_ok(heft_ix_sort(&f.x), &f.err);
    heft_assert_ok(heft_ix_build_name_table(&f.x), &f.err);
    assert_int_equal(heft_ix_tensors(&f.x), 100);
    for (uint32_t i = 0; i < 100; i++)
        assert_sorted(&f, i);
    const heft_note *notes = f.x.notes.ptr;
    assert_int_equal(f.x.notes.len, 25);
    for (uint32_t i = 0; i < f.x.notes.len; i++)
        assert_int_equal(heft_ix_part_row_at(&f.x, notes[i].tensor)->offset,
                         offset_of(notes[i].where.offset));
    end(&f);
}

/* Offset and tensor number do not fit into one 64-bit sort key. */
static void sorts_offsets_beyond_2_to_the_60(void **state)
{
    static const uint64_t far = UINT64_C(1) << 61;
    fixture f;
    (void)state;
    begin(&f, NULL);
    f.x.file_bytes = UINT64_MAX;
    for (uint32_t i = 0; i < 40; i++) {
        char name[12];
        snprintf(name, sizeof name, "t%u", i);
        add_dense(&f, name, i * 7 % 40 * (far / 16) + i % 2, 3);
    }
    heft_assert_ok(heft_ix_sort(&f.x), &f.err);
    heft_assert_ok(heft_ix_build_name_table(&f.x), &f.err);
    for (uint32_t i = 0; i < 40; i++) {
        char name[12];
        snprintf(name, sizeof name, "t%u", i * 23 % 40); /* 7 times 23 is 1 mod 40 */
        assert_int_equal(heft_ix_part_row_at(&f.x, i)->offset, i * (far / 16) + i * 23 % 40 % 2);
        assert_int_equal(heft_ix_find(&f.x, heft_lit(name)), i);
    }
    end(&f);
}

static void sorting_reports_a_failed_allocation(void **state)
{
    fixture f;
    (void)state;
    begin(&f, NULL);
    fill_out_of_order(&f, 30);
    heft_test_memory_rewind(&f.m);
    f.m.fail_at = 1;
    heft_assert_fails(heft_ix_sort(&f.x), HEFT_E_NOMEM, &f.err, "no memory to sort 30 tensors");
    end(&f);
}

/* ---- duplicate keys ------------------------------------------------------------------------- */

/* Write the keys of all values in order; a map's count and members follow its key as n[members]. */
static void print_keys(char *out, const heft_index *x)
{
    uint32_t ends[8] = { UINT32_MAX }, depth = 0;
    *out = '\0';
    for (uint32_t i = 0; i <= x->values.len; i++) {
        for (; depth && ends[depth] == i; depth--)
            strcat(out, "]");
        if (i == x->values.len)
            break;
        const heft_value *v = heft_ix_value(x, i);
        strncat(out, v->key.ptr, v->key.len);
        if (v->kind != HEFT_KIND_MAP)
            continue;
        sprintf(out + strlen(out), "%u[", v->as.container.count);
        ends[++depth] = v->as.container.end;
    }
}

/* Add values with keys of one letter; braces enclose the members of a map. */
static void put_values(fixture *f, const char *script)
{
    for (const char *p = script; *p; p++) {
        heft_value v = { .kind = p[1] == '{' ? HEFT_KIND_MAP : HEFT_KIND_INT, .key = { p, 1 } };
        if (*p == '}')
            heft_ix_meta_end(&f->x);
        else if (*p != '{')
            heft_assert_ok(heft_ix_meta(&f->x, v), &f->err);
    }
}

static void keeps_the_last_of_equal_keys(void **state)
{
    static const struct {
        uint32_t parent, dropped;
        const char *keys;
    } steps[] = {
        { HEFT_NONE, 0, "abm5[xyxn2[pp]x]acm1[x]dbn1[a]" }, /* before any removal */
        { 2, 2, "abm3[yn2[pp]x]acm1[x]dbn1[a]" },
        { 4, 1, "abm3[yn1[p]x]acm1[x]dbn1[a]" },
        { HEFT_NONE, 3, "acm1[x]dbn1[a]" },
        { HEFT_NONE, 0, "acm1[x]dbn1[a]" },
    };
    fixture f;
    (void)state;
    begin(&f, NULL);
    put_values(&f, "abm{xyxn{pp}x}acm{x}dbn{a}");
    for (size_t i = 0; i < HEFT_COUNT(steps); i++) {
        char keys[100];
        uint32_t dropped = 0;
        if (i)
            heft_assert_ok(heft_ix_meta_keep_last(&f.x, steps[i].parent, &dropped), &f.err);
        print_keys(keys, &f.x);
        assert_string_equal(keys, steps[i].keys);
        assert_int_equal(dropped, steps[i].dropped);
    }
    end(&f);
}

/* ---- reset ---------------------------------------------------------------------------------- */

static void fills_again_after_a_reset(void **state)
{
    fixture f;
    (void)state;
    begin(&f, NULL);
    for (int round = 0; round < 3; round++) {
        for (uint32_t i = 0; i < 50; i++)
            add_with_attributes(&f, i);
        put(&f, HEFT_KIND_MAP, "left open");
        heft_assert_ok(heft_ix_build_name_table(&f.x), &f.err);
        for (uint32_t i = 0; i < 50; i++)
            assert_attributes(&f, i, i);
        heft_ix_reset(&f.x);
        assert_int_equal(heft_ix_tensors(&f.x), 0);
        assert_int_equal(f.x.open.len, 0);
    }
    end(&f);
}

static void arrays_differ_in_element_type_and_content(void **state)
{
    uint8_t same[3] = { 1, 2, 3 }, other[3] = { 1, 2, 4 };
    heft_value a = { .kind = HEFT_KIND_ARRAY, .key = { "k", 1 } };
    (void)state;
    a.as.array.ptr = same;
    a.as.array.count = 3;
    a.as.array.dtype = HEFT_U8;
    heft_value b = a;
    assert_true(heft_value_same(&a, &b));
    b.as.array.dtype = HEFT_I8;
    assert_false(heft_value_same(&a, &b));
    b = a;
    b.as.array.ptr = other;
    assert_false(heft_value_same(&a, &b));
    b = a;
    b.as.array.count = 2;
    assert_false(heft_value_same(&a, &b));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refuses_counts_beyond_the_bytes_left_or_the_limit),
        cmocka_unit_test(refuses_tensors_beyond_the_memory_limit),
        cmocka_unit_test(refuses_tensors_and_dimensions_beyond_the_limit),
        cmocka_unit_test(refuses_dense_tensors_that_do_not_fit),
        cmocka_unit_test(finds_every_name_and_no_unknown_name),
        cmocka_unit_test(refuses_a_duplicate_name),
        cmocka_unit_test(finds_empty_names_and_names_with_nul),
        cmocka_unit_test(stores_each_role_once),
        cmocka_unit_test(numbers_file_parts_after_tensor_parts),
        cmocka_unit_test(orders_parts_by_offset_without_empty_parts),
        cmocka_unit_test(stores_attributes_for_each_tensor),
        cmocka_unit_test(compaction_keeps_the_remaining_tensors_intact),
        cmocka_unit_test(reshape_replaces_the_shape),
        cmocka_unit_test(containers_count_and_skip_their_children),
        cmocka_unit_test(refuses_metadata_nested_beyond_the_limit),
        cmocka_unit_test(limits_have_defaults_and_the_depth_a_maximum),
        cmocka_unit_test(sets_layouts_by_name),
        cmocka_unit_test(refuses_more_than_253_unknown_layouts),
        cmocka_unit_test(lists_parameter_ids_as_attributes),
        cmocka_unit_test(sorting_keeps_the_data_of_each_tensor),
        cmocka_unit_test(sorts_offsets_beyond_2_to_the_60),
        cmocka_unit_test(sorting_reports_a_failed_allocation),
        cmocka_unit_test(keeps_the_last_of_equal_keys),
        cmocka_unit_test(fills_again_after_a_reset),
        cmocka_unit_test(arrays_differ_in_element_type_and_content),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
