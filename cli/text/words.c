#include "text/words.h"

#include <stdio.h>

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c + ('a' - 'A')) : c;
}

static bool is_same_letter(char a, char b)
{
    return lower(a) == lower(b);
}

/* Return the length of the longer word without the common prefix and suffix. */
static size_t differing_letters(heft_str a, heft_str b)
{
    size_t prefix = 0, suffix = 0, less = a.len < b.len ? a.len : b.len;
    while (prefix < less && is_same_letter(a.ptr[prefix], b.ptr[prefix]))
        prefix++;
    while (suffix < less - prefix &&
           is_same_letter(a.ptr[a.len - 1 - suffix], b.ptr[b.len - 1 - suffix]))
        suffix++;
    return (a.len > b.len ? a.len : b.len) - prefix - suffix;
}

void suggestion_try(suggestion *s, heft_str known)
{
    size_t distance = differing_letters(s->word, known);
    if (s->closest.ptr && distance >= s->distance)
        return;
    s->closest = known;
    s->distance = distance;
}

const char *suggestion_text(char out[SUGGESTION_BYTES], const suggestion *s)
{
    enum { CLOSE = 2, LONGEST = 100 };
    outbuf name;
    *out = '\0';
    /* At least half of the letters must be those of the known word. */
    if (!s->closest.ptr || s->distance > CLOSE || 2 * s->distance > s->closest.len ||
        s->closest.len > LONGEST)
        return out;
    out_open(&name, -1);
    out_escaped(&name, s->closest);
    snprintf(out, SUGGESTION_BYTES, "; did you mean '%s%.120s'?", s->prefix ? s->prefix : "",
             out_cstr(&name));
    out_free(&name);
    return out;
}

const char *suggest_dtype(char out[SUGGESTION_BYTES], const char *word)
{
    suggestion s = { .word = str_of(word) };
    const heft_dtype_info *d;
    for (heft_dtype t = 1; (d = heft_dtype_get(t)) != NULL; t++)
        suggestion_try(&s, str_of(d->name));
    return suggestion_text(out, &s);
}

const char *suggest_format(char out[SUGGESTION_BYTES], const char *word)
{
    suggestion s = { .word = str_of(word) };
    const heft_format *f;
    for (uint32_t i = 0; (f = heft_format_at(i)) != NULL; i++)
        suggestion_try(&s, str_of(heft_format_name(f)));
    return suggestion_text(out, &s);
}
