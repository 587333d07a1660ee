/* test_edit_set.c - edits of single shards are refused; edits of neighbouring files are not. */
#include "models.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *path_in(void **state, const char *name)
{
    return heft_test_path(*state, name);
}

/* ---- shard sets ----------------------------------------------------------------------------- */

static heft_status add_file(heft_sink **out, void *ctx, const char *name, heft_error *err)
{
    return heft_sink_dir_add(out, ctx, name, err);
}

/* Write four tensors into two shards m…, with an index file if the format has one. */
static void make_shard_set(void **state, const char *format)
{
    heft_bytes whole = heft_test_many(format, 4);
    heft_split_options o = HEFT_SPLIT_OPTIONS_INIT;
    heft_sink_dir *set;
    heft_error err;
    heft_file *f;
    heft_assert_ok(heft_test_open(&f, whole, NULL, &err), &err);
    heft_assert_ok(heft_sink_dir_open(&set, *state, HEFT_SINK_REPLACE, &err), &err);
    o.count = 2;
    o.stem = "m";
    o.open = add_file;
    o.ctx = set;
    heft_assert_ok(heft_file_split(f, heft_format_find(heft_str_from(format)), &o, &err), &err);
    heft_assert_ok(heft_sink_dir_finish(set, &err), &err);
    heft_file_close(f);
    heft_test_free(&whole);
}

static heft_status set_value(const char *path, bool dry_run, heft_error *err)
{
    heft_value v = { .kind = HEFT_KIND_STR, .key = heft_test_str("license") };
    heft_edit_options o = HEFT_EDIT_OPTIONS_INIT;
    v.as.s = heft_test_str("MIT");
    o.set = &v;
    o.set_count = 1;
    o.dry_run = dry_run;
    return heft_file_edit(NULL, path, &o, err);
}

static void assert_refused(const char *path, const char *words)
{
    heft_error err;
    heft_bytes before = heft_test_load(path), after;
    heft_assert_fails(set_value(path, false, &err), HEFT_E_UNSUPPORTED, &err, words);
    heft_assert_fails(set_value(path, true, &err), HEFT_E_UNSUPPORTED, &err, "'heft merge'");
    after = heft_test_load(path);
    heft_assert_same_bytes(before, after);
    heft_test_free(&before);
    heft_test_free(&after);
}

/* ---- tests ---------------------------------------------------------------------------------- */

static const struct {
    const char *format, *index, *files[2];
} sets[] = {
    { "safetensors",
      "m.safetensors.index.json",
      { "m-00001-of-00002.safetensors", "m-00002-of-00002.safetensors" } },
    { "ztensor", "m.zt", { "m-1.zt", "m-2.zt" } },
    { "gguf", NULL, { "m-00001-of-00002.gguf", "m-00002-of-00002.gguf" } },
};

static void refuses_to_edit_one_shard(void **state)
{
    for (size_t i = 0; i < HEFT_COUNT(sets); i++) {
        make_shard_set(state, sets[i].format);
        for (size_t k = 0; k < 2; k++)
            assert_refused(path_in(state, sets[i].files[k]), "edited one by one");
        if (sets[i].index)
            assert_refused(path_in(state, sets[i].index), "edited one by one");
    }
}

/* An index may have the name of a variant, such as fp16. */
static void refuses_to_edit_a_shard_of_a_variant(void **state)
{
    make_shard_set(state, "safetensors");
    assert_int_equal(rename(path_in(state, "m.safetensors.index.json"),
                            path_in(state, "m.safetensors.index.fp16.json")),
                     0);
    assert_refused(path_in(state, sets[0].files[0]), "edited one by one");
}

static void refuses_to_edit_a_shard_through_a_link(void **state)
{
    char *elsewhere;
    make_shard_set(state, "safetensors");
    elsewhere = strdup(path_in(state, "apart"));
    assert_int_equal(mkdir(elsewhere, 0777), 0);
    /* a link to a shard, from a folder outside */
    const char *link = heft_test_path(elsewhere, "link");
    assert_int_equal(symlink("../m-00001-of-00002.safetensors", link), 0);
    assert_refused(link, "edited one by one");
    /* a shard that is a link to another folder */
    assert_int_equal(
        rename(path_in(state, "m-00002-of-00002.safetensors"), heft_test_path(elsewhere, "blob")),
        0);
    assert_int_equal(symlink("apart/blob", path_in(state, "m-00002-of-00002.safetensors")), 0);
    assert_refused(path_in(state, "m-00002-of-00002.safetensors"), "edited one by one");
    free(elsewhere);
}

static void copy(void **state, const char *from, const char *to)
{
    heft_bytes b = heft_test_load(path_in(state, from));
    heft_test_save(path_in(state, to), b.p, b.len);
    heft_test_free(&b);
}

