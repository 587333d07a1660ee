/* test_slices.c - very many tensors, whose records several workers read at once: the same index, and the same
 * refusals, as when one reads them in order. */
#include "dump.h"
#include "models.h"

#include "model/slices.h"

enum { TENSORS = 110003, DAMAGES = 40, FAR = 16 };

static const char *const formats[] = { "mag", "gptrs-archive", "gptrs-checkpoint" };

/* Ranks and lengths of names differ, and more in the last quarter. */
static heft_bytes make(const char *format)
{
    test_tensor *t = calloc(TENSORS, sizeof *t);
    char(*names)[40] = calloc(TENSORS, sizeof *names);
    assert_non_null(t);
    assert_non_null(names);
    for (uint32_t i = 0; i < TENSORS; i++) {
        uint32_t rank = 1 + i % 2 + (i > TENSORS * 3 / 4 ? i % 3 : 0);
        snprintf(names[i], sizeof names[i], "%u%s", i * 7919 % TENSORS,
                 i % 5   ? ".weight"
                 : i % 3 ? ""
                         : ".\xC3\xA9l\xC3\xA9ment");
        if (i % 5 == 0 && i % 3 == 0 && !strcmp(format, "gptrs-checkpoint"))
            strcpy(names[i] + strlen(names[i]) - strlen("\xC3\xA9l\xC3\xA9ment"), "element");
        t[i] = (test_tensor){ names[i], HEFT_F32, rank, { 1, 1, 1, 1 } };
    }
    heft_bytes b = heft_test_model(format, t, TENSORS);
    free(names);
    free(t);
    return b;
}

static heft_status open_with(heft_file **f, heft_bytes b, const heft_executor *x, heft_error *err)
{
    heft_host host = *heft_host_default();
    heft_open_options opt = HEFT_OPEN_OPTIONS_INIT;
    heft_source *s;
    static heft_host kept[2];
    host.executor = x;
    kept[!!x] = host;
    opt.host = &kept[!!x];
    heft_assert_ok(heft_source_memory(&s, b.p, b.len, err), err);
    return heft_open_source(f, s, &opt, err);
}

static void expect_same_part(const heft_file *f, const heft_file *g, uint32_t part)
{
    heft_part p = heft_part_at(f, part), q = heft_part_at(g, part);
    assert_true(p.offset == q.offset && p.stored == q.stored && p.length == q.length);
    assert_true(p.dtype == q.dtype && p.encoding == q.encoding && p.role.len == q.role.len);
}

static void expect_same_tensors(const heft_file *f, const heft_file *g)
{
    assert_int_equal(heft_tensor_count(f), heft_tensor_count(g));
    for (uint32_t i = 0; i < heft_tensor_count(f); i++) {
        heft_tensor t = heft_tensor_at(f, i), u = heft_tensor_at(g, i);
        assert_true(t.name.ptr == u.name.ptr && t.name.len == u.name.len);
        assert_true(t.rank == u.rank && t.dtype == u.dtype && t.part_count == u.part_count);
        assert_true(t.first_part == u.first_part);
        assert_memory_equal(t.dims, u.dims, t.rank * sizeof *t.dims);
        expect_same_part(f, g, t.first_part);
        assert_int_equal(heft_find(f, t.name.ptr, t.name.len), i);
        assert_int_equal(heft_find(g, t.name.ptr, t.name.len), i);
    }
}

/* Opened both ways; text is what both must say, or NULL when the file is whole. */
static void expect_same(heft_bytes b, const char *text)
{
    heft_executor threads = heft_executor_threads(3);
    heft_file *f, *g;
    heft_error err = { .message = "" }, other = { .message = "" };
    heft_status st = open_with(&f, b, &threads, &err), one = open_with(&g, b, NULL, &other);
    heft_assert_status(st, one, &other);
    assert_string_equal(err.message, other.message);
    assert_int_equal(err.offset, other.offset);
    if (text)
        heft_assert_fails(st, HEFT_E_FORMAT, &err, text);
    if (!st) {
        expect_same_tensors(f, g);
        heft_verify_result a, c;
        heft_status sa, sc;
        char *found = heft_test_findings(&a, &sa, f, &err);
        char *also = heft_test_findings(&c, &sc, g, &other);
        assert_string_equal(found, also);
        free(found);
        free(also);
    }
    heft_close(f);
    heft_close(g);
}

static void all_workers_together_see_what_one_sees(void **state)
{
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(formats); i++) {
        heft_bytes b = make(formats[i]);
        expect_same(b, NULL);
        heft_test_free(&b);
    }
}

static const uint8_t *name_in(heft_bytes b, uint32_t tensor, size_t *len)
{
    heft_file *f;
    heft_error err;
    heft_assert_ok(open_with(&f, b, NULL, &err), &err);
    heft_str name = heft_tensor_at(f, tensor).name;
    heft_close(f);
    *len = name.len;
    return (const uint8_t *)name.ptr;
}

