/* test_shard_files.c - shards of a zTensor file: found, missing, of another size or content, and
 * names and links that lead out of the folder. */
#include "heft_test.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "format/format.h"

/* ---- the files ------------------------------------------------------------------------------ */

static const char *const names[] = { "model.zt", "model-1.zt", "model-base.v2.zt", "whole.zt" };

static const char *sample(const char *name)
{
    static char path[1200];
    snprintf(path, sizeof path, "%s/ztensor/shards/%s", getenv("HEFT_SAMPLES"), name);
    return path;
}

static const char *path_in(void **state, const char *name)
{
    return heft_test_path(*state, name);
}

static void copy(void **state, const char *name, const char *as)
{
    heft_bytes b = heft_test_load(sample(name));
    heft_test_save(path_in(state, as), b.p, b.len);
    heft_test_free(&b);
}

static int make_files(void **state)
{
    if (heft_test_dir_make(state))
        return -1;
    for (size_t i = 0; i < HEFT_COUNT(names); i++)
        copy(state, names[i], names[i]);
    return 0;
}

static heft_file *open_model(void **state)
{
    heft_error err;
    heft_file *f;
    heft_assert_ok(heft_file_open(&f, path_in(state, "model.zt"), NULL, &err), &err);
    return f;
}

static uint32_t part_of(const heft_file *f, const char *name)
{
    uint32_t id = heft_tensor_find(f, heft_str_from(name));
    assert_int_not_equal(id, HEFT_NONE);
    return heft_tensor_at(f, id).first_part;
}

static heft_status read_part(const heft_file *f, const char *name, heft_bytes *out, heft_error *err)
{
    uint32_t part = part_of(f, name);
    out->len = (size_t)heft_part_at(f, part).length;
    out->p = malloc(out->len);
    assert_non_null(out->p);
    return heft_part_read(out->p, f, part, 0, out->len, err);
}

static void assert_same_tensor(const heft_file *a, const heft_file *b, const char *name)
{
    heft_error err;
    heft_bytes x, y;
    heft_assert_ok(read_part(a, name, &x, &err), &err);
    heft_assert_ok(read_part(b, name, &y, &err), &err);
    heft_assert_same_bytes(x, y);
    heft_test_free(&x);
    heft_test_free(&y);
}

static void assert_unreadable(const heft_file *f, const char *name, heft_status st,
                              const char *words)
{
    heft_error err;
    heft_bytes b;
    heft_assert_fails(read_part(f, name, &b, &err), st, &err, words);
    assert_null(heft_part_view(f, part_of(f, name)));
    heft_test_free(&b);
}

/* ---- verify --------------------------------------------------------------------------------- */

typedef struct findings {
    uint32_t faults, others;
    char rules[400];
} findings;

static void note(void *ctx, const heft_finding *x)
{
    findings *all = ctx;
    if (heft_test_lacks_libraries() && !strcmp(x->rule, "heft/unchecked"))
        return; /* the shards have SHA-256 */
    all->faults += x->severity == HEFT_FAULT;
    all->others += x->severity != HEFT_FAULT;
    snprintf(all->rules + strlen(all->rules), sizeof all->rules - strlen(all->rules), "%s@%u ",
             x->rule, x->shard);
}

static findings verify(const heft_file *f)
{
    heft_error err;
    findings all = { 0, 0, "" };
    heft_assert_ok(heft_file_verify(NULL, f,
                                    &(heft_verify_options){ sizeof(heft_verify_options),
                                                            .on_finding = note, .ctx = &all },
                                    &err),
                   &err);
    return all;
}

static void assert_rules(const heft_file *f, const char *rules)
{
    findings all = verify(f);
    assert_string_equal(all.rules, rules);
}

/* ---- converting ----------------------------------------------------------------------------- */

static bool has_name(void *ctx, const heft_tensor *t)
{
    return t->name.len == strlen(ctx) && !memcmp(t->name.ptr, ctx, t->name.len);
}

static bool store_raw(void *ctx, const heft_tensor *t, heft_str role, heft_storage *storage)
{
    (void)ctx, (void)t, (void)role;
    storage->encoding = HEFT_RAW;
    return true;
}

