/* name_hash.h - the keyed hash of name tables.
 *
 * Names are untrusted: the author of a file must not be able to make names collide, so every file
 * has a key of its own, and the key is secret.  For names of HEFT_NAME_HASH_MIN to
 * HEFT_NAME_HASH_MAX bytes the hash is a sum of 32-bit words, each multiplied by a secret number
 * ("Strongly universal string hashing is fast", Lemire and Kaser, section 2: MULTILINEAR): any two
 * names have the same hash with a probability of about 2^-32.  Shorter and longer names are hashed
 * with SipHash-1-3, which also produces the multipliers. */
#ifndef HEFT_NAME_HASH_H
#define HEFT_NAME_HASH_H
#include "base/compiler.h"

/* SipHash-1-3, a keyed hash. */
uint64_t heft_siphash13(const uint64_t key[2], const void *data, size_t len);

enum { /* name length in bytes; a small build has no multipliers, and hashes all names alike */
       HEFT_NAME_HASH_MIN = 8,
       HEFT_NAME_HASH_MAX = HEFT_IS_SMALL ? 0 : 128
};

typedef struct heft_name_hash {
    uint64_t secret[2];
    uint64_t multipliers[1 + HEFT_NAME_HASH_MAX / sizeof(uint32_t)]; /* [0] is for the length */
} heft_name_hash;

void heft_name_hash_init(heft_name_hash *key, const uint64_t secret[2]);

static inline uint64_t heft_name_hash_pair(const uint64_t multipliers[2], uint64_t word)
{
    return multipliers[0] * (uint32_t)word + multipliers[1] * (word >> 32);
}

static inline uint32_t heft_name_hash_of(const heft_name_hash *key, const void *data, size_t len)
{
    if (heft_unlikely(len < HEFT_NAME_HASH_MIN || len > HEFT_NAME_HASH_MAX))
        return (uint32_t)heft_siphash13(key->secret, data, len);
    const uint8_t *p = data, *last = p + (len - 8); /* may overlap the word before */
    const uint64_t *multipliers = key->multipliers + 1;
    uint64_t sum = key->multipliers[0] * len;
    for (; p < last; p += 8, multipliers += 2)
        sum += heft_name_hash_pair(multipliers, heft_le64(p));
    sum += heft_name_hash_pair(multipliers, heft_le64(last));
    uint32_t hash = (uint32_t)(sum >> 32);
    /* Spread names that end in consecutive numbers over the table. */
    hash = (hash ^ hash >> 16) * UINT32_C(0x9E3779B1);
    return hash ^ hash >> 15;
}

#endif
