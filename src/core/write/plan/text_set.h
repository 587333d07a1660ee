/* text_set.h - a growing set of distinct strings: names, keys, messages. */
#ifndef HEFT_TEXT_SET_H
#define HEFT_TEXT_SET_H
#include "model/names.h"

typedef struct heft_text_set {
    heft_vec texts; /* heft_str, borrowed */
    heft_names names;
} heft_text_set;

bool heft_text_set_has(const heft_text_set *s, const heft_name_hash *key, heft_str text);
/* Add a string that is not in the set; the string is borrowed.  false: out of memory. */
bool heft_text_set_add(heft_text_set *s, heft_memory *m, const heft_name_hash *key, heft_str text);
void heft_text_set_free(heft_text_set *s, heft_memory *m); /* a zeroed struct is harmless */

#endif
