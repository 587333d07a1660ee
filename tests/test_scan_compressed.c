/* test_scan_compressed.c - scans of compressed bytes and archives: headers of each form, limits,
 * codecs that fail, and memory that runs out. */
#include "heft_test.h"

#include <sys/mman.h>
#include <unistd.h>

#include "scan/scan.h"

static const char evil[] = "cos\nsystem\n.";
enum { EVIL = sizeof evil - 1 };

/* ---- bytes ---------------------------------------------------------------------------------- */

typedef struct text { /* bytes that grow */
    uint8_t *p;
    size_t len;
} text;

static void put(text *t, const void *bytes, size_t len)
{
    t->p = realloc(t->p, t->len + len + 1);
    assert_non_null(t->p);
    if (len)
        memcpy(t->p + t->len, bytes, len);
    t->len += len;
}

static void put_number(text *t, uint32_t v, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        put(t, &(uint8_t){ (uint8_t)(v >> 8 * i) }, 1);
}

static void put_zeros(text *t, size_t len)
{
    uint8_t *zeros = calloc(len + 1, 1);
    put(t, zeros, len);
    free(zeros);
}

/* Deflate without compression. */
static void put_deflated(text *t, const void *bytes, size_t len)
{
    const uint8_t *p = bytes;
    for (size_t at = 0, n; at < len || !len; at += n) {
        n = len - at < 65535 ? len - at : 65535;
        put(t, &(uint8_t){ at + n == len }, 1);
        put_number(t, (uint32_t)n, 2);
        put_number(t, (uint32_t)~n, 2);
        put(t, p + at, n);
        if (!len)
            break;
    }
}

static void put_gzip(text *t, uint8_t flags, const void *bytes, size_t len)
{
    put(t, "\x1F\x8B\x08", 3);
    put(t, &flags, 1);
    put_zeros(t, 6);
    if (flags & 4)
        put(t, "\5\0extra", 7);
    if (flags & 8)
        put(t, "name", 5);
    if (flags & 16)
        put(t, "comment", 8);
    if (flags & 2)
        put(t, "\1\2", 2);
    put_deflated(t, bytes, len);
    put_zeros(t, 8);
}

static void put_tar(text *t, const char *name, char type, const void *bytes, size_t len)
{
    uint8_t head[512] = { 0 };
    unsigned sum = 0;
    memcpy(head, name, strlen(name));
    memcpy(head + 100, "0000644", 7);
    snprintf((char *)head + 124, 12, "%011zo", len);
    memset(head + 148, ' ', 8);
    head[156] = (uint8_t)type;
    memcpy(head + 257, "ustar\00000", 8);
    for (size_t i = 0; i < sizeof head; i++)
        sum += head[i];
    snprintf((char *)head + 148, 8, "%06o", sum);
    put(t, head, sizeof head);
    put(t, bytes, len);
    put_zeros(t, (512 - len % 512) % 512);
}

/* A header of tar, perhaps without a magic, that states more bytes than there are. */
static void put_odd_header(text *t, bool has_magic)
{
    uint8_t header[512] = "name";
    char sum[8];
    uint32_t total = 8 * ' ';
    memcpy(header + 124, "7777", 4);
    memcpy(header + 257, "ustar", has_magic ? 5 : 0);
    for (size_t i = 0; i < sizeof header; i++)
        total += header[i];
    snprintf(sum, sizeof sum, "%06o", (unsigned)total);
    memcpy(header + 148, sum, 7);
    put(t, header, sizeof header);
}

/* A local header and the stored bytes, without a directory. */
static void put_member(text *t, const char *name, uint16_t flags, uint16_t method,
                       const void *bytes, size_t len)
{
    put(t, "PK\3\4\0\0", 6);
    put_number(t, flags, 2);
    put_number(t, method, 2);
    put_zeros(t, 8);
    put_number(t, (uint32_t)len, 4);
    put_number(t, (uint32_t)len, 4);
    put_number(t, (uint32_t)strlen(name), 4);
    put(t, name, strlen(name));
    put(t, bytes, len);
}

static void put_end(text *t)
{
    put(t, "PK\5\6", 4);
    put_zeros(t, 18);
}

/* ---- scans ---------------------------------------------------------------------------------- */

typedef struct findings {
    char text[600];
    heft_scan_result result;
} findings;

static void note(void *ctx, const heft_scan_finding *f)
{
    findings *to = ctx;
    size_t at = strlen(to->text);
    const char *kind = strstr(f->rule, "unreadable") ? f->text : f->rule;
    snprintf(to->text + at, sizeof to->text - at, "%.*s %s;", (int)f->member.len,
             f->member.len ? f->member.ptr : "", kind);
}

static heft_status scan(findings *out, const void *bytes, size_t len, const char *name,
                        const heft_host *host, heft_error *err)
{
    heft_source *s;
    heft_scan_options o = HEFT_SCAN_OPTIONS_INIT;
    *out = (findings){ .text = "" };
    o.on_finding = note;
    o.ctx = out;
    o.host = host;
    o.name = name;
    heft_assert_ok(heft_source_open_memory(&s, bytes, len, err), err);
    heft_status st = heft_source_scan(&out->result, s, &o, err);
    heft_source_close(s);
    return st;
}

