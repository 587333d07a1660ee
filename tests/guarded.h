/* guarded.h - bytes beside memory that nobody may touch: a read outside of the bytes ends the
 * test. */
#ifndef GUARDED_H
#define GUARDED_H
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

enum { GUARDED_BYTES = 1 << 16 }; /* a multiple of every page size */

/* Pages without access precede and follow the bytes at `begin`. */
typedef struct guarded {
    uint8_t *map, *begin, *end;
} guarded;

static inline guarded guarded_make(void)
{
    uint8_t *map = mmap(NULL, 3 * (size_t)GUARDED_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
                        0);
    assert_true(map != MAP_FAILED);
    uint8_t *begin = map + GUARDED_BYTES;
    assert_int_equal(mprotect(begin, GUARDED_BYTES, PROT_READ | PROT_WRITE), 0);
    return (guarded){ map, begin, begin + GUARDED_BYTES };
}

/* Return a copy of the bytes that ends where the accessible memory ends. */
static inline void *guarded_last(const guarded *g, const void *bytes, size_t len)
{
    return memcpy(g->end - len, bytes, len);
}

/* Return a copy of the bytes that begins where the accessible memory begins. */
static inline void *guarded_first(const guarded *g, const void *bytes, size_t len)
{
    return memcpy(g->begin, bytes, len);
}

static inline void guarded_free(guarded *g)
{
    munmap(g->map, 3 * (size_t)GUARDED_BYTES);
}

#endif
