/* name_lookup.c - finds a tensor by name.
 *
 * A hash table with linear probing, at most half full.  The low bits of the hash
 * select the first slot.  A slot holds the tensor's number plus one in its low bits, and bits of
 * the hash above them, so that few other names are compared.  Very many names are entered by
 * several workers at once: their order decides only which slot a name gets, not whether the name is
 * found. */
#include "base/checked_math.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/text.h"
#include "model/names.h"

enum {
    AHEAD = 32,            /* names for which slots are prefetched */
    MIN_PARALLEL = 100000, /* names from which several workers are faster */
    WORKERS = 4,
};

typedef struct fill_job {
    const heft_index *x;
    uint32_t workers;
    uint32_t repeated[WORKERS]; /* per worker, the first repeated name, or HEFT_NONE */
} fill_job;

static inline uint32_t hash_of(const heft_index *x, uint32_t i)
{
    return ((const uint32_t *)x->hashes.ptr)[i];
}

/* Move *at to the slot of the name in row `like`, or to the first free slot.  Return the slot's
 * value. */
static inline uint32_t probe(const heft_index *x, uint32_t *at, uint32_t hash,
                             const heft_ix_tensor_row *like)
{
    uint32_t mask = x->names.mask, slot;
    for (; (slot = heft_slot_load(&x->names.slots[*at])) != 0; *at = (*at + 1) & mask) {
        if ((heft_slot)((slot ^ hash) & ~mask) || hash_of(x, (slot & mask) - 1) != hash)
            continue;
        heft_str wanted = { like->name, like->name_len };
        if (heft_str_eq(heft_ix_name(x, (slot & mask) - 1), wanted))
            break;
    }
    return slot;
}

/* Enter name i; false if an equal name is in the table. */
static inline bool enter(const heft_index *x, uint32_t i)
{
    uint32_t hash = hash_of(x, i), mask = x->names.mask, at = hash & mask;
    while (!probe(x, &at, hash, heft_ix_row(x, i)))
        if (heft_slot_claim(&x->names.slots[at], (hash & ~mask) | (i + 1)))
            return true;
    return false;
}

static uint64_t range_start(const fill_job *f, uint64_t count, size_t worker)
{
    return worker < f->workers ? heft_div(count, f->workers) * worker : count;
}

static void clear_range(void *arg, size_t i)
{
    const fill_job *f = arg;
    const heft_names *names = &f->x->names;
    uint64_t slots = (uint64_t)names->mask + 1, first = range_start(f, slots, i);
    memset(names->slots + first, 0,
           (size_t)(range_start(f, slots, i + 1) - first) * sizeof *names->slots);
}

static void fill_range(void *arg, size_t worker)
{
    fill_job *f = arg;
    const heft_index *x = f->x;
    const uint32_t *hashes = x->hashes.ptr;
    uint32_t count = x->tensors.len, end = (uint32_t)range_start(f, count, worker + 1);
    for (uint32_t i = (uint32_t)range_start(f, count, worker); i < end; i++) {
        if (end - i > AHEAD)
            heft_prefetch_to_write(&x->names.slots[hashes[i + AHEAD] & x->names.mask]);
        if (heft_unlikely(!enter(x, i))) {
            f->repeated[worker] = i;
            return;
        }
    }
}

/* Fill the table; return the first repeated name, or HEFT_NONE. */
static uint32_t fill(const heft_index *x, uint32_t workers)
{
    fill_job f = { x, workers, { HEFT_NONE, HEFT_NONE, HEFT_NONE, HEFT_NONE } };
    uint32_t repeated = HEFT_NONE;
    heft_ix_run(x, workers, clear_range, &f);
    heft_ix_run(x, workers, fill_range, &f);
    for (uint32_t i = 0; i < workers; i++)
        repeated = f.repeated[i] < repeated ? f.repeated[i] : repeated;
    return repeated;
}

heft_status heft_ix_rename(heft_index *x, uint32_t tensor, heft_str name)
{
    heft_ix_tensor_row *row = heft_ix_row(x, tensor);
    if (!name.ptr || name.len > UINT32_MAX)
        return heft_error_no_memory(x->err, "for the name of a tensor");
    row->name = name.ptr;
    row->name_len = (uint32_t)name.len;
    ((uint32_t *)x->hashes.ptr)[tensor] = heft_names_hash(&x->key, name);
    return HEFT_OK;
}

/* Append ".duplicate" and the number of the tensor to the name. */
static heft_status rename_repeated(heft_index *x, uint32_t tensor)
{
    char number[20];
    heft_str digits = { number, heft_u64_text(number, tensor + 1ull) };
    heft_str name = heft_arena_join(&x->arena, heft_ix_name(x, tensor), heft_lit(".duplicate"),
                                    digits);
    return heft_ix_rename(x, tensor, name);
}

/* Return the error for a repeated name. */
static heft_status refuse_repeated(heft_index *x, uint32_t tensor)
{
    heft_str name = heft_ix_name(x, tensor);
    return heft_error_set(x->err, HEFT_E_FORMAT, heft_ix_offset_of(x, name),
                          "tensor %q occurs twice", name);
}

/* Enter all names in sequence; the first tensor with a repeated name keeps the name. */
static heft_status fill_forgiving(heft_index *x)
{
    heft_status st = HEFT_OK;
    memset(x->names.slots, 0, ((size_t)x->names.mask + 1) * sizeof *x->names.slots);
    for (uint32_t i = 0; i < x->tensors.len && !st; i++) {
        if (enter(x, i))
            continue;
        st = heft_ix_forgive(x, refuse_repeated(x, i), "duplicate-name");
        if (!st)
            st = rename_repeated(x, i);
        if (!st && !enter(x, i))
            st = refuse_repeated(x, i);
    }
    x->has_name_table = !st;
    return st;
}

heft_status heft_ix_build_name_table(heft_index *x)
{
    heft_ix_trim(x);
    if (!heft_names_slots(&x->mem, &x->names, x->tensors.len))
        return heft_ix_no_memory(x);
    if (heft_ix_forgives(x))
        return fill_forgiving(x);
    bool is_shared = HEFT_HAS_THREADS && HEFT_HAS_ATOMICS && x->tensors.len >= MIN_PARALLEL;
    uint32_t repeated = fill(x, is_shared ? WORKERS : 1);
    if (is_shared && repeated != HEFT_NONE)
        repeated = fill(x, 1); /* in sequence, to report the first repeated name */
    if (repeated != HEFT_NONE)
        return refuse_repeated(x, repeated);
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
