/* limited_host.h - a host with an allocator that refuses huge blocks and counts the refusals,
 * and files opened on this host. */
#ifndef LIMITED_HOST_H
#define LIMITED_HOST_H
#include "core/read/file.h"
#include "models.h"

/* A pointer of 32 bits refuses blocks of billions of elements without a request. */
enum { HUGE_BYTES = 1 << 28, HAS_64_BITS = SIZE_MAX > UINT32_MAX };

static heft_test_memory memory;
static heft_allocator limited; /* refuses huge blocks, passes the other requests to memory */
static heft_host host;
static uint32_t huge_requests;

static inline void *resize_limited(void *ctx, void *p, size_t old_size, size_t new_size,
                                   size_t align)
{
    (void)ctx;
    if (new_size < HUGE_BYTES)
        return memory.al.resize(&memory, p, old_size, new_size, align);
    huge_requests++;
    return NULL;
}

static inline void begin(void)
{
    heft_test_memory_init(&memory, 0);
    limited = (heft_allocator){ .size = sizeof limited, .resize = resize_limited };
    host = memory.host;
    host.allocator = &limited;
    huge_requests = 0;
}

/* A file of the format with an f32 tensor "w" of 25 elements. */
static inline heft_file *opened(const char *format, heft_bytes *b)
{
    *b = heft_test_one(format, 100);
    return heft_test_opened(*b, &host, false);
}

static inline void close_all(heft_file *f, heft_bytes *b)
{
    heft_file_close(f);
    heft_test_free(b);
    heft_assert_all_freed(&memory);
}

static inline heft_source *source_of(const void *bytes, size_t len)
{
    heft_source *s;
    heft_error err;
    heft_assert_ok(heft_source_open_memory(&s, bytes, len, &err), &err);
    return s;
}

/* Begin a file that gets the bytes later. */
static inline heft_file *begun(heft_bytes b)
{
    heft_open_options o = HEFT_OPEN_OPTIONS_INIT;
    heft_file *f;
    heft_error err;
    o.host = &host;
    heft_assert_ok(heft_file_begin(&f, b.len, &o, &err), &err);
    return f;
}

/* Read the array "w" and free its bytes. */
static inline heft_status read_array(const heft_file *f, heft_error *err)
{
    heft_array a;
    heft_status st = heft_array_read(&a, f, HEFT_STR("w"), HEFT_UNTYPED, NULL, 0, err);
    assert_true(st || a.bytes);
    if (!st)
        heft_array_free(&a);
    return st;
}

#endif
