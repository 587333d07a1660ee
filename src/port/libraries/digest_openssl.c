/* digest_openssl.c - SHA-256, by libcrypto.
 *
 * OpenSSL deprecates the functions used here in favour of EVP.  The first use of EVP loads the
 * system's configuration with thousands of allocations, and crashes if some of the allocations
 * fail. */
#include "port/libraries/crypto_library.h"
#include "port/port.h"

static bool init(void *state)
{
    return !heft_crypto_load(NULL) && heft_crypto->SHA256_Init(state);
}

static void update(void *state, const void *data, size_t len)
{
    heft_crypto->SHA256_Update(state, data, len);
}

static void final(uint8_t *out, void *state)
{
    if (out)
        heft_crypto->SHA256_Final(out, state);
}

const heft_digest heft_openssl_sha256 = {
    sizeof(heft_digest),
    "sha256",
    SHA256_DIGEST_LENGTH,
    sizeof(SHA256_CTX),
    init,
    update,
    final,
    NULL,
    heft_crypto_load,
};
