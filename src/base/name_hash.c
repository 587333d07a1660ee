/* name_hash.c - derives the secret multipliers of a name hash. */
#include "base/name_hash.h"
#include "base/cursor.h"

void heft_name_hash_init(heft_name_hash *key, const uint64_t secret[2])
{
    key->secret[0] = secret[0];
    key->secret[1] = secret[1];
    for (uint32_t i = 0; i < sizeof key->multipliers / sizeof *key->multipliers; i++) {
        uint8_t number[4] = { (uint8_t)i };
        key->multipliers[i] = heft_siphash13(secret, number, sizeof number);
    }
}

/* ---- SipHash ---- */

typedef struct state {
    uint64_t a, b, c, d;
} state;

static inline uint64_t rotate(uint64_t v, unsigned by)
{
    return v << by | v >> (64 - by);
}

static inline void mix(state *s)
{
    s->a += s->b;
    s->c += s->d;
    s->b = rotate(s->b, 13) ^ s->a;
    s->d = rotate(s->d, 16) ^ s->c;
    s->a = rotate(s->a, 32);
    s->c += s->b;
    s->a += s->d;
    s->b = rotate(s->b, 17) ^ s->c;
    s->d = rotate(s->d, 21) ^ s->a;
    s->c = rotate(s->c, 32);
}

static inline void add_word(state *s, uint64_t word)
{
    s->d ^= word;
    mix(s);
    s->a ^= word;
}

/* Combine the last `left` bytes at p, fewer than eight, with the length in the top byte.  If the
 * input has at least eight bytes, load the last eight at once instead of looping. */
static uint64_t last_word(const uint8_t *p, size_t left, size_t len)
{
    uint64_t word = (uint64_t)(len & 0xFF) << 56;
    if (len >= 8)
        return left ? word | heft_le64(p + left - 8) >> (64 - 8 * left) : word;
    for (size_t i = 0; i < left; i++)
        word |= (uint64_t)p[i] << 8 * i;
    return word;
}

uint64_t heft_siphash13(const uint64_t key[2], const void *data, size_t len)
{
    state s = { key[0] ^ UINT64_C(0x736f6d6570736575), key[1] ^ UINT64_C(0x646f72616e646f6d),
                key[0] ^ UINT64_C(0x6c7967656e657261), key[1] ^ UINT64_C(0x7465646279746573) };
    const uint8_t *p = data;
    size_t left = len;
    for (; left >= 8; p += 8, left -= 8)
        add_word(&s, heft_le64(p));
    add_word(&s, last_word(p, left, len));
    s.c ^= 0xFF;
    for (unsigned i = 0; i < 3; i++)
        mix(&s);
    return s.a ^ s.b ^ s.c ^ s.d;
}
