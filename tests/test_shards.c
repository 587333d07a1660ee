/* test_shards.c - models in several files: opening, joining, splitting, failed allocations, and
 * files that are created together or not at all. */
#include "models.h"

#include <sys/stat.h>
#include <unistd.h>

/* ---- files ---------------------------------------------------------------------------------- */

static const char *path_in(void **state, const char *name)
{
    return heft_test_path(*state, name);
}

/* Save a safetensors file with a tensor of four bytes for each letter of names. */
static void save_model(void **state, const char *name, const char *names, const char *metadata)
{
    char header[1024], file[1200];
    int len = snprintf(header, sizeof header, "{\"__metadata__\":{%s}", metadata);
    size_t count = strlen(names);
    for (size_t i = 0; i < count; i++)
        len += snprintf(header + len, sizeof header - (size_t)len,
                        ",\"%c\":{\"dtype\":\"I8\",\"shape\":[4],\"data_offsets\":[%zu,%zu]}",
                        names[i], 4 * i, 4 * i + 4);
    len += snprintf(header + len, sizeof header - (size_t)len, "}");
    memset(file, 0, sizeof file);
    file[0] = (char)(len & 0xFF);
    file[1] = (char)(len >> 8);
    memcpy(file + 8, header, (size_t)len);
    for (size_t i = 0; i < count; i++)
        memset(file + 8 + len + 4 * i, names[i], 4);
    heft_test_save(path_in(state, name), file, 8 + (size_t)len + 4 * count);
}

static const char index_text[] =
    "{\"metadata\": {\"total_size\": 12, \"from\": \"index\"}, \"weight_map\": "
    "{\"a\": \"m-00001-of-00002.safetensors\", \"b\": \"m-00001-of-00002.safetensors\", "
    "\"c\": \"m-00002-of-00002.safetensors\"}}";

static int make_shard_set(void **state)
{
    if (heft_test_dir_make(state))
        return -1;
    save_model(state, "m-00001-of-00002.safetensors", "ab", "\"format\":\"pt\"");
    save_model(state, "m-00002-of-00002.safetensors", "c", "\"format\":\"pt\",\"k\":\"v\"");
    heft_test_save(path_in(state, "m.safetensors.index.json"), index_text, sizeof index_text - 1);
    return 0;
}

static heft_file *open_named(void **state, const char *name)
{
    heft_error err;
    heft_file *f;
    heft_assert_ok(heft_file_open(&f, path_in(state, name), NULL, &err), &err);
    return f;
}

static heft_status read_tensor(uint8_t out[4], const heft_file *f, const char *name,
                               heft_error *err)
{
    uint32_t id = heft_tensor_find(f, heft_str_from(name));
    assert_int_not_equal(id, HEFT_NONE);
    return heft_part_read(out, f, heft_tensor_at(f, id).first_part, 0, 4, err);
}

static void assert_tensor(const heft_file *f, const char *name, const char *bytes)
{
    heft_error err;
    uint8_t got[4];
    heft_assert_ok(read_tensor(got, f, name, &err), &err);
    assert_memory_equal(got, bytes, 4);
}

static void assert_meta(const heft_file *f, const char *key, const char *text)
{
    heft_value v;
    assert_true(heft_meta_find(&v, f, heft_str_from(key)));
    assert_int_equal(v.as.s.len, strlen(text));
    assert_memory_equal(v.as.s.ptr, text, v.as.s.len);
}

/* ---- shard sets ----------------------------------------------------------------------------- */

static void opens_a_folder_as_its_index(void **state)
{
    static const char *const names[] = { "", "m.safetensors.index.json" };
    for (size_t i = 0; i < HEFT_COUNT(names); i++) {
        heft_error err;
        heft_file *f = open_named(state, names[i]);
        assert_int_equal(heft_tensor_count(f), 3);
        assert_tensor(f, "b", "bbbb");
        assert_tensor(f, "c", "cccc");
        assert_meta(f, "format", "pt");
        assert_meta(f, "from", "index");
        assert_meta(f, "k", "v");
        assert_int_equal(heft_file_name(f).len, strlen("m.safetensors.index.json"));
        assert_non_null(
            heft_part_view(f, heft_tensor_at(f, heft_tensor_find(f, HEFT_STR("c"))).first_part));
        assert_true(heft_file_is_mapped(f));
        heft_assert_ok(heft_part_populate(f, heft_tensor_at(f, 2).first_part, &err), &err);
        heft_part_dont_need(f, heft_tensor_at(f, 2).first_part);
        assert_tensor(f, "c", "cccc");
        heft_assert_ok(heft_file_is_complete(f, &err), &err);
        heft_file_close(f);
    }
}

