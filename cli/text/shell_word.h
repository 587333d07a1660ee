/* shell_word.h - words typed in a shell: remove quotation, and quote for bash. */
#ifndef HEFT_CLI_SHELL_WORD_H
#define HEFT_CLI_SHELL_WORD_H
#include "text/outbuf.h"

/* Remove the quotation from a word in place: backslashes, '...', "..." and $'...'. A quotation that
 * is not closed ends with the word. Return the quotation that is open: ', ", $ for $'...', or 0.
 * Nothing is expanded, and no command is run. */
char shell_unquote(char *word);
/* Write a text so that bash reads back the same bytes. quote: the open quotation, by
 * shell_unquote(), or 0; bash closes the quotation unless the word ends with the mark. */
void out_shell_word(outbuf *o, heft_str text, char quote);

#endif
