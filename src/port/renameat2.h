/* renameat2.h - the declaration of renameat2(), for C libraries without one; see renameat2.c. */
#ifndef HEFT_RENAMEAT2_H
#define HEFT_RENAMEAT2_H
#include <stdio.h>

int renameat2(int from_dir, const char *from, int to_dir, const char *to, unsigned flags);

#endif
