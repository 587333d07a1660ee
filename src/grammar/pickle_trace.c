/* pickle_trace.c - the stack, the memo, and the values of a scan. */
#include "grammar/pickle_trace.h"
#include "grammar/torch_types.h"

enum {
    MOST_TUPLE = 64,     /* items of a tuple that are kept; arguments are fewer */
    MOST_DICT = 512,     /* keys and values of a dictionary that are kept */
    MOST_AT_START = 4096 /* pickles made by hand may skip numbers of the memo */
};

/* ---- findings ---- */

void heft_trace_report(const heft_trace *x, heft_pickle_danger danger, heft_str module,
                       heft_str name)
{
    heft_pickle_finding f = x->now;
    f.danger = danger;
    f.module = module;
    f.name = name;
    x->s->found(x->s->context, &f);
}

void heft_trace_break(heft_trace *x)
{
    if (!x->is_broken)
        heft_trace_report(x, HEFT_PICKLE_BROKEN, (heft_str){ 0 }, (heft_str){ 0 });
    x->is_broken = true;
}

/* ---- the stack ---- */

void heft_trace_push(heft_trace *x, heft_trace_value v)
{
    if (!heft_vec_add(x->s->memory, &x->stack, &v, sizeof v))
        x->is_out_of_memory = true;
}

void heft_trace_push_kind(heft_trace *x, heft_trace_kind kind)
{
    heft_trace_push(x, (heft_trace_value){ .kind = (uint8_t)kind });
}

static uint32_t latest_mark(const heft_trace *x)
{
    return x->marks.len ? ((uint32_t *)x->marks.ptr)[x->marks.len - 1] : 0;
}

void heft_trace_push_mark(heft_trace *x)
{
    if (!heft_vec_add(x->s->memory, &x->marks, &x->stack.len, sizeof(uint32_t)))
        x->is_out_of_memory = true;
}

const heft_trace_value *heft_trace_pop(heft_trace *x, uint32_t count, uint32_t *popped)
{
    static const heft_trace_value none = { .kind = HEFT_TRACE_UNKNOWN };
    bool to_mark = count == HEFT_TRACE_TO_MARK;
    uint32_t above = x->stack.len - latest_mark(x);
    *popped = 0;
    if (to_mark ? !x->marks.len : above < count) {
        heft_trace_break(x);
        return NULL;
    }

    *popped = to_mark ? above : count;
    x->stack.len -= *popped;
    x->marks.len -= to_mark;
    return *popped ? (heft_trace_value *)x->stack.ptr + x->stack.len : &none;
}

void heft_trace_pop_one(heft_trace *x)
{
    uint32_t popped;
    if (x->marks.len && x->stack.len == latest_mark(x))
        x->marks.len--;
    else
        heft_trace_pop(x, 1, &popped);
}

heft_trace_value *heft_trace_top(heft_trace *x)
{
    if (x->stack.len > latest_mark(x))
        return (heft_trace_value *)x->stack.ptr + x->stack.len - 1;
    heft_trace_break(x);
    return NULL;
}

/* ---- the memo ---- */

typedef struct odd_entry {
    uint64_t number;
    heft_trace_value value;
} odd_entry;

static odd_entry *find_odd(const heft_trace *x, uint64_t number)
{
    for (uint32_t i = 0; i < x->odd_memo.len; i++)
        if (((odd_entry *)x->odd_memo.ptr)[i].number == number)
            return (odd_entry *)x->odd_memo.ptr + i;
    return NULL;
}

/* The numbers of picklers grow with the offset; this bound keeps the memo proportional to the bytes
 * read.  A few other numbers are kept in a list. */
static bool is_usual(const heft_trace *x, uint64_t number)
{
    return number <= x->now.at + MOST_AT_START && number < UINT32_MAX - 1;
}

static void put_odd(heft_trace *x, uint64_t number, heft_trace_value v)
{
    enum { MOST_ODD = 32 };
    odd_entry *entry = find_odd(x, number), added = { number, v };
    if (entry) {
        entry->value = v;
        return;
    }
    if (x->odd_memo.len == MOST_ODD || number == UINT64_MAX) {
        heft_trace_report(x, HEFT_PICKLE_HIDDEN, (heft_str){ 0 }, (heft_str){ 0 });
        return;
    }
    x->memoized++;
    if (!heft_vec_add(x->s->memory, &x->odd_memo, &added, sizeof added))
        x->is_out_of_memory = true;
}

