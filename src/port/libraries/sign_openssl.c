/* sign_openssl.c - keys and ECDSA, by libcrypto.
 *
 * Everything happens in a library context that is made for the call, so that neither the
 * configuration of the system nor that of the program takes part.  OpenSSL's own errors are
 * discarded: the messages here say how the caller can go on. */
#include "port/libraries/crypto_library.h"

#include <errno.h>
#include <string.h>

#include "base/text.h"
#include "port/port.h"

enum { SIGNATURE_MAX = 160 }; /* bytes of an ECDSA signature on P-521: at most 141 */

typedef struct curve {
    const char *name, *digest;
} curve;

static const curve curves[] = {
    { "prime256v1", "SHA256" },
    { "secp384r1", "SHA384" },
    { "secp521r1", "SHA512" },
};

heft_status heft_openssl_begin(heft_error *err)
{
    heft_status st = heft_crypto_load(err);
    errno = 0;
    return st;
}

heft_status heft_openssl_end(heft_error *err, heft_status st)
{
    bool lacks_memory = st && errno == ENOMEM;
    heft_crypto->ERR_clear_error();
    return lacks_memory ? heft_error_no_memory(err, "for keys and signatures") : st;
}

const char *heft_openssl_digest_of(const EVP_PKEY *key)
{
    char name[64];
    if (!heft_crypto->EVP_PKEY_is_a(key, "EC") ||
        !heft_crypto->EVP_PKEY_get_group_name(key, name, sizeof name, NULL))
        return NULL;
    for (size_t i = 0; i < sizeof curves / sizeof *curves; i++)
        if (!strcmp(name, curves[i].name))
            return curves[i].digest;
    return NULL;
}

BIO *heft_openssl_text(heft_str text)
{
    return text.len <= INT32_MAX ? heft_crypto->BIO_new_mem_buf(text.ptr, (int)text.len) : NULL;
}

heft_status heft_openssl_fail(heft_error *err, const char *rule, const char *text)
{
    return heft_error_rule(err, heft_error_plain(err, HEFT_E_CHECKSUM, "%s", text), rule);
}

/* ---- keys ---- */

static int give_password(char *buf, int size, int rwflag, void *ctx)
{
    const heft_str *password = ctx;
    (void)rwflag;
    if (password->len > (size_t)size)
        return -1;
    memcpy(buf, password->ptr, password->len);
    return (int)password->len;
}

static EVP_PKEY *read_key(OSSL_LIB_CTX *library, heft_str text, bool is_private, heft_str password)
{
    BIO *in = heft_openssl_text(text);
    EVP_PKEY *key = NULL;
    if (in && is_private)
        key = heft_crypto->PEM_read_bio_PrivateKey_ex(in, NULL, give_password, &password, library,
                                                      NULL);
    else if (in)
        key = heft_crypto->PEM_read_bio_PUBKEY_ex(in, NULL, give_password, &password, library,
                                                  NULL);
    heft_crypto->BIO_free(in);
    return key;
}

/* Compute the hint: the SHA-256 of the public key in PEM form. */
static bool hint_of(char out[2 * SHA256_DIGEST_LENGTH], EVP_PKEY *key)
{
    unsigned char hash[EVP_MAX_MD_SIZE];
    char *text;
    BIO *pem = heft_crypto->BIO_new(heft_crypto->BIO_s_mem());
    bool ok = pem && heft_crypto->PEM_write_bio_PUBKEY(pem, key);
    long len = ok ? heft_crypto->BIO_ctrl(pem, BIO_CTRL_INFO, 0, &text) : 0;
    ok = ok && len > 0 && heft_crypto->SHA256((const unsigned char *)text, (size_t)len, hash);
    heft_crypto->BIO_free(pem);
    if (ok)
        heft_hex_text(out, hash, SHA256_DIGEST_LENGTH);
    return ok;
}

heft_status heft_openssl_check_message(OSSL_LIB_CTX *library, EVP_PKEY *key,
                                       const heft_signature_info *s, heft_error *err)
{
    heft_status st = HEFT_OK;
    EVP_MD_CTX *ctx = heft_crypto->EVP_MD_CTX_new();
    if (!ctx || heft_crypto->EVP_DigestVerifyInit_ex(ctx, NULL, heft_openssl_digest_of(key),
                                                     library, NULL, key, NULL) != 1)
        st = heft_error_no_memory(err, "to check a signature");
    else if (heft_crypto->EVP_DigestVerify(ctx, (const unsigned char *)s->signature.ptr,
                                           s->signature.len, (const unsigned char *)s->message.ptr,
                                           s->message.len) != 1)
        st = heft_openssl_fail(err, "signature/invalid",
                               "the signature does not match the signed statement and this key");
    heft_crypto->EVP_MD_CTX_free(ctx);
    return st;
}

