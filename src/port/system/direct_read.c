/* direct_read.c - read with O_DIRECT the parts of a file that are not in the page cache.
 *
 * Reading a cold file once is faster past the page cache, and does not evict cached pages. */
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
    ALIGN = 4096,              /* alignment of memory and offsets; no disk requires more */
    SECTOR = 512,              /* alignment of memory that most disks accept */
    DIRECT_MIN = 1 << 20,      /* read at least this much straight into the caller's memory, ... */
    DIRECT_MAX = 6 << 20,      /* ... and at most this much per request */
    CHUNK = 4 << 20,           /* unit of cache sampling and of buffered reads */
    CHUNK_READ_MIN = 64 << 10, /* fetch a whole chunk for a read of at least this size, ... */
    READ_AHEAD = 256 << 10,    /* ... and this much for a smaller read */
    SAMPLED_PAGES = 8,         /* pages tested for residency in each chunk */
    BUFFER_SIZE = CHUNK + ALIGN, /* size of a chunk with an unaligned start */
    MAX_BUFFERS = 8,             /* idle buffers kept for reuse */
};

/* The bytes read last.  Huge pages, since a disk accepts few segments per request. */
typedef struct read_buffer {
    uint64_t off; /* file offset of the first byte */
    size_t len;
    uint8_t *bytes;
} read_buffer;

struct heft_direct {
    int fd;                /* borrowed, reads through the page cache */
    int direct_fd;         /* O_DIRECT */
    bool *chunk_is_cached; /* state of each chunk when the file was opened */
    pthread_mutex_t lock;  /* guards `idle` */
    read_buffer *idle[MAX_BUFFERS];
};

/* ---- buffers: idle, or owned by one thread ---- */

static void free_buffer(read_buffer *buffer)
{
    if (buffer)
        heft_buffer_free(buffer->bytes, BUFFER_SIZE);
    free(buffer);
}

static bool contains(const read_buffer *buffer, uint64_t off)
{
    return off >= buffer->off && off - buffer->off < buffer->len;
}

/* Take an idle buffer, preferably the one that contains the byte at off, or allocate one; NULL: no
 * memory. */
static read_buffer *acquire_buffer(heft_direct *d, uint64_t off)
{
    int found = -1;
    read_buffer *buffer = NULL;
    pthread_mutex_lock(&d->lock);
    for (int i = 0; i < MAX_BUFFERS; i++)
        if (d->idle[i] && (found < 0 || contains(d->idle[i], off)))
            found = i;
    if (found >= 0) {
        buffer = d->idle[found];
        d->idle[found] = NULL;
    }
    pthread_mutex_unlock(&d->lock);
    if (buffer || !(buffer = calloc(1, sizeof *buffer)))
        return buffer;
    buffer->bytes = heft_buffer_new(BUFFER_SIZE);
    if (buffer->bytes)
        return buffer;
    free(buffer);
    return NULL;
}

static void release_buffer(heft_direct *d, read_buffer *buffer)
{
    pthread_mutex_lock(&d->lock);
    for (int i = 0; i < MAX_BUFFERS && buffer; i++)
        if (!d->idle[i]) {
            d->idle[i] = buffer;
            buffer = NULL;
        }
    pthread_mutex_unlock(&d->lock);
    free_buffer(buffer);
}

