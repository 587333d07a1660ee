/* source_file.c - a regular file as a source: mapped for the index and for views, read by pread()
 * in bulk.  pread() into a buffer that stays in the processor's cache is faster than copying from a
 * mapping.  A file on a slow file system, such as NFS or FUSE, is read ahead instead of mapped. */
#include "port/system/read_ahead.h"

#include "port/port.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* ---- the executor for requests that take long ---- */

enum { THREADS = 16 };

static _Thread_local bool is_waiting_thread;

typedef struct item {
    void (*fn)(void *arg, size_t i);
    void *arg;
} item;

static void run_item(void *arg, size_t i)
{
    const item *it = arg;
    bool before = is_waiting_thread;
    is_waiting_thread = true;
    it->fn(it->arg, i);
    is_waiting_thread = before;
}

static void run(void *ctx, size_t n, void (*fn)(void *arg, size_t i), void *arg)
{
    heft_executor threads = heft_executor_threads(THREADS);
    item it = { fn, arg };
    (void)ctx;
    threads.run(threads.ctx, n, run_item, &it);
}

const heft_executor heft_waiting_threads = { .size = sizeof heft_waiting_threads,
                                             .run = run,
                                             .width = THREADS };

static bool heft_is_waiting_thread(void)
{
    return is_waiting_thread;
}

enum {
    PREAD_MIN = 16 << 10 /* use pread() for reads of at least this size */
};

typedef struct file_source {
    heft_source base;
    int fd;
    uint8_t *map;           /* or NULL */
    heft_direct *direct;    /* or NULL */
    heft_read_ahead *ahead; /* or NULL */
    heft_guard *guard;
    struct timespec modified; /* when the file was last written before it was opened */
    atomic_int change;
} file_source;

/* A change of the file by another program, or mapped pages that the system cannot load. */
enum { UNCHANGED, REWRITTEN, TRUNCATED, UNREADABLE };

static heft_status change_error(heft_error *err, int change, uint64_t at)
{
    static const char *const messages[] = {
        [REWRITTEN] = "the file changed while it was being read",
        [TRUNCATED] = "the file was truncated while it was being read",
        [UNREADABLE] = "bytes of the mapped file cannot be read from the disk or server",
    };
    heft_error_set(err, HEFT_E_IO, at, "%s", messages[change]);
    return heft_error_os(err, HEFT_E_IO, EIO);
}

/* Fail once the file was found changed: bytes read before and after may be from different versions
 * of the file. */
static heft_status state(heft_source *s, heft_error *err)
{
    file_source *f = (file_source *)s;
    struct stat info;
    /* A file truncated within its last page reads as zeros there, without a fault. */
    if (!atomic_load(&f->change) && f->map) {
        if (fstat(f->fd, &info))
            return heft_os_error(err, errno, "its status cannot be read");
        if ((uint64_t)info.st_size < f->base.size)
            atomic_store(&f->change, TRUNCATED);
        else if (heft_guard_tripped(f->guard))
            atomic_store(&f->change, UNREADABLE);
    }
    int change = atomic_load(&f->change);
    return change ? change_error(err, change, HEFT_NOWHERE) : HEFT_OK;
}

/* Compare size and time of the last write with those at opening. */
static heft_status check_unchanged(heft_source *s, heft_error *err)
{
    file_source *f = (file_source *)s;
    struct stat info;
    HEFT_TRY(state(s, err));
    if (fstat(f->fd, &info))
        return heft_os_error(err, errno, "its status cannot be read");
    bool is_same = (uint64_t)info.st_size == f->base.size &&
                   info.st_mtim.tv_sec == f->modified.tv_sec &&
                   info.st_mtim.tv_nsec == f->modified.tv_nsec;
    bool is_shorter = (uint64_t)info.st_size < f->base.size;
    return is_same ? HEFT_OK : change_error(err, is_shorter ? TRUNCATED : REWRITTEN, HEFT_NOWHERE);
}

static void enter(heft_source *s)
{
    const file_source *f = (const file_source *)s;
    if (f->guard)
        heft_guard_arm(f->guard);
}

static void leave(heft_source *s)
{
    const file_source *f = (const file_source *)s;
    if (f->guard)
        heft_guard_disarm(f->guard);
}

static heft_status read_error(heft_error *err, int os, uint64_t at)
{
    heft_status st = heft_os_error(err, os,
                                   os == ESTALE ? "the file was removed or replaced on its server"
                                                : "reading failed");
    if (err)
        err->offset = at;
    return st;
}

