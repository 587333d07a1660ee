/* pickle_scan.c - follows the opcodes of a pickle, as far as Python would.
 *
 * Whatever the scan cannot follow becomes an unknown value, and an import through an unknown value
 * is a finding: the scan may report too much, never too little.
 */
#include "grammar/pickle_scan.h"

#include "grammar/pickle_trace.h"
#include "grammar/torch_types.h"

typedef enum argument_kind { NO, BYTES, LINE, LENGTH } argument_kind;
typedef enum effect {
    NOTHING,
    PUSH, /* a value that is neither a text nor a function */
    PUSH_NONE,
    PUSH_TRUE,
    PUSH_FALSE,
    PUSH_INT,
    PUSH_FLOAT,
    PUSH_SIGNED,
    PUSH_UNSIGNED,
    PUSH_BYTES,
    PUSH_TEXT,
    PUSH_QUOTED,
    PUSH_UNICODE,
    PUSH_LIST,
    PUSH_TUPLE,
    PUSH_DICT,
    ADD, /* items of a list, a dictionary or a set */
    MARK,
    POP,
    DUP,
    GET,
    PUT,
    MEMOIZE,
    PROTOCOL,
    FRAME,
    STOP,
    BREAK, /* needs a buffer that no loader of files has */
    GLOBAL,
    STACK_GLOBAL,
    INSTANCE,
    CALL,
    CALL_OBJECT,
    CALL_KEYWORDS,
    BUILD,
    EXTENSION,
    LINE_ID,
    STACK_ID
} effect;

enum { TO_MARK = HEFT_TRACE_TO_MARK };

typedef struct opcode {
    uint8_t argument; /* argument_kind */
    uint8_t bytes;    /* bytes of the argument, or of the length before the argument */
    uint8_t pops, effect;
    bool exists;
} opcode;

static const opcode opcodes[256] = {
    ['('] = { NO, 0, 0, MARK, true },
    [')'] = { NO, 0, 0, PUSH_TUPLE, true },
    ['.'] = { NO, 0, 1, STOP, true },
    ['0'] = { NO, 0, 0, POP, true },
    ['1'] = { NO, 0, TO_MARK, NOTHING, true },
    ['2'] = { NO, 0, 0, DUP, true },
    ['B'] = { LENGTH, 4, 0, PUSH_BYTES, true },
    ['C'] = { LENGTH, 1, 0, PUSH_BYTES, true },
    ['F'] = { LINE, 0, 0, PUSH_FLOAT, true },
    ['G'] = { BYTES, 8, 0, PUSH, true },
    ['I'] = { LINE, 0, 0, PUSH_INT, true },
    ['J'] = { BYTES, 4, 0, PUSH_SIGNED, true },
    ['K'] = { BYTES, 1, 0, PUSH_UNSIGNED, true },
    ['L'] = { LINE, 0, 0, PUSH_INT, true },
    ['M'] = { BYTES, 2, 0, PUSH_UNSIGNED, true },
    ['N'] = { NO, 0, 0, PUSH_NONE, true },
    ['P'] = { LINE, 0, 0, LINE_ID, true },
    ['Q'] = { NO, 0, 1, STACK_ID, true },
    ['R'] = { NO, 0, 2, CALL, true },
    ['S'] = { LINE, 0, 0, PUSH_QUOTED, true },
    ['T'] = { LENGTH, 4, 0, PUSH_TEXT, true },
    ['U'] = { LENGTH, 1, 0, PUSH_TEXT, true },
    ['V'] = { LINE, 0, 0, PUSH_UNICODE, true },
    ['X'] = { LENGTH, 4, 0, PUSH_TEXT, true },
    [']'] = { NO, 0, 0, PUSH_LIST, true },
    ['a'] = { NO, 0, 1, ADD, true },
    ['b'] = { NO, 0, 1, BUILD, true },
    ['c'] = { LINE, 0, 0, GLOBAL, true },
    ['d'] = { NO, 0, TO_MARK, PUSH_DICT, true },
    ['e'] = { NO, 0, TO_MARK, ADD, true },
    ['g'] = { LINE, 0, 0, GET, true },
    ['h'] = { BYTES, 1, 0, GET, true },
    ['i'] = { LINE, 0, TO_MARK, INSTANCE, true },
    ['j'] = { BYTES, 4, 0, GET, true },
    ['l'] = { NO, 0, TO_MARK, PUSH_LIST, true },
    ['o'] = { NO, 0, TO_MARK, CALL_OBJECT, true },
    ['p'] = { LINE, 0, 0, PUT, true },
    ['q'] = { BYTES, 1, 0, PUT, true },
    ['r'] = { BYTES, 4, 0, PUT, true },
    ['s'] = { NO, 0, 2, ADD, true },
    ['t'] = { NO, 0, TO_MARK, PUSH_TUPLE, true },
    ['u'] = { NO, 0, TO_MARK, ADD, true },
    ['}'] = { NO, 0, 0, PUSH_DICT, true },
    [0x80] = { BYTES, 1, 0, PROTOCOL, true },
    [0x81] = { NO, 0, 2, CALL, true },
    [0x82] = { BYTES, 1, 0, EXTENSION, true },
    [0x83] = { BYTES, 2, 0, EXTENSION, true },
    [0x84] = { BYTES, 4, 0, EXTENSION, true },
    [0x85] = { NO, 0, 1, PUSH_TUPLE, true },
    [0x86] = { NO, 0, 2, PUSH_TUPLE, true },
    [0x87] = { NO, 0, 3, PUSH_TUPLE, true },
    [0x88] = { NO, 0, 0, PUSH_TRUE, true },
    [0x89] = { NO, 0, 0, PUSH_FALSE, true },
    [0x8A] = { LENGTH, 1, 0, PUSH_SIGNED, true },
    [0x8B] = { LENGTH, 4, 0, PUSH_SIGNED, true },
    [0x8C] = { LENGTH, 1, 0, PUSH_TEXT, true },
    [0x8D] = { LENGTH, 8, 0, PUSH_TEXT, true },
    [0x8E] = { LENGTH, 8, 0, PUSH_BYTES, true },
    [0x8F] = { NO, 0, 0, PUSH, true },
    [0x90] = { NO, 0, TO_MARK, ADD, true },
    [0x91] = { NO, 0, TO_MARK, PUSH, true },
    [0x92] = { NO, 0, 3, CALL_KEYWORDS, true },
    [0x93] = { NO, 0, 2, STACK_GLOBAL, true },
    [0x94] = { NO, 0, 0, MEMOIZE, true },
    [0x95] = { BYTES, 8, 0, FRAME, true },
    [0x96] = { LENGTH, 8, 0, PUSH, true },
    [0x97] = { NO, 0, 0, BREAK, true },
    [0x98] = { NO, 0, 0, NOTHING, true },
};

