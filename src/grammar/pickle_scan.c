/* pickle_scan.c - follows the opcodes of a pickle; knows the texts on the stack, not the objects.
 *
 * Whatever the scan cannot follow becomes an unknown value, and an import through an unknown value
 * is a finding: the scan may report too much, never too little.
 */
#include "grammar/pickle_scan.h"

#include "base/cursor.h"
#include "base/text.h"

typedef enum value_kind { ABSENT, UNKNOWN, TEXT, STORAGE_ID } value_kind;

typedef struct value {
    heft_str text;
    value_kind kind;
} value;

typedef struct scan {
    const heft_pickle_scanner *s;
    heft_cur c;
    heft_vec stack, marks, memo; /* value, uint32_t, value */
    heft_pickle_finding now;     /* offset and opcode of the current opcode */
    uint32_t memoized;           /* used entries of the memo: the number of the next MEMOIZE */
    bool memo_is_lost;           /* an entry could not be followed */
    bool is_broken, has_stopped, is_out_of_memory;
} scan;

typedef enum argument_kind { NO, BYTES, LINE, LENGTH } argument_kind;
typedef enum effect {
    NOTHING,
    PUSH,
    PUSH_TEXT,
    PUSH_QUOTED,
    TUPLE,
    MARK,
    POP,
    DUP,
    GET,
    PUT,
    MEMOIZE,
    STOP,
    GLOBAL,
    STACK_GLOBAL,
    EXTENSION,
    LINE_ID,
    STACK_ID
} effect;

enum { TO_MARK = 255 };

typedef struct opcode {
    uint8_t argument; /* argument_kind */
    uint8_t bytes;    /* bytes of the argument, or of the length before the argument */
    uint8_t pops, effect;
    bool exists;
} opcode;

static const opcode opcodes[256] = {
    ['('] = { NO, 0, 0, MARK, true },           [')'] = { NO, 0, 0, PUSH, true },
    ['.'] = { NO, 0, 1, STOP, true },           ['0'] = { NO, 0, 0, POP, true },
    ['1'] = { NO, 0, TO_MARK, NOTHING, true },  ['2'] = { NO, 0, 0, DUP, true },
    ['B'] = { LENGTH, 4, 0, PUSH, true },       ['C'] = { LENGTH, 1, 0, PUSH, true },
    ['F'] = { LINE, 0, 0, PUSH, true },         ['G'] = { BYTES, 8, 0, PUSH, true },
    ['I'] = { LINE, 0, 0, PUSH, true },         ['J'] = { BYTES, 4, 0, PUSH, true },
    ['K'] = { BYTES, 1, 0, PUSH, true },        ['L'] = { LINE, 0, 0, PUSH, true },
    ['M'] = { BYTES, 2, 0, PUSH, true },        ['N'] = { NO, 0, 0, PUSH, true },
    ['P'] = { LINE, 0, 0, LINE_ID, true },      ['Q'] = { NO, 0, 1, STACK_ID, true },
    ['R'] = { NO, 0, 2, PUSH, true },           ['S'] = { LINE, 0, 0, PUSH_QUOTED, true },
    ['T'] = { LENGTH, 4, 0, PUSH_TEXT, true },  ['U'] = { LENGTH, 1, 0, PUSH_TEXT, true },
    ['V'] = { LINE, 0, 0, PUSH_TEXT, true },    ['X'] = { LENGTH, 4, 0, PUSH_TEXT, true },
    [']'] = { NO, 0, 0, PUSH, true },           ['a'] = { NO, 0, 1, NOTHING, true },
    ['b'] = { NO, 0, 1, NOTHING, true },        ['c'] = { LINE, 0, 0, GLOBAL, true },
    ['d'] = { NO, 0, TO_MARK, PUSH, true },     ['e'] = { NO, 0, TO_MARK, NOTHING, true },
    ['g'] = { LINE, 0, 0, GET, true },          ['h'] = { BYTES, 1, 0, GET, true },
    ['i'] = { LINE, 0, TO_MARK, GLOBAL, true }, ['j'] = { BYTES, 4, 0, GET, true },
    ['l'] = { NO, 0, TO_MARK, PUSH, true },     ['o'] = { NO, 0, TO_MARK, PUSH, true },
    ['p'] = { LINE, 0, 0, PUT, true },          ['q'] = { BYTES, 1, 0, PUT, true },
    ['r'] = { BYTES, 4, 0, PUT, true },         ['s'] = { NO, 0, 2, NOTHING, true },
    ['t'] = { NO, 0, TO_MARK, TUPLE, true },    ['u'] = { NO, 0, TO_MARK, NOTHING, true },
    ['}'] = { NO, 0, 0, PUSH, true },           [0x80] = { BYTES, 1, 0, NOTHING, true },
    [0x81] = { NO, 0, 2, PUSH, true },          [0x82] = { BYTES, 1, 0, EXTENSION, true },
    [0x83] = { BYTES, 2, 0, EXTENSION, true },  [0x84] = { BYTES, 4, 0, EXTENSION, true },
    [0x85] = { NO, 0, 1, TUPLE, true },         [0x86] = { NO, 0, 2, TUPLE, true },
    [0x87] = { NO, 0, 3, TUPLE, true },         [0x88] = { NO, 0, 0, PUSH, true },
    [0x89] = { NO, 0, 0, PUSH, true },          [0x8A] = { LENGTH, 1, 0, PUSH, true },
    [0x8B] = { LENGTH, 4, 0, PUSH, true },      [0x8C] = { LENGTH, 1, 0, PUSH_TEXT, true },
    [0x8D] = { LENGTH, 8, 0, PUSH_TEXT, true }, [0x8E] = { LENGTH, 8, 0, PUSH, true },
    [0x8F] = { NO, 0, 0, PUSH, true },          [0x90] = { NO, 0, TO_MARK, NOTHING, true },
    [0x91] = { NO, 0, TO_MARK, PUSH, true },    [0x92] = { NO, 0, 3, PUSH, true },
    [0x93] = { NO, 0, 0, STACK_GLOBAL, true },  [0x94] = { NO, 0, 0, MEMOIZE, true },
    [0x95] = { BYTES, 8, 0, NOTHING, true },    [0x96] = { LENGTH, 8, 0, PUSH, true },
    [0x97] = { NO, 0, 0, PUSH, true },          [0x98] = { NO, 0, 0, NOTHING, true },
};

