/* companion_text.h - what readers of companion texts share. */
#ifndef HEFT_COMPANION_TEXT_H
#define HEFT_COMPANION_TEXT_H
#include <heft/heft_ext.h>

#include "base/arena.h"
#include "grammar/json.h"

enum { HEFT_COMPANION_DEPTH = 64 }; /* nesting of a document */

/* The allocator of a host, or of the default one; NULL, and the error, when it has none. */
const heft_allocator *heft_companion_memory(const heft_host **host, heft_error *err);
heft_status heft_companion_full(heft_error *err); /* HEFT_E_NOMEM */

/* The next token has to be of this kind; what names it in the message: "the vocabulary". */
heft_status heft_companion_expect(heft_json *j, heft_json_kind kind, const char *what);
/* To the key of the object that is being read; false at its end, or when j->st is set. */
bool heft_companion_key(heft_json *j);
/* To the next item of the list that is being read; *k: the kind of its first token.  False as above. */
bool heft_companion_item(heft_json *j, heft_json_kind *k);

#endif
