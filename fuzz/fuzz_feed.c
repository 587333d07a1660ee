/* fuzz_feed.c - a file that arrives in any pieces in any order, from a source that may fail and with
 * memory that may run out: it ends, it leaks nothing, and what opens is the file that it is. */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"

enum { SCRIPT = 32, ROUNDS = 4000 };

typedef struct script { /* the last bytes of the file say as well what happens to it */
    const uint8_t *p;
    size_t at;
} script;

static uint32_t next(script *s)
{
    return s->p[s->at++ % SCRIPT];
}

/* ---- memory --------------------------------------------------------------------------------- */

typedef struct memory {
    heft_allocator al;
    uint64_t live;
    uint32_t left; /* requests until one fails */
} memory;

static void *resize(void *ctx, void *p, size_t old_size, size_t new_size, size_t align)
{
    memory *m = ctx;
    const heft_allocator *libc = heft_host_default()->allocator;
    if (new_size > old_size && !m->left--)
        return NULL;
    void *q = libc->resize(libc->ctx, p, old_size, new_size, align);
    m->live += new_size - old_size;
    return q;
}

/* ---- feeding -------------------------------------------------------------------------------- */

/* A piece of what is asked for, or of somewhere else, from memory that is gone afterwards. */
static heft_status feed_piece(heft_file *f, script *s, heft_range r, const uint8_t *data,
                              size_t size)
{
    uint32_t how = next(s);
    uint64_t at = r.offset, len = how % 4 ? 1 + how % 61 : r.length;
    if (how % 16 == 15)
        at = (at + next(s) * 257u) % size;
    if (how % 16 == 14)
        at = at < 7 ? 0 : at - 7;
    len = len < size - at ? len : size - at;
    if (len == size)
        return heft_file_feed(f, 0, data, size, NULL); /* this one is borrowed */
    uint8_t *copy = malloc((size_t)len + 1);
    fuzz_demand(copy);
    memcpy(copy, data + at, (size_t)len);
    heft_status st = heft_file_feed(f, at, copy, (size_t)len, NULL);
    free(copy);
    return st;
}

static heft_status drive(heft_file *f, script *s, const uint8_t *data, size_t size)
{
    heft_status st = HEFT_OK;
    for (uint32_t i = 0; i < ROUNDS && !st; i++) {
        const heft_range *needs;
        st = heft_file_step(f, NULL);
        if (st != HEFT_AGAIN)
            return st;
        size_t n = heft_file_needs(f, &needs);
        fuzz_demand(n);
        heft_range r = needs[next(s) % n];
        fuzz_demand(r.length && r.offset < size && r.length <= size - r.offset);
        st = feed_piece(f, s, r, data, size);
    }
    return st ? st : HEFT_AGAIN; /* too slow a script */
}

static void compare(const heft_file *f, const uint8_t *data, size_t size)
{
    heft_file *whole;
    fuzz_demand(!fuzz_open(&whole, data, size, NULL));
    fuzz_demand(heft_tensor_count(whole) == heft_tensor_count(f));
    fuzz_demand(heft_meta_count(whole) == heft_meta_count(f));
    for (uint32_t i = 0; i < heft_tensor_count(f); i++) {
        heft_tensor a = heft_tensor_at(whole, i), b = heft_tensor_at(f, i);
        fuzz_demand(a.dtype == b.dtype && a.rank == b.rank && a.name.len == b.name.len);
        fuzz_demand(!memcmp(a.name.ptr, b.name.ptr, a.name.len));
        fuzz_demand(heft_tensor_find(f, b.name) == i);
    }
    heft_file_close(whole);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < SCRIPT)
        return 0;
    script s = { data + size - SCRIPT, 0 };
    uint32_t left = next(&s);
    memory m = { .al = { .size = sizeof(heft_allocator), .resize = resize, .ctx = &m },
                 .left = left ? left : UINT32_MAX };
    heft_host host = *heft_host_default();
    heft_open_options opt = HEFT_OPEN_OPTIONS_INIT;
    heft_limits limits = HEFT_LIMITS_INIT;
    heft_file *f = NULL;
    host.allocator = &m.al;
    host.executor = NULL;
    opt.host = &host;
    limits.memory = 64 << 20;
    opt.limits = &limits;
    opt.no_verify = next(&s) % 4;
    heft_status st = heft_file_begin(&f, size, &opt, NULL);
    if (!st)
        st = drive(f, &s, data, size);
    if (!st)
        compare(f, data, size);
    fuzz_demand(st != HEFT_E_NOMEM || left);
    heft_file_close(f);
    fuzz_demand(!m.live);
    return 0;
}
