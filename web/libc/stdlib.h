/* stdlib.h - for xxhash.h, whose functions that allocate are not used. */
#ifndef HEFT_WEB_STDLIB_H
#define HEFT_WEB_STDLIB_H
#include <stddef.h>

void *malloc(size_t size);
void free(void *p);

#endif