/* ---- arguments ---- */

/* Joblib goes on after the bytes of arrays, which follow the frame. */
static void leave_frame(heft_trace *x)
{
    uint64_t here = heft_cur_pos(&x->c);
    if (!x->jump_to || here < x->frame_end)
        return;
    heft_cur_skip(&x->c, here == x->frame_end ? x->jump_to - here : 0);
    x->jump_to = 0;
}

static heft_str take_bytes(heft_trace *x, uint64_t n)
{
    if (n)
        leave_frame(x);
    const uint8_t *p = heft_cur_take(&x->c, n);
    x->is_cut |= !p;
    if (!p)
        heft_trace_break(x);
    return p ? (heft_str){ (const char *)p, (size_t)n } : (heft_str){ 0 };
}

/* Take the rest of the line.  Python removes the last byte, which the end of the file may have
 * replaced for the newline. */
static heft_str take_line(heft_trace *x)
{
    heft_cur *c = &x->c;
    leave_frame(x);
    const uint8_t *start = c->p, *end = NULL;
    if (start < c->end)
        end = heft_str_seek(start, c->end, "\n", 1);
    x->is_cut |= !end;
    c->p = end ? end + 1 : c->end;
    if (c->p > start)
        return (heft_str){ (const char *)start, (size_t)(c->p - start) - 1 };
    heft_trace_break(x);
    return (heft_str){ 0 };
}

static heft_str take_argument(heft_trace *x, const opcode *o)
{
    if (o->argument == LINE)
        return take_line(x);
    heft_str s = take_bytes(x, o->bytes);
    return o->argument == LENGTH && !x->is_broken ? take_bytes(x, heft_trace_unsigned(s)) : s;
}

/* ---- imports ---- */

