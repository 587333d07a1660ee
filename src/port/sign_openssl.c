/* sign_openssl.c - keys, certificates and ECDSA, by libcrypto.
 *
 * Everything happens in a library context that is made for the call, so that neither the
 * configuration of the system nor that of the program takes part.  OpenSSL's own errors are
 * discarded: the messages here say how the caller can go on. */
#include <heft/sign.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/sha.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <string.h>

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

/* Return the digest that goes with the key's curve; NULL for other keys. */
static const char *digest_of(const EVP_PKEY *key)
{
    char name[64];
    if (!EVP_PKEY_is_a(key, "EC") || !EVP_PKEY_get_group_name(key, name, sizeof name, NULL))
        return NULL;
    for (size_t i = 0; i < sizeof curves / sizeof *curves; i++)
        if (!strcmp(name, curves[i].name))
            return curves[i].digest;
    return NULL;
}

static BIO *open_text(heft_str text)
{
    return text.len <= INT32_MAX ? BIO_new_mem_buf(text.ptr, (int)text.len) : NULL;
}

static heft_status fail(heft_error *err, const char *rule, const char *text)
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
    BIO *in = open_text(text);
    EVP_PKEY *key = NULL;
    if (in && is_private)
        key = PEM_read_bio_PrivateKey_ex(in, NULL, give_password, &password, library, NULL);
    else if (in)
        key = PEM_read_bio_PUBKEY_ex(in, NULL, give_password, &password, library, NULL);
    BIO_free(in);
    return key;
}

/* Compute the hint: the SHA-256 of the public key in PEM form. */
static bool hint_of(char out[2 * SHA256_DIGEST_LENGTH], EVP_PKEY *key)
{
    static const char digits[] = "0123456789abcdef";
    unsigned char hash[EVP_MAX_MD_SIZE];
    char *text;
    BIO *pem = BIO_new(BIO_s_mem());
    bool ok = pem && PEM_write_bio_PUBKEY(pem, key);
    long len = ok ? BIO_get_mem_data(pem, &text) : 0;
    ok = ok && len > 0 && SHA256((const unsigned char *)text, (size_t)len, hash);
    BIO_free(pem);
    for (size_t i = 0; ok && i < SHA256_DIGEST_LENGTH; i++) {
        out[2 * i] = digits[hash[i] >> 4];
        out[2 * i + 1] = digits[hash[i] & 15];
    }
    return ok;
}

static bool verify_message(OSSL_LIB_CTX *library, EVP_PKEY *key, const heft_signature_info *s)
{
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    bool ok = ctx &&
              EVP_DigestVerifyInit_ex(ctx, NULL, digest_of(key), library, NULL, key, NULL) == 1 &&
              EVP_DigestVerify(ctx, (const unsigned char *)s->signature.ptr, s->signature.len,
                               (const unsigned char *)s->message.ptr, s->message.len) == 1;
    EVP_MD_CTX_free(ctx);
    return ok;
}

static heft_status check_with_key(OSSL_LIB_CTX *library, EVP_PKEY *key,
                                  const heft_signature_info *s, heft_error *err)
{
    if (verify_message(library, key, s))
        return HEFT_OK;
    return fail(err, "signature/invalid",
                "the signature does not match the signed statement and this key");
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
    if (!key || !digest_of(key))
        return not_a_key(err, "public key");
    if (!hint_of(hint, key))
        return heft_error_no_memory(err, "for a key");
    if (s->key_hint.len &&
        (s->key_hint.len != sizeof hint || memcmp(hint, s->key_hint.ptr, sizeof hint) != 0))
        return fail(err, "signature/key", "the model was signed with another key");
    return check_with_key(library, key, s, err);
}

heft_status heft_signature_check_key(const heft_signature *s, heft_str text, heft_error *err)
{
    heft_error own;
    heft_signature_info info;
    err = heft_error_begin(err, &own);
    heft_signature_get(&info, s);
    OSSL_LIB_CTX *library = OSSL_LIB_CTX_new();
    EVP_PKEY *key = library ? read_key(library, text, false, (heft_str){ "", 0 }) : NULL;
    heft_status st = library ? check_key(library, key, &info, err)
                             : heft_error_no_memory(err, "for a key");
    EVP_PKEY_free(key);
    OSSL_LIB_CTX_free(library);
    ERR_clear_error();
    return heft_error_end(err, st);
}

