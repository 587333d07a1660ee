/* digest_xxhash.c - XXH3 of 64 and 128 bits, by libxxhash; on x86 the library dispatches on the
 * processor at run time. */
#include "port/port.h"

#include <string.h>

#include HEFT_XXHASH_HEADER

static bool init(void *state)
{
    XXH3_state_t *x = XXH3_createState();
    *(XXH3_state_t **)state = x;
    return x && XXH3_64bits_reset(x) == XXH_OK;
}

static void update(void *state, const void *data, size_t len)
{
    XXH3_64bits_update(*(XXH3_state_t **)state, data, len);
}

static void final(uint8_t *out, void *state)
{
    XXH3_state_t *x = *(XXH3_state_t **)state;
    uint64_t v = out ? XXH3_64bits_digest(x) : 0;
    for (int i = 0; out && i < 8; i++)
        out[i] = (uint8_t)(v >> 8 * i);
    XXH3_freeState(x);
}

const heft_digest heft_xxhash_xxh3 = {
    sizeof(heft_digest), "xxh3", 8, sizeof(XXH3_state_t *), init, update, final, NULL, NULL,
};

/* ---- 128 bits, most significant byte first as libxxhash writes them as text ---- */

static bool init128(void *state)
{
    XXH3_state_t *x = XXH3_createState();
    *(XXH3_state_t **)state = x;
    return x && XXH3_128bits_reset(x) == XXH_OK;
}

static void update128(void *state, const void *data, size_t len)
{
    XXH3_128bits_update(*(XXH3_state_t **)state, data, len);
}

static void final128(uint8_t *out, void *state)
{
    XXH3_state_t *x = *(XXH3_state_t **)state;
    if (out) {
        XXH128_canonical_t bytes;
        XXH128_canonicalFromHash(&bytes, XXH3_128bits_digest(x));
        memcpy(out, bytes.digest, sizeof bytes.digest);
    }
    XXH3_freeState(x);
}

const heft_digest heft_xxhash_xxh3_128 = {
    sizeof(heft_digest),
    "xxh3-128",
    16,
    sizeof(XXH3_state_t *),
    init128,
    update128,
    final128,
    NULL,
    NULL,
};