static void damage_is_met_in_the_same_place(void **state)
{
    uint32_t at = 1;
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(formats); i++) {
        heft_bytes b = make(formats[i]);
        size_t len;
        const uint8_t *last = name_in(b, TENSORS - 1, &len);
        size_t records = (size_t)(last - (const uint8_t *)b.p) + len;
        for (int k = 0; k < DAMAGES; k++) {
            at = at * 1664525 + 1013904223;
            uint8_t *p = (uint8_t *)b.p + 24 + (size_t)at % (records - 24), was = *p;
            *p ^= (uint8_t)(1 << k % 8);
            expect_same(b, NULL);
            *p = was;
        }
        heft_test_free(&b);
    }
}

/* Twins as far apart as they can be, and on both sides of a border. */
static void twins_are_found_wherever_they_stand(void **state)
{
    static const uint32_t pairs[][2] = { { 1, TENSORS - 1 },
                                         { TENSORS / 4 - 1, TENSORS / 4 },
                                         { TENSORS / 2 - 2, TENSORS / 2 + 3 },
                                         { 2, 7 } };
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(pairs); i++) {
        heft_bytes b = make("mag");
        uint32_t first = pairs[i][0], second = pairs[i][1];
        size_t len, other_len;
        const uint8_t *name = name_in(b, first, &len), *other = name_in(b, second, &other_len);
        while (other_len != len)
            other = name_in(b, --second, &other_len);
        if (second != first) {
            memcpy((uint8_t *)b.p + (other - (const uint8_t *)b.p), name, len);
            expect_same(b, "occurs twice");
        }
        heft_test_free(&b);
    }
}

/* ---- files that change while they are read -------------------------------------------------- */

/* Records of one byte, the rank: what stands in the file is for read() to say. */
typedef struct fake {
    uint32_t extra; /* dimensions that read() finds beyond what skip() saw, in each 1000th record */
    uint32_t longer;
} fake;

static void skip_fake(const void *ctx, heft_cur *c, uint32_t *rank)
{
    (void)ctx;
    heft_cur_take(c, 1);
    *rank = 1;
}

static heft_status read_fake(void *ctx, heft_cur *c, heft_index *x, uint32_t count, uint32_t slice)
{
    static const uint8_t shape[FAR] = { 1, 0, 0, 0, 0, 0, 0, 0, 1 };
    const fake *f = ctx;
    heft_status st = HEFT_OK;
    (void)slice;
    for (uint32_t i = 0; i < count && !st; i++) {
        bool odd = i % 1000 == 999;
        heft_ix_record r = { .name = { (const char *)heft_cur_take(c, 1), 1 },
                             .shape = shape,
                             .length = HEFT_NOWHERE,
                             .rank = 1 + (odd ? f->extra : 0),
                             .dtype = HEFT_U8 };
        st = heft_ix_add(x, &r);
        if (odd && f->longer && i < 2000)
            heft_cur_take(c, f->longer);
    }
    return st;
}

static bool read_fakes(fake f)
{
    heft_executor threads = heft_executor_threads(4);
    heft_test_memory m;
    heft_index x;
    heft_error err;
    uint8_t *bytes = calloc(TENSORS + 64, 1);
    heft_in in = { .size = TENSORS + 64, .err = &err };
    heft_cur c = { bytes, bytes + TENSORS + 64, bytes, 0, TENSORS + 64, &in, "records", HEFT_OK };
    heft_ix_slicing how = { .skip = skip_fake, .read = read_fake, .ctx = &f };
    heft_test_memory_init(&m, 0);
    heft_ix_init(&x, &m.al, NULL);
    x.err = &err;
    x.run = threads.run;
    x.run_ctx = threads.ctx;
    heft_assert_ok(heft_ix_reserve(&x, 0, TENSORS, TENSORS, 1), &err);
    bool done = heft_ix_slices(&x, &c, TENSORS, &how);
    assert_int_equal(x.tensors.len, done ? TENSORS : 0);
    assert_int_equal(x.dims.len, done ? TENSORS : 0);
    assert_ptr_equal(c.p, done ? bytes + TENSORS : bytes);
    heft_ix_free(&x);
    heft_assert_all_freed(&m);
    free(bytes);
    return done;
}

static void what_changes_while_it_is_read_is_read_again(void **state)
{
    (void)state;
    assert_true(read_fakes((fake){ 0, 0 }));
    assert_false(read_fakes((fake){ 1, 0 }));
    assert_false(read_fakes((fake){ 0, 3 }));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_workers_together_see_what_one_sees),
        cmocka_unit_test(damage_is_met_in_the_same_place),
        cmocka_unit_test(twins_are_found_wherever_they_stand),
        cmocka_unit_test(what_changes_while_it_is_read_is_read_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
