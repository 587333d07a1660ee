/* map_words.c - takes the text of a map apart. */
#include "base/error.h"
#include "base/text.h"
#include "map/map_reader.h"

heft_status heft_map_fail(const heft_map_reader *r, const char *what, heft_str where)
{
    return heft_error_plain(r->err, HEFT_E_FORMAT, "line %U of the map%s%s: %s %q",
                            (uint64_t)r->line, r->depth ? " " : "", r->depth ? "it uses" : "", what,
                            where);
}

heft_status heft_map_too_many(const heft_map_reader *r)
{
    return heft_error_plain(r->err, HEFT_E_LIMIT, "the map has more than %U rules and statements",
                            (uint64_t)HEFT_MAP_RULES);
}

heft_status heft_map_no_memory(heft_error *err)
{
    return heft_error_no_memory(err, "for a map");
}

heft_str heft_map_trim(heft_str s)
{
    while (s.len && (*s.ptr == ' ' || *s.ptr == '\t'))
        s = (heft_str){ s.ptr + 1, s.len - 1 };
    while (s.len &&
           (s.ptr[s.len - 1] == ' ' || s.ptr[s.len - 1] == '\t' || s.ptr[s.len - 1] == '\r'))
        s.len--;
    return s;
}

bool heft_map_cut(heft_str *rest, heft_str *first, const char *at)
{
    size_t n = heft_str_from(at).len;
    const uint8_t *p = (const uint8_t *)rest->ptr, *end = p + rest->len;
    const uint8_t *found = rest->len ? heft_str_seek(p, end, at, n) : NULL;
    *first = heft_map_trim((heft_str){ rest->ptr, found ? (size_t)(found - p) : rest->len });
    *rest = found ? (heft_str){ (const char *)found + n, (size_t)(end - found) - n }
                  : (heft_str){ rest->ptr + rest->len, 0 };
    return found != NULL;
}

heft_str heft_map_word(heft_str *rest)
{
    heft_str word;
    *rest = heft_map_trim(*rest);
    heft_map_cut(rest, &word, " ");
    return word;
}
