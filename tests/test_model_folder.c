/* test_model_folder.c - symbolic links in a model's folder: followed inside the folder, or inside
 * the repository of a download cache, and nowhere else. */
#include "heft_test.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LEAVES     "is a symbolic link that leaves the model's folder"
#define UNRESOLVED "is a symbolic link that cannot be resolved"

/* ---- layouts -------------------------------------------------------------------------------- */

typedef struct item {        /* an entry of a layout, relative to the test's directory */
    const char *path, *link; /* link NULL: a folder if the path ends with a slash, else a file */
} item;

/* Make the entry. The content of a file is the path, to identify the file. */
static void make(const char *dir, const item *i)
{
    const char *path = heft_test_path(dir, i->path);
    if (i->link)
        assert_int_equal(symlink(i->link, path), 0);
    else if (path[strlen(path) - 1] == '/')
        assert_int_equal(mkdir(path, 0700), 0);
    else
        heft_test_save(path, i->path, strlen(i->path));
}

/* A cache with the repositories m and n; the file secret is outside of both. */
static const item cache[] = {
    { "secret", NULL },
    { "m/", NULL },
    { "m/blobs/", NULL },
    { "m/blobs/h", NULL },
    { "m/blobs/sub/", NULL },
    { "m/blobs/sub/h", NULL },
    { "m/refs/", NULL },
    { "m/refs/main", NULL },
    { "m/snapshots/", NULL },
    { "m/snapshots/r/", NULL },
    { "m/snapshots/r/plain", NULL },
    { "m/snapshots/r/x/", NULL },
    { "m/snapshots/r/x/y/", NULL },
    { "n/", NULL },
    { "n/blobs/", NULL },
    { "n/blobs/h", NULL },
    { "n/snapshots/", NULL },
};

static void make_cache(const char *dir)
{
    for (size_t i = 0; i < HEFT_COUNT(cache); i++)
        make(dir, &cache[i]);
}

static heft_status read_from(char text[64], const char *folder, const char *name, heft_error *err)
{
    heft_source *s;
    heft_status st = heft_source_open_in_folder(&s, folder, name, HEFT_ACCESS_READ, err);
    if (st)
        return st;
    assert_in_range(s->size, 0, 63);
    text[s->size] = '\0';
    st = s->ops->read(s, 0, text, (size_t)s->size, err);
    heft_source_close(s);
    return st;
}

typedef struct row {
    const char *folder; /* the folder of the link "l" */
    const char *target;
    const char *found, *words; /* the file that is opened; or part of the error message … */
    int os;                    /* … and errno */
} row;

static void check(const char *dir, const row *r)
{
    char path[600], text[64];
    heft_error err;
    snprintf(path, sizeof path, "%s/l", heft_test_path(dir, r->folder));
    assert_int_equal(symlink(r->target, path), 0);
    heft_status st = read_from(text, heft_test_path(dir, r->folder), "l", &err);
    if (r->found) {
        heft_assert_ok(st, &err);
        assert_string_equal(text, r->found);
    } else {
        heft_assert_fails(st, HEFT_E_IO, &err, r->words);
        assert_int_equal(err.os, r->os);
    }
    assert_int_equal(unlink(path), 0);
}

