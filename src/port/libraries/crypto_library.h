/* crypto_library.h - the functions of libcrypto: loaded on first use, or linked.
 *
 * OpenSSL deprecates the functions for SHA-256, SHA-1 and MD5; digest_openssl.c gives the reason
 * for their use. */
#ifndef HEFT_PORT_CRYPTO_LIBRARY_H
#define HEFT_PORT_CRYPTO_LIBRARY_H
#define OPENSSL_SUPPRESS_DEPRECATED
#include <heft/heft.h>
#include <heft/sign.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/md5.h>
#include <openssl/pem.h>
#include <openssl/sha.h>
#include <openssl/x509v3.h>

/* Members are named like the functions. */
typedef struct heft_crypto_functions {
#define FUNCTION(name) __typeof__(name) *(name);
#include "port/libraries/crypto_functions.def"
#undef FUNCTION
} heft_crypto_functions;

/* Valid after heft_crypto_load(). */
extern const heft_crypto_functions *const heft_crypto;

/* Load libcrypto, unless the library is loaded already.  Threads may call this at the same time.
 * The library stays loaded.
 *   HEFT_E_UNSUPPORTED  the library is not installed, or lacks a function */
heft_status heft_crypto_load(heft_error *err);

/* ---- parts of the signatures by libcrypto that keys and certificates share ---- */

/* Load libcrypto; call heft_openssl_end() when the operation has ended. */
heft_status heft_openssl_begin(heft_error *err);
/* Return st, or HEFT_E_NOMEM if the operation failed for lack of memory: libcrypto's functions
 * then fail as if their input were wrong.  Discards OpenSSL's own errors. */
heft_status heft_openssl_end(heft_error *err, heft_status st);
/* Return the digest that goes with the curve of the key; NULL for other keys. */
const char *heft_openssl_digest_of(const EVP_PKEY *key);
/* Open a text that is borrowed; NULL without memory, or if the text is too long. */
BIO *heft_openssl_text(heft_str text);
/* Set the message and the rule; return HEFT_E_CHECKSUM. */
heft_status heft_openssl_fail(heft_error *err, const char *rule, const char *text);
/* Check the signature over the message. */
heft_status heft_openssl_check_message(OSSL_LIB_CTX *library, EVP_PKEY *key,
                                       const heft_signature_info *s, heft_error *err);
/* Read a certificate in DER form without bytes after the end; NULL if the bytes are not one. */
X509 *heft_openssl_certificate(OSSL_LIB_CTX *library, heft_str der);

#endif
