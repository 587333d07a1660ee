/* test_sweep.c - verification of checksums in chunks, compared with a simple implementation. */
#include "models.h"

#include "core/check/verification.h"

enum { BYTES = 9 << 20, CHECKSUMS = 80 };

typedef struct fixture {
    heft_bytes bytes;
    heft_file *f;
    heft_error err;
} fixture;

static uint32_t slow_crc(uint32_t polynomial, uint32_t crc, const uint8_t *p, uint64_t len)
{
    static uint32_t tables[2][256];
    uint32_t *table = tables[polynomial == 0x82F63B78];
    for (uint32_t i = 0; !table[255] && i < 256; i++) {
        uint32_t v = i;
        for (int k = 0; k < 8; k++)
            v = v >> 1 ^ (v & 1 ? polynomial : 0);
        table[i] = v;
    }
    for (uint64_t i = 0; i < len; i++)
        crc = crc >> 8 ^ table[(crc ^ p[i]) & 255];
    return crc;
}

/* Return the correct value of the checksum. */
static uint32_t expected_crc(const fixture *f, const heft_stored_checksum *c)
{
    static const uint8_t zeros[64];
    uint32_t polynomial = strcmp(c->algorithm, "crc32") ? 0x82F63B78 : 0xEDB88320;
    uint32_t crc = UINT32_MAX;
    crc = slow_crc(polynomial, crc, f->bytes.p + c->range[0].offset, c->range[0].length);
    crc = slow_crc(polynomial, crc, zeros, c->zeros);
    crc = slow_crc(polynomial, crc, f->bytes.p + c->range[1].offset, c->range[1].length);
    return ~crc;
}

static void begin(fixture *f, size_t method, uint32_t threads, uint64_t bytes)
{
    heft_open_options opt = HEFT_OPEN_OPTIONS_INIT;
    static heft_test_host hosts[2];
    heft_test_host_init(&hosts[threads > 1], threads);
    opt.host = &hosts[threads > 1].host;
    *f = (fixture){ .bytes = heft_test_one("gptrs-archive", bytes) };
    heft_test_input in = { NULL, f->bytes };
    heft_assert_ok(heft_test_open_methods[method].open(&f->f, &in, &opt, &f->err), &f->err);
    assert_int_equal(heft_ix_checksums(&f->f->x), 0);
}

static void end(fixture *f)
{
    heft_file_close(f->f);
    heft_test_free(&f->bytes);
}

static heft_stored_checksum *add(fixture *f, const char *algorithm, uint64_t offset,
                                 uint64_t length)
{
    heft_stored_checksum c = { .rule = "test/checksum",
                               .algorithm = algorithm,
                               .range = { { offset, length } },
                               .tensor = HEFT_NONE,
                               .part = HEFT_NONE };
    heft_assert_ok(heft_ix_checksum(&f->f->x, c), &f->err);
    return (heft_stored_checksum *)f->f->x.checksums.ptr + f->f->x.checksums.len - 1;
}

static void set_expected(const fixture *f, heft_stored_checksum *c, bool matches)
{
    uint32_t crc = expected_crc(f, c) ^ !matches;
    for (int i = 0; i < 4; i++)
        c->expect[i] = (uint8_t)(crc >> 8 * i);
}

static heft_status run_sweep(fixture *f, heft_checksum_state *states)
{
    heft_progress progress = { .fn = NULL };
    heft_ledger l;
    heft_status st = heft_ledger_open(&l, f->f, false, &f->err);
    if (!st) {
        memset(l.ways, HEFT_LEDGER_SWEEP, l.checksums);
        st = heft_checksum_sweep(&l, &progress, &f->err);
    }
    if (!st)
        memcpy(states, l.states, l.checksums * sizeof *states);
    heft_ledger_free(&l);
    return st;
}

static void sweep(fixture *f, heft_checksum_state *states)
{
    heft_assert_ok(run_sweep(f, states), &f->err);
}

/* ---- many checksums ------------------------------------------------------------------------- */

/* Add checksum i, over ranges of several sizes: overlapping, with common ends, or empty. */
static void add_random(fixture *f, uint32_t i, uint64_t *random)
{
    static const uint32_t sizes[] = { 1, 16, 1000, 70000, BYTES };
    uint64_t size = f->bytes.len, at[2], len[2];
    for (int k = 0; k < 2; k++) {
        at[k] = i % 3 ? heft_test_random(random, (uint32_t)size) : (i % 7) * (size / 7);
        len[k] = heft_test_random(random, sizes[i % HEFT_COUNT(sizes)]);
        len[k] = len[k] < size - at[k] ? len[k] : size - at[k];
    }
    heft_stored_checksum *c = add(f, i % 2 ? "crc32" : "crc32c", at[0], i == 20 ? 0 : len[0]);
    if (i % 4 == 1)
        c->range[1] = (heft_range){ at[1], len[1] };
    if (i % 8 == 1)
        c->zeros = 4;
    set_expected(f, c, i % 5);
}