/* Scan and free the bytes; `words` is a part of the findings, "" if there are none. */
static void assert_scan(text *t, const char *name, const char *words)
{
    heft_error err;
    findings found;
    heft_bytes exact = heft_test_copy(t->p, t->len);
    heft_assert_ok(scan(&found, exact.p, exact.len, name, NULL, &err), &err);
    if (*words ? !strstr(found.text, words) : *found.text)
        fail_msg("%s: found \"%s\", not \"%s\"", name, found.text, words);
    heft_test_free(&exact);
    free(t->p);
    *t = (text){ NULL, 0 };
}

#define IMPORT  " pickle/import;"
#define UNKNOWN " is an array of unknown length"

/* ---- headers -------------------------------------------------------------------------------- */

static void reads_gzip_headers_of_each_form(void **state)
{
    text t = { NULL, 0 };
    (void)state;
    for (unsigned flags = 0; flags < 32; flags++) {
        put_gzip(&t, (uint8_t)flags, evil, EVIL);
        assert_scan(&t, "m.gz", IMPORT);
    }
    put_gzip(&t, 0, "", 0);
    put_gzip(&t, 0, evil, EVIL); /* the second member follows the first */
    assert_scan(&t, "m.gz", IMPORT);
    put_gzip(&t, 0, evil, 4);
    put_gzip(&t, 31, evil + 4, EVIL - 4); /* decoded bytes are joined */
    assert_scan(&t, "m.gz", IMPORT);
    put_gzip(&t, 0, "", 0);
    put(&t, evil, EVIL); /* the garbage is ignored, like in gzip */
    assert_scan(&t, "m.gz", "");
}

/* The byte after the header is damage that the decoder notices. */
static void a_header_that_is_cut_is_not_gzip(void **state)
{
    static const struct {
        uint8_t flags;
        size_t header, size;
        const char *words;
    } rows[] = {
        { 0, 10, 11, "" },  { 0, 10, 12, "is compressed, and damaged" },
        { 4, 17, 17, "" },  { 4, 17, 18, "is compressed, and damaged" },
        { 8, 15, 15, "" },  { 8, 15, 16, "is compressed, and damaged" },
        { 18, 20, 20, "" }, { 18, 20, 21, "is compressed, and damaged" },
    };
    text t = { NULL, 0 };
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(rows); i++) {
        put_gzip(&t, rows[i].flags, evil, EVIL);
        memset(t.p + rows[i].header, 7, t.len - rows[i].header);
        t.len = rows[i].size;
        assert_scan(&t, "m", rows[i].words);
    }
    put(&t, "\x1F\x8B\x08\x08 beginning without an end", 30); /* the name has no end */
    assert_scan(&t, "m", "");
    put(&t, "\x1F\x8B\x08\x04zzzzzz\xFF\xFF", 12);
    assert_scan(&t, "m", "");
}

static void reads_zlib_headers(void **state)
{
    static const struct {
        const char *head;
        const char *words;
    } rows[] = {
        { "\x78\x01", IMPORT }, { "\x78\x9C", IMPORT },
        { "\x78\x9D", "" }, /* a wrong check of the header */
        { "\x78\x20", "" }, /* a dictionary, and a check that holds */
        { "\x79\x01", "" },
    };
    text t = { NULL, 0 };
    (void)state;
    assert_int_equal((0x78 << 8 | 0x20) % 31, 0);
    for (size_t i = 0; i < HEFT_COUNT(rows); i++) {
        put(&t, rows[i].head, 2);
        put_deflated(&t, evil, EVIL);
        put_zeros(&t, 4);
        assert_scan(&t, "m.z", rows[i].words);
    }
    for (size_t blanks = 15; blanks < 19; blanks++) { /* joblib: 21 or 22 bytes precede zlib */
        put(&t, "ZF0x20                  ", 6 + blanks);
        put(&t, "\x78\x9C", 2);
        put_deflated(&t, evil, EVIL);
        assert_scan(&t, "m.pkl", blanks == 15 || blanks == 16 ? IMPORT : "");
    }
    put(&t, "ZF0x20               \x78", 22);
    assert_scan(&t, "m.pkl", "");
    put(&t, "\x78\x9C\x07", 3); /* damaged, but any bytes may begin so */
    assert_scan(&t, "m.z", "");
    put(&t, "\x78\x9C", 2);
    assert_scan(&t, "m.z", "");
}

static void names_compression_that_cannot_be_searched(void **state)
{
    static const struct {
        const char *magic;
        size_t len;
        const char *words;
    } rows[] = {
        { "BZh91AY&SY", 10, "compressed with bzip2," },
        { "BZh91AY&SX", 10, "" },
        { "BZh91AY&S", 9, "" },
        { "\xFD\x37zXZ\0", 6, "compressed with xz," },
        { "\x5D\0\0\1\2\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF", 13, "compressed with lzma," },
        { "7z\xBC\xAF\x27\x1C", 6, "compressed with 7z," },
        { "\x04\x22\x4D\x18", 4, "compressed with lz4," },
        { "Rar!\x1A\x07", 6, "compressed with rar," },
    };
    text t = { NULL, 0 };
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(rows); i++) {
        put(&t, rows[i].magic, rows[i].len);
        assert_scan(&t, "m", rows[i].words);
    }
}

