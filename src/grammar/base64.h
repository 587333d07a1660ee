/* base64.h - bytes as text (RFC 4648, section 4). */
#ifndef HEFT_BASE64_H
#define HEFT_BASE64_H
#include "base/arena.h"

/* Decode into the arena; an invalid text is { NULL, 0 } with *is_valid false. */
heft_str heft_base64_decode(bool *is_valid, heft_arena *a, heft_str text);
/* Encode into the arena; ptr NULL without memory. */
heft_str heft_base64_encode(heft_arena *a, heft_str bytes);

#endif
