/* test_remote_open.c - addresses and options that are refused before any request is sent. */
#include "heft_test.h"

#include "port/remote/session.h"

static bool has_remote = true;

const heft_remote *__real_heft_host_remote(void);
const heft_remote *__wrap_heft_host_remote(void);
const heft_remote *__wrap_heft_host_remote(void)
{
    return has_remote ? __real_heft_host_remote() : NULL;
}

static heft_status open_file(const char *url, const heft_open_options *opt,
                             const heft_url_options *how, heft_error *err)
{
    heft_file *f = (heft_file *)err;
    heft_status st = heft_file_open_url(&f, url, opt, how, err);
    assert_null(f);
    return st;
}

static heft_status open_source(const char *url, const heft_url_options *how, heft_error *err)
{
    heft_source *s = (heft_source *)err;
    heft_status st = heft_source_url(&s, url, how, err);
    assert_null(s);
    return st;
}

/* Return "hf://o/" or "http://", and zeros up to `len` bytes. */
static char *address(char out[HEFT_URL_MAX + 1], const char *begin, int len)
{
    snprintf(out, HEFT_URL_MAX + 1, "%s%0*d", begin, len - (int)strlen(begin), 0);
    return out;
}

static void a_missing_address_is_refused(void **state)
{
    heft_error err;
    (void)state;
    heft_assert_fails(open_file(NULL, NULL, NULL, &err), HEFT_E_ARGUMENT, &err,
                      "the address to open is missing");
    heft_assert_fails(open_source(NULL, NULL, &err), HEFT_E_ARGUMENT, &err, "none of the schemes");
}

static void the_option_offline_forbids_requests(void **state)
{
    heft_url_options offline = HEFT_URL_OPTIONS_INIT;
    heft_sink *sink;
    heft_error err;
    (void)state;
    offline.offline = true;
    heft_assert_fails(open_file("hf://o/n/f", NULL, &offline, &err), HEFT_E_IO, &err,
                      "the option 'offline' forbids");
    heft_assert_fails(open_source("http://h/f", &offline, &err), HEFT_E_IO, &err,
                      "the option 'offline' forbids");
    heft_assert_fails(heft_sink_open_url(&sink, "s3://b/k", 0, &offline, &err), HEFT_E_IO, &err,
                      "the option 'offline' forbids");
    setenv("HF_HUB_OFFLINE", "1", 1);
    heft_assert_fails(open_source("http://h/f", NULL, &err), HEFT_E_IO, &err, "HF_HUB_OFFLINE");
    unsetenv("HF_HUB_OFFLINE");
}

static void a_build_without_libcurl_reads_no_addresses(void **state)
{
    heft_error err;
    (void)state;
    has_remote = false;
    heft_assert_fails(open_file("http://h/f", NULL, NULL, &err), HEFT_E_UNSUPPORTED, &err,
                      "this build reads no URLs");
    heft_assert_fails(open_source("s3://b/k", NULL, &err), HEFT_E_UNSUPPORTED, &err,
                      "this build reads no URLs");
    heft_assert_ok(heft_url_remove_kept("k", &err), &err);
    has_remote = true;
}

static void addresses_that_do_not_fit_are_refused(void **state)
{
    static const char *const begins[] = { "http://", "hf://o/", "hf://o/n/", "s3://b/" };
    char url[HEFT_URL_MAX + 1];
    heft_error err;
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(begins); i++) {
        address(url, begins[i], HEFT_URL_MAX);
        heft_assert_fails(open_file(url, NULL, NULL, &err), HEFT_E_LIMIT, &err, "too long");
        heft_assert_fails(open_source(url, NULL, &err), HEFT_E_LIMIT, &err, "too long");
    }
}

/* The first error is reported. */
static void options_are_checked_before_the_address(void **state)
{
    heft_open_options opt = HEFT_OPEN_OPTIONS_INIT;
    heft_url_options how = HEFT_URL_OPTIONS_INIT;
    char url[HEFT_URL_MAX + 1];
    heft_error err;
    (void)state;
    opt.size = how.size = 1;
    heft_assert_fails(open_file(address(url, "http://", HEFT_URL_MAX), &opt, NULL, &err),
                      HEFT_E_ARGUMENT, &err, "invalid size");
    heft_assert_fails(open_file("ftp://h/f", NULL, &how, &err), HEFT_E_ARGUMENT, &err,
                      "invalid size");
}

static void a_repository_is_no_file(void **state)
{
    heft_error err;
    (void)state;
    heft_assert_fails(open_source("hf://o/n", NULL, &err), HEFT_E_ARGUMENT, &err,
                      "names a repository: name a file of it");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_missing_address_is_refused),
        cmocka_unit_test(the_option_offline_forbids_requests),
        cmocka_unit_test(a_build_without_libcurl_reads_no_addresses),
        cmocka_unit_test(addresses_that_do_not_fit_are_refused),
        cmocka_unit_test(options_are_checked_before_the_address),
        cmocka_unit_test(a_repository_is_no_file),
    };
    unsetenv("HF_HUB_OFFLINE");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
