#include "text/ecma_regex.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

typedef struct writer {
    char *at;
    const char *p;
    bool in_brackets;
} writer;

static void put(writer *w, const char *text)
{
    size_t len = strlen(text);
    memcpy(w->at, text, len);
    w->at += len;
}

/* Translate a backslash and what follows it.  In brackets POSIX has no form for the complement of a
 * class: regcomp() refuses this name. */
static void put_escape(writer *w)
{
    static const char no_class[] = "[:complement:]";
    static const struct {
        char letter;
        const char *alone, *in_brackets;
    } classes[] = {
        { 'd', "[0-9]", "0-9" },
        { 'D', "[^0-9]", no_class },
        { 'w', "[[:alnum:]_]", "[:alnum:]_" },
        { 'W', "[^[:alnum:]_]", no_class },
        { 's', "[[:space:]]", "[:space:]" },
        { 'S', "[^[:space:]]", no_class },
    };
    char letter = w->p[1];
    for (size_t i = 0; i < sizeof classes / sizeof *classes; i++) {
        const char *text = w->in_brackets ? classes[i].in_brackets : classes[i].alone;
        if (classes[i].letter != letter)
            continue;
        put(w, text);
        w->p += 2;
        return;
    }
    if (!w->in_brackets || !letter) /* in brackets of POSIX a backslash is itself */
        *w->at++ = '\\';
    if (letter)
        *w->at++ = letter;
    w->p += letter ? 2 : 1;
}

static bool ends_repetition(char c)
{
    return c == '*' || c == '+' || c == '?' || c == '}';
}

static void put_next(writer *w, const char *pattern)
{
    bool is_lazy = *w->p == '?' && w->p > pattern && ends_repetition(w->p[-1]) &&
                   !(w->p > pattern + 1 && w->p[-2] == '\\');
    if (*w->p == '\\') {
        put_escape(w);
        return;
    }
    if (!w->in_brackets && !strncmp(w->p, "(?:", 3)) {
        *w->at++ = '(';
        w->p += 3;
        return;
    }
    if (w->in_brackets || !is_lazy)
        *w->at++ = *w->p;
    w->in_brackets = w->in_brackets ? *w->p != ']' : *w->p == '[';
    w->p++;
}

char *ecma_to_posix(const char *pattern)
{
    enum { LONGEST = 16 }; /* characters for one of the pattern */
    char *out = malloc(strlen(pattern) * LONGEST + 1);
    writer w = { .at = out, .p = pattern };
    if (!out)
        return NULL;
    while (*w.p)
        put_next(&w, pattern);
    *w.at = 0;
    return out;
}
