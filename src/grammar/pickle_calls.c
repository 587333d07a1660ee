/* pickle_calls.c - opcodes for functions and calls: a call is recorded, never made. */
#include "grammar/pickle_machine.h"

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

void heft_pickle_op_global(heft_pickle *p, uint32_t arg)
{
    (void)arg;
    uint32_t module, name;
    if (add_line(p, &module) && add_line(p, &name))
        push_global(p, module, name);
}

void heft_pickle_op_stack_global(heft_pickle *p, uint32_t arg)
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
void heft_pickle_op_call(heft_pickle *p, uint32_t code)
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
void heft_pickle_op_old_call(heft_pickle *p, uint32_t letter)
{
    uint32_t first, callable = HEFT_NONE;
    if (letter == 'i') {
        heft_pickle_op_global(p, 0);
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

void heft_pickle_op_build(heft_pickle *p, uint32_t arg)
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

void heft_pickle_op_persistent(heft_pickle *p, uint32_t is_line)
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
