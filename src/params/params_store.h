/* params_store.h - internals of the parameter store.
 *
 * Each parameter and each derived form is an entry, whose atomic word holds a state and a use
 * count. Acquiring or releasing a loaded entry is one atomic change of the word, without the lock,
 * so neither loading nor eviction blocks acquiring.  Everything else happens under the store's
 * lock. */
#ifndef HEFT_PARAMS_STORE_H
#define HEFT_PARAMS_STORE_H
#include <pthread.h>
#include <stdatomic.h>

#include <heft/heft_ext.h>
#include <heft/params.h>

#include "base/error.h"
#include "base/sized.h"

enum { FORM_RANK = 8 };

/* Stripes of use counts, so that no cache line moves between processors for each acquire. A stripe
 * takes two cache lines of 64 bytes, because processors fetch lines in pairs. */
enum { STRIPES = 32, STRIPE_BYTES = 128, MAX_SHARED = 256 };

typedef struct use_stripe {
    /* Uses and hits like an entry's word. The uses are below 0 if other stripes counted the uses
     * that ended here; the difference wraps around. */
    atomic_uint_fast64_t word;
    atomic_uint_fast64_t stamp;
    char unused[STRIPE_BYTES - 2 * sizeof(atomic_uint_fast64_t)];
} use_stripe;

/* An entry's word: uses in the low 26 bits, the state above, and the number of hits, which may wrap
 * around, in the upper 36 bits. */
static const uint64_t USES = (UINT64_C(1) << 26) - 1, ABSENT = 0, LOADING = UINT64_C(1) << 26,
                      READY = UINT64_C(2) << 26, STATE = UINT64_C(3) << 26, HIT = UINT64_C(1) << 28;

typedef struct load { /* a load in progress, shared by all waiting threads; guarded by the lock */
    uint32_t waiting;
    bool done;
    bool abandoned; /* prefetching found no room in the budget; waiting threads load again */
    heft_error err;
} load;

typedef struct holding { /* resources of a loaded entry; released without the lock */
    struct holding *next;
    const heft_file *mapped; /* file whose part is mapped, or NULL */
    uint32_t part;
    void *owned; /* allocated bytes, or NULL */
    size_t size;
} holding;

typedef struct entry entry;
struct entry {
    heft_id128 key;
    const heft_file *file; /* NULL: a derived form */
    uint32_t tensor, part;
    uint64_t kind;          /* derived form: its kind */
    entry *source;          /* derived form: the parameter */
    _Atomic(entry *) forms; /* parameter: list linked by next_form, which only grows */
    entry *next_form;
    atomic_uint_fast64_t word;
    _Atomic(use_stripe *) shared; /* further use counts, after threads met at the word */
    atomic_uint_fast64_t stamp;   /* loads before the last acquire */
    heft_param view;              /* valid while READY or in use */
    holding *held;                /* NULL: the bytes belong to the source, nothing to release */
    atomic_bool prefetched;       /* loaded ahead and not used since */
    bool queued;                  /* state of prefetching; guarded */
    load *load;                   /* while LOADING; guarded */
    uint64_t weight;              /* bytes counted against the budget */
    size_t heap_at;               /* index in the heap while READY; guarded */
    uint64_t dims[FORM_RANK];     /* derived form: the shape, if not the parameter's */
};

typedef struct table { /* hash table by key; grows by replacement, so readers need no lock */
    struct table *older;
    size_t mask;
    _Atomic(entry *) slots[];
} table;

typedef struct list { /* parameters in the order of addition; grows by replacement */
    struct list *older;
    size_t capacity;
    entry *items[];
} list;

typedef struct member { /* one file of a model */
    heft_id128 space;
    heft_file *file;
    entry *entries;
    uint32_t count;
} member;

typedef struct burn_id {
    heft_id128 space, key;
    uint64_t id;
} burn_id;

typedef struct ranked { /* heap element: a loaded entry and its stamp at insertion */
    uint64_t stamp;
    entry *e;
} ranked;

typedef struct event { /* reported after the lock is released */
    heft_params_event what;
    heft_id128 key;
    uint64_t bytes;
} event;

enum {                     /* reasons why releasing the last use of an entry takes the lock */
       PREFETCH_WAITS = 1, /* the prefetching thread waits for memory */
       OVER_BUDGET = 2 /* more is in use than the budget allows: every unused entry is evicted */
};

struct heft_params {
    heft_params_options opt;
    const heft_host *host;
    _Atomic(table *) table;
    _Atomic(list *) order;
    atomic_uint_least32_t count; /* length of order; updated last, read first */
    atomic_uint_fast64_t loads;  /* the order of acquires */
    atomic_uint shared;          /* entries with stripes: at most about MAX_SHARED */
    pthread_mutex_t lock;
    pthread_cond_t changed; /* a load ended, memory was released, or a prefetch was queued */
    member *members;
    size_t member_count, member_capacity;
    burn_id *burns;
    size_t burn_count, burn_capacity;
    bool burns_are_sorted;
    size_t entries; /* parameters and derived forms; the heap has at least this capacity */
    ranked *heap;   /* least recently used first */
    size_t heap_len, heap_capacity;
    heft_params_stats stats; /* except hits: the entries count hits */
    holding *dropped;        /* evicted; released after the lock */
    event *events;
    size_t event_count, event_capacity;
    pthread_t prefetcher;
    bool prefetcher_runs, stopping;
    atomic_uint attention; /* PREFETCH_WAITS, OVER_BUDGET; changed under the lock */
    uint64_t releases;     /* last uses released while attention is set; guarded */
    entry **queue;
    size_t queue_at, queue_len, queue_capacity;
};

/* ---- params_store.c ---- */
entry *heft_store_find(const heft_params *p, heft_id128 key); /* or NULL */
heft_status heft_store_no_memory(heft_error *err);
/* Reserve capacity for more than count elements; false if out of memory. */
bool heft_params_store_reserve(void **items, size_t *room, size_t count, size_t elem);

/* ---- params_uses.c ---- */
/* Add a use if the entry is READY; false otherwise. A hit is counted, and makes the entry one of
 * the most recently used. */
bool heft_uses_add(heft_params *p, entry *e, bool is_hit);
/* Make an entry one of the most recently used. */
void heft_uses_stamp(heft_params *p, entry *e);
void heft_cache_release(heft_params *p, entry *e);
/* Make a READY entry without uses LOADING, so that none are added; false if there are uses. Call
 * under the lock. */
bool heft_uses_block(entry *e);
uint64_t heft_uses_stamp_of(const entry *e);
uint64_t heft_uses_hits(const entry *e);

/* ---- params_cache.c ---- */
/* Add a use, loading the entry if necessary.  ahead: prefetch; evict no other prefetched entry, and
 * fail with HEFT_E_LIMIT if the budget is exhausted. */
heft_status heft_cache_acquire(heft_params *p, entry *e, const heft_derivation *d, bool ahead,
                               heft_error *err);
/* Evict an entry without uses while attention is set. */
void heft_cache_released(heft_params *p, entry *e);
void heft_cache_free(heft_params *p, entry *e); /* at closing */

/* ---- prefetch.c ---- */
void heft_prefetch_stop(heft_params *p);

#endif