static heft_trace_value imported(heft_trace *x, heft_str module, heft_str name)
{
    heft_trace_import i = { heft_pickle_allow(module, name, x->s->is_script), module, name };
    heft_trace_value v = { .index = x->imports.len, .kind = HEFT_TRACE_IMPORT };
    if (!i.row) {
        heft_trace_report(x, HEFT_PICKLE_IMPORT, module, name);
        return (heft_trace_value){ .kind = HEFT_TRACE_UNKNOWN };
    }
    if (!heft_vec_add(x->s->memory, &x->imports, &i, sizeof i))
        x->is_out_of_memory = true;
    uint32_t bytes = heft_torch_storage_bytes(name);
    if (bytes && x->s->storage_class)
        x->s->storage_class(x->s->context, bytes);
    return v;
}

static void import_lines(heft_trace *x, heft_str module)
{
    heft_str name = take_line(x);
    if (!x->is_broken)
        heft_trace_push(x, imported(x, module, name));
}

static void import_from_stack(heft_trace *x, const heft_trace_value names[2])
{
    bool is_unknown = false;
    for (int i = 0; i < 2; i++) {
        bool may_be_text = names[i].kind == HEFT_TRACE_UNKNOWN ||
                           names[i].kind == HEFT_TRACE_OBJECT;
        if (names[i].kind != HEFT_TRACE_TEXT && !may_be_text) {
            heft_trace_break(x); /* names must be texts */
            return;
        }
        is_unknown |= may_be_text;
    }
    heft_str module = heft_trace_text(names), name = heft_trace_text(names + 1);
    if (!is_unknown) {
        heft_trace_push(x, imported(x, module, name));
        return;
    }
    heft_trace_report(x, HEFT_PICKLE_HIDDEN, module, name);
    heft_trace_push_kind(x, HEFT_TRACE_UNKNOWN);
}

/* INST: a class by two lines, called with the values above the mark. */
static void call_instance(heft_trace *x, heft_str module, const heft_trace_value *items, uint32_t n)
{
    heft_trace_value arguments = heft_trace_tuple(x, items, n);
    heft_str name = take_line(x);
    if (!x->is_broken)
        heft_trace_call(x, imported(x, module, name), arguments, false);
}

/* OBJ: a class and its arguments above the mark. */
static void call_object(heft_trace *x, const heft_trace_value *items, uint32_t n)
{
    heft_trace_value class = items[0];
    if (n)
        heft_trace_call(x, class, heft_trace_tuple(x, items + 1, n - 1), false);
    else
        heft_trace_break(x);
}

static void call_with_keywords(heft_trace *x, const heft_trace_value items[3])
{
    const heft_trace_object *dict = heft_trace_object_of(x, items + 2);
    heft_trace_value function = items[0], arguments = items[1];
    heft_trace_call(x, function, arguments, !dict || dict->len || dict->has_many);
}

/* PyTorch fails at an id that is no tuple, and at tuples that begin with an unknown word. */
static bool may_be_known_id(const heft_trace *x, const heft_trace_value *id)
{
    uint32_t n;
    const heft_trace_value *items = heft_trace_items(x, id, &n);
    if (!items)
        return id->kind == HEFT_TRACE_TUPLE || id->kind == HEFT_TRACE_OBJECT ||
               id->kind == HEFT_TRACE_UNKNOWN;
    return n && (items[0].kind == HEFT_TRACE_BYTES || items[0].kind == HEFT_TRACE_OBJECT ||
                 items[0].kind == HEFT_TRACE_UNKNOWN);
}

static void push_foreign_id(heft_trace *x, const heft_trace_value *id)
{
    bool is_known = id && may_be_known_id(x, id);
    heft_trace_report(x, is_known ? HEFT_PICKLE_ARGUMENTS : HEFT_PICKLE_FOREIGN_ID, (heft_str){ 0 },
                      (heft_str){ 0 });
    x->now.after_foreign_id |= !is_known;
    heft_trace_push_kind(x, HEFT_TRACE_UNKNOWN);
}

/* ("storage", …), or ("module", class, …) of old files, for which PyTorch returns the class. */
static void push_id(heft_trace *x, const heft_trace_value *id)
{
    uint32_t n = 0;
    const heft_trace_value *items = id ? heft_trace_items(x, id, &n) : NULL;
    heft_str word = items && n ? heft_trace_text(items) : (heft_str){ 0 };
    if (heft_str_is(word, "storage"))
        heft_trace_push_storage(x, items, n);
    else if (heft_str_is(word, "module") && n > 1)
        heft_trace_push(x, items[1]);
    else
        push_foreign_id(x, id);
}

/* ---- effects ---- */

