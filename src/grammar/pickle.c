/* pickle.c - interprets a pickle: opcodes for containers and the memo, and the table of all
 * opcodes.
 *
 * The opcodes are documented in Lib/pickletools.py of Python 3.11.  Opcodes that differ only in a
 * number share a function; the table holds the number.
 */
#include "grammar/pickle_machine.h"

#include "base/checked_math.h"

static void push_global(heft_pickle *p, uint32_t module, uint32_t name)
{
    heft_pickle_value v = heft_pickle_value_of(HEFT_PICKLE_GLOBAL);
    v.as.global.module = module;
    v.as.global.name = name;
    heft_pickle_push(p, v);
}

static bool add_line(heft_pickle *p, uint32_t *number)
{
    heft_pickle_value v = heft_pickle_value_of(HEFT_PICKLE_TEXT);
    v.as.s = heft_pickle_take_line(p);
    return !p->st && !p->c.st && heft_pickle_is_utf8(p, v.as.s) && heft_pickle_add(p, v, number);
}

static void pickle_op_global(heft_pickle *p, uint32_t arg)
{
    (void)arg;
    uint32_t module, name;
    if (add_line(p, &module) && add_line(p, &name))
        push_global(p, module, name);
}

static void pickle_op_stack_global(heft_pickle *p, uint32_t arg)
{
    (void)arg;
    if (!heft_pickle_need(p, 2))
        return;
    uint32_t name = heft_pickle_pop(p), module = heft_pickle_pop(p);
    if (heft_pickle_is(p, name, HEFT_PICKLE_TEXT) && heft_pickle_is(p, module, HEFT_PICKLE_TEXT))
        push_global(p, module, name);
    else
        heft_pickle_fail(p, HEFT_E_FORMAT, "%s: the name of a global is not a text", p->c.what);
}

static void push_object(heft_pickle *p, uint32_t callable, uint32_t args, bool is_instance)
{
    heft_pickle_value v = heft_pickle_value_of(HEFT_PICKLE_OBJECT);
    v.as.object.callable = callable;
    v.as.object.args = args;
    v.as.object.state = v.as.object.content = HEFT_NONE;
    v.is_instance = is_instance;
    heft_pickle_push(p, v);
}

/* Opcode 0x92 (NEWOBJ_EX) has keyword arguments on top of the stack.  The arguments are dropped:
 * None or {} for all supported classes. */
static void pickle_op_call(heft_pickle *p, uint32_t code)
{
    if (!heft_pickle_need(p, code == 0x92 ? 3 : 2))
        return;
    if (code == 0x92)
        p->stack.len--;
    uint32_t args = heft_pickle_pop(p), callable = heft_pickle_pop(p);
    if (heft_pickle_is(p, args, HEFT_PICKLE_TUPLE))
        push_object(p, callable, args, code != 'R');
    else
        heft_pickle_fail(p, HEFT_E_FORMAT, "%s: the arguments of a call are not a tuple",
                         p->c.what);
}

/* 'i' names the class in the pickle; 'o' finds the class on the stack, below the arguments. */
static void pickle_op_old_call(heft_pickle *p, uint32_t letter)
{
    uint32_t first, callable = HEFT_NONE;
    if (letter == 'i') {
        pickle_op_global(p, 0);
        if (p->st || p->c.st)
            return;
        callable = heft_pickle_pop(p);
    }
    if (!heft_pickle_pop_mark(p, &first))
        return;
    if (letter == 'o' && first == p->stack.len) {
        heft_pickle_fail(p, HEFT_E_FORMAT, "%s: a call without a function", p->c.what);
        return;
    }
    if (letter == 'o')
        callable = *heft_pickle_stack_at(p, first++);
    heft_pickle_push_container(p, HEFT_PICKLE_TUPLE, first);
    if (p->st)
        return;
    uint32_t args = heft_pickle_pop(p);
    p->stack.len -= letter == 'o';
    push_object(p, callable, args, false); /* may name any function */
}

static void pickle_op_build(heft_pickle *p, uint32_t arg)
{
    (void)arg;
    if (!heft_pickle_need(p, 2))
        return;
    uint32_t state = heft_pickle_pop(p);
    heft_pickle_value *v = heft_pickle_at(p, *heft_pickle_stack_at(p, p->stack.len - 1));
    if (v->kind != HEFT_PICKLE_OBJECT)
        heft_pickle_fail(p, HEFT_E_FORMAT, "%s: a state is set on a value that is not an object",
                         p->c.what);
    else if (v->as.object.state != HEFT_NONE)
        heft_pickle_fail(p, HEFT_E_UNSUPPORTED, "%s: an object has two states", p->c.what);
    else
        v->as.object.state = state;
}

