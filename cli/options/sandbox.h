/* sandbox.h - restrict the process to the files and system calls that the command needs. */
#ifndef HEFT_CLI_SANDBOX_H
#define HEFT_CLI_SANDBOX_H
#include "options/opt.h"

/* Remember the files that are open; call this before the command opens one. */
void sandbox_begin(void);
/* Restrict this process to the files named on the command line, with the folders around, and to
 * temporary files; refuse system calls that the command does not need. Does nothing under
 * --no-sandbox. A part that the system does not support is left out, with a note under --verbose.
 * Call this before the first thread starts. */
void sandbox_enter(const session *s);

#endif
