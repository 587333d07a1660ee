/* name_hash.c - derives the secret multipliers of a name hash. */
#include "base/name_hash.h"

void heft_name_hash_init(heft_name_hash *key, const uint64_t secret[2])
{
    key->secret[0] = secret[0];
    key->secret[1] = secret[1];
    for (uint32_t i = 0; i < sizeof key->multipliers / sizeof *key->multipliers; i++) {
        uint8_t number[4] = { (uint8_t)i };
        key->multipliers[i] = heft_siphash13(secret, number, sizeof number);
    }
}
