/* test_remote_target.c - addresses of the hub and of S3: the URLs, and the credentials. */
#include "heft_test.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "port/remote/session.h"

/* The settings that addresses depend on; every test begins without them. */
static const char *const settings[] = {
    "HF_ENDPOINT",
    "HF_TOKEN",
    "HF_TOKEN_PATH",
    "HF_HOME",
    "HOME",
    "AWS_PROFILE",
    "AWS_ACCESS_KEY_ID",
    "AWS_SESSION_TOKEN",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_REGION",
    "AWS_DEFAULT_REGION",
    "AWS_ENDPOINT_URL_S3",
    "AWS_ENDPOINT_URL",
    "AWS_CONFIG_FILE",
    "AWS_SHARED_CREDENTIALS_FILE",
};

static int set_up(void **state)
{
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
        unsetenv(settings[i]);
    return heft_test_dir_make(state);
}

static heft_address address_of(const char *url)
{
    heft_address a;
    heft_error err;
    if (heft_address_of(&a, url, &err))
        fail_msg("%s: %s", url, err.message);
    return a;
}

static void save_text(const char *path, const char *text)
{
    heft_test_save(path, text, strlen(text));
}

/* ---- the hub ---- */

static void names_of_the_hub_are_urls(void **state)
{
    static const struct {
        const char *name, *url;
        bool is_file;
    } cases[] = {
        { "o/n", "https://huggingface.co/api/models/o/n/revision/main", false },
        { "o/n/", "https://huggingface.co/api/models/o/n/revision/main", false },
        { "o/n@r", "https://huggingface.co/api/models/o/n/revision/r", false },
        { "o/n/f", "https://huggingface.co/o/n/resolve/main/f", true },
        { "o/n@r/d/f", "https://huggingface.co/o/n/resolve/r/d/f", true },
        { "o/n/f@r", "https://huggingface.co/o/n/resolve/main/f%40r", true },
        { "o/n/a b%/c", "https://huggingface.co/o/n/resolve/main/a%20b%25/c", true },
        { "o/n@refs%2Fpr%2F1/f", "https://huggingface.co/o/n/resolve/refs%2Fpr%2F1/f", true },
        { "datasets/o/n", "https://huggingface.co/api/datasets/o/n/revision/main", false },
        { "datasets/o/n/f", "https://huggingface.co/datasets/o/n/resolve/main/f", true },
        { "spaces/o/n/f", "https://huggingface.co/spaces/o/n/resolve/main/f", true },
        { "dataset/n", "https://huggingface.co/api/models/dataset/n/revision/main", false },
        { "o/n/.f", "https://huggingface.co/o/n/resolve/main/.f", true },
        { "o/n/...", "https://huggingface.co/o/n/resolve/main/...", true },
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char url[64];
        snprintf(url, sizeof url, "hf://%s", cases[i].name);
        heft_address a = address_of(url);
        assert_string_equal(a.url, cases[i].url);
        assert_int_equal(a.is_hub_file, cases[i].is_file);
        assert_int_equal(a.is_repository, !cases[i].is_file);
        assert_true(!*a.bearer && !*a.user && !*a.signature && !*a.session);
    }
}

static void names_that_are_no_paths_are_refused(void **state)
{
    static const char *const urls[] = {
        "hf://",           "hf://o",       "hf://o/",       "hf:///n",       "hf://./n",
        "hf://../n",       "hf://o/.",     "hf://o/..",     "hf://o/n@",     "hf://o/n@/f",
        "hf://o/n@.",      "hf://o/n@..",  "hf://o/n//f",   "hf://o/n/f/",   "hf://o/n/a//b",
        "hf://o/n/./f",    "hf://o/n/f/.", "hf://o/n/../f", "hf://o/n/f/..", "hf://datasets/",
        "hf://datasets/o", "hf://o@r/f",   "s3://",         "s3://b",        "s3://b/",
        "s3:///k",         "s3://./k",     "s3://../k",
    };
    (void)state;
    for (size_t i = 0; i < sizeof urls / sizeof *urls; i++) {
        heft_address a;
        heft_error err;
        heft_status st = heft_address_of(&a, urls[i], &err);
        if (st != HEFT_E_ARGUMENT || !strstr(err.message, "is not an address of the form"))
            fail_msg("%s: status %d, '%s'", urls[i], st, a.url);
    }
}

