/* test_hub_cache.c - names in the local Hugging Face cache: the folder, the names, the
 * revisions. */
#include "heft_test.h"

#include <heft/private.h>

#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#define LETTERS_16 "xxxxxxxxxxxxxxxx"
#define LETTERS_128 \
    LETTERS_16 LETTERS_16 LETTERS_16 LETTERS_16 LETTERS_16 LETTERS_16 LETTERS_16 LETTERS_16
#define LETTERS_240 \
    LETTERS_128 LETTERS_16 LETTERS_16 LETTERS_16 LETTERS_16 LETTERS_16 LETTERS_16 LETTERS_16

/* ---- the folder of the cache ---------------------------------------------------------------- */

static const char *const variables[] = { "HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "HF_HOME",
                                         "XDG_CACHE_HOME", "HOME" };

static void clear_variables(void)
{
    for (size_t i = 0; i < HEFT_COUNT(variables); i++)
        unsetenv(variables[i]);
}

static void the_first_variable_names_the_cache(void **state)
{
    static const char *const below[] = { "", "", "/hub", "/huggingface/hub",
                                         "/.cache/huggingface/hub" };
    char path[PATH_MAX], wanted[64];
    heft_error err;
    (void)state;
    clear_variables();
    heft_assert_fails(heft_hub_path(path, sizeof path, "hub:", &err), HEFT_E_NOTFOUND, &err,
                      "set HF_HUB_CACHE");
    for (size_t i = HEFT_COUNT(variables); i--;) {
        char value[16];
        snprintf(value, sizeof value, "/%zu", i);
        setenv(variables[i], value, 1);
        snprintf(wanted, sizeof wanted, "%s%s", value, below[i]);
        heft_assert_ok(heft_hub_path(path, sizeof path, "hub:", &err), &err);
        assert_string_equal(path, wanted);
    }
    setenv("HF_HUB_CACHE", "", 1); /* like a missing variable */
    heft_assert_ok(heft_hub_path(path, sizeof path, "hub:", &err), &err);
    assert_string_equal(path, "/1");
}

static void a_tilde_is_the_home_folder(void **state)
{
    static const struct {
        const char *home, *value, *wanted;
    } rows[] = {
        { "/h", "~", "/h" },      { "/h", "~/c", "/h/c" }, { "/h", "~c", "~c" },
        { "/h", "/~/c", "/~/c" }, { NULL, "~/c", "/c" },
    };
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(rows); i++) {
        char path[PATH_MAX];
        heft_error err;
        clear_variables();
        setenv("HF_HUB_CACHE", rows[i].value, 1);
        if (rows[i].home)
            setenv("HOME", rows[i].home, 1);
        heft_assert_ok(heft_hub_path(path, sizeof path, "hub:", &err), &err);
        assert_string_equal(path, rows[i].wanted);
    }
}

static void refuses_paths_that_are_too_long(void **state)
{
    char path[PATH_MAX + 1], name[PATH_MAX + 1];
    heft_error err;
    (void)state;
    clear_variables();
    memset(name, 'x', sizeof name);
    name[PATH_MAX] = '\0';
    setenv("HF_HUB_CACHE", name, 1);
    heft_assert_fails(heft_hub_path(path, sizeof path, "hub:", &err), HEFT_E_LIMIT, &err,
                      "too long");
    name[PATH_MAX - 1] = '\0';
    setenv("HF_HUB_CACHE", name, 1);
    heft_assert_ok(heft_hub_path(path, PATH_MAX, "hub:", &err), &err);
    assert_string_equal(path, name);
    heft_assert_fails(heft_hub_path(path, PATH_MAX - 1, "hub:", &err), HEFT_E_LIMIT, &err,
                      "too long");
}

/* ---- a cache -------------------------------------------------------------------------------- */

static void make_folders(const char *dir, const char *below)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", dir, below);
    for (char *p = path + strlen(dir) + 1; (p = strchr(p, '/')); *p++ = '/') {
        *p = '\0';
        mkdir(path, 0700);
    }
    mkdir(path, 0700);
}

static void make_file(const char *dir, const char *below, const char *text, size_t len)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", dir, below);
    heft_test_save(path, text, len);
}

static void make_ref(const char *dir, const char *name, const char *text)
{
    char below[64];
    snprintf(below, sizeof below, "models--own--net/refs/%s", name);
    make_file(dir, below, text, strlen(text));
}

