/* certificates_openssl.c - certificates of signers and chains of certificates, by libcrypto. */
#include <heft/sign.h>

#include "port/libraries/crypto_library.h"
#include "port/port.h"

/* The security level of OpenSSL that means 112 bits: neither SHA-1 nor RSA with 1024 bits. */
enum { SECURITY_LEVEL = 2 };

typedef struct chain {
    OSSL_LIB_CTX *library;
    X509 *signer; /* NULL until read */
    STACK_OF(X509) * others;
    X509_STORE *trusted;
} chain;

/* ---- lists of certificates: the macros of OpenSSL would call libcrypto by name ---- */

static STACK_OF(X509) * new_list(void)
{
    return (STACK_OF(X509) *)heft_crypto->OPENSSL_sk_new_null();
}

static int count_of(const STACK_OF(X509) * list)
{
    return heft_crypto->OPENSSL_sk_num((const OPENSSL_STACK *)list);
}

static X509 *certificate_at(const STACK_OF(X509) * list, int i)
{
    return heft_crypto->OPENSSL_sk_value((const OPENSSL_STACK *)list, i);
}

static bool add_to(STACK_OF(X509) * list, X509 *x)
{
    return heft_crypto->OPENSSL_sk_push((OPENSSL_STACK *)list, x) > 0;
}

static X509 *take_first(STACK_OF(X509) * list)
{
    return heft_crypto->OPENSSL_sk_shift((OPENSSL_STACK *)list);
}

static void free_certificate(void *x)
{
    heft_crypto->X509_free(x);
}

static void free_list(STACK_OF(X509) * list)
{
    heft_crypto->OPENSSL_sk_pop_free((OPENSSL_STACK *)list, free_certificate);
}

/* ---- chains ---- */

static bool open_chain(chain *c)
{
    *c = (chain){ .library = heft_crypto->OSSL_LIB_CTX_new() };
    c->others = c->library ? new_list() : NULL;
    c->trusted = c->library ? heft_crypto->X509_STORE_new() : NULL;
    return c->others && c->trusted;
}

static void close_chain(chain *c)
{
    heft_crypto->X509_STORE_free(c->trusted);
    free_list(c->others);
    heft_crypto->X509_free(c->signer);
    heft_crypto->OSSL_LIB_CTX_free(c->library);
}

/* ---- reading ---- */

X509 *heft_openssl_certificate(OSSL_LIB_CTX *library, heft_str der)
{
    const unsigned char *p = (const unsigned char *)der.ptr;
    X509 *x = heft_crypto->X509_new_ex(library, NULL);
    if (x && der.len <= INT32_MAX && heft_crypto->d2i_X509(&x, &p, (long)der.len) &&
        p == (const unsigned char *)der.ptr + der.len)
        return x;
    heft_crypto->X509_free(x); /* NULL after a failure of d2i_X509() */
    return NULL;
}

/* Read the certificates of a text in PEM form; other blocks are skipped. */
static heft_status read_pem(STACK_OF(X509) * out, OSSL_LIB_CTX *library, heft_str text,
                            heft_error *err)
{
    BIO *in = heft_openssl_text(text);
    bool has_more = in;
    heft_crypto->ERR_clear_error();
    while (has_more) {
        X509 *x = heft_crypto->X509_new_ex(library, NULL);
        has_more = x && heft_crypto->PEM_read_bio_X509(in, &x, NULL, NULL) && add_to(out, x);
        if (!has_more)
            heft_crypto->X509_free(x); /* NULL after a damaged certificate */
    }
    heft_crypto->BIO_free(in);
    if (ERR_GET_REASON(heft_crypto->ERR_peek_last_error()) != PEM_R_NO_START_LINE)
        return heft_error_plain(err, HEFT_E_ARGUMENT, "has a damaged certificate");
    return count_of(out) ? HEFT_OK
                         : heft_error_plain(err, HEFT_E_ARGUMENT, "has no certificate in PEM form");
}

/* ---- checking ---- */

static bool may_sign(X509 *x)
{
    uint32_t usage = heft_crypto->X509_get_key_usage(x),
             extended = heft_crypto->X509_get_extended_key_usage(x);
    return (usage != UINT32_MAX && usage & KU_DIGITAL_SIGNATURE) ||
           (extended != UINT32_MAX && extended & XKU_CODE_SIGN);
}

