/* every_format.c - runs a check on every sample, as a cmocka test for each. Usage:
 * formats CHECK [PART OF A TITLE] */
#include "every_format.h"
#include "keep_heap.h"

heft_status open_sample(heft_file **out, const sample *s, const heft_host *host, heft_error *err)
{
    return heft_test_open(out, s->in.bytes, host, err);
}

/* ---- every open method gives the same model ------------------------------------------------- */

typedef struct outcome {
    heft_status st, payload;
    heft_error err;
    char *dump;
} outcome;

static outcome open_in(const heft_test_open_method *method, const sample *s, heft_test_memory *m)
{
    outcome o = { .dump = NULL };
    heft_file *f = NULL;
    heft_open_options opt = HEFT_OPEN_OPTIONS_INIT;
    opt.host = &m->host;
    o.st = method->open(&f, &s->in, &opt, &o.err);
    if (!o.st)
        o.dump = heft_test_dump(f, DUMP_ALL);
    else
        assert_null(f);
    if (!o.st && method->reads_payload)
        o.payload = heft_test_read_all(f, &o.err);
    heft_file_close(f);
    return o;
}

static void compare_outcomes(const heft_test_open_method *method, const outcome *a,
                             const outcome *b)
{
    if (a->st != b->st || !a->dump != !b->dump)
        fail_msg("%s: %s (%s), from memory: %s (%s)", method->name, heft_status_name(b->st),
                 b->st ? b->err.message : "", heft_status_name(a->st), a->st ? a->err.message : "");
    if (a->dump) {
        heft_assert_same_text(a->dump, b->dump);
        if (method->reads_payload)
            assert_int_equal(a->payload, b->payload);
        return;
    }
    assert_string_equal(a->err.message, b->err.message);
    assert_int_equal(a->err.offset, b->err.offset);
}

static void check_open_methods(const sample *s)
{
    outcome first = { .dump = NULL };
    for (size_t i = 0; i < heft_test_open_method_count; i++) {
        heft_test_memory m;
        heft_test_memory_init(&m, 0);
        outcome o = open_in(&heft_test_open_methods[i], s, &m);
        heft_assert_all_freed(&m);
        if (i)
            compare_outcomes(&heft_test_open_methods[i], &first, &o);
        else
            first = o;
        if (i)
            free(o.dump);
    }
    free(first.dump);
}

/* ---- facts in FILE.json --------------------------------------------------------------------- */

static const heft_digest *find_digest(const char *name)
{
    const heft_digest *const *d = heft_host_default()->digests;
    while (*d && strcmp((*d)->name, name) != 0)
        d++;
    return *d;
}

static void assert_sha256(const heft_file *f, uint32_t part, heft_str expected)
{
    const heft_digest *d = find_digest("sha256");
    static uint8_t buf[1 << 20];
    heft_error err;
    uint64_t state[32];
    uint8_t sum[32];
    char hex[65];
    if (!d) /* this build has no SHA-256 */
        return;
    assert_in_range(d->state_bytes, 1, sizeof state);
    heft_part p = heft_part_at(f, part);
    assert_true(d->init(state));
    for (uint64_t at = 0; at < p.length; at += sizeof buf) {
        size_t n = p.length - at < sizeof buf ? (size_t)(p.length - at) : sizeof buf;
        heft_assert_ok(heft_part_read(buf, f, part, at, n, &err), &err);
        d->update(state, buf, n);
    }
    d->final(sum, state);
    for (int i = 0; i < 32; i++)
        snprintf(hex + 2 * i, 3, "%02x", sum[i]);
    assert_true(heft_test_fact_is(expected, hex));
}

static void compare_shape(const sample *s, unsigned k, const heft_tensor *t)
{
    char number[24];
    for (uint32_t i = 0; i < t->rank; i++) {
        snprintf(number, sizeof number, "%llu", (unsigned long long)t->dims[i]);
        assert_true(heft_test_fact_is(heft_test_fact(s, "tensors.%u.shape.%u", k, i), number));
    }
    assert_null(heft_test_fact(s, "tensors.%u.shape.%u", k, t->rank).ptr);
}

