/* read_ahead.c - read files on slow file systems by large requests, several at the same time.
 *
 * The file is divided into blocks.  While reads are sequential, threads read the next blocks into
 * memory, and the readers copy from there.  The window, the number of blocks to read ahead, grows
 * while growth raises the throughput.  The threads end when no block is left to read.  A block is
 * released when almost all bytes of the block have been copied.
 *
 * Readers find errors: where a request fails, a reader repeats the read for the bytes that the
 * caller needs, since the rest of a block may be readable. */
#include "port/system/read_ahead.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    BLOCK = 8 << 20,
    FIRST_WINDOW = 8, /* in blocks */
    MAX_WINDOW = 16,
    SLOTS = MAX_WINDOW + 8, /* blocks in memory: the window, and blocks that readers copy */
    SEQUENTIAL = 1 << 20,   /* read ahead after so many sequential bytes */
    NEAR = 64 << 20,        /* threads that share a file read in order, but for this distance */
    AHEAD_PER_READ = 4,     /* bytes to read ahead for each byte that was read sequentially */
    SLACK = 1 << 20,        /* bytes of a block that nobody may need, such as an index */
    PAUSE = 8               /* rounds until a window that did not pay is tried again */
};

typedef enum block_state { FREE, QUEUED, READING, READY } block_state;

typedef struct block {
    block_state state;
    uint64_t index; /* the block's number in the file */
    uint8_t *bytes; /* of BLOCK bytes, or NULL; kept while the slot is free */
    size_t len;     /* bytes read: fewer than expected after an error */
    size_t copied;  /* bytes copied by readers */
    bool is_passed; /* the block's last byte was copied */
    unsigned readers;
    uint64_t used; /* time of the last read, by heft_read_ahead.clock */
} block;

/* The search for the best window: rounds of as many blocks as the window has. */
typedef struct window {
    unsigned blocks;   /* the window */
    unsigned done;     /* blocks read in this round */
    unsigned pause;    /* rounds to wait before the window grows */
    uint64_t bytes;    /* bytes read in this round */
    double begin;      /* of the round, in seconds */
    double throughput; /* with the former window */
    bool has_waited;   /* a reader had to wait in this round */
} window;

struct heft_read_ahead {
    int fd;        /* borrowed */
    int direct_fd; /* O_DIRECT, or -1 */
    uint64_t size;
    pid_t process; /* the process that has the threads */
    pthread_mutex_t lock;
    pthread_cond_t changed; /* a block is ready, or a thread has ended */
    block blocks[SLOTS];
    unsigned threads;
    uint64_t clock;
    uint64_t expected;   /* offset after the sequential reads */
    uint64_t sequential; /* bytes that were read sequentially before `expected` */
    uint64_t requested;  /* end of the blocks that were requested for the sequential reads */
    window window;
};

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static size_t block_length(const heft_read_ahead *a, uint64_t index)
{
    uint64_t left = a->size - index * BLOCK;
    return left < BLOCK ? (size_t)left : BLOCK;
}

/* ---- the window ---- */

/* Double the window if readers have waited and the last growth has paid. */
static void end_round(window *w, double now)
{
    double throughput = (double)w->bytes / (now - w->begin + 1e-9);
    bool has_paid = throughput > w->throughput * 1.1;
    if (w->pause)
        w->pause--;
    else if (w->has_waited && has_paid && w->blocks < MAX_WINDOW) {
        w->blocks *= 2;
        w->throughput = throughput;
    } else if (w->has_waited && !has_paid && w->blocks > FIRST_WINDOW) {
        w->blocks /= 2;
        w->throughput = 0;
        w->pause = PAUSE;
    }
    w->done = 0;
    w->bytes = 0;
    w->begin = now;
    w->has_waited = false;
}

static void count_block(window *w, size_t bytes)
{
    w->bytes += bytes;
    if (++w->done >= w->blocks)
        end_round(w, seconds());
}

/* ---- threads that read blocks ---- */

static size_t read_some(int fd, uint64_t off, uint8_t *to, size_t len)
{
    ssize_t n;
    do
        n = pread(fd, to, len, (off_t)off);
    while (n < 0 && errno == EINTR);
    return n > 0 ? (size_t)n : 0;
}

/* Read a block; return the bytes read, fewer than the block has after an error.  Direct reads have
 * whole blocks of the disk, beyond the end of the file. */
static size_t read_block(const heft_read_ahead *a, uint64_t index, uint8_t *to)
{
    uint64_t off = index * BLOCK;
    size_t len = block_length(a, index), done = 0;
    if (a->direct_fd >= 0)
        done = read_some(a->direct_fd, off, to, BLOCK);
    for (size_t n = 1; done < len && n; done += n)
        n = read_some(a->fd, off + done, to + done, len - done);
    return done < len ? done : len;
}