static void endpoints_end_without_a_slash(void **state)
{
    static const struct {
        const char *endpoint, *url;
    } cases[] = {
        { "http://h", "http://h/o/n/resolve/main/f" },
        { "http://h/", "http://h/o/n/resolve/main/f" },
        { "http://h/p//", "http://h/p/o/n/resolve/main/f" },
        { "", "https://huggingface.co/o/n/resolve/main/f" },
        { "/", "https://huggingface.co/o/n/resolve/main/f" },
        { " http://h\n", "http://h/o/n/resolve/main/f" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        setenv("HF_ENDPOINT", cases[i].endpoint, 1);
        assert_string_equal(address_of("hf://o/n/f").url, cases[i].url);
    }
}

static void addresses_that_do_not_fit_are_refused(void **state)
{
    static const char *const forms[] = { "hf://o/n/%0*d",   "hf://o/%0*d/f", "hf://%0*d/n/f",
                                         "hf://o/n@%0*d/f", "s3://b/%0*d",   "s3://%0*d/k" };
    char url[2 * HEFT_URL_MAX];
    heft_address a;
    heft_error err;
    (void)state;
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        snprintf(url, sizeof url, forms[i], HEFT_URL_MAX, 7);
        assert_int_equal(heft_address_of(&a, url, &err), HEFT_E_LIMIT);
        assert_non_null(strstr(err.message, "too long"));
        snprintf(url, sizeof url, forms[i], HEFT_URL_MAX - 128, 7);
        assert_int_equal(heft_address_of(&a, url, &err), HEFT_OK);
    }
    for (int len = HEFT_URL_MAX - 1; len <= HEFT_URL_MAX; len++) {
        snprintf(url, sizeof url, "http://%0*d", len - 7, 7);
        heft_status st = heft_address_of(&a, url, &err);
        assert_int_equal(st, len < HEFT_URL_MAX ? HEFT_OK : HEFT_E_LIMIT);
        assert_true(st || !strcmp(a.url, url));
    }
}

/* The address of the main file is longer than that of the repository. */
static void main_files_whose_address_does_not_fit_are_refused(void **state)
{
    enum { MORE = sizeof "@main/model.safetensors" - 1 };
    char url[HEFT_URL_MAX], out[HEFT_URL_MAX];
    heft_error err;
    heft_settings *answer;
    (void)state;
    heft_assert_ok(heft_settings_parse_json(&answer, HEFT_STR("{}"), NULL, &err), &err);
    for (int len = HEFT_URL_MAX - 1; len <= HEFT_URL_MAX; len++) {
        snprintf(url, sizeof url, "hf://o/%0*d", len - MORE - 7, 7);
        heft_status st = heft_hub_address(out, url, answer, "", "model.safetensors", &err);
        if (len < HEFT_URL_MAX)
            heft_assert_ok(st, &err);
        else
            heft_assert_fails(st, HEFT_E_LIMIT, &err, "the address is too long");
        assert_int_equal(strlen(out), HEFT_URL_MAX - 1);
    }
    heft_settings_close(answer);
}

static void the_token_comes_from_the_first_setting(void **state)
{
    const char *dir = *state, *named = heft_test_path(dir, "named");
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/.cache", dir);
    assert_int_equal(mkdir(path, 0700), 0);
    snprintf(path, sizeof path, "%s/.cache/huggingface", dir);
    assert_int_equal(mkdir(path, 0700), 0);
    snprintf(path, sizeof path, "%s/.cache/huggingface/token", dir);
    save_text(path, "of-home\r\n");
    save_text(heft_test_path(dir, "token"), "of-hf-home \n");
    save_text(named, "\n of-file\t\n\n");

    setenv("HOME", dir, 1);
    assert_string_equal(address_of("hf://o/n/f").bearer, "of-home");
    setenv("HF_HOME", dir, 1);
    assert_string_equal(address_of("hf://o/n/f").bearer, "of-hf-home");
    setenv("HF_TOKEN_PATH", named, 1);
    assert_string_equal(address_of("hf://o/n/f").bearer, "of-file");
    setenv("HF_TOKEN", "direct", 1);
    assert_string_equal(address_of("hf://o/n/f").bearer, "direct");
    assert_string_equal(address_of("http://h/f").bearer, "");
    assert_string_equal(address_of("s3://b/k").bearer, "");
    unsetenv("HF_TOKEN");
    save_text(named, "\n");
    assert_string_equal(address_of("hf://o/n/f").bearer, "");
    save_text(named, "");
    assert_string_equal(address_of("hf://o/n/f").bearer, "");
    assert_int_equal(unlink(named), 0);
    assert_string_equal(address_of("hf://o/n/f").bearer, "");
}