static heft_status pread_all(file_source *f, uint64_t off, uint8_t *buf, size_t len,
                             heft_error *err)
{
    while (len) {
        ssize_t n = pread(f->fd, buf, len, (off_t)off);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return read_error(err, errno, off);
        if (!n) {
            atomic_store(&f->change, TRUNCATED);
            return change_error(err, TRUNCATED, off);
        }
        buf += n;
        off += (size_t)n;
        len -= (size_t)n;
    }
    return HEFT_OK;
}

static heft_status read_file(heft_source *s, uint64_t off, void *buf, size_t len, heft_error *err)
{
    file_source *f = (file_source *)s;
    int change = atomic_load(&f->change);
    if (change)
        return change_error(err, change, HEFT_NOWHERE);
    /* Where many threads read at the same time, reading ahead would only cost a copy. */
    bool is_ahead = f->ahead && !heft_is_waiting_thread();
    if (is_ahead || f->direct) {
        size_t done = is_ahead ? heft_read_ahead_read(f->ahead, off, buf, len)
                               : heft_direct_read(f->direct, off, buf, len);
        return pread_all(f, off + done, (uint8_t *)buf + done, len - done, err);
    }
    if (!f->map || len >= PREAD_MIN)
        return pread_all(f, off, buf, len, err);
    enter(s);
    memcpy(buf, f->map + off, len);
    leave(s);
    return state(s, err);
}

static const void *map_range(heft_source *s, uint64_t off, uint64_t len)
{
    const file_source *f = (const file_source *)s;
    (void)len;
    return f->map ? f->map + off : NULL;
}

static void will_need(heft_source *s, uint64_t off, uint64_t len)
{
    const file_source *f = (const file_source *)s;
    if (f->ahead)
        heft_read_ahead_request(f->ahead, off, len);
    else
        heft_pages_request(f->fd, off, len);
}

/* Fault in the pages, singly if the system has no call for many; a truncated file is
 * detected here. */
static heft_status populate(heft_source *s, uint64_t off, uint64_t len, heft_error *err)
{
    const file_source *f = (const file_source *)s;
    size_t page = heft_page_size();
    uint8_t *from = f->map + (off & ~(uint64_t)(page - 1)), *to = f->map + off + len;
    /* lost pages may have been replaced by zeros already: only state() detects that */
    if (heft_pages_populate(from, (size_t)(to - from)))
        return state(s, err);
    enter(s);
    for (const volatile uint8_t *p = from; p < to; p += page)
        (void)*p;
    leave(s);
    return state(s, err);
}

/* Unmap pages that were consumed.  They stay in the page cache, but no longer count as memory of
 * this process. */
static void dont_need(heft_source *s, uint64_t off, uint64_t len)
{
    const file_source *f = (const file_source *)s;
    if (!f->map)
        return;
    uintptr_t mask = heft_page_size() - 1;
    uintptr_t from = (uintptr_t)(f->map + off) & ~mask,
              to = (uintptr_t)(f->map + off + len) & ~mask;
    if (from < to)
        heft_pages_drop((void *)from, to - from);
}

static const heft_executor *executor(const heft_source *s)
{
    return ((const file_source *)s)->ahead ? &heft_waiting_threads : NULL;
}

static void close_file(heft_source *s)
{
    file_source *f = (file_source *)s;
    if (f->guard)
        heft_guard_free(f->guard);
    if (f->map)
        heft_pages_unmap(f->map, (size_t)f->base.size);
    if (f->direct)
        heft_direct_close(f->direct);
    if (f->ahead)
        heft_read_ahead_free(f->ahead);
    if (f->fd >= 0)
        close(f->fd);
    free(f);
}

static const heft_source_ops ops = {
    .size = sizeof(heft_source_ops),
    .read = read_file,
    .map = map_range,
    .check = state,
    .will_need = will_need,
    .begin_access = enter,
    .end_access = leave,
    .close = close_file,
    .populate = populate,
    .dont_need = dont_need,
    .check_unchanged = check_unchanged,
    .executor = executor,
};

int heft_source_descriptor(const heft_source *s)
{
    return s->ops == &ops ? ((const file_source *)s)->fd : -1;
}