static void follows_links_inside_the_repository_only(void **state)
{
    static const row rows[] = {
        { "m/snapshots/r", "../../blobs/h", "m/blobs/h", NULL, 0 },
        { "m/snapshots/r/x/y", "../../../../blobs/h", "m/blobs/h", NULL, 0 },
        { "m/snapshots/r", "../../blobs//sub/./h", "m/blobs/sub/h", NULL, 0 },
        { "m/snapshots/r", "../r/x/../plain", "m/snapshots/r/plain", NULL, 0 },
        { "m/snapshots/r", "plain", "m/snapshots/r/plain", NULL, 0 },
        { "m/snapshots/r", "../../refs/main", "m/refs/main", NULL, 0 },
        { "m/snapshots/r", "../../../m/blobs/h", NULL, LEAVES, 0 },
        { "m/snapshots/r", "../../../n/blobs/h", NULL, LEAVES, 0 },
        { "m/snapshots/r", "../../../secret", NULL, LEAVES, 0 },
        { "m/snapshots/r", "../../blobs/../../secret", NULL, LEAVES, 0 },
        { "m/snapshots/r", "x/y/../../../../../secret", NULL, LEAVES, 0 },
        { "m/snapshots/r", "/etc/passwd", NULL, LEAVES, 0 },
        { "m/snapshots/r", "/", NULL, LEAVES, 0 },
        { "m/snapshots/r", "../../blobs/none", NULL, UNRESOLVED, ENOENT },
        { "m/snapshots/r", "../../none/h", NULL, UNRESOLVED, ENOENT },
        { "m/snapshots/r", "l", NULL, UNRESOLVED, ELOOP },
        { "m/snapshots/r", "../r/l", NULL, UNRESOLVED, ELOOP },
        { "m/snapshots/r", "l/h", NULL, UNRESOLVED, ELOOP },
        { "m/snapshots/r", "plain/h", NULL, UNRESOLVED, ENOTDIR },
        { "m/snapshots/r", "plain/", NULL, UNRESOLVED, ENOTDIR },
        { "m/snapshots/r", "../../blobs", NULL, "cannot be opened", EISDIR },
        { "m/snapshots/r", "../../blobs/", NULL, UNRESOLVED, EISDIR },
        { "m/snapshots/r", "../..", NULL, UNRESOLVED, EISDIR },
        { "m/snapshots/r", ".", NULL, UNRESOLVED, EISDIR },
        /* outside of `snapshots` the folder is the root */
        { "m/blobs", "h", "m/blobs/h", NULL, 0 },
        { "m/blobs", "sub/h", "m/blobs/sub/h", NULL, 0 },
        { "m/blobs", "./sub/../h", "m/blobs/h", NULL, 0 },
        { "m/blobs", "../refs/main", NULL, LEAVES, 0 },
        { "m/blobs", "../blobs/h", NULL, LEAVES, 0 },
        { "m", "blobs/h", "m/blobs/h", NULL, 0 },
        { "m", "../secret", NULL, LEAVES, 0 },
        { "n/snapshots", "../blobs/h", "n/blobs/h", NULL, 0 },
    };
    make_cache(*state);
    for (size_t i = 0; i < HEFT_COUNT(rows); i++)
        check(*state, &rows[i]);
}

/* `blobs` and `snapshots` must be folders, not links to folders. */
static void repository_requires_blobs_and_snapshots(void **state)
{
    static const item items[] = {
        { "blobs/", NULL },
        { "blobs/h", NULL },
        { "m/", NULL },
        { "m/snapshots/", NULL },
        { "m/snapshots/r/", NULL },
        { "n/", NULL },
        { "n/blobs", "../blobs" },
        { "n/snapshots/", NULL },
        { "n/snapshots/r/", NULL },
        { "o/", NULL },
        { "o/blobs/", NULL },
        { "o/blobs/h", NULL },
        { "o/real/", NULL },
        { "o/real/r/", NULL },
        { "o/snapshots", "real" },
    };
    static const row rows[] = {
        { "m/snapshots/r", "../../../blobs/h", NULL, LEAVES, 0 },
        { "n/snapshots/r", "../../blobs/h", NULL, LEAVES, 0 },
        { "o/real/r", "../../blobs/h", NULL, LEAVES, 0 },
    };
    for (size_t i = 0; i < HEFT_COUNT(items); i++)
        make(*state, &items[i]);
    for (size_t i = 0; i < HEFT_COUNT(rows); i++)
        check(*state, &rows[i]);
}

static void follows_chains_of_40_links(void **state)
{
    char name[16], target[16], text[64];
    heft_error err;
    make(*state, &(item){ "0", NULL });
    for (int i = 1; i <= 41; i++) {
        snprintf(name, sizeof name, "%d", i);
        snprintf(target, sizeof target, "%d", i - 1);
        make(*state, &(item){ name, target });
    }
    heft_assert_ok(read_from(text, *state, "40", &err), &err);
    assert_string_equal(text, "0");
    heft_assert_fails(read_from(text, *state, "41", &err), HEFT_E_IO, &err, UNRESOLVED);
    assert_int_equal(err.os, ELOOP);
}