/* Convert to one file. only: the name of the only tensor to convert, or NULL for all tensors. */
static heft_status convert(const heft_file *f, const char *only, heft_bytes *out, heft_error *err)
{
    heft_test_sink sink;
    heft_write_options write = HEFT_WRITE_OPTIONS_INIT;
    heft_convert_options opt = HEFT_CONVERT_OPTIONS_INIT;
    opt.write = &write;
    write.version = "2";
    write.align = 4096;
    opt.keep = only ? has_name : NULL;
    opt.storage = store_raw;
    opt.ctx = (void *)(uintptr_t)only;
    heft_status st = heft_file_convert(f, heft_format_find(HEFT_STR("ztensor")),
                                       heft_test_sink_init(&sink, false), &opt, err);
    *out = st ? (heft_bytes){ NULL, 0 } : heft_test_copy(sink.p, sink.len);
    heft_test_sink_free(&sink);
    return st;
}

/* ---- complete models ------------------------------------------------------------------------ */

static void reads_parts_of_all_shards(void **state)
{
    static const char *const tensors[] = { "here", "far", "packed", "base" };
    static const uint32_t shards[] = { 0, 1, 1, 2 };
    heft_error err;
    heft_file *f = open_model(state), *whole;
    heft_assert_ok(heft_file_open(&whole, path_in(state, "whole.zt"), NULL, &err), &err);
    for (size_t i = 0; i < HEFT_COUNT(tensors); i++) {
        heft_part p = heft_part_at(f, part_of(f, tensors[i]));
        assert_int_equal(p.shard, shards[i]);
        assert_in_range(p.offset, 4096, 16384);
        assert_same_tensor(f, whole, tensors[i]);
        const void *view = heft_part_view(f, part_of(f, tensors[i]));
        assert_true(!view == (p.encoding != HEFT_RAW));
        if (view)
            assert_memory_equal(view, heft_part_view(whole, part_of(whole, tensors[i])),
                                (size_t)p.length);
    }
    heft_part_prefetch(f, &(uint32_t){ part_of(f, "base") }, 1);
    heft_file_close(whole);
    heft_file_close(f);
}

static void lists_the_shards(void **state)
{
    heft_file *f = open_model(state);
    assert_int_equal(heft_shard_file_count(f), 2);
    heft_shard_file s = heft_shard_file_at(f, 1);
    assert_int_equal(s.name.len, strlen("model-base.v2.zt"));
    assert_memory_equal(s.name.ptr, "model-base.v2.zt", s.name.len);
    assert_int_equal(s.status, HEFT_OK);
    heft_file_close(f);
}

static void verifies_all_shards(void **state)
{
    heft_file *f = open_model(state);
    assert_rules(f, "");
    heft_file_close(f);
}

static void converts_several_shards_to_one_file(void **state)
{
    heft_error err;
    heft_bytes out, whole = heft_test_load(path_in(state, "whole.zt"));
    heft_file *f = open_model(state);
    heft_assert_ok(convert(f, NULL, &out, &err), &err);
    heft_assert_same_bytes(out, whole);
    heft_test_free(&out);
    heft_test_free(&whole);
    heft_file_close(f);
}

/* ---- missing and changed shards ------------------------------------------------------------- */

static void reports_a_missing_shard_when_it_is_read(void **state)
{
    heft_error err;
    heft_bytes out;
    assert_int_equal(unlink(path_in(state, "model-1.zt")), 0);
    heft_file *f = open_model(state), *whole;
    heft_assert_ok(heft_file_open(&whole, path_in(state, "whole.zt"), NULL, &err), &err);
    assert_int_equal(heft_tensor_count(f), 4);
    assert_int_equal(heft_shard_file_at(f, 0).status, HEFT_E_IO);
    assert_same_tensor(f, whole, "base");
    assert_unreadable(f, "far", HEFT_E_IO, "model-1.zt");
    assert_unreadable(f, "packed", HEFT_E_IO, "No such file");
    assert_rules(f, "heft/file-missing@0 ");
    heft_assert_status(convert(f, NULL, &out, &err), HEFT_E_IO, &err);
    heft_assert_ok(convert(f, "base", &out, &err), &err);
    heft_test_free(&out);
    heft_file_close(whole);
    heft_file_close(f);
}

static heft_status open_no_sink(heft_sink **out, void *ctx, const char *name, heft_error *err)
{
    (void)out, (void)ctx, (void)err;
    fail_msg("%s is opened", name);
    return HEFT_E_IO;
}

