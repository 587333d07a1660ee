/* blake3.c - BLAKE3 (O'Connor, Aumasson, Neves, Wilcox-O'Hearn), hash mode, 32 bytes of output.
 *
 * The input is divided into chunks of 1024 bytes, a chunk into blocks of 64 bytes.  Chunks are the
 * leaves of a binary tree whose left subtrees are full; the stack has the roots of the full
 * subtrees so far.  The last node is hashed with the ROOT flag, so a block is compressed only after
 * another byte has followed, and so are the last two subtrees.  Whole chunks are hashed without a
 * copy, several in parallel: by a kernel of src/simd, or HEFT_U32_LANES at a time with the vectors
 * of the compiler's baseline, which name no instruction.
 */
#include "base/blake3.h"

#include <string.h>

#include "base/checked_math.h"
#include "base/compiler.h"
#include "base/cursor.h"
#include "base/kernels.h"

enum { BLOCK = HEFT_BLAKE3_BLOCK, CHUNK = HEFT_BLAKE3_CHUNK, BLOCKS = CHUNK / BLOCK };
enum { GROUP = HEFT_IS_SMALL ? 4 : 128 }; /* chunks whose chaining values are on the stack */

/* ---- HEFT_U32_LANES blocks in parallel: lane k of vector i is word i of block k ---- */

static inline heft_u32_lanes splat(uint32_t v)
{
    return (heft_u32_lanes){ 0 } + v;
}

static inline heft_u32_lanes rotate_lanes(heft_u32_lanes v, unsigned by)
{
    return v >> by | v << (32 - by);
}

static inline void mix_lanes(heft_u32_lanes v[16], unsigned a, unsigned b, unsigned c, unsigned d,
                             heft_u32_lanes x, heft_u32_lanes y)
{
    v[a] += v[b] + x;
    v[d] = rotate_lanes(v[d] ^ v[a], 16);
    v[c] += v[d];
    v[b] = rotate_lanes(v[b] ^ v[c], 12);
    v[a] += v[b] + y;
    v[d] = rotate_lanes(v[d] ^ v[a], 8);
    v[c] += v[d];
    v[b] = rotate_lanes(v[b] ^ v[c], 7);
}

/* Mix the columns, then the diagonals.  The words are read where they are used, because the state
 * fills the registers. */
static inline void do_round_lanes(heft_u32_lanes v[16], const heft_u32_lanes m[16],
                                  const uint8_t s[16])
{
    mix_lanes(v, 0, 4, 8, 12, m[s[0]], m[s[1]]);
    mix_lanes(v, 1, 5, 9, 13, m[s[2]], m[s[3]]);
    mix_lanes(v, 2, 6, 10, 14, m[s[4]], m[s[5]]);
    mix_lanes(v, 3, 7, 11, 15, m[s[6]], m[s[7]]);
    mix_lanes(v, 0, 5, 10, 15, m[s[8]], m[s[9]]);
    mix_lanes(v, 1, 6, 11, 12, m[s[10]], m[s[11]]);
    mix_lanes(v, 2, 7, 8, 13, m[s[12]], m[s[13]]);
    mix_lanes(v, 3, 4, 9, 14, m[s[14]], m[s[15]]);
}

/* Do what compress() does, in each lane. */
static void compress_lanes(heft_u32_lanes cv[8], const heft_u32_lanes m[16], heft_u32_lanes low,
                           heft_u32_lanes high, uint32_t bytes, uint32_t flags)
{
    heft_u32_lanes v[16];
    for (unsigned i = 0; i < 8; i++)
        v[i] = cv[i];
    for (unsigned i = 0; i < 4; i++)
        v[i + 8] = splat(heft_blake3_initial[i]);
    v[12] = low;
    v[13] = high;
    v[14] = splat(bytes);
    v[15] = splat(flags);
    for (unsigned r = 0; r < HEFT_BLAKE3_ROUNDS; r++)
        do_round_lanes(v, m, heft_blake3_schedule[r]);
    for (unsigned i = 0; i < 8; i++)
        cv[i] = v[i] ^ v[i + 8];
}

/* Compress one block in all lanes. */
static void compress_alone(uint32_t cv[8], const uint32_t m[16], uint64_t counter, uint32_t bytes,
                           uint32_t flags)
{
    heft_u32_lanes words[16], all[8];
    for (unsigned i = 0; i < 16; i++)
        words[i] = splat(m[i]);
    for (unsigned i = 0; i < 8; i++)
        all[i] = splat(cv[i]);
    compress_lanes(all, words, splat((uint32_t)counter), splat((uint32_t)(counter >> 32)), bytes,
                   flags);
    for (unsigned i = 0; i < 8; i++)
        memcpy(&cv[i], &all[i], sizeof *cv);
}

