/* cmd.h - the exit codes of commands. A function in cli/ that returns an exit code has
 * printed an error line unless the code is CODE_DONE. */
#ifndef HEFT_CLI_CMD_H
#define HEFT_CLI_CMD_H
#include "process/message.h"
#include "process/term.h"

enum {
    CODE_DONE = 0,
    CODE_FOUND = 1, /* verify found a fault, doctor damage, diff a difference, or stats a NaN */
    CODE_USAGE = 2,
    CODE_INVALID = 3, /* the file is not a valid file of a known format */
    CODE_SYSTEM = 4,  /* I/O, permission, space, memory, or an interrupt */
    CODE_CANNOT = 5   /* well formed, but not supported by this build or by the target format */
};

#endif
