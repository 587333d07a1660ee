/* crypto_library.h - the functions of libcrypto: loaded on first use, or linked.
 *
 * OpenSSL deprecates the functions for SHA-256, SHA-1 and MD5; digest_openssl.c gives the reason
 * for their use. */
#ifndef HEFT_PORT_CRYPTO_LIBRARY_H
#define HEFT_PORT_CRYPTO_LIBRARY_H
#define OPENSSL_SUPPRESS_DEPRECATED
#include <heft/heft.h>
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

#endif
