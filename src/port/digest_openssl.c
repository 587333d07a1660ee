/* digest_openssl.c - SHA-256, by libcrypto.
 *
 * These functions are deprecated in favour of EVP, whose first use loads the system's configuration and takes
 * thousands of blocks of memory, and crashes when there is none for some of them. */
#define OPENSSL_SUPPRESS_DEPRECATED
#include "port/port.h"

#include <openssl/sha.h>

static bool init(void *state)
{
    return SHA256_Init(state);
}

static void update(void *state, const void *data, size_t len)
{
    SHA256_Update(state, data, len);
}

static void final(uint8_t *out, void *state)
{
    if (out)
        SHA256_Final(out, state);
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
};
