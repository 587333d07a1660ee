/* words.h - words that people type: the closest known word, and aliases. */
#ifndef HEFT_CLI_WORDS_H
#define HEFT_CLI_WORDS_H
#include <stdbool.h>

#include "text/outbuf.h"

typedef struct suggestion { /* the caller sets `word` and `prefix`, zero the rest */
    heft_str word;          /* the unknown word */
    const char *prefix;     /* printed before the closest word, or NULL */
    heft_str closest;       /* ptr NULL: no candidate yet */
    size_t distance;
} suggestion;

/* Compare the unknown word with a known word. The cost is linear in the length of the words. */
void suggestion_try(suggestion *s, heft_str known);
/* Write "; did you mean 'X'?" for the closest word, or an empty text if no word is close. */
enum { SUGGESTION_BYTES = 160 };
const char *suggestion_text(char out[SUGGESTION_BYTES], const suggestion *s);
/* Write the suggestion for an unknown element type, or an empty text. */
const char *suggest_dtype(char out[SUGGESTION_BYTES], const char *word);
/* Write the suggestion for an unknown format, or an empty text. */
const char *suggest_format(char out[SUGGESTION_BYTES], const char *word);

/* Return what writes files of a format that Heft does not write, by its name or by the suffix of a
 * path; or NULL. */
const char *foreign_format_writer(const char *word);

/* ---- words typed in a shell ---- */

/* Remove the quotation from a word in place: backslashes, '...', "..." and $'...'. A quotation that
 * is not closed ends with the word. Return the quotation that is open: ', ", $ for $'...', or 0.
 * Nothing is expanded, and no command is run. */
char shell_unquote(char *word);
/* Write a text so that bash reads back the same bytes. quote: the open quotation, by
 * shell_unquote(), or 0; bash closes the quotation unless the word ends with the mark. */
void out_shell_word(outbuf *o, heft_str text, char quote);

/* ---- shell patterns for names ---- */

/* Return true if the name matches the pattern. Braces may be nested; braces without a comma, and
 * braces that are escaped, in brackets or not closed, stand for themselves. *no_memory is set,
 * never cleared, if memory ran out. */
bool glob_matches(bool *no_memory, const char *name, const char *glob);

#endif
