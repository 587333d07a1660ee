/* arena.c - counted memory from the caller's allocator, arenas of growing blocks, and vectors. */
#include "base/arena.h"

#include <string.h>

#include "base/checked_math.h"

enum {
    ALIGN = 16,          /* alignment of every allocation */
    FIRST_BLOCK = 1024,  /* small enough for a board with 64 KiB */
    MAX_BLOCK = 1 << 20, /* blocks double up to this size */
    FIRST_ELEMENTS = HEFT_IS_SMALL ? 1 : 8
};
static const uint32_t MAX_ELEMENTS = UINT32_MAX - 1;

struct heft_arena_block {
    struct heft_arena_block *previous;
    size_t size, used; /* bytes, including this header */
};

void *heft_mem_resize(heft_memory *m, void *p, size_t old_size, size_t new_size)
{
    uint64_t rest = m->used - old_size;
    if (new_size > old_size && !heft_range_in((heft_range){ rest, new_size }, m->limit))
        return NULL;
    void *q = m->al->resize(m->al->ctx, p, old_size, new_size, ALIGN);
    if (q || !new_size)
        m->used = rest + new_size;
    return q;
}

/* Return size bytes of the block, or NULL if the block has too few bytes left. */
static void *alloc_from_block(struct heft_arena_block *b, size_t size, size_t align)
{
    uintptr_t at = (uintptr_t)b + b->used;
    size_t pad = (size_t)(-at & (align - 1));
    if (!heft_range_in((heft_range){ pad, size }, b->size - b->used))
        return NULL;
    void *p = (char *)b + b->used + pad;
    b->used += pad + size;
    return p;
}

static bool add_block(heft_arena *a, size_t size, size_t align)
{
    size_t overhead = sizeof(struct heft_arena_block) + align;
    if (size > SIZE_MAX - overhead)
        return false;
    size_t bytes = FIRST_BLOCK;
    if (a->last)
        bytes = a->last->size < MAX_BLOCK / 2 ? a->last->size * 2 : (size_t)MAX_BLOCK;
    if (bytes < size + overhead)
        bytes = size + overhead;
    struct heft_arena_block *b = heft_mem_alloc(a->mem, bytes);
    if (!b)
        return false;
    *b = (struct heft_arena_block){ .previous = a->last, .size = bytes, .used = sizeof *b };
    a->last = b;
    return true;
}

void *heft_arena_alloc(heft_arena *a, size_t size, size_t align)
{
    void *p = a->last ? alloc_from_block(a->last, size, align) : NULL;
    if (heft_unlikely(!p) && add_block(a, size, align))
        p = alloc_from_block(a->last, size, align);
    return p;
}

heft_str heft_arena_copy(heft_arena *a, heft_str s)
{
    return heft_arena_join(a, s, (heft_str){ NULL, 0 }, (heft_str){ NULL, 0 });
}

heft_str heft_arena_join(heft_arena *a, heft_str first, heft_str second, heft_str third)
{
    const heft_str parts[] = { first, second, third };
    size_t len = 0;
    char *p = heft_arena_alloc(a, first.len + second.len + third.len, 1);
    if (!p)
        return (heft_str){ NULL, 0 };
    for (size_t i = 0; i < 3; len += parts[i++].len)
        if (parts[i].len)
            memcpy(p + len, parts[i].ptr, parts[i].len);
    return (heft_str){ p, len };
}

void heft_arena_free(heft_arena *a)
{
    while (a->last) {
        struct heft_arena_block *b = a->last;
        a->last = b->previous;
        heft_mem_free(a->mem, b, b->size);
    }
}

bool heft_vec_reserve(heft_memory *m, heft_vec *v, uint64_t n, size_t elem)
{
    if (n > MAX_ELEMENTS - v->len)
        return false;
    uint32_t needed = v->len + (uint32_t)n;
    if (needed <= v->cap)
        return true;
    uint32_t cap = v->cap < MAX_ELEMENTS / 2 ? v->cap * 2 : MAX_ELEMENTS;
    cap = cap < FIRST_ELEMENTS ? (uint32_t)FIRST_ELEMENTS : cap;
    cap = cap < needed ? needed : cap;
    if (cap > SIZE_MAX / elem)
        return false;
    void *p = heft_mem_resize(m, v->ptr, v->cap * elem, cap * elem);
    if (!p)
        return false;
    v->ptr = p;
    v->cap = cap;
    return true;
}

void heft_vec_free(heft_memory *m, heft_vec *v, size_t elem)
{
    heft_mem_free(m, v->ptr, v->cap * elem);
    *v = (heft_vec){ .ptr = NULL };
}
