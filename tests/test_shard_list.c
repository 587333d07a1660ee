/* test_shard_list.c - an index against the shards: numbers in the names, tensors listed in the
 * wrong shard, a wrong sum, further files. The folder is in memory. */
#include "models.h"

typedef struct shard {
    const char *name, *tensors; /* one letter for each tensor; name NULL: no more shards */
} shard;

typedef struct folder {
    const shard *shards;
    const char *const *others; /* further names, or NULL */
    heft_status list_status;
} folder;

enum { BYTES = 8 }; /* size of each tensor */

static heft_bytes make_shard(const char *tensors)
{
    char header[1000] = "{";
    uint8_t file[2000] = { 0 };
    size_t at = 1;
    for (size_t i = 0; tensors[i]; i++)
        at += (size_t)snprintf(header + at, sizeof header - at,
                               "%s\"%c\":{\"dtype\":\"U8\",\"shape\":[8],\"data_offsets\":"
                               "[%zu,%zu]}",
                               i ? "," : "", tensors[i], i * BYTES, i * BYTES + BYTES);
    header[at++] = '}';
    file[0] = (uint8_t)at;
    file[1] = (uint8_t)(at >> 8);
    memcpy(file + 8, header, at);
    return heft_test_copy(file, 8 + at + BYTES * strlen(tensors));
}

/* A source that owns the bytes. */
typedef struct own_source {
    heft_source base;
    heft_bytes bytes;
} own_source;

static heft_status own_read(heft_source *s, uint64_t off, void *buf, size_t len, heft_error *err)
{
    (void)err;
    memcpy(buf, ((const own_source *)s)->bytes.p + off, len);
    return HEFT_OK;
}

static void own_close(heft_source *s)
{
    heft_test_free(&((own_source *)s)->bytes);
    free(s);
}

static heft_source *source_of(heft_bytes take)
{
    static const heft_source_ops ops = { .size = sizeof(heft_source_ops),
                                         .read = own_read,
                                         .close = own_close };
    own_source *s = calloc(1, sizeof *s);
    *s = (own_source){ { &ops, take.len }, take };
    return &s->base;
}

static heft_status open_shard(heft_source **out, void *ctx, const char *name, heft_error *err)
{
    const folder *f = ctx;
    *out = NULL;
    for (size_t i = 0; f->shards[i].name; i++)
        if (!strcmp(f->shards[i].name, name)) {
            *out = source_of(make_shard(f->shards[i].tensors));
            return HEFT_OK;
        }
    *err = (heft_error){ .status = HEFT_E_IO, .os = 2, .message = "there is no such shard" };
    return HEFT_E_IO;
}

static heft_status list_folder(void *ctx, void (*fn)(void *arg, const char *name), void *arg,
                               heft_error *err)
{
    const folder *f = ctx;
    for (size_t i = 0; f->shards[i].name; i++)
        fn(arg, f->shards[i].name);
    for (size_t i = 0; f->others && f->others[i]; i++)
        fn(arg, f->others[i]);
    if (f->list_status)
        *err = (heft_error){ .status = f->list_status, .message = "the folder is unreadable" };
    return f->list_status;
}

/* Open an index with these entries: a letter and the number of its shard, "a0 b1". */
static heft_status open_index(heft_file **out, const folder *dir, const char *entries,
                              uint64_t total, const heft_host *host, heft_error *err)
{
    heft_shard_folder shards = { .size = sizeof shards,
                                 .name = "m.safetensors.index.json",
                                 .open = open_shard,
                                 .ctx = (void *)(uintptr_t)dir,
                                 .list = list_folder };
    heft_open_options o = HEFT_OPEN_OPTIONS_INIT;
    char text[1000] = "{";
    size_t at = 1;
    if (total)
        at += (size_t)snprintf(text + at, sizeof text - at, "\"metadata\":{\"total_size\":%u},",
                               (unsigned)total);
    at += (size_t)snprintf(text + at, sizeof text - at, "\"weight_map\":{");
    for (const char *p = entries; *p; p += p[2] ? 3 : 2)
        at += (size_t)snprintf(text + at, sizeof text - at, "%s\"%c\":\"%s\"",
                               p == entries ? "" : ",", *p, dir->shards[p[1] - '0'].name);
    at += (size_t)snprintf(text + at, sizeof text - at, "}}");
    o.shards = &shards;
    o.host = host;
    return heft_file_open_source(out, source_of(heft_test_copy(text, at)), &o, err);
}