static void index_in_memory_has_no_shards(void **state)
{
    heft_error err;
    heft_file *f;
    heft_bytes b = heft_test_load(path_in(state, "m.safetensors.index.json"));
    heft_hash hash;
    heft_assert_ok(heft_test_open(&f, b, NULL, &err), &err);
    assert_int_equal(heft_tensor_count(f), 0);
    heft_assert_fails(heft_file_is_complete(f, &err), HEFT_E_IO, &err, "its folder is not known");
    heft_assert_fails(heft_file_hash(&hash, NULL, f, NULL, NULL, &err), HEFT_E_IO, &err,
                      "its folder is not known");
    heft_file_close(f);
    heft_test_free(&b);
}

static void refuses_an_index_as_a_shard(void **state)
{
    heft_error err;
    heft_test_save(path_in(state, "m-00002-of-00002.safetensors"), index_text,
                   sizeof index_text - 1);
    heft_file *f = open_named(state, "m.safetensors.index.json");
    heft_assert_fails(heft_file_is_complete(f, &err), HEFT_E_FORMAT, &err,
                      "it is itself an index of other files");
    heft_file_close(f);
}

static void limits_apply_to_all_shards_together(void **state)
{
    heft_error err;
    heft_file *f;
    heft_limits limits = HEFT_LIMITS_INIT;
    heft_open_options opt = HEFT_OPEN_OPTIONS_INIT;
    limits.tensors = 2;
    opt.limits = &limits;
    heft_assert_fails(heft_file_open(&f, path_in(state, ""), &opt, &err), HEFT_E_LIMIT, &err,
                      "3 tensors");
    assert_null(f);
}

static heft_status open_with(heft_test_memory *m, void **state, heft_file **f, heft_error *err)
{
    heft_open_options opt = HEFT_OPEN_OPTIONS_INIT;
    opt.host = &m->host;
    return heft_file_open(f, path_in(state, ""), &opt, err);
}

static void opening_reports_every_failed_allocation(void **state)
{
    for (uint32_t n = 1;; n++) {
        heft_test_memory m;
        heft_error err;
        heft_file *f;
        heft_test_memory_init(&m, n);
        heft_status st = open_with(&m, state, &f, &err);
        if (!st)
            heft_file_close(f);
        else
            heft_assert_status(st, HEFT_E_NOMEM, &err);
        heft_assert_all_freed(&m);
        if (!st)
            break;
        assert_true(n < 1000);
    }
}

/* ---- joining -------------------------------------------------------------------------------- */

static void count_conflict(void *ctx, heft_str key, uint32_t file)
{
    uint32_t *all = ctx;
    assert_int_equal(key.len, 1);
    *all += file;
}

static void joins_files_by_the_rule_for_duplicates(void **state)
{
    static const struct {
        heft_duplicates rule;
        heft_status status;
        const char *b;
    } rows[] = { { HEFT_DUPLICATES_REFUSE, HEFT_E_ARGUMENT, NULL },
                 { HEFT_DUPLICATES_FIRST, HEFT_OK, "bbbb" },
                 { HEFT_DUPLICATES_LAST, HEFT_OK, "bbbb" } };
    save_model(state, "x.safetensors", "ab", "\"k\":\"1\",\"l\":\"2\"");
    save_model(state, "y.safetensors", "bc", "\"k\":\"2\",\"l\":\"2\"");
    heft_file *x = open_named(state, "x.safetensors"), *y = open_named(state, "y.safetensors"), *f;
    for (size_t i = 0; i < HEFT_COUNT(rows); i++) {
        heft_error err;
        uint32_t conflicts = 0;
        heft_join_options opt = HEFT_JOIN_OPTIONS_INIT;
        opt.duplicates = rows[i].rule;
        opt.on_conflict = count_conflict;
        opt.ctx = &conflicts;
        heft_assert_status(heft_file_join(&f, (const heft_file *const[]){ x, y }, 2, &opt, &err),
                           rows[i].status, &err);
        if (rows[i].status) {
            assert_null(f);
            continue;
        }
        assert_int_equal(conflicts, 1);
        assert_int_equal(heft_tensor_count(f), 3);
        assert_tensor(f, "b", rows[i].b);
        assert_int_equal(
            heft_part_at(f, heft_tensor_at(f, heft_tensor_find(f, HEFT_STR("b"))).first_part).shard,
            rows[i].rule == HEFT_DUPLICATES_FIRST ? 1 : 2);
        assert_meta(f, "k", "1");
        heft_assert_ok(heft_file_verify(NULL, f, NULL, &err), &err);
        heft_file_close(f);
    }
    heft_file_close(x);
    heft_file_close(y);
}

