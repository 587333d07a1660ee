/* direct_read.c - reading past the system's cache what it does not hold: a cold file that is read once comes
 * faster from the disk itself, and pushes nothing else out of memory. */
#include "port/port.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

enum {
    ALIGN = 4096,     /* of memory and offsets: no disk asks for more */
    SECTOR = 512,     /* of memory: most ask for no more than this */
    LARGE = 1 << 20,  /* from here on it pays to read into the caller's memory … */
    MOST = 6 << 20,   /* … of so much at a time */
    SHARE = 4 << 20,  /* looked at, and read, at a time */
    SMALL = 64 << 10, /* of less than that a good deal is read ahead, but no share */
    AHEAD = 256 << 10,
    LOOKS = 8,            /* pages of a share that are asked for */
    ROOM = SHARE + ALIGN, /* the caller's memory is rarely aligned as the file is */
    ROOMS = 8,            /* kept, one for each thread that reads */
};

/* What was read last, of huge pages, since a disk takes a request in few pieces. */
typedef struct room {
    uint64_t off; /* in the file, of the first byte */
    size_t len;
    uint8_t *bytes;
} room;

struct heft_direct {
    int cached, direct;   /* descriptors of the file, the first one borrowed */
    bool *in_cache;       /* by share of the file, as it was opened */
    pthread_mutex_t lock; /* of the rooms in nobody's hands */
    room *rooms[ROOMS];
};

/* ---- rooms: in nobody's hands, or in one thread's ---- */

static void free_room(room *r)
{
    if (r)
        heft_buffer_free(r->bytes, ROOM);
    free(r);
}

static bool holds(const room *r, uint64_t off)
{
    return off >= r->off && off - r->off < r->len;
}

/* One that holds the byte at off, else any; NULL: no memory for another. */
static room *take_room(heft_direct *d, uint64_t off)
{
    int found = -1;
    room *r = NULL;
    pthread_mutex_lock(&d->lock);
    for (int i = 0; i < ROOMS; i++)
        if (d->rooms[i] && (found < 0 || holds(d->rooms[i], off)))
            found = i;
    if (found >= 0) {
        r = d->rooms[found];
        d->rooms[found] = NULL;
    }
    pthread_mutex_unlock(&d->lock);
    if (r || !(r = calloc(1, sizeof *r)))
        return r;
    r->bytes = heft_buffer_new(ROOM);
    if (r->bytes)
        return r;
    free(r);
    return NULL;
}