/* ---- single blocks ---- */

static inline uint32_t rotate(uint32_t v, unsigned by)
{
    return v >> by | v << (32 - by);
}

static inline void mix(uint32_t v[16], unsigned a, unsigned b, unsigned c, unsigned d, uint32_t x,
                       uint32_t y)
{
    v[a] += v[b] + x;
    v[d] = rotate(v[d] ^ v[a], 16);
    v[c] += v[d];
    v[b] = rotate(v[b] ^ v[c], 12);
    v[a] += v[b] + y;
    v[d] = rotate(v[d] ^ v[a], 8);
    v[c] += v[d];
    v[b] = rotate(v[b] ^ v[c], 7);
}

/* Mix the columns, then the diagonals. */
static inline void do_round(uint32_t v[16], const uint32_t m[16], const uint8_t s[16])
{
    mix(v, 0, 4, 8, 12, m[s[0]], m[s[1]]);
    mix(v, 1, 5, 9, 13, m[s[2]], m[s[3]]);
    mix(v, 2, 6, 10, 14, m[s[4]], m[s[5]]);
    mix(v, 3, 7, 11, 15, m[s[6]], m[s[7]]);
    mix(v, 0, 5, 10, 15, m[s[8]], m[s[9]]);
    mix(v, 1, 6, 11, 12, m[s[10]], m[s[11]]);
    mix(v, 2, 7, 8, 13, m[s[12]], m[s[13]]);
    mix(v, 3, 4, 9, 14, m[s[14]], m[s[15]]);
}

/* Compute the first eight words of the compression function: enough for chaining and for 32 bytes
 * of output. */