/* Several of the names have the same slot in the table of names. */
static void joins_many_tensors_of_the_same_names(void **state)
{
    enum { MANY = 1000 };
    heft_join_options o = HEFT_JOIN_OPTIONS_INIT;
    heft_bytes b = heft_test_many("safetensors", MANY);
    heft_file *first = heft_test_opened(b, NULL, false), *joined;
    heft_error err;
    (void)state;
    o.duplicates = HEFT_DUPLICATES_LAST;
    heft_assert_ok(
        heft_file_join(&joined, (const heft_file *const[]){ first, first, first }, 3, &o, &err),
        &err);
    assert_int_equal(heft_tensor_count(joined), MANY);
    for (uint32_t t = 0; t < MANY; t++) {
        assert_int_equal(heft_tensor_find(joined, heft_tensor_at(joined, t).name), t);
        assert_int_equal(heft_part_at(joined, heft_tensor_at(joined, t).first_part).shard, 3);
    }
    heft_file_close(joined);
    heft_file_close(first);
    heft_test_free(&b);
}

static void joins_shard_sets_and_files(void **state)
{
    heft_error err;
    save_model(state, "x.bin", "xy", "\"z\":\"1\"");
    heft_file *shard_set = open_named(state, "m.safetensors.index.json"),
              *x = open_named(state, "x.bin"), *f;
    heft_assert_ok(heft_file_join(&f, (const heft_file *const[]){ x, shard_set }, 2, NULL, &err),
                   &err);
    assert_int_equal(heft_tensor_count(f), 5);
    assert_tensor(f, "x", "xxxx");
    assert_tensor(f, "c", "cccc");
    assert_meta(f, "z", "1");
    heft_assert_ok(heft_file_is_complete(f, &err), &err);
    heft_file_close(f);
    heft_assert_fails(heft_file_join(&f, NULL, 0, NULL, &err), HEFT_E_ARGUMENT, &err, "no files");
    heft_file_close(shard_set);
    heft_file_close(x);
}

static void save_gguf_shard(void **state, uint32_t number)
{
    static const char *const keys[] = { "split.no", "split.count", "split.tensors.count" };
    const uint64_t numbers[] = { number, 2, 2 }, dims[] = { 1 };
    const heft_value list = { .kind = HEFT_KIND_LIST, .key = HEFT_STR("list") };
    heft_value v = { .kind = HEFT_KIND_UINT };
    heft_test_sink sink;
    heft_writer *w;
    heft_error err;
    uint32_t part;
    char name[40];
    heft_assert_ok(heft_writer_open(&w, heft_format_find(HEFT_STR("gguf")),
                                    heft_test_sink_init(&sink, false), NULL, &err),
                   &err);
    for (size_t i = 0; i < HEFT_COUNT(keys); i++) {
        v.key = heft_test_str(keys[i]);
        v.as.u = numbers[i];
        heft_assert_ok(heft_writer_add_meta(w, v, &err), &err);
    }
    heft_assert_ok(heft_writer_add_meta(w, list, &err), &err);
    v = (heft_value){ .kind = HEFT_KIND_STR, .key = HEFT_STR(""), .as.s = HEFT_STR("text") };
    for (int i = 0; i < 3; i++)
        heft_assert_ok(heft_writer_add_meta(w, v, &err), &err);
    heft_assert_ok(heft_writer_end_meta(w, &err), &err);
    v.key = HEFT_STR("last");
    heft_assert_ok(heft_writer_add_meta(w, v, &err), &err);
    heft_assert_ok(
        heft_writer_add_dense(&part, w, heft_test_str(number ? "b" : "a"), HEFT_F32, dims, 1, &err),
        &err);
    heft_assert_ok(heft_writer_begin(w, &err), &err);
    heft_assert_ok(heft_writer_write(w, part, "abcd", 4, &err), &err);
    heft_assert_ok(heft_writer_finish(w, &err), &err);
    snprintf(name, sizeof name, "g-0000%u-of-00002.gguf", (unsigned)number + 1);
    heft_test_save(path_in(state, name), sink.p, sink.len);
    heft_test_sink_free(&sink);
}

