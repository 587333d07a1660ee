/* checks.h - the digests of parts that a command reads as a whole. */
#ifndef HEFT_CLI_CHECKS_H
#define HEFT_CLI_CHECKS_H
#include "cmd.h"

typedef struct checks {
    heft_checked_read *read; /* NULL: nothing is checked */
    uint32_t *parts, count, capacity;
    bool no_memory;
} checks;

/* One more part that will be read; false: no memory, which checks_begin() says. */
bool checks_add(checks *c, uint32_t part);
/* After the last one; nothing is checked with --no-verify.  Not CODE_DONE: said why not. */
int checks_begin(checks *c, const heft_file *f, const char *path);
/* After all of them were read. */
int checks_end(checks *c, const char *path);
void checks_close(checks *c); /* a zeroed one is harmless */

#endif