static void pickle_op_persistent(heft_pickle *p, uint32_t is_line)
{
    uint32_t id;
    heft_pickle_value v = heft_pickle_value_of(HEFT_PICKLE_PERSISTENT);
    if (is_line) {
        if (!add_line(p, &id))
            return;
    } else {
        if (!heft_pickle_need(p, 1))
            return;
        id = heft_pickle_pop(p);
    }
    v.as.id = id;
    heft_pickle_push(p, v);
}

enum { NEWEST = 5 };

typedef void op_function(heft_pickle *p, uint32_t arg);

typedef struct opcode {
    op_function *fn;
    uint32_t arg;
} opcode;

/* ---- containers ---- */

static void op_mark(heft_pickle *p, uint32_t arg)
{
    (void)arg;
    uint32_t *to = heft_vec_push(p->arena->mem, &p->marks, sizeof *to);
    if (to)
        *to = p->stack.len;
    else
        heft_pickle_no_memory(p);
}

static void op_empty(heft_pickle *p, uint32_t kind)
{
    heft_pickle_push(p, heft_pickle_value_of((heft_pickle_kind)kind));
}

static void op_tuple(heft_pickle *p, uint32_t count)
{
    if (heft_pickle_need(p, count))
        heft_pickle_push_container(p, HEFT_PICKLE_TUPLE, p->stack.len - count);
}

static void op_marked(heft_pickle *p, uint32_t kind)
{
    uint32_t first;
    if (heft_pickle_pop_mark(p, &first))
        heft_pickle_push_container(p, (heft_pickle_kind)kind, first);
}

/* Return the container that receives items of that kind: `container`, or the content of an object.
 * HEFT_NONE, after a failure, if the value accepts no such items. */
static uint32_t content_of(heft_pickle *p, uint32_t container, heft_pickle_kind kind)
{
    uint32_t made;
    heft_pickle_value *v = heft_pickle_at(p, container);
    if (v->kind == kind)
        return container;
    if (v->kind == HEFT_PICKLE_OBJECT && v->as.object.content == HEFT_NONE &&
        heft_pickle_add(p, heft_pickle_value_of(kind), &made))
        heft_pickle_at(p, container)->as.object.content = made;
    v = heft_pickle_at(p, container);
    if (v->kind == HEFT_PICKLE_OBJECT && heft_pickle_is(p, v->as.object.content, kind))
        return v->as.object.content;
    heft_pickle_fail(p, HEFT_E_FORMAT,
                     "%s: items are added to a value that is not a container of that kind",
                     p->c.what);
    return HEFT_NONE;
}

/* Move the values from stack position `first` on to the container below. */
static void add_items(heft_pickle *p, heft_pickle_kind kind, uint32_t first)
{
    if (first <= heft_pickle_latest_mark(p)) {
        heft_pickle_fail(p, HEFT_E_FORMAT, "%s: items without a container", p->c.what);
        return;
    }
    if (kind == HEFT_PICKLE_DICT && (p->stack.len - first) % 2) {
        heft_pickle_fail(p, HEFT_E_FORMAT, "%s: a key without a value", p->c.what);
        return;
    }
    uint32_t to = content_of(p, *heft_pickle_stack_at(p, first - 1), kind);
    if (to != HEFT_NONE)
        heft_pickle_move_items(p, to, first);
}

static void op_add_one(heft_pickle *p, uint32_t kind)
{
    uint32_t count = kind == HEFT_PICKLE_DICT ? 2 : 1;
    if (heft_pickle_need(p, count + 1))
        add_items(p, (heft_pickle_kind)kind, p->stack.len - count);
}

static void op_add_marked(heft_pickle *p, uint32_t kind)
{
    uint32_t first;
    if (heft_pickle_pop_mark(p, &first))
        add_items(p, (heft_pickle_kind)kind, first);
}

/* ---- the stack and the memo ---- */

static void op_pop(heft_pickle *p, uint32_t arg)
{
    (void)arg;
    if (p->marks.len && p->stack.len == heft_pickle_latest_mark(p))
        p->marks.len--;
    else if (heft_pickle_need(p, 1))
        p->stack.len--;
}

static void op_pop_mark(heft_pickle *p, uint32_t arg)
{
    (void)arg;
    uint32_t first;
    if (heft_pickle_pop_mark(p, &first))
        p->stack.len = first;
}

static void op_dup(heft_pickle *p, uint32_t arg)
{
    (void)arg;
    if (heft_pickle_need(p, 1))
        heft_pickle_push_existing(p, *heft_pickle_stack_at(p, p->stack.len - 1));
}

