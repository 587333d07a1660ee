/* name_hash.h - the keyed hash of name tables.
 *
 * Names are hostile: who makes a file shall not be able to make them collide.  So the key is secret and another
 * one for every file.  Names of usual length are summed up as 32-bit numbers, each times a secret number of its own
 * ("Strongly universal string hashing is fast", Lemire and Kaser, section 2: MULTILINEAR): whatever two names
 * are, the chance is about 2^-32 that they have the same hash.  The others, and the secret numbers, are
 * SipHash-1-3. */
#ifndef HEFT_NAME_HASH_H
#define HEFT_NAME_HASH_H
#include "base/compiler.h"
#include "base/siphash.h"

enum { HEFT_NAME_HASH_MIN = 8, HEFT_NAME_HASH_MAX = 128 }; /* bytes of a usual name */

typedef struct heft_name_hash {
    uint64_t secret[2];
    uint64_t times[1 + HEFT_NAME_HASH_MAX / sizeof(uint32_t)]; /* the first is the length's */
} heft_name_hash;

void heft_name_hash_init(heft_name_hash *key, const uint64_t secret[2]);

static inline uint64_t heft_name_hash_pair(const uint64_t times[2], uint64_t word)
{
    return times[0] * (uint32_t)word + times[1] * (word >> 32);
}

static inline uint32_t heft_name_hash_of(const heft_name_hash *key, const void *data, size_t len)
{
    if (heft_unlikely(len < HEFT_NAME_HASH_MIN || len > HEFT_NAME_HASH_MAX))
        return (uint32_t)heft_siphash13(key->secret, data, len);
    const uint8_t *p = data, *last = p + (len - 8); /* some bytes again */
    const uint64_t *times = key->times + 1;
    uint64_t sum = key->times[0] * len;
    for (; p < last; p += 8, times += 2)
        sum += heft_name_hash_pair(times, heft_le64(p));
    sum += heft_name_hash_pair(times, heft_le64(last));
    uint32_t hash = (uint32_t)(sum >> 32);
    /* names that count upwards shall not stand in a row */
    hash = (hash ^ hash >> 16) * UINT32_C(0x9E3779B1);
    return hash ^ hash >> 15;
}

#endif