static void compress(uint32_t cv[8], const uint32_t m[16], uint64_t counter, uint32_t bytes,
                     uint32_t flags)
{
    if (HEFT_HAS_LANES_ONLY) {
        compress_alone(cv, m, counter, bytes, flags);
        return;
    }
    uint32_t v[16] = { cv[0],
                       cv[1],
                       cv[2],
                       cv[3],
                       cv[4],
                       cv[5],
                       cv[6],
                       cv[7],
                       heft_blake3_initial[0],
                       heft_blake3_initial[1],
                       heft_blake3_initial[2],
                       heft_blake3_initial[3],
                       (uint32_t)counter,
                       (uint32_t)(counter >> 32),
                       bytes,
                       flags };
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

static void compress_block(uint32_t cv[8], const uint8_t block[BLOCK], uint64_t counter,
                           uint32_t bytes, uint32_t flags)
{
    uint32_t m[16];
    for (unsigned i = 0; i < 16; i++)
        m[i] = heft_le32(block + 4 * i);
    compress(cv, m, counter, bytes, flags);
}

void heft_blake3_chunk(uint32_t cv[8], const uint8_t *p, uint64_t number)
{
    memcpy(cv, heft_blake3_initial, sizeof heft_blake3_initial);
    for (unsigned b = 0; b < BLOCKS; b++) {
        unsigned flags = (b == 0 ? HEFT_BLAKE3_CHUNK_START : 0) |
                         (b == BLOCKS - 1 ? HEFT_BLAKE3_CHUNK_END : 0);
        compress_block(cv, p + (size_t)b * BLOCK, number, BLOCK, flags);
    }
}

/* ---- chunks and parents in parallel ---- */

/* Transpose a square of integers: interleaving the halves log2(HEFT_U32_LANES) times. */
static void transpose(heft_u32_lanes v[HEFT_U32_LANES])
{
    heft_u32_lanes from[HEFT_U32_LANES];
    for (unsigned step = 1; step < HEFT_U32_LANES; step *= 2) {
        for (unsigned i = 0; i < HEFT_U32_LANES; i++)
            from[i] = v[i];
        for (unsigned i = 0; 2 * i + 1 < HEFT_U32_LANES; i++) {
            v[2 * i] = heft_zip_low(from[i], from[i + HEFT_U32_LANES / 2]);
            v[2 * i + 1] = heft_zip_high(from[i], from[i + HEFT_U32_LANES / 2]);
        }
    }
}

/* Load a block of each input: m[i] gets word i.  The inputs are `distance` bytes apart. */
static void load_blocks(heft_u32_lanes m[16], const uint8_t *p, size_t distance)
{
    for (unsigned i = 0; i < 16; i += HEFT_U32_LANES) {
        for (unsigned k = 0; k < HEFT_U32_LANES; k++)
            memcpy(&m[i + k], p + k * distance + i * sizeof(uint32_t), sizeof *m);
        transpose(m + i);
    }
}

/* Compute the chaining values of HEFT_U32_LANES inputs of `blocks` blocks; `number` is the number
 * of the first chunk. */
static void hash_lanes(uint32_t (*out)[8], const uint8_t *p, uint32_t blocks, uint64_t number)
{
    uint32_t low[HEFT_U32_LANES], high[HEFT_U32_LANES];
    heft_u32_lanes lows, highs, cv[8], m[16];
    for (unsigned k = 0; k < HEFT_U32_LANES; k++) {
        low[k] = blocks == 1 ? 0 : (uint32_t)(number + k);
        high[k] = (uint32_t)((number + k) >> 32);
    }
    memcpy(&lows, low, sizeof lows);
    memcpy(&highs, high, sizeof highs);
    for (unsigned i = 0; i < 8; i++)
        cv[i] = splat(heft_blake3_initial[i]);
    for (unsigned b = 0; b < blocks; b++) {
        uint32_t ends = (b == 0 ? HEFT_BLAKE3_CHUNK_START : 0) |
                        (b == BLOCKS - 1 ? HEFT_BLAKE3_CHUNK_END : 0);
        load_blocks(m, p + (size_t)b * BLOCK, (size_t)blocks * BLOCK);
        compress_lanes(cv, m, lows, highs, BLOCK, blocks == 1 ? HEFT_BLAKE3_PARENT : ends);
    }
    for (unsigned i = 0; i < 8; i += HEFT_U32_LANES) {
        transpose(cv + i);
        for (unsigned k = 0; k < HEFT_U32_LANES; k++)
            memcpy(&out[k][i], &cv[i + k], sizeof *cv);
    }
}

/* ---- the tree ---- */

/* Replace `right` by the parent node of left and right. */
static void make_parent(const uint32_t left[8], uint32_t right[8], uint32_t flags)
{
    uint32_t m[16];
    memcpy(m, left, 8 * sizeof *m);
    memcpy(m + 8, right, 8 * sizeof *m);
    memcpy(right, heft_blake3_initial, sizeof heft_blake3_initial);
    compress(right, m, 0, BLOCK, HEFT_BLAKE3_PARENT | flags);
}

void heft_blake3_parent(const uint32_t left[8], uint32_t right[8])
{
    make_parent(left, right, 0);
}

/* Add the root of a full subtree of `chunks` chunks, a power of two, that is not the last node.
 * Each trailing zero bit of the new number of such subtrees is a larger subtree that has become
 * full. */
static void add_subtree(heft_blake3 *h, uint32_t cv[8], uint32_t chunks)
{
    h->chunk += chunks;
    for (uint64_t full = heft_div(h->chunk, chunks); !(full & 1); full >>= 1)
        make_parent(h->stack[--h->depth], cv, 0);
    memcpy(h->stack[h->depth++], cv, sizeof h->stack[0]);
}

static void begin_chunk(heft_blake3 *h)
{
    memcpy(h->cv, heft_blake3_initial, sizeof heft_blake3_initial);
    h->block_len = 0;
    h->blocks = 0;
    h->waiting = 0;
}

/* Compress the buffered block, which is full and has a byte after it. */
static void end_block(heft_blake3 *h)
{
    uint32_t flags = (h->blocks == 0 ? HEFT_BLAKE3_CHUNK_START : 0) |
                     (h->blocks == BLOCKS - 1 ? HEFT_BLAKE3_CHUNK_END : 0);
    compress_block(h->cv, h->block, h->chunk, BLOCK, flags);
    h->block_len = 0;
    h->blocks++;
    if (h->blocks == BLOCKS) {
        add_subtree(h, h->cv, 1);
        begin_chunk(h);
    }
}

static void hash_many_chunks(const heft_kernels *k, uint32_t (*cv)[8], const uint8_t *p,
                             size_t count, uint64_t number)
{
    size_t at = 0;
    if (k->blake3_chunks && count > 1) {
        k->blake3_chunks(cv, p, count, number);
        return;
    }
    for (; HEFT_U32_LANES > 1 && count - at >= HEFT_U32_LANES; at += HEFT_U32_LANES)
        hash_lanes(cv + at, p + at * CHUNK, BLOCKS, number + at);
    for (; at < count; at++)
        heft_blake3_chunk(cv[at], p + at * CHUNK, number + at);
}

/* Reduce the chaining values of a full subtree of `chunks` chunks to its root, cv[0], or to the two
 * nodes below. */
static void reduce(const heft_kernels *k, uint32_t (*cv)[8], uint32_t chunks, uint32_t nodes)
{
    for (uint32_t n = chunks / 2; n >= nodes; n /= 2) {
        if (k->blake3_parents && n > 1) {
            k->blake3_parents(cv, n);
            continue;
        }
        uint32_t i = 0;
        for (; HEFT_U32_LANES > 1 && n - i >= HEFT_U32_LANES; i += HEFT_U32_LANES)
            hash_lanes(cv + i, (const uint8_t *)cv[2 * i], 1, 0);
        for (; i < n; i++) {
            make_parent(cv[2 * i], cv[2 * i + 1], 0);
            memcpy(cv[i], cv[2 * i + 1], sizeof cv[i]);
        }
    }
}

/* Add a subtree that may end the input: the right half, or the only chunk, waits for a byte that
 * follows. */
static void add_last_subtree(heft_blake3 *h, const heft_kernels *k, uint32_t (*cv)[8],
                             uint32_t chunks)
{
    reduce(k, cv, chunks, 2);
    if (chunks > 1)
        add_subtree(h, cv[0], chunks / 2);
    h->waiting = chunks > 1 ? chunks / 2 : 1;
    memcpy(h->cv, cv[chunks > 1], sizeof h->cv);
}

static void add_waiting_subtree(heft_blake3 *h)
{
    add_subtree(h, h->cv, h->waiting);
    begin_chunk(h);
}

/* Add the whole chunks at p, except the only chunk of the input; return the bytes added. */
static size_t add_whole_chunks(heft_blake3 *h, const uint8_t *p, size_t len)
{
    const heft_kernels *k = heft_kernels_now();
    uint32_t cv[GROUP][8];
    size_t whole = h->chunk || len > CHUNK ? len / CHUNK : 0;
    for (size_t left = whole; left;) {
        uint32_t count = left < GROUP ? (uint32_t)left : GROUP;
        bool is_last = count == left && whole * CHUNK == len;
        hash_many_chunks(k, cv, p, count, h->chunk);
        for (uint32_t at = 0, chunks; at < count; at += chunks) {
            for (chunks = 1; chunks * 2 <= count - at && !(h->chunk & (chunks * 2 - 1));)
                chunks *= 2;
            if (is_last && at + chunks == count) {
                add_last_subtree(h, k, cv + at, chunks);
                break;
            }
            reduce(k, cv + at, chunks, 1);
            add_subtree(h, cv[at], chunks);
        }
        p += (size_t)count * CHUNK;
        left -= count;
    }
    return whole * CHUNK;
}

void heft_blake3_init(heft_blake3 *h)
{
    h->chunk = 0;
    h->depth = 0;
    begin_chunk(h);
}

void heft_blake3_update(heft_blake3 *h, const void *data, size_t len)
{
    const uint8_t *p = data;
    while (len) {
        if (h->waiting)
            add_waiting_subtree(h);
        if (h->block_len == BLOCK)
            end_block(h);
        size_t n = !h->blocks && !h->block_len ? add_whole_chunks(h, p, len) : 0;
        p += n;
        len -= n;
        n = BLOCK - (size_t)h->block_len;
        n = n < len ? n : len;
        memcpy(h->block + h->block_len, p, n);
        h->block_len = (uint8_t)(h->block_len + n);
        p += n;
        len -= n;
    }
}

/* Replace cv, the chaining value before the buffered block, by the value of the chunk. */
static void end_chunk(const heft_blake3 *h, uint32_t cv[8])
{
    uint8_t block[BLOCK] = { 0 };
    uint32_t flags = HEFT_BLAKE3_CHUNK_END | (h->blocks ? 0 : HEFT_BLAKE3_CHUNK_START);
    memcpy(block, h->block, h->block_len);
    compress_block(cv, block, h->chunk, h->block_len, flags | (h->depth ? 0 : HEFT_BLAKE3_ROOT));
}

void heft_blake3_final(const heft_blake3 *h, uint8_t out[32])
{
    uint32_t cv[8];
    memcpy(cv, h->cv, sizeof cv);
    if (!h->waiting)
        end_chunk(h, cv);
    for (unsigned d = h->depth; d; d--)
        make_parent(h->stack[d - 1], cv, d == 1 ? HEFT_BLAKE3_ROOT : 0);
    for (unsigned i = 0; i < 32; i++)
        out[i] = (uint8_t)(cv[i / 4] >> 8 * (i % 4));
}

void heft_blake3_id(uint8_t out[16], const void *name, size_t len)
{
    uint8_t whole[32];
    heft_blake3 h;
    heft_blake3_init(&h);
    heft_blake3_update(&h, name, len);
    heft_blake3_final(&h, whole);
    memcpy(out, whole, 16);
}
