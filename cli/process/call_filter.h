/* call_filter.h - allow the system calls that a command needs, by Linux's seccomp. */
#ifndef HEFT_CLI_CALL_FILTER_H
#define HEFT_CLI_CALL_FILTER_H
#include <stdbool.h>

#include "process/kept_access.h"

typedef struct call_needs {
    bool is_client;          /* the command sends requests to servers */
    const kept_access *kept; /* the modes and owners that the command may give to a file */
} call_needs;

/* Make all other calls of all threads fail from now on: with EPERM, or with ENOSYS if the C library
 * should use an older call. Return 0, or the errno value of the failure. */
int call_filter_install(const call_needs *needs);

#endif
