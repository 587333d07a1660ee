/* test_pickle_scan.c - pickles that would import functions, harmless pickles, and damage. */
#include "grammar/pickle_scan.h"

#include <stdio.h>

#include "base/text.h"
#include "test_memory.h"

enum { MAX_TEXT = 400 };

static void print_finding(void *context, const heft_pickle_finding *f)
{
    static const char *const names[] = { "import", "hidden", "extension", "id", "broken" };
    char *to = context;
    size_t at = strlen(to);
    snprintf(to + at, MAX_TEXT - at, "%s@%u:%.*s,%.*s;", names[f->danger], (unsigned)f->at,
             (int)f->module.len, f->module.len ? f->module.ptr : "", (int)f->name.len,
             f->name.len ? f->name.ptr : "");
}

static uint64_t scan(char *to, const char *bytes, size_t size, bool is_script)
{
    test_memory t;
    test_memory_init(&t, 0);
    heft_memory m = { .al = &t.al, .limit = UINT64_MAX };
    heft_pickle_scanner s = { &m, print_finding, to, is_script };
    uint64_t end = 0;
    *to = 0;
    assert_int_equal(heft_pickle_scan(&s, bytes, size, &end), HEFT_OK);
    assert_int_equal(t.live, 0);
    assert_true(end <= size);
    return end;
}

typedef struct example {
    const char *bytes;
    size_t size;
    const char *findings;
} example;

#define PICKLE(bytes) bytes, sizeof(bytes) - 1

static void expect(const example *examples, size_t count, bool is_script)
{
    for (size_t i = 0; i < count; i++) {
        char got[MAX_TEXT];
        scan(got, examples[i].bytes, examples[i].size, is_script);
        assert_string_equal(got, examples[i].findings);
    }
}

static void reports_every_way_to_import(void **state)
{
    (void)state;
    static const example examples[] = {
        { PICKLE("cos\nsystem\n(S'id'\ntR."), "import@0:os,system;" },
        { PICKLE("c__builtin__\neval\n."), "import@0:__builtin__,eval;" },
        { PICKLE("(S'id'\nios\nsystem\n."), "import@7:os,system;" },
        { PICKLE("(cposix\nsystem\nX\2\0\0\0ido."), "import@1:posix,system;" },
        { PICKLE("\x80\4\x8c\2nt\x8c\6system\x93."), "import@14:nt,system;" },
        { PICKLE("\x80\4\x8c\2os\x94\x8c\6system\x94\x30\x30h\0h\1\x93."), "import@22:os,system;" },
        { PICKLE("Vos\np7\n0Vsystem\ng7\n0g7\n2\x93."), "import@24:os,os;" },
        { PICKLE("S'os'\nU\6system\x93."), "import@14:os,system;" },
        { PICKLE("\x80\2\x82\1."), "extension@2:,;" },
        { PICKLE("\x83\1\0."), "extension@0:,;" },
        { PICKLE("\x84\1\0\0\0."), "extension@0:,;" },
        { PICKLE("ctorch.storage\n_load_from_bytes\n."),
          "import@0:torch.storage,_load_from_bytes;" },
        { PICKLE("ctorch._utils\n_import_dotted_name\n."),
          "import@0:torch._utils,_import_dotted_name;" },
        { PICKLE("cnumpy.f2py\ncompile\n."), "import@0:numpy.f2py,compile;" },
    };
    expect(examples, sizeof examples / sizeof *examples, false);
}

static void reports_names_that_only_resemble_harmless_names(void **state)
{
    (void)state;
    static const example examples[] = {
        { PICKLE("cCollections\nOrderedDict\n."), "import@0:Collections,OrderedDict;" },
        { PICKLE("ccollections\nOrderedDict\r\n."), "import@0:collections,OrderedDict\r;" },
        { PICKLE("ccollections\nOrderedDict.fromkeys\n."),
          "import@0:collections,OrderedDict.fromkeys;" },
        { PICKLE("cbuiltins\nset frozenset\n."), "import@0:builtins,set frozenset;" },
        { PICKLE("cbuiltins\n\n."), "import@0:builtins,;" },
        { PICKLE("c__torch__.a\nB\n."), "import@0:__torch__.a,B;" },
    };
    expect(examples, sizeof examples / sizeof *examples, false);
}

static void reports_imports_of_unknown_names(void **state)
{
    (void)state;
    static const example examples[] = {
        { PICKLE("S'os'\nS'sys\\x74em'\n\x93."), "hidden@19:os,sys\\x74em;" },
        { PICKLE("V\\u006fs\nVsystem\n\x93."), "hidden@17:\\u006fs,system;" },
        { PICKLE("\x8c\2osN\x93."), "hidden@5:os,;" },
        /* The number of the memo is too large to follow, so that MEMOIZE stores elsewhere. */
        { PICKLE("\x8c\1ar\xff\xff\xff\xff\x8c\1b\x94h\0h\1\x93."), "hidden@16:,;" },
        { PICKLE("g_0\nh\0\x93."), "hidden@6:,;" },
    };
    expect(examples, sizeof examples / sizeof *examples, false);
}

static void reports_persistent_ids_unless_of_storages(void **state)
{
    (void)state;
    static const example examples[] = {
        { PICKLE("\x80\2(X\7\0\0\0storagectorch\nFloatStorage\nX\1\0\0\0"
                 "0X\3\0\0\0cpuK\4tQ."),
          "" },
        { PICKLE("X\4\0\0\0evilQ."), "id@9:,;" },
        { PICKLE("Pevil\n."), "id@0:,;" },
    };
    expect(examples, sizeof examples / sizeof *examples, false);
}