static heft_status not_a_key(heft_error *err, const char *kind)
{
    return heft_error_plain(err, HEFT_E_ARGUMENT,
                            "is not a %s on the curve P-256, P-384 or P-521 in PEM form", kind);
}

static heft_status check_key(OSSL_LIB_CTX *library, EVP_PKEY *key, const heft_signature_info *s,
                             heft_error *err)
{
    char hint[2 * SHA256_DIGEST_LENGTH];
    if (!key || !heft_openssl_digest_of(key))
        return not_a_key(err, "public key");
    if (!hint_of(hint, key))
        return heft_error_no_memory(err, "for a key");
    if (s->key_hint.len &&
        (s->key_hint.len != sizeof hint || memcmp(hint, s->key_hint.ptr, sizeof hint) != 0))
        return heft_openssl_fail(err, "signature/key", "the model was signed with another key");
    return heft_openssl_check_message(library, key, s, err);
}

heft_status heft_signature_check_key(const heft_signature *s, heft_str text, heft_error *err)
{
    heft_error own;
    heft_signature_info info;
    err = heft_error_begin(err, &own);
    heft_status st = heft_openssl_begin(err);
    if (st)
        return heft_error_end(err, st);
    heft_signature_get(&info, s);
    OSSL_LIB_CTX *library = heft_crypto->OSSL_LIB_CTX_new();
    EVP_PKEY *key = library ? read_key(library, text, false, (heft_str){ "", 0 }) : NULL;
    st = library ? check_key(library, key, &info, err) : heft_error_no_memory(err, "for a key");
    st = heft_openssl_end(err, st);
    heft_crypto->EVP_PKEY_free(key);
    heft_crypto->OSSL_LIB_CTX_free(library);
    return heft_error_end(err, st);
}

/* ---- signing ---- */

static bool is_key_of_signer(OSSL_LIB_CTX *library, const EVP_PKEY *key, const heft_signature *s)
{
    X509 *signer = heft_openssl_certificate(library, heft_signature_certificate_at(s, 0));
    EVP_PKEY *expected = signer ? heft_crypto->X509_get0_pubkey(signer) : NULL;
    bool is_same = expected && heft_crypto->EVP_PKEY_eq(key, expected) == 1;
    heft_crypto->X509_free(signer);
    return is_same;
}

static heft_status sign(OSSL_LIB_CTX *library, EVP_PKEY *key, heft_signature *s, heft_error *err)
{
    heft_signature_info info;
    unsigned char signature[SIGNATURE_MAX];
    char hint[2 * SHA256_DIGEST_LENGTH];
    size_t len = sizeof signature;
    if (!key || !heft_openssl_digest_of(key))
        return heft_error_plain(err, HEFT_E_ARGUMENT,
                                "is not a private key on the curve P-256, P-384 or P-521 in PEM "
                                "form, or the password is wrong");
    heft_signature_get(&info, s);
    if (info.certificates && !is_key_of_signer(library, key, s))
        return heft_error_plain(err, HEFT_E_ARGUMENT, "is not the key of the certificate");
    EVP_MD_CTX *ctx = heft_crypto->EVP_MD_CTX_new();
    bool ok = ctx && hint_of(hint, key) &&
              heft_crypto->EVP_DigestSignInit_ex(ctx, NULL, heft_openssl_digest_of(key), library,
                                                 NULL, key, NULL) == 1 &&
              heft_crypto->EVP_DigestSign(ctx, signature, &len,
                                          (const unsigned char *)info.message.ptr,
                                          info.message.len) == 1;
    heft_crypto->EVP_MD_CTX_free(ctx);
    if (!ok || len > sizeof signature) /* OpenSSL 3.0 may state a length of -1 without memory */
        return heft_error_no_memory(err, "to sign");
    return heft_signature_set(s, (heft_str){ (const char *)signature, len },
                              (heft_str){ hint, info.certificates ? 0 : sizeof hint }, err);
}

heft_status heft_signature_sign(heft_signature *s, heft_str text, heft_str password,
                                heft_error *err)
{
    heft_error own;
    err = heft_error_begin(err, &own);
    heft_status st = heft_openssl_begin(err);
    if (st)
        return heft_error_end(err, st);
    OSSL_LIB_CTX *library = heft_crypto->OSSL_LIB_CTX_new();
    EVP_PKEY *key = library ? read_key(library, text, true, password) : NULL;
    st = library ? sign(library, key, s, err) : heft_error_no_memory(err, "for a key");
    st = heft_openssl_end(err, st);
    heft_crypto->EVP_PKEY_free(key);
    heft_crypto->OSSL_LIB_CTX_free(library);
    return heft_error_end(err, st);
}
