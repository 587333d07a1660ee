/* ids.c - who a parameter is: gpt-rs' base ids, namespaces and keys. */
#include <stdatomic.h>
#include <string.h>

#include <heft/params.h>

#include "base/blake3.h"
#include "base/text.h"

bool heft_base_param_id(heft_id128 *out, const char *name, size_t len)
{
    if (!heft_is_ascii(name, len))
        return false;
    heft_blake3_id(out->bytes, name, len);
    return true;
}

heft_id128 heft_param_key(heft_id128 space, heft_id128 base)
{
    static const char domain[] = "gpt-rs:param-key:v1";
    heft_blake3 h;
    uint8_t digest[32];
    heft_id128 key;
    heft_blake3_init(&h);
    heft_blake3_update(&h, domain, sizeof domain - 1);
    heft_blake3_update(&h, space.bytes, sizeof space.bytes);
    heft_blake3_update(&h, base.bytes, sizeof base.bytes);
    heft_blake3_final(&h, digest);
    memcpy(key.bytes, digest, sizeof key.bytes);
    return key;
}

heft_id128 heft_id128_from(uint64_t low, uint64_t high)
{
    heft_id128 id;
    for (int i = 0; i < 8; i++) {
        id.bytes[i] = (uint8_t)(low >> 8 * i);
        id.bytes[8 + i] = (uint8_t)(high >> 8 * i);
    }
    return id;
}

/* The one number that outlives a store: namespaces of one process never meet. */
heft_id128 heft_param_namespace(void)
{
    static atomic_uint_fast64_t last;
    return heft_id128_from(atomic_fetch_add(&last, 1) + 1, 0);
}

void heft_id128_text(char out[33], heft_id128 id)
{
    static const char digits[] = "0123456789abcdef";
    for (int i = 0; i < 16; i++) {
        out[2 * i] = digits[id.bytes[15 - i] >> 4];
        out[2 * i + 1] = digits[id.bytes[15 - i] & 15];
    }
    out[32] = '\0';
}