static void make_cache(const char *dir)
{
    static const char *const folders[] = {
        "models--own--net/refs/folder",
        "models--own--net/snapshots/abcd1",
        "models--own--net/snapshots/abcd2",
        "models--own--net/snapshots/beef",
        "models--own--net/snapshots/word",
        "models--own--net/snapshots/.hid",
        "models--own--two/snapshots/1111",
        "models--own--two/snapshots/2222",
        "models--one/snapshots/3333",
        "models--none/refs",
        "models--azAZ09-_./snapshots/4444",
        "models--" LETTERS_240 "/snapshots/5555",
        "datasets--own--net",
        "models--",
    };
    for (size_t i = 0; i < HEFT_COUNT(folders); i++)
        make_folders(dir, folders[i]);
    make_ref(dir, "main", "beef");
    make_ref(dir, "lines", "beef \r\n\n");
    make_ref(dir, "empty", "");
    make_ref(dir, "blank", "\n");
    make_ref(dir, "dots", "..");
    make_ref(dir, "deep", "beef/x");
    make_ref(dir, "gone", "dead");
    make_ref(dir, "filled", LETTERS_240 "xxxxxxxxxxxxxxx");      /* 255 bytes: a name */
    make_ref(dir, "overlong", LETTERS_240 "xxxxxxxxxxxxxxxxxx"); /* 258 bytes */
    make_file(dir, "models--own--net/refs/zero", "be\0ef", 5);
    make_file(dir, "models--own--net/snapshots/f11e", "", 0);
    assert_int_equal(symlink("main", heft_test_path(dir, "models--own--net/refs/link")), 0);
    assert_int_equal(mkfifo(heft_test_path(dir, "models--own--net/refs/pipe"), 0600), 0);
    clear_variables();
    setenv("HF_HUB_CACHE", dir, 1);
}

#define NOT_A_NAME  "is not a name in the cache"
#define NO_REVISION "has no revision"
#define NOT_HERE    "is not in the Hugging Face cache"

