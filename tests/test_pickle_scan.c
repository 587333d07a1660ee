/* test_pickle_scan.c - pickles that would import functions, harmless pickles, and damage. */
#include "grammar/pickle_scan.h"

#include <stdio.h>

#include "base/text.h"
#include "test_memory.h"

enum { MAX_TEXT = 400 };

static void print_finding(void *context, const heft_pickle_finding *f)
{
    static const char *const names[] = { "import",    "arguments", "hidden",
                                         "extension", "id",        "broken" };
    char *to = context;
    size_t at = strlen(to);
    snprintf(to + at, MAX_TEXT - at, "%s@%u:%.*s,%.*s;", names[f->danger], (unsigned)f->at,
             (int)f->module.len, f->module.len ? f->module.ptr : "", (int)f->name.len,
             f->name.len ? f->name.ptr : "");
}

static heft_pickle_scanned scan(char *to, const char *bytes, size_t size, bool is_script,
                                bool is_joblib)
{
    test_memory t;
    test_memory_init(&t, 0);
    heft_memory m = { .al = &t.al, .limit = UINT64_MAX };
    heft_pickle_scanner s = { .memory = &m,
                              .found = print_finding,
                              .context = to,
                              .is_script = is_script,
                              .is_joblib = is_joblib };
    heft_pickle_scanned done;
    *to = 0;
    assert_int_equal(heft_pickle_scan(&done, &s, bytes, size), HEFT_OK);
    assert_int_equal(t.live, 0);
    assert_true(done.end <= size);
    return done;
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
        scan(got, examples[i].bytes, examples[i].size, is_script, false);
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

/* Python decodes escapes and finds any number in the memo; the scan does, too. */
static void reports_names_that_the_pickle_hides(void **state)
{
    (void)state;
    static const example examples[] = {
        { PICKLE("S'os'\nS'sys\\x74em'\n\x93."), "import@19:os,system;" },
        { PICKLE("S'\\157\\163'\nS\"sys\\164em\"\n\x93."), "import@25:os,system;" },
        { PICKLE("V\\u006fs\nVsyst\\U00000065m\n\x93."), "import@26:os,system;" },
        { PICKLE("V\\\\u006fs\nVa\n\x93."), "import@13:\\\\u006fs,a;" },
        { PICKLE("\x8c\2osN\x93."), "broken@5:,;" }, /* names are texts */
        { PICKLE("S'os\\'\nNN."), "broken@0:,;" },   /* an escape without an end */
        { PICKLE("S'\\x6'\nNN."), "broken@0:,;" },
        { PICKLE("V\\u00\nNN."), "broken@0:,;" },
        { PICKLE("Sos\nNN."), "broken@0:,;" },
        { PICKLE("\x8c\2osr\xff\xff\xff\x7f\x8c\1b\x94j\xff\xff\xff\x7fh\1\x93."),
          "import@20:os,b;" },
        { PICKLE("Vos\np 1_0 \n0Va\np4294967299\n0h\ng4294967299\n\x93."), "import@42:os,a;" },
        { PICKLE("Vos\np99999999999999999999999\n."), "hidden@4:,;" },
        { PICKLE("g7\n."), "broken@0:,;" }, /* no such entry */
        { PICKLE("g_0\nN."), "broken@0:,;" },
        { PICKLE("Np-1\nN."), "broken@1:,;" },
        { PICKLE("\x82\1\x8c\1a\x93."), "extension@0:,;hidden@5:,a;" },
        { PICKLE("Vos\np7\0x\n0Va\np-0\n0g7\0y\ng-0\n\x93."), "import@27:os,a;" },
        { PICKLE("ctorch.jit._pickle\nrestore_type_tag\n(Vos\nNtRVa\n\x93."), "import@47:os,a;" },
        { PICKLE("ccollections\nCounter\n)RVa\n\x93."), "hidden@26:,a;" },
    };
    expect(examples, sizeof examples / sizeof *examples, false);
}

/* Calls of allowed names with arguments that no writer of tensors uses. */
static void reports_arguments_that_no_writer_uses(void **state)
{
#define DTYPE(type) "\x80\2cnumpy\ndtype\nX\2\0\0\0" type "\x89\x88\x87R"
#define PLAIN_STATE "(K\3X\1\0\0\0<NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xff"
#define ARRAY       "\x80\2cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\0\x85U\1b\x87R"
#define FIELDS(fields) \
    "\x80\2cnumpy\ndtype\nU\3V16\x89\x88\x87R(K\3U\1|NU\1a\x85}(" fields "uK\x10K\1K\x1btb."
    static const example examples[] = {
        { PICKLE(DTYPE("f4") PLAIN_STATE "K\0tb."), "" },
        { PICKLE(DTYPE("O8") PLAIN_STATE "K?tb."), "" },
        { PICKLE(DTYPE("O8") PLAIN_STATE "K\0tb."), "arguments@51:numpy,dtype;" },
        { PICKLE(DTYPE("f4") PLAIN_STATE "K\1tb."), "arguments@51:numpy,dtype;" },
        { PICKLE(DTYPE("V8") "(K\3U\1|NU\1a\x85}U\1a" DTYPE("O8") "K\0\x86sK\x8K\1K\0tb."),
          "arguments@78:numpy,dtype;" },
        { PICKLE(DTYPE("V8") "(K\3U\1|NU\1a\x85}U\1a" DTYPE("O8") "K\0\x86sK\x8K\1K\x1btb."), "" },
        { PICKLE(DTYPE("V8") "(K\3U\1|NU\1a\x85}U\1a" DTYPE("f8") "K\1\x86sK\x8K\1K\0tb."),
          "arguments@78:numpy,dtype;" },
        { PICKLE(DTYPE("f4") PLAIN_STATE "K\0tb" PLAIN_STATE "K\0tb."),
          "arguments@77:numpy,dtype;" },
        { PICKLE("cnumpy\ndtype\nX\2\0\0\0f4\x89\x89\x87R."), "arguments@23:numpy,dtype;" },
        { PICKLE(ARRAY "(K\1K\0\x85" DTYPE("O8") "\x89]tb."), "" },
        { PICKLE(ARRAY "(K\1K\0\x85" DTYPE("O8") "\x89U\0tb."), "arguments@97:numpy,ndarray;" },
        { PICKLE("cnumpy.core.multiarray\n_reconstruct\ncbuiltins\nint\nK\0\x85U\1b\x87R."),
          "arguments@57:numpy.core.multiarray,_reconstruct;" },
        { PICKLE("c_codecs\nencode\nVa\nVlatin1\n\x86R."), "" },
        { PICKLE("c_codecs\nencode\nVa\nVrot13\n\x86R."), "arguments@27:_codecs,encode;" },
        { PICKLE("cnumpy\nndarray\n)R."), "arguments@16:numpy,ndarray;" },
        { PICKLE("cbuiltins\ngetattr\nctorch.distributed.checkpoint.metadata\n"
                 "_MEM_FORMAT_ENCODING\nVTORCH_PRESERVE_FORMAT\n\x86R."),
          "" },
        { PICKLE("cbuiltins\ngetattr\nctorch.distributed.checkpoint.metadata\n"
                 "_MEM_FORMAT_ENCODING\nVmro\n\x86R."),
          "arguments@84:builtins,getattr;" },
        { PICKLE("cbuiltins\ngetattr\nctorch\nTensor\nVT\n\x86R."),
          "arguments@36:builtins,getattr;" },
        { PICKLE("ccollections\nOrderedDict\n)R}U\1aNsb."), "" },
        { PICKLE("ccollections\nOrderedDict\n)R}U\x0c__setstate__Nsb."), "arguments@44:,;" },
        { PICKLE("ccollections\nOrderedDict\n}b."), "arguments@26:collections,OrderedDict;" },
        { PICKLE("cargparse\nNamespace\n)\x81}U\x0c__setstate__Nsb."), "arguments@39:,;" },
        { PICKLE("ccollections\ndefaultdict\ncbuiltins\nlist\n\x85R."), "" },
        { PICKLE("ccollections\ndefaultdict\nctorch\nTensor\n\x85R."),
          "arguments@40:collections,defaultdict;" },
        { PICKLE("cbuiltins\nbytearray\nK\1\x85R."), "arguments@23:builtins,bytearray;" },
        { PICKLE("ctorch.jit._pickle\nbuild_intlist\ncbuiltins\ngetattr\n\x85Rctorch\nTensor\n"
                 "VT\n\x86R."),
          "arguments@71:builtins,getattr;" },
        { PICKLE("ctorch.jit._pickle\nbuild_intlist\n)R."),
          "arguments@34:torch.jit._pickle,build_intlist;" },
        { PICKLE("ccollections\nCounter\n)R)R."), "arguments@24:,;" },
        { PICKLE(FIELDS("U\1a" DTYPE("O8") "K\0\x86U\1b" DTYPE("i8") "K\x8\x86")), "" },
        { PICKLE(FIELDS("U\1a" DTYPE("O8") "K\0\x86U\1b" DTYPE("i8") "K\7\x86")),
          "arguments@109:numpy,dtype;" },
        { PICKLE(FIELDS("U\1b" DTYPE("i8") "K\0\x86U\1a" DTYPE("O8") "K\0\x86")),
          "arguments@109:numpy,dtype;" },
        { PICKLE(FIELDS("U\1a" DTYPE("O8") "q\1K\0U\1b\x87U\1bh\1K\0U\1b\x87")), "" },
        { PICKLE(DTYPE("V2") "(K\3U\1|NU\1a\x85}U\1a" DTYPE("i2") "I00\n\x86sK\2K\1K\0tb."),
          "arguments@80:numpy,dtype;" }, /* Python reads I00 as False, and I010 as 8 */
        { PICKLE("cnumpy.core.numeric\n_frombuffer\n(U\0" DTYPE("u1") "tR(K\0\x85" DTYPE(
              "V8") "\x89U\0tb."),
          "" },
        { PICKLE("cnumpy.core.numeric\n_frombuffer\n(U\0" DTYPE("u1") "tR(K\0\x85" DTYPE(
              "V8") "q\1\x89U\0tbh\1" PLAIN_STATE "K\0tb."),
          "arguments@127:numpy,dtype;" },
    };
    (void)state;
    expect(examples, sizeof examples / sizeof *examples, false);
}

/* Joblib stores the bytes of an array after the opcode that builds its wrapper. */
static void follows_the_opcodes_after_arrays_of_joblib(void **state)
{
#define WRAPPER(shape)                                                                     \
    "\x80\2cjoblib.numpy_pickle\nNumpyArrayWrapper\n)\x81}(U\x08subclasscnumpy\nndarray\n" \
    "U\5dtypecnumpy\ndtype\nU\2u1\x89\x88\x87RU\5shapeK" shape "\x85ub"
    static const char bytes[] = WRAPPER("\x3") "N.N0cos\nsystem\n.";
    char got[MAX_TEXT];
    (void)state;
    assert_true(scan(got, bytes, sizeof bytes - 1, false, false).has_arrays);
    assert_string_equal(got, "");
    assert_true(scan(got, bytes, sizeof bytes - 1, false, true).has_arrays);
    assert_non_null(strstr(got, ":os,system;"));
    static const char wrong[] = WRAPPER("\x3") "N.N0N}b.";
    scan(got, wrong, sizeof wrong - 1, false, true);
    assert_string_equal(got, "");
    static const char unknown[] = "\x80\2cjoblib.numpy_pickle\nNumpyArrayWrapper\n)\x81}b.";
    scan(got, unknown, sizeof unknown - 1, false, true);
    assert_non_null(strstr(got, "arguments@44:joblib.numpy_pickle,NumpyArrayWrapper;"));
}

/* Joblib goes on after the array when the frame ends, and reads no other frame before. */
static void joblib_reads_frames_one_after_the_other(void **state)
{
#define FRAME_OF(length) "\x95" length "\0\0\0\0\0\0\0"
    static const struct {
        const char *in_frame, *after;
        size_t in_frame_bytes, after_bytes;
        bool is_found;
    } rows[] = {
        { "0", "cos\nsystem\n.", 1, 12, true },
        { "0c", "os\nsystem\n.", 2, 11, true },
        { "0cos\n", "system\n.", 5, 8, true },
        { "0" FRAME_OF("\x0c"), "cos\nsystem\n.", 10, 12, true },
        { "0" FRAME_OF("\1") "N", "cos\nsystem\n.", 11, 12, false },
    };
    static const char wrapper[] = WRAPPER("\3");
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char got[MAX_TEXT], bytes[300] = "\x80\4\x95";
        size_t len = sizeof wrapper - 3, at = 11; /* without the protocol and the final zero */
        bytes[3] = (char)(len + rows[i].in_frame_bytes);
        memcpy(bytes + at, wrapper + 2, len);
        memcpy(bytes + (at += len), rows[i].in_frame, rows[i].in_frame_bytes);
        memcpy(bytes + (at += rows[i].in_frame_bytes), "\xff\xff\xff", 3);
        memcpy(bytes + (at += 3), rows[i].after, rows[i].after_bytes);
        scan(got, bytes, at + rows[i].after_bytes, false, true);
        assert_int_equal(strstr(got, ":os,system;") != NULL, rows[i].is_found);
    }
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
        { PICKLE("(Vmodule\nVos\nNNtQVa\n\x93."), "import@20:os,a;" },
        { PICKLE("(C\6moduleVos\nNNtQVa\n\x93."), "arguments@16:,;hidden@20:,a;" },
        { PICKLE("cbuiltins\ntuple\n)RQ."), "arguments@18:,;" },
    };
    expect(examples, sizeof examples / sizeof *examples, false);
}