/* The missing shard has no bytes of a tensor, so no read notices that the shard is missing. */
static void refuses_a_model_with_a_missing_shard_without_bytes(void **state)
{
    heft_error err;
    heft_bytes out;
    heft_hash model, tensor;
    heft_file *f;
    heft_split_options split = HEFT_SPLIT_OPTIONS_INIT;
    split.count = 1;
    split.open = open_no_sink;
    copy(state, "empty.zt", "model.zt");
    assert_int_equal(unlink(path_in(state, "model-1.zt")), 0);
    f = open_model(state);
    heft_assert_fails(heft_file_is_complete(f, &err), HEFT_E_IO, &err, "model-1.zt");
    heft_assert_fails(convert(f, NULL, &out, &err), HEFT_E_IO, &err, "model-1.zt");
    heft_assert_fails(heft_file_hash(&model, &tensor, f, NULL, NULL, &err), HEFT_E_IO, &err,
                      "model-1.zt");
    heft_assert_fails(heft_file_split(f, heft_format_find(HEFT_STR("ztensor")), &split, &err),
                      HEFT_E_IO, &err, "model-1.zt");
    heft_file_close(f);
}

static void refuses_a_shard_of_another_size(void **state)
{
    heft_bytes b = heft_test_load(path_in(state, "model-1.zt"));
    heft_test_save(path_in(state, "model-1.zt"), b.p, b.len - 1);
    heft_file *f = open_model(state);
    assert_int_equal(heft_shard_file_at(f, 0).status, HEFT_E_FORMAT);
    assert_unreadable(f, "far", HEFT_E_FORMAT, "has 9320 bytes, expected 9321");
    assert_rules(f, "heft/file-size@0 ");
    heft_file_close(f);
    heft_test_free(&b);
}

static void finds_a_changed_shard_by_its_digest(void **state)
{
    heft_error err;
    heft_bytes out, b = heft_test_load(path_in(state, "model-1.zt"));
    b.p[100] ^= 1; /* padding: not covered by the digest of a part */
    heft_test_save(path_in(state, "model-1.zt"), b.p, b.len);
    heft_file *f = open_model(state);
    assert_rules(f, "ztensor/shard-digest@1 ");
    heft_assert_fails(convert(f, NULL, &out, &err), HEFT_E_CHECKSUM, &err, "shard-digest");
    heft_assert_ok(convert(f, "here", &out, &err), &err);
    heft_test_free(&out);
    heft_file_close(f);
    heft_test_free(&b);
}

static void reports_a_shard_that_is_not_a_ztensor(void **state)
{
    enum { VERSION = 16 }; /* bytes from the end */
    heft_bytes b = heft_test_load(path_in(state, "model-1.zt"));
    const size_t changed[] = { 0, b.len - VERSION, b.len - 1 };
    for (size_t i = 0; i < HEFT_COUNT(changed); i++) {
        b.p[changed[i]] ^= 1;
        heft_test_save(path_in(state, "model-1.zt"), b.p, b.len);
        b.p[changed[i]] ^= 1;
        heft_file *f = open_model(state);
        assert_rules(f, "ztensor/shard-digest@1 ztensor/shard@1 ");
        heft_file_close(f);
    }
    heft_test_free(&b);
}

static void refuses_folders_and_pipes_as_shards(void **state)
{
    assert_int_equal(unlink(path_in(state, "model-1.zt")), 0);
    assert_int_equal(mkdir(path_in(state, "model-1.zt"), 0700), 0);
    assert_int_equal(unlink(path_in(state, "model-base.v2.zt")), 0);
    assert_int_equal(mkfifo(path_in(state, "model-base.v2.zt"), 0600), 0);
    heft_file *f = open_model(state); /* opening a pipe must not block */
    assert_unreadable(f, "far", HEFT_E_IO, "model-1.zt");
    assert_unreadable(f, "base", HEFT_E_IO, "pipe");
    heft_file_close(f);
}

/* ---- links ---------------------------------------------------------------------------------- */

static void move(void **state, const char *from, const char *to)
{
    assert_int_equal(rename(path_in(state, from), path_in(state, to)), 0);
}

static void follows_links_inside_the_folder(void **state)
{
    move(state, "model-1.zt", "blob");
    assert_int_equal(symlink("blob", path_in(state, "other")), 0);
    assert_int_equal(symlink("other", path_in(state, "model-1.zt")), 0);
    heft_file *f = open_model(state);
    assert_rules(f, "");
    heft_file_close(f);
}

