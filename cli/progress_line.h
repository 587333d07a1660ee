/* progress_line.h - a bar on stderr with rate and time left, for a person who waits: only on a
 * terminal, and only once the work has taken longer than half a second. */
#ifndef HEFT_CLI_PROGRESS_LINE_H
#define HEFT_CLI_PROGRESS_LINE_H
#include <heft/heft.h>

typedef struct progress {
    const char *label;
    bool enabled, is_visible;
    double began, drawn; /* seconds */
} progress;

void progress_begin(progress *p, const char *label);
/* A heft_progress_fn.  Stops the work once an interrupt is pending. */
bool progress_step(void *ctx, uint64_t done, uint64_t total);
void progress_end(progress *p);

#endif
