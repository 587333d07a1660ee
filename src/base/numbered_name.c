#include "base/numbered_name.h"

#include "base/text.h"

enum { MAX_DIGITS = 9, OF = 4 /* strlen("-of-") */, RANK = 6 };

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_separator(char c)
{
    return c == '-' || c == '_' || c == '.';
}

/* Read the digits that begin at `at`; return their number, or 0 if there are none or too many. */
static size_t read_digits(uint32_t *out, heft_str s, size_t at)
{
    size_t n = 0;
    *out = 0;
    for (; at + n < s.len && is_digit(s.ptr[at + n]); n++) {
        if (n == MAX_DIGITS)
            return 0;
        *out = *out * 10 + (uint32_t)(s.ptr[at + n] - '0');
    }
    return n;
}

/* Read the numbers around the text "-of-" at `at`. */
static bool read_at(heft_numbered_name *out, heft_str s, size_t at)
{
    size_t from = at, after = at + OF;
    while (from && is_digit(s.ptr[from - 1]))
        from--;
    size_t own = read_digits(&out->number, s, from), total = read_digits(&out->count, s, after);
    size_t end = after + total;
    bool begins = !from || is_separator(s.ptr[from - 1]);
    bool ends = end == s.len || is_separator(s.ptr[end]);
    if (!own || !total || !begins || !ends)
        return false;
    out->head = (heft_str){ s.ptr, from };
    out->digits = (heft_str){ s.ptr + from, own };
    out->of = (heft_str){ s.ptr + at, s.len - at };
    out->tail = (heft_str){ s.ptr + end, s.len - end };
    return true;
}

/* Read "world_size_COUNT_rank_NUMBER", the file of a rank; `at` is the offset of "_rank_". */
static bool read_rank(heft_numbered_name *out, heft_str s, size_t at)
{
    static const char world[] = "world_size_";
    enum { WORLD = sizeof world - 1 };
    size_t from = at, begin = at + RANK;
    while (from && is_digit(s.ptr[from - 1]))
        from--;
    size_t own = read_digits(&out->number, s, begin), end = begin + own;
    bool has_world = from >= WORLD && !memcmp(s.ptr + from - WORLD, world, WORLD);
    size_t total = has_world ? read_digits(&out->count, s, from) : 0;
    if (!own || !total || from + total != at || (end < s.len && s.ptr[end] != '.'))
        return false;
    out->head = (heft_str){ s.ptr, begin };
    out->digits = (heft_str){ s.ptr + begin, own };
    out->of = out->tail = (heft_str){ s.ptr + end, s.len - end };
    return true;
}

bool heft_numbered_name_read(heft_numbered_name *out, heft_str name)
{
    for (size_t at = name.len; at-- > 1;) {
        const char *p = name.ptr + at;
        bool is_of = name.len - at > OF && (!memcmp(p, "-of-", OF) || !memcmp(p, "_of_", OF));
        bool is_rank = name.len - at > RANK && !memcmp(p, "_rank_", RANK);
        if ((is_of && read_at(out, name, at)) || (is_rank && read_rank(out, name, at)))
            return true;
    }
    return false;
}

bool heft_numbered_name_is_sibling(const heft_numbered_name *a, const heft_numbered_name *b)
{
    return heft_str_eq(a->head, b->head) && heft_str_eq(a->of, b->of);
}

heft_str heft_numbered_name_stem(const heft_numbered_name *n)
{
    return (heft_str){ n->head.ptr, n->head.len ? n->head.len - 1 : 0 };
}

size_t heft_numbered_name_write(char *out, const heft_numbered_name *n, uint32_t number,
                                size_t width)
{
    char digits[20];
    size_t len = heft_u64_text(digits, number), zeros = len < width ? width - len : 0;
    size_t all = n->head.len + zeros + len + n->of.len;
    if (!out)
        return all;
    memcpy(out, n->head.ptr, n->head.len);
    out += n->head.len;
    memset(out, '0', zeros);
    memcpy(out + zeros, digits, len);
    memcpy(out + zeros + len, n->of.ptr, n->of.len);
    return all;
}
