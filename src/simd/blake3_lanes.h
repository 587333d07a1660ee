/* blake3_lanes.h - BLAKE3 in LANES lanes: lane k of vector i is word i of input k.
 *
 * Each instruction set has a file that includes this header after it has defined
 *
 *   lanes, LANES     a vector of LANES 32-bit integers
 *   rotate_16, _12, _8, _7
 *                    rotate each integer to the right
 *   load_blocks      load a block of each input: vector i gets word i
 *   store_values     store the chaining values of the first n inputs
 */
#ifndef HEFT_BLAKE3_LANES_H
#define HEFT_BLAKE3_LANES_H
#include <string.h>

#include "base/blake3.h"
#include "base/compiler.h"

static inline lanes splat(uint32_t v)
{
    return (lanes){ 0 } + v;
}

/* v[b] is computed last and therefore added last, which is 6 % faster. */
static inline void mix(lanes *restrict v, unsigned a, unsigned b, unsigned c, unsigned d, lanes x,
                       lanes y)
{
    v[a] = v[a] + x + v[b];
    v[d] = rotate_16(v[d] ^ v[a]);
    v[c] += v[d];
    v[b] = rotate_12(v[b] ^ v[c]);
    v[a] = v[a] + y + v[b];
    v[d] = rotate_8(v[d] ^ v[a]);
    v[c] += v[d];
    v[b] = rotate_7(v[b] ^ v[c]);
}

/* Mix the columns, then the diagonals. */
static inline void do_round(lanes *restrict v, const lanes *restrict m, const uint8_t s[16])
{
    for (unsigned i = 0; i < 4; i++)
        mix(v, i, 4 + i, 8 + i, 12 + i, m[s[2 * i]], m[s[2 * i + 1]]);
    for (unsigned i = 0; i < 4; i++)
        mix(v, i, 4 + (i + 1) % 4, 8 + (i + 2) % 4, 12 + (i + 3) % 4, m[s[8 + 2 * i]],
            m[s[9 + 2 * i]]);
}

static inline void compress(lanes cv[8], const lanes m[16], const lanes counter[2], uint32_t flags)
{
    lanes v[16];
    for (unsigned i = 0; i < 8; i++)
        v[i] = cv[i];
    for (unsigned i = 0; i < 4; i++)
        v[i + 8] = splat(heft_blake3_initial[i]);
    v[12] = counter[0];
    v[13] = counter[1];
    v[14] = splat(HEFT_BLAKE3_BLOCK);
    v[15] = splat(flags);
    do_round(v, m, heft_blake3_schedule[0]);
    do_round(v, m, heft_blake3_schedule[1]);
    do_round(v, m, heft_blake3_schedule[2]);
    do_round(v, m, heft_blake3_schedule[3]);
    do_round(v, m, heft_blake3_schedule[4]);
    do_round(v, m, heft_blake3_schedule[5]);
    do_round(v, m, heft_blake3_schedule[6]);
    for (unsigned i = 0; i < 8; i++)
        cv[i] = v[i] ^ v[i + 8];
}

/* Fetch the same block of the next group into the cache: processors do not follow so many streams,
 * which costs 30 % of the speed on bytes in memory.  The address may lie beyond the input. */
static inline void prefetch_next(const uint8_t *const inputs[LANES], uint32_t b, uint32_t blocks)
{
    uintptr_t distance = (uintptr_t)b * HEFT_BLAKE3_BLOCK + (uintptr_t)LANES * HEFT_BLAKE3_CHUNK;
    for (unsigned k = 0; k < LANES && blocks > 1; k++)
        heft_prefetch_line((const void *)((uintptr_t)inputs[k] + distance));
}

/* Compute the chaining values of n <= LANES inputs; the other lanes repeat the last input. */
static inline void hash_group(uint32_t (*out)[8], const uint8_t *p, size_t n, size_t distance,
                              uint32_t blocks, const lanes counter[2], uint32_t always)
{
    const uint8_t *inputs[LANES];
    lanes cv[8], m[16];
    for (unsigned k = 0; k < LANES; k++)
        inputs[k] = p + (k < n ? k : n - 1) * distance;
    for (unsigned i = 0; i < 8; i++)
        cv[i] = splat(heft_blake3_initial[i]);
    for (uint32_t b = 0; b < blocks; b++) {
        uint32_t ends = (b == 0 ? HEFT_BLAKE3_CHUNK_START : 0) |
                        (b == blocks - 1 ? HEFT_BLAKE3_CHUNK_END : 0);
        prefetch_next(inputs, b, blocks);
        load_blocks(m, inputs, (size_t)b * HEFT_BLAKE3_BLOCK);
        compress(cv, m, counter, always ? always : ends);
    }
    store_values(out, cv, n);
}

static void hash_chunks(uint32_t (*out)[8], const uint8_t *p, size_t count, uint64_t number)
{
    for (size_t at = 0; at < count; at += LANES) {
        uint32_t low[LANES], high[LANES];
        lanes counter[2];
        for (unsigned k = 0; k < LANES; k++) {
            low[k] = (uint32_t)(number + at + k);
            high[k] = (uint32_t)((number + at + k) >> 32);
        }
        memcpy(&counter[0], low, sizeof low);
        memcpy(&counter[1], high, sizeof high);
        hash_group(out + at, p + at * HEFT_BLAKE3_CHUNK, count - at < LANES ? count - at : LANES,
                   HEFT_BLAKE3_CHUNK, HEFT_BLAKE3_CHUNK / HEFT_BLAKE3_BLOCK, counter, 0);
    }
}

/* A group reads all inputs before writing, and writes below the inputs of the next group. */
static void hash_parents(uint32_t (*cv)[8], size_t count)
{
    const lanes counter[2] = { splat(0), splat(0) };
    for (size_t at = 0; at < count; at += LANES)
        hash_group(cv + at, (const uint8_t *)cv[2 * at], count - at < LANES ? count - at : LANES,
                   HEFT_BLAKE3_BLOCK, 1, counter, HEFT_BLAKE3_PARENT);
}

#endif