/* ---- how much is unpacked ------------------------------------------------------------------- */

/* A pickle with an import after `before` bytes. */
static void put_late_import(text *t, const char *beginning, size_t before)
{
    put(t, beginning, strlen(beginning));
    put(t, "X", 1);
    put_number(t, (uint32_t)before, 4);
    put_zeros(t, before);
    put(t, "0", 1);
    put(t, evil, EVIL);
}

static void unpacks_small_files_and_pickles_as_a_whole(void **state)
{
    enum { LATE = 100000, WHOLE = 1 << 20 };
    static const struct {
        const char *name;
        size_t size; /* size of the compressed file */
        const char *beginning;
        const char *words;
    } rows[] = {
        { "m.gz", WHOLE, "", IMPORT },
        { "m.gz", WHOLE + 1, "", IMPORT }, /* a loader would read on */
        { "m.gz", WHOLE + 1, "\xFF", "" }, /* a loader fails at once */
        { "m.gz", WHOLE + 1, "\x80\x02", IMPORT },
        { "m.pkl", WHOLE + 1, "", IMPORT },
        { "m.pkl.gz", WHOLE + 1, "", IMPORT },
        { "m.txt.gz", WHOLE + 1, "N", IMPORT },
        { "m.txt.gz", WHOLE + 1, "text", "" },
    };
    text t = { NULL, 0 };
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(rows); i++) {
        text late = { NULL, 0 };
        put_late_import(&late, rows[i].beginning, LATE);
        put_gzip(&t, 0, late.p, late.len);
        put_zeros(&t, rows[i].size - t.len);
        assert_scan(&t, rows[i].name, rows[i].words);
        free(late.p);
    }
}

static bool wants_all(const void *head, size_t size)
{
    heft_memory m = { .al = heft_host_default()->allocator, .limit = UINT64_MAX };
    heft_scan s = { .host = heft_host_default(), .mem = m };
    bool wants;
    assert_int_equal(heft_scan_wants_all(&wants, &s, head, size), HEFT_OK);
    return wants;
}

static void unpacks_what_begins_like_a_pickle_or_an_archive(void **state)
{
    static const uint8_t npy[80] = "\x93NUMPY\1\0\x40\0{'descr': '<f4'}";
    text tar = { NULL, 0 }, zip = { NULL, 0 };
    (void)state;
    put_tar(&tar, "a", '0', "x", 1);
    put_member(&zip, "a", 0, 0, "x", 1);
    assert_true(wants_all("\x80\x02N.", 4)); /* a pickle may follow */
    assert_false(wants_all("\x80\x02.", 3)); /* broken */
    assert_true(wants_all("\x80\x05", 2));
    assert_false(wants_all("\x80\x06", 2));
    assert_true(wants_all("\x80", 1)); /* the bytes end within the opcode */
    assert_false(wants_all("\x81\x02", 2));
    assert_true(wants_all(tar.p, tar.len));
    assert_false(wants_all(tar.p, 100));
    assert_true(wants_all(zip.p, zip.len));
    assert_true(wants_all(npy, sizeof npy)); /* another array may follow */
    free(tar.p);
    free(zip.p);
}

/* ---- members -------------------------------------------------------------------------------- */

static void searches_members_of_archives(void **state)
{
    text t = { NULL, 0 }, packed = { NULL, 0 };
    (void)state;
    put_deflated(&packed, evil, EVIL);
    put_member(&t, "a.bin", 0, 8, packed.p, packed.len);
    assert_scan(&t, "m.zip", "a.bin" IMPORT);
    put_member(&t, "a.bin", 1, 0, evil, EVIL);
    assert_scan(&t, "m.zip", "a.bin is encrypted, or claims to be;a.bin" IMPORT);
    put_member(&t, "a.bin", 0, 12, evil, EVIL);
    assert_scan(&t, "m.zip", "a.bin is compressed by a method that cannot be searched;");
    put_member(&t, "a.bin", 0, 12, "", 0);
    assert_scan(&t, "m.zip", "");
    put_member(&t, "a.bin", 0, 8, "\x07", 1);
    assert_scan(&t, "m.zip", "a.bin is compressed, and damaged");
    put_tar(&t, "dir/", '5', "", 0);
    put_tar(&t, "a", '0', evil, EVIL);
    assert_scan(&t, "m.tar", "a" IMPORT);
    put_tar(&t, "a", '2', evil, 0); /* a link has no content */
    put_tar(&t, "b.pkl", '0', "zz", 2);
    put(&t, "damage", 6);
    put_zeros(&t, 506);
    assert_scan(&t, "m.tar", "is a damaged tar archive");
    for (int has_magic = 0; has_magic < 2; has_magic++) { /* one of many blocks has a right sum */
        put(&t, "a picture", 9);
        put_zeros(&t, 503);
        put_odd_header(&t, has_magic);
        assert_scan(&t, "m.png", has_magic ? "is a damaged tar archive" : "");
    }
    free(packed.p);
}

