/* direct.c - reading past the system's cache what it does not hold: a cold file that is read once comes
 * faster from the disk itself, and pushes nothing else out of memory. */
#include "port/port.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
    ALIGN = 4096,              /* of memory and offsets: no disk asks for more */
    SHARE = 4 << 20,           /* looked at, and read, at a time */
    ROOM = SHARE + ALIGN,      /* the caller's memory is rarely aligned as the file is */
    ROOMS = 8,                 /* kept, one for each thread that reads */
    PAGES = SHARE / ALIGN + 2, /* of a share, or fewer */
};

struct heft_direct {
    int cached, direct; /* descriptors of the file, the first one borrowed */
    const uint8_t *map; /* of the file, borrowed: tells what is cached; or NULL: nothing is */
    size_t page;
    _Atomic(void *) rooms[ROOMS];
};

/* ---- rooms: of huge pages, since a disk takes a request in few pieces ---- */

static void *take_room(heft_direct *d)
{
    void *room = NULL;
    for (int i = 0; i < ROOMS && !room; i++)
        room = atomic_exchange(&d->rooms[i], NULL);
    return room ? room : heft_buffer_new(ROOM);
}

static void give_room(heft_direct *d, void *room)
{
    for (int i = 0; i < ROOMS && room; i++)
        room = atomic_exchange(&d->rooms[i], room);
    heft_buffer_free(room, ROOM);
}

/* ---- opening ---- */

heft_direct *heft_direct_open(int fd, const void *map)
{
    char self[64];
    heft_direct *d = calloc(1, sizeof *d);
    if (!d)
        return NULL;
    snprintf(self, sizeof self, "/proc/self/fd/%d", fd);
    d->cached = fd;
    d->map = map;
    d->page = (size_t)sysconf(_SC_PAGESIZE);
    d->direct = open(self, O_RDONLY | O_DIRECT | O_CLOEXEC);
    if (d->direct >= 0)
        return d;
    free(d);
    return NULL;
}

void heft_direct_close(heft_direct *d)
{
    for (int i = 0; i < ROOMS; i++)
        heft_buffer_free(atomic_load(&d->rooms[i]), ROOM);
    close(d->direct);
    free(d);
}

/* ---- reading ---- */

/* How many of the bytes from off on, at most len and a share, are alike: in the cache, or not.  The
 * mapping answers without asking for a page, which a read that does not wait would do. */
static size_t look(const heft_direct *d, uint64_t off, size_t len, bool *cached)
{
    unsigned char pages[PAGES];
    size_t skip = off % d->page, n = len < SHARE ? len : SHARE, i = 0;
    size_t count = (skip + n + d->page - 1) / d->page;
    *cached = false;
    if (!d->map || mincore((void *)(uintptr_t)(d->map + off - skip), skip + n, pages))
        return n;
    *cached = pages[0] & 1;
    while (i < count && (pages[i] & 1) == *cached)
        i++;
    return i == count ? n : i * d->page - skip;
}

static size_t read_cached(const heft_direct *d, uint64_t off, uint8_t *buf, size_t len)
{
    ssize_t n;
    do
        n = pread(d->cached, buf, len, (off_t)off);
    while (n < 0 && errno == EINTR);
    return n > 0 ? (size_t)n : 0;
}

/* Up to ROOM bytes that begin in the block of off; how many of them lie from off on. */
static size_t read_blocks(const heft_direct *d, uint64_t off, uint8_t *room, size_t len)
{
    size_t skip = off % ALIGN, want = (skip + len + ALIGN - 1) & ~(size_t)(ALIGN - 1);
    ssize_t n;
    do
        n = pread(d->direct, room, want < ROOM ? want : ROOM, (off_t)(off - skip));
    while (n < 0 && errno == EINTR);
    return n > (ssize_t)skip ? (size_t)n - skip : 0;
}

size_t heft_direct_read(heft_direct *d, uint64_t off, void *buf, size_t len)
{
    uint8_t *to = buf, *room = take_room(d);
    size_t done = 0, n = room ? 1 : 0;
    while (done < len && n) {
        bool cached;
        size_t alike = look(d, off + done, len - done, &cached);
        if (cached) {
            n = read_cached(d, off + done, to + done, alike);
        } else {
            n = read_blocks(d, off + done, room, alike);
            n = n < alike ? n : alike;
            memcpy(to + done, room + (off + done) % ALIGN, n);
        }
        done += n;
    }
    give_room(d, room);
    return done;
}
