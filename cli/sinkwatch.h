/* sinkwatch.h - a sink around another sink that remembers when the output failed, so that the error
 * line names the output and not the input. */
#ifndef HEFT_CLI_SINKWATCH_H
#define HEFT_CLI_SINKWATCH_H
#include <heft/heft_ext.h>
#include <stdatomic.h>

/* What the sinks of a command share; begins as { NULL } and lives longer than the sinks. */
typedef struct sink_failure {
    _Atomic(char *) path; /* of the first output that failed; NULL: none did */
} sink_failure;

/* The flags of heft_sink_open_file() for an output of a command. */
uint32_t sink_flags(bool force, bool no_sync);
/* heft_sink_open_file(), watched; from here on interrupts wait until nothing is left behind. */
HEFT_MUST_CHECK heft_status sink_open(heft_sink **sink, const char *path, bool force, bool no_sync,
                                      sink_failure *failure, heft_error *err);
/* *sink is taken over and replaced; discarded when there is no memory.  path: as the error line is to name it. */
HEFT_MUST_CHECK heft_status sink_watch(heft_sink **sink, const char *path, sink_failure *failure,
                                       heft_error *err);
/* say_error() about the output that failed, or about `otherwise` when none did; once, after the sinks have ended. */
int sink_say_error(sink_failure *take, const char *fallback, const heft_error *err);

#endif