/* Loading TorchScript runs the methods __setstate__ of its code. */
static void code_of_torchscript_reaches_no_files(void **state)
{
    static const struct {
        const char *code, *words;
    } rows[] = {
        { "torch.save(x, \"a\")", "m/code/a.py pickle/script;" },
        { "ops.aten.from_file(a)", "pickle/script" },
        { "t = torch; t . \\\n save(x)", "pickle/script" },
        { "getattr(torch, \"save\")(x)", "pickle/script" },
        { "ops.image.write_file(a)", "pickle/script" },
        { "getattr(torch, \"s\\141v\\145\")(x)", "pickle/script" },
        { "getattr(torch, 'sa' # \"\n 've')(x)", "pickle/script" },
        { "(torch . # \\'\n # \"\n save)(x)", "pickle/script" },
        { "\"\\\"\"; getattr(torch, \"save\")(x)", "pickle/script" },
        { "# \"\\\"\ntorch.save", "pickle/script" },
        { "\"\\143ave\"", "" },
        { "('sa', 've')", "" },
        { "\"sa\\\"\"", "" },
        { "x. # y\ny.save2", "" },
        { "\"sa\\", "" },
        { "torch.sa", "" },
        { "torch.conv2d(x).saved.resave", "" },
        { "raise(\"save the model\")", "" },
        { "save(x)", "" },
        { "(save)", "" },
        { "x.sav", "" },
    };
    text t = { NULL, 0 };
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(rows); i++)
        for (int is_script = 0; is_script < 2; is_script++) {
            put_member(&t, is_script ? "m/constants.pkl" : "m/constant.pkl", 0, 0, "\x80\2).", 4);
            put_member(&t, "m/code/a.py", 0, 0, rows[i].code, strlen(rows[i].code));
            assert_scan(&t, "m.pt", is_script ? rows[i].words : "");
        }
}

/* Readers of zip look for the directory at the end; other bytes may precede the first member. */
/* torch.package runs the modules of an archive that its pickles import. */
static void code_of_packages_is_a_finding(void **state)
{
    text t = { NULL, 0 };
    (void)state;
    for (int is_package = 0; is_package < 2; is_package++) {
        put_member(&t, is_package ? "m/.data/extern_modules" : "m/extern_modules", 0, 0, "\n", 1);
        put_member(&t, "m/collections.py", 0, 0, "1", 1);
        assert_scan(&t, "m.pt", is_package ? "m/collections.py pickle/script;" : "");
    }
}

static void bytes_with_a_directory_are_an_archive(void **state)
{
    text t = { NULL, 0 };
    (void)state;
    for (int has_end = 0; has_end < 2; has_end++) {
        put(&t, "text", 4);
        put_member(&t, "z", 0, 0, evil, EVIL);
        if (has_end)
            put_end(&t);
        assert_scan(&t, "m", has_end ? "z" IMPORT : "");
    }
}

static void imports_have_names_of_python(void **state)
{
    static const struct {
        const char *module;
        bool is_name;
    } rows[] = {
        { "ab", true },  { "az", true },  { "aA", true },  { "aZ", true },  { "a0", true },
        { "a9", true },  { "a_", true },  { "_a", true },  { "a.b", true }, { ".a", true },
        { "za", true },  { "Za", true },  { "Aa", true },  { "0a", false }, { "9a", false },
        { "a`", false }, { "a{", false }, { "a@", false }, { "a[", false }, { "a/", false },
        { "a:", false }, { "a-", false }, { "a^", false },
    };
    text t = { NULL, 0 };
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(rows); i++) {
        char import[40];
        snprintf(import, sizeof import, "c%s\nname\n.", rows[i].module);
        put(&t, import, strlen(import));
        assert_scan(&t, "m", rows[i].is_name ? IMPORT : "");
        snprintf(import, sizeof import, "cmodule\n%s\n.", rows[i].module);
        put(&t, import, strlen(import));
        assert_scan(&t, "m", rows[i].is_name ? IMPORT : "");
    }
}

static void lists_of_words_import_nothing(void **state)
{
    static const struct {
        const char *content, *words;
    } rows[] = {
        { "cat\ndog\n", "" },
        { "cat\ndog\nbird\n", "" },
        { "config.json\ntokenizer.json\nRabbit\n", "" },
        { "cos\nsystem\nelephant\n", IMPORT }, /* a module that exists */
        { "cat\ndog\n.", IMPORT },
        { "cat\ndog\n)R!", IMPORT },
        { "cat\ndog\nNb!", IMPORT },
        { "cat\ndog\nNa!", IMPORT },
        { "cat\ndog\n(Ne!", IMPORT },
        { "cat\ndog\nNNs!", IMPORT },
        { "cat\ndog\n(NNu!", IMPORT },
        { "(icat\ndog\n!", IMPORT },
        { "\x80\2cat\ndog\n!", IMPORT },
    };
    text t = { NULL, 0 };
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(rows); i++) {
        put(&t, rows[i].content, strlen(rows[i].content));
        assert_scan(&t, "labels.txt", rows[i].words);
    }
}

static void names_of_imports_have_any_length(void **state)
{
    text t = { NULL, 0 };
    char name[260];
    (void)state;
    for (size_t len = 200; len < 202; len++) {
        snprintf(name, sizeof name, "cab\n%0*d\n.", (int)len, 0);
        memset(name + 4, 'Z', len);
        put(&t, name, strlen(name));
        assert_scan(&t, "m", IMPORT);
    }
    put(&t, "ca\nb\n.", 6); /* modules have two letters at least */
    assert_scan(&t, "m", "");
    put(&t, "cab\n\n.", 6);
    assert_scan(&t, "m", "");
}

