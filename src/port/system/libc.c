/* libc.c - memory and error texts from the C library. */
#include "port/port.h"

#include <stdlib.h>
#include <string.h>

/* Blocks from here on leave the process when they are freed.  The heap of the C library would keep
 * them, once in each thread's arena: parameters that are loaded and evicted would take a multiple
 * of their budget. */
enum { MMAP_THRESHOLD = 512 << 10 };

/* ---- memory ---- */

static void *resize(void *ctx, void *ptr, size_t old_size, size_t new_size, size_t align)
{
    (void)ctx;
    if (ptr && new_size >= MMAP_THRESHOLD && old_size >= MMAP_THRESHOLD)
        return heft_large_map(ptr, old_size, new_size);
    if (ptr && new_size && new_size < MMAP_THRESHOLD && old_size < MMAP_THRESHOLD &&
        align <= _Alignof(max_align_t))
        return realloc(ptr, new_size);
    void *p = NULL;
    if (new_size >= MMAP_THRESHOLD)
        p = heft_large_map(NULL, 0, new_size);
    else if (new_size && align <= _Alignof(max_align_t))
        p = malloc(new_size);
    else if (new_size)
        p = heft_aligned_new(align, new_size);
    if (!ptr || (!p && new_size))
        return p;
    if (p)
        memcpy(p, ptr, old_size < new_size ? old_size : new_size);
    if (old_size >= MMAP_THRESHOLD)
        heft_large_unmap(ptr, old_size);
    else if (align > _Alignof(max_align_t))
        heft_aligned_free(ptr);
    else
        free(ptr);
    return p;
}

const heft_allocator heft_libc_allocator = { .size = sizeof heft_libc_allocator, .resize = resize };

/* ---- error texts ---- */

/* strerror_r() returns a text in glibc, a status in POSIX. */
static const char *text_of_gnu(char *found, const char *text)
{
    (void)text;
    return found;
}

static const char *text_of_posix(int failed, const char *text)
{
    return failed ? "unknown error" : text;
}

heft_status heft_os_error(heft_error *err, int os, const char *what)
{
    char text[128] = "";
    const char *description = _Generic(strerror_r(os, text, sizeof text), char *
                                       : text_of_gnu, int
                                       : text_of_posix)(strerror_r(os, text, sizeof text), text);
    heft_error_plain(err, HEFT_E_IO, "%s: %s", what, description);
    if (err)
        err->os = os;
    return HEFT_E_IO;
}
