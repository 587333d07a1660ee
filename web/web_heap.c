/* web_heap.c - the memory of the core in WebAssembly: an allocator that grows the linear memory,
 * and the four memory functions.
 *
 * Blocks have the size of a class: four classes for each power of two.  Callers of the core state
 * the size when they free a block, so that blocks need no header.  Freed blocks are kept in a list
 * of their class; a block at the end of the used memory is resized and freed in place, and any
 * block is shrunk in place. */
#include "heft_web.h"

extern uint8_t __heap_base; /* set by the linker: the first byte after the static data */

enum { SMALLEST = 16, CLASSES = 4 * 32, PAGE = 64 << 10 };

typedef struct block {
    struct block *next;
} block;

static struct {
    block *free[CLASSES];
    uintptr_t top; /* end of the used memory */
} heap;

/* Return the class of a size and round the size up to the size of the class. */
static uint32_t class_of(size_t *size)
{
    uint32_t n = *size < SMALLEST ? SMALLEST : (uint32_t)*size;
    uint32_t log = 31 - (uint32_t)__builtin_clz(n), quarter = (1U << log) / 4;
    uint32_t step = (n - (1U << log) + quarter - 1) / quarter;
    *size = (size_t)(1U << log) + (size_t)step * quarter;
    return log * 4 + step;
}

/* Grow by a quarter at least, because each call is slow; by what is needed if that is refused. */
static bool grow_memory(uintptr_t end)
{
    size_t pages = __builtin_wasm_memory_size(0);
    uintptr_t have = (uintptr_t)pages * PAGE;
    if (end <= have)
        return true;
    size_t needed = (end - have + PAGE - 1) / PAGE, ample = needed > pages / 4 ? needed : pages / 4;
    return __builtin_wasm_memory_grow(0, ample) != (size_t)-1 ||
           __builtin_wasm_memory_grow(0, needed) != (size_t)-1;
}

static void *allocate(size_t size, size_t align)
{
    uint32_t class = class_of(&size);
    block **list = &heap.free[class];
    if (*list && !((uintptr_t)*list & (align - 1))) {
        block *b = *list;
        *list = b->next;
        return b;
    }
    uintptr_t at = heap.top ? heap.top : (uintptr_t)&__heap_base;
    at = (at + (align < SMALLEST ? SMALLEST : align) - 1) & ~(uintptr_t)(align - 1);
    at = (at + SMALLEST - 1) & ~(uintptr_t)(SMALLEST - 1);
    if (size > UINTPTR_MAX - at || !grow_memory(at + size))
        return NULL;
    heap.top = at + size;
    return (void *)at;
}

static void release(void *p, size_t size)
{
    uint32_t class = class_of(&size);
    block *b = p;
    if ((uintptr_t)p + size == heap.top) {
        heap.top = (uintptr_t)p;
        return;
    }
    b->next = heap.free[class];
    heap.free[class] = b;
}

static void *resize_block(void *p, size_t old_size, size_t new_size, size_t align)
{
    size_t old_class_size = old_size, new_class_size = new_size;
    uint32_t old_class = class_of(&old_class_size), new_class = class_of(&new_class_size);
    if (old_class == new_class)
        return p;
    if ((uintptr_t)p + old_class_size == heap.top && new_class_size <= UINTPTR_MAX - (uintptr_t)p &&
        grow_memory((uintptr_t)p + new_class_size)) {
        heap.top = (uintptr_t)p + new_class_size;
        return p;
    }
    /* The end of a shrunk block is lost: a copy would take more memory, because the block itself
     * would wait in the list of its class. */
    if (new_class < old_class)
        return p;
    void *to = allocate(new_size, align);
    if (!to)
        return NULL;
    memcpy(to, p, old_size < new_size ? old_size : new_size);
    release(p, old_size);
    return to;
}

static void *resize(void *ctx, void *ptr, size_t old_size, size_t new_size, size_t align)
{
    enum { MOST = 0x70000000 }; /* classes of larger blocks would exceed 32 bits */
    (void)ctx;
    if (new_size > MOST)
        return NULL;
    if (!ptr)
        return new_size ? allocate(new_size, align) : NULL;
    if (new_size)
        return resize_block(ptr, old_size, new_size, align);
    release(ptr, old_size);
    return NULL;
}

const heft_allocator web_allocator = { .size = sizeof(heft_allocator), .resize = resize };

WEB_EXPORT(alloc) void *web_alloc(size_t size)
{
    return resize(NULL, NULL, 0, size ? size : 1, SMALLEST);
}

WEB_EXPORT(free) void web_free(void *p, size_t size)
{
    if (p)
        resize(NULL, p, size ? size : 1, 0, SMALLEST);
}

/* ---- the memory functions: instructions of WebAssembly -------------------------------------- */

void *memcpy(void *restrict to, const void *restrict from, size_t len)
{
    return __builtin_memcpy(to, from, len);
}

void *memmove(void *to, const void *from, size_t len)
{
    return __builtin_memmove(to, from, len);
}

void *memset(void *p, int byte, size_t len)
{
    return __builtin_memset(p, byte, len);
}

int memcmp(const void *a, const void *b, size_t len)
{
    const uint8_t *x = a, *y = b;
    uint64_t u, v;
    size_t i = 0;
    for (; len - i >= sizeof u; i += sizeof u) {
        __builtin_memcpy(&u, x + i, sizeof u);
        __builtin_memcpy(&v, y + i, sizeof v);
        if (u != v)
            break;
    }
    for (; i < len; i++)
        if (x[i] != y[i])
            return x[i] < y[i] ? -1 : 1;
    return 0;
}