/* Files named .bin and .ckpt are pickles if the first bytes are a beginning of a pickle. */
static void shared_suffixes_promise_a_pickle_only_with_its_beginning(void **state)
{
    static const char broken[] = "\x80\x02K\1\xFF";
    static const struct {
        const char *name, *bytes, *words;
    } rows[] = {
        { "m.pkl", broken, "pickle/" },
        { "m.bin", broken, "pickle/" },
        { "m.ckpt", broken, "pickle/" },
        { "m.dat", broken, "" },
        { "m.dat", "\x80\x02\x82\1.", "pickle/extension" },
        { "m.dat", "\x80\x02\x82\1\xFF", "pickle/extension" },
        { "m.dat", "\x82\1\xFF", "" }, /* broken, and without a protocol: perhaps not a pickle */
        { "m.bin", "K\1\xFF", "" },
        { "m.pkl", "K\1\xFF", "pickle/" },
    };
    text t = { NULL, 0 };
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(rows); i++) {
        put(&t, rows[i].bytes, strlen(rows[i].bytes));
        assert_scan(&t, rows[i].name, rows[i].words);
    }
}

/* The data of an array of objects are a pickle, whatever the bytes are. */
static void arrays_of_objects_are_pickles(void **state)
{
    static const struct {
        const char *descr, *words;
    } rows[] = { { "'|O'", "pickle/" }, { "\"|O\"", "pickle/" }, { "'object'", "pickle/" },
                 { "'<f4'", UNKNOWN },  { "'O4'", "pickle/" },   { "'obj'", UNKNOWN } };
    text t = { NULL, 0 };
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(rows); i++)
        for (uint8_t version = 1; version < 3; version++) {
            char head[65];
            memset(head, ' ', sizeof head);
            memcpy(head, rows[i].descr, strlen(rows[i].descr));
            put(&t, "\x93NUMPY", 6);
            put_number(&t, version, 2);
            put_number(&t, 64, version == 1 ? 2 : 4);
            put(&t, head, 64);
            put(&t, "K\1\xFF", 3); /* a broken pickle */
            assert_scan(&t, "m.npy", rows[i].words);
        }
    put(&t, "\x93NUMPY\1\0\xFF\xFF'|O'", 14); /* the header ends after the file */
    assert_scan(&t, "m.npy", "");
    put(&t, "\x93NUMPY\1\0\0", 9);
    assert_scan(&t, "m.npy", "");
}

/* numpy.load() reads the arrays of a file one after the other; other programs unpickle the rest. */
static void what_follows_an_array_is_scanned(void **state)
{
    static const struct {
        const char *head;
        bool is_found;
    } rows[] = {
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }  \n", true },
        { "{'descr': '|S2', 'fortran_order': True, 'shape': (12,), }\n", true },
        { "{'descr': '<U3', 'fortran_order': False, 'shape': (2,), }\n", true },
        { "{'descr': '|V24', 'fortran_order': False, 'shape': (), }\n", true },
        { "{'shape':(3L,),'fortran_order':False,\"descr\":\"f8\"}", true },
        { "{'descr': '<M8[ns]', 'fortran_order': False, 'shape': (3,), }\n", true },
        { "{'descr': [('a', '<f4'), ('b', '|u1', (2, 2))], 'fortran_order': True, 'shape': (3,)}",
          true },
        { "{'descr': [(('t', 'a'), [('b', '<f2'), ('c', '<u2')], (2,)), ('d', '<f4')], "
          "'fortran_order': True, 'shape': (2,)}",
          true },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (7,), }\n", false },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (6,), 'shape': (0,), }\n", false },
        { "{'descr': '<f99999999999999999999', 'fortran_order': False, 'shape': (6,), }\n", false },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (6, }\n", false },
        { "{'descr': '<f4', 'shape': (6,), }\n", false },
        { "{'descr': '<f4', 'fortran_order': 0, 'shape': (6,), }\n", false },
        { "{'descr': '<f4', 'fortran_order': True, 'shape': (6,), 'x': 1}\n", false },
        { "{'descr': '<f4[1]', 'fortran_order': True, 'shape': (6,)}\n", false },
        { "{'descr': 'g4', 'fortran_order': True, 'shape': (6,)}\n", false },
        { "{'descr': [], 'fortran_order': True, 'shape': (6,)}\n", false },
        { "{'descr': [('a', '<f4'], 'fortran_order': True, 'shape': (6,)}\n", false },
        { "{'descr': [('a', [('a', [('a', [('a', [('a', [('a', [('a', [('a', [('a', "
          "'<f4')])])])])])"
          "])])])], 'fortran_order': True, 'shape': (6,)}\n",
          false },
        { "{'descr': '<f4', 'fortran_order': True, 'shape': (6,)} # text\n", false },
    };
    text t = { NULL, 0 };
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(rows); i++)
        for (int has_head = 0; has_head < 2; has_head++) {
            put(&t, "\x93NUMPY\1\0", 8);
            put_number(&t, (uint32_t)strlen(rows[i].head), 2);
            put(&t, rows[i].head, strlen(rows[i].head));
            put_zeros(&t, 24);
            if (has_head)
                put(&t, "\x93NUMPY\1\0\4\0'O8'", 14);
            put(&t, evil, EVIL);
            bool is_past = strstr(rows[i].head, "(7,)"); /* the array ends within what follows */
            bool is_odd = !rows[i].is_found && !is_past;
            const char *odd = has_head ? IMPORT : UNKNOWN;
            assert_scan(&t, "m.npy", rows[i].is_found ? IMPORT : is_odd ? odd : "");
        }
}