/* Links to folders count as links, and so does a link that makes the path ever longer. */
static void follows_links_to_folders(void **state)
{
    static const item items[] = {
        { "m/snapshots/r/blobs", "../../blobs" },
        { "m/snapshots/r/out", "../../.." },
        { "m/snapshots/r/abs", "/etc" },
        { "m/snapshots/r/long", "x/../long/y" },
    };
    static const row rows[] = {
        { "m/snapshots/r", "blobs/sub/h", "m/blobs/sub/h", NULL, 0 },
        { "m/snapshots/r", "blobs/../refs/main", "m/refs/main", NULL, 0 },
        { "m/snapshots/r", "out/secret", NULL, LEAVES, 0 },
        { "m/snapshots/r", "abs/passwd", NULL, LEAVES, 0 },
        { "m/snapshots/r", "long", NULL, UNRESOLVED, ELOOP },
    };
    make_cache(*state);
    for (size_t i = 0; i < HEFT_COUNT(items); i++)
        make(*state, &items[i]);
    for (size_t i = 0; i < HEFT_COUNT(rows); i++)
        check(*state, &rows[i]);
}

static void refuses_a_path_deeper_than_64_folders(void **state)
{
    char path[600], target[300] = "";
    heft_error err;
    size_t len = (size_t)snprintf(path, sizeof path, "%s", (const char *)*state);
    for (int i = 0; i < 64; i++) {
        len += (size_t)snprintf(path + len, sizeof path - len, "/d");
        assert_int_equal(mkdir(path, 0700), 0);
        strcat(target, "d/");
    }
    strcat(target, "f");
    assert_int_equal(symlink(target, heft_test_path(*state, "l")), 0);
    heft_source *s;
    heft_assert_fails(heft_source_open_in_folder(&s, *state, "l", HEFT_ACCESS_READ, &err),
                      HEFT_E_IO, &err, UNRESOLVED);
    assert_null(s);
}

static void opens_only_regular_files_with_plain_names(void **state)
{
    static const struct {
        const char *name, *words;
        heft_status st;
        int os;
    } rows[] = {
        { "", "not a file name", HEFT_E_ARGUMENT, 0 },
        { ".", "not a file name", HEFT_E_ARGUMENT, 0 },
        { "..", "not a file name", HEFT_E_ARGUMENT, 0 },
        { "m/h", "not a file name", HEFT_E_ARGUMENT, 0 },
        { "none", "cannot be opened", HEFT_E_IO, ENOENT },
        { "pipe", "is a pipe or a device", HEFT_E_IO, ESPIPE }, /* without waiting for a writer */
        { "to-pipe", "is a pipe or a device", HEFT_E_IO, ESPIPE },
        { "m", "cannot be opened", HEFT_E_IO, EISDIR },
    };
    heft_error err;
    heft_source *s;
    make(*state, &(item){ "m/", NULL });
    make(*state, &(item){ "m/h", NULL });
    assert_int_equal(mkfifo(heft_test_path(*state, "pipe"), 0600), 0);
    make(*state, &(item){ "to-pipe", "pipe" });
    for (size_t i = 0; i < HEFT_COUNT(rows); i++) {
        heft_status st = heft_source_open_in_folder(&s, *state, rows[i].name, HEFT_ACCESS_AUTO,
                                                    &err);
        heft_assert_fails(st, rows[i].st, &err, rows[i].words);
        assert_int_equal(err.os, rows[i].os);
        assert_null(s);
    }
    heft_assert_fails(
        heft_source_open_in_folder(&s, heft_test_path(*state, "none"), "x", HEFT_ACCESS_AUTO, &err),
        HEFT_E_IO, &err, "is in a folder that cannot be opened");
}

/* ---- concurrent changes --------------------------------------------------------------------- */

typedef struct swapper {
    char paths[4][600]; /* two pairs of paths to exchange */
    atomic_bool done;
} swapper;

/* Exchange an inside link with a leaving link, and a folder with a leaving link, repeatedly. */
static void *swap_paths(void *arg)
{
    swapper *s = arg;
    for (unsigned i = 0; !atomic_load(&s->done); i += 2)
        syscall(SYS_renameat2, AT_FDCWD, s->paths[i % 4], AT_FDCWD, s->paths[i % 4 + 1],
                RENAME_EXCHANGE);
    return NULL;
}

