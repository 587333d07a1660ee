/* lookup.c - from a tensor's name to its number.
 *
 * A table of 32-bit slots, at most half full, searched from the slot on that the low bits of the hash
 * choose.  A slot holds a number plus one; the bits above those that a number takes are the hash's own,
 * so that other names are looked at only where more of the hash agrees.  The slots of a large table are
 * shared out: each worker looks at all hashes and enters the names that belong to its slots. */
#include "base/compiler.h"
#include "base/error.h"
#include "base/text.h"
#include "model/names.h"

enum {
    AT_ONCE = 32,   /* names at least whose slots are on their way into the cache */
    MANY = 100000,  /* names from which on the slots are shared out */
    SHARES = 4,     /* a power of two */
    MOST_LATE = 64, /* of a share */
};

typedef struct share {
    uint64_t first, end;       /* its slots */
    uint32_t twice;            /* the first name that was there already, or HEFT_NONE */
    uint32_t late;             /* how many found no free slot before the end … */
    uint32_t names[MOST_LATE]; /* … and which */
} share;

typedef struct filling {
    const heft_index *x;
    share shares[SHARES];
} filling;

static inline uint32_t hash_of(const heft_index *x, uint32_t i)
{
    return ((const uint32_t *)x->hashes.ptr)[i];
}

/* The slot of the name in row `like`, or the free one where it belongs, or end. */
static inline uint64_t probe(const heft_index *x, uint64_t at, uint64_t end, uint32_t hash,
                             const heft_ix_tensor_row *like)
{
    uint32_t mask = x->names.mask;
    const uint32_t *slots = x->names.slots;
    for (; at < end && slots[at]; at++) {
        if ((slots[at] ^ hash) & ~mask || hash_of(x, (slots[at] & mask) - 1) != hash)
            continue;
        heft_str wanted = { like->name, like->name_len };
        if (heft_str_eq(heft_ix_name(x, (slots[at] & mask) - 1), wanted))
            break;
    }
    return at;
}

/* The same through all slots, the first one behind the last. */
static uint64_t search(const heft_index *x, uint32_t hash, const heft_ix_tensor_row *like)
{
    uint64_t slots = (uint64_t)x->names.mask + 1;
    uint64_t at = probe(x, hash & x->names.mask, slots, hash, like);
    return at < slots ? at : probe(x, 0, slots, hash, like);
}

/* False: the slot has that name already. */
static inline bool enter(const heft_index *x, uint64_t at, uint32_t i)
{
    uint32_t mask = x->names.mask;
    if (heft_unlikely(x->names.slots[at]))
        return false;
    x->names.slots[at] = (hash_of(x, i) & ~mask) | (i + 1);
    return true;
}

/* Numbers from *i on of names that belong to the share, whose slots are sent for; *i moves behind them. */
static uint32_t gather(uint32_t names[2 * AT_ONCE], const heft_index *x, const share *s,
                       uint32_t *i)
{
    const uint32_t *hashes = x->hashes.ptr;
    uint32_t count = 0, n = x->tensors.len, mask = x->names.mask, k = *i;
    uint64_t first = s->first, slots = s->end - s->first;
    while (k < n && count < AT_ONCE)
        for (uint32_t end = n - k < AT_ONCE ? n : k + AT_ONCE; k < end; k++) {
            names[count] = k; /* stays when it counts */
            count += (hashes[k] & mask) - first < slots;
        }
    for (uint32_t j = 0; j < count; j++)
        heft_prefetch_line(&x->names.slots[hashes[names[j]] & mask]);
    *i = k;
    return count;
}

static bool enter_in_share(const heft_index *x, share *s, uint32_t i)
{
    uint32_t hash = hash_of(x, i);
    uint64_t at = probe(x, hash & x->names.mask, s->end, hash, heft_ix_row(x, i));
    if (heft_unlikely(at == s->end)) {
        if (s->late < MOST_LATE)
            s->names[s->late] = i;
        s->late++;
        return true;
    }
    if (enter(x, at, i))
        return true;
    s->twice = i;
    return false;
}

static void fill_share(void *arg, size_t number)
{
    filling *f = arg;
    const heft_index *x = f->x;
    share *s = &f->shares[number];
    uint32_t names[2][2 * AT_ONCE], i = 0, now = 0;
    memset(x->names.slots + s->first, 0, (size_t)(s->end - s->first) * sizeof *x->names.slots);
    for (uint32_t count = gather(names[0], x, s, &i), next; count; count = next, now = !now) {
        next = gather(names[!now], x, s, &i);
        for (uint32_t k = 0; k < count; k++)
            if (!enter_in_share(x, s, names[now][k]))
                return;
    }
}

/* Names that their own share had no slot for; the first that is there already, or HEFT_NONE. */
static uint32_t enter_late(const heft_index *x, const uint32_t *names, uint32_t count)
{
    for (uint32_t k = 0; k < count; k++) {
        uint32_t i = names ? names[k] : k;
        if (!enter(x, search(x, hash_of(x, i), heft_ix_row(x, i)), i))
            return i;
    }
    return HEFT_NONE;
}

/* As many late names are those of a file whose names are made to collide, by someone who knows the key. */
static uint32_t fill_in_order(const heft_index *x)
{
    memset(x->names.slots, 0, ((size_t)x->names.mask + 1) * sizeof *x->names.slots);
    return enter_late(x, NULL, x->tensors.len);
}

/* The first name that is there already, or HEFT_NONE. */
static uint32_t fill(const heft_index *x)
{
    filling f = { .x = x };
    uint32_t shares = x->tensors.len < MANY ? 1 : SHARES, twice = HEFT_NONE;
    uint64_t each = ((uint64_t)x->names.mask + 1) / shares;
    for (uint32_t i = 0; i < shares; i++)
        f.shares[i] = (share){ .first = i * each, .end = (i + 1) * each, .twice = HEFT_NONE };
    heft_ix_run(x, shares, fill_share, &f);
    for (uint32_t i = 0; i < shares; i++)
        if (f.shares[i].late > MOST_LATE)
            return fill_in_order(x);
    for (uint32_t i = 0; i < shares; i++) {
        uint32_t late = enter_late(x, f.shares[i].names, f.shares[i].late);
        twice = late < twice ? late : twice;
        twice = f.shares[i].twice < twice ? f.shares[i].twice : twice;
    }
    return twice;
}

heft_status heft_ix_seal(heft_index *x)
{
    heft_ix_trim(x);
    if (!heft_names_slots(&x->mem, &x->names, x->tensors.len))
        return heft_ix_no_memory(x);
    uint32_t twice = fill(x);
    if (twice != HEFT_NONE)
        return heft_error_plain(x->err, HEFT_E_FORMAT, "tensor %q occurs twice",
                                heft_ix_name(x, twice));
    x->sealed = true;
    return HEFT_OK;
}

uint32_t heft_ix_find(const heft_index *x, heft_str name)
{
    if (!x->sealed || name.len > UINT32_MAX)
        return HEFT_NONE;
    heft_ix_tensor_row wanted = { .name = name.ptr, .name_len = (uint32_t)name.len };
    uint64_t at = search(x, heft_names_hash(&x->key, name), &wanted);
    uint32_t slot = x->names.slots[at];
    return slot ? (slot & x->names.mask) - 1 : HEFT_NONE;
}