static size_t min_size(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* ---- the page cache ---- */

/* Sample the residency of a chunk of the mapping. */
static bool is_chunk_cached(const uint8_t *map, size_t len)
{
    uintptr_t in_page = (uintptr_t)sysconf(_SC_PAGESIZE) - 1;
    bool all = true;
    for (size_t i = 0; i < SAMPLED_PAGES && all; i++) {
        unsigned char is_cached;
        void *page = (void *)((uintptr_t)(map + i * (len / SAMPLED_PAGES)) & ~in_page);
        all = !mincore(page, 1, &is_cached) && is_cached & 1;
    }
    return all;
}

/* ---- opening ---- */

int heft_direct_descriptor(int fd)
{
    char self[64];
    snprintf(self, sizeof self, "/proc/self/fd/%d", fd);
    return heft_open_at(AT_FDCWD, self, O_RDONLY | O_DIRECT | O_CLOEXEC);
}

heft_direct *heft_direct_open(int fd, const void *map, uint64_t size)
{
    bool next_is_cached = true;
    heft_direct *d = calloc(1, sizeof *d);
    if (!d)
        return NULL;
    pthread_mutex_init(&d->lock, NULL);
    d->fd = fd;
    size_t chunks = (size_t)((size + CHUNK - 1) / CHUNK);
    d->chunk_is_cached = calloc(chunks + 1, sizeof *d->chunk_is_cached);
    d->direct_fd = heft_direct_descriptor(fd);
    if (!d->chunk_is_cached || d->direct_fd < 0) {
        heft_direct_close(d);
        return NULL;
    }
    /* Sample once, before any read, and by mincore() on the mapping, which does not load the pages;
     * a non-blocking read would start to load them.  A chunk counts as cached only if the next
     * chunk is cached, too: a cached read near the end of a chunk would trigger readahead of bytes
     * that are going to be read with O_DIRECT. */
    for (size_t i = chunks; i-- && map;) {
        size_t at = i * CHUNK;
        bool is_cached = is_chunk_cached((const uint8_t *)map + at,
                                         min_size((size_t)size - at, CHUNK));
        d->chunk_is_cached[i] = is_cached && next_is_cached;
        next_is_cached = is_cached;
    }
    return d;
}

void heft_direct_close(heft_direct *d)
{
    for (int i = 0; i < MAX_BUFFERS; i++)
        free_buffer(d->idle[i]);
    if (d->direct_fd >= 0)
        close(d->direct_fd);
    pthread_mutex_destroy(&d->lock);
    free(d->chunk_is_cached);
    free(d);
}

/* ---- reading ---- */

static size_t read_vector(int fd, uint64_t off, const struct iovec *to, size_t count)
{
    ssize_t n;
    do
        n = preadv(fd, to, (int)count, (off_t)off);
    while (n < 0 && errno == EINTR);
    return n > 0 ? (size_t)n : 0;
}

/* Read up to three segments in one request: the block that contains off (only if off is not
 * aligned), the whole blocks in the middle straight into buf, and the block that contains the tail.
 * The tail block goes to the start of `buffer`, which keeps it; the head block goes after the tail
 * block. */
static size_t read_aligned(const heft_direct *d, read_buffer *buffer, uint64_t off, uint8_t *buf,
                           size_t len)
{
    size_t skip = off % ALIGN, head = skip ? min_size(ALIGN - skip, len) : 0;
    size_t middle = (len - head) & ~(size_t)(ALIGN - 1), tail = len - head - middle;
    size_t first = head ? ALIGN : 0, count = 0;
    struct iovec to[3];
    if (head)
        to[count++] = (struct iovec){ buffer->bytes + ALIGN, ALIGN };
    if (middle)
        to[count++] = (struct iovec){ buf + head, middle };
    if (tail)
        to[count++] = (struct iovec){ buffer->bytes, ALIGN };
    size_t got = read_vector(d->direct_fd, off - skip, to, count);
    buffer->off = off - skip + first + middle;
    buffer->len = got > first + middle ? got - first - middle : 0;
    got = got > skip ? min_size(got - skip, len) : 0;
    memcpy(buf, buffer->bytes + ALIGN + skip, min_size(head, got));
    if (got > head + middle)
        memcpy(buf + head + middle, buffer->bytes, got - head - middle);
    return got;
}

/* Read with O_DIRECT; return the bytes read, 0 at the end of the file or after an error.
 * is_aligned: buf and off have the same alignment, so whole blocks can be read straight into buf.
 * fetch: bytes to read into the internal buffer at once, since the caller goes on from there. */
static size_t read_direct(heft_direct *d, uint64_t off, uint8_t *buf, size_t len, bool is_aligned,
                          size_t fetch)
{
    read_buffer *buffer = acquire_buffer(d, off);
    size_t n = 0;
    if (buffer && is_aligned && !contains(buffer, off))
        n = read_aligned(d, buffer, off, buf, min_size(len, DIRECT_MAX));
    /* no bytes: either the end of the file, or this disk requires a larger alignment of memory */
    if (buffer && !n && !contains(buffer, off)) {
        size_t skip = off % ALIGN, blocks = (skip + fetch + ALIGN - 1) & ~(size_t)(ALIGN - 1);
        buffer->off = off - skip;
        buffer->len = read_vector(d->direct_fd, buffer->off,
                                  &(struct iovec){ buffer->bytes, blocks }, 1);
    }
    if (buffer && !n && contains(buffer, off)) {
        size_t from = (size_t)(off - buffer->off);
        n = min_size(buffer->len - from, len);
        memcpy(buf, buffer->bytes + from, n);
    }
    release_buffer(d, buffer);
    return n;
}

size_t heft_direct_read(heft_direct *d, uint64_t off, void *buf, size_t len)
{
    size_t done = 0, n = 1;
    bool is_aligned = len >= DIRECT_MIN && ((uintptr_t)buf - off) % SECTOR == 0;
    for (; done < len && n; done += n) {
        uint64_t at = off + done;
        uint8_t *to = (uint8_t *)buf + done;
        size_t left = len - done;
        if (d->chunk_is_cached[at / CHUNK])
            n = read_vector(d->fd, at, &(struct iovec){ to, min_size(left, CHUNK) }, 1);
        else
            n = read_direct(d, at, to, left, is_aligned,
                            is_aligned || left >= CHUNK_READ_MIN ? CHUNK : READ_AHEAD);
    }
    return done;
}
