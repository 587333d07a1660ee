/* map_names.c - matches names of tensors with patterns, and makes names from captures. */
#include "base/text.h"
#include "map/map_rules.h"

enum { DIGITS = 9 };

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Take a number without leading zeros from the beginning, or the end, of *s. */
static bool take_number(heft_str *s, bool from_end, uint32_t *out)
{
    size_t n = 0;
    uint32_t value = 0;
    while (n < s->len && is_digit(s->ptr[from_end ? s->len - 1 - n : n]))
        n++;
    const char *digits = from_end ? s->ptr + s->len - n : s->ptr;
    if (!n || n > DIGITS || (n > 1 && *digits == '0'))
        return false;
    for (size_t i = 0; i < n; i++)
        value = value * 10 + (uint32_t)(digits[i] - '0');
    *out = value;
    s->ptr += from_end ? 0 : n;
    s->len -= n;
    return true;
}

static bool take_literal(heft_str *s, bool from_end, heft_str text)
{
    if (s->len < text.len ||
        memcmp(from_end ? s->ptr + s->len - text.len : s->ptr, text.ptr, text.len) != 0)
        return false;
    s->ptr += from_end ? 0 : text.len;
    s->len -= text.len;
    return true;
}

static bool take(heft_str *s, bool from_end, const heft_map_token *t, heft_map_captures *c)
{
    return t->kind == HEFT_MAP_LITERAL ? take_literal(s, from_end, t->text)
                                       : take_number(s, from_end, &c->number[t->slot]);
}

/* Tokens before a capture of any text are matched from the beginning, those after it from the
 * end. */
bool heft_map_matches(const heft_map *m, uint32_t pattern, heft_str name, heft_map_captures *c)
{
    const heft_map_pattern *p = HEFT_MAP_AT(m, patterns, heft_map_pattern, pattern);
    const heft_map_token *t = HEFT_MAP_AT(m, tokens, heft_map_token, p->first_token);
    uint32_t i = 0, end = p->tokens;
    c->rest = (heft_str){ NULL, 0 };
    for (; i < end && t[i].kind != HEFT_MAP_REST; i++)
        if (!take(&name, false, &t[i], c))
            return false;
    if (i == end)
        return !name.len;
    while (end > i + 1)
        if (!take(&name, true, &t[--end], c))
            return false;
    c->rest = name;
    return name.len > 0;
}

/* Write the name to `to`, or only return its length. */
static size_t put_name(char *to, const heft_map *m, uint32_t pattern, const heft_map_captures *c)
{
    const heft_map_pattern *p = HEFT_MAP_AT(m, patterns, heft_map_pattern, pattern);
    const heft_map_token *t = HEFT_MAP_AT(m, tokens, heft_map_token, p->first_token);
    size_t len = 0;
    for (uint32_t i = 0; i < p->tokens; i++) {
        char digits[20];
        heft_str s = t[i].kind == HEFT_MAP_REST ? c->rest : t[i].text;
        if (t[i].kind == HEFT_MAP_NUMBER)
            s = (heft_str){ digits, heft_u64_text(digits, c->number[t[i].slot]) };
        if (to)
            memcpy(to + len, s.ptr, s.len);
        len += s.len;
    }
    return len;
}

heft_str heft_map_name(const heft_map *m, uint32_t pattern, const heft_map_captures *c,
                       heft_arena *a)
{
    size_t len = put_name(NULL, m, pattern, c);
    char *to = heft_arena_alloc(a, len + 1, 1);
    if (to)
        put_name(to, m, pattern, c);
    return (heft_str){ to, to ? len : 0 };
}
