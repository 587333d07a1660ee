/* name_lookup.c - from a tensor's name to its number.
 *
 * A table of 32-bit slots, at most half full, searched from the slot on that the low bits of the hash
 * choose.  A slot holds a number plus one; the bits above those that a number takes are the hash's own,
 * so that other names are looked at only where more of the hash agrees.  Very many names are entered by
 * several workers at once: which of them is faster decides where a name stands, and not whether it is found. */
#include "base/checked_math.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/text.h"
#include "model/names.h"

enum {
    AHEAD = 32,    /* names whose slots are on their way into the cache */
    MANY = 100000, /* names from which on several workers enter them */
    SHARES = 4,
};

typedef struct filling {
    const heft_index *x;
    uint32_t shares;
    uint32_t twice[SHARES]; /* of each share, the first name that was there already, or HEFT_NONE */
} filling;

static inline uint32_t hash_of(const heft_index *x, uint32_t i)
{
    return ((const uint32_t *)x->hashes.ptr)[i];
}

/* Moves *at on to the slot of the name in row `like`, or to the free one where it belongs; what is there. */
static inline uint32_t probe(const heft_index *x, uint32_t *at, uint32_t hash,
                             const heft_ix_tensor_row *like)
{
    uint32_t mask = x->names.mask, slot;
    for (; (slot = heft_atomic_load(&x->names.slots[*at])) != 0; *at = (*at + 1) & mask) {
        if ((slot ^ hash) & ~mask || hash_of(x, (slot & mask) - 1) != hash)
            continue;
        heft_str wanted = { like->name, like->name_len };
        if (heft_str_eq(heft_ix_name(x, (slot & mask) - 1), wanted))
            break;
    }
    return slot;
}

/* False: the name is there already. */
static inline bool enter(const heft_index *x, uint32_t i)
{
    uint32_t hash = hash_of(x, i), mask = x->names.mask, at = hash & mask;
    while (!probe(x, &at, hash, heft_ix_row(x, i)))
        if (heft_atomic_set_if_zero(&x->names.slots[at], (hash & ~mask) | (i + 1)))
            return true;
    return false;
}

static uint64_t edge_of(const filling *f, uint64_t count, size_t share)
{
    return share < f->shares ? heft_div(count, f->shares) * share : count;
}

static void clear_share(void *arg, size_t i)
{
    const filling *f = arg;
    const heft_names *names = &f->x->names;
    uint64_t slots = (uint64_t)names->mask + 1, first = edge_of(f, slots, i);
    memset(names->slots + first, 0,
           (size_t)(edge_of(f, slots, i + 1) - first) * sizeof *names->slots);
}

static void fill_share(void *arg, size_t share)
{
    filling *f = arg;
    const heft_index *x = f->x;
    const uint32_t *hashes = x->hashes.ptr;
    uint32_t count = x->tensors.len, end = (uint32_t)edge_of(f, count, share + 1);
    for (uint32_t i = (uint32_t)edge_of(f, count, share); i < end; i++) {
        if (end - i > AHEAD)
            heft_prefetch_to_write(&x->names.slots[hashes[i + AHEAD] & x->names.mask]);
        if (heft_unlikely(!enter(x, i))) {
            f->twice[share] = i;
            return;
        }
    }
}

/* The first name that is there already, or HEFT_NONE. */
static uint32_t fill(const heft_index *x, uint32_t shares)
{
    filling f = { x, shares, { HEFT_NONE, HEFT_NONE, HEFT_NONE, HEFT_NONE } };
    uint32_t twice = HEFT_NONE;
    heft_ix_run(x, shares, clear_share, &f);
    heft_ix_run(x, shares, fill_share, &f);
    for (uint32_t i = 0; i < shares; i++)
        twice = f.twice[i] < twice ? f.twice[i] : twice;
    return twice;
}

heft_status heft_ix_build_name_table(heft_index *x)
{
    heft_ix_trim(x);
    if (!heft_names_slots(&x->mem, &x->names, x->tensors.len))
        return heft_ix_no_memory(x);
    bool is_shared = HEFT_HAS_ATOMICS && x->tensors.len >= MANY;
    uint32_t twice = fill(x, is_shared ? SHARES : 1);
    if (is_shared && twice != HEFT_NONE)
        twice = fill(x, 1); /* the first name that occurs twice shows in order */
    if (twice != HEFT_NONE)
        return heft_error_plain(x->err, HEFT_E_FORMAT, "tensor %q occurs twice",
                                heft_ix_name(x, twice));
    x->has_name_table = true;
    return HEFT_OK;
}

uint32_t heft_ix_find(const heft_index *x, heft_str name)
{
    if (!x->has_name_table || name.len > UINT32_MAX)
        return HEFT_NONE;
    heft_ix_tensor_row wanted = { .name = name.ptr, .name_len = (uint32_t)name.len };
    uint32_t hash = heft_names_hash(&x->key, name), at = hash & x->names.mask;
    uint32_t slot = probe(x, &at, hash, &wanted);
    return slot ? (slot & x->names.mask) - 1 : HEFT_NONE;
}
