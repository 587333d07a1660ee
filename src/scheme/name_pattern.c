/* name_pattern.c - compiles a regular expression to steps and follows all of them at once, so that
 * no name takes more time than its length times the number of steps.
 *
 * Jumps are relative and stay inside of the fragment to which they belong: a fragment can be moved
 * and copied. */
#include "scheme/name_pattern.h"

#include "base/text.h"

enum kind { BYTE, SET, BEGIN, END, SPLIT, JUMP, ACCEPT };
enum { MOST_GROUPS = 16, MOST_REPEATS = 64 };

typedef struct group {
    uint32_t start, branch; /* steps at which the group and its last branch begin */
    int32_t pending; /* last jump to the end of the group, -1: none; `other` has the one before */
} group;

typedef struct compiler {
    heft_name_pattern *out;
    heft_str text;
    size_t at;
    group groups[MOST_GROUPS];
    uint32_t depth;
    uint32_t atom; /* step at which the last atom begins */
    bool has_atom;
    bool is_good;
} compiler;

/* ---- steps ---- */

static void add(compiler *c, enum kind kind, uint32_t value)
{
    heft_name_pattern *p = c->out;
    if (p->count == HEFT_PATTERN_STEPS) {
        c->is_good = false;
        return;
    }
    p->step[p->count++] = (heft_pattern_step){ (uint8_t)kind, (uint8_t)value, 1, 0 };
}

/* Insert a split before the steps from `from` on; one way leads there, the other behind `skip` more
 * steps than there are. */
static void insert_split(compiler *c, uint32_t from, uint32_t skip)
{
    heft_name_pattern *p = c->out;
    uint32_t len = p->count - from;
    add(c, SPLIT, 0);
    if (!c->is_good)
        return;
    memmove(&p->step[from + 1], &p->step[from], len * sizeof *p->step);
    p->step[from] = (heft_pattern_step){ SPLIT, 0, 1, (int16_t)(len + 1 + skip) };
}

static void add_jump(compiler *c, enum kind kind, int32_t to)
{
    heft_name_pattern *p = c->out;
    uint32_t at = p->count;
    add(c, kind, 0);
    if (!c->is_good)
        return;
    int16_t distance = (int16_t)(to - (int32_t)at);
    if (kind == SPLIT)
        p->step[at].other = distance;
    else
        p->step[at].next = distance;
}

static void copy_steps(compiler *c, uint32_t from, uint32_t len)
{
    for (uint32_t i = 0; i < len && c->is_good; i++) {
        heft_pattern_step s = c->out->step[from + i];
        add(c, BYTE, 0);
        if (c->is_good)
            c->out->step[c->out->count - 1] = s;
    }
}

/* ---- sets of bytes ---- */

static uint32_t *add_set(compiler *c)
{
    heft_name_pattern *p = c->out;
    if (p->set_count == HEFT_PATTERN_SETS) {
        c->is_good = false;
        return NULL;
    }
    memset(p->set[p->set_count], 0, sizeof p->set[0]);
    return p->set[p->set_count++];
}

static void put_range(uint32_t *set, uint32_t first, uint32_t last)
{
    for (uint32_t i = first; i <= last; i++)
        set[i / 32] |= UINT32_C(1) << i % 32;
}

/* Put the bytes of \d, \w, \s or, in capitals, the others; return false for another letter. */
static bool put_class(uint32_t *set, char letter)
{
    uint32_t bytes[8] = { 0 };
    char small = (char)(letter | 32);
    if (small == 'd' || small == 'w')
        put_range(bytes, '0', '9');
    if (small == 'w') {
        put_range(bytes, 'a', 'z');
        put_range(bytes, 'A', 'Z');
        put_range(bytes, '_', '_');
    }
    if (small == 's') {
        put_range(bytes, '\t', '\r');
        put_range(bytes, ' ', ' ');
    }
    for (int i = 0; i < 8; i++)
        set[i] |= letter == small ? bytes[i] : ~bytes[i];
    return small == 'd' || small == 'w' || small == 's';
}

static bool is_alphanumeric(char ch)
{
    return (ch >= '0' && ch <= '9') || ((ch | 32) >= 'a' && (ch | 32) <= 'z');
}

/* Read a byte of a class, which may be escaped; return its number, or -1 for a class in a class,
 * which is put into the set. */
static int32_t read_member(compiler *c, uint32_t *set)
{
    char ch = c->text.ptr[c->at++];
    if (ch != '\\')
        return (uint8_t)ch;
    if (c->at == c->text.len) {
        c->is_good = false;
        return 0;
    }
    ch = c->text.ptr[c->at++];
    if (is_alphanumeric(ch)) {
        c->is_good = c->is_good && put_class(set, ch);
        return -1;
    }
    return (uint8_t)ch;
}

