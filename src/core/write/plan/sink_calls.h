/* sink_calls.h - the engine's calls of a sink: their errors are about the target. */
#ifndef HEFT_SINK_CALLS_H
#define HEFT_SINK_CALLS_H
#include <heft/heft_ext.h>

/* Write at an offset of the file; a stream is written in order, so that the offset is the
 * current position. */
heft_status heft_sink_put(heft_sink *s, uint64_t at, const void *data, size_t len, heft_error *err);
heft_status heft_sink_fill(heft_sink *s, uint64_t at, uint64_t len, uint8_t byte, heft_error *err);
/* Announce the size of the file, if the sink wants to know it. */
heft_status heft_sink_reserve(heft_sink *s, uint64_t size, heft_error *err);
heft_status heft_sink_read_back(heft_sink *s, uint64_t at, void *buf, size_t len, heft_error *err);
heft_status heft_sink_finish(heft_sink *take, heft_error *err);
/* Finish the sink after work that returned st; discard the sink after a failure. */
heft_status heft_sink_end(heft_sink *take, heft_status st, heft_error *err);

#endif