static void print_notices(char text[2000], const heft_file *f)
{
    text[0] = '\0';
    for (uint32_t i = 0; i < heft_notice_count(f); i++) {
        heft_finding x = heft_notice_at(f, i);
        snprintf(text + strlen(text), 2000 - strlen(text), "%s: %s;", x.rule, x.text);
    }
}

typedef struct row {
    shard shards[4];
    const char *entries;
    uint64_t total;
    const char *others[3];
    const char *words; /* part of the notices; "": there is none */
} row;

/* Open with each allocation failing in turn, and then with enough memory. */
static void assert_notices(const row *r)
{
    folder dir = { r->shards, r->others, HEFT_OK };
    heft_status st = HEFT_E_NOMEM;
    for (uint32_t at = 1; st; at++) {
        heft_test_memory m;
        heft_error err;
        heft_file *f;
        char text[2000];
        heft_test_memory_init(&m, at);
        st = open_index(&f, &dir, r->entries, r->total, &m.host, &err);
        bool is_reached = atomic_load(&m.calls) >= at;
        heft_assert_status(st, is_reached ? HEFT_E_NOMEM : HEFT_OK, &err);
        if (!st) {
            print_notices(text, f);
            if (*r->words ? !strstr(text, r->words) : *text)
                fail_msg("%s, %s: \"%s\", not \"%s\"", r->shards[0].name, r->entries, text,
                         r->words);
            heft_file_close(f);
        }
        heft_assert_all_freed(&m);
    }
}

static void the_list_equals_the_shards(void **state)
{
    static const row rows[] = {
        { { { "x.safetensors", "ab" }, { "y.safetensors", "c" } }, "a0 b0 c1", 24, { NULL }, "" },
        { { { "x.safetensors", "ab" }, { "y.safetensors", "c" } }, "a0 b0 c1", 0, { NULL }, "" },
        { { { "x.safetensors", "ab" }, { "y.safetensors", "c" } },
          "a0 b0 c1",
          25,
          { NULL },
          "heft/shard-total: the index states 25 bytes of tensors, the shards have 24" },
        { { { "x.safetensors", "a" }, { "y.safetensors", "c" } },
          "a0 b0 c1",
          0,
          { NULL },
          "heft/shard-tensor: tensor 'b' is listed in 'x.safetensors', which does not contain" },
        { { { "x.safetensors", "a" }, { "y.safetensors", "bc" } },
          "a0 b0 c1",
          0,
          { NULL },
          "heft/shard-tensor: tensor 'b' is listed in 'x.safetensors', but stored in 'y" },
        { { { "x.safetensors", "ab" }, { "y.safetensors", "cd" } },
          "a0 b0 c1",
          0,
          { NULL },
          "heft/shard-unlisted: tensor 'd' is stored in a shard, but not listed" },
        { { { "x.safetensors", "ab" }, { "y.safetensors", "bc" } },
          "a0 b0 c1",
          0,
          { NULL },
          "heft/shard-twice" },
    };
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(rows); i++)
        assert_notices(&rows[i]);
}

#define S       ".safetensors"
#define SEVERAL "heft/shard-number: the shards are numbered as parts of several models"

static void names_with_numbers_agree(void **state)
{
    static const struct {
        const char *first, *second, *words;
    } rows[] = {
        { "m-00001-of-00002" S, "m-00002-of-00002" S, "" },
        { "-00001-of-00002" S, "-00002-of-00002" S, "" },
        { "m-00001-of-00003" S, "m-00002-of-00003" S, "numbered up to 3, but 2 are listed" },
        { "-00001-of-00003" S, "-00002-of-00003" S, "numbered up to 3, but 2 are listed" },
        { "m-00001-of-00002" S, "m-00002-of-00003" S, SEVERAL },
        { "m-00001-of-00002" S, "n-00002-of-00002" S, SEVERAL },
        { "m-00001-of-99999" S, "m-00002-of-99999" S, "numbered up to 99999" },
        /* names without numbers say nothing */
        { "m-0000a-of-00003" S, "m-00002-of-00003" S, "" },
        { "m-00001-of-0000a" S, "m-00002-of-00003" S, "" },
        { "m-00001-of-00003" S, "m-0000:-of-00003" S, "" },
        { "m-00001-of-00003" S, "m_00002-of-00003" S, SEVERAL },
        { "m-00001-of-00003" S, "m-00002-in-00003" S, "" },
        { "m-00001-of-00003" S, "y" S, "" },
        { "0001-of-00003" S, "0002-of-00003" S, "numbered up to 3, but 2 are listed" },
    };
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(rows); i++) {
        row r = { .entries = "a0 b1", .words = rows[i].words };
        r.shards[0] = (shard){ rows[i].first, "a" };
        r.shards[1] = (shard){ rows[i].second, "b" };
        assert_notices(&r);
    }
}

