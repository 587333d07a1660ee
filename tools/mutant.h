/* mutant.h - included before every source of the mutated tree: activates and records mutants.
 *
 * HEFT_MUTANT is the number of the active mutant.  HEFT_MUTANT_SEEN names a file of HEFT_MUTANTS
 * bytes; the byte of each mutant becomes 1 where the mutant would change a value. */
#ifndef HEFT_MUTANT_H
#define HEFT_MUTANT_H

#include <sys/syscall.h>

enum { HEFT_MUTANTS = 1 << 17 };

/* Names of their own for the functions of libc: the sources may use the usual names otherwise.
 * System calls are made by syscall(), which the tests with failing calls do not count. */
char *heft_mutant_getenv(const char *name) __asm__("getenv");
int heft_mutant_atoi(const char *text) __asm__("atoi");
long heft_mutant_call(long number, ...) __asm__("syscall");

/* Weak, so that each program and each shared library has one copy. */
#define HEFT_WEAK __attribute__((weak, visibility("hidden")))
HEFT_WEAK int heft_mutant_active;
HEFT_WEAK unsigned char heft_mutant_unrecorded[HEFT_MUTANTS];
HEFT_WEAK unsigned char *heft_mutant_seen = heft_mutant_unrecorded;

HEFT_WEAK void heft_mutant_begin(void);
__attribute__((constructor)) HEFT_WEAK void heft_mutant_begin(void)
{
    const char *id = heft_mutant_getenv("HEFT_MUTANT");
    const char *seen = heft_mutant_getenv("HEFT_MUTANT_SEEN");
    heft_mutant_active = id ? heft_mutant_atoi(id) : 0;
    if (!seen || heft_mutant_seen != heft_mutant_unrecorded)
        return;
    long fd = heft_mutant_call(SYS_openat, -100 /* AT_FDCWD */, seen, 2 /* O_RDWR */);
    if (fd < 0)
        return;
    long map = heft_mutant_call(SYS_mmap, 0L, (long)HEFT_MUTANTS, 3L /* read, write */,
                                1L /* shared */, fd, 0L);
    if (map != -1)
        heft_mutant_seen = (unsigned char *)map;
    heft_mutant_call(SYS_close, fd);
}

/* Called where the mutant changes a value; returns whether the value must change. */
static inline int heft_mutant_hit(int id)
{
    heft_mutant_seen[id] = 1;
    return heft_mutant_active == id;
}
#endif