static void report(const scan *x, heft_pickle_danger danger, heft_str module, heft_str name)
{
    heft_pickle_finding f = x->now;
    f.danger = danger;
    f.module = module;
    f.name = name;
    x->s->found(x->s->context, &f);
}

static void report_break(scan *x)
{
    if (!x->is_broken)
        report(x, HEFT_PICKLE_BROKEN, (heft_str){ 0 }, (heft_str){ 0 });
    x->is_broken = true;
}

static void push(scan *x, value v)
{
    if (!heft_vec_add(x->s->memory, &x->stack, &v, sizeof v))
        x->is_out_of_memory = true;
}

static void push_unknown(scan *x)
{
    push(x, (value){ .kind = UNKNOWN });
}

static uint32_t latest_mark(const scan *x)
{
    return x->marks.len ? ((uint32_t *)x->marks.ptr)[x->marks.len - 1] : 0;
}

static void push_mark(scan *x)
{
    if (!heft_vec_add(x->s->memory, &x->marks, &x->stack.len, sizeof(uint32_t)))
        x->is_out_of_memory = true;
}

/* Pop the values of an opcode, and return the lowest popped value. */
static value pop(scan *x, uint32_t count)
{
    bool to_mark = count == TO_MARK;
    uint32_t above = x->stack.len - latest_mark(x);
    value lowest = { .kind = UNKNOWN };
    if (to_mark ? !x->marks.len : above < count) {
        report_break(x);
        return lowest;
    }
    uint32_t first = x->stack.len - (to_mark ? above : count);
    if (first < x->stack.len)
        lowest = ((value *)x->stack.ptr)[first];
    x->stack.len = first;
    if (to_mark)
        x->marks.len--;
    return lowest;
}

/* Python's POP removes the latest mark if no value lies above the mark. */
static void pop_one(scan *x)
{
    if (x->marks.len && x->stack.len == latest_mark(x))
        x->marks.len--;
    else
        pop(x, 1);
}

