/* assign.h - what stands behind --set and --rename: NAME=SOMETHING. */
#ifndef HEFT_CLI_ASSIGN_H
#define HEFT_CLI_ASSIGN_H
#include "cmd.h"

/* KEY=VALUE or KEY:TYPE=VALUE, of which the first = and the last : before it count; a colon that no name of a type
 * follows belongs to the key.  Key and text point into what was given.  Not CODE_DONE: said why not, in the name of
 * the command who. */
int assign_value(heft_value *v, const char *cmd, const char *arg);
/* A=B, of which the first = counts, to what stands left and right of it. */
int assign_rename(heft_rename *r, const char *cmd, const char *arg);

#endif
