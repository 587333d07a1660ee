/* params_store.h - inside the parameter store.
 *
 * Each parameter and each derived form is an entry whose word holds its state and how many use it.
 * Acquiring and releasing what is there is one atomic change of that word: no lock, so that neither
 * loading nor eviction ever stands in its way.  Everything else happens under the store's lock. */
#ifndef HEFT_PARAMS_STORE_H
#define HEFT_PARAMS_STORE_H
#include <pthread.h>
#include <stdatomic.h>

#include <heft/heft_ext.h>
#include <heft/params.h>

#include "base/error.h"
#include "base/sized.h"

enum { FORM_RANK = 8 };

enum { /* states, in the two top bits of an entry's word */
       ABSENT = 0u,
       LOADING = 1u << 30,
       READY = 2u << 30,
       STATE = 3u << 30
};

typedef struct load { /* of one entry, shared by those who wait for it; guarded by the lock */
    uint32_t waiting;
    bool done;
    bool given_up; /* reading ahead found no room, which those who wait need not mind */
    heft_error err;
} load;

typedef struct holding { /* what an entry has taken and gives back: never under the lock */
    struct holding *next;
    const heft_file *mapped; /* the file whose part is mapped, or NULL */
    uint32_t part;
    void *owned; /* bytes of the store's own, or NULL */
    size_t size;
} holding;

typedef struct entry entry;
struct entry {
    heft_id128 key;
    const heft_file *file; /* NULL: a derived form */
    uint32_t tensor, part;
    uint64_t kind;          /* of a derived form */
    entry *source;          /* of a derived form */
    _Atomic(entry *) forms; /* of a parameter; linked by next_form, never shortened */
    entry *next_form;
    atomic_uint word;
    atomic_uint_fast64_t stamp; /* when it was acquired last */
    heft_param view;            /* while READY, or being used */
    holding *held;              /* NULL: what its bytes are lent by wants nothing back */
    atomic_bool fresh;          /* read ahead and not used since */
    bool queued;                /* for reading ahead; guarded */
    load *load;                 /* while LOADING; guarded */
    uint64_t weight;            /* under the budget */
    size_t heap_at;             /* where it is in the heap, while READY; guarded */
    uint64_t dims[FORM_RANK];   /* of a derived form with a shape of its own */
};

typedef struct table { /* by key; replaced by a larger one, never changed while it is read */
    struct table *older;
    size_t mask;
    _Atomic(entry *) slots[];
} table;

typedef struct
    list { /* of parameters as they were added; replaced by a longer one as the table is */
    struct list *older;
    size_t room;
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

typedef struct ranked { /* an entry with bytes, by the stamp it had when it was put here */
    uint64_t stamp;
    entry *e;
} ranked;

typedef struct event { /* to be told once the lock is free */
    heft_params_event what;
    heft_id128 key;
    uint64_t bytes;
} event;

enum {                     /* why whoever gives up the last use of an entry comes for the lock */
       ROOM_IS_WANTED = 1, /* by the reader */
       OVER_BUDGET = 2     /* nothing that is not in use is resident then */
};

struct heft_params {
    heft_params_options opt;
    const heft_host *host;
    _Atomic(table *) table;
    _Atomic(list *) order;
    atomic_uint_least32_t count; /* of order, after which it grows: readers look at count first */
    atomic_uint_fast64_t tick;   /* counts acquires */
    pthread_mutex_t lock;
    pthread_cond_t changed; /* a load ended, room appeared, something is to be read ahead */
    member *members;
    size_t member_count, member_room;
    burn_id *burns;
    size_t burn_count, burn_room;
    bool burns_are_sorted;
    size_t entries; /* parameters and derived forms: as many as the heap has room for, at least */
    ranked *heap;   /* least recently used first */
    size_t heap_len, heap_room;
    heft_params_stats stats; /* hits are reckoned from tick */
    holding *dropped;        /* by evictions, to be given back once the lock is free */
    event *events;
    size_t event_count, event_room;
    pthread_t reader; /* ahead */
    bool reader_runs, stopping;
    atomic_uint attention; /* ROOM_IS_WANTED, OVER_BUDGET; changed under the lock */
    uint64_t releases;     /* of last uses, while room is wanted; guarded */
    entry **queue;
    size_t queue_at, queue_len, queue_room;
};

/* ---- params_store.c ---- */
entry *heft_store_find(const heft_params *p, heft_id128 key); /* or NULL */
heft_status heft_store_no_memory(heft_error *err);
/* Room for more than count elements; false: no memory. */
bool heft_params_store_reserve(void **items, size_t *room, size_t count, size_t elem);

/* ---- params_cache.c ---- */
/* Adds a use if the bytes are there. */
bool heft_cache_take(heft_params *p, entry *e);
/* Adds a use, loading if need be; ahead: for reading ahead, which takes no room from others that
 * were read ahead, and gives up (HEFT_E_LIMIT) when there is none. */
heft_status heft_cache_acquire(heft_params *p, entry *e, const heft_derivation *d, bool ahead,
                               heft_error *err);
void heft_cache_release(heft_params *p, entry *e);
void heft_cache_free(heft_params *p, entry *e); /* at closing */

/* ---- params_load.c: the bytes of one entry; without the lock ---- */
/* Sets e->view but for its data, and what it will weigh. */
heft_status heft_load_measure(heft_params *p, entry *e, const heft_derivation *d, heft_error *err);
void heft_load_measured(heft_params *p, entry *e); /* after a measure that succeeded, load or not */
heft_status heft_load_bytes(heft_params *p, entry *e, const heft_derivation *d, heft_error *err);
/* Take the bytes from the entry, which has none then; NULL: there is nothing to give back. */
holding *heft_load_take(entry *e);
/* Give back one, and those that follow it. */
void heft_load_return(const heft_params *p, holding *first);

/* ---- prefetch.c ---- */
void heft_prefetch_stop(heft_params *p);

#endif
