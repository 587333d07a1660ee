/* python_literal.h - reads the parts of a literal of the Python language: white space, comments,
 * parentheses, strings and integers.
 *
 * Functions that can fail return what is wrong, or NULL; the position is then that of the error. */
#ifndef HEFT_PYTHON_LITERAL_H
#define HEFT_PYTHON_LITERAL_H
#include "base/compiler.h"

typedef struct heft_python {
    const char *p, *end, *start;
    bool has_long; /* an L after an integer is ignored, as Python 2 wrote it */
} heft_python;

enum { HEFT_PYTHON_TEXT = 64 };
typedef struct heft_python_text {
    char bytes[HEFT_PYTHON_TEXT]; /* the first bytes; a character outside ASCII may be a DEL */
    size_t len;
} heft_python_text;

/* Skip white space and comments; return the next character, or 0 at the end. */
char heft_python_peek(heft_python *l);
/* Skip the character if it is the next one. */
bool heft_python_take(heft_python *l, char c);
/* Skip opening parentheses; return their number. */
uint32_t heft_python_open(heft_python *l);
/* Skip as many closing parentheses. */
const char *heft_python_close(heft_python *l, uint32_t count);
/* Skip the word if it is the next one. */
bool heft_python_word(heft_python *l, const char *word);
/* Read adjacent strings, which Python joins. */
const char *heft_python_string(heft_python *l, heft_python_text *out);
/* Read an integer from 0 to 2^63 - 1. */
const char *heft_python_integer(heft_python *l, uint64_t *out);

#endif
