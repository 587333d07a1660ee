/* words.h - words that people type: the closest known word, and aliases. */
#ifndef HEFT_CLI_WORDS_H
#define HEFT_CLI_WORDS_H
#include "text/escape.h"

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

#endif