/* ---- signing ---- */

static heft_status sign(OSSL_LIB_CTX *library, EVP_PKEY *key, heft_signature *s, heft_error *err)
{
    heft_signature_info info;
    unsigned char signature[SIGNATURE_MAX];
    char hint[2 * SHA256_DIGEST_LENGTH];
    size_t len = sizeof signature;
    if (!key || !digest_of(key))
        return heft_error_plain(err, HEFT_E_ARGUMENT,
                                "is not a private key on the curve P-256, P-384 or P-521 in PEM "
                                "form, or the password is wrong");
    heft_signature_get(&info, s);
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    bool ok = ctx && hint_of(hint, key) &&
              EVP_DigestSignInit_ex(ctx, NULL, digest_of(key), library, NULL, key, NULL) == 1 &&
              EVP_DigestSign(ctx, signature, &len, (const unsigned char *)info.message.ptr,
                             info.message.len) == 1;
    EVP_MD_CTX_free(ctx);
    if (!ok)
        return heft_error_no_memory(err, "to sign");
    return heft_signature_set(s, (heft_str){ (const char *)signature, len },
                              (heft_str){ hint, sizeof hint }, err);
}

heft_status heft_signature_sign(heft_signature *s, heft_str text, heft_str password,
                                heft_error *err)
{
    heft_error own;
    err = heft_error_begin(err, &own);
    OSSL_LIB_CTX *library = OSSL_LIB_CTX_new();
    EVP_PKEY *key = library ? read_key(library, text, true, password) : NULL;
    heft_status st = library ? sign(library, key, s, err) : heft_error_no_memory(err, "for a key");
    EVP_PKEY_free(key);
    OSSL_LIB_CTX_free(library);
    ERR_clear_error();
    return heft_error_end(err, st);
}

/* ---- certificates ---- */

typedef struct chain {
    OSSL_LIB_CTX *library;
    const heft_signature_info *info;
    X509 *signer;
    STACK_OF(X509) * others;
    X509_STORE *trusted;
} chain;

static X509 *read_der(OSSL_LIB_CTX *library, heft_str der)
{
    const unsigned char *p = (const unsigned char *)der.ptr;
    X509 *x = X509_new_ex(library, NULL);
    if (x && der.len <= INT32_MAX && d2i_X509(&x, &p, (long)der.len))
        return x;
    X509_free(x); /* NULL after a failure of d2i_X509() */
    return NULL;
}

static X509 *read_pem(OSSL_LIB_CTX *library, BIO *in)
{
    X509 *x = X509_new_ex(library, NULL);
    if (x && PEM_read_bio_X509(in, &x, NULL, NULL))
        return x;
    X509_free(x);
    return NULL;
}

/* Read all certificates of the text into the store; return their number. */
static size_t trust(chain *c, heft_str text)
{
    size_t count = 0;
    BIO *in = open_text(text);
    X509 *x;
    while (in && (x = read_pem(c->library, in)) != NULL) {
        count += X509_STORE_add_cert(c->trusted, x) == 1;
        X509_free(x);
    }
    BIO_free(in);
    return count;
}

static bool read_chain(chain *c, const heft_signature *s)
{
    c->signer = read_der(c->library, heft_signature_certificate_at(s, 0));
    bool ok = c->signer;
    for (uint32_t i = 1; ok && i < c->info->certificates; i++) {
        X509 *x = read_der(c->library, heft_signature_certificate_at(s, i));
        ok = x && sk_X509_push(c->others, x);
        if (!ok)
            X509_free(x);
    }
    return ok;
}

