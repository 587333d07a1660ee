/* test_signature_options.c - models that heft_signature_new() refuses to sign. */
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
    const heft_str ignored[] = { HEFT_STR("out"), BAD_UTF8 };
    heft_signature_options o = { .model = HEFT_STR("m"), .resources = twice, .resource_count = 2 };
    heft_error err;
    (void)state;
    heft_assert_fails(sign(&o, &err), HEFT_E_ARGUMENT, &err, "a file is listed twice");
    o.resource_count = 1;
    o.ignored = ignored;
    o.ignored_count = 2;
    heft_assert_fails(sign(&o, &err), HEFT_E_ARGUMENT, &err, "is not UTF-8");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(signs_what_is_plain),
        cmocka_unit_test(refuses_other_resources),
        cmocka_unit_test(refuses_other_lists),
    };
    return cmocka_run_group_tests_name("signature_options", tests, NULL, NULL);
}
