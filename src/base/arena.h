/* arena.h - memory that is released all at once, and vectors that grow; both through the
 * caller's allocator, both counting what they hold. */
#ifndef HEFT_ARENA_H
#define HEFT_ARENA_H
#include <string.h>

#include <heft/heft.h>

#include "base/compiler.h"

/* Memory straight from the caller's allocator, uncleared; NULL: no memory. */
static inline void *heft_alloc(const heft_allocator *al, size_t size, size_t align)
{
    return al->resize(al->ctx, NULL, 0, size, align);
}
/* Release what heft_alloc() returned for the same size and alignment; NULL is harmless. */
static inline void heft_free(const heft_allocator *al, void *p, size_t size, size_t align)
{
    if (p)
        al->resize(al->ctx, p, size, 0, align);
}

typedef struct heft_memory { /* an allocator with a limit and a count */
    const heft_allocator *al;
    uint64_t limit, used;
} heft_memory;

/* As heft_allocator.resize, aligned to 16 bytes; NULL also when the limit would be passed. */
void *heft_mem_resize(heft_memory *m, void *p, size_t old_size, size_t new_size);
/* As heft_alloc() and heft_free(), counted. */
static inline void *heft_mem_alloc(heft_memory *m, size_t size)
{
    return heft_mem_resize(m, NULL, 0, size);
}
static inline void heft_mem_free(heft_memory *m, void *p, size_t size)
{
    if (p)
        heft_mem_resize(m, p, size, 0);
}

typedef struct heft_arena {
    heft_memory *mem;
    struct heft_arena_block *last;
} heft_arena;

void *heft_arena_alloc(heft_arena *a, size_t size, size_t align); /* not cleared; NULL: no memory */
/* A copy of s; ptr NULL: no memory (an empty s gets a ptr all the same). */
heft_str heft_arena_copy(heft_arena *a, heft_str s);
/* The same of three strings as one. */
heft_str heft_arena_join(heft_arena *a, heft_str first, heft_str second, heft_str third);
void heft_arena_free(heft_arena *a);

typedef struct heft_vec {
    void *ptr;
    uint32_t len, cap; /* elements */
} heft_vec;

/* Room for n more elements of elem bytes; false: no memory, or more than 2^32 - 2 elements. */
bool heft_vec_reserve(heft_memory *m, heft_vec *v, uint64_t n, size_t elem);
/* The next element, uncleared; NULL: no memory. */
static inline void *heft_vec_push(heft_memory *m, heft_vec *v, size_t elem)
{
    if (heft_unlikely(v->len == v->cap) && !heft_vec_reserve(m, v, 1, elem))
        return NULL;
    return (char *)v->ptr + v->len++ * elem;
}
/* Append a copy of an element; false: no memory. */
static inline bool heft_vec_add(heft_memory *m, heft_vec *v, const void *element, size_t elem)
{
    void *to = heft_vec_push(m, v, elem);
    if (to)
        memcpy(to, element, elem);
    return to;
}
void heft_vec_free(heft_memory *m, heft_vec *v, size_t elem);

#endif