/* Python takes a frame as a whole, in which the pickle may end early. */
static void pickles_follow_a_frame_that_goes_on(void **state)
{
    static const struct {
        const char *frame;
        bool is_found;
    } rows[] = { { "N.\xFF\xFF\xFF", true }, { "N\xFF\xFF\xFF\xFF", false } };
    text t = { NULL, 0 };
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(rows); i++) {
        put(&t, "\x80\4\x95\5\0\0\0\0\0\0\0", 11);
        put(&t, rows[i].frame, 5);
        put(&t, evil, EVIL);
        assert_scan(&t, "m", rows[i].is_found ? IMPORT : "");
    }
}

/* The array itself is not kept, and is not part of what memory allows. */
static void what_follows_a_compressed_array_is_scanned(void **state)
{
    enum { LARGE = 3 << 20 };
    static const struct {
        const char *shape, *words;
        size_t cut;
    } rows[] = {
        { "(3145728,)", IMPORT, 0 },
        { "(3145729,)", "", 0 },
        { "(3000000,)", "", 0 },
        { "(3145728,)", "damaged", EVIL + 8 },
        { "(3145728,)", "damaged", LARGE / 2 },
        { "(9999999999999,)", "", 0 },
    };
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(rows); i++) {
        char head[80];
        int len = snprintf(head, sizeof head,
                           "{'descr': '|i1', 'fortran_order': False, 'shape': %s, }\n",
                           rows[i].shape);
        text t = { NULL, 0 }, content = { NULL, 0 };
        put(&content, "\x93NUMPY\1\0", 8);
        put_number(&content, (uint32_t)len, 2);
        put(&content, head, (size_t)len);
        put_zeros(&content, LARGE);
        put(&content, evil, EVIL);
        put_gzip(&t, 0, content.p, content.len);
        t.len -= rows[i].cut;
        assert_scan(&t, "m", rows[i].words);
        free(content.p);
    }
}

/* In tar archives of early PyTorch, numbers follow the pickles of two members. */
static void pickles_follow_the_numbers_of_early_pytorch(void **state)
{
#define FLOATS "ctorch\nFloatStorage\n"
#define TWO    "\2\0\0\0\0\0\0\0"
    static const struct {
        const char *name, *pickle, *words;
        const char numbers[9];
        size_t zeros;
    } rows[] = {
        { "storages", FLOATS ".", IMPORT, TWO, 8 },
        { "storages", FLOATS ".", "", TWO, 7 },
        { "other", FLOATS ".", "", TWO, 8 },
        { "storages", FLOATS "ctorch\nLongStorage\n0.", "cannot be followed", TWO, 8 },
        { "tensors", "K\1.", IMPORT, TWO, 2 * 16 + 8 },
        { "tensors", "K\1.", "", TWO, 16 + 8 },
        { "tensors", "K\1.", "", "\xff\xff\xff\xff\xff\xff\xff\xff", 40 },
        { "storages", FLOATS ".", "", "\xff\xff\xff\xff\xff\xff\xff\xff", 40 },
    };
    text t = { NULL, 0 };
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(rows); i++) {
        put(&t, "K\2.", 3);
        put(&t, rows[i].pickle, strlen(rows[i].pickle));
        put(&t, rows[i].numbers, 8);
        put_zeros(&t, rows[i].zeros);
        put(&t, evil, EVIL);
        assert_scan(&t, rows[i].name, rows[i].words);
    }
}

static void counts_pickles(void **state)
{
    static const struct {
        const char *bytes;
        size_t len;
        uint64_t pickles;
    } rows[] = {
        { "\x80\x02N.", 4, 1 },
        { "\x80\x02.", 3, 0 }, /* broken: there is nothing to return */
        { "\x80\x02N.\x80\x02N.", 8, 2 },
        { "N.", 2, 0 },
    };
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(rows); i++) {
        heft_error err;
        findings found;
        heft_assert_ok(scan(&found, rows[i].bytes, rows[i].len, "m", NULL, &err), &err);
        assert_int_equal(found.result.pickles, rows[i].pickles);
    }
}

/* ---- hosts that fail ------------------------------------------------------------------------ */

static heft_status codec_status; /* result of open or decode */
static bool codec_opens;

static heft_status test_open(void **state, uint64_t decoded, heft_error *err)
{
    (void)decoded;
    *state = codec_opens ? &codec_opens : NULL;
    if (codec_opens)
        return HEFT_OK;
    *err = (heft_error){ .status = codec_status, .message = "the codec does not open" };
    return codec_status;
}

static heft_status test_decode(void *state, const void *in, size_t *in_len, void *out,
                               size_t *out_len, bool *whole, heft_error *err)
{
    (void)state, (void)in, (void)out;
    *in_len = *out_len = 0;
    *whole = false;
    *err = (heft_error){ .status = codec_status, .message = "the codec fails" };
    return codec_status;
}

