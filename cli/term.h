/* term.h - talking to a person: errors on stderr, colours. */
#ifndef HEFT_CLI_TERM_H
#define HEFT_CLI_TERM_H
#include "escape.h"

typedef enum term_colour {
    COLOUR_NONE,
    COLOUR_BOLD,
    COLOUR_RED,
    COLOUR_YELLOW,
    COLOUR_GREEN
} term_colour;

/* Standard descriptors that are closed are opened, so that no file takes their number. */
void term_prepare(void);
/* "auto", "always" or "never"; false for anything else.  Before this, it is "auto". */
bool term_set_colour(const char *when);
bool term_has_colour(int fd);
/* Switches to a colour, or with COLOUR_NONE back, when o's descriptor shows them. */
void term_paint(outbuf *o, term_colour c);
/* Whether raw bytes on stdout would end up on somebody's screen. */
bool term_is_stdout(void);

/* How wide the terminal is now: it may change at any time.  At least 1. */
size_t term_columns(int fd);

/* "heft: FILE: text", one line; file NULL: "heft: text". */
void say(const char *file, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The same; returns the exit code that it was given. */
int say_code(int code, const char *file, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The error line of a library call; returns the exit code that belongs to it. */
int say_error(const char *file, const heft_error *err);
/* Wrong usage of a command; returns CODE_USAGE. */
int say_usage(const char *name, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Ends the writing to stdout: code, or CODE_SYSTEM with an error line when it failed. */
int out_end(outbuf *o, int code);

#endif
