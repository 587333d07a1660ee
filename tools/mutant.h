/* mutant.h - included before every source of the mutated tree: activates and records mutants.
 *
 * HEFT_MUTANT is the number of the active mutant.  HEFT_MUTANT_SEEN names a file of HEFT_MUTANTS
 * bytes; the byte of each mutant becomes 1 where the mutant would change a value. */
#ifndef HEFT_MUTANT_H
#define HEFT_MUTANT_H

enum { HEFT_MUTANTS = 1 << 17 };

/* Names of their own for the functions of libc: the sources may use the usual names otherwise. */
char *heft_mutant_getenv(const char *name) __asm__("getenv");
int heft_mutant_atoi(const char *text) __asm__("atoi");
int heft_mutant_open(const char *name, int flags, ...) __asm__("open");
int heft_mutant_close(int fd) __asm__("close");
void *heft_mutant_map(void *, unsigned long, int, int, int, long) __asm__("mmap");

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
    int fd = heft_mutant_open(seen, 2 /* O_RDWR */);
    if (fd < 0)
        return;
    void *map = heft_mutant_map(0, HEFT_MUTANTS, 3 /* read, write */, 1 /* shared */, fd, 0);
    if (map != (void *)-1)
        heft_mutant_seen = (unsigned char *)map;
    heft_mutant_close(fd);
}

/* Called where the mutant changes a value; returns whether the value must change. */
static inline int heft_mutant_hit(int id)
{
    heft_mutant_seen[id] = 1;
    return heft_mutant_active == id;
}
#endif
