/* workers.c - opens a file with several worker threads and with one, and compares the results. */
#include "workers.h"

#include "dump.h"

#include "base/text.h"

static heft_status open_with(heft_file **f, heft_bytes b, const heft_executor *x, heft_error *err)
{
    heft_host host = *heft_host_default();
    heft_open_options opt = HEFT_OPEN_OPTIONS_INIT;
    heft_source *s;
    static heft_host hosts[2];
    host.executor = x;
    hosts[!!x] = host;
    opt.host = &hosts[!!x];
    heft_assert_ok(heft_source_open_memory(&s, b.p, b.len, err), err);
    return heft_file_open_source(f, s, &opt, err);
}

static void expect_same_part(const heft_file *f, const heft_file *g, uint32_t part)
{
    heft_part p = heft_part_at(f, part), q = heft_part_at(g, part);
    assert_true(p.offset == q.offset && p.stored == q.stored && p.length == q.length);
    assert_true(p.dtype == q.dtype && p.encoding == q.encoding && p.role.len == q.role.len);
    assert_true(heft_str_eq(p.digest, q.digest));
}

static void expect_same_tensors(const heft_file *f, const heft_file *g)
{
    assert_int_equal(heft_tensor_count(f), heft_tensor_count(g));
    for (uint32_t i = 0; i < heft_tensor_count(f); i++) {
        heft_tensor t = heft_tensor_at(f, i), u = heft_tensor_at(g, i);
        assert_true(heft_str_eq(t.name, u.name));
        assert_true(t.rank == u.rank && t.dtype == u.dtype && t.part_count == u.part_count);
        assert_true(t.first_part == u.first_part);
        assert_memory_equal(t.dims, u.dims, t.rank * sizeof *t.dims);
        expect_same_part(f, g, t.first_part);
        assert_int_equal(heft_tensor_find(f, t.name), i);
        assert_int_equal(heft_tensor_find(g, t.name), i);
    }
}

void heft_expect_same_by_workers(heft_bytes b, const char *text)
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
        char *findings = heft_test_findings(&a, &sa, f, &err);
        char *other_findings = heft_test_findings(&c, &sc, g, &other);
        assert_string_equal(findings, other_findings);
        free(findings);
        free(other_findings);
    }
    heft_file_close(f);
    heft_file_close(g);
}
