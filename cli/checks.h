/* checks.h - verify the digests of the parts that a command reads as a whole. */
#ifndef HEFT_CLI_CHECKS_H
#define HEFT_CLI_CHECKS_H
#include "cmd.h"

typedef struct part_list {
    uint32_t *parts, count, capacity;
} part_list;

typedef struct checks {
    heft_checked_read *read; /* NULL if no digests are verified */
    const heft_file *f;      /* NULL before checks_begin() */
    part_list own, all;      /* parts that are read: here, and by all shares */
    bool is_share; /* set by the caller: checksums over several parts are left to a join */
    bool no_memory;
} checks;

/* Register a part that will be read; is_own false: by another share. Return false without memory;
 * checks_begin() reports the error. */
bool checks_add(checks *c, uint32_t part, bool is_own);
/* Register all parts of a tensor. */
bool checks_add_tensor(checks *c, const heft_file *f, uint32_t tensor, bool is_own);
/* Begin after the last checks_add(). No digests are verified under --no-verify. Return an exit
 * code. */
int checks_begin(checks *c, const heft_file *f, const char *path);
/* Call after all registered parts were read. Fail if the file has changed meanwhile. Return an exit
 * code. */
int checks_end(checks *c, const char *path);
/* Add a line with the CRCs of the bytes read by a share. Return an exit code. */
int checks_put_crcs(const checks *c, outbuf *o, const char *path);
/* Add the CRCs of a share before checks_end(). Return false if the line is damaged. */
bool checks_join_crcs(const checks *c, heft_str line);
void checks_close(checks *c); /* safe on a zeroed struct */

#endif
