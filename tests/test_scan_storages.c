/* test_scan_storages.c - scans of legacy PyTorch files that other files follow, after storages. */
#include "heft_test.h"

#include <heft/source.h>

#define ID(class, key) "(U\7storagectorch\n" class "Storage\nU\1" key "U\3cpuK\2NtQ"
#define EVIL           "cos\nsystem\n."
#define U64(n)         n "\0\0\0\0\0\0\0"

typedef struct example {
    const char *bytes; /* pickles and storages, before another file */
    size_t size;
    const char *findings; /* among the findings; "" if there are none */
} example;

#define BYTES(s) s, sizeof(s) - 1
#define FOUND    "pickle/import;"
#define ODD      "pickle/unreadable;"
#define FLOATS   U64("\2") "\xff\xff\xff\xff\xff\xff\xff\xff"
#define LONG     U64("\1") "\xff\xff\xff\xff\xff\xff\xff\xff"
#define HALVES   U64("\2") "\xff\xff\xff\xff"

static void note(void *ctx, const heft_scan_finding *f)
{
    char *to = ctx;
    size_t at = strlen(to);
    snprintf(to + at, 200 - at, "%s;", f->rule);
}

static heft_status scan(char text[200], const void *bytes, size_t size, const heft_host *host)
{
    heft_source *s;
    heft_scan_options o = HEFT_SCAN_OPTIONS_INIT;
    *text = 0;
    o.on_finding = note;
    o.ctx = text;
    o.host = host;
    assert_int_equal(heft_source_open_memory(&s, bytes, size, NULL), HEFT_OK);
    heft_status st = heft_source_scan(NULL, s, &o, NULL);
    heft_source_close(s);
    return st;
}

static void expect(const example *e, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        char text[200], whole[400];
        memcpy(whole, e[i].bytes, e[i].size);
        memcpy(whole + e[i].size, EVIL, sizeof EVIL - 1);
        heft_bytes exact = heft_test_copy(whole, e[i].size + sizeof EVIL - 1);
        assert_int_equal(scan(text, exact.p, exact.len, NULL), HEFT_OK);
        if (*e[i].findings ? !strstr(text, e[i].findings) : *text)
            fail_msg("%zu: found \"%s\", not \"%s\"", i, text, e[i].findings);
        heft_test_free(&exact);
    }
}

static void another_file_follows_the_storages(void **state)
{
    static const example rows[] = {
        { BYTES(ID("Float", "0") ".](U\0010e." FLOATS), FOUND },
        { BYTES(ID("Float", "0") ID("Long", "1") ID("Half", "2") "0.](U\0012U\0011e." HALVES LONG),
          FOUND },
        { BYTES(ID("Long", "0") ".]X\1\0\0\0000a." LONG), FOUND },
        { BYTES(ID("Long", "0") ".(lp0\nV0\np1\na." LONG), FOUND },
        { BYTES(ID("Long", "0") ".\x80\4\x95\7\0\0\0\0\0\0\0]\x94\x8c\0010\x94\x61." LONG), FOUND },
        { BYTES("(U\7storagectorch\nLongStorage\nU\0010U\3cpuK\2(U\0019K\0K\1ttQ.](U\0019e." LONG),
          FOUND },
        { BYTES(ID("Float", "0") ".](U\0010e." U64("\xff") "\xff"), "" },
        { BYTES(ID("Float", "0") ".](U\0010e.\xff\xff\xff\xff\xff\xff\xff\xff"), "" },
    };
    (void)state;
    expect(rows, sizeof rows / sizeof *rows);
}

/* Python may see other keys than the scan, or the elements have an unknown length. */
static void storages_that_cannot_be_followed_are_a_finding(void **state)
{
    static const example rows[] = {
        { BYTES("(U\7storagectorch\nFloatStorage\nU\2\xc3\xa9U\3cpuK\2NtQ"
                ".](U\2\xc3\xa9"
                "e." FLOATS),
          ODD },
        { BYTES(ID("Float", "0") ".](U\0011e." FLOATS), ODD },
        { BYTES(ID("Float", "0") ".(U\0010t." FLOATS), ODD },
        { BYTES(ID("Float", "0") ".U\0010." FLOATS), ODD },
        { BYTES(ID("Float", "0") ".](U\0010e]." FLOATS), ODD },
        { BYTES(ID("Float", "0") ".]U\0010aU\0010." FLOATS), ODD },
        { BYTES(ID("Float", "0") ".]U\0010q\1ah\1a." FLOATS), ODD },
        { BYTES(ID("Float", "0") ".]V\\u0030\na." FLOATS), ODD },
        { BYTES(ID("Float", "0") "}b.](U\0010e." FLOATS), ODD },
        { BYTES(ID("Typed", "0") ".](U\0010e." FLOATS), "pickle/import;" ODD },
        { BYTES(ID("Float", "0") ID("Long", "0") "0.](U\0010e." LONG), ODD },
        { BYTES("(U\7storagectorch\nLongStorage\nK\0U\3cpuK\2NtQ.](K\0e." LONG), ODD },
    };
    (void)state;
    expect(rows, sizeof rows / sizeof *rows);
}

static void reports_each_failed_allocation(void **state)
{
    static const char bytes[] = ID("Float", "0") ID("Long", "1") "0.](U\0011e." LONG EVIL;
    heft_status st = HEFT_E_NOMEM;
    char text[200];
    (void)state;
    for (uint32_t at = 1; st; at++) {
        heft_test_memory m;
        heft_test_memory_init(&m, at);
        st = scan(text, bytes, sizeof bytes - 1, &m.host);
        heft_assert_all_freed(&m);
        assert_int_equal(st, atomic_load(&m.calls) < at ? HEFT_OK : HEFT_E_NOMEM);
    }
    assert_string_equal(text, FOUND);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(another_file_follows_the_storages),
        cmocka_unit_test(storages_that_cannot_be_followed_are_a_finding),
        cmocka_unit_test(reports_each_failed_allocation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
