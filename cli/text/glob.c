#include "text/glob.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Return the character after p that the pattern reads at once: an escaped character or a bracket
 * expression such as [!a-z] is one unit. */
static const char *after_unit(const char *p)
{
    if (*p == '\\')
        return p + (p[1] ? 2 : 1);
    if (*p != '[')
        return p + 1;
    const char *end = p + 1;
    end += *end == '!' || *end == '^';
    end += *end == ']';
    end += strcspn(end, "]");
    return *end ? end + 1 : p + 1;
}

/* Return the end of the alternative that begins at p: a comma or closing brace of the same depth,
 * or NULL. */
static const char *alternative_end(const char *p)
{
    size_t depth = 0;
    for (; *p; p = after_unit(p)) {
        if (!depth && (*p == ',' || *p == '}'))
            return p;
        depth += *p == '{';
        depth -= *p == '}';
    }
    return NULL;
}

/* Return the first opening brace of alternatives, or NULL; *close becomes the closing brace. */
static const char *find_alternatives(const char *glob, const char **close)
{
    for (const char *p = glob; *p; p = after_unit(p)) {
        const char *end = *p == '{' ? alternative_end(p + 1) : NULL;
        if (!end || *end != ',')
            continue;
        while (end && *end == ',')
            end = alternative_end(end + 1);
        *close = end;
        if (end)
            return p;
    }
    return NULL;
}

/* ---- patterns that remain to be tried ---- */

typedef struct patterns {
    char **item;
    size_t count, capacity;
} patterns;

static bool push(patterns *s, char *take)
{
    if (take && s->count == s->capacity) {
        char **item = realloc(s->item, (2 * s->capacity + 8) * sizeof *item);
        if (item) {
            s->item = item;
            s->capacity = 2 * s->capacity + 8;
        }
    }
    if (take && s->count < s->capacity) {
        s->item[s->count++] = take;
        return true;
    }
    free(take);
    return false;
}

/* Push one pattern for each alternative between open and close. */
static bool push_alternatives(patterns *s, const char *glob, const char *open, const char *close)
{
    size_t size = strlen(glob) + 1;
    bool ok = true;
    for (const char *from = open; ok && from != close;) {
        const char *to = alternative_end(from + 1);
        char *text = malloc(size);
        if (text)
            snprintf(text, size, "%.*s%.*s%s", (int)(open - glob), glob, (int)(to - from - 1),
                     from + 1, close + 1);
        ok = push(s, text);
        from = to;
    }
    return ok;
}

static bool matches_plain(bool *no_memory, const char *name, const char *glob)
{
    int found = fnmatch(glob, name, 0);
    *no_memory = *no_memory || (found && found != FNM_NOMATCH);
    return !found;
}

bool glob_matches(bool *no_memory, const char *name, const char *glob)
{
    const char *open, *close = NULL;
    patterns s = { NULL, 0, 0 };
    bool found = false;
    if (!strchr(glob, '{') || !find_alternatives(glob, &close))
        return matches_plain(no_memory, name, glob);
    bool ok = push(&s, strdup(glob));
    while (ok && s.count && !found) {
        char *top = s.item[--s.count];
        open = find_alternatives(top, &close);
        if (open)
            ok = push_alternatives(&s, top, open, close);
        else
            found = matches_plain(no_memory, name, top);
        free(top);
    }
    while (s.count)
        free(s.item[--s.count]);
    free(s.item);
    *no_memory = *no_memory || !ok;
    return found;
}
