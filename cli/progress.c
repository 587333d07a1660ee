#include "progress.h"

#include <string.h>
#include <time.h>
#include <unistd.h>

#include "escape.h"
#include "interrupt.h"

static const double FIRST_AFTER = 0.5, EVERY = 0.1;
enum { BAR = 24 };

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void draw(const progress *p, uint64_t done, uint64_t total, double seconds)
{
    double part = total ? (double)done / (double)total : 1;
    size_t full = (size_t)(part * BAR);
    outbuf o;
    out_open(&o, STDERR_FILENO);
    out_text(&o, "\r\x1b[K");
    out_message(&o, p->label);
    out_text(&o, " [");
    out_fill(&o, '#', full < BAR ? full : BAR);
    out_fill(&o, ' ', full < BAR ? BAR - full : 0);
    out_format(&o, "] %3d%%  ", (int)(part * 100));
    out_size(&o, (uint64_t)((double)done / seconds));
    out_text(&o, "/s");
    uint64_t left = done ? (uint64_t)(seconds * (1 / part - 1) + 0.5) : 0;
    if (done)
        out_format(&o, "  %u:%02u left", (unsigned)(left / 60), (unsigned)(left % 60));
    out_flush(&o);
    out_free(&o);
}

void progress_begin(progress *p, const char *label)
{
    const char *slash = strrchr(label, '/');
    *p = (progress){ .label = slash ? slash + 1 : label,
                     .wanted = isatty(STDERR_FILENO),
                     .began = now() };
}

bool progress_step(void *ctx, uint64_t done, uint64_t total)
{
    progress *p = ctx;
    if (interrupt_is_pending())
        return false;
    if (!p->wanted)
        return true;
    double t = now();
    if (t - p->began < FIRST_AFTER || t - p->drawn < EVERY)
        return true;
    p->drawn = t;
    p->shown = true;
    draw(p, done, total, t - p->began);
    return true;
}

void progress_end(progress *p)
{
    if (p->shown && write(STDERR_FILENO, "\r\x1b[K", 4) < 0)
        p->wanted = false;
    p->shown = false;
}
