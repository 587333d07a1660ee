/* hdf5_worker.c - the process that has libhdf5, and the conversation with it.
 *
 * Two pipes carry a byte for each message; all else is in memory that both processes share, with
 * the same addresses.  The worker is a fork, so that it needs no program, and it inherits the
 * sandbox of a command.  It ends when the pipe to it does. */
#include "port/libraries/hdf5_library.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/checked_math.h"

/* Messages; to the worker: bytes were read, do a task, end. */
enum { READ = 'r', DONE = 'd', END = 'e' };
enum {
    SECONDS = 20,           /* processor time for a task, and a second more for each … */
    SECOND_BYTES = 1 << 20, /* … of the file; twice as long without a message */
    MEMORY = 1 << 30,       /* beyond what the process had when the worker was forked */
    READS_PER_BYTE = 64,    /* how often a task may read the file */
    ALWAYS_READ = 1 << 30,  /* bytes that a task may read in any case */
    MOST_LISTS = sizeof(void *) > 4 ? INT32_MAX : 512 << 20
};

typedef struct shared {
    heft_hdf5_file file;
    heft_error error;
    heft_status status; /* result of the task, or of reading */
    heft_hdf5_task task;
    uint32_t array; /* array to decode */
    uint64_t band;
    uint64_t at; /* range to read */
    size_t len;
    heft_allocator memory;
    uint32_t rule; /* of the error */
    uint8_t *lists;
    size_t used, capacity; /* bytes of `lists` */
    uint8_t read[HEFT_HDF5_READ];
    uint8_t elements[HEFT_HDF5_TOGETHER];
} shared;

/* The process that has the file trusts nothing in the shared memory: see hdf5_lists.c. */
struct heft_hdf5_worker {
    shared *s;
    uint8_t *lists;      /* shared while they are made; then memory of this process alone */
    size_t list_size;    /* bytes reserved for the lists */
    heft_hdf5_file file; /* copied with the lists */
    heft_source *bytes;
    heft_error error;       /* last error of a read … */
    heft_status read_error; /* … during the task, or HEFT_OK */
    int to[2], from; /* pipes; the end of the worker stays open here, so that no signal is sent */
    pid_t process, owner;
    bool is_lost;
};

/* ---- in the worker ---- */

static struct {
    shared *s;
    const uint8_t *mapped; /* all bytes of the file, or NULL */
    int from, to;
    pid_t parent;
} here;

/* Memory of the lists: nothing is freed, except that the last block may grow. */
static void *resize(void *ctx, void *ptr, size_t old_size, size_t new_size, size_t align)
{
    enum { GRAIN = 16 };
    shared *s = ctx;
    uint8_t *old = ptr, *p = s->lists + s->used;
    size_t need = (new_size + GRAIN - 1) & ~(size_t)(GRAIN - 1);
    (void)align;
    if (!new_size)
        return NULL;
    if (need < new_size || need > s->capacity - s->used)
        return NULL;
    s->used += need;
    if (old)
        memcpy(p, old, old_size < new_size ? old_size : new_size);
    return p;
}

heft_status heft_hdf5_ask(uint64_t at, uint8_t *to, size_t len, heft_error *err)
{
    shared *s = here.s;
    char message = READ;
    if (here.mapped) {
        if (getppid() != here.parent) /* it was killed in the middle of a task */
            _exit(0);
        memcpy(to, here.mapped + at, len);
        return HEFT_OK;
    }
    s->at = at;
    s->len = len;
    if (write(here.to, &message, 1) != 1 || read(here.from, &message, 1) != 1 || message != READ)
        _exit(0);
    memcpy(to, s->read, len);
    if (s->status && err)
        *err = s->error;
    return s->status;
}

static bool has_room(uint64_t limit)
{
    enum { PROBE = 64 << 10 };
    struct rlimit r = { limit, RLIM_INFINITY };
    setrlimit(RLIMIT_DATA, &r);
    void *p = mmap(NULL, PROBE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p != MAP_FAILED)
        munmap(p, PROBE);
    return p != MAP_FAILED;
}

