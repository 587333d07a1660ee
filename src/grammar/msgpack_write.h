/* msgpack_write.h - writes MessagePack items, each number and each head in its shortest form. */
#ifndef HEFT_MSGPACK_WRITE_H
#define HEFT_MSGPACK_WRITE_H
#include "base/out.h"
#include "grammar/msgpack.h"

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
