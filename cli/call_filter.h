/* call_filter.h - refuse system calls by Linux's seccomp. */
#ifndef HEFT_CLI_CALL_FILTER_H
#define HEFT_CLI_CALL_FILTER_H
#include <stdbool.h>

/* Make the refused calls of all threads fail with EPERM from now on. Return 0, or the errno value
 * of the failure. allows_sockets: do not refuse what a client of a server needs. */
int call_filter_install(bool allows_sockets);

#endif
