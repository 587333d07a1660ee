#include "term.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cmd.h"
#include "interrupt.h"

/* --color; applies to the whole process. */
static const char *colour_when = "auto";

void term_prepare(void)
{
    for (int fd = 0; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF && open("/dev/null", O_RDONLY) < 0)
            _exit(CODE_SYSTEM);
}

bool term_set_colour(const char *when)
{
    colour_when = when;
    return !strcmp(when, "auto") || !strcmp(when, "always") || !strcmp(when, "never");
}

bool term_has_colour(int fd)
{
    if (strcmp(colour_when, "auto") != 0)
        return !strcmp(colour_when, "always");
    const char *no = getenv("NO_COLOR"), *term = getenv("TERM");
    return !(no && *no) && term && strcmp(term, "dumb") != 0 && isatty(fd);
}

void term_paint(outbuf *o, term_colour c)
{
    static const char *const codes[] = { "\x1b[0m", "\x1b[1m", "\x1b[31m", "\x1b[33m", "\x1b[32m" };
    if (o->fd >= 0 && term_has_colour(o->fd))
        out_text(o, codes[c]);
}

bool term_is_stdout(void)
{
    return isatty(STDOUT_FILENO);
}

size_t term_columns(int fd)
{
    enum { DEFAULT_COLUMNS = 80 };
    struct winsize size;
    return !ioctl(fd, TIOCGWINSZ, &size) && size.ws_col ? size.ws_col : DEFAULT_COLUMNS;
}

/* Write to stderr without allocating; control characters become question marks. */
static void write_sanitized(const char *text)
{
    char piece[256];
    for (size_t n; *text; text += n) {
        for (n = 0; n < sizeof piece && text[n]; n++)
            piece[n] = (uint8_t)text[n] < ' ' || text[n] == 0x7F ? '?' : text[n];
        ssize_t ignored = write(STDERR_FILENO, piece, n);
        (void)ignored;
    }
}

static void say_unbuffered(const char *file, const char *text)
{
    ssize_t ignored;
    write_sanitized("heft: ");
    if (file) {
        write_sanitized(file);
        write_sanitized(": ");
    }
    write_sanitized(text);
    ignored = write(STDERR_FILENO, "\n", 1);
    (void)ignored;
}

static void say_line(const char *file, const char *text, uint64_t offset)
{
    outbuf o;
    out_open(&o, STDERR_FILENO);
    term_paint(&o, COLOUR_BOLD);
    out_text(&o, "heft: ");
    term_paint(&o, COLOUR_NONE);
    if (file) {
        out_message(&o, file);
        out_text(&o, ": ");
    }
    out_message(&o, text);
    if (offset != HEFT_NOWHERE)
        out_format(&o, " (at byte %llu)", (unsigned long long)offset);
    out_char(&o, '\n');
    out_flush(&o);
    if (o.os == ENOMEM)
        say_unbuffered(file, text);
    out_free(&o);
}

/* help_command: command whose --help the line refers to, or NULL. */
static void say_va(const char *file, const char *format, va_list args, const char *help_command)
{
    char fixed[512]; /* used if memory runs out */
    outbuf text;
    va_list args_copy;
    va_copy(args_copy, args);
    out_open(&text, -1);
    out_vformat(&text, format, args);
    if (help_command)
        out_format(&text, " (see heft %s --help)", help_command);
    vsnprintf(fixed, sizeof fixed, format, args_copy);
    va_end(args_copy);
    const char *whole = out_cstr(&text);
    say_line(file, text.os ? fixed : whole, HEFT_NOWHERE);
    out_free(&text);
}

void say(const char *file, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    say_va(file, format, args, NULL);
    va_end(args);
}

int say_code(int code, const char *file, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    say_va(file, format, args, NULL);
    va_end(args);
    return code;
}

int say_usage(const char *name, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    say_va(name, format, args, name);
    va_end(args);
    return CODE_USAGE;
}

static int code_of(heft_status s)
{
    switch (s) {
    case HEFT_OK:
        return CODE_DONE;
    case HEFT_E_FORMAT:
    case HEFT_E_CHECKSUM:
        return CODE_INVALID;
    case HEFT_E_UNSUPPORTED:
    case HEFT_E_LOSSY:
    case HEFT_E_LIMIT:
        return CODE_CANNOT;
    case HEFT_E_ARGUMENT:
    case HEFT_E_NOTFOUND:
        return CODE_USAGE;
    case HEFT_AGAIN:
    case HEFT_E_NOMEM:
    case HEFT_E_IO:
    case HEFT_E_CANCELLED:
        break;
    }
    return CODE_SYSTEM;
}

int say_error(const char *file, const heft_error *err)
{
    if (err->status == HEFT_E_CANCELLED && interrupt_is_pending())
        say_line(NULL, "interrupted; nothing written", HEFT_NOWHERE);
    else if (err->os != EPIPE) /* the reader closed the pipe: no message */
        say_line(file, err->message, err->offset);
    return code_of(err->status);
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
    if (os != EPIPE) /* the reader closed the pipe: no message */
        say("standard output", "%s", strerror(os));
    return CODE_SYSTEM;
}