static void finds_what_is_in_the_cache(void **state)
{
    static const struct {
        const char *name, *below,
            *words; /* below NULL: the call fails, the words are in the message */
    } rows[] = {
        /* repositories */
        { "hub:own/net", "own--net/snapshots/beef", NULL },
        { "hub:own/net/", "own--net/snapshots/beef", NULL },
        { "hub:one", "one/snapshots/3333", NULL },
        { "hub:one/", "one/snapshots/3333", NULL },
        { "hub:one/file", "one/snapshots/3333/file", NULL },
        { "hub:one@3333/file", "one/snapshots/3333/file", NULL },
        { "hub:azAZ09-_.", "azAZ09-_./snapshots/4444", NULL },
        { "hub:" LETTERS_240, LETTERS_240 "/snapshots/5555", NULL },
        { "hub:own", NULL, NOT_HERE },
        { "hub:own/nets", NULL, NOT_HERE },
        { "hub:" LETTERS_240 "xxxxxxxxxxxxxxx", NULL, NOT_HERE }, /* NAME_MAX letters */
        { "hub:" LETTERS_240 "xxxxxxxxxxxxxxxx", NULL, NOT_A_NAME },
        { "hub:own/" LETTERS_240 "xxxxxxxxxxxxxxxx", NULL, NOT_A_NAME },
        { "hub:" LETTERS_240 "xxxxxxxxxxxxxxxx/net", NULL, NOT_A_NAME },
        { "hub:/net", NULL, NOT_A_NAME },
        { "hub:@main", NULL, NOT_A_NAME },
        { "hub:own@main/net", NULL, NOT_A_NAME },
        { "hub:.own/net", NULL, NOT_A_NAME },
        { "hub:own/.net", NULL, NOT_A_NAME },
        { "hub:a`", NULL, NOT_A_NAME },
        { "hub:a{", NULL, NOT_A_NAME },
        { "hub:a[", NULL, NOT_A_NAME },
        { "hub:a:", NULL, NOT_A_NAME },
        { "hub:a ", NULL, NOT_A_NAME },
        { "hub:own/a!", NULL, NOT_A_NAME },
        /* files */
        { "hub:own/net/a", "own--net/snapshots/beef/a", NULL },
        { "hub:own/net/a/b", "own--net/snapshots/beef/a/b", NULL },
        { "hub:own/net/..a/.b/...", "own--net/snapshots/beef/..a/.b/...", NULL },
        { "hub:own/net/a/", NULL, NOT_A_NAME },
        { "hub:own/net//a", NULL, NOT_A_NAME },
        { "hub:own/net/a//b", NULL, NOT_A_NAME },
        { "hub:own/net/.", NULL, NOT_A_NAME },
        { "hub:own/net/..", NULL, NOT_A_NAME },
        { "hub:own/net/a/../b", NULL, NOT_A_NAME },
        { "hub:own/net/a/./b", NULL, NOT_A_NAME },
        { "hub:own/net/" LETTERS_240 "xxxxxxxxxxxxxxx",
          "own--net/snapshots/beef/" LETTERS_240 "xxxxxxxxxxxxxxx", NULL },
        { "hub:own/net/" LETTERS_240 "xxxxxxxxxxxxxxxx", NULL, NOT_A_NAME },
        /* revisions */
        { "hub:own/net@main", "own--net/snapshots/beef", NULL },
        { "hub:own/net@lines/a", "own--net/snapshots/beef/a", NULL },
        { "hub:own/net@beef", "own--net/snapshots/beef", NULL },
        { "hub:own/net@word", "own--net/snapshots/word", NULL },
        { "hub:own/net@abcd1", "own--net/snapshots/abcd1", NULL },
        { "hub:own/net@.hid", "own--net/snapshots/.hid", NULL },
        { "hub:own/two@1111", "own--two/snapshots/1111", NULL },
        { "hub:own/net@", NULL, NOT_A_NAME },
        { "hub:own/net@/a", NULL, NOT_A_NAME },
        { "hub:own/net@.", NULL, NOT_A_NAME },
        { "hub:own/net@..", NULL, NOT_A_NAME },
        { "hub:own/net@" LETTERS_240 "xxxxxxxxxxxxxxxx", NULL, NOT_A_NAME },
        { "hub:own/net@...", NULL, NO_REVISION },
        { "hub:own/net@.x", NULL, NO_REVISION },
        { "hub:own/net@" LETTERS_240 "xxxxxxxxxxxxxxx", NULL, NO_REVISION },
        { "hub:own/net@empty", NULL, NO_REVISION },
        { "hub:own/net@blank", NULL, NO_REVISION },
        { "hub:own/net@dots", NULL, NO_REVISION },
        { "hub:own/net@deep", NULL, NO_REVISION },
        { "hub:own/net@zero", NULL, NO_REVISION },
        { "hub:own/net@overlong", NULL, NO_REVISION },
        { "hub:own/net@filled", NULL, "is the commit" },
        { "hub:own/net@gone", NULL, "is the commit 'dead', which is not in the cache" },
        { "hub:own/net@f11e", NULL, "is the commit 'f11e', which is not in the cache" },
        { "hub:own/net@folder", NULL, NO_REVISION },
        { "hub:own/net@link", NULL, NO_REVISION },
        { "hub:own/net@pipe", NULL, NO_REVISION },
        { "hub:none", NULL, NO_REVISION },
        /* the beginning of a commit */
        { "hub:own/net@bee", NULL, NO_REVISION },
        { "hub:own/two@222", NULL, NO_REVISION },
        { "hub:own/net@abcd", NULL, "2 commits in the cache begin with" },
        { "hub:own/net@wor", NULL, NO_REVISION },
        { "hub:own/net@.hi", NULL, NO_REVISION },
        { "hub:own/two", NULL, "2 commits are in the cache" },
        { "hub:own/two@2222x", NULL, NO_REVISION },
    };
    make_cache(*state);
    for (size_t i = 0; i < HEFT_COUNT(rows); i++) {
        char path[PATH_MAX], wanted[PATH_MAX];
        heft_error err;
        heft_status st = heft_hub_path(path, sizeof path, rows[i].name, &err);
        if (rows[i].words) {
            bool is_argument = !strcmp(rows[i].words, NOT_A_NAME) ||
                               !strncmp(rows[i].words, "2 commits", 9);
            heft_assert_fails(st, is_argument ? HEFT_E_ARGUMENT : HEFT_E_IO, &err, rows[i].words);
            continue;
        }
        heft_assert_ok(st, &err);
        snprintf(wanted, sizeof wanted, "%s/models--%s", (const char *)*state, rows[i].below);
        assert_string_equal(path, wanted);
    }
}

static void refuses_other_names_and_missing_caches(void **state)
{
    char path[PATH_MAX];
    heft_error err;
    make_cache(*state);
    heft_assert_fails(heft_hub_path(path, sizeof path, NULL, &err), HEFT_E_ARGUMENT, &err, "hub:");
    heft_assert_fails(heft_hub_path(path, sizeof path, "hub", &err), HEFT_E_ARGUMENT, &err, "hub:");
    setenv("HF_HUB_CACHE", heft_test_path(*state, "missing"), 1);
    heft_assert_fails(heft_hub_path(path, sizeof path, "hub:own/net", &err), HEFT_E_IO, &err,
                      "there is no Hugging Face cache in");
}

/* Name the cache by a path of `len` bytes. */
static void lengthen_cache(const char *dir, size_t len)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s", dir);
    for (size_t used = strlen(path); used < len; used++)
        path[used] = used + 1 == len || (used - strlen(dir)) % 2 == 0 ? '/' : '.';
    path[len] = '\0';
    setenv("HF_HUB_CACHE", path, 1);
}

