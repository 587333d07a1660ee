/* protobuf.c - reads the fields of a message in the encoding of protocol buffers. */
#include "grammar/protobuf.h"

heft_cur heft_protobuf_open(heft_window *in, heft_range message, const char *what)
{
    return heft_cur_open(in, message.offset, message.length, what);
}

uint64_t heft_protobuf_varint(heft_cur *c)
{
    enum { MOST_BITS = 63 };
    uint64_t v = 0, at = heft_cur_pos(c);
    for (unsigned shift = 0; shift <= MOST_BITS; shift += 7) {
        uint8_t byte = heft_cur_u8(c);
        if (shift == MOST_BITS && byte > 1)
            break;
        v |= (uint64_t)(byte & 0x7F) << shift;
        if (byte < 0x80)
            return c->st ? 0 : v;
    }
    heft_cur_fail_at(c, at, "%s: a number has more than 64 bits", c->what);
    return 0;
}

bool heft_protobuf_next(heft_cur *c, heft_protobuf_field *f)
{
    if (c->st || !heft_cur_left(c))
        return false;
    *f = (heft_protobuf_field){ .at = heft_cur_pos(c) };
    uint64_t tag = heft_protobuf_varint(c), length = 0;
    f->wire = (heft_wire)(tag & 7);
    f->number = (uint32_t)(tag >> 3);
    if (!c->st && (!f->number || tag >> 32))
        heft_cur_fail_at(c, f->at, "%s: a field has the number %U", c->what, tag >> 3);
    bool is_long = f->wire == HEFT_WIRE_64;
    if (f->wire == HEFT_WIRE_VARINT)
        f->u = heft_protobuf_varint(c);
    else if (f->wire == HEFT_WIRE_BYTES)
        length = heft_protobuf_varint(c);
    else if (!is_long && f->wire != HEFT_WIRE_32)
        heft_cur_fail_at(c, f->at, "%s: a field has the wire type %U", c->what, tag & 7);
    f->bytes = (heft_range){ heft_cur_pos(c), length };
    if (is_long || f->wire == HEFT_WIRE_32) {
        f->bytes.length = is_long ? 8 : 4;
        f->u = is_long ? heft_cur_u64(c) : heft_cur_u32(c);
    }
    heft_cur_skip(c, length);
    return !c->st;
}

heft_str heft_protobuf_bytes(heft_cur *c, const heft_protobuf_field *f)
{
    if (f->wire != HEFT_WIRE_BYTES) {
        heft_cur_fail_at(c, f->at, "%s: field %U is not a text", c->what, (uint64_t)f->number);
        return (heft_str){ "", 0 };
    }
    heft_cur t = heft_cur_open(c->in, f->bytes.offset, f->bytes.length, c->what);
    const uint8_t *p = heft_cur_take(&t, f->bytes.length);
    if (t.st && !c->st)
        c->st = t.st;
    return (heft_str){ p ? (const char *)p : "", p ? (size_t)f->bytes.length : 0 };
}

heft_str heft_protobuf_text(heft_cur *c, const heft_protobuf_field *f)
{
    heft_str s = heft_protobuf_bytes(c, f);
    if (!heft_str_is_utf8(s))
        heft_cur_fail_at(c, f->bytes.offset, "%s: a text is not UTF-8", c->what);
    return s;
}