/* Compare the signer with the certificate that the caller expects. */
static heft_status compare_signer(const chain *c, heft_str text, heft_error *err)
{
    BIO *in = open_text(text);
    X509 *expected = in ? read_pem(c->library, in) : NULL;
    bool is_read = expected, is_same = is_read && !X509_cmp(expected, c->signer);
    X509_free(expected);
    BIO_free(in);
    if (!is_read)
        return heft_error_plain(err, HEFT_E_ARGUMENT, "has no certificate in PEM form");
    return is_same ? HEFT_OK
                   : fail(err, "signature/certificate",
                          "the model was signed with another "
                          "certificate");
}

static bool may_sign(X509 *x)
{
    uint32_t usage = X509_get_key_usage(x), extended = X509_get_extended_key_usage(x);
    return (usage != UINT32_MAX && usage & KU_DIGITAL_SIGNATURE) ||
           (extended != UINT32_MAX && extended & XKU_CODE_SIGN);
}

/* Build and check the chain for the time at which the signer's certificate becomes valid. */
static heft_status verify_chain(const chain *c, heft_error *err)
{
    struct tm begin;
    X509_STORE_CTX *ctx = X509_STORE_CTX_new_ex(c->library, NULL);
    if (!ctx || X509_STORE_CTX_init(ctx, c->trusted, c->signer, c->others) != 1) {
        X509_STORE_CTX_free(ctx);
        return heft_error_no_memory(err, "to check certificates");
    }
    X509_STORE_CTX_set_flags(ctx, X509_V_FLAG_X509_STRICT);
    if (ASN1_TIME_to_tm(X509_get0_notBefore(c->signer), &begin) == 1)
        X509_STORE_CTX_set_time(ctx, 0, timegm(&begin));
    bool ok = X509_verify_cert(ctx) == 1;
    const char *why = X509_verify_cert_error_string(X509_STORE_CTX_get_error(ctx));
    heft_status st = HEFT_OK;
    if (!ok) {
        st = heft_error_plain(err, HEFT_E_CHECKSUM, "the signer's certificate is not trusted: %s",
                              why);
        heft_error_rule(err, st, "signature/certificate");
    }
    X509_STORE_CTX_free(ctx);
    return st;
}

static heft_status check_chain(chain *c, const heft_signature *s, heft_str authorities,
                               heft_str certificate, heft_error *err)
{
    if (!c->others || !c->trusted)
        return heft_error_no_memory(err, "for certificates");
    if (!trust(c, authorities))
        return heft_error_plain(err, HEFT_E_ARGUMENT, "has no certificate in PEM form");
    if (!c->info->certificates)
        return fail(err, "signature/certificate",
                    "the signature has no certificate: it was made with a key, use --key");
    if (!read_chain(c, s))
        return fail(err, "signature/certificate", "a certificate of the signature is damaged");
    heft_status st = certificate.len ? compare_signer(c, certificate, err) : HEFT_OK;
    if (!st)
        st = verify_chain(c, err);
    if (!st && !may_sign(c->signer))
        st = fail(err, "signature/certificate",
                  "the signer's certificate is not meant for signatures");
    EVP_PKEY *key = X509_get0_pubkey(c->signer);
    if (!st && (!key || !digest_of(key)))
        st = fail(err, "signature/certificate",
                  "the key of the certificate is not on the curve P-256, P-384 or P-521");
    return st ? st : check_with_key(c->library, key, c->info, err);
}

heft_status heft_signature_check_chain(const heft_signature *s, heft_str authorities,
                                       heft_str certificate, heft_error *err)
{
    heft_error own;
    heft_signature_info info;
    err = heft_error_begin(err, &own);
    heft_signature_get(&info, s);
    chain c = { .library = OSSL_LIB_CTX_new(), .info = &info };
    c.others = c.library ? sk_X509_new_null() : NULL;
    c.trusted = c.library ? X509_STORE_new() : NULL;
    heft_status st = check_chain(&c, s, authorities, certificate, err);
    X509_STORE_free(c.trusted);
    sk_X509_pop_free(c.others, X509_free);
    X509_free(c.signer);
    OSSL_LIB_CTX_free(c.library);
    ERR_clear_error();
    return heft_error_end(err, st);
}
