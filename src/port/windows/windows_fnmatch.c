/* windows_fnmatch.c - fnmatch() for names in UTF-8: *, ?, [a-z], [!a-z], and a backslash before a
 * character. */
#include <fnmatch.h>
#include <wchar.h>

#include "port/windows/posix.h"

/* Return the bytes of the character at p, and the character; bytes that are not UTF-8 count as one
 * character each. */
static size_t take(wchar_t *c, const char *p)
{
    mbstate_t state;
    memset(&state, 0, sizeof state);
    size_t n = mbrtowc(c, p, strlen(p), &state);
    if (n && n <= MB_CUR_MAX)
        return n;
    *c = (unsigned char)*p;
    return 1;
}

/* Take a character of a bracket expression, after a backslash or not. */
static const char *take_bound(wchar_t *c, const char *p)
{
    p += *p == '\\' && p[1];
    return p + take(c, p);
}

/* Match one character with the bracket expression after '['.  Return the end of the expression, or
 * NULL if it has no end. */
static const char *match_bracket(bool *matches, const char *p, wchar_t c)
{
    bool is_negated = *p == '!' || *p == '^', found = false;
    p += is_negated;
    for (const char *first = p; *p && (*p != ']' || p == first);) {
        wchar_t low, high;
        p = take_bound(&low, p);
        high = low;
        if (*p == '-' && p[1] && p[1] != ']')
            p = take_bound(&high, p + 1);
        found = found || (c >= low && c <= high);
    }
    *matches = found != is_negated;
    return *p ? p + 1 : NULL;
}

/* Match one character of the name with one unit of the pattern; NULL: they differ. */
static const char *match_unit(const char *pattern, wchar_t c)
{
    wchar_t wanted;
    bool matches = false;
    if (*pattern == '?')
        return pattern + 1;
    if (*pattern == '[') {
        const char *end = match_bracket(&matches, pattern + 1, c);
        if (end)
            return matches ? end : NULL;
    }
    pattern += *pattern == '\\' && pattern[1];
    size_t n = take(&wanted, pattern);
    return *pattern && wanted == c ? pattern + n : NULL;
}

/* A star takes more characters until the rest matches; only the last star needs to be tried. */
int fnmatch(const char *pattern, const char *name, int flags)
{
    const char *star = NULL, *retry = NULL;
    (void)flags;
    while (*name) {
        wchar_t c;
        size_t n = take(&c, name);
        const char *next = *pattern == '*' ? NULL : match_unit(pattern, c);
        if (*pattern == '*') {
            star = ++pattern;
            retry = name;
        } else if (next) {
            pattern = next;
            name += n;
        } else if (star) {
            retry += take(&c, retry);
            name = retry;
            pattern = star;
        } else
            return FNM_NOMATCH;
    }
    while (*pattern == '*')
        pattern++;
    return *pattern ? FNM_NOMATCH : 0;
}
