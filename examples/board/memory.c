/* memory.c - simple versions of the four memory functions that a board supplies.  Compile with
 * -fno-tree-loop-distribute-patterns: gcc would make calls of these functions out of the loops. */
#include <stddef.h>
#include <stdint.h>

void *memcpy(void *restrict to, const void *restrict from, size_t n);
void *memmove(void *to, const void *from, size_t n);
void *memset(void *to, int byte, size_t n);
int memcmp(const void *a, const void *b, size_t n);
void *memcpy(void *restrict to, const void *restrict from, size_t n)
{
    return memmove(to, from, n);
}

void *memmove(void *to, const void *from, size_t n)
{
    uint8_t *d = to;
    const uint8_t *s = from;
    if ((uintptr_t)d < (uintptr_t)s)
        for (size_t i = 0; i < n; i++)
            d[i] = s[i];
    else
        while (n--)
            d[n] = s[n];
    return to;
}

void *memset(void *to, int byte, size_t n)
{
    for (uint8_t *d = to; n--;)
        *d++ = (uint8_t)byte;
    return to;
}

int memcmp(const void *a, const void *b, size_t n)
{
    const uint8_t *p = a, *q = b;
    for (size_t i = 0; i < n; i++)
        if (p[i] != q[i])
            return p[i] < q[i] ? -1 : 1;
    return 0;
}
