/* term.h - the terminal: colours and width; the end of stdout. */
#ifndef HEFT_CLI_TERM_H
#define HEFT_CLI_TERM_H
#include <stdbool.h>
#include <stddef.h>

#include "text/outbuf.h"

typedef enum term_colour {
    COLOUR_NONE,
    COLOUR_BOLD,
    COLOUR_RED,
    COLOUR_YELLOW,
    COLOUR_GREEN
} term_colour;

typedef enum term_when { TERM_AUTO, TERM_ALWAYS, TERM_NEVER } term_when;

/* Set --color for all output from now on. */
void term_set_colour(term_when when);
bool term_has_colour(int fd);
/* Switch the colour, or reset it with COLOUR_NONE, if o's descriptor shows colours. */
void term_paint(outbuf *o, term_colour c);
/* Return the escape sequence of a colour. */
const char *term_colour_code(term_colour c);
/* Return true if stdout is a terminal, or a pager on a terminal. */
bool term_is_stdout(void);
/* Remember the terminal that stdout is, since a pager takes its place. */
void term_keep_stdout(void);

/* Return the terminal's present width, at least 1. The width may change at any time. */
size_t term_columns(int fd);

/* Flush and close o, which writes to stdout. Return code, or CODE_SYSTEM after an error line if a
 * write failed. */
int out_end(outbuf *o, int code);

/* ---- what the system knows about the terminal and the command line ---- */

/* Prepare stdin, stdout and stderr: a closed one is opened, because the next file would get its
 * number. Return the arguments of main() in UTF-8. */
char **terminal_prepare(int *argc, char **argv);
/* Make every separator of a path a slash: Windows has backslashes, too. */
void terminal_use_slashes(char *path);
/* Return true if the terminal understands escape sequences for colours. */
bool terminal_has_colour(void);
/* Return true if the descriptor is such a terminal. */
bool terminal_shows_colour(int fd);
/* Return the width of the terminal; 0: unknown. */
size_t terminal_columns(int fd);

/* ---- show long output in a pager, as git does ---- */

/* Start a pager for the output, if stdout is a terminal. The sandbox would refuse to start a
 * program: call this first. */
void pager_start(void);
/* Return true if stdout goes to a pager. */
bool pager_is_active(void);
/* Close stdout, and wait for the pager. */
void pager_end(void);

/* ---- ask for a password on the terminal ---- */

enum { PASSWORD_MAX = 1024 };

/* Read the password of `path` without an echo into PASSWORD_MAX bytes; return its length, or -1.
 * *has_terminal: there was a terminal to ask. */
ptrdiff_t password_ask(char *buf, const char *path, bool *has_terminal);

#endif
