/* fuzz_pieces.c - runs a grammar over a whole input, and over an input that arrives in pieces. */
#include "fuzz_pieces.h"

#include "core/read/input_window.h"

enum { MOST_PER_BYTE = 200, MOST_AT_LEAST = 64 << 10 };

typedef struct reading {
    heft_memory mem;
    heft_arena arena;
    heft_error err;
    heft_input box;
    heft_status st;
    uint64_t sum;
} reading;

static void begin(reading *r, size_t size)
{
    *r = (reading){ .mem = { .al = heft_host_default()->allocator, .limit = UINT64_MAX } };
    r->arena.mem = &r->mem;
    heft_input_init(&r->box, &r->mem, size, UINT64_MAX);
    r->box.in.err = &r->err;
}

static void end(reading *r)
{
    heft_arena_free(&r->arena);
    heft_input_free(&r->box);
    fuzz_require(!r->mem.used);
}

static void parse_whole(reading *r, fuzz_parser parse, const uint8_t *data, size_t size)
{
    r->box.whole_file = data;
    r->st = parse(&r->box.in, &r->arena, &r->sum);
    fuzz_require(r->st != HEFT_AGAIN);
    fuzz_require(!r->st || (r->err.status == r->st &&
                            (r->err.offset <= size || r->err.offset == HEFT_NOWHERE)));
    fuzz_require(r->mem.used <= (uint64_t)size * MOST_PER_BYTE + MOST_AT_LEAST);
}

/* Parse from the start each time more bytes arrive, as an open file does. */
static void parse_pieces(reading *r, fuzz_parser parse, const uint8_t *data)
{
    for (;;) {
        heft_input_clear(&r->box);
        r->sum = 0;
        r->st = parse(&r->box.in, &r->arena, &r->sum);
        if (r->st != HEFT_AGAIN)
            return;
        fuzz_require(r->box.needs.len);
        heft_arena_free(&r->arena);
        for (uint32_t i = 0; i < r->box.needs.len; i++) {
            heft_range need = ((heft_range *)r->box.needs.ptr)[i];
            heft_status st = heft_input_feed(&r->box, need.offset, data + need.offset,
                                             (size_t)need.length, &r->err);
            fuzz_require(!st);
        }
    }
}

void fuzz_both_ways(fuzz_parser parse, const uint8_t *data, size_t size)
{
    reading whole, pieces;
    begin(&whole, size);
    parse_whole(&whole, parse, data, size);
    begin(&pieces, size);
    parse_pieces(&pieces, parse, data);
    fuzz_require(pieces.st == whole.st && (whole.st || pieces.sum == whole.sum));
    end(&pieces);
    end(&whole);
}
