/* recover.h - sets of files that a killed command left half written. */
#ifndef HEFT_CLI_RECOVER_H
#define HEFT_CLI_RECOVER_H
#include "cmd.h"

/* Completes or undoes what was interrupted in the folder of path, or in path if it is a folder, and says so; *did:
 * there was something.  Not CODE_DONE: said why not. */
int recover_set(bool *recovered, const char *path);

#endif