/* Take the number of a memo entry: `bytes` bytes, or a decimal line if bytes is 0. */
static bool take_memo_number(heft_pickle *p, uint32_t bytes, uint64_t *number)
{
    int64_t i = 0;
    if (bytes) {
        *number = heft_pickle_take_number(p, bytes);
    } else {
        bool is_number = heft_pickle_decimal(&i, heft_pickle_take_line(p)) && i >= 0;
        *number = (uint64_t)i;
        if (!is_number && !p->c.st)
            heft_pickle_fail(p, HEFT_E_FORMAT, "%s: the number of a memo entry is not an integer",
                             p->c.what);
    }
    return !p->st && !p->c.st;
}

/* Writers number memo entries consecutively, and each entry takes at least a byte: refuse larger
 * numbers before reserving memory. */
static void memoize(heft_pickle *p, uint64_t number)
{
    enum { SPARE = 255 }; /* for writers that do not count from 0 */
    uint64_t limit = p->at - p->c.base + SPARE;
    if (!heft_pickle_need(p, 1))
        return;
    if (number > limit || number >= HEFT_NONE) {
        heft_pickle_fail(p, HEFT_E_FORMAT, "%s: memo entry %U after only %U bytes", p->c.what,
                         number, limit - SPARE);
        return;
    }
    if (number >= p->memo.len) {
        uint32_t more = (uint32_t)number + 1 - p->memo.len;
        if (!heft_vec_reserve(p->arena->mem, &p->memo, more, sizeof more)) {
            heft_pickle_no_memory(p);
            return;
        }
        memset((uint32_t *)p->memo.ptr + p->memo.len, 0xFF, more * sizeof more);
        p->memo.len += more;
    }
    uint32_t *to = (uint32_t *)p->memo.ptr + number;
    p->memoized += *to == HEFT_NONE;
    *to = *heft_pickle_stack_at(p, p->stack.len - 1);
}

static void op_put(heft_pickle *p, uint32_t bytes)
{
    uint64_t number;
    if (take_memo_number(p, bytes, &number))
        memoize(p, number);
}

static void op_memoize(heft_pickle *p, uint32_t arg)
{
    (void)arg;
    memoize(p, p->memoized);
}

static void op_get(heft_pickle *p, uint32_t bytes)
{
    uint64_t number;
    if (!take_memo_number(p, bytes, &number))
        return;
    uint32_t v = number < p->memo.len ? ((uint32_t *)p->memo.ptr)[number] : HEFT_NONE;
    if (v == HEFT_NONE)
        heft_pickle_fail(p, HEFT_E_FORMAT, "%s: memo entry %U was never stored", p->c.what, number);
    else
        heft_pickle_push_existing(p, v);
}

/* ---- the rest ---- */

static void op_proto(heft_pickle *p, uint32_t arg)
{
    (void)arg;
    uint32_t version = heft_cur_u8(&p->c);
    if (version > NEWEST)
        heft_pickle_fail(p, HEFT_E_UNSUPPORTED,
                         "%s: pickle protocol %U is newer than 5, the latest supported", p->c.what,
                         (uint64_t)version);
}

static void op_frame(heft_pickle *p, uint32_t arg)
{
    (void)arg;
    uint64_t bytes = heft_cur_u64(&p->c), left = heft_cur_left(&p->c);
    if (bytes > left)
        heft_pickle_fail(p, HEFT_E_FORMAT, "%s: a frame has %U bytes, only %U are left", p->c.what,
                         bytes, left);
}

static void op_stop(heft_pickle *p, uint32_t arg)
{
    (void)arg;
    if (!heft_pickle_need(p, 1))
        return;
    p->root = heft_pickle_pop(p);
    p->stopped = true;
}

static void op_unsupported(heft_pickle *p, uint32_t arg)
{
    (void)arg;
    heft_pickle_fail(p, HEFT_E_UNSUPPORTED,
                     "%s: needs an extension registry or buffers outside of the file", p->c.what);
}

