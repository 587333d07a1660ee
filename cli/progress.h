/* progress.h - a bar on stderr with rate and time left, for a person who waits: only on a
 * terminal, and only once the work has taken longer than half a second. */
#ifndef HEFT_CLI_PROGRESS_H
#define HEFT_CLI_PROGRESS_H
#include <heft/heft.h>

typedef struct progress {
    const char *label;
    bool wanted, shown;
    double began, drawn; /* seconds */
} progress;

void progress_begin(progress *p, const char *label);
/* A heft_progress_fn.  Says stop once the user interrupted. */
bool progress_step(void *ctx, uint64_t done, uint64_t total);
void progress_end(progress *p);
/* From now on an interrupt stops the work where it can be stopped cleanly; a second one kills. */
void progress_catch_interrupt(void);

#endif
