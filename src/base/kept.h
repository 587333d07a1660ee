/* kept.h - objects that stay with a source between its reads, each used by one thread at a time.
 *
 * A decoder, or the memory for a computation, keeps what the next read of the same tensor needs.
 * The pool decides which object a read gets; the owner has an array of HEFT_KEPT objects with the
 * same numbers. */
#ifndef HEFT_KEPT_H
#define HEFT_KEPT_H
#include <heft/heft.h>

enum { HEFT_KEPT = 16 };

typedef struct heft_kept_use {
    bool is_taken;
    const void *of; /* the tensor for which the object was used last; NULL: was not used */
    uint64_t next;  /* the byte of the tensor after those that were read last */
    uint64_t last_use;
} heft_kept_use;

typedef struct heft_kept {
    uint32_t lock; /* guards what follows */
    uint32_t taken, most_taken;
    uint64_t uses;
    heft_kept_use use[HEFT_KEPT];
} heft_kept;

typedef struct heft_kept_wish {
    const void *of;
    uint64_t from;     /* the first byte that is read */
    bool goes_forward; /* an object that ended before `from` is better than a new one */
    /* True if object i, which was used for `of`, has work done that a new one would repeat; called
     * under the lock.  NULL: none has. */
    bool (*has_more)(const void *ctx, uint32_t i);
    /* True if object i has so much memory that no further object is begun.  NULL: none has. */
    bool (*is_large)(const void *ctx, uint32_t i);
    const void *ctx;
} heft_kept_wish;

/* Take an object and return its number; HEFT_KEPT: all are taken. */
uint32_t heft_kept_take(heft_kept *k, const heft_kept_wish *w);
/* Return an object that was read up to byte `next`. */
void heft_kept_return(heft_kept *k, uint32_t i, uint64_t next);

#endif