void heft_trace_put(heft_trace *x, uint64_t number)
{
    static const heft_trace_value absent = { .kind = HEFT_TRACE_ABSENT };
    const heft_trace_value *top = heft_trace_top(x);
    if (!top)
        return;
    if (!is_usual(x, number) || find_odd(x, number)) {
        put_odd(x, number, *top);
        return;
    }

    while (x->memo.len <= number)
        if (!heft_vec_add(x->s->memory, &x->memo, &absent, sizeof absent)) {
            x->is_out_of_memory = true;
            return;
        }
    heft_trace_value *entry = (heft_trace_value *)x->memo.ptr + number;
    x->memoized += entry->kind == HEFT_TRACE_ABSENT;
    *entry = *top;
}

void heft_trace_get(heft_trace *x, uint64_t number)
{
    const odd_entry *odd = find_odd(x, number);
    const heft_trace_value *v = odd ? &odd->value : NULL;
    if (!odd && number < x->memo.len)
        v = (heft_trace_value *)x->memo.ptr + number;
    if (v && v->kind != HEFT_TRACE_ABSENT)
        heft_trace_push(x, *v);
    else
        heft_trace_break(x);
}

/* ---- values with a content ---- */

/* Copy values to the kept items; return false if there are too many, or no memory. */
static bool keep(heft_trace *x, uint32_t *first, const heft_trace_value *items, uint32_t n,
                 uint32_t most)
{
    *first = x->items.len;
    if (n > most)
        return false;
    x->is_out_of_memory |= !heft_vec_reserve(x->s->memory, &x->items, n, sizeof *items);
    for (uint32_t i = 0; i < n && !x->is_out_of_memory; i++)
        heft_vec_add(x->s->memory, &x->items, items + i, sizeof *items);
    return !x->is_out_of_memory;
}

heft_trace_value heft_trace_tuple(heft_trace *x, const heft_trace_value *items, uint32_t n)
{
    uint32_t first;
    bool is_kept = keep(x, &first, items, n, MOST_TUPLE);
    return (heft_trace_value){ .index = first,
                               .len = is_kept ? n : (uint32_t)HEFT_TRACE_MANY,
                               .kind = HEFT_TRACE_TUPLE };
}

const heft_trace_value *heft_trace_items(const heft_trace *x, const heft_trace_value *v,
                                         uint32_t *n)
{
    static const heft_trace_value none = { .kind = HEFT_TRACE_ABSENT };
    *n = 0;
    if (v->kind != HEFT_TRACE_TUPLE || v->len == HEFT_TRACE_MANY)
        return NULL;
    *n = v->len;
    return v->len ? (heft_trace_value *)x->items.ptr + v->index : &none;
}

heft_trace_value heft_trace_new(heft_trace *x, heft_trace_kind kind)
{
    heft_trace_value v = { .index = x->objects.len, .kind = (uint8_t)kind };
    heft_trace_object object = { .first = 0 };
    if (!heft_vec_add(x->s->memory, &x->objects, &object, sizeof object))
        x->is_out_of_memory = true;
    return v;
}

heft_trace_object *heft_trace_object_of(const heft_trace *x, const heft_trace_value *v)
{
    bool has = v->kind == HEFT_TRACE_DICT || v->kind == HEFT_TRACE_DTYPE ||
               v->kind == HEFT_TRACE_WRAPPER;
    return has && v->index < x->objects.len ? (heft_trace_object *)x->objects.ptr + v->index : NULL;
}

/* Python calls these methods of an object by itself, also if the state of the object names them. */
static bool is_special(const heft_trace_value *key)
{
    heft_str name = heft_trace_text(key);
    return heft_str_begins(name, "__") || heft_str_is(name, "append") ||
           heft_str_is(name, "extend") || heft_str_is(name, "add");
}

