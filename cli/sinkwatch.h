/* sinkwatch.h - a sink around another one that remembers whether it was the sink that failed, so
 * that the error line names the right file. */
#ifndef HEFT_CLI_SINKWATCH_H
#define HEFT_CLI_SINKWATCH_H
#include <heft/heft_ext.h>
#include <stdatomic.h>

/* The flags of heft_sink_file() for an output of a command. */
uint32_t sink_flags(bool force, bool no_sync);
/* heft_sink_file(), watched; from here on interrupts wait until nothing is left behind. */
HEFT_MUST_CHECK heft_status sink_open(heft_sink **sink, const char *path, bool force, bool no_sync,
                                      atomic_bool *failed, heft_error *err);
/* *sink is taken over and replaced; discarded when there is no memory. */
HEFT_MUST_CHECK heft_status sink_watch(heft_sink **sink, atomic_bool *failed, heft_error *err);

#endif
