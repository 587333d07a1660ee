/* term.h - the terminal: colours and width; the end of stdout. */
#ifndef HEFT_CLI_TERM_H
#define HEFT_CLI_TERM_H
#include "text/escape.h"

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

#endif
