/* pickle_write.c - the opcodes of a pickle that is written. */
#include "grammar/pickle_write.h"

#include <string.h>

#include "base/text.h"

enum {
    PROTO = 0x80,
    GLOBAL = 'c',
    BINUNICODE = 'X',
    BINPUT = 'q',
    BINGET = 'h',
    BININT = 'J',
    BININT1 = 'K',
    BININT2 = 'M',
    BINFLOAT = 'G',
    LONG1 = 0x8A,
    NEWOBJ = 0x81,
    NEWTRUE = 0x88,
    NEWFALSE = 0x89,
    TUPLE1 = 0x85 /* TUPLE2 and TUPLE3 follow */
};

void heft_pickle_op(const heft_pickle_writer *w, char op)
{
    heft_out_u8(w->o, (uint8_t)op);
}

void heft_pickle_write_begin(heft_pickle_writer *w)
{
    w->memoized = 0;
    heft_out_u8(w->o, PROTO);
    heft_out_u8(w->o, 2);
}

void heft_pickle_write_text(const heft_pickle_writer *w, heft_str s)
{
    heft_out_u8(w->o, BINUNICODE);
    heft_out_u32(w->o, (uint32_t)s.len);
    heft_out_str(w->o, s);
}

/* ---- the memo ---- */

/* Emit the memo entry of `id`, and return true, if there is one. */
static bool recall(const heft_pickle_writer *w, const void *id)
{
    for (uint32_t i = 0; i < w->memoized; i++) {
        if (w->memo[i] != id)
            continue;
        heft_out_u8(w->o, BINGET);
        heft_out_u8(w->o, (uint8_t)i);
        return true;
    }
    return false;
}

/* Make a memo entry of the value on top of the stack, unless the memo is full. */
static void memoize(heft_pickle_writer *w, const void *id)
{
    if (w->memoized == HEFT_PICKLE_WRITE_MEMO)
        return;
    heft_out_u8(w->o, BINPUT);
    heft_out_u8(w->o, (uint8_t)w->memoized);
    w->memo[w->memoized++] = id;
}

void heft_pickle_write_shared(heft_pickle_writer *w, const char *text)
{
    if (recall(w, text))
        return;
    heft_pickle_write_text(w, heft_lit(text));
    memoize(w, text);
}

void heft_pickle_write_global(heft_pickle_writer *w, const char *module, const char *name)
{
    if (recall(w, name))
        return;
    heft_out_u8(w->o, GLOBAL);
    heft_out_str(w->o, heft_lit(module));
    heft_out_u8(w->o, '\n');
    heft_out_str(w->o, heft_lit(name));
    heft_out_u8(w->o, '\n');
    memoize(w, name);
}

void heft_pickle_write_object(heft_pickle_writer *w, const char *module, const char *name)
{
    heft_pickle_write_global(w, module, name);
    heft_pickle_op(w, HEFT_OP_EMPTY_TUPLE);
    heft_out_u8(w->o, NEWOBJ);
}

/* ---- numbers ---- */

void heft_pickle_write_bool(const heft_pickle_writer *w, bool b)
{
    heft_out_u8(w->o, b ? NEWTRUE : NEWFALSE);
}

/* Emit a two's complement number of `len` bytes, the last of which has the sign. */
static void put_long(const heft_pickle_writer *w, uint64_t n, uint8_t len)
{
    heft_out_u8(w->o, LONG1);
    heft_out_u8(w->o, len);
    heft_out_u64(w->o, n);
    if (len > sizeof n)
        heft_out_u8(w->o, 0);
}

void heft_pickle_write_u64(const heft_pickle_writer *w, uint64_t n)
{
    if (n <= UINT8_MAX) {
        heft_out_u8(w->o, BININT1);
        heft_out_u8(w->o, (uint8_t)n);
    } else if (n <= UINT16_MAX) {
        heft_out_u8(w->o, BININT2);
        heft_out_u16(w->o, (uint16_t)n);
    } else if (n <= INT32_MAX) {
        heft_out_u8(w->o, BININT);
        heft_out_u32(w->o, (uint32_t)n);
    } else {
        put_long(w, n, n <= INT64_MAX ? 8 : 9);
    }
}

void heft_pickle_write_i64(const heft_pickle_writer *w, int64_t n)
{
    if (n >= 0) {
        heft_pickle_write_u64(w, (uint64_t)n);
    } else if (n >= INT32_MIN) {
        heft_out_u8(w->o, BININT);
        heft_out_u32(w->o, (uint32_t)n);
    } else {
        put_long(w, (uint64_t)n, 8);
    }
}

void heft_pickle_write_f64(const heft_pickle_writer *w, double f)
{
    uint64_t bits;
    memcpy(&bits, &f, sizeof bits);
    heft_out_u8(w->o, BINFLOAT);
    for (uint32_t shift = 64; shift; shift -= 8) /* big-endian */
        heft_out_u8(w->o, (uint8_t)(bits >> (shift - 8)));
}

/* ---- bytes and tuples ---- */

void heft_pickle_write_bytes(heft_pickle_writer *w, heft_str bytes)
{
    static const char encoding[] = "latin1";
    uint32_t len = (uint32_t)bytes.len;
    for (size_t i = 0; i < bytes.len; i++)
        len += (uint8_t)bytes.ptr[i] >> 7;
    heft_pickle_write_global(w, "_codecs", "encode");
    heft_out_u8(w->o, BINUNICODE);
    heft_out_u32(w->o, len);
    for (size_t i = 0; i < bytes.len; i++) {
        uint8_t c = (uint8_t)bytes.ptr[i];
        if (c >> 7)
            heft_out_u8(w->o, (uint8_t)(0xC0 | c >> 6));
        heft_out_u8(w->o, c >> 7 ? (uint8_t)(0x80 | (c & 0x3F)) : c);
    }
    heft_pickle_write_shared(w, encoding);
    heft_pickle_tuple(w, 2);
    heft_pickle_op(w, HEFT_OP_CALL);
}

void heft_pickle_tuple_mark(const heft_pickle_writer *w, uint32_t count)
{
    if (count > 3)
        heft_pickle_op(w, HEFT_OP_MARK);
}

void heft_pickle_tuple(const heft_pickle_writer *w, uint32_t count)
{
    if (!count)
        heft_pickle_op(w, HEFT_OP_EMPTY_TUPLE);
    else if (count <= 3)
        heft_out_u8(w->o, (uint8_t)(TUPLE1 + count - 1));
    else
        heft_pickle_op(w, HEFT_OP_TUPLE);
}