static void assert_refused(const char *url, heft_status expected, const char *message)
{
    heft_address a;
    heft_error err;
    heft_status st = heft_address_of(&a, url, &err);
    heft_assert_fails(st, expected, &err, message);
}

/* A part of a token would be sent to the server, and refused there without a reason. */
static void tokens_that_do_not_fit_are_refused(void **state)
{
    enum { SIZE = sizeof((heft_address *)0)->bearer };
    char token[SIZE + 1];
    (void)state;
    memset(token, 't', SIZE);
    token[SIZE] = '\0';
    setenv("HF_TOKEN", token, 1);
    assert_refused("hf://o/n/f", HEFT_E_LIMIT, "HF_TOKEN has 1024 bytes, and at most 1023 are");
    setenv("HF_TOKEN", token + 1, 1);
    assert_string_equal(address_of("hf://o/n/f").bearer, token + 1);
    unsetenv("HF_TOKEN");
    const char *path = heft_test_path(*state, "token");
    setenv("HF_TOKEN_PATH", path, 1);
    for (size_t len = SIZE - 2; len <= SIZE; len++) {
        char line[SIZE + 2];
        snprintf(line, sizeof line, "%.*s\n", (int)len, token);
        save_text(path, line);
        if (len < SIZE)
            assert_int_equal(strlen(address_of("hf://o/n/f").bearer), len);
        else
            assert_refused("hf://o/n/f", HEFT_E_LIMIT, "token has 1024 bytes");
    }
}

/* A line feed within a setting would begin another header. */
static void settings_that_would_split_a_request_are_refused(void **state)
{
    static const struct {
        const char *variable, *url;
    } rows[] = { { "HF_TOKEN", "hf://o/n/f" },         { "HF_ENDPOINT", "hf://o/n/f" },
                 { "AWS_ACCESS_KEY_ID", "s3://b/k" },  { "AWS_SECRET_ACCESS_KEY", "s3://b/k" },
                 { "AWS_SESSION_TOKEN", "s3://b/k" },  { "AWS_REGION", "s3://b/k" },
                 { "AWS_DEFAULT_REGION", "s3://b/k" }, { "AWS_ENDPOINT_URL", "s3://b/k" },
                 { "AWS_ENDPOINT_URL_S3", "s3://b/k" } };
    static const char *const values[] = { "http://a\nb", "http://a\rb",   "http://a b",
                                          "http://a\tb", "http://a\177b", "http://a\xc3\xa9",
                                          "http://a\x01" };
    const char *path = heft_test_path(*state, "token");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        setenv("AWS_ACCESS_KEY_ID", "id", 1);
        setenv("AWS_SECRET_ACCESS_KEY", "secret", 1);
        for (size_t k = 0; k < sizeof values / sizeof *values; k++) {
            char message[64];
            setenv(rows[i].variable, values[k], 1);
            snprintf(message, sizeof message, "%s has a space, a control character",
                     rows[i].variable);
            assert_refused(rows[i].url, HEFT_E_ARGUMENT, message);
        }
        setenv(rows[i].variable, " \r\n\t", 1);
        address_of(rows[i].url);
        unsetenv(rows[i].variable);
    }
    setenv("HF_TOKEN_PATH", path, 1);
    save_text(path, "one\ntwo\n");
    assert_refused("hf://o/n/f", HEFT_E_ARGUMENT, "token has a space, a control character");
    setenv("HF_TOKEN", "\t token \r\n", 1);
    assert_string_equal(address_of("hf://o/n/f").bearer, "token");
    setenv("AWS_SESSION_TOKEN", "t\n", 1);
    setenv("AWS_ACCESS_KEY_ID", "id\n", 1);
    setenv("AWS_SECRET_ACCESS_KEY", " secret\n", 1);
    setenv("AWS_REGION", "eu-1\n", 1);
    heft_address a = address_of("s3://b/k");
    assert_string_equal(a.user, "id:secret");
    assert_string_equal(a.session, "t");
    assert_string_equal(a.signature, "aws:amz:eu-1:s3");
}

