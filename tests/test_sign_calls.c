/* test_sign_calls.c - signatures where calls of libcrypto fail.  The functions of the library are
 * found through dlsym(), which is intercepted by the linker option --wrap, see meson.build. */
#include "heft_test.h"

#include <errno.h>
#include <heft/sign.h>
#include <openssl/evp.h>
#include <openssl/x509.h>

/* ---- intercepted calls ---------------------------------------------------------------------- */

static bool has_begun, lacks_library, lacks_digests, lacks_chains;

void *__real_dlopen(const char *name, int flags);
void *__wrap_dlopen(const char *name, int flags);
void *__wrap_dlopen(const char *name, int flags)
{
    return __real_dlopen(lacks_library ? "libmissing.so.3" : name, flags);
}

static EVP_MD_CTX *new_digest(void)
{
    return lacks_digests ? NULL : EVP_MD_CTX_new();
}

static X509_STORE_CTX *new_chain(OSSL_LIB_CTX *library, const char *query)
{
    return lacks_chains ? NULL : X509_STORE_CTX_new_ex(library, query);
}

void *__real_dlsym(void *library, const char *name);
void *__wrap_dlsym(void *library, const char *name);
/* Sanitizers look up functions before main(): then no other function can be called. */
__attribute__((no_sanitize("address", "undefined"))) void *__wrap_dlsym(void *library,
                                                                        const char *name)
{
    static const struct {
        const char *name;
        void (*function)(void);
    } replaced[] = {
        { "EVP_MD_CTX_new", (void (*)(void))new_digest },
        { "X509_STORE_CTX_new_ex", (void (*)(void))new_chain },
    };
    void *found = __real_dlsym(library, name);
    for (size_t i = 0; has_begun && i < HEFT_COUNT(replaced); i++)
        if (!strcmp(name, replaced[i].name))
            memcpy(&found, &replaced[i].function, sizeof found);
    return found;
}

/* ---- allocations of libcrypto --------------------------------------------------------------- */

static unsigned long allocations, failing; /* failing: the number of an allocation, or 0 */

static bool lacks_memory(void)
{
    bool fails = failing && ++allocations == failing;
    if (fails)
        errno = ENOMEM;
    return fails;
}

static void *allocate(size_t n, const char *file, int line)
{
    (void)file, (void)line;
    return lacks_memory() ? NULL : malloc(n);
}

static void *reallocate(void *old, size_t n, const char *file, int line)
{
    (void)file, (void)line;
    return lacks_memory() ? NULL : realloc(old, n);
}

static void release(void *p, const char *file, int line)
{
    (void)file, (void)line;
    free(p);
}

/* libcrypto itself leaks memory when an allocation fails. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
    return "leak:libcrypto.so";
}

/* ---- a key for tests, and a certificate until the year 9999 --------------------------------- */

static const heft_str private_key = HEFT_STR(
    "-----BEGIN PRIVATE KEY-----\n"
    "MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgxUPR8y3MQs3trzE8\n"
    "qt5uSdYoc2VyYqeXG6FpxsuYYA6hRANCAAS5PVps017O4RpJKm2F7T+HAS5l7c5R\n"
    "23uPCLxEuOUZnmgFlDSp90GHyAhEBD7lySv/psZl5UcHkdBmJeyr0Zgk\n"
    "-----END PRIVATE KEY-----\n");
static const heft_str public_key = HEFT_STR(
    "-----BEGIN PUBLIC KEY-----\n"
    "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEuT1abNNezuEaSSpthe0/hwEuZe3O\n"
    "Udt7jwi8RLjlGZ5oBZQ0qfdBh8gIRAQ+5ckr/6bGZeVHB5HQZiXsq9GYJA==\n"
    "-----END PUBLIC KEY-----\n");
static const heft_str certificate = HEFT_STR(
    "-----BEGIN CERTIFICATE-----\n"
    "MIIBajCCAQ+gAwIBAgIBATAKBggqhkjOPQQDAjAMMQowCAYDVQQDDAF0MCAXDTIw\n"
    "MDEwMTAwMDAwMFoYDzk5OTkxMjMxMjM1OTU5WjAMMQowCAYDVQQDDAF0MFkwEwYH\n"
    "KoZIzj0CAQYIKoZIzj0DAQcDQgAEuT1abNNezuEaSSpthe0/hwEuZe3OUdt7jwi8\n"
    "RLjlGZ5oBZQ0qfdBh8gIRAQ+5ckr/6bGZeVHB5HQZiXsq9GYJKNgMF4wDAYDVR0T\n"
    "AQH/BAIwADAOBgNVHQ8BAf8EBAMCB4AwHQYDVR0OBBYEFFDsyah7DpWjFliwEw5u\n"
    "qgdwCYeeMB8GA1UdIwQYMBaAFFDsyah7DpWjFliwEw5uqgdwCYeeMAoGCCqGSM49\n"
    "BAMCA0kAMEYCIQDbO+ptiimOo6q7nZdCLEKwcfacQOJgBtuMNr75tQb0vAIhALcB\n"
    "/16LKkNvzWUnu7CwasFSAsxwjopSc97CYRl6Ncrn\n"
    "-----END CERTIFICATE-----\n");

static heft_signature *unsigned_model(void)
{
    static const heft_resource file = { .name = HEFT_STR("a.bin"),
                                        .algorithm = HEFT_STR("sha256"),
                                        .digest = { .length = 32 },
                                        .to = HEFT_UNKNOWN_LENGTH };
    heft_signature_options o = {
        .size = sizeof o, .model = HEFT_STR("m"), .resources = &file, .resource_count = 1
    };
    heft_signature *s;
    heft_error err;
    heft_assert_ok(heft_signature_new(&s, &o, &err), &err);
    return s;
}

