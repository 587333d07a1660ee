/* msgpack.h - MessagePack, read item by item: https://github.com/msgpack/msgpack/blob/master/spec.md
 *
 * A container's head tells how many items follow it; who reads them counts.  Like every parser, reading may end with
 * HEFT_AGAIN and be repeated from the start.
 */
#ifndef HEFT_MSGPACK_GRAMMAR_H
#define HEFT_MSGPACK_GRAMMAR_H
#include "base/cursor.h"

typedef enum heft_msgpack_kind {
    HEFT_MSGPACK_FAILED, /* see the cursor */
    HEFT_MSGPACK_NIL,
    HEFT_MSGPACK_BOOL,  /* u: 0 or 1 */
    HEFT_MSGPACK_UINT,  /* u */
    HEFT_MSGPACK_INT,   /* i, below 0 */
    HEFT_MSGPACK_F32,   /* f */
    HEFT_MSGPACK_F64,   /* f */
    HEFT_MSGPACK_TEXT,  /* u bytes follow */
    HEFT_MSGPACK_BYTES, /* u bytes follow */
    HEFT_MSGPACK_EXT,   /* u bytes follow; i is the type */
    HEFT_MSGPACK_ARRAY, /* u items follow */
    HEFT_MSGPACK_MAP    /* u pairs of items follow */
} heft_msgpack_kind;

typedef struct heft_msgpack_item {
    heft_msgpack_kind kind;
    uint64_t at; /* offset of its head in the file */
    uint64_t u;
    int64_t i;
    double f;
} heft_msgpack_item;

/* The head of the next item; the cursor stands after it.  Lengths and counts fit what is left. */
heft_msgpack_item heft_msgpack_next(heft_cur *c);
/* The text of an item whose head was read, lent by the file; fails unless it is UTF-8. */
heft_str heft_msgpack_text(heft_cur *c, const heft_msgpack_item *item);
/* Passes the rest of an item whose head was read, and all in it. */
void heft_msgpack_skip(heft_cur *c, const heft_msgpack_item *item);
/* An integer from 0 to 2^64 - 1; fails, with `what` in the message, when the next item is none. */
uint64_t heft_msgpack_u64(heft_cur *c, const char *what);

typedef struct heft_msgpack_facts { /* about the numbers of an array */
    uint64_t end;                   /* offset after the last of them */
    uint64_t most;                  /* the largest integer, if none is below 0 */
    int64_t least;                  /* the smallest, or 0 */
    bool bools, ints, f32, f64;     /* which kinds there are */
} heft_msgpack_facts;

/* Reads so many items that are all numbers or truth values; false: one is another, or the cursor failed. */
bool heft_msgpack_scan(heft_msgpack_facts *out, heft_cur *c, uint64_t count);

#endif
