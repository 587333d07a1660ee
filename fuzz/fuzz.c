/* fuzz.c - requirements, scripts, and memory with one thread that counts bytes. */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

void fuzz_require(bool holds)
{
    if (!holds)
        abort();
}

void fuzz_require_error(heft_status st, const heft_error *err)
{
    if (st)
        fuzz_require(err->status == st && *err->message &&
                     memchr(err->message, 0, sizeof err->message));
}

heft_error fuzz_no_error(void)
{
    heft_error err;
    memset(&err, 0xA5, sizeof err);
    return err;
}

void fuzz_use(uint64_t v)
{
    static volatile uint64_t sink;
    sink = v;
    (void)sink;
}

/* ---- the script ----------------------------------------------------------------------------- */

uint32_t fuzz_next(fuzz_script *s)
{
    return s->len ? s->bytes[s->at++ % s->len] : 0;
}

uint32_t fuzz_choice(const fuzz_script *s, heft_str name, uint32_t question)
{
    uint32_t h = UINT32_C(0x811C9DC5) ^ question;
    for (size_t i = 0; i < name.len; i++)
        h = (h ^ (uint8_t)name.ptr[i]) * UINT32_C(0x01000193);
    return s->len ? s->bytes[(h >> 8) % s->len] ^ h >> 24 : 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t script_bytes = fuzz_this.script_bytes;
    if (size < script_bytes)
        return 0;
    fuzz_script s = { data + size - script_bytes, script_bytes, 0 };
    fuzz_this.run(data, size - script_bytes, &s);
    return 0;
}

/* ---- memory --------------------------------------------------------------------------------- */

static void *resize(void *ctx, void *ptr, size_t old_size, size_t new_size, size_t align)
{
    fuzz_memory *m = ctx;
    const heft_allocator *libc = heft_host_default()->allocator;
    if (m->on_request)
        m->on_request(m->ctx);
    if (new_size > old_size && m->left != UINT32_MAX && !m->left--) {
        m->left = 0; /* requests after the first failure fail, too */
        m->has_failed = true;
        return NULL;
    }
    void *p = libc->resize(libc->ctx, ptr, old_size, new_size, align);
    m->live += new_size - old_size;
    m->peak = m->live > m->peak ? m->live : m->peak;
    return p;
}

void fuzz_memory_init(fuzz_memory *m, uint32_t left)
{
    *m = (fuzz_memory){ .left = left };
    m->al = (heft_allocator){ .size = sizeof m->al, .resize = resize, .ctx = m };
    heft_host_copy(&m->host, NULL, sizeof m->host);
    m->host.allocator = &m->al;
    m->host.executor = NULL;
    m->host.entropy = NULL;
    m->host.open_hdf5 = NULL; /* it starts a process; fuzz_keras has its own */
}