/* ---- tests ---------------------------------------------------------------------------------- */

/* The first test: afterwards libcrypto is loaded. */
static void signatures_need_libcrypto(void **state)
{
    const heft_str none = { "", 0 };
    heft_error err;
    (void)state;
    lacks_library = true;
    heft_assert_fails(heft_signature_sign(NULL, none, none, &err), HEFT_E_UNSUPPORTED, &err,
                      "install the package libssl3");
    heft_assert_fails(heft_signature_certify(NULL, none, &err), HEFT_E_UNSUPPORTED, &err,
                      "install the package libssl3");
    heft_assert_fails(heft_signature_check_key(NULL, none, &err), HEFT_E_UNSUPPORTED, &err,
                      "install the package libssl3");
    heft_assert_fails(heft_signature_check_chain(NULL, none, none, &err), HEFT_E_UNSUPPORTED, &err,
                      "install the package libssl3");
    lacks_library = false;
}

static void signing_needs_memory(void **state)
{
    heft_signature *s = unsigned_model();
    heft_signature_info info;
    heft_error err;
    (void)state;
    lacks_digests = true;
    heft_assert_fails(heft_signature_sign(s, private_key, HEFT_STR(""), &err), HEFT_E_NOMEM, &err,
                      "to sign");
    lacks_digests = false;
    heft_signature_get(&info, s);
    assert_int_equal(info.signature.len, 0);
    heft_assert_ok(heft_signature_sign(s, private_key, HEFT_STR(""), &err), &err);
    heft_assert_ok(heft_signature_check_key(s, public_key, &err), &err);
    lacks_digests = true;
    heft_assert_fails(heft_signature_check_key(s, public_key, &err), HEFT_E_NOMEM, &err,
                      "to check a signature");
    lacks_digests = false;
    heft_signature_close(s);
}

static void checking_certificates_needs_memory(void **state)
{
    heft_signature *s = unsigned_model();
    heft_error err;
    (void)state;
    lacks_chains = true;
    heft_assert_fails(heft_signature_certify(s, certificate, &err), HEFT_E_NOMEM, &err,
                      "to check certificates");
    lacks_chains = false;
    assert_int_equal(heft_signature_certificate_at(s, 0).len, 0);
    heft_assert_ok(heft_signature_certify(s, certificate, &err), &err);
    heft_assert_ok(heft_signature_sign(s, private_key, HEFT_STR(""), &err), &err);
    lacks_chains = true;
    heft_assert_fails(heft_signature_check_chain(s, certificate, HEFT_STR(""), &err), HEFT_E_NOMEM,
                      &err, "to check certificates");
    lacks_chains = false;
    heft_assert_ok(heft_signature_check_chain(s, certificate, HEFT_STR(""), &err), &err);
    heft_signature_close(s);
}

static void a_signature_has_one_chain_of_certificates(void **state)
{
    heft_signature *s = unsigned_model();
    heft_signature_info info;
    heft_error err;
    (void)state;
    heft_assert_ok(heft_signature_certify(s, certificate, &err), &err);
    heft_assert_fails(heft_signature_certify(s, certificate, &err), HEFT_E_ARGUMENT, &err,
                      "the signature has certificates already");
    heft_signature_get(&info, s);
    assert_int_equal(info.certificates, 1);
    heft_signature_close(s);
}

/* ---- each allocation fails ---- */

static heft_status sign_model(heft_signature *s, heft_error *err)
{
    return heft_signature_sign(s, private_key, HEFT_STR(""), err);
}

static heft_status certify_model(heft_signature *s, heft_error *err)
{
    return heft_signature_certify(s, certificate, err);
}

static heft_status check_model_by_key(heft_signature *s, heft_error *err)
{
    return heft_signature_check_key(s, public_key, err);
}

static heft_status check_model_by_chain(heft_signature *s, heft_error *err)
{
    return heft_signature_check_chain(s, certificate, certificate, err);
}

/* Neither a key, nor a certificate, nor a signature is to blame if memory is missing. */
static void missing_memory_is_reported(void **state)
{
    static const struct {
        heft_status (*run)(heft_signature *s, heft_error *err);
        bool is_certified, is_signed;
    } operations[] = {
        { sign_model, false, false },         { sign_model, true, false },
        { certify_model, false, false },      { check_model_by_key, false, true },
        { check_model_by_chain, true, true },
    };
    unsigned long step = getenv("HEFT_TEST_FEWER") ? 401 : 23;
    (void)state;
    for (size_t i = 0; i < HEFT_COUNT(operations); i++) {
        bool has_failed = true;
        for (unsigned long n = 1 + i; has_failed; n += step) {
            heft_signature *s = unsigned_model();
            heft_error err;
            if (operations[i].is_certified)
                heft_assert_ok(certify_model(s, &err), &err);
            if (operations[i].is_signed)
                heft_assert_ok(sign_model(s, &err), &err);
            allocations = 0;
            failing = n;
            heft_status st = operations[i].run(s, &err);
            failing = 0;
            has_failed = allocations >= n;
            if (st && st != HEFT_E_NOMEM)
                fail_msg("operation %zu, allocation %lu: %s", i, n, err.message);
            heft_signature_close(s);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(signatures_need_libcrypto),
        cmocka_unit_test(signing_needs_memory),
        cmocka_unit_test(checking_certificates_needs_memory),
        cmocka_unit_test(a_signature_has_one_chain_of_certificates),
        cmocka_unit_test(missing_memory_is_reported),
    };
    if (!CRYPTO_set_mem_functions(allocate, reallocate, release))
        return 99; /* libcrypto has allocated memory before */
    has_begun = true;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
