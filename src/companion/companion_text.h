/* companion_text.h - helpers for readers of companions: JSON and text files next to the weights. */
#ifndef HEFT_COMPANION_TEXT_H
#define HEFT_COMPANION_TEXT_H
#include <heft/heft_ext.h>

#include "base/arena.h"
#include "grammar/json.h"

enum { HEFT_COMPANION_DEPTH = 64 }; /* maximum nesting of a document */

/* Return the allocator of the host, after replacing a NULL host by the default.  NULL, with the
 * error set, if the host is invalid. */
const heft_allocator *heft_companion_allocator(const heft_host **host, heft_error *err);
/* Set and return HEFT_E_NOMEM. */
heft_status heft_companion_no_memory(heft_error *err);

/* Read the next token; fail unless of the given kind.  `what` ("the vocabulary") begins the
 * message. */
heft_status heft_companion_expect(heft_json *j, heft_json_kind kind, const char *what);
/* Advance to the next key of the current object; return false at the end of the object, or if j->st
 * is set. */
bool heft_companion_next_key(heft_json *j);
/* Advance to the next item of the current list and set *k to the kind of the first token; return
 * false at the end of the list, or if j->st is set. */
bool heft_companion_next_item(heft_json *j, heft_json_kind *k);

#endif