void heft_trace_add(heft_trace *x, const heft_trace_value *dict, const heft_trace_value *items,
                    uint32_t n)
{
    heft_trace_object *d = dict->kind == HEFT_TRACE_DICT ? heft_trace_object_of(x, dict) : NULL;
    if (!d || !n)
        return;
    for (uint32_t i = 0; i < n; i += 2)
        d->has_special_key |= is_special(items + i);
    if (d->is_fixed)
        heft_trace_report(x, HEFT_PICKLE_ARGUMENTS, heft_lit("numpy"), heft_lit("dtype"));

    bool is_first = !d->len && !d->has_many && n % 2 == 0;
    d->has_many = !is_first || !keep(x, &d->first, items, n, MOST_DICT);
    d->len = d->has_many ? 0 : n;
}

const heft_trace_value *heft_trace_find(const heft_trace *x, const heft_trace_value *dict,
                                        const char *key)
{
    const heft_trace_object *d = heft_trace_object_of(x, dict);
    const heft_trace_value *items = x->items.ptr;
    for (uint32_t i = d ? d->len : 0; i; i -= 2)
        if (heft_str_is(heft_trace_text(items + d->first + i - 2), key))
            return items + d->first + i - 1;
    return NULL;
}

const heft_trace_import *heft_trace_import_of(const heft_trace *x, const heft_trace_value *v)
{
    return v->kind == HEFT_TRACE_IMPORT && v->index < x->imports.len
               ? (const heft_trace_import *)x->imports.ptr + v->index
               : NULL;
}

heft_str heft_trace_text(const heft_trace_value *v)
{
    return v->kind == HEFT_TRACE_TEXT ? (heft_str){ v->text, v->len } : (heft_str){ "", 0 };
}

bool heft_trace_is_number(const heft_trace_value *v, int64_t n)
{
    return v->kind == HEFT_TRACE_NUMBER && v->number == n;
}

bool heft_trace_is_bytes(const heft_trace_value *v)
{
    return v->kind == HEFT_TRACE_BYTES || v->kind == HEFT_TRACE_TEXT;
}

void heft_trace_free(heft_trace *x)
{
    heft_memory *m = x->s->memory;
    heft_vec_free(m, &x->stack, sizeof(heft_trace_value));
    heft_vec_free(m, &x->marks, sizeof(uint32_t));
    heft_vec_free(m, &x->memo, sizeof(heft_trace_value));
    heft_vec_free(m, &x->items, sizeof(heft_trace_value));
    heft_vec_free(m, &x->imports, sizeof(heft_trace_import));
    heft_vec_free(m, &x->objects, sizeof(heft_trace_object));
    heft_vec_free(m, &x->odd_memo, sizeof(odd_entry));
    heft_arena_free(&x->texts);
}

/* ---- storages of PyTorch ---- */

static uint32_t element_bytes(const heft_trace *x, const heft_trace_value *class)
{
    const heft_trace_import *i = heft_trace_import_of(x, class);
    return i ? heft_torch_storage_bytes(i->name) : 0;
}

static void add(heft_trace *x, const heft_trace_value *key, uint32_t bytes)
{
    const heft_pickle_scanner *s = x->s;
    bool is_text = key && key->kind == HEFT_TRACE_TEXT;
    if (s->storage && !s->storage(s->context, is_text ? heft_trace_text(key) : (heft_str){ "", 0 },
                                  is_text ? bytes : 0))
        x->is_out_of_memory = true;
}

void heft_trace_odd_storage(heft_trace *x)
{
    add(x, NULL, 0);
}

void heft_trace_push_storage(heft_trace *x, const heft_trace_value *id, uint32_t n)
{
    enum { CLASS = 1, KEY, VIEW = 5 };
    uint32_t bytes = n > CLASS ? element_bytes(x, id + CLASS) : 0, items = 0;
    add(x, n > KEY ? id + KEY : NULL, bytes);
    if (n > VIEW && id[VIEW].kind != HEFT_TRACE_NONE) {
        const heft_trace_value *view = heft_trace_items(x, id + VIEW, &items);
        add(x, items ? view : NULL, bytes);
    }
    heft_trace_push(x, (heft_trace_value){ .len = 1, .kind = HEFT_TRACE_OBJECT });
}