static void compare_layout(const sample *s, unsigned k, const heft_file *f, uint32_t id)
{
    heft_str dtype = heft_test_fact(s, "tensors.%u.dtype", k), own = heft_tensor_layout_name(f, id);
    heft_str layout = heft_test_fact(s, "tensors.%u.layout", k);
    if (!layout.ptr)
        layout = heft_test_str("dense");
    assert_int_equal(own.len, layout.len);
    assert_memory_equal(own.ptr, layout.ptr, own.len);
    if (heft_test_fact_is(layout, "dense"))
        assert_int_equal(heft_tensor_at(f, id).dtype, heft_dtype_find(dtype));
}

static void compare_parts(const sample *s, unsigned k, const heft_file *f, const heft_tensor *t)
{
    for (uint32_t i = 0; i < t->part_count; i++) {
        heft_part p = heft_part_at(f, t->first_part + i);
        int len = (int)p.role.len;
        heft_str sha256 = heft_test_fact(s, "tensors.%u.parts.%.*s.sha256", k, len, p.role.ptr);
        assert_non_null(sha256.ptr);
        assert_sha256(f, t->first_part + i, sha256);
    }
}

static void compare_tensor(const sample *s, unsigned k, const heft_file *f)
{
    heft_str name = heft_test_fact(s, "tensors.%u.name", k);
    heft_str nbytes = heft_test_fact(s, "tensors.%u.nbytes", k);
    heft_str sha256 = heft_test_fact(s, "tensors.%u.sha256", k);
    char number[24];
    uint32_t id = heft_tensor_find(f, name);
    assert_int_not_equal(id, HEFT_NONE);
    heft_tensor t = heft_tensor_at(f, id);
    compare_layout(s, k, f, id);
    compare_shape(s, k, &t);
    snprintf(number, sizeof number, "%llu", (unsigned long long)heft_tensor_bytes(f, id));
    assert_true(!nbytes.ptr || heft_test_fact_is(nbytes, number));
    if (sha256.ptr)
        assert_sha256(f, heft_part_find(f, id, HEFT_STR("data")), sha256);
    else
        compare_parts(s, k, f, &t);
}

/* Return the attribute as malloc'ed text, spelled as in FILE.json, or NULL if the tensor has
 * none. */
static char *attribute_text(const heft_file *f, uint32_t id, const char *key)
{
    char text[40];
    heft_value v;
    for (uint32_t i = 0, n = heft_attribute_count(f, id); i < n; i++) {
        v = heft_attribute_at(f, id, i);
        if (v.key.len != strlen(key) || memcmp(v.key.ptr, key, v.key.len) != 0)
            continue;
        if (v.kind == HEFT_KIND_STR)
            return strndup(v.as.s.ptr, v.as.s.len);
        if (v.kind == HEFT_KIND_BOOL)
            return strdup(v.as.b ? "true" : "false");
        if (v.kind == HEFT_KIND_UINT) {
            snprintf(text, sizeof text, "%llu", (unsigned long long)v.as.u);
            return strdup(text);
        }
        assert_int_equal(v.kind, HEFT_KIND_ID128);
        for (int k = 0; k < 16; k++) /* most significant first */
            snprintf(text + 2 * k, 3, "%02x", (uint8_t)v.as.s.ptr[15 - k]);
        return strdup(text);
    }
    return NULL;
}

static const struct {
    const char *key, *fact;
    const char *only; /* compare only this value; NULL: every value */
    bool always;      /* an attribute in FILE.json must exist in the file */
} attribute_facts[] = {
    { "gptrs.base_id", "base_param_id", NULL, false }, /* a file may leave the id zero */
    { "gptrs.requires_grad", "flag", "true", false },
    { "burn.param_id", "param_id", NULL, true },
    { "stored_dtype", "attributes.stored_dtype", NULL, true },
    { "burn.id", "attributes.burn.id", NULL, true },
};

