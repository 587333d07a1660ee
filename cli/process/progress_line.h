/* progress_line.h - a progress bar on stderr with rate and time left. It appears only on a
 * terminal, and only after half a second. With --messages json each drawing is a message, and
 * stderr need not be a terminal. */
#ifndef HEFT_CLI_PROGRESS_LINE_H
#define HEFT_CLI_PROGRESS_LINE_H
#include <heft/heft.h>

typedef struct progress {
    const char *label;
    bool enabled, is_visible;
    double began, drawn; /* seconds */
} progress;

void progress_begin(progress *p, const char *label);
/* Update the bar. A heft_progress_fn; returns false to stop the work after an interrupt. */
bool progress_step(void *ctx, uint64_t done, uint64_t total);
void progress_end(progress *p);

#endif