/* Take the rest of the line.  Python reads a last line without a newline, and then fails. */
static heft_str take_line(scan *x)
{
    heft_cur *c = &x->c;
    const uint8_t *start = c->p, *end = NULL;
    if (start < c->end)
        end = heft_str_seek(start, c->end, "\n", 1);
    if (!end)
        report_break(x);
    c->p = end ? end + 1 : c->end;
    return (heft_str){ (const char *)start, (size_t)((end ? end : c->end) - start) };
}

static uint64_t little_endian(heft_str s)
{
    uint64_t n = 0;
    for (size_t i = s.len; i--;)
        n = n << 8 | (uint8_t)s.ptr[i];
    return n;
}

static heft_str take_bytes(scan *x, uint64_t n)
{
    const uint8_t *p = heft_cur_take(&x->c, n);
    if (!p)
        report_break(x);
    return p ? (heft_str){ (const char *)p, (size_t)n } : (heft_str){ 0 };
}

static heft_str take_argument(scan *x, const opcode *o)
{
    if (o->argument == LINE)
        return take_line(x);
    heft_str s = take_bytes(x, o->bytes);
    return o->argument == LENGTH && !x->is_broken ? take_bytes(x, little_endian(s)) : s;
}

/* Get the number of a memo entry; return false for a number that no pickler writes at this offset.
 * The bound keeps the memo proportional to the bytes read. */
static bool memo_number(uint32_t *out, const scan *x, const opcode *o, heft_str s)
{
    enum { MOST_AT_START = 4096 }; /* pickles made by hand may skip numbers */
    uint64_t n = o->argument == LINE ? 0 : little_endian(s);
    for (size_t i = 0; o->argument == LINE && i < s.len; i++) {
        if (s.ptr[i] < '0' || s.ptr[i] > '9' || n > UINT32_MAX)
            return false;
        n = n * 10 + (uint64_t)(s.ptr[i] - '0');
    }
    *out = (uint32_t)n;
    return n <= x->now.at + MOST_AT_START && n < UINT32_MAX - 1 && (o->argument != LINE || s.len);
}

static void set_memo(scan *x, uint32_t number)
{
    static const value absent = { .kind = ABSENT };
    if (x->stack.len == latest_mark(x)) {
        report_break(x);
        return;
    }
    while (x->memo.len <= number)
        if (!heft_vec_add(x->s->memory, &x->memo, &absent, sizeof absent)) {
            x->is_out_of_memory = true;
            return;
        }
    value *entry = (value *)x->memo.ptr + number;
    x->memoized += entry->kind == ABSENT;
    *entry = ((value *)x->stack.ptr)[x->stack.len - 1];
}

static void put_memo(scan *x, const opcode *o, heft_str argument)
{
    uint32_t number;
    if (memo_number(&number, x, o, argument))
        set_memo(x, number);
    else
        x->memo_is_lost = true;
}

static void get_memo(scan *x, const opcode *o, heft_str argument)
{
    uint32_t number;
    bool is_known = memo_number(&number, x, o, argument) && !x->memo_is_lost;
    if (is_known && number < x->memo.len && ((value *)x->memo.ptr)[number].kind != ABSENT)
        push(x, ((value *)x->memo.ptr)[number]);
    else
        push_unknown(x);
}

static void import(scan *x, heft_str module, heft_str name)
{
    if (!heft_pickle_is_harmless(module, name, x->s->is_script))
        report(x, HEFT_PICKLE_IMPORT, module, name);
    push_unknown(x);
}

static void import_from_stack(scan *x)
{
    value name = pop(x, 1), module = pop(x, 1);
    if (x->is_broken)
        return;
    if (name.kind == TEXT && module.kind == TEXT) {
        import(x, module.text, name.text);
        return;
    }
    report(x, HEFT_PICKLE_HIDDEN, module.text, name.text);
    push_unknown(x);
}

static void import_lines(scan *x, heft_str module)
{
    heft_str name = take_line(x);
    if (!x->is_broken)
        import(x, module, name);
    else
        report(x, HEFT_PICKLE_IMPORT, module, name);
}

