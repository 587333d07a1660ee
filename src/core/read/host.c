/* host.c - the host's services (digests, codecs, threads, entropy), with defaults for missing
 * services. */
#include "core/read/file.h"

#include <heft/heft_ext.h>

#include "base/crc.h"

#include <string.h>

/* Block sizes are rounded, so that freeing the last block makes the previous block the last. */
enum { GRAIN = 16 };

static size_t rounded(size_t size)
{
    return (size + (GRAIN - 1)) & ~(size_t)(GRAIN - 1);
}

static void *allocate(heft_arena_memory *m, size_t size, size_t align)
{
    uintptr_t address = (uintptr_t)(m->base + m->used);
    size_t padding = (size_t)(-address & (align - 1));
    size = rounded(size);
    if (!size || padding > m->size - m->used || size > m->size - m->used - padding)
        return NULL;
    void *p = m->base + m->used + padding;
    m->used += padding + size;
    m->peak = m->used > m->peak ? m->used : m->peak;
    return p;
}

static void *resize(void *ctx, void *ptr, size_t old_size, size_t new_size, size_t align)
{
    heft_arena_memory *m = ctx;
    uint8_t *old = ptr;
    bool last = old && old + rounded(old_size) == m->base + m->used;
    size_t used = m->used;
    if (last)
        m->used -= rounded(old_size);
    if (!new_size)
        return NULL;
    uint8_t *p = last || !old || new_size > old_size ? allocate(m, new_size, align) : old;
    if (!p)
        m->used = used;
    else if (old && p != old)
        memmove(p, old, old_size < new_size ? old_size : new_size);
    return p;
}

heft_allocator heft_arena_allocator(heft_arena_memory *m)
{
    m->used = m->peak = 0;
    return (heft_allocator){ .size = sizeof(heft_allocator), .resize = resize, .ctx = m };
}

/* ---- digests of every build ---- */

static bool crc_init(void *state)
{
    *(uint32_t *)state = 0;
    return true;
}

static void crc_final(uint8_t *out, void *state)
{
    uint32_t v = *(uint32_t *)state;
    for (int i = 0; out && i < 4; i++)
        out[i] = (uint8_t)(v >> 8 * i);
}

static void crc32_update(void *state, const void *data, size_t len)
{
    *(uint32_t *)state = heft_crc32(*(uint32_t *)state, data, len);
}

static void crc32_join(void *state, const void *next, uint64_t len)
{
    *(uint32_t *)state = heft_crc32_join(*(uint32_t *)state, *(const uint32_t *)next, len);
}

static void crc32c_update(void *state, const void *data, size_t len)
{
    *(uint32_t *)state = heft_crc32c(*(uint32_t *)state, data, len);
}

static void crc32c_join(void *state, const void *next, uint64_t len)
{
    *(uint32_t *)state = heft_crc32c_join(*(uint32_t *)state, *(const uint32_t *)next, len);
}

static const heft_digest builtin_digests[] = {
    { sizeof(heft_digest), "crc32", 4, 4, crc_init, crc32_update, crc_final, crc32_join, NULL },
    { sizeof(heft_digest), "crc32c", 4, 4, crc_init, crc32c_update, crc_final, crc32c_join, NULL },
};

const heft_digest *heft_host_digest(const heft_host *h, const char *name)
{
    for (size_t i = 0; h->digests && h->digests[i]; i++)
        if (heft_str_is(heft_lit(name), h->digests[i]->name))
            return h->digests[i];
    for (size_t i = 0; i < sizeof builtin_digests / sizeof *builtin_digests; i++)
        if (heft_str_is(heft_lit(name), builtin_digests[i].name))
            return &builtin_digests[i];
    return NULL;
}

heft_status heft_host_resolve(const heft_host **out, const heft_host *wanted, heft_error *err)
{
    const heft_host *h = wanted ? wanted : heft_host_default();
    *out = h;
    return heft_host_check(h, err);
}

void heft_host_copy(heft_host *out, const heft_host *from, size_t size)
{
    const heft_host *h = from ? from : heft_host_default();
    memset(out, 0, size);
    memcpy(out, h, h->size < size ? h->size : size);
    memcpy(out, &size, sizeof size);
}

void heft_executor_run(const heft_executor *e, size_t n, void (*fn)(void *arg, size_t i), void *arg)
{
    if (e && n > 1) {
        e->run(e->ctx, n, fn, arg);
        return;
    }
    for (size_t i = 0; i < n; i++)
        fn(arg, i);
}

void heft_host_init_index(const heft_host *h, heft_index *x, const heft_limits *limits)
{
    uint64_t secret[2] = { 0, 0 };
    if (h->entropy)
        h->entropy(secret, sizeof secret);
    heft_ix_init(x, h->allocator, limits, secret);
    x->run = h->executor ? h->executor->run : NULL;
    x->run_ctx = h->executor ? h->executor->ctx : NULL;
}

const heft_codec *heft_host_codec(const heft_host *h, heft_encoding e)
{
    for (size_t i = 0; h->codecs && h->codecs[i]; i++)
        if (h->codecs[i]->encoding == e)
            return h->codecs[i];
    return NULL;
}