static void reports_damage_after_the_findings_before(void **state)
{
    (void)state;
    static const example examples[] = {
        { PICKLE(""), "broken@0:,;" },
        { PICKLE("cos\nsystem\n(S'id'\ntR"), "import@0:os,system;broken@20:,;" },
        { PICKLE("cos\nsys"), "import@0:os,sy;broken@7:,;" }, /* Python drops the last byte */
        { PICKLE("cos\n"), "broken@0:,;" },
        { PICKLE("(Va\nios\nsystem!"), "import@4:os,system;broken@15:,;" },
        { PICKLE("Inot a number\nN."), "broken@0:,;" },
        { PICKLE("Fnot a number\nN."), "broken@0:,;" },
        { PICKLE("I 0x7\n0L8L\n0Finf\n0F-.5\n."), "" },
        { PICKLE("I\0x\n0L8\0x\n."), "" }, /* C ends the text at a NUL */
        { PICKLE("L\n."), "broken@0:,;" },
        { PICKLE("\x80\6N."), "broken@0:,;" },
        { PICKLE("N)R."), "broken@2:,;" }, /* N is not a function */
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
    uint64_t end = scan(got, two, sizeof two - 1, false, false).end;
    assert_int_equal(end, 2);
    assert_string_equal(got, "");
    scan(got, two + end, sizeof two - 1 - (size_t)end, false, false);
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
        heft_pickle_scanner s = { .memory = &m, .found = print_finding, .context = got };
        heft_pickle_scanned done;
        assert_int_equal(heft_pickle_scan(&done, &s, bytes, sizeof bytes - 1), HEFT_E_NOMEM);
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
    heft_pickle_scanner s = { .memory = &m, .found = print_finding, .context = got };
    static const char bytes[] = "Nr\xff\xff\xff\x7f.";
    heft_pickle_scanned done;
    assert_int_equal(heft_pickle_scan(&done, &s, bytes, sizeof bytes - 1), HEFT_OK);
    assert_int_equal(done.end, sizeof bytes - 1);
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
        cmocka_unit_test(reports_names_that_the_pickle_hides),
        cmocka_unit_test(reports_arguments_that_no_writer_uses),
        cmocka_unit_test(follows_the_opcodes_after_arrays_of_joblib),
        cmocka_unit_test(joblib_reads_frames_one_after_the_other),
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
