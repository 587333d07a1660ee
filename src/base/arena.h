/* arena.h - memory that is released all at once, and growing vectors.  Both use the caller's
 * allocator and count the allocated bytes. */
#ifndef HEFT_ARENA_H
#define HEFT_ARENA_H
#include <string.h>

#include <heft/memory_limits.h>

#include "base/compiler.h"

/* Allocate uncleared memory from the caller's allocator without counting; NULL if out of memory. */
static inline void *heft_alloc(const heft_allocator *al, size_t size, size_t align)
{
    return al->resize(al->ctx, NULL, 0, size, align);
}
/* Release memory of heft_alloc(); pass the same size and alignment.  p may be NULL. */
static inline void heft_free(const heft_allocator *al, void *p, size_t size, size_t align)
{
    if (p)
        al->resize(al->ctx, p, size, 0, align);
}

/* An allocator with a limit. */
typedef struct heft_memory {
    const heft_allocator *al;
    uint64_t limit, used; /* bytes */
} heft_memory;

/* Call heft_allocator.resize with an alignment of 16 bytes; NULL also if the limit would be
 * exceeded. */
void *heft_mem_resize(heft_memory *m, void *p, size_t old_size, size_t new_size);
/* Counted variants of heft_alloc() and heft_free(). */
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

/* Return uncleared memory; NULL if out of memory. */
void *heft_arena_alloc(heft_arena *a, size_t size, size_t align);
/* Copy s into the arena.  ptr is NULL only if out of memory, even when s is empty. */
heft_str heft_arena_copy(heft_arena *a, heft_str s);
/* Concatenate three strings in the arena; ptr is NULL if out of memory. */
heft_str heft_arena_join(heft_arena *a, heft_str first, heft_str second, heft_str third);
void heft_arena_free(heft_arena *a);

typedef struct heft_vec {
    void *ptr;
    uint32_t len, cap; /* elements */
} heft_vec;

/* Reserve capacity for n more elements of elem bytes.  Return false if out of memory, or past
 * 2^32 - 2 elements. */
bool heft_vec_reserve(heft_memory *m, heft_vec *v, uint64_t n, size_t elem);
/* Append an uncleared element and return a pointer to the element; NULL if out of memory. */
static inline void *heft_vec_push(heft_memory *m, heft_vec *v, size_t elem)
{
    if (heft_unlikely(v->len == v->cap) && !heft_vec_reserve(m, v, 1, elem))
        return NULL;
    return (char *)v->ptr + v->len++ * elem;
}
/* Append a copy of an element; return false if out of memory. */
static inline bool heft_vec_add(heft_memory *m, heft_vec *v, const void *element, size_t elem)
{
    void *to = heft_vec_push(m, v, elem);
    if (to)
        memcpy(to, element, elem);
    return to;
}
/* Append copies of n elements; return false if out of memory. */
static inline bool heft_vec_add_many(heft_memory *m, heft_vec *v, const void *elements, uint32_t n,
                                     size_t elem)
{
    if (!n)
        return true;
    if (!heft_vec_reserve(m, v, n, elem))
        return false;
    memcpy((char *)v->ptr + (size_t)v->len * elem, elements, n * elem);
    v->len += n;
    return true;
}
void heft_vec_free(heft_memory *m, heft_vec *v, size_t elem);

#endif