static void compare_attributes(const sample *s, unsigned k, const heft_file *f)
{
    heft_str name = heft_test_fact(s, "tensors.%u.name", k);
    uint32_t id = heft_tensor_find(f, name);
    for (size_t i = 0; i < HEFT_COUNT(attribute_facts); i++) {
        heft_str fact = heft_test_fact(s, "tensors.%u.%s", k, attribute_facts[i].fact);
        char *has = attribute_text(f, id, attribute_facts[i].key);
        assert_true(has || !fact.ptr || !attribute_facts[i].always);
        if (has && fact.ptr && (!attribute_facts[i].only || !strcmp(has, attribute_facts[i].only)))
            assert_true(heft_test_fact_is(fact, has));
        free(has);
    }
}

static void compare_metadata(const sample *s, const heft_file *f)
{
    heft_str key;
    char bits[17], text[70000];
    unsigned n = 0;
    for (; (key = heft_test_fact(s, "metadata.%u.key", n)).ptr; n++) {
        heft_value v;
        snprintf(text, sizeof text, "%.*s", (int)key.len, key.ptr);
        assert_true(heft_meta_find(&v, f, heft_str_from(text)));
        heft_str number = heft_test_fact(s, "metadata.%u.bits", n);
        heft_str value = heft_test_fact(s, "metadata.%u.value", n);
        uint64_t value_bits = v.kind == HEFT_KIND_BOOL ? v.as.b : v.as.u;
        snprintf(bits, sizeof bits, "%016llx", (unsigned long long)value_bits);
        if (number.ptr)
            assert_true(heft_test_fact_is(number, bits));
        if (number.ptr || (v.kind == HEFT_KIND_MAP && !value.ptr))
            continue; /* check_samples.py compares nested values */
        assert_int_equal(v.kind, HEFT_KIND_STR);
        assert_int_equal(v.as.s.len, value.len);
        assert_memory_equal(v.as.s.ptr, value.ptr, value.len);
    }
    unsigned entries = 0;
    for (uint32_t i = 0; i < heft_meta_count(f); i = heft_meta_next(f, i))
        entries++;
    if (n)
        assert_int_equal(entries, n);
}

static void check_facts(const sample *s)
{
    heft_error err;
    heft_file *f;
    unsigned n = 0;
    if (s->kind != SAMPLE_GOOD)
        return;
    heft_assert_ok(open_sample(&f, s, NULL, &err), &err);
    heft_str format = heft_test_fact(s, "format");
    assert_memory_equal(heft_format_name(heft_file_format(f)), format.ptr, format.len);
    for (; heft_test_fact(s, "tensors.%u.name", n).ptr; n++) {
        compare_tensor(s, n, f);
        compare_attributes(s, n, f);
    }
    assert_int_equal(heft_tensor_count(f), n);
    compare_metadata(s, f);
    heft_file_close(f);
}

/* ---- verify --------------------------------------------------------------------------------- */

/* Return the verdict in the spelling of FILE.json. "refuse": well formed, but unsupported by this
 * build. */
static const char *verdict(heft_status opened, const heft_verify_result *r)
{
    if (opened == HEFT_E_UNSUPPORTED || opened == HEFT_E_LIMIT)
        return "refuse";
    return opened || r->faults ? "reject" : r->warnings ? "warn" : "accept";
}

/* Accept a refusal where "reject" is expected: a limit may stop parsing before the damage is
 * found. */
static bool is_expected(const sample *s, heft_status opened, const char *got)
{
    heft_str expect = heft_test_fact(s, "expect");
    return heft_test_fact_is(expect, got) || (opened && heft_test_fact_is(expect, "reject"));
}

static void verify_in(const heft_test_open_method *method, const sample *s, const char *findings,
                      uint64_t bytes_checked)
{
    heft_test_memory m;
    heft_verify_result result;
    heft_open_options opt = HEFT_OPEN_OPTIONS_INIT;
    heft_error err;
    heft_file *f;
    heft_status st;
    heft_test_memory_init(&m, 0);
    opt.host = &m.host;
    heft_assert_ok(method->open(&f, &s->in, &opt, &err), &err);
    char *found = heft_test_findings(&result, &st, f, &err);
    heft_assert_ok(st, &err);
    heft_assert_same_text(found, findings);
    assert_int_equal(result.bytes_checked, bytes_checked);
    free(found);
    heft_file_close(f);
    heft_assert_all_freed(&m);
}