static void refuses_a_path_that_becomes_too_long(void **state)
{
    static const struct {
        const char *name, *fits; /* path below the cache that has just enough bytes */
        size_t more;             /* further bytes */
        heft_status st;
        const char *words;
    } rows[] = {
        { "hub:own/net/a", "/models--own--net/snapshots/beef/a", 0, HEFT_OK, "" },
        { "hub:own/net/a", "/models--own--net/snapshots/beef/a", 1, HEFT_E_LIMIT, "too long" },
        { "hub:own/net", "/models--own--net/snapshots/beef", 0, HEFT_OK, "" },
        { "hub:own/net", "/models--own--net/snapshots/beef", 1, HEFT_E_LIMIT, "too long" },
        { "hub:own/net@word", "/models--own--net/snapshots/word", 0, HEFT_OK, "" },
        { "hub:own/net@word", "/models--own--net/snapshots/word", 1, HEFT_E_IO, NO_REVISION },
        { "hub:own/net", "/models--own--net/refs/main", 0, HEFT_E_LIMIT, "too long" },
        { "hub:own/net", "/models--own--net/refs/main", 1, HEFT_E_IO, NO_REVISION },
        { "hub:own/two", "/models--own--two/snapshots", 0, HEFT_E_ARGUMENT, "2 commits" },
        { "hub:own/two", "/models--own--two/snapshots", 1, HEFT_E_IO, NO_REVISION },
        { "hub:own/net", "/models--own--net", 0, HEFT_E_IO, NO_REVISION },
        { "hub:own/net", "/models--own--net", 1, HEFT_E_IO, NOT_HERE },
    };
    make_cache(*state);
    for (size_t i = 0; i < HEFT_COUNT(rows); i++) {
        char path[PATH_MAX];
        heft_error err;
        lengthen_cache(*state, PATH_MAX - 1 - strlen(rows[i].fits) + rows[i].more);
        heft_status st = heft_hub_path(path, sizeof path, rows[i].name, &err);
        heft_assert_status(st, rows[i].st, &err);
        if (st)
            heft_assert_fails(st, rows[i].st, &err, rows[i].words);
        else
            assert_int_equal(strlen(path), PATH_MAX - 1);
    }
}

/* ---- all repositories ------------------------------------------------------------------------ */

static char listed[16][300];
static size_t listed_count;

static void add_name(void *ctx, const char *name)
{
    (void)ctx;
    assert_true(listed_count < HEFT_COUNT(listed));
    snprintf(listed[listed_count++], sizeof *listed, "%s", name);
}

static int by_text(const void *a, const void *b)
{
    return strcmp(a, b);
}

static void lists_the_repositories(void **state)
{
    static const char *const folders[] = { "models--a--b", "models--a--b--c", "models----d",
                                           "models--e--",  "models--f",       "model--g",
                                           "models--" };
    static const char *const wanted[] = { "--d", "a/b", "a/b--c", "e--", "f" };
    heft_error err;
    for (size_t i = 0; i < HEFT_COUNT(folders); i++)
        make_folders(*state, folders[i]);
    clear_variables();
    heft_assert_fails(heft_hub_list(add_name, NULL, &err), HEFT_E_NOTFOUND, &err, "HF_HUB_CACHE");
    setenv("HF_HUB_CACHE", heft_test_path(*state, "missing"), 1);
    heft_assert_fails(heft_hub_list(add_name, NULL, &err), HEFT_E_IO, &err, "cannot be listed");
    setenv("HF_HUB_CACHE", *state, 1);
    listed_count = 0;
    heft_assert_ok(heft_hub_list(add_name, NULL, &err), &err);
    assert_int_equal(listed_count, HEFT_COUNT(wanted));
    qsort(listed, listed_count, sizeof *listed, by_text);
    for (size_t i = 0; i < HEFT_COUNT(wanted); i++)
        assert_string_equal(listed[i], wanted[i]);
}

#define with_dir(fn) cmocka_unit_test_setup_teardown(fn, heft_test_dir_make, heft_test_dir_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_variable_names_the_cache),
        cmocka_unit_test(a_tilde_is_the_home_folder),
        cmocka_unit_test(refuses_paths_that_are_too_long),
        with_dir(finds_what_is_in_the_cache),
        with_dir(refuses_other_names_and_missing_caches),
        with_dir(refuses_a_path_that_becomes_too_long),
        with_dir(lists_the_repositories),
    };
    return cmocka_run_group_tests_name("hub_cache", tests, NULL, NULL);
}
