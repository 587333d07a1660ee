/* digest_openssl.c - SHA-256, by libcrypto. */
#include "port/port.h"

#include <openssl/evp.h>

static bool init(void *state)
{
    EVP_MD_CTX *md = EVP_MD_CTX_new();
    *(EVP_MD_CTX **)state = md;
    return md && EVP_DigestInit_ex(md, EVP_sha256(), NULL) == 1;
}

static void update(void *state, const void *data, size_t len)
{
    EVP_DigestUpdate(*(EVP_MD_CTX **)state, data, len);
}

static void final(uint8_t *out, void *state)
{
    EVP_MD_CTX *md = *(EVP_MD_CTX **)state;
    if (out)
        EVP_DigestFinal_ex(md, out, NULL);
    EVP_MD_CTX_free(md);
}

const heft_digest heft_openssl_sha256 = {
    "sha256", 32, sizeof(EVP_MD_CTX *), init, update, final, NULL,
};
