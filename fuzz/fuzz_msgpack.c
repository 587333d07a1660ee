/* fuzz_msgpack.c - fuzzes the reader of MessagePack: skipping an item ends where reading all nested
 * items ends, and the items are the same if the bytes arrive in pieces. */
#include "fuzz_pieces.h"
#include "grammar/msgpack.h"

/* Read the rest of an item, item by item. */
static void read_items(heft_cur *c, heft_msgpack_item item, uint64_t *sum)
{
    uint64_t left = 1;
    for (;;) {
        bool has_bytes = item.kind == HEFT_MSGPACK_TEXT || item.kind == HEFT_MSGPACK_BYTES ||
                         item.kind == HEFT_MSGPACK_EXT;
        fuzz_mix(sum, (uint64_t)item.kind ^ item.u ^ (uint64_t)item.i);
        left += item.kind == HEFT_MSGPACK_ARRAY ? item.u : 0;
        left += item.kind == HEFT_MSGPACK_MAP ? 2 * item.u : 0;
        if (has_bytes)
            heft_cur_skip(c, item.u);
        if (!--left || c->st)
            return;
        item = heft_msgpack_next(c);
    }
}

static heft_status parse_msgpack(heft_window *in, heft_arena *arena, uint64_t *sum)
{
    heft_cur c = heft_cur_open(in, 0, in->size, "the input");
    (void)arena;
    while (!c.st && heft_cur_left(&c)) {
        heft_msgpack_item item = heft_msgpack_next(&c);
        if (c.st)
            break;
        fuzz_require(item.at < heft_cur_pos(&c) && heft_cur_pos(&c) <= in->size);
        heft_cur skipping = c;
        read_items(&c, item, sum);
        if (c.st)
            break;
        heft_msgpack_skip(&skipping, &item);
        fuzz_require(!skipping.st && heft_cur_pos(&skipping) == heft_cur_pos(&c));
    }
    return c.st;
}

static void run(const uint8_t *data, size_t size, fuzz_script *s)
{
    (void)s;
    fuzz_both_ways(parse_msgpack, data, size);
}

const fuzz_target fuzz_this = { .run = run };