/* A file of PyTorch without a tensor is no model, although it opens: that is the one fault. */
static bool is_empty_torch(const sample *s, const heft_verify_result *r, const char *findings)
{
    return heft_test_fact_is(heft_test_fact(s, "format"), "torch") && r->faults == 1 &&
           !heft_test_fact(s, "tensors.0.name").ptr && strstr(findings, "heft/all-left-out");
}

static void check_verified(const sample *s)
{
    heft_verify_result result = { .notes = 0 };
    heft_error err;
    heft_file *f = NULL;
    heft_status opened = open_sample(&f, s, NULL, &err), st = HEFT_OK;
    char *findings = opened ? NULL : heft_test_findings(&result, &st, f, &err);
    heft_assert_ok(st, &err);
    const char *got = verdict(opened, &result);
    bool is_good = !opened && (!result.faults || is_empty_torch(s, &result, findings));
    bool is_as_expected = s->kind == SAMPLE_BAD ? is_expected(s, opened, got) : is_good;
    if (!is_as_expected && heft_test_lacks_libraries() && findings &&
        strstr(findings, "heft/unchecked"))
        skip();
    if (!is_as_expected)
        fail_msg("%s: %s%s", got, opened ? err.message : "", findings ? findings : "");
    heft_file_close(f);
    for (size_t i = 0; i < heft_test_open_method_count && !opened; i++)
        if (heft_test_open_methods[i].reads_payload)
            verify_in(&heft_test_open_methods[i], s, findings, result.bytes_checked);
    free(findings);
}

/* ---- the table ------------------------------------------------------------------------------ */

typedef struct check {
    const char *name;
    unsigned kinds; /* sample kinds that the check applies to */
    void (*run)(const sample *s);
} check;

enum { ANY = SAMPLE_GOOD | SAMPLE_BAD | SAMPLE_REAL };

static const check checks[] = {
    { "open_methods", ANY, check_open_methods },
    { "facts", SAMPLE_GOOD, check_facts },
    { "verified", ANY, check_verified },
    { "truncated", ANY, check_truncated },
    { "damaged", ANY, check_damaged },
    { "memory", ANY, check_memory },
    { "rewritten", ANY, check_rewritten },
    { "other-formats", ANY, check_other_formats },
    { "sinks", ANY, check_sinks },
    { "streams", ANY, check_streams },
    { "edited", SAMPLE_GOOD, check_edited },
    { "edited-damage", SAMPLE_GOOD, check_edited_damage },
};

static const check *chosen;

static void run_check(void **state)
{
    chosen->run(*state);
}

/* Fail if there are no samples: such a run would prove nothing. */
static void there_are_samples(void **state)
{
    assert_in_range(((const samples *)*state)->count, 1, SIZE_MAX);
}

static int run_all(const char *part)
{
    samples s = heft_test_samples();
    struct CMUnitTest *tests = calloc(s.count + 1, sizeof *tests);
    size_t n = 0;
    if (!tests)
        return 2;
    tests[n++] = (struct CMUnitTest){ "there are samples", there_are_samples, NULL, NULL, &s };
    for (size_t i = 0; i < s.count; i++)
        if (chosen->kinds & s.at[i].kind && (!part || strstr(s.at[i].title, part)))
            tests[n++] = (struct CMUnitTest){ s.at[i].title, run_check, NULL, NULL, &s.at[i] };
    int failed = _cmocka_run_group_tests(chosen->name, tests, n, NULL, NULL);
    free(tests);
    heft_test_samples_free(&s);
    return failed;
}

int main(int argc, char **argv)
{
    keep_heap();
    for (size_t i = 0; i < HEFT_COUNT(checks); i++)
        if (argc > 1 && !strcmp(argv[1], checks[i].name))
            chosen = &checks[i];
    if (chosen)
        return run_all(argc > 2 ? argv[2] : NULL);
    fprintf(stderr, "usage: formats CHECK [PART OF A TITLE]; checks are\n");
    for (size_t i = 0; i < HEFT_COUNT(checks); i++)
        fprintf(stderr, "  %s\n", checks[i].name);
    return 2;
}
