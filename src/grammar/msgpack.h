/* msgpack.h - reads MessagePack item by item:
 * https://github.com/msgpack/msgpack/blob/master/spec.md
 *
 * The head of a container states the number of items; the caller counts the items.  As in every
 * parser, reading may end with HEFT_AGAIN and be repeated from the start.
 */
#ifndef HEFT_MSGPACK_GRAMMAR_H
#define HEFT_MSGPACK_GRAMMAR_H
#include "base/cursor.h"
#include "base/out.h"

typedef enum heft_msgpack_kind {
    HEFT_MSGPACK_FAILED, /* the cursor has the status */
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
    uint64_t at; /* file offset of the head */
    uint64_t u;
    int64_t i;
    double f;
} heft_msgpack_item;

/* Read the head of the next item.  Lengths and counts are checked against the remaining bytes. */
heft_msgpack_item heft_msgpack_next(heft_cur *c);
/* Take the text of an item after the head was read, borrowed from the file; fails unless valid
 * UTF-8. */
heft_str heft_msgpack_text(heft_cur *c, const heft_msgpack_item *item);
/* Skip the rest of an item after the head was read, including nested items. */
void heft_msgpack_skip(heft_cur *c, const heft_msgpack_item *item);
/* Read an integer from 0 to 2^64 - 1; fails, with `what` in the message, for any other item. */
uint64_t heft_msgpack_u64(heft_cur *c, const char *what);

typedef struct heft_msgpack_facts { /* about the numbers of an array */
    uint64_t end;                   /* offset after the last number */
    uint64_t max;                   /* largest integer, or 0 */
    int64_t min;                    /* smallest integer, or 0 */
    bool bools, ints, f32, f64;     /* kinds of items that occur */
} heft_msgpack_facts;

/* Scan `count` items, all numbers or booleans; return false for any other item, or if the cursor
 * failed. */
bool heft_msgpack_scan(heft_msgpack_facts *out, heft_cur *c, uint64_t count);

/* ---- writes MessagePack items, each number and each head in its shortest form ---- */

/* Return true if a head can state so many items, pairs or bytes. */
static inline bool heft_msgpack_can_count(uint64_t count)
{
    return count <= UINT32_MAX;
}
/* Write the head of a text, bytes, an array or a map of `count` bytes, items or pairs; the content
 * follows. */
void heft_msgpack_put_head(heft_out *o, heft_msgpack_kind kind, uint32_t count);
/* Write the head of an extension of `bytes` bytes. */
void heft_msgpack_put_ext(heft_out *o, int8_t type, uint32_t bytes);
void heft_msgpack_put_text(heft_out *o, heft_str s);
void heft_msgpack_put_bytes(heft_out *o, heft_str s);
void heft_msgpack_put_nil(heft_out *o);
void heft_msgpack_put_bool(heft_out *o, bool v);
void heft_msgpack_put_u64(heft_out *o, uint64_t v);
void heft_msgpack_put_i64(heft_out *o, int64_t v);
/* Write the bits of a number of four or eight bytes. */
void heft_msgpack_put_f32(heft_out *o, uint32_t bits);
void heft_msgpack_put_f64(heft_out *o, uint64_t bits);

#endif