static void test_close(void *state)
{
    assert_ptr_equal(state, &codec_opens);
}

static void reports_codecs_that_fail(void **state)
{
    static const heft_codec codec = { .size = sizeof codec,
                                      .encoding = HEFT_DEFLATE,
                                      .name = "test",
                                      .open = test_open,
                                      .decode = test_decode,
                                      .close = test_close };
    static const heft_codec *const codecs[] = { &codec, NULL }, *const none[] = { NULL };
    static const struct {
        bool opens;
        heft_status codec, st;
        const char *words;
    } rows[] = {
        { false, HEFT_E_NOMEM, HEFT_E_NOMEM, "" },
        { false, HEFT_E_LIMIT, HEFT_E_LIMIT, "" },
        { true, HEFT_E_NOMEM, HEFT_E_NOMEM, "" },
        { true, HEFT_E_FORMAT, HEFT_OK, "is compressed, and damaged" },
        { true, HEFT_OK, HEFT_OK, "" }, /* neither takes nor makes a byte: ends */
    };
    heft_host host = *heft_host_default();
    heft_error err;
    findings found;
    text t = { NULL, 0 };
    (void)state;
    put_gzip(&t, 0, evil, EVIL);
    host.codecs = codecs;
    for (size_t i = 0; i < HEFT_COUNT(rows); i++) {
        codec_opens = rows[i].opens;
        codec_status = rows[i].codec;
        heft_assert_status(scan(&found, t.p, t.len, "m", &host, &err), rows[i].st, &err);
        if (!rows[i].st)
            assert_non_null(strstr(found.text, rows[i].words));
    }
    host.codecs = none;
    heft_assert_ok(scan(&found, t.p, t.len, "m", &host, &err), &err);
    assert_non_null(strstr(found.text, "compressed with gzip, which cannot be searched here"));
    free(t.p);
}

typedef enum shape { NESTED, TAR, GZIP_AND_ZIP, NPY, TWO_MEMBERS, SHAPES } shape;

static void put_everything(text *t, shape how)
{
    if (how == TAR) {
        put_tar(t, "b", '0', evil, EVIL);
        put_tar(t, "c", '0', evil, EVIL);
        return;
    }
    if (how == TWO_MEMBERS) {
        put_gzip(t, 0, evil, EVIL);
        put_gzip(t, 0, evil, EVIL);
        return;
    }
    if (how == NPY) {
        static const char head[] = "{'descr': 'O', 'fortran_order': False, 'shape': (1,)}";
        put(t, "\x93NUMPY\1\0", 8);
        put_number(t, sizeof head - 1, 2);
        put(t, head, sizeof head - 1);
        put(t, evil, EVIL);
        return;
    }
    if (how == GZIP_AND_ZIP) { /* both at once, for different readers */
        put_gzip(t, 0, evil, EVIL);
        put_member(t, "z", 0, 0, evil, EVIL);
        put_end(t);
        return;
    }
    text packed = { NULL, 0 }, tar = { NULL, 0 }, inner = { NULL, 0 };
    put_tar(&tar, "b", '0', evil, EVIL);
    put_tar(&tar, "c", '0', evil, EVIL);
    put_gzip(&inner, 0, tar.p, tar.len);
    put_deflated(&packed, inner.p, inner.len);
    put_member(t, "d", 0, 8, packed.p, packed.len);
    put_member(t, "e", 0, 0, evil, EVIL);
    free(packed.p);
    free(tar.p);
    free(inner.p);
}

/* Forward to a source in memory, but without a mapping. */
typedef struct unmapped {
    heft_source base;
    const uint8_t *bytes;
} unmapped;

static heft_status unmapped_read(heft_source *s, uint64_t off, void *buf, size_t len,
                                 heft_error *err)
{
    (void)err;
    memcpy(buf, ((const unmapped *)s)->bytes + off, len);
    return HEFT_OK;
}

static void unmapped_close(heft_source *s)
{
    (void)s;
}

static void reports_each_failed_allocation(void **state)
{
    static const heft_source_ops ops = { .size = sizeof(heft_source_ops),
                                         .read = unmapped_read,
                                         .close = unmapped_close };
    heft_test_memory m;
    findings found;
    (void)state;
    static const char *const wanted[] = { "d!/c" IMPORT "d!/b" IMPORT "e" IMPORT,
                                          "c" IMPORT "b" IMPORT, "z" IMPORT IMPORT, IMPORT,
                                          IMPORT IMPORT };
    for (int how = 0; how < SHAPES; how++) {
        heft_status st = HEFT_E_NOMEM;
        text t = { NULL, 0 };
        put_everything(&t, (shape)how);
        for (uint32_t at = 1; st; at++) {
            heft_error err;
            heft_scan_options o = HEFT_SCAN_OPTIONS_INIT;
            unmapped source = { { &ops, t.len }, t.p };
            found = (findings){ .text = "" };
            heft_test_memory_init(&m, at);
            o.host = &m.host;
            o.on_finding = note;
            o.ctx = &found;
            st = heft_source_scan(NULL, &source.base, &o, &err);
            heft_assert_all_freed(&m);
            heft_assert_status(st, atomic_load(&m.calls) < at ? HEFT_OK : HEFT_E_NOMEM, &err);
        }
        assert_string_equal(found.text, wanted[how]);
        free(t.p);
    }
}