static void refuses_links_that_leave_the_folder(void **state)
{
    copy(state, "model-1.zt", "blob");
    unlink(path_in(state, "model-1.zt"));
    assert_int_equal(symlink("sub/../../blob", path_in(state, "model-1.zt")), 0);
    assert_int_equal(mkdir(path_in(state, "sub"), 0700), 0);
    heft_file *f = open_model(state);
    assert_unreadable(f, "far", HEFT_E_IO,
                      "shard 'model-1.zt' is a symbolic link that leaves the model's folder");
    heft_file_close(f);
}

/* Shards are searched in the folder of the path, not in that of the link's target. */
static void searches_shards_in_the_folder_of_a_link(void **state)
{
    assert_int_equal(mkdir(path_in(state, "sub"), 0700), 0);
    move(state, "model.zt", "sub/moved.zt");
    assert_int_equal(symlink("sub/moved.zt", path_in(state, "model.zt")), 0);
    heft_file *f = open_model(state);
    assert_rules(f, "");
    heft_file_close(f);
}

/* ---- shards from a program ------------------------------------------------------------------ */

static void opens_no_shards_without_a_path(void **state)
{
    heft_error err;
    heft_file *f;
    heft_bytes b = heft_test_load(path_in(state, "model.zt"));
    heft_assert_ok(heft_test_open(&f, b, NULL, &err), &err);
    assert_unreadable(f, "far", HEFT_E_IO, "shard '1' cannot be opened");
    assert_rules(f, "heft/file-missing@0 heft/file-missing@0 ");
    heft_file_close(f);
    heft_test_free(&b);
}

typedef struct memory_folder { /* the shards, loaded into memory on request */
    void **state;
    heft_bytes bytes[2];
    uint32_t requests;
    char last_name[300];
} memory_folder;

static heft_status open_from_memory(heft_source **out, void *ctx, const char *name, heft_error *err)
{
    memory_folder *s = ctx;
    snprintf(s->last_name, sizeof s->last_name, "%s", name);
    heft_bytes *b = &s->bytes[s->requests++];
    *b = heft_test_load(path_in(s->state, name));
    return heft_source_open_memory(out, b->p, b->len, err);
}

static heft_status fail_to_open(heft_source **out, void *ctx, const char *name, heft_error *err)
{
    (void)name;
    *out = NULL;
    heft_error_plain(err, HEFT_E_IO, "cannot be opened: for now");
    err->os = *(const int *)ctx;
    return HEFT_E_IO;
}

/* A system error is no fault of the model: verify fails with the error and reports no finding. */
static void reports_system_errors_as_no_fault_of_the_model(void **state)
{
    static const int codes[] = { EMFILE, ENFILE, EIO, EACCES, ENOMEM };
    heft_bytes b = heft_test_load(path_in(state, "model.zt"));
    for (size_t i = 0; i < HEFT_COUNT(codes); i++) {
        int code = codes[i];
        heft_error err;
        heft_file *f;
        heft_source *source;
        heft_shard_folder shards = {
            .size = sizeof shards, .name = "model.zt", .open = fail_to_open, .ctx = &code
        };
        heft_open_options opt = HEFT_OPEN_OPTIONS_INIT;
        findings all = { 0, 0, "" };
        opt.shards = &shards;
        heft_assert_ok(heft_source_open_memory(&source, b.p, b.len, &err), &err);
        heft_assert_ok(heft_file_open_source(&f, source, &opt, &err), &err);
        assert_int_equal(heft_tensor_count(f), 4); /* the tensors are listed all the same */
        heft_assert_fails(
            heft_file_verify(NULL, f,
                             &(heft_verify_options){ sizeof(heft_verify_options),
                                                     .on_finding = note, .ctx = &all },
                             &err),
            HEFT_E_IO, &err, "for now");
        assert_int_equal(err.os, code);
        assert_int_equal(all.faults, 0);
        heft_file_close(f);
    }
    heft_test_free(&b);
}

