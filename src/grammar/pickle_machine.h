/* pickle_machine.h - internals of the pickle reader: values, stack, memo and opcodes. */
#ifndef HEFT_PICKLE_MACHINE_H
#define HEFT_PICKLE_MACHINE_H
#include "grammar/pickle.h"

/* ---- pickle_machine.c ---- */

/* Record a failure at the current opcode, unless there is an earlier failure. */
void heft_pickle_fail(heft_pickle *p, heft_status st, const char *fmt, ...);
void heft_pickle_no_memory(heft_pickle *p);

static inline heft_pickle_value heft_pickle_value_of(heft_pickle_kind kind)
{
    return (heft_pickle_value){ .kind = (uint8_t)kind };
}
/* Push a new value, unless something has failed. */
void heft_pickle_push(heft_pickle *p, heft_pickle_value v);
/* Push an existing value. */
void heft_pickle_push_existing(heft_pickle *p, uint32_t number);
/* Push a value that is created once and shared (None, True, False, the empty tuple).  *shared is
 * the number. */
void heft_pickle_push_shared(heft_pickle *p, uint32_t *shared, heft_pickle_value v);

/* Add a value without pushing; return false after a failure. */
bool heft_pickle_add(heft_pickle *p, heft_pickle_value v, uint32_t *number);
static inline uint32_t *heft_pickle_stack_at(const heft_pickle *p, uint32_t i)
{
    return (uint32_t *)p->stack.ptr + i;
}
/* Return the stack position of the latest mark, or 0. */
static inline uint32_t heft_pickle_latest_mark(const heft_pickle *p)
{
    return p->marks.len ? ((uint32_t *)p->marks.ptr)[p->marks.len - 1] : 0;
}
/* Fail unless there are `count` values above the latest mark. */
bool heft_pickle_need(heft_pickle *p, uint32_t count);
/* Pop a value; the stack must not be empty. */
uint32_t heft_pickle_pop(heft_pickle *p);
/* Remove the latest mark; set *first to the position of the first value above the mark. */
bool heft_pickle_pop_mark(heft_pickle *p, uint32_t *first);
/* Move the values from stack position `first` on to the items of a container. */
void heft_pickle_move_items(heft_pickle *p, uint32_t container, uint32_t first);
/* Move the values from stack position `first` on to a new container, and push the container. */
void heft_pickle_push_container(heft_pickle *p, heft_pickle_kind kind, uint32_t first);

/* ---- pickle_scalars.c ---- */

/* Take the rest of the line, and skip the newline. */
heft_str heft_pickle_take_line(heft_pickle *p);
/* Take a little-endian number. */
uint64_t heft_pickle_take_number(heft_pickle *p, uint32_t bytes);
/* Return false unless s is a decimal integer that fits in 64 bits. */
bool heft_pickle_decimal(int64_t *out, heft_str s);
/* Fail unless s is valid UTF-8. */
bool heft_pickle_is_utf8(heft_pickle *p, heft_str s);

void heft_pickle_op_text(heft_pickle *p, uint32_t length_bytes);
void heft_pickle_op_old_text(heft_pickle *p, uint32_t length_bytes);
void heft_pickle_op_bytes(heft_pickle *p, uint32_t length_bytes);
void heft_pickle_op_escaped_text(heft_pickle *p, uint32_t arg);
void heft_pickle_op_quoted(heft_pickle *p, uint32_t arg);
void heft_pickle_op_shared(heft_pickle *p, uint32_t kind);
void heft_pickle_op_bool(heft_pickle *p, uint32_t is_true);
void heft_pickle_op_int(heft_pickle *p, uint32_t bytes);
void heft_pickle_op_long(heft_pickle *p, uint32_t length_bytes);
void heft_pickle_op_decimal(heft_pickle *p, uint32_t letter);
void heft_pickle_op_float(heft_pickle *p, uint32_t arg);

#endif
