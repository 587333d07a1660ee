/* direct.c - reading past the system's cache what it does not hold: a cold file that is read once comes
 * faster from the disk itself, and pushes nothing else out of memory. */
#include "port/port.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

enum {
    ALIGN = 4096,   /* no disk asks for more */
    ROOM = 2 << 20, /* read at a time; the caller's memory is rarely aligned as the file is */
};

int heft_direct_open(int fd)
{
    char self[64];
    snprintf(self, sizeof self, "/proc/self/fd/%d", fd);
    return open(self, O_RDONLY | O_DIRECT | O_CLOEXEC);
}

/* What the cache holds from off on. */
static size_t read_cached(int fd, uint64_t off, uint8_t *buf, size_t len)
{
    struct iovec to = { buf, len };
    ssize_t n = preadv2(fd, &to, 1, (off_t)off, RWF_NOWAIT);
    return n > 0 ? (size_t)n : 0;
}

/* Up to ROOM bytes that begin in the block of off; how many of them lie from off on. */
static size_t read_blocks(int direct, uint64_t off, uint8_t *room, size_t len)
{
    size_t skip = off % ALIGN, want = (skip + len + ALIGN - 1) & ~(size_t)(ALIGN - 1);
    ssize_t n;
    do
        n = pread(direct, room, want < ROOM ? want : ROOM, (off_t)(off - skip));
    while (n < 0 && errno == EINTR);
    return n > (ssize_t)skip ? (size_t)n - skip : 0;
}

size_t heft_direct_read(int fd, int direct, uint64_t off, void *buf, size_t len)
{
    uint8_t *to = buf;
    void *room;
    size_t done = 0, n = 1;
    if (posix_memalign(&room, ALIGN, ROOM))
        return 0;
    while (done < len && n) {
        n = read_cached(fd, off + done, to + done, len - done);
        if (!n) {
            n = read_blocks(direct, off + done, room, len - done);
            n = n < len - done ? n : len - done;
            memcpy(to + done, (uint8_t *)room + (off + done) % ALIGN, n);
        }
        done += n;
    }
    free(room);
    return done;
}