static void endpoints_and_regions_have_a_form(void **state)
{
    static const char *const endpoints[] = { "h", "ftp://h", "file:///h", "http://h?x",
                                             "http://h/#x" };
    static const char *const regions[] = { "a/b", "a:b", "a@b", "a?b", "a%b" };
    (void)state;
    for (size_t i = 0; i < sizeof endpoints / sizeof *endpoints; i++) {
        setenv("HF_ENDPOINT", endpoints[i], 1);
        setenv("AWS_ENDPOINT_URL", endpoints[i], 1);
        assert_refused("hf://o/n/f", HEFT_E_ARGUMENT, "HF_ENDPOINT is not an address of the form");
        assert_refused("s3://b/k", HEFT_E_ARGUMENT, "AWS_ENDPOINT_URL is not an address");
    }
    for (size_t i = 0; i < sizeof regions / sizeof *regions; i++) {
        setenv("AWS_REGION", regions[i], 1);
        assert_refused("s3://b/k", HEFT_E_ARGUMENT, "is not the name of a region");
    }
}

/* ---- other servers ---- */

static void addresses_are_sent_as_they_are(void **state)
{
    static const struct {
        const char *url, *sent;
    } cases[] = {
        { "https://u:p@h:1/a/../b//./c?x=%2e%20+&y#z",
          "https://u:p@h:1/a/../b//./c?x=%2e%20+&y#z" },
        { "http://h/my model.gguf", "http://h/my%20model.gguf" },
        { "http://h/\xc3\xa9?\xc3\xa9", "http://h/%C3%A9?%C3%A9" },
        { "http://h\xc3\xa9/f", "http://h\xc3\xa9/f" },
        { "http://h", "http://h" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_string_equal(address_of(cases[i].url).url, cases[i].sent);
    assert_refused("http://h/a\nb", HEFT_E_ARGUMENT, "has a control character as byte 10");
    assert_refused("http://h\r/", HEFT_E_ARGUMENT, "has a control character as byte 8");
}

/* A path that is a byte too long ends in "toke", which is a file, too. */
static void a_home_folder_may_have_a_long_path(void **state)
{
    enum { BELOW = sizeof "/.cache/huggingface/token" - 1 };
    static const char *const folders[] = { ".cache", ".cache/huggingface" };
    char path[PATH_MAX], home[PATH_MAX + 1];
    const char *dir = *state;
    for (size_t i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/%s", dir, folders[i]);
        assert_int_equal(mkdir(path, 0700), 0);
    }
    for (size_t i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/.cache/huggingface/%s", dir, i ? "toke" : "token");
        save_text(path, i ? "wrong" : "right");
    }
    for (size_t len = PATH_MAX - 1; len <= PATH_MAX; len++) {
        size_t n = strlen(dir), most = len - BELOW;
        memset(home, '/', most); /* any number of slashes stands for a slash */
        memcpy(home, dir, n);
        home[most] = '\0';
        setenv("HOME", home, 1);
        assert_string_equal(address_of("hf://o/n/f").bearer, len < PATH_MAX ? "right" : "");
    }
}

/* ---- S3 ---- */

static void keys_of_s3_are_urls(void **state)
{
    static const struct {
        const char *region, *other, *endpoint, *name, *url;
    } cases[] = {
        { "", "", "", "b/k", "https://s3.us-east-1.amazonaws.com/b/k" },
        { "eu-1", "", "", "b/k/l", "https://s3.eu-1.amazonaws.com/b/k/l" },
        { "", "eu-2", "", "b/k", "https://s3.eu-2.amazonaws.com/b/k" },
        { "eu-1", "eu-2", "", "b/a b", "https://s3.eu-1.amazonaws.com/b/a%20b" },
        { "", "", "http://h", "b/k", "http://h/b/k" },
        { "", "", "http://h//", "b.c/k//l", "http://h/b.c/k//l" },
        { "", "", "", "b/a/../c", "https://s3.us-east-1.amazonaws.com/b/a/../c" },
        { "", "", "http://h", "b//k", "http://h/b//k" },
        { "", "", "http://h", "b/./%2e?#+ \xc3\xa9", "http://h/b/./%252e%3F%23%2B%20%C3%A9" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char url[64];
        setenv("AWS_REGION", cases[i].region, 1);
        setenv("AWS_DEFAULT_REGION", cases[i].other, 1);
        setenv("AWS_ENDPOINT_URL", cases[i].endpoint, 1);
        snprintf(url, sizeof url, "s3://%s", cases[i].name);
        heft_address a = address_of(url);
        assert_string_equal(a.url, cases[i].url);
        assert_true(!a.is_repository && !a.is_hub_file && !*a.signature && !*a.user);
    }
    setenv("AWS_ENDPOINT_URL_S3", "http://s3", 1);
    assert_string_equal(address_of("s3://b/k").url, "http://s3/b/k");
}

static void requests_are_signed_with_both_keys_only(void **state)
{
    (void)state;
    setenv("AWS_SESSION_TOKEN", "t", 1);
    setenv("AWS_ACCESS_KEY_ID", "id", 1);
    heft_address a = address_of("s3://b/k");
    assert_true(!*a.user && !*a.signature && !*a.session);
    setenv("AWS_SECRET_ACCESS_KEY", "secret", 1);
    a = address_of("s3://b/k");
    assert_string_equal(a.user, "id:secret");
    assert_string_equal(a.signature, "aws:amz:us-east-1:s3");
    assert_string_equal(a.session, "t");
    unsetenv("AWS_ACCESS_KEY_ID");
    a = address_of("s3://b/k");
    assert_true(!*a.user && !*a.signature && !*a.session);
}

/* Return true if a text of the address has so many letters v. */
static bool has_letters(const heft_address *a, const char *letters)
{
    return strstr(a->user, letters) || strstr(a->signature, letters) || strstr(a->url, letters) ||
           strstr(a->session, letters);
}

static void settings_that_do_not_fit_are_refused(void **state)
{
    static const struct {
        const char *variable, *key;
        size_t size;
    } rows[] = {
        { "AWS_ACCESS_KEY_ID", "aws_access_key_id", 256 },
        { "AWS_SECRET_ACCESS_KEY", "aws_secret_access_key", 512 },
        { "AWS_REGION", "region", 64 },
        { "AWS_ENDPOINT_URL", "endpoint_url", 1024 },
        { "AWS_SESSION_TOKEN", "aws_session_token", 4096 },
    };
    char value[4096 + 1], text[4096 + 256];
    const char *path = heft_test_path(*state, "config");
    for (size_t i = 0; i < 2 * sizeof rows / sizeof *rows; i++) {
        bool is_file = i % 2;
        size_t size = rows[i / 2].size;
        for (size_t len = size - 1; len <= size; len++) {
            memset(value, 'v', len);
            value[len] = '\0';
            if (!strcmp(rows[i / 2].key, "endpoint_url"))
                memcpy(value, "http://h", 8);
            setenv("AWS_ACCESS_KEY_ID", "id", 1);
            setenv("AWS_SECRET_ACCESS_KEY", "secret", 1);
            setenv("AWS_CONFIG_FILE", path, 1);
            snprintf(text, sizeof text, "[default]\n%s = %s\n", rows[i / 2].key,
                     is_file ? value : "");
            save_text(path, text);
            if (is_file)
                unsetenv(rows[i / 2].variable);
            else
                setenv(rows[i / 2].variable, value, 1);
            if (len == size)
                assert_refused("s3://b/k", HEFT_E_LIMIT, "bytes, and at most");
            else {
                heft_address a = address_of("s3://b/k");
                assert_true(has_letters(&a, value));
            }
        }
        unsetenv(rows[i / 2].variable);
    }
}

static void profiles_have_keys_and_settings(void **state)
{
    static const char credentials[] = "aws_access_key_id = early\n"
                                      "[default]\n"
                                      "# aws_access_key_id = comment\n"
                                      "; aws_access_key_id = comment\n"
                                      "aws_access_key = short\n"
                                      "aws_access_key_id other = two\n"
                                      "=none\n"
                                      " = none\n"
                                      "aws_access_key_id2 = long\n"
                                      "  aws_access_key_id\t = \t id \t\r\n"
                                      "aws_access_key_id = second\n"
                                      "aws_secret_access_key=a=b\n"
                                      "aws_session_token\n"
                                      "[other]\n"
                                      "aws_access_key_id = id2\n"
                                      "aws_secret_access_key = s2\n"
                                      "region = r2\n";
    static const char config[] = "[default]\nregion = r1\nendpoint_url = http://one\n"
                                 "[other]\nregion = wrong\n"
                                 "[profile other]\nendpoint_url = http://two/\n";
    char path[PATH_MAX];
    const char *dir = *state;
    snprintf(path, sizeof path, "%s/.aws", dir);
    assert_int_equal(mkdir(path, 0700), 0);
    setenv("HOME", dir, 1);
    snprintf(path, sizeof path, "%s/.aws/credentials", dir);
    save_text(path, credentials);
    snprintf(path, sizeof path, "%s/.aws/config", dir);
    save_text(path, config);
    heft_address a = address_of("s3://b/k");
    assert_string_equal(a.url, "http://one/b/k");
    assert_string_equal(a.user, "id:a=b");
    assert_string_equal(a.signature, "aws:amz:r1:s3");
    assert_string_equal(a.session, "");
    setenv("AWS_PROFILE", "other", 1);
    a = address_of("s3://b/k");
    assert_string_equal(a.url, "http://two/b/k");
    assert_string_equal(a.user, "id2:s2");
    assert_string_equal(a.signature, "aws:amz:r2:s3");
    setenv("AWS_PROFILE", "othe", 1);
    a = address_of("s3://b/k");
    assert_true(!*a.user && !strcmp(a.url, "https://s3.us-east-1.amazonaws.com/b/k"));
    setenv("AWS_SHARED_CREDENTIALS_FILE", path, 1); /* in place of the file below HOME */
    setenv("AWS_PROFILE", "other", 1);
    a = address_of("s3://b/k");
    assert_true(!*a.user);
    assert_string_equal(a.url, "http://two/b/k");
    setenv("AWS_CONFIG_FILE", "/nowhere", 1);
    assert_string_equal(address_of("s3://b/k").url, "https://s3.wrong.amazonaws.com/b/k");
}

int main(void)
{
#define IN_DIR(test) cmocka_unit_test_setup_teardown(test, set_up, heft_test_dir_remove)
    const struct CMUnitTest tests[] = {
        IN_DIR(names_of_the_hub_are_urls),
        IN_DIR(names_that_are_no_paths_are_refused),
        IN_DIR(endpoints_end_without_a_slash),
        IN_DIR(addresses_that_do_not_fit_are_refused),
        IN_DIR(main_files_whose_address_does_not_fit_are_refused),
        IN_DIR(the_token_comes_from_the_first_setting),
        IN_DIR(tokens_that_do_not_fit_are_refused),
        IN_DIR(settings_that_would_split_a_request_are_refused),
        IN_DIR(endpoints_and_regions_have_a_form),
        IN_DIR(addresses_are_sent_as_they_are),
        IN_DIR(a_home_folder_may_have_a_long_path),
        IN_DIR(keys_of_s3_are_urls),
        IN_DIR(requests_are_signed_with_both_keys_only),
        IN_DIR(settings_that_do_not_fit_are_refused),
        IN_DIR(profiles_have_keys_and_settings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