static block *first_queued(heft_read_ahead *a)
{
    block *first = NULL;
    for (size_t i = 0; i < SLOTS; i++) {
        block *b = &a->blocks[i];
        if (b->state == QUEUED && (!first || b->index < first->index))
            first = b;
    }
    return first;
}

static void *read_blocks(void *arg)
{
    heft_read_ahead *a = arg;
    pthread_mutex_lock(&a->lock);
    for (block *b; (b = first_queued(a));) {
        b->state = READING;
        pthread_mutex_unlock(&a->lock);
        size_t len = read_block(a, b->index, b->bytes);
        pthread_mutex_lock(&a->lock);
        b->len = len;
        b->state = READY;
        count_block(&a->window, len);
        pthread_cond_broadcast(&a->changed);
    }
    a->threads--;
    pthread_cond_broadcast(&a->changed);
    pthread_mutex_unlock(&a->lock);
    return NULL;
}

/* Signals are delivered to the threads of the program. */
static bool begin_thread(heft_read_ahead *a)
{
    pthread_t thread;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool has_begun = !pthread_create(&thread, NULL, read_blocks, a);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (has_begun)
        pthread_detach(thread);
    return has_begun;
}

/* ---- blocks; the lock is held ---- */

static block *find_block(heft_read_ahead *a, uint64_t index)
{
    for (size_t i = 0; i < SLOTS; i++)
        if (a->blocks[i].state != FREE && a->blocks[i].index == index)
            return &a->blocks[i];
    return NULL;
}

/* Return a free slot, or the block that was used least recently; NULL if readers or requests
 * have all of them.  is_urgent: blocks that nobody has read yet may be replaced, too. */
static block *find_slot(heft_read_ahead *a, bool is_urgent)
{
    block *oldest = NULL;
    for (size_t i = 0; i < SLOTS; i++) {
        block *b = &a->blocks[i];
        if (b->state == FREE)
            return b;
        bool may_go = b->state == READY && !b->readers &&
                      (is_urgent || b->index * BLOCK + BLOCK + NEAR < a->expected);
        if (may_go && (!oldest || b->used < oldest->used))
            oldest = b;
    }
    return oldest;
}

/* Queue a block for the threads; NULL if memory or threads are missing. */
static block *request_block(heft_read_ahead *a, uint64_t index, bool is_urgent)
{
    block *b = find_slot(a, is_urgent);
    if (b && !b->bytes)
        b->bytes = heft_buffer_new(BLOCK);
    if (!b || !b->bytes)
        return NULL;
    uint8_t *bytes = b->bytes;
    if (!a->threads) { /* the time without requests is not part of a round */
        a->window.begin = seconds();
        a->window.bytes = 0;
        a->window.done = 0;
    }
    *b = (block){ .state = QUEUED, .index = index, .bytes = bytes, .used = ++a->clock };
    if (a->threads < MAX_WINDOW && begin_thread(a))
        a->threads++;
    if (a->threads)
        return b;
    b->state = FREE;
    return NULL;
}

/* Queue the blocks up to an offset, from the first block that was never requested on: blocks before
 * may have been copied and released. */
static void request_until(heft_read_ahead *a, uint64_t to)
{
    uint64_t end = to < a->size ? to : a->size;
    for (; a->requested < end; a->requested += BLOCK) {
        uint64_t index = a->requested / BLOCK;
        if (!find_block(a, index) && !request_block(a, index, false))
            return;
    }
}

/* Free the memory of the slots if no slot has a block. */
static void free_idle(heft_read_ahead *a)
{
    for (size_t i = 0; i < SLOTS; i++)
        if (a->blocks[i].state != FREE)
            return;
    for (size_t i = 0; i < SLOTS; i++) {
        heft_buffer_free(a->blocks[i].bytes, BLOCK);
        a->blocks[i].bytes = NULL;
    }
}

static void release_block(heft_read_ahead *a, block *b)
{
    size_t expected = block_length(a, b->index);
    size_t slack = expected / 8 < SLACK ? expected / 8 : SLACK;
    bool is_failed = b->state == READY && b->len < expected;
    if (--b->readers || (!is_failed && b->copied < expected - (b->is_passed ? slack : 0)))
        return;
    b->state = FREE;
    free_idle(a);
}

/* ---- reading ---- */

/* Follow the reads, so that sequential ones are recognised. */
static void follow(heft_read_ahead *a, uint64_t off, size_t len)
{
    uint64_t end = off + len;
    bool is_near = off <= a->expected + NEAR && end + NEAR >= a->expected;
    if (!is_near) {
        a->sequential = len;
        a->expected = end;
        a->requested = off / BLOCK * BLOCK;
    } else if (end > a->expected) {
        a->sequential += end - a->expected;
        a->expected = end;
    }
}

/* Return the end of the blocks to request: the end of the read for a first large read, and then
 * further ahead with every sequential read. */