static void further_files_are_numbered_differently(void **state)
{
    static const struct {
        const char *other, *words;
    } rows[] = {
        { "m-00003-of-00003" S, "heft/shard-extra: the file 'm-00003-of-00003" S "' is numbered" },
        { "m-00000-of-00002" S, "heft/shard-extra" },
        { "m-00001-of-00002a" S, "" },
        { "n-00003-of-00003" S, "" },
        { "m-00003-of-00003.bin", "" },
        { "readme", "" },
    };
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(rows); i++) {
        row r = { { { "m-00001-of-00002" S, "a" }, { "m-00002-of-00002" S, "b" } },
                  "a0 b1",
                  0,
                  { rows[i].other },
                  rows[i].words };
        assert_notices(&r);
    }
}

static void an_unreadable_folder_is_no_error(void **state)
{
    static const shard shards[] = { { "m-00001-of-00002" S, "a" },
                                    { "m-00002-of-00002" S, "b" },
                                    { NULL, NULL } };
    folder dir = { shards, NULL, HEFT_E_IO };
    heft_error err;
    heft_file *f;
    (void)state;
    heft_assert_ok(open_index(&f, &dir, "a0 b1", 0, NULL, &err), &err);
    heft_file_close(f);
    dir.list_status = HEFT_E_NOMEM;
    heft_assert_status(open_index(&f, &dir, "a0 b1", 0, NULL, &err), HEFT_E_NOMEM, &err);
}

/* ---- files given by the caller --------------------------------------------------------------- */

static heft_file *opened(const char *format, const char *version, const char *name, heft_bytes *b)
{
    heft_write_options write = HEFT_WRITE_OPTIONS_INIT;
    heft_convert_options convert = HEFT_CONVERT_OPTIONS_INIT;
    const test_tensor t = { name, HEFT_U8, 1, { 3 } };
    write.version = version;
    convert.write = &write;
    *b = heft_test_converted("safetensors", &t, 1, format, &convert);
    return heft_test_opened(*b, NULL, false);
}

static void a_version_stays_if_all_files_have_it(void **state)
{
    static const struct {
        const char *format, *version;
        bool has_version;
    } rows[] = { { "ztensor", "1.2", true }, { "ztensor", "1.1", false }, { "mag", NULL, false } };
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(rows); i++)
        for (int swap = 0; swap < 2; swap++) {
            heft_bytes b[2];
            heft_error err;
            heft_file *joined;
            heft_file *f[2] = { opened("ztensor", "1.2", "a", &b[0]),
                                opened(rows[i].format, rows[i].version, "b", &b[1]) };
            const heft_file *const files[] = { f[swap], f[!swap] };
            heft_assert_ok(heft_file_join(&joined, files, 2, NULL, &err), &err);
            assert_int_equal(heft_tensor_count(joined), 2);
            assert_int_equal(heft_file_version(joined).len, rows[i].has_version ? 3 : 0);
            heft_file_close(joined);
            for (int k = 0; k < 2; k++) {
                heft_file_close(f[k]);
                heft_test_free(&b[k]);
            }
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_list_equals_the_shards),
        cmocka_unit_test(names_with_numbers_agree),
        cmocka_unit_test(further_files_are_numbered_differently),
        cmocka_unit_test(an_unreadable_folder_is_no_error),
        cmocka_unit_test(a_version_stays_if_all_files_have_it),
    };
    return cmocka_run_group_tests_name("shard_index", tests, NULL, NULL);
}
