/* pickle_machine.h - what the files of the pickle machine share. */
#ifndef HEFT_PICKLE_MACHINE_H
#define HEFT_PICKLE_MACHINE_H
#include "grammar/pickle.h"

/* The first failure counts; it is about the opcode that is obeyed. */
void heft_pickle_fail(heft_pickle *p, heft_status st, const char *fmt, ...);
void heft_pickle_no_memory(heft_pickle *p);

static inline heft_pickle_value heft_pickle_value_of(heft_pickle_kind kind)
{
    return (heft_pickle_value){ .kind = (uint8_t)kind };
}
/* A new value onto the stack, unless something has failed. */
void heft_pickle_push(heft_pickle *p, heft_pickle_value v);
/* One that is made once and pushed again: *single is its number. */
void heft_pickle_push_single(heft_pickle *p, uint32_t *single, heft_pickle_value v);

/* Up to the end of the line, which is passed. */
heft_str heft_pickle_take_line(heft_pickle *p);
/* A number of so many bytes, least first. */
uint64_t heft_pickle_take_number(heft_pickle *p, uint32_t bytes);
/* false: no integer of 64 bits. */
bool heft_pickle_decimal(int64_t *out, heft_str s);
bool heft_pickle_is_utf8(heft_pickle *p, heft_str s);

void heft_pickle_obey_text(heft_pickle *p, uint32_t length_bytes);
void heft_pickle_obey_old_text(heft_pickle *p, uint32_t length_bytes);
void heft_pickle_obey_bytes(heft_pickle *p, uint32_t length_bytes);
void heft_pickle_obey_escaped_text(heft_pickle *p, uint32_t arg);
void heft_pickle_obey_quoted(heft_pickle *p, uint32_t arg);
void heft_pickle_obey_single(heft_pickle *p, uint32_t kind);
void heft_pickle_obey_bool(heft_pickle *p, uint32_t is_true);
void heft_pickle_obey_int(heft_pickle *p, uint32_t bytes);
void heft_pickle_obey_long(heft_pickle *p, uint32_t length_bytes);
void heft_pickle_obey_decimal(heft_pickle *p, uint32_t letter);
void heft_pickle_obey_float(heft_pickle *p, uint32_t arg);

#endif
