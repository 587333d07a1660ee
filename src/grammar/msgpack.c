/* msgpack.c - reads MessagePack items: a first byte encodes the kind and the size of a big-endian
 * number. */
#include "grammar/msgpack.h"

#include "base/checked_math.h"

typedef struct head { /* encoding of an item with a first byte from C0 to DF */
    uint8_t kind;     /* heft_msgpack_kind; 0: invalid */
    uint8_t bytes;    /* size of the number that follows */
    uint8_t flags;
} head;
enum { SIGNED = 1, TYPED = 2, FIXED = 4 /* `bytes` is the length of the data */ };

static const head heads[32] = {
    [0x00] = { HEFT_MSGPACK_NIL, 0, 0 },
    [0x02] = { HEFT_MSGPACK_BOOL, 0, 0 },
    [0x03] = { HEFT_MSGPACK_BOOL, 0, 0 },
    [0x04] = { HEFT_MSGPACK_BYTES, 1, 0 },
    [0x05] = { HEFT_MSGPACK_BYTES, 2, 0 },
    [0x06] = { HEFT_MSGPACK_BYTES, 4, 0 },
    [0x07] = { HEFT_MSGPACK_EXT, 1, TYPED },
    [0x08] = { HEFT_MSGPACK_EXT, 2, TYPED },
    [0x09] = { HEFT_MSGPACK_EXT, 4, TYPED },
    [0x0A] = { HEFT_MSGPACK_F32, 4, 0 },
    [0x0B] = { HEFT_MSGPACK_F64, 8, 0 },
    [0x0C] = { HEFT_MSGPACK_UINT, 1, 0 },
    [0x0D] = { HEFT_MSGPACK_UINT, 2, 0 },
    [0x0E] = { HEFT_MSGPACK_UINT, 4, 0 },
    [0x0F] = { HEFT_MSGPACK_UINT, 8, 0 },
    [0x10] = { HEFT_MSGPACK_UINT, 1, SIGNED },
    [0x11] = { HEFT_MSGPACK_UINT, 2, SIGNED },
    [0x12] = { HEFT_MSGPACK_UINT, 4, SIGNED },
    [0x13] = { HEFT_MSGPACK_UINT, 8, SIGNED },
    [0x14] = { HEFT_MSGPACK_EXT, 1, TYPED | FIXED },
    [0x15] = { HEFT_MSGPACK_EXT, 2, TYPED | FIXED },
    [0x16] = { HEFT_MSGPACK_EXT, 4, TYPED | FIXED },
    [0x17] = { HEFT_MSGPACK_EXT, 8, TYPED | FIXED },
    [0x18] = { HEFT_MSGPACK_EXT, 16, TYPED | FIXED },
    [0x19] = { HEFT_MSGPACK_TEXT, 1, 0 },
    [0x1A] = { HEFT_MSGPACK_TEXT, 2, 0 },
    [0x1B] = { HEFT_MSGPACK_TEXT, 4, 0 },
    [0x1C] = { HEFT_MSGPACK_ARRAY, 2, 0 },
    [0x1D] = { HEFT_MSGPACK_ARRAY, 4, 0 },
    [0x1E] = { HEFT_MSGPACK_MAP, 2, 0 },
    [0x1F] = { HEFT_MSGPACK_MAP, 4, 0 },
};

static void read_long_head(heft_msgpack_item *it, heft_cur *c, uint8_t first)
{
    const head *h = &heads[first & 31];
    uint64_t top = h->flags & SIGNED ? UINT64_C(1) << (8 * h->bytes - 1) : 0;
    uint32_t bits;
    float single;
    it->kind = (heft_msgpack_kind)h->kind;
    it->u = h->flags & FIXED ? h->bytes : 0;
    const uint8_t *number = h->flags & FIXED ? NULL : heft_cur_take(c, h->bytes);
    for (uint32_t i = 0; number && i < h->bytes; i++)
        it->u = it->u << 8 | number[i];
    if (h->flags & TYPED)
        it->i = (int8_t)heft_cur_u8(c);
    if (it->u & top) {
        it->kind = HEFT_MSGPACK_INT;
        it->i = (int64_t)((it->u ^ top) - top);
    }
    if (it->kind == HEFT_MSGPACK_BOOL)
        it->u = first & 1;
    if (it->kind == HEFT_MSGPACK_F32) {
        bits = (uint32_t)it->u;
        memcpy(&single, &bits, sizeof single);
        it->f = (double)single;
    }
    if (it->kind == HEFT_MSGPACK_F64)
        memcpy(&it->f, &it->u, sizeof it->f);
    if (!h->kind)
        heft_cur_fail_at(c, it->at, "%s: byte 0xC1 does not begin a MessagePack item", c->what);
}