/* Find what the process has now, which the kernel tells in a file that a sandbox may hide. */
static void limit_memory(void)
{
    uint64_t low = 0, high = (uint64_t)1 << 62;
    while (high - low > 1 << 20) {
        uint64_t mid = low + (high - low) / 2;
        if (has_room(mid))
            high = mid;
        else
            low = mid;
    }
    struct rlimit r = { high + MEMORY, high + MEMORY }, none = { 0, 0 };
    setrlimit(RLIMIT_DATA, &r);
    setrlimit(RLIMIT_CORE, &none);
}

static rlim_t seconds_of(uint64_t size)
{
    uint64_t more = size / SECOND_BYTES;
    return SECONDS + (rlim_t)(more < INT16_MAX ? more : INT16_MAX);
}

static void limit_time(void)
{
    struct rusage used = { .ru_nvcsw = 0 };
    getrusage(RUSAGE_SELF, &used);
    rlim_t seconds = (rlim_t)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
                     seconds_of(here.s->file.file_bytes);
    struct rlimit r = { seconds, RLIM_INFINITY };
    setrlimit(RLIMIT_CPU, &r);
}

/* The handlers of the process are for its own threads.  An interrupt ends the process, and that
 * the worker. */
static void reset_signals(void)
{
    sigset_t none;
    for (int i = 1; i < NSIG; i++)
        signal(i, i == SIGINT || i == SIGQUIT || i == SIGHUP ? SIG_IGN : SIG_DFL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

/* Close everything except for the pipes, which become the descriptors 0 and 1. */
static void keep_pipes(int from, int to)
{
    enum { FIRST = 1024 };
    int a = fcntl(from, F_DUPFD, FIRST), b = fcntl(to, F_DUPFD, FIRST);
    here.from = a < 0 ? from : a;
    here.to = b < 0 ? to : b;
    for (int fd = 0; fd < FIRST; fd++)
        if (fd != here.from && fd != here.to)
            close(fd);
}

static heft_status do_task(shared *s)
{
    if (s->task == HEFT_HDF5_LIST)
        return heft_hdf5_list(&s->file);
    const heft_hdf5_decoded *arrays = s->file.decoded_arrays.ptr;
    return heft_hdf5_decode(&s->file, &arrays[s->array], s->band, s->elements);
}

static void work(void)
{
    char message;
    reset_signals();
    limit_memory();
    while (read(here.from, &message, 1) == 1 && message == DONE) {
        limit_time();
        heft_status st = do_task(here.s);
        here.s->status = st;
        here.s->rule = heft_hdf5_rule_number(st ? here.s->error.rule : NULL);
        message = DONE;
        if (write(here.to, &message, 1) != 1)
            break;
    }
    _exit(0);
}

/* ---- in the process that has the file ---- */

static heft_status lost(heft_hdf5_worker *w, heft_error *err)
{
    w->is_lost = true;
    return heft_error_rule(
        err,
        heft_error_plain(err, HEFT_E_FORMAT,
                         "HDF5: the file is damaged so that libhdf5 fails on it, "
                         "or takes too much memory or time"),
        "keras/damaged");
}

static bool send_message(const heft_hdf5_worker *w, char message)
{
    return write(w->to[1], &message, 1) == 1;
}

/* Wait for a message; 0: none came in time, or the worker has ended. */
static char next_message(const heft_hdf5_worker *w)
{
    struct pollfd p = { .fd = w->from, .events = POLLIN };
    char message = 0;
    int n;
    do
        n = poll(&p, 1, 2 * 1000 * (int)seconds_of(w->bytes->size));
    while (n < 0 && errno == EINTR);
    return n == 1 && read(w->from, &message, 1) == 1 ? message : 0;
}

/* Read what the worker asks for, which may be anything. */
static void serve(heft_hdf5_worker *w, size_t len)
{
    shared *s = w->s;
    heft_range where = { *(volatile uint64_t *)&s->at, len };
    heft_status st = heft_range_in(where, w->bytes->size)
                         ? w->bytes->ops->read(w->bytes, where.offset, s->read, len, &w->error)
                         : heft_error_plain(&w->error, HEFT_E_FORMAT,
                                            "bytes past the end are needed");
    w->read_error = st ? st : w->read_error;
    s->error = w->error;
    s->status = st;
}

/* Return the result of the task: the error of a read that made it fail, or what the worker says. */
static heft_status result(heft_hdf5_worker *w, heft_error *err)
{
    heft_status st = *(volatile heft_status *)&w->s->status;
    heft_error said = w->s->error;
    if (!st)
        return HEFT_OK;
    if (w->read_error == st)
        said = w->error;
    else if (!heft_hdf5_error_is_sound(&said, st, *(volatile uint32_t *)&w->s->rule))
        return lost(w, err);
    if (err)
        *err = said;
    return st;
}

/* Take the lists: the memory that is shared gives way to a copy at the same addresses. */
static heft_status take_lists(heft_hdf5_worker *w, heft_error *err)
{
    size_t used = *(volatile size_t *)&w->s->used;
    if (used > w->list_size)
        return lost(w, err);
    w->file = w->s->file;
    w->file.file_bytes = w->bytes->size;
    uint8_t *copy = malloc(used + 1);
    if (!copy)
        return heft_error_no_memory(err, "for the lists of an HDF5 file");
    memcpy(copy, w->lists, used);
    void *own = mmap(w->lists, w->list_size, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    if (own != MAP_FAILED)
        memcpy(own, copy, used);
    free(copy);
    if (own == MAP_FAILED)
        return heft_error_no_memory(err, "for the lists of an HDF5 file");
    return heft_hdf5_lists_are_sound(&w->file, w->lists, used) ? HEFT_OK : lost(w, err);
}

/* A child of the process that opened the file has its memory and pipes, and would take answers to
 * its parent for its own. */
static heft_status refuse_child(heft_error *err)
{
    return heft_error_plain(err, HEFT_E_UNSUPPORTED,
                            "the HDF5 file was opened before this process was forked: open it "
                            "again in this process");
}

heft_status heft_hdf5_worker_run(heft_hdf5_worker *w, heft_hdf5_task task, uint32_t array,
                                 uint64_t band, heft_error *err)
{
    shared *s = w->s;
    uint64_t size = w->bytes->size, most = size < UINT64_MAX / READS_PER_BYTE / 2
                                               ? size * READS_PER_BYTE + ALWAYS_READ
                                               : UINT64_MAX;
    if (w->owner != getpid())
        return refuse_child(err);
    if (w->is_lost)
        return lost(w, err);
    w->read_error = HEFT_OK;
    s->task = task;
    s->array = array;
    s->band = band;
    s->file.err = &s->error;
    if (!send_message(w, DONE))
        return lost(w, err);
    char message;
    while ((message = next_message(w)) == READ) {
        size_t len = *(volatile size_t *)&s->len;
        len = len < HEFT_HDF5_READ ? len : HEFT_HDF5_READ;
        if (most < len)
            return lost(w, err);
        most -= len;
        serve(w, len);
        if (!send_message(w, READ))
            return lost(w, err);
    }
    if (message != DONE)
        return lost(w, err);
    HEFT_TRY(result(w, err));
    return task == HEFT_HDF5_LIST ? take_lists(w, err) : HEFT_OK;
}

const heft_hdf5_file *heft_hdf5_worker_file(const heft_hdf5_worker *w)
{
    return &w->file;
}

const uint8_t *heft_hdf5_worker_elements(heft_hdf5_worker *w)
{
    return w->s->elements;
}

/* ---- starting and stopping ---- */

/* Objects take more bytes in the file than a few times as many in the lists. */
static uint64_t list_bytes(uint64_t size, uint64_t memory)
{
    enum { LEAST = 64 << 20, PER_BYTE = 16 };
    uint64_t most = size < MOST_LISTS / PER_BYTE - LEAST ? LEAST + PER_BYTE * size : MOST_LISTS;
    return memory < most ? memory : most;
}

static void *map_shared(size_t size)
{
    void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE,
                   -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

static bool share_memory(heft_hdf5_worker *w, uint64_t memory)
{
    w->list_size = (size_t)list_bytes(w->bytes->size, memory);
    w->s = map_shared(sizeof *w->s);
    w->lists = map_shared(w->list_size);
    if (!w->s || !w->lists)
        return false;
    w->s->lists = w->lists;
    w->s->capacity = w->list_size;
    w->s->memory = (heft_allocator){ .size = sizeof w->s->memory, .resize = resize, .ctx = w->s };
    w->s->file.mem = (heft_memory){ .al = &w->s->memory, .limit = w->s->capacity };
    w->s->file.arena.mem = &w->s->file.mem;
    w->s->file.file = -1;
    w->s->file.file_bytes = w->bytes->size;
    return true;
}

static bool fork_worker(heft_hdf5_worker *w)
{
    int answers[2];
    if (pipe2(w->to, O_CLOEXEC))
        return false;
    if (pipe2(answers, O_CLOEXEC))
        return false;
    w->from = answers[0];
    const uint8_t *mapped = w->bytes->ops->map ? w->bytes->ops->map(w->bytes, 0, w->bytes->size)
                                               : NULL;
    w->owner = getpid();
    w->process = fork();
    if (!w->process) {
        here.s = w->s;
        here.mapped = mapped;
        here.parent = w->owner;
        keep_pipes(w->to[0], answers[1]);
        work();
    }
    int os = errno;
    close(answers[1]);
    errno = os;
    return w->process > 0;
}

/* Wait for the end of the worker.  One that is lost may be in an endless loop.  A process that is
 * not a child of this one any more is left alone: the program has waited for it. */
static void end_worker(const heft_hdf5_worker *w)
{
    pid_t ended;
    do
        ended = waitpid(w->process, NULL, w->is_lost ? WNOHANG : 0);
    while (ended < 0 && errno == EINTR);
    if (ended || kill(w->process, SIGKILL)) /* a sandbox may not let it: it has a limit of time */
        return;
    while (waitpid(w->process, NULL, 0) < 0 && errno == EINTR)
        continue;
}

void heft_hdf5_worker_stop(heft_hdf5_worker *w)
{
    if (!w)
        return;
    bool is_own = w->process > 0 && w->owner == getpid();
    if (is_own) /* closing is not enough: a child of this process has the pipe, too */
        (void)send_message(w, END);
    for (int i = 0; i < 2; i++)
        if (w->to[i] >= 0)
            close(w->to[i]);
    if (w->from >= 0)
        close(w->from);
    if (is_own)
        end_worker(w);
    if (w->s)
        munmap(w->s, sizeof *w->s);
    if (w->lists)
        munmap(w->lists, w->list_size);
    free(w);
}

heft_status heft_hdf5_worker_start(heft_hdf5_worker **out, heft_source *bytes, uint64_t memory,
                                   heft_error *err)
{
    heft_hdf5_worker *w = calloc(1, sizeof *w);
    *out = NULL;
    if (!w)
        return heft_error_no_memory(err, "for an HDF5 file");
    w->bytes = bytes;
    w->to[0] = w->to[1] = w->from = -1;
    if (!share_memory(w, memory)) {
        heft_hdf5_worker_stop(w);
        return heft_error_no_memory(err, "for an HDF5 file");
    }
    if (!fork_worker(w)) {
        int os = errno;
        heft_hdf5_worker_stop(w);
        return heft_error_os(err,
                             heft_error_plain(err, HEFT_E_IO,
                                              "a process that reads HDF5 cannot be started: %s",
                                              strerror(os)),
                             os);
    }
    *out = w;
    return HEFT_OK;
}
