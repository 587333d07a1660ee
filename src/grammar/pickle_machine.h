/* pickle_machine.h - what the files of the pickle machine share. */
#ifndef HEFT_PICKLE_MACHINE_H
#define HEFT_PICKLE_MACHINE_H
#include "grammar/pickle.h"

/* ---- pickle_machine.c ---- */

/* The first failure counts; it is about the opcode that is obeyed. */
void heft_pickle_fail(heft_pickle *p, heft_status st, const char *fmt, ...);
void heft_pickle_no_memory(heft_pickle *p);

static inline heft_pickle_value heft_pickle_value_of(heft_pickle_kind kind)
{
    return (heft_pickle_value){ .kind = (uint8_t)kind };
}
/* A new value onto the stack, unless something has failed. */
void heft_pickle_push(heft_pickle *p, heft_pickle_value v);
/* A value that is there already onto the stack. */
void heft_pickle_push_number(heft_pickle *p, uint32_t number);
/* One that is made once and pushed again, as None, the truth values and (): *single is its number. */
void heft_pickle_push_single(heft_pickle *p, uint32_t *single, heft_pickle_value v);

/* A value with a number of its own; false: something has failed. */
bool heft_pickle_add(heft_pickle *p, heft_pickle_value v, uint32_t *number);
static inline uint32_t *heft_pickle_stack_at(const heft_pickle *p, uint32_t i)
{
    return (uint32_t *)p->stack.ptr + i;
}
/* The place on the stack of the latest mark, or 0. */
static inline uint32_t heft_pickle_floor(const heft_pickle *p)
{
    return p->marks.len ? ((uint32_t *)p->marks.ptr)[p->marks.len - 1] : 0;
}
/* Whether so many values stand above the latest mark; a failure if not. */
bool heft_pickle_has(heft_pickle *p, uint32_t count);
uint32_t heft_pickle_pop(heft_pickle *p); /* the stack must have a value */
/* *first: the place of what stands above the latest mark, which is taken away. */
bool heft_pickle_pop_mark(heft_pickle *p, uint32_t *first);
/* Move the stack from `first` on to the items of a container. */
void heft_pickle_take_items(heft_pickle *p, uint32_t container, uint32_t first);
/* What stands on the stack from `first` on becomes the items of a new container. */
void heft_pickle_push_of(heft_pickle *p, heft_pickle_kind kind, uint32_t first);

/* ---- pickle_scalars.c ---- */

/* Up to the end of the line, which is passed. */
heft_str heft_pickle_take_line(heft_pickle *p);
/* A number of so many bytes, least first. */
uint64_t heft_pickle_take_number(heft_pickle *p, uint32_t bytes);
/* false: no integer of 64 bits. */
bool heft_pickle_decimal(int64_t *out, heft_str s);
bool heft_pickle_is_utf8(heft_pickle *p, heft_str s);

void heft_pickle_op_text(heft_pickle *p, uint32_t length_bytes);
void heft_pickle_op_old_text(heft_pickle *p, uint32_t length_bytes);
void heft_pickle_op_bytes(heft_pickle *p, uint32_t length_bytes);
void heft_pickle_op_escaped_text(heft_pickle *p, uint32_t arg);
void heft_pickle_op_quoted(heft_pickle *p, uint32_t arg);
void heft_pickle_op_single(heft_pickle *p, uint32_t kind);
void heft_pickle_op_bool(heft_pickle *p, uint32_t is_true);
void heft_pickle_op_int(heft_pickle *p, uint32_t bytes);
void heft_pickle_op_long(heft_pickle *p, uint32_t length_bytes);
void heft_pickle_op_decimal(heft_pickle *p, uint32_t letter);
void heft_pickle_op_float(heft_pickle *p, uint32_t arg);

/* ---- pickle_calls.c ---- */

void heft_pickle_op_global(heft_pickle *p, uint32_t arg);
void heft_pickle_op_stack_global(heft_pickle *p, uint32_t arg);
void heft_pickle_op_call(heft_pickle *p, uint32_t code);
void heft_pickle_op_old_call(heft_pickle *p, uint32_t letter);
void heft_pickle_op_build(heft_pickle *p, uint32_t arg);
void heft_pickle_op_persistent(heft_pickle *p, uint32_t is_line);

#endif
