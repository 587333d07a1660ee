#include "process/term.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "process/cmd.h"

/* stdout and stderr belong to the process, and whoever writes to them asks how they look. */
static size_t kept_columns; /* width of the terminal behind a pager; 0: no pager */
static term_when colour_when;

void term_set_colour(term_when when)
{
    colour_when = when;
}

bool term_has_colour(int fd)
{
    if (colour_when != TERM_AUTO)
        return colour_when == TERM_ALWAYS;
    const char *no = getenv("NO_COLOR");
    return !(no && *no) && (fd == STDOUT_FILENO && kept_columns ? terminal_has_colour()
                                                                : terminal_shows_colour(fd));
}

const char *term_colour_code(term_colour c)
{
    static const char *const codes[] = { "\x1b[0m", "\x1b[1m", "\x1b[31m", "\x1b[33m", "\x1b[32m" };
    return codes[c];
}

void term_paint(outbuf *o, term_colour c)
{
    if (o->fd >= 0 && term_has_colour(o->fd))
        out_text(o, term_colour_code(c));
}

bool term_is_stdout(void)
{
    return kept_columns || isatty(STDOUT_FILENO);
}

size_t term_columns(int fd)
{
    enum { DEFAULT_COLUMNS = 80 };
    if (fd == STDOUT_FILENO && kept_columns)
        return kept_columns;
    size_t columns = terminal_columns(fd);
    return columns ? columns : DEFAULT_COLUMNS;
}

void term_keep_stdout(void)
{
    kept_columns = term_columns(STDOUT_FILENO);
}

int out_end(outbuf *o, int code)
{
    bool written = out_flush(o);
    int os = o->os;
    if (close(o->fd) < 0 && written)
        os = errno;
    out_free(o);
    if (!os)
        return code;
    if (os == EPIPE && pager_is_active()) /* the user has seen enough */
        return code;
    if (os != EPIPE) /* the reader closed the pipe: no message */
        say_system(os, "standard output");
    return CODE_SYSTEM;
}
