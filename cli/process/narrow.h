/* narrow.h - tables on a terminal that is narrower than the table. */
#ifndef HEFT_CLI_NARROW_H
#define HEFT_CLI_NARROW_H
#include "process/columns.h"

enum { SHORTEST_NAME = 16 }; /* columns that names keep; below, rows are stacked */

/* Return the number of terminal columns. The text has no control characters. */
size_t text_width(const char *text, size_t len);
/* Replace the middle of o's bytes from `from` on by "…", so that at most `columns` remain. */
void elide(outbuf *o, size_t from, size_t columns);
/* elide() for the text after the blanks that the bytes begin with; many blanks become fewer. */
void elide_indented(outbuf *o, size_t from, size_t columns);
/* Write words so that no line is wider than `width`, and a newline. The text begins at column `at`
 * and further lines begin at `indent`. */
void out_wrapped(outbuf *o, const char *text, size_t at, size_t indent, size_t width);
/* Print each row as a line with the first cell, and indented lines with titles and cells. */
void print_stacked(outbuf *o, const table *t, size_t columns);

#endif