static void push_number(heft_trace *x, int64_t n)
{
    heft_trace_push(x, (heft_trace_value){ .number = n, .kind = HEFT_TRACE_NUMBER });
}

static void push_bytes(heft_trace *x, heft_str s)
{
    heft_trace_push(x, (heft_trace_value){ .len = s.len < UINT32_MAX ? (uint32_t)s.len : UINT32_MAX,
                                           .kind = HEFT_TRACE_BYTES });
}

static void push_dict(heft_trace *x, const heft_trace_value *items, uint32_t n)
{
    heft_trace_value dict = heft_trace_new(x, HEFT_TRACE_DICT);
    if (!x->is_out_of_memory)
        heft_trace_add(x, &dict, items, n);
    heft_trace_push(x, dict);
}

static void add_items(heft_trace *x, const heft_trace_value *items, uint32_t n)
{
    const heft_trace_value *to = heft_trace_top(x);
    x->uses_unknown |= to && to->kind == HEFT_TRACE_UNKNOWN;
    if (to)
        heft_trace_add(x, to, items, n);
}

static void duplicate(heft_trace *x)
{
    const heft_trace_value *top = heft_trace_top(x);
    if (top) {
        heft_trace_value copy = *top;
        heft_trace_push(x, copy);
    }
}

/* Read the number of a memo entry: a line, or bytes. */
static bool memo_number(uint64_t *out, heft_trace *x, const opcode *o, heft_str s)
{
    *out = heft_trace_unsigned(s);
    if (o->argument != LINE || heft_trace_line_number(out, s))
        return true;
    heft_trace_break(x);
    return false;
}

static void use_memo(heft_trace *x, const opcode *o, heft_str argument)
{
    uint64_t number;
    if (!memo_number(&number, x, o, argument))
        return;
    if (o->effect == PUT)
        heft_trace_put(x, number);
    else
        heft_trace_get(x, number);
}

static void check_protocol(heft_trace *x, heft_str argument)
{
    enum { NEWEST = 5 };
    if (heft_trace_unsigned(argument) > NEWEST)
        heft_trace_break(x);
}

static void begin_frame(heft_trace *x, heft_str argument)
{
    leave_frame(x);
    uint64_t here = heft_cur_pos(&x->c), bytes = heft_trace_unsigned(argument);
    if (x->jump_to) { /* joblib reads no frame before the end of a frame that has arrays */
        heft_trace_break(x);
        return;
    }
    x->frame_end = bytes < x->c.limit - here ? here + bytes : x->c.limit;
}

/* Push a value without a call; return false if the opcode does something else.  items: the popped
 * values, the lowest first. */
static bool push_value(heft_trace *x, const opcode *o, heft_str argument,
                       const heft_trace_value *items, uint32_t n)
{
    switch ((effect)o->effect) {
    case PUSH:
        heft_trace_push_kind(x, HEFT_TRACE_PLAIN);
        break;
    case PUSH_NONE:
        heft_trace_push_kind(x, HEFT_TRACE_NONE);
        break;
    case PUSH_TRUE:
    case PUSH_FALSE:
        push_number(x, o->effect == PUSH_TRUE);
        break;
    case PUSH_INT:
    case PUSH_FLOAT:
        heft_trace_push_digits(x, argument, o->effect == PUSH_FLOAT);
        break;
    case PUSH_SIGNED:
        heft_trace_push_signed(x, argument);
        break;
    case PUSH_UNSIGNED:
        push_number(x, (int64_t)heft_trace_unsigned(argument));
        break;
    case PUSH_BYTES:
        push_bytes(x, argument);
        break;
    case PUSH_TEXT:
        heft_trace_push_text(x, argument);
        break;
    case PUSH_QUOTED:
        heft_trace_push_quoted(x, argument);
        break;
    case PUSH_UNICODE:
        heft_trace_push_unicode(x, argument);
        break;
    case PUSH_LIST:
        heft_trace_push_kind(x, HEFT_TRACE_LIST);
        break;
    case PUSH_TUPLE:
        heft_trace_push(x, heft_trace_tuple(x, items, n));
        break;
    case PUSH_DICT:
        push_dict(x, items, n);
        break;
    default:
        return false;
    }
    return true;
}

