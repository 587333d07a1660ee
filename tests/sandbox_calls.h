/* sandbox_calls.h - system calls with which code inside of a command would leave it. */
#ifndef HEFT_TEST_SANDBOX_CALLS_H
#define HEFT_TEST_SANDBOX_CALLS_H
#include <stddef.h>

/* Return the name of an attempt; NULL past the last. */
const char *forbidden_call_name(size_t i);
/* Make the attempt; return 0, or the errno value of its failure. */
int forbidden_call_try(size_t i);

#endif
