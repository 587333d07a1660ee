/* checks.h - verify the digests of the parts that a command reads as a whole. */
#ifndef HEFT_CLI_CHECKS_H
#define HEFT_CLI_CHECKS_H
#include <heft/check.h>

#include "process/cmd.h"
#include "process/command_session.h"

typedef struct checks {
    heft_checked_read *read; /* NULL if no digests are verified */
    const heft_file *f;      /* NULL before checks_begin() */
    uint32_t *parts, count, capacity;
    bool no_memory;
} checks;

/* Register a part that will be read. Return false without memory; checks_begin() reports the
 * error. */
bool checks_add(checks *c, uint32_t part);
/* Register all parts of a tensor. */
bool checks_add_tensor(checks *c, const heft_file *f, uint32_t tensor);
/* Begin after the last checks_add(). No digests are verified under --no-verify. Return an exit
 * code. */
int checks_begin(checks *c, const session *s, const heft_file *f, const char *path);
/* Call after all registered parts were read. Fail if the file has changed meanwhile. Return an exit
 * code. */
int checks_end(checks *c, const char *path);
void checks_close(checks *c); /* safe on a zeroed struct */

#endif
