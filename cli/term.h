/* term.h - error lines on stderr, and colours. */
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

/* Open closed standard descriptors on /dev/null, so that no file gets their number. */
void term_prepare(void);
/* Set --color: "auto" (the default), "always" or "never". Return false for another text. */
bool term_set_colour(const char *when);
bool term_has_colour(int fd);
/* Switch the colour, or reset it with COLOUR_NONE, if o's descriptor shows colours. */
void term_paint(outbuf *o, term_colour c);
/* Return true if stdout is a terminal. */
bool term_is_stdout(void);

/* Return the terminal's present width, at least 1. The width may change at any time. */
size_t term_columns(int fd);

/* Print "heft: FILE: text" on stderr, or "heft: text" if file is NULL. */
void say(const char *file, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Print an error line; return code. */
int say_code(int code, const char *file, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Print the error of a library call; return its exit code. */
int say_error(const char *file, const heft_error *err);
/* Print an error in a command's usage and refer to its --help; return CODE_USAGE. */
int say_usage(const char *name, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Flush and close o, which writes to stdout. Return code, or CODE_SYSTEM after an error line if a
 * write failed. */
int out_end(outbuf *o, int code);

#endif
