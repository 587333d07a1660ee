/* lora_patterns.c - finds the patterns that name a module.
 *
 * Most are names or ends of names, in which only dots are operators. These are looked up: an end of
 * the module's name, with dots where a pattern has them, is the text of the pattern. The places of
 * the dots are few in an adapter. All other patterns are compared one by one, within limits. */
#include "lora/lora_patterns.h"

#include "base/text.h"
#include "scheme/name_pattern.h"

enum { LONGEST = 512, MOST_SHAPES = 64 };

typedef struct row {
    heft_str text;
    double number;
    bool is_used;
} row;

static row *row_at(const heft_lora_patterns *p, uint32_t i)
{
    return (row *)p->rows.ptr + i;
}

static heft_str text_of(const void *ctx, uint32_t i)
{
    return row_at(ctx, i)->text;
}

/* ---- texts ---- */

static bool is_plain(heft_str s)
{
    bool is_it = s.len && s.len <= LONGEST;
    for (size_t i = 0; i < s.len && is_it; i++) {
        char c = s.ptr[i];
        is_it = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                c == '_' || c == '-' || c == '.';
    }
    return is_it;
}

/* Return whether the text names the module, if dots are its only operators. */
static bool text_names(heft_str text, heft_str module)
{
    size_t before = module.len - text.len, i = 0;
    if (text.len > module.len || (before && module.ptr[before - 1] != '.'))
        return false;
    while (i < text.len && (text.ptr[i] == '.' || text.ptr[i] == module.ptr[before + i]))
        i++;
    return i == text.len;
}

/* ---- expressions ---- */

/* A pattern names a module if it matches the whole name, or what follows a dot. */
static bool compile(heft_name_pattern *p, heft_str pattern)
{
    const heft_str parts[] = { heft_lit("(?:.*\\.)?(?:"), pattern, heft_lit(")$") };
    char text[LONGEST];
    size_t n = 0;
    for (int i = 0; i < 3; i++) {
        if (parts[i].len > LONGEST - n)
            return false;
        if (parts[i].len)
            memcpy(text + n, parts[i].ptr, parts[i].len);
        n += parts[i].len;
    }
    return heft_pattern_compile(p, (heft_str){ text, n });
}

bool heft_lora_pattern_is_valid(heft_str text)
{
    heft_name_pattern p;
    return compile(&p, text);
}

static void spend(uint64_t *work, uint64_t steps)
{
    *work -= steps < *work ? steps : *work;
}

/* The work is in units of about a nanosecond. */
bool heft_lora_pattern_names(heft_str text, heft_str module, uint64_t *work)
{
    enum { COMPILING = 512, STEP = 4, BYTE = 16, MOST = 1 << 16 };
    heft_name_pattern p;
    uint64_t left = MOST;
    if (is_plain(text)) {
        spend(work, (uint64_t)text.len * BYTE);
        return text_names(text, module);
    }
    bool names = compile(&p, text) && heft_pattern_matches(&p, module, &left);
    spend(work, COMPILING + STEP * (MOST - left));
    return names;
}

/* ---- shapes ---- */

static bool has_same_dots(heft_str a, heft_str b)
{
    bool is_same = a.len == b.len;
    for (size_t i = 0; i < a.len && is_same; i++)
        is_same = (a.ptr[i] == '.') == (b.ptr[i] == '.');
    return is_same;
}

/* Return whether the text has the shape of another one, or is the first of a new shape. */
static bool has_shape(heft_lora_patterns *p, heft_str text, bool *no_memory)
{
    const heft_str *shapes = p->shapes.ptr;
    for (uint32_t i = 0; i < p->shapes.len; i++)
        if (has_same_dots(shapes[i], text))
            return true;
    if (p->shapes.len == MOST_SHAPES)
        return false;
    *no_memory = !heft_vec_add(p->mem, &p->shapes, &text, sizeof text);
    return !*no_memory;
}

/* Return the row whose text has the shape and names the module, or HEFT_NONE. */
static uint32_t find_text(const heft_lora_patterns *p, heft_str shape, heft_str module)
{
    char text[LONGEST];
    size_t before = module.len - shape.len;
    if (shape.len > module.len || (before && module.ptr[before - 1] != '.'))
        return HEFT_NONE;
    for (size_t i = 0; i < shape.len; i++)
        text[i] = shape.ptr[i] == '.' ? '.' : module.ptr[before + i];
    heft_str s = { text, shape.len };
    return heft_names_find(&p->names, (heft_names_of){ text_of, p }, heft_names_hash(p->key, s), s);
}

/* ---- all patterns ---- */

bool heft_lora_patterns_reserve(heft_lora_patterns *p, uint32_t count)
{
    return heft_names_reserve(p->mem, &p->names, count);
}

bool heft_lora_patterns_add(heft_lora_patterns *p, heft_str text, double number)
{
    row r = { text, number, false };
    uint32_t i = p->rows.len;
    bool no_memory = false, is_text = is_plain(text) && has_shape(p, text, &no_memory);
    if (no_memory || !heft_vec_add(p->mem, &p->rows, &r, sizeof r))
        return false;
    if (!is_text)
        return heft_vec_add(p->mem, &p->expressions, &i, sizeof i);
    heft_names_of of = { text_of, p };
    (void)heft_names_add(&p->names, of, heft_names_hash(p->key, text), text, i);
    return true;
}

bool heft_lora_patterns_find(double *out, const heft_lora_patterns *p, heft_str module)
{
    const heft_str *shapes = p->shapes.ptr;
    const uint32_t *expressions = p->expressions.ptr;
    uint32_t first = HEFT_NONE;
    for (uint32_t i = 0; i < p->shapes.len; i++) {
        uint32_t found = find_text(p, shapes[i], module);
        first = found < first ? found : first;
    }
    for (uint32_t i = 0; i < p->expressions.len && expressions[i] < first && *p->work; i++)
        if (heft_lora_pattern_names(row_at(p, expressions[i])->text, module, p->work))
            first = expressions[i];
    if (first != HEFT_NONE)
        *out = row_at(p, first)->number;
    return first != HEFT_NONE;
}

void heft_lora_patterns_mark(heft_lora_patterns *p, heft_str module)
{
    const heft_str *shapes = p->shapes.ptr;
    const uint32_t *expressions = p->expressions.ptr;
    for (uint32_t i = 0; i < p->shapes.len; i++) {
        uint32_t found = find_text(p, shapes[i], module);
        if (found != HEFT_NONE)
            row_at(p, found)->is_used = true;
    }
    for (uint32_t i = 0; i < p->expressions.len && *p->work; i++) {
        row *r = row_at(p, expressions[i]);
        r->is_used = r->is_used || heft_lora_pattern_names(r->text, module, p->work);
    }
}

bool heft_lora_patterns_unused(heft_str *out, const heft_lora_patterns *p, uint32_t *i)
{
    while (*i < p->rows.len && row_at(p, *i)->is_used)
        ++*i;
    if (*i == p->rows.len)
        return false;
    *out = row_at(p, (*i)++)->text;
    return true;
}

void heft_lora_patterns_free(heft_lora_patterns *p)
{
    if (!p->mem)
        return;
    heft_vec_free(p->mem, &p->rows, sizeof(row));
    heft_vec_free(p->mem, &p->shapes, sizeof(heft_str));
    heft_vec_free(p->mem, &p->expressions, sizeof(uint32_t));
    heft_names_free(p->mem, &p->names);
}
