/* web_digests.c - SHA-256 (FIPS 180-4), which browsers compute only in the background, and XXH3 by
 * libxxhash, whose header contains the whole function. */
#include "heft_web.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

/* ---- SHA-256 -------------------------------------------------------------------------------- */

enum { BLOCK = 64, ROUNDS = 64, LENGTH_AT = 56 };

typedef struct sha256 {
    uint32_t h[8];
    uint64_t bytes;
    uint8_t block[BLOCK];
} sha256;

static const uint32_t round_constants[ROUNDS] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t rotated(uint32_t v, uint32_t n)
{
    return v >> n | v << (32 - n);
}

static uint32_t big_endian(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static void expand(uint32_t *w, const uint8_t *block)
{
    for (uint32_t i = 0; i < 16; i++)
        w[i] = big_endian(block + 4 * i);
    for (uint32_t i = 16; i < ROUNDS; i++) {
        uint32_t x = w[i - 15], y = w[i - 2];
        uint32_t s0 = rotated(x, 7) ^ rotated(x, 18) ^ x >> 3;
        uint32_t s1 = rotated(y, 17) ^ rotated(y, 19) ^ y >> 10;
        w[i] = w[i - 16] + s0 + w[i - 7] + s1;
    }
}

static void compress(sha256 *s, const uint8_t *block)
{
    uint32_t w[ROUNDS], v[8];
    expand(w, block);
    memcpy(v, s->h, sizeof v);
    for (uint32_t i = 0; i < ROUNDS; i++) {
        uint32_t e = v[4], a = v[0];
        uint32_t s1 = rotated(e, 6) ^ rotated(e, 11) ^ rotated(e, 25);
        uint32_t t1 = v[7] + s1 + ((e & v[5]) ^ (~e & v[6])) + round_constants[i] + w[i];
        uint32_t s0 = rotated(a, 2) ^ rotated(a, 13) ^ rotated(a, 22);
        uint32_t t2 = s0 + ((a & v[1]) ^ (a & v[2]) ^ (v[1] & v[2]));
        for (uint32_t k = 7; k > 0; k--)
            v[k] = v[k - 1];
        v[4] += t1;
        v[0] = t1 + t2;
    }
    for (uint32_t i = 0; i < 8; i++)
        s->h[i] += v[i];
}

static bool sha256_init(void *state)
{
    static const uint32_t start[8] = { 0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                       0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19 };
    sha256 *s = state;
    memcpy(s->h, start, sizeof start);
    s->bytes = 0;
    return true;
}

static void sha256_update(void *state, const void *data, size_t len)
{
    sha256 *s = state;
    const uint8_t *p = data;
    while (len) {
        size_t held = (size_t)(s->bytes % BLOCK), n = BLOCK - held < len ? BLOCK - held : len;
        if (!held && len >= BLOCK) {
            compress(s, p);
            n = BLOCK;
        } else {
            memcpy(s->block + held, p, n);
            if (held + n == BLOCK)
                compress(s, s->block);
        }
        s->bytes += n;
        p += n;
        len -= n;
    }
}

static void sha256_final(uint8_t *out, void *state)
{
    static const uint8_t padding[BLOCK] = { 0x80 };
    sha256 *s = state;
    uint8_t length[8];
    if (!out)
        return;
    for (uint32_t i = 0; i < 8; i++)
        length[i] = (uint8_t)(s->bytes * 8 >> (56 - 8 * i));
    size_t held = (size_t)(s->bytes % BLOCK);
    sha256_update(s, padding, held < LENGTH_AT ? LENGTH_AT - held : BLOCK + LENGTH_AT - held);
    sha256_update(s, length, sizeof length);
    for (uint32_t i = 0; i < 32; i++)
        out[i] = (uint8_t)(s->h[i / 4] >> (24 - 8 * (i % 4)));
}

const heft_digest web_sha256 = {
    sizeof(heft_digest), "sha256",     32,   sizeof(sha256), sha256_init,
    sha256_update,       sha256_final, NULL, NULL,
};

/* ---- XXH3 ----------------------------------------------------------------------------------- */

/* The state must be aligned to 64 bytes; the core's storage is not. */
typedef struct xxh3_storage {
    uint8_t bytes[sizeof(XXH3_state_t) + 64];
} xxh3_storage;

static XXH3_state_t *xxh3_state(void *storage)
{
    return (XXH3_state_t *)(((uintptr_t)storage + 63) & ~(uintptr_t)63);
}

static bool xxh3_init(void *state)
{
    return XXH3_64bits_reset(xxh3_state(state)) == XXH_OK;
}

static void xxh3_update(void *state, const void *data, size_t len)
{
    XXH3_64bits_update(xxh3_state(state), data, len);
}

static void xxh3_final(uint8_t *out, void *state)
{
    uint64_t v = out ? XXH3_64bits_digest(xxh3_state(state)) : 0;
    for (int i = 0; out && i < 8; i++)
        out[i] = (uint8_t)(v >> 8 * i);
}

const heft_digest web_xxh3 = {
    sizeof(heft_digest), "xxh3", 8,    sizeof(xxh3_storage), xxh3_init, xxh3_update,
    xxh3_final,          NULL,   NULL,
};
