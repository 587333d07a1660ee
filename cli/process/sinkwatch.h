/* sinkwatch.h - a wrapper around a sink that records whether the output failed, so that the error
 * line names the output rather than the input. */
#ifndef HEFT_CLI_SINKWATCH_H
#define HEFT_CLI_SINKWATCH_H
#include <heft/heft_ext.h>
#include <stdatomic.h>

/* Shared by the sinks of a command, which the struct must outlive. Initialise with { NULL }, and
 * before_write if needed. */
typedef struct sink_failure {
    _Atomic(char *) path;            /* the first output that failed, or NULL */
    void (*before_write)(void *ctx); /* called before each write, on any thread; NULL: nothing */
    void *ctx;
} sink_failure;

/* Return the flags of heft_sink_open_file() for an output. */
uint32_t sink_flags(bool force, bool no_sync);
/* Open a watched file sink. From now on interrupts are recorded until the output is complete or
 * removed. */
HEFT_MUST_CHECK heft_status sink_open(heft_sink **sink, const char *path, bool force, bool no_sync,
                                      sink_failure *failure, heft_error *err);
/* Take over *sink and replace it by a watched sink; without memory *sink is discarded. path is the
 * name in error lines. */
HEFT_MUST_CHECK heft_status sink_watch(heft_sink **sink, const char *path, sink_failure *failure,
                                       heft_error *err);
/* Print the error about the output that failed, otherwise about `fallback`. Call once, after the
 * sinks are closed. Return the exit code. */
int sink_say_error(sink_failure *take, const char *fallback, const heft_error *err);

#endif
