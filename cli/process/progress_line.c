#include "process/progress_line.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <wchar.h>

#include "process/interrupt.h"
#include "process/message.h"
#include "process/term.h"
#include "text/outbuf.h"

static const double SHOW_AFTER = 0.5, REDRAW_EVERY = 0.1;
enum { BAR = 24, MIN_BAR = 8, MIN_LABEL = 8 };

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* ---- the line ---- */

typedef struct line { /* columns per field with its spaces; 0: omitted */
    size_t label, bar, percent, rate, left;
    outbuf label_text, rate_text, left_text;
} line;

/* Return the number of bytes of valid UTF-8 that fit into `most` columns, and the width in
 * *columns. */
static size_t fit_columns(const char *text, size_t most, size_t *columns)
{
    mbstate_t state;
    size_t at = 0, n;
    wchar_t c;
    memset(&state, 0, sizeof state);
    *columns = 0;
    for (; (n = mbrtowc(&c, text + at, MB_CUR_MAX, &state)) && n <= MB_CUR_MAX; at += n) {
        int width = wcwidth(c);
        if (*columns + (size_t)(width > 0 ? width : 0) > most)
            break;
        *columns += (size_t)(width > 0 ? width : 0);
    }
    return at;
}

static void allot(size_t *field, size_t columns, size_t *width)
{
    *field = columns <= *width ? columns : 0;
    *width -= *field;
}

/* Allot columns by importance: percentage, time left, label, rate, bar, rest of the label. */
static void lay_out(line *l, size_t width)
{
    size_t label, bar = BAR + 3;
    (void)fit_columns(out_cstr(&l->label_text), SIZE_MAX, &label);
    label++;
    allot(&l->percent, 4, &width);
    allot(&l->left, l->left_text.used, &width);
    allot(&l->label, label < MIN_LABEL ? label : MIN_LABEL, &width);
    allot(&l->rate, l->rate_text.used, &width);
    if (width < bar)
        bar = width < MIN_BAR + 3 ? 0 : width;
    allot(&l->bar, bar, &width);
    size_t more = l->label && label - l->label < width ? label - l->label : width;
    l->label += l->label ? more : 0;
}

static void put_label(outbuf *o, const line *l)
{
    const char *text = l->label_text.buf;
    size_t columns, all = l->label_text.used,
                    n = l->label ? fit_columns(text, l->label - 1, &columns) : 0;
    if (!l->label)
        return;
    if (n < all && l->label > 1)
        n = fit_columns(text, l->label - 2, &columns);
    out_bytes(o, text, n);
    out_text(o, n < all ? "… " : " ");
}

static void put_bar(outbuf *o, const line *l, double fraction)
{
    if (!l->bar)
        return;
    size_t length = l->bar - 3, full = (size_t)(fraction * (double)length);
    full = full < length ? full : length;
    out_char(o, '[');
    out_fill(o, '#', full);
    out_fill(o, ' ', length - full);
    out_text(o, "] ");
}

static void draw(const progress *p, uint64_t done, uint64_t total, double seconds)
{
    double fraction = total ? (double)done / (double)total : 1;
    uint64_t left = done ? (uint64_t)(seconds * (1 / fraction - 1) + 0.5) : 0;
    outbuf o;
    line l = { .label = 0 };
    out_open(&o, STDERR_FILENO);
    out_open(&l.label_text, -1);
    out_open(&l.rate_text, -1);
    out_open(&l.left_text, -1);
    out_message(&l.label_text, p->label);
    out_text(&l.rate_text, "  ");
    out_size(&l.rate_text, (uint64_t)((double)done / seconds));
    out_text(&l.rate_text, "/s");
    if (done)
        out_format(&l.left_text, "  %u:%02u left", (unsigned)(left / 60), (unsigned)(left % 60));
    lay_out(&l, term_columns(STDERR_FILENO) - 1); /* the last column would wrap */
    out_text(&o, "\r\x1b[K");
    put_label(&o, &l);
    put_bar(&o, &l, fraction);
    if (l.percent)
        out_format(&o, "%3d%%", (int)(fraction * 100));
    out_bytes(&o, l.rate_text.buf, l.rate);
    out_bytes(&o, l.left_text.buf, l.left);
    out_flush(&o);
    out_free(&o);
    out_free(&l.label_text);
    out_free(&l.rate_text);
    out_free(&l.left_text);
}

/* ---- the work ---- */

void progress_begin(progress *p, const char *label)
{
    const char *slash = strrchr(label, '/');
    *p = (progress){ .label = slash ? slash + 1 : label,
                     .enabled = message_is_json() || isatty(STDERR_FILENO),
                     .began = now() };
}

bool progress_step(void *ctx, uint64_t done, uint64_t total)
{
    progress *p = ctx;
    if (interrupt_is_pending())
        return false;
    if (!p->enabled)
        return true;
    double t = now();
    if (t - p->began < SHOW_AFTER || t - p->drawn < REDRAW_EVERY)
        return true;
    p->drawn = t;
    p->is_visible = !message_is_json();
    if (p->is_visible)
        draw(p, done, total, t - p->began);
    else
        message_progress(done, total);
    return true;
}

void progress_end(progress *p)
{
    if (p->is_visible && write(STDERR_FILENO, "\r\x1b[K", 4) < 0)
        p->enabled = false;
    p->is_visible = false;
}
