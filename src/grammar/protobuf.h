/* protobuf.h - reads the fields of a message in the encoding of protocol buffers.
 *
 * A message is a sequence of fields: a tag, which has the number of the field and its wire type,
 * and a value.  Values of known length, texts and messages among them, are not read but skipped:
 * their range is returned. */
#ifndef HEFT_PROTOBUF_H
#define HEFT_PROTOBUF_H
#include "base/cursor.h"

typedef enum heft_wire { /* wire types */
                         HEFT_WIRE_VARINT = 0,
                         HEFT_WIRE_64 = 1,
                         HEFT_WIRE_BYTES = 2,
                         HEFT_WIRE_32 = 5
} heft_wire;

typedef struct heft_protobuf_field {
    uint64_t at; /* offset of the tag */
    uint32_t number;
    heft_wire wire;
    uint64_t u;       /* a number; of a float the bits */
    heft_range bytes; /* a value that is not a varint */
} heft_protobuf_field;

/* Open a cursor over the fields of a message, a value of HEFT_WIRE_BYTES. */
heft_cur heft_protobuf_open(heft_window *in, heft_range message, const char *what);
/* Read the next field; return false after the last one, or if the cursor has failed.  Groups, which
 * are obsolete, are refused. */
bool heft_protobuf_next(heft_cur *c, heft_protobuf_field *f);
/* Read a varint: 1 to 10 bytes, the lowest 7 bits first. */
uint64_t heft_protobuf_varint(heft_cur *c);
/* Return the bytes of a field, which are borrowed; c is a cursor over its message.  Numbers are
 * refused. */
heft_str heft_protobuf_bytes(heft_cur *c, const heft_protobuf_field *f);
/* heft_protobuf_bytes() of a text, which must be UTF-8. */
heft_str heft_protobuf_text(heft_cur *c, const heft_protobuf_field *f);

#endif