/* Neither a similar name nor an index of the neighbouring files makes a file a shard. */
static void edits_a_file_in_the_folder_of_a_shard_set(void **state)
{
    heft_error err;
    make_shard_set(state, "safetensors");
    copy(state, "m-00001-of-00002.safetensors", "adapter.safetensors");
    heft_assert_ok(set_value(path_in(state, "adapter.safetensors"), false, &err), &err);
    make_shard_set(state, "ztensor");
    copy(state, "m-1.zt", "m-1-v2.zt"); /* in the folder of m.zt and m-1.zt */
    heft_assert_ok(set_value(path_in(state, "m-1-v2.zt"), false, &err), &err);
}

/* Damaged indexes, folders, dangling links and pipes are skipped; a pipe must not block. */
static void skips_index_names_that_are_not_an_index(void **state)
{
    heft_error err;
    heft_bytes one = heft_test_one("safetensors", 64);
    const char *path = path_in(state, "a-b.safetensors");
    heft_test_save(path, one.p, one.len);
    heft_test_save(path_in(state, "a.safetensors"), "no model", 8);
    heft_test_save(path_in(state, "x.safetensors.index.json"), "{", 1);
    assert_int_equal(mkdir(path_in(state, "y.safetensors.index.json"), 0777), 0);
    assert_int_equal(mkfifo(path_in(state, "z.safetensors.index.json"), 0666), 0);
    assert_int_equal(symlink("nowhere", path_in(state, "n.safetensors.index.json")), 0);
    heft_assert_ok(set_value(path, false, &err), &err);
    assert_int_equal(rmdir(path_in(state, "y.safetensors.index.json")), 0);
    heft_test_free(&one);
}

/* The index lists more files than a model may have, so the edited file may be a shard. */
static void refuses_an_edit_when_an_index_exceeds_the_limit(void **state)
{
    enum { FILES = 4097, LONGEST = 40 };
    char *text = malloc(FILES * LONGEST), *end = text;
    heft_error err;
    heft_bytes one = heft_test_one("safetensors", 64);
    assert_non_null(text);
    end += sprintf(end, "{\"weight_map\":{");
    for (int i = 0; i < FILES; i++)
        end += sprintf(end, "%s\"t%d\":\"f%d\"", i ? "," : "", i, i);
    end += sprintf(end, "}}");
    heft_test_save(path_in(state, "m.safetensors.index.json"), text, (size_t)(end - text));
    heft_test_save(path_in(state, "f0"), one.p, one.len);
    heft_assert_fails(set_value(path_in(state, "f0"), false, &err), HEFT_E_LIMIT, &err,
                      "m.safetensors.index.json");
    heft_test_free(&one);
    free(text);
}

/* A name below a file leads to no file, but not because the file is gone. */
static void refuses_an_edit_when_an_index_cannot_be_read(void **state)
{
    heft_error err;
    heft_bytes one = heft_test_one("safetensors", 64);
    const char *path = path_in(state, "f0");
    heft_test_save(path, one.p, one.len);
    assert_int_equal(symlink("f0/x", path_in(state, "m.safetensors.index.json")), 0);
    heft_assert_fails(set_value(path, false, &err), HEFT_E_IO, &err,
                      "m.safetensors.index.json', which may list it as a shard, cannot be read");
    assert_int_equal(err.os, ENOTDIR);
    heft_bytes after = heft_test_load(path);
    heft_assert_same_bytes(after, one);
    heft_test_free(&after);
    heft_test_free(&one);
}

/* Without memory to read the index nothing is known about the file. */
static void an_index_without_memory_ends_the_edit(void **state)
{
    heft_status st = HEFT_E_NOMEM;
    make_shard_set(state, "safetensors");
    const char *path = path_in(state, sets[0].files[0]);
    for (uint32_t at = 1; st == HEFT_E_NOMEM; at++) {
        heft_rename rename = { HEFT_STR("t0"), HEFT_STR("u") };
        heft_edit_options o = HEFT_EDIT_OPTIONS_INIT;
        heft_test_memory m;
        heft_error err;
        heft_test_memory_init(&m, at);
        o.host = &m.host;
        o.rename = &rename;
        o.rename_count = 1;
        o.dry_run = true;
        st = heft_file_edit(NULL, path, &o, &err);
        heft_assert_status(st, st == HEFT_E_NOMEM ? st : HEFT_E_UNSUPPORTED, &err);
        assert_true(st == HEFT_E_NOMEM || at > 1);
    }
}

#define in_dir(test) cmocka_unit_test_setup_teardown(test, heft_test_dir_make, heft_test_dir_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        in_dir(refuses_to_edit_one_shard),
        in_dir(refuses_to_edit_a_shard_of_a_variant),
        in_dir(refuses_to_edit_a_shard_through_a_link),
        in_dir(edits_a_file_in_the_folder_of_a_shard_set),
        in_dir(skips_index_names_that_are_not_an_index),
        in_dir(refuses_an_edit_when_an_index_exceeds_the_limit),
        in_dir(refuses_an_edit_when_an_index_cannot_be_read),
        in_dir(an_index_without_memory_ends_the_edit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