static void verifies_overlapping_checksums_separately(void **state)
{
    (void)state;
    for (int round = 0; round < 3; round++) {
        fixture f;
        uint64_t random = 17;
        heft_checksum_state states[CHECKSUMS];
        begin(&f, round == 1 ? 3 : 0, round == 2 ? 4 : 1, BYTES);
        for (uint32_t i = 0; i < CHECKSUMS; i++)
            add_random(&f, i, &random);
        sweep(&f, states);
        for (uint32_t i = 0; i < CHECKSUMS; i++)
            assert_int_equal(states[i], i % 5 ? HEFT_CHECKSUM_MATCHES : HEFT_CHECKSUM_MISMATCH);
        end(&f);
    }
}

static uint64_t bytes_read;
static const heft_source_ops *plain_ops;

static heft_status counting_read(heft_source *s, uint64_t off, void *buf, size_t len,
                                 heft_error *err)
{
    bytes_read += len;
    return plain_ops->read(s, off, buf, len, err);
}

static void reads_bytes_of_many_checksums_once(void **state)
{
    fixture f;
    heft_checksum_state states[40];
    (void)state;
    begin(&f, 3, 1, 100000);
    plain_ops = f.f->source->ops;
    heft_source_ops counting = *plain_ops;
    counting.read = counting_read;
    f.f->source->ops = &counting;
    bytes_read = 0;
    for (uint32_t i = 0; i < 40; i++)
        set_expected(&f, add(&f, i % 2 ? "crc32" : "crc32c", 100 + i, 90000 - i), true);
    sweep(&f, states);
    for (uint32_t i = 0; i < 40; i++)
        assert_int_equal(states[i], HEFT_CHECKSUM_MATCHES);
    assert_int_equal(bytes_read, 90000);
    f.f->source->ops = plain_ops;
    end(&f);
}

/* ---- digests in order ----------------------------------------------------------------------- */

static const heft_digest *sha256(void)
{
    const heft_digest *const *d = heft_host_default()->digests;
    while (*d && strcmp((*d)->name, "sha256") != 0)
        d++;
    return *d;
}

static void verifies_digests_that_need_bytes_in_order(void **state)
{
    const heft_digest *d = sha256();
    uint64_t own[32];
    (void)state;
    for (size_t method = 0; d && method < 4; method += 3) {
        fixture f;
        heft_checksum_state states[4];
        begin(&f, method, 2, 1 << 20);
        for (uint64_t i = 0; i < 4; i++) {
            heft_stored_checksum *c = add(&f, "sha256", i * 1000, 900000 - i);
            c->range[1] = (heft_range){ 5, i * 7 };
            assert_true(d->init(own));
            d->update(own, f.bytes.p + c->range[0].offset, (size_t)c->range[0].length);
            d->update(own, f.bytes.p + 5, (size_t)c->range[1].length);
            d->final(c->expect, own);
            c->expect[31] ^= i == 2;
        }
        sweep(&f, states);
        for (uint64_t i = 0; i < 4; i++)
            assert_int_equal(states[i], i == 2 ? HEFT_CHECKSUM_MISMATCH : HEFT_CHECKSUM_MATCHES);
        end(&f);
    }
}

/* ---- verification --------------------------------------------------------------------------- */

typedef struct findings {
    uint32_t count[3];
    char last_rule[40], last_text[120];
    heft_range where;
} findings;

static void note(void *ctx, const heft_finding *n)
{
    findings *s = ctx;
    s->count[n->severity]++;
    snprintf(s->last_rule, sizeof s->last_rule, "%s", n->rule);
    snprintf(s->last_text, sizeof s->last_text, "%s", n->text);
    s->where = n->where;
}

static findings verify(fixture *f)
{
    findings s = { .count = { 0 } };
    heft_verify_result result;
    heft_assert_ok(heft_file_verify(&result, f->f,
                                    &(heft_verify_options){ sizeof(heft_verify_options),
                                                            .on_finding = note, .ctx = &s },
                                    &f->err),
                   &f->err);
    assert_int_equal(result.faults, s.count[HEFT_FAULT]);
    assert_int_equal(result.warnings, s.count[HEFT_WARNING]);
    assert_int_equal(result.notes, s.count[HEFT_NOTE]);
    return s;
}

static void reports_a_mismatch_with_the_range(void **state)
{
    fixture f;
    (void)state;
    begin(&f, 0, 1, 1000);
    set_expected(&f, add(&f, "crc32", 10, 20), true);
    set_expected(&f, add(&f, "crc32c", 30, 40), false);
    findings s = verify(&f);
    assert_int_equal(s.count[HEFT_FAULT], 1);
    assert_string_equal(s.last_rule, "test/checksum");
    assert_int_equal(s.where.offset, 30);
    assert_int_equal(s.where.length, 40);
    end(&f);
}

