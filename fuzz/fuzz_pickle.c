/* fuzz_pickle.c - fuzzes the pickle reader: references are valid, memory is proportional to the
 * input, and the result is the same if the bytes arrive in pieces. */
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
    fuzz_require(!r->mem.used);
}

/* Read the pickle of `size` bytes; the memory in use must stay in proportion to the size. */
static void read_bounded(reading *r, size_t size)
{
    r->st = heft_pickle_read(&r->p, &r->box.in, (heft_range){ 0, size }, &r->arena, "a pickle");
    fuzz_require(r->mem.used <= (uint64_t)size * MOST_PER_BYTE + MOST_AT_LEAST || r->box.held);
}

/* Parse from the start each time more bytes arrive, as an open file does. */
static void read_in_pieces(reading *r, const uint8_t *data, size_t size)
{
    for (;;) {
        heft_input_clear(&r->box);
        read_bounded(r, size);
        if (r->st != HEFT_AGAIN)
            return;
        fuzz_require(r->box.needs.len == 1);
        heft_range need = *(heft_range *)r->box.needs.ptr;
        heft_pickle_free(&r->p);
        heft_arena_free(&r->arena);
        heft_status st = heft_input_feed(&r->box, need.offset, data + need.offset,
                                         (size_t)need.length, &r->err);
        fuzz_require(!st);
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
            fuzz_require(item < count);
            n++;
        }
        fuzz_require(n == o->as.items.count);
        fuzz_require(o->kind != HEFT_PICKLE_TUPLE || heft_pickle_item(p, v, n) == HEFT_NONE);
        fuzz_require(o->kind != HEFT_PICKLE_DICT || n % 2 == 0);
    } else if (o->kind == HEFT_PICKLE_OBJECT) {
        fuzz_require(o->as.object.callable < count && o->as.object.args < count);
        fuzz_require(o->as.object.state == HEFT_NONE || o->as.object.state < count);
        fuzz_require(o->as.object.content == HEFT_NONE || holds_items(p, o->as.object.content));
    } else if (o->kind == HEFT_PICKLE_GLOBAL) {
        fuzz_use(heft_pickle_module(p, v).len + heft_pickle_name(p, v).len);
    } else if (o->kind == HEFT_PICKLE_PERSISTENT) {
        fuzz_require(o->as.id < count);
    } else if (o->kind == HEFT_PICKLE_TEXT || o->kind == HEFT_PICKLE_BYTES) {
        fuzz_use(o->as.s.len ? (uint64_t)(uint8_t)o->as.s.ptr[o->as.s.len - 1] : 0);
    }
}

/* Read one pickle; return its length, 0 if the bytes are not a pickle. */
static size_t read_one(const uint8_t *data, size_t size)
{
    reading whole, pieces;
    begin(&whole, size);
    whole.box.whole_file = data;
    read_bounded(&whole, size);
    fuzz_require(whole.st != HEFT_AGAIN);
    if (whole.st)
        fuzz_require(whole.err.status == whole.st && whole.err.offset <= size);
    else
        fuzz_require(whole.p.root < whole.p.values.len && heft_pickle_end(&whole.p) <= size);
    for (uint32_t v = 0; v < whole.p.values.len; v++)
        look_at(&whole.p, v);
    begin(&pieces, size);
    read_in_pieces(&pieces, data, size);
    fuzz_require(pieces.st == whole.st && pieces.p.values.len == whole.p.values.len);
    size_t len = whole.st ? 0 : (size_t)heft_pickle_end(&whole.p);
    end(&pieces);
    end(&whole);
    return len;
}

/* Return the start of the first pickle; a .pt file has other bytes before it. */
static const uint8_t *first_pickle(const uint8_t *data, size_t size)
{
    enum { PROTO = 0x80, NEWEST = 5 };
    for (size_t i = 0; i + 1 < size; i++)
        if (data[i] == PROTO && data[i + 1] <= NEWEST)
            return data + i;
    return data;
}

static void run(const uint8_t *data, size_t size, fuzz_script *s)
{
    (void)s;
    enum { MAX_PICKLES = 6 }; /* a legacy stream has five pickles in sequence */
    const uint8_t *p = first_pickle(data, size);
    for (size_t i = 0, len = 1; i < MAX_PICKLES && len; i++, p += len)
        len = read_one(p, size - (size_t)(p - data));
}

const fuzz_target fuzz_this = { .run = run };
