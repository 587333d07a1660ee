/* pickle_machine.c - values, stack, marks and containers of the pickle reader. */
#include "grammar/pickle_machine.h"

#include <string.h>

#include "base/error.h"

/* ---- errors ---- */

void heft_pickle_fail(heft_pickle *p, heft_status st, const char *fmt, ...)
{
    va_list ap;
    if (p->st)
        return;
    va_start(ap, fmt);
    heft_error_set_list(p->c.in->err, st, p->at, fmt, &ap);
    va_end(ap);
    p->st = st;
}

void heft_pickle_no_memory(heft_pickle *p)
{
    heft_pickle_fail(p, HEFT_E_NOMEM, "no memory: the values of %s take %U bytes", p->c.what,
                     p->arena->mem->used);
}

/* ---- values ---- */

bool heft_pickle_add(heft_pickle *p, heft_pickle_value v, uint32_t *number)
{
    heft_pickle_value *to = heft_vec_push(p->arena->mem, &p->values, sizeof *to);
    *number = p->values.len - 1;
    if (!to) {
        heft_pickle_no_memory(p);
        return false;
    }
    *to = v;
    to->at = (uint32_t)(p->at - p->c.base);
    return true;
}

void heft_pickle_push_existing(heft_pickle *p, uint32_t number)
{
    uint32_t *to = p->st ? NULL : heft_vec_push(p->arena->mem, &p->stack, sizeof *to);
    if (to)
        *to = number;
    else
        heft_pickle_no_memory(p);
}

void heft_pickle_push(heft_pickle *p, heft_pickle_value v)
{
    uint32_t number;
    if (!p->st && !p->c.st && heft_pickle_add(p, v, &number))
        heft_pickle_push_existing(p, number);
}

void heft_pickle_push_shared(heft_pickle *p, uint32_t *shared, heft_pickle_value v)
{
    if (*shared == HEFT_NONE && !heft_pickle_add(p, v, shared))
        return;
    heft_pickle_push_existing(p, *shared);
}

/* ---- the stack ---- */

bool heft_pickle_need(heft_pickle *p, uint32_t count)
{
    uint32_t have = p->stack.len - heft_pickle_latest_mark(p);
    if (have < count)
        heft_pickle_fail(p, HEFT_E_FORMAT, "%s: an opcode needs %U values, the stack has %U",
                         p->c.what, (uint64_t)count, (uint64_t)have);
    return have >= count;
}

uint32_t heft_pickle_pop(heft_pickle *p)
{
    return *heft_pickle_stack_at(p, --p->stack.len);
}

bool heft_pickle_pop_mark(heft_pickle *p, uint32_t *first)
{
    if (!p->marks.len) {
        heft_pickle_fail(p, HEFT_E_FORMAT, "%s: an opcode needs a mark, but the stack has none",
                         p->c.what);
        return false;
    }
    *first = ((uint32_t *)p->marks.ptr)[--p->marks.len];
    return true;
}

/* ---- items ---- */

enum { RUN_HEAD = 2 }; /* begins a run of edges: position of the next run, number of edges */

static uint32_t *edge_at(const heft_pickle *p, uint32_t i)
{
    return (uint32_t *)p->edges.ptr + i;
}

/* Begin a new run of edges at the end of the container's list of runs. */
static bool begin_run(heft_pickle *p, uint32_t container)
{
    heft_pickle_value *v = heft_pickle_at(p, container);
    uint32_t at = p->edges.len;
    if (!heft_vec_reserve(p->arena->mem, &p->edges, RUN_HEAD, sizeof at)) {
        heft_pickle_no_memory(p);
        return false;
    }
    p->edges.len += RUN_HEAD;
    edge_at(p, at)[0] = HEFT_NONE;
    edge_at(p, at)[1] = 0;
    if (v->as.items.count)
        *edge_at(p, v->as.items.last) = at;
    else
        v->as.items.first = at;
    v->as.items.last = at;
    return true;
}

void heft_pickle_move_items(heft_pickle *p, uint32_t container, uint32_t first)
{
    uint32_t count = p->stack.len - first;
    heft_pickle_value *v = heft_pickle_at(p, container);
    if (!count || p->st)
        return;
    uint32_t last = v->as.items.last;
    bool extends_run = v->as.items.count && last + RUN_HEAD + edge_at(p, last)[1] == p->edges.len;
    if (!extends_run && !begin_run(p, container))
        return;
    if (count > UINT32_MAX - v->as.items.count ||
        !heft_vec_reserve(p->arena->mem, &p->edges, count, sizeof first)) {
        heft_pickle_no_memory(p);
        return;
    }
    memcpy(edge_at(p, p->edges.len), heft_pickle_stack_at(p, first), count * sizeof first);
    p->edges.len += count;
    edge_at(p, v->as.items.last)[1] += count;
    v->as.items.count += count;
    p->stack.len = first;
}

void heft_pickle_push_container(heft_pickle *p, heft_pickle_kind kind, uint32_t first)
{
    uint32_t number;
    if (kind == HEFT_PICKLE_DICT && (p->stack.len - first) % 2) {
        heft_pickle_fail(p, HEFT_E_FORMAT, "%s: a dictionary has a key without a value", p->c.what);
        return;
    }
    if (p->st || !heft_pickle_add(p, heft_pickle_value_of(kind), &number))
        return;
    heft_pickle_move_items(p, number, first);
    heft_pickle_push_existing(p, number);
}
