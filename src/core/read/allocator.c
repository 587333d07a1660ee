/* allocator.c - a stack allocator in a block of the caller's memory, for systems without a heap.
 * Only the last block can grow, shrink or be freed in place; memory below is reused after all
 * blocks above are freed. */
#include <string.h>

#include <heft/heft_ext.h>

/* Block sizes are rounded, so that freeing the last block makes the previous block the last. */
enum { GRAIN = 16 };

static size_t rounded(size_t size)
{
    return (size + (GRAIN - 1)) & ~(size_t)(GRAIN - 1);
}

static void *allocate(heft_arena_memory *m, size_t size, size_t align)
{
    uintptr_t address = (uintptr_t)(m->base + m->used);
    size_t padding = (size_t)(-address & (align - 1));
    size = rounded(size);
    if (!size || padding > m->size - m->used || size > m->size - m->used - padding)
        return NULL;
    void *p = m->base + m->used + padding;
    m->used += padding + size;
    m->peak = m->used > m->peak ? m->used : m->peak;
    return p;
}

static void *resize(void *ctx, void *ptr, size_t old_size, size_t new_size, size_t align)
{
    heft_arena_memory *m = ctx;
    uint8_t *old = ptr;
    bool last = old && old + rounded(old_size) == m->base + m->used;
    size_t used = m->used;
    if (last)
        m->used -= rounded(old_size);
    if (!new_size)
        return NULL;
    uint8_t *p = last || !old || new_size > old_size ? allocate(m, new_size, align) : old;
    if (!p)
        m->used = used;
    else if (old && p != old)
        memmove(p, old, old_size < new_size ? old_size : new_size);
    return p;
}

heft_allocator heft_arena_allocator(heft_arena_memory *m)
{
    m->used = m->peak = 0;
    return (heft_allocator){ .size = sizeof(heft_allocator), .resize = resize, .ctx = m };
}