/* Map the file unless the access or the system forbids that. */
static heft_status map_file(file_source *f, heft_access access, heft_error *err)
{
    bool populates = access == HEFT_ACCESS_POPULATE,
         is_required = populates || access == HEFT_ACCESS_MAP;
    if (access == HEFT_ACCESS_READ || !f->base.size || (!is_required && heft_map_may_fault(f->fd)))
        return HEFT_OK;
    void *map = heft_pages_map(f->fd, f->base.size, populates);
    if (!map)
        return is_required ? heft_os_error(err, errno, "cannot be mapped") : HEFT_OK;
    f->map = map;
    f->guard = heft_guard_new(map, (size_t)f->base.size);
    return f->guard ? HEFT_OK : heft_error_no_memory(err, "to guard a mapping");
}

/* Choose how to read the file: by a mapping, ahead, or past the page cache. */
static heft_status prepare_reads(file_source *f, heft_access access, heft_error *err)
{
    bool maps = access == HEFT_ACCESS_POPULATE || access == HEFT_ACCESS_MAP;
    heft_file_cost cost = maps || !f->base.size ? HEFT_COST_LOCAL
                                                : heft_file_cost_of(f->fd, f->base.size);
    if (cost != HEFT_COST_LOCAL) {
        bool is_direct = access == HEFT_ACCESS_DIRECT ||
                         (access == HEFT_ACCESS_AUTO && cost == HEFT_COST_PASSING);
        f->ahead = heft_read_ahead_new(f->fd, f->base.size, is_direct);
        f->direct = is_direct ? heft_direct_open(f->fd, NULL, f->base.size) : NULL;
        return HEFT_OK; /* without memory to read ahead, by single reads */
    }
    HEFT_TRY(map_file(f, access, err));
    if (access == HEFT_ACCESS_DIRECT)
        f->direct = heft_direct_open(f->fd, f->map, f->base.size);
    return HEFT_OK;
}

/* Times of files move on with the system's tick, so a file that was written in this tick can be
 * written again in it without a trace: wait for the next. */
static void leave_tick_of(struct timespec written)
{
    struct timespec now, tick;
    int clock = heft_file_clock();
    if (!clock_gettime(clock, &now) && now.tv_sec == written.tv_sec &&
        now.tv_nsec == written.tv_nsec && !clock_getres(clock, &tick))
        nanosleep(&tick, NULL);
}

static heft_status check_file(file_source *f, heft_error *err)
{
    struct stat info;
    if (fstat(f->fd, &info))
        return heft_os_error(err, errno, "its status cannot be read");
    if (S_ISDIR(info.st_mode))
        return heft_os_error(err, EISDIR, "cannot be opened");
    if (!S_ISREG(info.st_mode))
        return heft_error_os(
            err, heft_error_plain(err, HEFT_E_IO, "is a pipe or a device, not a file"), ESPIPE);
    f->base.size = (uint64_t)info.st_size;
    f->modified = info.st_mtim;
    leave_tick_of(f->modified);
    return HEFT_OK;
}

/* Make a source that owns fd.  If fd is negative, fail with the caller's errno. */
static heft_status open_descriptor(heft_source **out, int fd, heft_access access, heft_error *err)
{
    int os = errno;
    file_source *f = calloc(1, sizeof *f);
    *out = NULL;
    if (!f) {
        if (fd >= 0)
            close(fd);
        return heft_error_no_memory(err, "to open a file");
    }
    f->base.ops = &ops;
    f->fd = fd;
    heft_status st = fd < 0 ? heft_os_error(err, os, "cannot be opened") : check_file(f, err);
    if (!st)
        st = prepare_reads(f, access, err);
    if (st)
        close_file(&f->base);
    else
        *out = &f->base;
    return st;
}

/* O_NONBLOCK: refuse a pipe instead of waiting for its writer. */
heft_status heft_source_at(heft_source **out, int dir, const char *path, int flags,
                           heft_access access, heft_error *err)
{
    flags |= O_RDONLY | O_CLOEXEC | O_NONBLOCK;
    return open_descriptor(out, heft_open_at(dir, path, flags), access, err);
}

heft_status heft_source_of(heft_source **out, int fd, heft_error *err)
{
    return open_descriptor(out, fcntl(fd, F_DUPFD_CLOEXEC, 0), HEFT_ACCESS_AUTO, err);
}

heft_status heft_source_open_file(heft_source **out, const char *path, heft_access access,
                                  heft_error *err)
{
    *out = NULL;
    if (!path)
        return heft_error_plain(err, HEFT_E_ARGUMENT, "the path to open is missing");
    return heft_source_at(out, AT_FDCWD, path, 0, access, err);
}