static X509_STORE_CTX *begin_check(const chain *c, unsigned long flags)
{
    struct tm begin;
    X509_STORE_CTX *ctx = heft_crypto->X509_STORE_CTX_new_ex(c->library, NULL);
    if (!ctx || heft_crypto->X509_STORE_CTX_init(ctx, c->trusted, c->signer, c->others) != 1) {
        heft_crypto->X509_STORE_CTX_free(ctx);
        return NULL;
    }
    heft_crypto->X509_STORE_CTX_set_flags(ctx, X509_V_FLAG_X509_STRICT | flags);
    heft_crypto->X509_VERIFY_PARAM_set_auth_level(heft_crypto->X509_STORE_CTX_get0_param(ctx),
                                                  SECURITY_LEVEL);
    if (heft_crypto->ASN1_TIME_to_tm(heft_crypto->X509_get0_notBefore(c->signer), &begin) == 1)
        heft_crypto->X509_STORE_CTX_set_time(ctx, 0, timegm(&begin));
    return ctx;
}

/* Build and check the chain for the time at which the signer's certificate becomes valid.
 * status: of the errors. */
static heft_status check_trust(const chain *c, unsigned long flags, heft_status status,
                               heft_error *err)
{
    X509_STORE_CTX *ctx = begin_check(c, flags);
    if (!ctx)
        return heft_error_no_memory(err, "to check certificates");
    heft_status st = HEFT_OK;
    if (heft_crypto->X509_verify_cert(ctx) != 1) {
        st = heft_error_plain(
            err, status, "the signer's certificate is not trusted: %s",
            heft_crypto->X509_verify_cert_error_string(heft_crypto->X509_STORE_CTX_get_error(ctx)));
        heft_error_rule(err, st, "signature/certificate");
    }
    heft_crypto->X509_STORE_CTX_free(ctx);
    return st;
}

/* Return the reason why the certificate cannot be a signer's, or NULL. */
static const char *unfit_signer(X509 *x)
{
    const EVP_PKEY *key = heft_crypto->X509_get0_pubkey(x);
    if (!may_sign(x))
        return "the signer's certificate is not meant for signatures";
    if (!key || !heft_openssl_digest_of(key))
        return "the key of the certificate is not on the curve P-256, P-384 or P-521";
    return NULL;
}

/* ---- checking a signature ---- */

static heft_status trust(chain *c, heft_str text, heft_error *err)
{
    STACK_OF(X509) *all = new_list();
    heft_status st = all ? read_pem(all, c->library, text, err)
                         : heft_error_no_memory(err, "for certificates");
    for (int i = 0; !st && i < count_of(all); i++)
        if (heft_crypto->X509_STORE_add_cert(c->trusted, certificate_at(all, i)) != 1)
            st = heft_error_no_memory(err, "for certificates");
    free_list(all);
    return st;
}

static bool read_chain(chain *c, const heft_signature *s, uint32_t count)
{
    c->signer = heft_openssl_certificate(c->library, heft_signature_certificate_at(s, 0));
    bool ok = c->signer;
    for (uint32_t i = 1; ok && i < count; i++) {
        X509 *x = heft_openssl_certificate(c->library, heft_signature_certificate_at(s, i));
        ok = x && add_to(c->others, x);
        if (!ok)
            heft_crypto->X509_free(x);
    }
    return ok;
}

/* Compare the signer with the certificate that the caller expects. */
static heft_status compare_signer(const chain *c, heft_str text, heft_error *err)
{
    STACK_OF(X509) *expected = new_list();
    heft_status st = expected ? read_pem(expected, c->library, text, err)
                              : heft_error_no_memory(err, "for certificates");
    if (!st && heft_crypto->X509_cmp(certificate_at(expected, 0), c->signer) != 0)
        st = heft_openssl_fail(err, "signature/certificate",
                               "the model was signed with another certificate");
    free_list(expected);
    return st;
}

static heft_status check_chain(chain *c, const heft_signature *s, heft_str authorities,
                               heft_str certificate, heft_error *err)
{
    heft_signature_info info;
    heft_signature_get(&info, s);
    HEFT_TRY(trust(c, authorities, err));
    if (!info.certificates)
        return heft_openssl_fail(err, "signature/certificate",
                                 "the signature has no certificate: it was made with a key, use "
                                 "--key");
    if (!read_chain(c, s, info.certificates))
        return heft_openssl_fail(err, "signature/certificate",
                                 "a certificate of the signature is damaged");
    heft_status st = HEFT_OK;
    if (certificate.len)
        st = compare_signer(c, certificate, err);
    if (!st)
        st = check_trust(c, 0, HEFT_E_CHECKSUM, err);
    const char *unfit = st ? NULL : unfit_signer(c->signer);
    if (unfit)
        st = heft_openssl_fail(err, "signature/certificate", unfit);
    return st ? st
              : heft_openssl_check_message(c->library, heft_crypto->X509_get0_pubkey(c->signer),
                                           &info, err);
}