/* Read the rest of a class after its bracket. */
static void read_set(compiler *c)
{
    uint32_t *set = add_set(c);
    heft_str t = c->text;
    bool is_other = c->at < t.len && t.ptr[c->at] == '^';
    c->at += is_other;
    for (bool is_first = true; c->is_good && c->at < t.len; is_first = false) {
        if (t.ptr[c->at] == ']' && !is_first)
            break;
        int32_t first = read_member(c, set), last = first;
        bool is_range = c->is_good && first >= 0 && c->at + 1 < t.len && t.ptr[c->at] == '-' &&
                        t.ptr[c->at + 1] != ']';
        if (is_range) {
            c->at++;
            last = read_member(c, set);
        }
        c->is_good = c->is_good && last >= first;
        if (c->is_good && first >= 0)
            put_range(set, (uint32_t)first, (uint32_t)last);
    }
    c->is_good = c->is_good && c->at < t.len;
    c->at++; /* the bracket */
    for (int i = 0; c->is_good && is_other && i < 8; i++)
        set[i] = ~set[i];
    if (c->is_good)
        add(c, SET, c->out->set_count - 1);
}

/* ---- atoms ---- */

static void read_escape(compiler *c)
{
    if (c->at == c->text.len) {
        c->is_good = false;
        return;
    }
    char ch = c->text.ptr[c->at++];
    if (!is_alphanumeric(ch)) {
        add(c, BYTE, (uint8_t)ch);
    } else if (ch == 'A' || ch == 'Z') {
        add(c, ch == 'A' ? BEGIN : END, 0);
    } else {
        uint32_t *set = add_set(c);
        c->is_good = c->is_good && put_class(set, ch);
        add(c, SET, c->out->set_count - 1);
    }
}

static void open_group(compiler *c)
{
    bool is_special = c->at < c->text.len && c->text.ptr[c->at] == '?';
    if (is_special)
        c->is_good = c->at + 1 < c->text.len && c->text.ptr[c->at + 1] == ':';
    c->at += is_special ? 2 : 0;
    if (c->depth + 1 >= MOST_GROUPS)
        c->is_good = false;
    else
        c->groups[++c->depth] = (group){ c->out->count, c->out->count, -1 };
    c->has_atom = false;
}

/* Let all branches before the last one jump to the end. */
static void end_branches(compiler *c)
{
    heft_name_pattern *p = c->out;
    for (int32_t i = c->groups[c->depth].pending; i >= 0;) {
        int32_t before = p->step[i].other;
        p->step[i].next = (int16_t)((int32_t)p->count - i);
        i = before;
    }
}

static void close_group(compiler *c)
{
    if (!c->depth) {
        c->is_good = false;
        return;
    }
    end_branches(c);
    c->atom = c->groups[c->depth--].start;
    c->has_atom = true;
}

static void begin_branch(compiler *c)
{
    group *g = &c->groups[c->depth];
    insert_split(c, g->branch, 1);
    int32_t at = (int32_t)c->out->count;
    add(c, JUMP, 0);
    if (!c->is_good)
        return;
    c->out->step[at].other = (int16_t)g->pending;
    g->pending = at;
    g->branch = c->out->count;
    c->has_atom = false;
}

/* ---- repetitions ---- */

static uint32_t read_number(compiler *c, uint32_t otherwise)
{
    uint32_t n = 0;
    size_t begin = c->at;
    for (; c->at < c->text.len && c->text.ptr[c->at] >= '0' && c->text.ptr[c->at] <= '9'; c->at++)
        n = n > MOST_REPEATS ? n : n * 10 + (uint32_t)(c->text.ptr[c->at] - '0');
    return c->at == begin ? otherwise : n;
}

static void repeat_forever(compiler *c, uint32_t atom)
{
    insert_split(c, atom, 1);
    add_jump(c, JUMP, (int32_t)atom);
}

/* Repeat the last atom from `least` to `most` times; `most` 0: without a bound. */
static void repeat(compiler *c, uint32_t least, uint32_t most)
{
    heft_name_pattern *p = c->out;
    uint32_t atom = c->atom, len = p->count - atom;
    if (least > MOST_REPEATS || most > MOST_REPEATS || (most && most < least)) {
        c->is_good = false;
        return;
    }
    for (uint32_t i = 1; i < least; i++)
        copy_steps(c, atom, len);
    if (!most) {
        if (least)
            add_jump(c, SPLIT, (int32_t)(p->count - len));
        else
            repeat_forever(c, atom);
        return;
    }
    for (uint32_t i = least; i < most && c->is_good; i++) {
        uint32_t from = p->count;
        if (i) {
            copy_steps(c, atom + !least, len);
            insert_split(c, from, 0);
        } else {
            insert_split(c, atom, 0);
        }
    }
}