static void give_room(heft_direct *d, room *r)
{
    pthread_mutex_lock(&d->lock);
    for (int i = 0; i < ROOMS && r; i++)
        if (!d->rooms[i]) {
            d->rooms[i] = r;
            r = NULL;
        }
    pthread_mutex_unlock(&d->lock);
    free_room(r);
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* ---- what is cached ---- */

static bool has_share(const uint8_t *map, size_t len)
{
    uintptr_t in_page = (uintptr_t)sysconf(_SC_PAGESIZE) - 1;
    bool all = true;
    for (size_t i = 0; i < LOOKS && all; i++) {
        unsigned char is_there;
        void *page = (void *)((uintptr_t)(map + i * (len / LOOKS)) & ~in_page);
        all = !mincore(page, 1, &is_there) && is_there & 1;
    }
    return all;
}

/* ---- opening ---- */

heft_direct *heft_direct_open(int fd, const void *map, uint64_t size)
{
    char self[64];
    bool next = true;
    heft_direct *d = calloc(1, sizeof *d);
    snprintf(self, sizeof self, "/proc/self/fd/%d", fd);
    if (!d)
        return NULL;
    pthread_mutex_init(&d->lock, NULL);
    d->cached = fd;
    size_t shares = (size_t)((size + SHARE - 1) / SHARE);
    d->in_cache = calloc(shares + 1, sizeof *d->in_cache);
    d->direct = heft_open_at(AT_FDCWD, self, O_RDONLY | O_DIRECT | O_CLOEXEC);
    if (!d->in_cache || d->direct < 0) {
        heft_direct_close(d);
        return NULL;
    }
    /* Asked once, before anything is read, of a mapping, which can tell without asking for the pages: a read that does
     * not wait would fetch them.  A share counts when the next one, too, is there, since a read through the cache near
     * its end sets off readahead of what is to be read past it. */
    for (size_t i = shares; i-- && map;) {
        size_t at = i * SHARE;
        bool is_there = has_share((const uint8_t *)map + at, least((size_t)size - at, SHARE));
        d->in_cache[i] = is_there && next;
        next = is_there;
    }
    return d;
}

void heft_direct_close(heft_direct *d)
{
    for (int i = 0; i < ROOMS; i++)
        free_room(d->rooms[i]);
    if (d->direct >= 0)
        close(d->direct);
    pthread_mutex_destroy(&d->lock);
    free(d->in_cache);
    free(d);
}

/* ---- reading ---- */

static size_t read_from(int fd, uint64_t off, const struct iovec *to, size_t count)
{
    ssize_t n;
    do
        n = preadv(fd, to, (int)count, (off_t)off);
    while (n < 0 && errno == EINTR);
    return n > 0 ? (size_t)n : 0;
}

/* In one request the block that off lies in, blocks that need no copy, and the block that the rest begins: the last one
 * into the beginning of the room, which then holds it, the first one behind it. */
static size_t read_around(const heft_direct *d, room *r, uint64_t off, uint8_t *buf, size_t len)
{
    size_t skip = off % ALIGN, head = skip ? least(ALIGN - skip, len) : 0;
    size_t middle = (len - head) & ~(size_t)(ALIGN - 1), tail = len - head - middle;
    size_t first = head ? ALIGN : 0, count = 0;
    struct iovec to[3];
    if (head)
        to[count++] = (struct iovec){ r->bytes + ALIGN, ALIGN };
    if (middle)
        to[count++] = (struct iovec){ buf + head, middle };
    if (tail)
        to[count++] = (struct iovec){ r->bytes, ALIGN };
    size_t got = read_from(d->direct, off - skip, to, count);
    r->off = off - skip + first + middle;
    r->len = got > first + middle ? got - first - middle : 0;
    got = got > skip ? least(got - skip, len) : 0;
    memcpy(buf, r->bytes + ALIGN + skip, least(head, got));
    if (got > head + middle)
        memcpy(buf + head + middle, r->bytes, got - head - middle);
    return got;
}

/* Read past the cache.  straight: buf is aligned as the offset is, so that whole blocks need no copy.  want: bytes to
 * fetch into the buffer at once, since the caller reads on from there. */
static size_t read_past(heft_direct *d, uint64_t off, uint8_t *buf, size_t len, bool straight,
                        size_t want)
{
    room *r = take_room(d, off);
    size_t n = 0;
    if (r && straight && !holds(r, off))
        n = read_around(d, r, off, buf, least(len, MOST));
    /* nothing: it is the end, or memory must be aligned better */
    if (r && !n && !holds(r, off)) {
        size_t skip = off % ALIGN, blocks = (skip + want + ALIGN - 1) & ~(size_t)(ALIGN - 1);
        r->off = off - skip;
        r->len = read_from(d->direct, r->off, &(struct iovec){ r->bytes, blocks }, 1);
    }
    if (r && !n && holds(r, off)) {
        size_t from = (size_t)(off - r->off);
        n = least(r->len - from, len);
        memcpy(buf, r->bytes + from, n);
    }
    give_room(d, r);
    return n;
}

size_t heft_direct_read(heft_direct *d, uint64_t off, void *buf, size_t len)
{
    size_t done = 0, n = 1;
    bool straight = len >= LARGE && ((uintptr_t)buf - off) % SECTOR == 0;
    for (; done < len && n; done += n) {
        uint64_t at = off + done;
        uint8_t *to = (uint8_t *)buf + done;
        size_t left = len - done;
        if (d->in_cache[at / SHARE])
            n = read_from(d->cached, at, &(struct iovec){ to, least(left, SHARE) }, 1);
        else
            n = read_past(d, at, to, left, straight, straight || left >= SMALL ? SHARE : AHEAD);
    }
    return done;
}
