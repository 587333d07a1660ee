/* fuzz_pickle.c - any bytes as a pickle: what is read refers to what is there, takes memory in proportion to the bytes,
 * and is the same when the bytes arrive in pieces. */
#include <stdlib.h>
#include <string.h>

#include "core/read/input_window.h"
#include "fuzz.h"
#include "grammar/pickle.h"

enum { MOST_PER_BYTE = 200, MOST_AT_LEAST = 64 << 10 };

typedef struct reading {
    heft_memory mem;
    heft_arena arena;
    heft_error err;
    heft_input box;
    heft_pickle p;
    heft_status st;
} reading;

static void begin(reading *r, size_t size)
{
    memset(r, 0, sizeof *r);
    r->mem = (heft_memory){ .al = heft_host_default()->allocator, .limit = UINT64_MAX };
    r->arena.mem = &r->mem;
    heft_input_init(&r->box, &r->mem, size, UINT64_MAX);
    r->box.in.err = &r->err;
}

static void end(reading *r)
{
    heft_pickle_free(&r->p);
    heft_arena_free(&r->arena);
    heft_input_free(&r->box);
    fuzz_demand(!r->mem.used);
}

static void read(reading *r, size_t size)
{
    r->st = heft_pickle_read(&r->p, &r->box.in, (heft_range){ 0, size }, &r->arena, "a pickle");
    fuzz_demand(r->mem.used <= (uint64_t)size * MOST_PER_BYTE + MOST_AT_LEAST || r->box.held);
}

/* As an open file does: from the start whenever more has come. */
static void read_in_pieces(reading *r, const uint8_t *data, size_t size)
{
    for (;;) {
        heft_input_clear(&r->box);
        read(r, size);
        if (r->st != HEFT_AGAIN)
            return;
        fuzz_demand(r->box.needs.len == 1);
        heft_range need = *(heft_range *)r->box.needs.ptr;
        heft_pickle_free(&r->p);
        heft_arena_free(&r->arena);
        heft_status st = heft_input_feed(&r->box, need.offset, data + need.offset,
                                         (size_t)need.length, &r->err);
        fuzz_demand(!st);
    }
}

static bool holds_items(const heft_pickle *p, uint32_t v)
{
    return heft_pickle_is(p, v, HEFT_PICKLE_TUPLE) || heft_pickle_is(p, v, HEFT_PICKLE_LIST) ||
           heft_pickle_is(p, v, HEFT_PICKLE_DICT) || heft_pickle_is(p, v, HEFT_PICKLE_SET);
}

static void look_at(const heft_pickle *p, uint32_t v)
{
    const heft_pickle_value *o = heft_pickle_at(p, v);
    uint32_t n = 0, item, count = p->values.len;
    if (holds_items(p, v)) {
        heft_pickle_items i = heft_pickle_items_of(p, v);
        while (heft_pickle_next(p, &i, &item)) {
            fuzz_demand(item < count);
            n++;
        }
        fuzz_demand(n == o->as.items.count);
        fuzz_demand(o->kind != HEFT_PICKLE_TUPLE || heft_pickle_item(p, v, n) == HEFT_NONE);
        fuzz_demand(o->kind != HEFT_PICKLE_DICT || n % 2 == 0);
    } else if (o->kind == HEFT_PICKLE_OBJECT) {
        fuzz_demand(o->as.object.callable < count && o->as.object.args < count);
        fuzz_demand(o->as.object.state == HEFT_NONE || o->as.object.state < count);
        fuzz_demand(o->as.object.content == HEFT_NONE || holds_items(p, o->as.object.content));
    } else if (o->kind == HEFT_PICKLE_GLOBAL) {
        fuzz_use(heft_pickle_module(p, v).len + heft_pickle_name(p, v).len);
    } else if (o->kind == HEFT_PICKLE_PERSISTENT) {
        fuzz_demand(o->as.id < count);
    } else if (o->kind == HEFT_PICKLE_TEXT || o->kind == HEFT_PICKLE_BYTES) {
        fuzz_use(o->as.s.len ? (uint64_t)(uint8_t)o->as.s.ptr[o->as.s.len - 1] : 0);
    }
}

/* Bytes of the pickle, 0: it is none. */
static size_t read_one(const uint8_t *data, size_t size)
{
    reading whole, pieces;
    begin(&whole, size);
    whole.box.whole_file = data;
    read(&whole, size);
    fuzz_demand(whole.st != HEFT_AGAIN);
    if (whole.st)
        fuzz_demand(whole.err.status == whole.st && whole.err.offset <= size);
    else
        fuzz_demand(whole.p.root < whole.p.values.len && heft_pickle_end(&whole.p) <= size);
    for (uint32_t v = 0; v < whole.p.values.len; v++)
        look_at(&whole.p, v);
    begin(&pieces, size);
    read_in_pieces(&pieces, data, size);
    fuzz_demand(pieces.st == whole.st && pieces.p.values.len == whole.p.values.len);
    size_t len = whole.st ? 0 : (size_t)heft_pickle_end(&whole.p);
    end(&pieces);
    end(&whole);
    return len;
}

/* Where a pickle seems to begin; what is in front of it in a .pt file is passed over. */
static const uint8_t *first_pickle(const uint8_t *data, size_t size)
{
    enum { PROTO = 0x80, NEWEST = 5 };
    for (size_t i = 0; i + 1 < size; i++)
        if (data[i] == PROTO && data[i + 1] <= NEWEST)
            return data + i;
    return data;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    enum { MOST = 6 }; /* a legacy stream is five, one behind the other */
    const uint8_t *p = first_pickle(data, size);
    for (size_t i = 0, len = 1; i < MOST && len; i++, p += len)
        len = read_one(p, size - (size_t)(p - data));
    return 0;
}