static void stays_inside_a_folder_that_changes(void **state)
{
    static const item items[] = { { "out/", NULL },
                                  { "out/h", NULL },
                                  { "m/blobs/away", "../../out" },
                                  { "m/snapshots/r/w", "../../blobs/sub/h" },
                                  { "m/snapshots/r/out", "../../../out/h" } };
    static const char *const swapped[] = { "m/snapshots/r/w", "m/snapshots/r/out", "m/blobs/sub",
                                           "m/blobs/away" };
    swapper s = { .done = false };
    pthread_t thread;
    make_cache(*state);
    for (size_t i = 0; i < HEFT_COUNT(items); i++)
        make(*state, &items[i]);
    for (size_t i = 0; i < HEFT_COUNT(swapped); i++)
        snprintf(s.paths[i], sizeof s.paths[i], "%s", heft_test_path(*state, swapped[i]));
    char folder[600];
    snprintf(folder, sizeof folder, "%s/m/snapshots/r", (const char *)*state);
    assert_int_equal(pthread_create(&thread, NULL, swap_paths, &s), 0);
    unsigned wrong = 0;
    for (int i = 0; i < 3000; i++) {
        char text[64];
        heft_error err;
        if (!read_from(text, folder, "w", &err))
            wrong += strcmp(text, "m/blobs/sub/h") != 0;
    }
    atomic_store(&s.done, true);
    pthread_join(thread, NULL);
    assert_int_equal(wrong, 0);
}

/* ---- models --------------------------------------------------------------------------------- */

static const char shard_a[] = "{\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]}}",
                  shard_b[] = "{\"b\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]}}",
                  index_text[] = "{\"metadata\":{\"total_size\":4},\"weight_map\":{"
                                 "\"a\":\"model-00001-of-00002.safetensors\","
                                 "\"b\":\"model-00002-of-00002.safetensors\"}}";

static void save_shard(const char *dir, const char *name, const char *header, const char *data)
{
    uint8_t bytes[256] = { (uint8_t)strlen(header) };
    memcpy(bytes + 8, header, strlen(header));
    memcpy(bytes + 8 + strlen(header), data, 2);
    heft_test_save(heft_test_path(dir, name), bytes, 8 + strlen(header) + 2);
}

/* Make the cache with a model of two shards; all files of the model are links to blobs. */
static void make_shard_set(const char *dir)
{
    static const item links[] = {
        { "m/snapshots/r/model.safetensors.index.json", "../../blobs/index" },
        { "m/snapshots/r/model-00001-of-00002.safetensors", "../../blobs/a" },
        { "m/snapshots/r/model-00002-of-00002.safetensors", "../../blobs/b" },
    };
    make_cache(dir);
    save_shard(dir, "m/blobs/a", shard_a, "aa");
    save_shard(dir, "m/blobs/b", shard_b, "bb");
    heft_test_save(heft_test_path(dir, "m/blobs/index"), index_text, strlen(index_text));
    for (size_t i = 0; i < HEFT_COUNT(links); i++)
        make(dir, &links[i]);
}

static void assert_opens(const char *path, uint32_t tensors)
{
    heft_error err;
    heft_file *f;
    heft_hash hash, tensor_hashes[2];
    heft_assert_ok(heft_file_open(&f, path, NULL, &err), &err);
    heft_assert_ok(heft_file_is_complete(f, &err), &err);
    assert_int_equal(heft_tensor_count(f), tensors);
    heft_assert_ok(heft_file_hash(&hash, tensor_hashes, f, NULL, NULL, &err), &err);
    heft_file_close(f);
}

static void opens_a_snapshot_of_a_cache(void **state)
{
    make_shard_set(*state);
    assert_opens(heft_test_path(*state, "m/snapshots/r"), 2);
    assert_opens(heft_test_path(*state, "m/snapshots/r/"), 2);
    assert_opens(heft_test_path(*state, "m/snapshots/r/model.safetensors.index.json"), 2);
    assert_opens(heft_test_path(*state, "m/snapshots/r/model-00002-of-00002.safetensors"), 1);
}