static void read_repetition(compiler *c, char ch)
{
    uint32_t least = ch == '+', most = ch == '?';
    heft_str t = c->text;
    if (!c->has_atom) {
        c->is_good = false;
        return;
    }
    if (ch == '{') {
        least = read_number(c, 0);
        most = least;
        if (c->at < t.len && t.ptr[c->at] == ',') {
            c->at++;
            most = read_number(c, 0);
        }
        c->is_good = c->at < t.len && t.ptr[c->at++] == '}' && (most || t.ptr[c->at - 2] == ',');
    }
    if (c->is_good)
        repeat(c, least, most);
    c->has_atom = false;
    if (c->at < t.len && t.ptr[c->at] == '?') /* lazy: the same names match */
        c->at++;
}

/* ---- the whole ---- */

static void read_atom(compiler *c, char ch)
{
    c->atom = c->out->count;
    c->has_atom = true;
    if (ch == '.') {
        uint32_t *set = add_set(c);
        if (set)
            put_range(set, 0, 255);
        add(c, SET, c->out->set_count - 1);
    } else if (ch == '[') {
        read_set(c);
    } else if (ch == '\\') {
        read_escape(c);
    } else {
        add(c, ch == '^' ? BEGIN : ch == '$' ? END : BYTE, (uint8_t)ch);
        c->has_atom = ch != '^' && ch != '$';
    }
}

static void read_next(compiler *c)
{
    char ch = c->text.ptr[c->at++];
    if (ch == '(')
        open_group(c);
    else if (ch == ')')
        close_group(c);
    else if (ch == '|')
        begin_branch(c);
    else if (ch == '*' || ch == '+' || ch == '?' || ch == '{')
        read_repetition(c, ch);
    else
        read_atom(c, ch);
}

bool heft_pattern_compile(heft_name_pattern *out, heft_str text)
{
    compiler c = { .out = out, .text = text, .is_good = true };
    out->count = out->set_count = 0;
    c.groups[0] = (group){ 0, 0, -1 };
    while (c.is_good && c.at < text.len)
        read_next(&c);
    if (c.is_good)
        end_branches(&c);
    add(&c, ACCEPT, 0);
    return c.is_good && !c.depth;
}

/* ---- matching ---- */

typedef struct states {
    uint16_t step[HEFT_PATTERN_STEPS];
    uint32_t count;
    uint32_t seen[HEFT_PATTERN_STEPS / 32];
} states;

/* Add a step and those that it leads to without a byte of the name; return true at the end of the
 * pattern. */
static bool follow(states *s, const heft_name_pattern *p, uint32_t first, bool is_begin,
                   bool is_end)
{
    uint16_t stack[2 * HEFT_PATTERN_STEPS];
    uint32_t depth = 0;
    stack[depth++] = (uint16_t)first;
    while (depth) {
        uint32_t i = stack[--depth];
        const heft_pattern_step *step = &p->step[i];
        if (s->seen[i / 32] >> i % 32 & 1)
            continue;
        s->seen[i / 32] |= UINT32_C(1) << i % 32;
        if (step->kind == ACCEPT)
            return true;
        if (step->kind == BYTE || step->kind == SET)
            s->step[s->count++] = (uint16_t)i;
        else if (!(step->kind == BEGIN && !is_begin) && !(step->kind == END && !is_end))
            stack[depth++] = (uint16_t)((int32_t)i + step->next);
        if (step->kind == SPLIT)
            stack[depth++] = (uint16_t)((int32_t)i + step->other);
    }
    return false;
}

static void clear(states *s)
{
    s->count = 0;
    memset(s->seen, 0, sizeof s->seen);
}

bool heft_pattern_matches(const heft_name_pattern *p, heft_str name, uint64_t *work)
{
    states a, b, *now = &a, *next = &b;
    clear(now);
    bool is = follow(now, p, 0, true, !name.len);
    for (size_t at = 0; !is && at < name.len && now->count; at++) {
        uint8_t byte = (uint8_t)name.ptr[at];
        clear(next);
        if (*work < p->count) {
            *work = 0;
            return false;
        }
        *work -= p->count;
        for (uint32_t i = 0; !is && i < now->count; i++) {
            const heft_pattern_step *step = &p->step[now->step[i]];
            bool fits = step->kind == BYTE ? step->value == byte
                                           : p->set[step->value][byte / 32] >> byte % 32 & 1;
            is = fits && follow(next, p, now->step[i] + 1U, false, at + 1 == name.len);
        }
        states *old = now;
        now = next;
        next = old;
    }
    return is;
}