heft_status heft_signature_check_chain(const heft_signature *s, heft_str authorities,
                                       heft_str certificate, heft_error *err)
{
    heft_error own;
    chain c;
    err = heft_error_begin(err, &own);
    heft_status st = heft_openssl_begin(err);
    if (st)
        return heft_error_end(err, st);
    st = open_chain(&c) ? check_chain(&c, s, authorities, certificate, err)
                        : heft_error_no_memory(err, "for certificates");
    st = heft_openssl_end(err, st);
    close_chain(&c);
    return heft_error_end(err, st);
}

/* ---- certificates of a new signature ---- */

static heft_status check_dates(const X509 *x, heft_error *err)
{
    if (heft_crypto->X509_cmp_current_time(heft_crypto->X509_get0_notBefore(x)) > 0)
        return heft_error_plain(err, HEFT_E_ARGUMENT, "the signer's certificate is not valid yet");
    if (heft_crypto->X509_cmp_current_time(heft_crypto->X509_get0_notAfter(x)) < 0)
        return heft_error_plain(err, HEFT_E_ARGUMENT, "the signer's certificate has expired");
    return HEFT_OK;
}

/* Each certificate has to be followed by that of its issuer. */
static heft_status check_order(const chain *c, heft_error *err)
{
    X509 *subject = c->signer;
    for (int i = 0; i < count_of(c->others); i++) {
        X509 *issuer = certificate_at(c->others, i);
        if (heft_crypto->X509_check_issued(issuer, subject) != X509_V_OK)
            return heft_error_plain(err, HEFT_E_ARGUMENT,
                                    "certificate %U is not the issuer of the one before: put "
                                    "the signer's first, then each issuer",
                                    (uint64_t)i + 2);
        subject = issuer;
    }
    return HEFT_OK;
}

/* Check the chain as a verifier would that trusts the last certificate. */
static heft_status check_new_chain(chain *c, heft_error *err)
{
    int count = count_of(c->others);
    heft_status st = check_dates(c->signer, err);
    const char *unfit = st ? NULL : unfit_signer(c->signer);
    if (unfit)
        st = heft_error_plain(err, HEFT_E_ARGUMENT, "%s", unfit);
    if (!st)
        st = check_order(c, err);
    if (!st && heft_crypto->X509_STORE_add_cert(
                   c->trusted, count ? certificate_at(c->others, count - 1) : c->signer) != 1)
        st = heft_error_no_memory(err, "for certificates");
    return st ? st : check_trust(c, X509_V_FLAG_PARTIAL_CHAIN, HEFT_E_ARGUMENT, err);
}

static heft_status add(heft_signature *s, const X509 *x, heft_error *err)
{
    unsigned char *der = NULL;
    int len = heft_crypto->i2d_X509(x, &der);
    heft_status st = len > 0 ? heft_signature_add_certificate(
                                   s, (heft_str){ (const char *)der, (size_t)len }, err)
                             : heft_error_no_memory(err, "for a certificate");
    heft_crypto->CRYPTO_free(der, __FILE__, __LINE__);
    return st;
}

static heft_status certify(chain *c, heft_signature *s, heft_str text, heft_error *err)
{
    if (heft_signature_certificate_at(s, 0).len)
        return heft_error_plain(err, HEFT_E_ARGUMENT, "the signature has certificates already");
    HEFT_TRY(read_pem(c->others, c->library, text, err));
    c->signer = take_first(c->others);
    HEFT_TRY(check_new_chain(c, err));
    HEFT_TRY(add(s, c->signer, err));
    for (int i = 0; i < count_of(c->others); i++)
        HEFT_TRY(add(s, certificate_at(c->others, i), err));
    return HEFT_OK;
}

heft_status heft_signature_certify(heft_signature *s, heft_str certificates, heft_error *err)
{
    heft_error own;
    chain c;
    err = heft_error_begin(err, &own);
    heft_status st = heft_openssl_begin(err);
    if (st)
        return heft_error_end(err, st);
    st = open_chain(&c) ? certify(&c, s, certificates, err)
                        : heft_error_no_memory(err, "for certificates");
    st = heft_openssl_end(err, st);
    close_chain(&c);
    return heft_error_end(err, st);
}
