/* pager.h - show long output in a pager, as git does. */
#ifndef HEFT_CLI_PAGER_H
#define HEFT_CLI_PAGER_H
#include <stdbool.h>

/* Start a pager for the output, if stdout is a terminal. The sandbox would refuse to start a
 * program: call this first. */
void pager_start(void);
/* Return true if stdout goes to a pager. */
bool pager_is_active(void);
/* Close stdout, and wait for the pager. */
void pager_end(void);

#endif
