/* libc.c - memory, random bytes and error texts from the C library. */
#include "port/port.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>

enum {
    HUGE_PAGE =
        2 << 20, /* the size on most systems; with a different size MADV_HUGEPAGE helps less */
    MMAP_THRESHOLD = 3 << 20 /* rounding up to huge pages may waste a quarter */
};

/* ---- memory ---- */

static size_t whole_pages(size_t size)
{
    return (size + HUGE_PAGE - 1) & ~(size_t)(HUGE_PAGE - 1);
}

/* Map a large block, such as a column of a large index, with huge pages: one page fault instead of
 * 512.  The length is rounded up to whole huge pages, so that the system aligns the mapping and
 * mremap() grows it without copying. */
static void *map_large(void *old, size_t old_size, size_t new_size)
{
    size_t len = whole_pages(new_size);
    if (len < new_size)
        return NULL;
    void *p = old ? mremap(old, whole_pages(old_size), len, MREMAP_MAYMOVE)
                  : mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        return NULL;
    madvise(p, len, MADV_HUGEPAGE);
    return p;
}

static void *resize(void *ctx, void *ptr, size_t old_size, size_t new_size, size_t align)
{
    (void)ctx;
    if (ptr && new_size >= MMAP_THRESHOLD && old_size >= MMAP_THRESHOLD)
        return map_large(ptr, old_size, new_size);
    if (ptr && new_size && new_size < MMAP_THRESHOLD && old_size < MMAP_THRESHOLD &&
        align <= _Alignof(max_align_t))
        return realloc(ptr, new_size);
    void *p = NULL;
    if (new_size >= MMAP_THRESHOLD)
        p = map_large(NULL, 0, new_size);
    else if (new_size && align <= _Alignof(max_align_t))
        p = malloc(new_size);
    else if (new_size && posix_memalign(&p, align, new_size))
        p = NULL;
    if (!ptr || (!p && new_size))
        return p;
    if (p)
        memcpy(p, ptr, old_size < new_size ? old_size : new_size);
    if (old_size >= MMAP_THRESHOLD)
        munmap(ptr, whole_pages(old_size));
    else
        free(ptr);
    return p;
}

const heft_allocator heft_libc_allocator = { .size = sizeof heft_libc_allocator, .resize = resize };

/* ---- random bytes, error texts ---- */

void heft_os_entropy(void *buf, size_t len)
{
    if (getrandom(buf, len, GRND_NONBLOCK) != (ssize_t)len)
        memset(buf, 0, len);
}

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