/* The list moves when the keys of the shard are dropped. */
static void lists_after_the_keys_of_a_shard_stay_whole(void **state)
{
    heft_value v;
    for (uint32_t number = 0; number < 2; number++)
        save_gguf_shard(state, number);
    heft_file *f = open_named(state, "g-00001-of-00002.gguf");
    assert_int_equal(heft_tensor_count(f), 2);
    assert_false(heft_meta_find(&v, f, HEFT_STR("split.no")));
    assert_true(heft_meta_find(&v, f, HEFT_STR("list")));
    assert_int_equal(v.as.container.count, 3);
    assert_meta(f, "last", "text");
    for (uint32_t i = 0; i < heft_meta_count(f); i = heft_meta_next(f, i))
        assert_int_not_equal(heft_meta_at(f, i).key.len, 0); /* items of lists have no key */
    heft_file_close(f);
}

static bool is_in_first_shard(void *ctx, const heft_tensor *t)
{
    (void)ctx;
    return t->name.ptr[0] != 'c';
}

static void joins_shard_sets_that_lack_a_shard(void **state)
{
    heft_convert_options opt = HEFT_CONVERT_OPTIONS_INIT;
    heft_error err, own;
    assert_int_equal(remove(heft_test_path(*state, "m-00002-of-00002.safetensors")), 0);
    heft_file *shard_set = open_named(state, "m.safetensors.index.json"), *f;
    heft_status st = heft_file_is_complete(shard_set, &own);
    assert_int_not_equal(st, HEFT_OK);
    heft_assert_ok(heft_file_join(&f, (const heft_file *const[]){ shard_set }, 1, NULL, &err),
                   &err);
    heft_assert_fails(heft_file_is_complete(f, &err), st, &err, own.message);
    heft_file_close(f);
    opt.keep = is_in_first_shard;
    opt.dry_run = true;
    heft_assert_fails(
        heft_file_convert(shard_set, heft_format_find(HEFT_STR("safetensors")), NULL, &opt, &err),
        st, &err, own.message);
    heft_file_close(shard_set);
}

static void refuses_to_join_a_fed_file(void **state)
{
    heft_error err;
    heft_file *fed, *f;
    heft_status st;
    save_model(state, "x.bin", "xy", "");
    heft_bytes b = heft_test_load(path_in(state, "x.bin"));
    heft_assert_ok(heft_file_begin(&fed, b.len, NULL, &err), &err);
    while ((st = heft_file_step(fed, &err)) == HEFT_AGAIN) { /* in pieces: the bytes are copied */
        const heft_range *need;
        assert_int_not_equal(heft_file_needs(fed, &need), 0);
        size_t half = (size_t)need->length / 2, rest = (size_t)need->length - half;
        const uint8_t *p = (const uint8_t *)b.p + need->offset;
        heft_assert_ok(heft_file_feed(fed, need->offset, p, half, &err), &err);
        heft_assert_ok(heft_file_feed(fed, need->offset + half, p + half, rest, &err), &err);
    }
    heft_assert_ok(st, &err);
    heft_assert_fails(heft_file_join(&f, (const heft_file *const[]){ fed }, 1, NULL, &err),
                      HEFT_E_ARGUMENT, &err, "no source");
    heft_file_close(fed);
    heft_test_free(&b);
}

/* ---- files created together ----------------------------------------------------------------- */

static void put_file(heft_sink_dir *s, const char *name, const char *text)
{
    heft_error err;
    heft_sink *sink;
    heft_assert_ok(heft_sink_dir_add(&sink, s, name, &err), &err);
    heft_assert_ok(sink->ops->write_at(sink, 0, text, strlen(text), &err), &err);
    heft_assert_ok(sink->ops->finish(sink, &err), &err);
}

static void assert_file(void **state, const char *name, const char *text)
{
    heft_bytes b = heft_test_load(path_in(state, name));
    assert_int_equal(b.len, strlen(text));
    assert_memory_equal(b.p, text, b.len);
    heft_test_free(&b);
}