/* items: the popped values, the lowest first. */
static void apply(heft_trace *x, const opcode *o, heft_str argument, const heft_trace_value *items,
                  uint32_t n)
{
    if (push_value(x, o, argument, items, n))
        return;
    switch ((effect)o->effect) {
    case ADD:
        add_items(x, items, n);
        break;
    case MARK:
        heft_trace_push_mark(x);
        break;
    case POP:
        heft_trace_pop_one(x);
        break;
    case DUP:
        duplicate(x);
        break;
    case GET:
    case PUT:
        use_memo(x, o, argument);
        break;
    case MEMOIZE:
        heft_trace_put(x, x->memoized);
        break;
    case PROTOCOL:
        check_protocol(x, argument);
        break;
    case FRAME:
        begin_frame(x, argument);
        break;
    case STOP:
        x->has_stopped = true;
        break;
    case BREAK:
        heft_trace_break(x);
        break;
    case GLOBAL:
        import_lines(x, argument);
        break;
    case STACK_GLOBAL:
        import_from_stack(x, items);
        break;
    case INSTANCE:
        call_instance(x, argument, items, n);
        break;
    case CALL:
        heft_trace_call(x, items[0], items[1], false);
        break;
    case CALL_OBJECT:
        call_object(x, items, n);
        break;
    case CALL_KEYWORDS:
        call_with_keywords(x, items);
        break;
    case BUILD:
        heft_trace_build(x, items[0]);
        break;
    case EXTENSION:
        heft_trace_report(x, HEFT_PICKLE_EXTENSION, (heft_str){ 0 }, (heft_str){ 0 });
        heft_trace_push_kind(x, HEFT_TRACE_UNKNOWN);
        break;
    case LINE_ID:
        push_id(x, NULL);
        break;
    case STACK_ID:
        push_id(x, items);
        break;
    default:
        break;
    }
}

/* ---- steps ---- */

typedef struct nested {
    const heft_trace *outer;
    uint64_t at;
} nested;

static void report_nested(void *context, const heft_pickle_finding *f)
{
    const nested *n = context;
    heft_pickle_finding shifted = *f;
    shifted.at += n->at;
    n->outer->s->found(n->outer->s->context, &shifted);
}

/* An array of objects of joblib is a pickle of its own, which has no such arrays. */
static void scan_nested(heft_trace *x)
{
    nested n = { x, x->jump_to };
    heft_pickle_scanner s = { .memory = x->s->memory, .found = report_nested, .context = &n };
    heft_pickle_scanned done;
    x->has_nested = false;
    if (heft_pickle_scan(&done, &s, x->bytes + n.at, x->c.limit - n.at))
        x->is_out_of_memory = true;
    x->uses_unknown |= done.uses_unknown;
    x->jump_to += done.end;
}

static void step(heft_trace *x)
{
    static const heft_trace_value none[3] = { { .kind = HEFT_TRACE_ABSENT } };
    const heft_trace_value *items = none;
    uint32_t n = 0;
    x->now.at = heft_cur_pos(&x->c);
    x->now.opcode = heft_cur_u8(&x->c);
    const opcode *o = &opcodes[x->now.opcode];
    x->is_cut |= x->c.st != HEFT_OK;
    if (x->c.st || !o->exists) {
        heft_trace_break(x);
        return;
    }

    heft_str argument = take_argument(x, o);
    if (!x->is_broken && o->pops)
        items = heft_trace_pop(x, o->pops, &n);
    if (!x->is_broken)
        apply(x, o, argument, items, n);
    if (x->has_nested && !x->is_out_of_memory)
        scan_nested(x);
    leave_frame(x);
}

heft_status heft_pickle_scan(heft_pickle_scanned *out, const heft_pickle_scanner *s,
                             const void *bytes, uint64_t size)
{
    heft_error err = { 0 };
    heft_window_bytes w = heft_window_of(bytes, size, &err);
    heft_trace x = { .s = s, .bytes = bytes, .c = heft_cur_open(&w.in, 0, size, "the pickle") };
    x.texts.mem = s->memory;
    while (!x.is_broken && !x.has_stopped && !x.is_out_of_memory)
        step(&x);
    uint64_t end = heft_cur_pos(&x.c), taken = x.jump_to ? x.jump_to : x.frame_end;
    *out = (heft_pickle_scanned){ .end = end,
                                  .taken = taken > end ? taken : end,
                                  .is_cut = x.is_cut,
                                  .has_arrays = x.has_arrays,
                                  .uses_unknown = x.uses_unknown };
    heft_trace_free(&x);
    return x.is_out_of_memory ? HEFT_E_NOMEM : HEFT_OK;
}
