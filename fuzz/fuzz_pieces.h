/* fuzz_pieces.h - checks that a grammar gives the same result for bytes in memory and for bytes
 * that arrive in pieces, within memory in proportion to the input. */
#ifndef HEFT_FUZZ_PIECES_H
#define HEFT_FUZZ_PIECES_H
#include "base/arena.h"
#include "base/cursor.h"
#include "fuzz.h"

/* Parse the window and mix the results into *sum with fuzz_mix(). */
typedef heft_status (*fuzz_parser)(heft_window *in, heft_arena *arena, uint64_t *sum);
static inline void fuzz_mix(uint64_t *sum, uint64_t value)
{
    *sum = (*sum ^ value) * UINT64_C(0x9E3779B97F4A7C15);
}

void fuzz_both_ways(fuzz_parser parse, const uint8_t *data, size_t size);

#endif