static void opens_shards_from_a_program(void **state)
{
    heft_error err;
    heft_file *f;
    heft_source *source;
    memory_folder s = { .state = state };
    heft_shard_folder shards = {
        .size = sizeof shards, .name = "model.zt", .open = open_from_memory, .ctx = &s
    };
    heft_open_options opt = HEFT_OPEN_OPTIONS_INIT;
    heft_bytes b = heft_test_load(path_in(state, "model.zt"));
    opt.shards = &shards;
    heft_assert_ok(heft_source_open_memory(&source, b.p, b.len, &err), &err);
    heft_assert_ok(heft_file_open_source(&f, source, &opt, &err), &err);
    assert_int_equal(s.requests, 2);
    assert_string_equal(s.last_name, "model-base.v2.zt");
    assert_rules(f, "");
    heft_file_close(f);
    heft_test_free(&s.bytes[0]);
    heft_test_free(&s.bytes[1]);
    heft_test_free(&b);
}

/* A source from a program that forgot to set the size of the operations table. */
static heft_status open_unsized(heft_source **out, void *ctx, const char *name, heft_error *err)
{
    static const heft_source_ops no_size = { .size = 0 };
    static heft_source source = { &no_size, 100 };
    (void)ctx, (void)name, (void)err;
    *out = &source;
    return HEFT_OK;
}

static void refuses_a_source_whose_operations_have_no_size(void **state)
{
    heft_error err;
    heft_file *f;
    heft_source *source;
    heft_shard_folder shards = { .size = sizeof shards, .name = "model.zt", .open = open_unsized };
    heft_open_options opt = HEFT_OPEN_OPTIONS_INIT;
    heft_bytes b = heft_test_load(path_in(state, "model.zt"));
    opt.shards = &shards;
    heft_assert_ok(heft_source_open_memory(&source, b.p, b.len, &err), &err);
    heft_assert_ok(heft_file_open_source(&f, source, &opt, &err), &err);
    heft_assert_fails(heft_file_is_complete(f, &err), HEFT_E_ARGUMENT, &err, "heft_source_ops");
    heft_file_close(f); /* must not call close() of the invalid table */
    heft_test_free(&b);
}

/* ---- names, in a format that allows any name ------------------------------------------------ */

static heft_ix_shard shard;

static heft_status parse_shard(heft_window *input, heft_index *x)
{
    uint64_t *dims;
    uint32_t id, number;
    (void)input;
    heft_status st = heft_ix_shard_add(x, shard, &number);
    if (!st)
        st = heft_ix_tensor(x, heft_lit("t"), HEFT_U8, 0, &dims, &id);
    return st ? st
              : heft_ix_part(x, id, heft_lit("data"), HEFT_U8,
                             (heft_range){ heft_global_offset(number, 0), 1 }, 1, HEFT_RAW);
}

static const heft_format any_name = { .name = "any", .parse = parse_shard };

static heft_status refuse_to_open(heft_source **out, void *ctx, const char *name, heft_error *err)
{
    memory_folder *s = ctx;
    *out = NULL;
    s->requests++;
    snprintf(s->last_name, sizeof s->last_name, "%s", name);
    return heft_error_plain(err, HEFT_E_IO, "is not there");
}

static heft_status open_with_shard(heft_file **f, memory_folder *s, const char *own_name,
                                   heft_error *err)
{
    heft_source *source;
    heft_shard_folder shards = {
        .size = sizeof shards, .name = own_name, .open = refuse_to_open, .ctx = s
    };
    heft_open_options opt = HEFT_OPEN_OPTIONS_INIT;
    opt.shards = &shards;
    opt.format = &any_name;
    heft_assert_ok(heft_source_open_memory(&source, "12345678", 8, err), err);
    return heft_file_open_source(f, source, &opt, err);
}

static void opens_only_names_without_a_path(void **state)
{
    static const struct {
        heft_str label;
        const char *suffix, *own_name, *requested; /* requested NULL: no file is opened */
    } rows[] = {
        { { "x", 1 }, ".zt", "m.zt", "m-x.zt" },
        { { "x", 1 }, ".zt", "m.bin", "m.bin-x.zt" },
        { { "x", 1 }, ".zt", ".zt", ".zt-x.zt" },
        { { "shard-1.safetensors", 19 }, NULL, "index.json", "shard-1.safetensors" },
        { { "..", 2 }, NULL, "m", NULL },
        { { ".", 1 }, NULL, "m", NULL },
        { { "", 0 }, NULL, "m", NULL },
        { { "../x", 4 }, NULL, "m", NULL },
        { { "a/b", 3 }, NULL, "m", NULL },
        { { "a\\b", 3 }, NULL, "m", NULL },
        { { "/etc/passwd", 11 }, NULL, "m", NULL },
        { { "a\0b", 3 }, NULL, "m", NULL },
        { { "/../../x", 8 }, ".zt", "m.zt", NULL },
    };
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(rows); i++) {
        heft_error err;
        heft_file *f;
        uint8_t byte;
        memory_folder s = { .requests = 0 };
        shard = (heft_ix_shard){ rows[i].label, rows[i].suffix, 8, false, NULL };
        heft_assert_ok(open_with_shard(&f, &s, rows[i].own_name, &err), &err);
        assert_int_equal(s.requests, rows[i].requested ? 1 : 0);
        assert_string_equal(s.last_name, rows[i].requested ? rows[i].requested : "");
        heft_assert_status(heft_part_read(&byte, f, 0, 0, 1, &err), HEFT_E_IO, &err);
        heft_file_close(f);
    }
}