static void opens_a_snapshot_through_a_link(void **state)
{
    make_shard_set(*state);
    make(*state, &(item){ "model", "m/snapshots/r" });
    assert_opens(heft_test_path(*state, "model"), 2);
    assert_opens(heft_test_path(*state, "model/model.safetensors.index.json"), 2);
}

static void relink(const char *dir, const char *name, const char *target)
{
    assert_int_equal(unlink(heft_test_path(dir, name)), 0);
    make(dir, &(item){ name, target });
}

static void reports_a_shard_outside_the_folder_as_missing(void **state)
{
    heft_error err;
    heft_file *f;
    make_shard_set(*state);
    save_shard(*state, "n/blobs/b", shard_b, "bb");
    relink(*state, "m/snapshots/r/model-00002-of-00002.safetensors", "../../../n/blobs/b");
    heft_assert_ok(heft_file_open(&f, heft_test_path(*state, "m/snapshots/r"), NULL, &err), &err);
    heft_assert_fails(heft_file_is_complete(f, &err), HEFT_E_IO, &err,
                      "shard 'model-00002-of-00002.safetensors' " LEAVES);
    heft_file_close(f);
}

static void refuses_an_index_outside_the_folder(void **state)
{
    heft_error err;
    heft_file *f;
    make_shard_set(*state);
    heft_test_save(heft_test_path(*state, "n/blobs/index"), index_text, strlen(index_text));
    relink(*state, "m/snapshots/r/model.safetensors.index.json", "../../../n/blobs/index");
    heft_assert_fails(heft_file_open(&f, heft_test_path(*state, "m/snapshots/r"), NULL, &err),
                      HEFT_E_IO, &err, "shard 'model.safetensors.index.json' " LEAVES);
    assert_null(f);
}

/* Only files that a model refers to are restricted, not the path that the caller passes. */
static void opens_any_link_passed_by_the_caller(void **state)
{
    make_shard_set(*state);
    make(*state, &(item){ "n/one.safetensors", "../m/blobs/a" });
    assert_opens(heft_test_path(*state, "n/one.safetensors"), 1);
}

/* heft_file_open() takes names of the cache, too. */
static void opens_a_repository_of_the_cache_by_name(void **state)
{
    char path[600];
    heft_error err;
    heft_file *f;
    make_shard_set(*state);
    assert_int_equal(rename(heft_test_path(*state, "m"), heft_test_path(*state, "models--o--m")),
                     0);
    assert_int_equal(setenv("HF_HUB_CACHE", *state, 1), 0);
    assert_opens("hub:o/m@r", 2);
    heft_assert_fails(heft_file_open(&f, "hub:o/none", NULL, &err), HEFT_E_IO, &err,
                      "is not in the Hugging Face cache");
    assert_int_equal(err.os, ENOENT);
    heft_assert_fails(heft_file_open(&f, "hub:o/m/../n", NULL, &err), HEFT_E_ARGUMENT, &err,
                      "is not a name");
    heft_assert_fails(heft_hub_path(path, strlen(*state) + 1, "hub:o/m@r", &err), HEFT_E_LIMIT,
                      &err, "too long");
    heft_assert_fails(heft_hub_path(path, sizeof path, "o/m", &err), HEFT_E_ARGUMENT, &err,
                      "begins with hub:");
    assert_int_equal(unsetenv("HF_HUB_CACHE"), 0);
}

#define with_dir(fn) cmocka_unit_test_setup_teardown(fn, heft_test_dir_make, heft_test_dir_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        with_dir(follows_links_inside_the_repository_only),
        with_dir(repository_requires_blobs_and_snapshots),
        with_dir(follows_chains_of_40_links),
        with_dir(follows_links_to_folders),
        with_dir(refuses_a_path_deeper_than_64_folders),
        with_dir(opens_only_regular_files_with_plain_names),
        with_dir(stays_inside_a_folder_that_changes),
        with_dir(opens_a_snapshot_of_a_cache),
        with_dir(opens_a_snapshot_through_a_link),
        with_dir(reports_a_shard_outside_the_folder_as_missing),
        with_dir(refuses_an_index_outside_the_folder),
        with_dir(opens_any_link_passed_by_the_caller),
        with_dir(opens_a_repository_of_the_cache_by_name),
    };
    return cmocka_run_group_tests_name("model_folder", tests, NULL, NULL);
}