/* The decoded bytes are at most half of the memory and a third of the work that are left. */
static void unpacks_as_much_as_memory_and_work_allow(void **state)
{
    static const struct {
        uint64_t memory, work, size;
    } rows[] = { { 1000000, 600000, 200000 }, { 400000, 1000000, 200000 } };
    text t = { NULL, 0 }, late = { NULL, 0 };
    (void)state;
    put_late_import(&late, "", 300000);
    put_gzip(&t, 0, late.p, late.len);
    for (size_t i = 0; i < HEFT_COUNT(rows); i++) {
        heft_scan_decoded d = { 0 };
        heft_error err;
        heft_scan s = { .host = heft_host_default(), .work = rows[i].work, .err = &err };
        bool is_found;
        s.mem = (heft_memory){ .al = s.host->allocator, .limit = rows[i].memory };
        s.pieces = (heft_vec){ 0 };
        heft_scan_piece p = { .bytes = t.p, .size = t.len, .name = HEFT_STR("m.pkl") };
        heft_assert_ok(heft_scan_compressed(&s, &p, &is_found), &err);
        assert_true(is_found);
        p = *(heft_scan_piece *)s.pieces.ptr;
        s.mem.used = 0; /* without the memory of the list */
        heft_assert_ok(heft_scan_unpack(&d, &s, &p), &err);
        assert_int_equal(d.size, rows[i].size);
        assert_true(s.work <= rows[i].work - 2 * rows[i].size); /* decoded and encoded bytes */
        assert_int_equal(s.result.findings, 1);
        heft_scan_free(&s, &d);
        s.mem.used += s.pieces.cap * sizeof(heft_scan_piece);
        heft_vec_free(&s.mem, &s.pieces, sizeof(heft_scan_piece));
    }
    free(t.p);
    free(late.p);
}

static void wrong_sources_and_hosts_are_refused(void **state)
{
    static const heft_source_ops ops = { .size = 1 };
    heft_source source = { &ops, 5 };
    heft_host host = *heft_host_default();
    heft_scan_options o = HEFT_SCAN_OPTIONS_INIT;
    heft_error err;
    (void)state;
    heft_assert_status(heft_source_scan(NULL, &source, NULL, &err), HEFT_E_ARGUMENT, &err);
    host.size = 1;
    o.host = &host;
    heft_assert_status(heft_source_scan(NULL, &source, &o, &err), HEFT_E_ARGUMENT, &err);
}

/* No byte is read past the end, which is the end of readable memory. */
static void short_pieces_are_read_to_the_end_only(void **state)
{
    static const char *const rows[] = {
        "\x78", "\x78\x9C",  "\x1F\x8B\x08",      "\x1F\x8B\x08\x04", "\x80", "P",
        "PK",   "\x93NUMPY", "\x93NUMPY\1\1\1\1", "\x28\xB5\x2F\xFD", "BZh9"
    };
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    uint8_t *p = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    (void)state;
    assert_true(p != MAP_FAILED);
    assert_int_equal(mprotect(p + page, page, PROT_NONE), 0);
    for (size_t i = 0; i < HEFT_COUNT(rows); i++) {
        size_t len = strlen(rows[i]);
        heft_error err;
        findings found;
        memcpy(p + page - len, rows[i], len);
        heft_assert_ok(scan(&found, p + page - len, len, "m", NULL, &err), &err);
    }
    munmap(p, 2 * page);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_gzip_headers_of_each_form),
        cmocka_unit_test(a_header_that_is_cut_is_not_gzip),
        cmocka_unit_test(reads_zlib_headers),
        cmocka_unit_test(names_compression_that_cannot_be_searched),
        cmocka_unit_test(unpacks_small_files_and_pickles_as_a_whole),
        cmocka_unit_test(unpacks_what_begins_like_a_pickle_or_an_archive),
        cmocka_unit_test(searches_members_of_archives),
        cmocka_unit_test(code_of_torchscript_reaches_no_files),
        cmocka_unit_test(code_of_packages_is_a_finding),
        cmocka_unit_test(bytes_with_a_directory_are_an_archive),
        cmocka_unit_test(imports_have_names_of_python),
        cmocka_unit_test(lists_of_words_import_nothing),
        cmocka_unit_test(names_of_imports_have_any_length),
        cmocka_unit_test(shared_suffixes_promise_a_pickle_only_with_its_beginning),
        cmocka_unit_test(arrays_of_objects_are_pickles),
        cmocka_unit_test(wrong_sources_and_hosts_are_refused),
        cmocka_unit_test(short_pieces_are_read_to_the_end_only),
        cmocka_unit_test(what_follows_an_array_is_scanned),
        cmocka_unit_test(pickles_follow_a_frame_that_goes_on),
        cmocka_unit_test(what_follows_a_compressed_array_is_scanned),
        cmocka_unit_test(pickles_follow_the_numbers_of_early_pytorch),
        cmocka_unit_test(counts_pickles),
        cmocka_unit_test(reports_codecs_that_fail),
        cmocka_unit_test(reports_each_failed_allocation),
        cmocka_unit_test(unpacks_as_much_as_memory_and_work_allow),
    };
    return cmocka_run_group_tests_name("scan_compressed", tests, NULL, NULL);
}
