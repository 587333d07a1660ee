/* sinkwatch.h - the sinks of commands: a signal that arrives before the output is complete undoes
 * it, and the command may act before bytes are written. */
#ifndef HEFT_CLI_SINKWATCH_H
#define HEFT_CLI_SINKWATCH_H
#include <heft/heft_ext.h>

typedef struct sink_events {
    void (*before_write)(void *ctx); /* called before each write, on any thread */
    void *ctx;
} sink_events;

/* Return the flags of heft_sink_open_file() for an output. */
uint32_t sink_flags(bool force, bool no_sync);
/* Open a watched file sink. From now on interrupts are recorded until the output is complete or
 * removed. events may be NULL; it has to outlive the sink. */
HEFT_MUST_CHECK heft_status sink_open(heft_sink **sink, const char *path, bool force, bool no_sync,
                                      const sink_events *events, heft_error *err);
/* Take over *sink and replace it by a watched sink; without memory *sink is discarded. */
HEFT_MUST_CHECK heft_status sink_watch(heft_sink **sink, const sink_events *events,
                                       heft_error *err);

/* Write bytes at a position, in order if the sink cannot do otherwise. */
HEFT_MUST_CHECK heft_status sink_put(heft_sink *sink, uint64_t at, const void *bytes, size_t len,
                                     heft_error *err);
/* Write all bytes of a file and finish it; after an error the sink is discarded. */
HEFT_MUST_CHECK heft_status sink_write_whole(heft_sink *take, const void *bytes, size_t len,
                                             heft_error *err);

#endif