static void warns_of_an_unknown_algorithm(void **state)
{
    fixture f;
    (void)state;
    begin(&f, 0, 1, 1000);
    add(&f, "md7", 10, 20);
    findings s = verify(&f);
    assert_int_equal(s.count[HEFT_FAULT], 0);
    assert_int_equal(s.count[HEFT_WARNING], 1);
    assert_string_equal(s.last_rule, "heft/unchecked");
    end(&f);
}

/* One checksum with three interpretations: number `matches` matches; with 3, none matches. */
static void accepts_any_alternative_of_a_checksum(void **state)
{
    (void)state;
    for (uint32_t matches = 0; matches <= 3; matches++) {
        fixture f;
        heft_checksum sum;
        begin(&f, 0, 1, 1000);
        f.f->x.has_alternatives = true; /* set as by heft_ix_checksum() */
        for (uint32_t i = 0; i < 3; i++) {
            heft_stored_checksum *c = add(&f, i % 2 ? "crc32" : "crc32c", 100 + i, 50);
            c->is_alternative = i < 2;
            c->note = i ? "another reading" : NULL;
            set_expected(&f, c, i == matches);
        }
        set_expected(&f, add(&f, "crc32", 0, 10), true); /* a checksum without alternatives */
        findings s = verify(&f);
        assert_int_equal(s.count[HEFT_FAULT], matches == 3);
        assert_int_equal(s.count[HEFT_NOTE], matches == 1 || matches == 2);
        if (matches == 3)
            assert_int_equal(s.where.offset, 100); /* the first interpretation */
        assert_int_equal(heft_checksum_count(f.f), 2);
        sum = heft_checksum_at(f.f, 1);
        assert_int_equal(sum.range.offset, 0);
        assert_null(heft_checksum_at(f.f, 2).rule);
        end(&f);
    }
}

static void verifies_a_last_checksum_marked_as_alternative(void **state)
{
    fixture f;
    (void)state;
    begin(&f, 0, 1, 1000);
    heft_stored_checksum *c = add(&f, "crc32", 10, 20);
    c->is_alternative = true;
    set_expected(&f, c, false);
    assert_int_equal(verify(&f).count[HEFT_FAULT], 1);
    end(&f);
}

static bool stop(void *ctx, uint64_t done, uint64_t total)
{
    (void)total;
    *(uint64_t *)ctx = done;
    return false;
}

static void cancels_verification(void **state)
{
    fixture f;
    uint64_t done = 0;
    (void)state;
    begin(&f, 0, 1, 20 << 20);
    set_expected(&f, add(&f, "crc32", 0, 20 << 20), true);
    heft_assert_status(heft_file_verify(NULL, f.f,
                                        &(heft_verify_options){ sizeof(heft_verify_options),
                                                                .progress = stop, .ctx = &done },
                                        &f.err),
                       HEFT_E_CANCELLED, &f.err);
    assert_in_range(done, 1, 10 << 20);
    end(&f);
}

/* ---- memory --------------------------------------------------------------------------------- */

static void reports_every_failed_allocation(void **state)
{
    bool was_reached = true;
    (void)state;
    for (uint32_t n = 1; was_reached; n++) {
        heft_test_memory m;
        heft_open_options opt = HEFT_OPEN_OPTIONS_INIT;
        fixture f = { .bytes = heft_test_one("gptrs-archive", 50000) };
        heft_test_input in = { NULL, f.bytes };
        uint64_t random = n;
        heft_test_memory_init(&m, 0);
        opt.host = &m.host;
        heft_assert_ok(heft_test_open_methods[3].open(&f.f, &in, &opt, &f.err), &f.err);
        for (uint32_t i = 0; i < 30; i++)
            add_random(&f, i, &random);
        if (sha256())
            add(&f, "sha256", 0, 1000);
        heft_test_memory_rewind(&m);
        m.fail_at = n;
        heft_checksum_state states[31];
        heft_status st = run_sweep(&f, states);
        was_reached = atomic_load(&m.calls) >= n;
        heft_assert_status(st, was_reached ? HEFT_E_NOMEM : HEFT_OK, &f.err);
        end(&f);
        heft_assert_all_freed(&m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verifies_overlapping_checksums_separately),
        cmocka_unit_test(reads_bytes_of_many_checksums_once),
        cmocka_unit_test(verifies_digests_that_need_bytes_in_order),
        cmocka_unit_test(reports_a_mismatch_with_the_range),
        cmocka_unit_test(warns_of_an_unknown_algorithm),
        cmocka_unit_test(accepts_any_alternative_of_a_checksum),
        cmocka_unit_test(verifies_a_last_checksum_marked_as_alternative),
        cmocka_unit_test(cancels_verification),
        cmocka_unit_test(reports_every_failed_allocation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