static uint64_t end_of_window(const heft_read_ahead *a, uint64_t end, size_t len)
{
    uint64_t most = (uint64_t)a->window.blocks * BLOCK;
    uint64_t more = a->sequential > len ? a->sequential * AHEAD_PER_READ : 0;
    uint64_t ahead = a->expected + (more < most ? more : most);
    return ahead > end ? ahead : end;
}

/* Copy bytes of a block, once the block has been read; return the number of bytes. */
static size_t copy_some(heft_read_ahead *a, block *b, uint64_t off, uint8_t *to, size_t len)
{
    size_t at = (size_t)(off - b->index * BLOCK), n = 0;
    while (b->state != READY) {
        a->window.has_waited = true;
        pthread_cond_wait(&a->changed, &a->lock);
    }
    if (b->len > at)
        n = b->len - at < len ? b->len - at : len;
    pthread_mutex_unlock(&a->lock); /* a block with a reader stays */
    memcpy(to, b->bytes + at, n);
    pthread_mutex_lock(&a->lock);
    b->copied += n;
    b->is_passed = b->is_passed || at + n == block_length(a, b->index);
    return n;
}

/* Read without a block, to the end of the block at most. */
static size_t read_plain(heft_read_ahead *a, uint64_t off, uint8_t *to, size_t len)
{
    size_t left = BLOCK - (size_t)(off % BLOCK);
    pthread_mutex_unlock(&a->lock);
    size_t n = read_some(a->fd, off, to, left < len ? left : len);
    pthread_mutex_lock(&a->lock);
    return n;
}

/* Find the block with the byte, or request the block.  NULL: read the bytes without a block, since
 * reads are not sequential, or only the last few bytes of a released block are missing. */
static block *obtain_block(heft_read_ahead *a, uint64_t off, size_t len)
{
    uint64_t end = (off / BLOCK + 1) * BLOCK;
    block *b = find_block(a, off / BLOCK);
    bool is_rest = end <= a->requested && (len <= SLACK || end - off <= SLACK);
    if (b || a->sequential < SEQUENTIAL || is_rest)
        return b;
    b = request_block(a, off / BLOCK, true);
    if (b && end > a->requested && end <= a->requested + BLOCK)
        a->requested = end;
    return b;
}

size_t heft_read_ahead_read(heft_read_ahead *a, uint64_t off, void *buf, size_t len)
{
    size_t done = 0, n = 1;
    if (a->process != getpid()) /* after fork(), without the threads */
        return 0;
    pthread_mutex_lock(&a->lock);
    follow(a, off, len);
    uint64_t end = end_of_window(a, off + len, len);
    for (; done < len && n; done += n) {
        uint8_t *to = (uint8_t *)buf + done;
        block *b = obtain_block(a, off + done, len - done);
        if (!b) {
            n = read_plain(a, off + done, to, len - done);
            continue;
        }
        b->readers++;
        b->used = ++a->clock;
        request_until(a, end);
        n = copy_some(a, b, off + done, to, len - done);
        release_block(a, b);
    }
    pthread_mutex_unlock(&a->lock);
    return done;
}

void heft_read_ahead_request(heft_read_ahead *a, uint64_t off, uint64_t len)
{
    if (a->process != getpid() || len < SEQUENTIAL)
        return;
    pthread_mutex_lock(&a->lock);
    uint64_t most = (uint64_t)a->window.blocks * BLOCK;
    a->requested = off / BLOCK * BLOCK;
    request_until(a, off + (len < most ? len : most));
    pthread_mutex_unlock(&a->lock);
}

/* ---- opening and closing ---- */

heft_read_ahead *heft_read_ahead_new(int fd, uint64_t size, bool is_direct)
{
    heft_read_ahead *a = calloc(1, sizeof *a);
    if (!a)
        return NULL;
    pthread_mutex_init(&a->lock, NULL);
    pthread_cond_init(&a->changed, NULL);
    a->fd = fd;
    a->direct_fd = is_direct ? heft_direct_descriptor(fd) : -1;
    a->size = size;
    a->process = getpid();
    a->window = (window){ .blocks = FIRST_WINDOW };
    return a;
}

/* Wait for the requests that have begun. */
static void stop_threads(heft_read_ahead *a)
{
    pthread_mutex_lock(&a->lock);
    for (size_t i = 0; i < SLOTS; i++)
        if (a->blocks[i].state == QUEUED)
            a->blocks[i].state = FREE;
    while (a->threads)
        pthread_cond_wait(&a->changed, &a->lock);
    pthread_mutex_unlock(&a->lock);
    pthread_cond_destroy(&a->changed);
    pthread_mutex_destroy(&a->lock);
}

void heft_read_ahead_free(heft_read_ahead *a)
{
    if (a->process == getpid())
        stop_threads(a);
    for (size_t i = 0; i < SLOTS; i++)
        heft_buffer_free(a->blocks[i].bytes, BLOCK);
    if (a->direct_fd >= 0)
        close(a->direct_fd);
    free(a);
}