static void reports_damage_after_the_findings_before(void **state)
{
    (void)state;
    static const example examples[] = {
        { PICKLE(""), "broken@0:,;" },
        { PICKLE("cos\nsystem\n(S'id'\ntR"), "import@0:os,system;broken@20:,;" },
        { PICKLE("cos\nsys"), "broken@0:,;import@0:os,sys;" },
        { PICKLE("cos\nsystem\n\xff"), "import@0:os,system;broken@11:,;" },
        { PICKLE("0."), "broken@0:,;" },
        { PICKLE("t."), "broken@0:,;" },
        { PICKLE("N(2."), "broken@2:,;" },
        { PICKLE("\x8d\xff\xff\xff\xff\xff\xff\xff\xff."), "broken@0:,;" },
    };
    expect(examples, sizeof examples / sizeof *examples, false);
}

static void finds_nothing_in_harmless_pickles(void **state)
{
    (void)state;
    static const example examples[] = {
        { PICKLE("ccollections\nOrderedDict\n)R."), "" },
        { PICKLE("\x80\4\x95\0\0\0\0\0\0\0\0\x8c\5torch\x94\x8c\4Size\x94\x93\x94K\1\x85\x94R."),
          "" },
        { PICKLE("cnumpy.core.multiarray\nscalar\nc_codecs\nencode\n0."), "" },
        { PICKLE("((0N."), "" },
    };
    expect(examples, sizeof examples / sizeof *examples, false);
}

static void classes_of_torchscript_are_harmless_only_there(void **state)
{
    (void)state;
    static const example examples[] = {
        { PICKLE("c__torch__.a\nB\n."), "" },
        { PICKLE("c__torch__\nB\n."), "" },
        { PICKLE("c__torch__evil\nB\n."), "import@0:__torch__evil,B;" },
        { PICKLE("cos\nsystem\n."), "import@0:os,system;" },
    };
    expect(examples, sizeof examples / sizeof *examples, true);
}

static void returns_the_end_of_the_first_pickle(void **state)
{
    (void)state;
    char got[MAX_TEXT];
    static const char two[] = "N.cos\nsystem\n.";
    uint64_t end = scan(got, two, sizeof two - 1, false);
    assert_int_equal(end, 2);
    assert_string_equal(got, "");
    scan(got, two + end, sizeof two - 1 - (size_t)end, false);
    assert_string_equal(got, "import@0:os,system;");
}

static void reports_every_failed_allocation(void **state)
{
    (void)state;
    static const char bytes[] = "(Nq\0.";
    for (uint32_t fail_at = 1; fail_at <= 3; fail_at++) {
        test_memory t;
        test_memory_init(&t, fail_at);
        heft_memory m = { .al = &t.al, .limit = UINT64_MAX };
        char got[MAX_TEXT] = "";
        heft_pickle_scanner s = { &m, print_finding, got, false };
        uint64_t end;
        assert_int_equal(heft_pickle_scan(&s, bytes, sizeof bytes - 1, &end), HEFT_E_NOMEM);
        assert_int_equal(t.live, 0);
    }
}

/* Each byte of the pickle adds at most a value, whatever number a memo opcode holds. */
static void memory_is_proportional_to_the_bytes(void **state)
{
    (void)state;
    enum { LIMIT = 4096 };
    test_memory t;
    test_memory_init(&t, 0);
    heft_memory m = { .al = &t.al, .limit = LIMIT };
    char got[MAX_TEXT] = "";
    heft_pickle_scanner s = { &m, print_finding, got, false };
    static const char bytes[] = "Nr\xff\xff\xff\x7f.";
    uint64_t end;
    assert_int_equal(heft_pickle_scan(&s, bytes, sizeof bytes - 1, &end), HEFT_OK);
    assert_int_equal(end, sizeof bytes - 1);
}

static void modules_and_names_are_dangerous_or_not(void **state)
{
    static const struct {
        const char *module, *name;
        bool is_dangerous;
    } rows[] = {
        { "builtins", "eval", true },
        { "__builtin__", "eval", true },
        { "__builtins__", "eval", true },
        { "builtins", "range", false },
        { "__builtin__", "sum", false },
        { "__builtins__", "Ellipsis", false },
        { "builtin", "eval", false },
        { "_aix_support", "x", true },
        { "zipimport", "x", true },
        { "importlib", "x", true },
        { "importlib.util", "x", true },
        { "importlibs", "x", false },
        { "importli", "x", false },
        { "import", "x", false },
        { "my.importlib", "x", false },
        { "torch", "load", true },
        { "torch", "loads", false },
        { "torch", "Tensor", false },
        { "torch.storage", "_load_from_bytes", true },
        { "torch.storage", "load", false },
        { "joblib", "load", true },
        { "jobs", "load", false },
        { "", "load", false },
        { "collections", "OrderedDict", false },
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (heft_pickle_is_dangerous(heft_lit(rows[i].module), heft_lit(rows[i].name)) !=
            rows[i].is_dangerous)
            fail_msg("%s.%s", rows[i].module, rows[i].name);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reports_every_way_to_import),
        cmocka_unit_test(reports_names_that_only_resemble_harmless_names),
        cmocka_unit_test(reports_imports_of_unknown_names),
        cmocka_unit_test(reports_persistent_ids_unless_of_storages),
        cmocka_unit_test(reports_damage_after_the_findings_before),
        cmocka_unit_test(finds_nothing_in_harmless_pickles),
        cmocka_unit_test(classes_of_torchscript_are_harmless_only_there),
        cmocka_unit_test(returns_the_end_of_the_first_pickle),
        cmocka_unit_test(reports_every_failed_allocation),
        cmocka_unit_test(memory_is_proportional_to_the_bytes),
        cmocka_unit_test(modules_and_names_are_dangerous_or_not),
    };
    return cmocka_run_group_tests_name("pickle_scan", tests, NULL, NULL);
}