static const opcode opcodes[256] = {
    ['('] = { op_mark, 0 },
    [')'] = { heft_pickle_op_shared, HEFT_PICKLE_TUPLE },
    ['.'] = { op_stop, 0 },
    ['0'] = { op_pop, 0 },
    ['1'] = { op_pop_mark, 0 },
    ['2'] = { op_dup, 0 },
    ['B'] = { heft_pickle_op_bytes, 4 },
    ['C'] = { heft_pickle_op_bytes, 1 },
    ['F'] = { heft_pickle_op_decimal, 'F' },
    ['G'] = { heft_pickle_op_float, 0 },
    ['I'] = { heft_pickle_op_decimal, 'I' },
    ['J'] = { heft_pickle_op_int, 4 },
    ['K'] = { heft_pickle_op_int, 1 },
    ['L'] = { heft_pickle_op_decimal, 'L' },
    ['M'] = { heft_pickle_op_int, 2 },
    ['N'] = { heft_pickle_op_shared, HEFT_PICKLE_NONE },
    ['P'] = { pickle_op_persistent, 1 },
    ['Q'] = { pickle_op_persistent, 0 },
    ['R'] = { pickle_op_call, 'R' },
    ['S'] = { heft_pickle_op_quoted, 0 },
    ['T'] = { heft_pickle_op_old_text, 4 },
    ['U'] = { heft_pickle_op_old_text, 1 },
    ['V'] = { heft_pickle_op_escaped_text, 0 },
    ['X'] = { heft_pickle_op_text, 4 },
    [']'] = { op_empty, HEFT_PICKLE_LIST },
    ['a'] = { op_add_one, HEFT_PICKLE_LIST },
    ['b'] = { pickle_op_build, 0 },
    ['c'] = { pickle_op_global, 0 },
    ['d'] = { op_marked, HEFT_PICKLE_DICT },
    ['e'] = { op_add_marked, HEFT_PICKLE_LIST },
    ['g'] = { op_get, 0 },
    ['h'] = { op_get, 1 },
    ['i'] = { pickle_op_old_call, 'i' },
    ['j'] = { op_get, 4 },
    ['l'] = { op_marked, HEFT_PICKLE_LIST },
    ['o'] = { pickle_op_old_call, 'o' },
    ['p'] = { op_put, 0 },
    ['q'] = { op_put, 1 },
    ['r'] = { op_put, 4 },
    ['s'] = { op_add_one, HEFT_PICKLE_DICT },
    ['t'] = { op_marked, HEFT_PICKLE_TUPLE },
    ['u'] = { op_add_marked, HEFT_PICKLE_DICT },
    ['}'] = { op_empty, HEFT_PICKLE_DICT },
    [0x80] = { op_proto, 0 },
    [0x81] = { pickle_op_call, 0x81 },
    [0x82] = { op_unsupported, 0 },
    [0x83] = { op_unsupported, 0 },
    [0x84] = { op_unsupported, 0 },
    [0x85] = { op_tuple, 1 },
    [0x86] = { op_tuple, 2 },
    [0x87] = { op_tuple, 3 },
    [0x88] = { heft_pickle_op_bool, true },
    [0x89] = { heft_pickle_op_bool, false },
    [0x8A] = { heft_pickle_op_long, 1 },
    [0x8B] = { heft_pickle_op_long, 4 },
    [0x8C] = { heft_pickle_op_text, 1 },
    [0x8D] = { heft_pickle_op_text, 8 },
    [0x8E] = { heft_pickle_op_bytes, 8 },
    [0x8F] = { op_empty, HEFT_PICKLE_SET },
    [0x90] = { op_add_marked, HEFT_PICKLE_SET },
    [0x91] = { op_marked, HEFT_PICKLE_SET },
    [0x92] = { pickle_op_call, 0x92 },
    [0x93] = { pickle_op_stack_global, 0 },
    [0x94] = { op_memoize, 0 },
    [0x95] = { op_frame, 0 },
    [0x96] = { heft_pickle_op_bytes, 8 },
    [0x97] = { op_unsupported, 0 },
    [0x98] = { op_unsupported, 0 },
};

heft_status heft_pickle_read(heft_pickle *out, heft_window *in, heft_range where, heft_arena *arena,
                             const char *what)
{
    *out = (heft_pickle){ .c = heft_cur_open(in, where.offset, where.length, what),
                          .arena = arena,
                          .decoded_from = HEFT_NOWHERE,
                          .none = HEFT_NONE,
                          .truth = { HEFT_NONE, HEFT_NONE },
                          .empty_tuple = HEFT_NONE,
                          .root = HEFT_NONE };
    while (!out->st && !out->c.st && !out->stopped) {
        out->at = heft_cur_pos(&out->c);
        if (out->at - where.offset > UINT32_MAX)
            heft_pickle_fail(out, HEFT_E_LIMIT, "%s: the pickle is larger than 4 GiB", what);
        const opcode *o = &opcodes[heft_cur_u8(&out->c)];
        if (out->c.st)
            break;
        if (o->fn)
            o->fn(out, o->arg);
        else
            heft_pickle_fail(out, HEFT_E_FORMAT, "%s: 0x%X is not a pickle opcode", what,
                             (uint64_t)(uint8_t)out->c.p[-1]);
    }
    return out->c.st ? out->c.st : out->st;
}

void heft_pickle_free(heft_pickle *p)
{
    if (!p->arena)
        return;
    heft_memory *m = p->arena->mem;
    heft_vec_free(m, &p->values, sizeof(heft_pickle_value));
    heft_vec_free(m, &p->edges, sizeof(uint32_t));
    heft_vec_free(m, &p->stack, sizeof(uint32_t));
    heft_vec_free(m, &p->marks, sizeof(uint32_t));
    heft_vec_free(m, &p->memo, sizeof(uint32_t));
}