static void read_head(heft_msgpack_item *it, heft_cur *c)
{
    uint8_t first = heft_cur_u8(c);
    if (first < 0x80)
        *it = (heft_msgpack_item){ .kind = HEFT_MSGPACK_UINT, .at = it->at, .u = first };
    else if (first < 0x90)
        *it = (heft_msgpack_item){ .kind = HEFT_MSGPACK_MAP, .at = it->at, .u = first & 15 };
    else if (first < 0xA0)
        *it = (heft_msgpack_item){ .kind = HEFT_MSGPACK_ARRAY, .at = it->at, .u = first & 15 };
    else if (first < 0xC0)
        *it = (heft_msgpack_item){ .kind = HEFT_MSGPACK_TEXT, .at = it->at, .u = first & 31 };
    else if (first < 0xE0)
        read_long_head(it, c, first);
    else
        *it = (heft_msgpack_item){ .kind = HEFT_MSGPACK_INT, .at = it->at, .i = (int8_t)first };
}

heft_msgpack_item heft_msgpack_next(heft_cur *c)
{
    heft_msgpack_item it = { .at = heft_cur_pos(c) };
    read_head(&it, c);
    uint64_t left = heft_cur_left(c);
    bool fits = it.kind < HEFT_MSGPACK_TEXT || it.u <= left;
    if (it.kind == HEFT_MSGPACK_MAP)
        fits = it.u <= left / 2;
    if (!fits)
        heft_cur_fail_at(c, it.at, "%s: %U %s are announced, %U bytes are left", c->what, it.u,
                         it.kind == HEFT_MSGPACK_ARRAY ? "items"
                         : it.kind == HEFT_MSGPACK_MAP ? "pairs"
                                                       : "bytes",
                         left);
    if (c->st)
        it.kind = HEFT_MSGPACK_FAILED;
    return it;
}

heft_str heft_msgpack_text(heft_cur *c, const heft_msgpack_item *item)
{
    return heft_cur_text(c, item->u, "a text");
}

/* Count the items still to skip, including the items of nested containers.  Every item takes at
 * least a byte, so the loop ends with the file. */
void heft_msgpack_skip(heft_cur *c, const heft_msgpack_item *item)
{
    uint64_t pending = 1;
    heft_msgpack_item it = *item;
    while (!c->st) {
        pending--;
        if (it.kind == HEFT_MSGPACK_ARRAY || it.kind == HEFT_MSGPACK_MAP)
            pending += it.kind == HEFT_MSGPACK_MAP ? 2 * it.u : it.u;
        else if (it.kind >= HEFT_MSGPACK_TEXT)
            heft_cur_skip(c, it.u);
        if (!pending)
            return;
        if (pending > heft_cur_left(c))
            heft_cur_fail_at(c, it.at, "%s: %U items are announced, %U bytes are left", c->what,
                             pending, heft_cur_left(c));
        it = heft_msgpack_next(c);
    }
}

uint64_t heft_msgpack_u64(heft_cur *c, const char *what)
{
    heft_msgpack_item it = heft_msgpack_next(c);
    if (it.kind != HEFT_MSGPACK_UINT)
        heft_cur_fail_at(c, it.at, "%s is not an integer from 0 to 2^64 - 1", what);
    return c->st ? 0 : it.u;
}

/* ---- arrays of numbers ---- */

static bool add_fact(heft_msgpack_facts *f, const heft_msgpack_item *it)
{
    f->bools = f->bools || it->kind == HEFT_MSGPACK_BOOL;
    f->f32 = f->f32 || it->kind == HEFT_MSGPACK_F32;
    f->f64 = f->f64 || it->kind == HEFT_MSGPACK_F64;
    f->ints = f->ints || it->kind == HEFT_MSGPACK_UINT || it->kind == HEFT_MSGPACK_INT;
    if (it->kind == HEFT_MSGPACK_UINT && it->u > f->max)
        f->max = it->u;
    if (it->kind == HEFT_MSGPACK_INT && it->i < f->min)
        f->min = it->i;
    return it->kind >= HEFT_MSGPACK_BOOL && it->kind <= HEFT_MSGPACK_F64;
}

bool heft_msgpack_scan(heft_msgpack_facts *out, heft_cur *c, uint64_t count)
{
    enum { ITEM = 5, F32 = 0xCA };
    *out = (heft_msgpack_facts){ .end = heft_cur_pos(c) };
    while (count) {
        if (c->end - c->p >= ITEM && *c->p == F32) { /* fast path: most arrays consist of F32 */
            out->f32 = true;
            c->p += ITEM;
            count--;
            continue;
        }
        heft_msgpack_item it = heft_msgpack_next(c);
        if (c->st || !add_fact(out, &it))
            return false;
        count--;
    }
    out->end = heft_cur_pos(c);
    return true;
}