static heft_sink_dir *open_set(void **state, const char *dir, uint32_t flags)
{
    heft_error err;
    heft_sink_dir *s;
    heft_assert_ok(heft_sink_dir_open(&s, path_in(state, dir), flags, &err), &err);
    return s;
}

static void creates_all_files_of_a_set_at_once(void **state)
{
    heft_error err;
    heft_sink_dir *s = open_set(state, "new", 0);
    put_file(s, "a", "one");
    put_file(s, "b", "two");
    assert_int_equal(heft_test_dir_entries(path_in(state, "new")), 0);
    heft_assert_ok(heft_sink_dir_finish(s, &err), &err);
    assert_int_equal(heft_test_dir_entries(path_in(state, "new")), 2);
    assert_file(state, "new/a", "one");
    assert_file(state, "new/b", "two");
}

static void discarded_set_leaves_no_files(void **state)
{
    heft_error err;
    heft_sink *sink;
    heft_sink_dir *s = open_set(state, "new", 0);
    put_file(s, "a", "one");
    heft_sink_dir_discard(s);
    assert_false(heft_test_exists(path_in(state, "new")));
    s = open_set(state, "new", 0);
    put_file(s, "a", "one");
    heft_assert_ok(heft_sink_dir_add(&sink, s, "b", &err), &err);
    heft_sink_discard(sink);
    heft_assert_fails(heft_sink_dir_finish(s, &err), HEFT_E_ARGUMENT, &err, "not complete");
    assert_false(heft_test_exists(path_in(state, "new")));
    heft_sink_dir_discard(NULL);
}

/* Another program creates d/b before the files are committed. */
static void failed_commit_removes_committed_files(void **state)
{
    heft_error err;
    assert_int_equal(mkdir(path_in(state, "d"), 0700), 0);
    heft_sink_dir *s = open_set(state, "d", 0);
    put_file(s, "a", "one");
    put_file(s, "b", "two");
    put_file(s, "c", "three");
    heft_test_save(path_in(state, "d/b"), "other", 5);
    heft_assert_fails(heft_sink_dir_finish(s, &err), HEFT_E_ARGUMENT, &err, "already exists");
    assert_int_equal(heft_test_dir_entries(path_in(state, "d")), 1);
    assert_file(state, "d/b", "other");
}

static void failed_commit_restores_replaced_files(void **state)
{
    heft_error err;
    assert_int_equal(mkdir(path_in(state, "d"), 0700), 0);
    heft_test_save(path_in(state, "d/a"), "old", 3);
    heft_sink_dir *s = open_set(state, "d", HEFT_SINK_REPLACE);
    put_file(s, "n", "new");
    put_file(s, "a", "one");
    put_file(s, "b", "two");
    /* a folder cannot be replaced by a file */
    assert_int_equal(mkdir(path_in(state, "d/b"), 0700), 0);
    heft_assert_status(heft_sink_dir_finish(s, &err), HEFT_E_IO, &err);
    assert_int_equal(heft_test_dir_entries(path_in(state, "d")), 2);
    assert_file(state, "d/a", "old");
    assert_int_equal(rmdir(path_in(state, "d/b")), 0);
    s = open_set(state, "d", HEFT_SINK_REPLACE);
    put_file(s, "a", "one");
    put_file(s, "b", "two");
    heft_assert_ok(heft_sink_dir_finish(s, &err), &err);
    assert_int_equal(heft_test_dir_entries(path_in(state, "d")), 2);
    assert_file(state, "d/a", "one");
}

static void refuses_names_outside_the_folder(void **state)
{
    static const char *const names[] = { "", ".", "..", "a/b", "../a", "/a" };
    heft_error err;
    heft_sink *sink;
    heft_sink_dir *s = open_set(state, "d", 0);
    for (size_t i = 0; i < HEFT_COUNT(names); i++)
        heft_assert_fails(heft_sink_dir_add(&sink, s, names[i], &err), HEFT_E_ARGUMENT, &err,
                          "not a file name");
    heft_sink_dir_discard(s);
    heft_test_save(path_in(state, "file"), "x", 1);
    heft_assert_status(heft_sink_dir_open(&s, path_in(state, "file"), 0, &err), HEFT_E_IO, &err);
    heft_assert_status(heft_sink_dir_open(&s, path_in(state, "no/where"), 0, &err), HEFT_E_IO,
                       &err);
}

