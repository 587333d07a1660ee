/* test_signature_options.c - models that heft_signature_new() refuses to sign, and failures of
 * memory and sinks. */
#include "heft_test.h"

#include <heft/sign.h>

#define BAD_UTF8 HEFT_STR("\xff.bin")

static const heft_resource good = { .name = HEFT_STR("a.bin"),
                                    .algorithm = HEFT_STR("sha256"),
                                    .digest = { .length = 32 },
                                    .to = HEFT_UNKNOWN_LENGTH };

static heft_status sign(heft_signature_options *o, heft_error *err)
{
    heft_signature *s;
    o->size = sizeof *o;
    heft_status st = heft_signature_new(&s, o, err);
    assert_int_equal(!s, st != HEFT_OK);
    heft_signature_close(s);
    return st;
}

static void signs_what_is_plain(void **state)
{
    const heft_str ignored[] = { HEFT_STR("out") };
    heft_signature_options o = { .model = BAD_UTF8,
                                 .resources = &good,
                                 .resource_count = 1,
                                 .ignored = ignored,
                                 .ignored_count = 1 };
    heft_error err;
    (void)state;
    if (heft_test_lacks_libraries())
        skip();
    heft_assert_ok(sign(&o, &err), &err);
}

static void refuses_other_resources(void **state)
{
    heft_resource refused[8];
    size_t n = 0;
    heft_error err;
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(refused); i++)
        refused[i] = good;
    refused[n++].from = 1;
    refused[n++].to = 100;
    refused[n++].digest.length = 31;
    refused[n++].algorithm = HEFT_STR("blake2b");
    refused[n++].name = BAD_UTF8;
    refused[n++].name = HEFT_STR("../a.bin");
    refused[n++].name = HEFT_STR("/a.bin");
    refused[n++].name = HEFT_STR("");
    for (size_t i = 0; i < n; i++) {
        const heft_resource both[] = { good, refused[i] };
        heft_signature_options o = { .model = HEFT_STR("m"),
                                     .resources = both,
                                     .resource_count = 2 };
        heft_assert_fails(sign(&o, &err), HEFT_E_ARGUMENT, &err, "cannot be signed");
    }
}

static void refuses_other_lists(void **state)
{
    const heft_resource twice[] = { good, good };
    const heft_str other[] = { BAD_UTF8,         HEFT_STR("./out"),  HEFT_STR("/out"),
                               HEFT_STR("out/"), HEFT_STR("a//out"), HEFT_STR("../out"),
                               HEFT_STR("") };
    heft_signature_options o = { .model = HEFT_STR("m"), .resources = twice, .resource_count = 2 };
    heft_error err;
    (void)state;
    heft_assert_fails(sign(&o, &err), HEFT_E_ARGUMENT, &err, "a file is listed twice");
    o.resource_count = 1;
    o.ignored_count = 1;
    for (size_t i = 0; i < HEFT_COUNT(other); i++) {
        o.ignored = &other[i];
        heft_assert_fails(sign(&o, &err), HEFT_E_ARGUMENT, &err, "the ignored path");
    }
}

/* ---- hosts that lack something -------------------------------------------------------------- */

static bool fails_to_begin(void *state)
{
    (void)state;
    return false;
}

static heft_status sign_with_digests(const heft_digest *const *digests, heft_error *err)
{
    heft_host host;
    heft_signature_options o = {
        .model = HEFT_STR("m"), .resources = &good, .resource_count = 1, .host = &host
    };
    heft_host_copy(&host, NULL, sizeof host);
    host.digests = digests;
    return sign(&o, err);
}

static void needs_a_digest_that_begins(void **state)
{
    const heft_digest *const *all = heft_host_default()->digests;
    const heft_digest *digests[] = { NULL, NULL };
    heft_digest unable;
    heft_error err;
    (void)state;
    heft_assert_fails(sign_with_digests(digests, &err), HEFT_E_UNSUPPORTED, &err, "no SHA-256");
    while (*all && strcmp((*all)->name, "sha256") != 0)
        all++;
    if (!*all)
        skip();
    unable = **all;
    unable.init = fails_to_begin;
    digests[0] = &unable;
    heft_assert_fails(sign_with_digests(digests, &err), HEFT_E_NOMEM, &err, "no memory");
}

static heft_status make_and_write(heft_signature_options *o, heft_test_sink *sink, heft_error *err)
{
    heft_signature *s;
    heft_status st = heft_signature_new(&s, o, err);
    if (!st)
        st = heft_signature_write(s, &sink->base, err);
    heft_signature_close(s);
    return st;
}

static void reports_each_request_that_fails(void **state)
{
    const heft_str ignored[] = { HEFT_STR("out") };
    heft_signature_options o = { .size = sizeof o,
                                 .model = HEFT_STR("m"),
                                 .resources = &good,
                                 .resource_count = 1,
                                 .ignored = ignored,
                                 .ignored_count = 1 };
    heft_test_memory memory;
    heft_status st = HEFT_E_NOMEM;
    (void)state;
    if (heft_test_lacks_libraries())
        skip();
    o.host = &memory.host;
    for (uint32_t at = 1; st; at++) {
        heft_test_sink sink;
        heft_error err;
        heft_test_sink_init(&sink, true);
        heft_test_memory_init(&memory, at);
        heft_test_poison(&err);
        st = make_and_write(&o, &sink, &err);
        bool is_reached = at <= atomic_load(&memory.calls);
        heft_assert_status(st, is_reached ? HEFT_E_NOMEM : HEFT_OK, &err);
        assert_int_equal(sink.finished, !is_reached);
        heft_assert_all_freed(&memory);
        heft_test_sink_free(&sink);
    }
}

static void reports_a_sink_that_fails(void **state)
{
    heft_signature_options o = {
        .size = sizeof o, .model = HEFT_STR("m"), .resources = &good, .resource_count = 1
    };
    heft_test_sink sink;
    heft_error err;
    (void)state;
    if (heft_test_lacks_libraries())
        skip();
    heft_test_sink_init(&sink, false);
    sink.fail_from = 0;
    heft_assert_status(make_and_write(&o, &sink, &err), HEFT_E_IO, &err);
    assert_true(sink.discarded);
    heft_test_sink_free(&sink);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(signs_what_is_plain),
        cmocka_unit_test(refuses_other_resources),
        cmocka_unit_test(refuses_other_lists),
        cmocka_unit_test(needs_a_digest_that_begins),
        cmocka_unit_test(reports_each_request_that_fails),
        cmocka_unit_test(reports_a_sink_that_fails),
    };
    return cmocka_run_group_tests_name("signature_options", tests, NULL, NULL);
}