static void push_text(scan *x, heft_str s)
{
    /* S and V have escapes: a text with a backslash stays unknown. */
    const uint8_t *p = (const uint8_t *)s.ptr;
    bool is_plain = !s.len || !heft_str_seek(p, p + s.len, "\\", 1);
    push(x, (value){ .text = s, .kind = is_plain ? TEXT : UNKNOWN });
}

static void push_quoted(scan *x, heft_str s)
{
    bool is_quoted = s.len >= 2 && (s.ptr[0] == '\'' || s.ptr[0] == '"') &&
                     s.ptr[0] == s.ptr[s.len - 1];
    if (is_quoted)
        push_text(x, (heft_str){ s.ptr + 1, s.len - 2 });
    else
        push_unknown(x);
}

static void push_id(scan *x, bool is_storage)
{
    if (!is_storage && !x->is_broken)
        report(x, HEFT_PICKLE_FOREIGN_ID, (heft_str){ 0 }, (heft_str){ 0 });
    push_unknown(x);
}

static void push_tuple(scan *x, value first)
{
    bool is_id = first.kind == TEXT && heft_str_is(first.text, "storage");
    push(x, (value){ .kind = is_id ? STORAGE_ID : UNKNOWN });
}

static void duplicate(scan *x)
{
    if (x->stack.len > latest_mark(x))
        push(x, ((value *)x->stack.ptr)[x->stack.len - 1]);
    else
        report_break(x);
}

static void apply(scan *x, const opcode *o, heft_str argument)
{
    value lowest = o->pops ? pop(x, o->pops) : (value){ .kind = UNKNOWN };
    switch ((effect)o->effect) {
    case NOTHING:
        break;
    case PUSH:
        push_unknown(x);
        break;
    case PUSH_TEXT:
        push_text(x, argument);
        break;
    case PUSH_QUOTED:
        push_quoted(x, argument);
        break;
    case TUPLE:
        push_tuple(x, lowest);
        break;
    case MARK:
        push_mark(x);
        break;
    case POP:
        pop_one(x);
        break;
    case DUP:
        duplicate(x);
        break;
    case GET:
        get_memo(x, o, argument);
        break;
    case PUT:
        put_memo(x, o, argument);
        break;
    case MEMOIZE:
        set_memo(x, x->memoized);
        break;
    case STOP:
        x->has_stopped = true;
        break;
    case GLOBAL:
        import_lines(x, argument);
        break;
    case STACK_GLOBAL:
        import_from_stack(x);
        break;
    case EXTENSION:
        report(x, HEFT_PICKLE_EXTENSION, (heft_str){ 0 }, (heft_str){ 0 });
        push_unknown(x);
        break;
    case LINE_ID:
        push_id(x, false);
        break;
    case STACK_ID:
        push_id(x, lowest.kind == STORAGE_ID);
        break;
    }
}

static void step(scan *x)
{
    x->now = (heft_pickle_finding){ .at = heft_cur_pos(&x->c) };
    x->now.opcode = heft_cur_u8(&x->c);
    const opcode *o = &opcodes[x->now.opcode];
    if (x->c.st || !o->exists) {
        report_break(x);
        return;
    }
    heft_str argument = take_argument(x, o);
    if (!x->is_broken)
        apply(x, o, argument);
}

heft_status heft_pickle_scan(const heft_pickle_scanner *s, const void *bytes, uint64_t size,
                             uint64_t *end)
{
    heft_error err = { 0 };
    heft_window_bytes w = heft_window_of(bytes, size, &err);
    scan x = { .s = s, .c = heft_cur_open(&w.in, 0, size, "the pickle") };
    while (!x.is_broken && !x.has_stopped && !x.is_out_of_memory)
        step(&x);
    *end = heft_cur_pos(&x.c);
    heft_vec_free(s->memory, &x.stack, sizeof(value));
    heft_vec_free(s->memory, &x.marks, sizeof(uint32_t));
    heft_vec_free(s->memory, &x.memo, sizeof(value));
    return x.is_out_of_memory ? HEFT_E_NOMEM : HEFT_OK;
}
