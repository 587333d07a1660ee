/* renameat2.h - the declaration of renameat2(), for C libraries without one; see renameat2.c. */
#ifndef HEFT_RENAMEAT2_H
#define HEFT_RENAMEAT2_H
#include <stdio.h>

/* Rename `from` in an open folder to `to` in another; the last argument has the flags. */
int renameat2(int, const char *, int, const char *, unsigned);

#endif
