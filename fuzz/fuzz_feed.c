/* fuzz_feed.c - fuzzes heft_file_feed(): pieces in any order, a source that fails, memory that runs
 * out. Feeding ends, leaks nothing, and opens the same file as reading the whole. */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"

enum { ROUNDS = 4000 };

/* ---- feeding -------------------------------------------------------------------------------- */

/* Feed part of the requested range, or another range, from memory that is freed afterwards. */
static heft_status feed_piece(heft_file *f, fuzz_script *s, heft_range r, const uint8_t *data,
                              size_t size)
{
    uint32_t how = fuzz_next(s);
    uint64_t at = r.offset, len = how % 4 ? 1 + how % 61 : r.length;
    if (how % 16 == 15)
        at = (at + fuzz_next(s) * 257u) % size;
    if (how % 16 == 14)
        at = at < 7 ? 0 : at - 7;
    len = len < size - at ? len : size - at;
    if (len == size)
        return heft_file_feed(f, 0, data, size, NULL); /* the whole file is borrowed */
    uint8_t *copy = malloc((size_t)len + 1);
    fuzz_require(copy);
    memcpy(copy, data + at, (size_t)len);
    heft_status st = heft_file_feed(f, at, copy, (size_t)len, NULL);
    free(copy);
    return st;
}

static heft_status drive(heft_file *f, fuzz_script *s, const uint8_t *data, size_t size)
{
    heft_status st = HEFT_OK;
    for (uint32_t i = 0; i < ROUNDS && !st; i++) {
        const heft_range *needs;
        st = heft_file_step(f, NULL);
        if (st != HEFT_AGAIN)
            return st;
        size_t n = heft_file_needs(f, &needs);
        fuzz_require(n);
        heft_range r = needs[fuzz_next(s) % n];
        fuzz_require(r.length && r.offset < size && r.length <= size - r.offset);
        st = feed_piece(f, s, r, data, size);
    }
    return st ? st : HEFT_AGAIN; /* the script makes no progress */
}

static void compare(const heft_file *f, const uint8_t *data, size_t size)
{
    heft_file *whole;
    fuzz_require(!fuzz_open(&whole, data, size, NULL));
    fuzz_require(heft_tensor_count(whole) == heft_tensor_count(f));
    fuzz_require(heft_meta_count(whole) == heft_meta_count(f));
    for (uint32_t i = 0; i < heft_tensor_count(f); i++) {
        heft_tensor a = heft_tensor_at(whole, i), b = heft_tensor_at(f, i);
        fuzz_require(a.dtype == b.dtype && a.rank == b.rank && a.name.len == b.name.len);
        fuzz_require(!memcmp(a.name.ptr, b.name.ptr, a.name.len));
        fuzz_require(heft_tensor_find(f, b.name) == i);
    }
    heft_file_close(whole);
}

static void run(const uint8_t *data, size_t size, fuzz_script *s)
{
    heft_open_options opt = HEFT_OPEN_OPTIONS_INIT;
    heft_file *f = NULL;
    fuzz_memory m;
    uint32_t left = fuzz_next(s);
    fuzz_memory_init(&m, left ? left : UINT32_MAX);
    opt.host = &m.host;
    opt.limits = &fuzz_limits;
    opt.no_verify = fuzz_next(s) % 4;
    heft_status st = heft_file_begin(&f, size, &opt, NULL);
    if (!st)
        st = drive(f, s, data, size);
    if (!st)
        compare(f, data, size);
    fuzz_require(st != HEFT_E_NOMEM || left);
    heft_file_close(f);
    fuzz_require(!m.live);
}

const fuzz_target fuzz_this = { .run = run, .script_bytes = 32, .takes_models = true };
