/* recover.h - recover shards that an interrupted split left incomplete. */
#ifndef HEFT_CLI_RECOVER_H
#define HEFT_CLI_RECOVER_H
#include "cmd.h"

/* Complete or roll back an interrupted split in the folder `path`, or in the folder of the file
 * `path`, and print a note. *recovered is set if there was one. Return an exit code. */
int recover_set(bool *recovered, const char *path);

#endif