static void opens_no_names_beyond_255_bytes(void **state)
{
    static char label[256];
    heft_error err;
    heft_file *f;
    (void)state;
    memset(label, 'x', sizeof label);
    for (size_t len = 255; len <= 256; len++) {
        memory_folder s = { .requests = 0 };
        shard = (heft_ix_shard){ { label, len }, NULL, 8, false, NULL };
        heft_assert_ok(open_with_shard(&f, &s, "m", &err), &err);
        assert_int_equal(s.requests, len == 255);
        heft_file_close(f);
    }
}

static void refuses_sizes_beyond_global_offsets(void **state)
{
    heft_error err;
    heft_file *f;
    memory_folder s = { .requests = 0 };
    (void)state;
    shard = (heft_ix_shard){
        { "x", 1 }, NULL, (UINT64_C(1) << HEFT_GLOBAL_OFFSET_BITS) + 1, false, NULL
    };
    heft_assert_status(open_with_shard(&f, &s, "m", &err), HEFT_E_LIMIT, &err);
    assert_null(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(reads_parts_of_all_shards, make_files,
                                        heft_test_dir_remove),
        cmocka_unit_test_setup_teardown(lists_the_shards, make_files, heft_test_dir_remove),
        cmocka_unit_test_setup_teardown(verifies_all_shards, make_files, heft_test_dir_remove),
        cmocka_unit_test_setup_teardown(converts_several_shards_to_one_file, make_files,
                                        heft_test_dir_remove),
        cmocka_unit_test_setup_teardown(reports_a_missing_shard_when_it_is_read, make_files,
                                        heft_test_dir_remove),
        cmocka_unit_test_setup_teardown(refuses_a_model_with_a_missing_shard_without_bytes,
                                        make_files, heft_test_dir_remove),
        cmocka_unit_test_setup_teardown(refuses_a_shard_of_another_size, make_files,
                                        heft_test_dir_remove),
        cmocka_unit_test_setup_teardown(finds_a_changed_shard_by_its_digest, make_files,
                                        heft_test_dir_remove),
        cmocka_unit_test_setup_teardown(reports_a_shard_that_is_not_a_ztensor, make_files,
                                        heft_test_dir_remove),
        cmocka_unit_test_setup_teardown(refuses_folders_and_pipes_as_shards, make_files,
                                        heft_test_dir_remove),
        cmocka_unit_test_setup_teardown(follows_links_inside_the_folder, make_files,
                                        heft_test_dir_remove),
        cmocka_unit_test_setup_teardown(refuses_links_that_leave_the_folder, make_files,
                                        heft_test_dir_remove),
        cmocka_unit_test_setup_teardown(searches_shards_in_the_folder_of_a_link, make_files,
                                        heft_test_dir_remove),
        cmocka_unit_test_setup_teardown(opens_no_shards_without_a_path, make_files,
                                        heft_test_dir_remove),
        cmocka_unit_test_setup_teardown(reports_system_errors_as_no_fault_of_the_model, make_files,
                                        heft_test_dir_remove),
        cmocka_unit_test_setup_teardown(refuses_a_source_whose_operations_have_no_size, make_files,
                                        heft_test_dir_remove),
        cmocka_unit_test_setup_teardown(opens_shards_from_a_program, make_files,
                                        heft_test_dir_remove),
        cmocka_unit_test(opens_only_names_without_a_path),
        cmocka_unit_test(opens_no_names_beyond_255_bytes),
        cmocka_unit_test(refuses_sizes_beyond_global_offsets),
    };
    return cmocka_run_group_tests_name("shard_files", tests, NULL, NULL);
}
