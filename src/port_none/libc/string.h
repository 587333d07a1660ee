/* string.h - the four functions that the core needs, for compilers without a C library. */
#ifndef HEFT_STRING_H
#define HEFT_STRING_H
#include <stddef.h>

void *memcpy(void *restrict to, const void *restrict from, size_t len);
void *memmove(void *to, const void *from, size_t len);
void *memset(void *p, int byte, size_t len);
int memcmp(const void *a, const void *b, size_t len);

#endif