/* ---- splitting ------------------------------------------------------------------------------ */

static heft_status open_sink(heft_sink **out, void *ctx, const char *name, heft_error *err)
{
    return heft_sink_dir_add(out, ctx, name, err);
}

static heft_status split(const heft_file *f, const heft_format *to, heft_sink_dir *s,
                         const heft_host *host, heft_error *err)
{
    heft_write_options write = HEFT_WRITE_OPTIONS_INIT;
    heft_convert_options convert = HEFT_CONVERT_OPTIONS_INIT;
    heft_split_options opt = HEFT_SPLIT_OPTIONS_INIT;
    opt.convert = &convert;
    convert.write = &write;
    write.host = host;
    opt.count = 2;
    opt.open = open_sink;
    opt.ctx = s;
    return heft_file_split(f, to, &opt, err);
}

/* Fail every allocation once, for every format that can be split. */
static void splitting_reports_every_failed_allocation(void **state)
{
    for (uint32_t i = 0; i < heft_format_count(); i++) {
        const heft_format *to = heft_format_at(i);
        heft_status st = heft_format_can_split(to) ? HEFT_E_NOMEM : HEFT_OK;
        for (uint32_t n = 1; st; n++) {
            heft_test_memory m;
            heft_error err;
            heft_file *f;
            heft_test_memory_init(&m, 0);
            heft_assert_ok(open_with(&m, state, &f, &err), &err);
            heft_test_memory_rewind(&m);
            m.fail_at = n;
            heft_sink_dir *s = open_set(state, "out", 0);
            st = split(f, to, s, &m.host, &err);
            if (st)
                heft_assert_status(st, HEFT_E_NOMEM, &err);
            heft_sink_dir_discard(s);
            heft_file_close(f);
            heft_assert_all_freed(&m);
            assert_false(heft_test_exists(path_in(state, "out")));
            assert_true(n < 5000);
        }
    }
}

static void refuses_invalid_split_options(void **state)
{
    heft_error err;
    heft_file *f = open_named(state, "m.safetensors.index.json");
    heft_split_options opt = HEFT_SPLIT_OPTIONS_INIT;
    const heft_format *to = heft_file_format(f);
    heft_assert_fails(heft_file_split(f, to, &opt, &err), HEFT_E_ARGUMENT, &err,
                      "neither a size limit nor");
    opt.count = 1;
    heft_assert_fails(heft_file_split(f, to, &opt, &err), HEFT_E_ARGUMENT, &err,
                      "heft_split_options.open");
    opt.open = open_sink;
    opt.stem = "a/b";
    heft_assert_fails(heft_file_split(f, to, &opt, &err), HEFT_E_ARGUMENT, &err, "'a/b'");
    heft_assert_fails(heft_file_split(f, heft_format_find(HEFT_STR("mag")), &opt, &err),
                      HEFT_E_UNSUPPORTED, &err, "one file");
    heft_file_close(f);
}

int main(void)
{
#define IN_A_SET(test) cmocka_unit_test_setup_teardown(test, make_shard_set, heft_test_dir_remove)
    const struct CMUnitTest tests[] = {
        IN_A_SET(opens_a_folder_as_its_index),
        IN_A_SET(index_in_memory_has_no_shards),
        IN_A_SET(refuses_an_index_as_a_shard),
        IN_A_SET(limits_apply_to_all_shards_together),
        IN_A_SET(opening_reports_every_failed_allocation),
        IN_A_SET(joins_files_by_the_rule_for_duplicates),
        IN_A_SET(joins_shard_sets_and_files),
        IN_A_SET(lists_after_the_keys_of_a_shard_stay_whole),
        IN_A_SET(joins_shard_sets_that_lack_a_shard),
        IN_A_SET(refuses_to_join_a_fed_file),
        IN_A_SET(creates_all_files_of_a_set_at_once),
        IN_A_SET(discarded_set_leaves_no_files),
        IN_A_SET(failed_commit_removes_committed_files),
        IN_A_SET(failed_commit_restores_replaced_files),
        IN_A_SET(refuses_names_outside_the_folder),
        IN_A_SET(splitting_reports_every_failed_allocation),
        cmocka_unit_test(joins_many_tensors_of_the_same_names),
        IN_A_SET(refuses_invalid_split_options),
    };
    return cmocka_run_group_tests_name("shards", tests, NULL, NULL);
}
