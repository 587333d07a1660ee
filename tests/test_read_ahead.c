/* test_read_ahead.c - reading ahead on slow file systems: the requests are counted, and the bytes
 * compared while requests, threads or memory fail.  meson.build intercepts pread() and further
 * calls. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "port/system/read_ahead.h"
#include "test_memory.h"

enum { MIB = 1 << 20, BLOCK = 8 * MIB, WINDOW = 8, STEP = 4096 };

/* ---- intercepted calls ---- */

static struct {
    pthread_mutex_t lock;
    unsigned threads;    /* threads that were begun */
    unsigned calls;      /* calls of pread() */
    uint64_t bytes;      /* returned by pread() */
    size_t largest;      /* request */
    uint64_t broken;     /* a request ends before this byte, or fails with EIO; UINT64_MAX: none */
    size_t most;         /* bytes that a call returns; 0: all */
    bool is_interrupted; /* every second call fails with EINTR */
    bool has_no_threads, has_no_memory;
} plan = { .lock = PTHREAD_MUTEX_INITIALIZER };

ssize_t __real_pread64(int fd, void *to, size_t len, off_t off);
ssize_t __wrap_pread64(int fd, void *to, size_t len, off_t off);
ssize_t __wrap_pread64(int fd, void *to, size_t len, off_t off)
{
    pthread_mutex_lock(&plan.lock);
    bool fails = plan.is_interrupted && plan.calls % 2 == 0;
    plan.calls++;
    pthread_mutex_unlock(&plan.lock);
    errno = EINTR;
    if (fails)
        return -1;
    size_t most = plan.most && plan.most < len ? plan.most : len;
    if (plan.broken >= (uint64_t)off && plan.broken - (uint64_t)off < most)
        most = (size_t)(plan.broken - (uint64_t)off); /* the bytes before an error are read */
    errno = EIO;
    if (!most)
        return -1;
    ssize_t n = __real_pread64(fd, to, most, off);
    pthread_mutex_lock(&plan.lock);
    plan.bytes += n > 0 ? (uint64_t)n : 0;
    plan.largest = len > plan.largest ? len : plan.largest;
    pthread_mutex_unlock(&plan.lock);
    return n;
}

typedef void *thread_function(void *arg);
int __real_pthread_create(pthread_t *t, const pthread_attr_t *a, thread_function *run, void *arg);
int __wrap_pthread_create(pthread_t *t, const pthread_attr_t *a, thread_function *run, void *arg);
int __wrap_pthread_create(pthread_t *t, const pthread_attr_t *a, thread_function *run, void *arg)
{
    plan.threads++;
    return plan.has_no_threads ? EAGAIN : __real_pthread_create(t, a, run, arg);
}

void *__real_heft_buffer_new(size_t bytes);
void *__wrap_heft_buffer_new(size_t bytes);
void *__wrap_heft_buffer_new(size_t bytes)
{
    return plan.has_no_memory ? NULL : __real_heft_buffer_new(bytes);
}

/* ---- the file ---- */

static uint8_t buffer[BLOCK];

/* Open a file of zeros, with the offset at every multiple of STEP. */
static int open_file(uint64_t size)
{
    int fd = memfd_create("heft-test", MFD_CLOEXEC);
    assert_true(fd >= 0 && !ftruncate(fd, (off_t)size));
    for (uint64_t at = 0; at < size; at += STEP)
        assert_true(pwrite(fd, &at, size - at < 8 ? (size_t)(size - at) : 8, (off_t)at) > 0);
    plan.calls = plan.threads = 0;
    plan.bytes = plan.largest = plan.most = 0;
    plan.broken = UINT64_MAX;
    plan.is_interrupted = plan.has_no_threads = plan.has_no_memory = false;
    return fd;
}

/* Return true if the buffer has `len` bytes of the file from a multiple of STEP on. */
static bool has_bytes(uint64_t off, size_t len)
{
    for (size_t i = 0; i < len; i += STEP) {
        uint64_t at = off + i;
        if (memcmp(buffer + i, &at, len - i < 8 ? len - i : 8) != 0)
            return false;
    }
    return true;
}

/* Read a range in steps, and check the bytes; return the bytes that were not read. */
static uint64_t read_range(heft_read_ahead *a, uint64_t from, uint64_t to, size_t step)
{
    uint64_t missing = 0;
    for (uint64_t at = from; at < to; at += step) {
        size_t len = to - at < step ? (size_t)(to - at) : step;
        memset(buffer, 0xA5, len);
        size_t n = heft_read_ahead_read(a, at, buffer, len);
        assert_true(n <= len && has_bytes(at, n));
        missing += len - n;
    }
    return missing;
}

static heft_read_ahead *open_ahead(int fd, uint64_t size)
{
    heft_read_ahead *a = heft_read_ahead_new(fd, size, false);
    assert_non_null(a);
    return a;
}

static void close_ahead(heft_read_ahead *a, int fd)
{
    heft_read_ahead_free(a);
    close(fd);
}

/* ---- requests ---- */

static void sequential_reads_request_each_block_once(void **state)
{
    static const uint64_t sizes[] = { 2 * BLOCK, 2 * BLOCK + 1, 2 * BLOCK - 1, 26 * BLOCK };
    static const size_t steps[] = { BLOCK, MIB, 3 * MIB };
    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (size_t k = 0; k < (i < 3 ? sizeof steps / sizeof *steps : 1); k++) {
            int fd = open_file(sizes[i]);
            heft_read_ahead *a = open_ahead(fd, sizes[i]);
            assert_int_equal(read_range(a, 0, sizes[i], steps[k]), 0);
            close_ahead(a, fd);
            assert_int_equal(plan.bytes, sizes[i]);
            assert_int_equal(plan.calls, (sizes[i] + BLOCK - 1) / BLOCK);
            assert_int_equal(plan.largest, BLOCK);
        }
}

static void small_reads_become_sequential_after_a_mebibyte(void **state)
{
    enum { SIZE = 2 * BLOCK };
    (void)state;
    int fd = open_file(SIZE);
    heft_read_ahead *a = open_ahead(fd, SIZE);
    assert_int_equal(read_range(a, 0, MIB - STEP, STEP), 0);
    assert_int_equal(plan.bytes, MIB - STEP);
    assert_int_equal(plan.calls, MIB / STEP - 1);
    assert_int_equal(read_range(a, MIB - STEP, MIB, STEP), 0);
    assert_int_equal(plan.largest, BLOCK);
    close_ahead(a, fd);
}

static void distant_reads_request_only_their_bytes(void **state)
{
    enum { READS = 12 };
    const uint64_t distance = 65 * (uint64_t)MIB, size = READS * distance;
    (void)state;
    int fd = memfd_create("heft-test", MFD_CLOEXEC);
    assert_int_equal(ftruncate(fd, (off_t)size), 0);
    close(open_file(0));
    heft_read_ahead *a = open_ahead(fd, size);
    for (uint64_t i = 1; i < READS; i++)
        assert_int_equal(heft_read_ahead_read(a, i * 5 % READS * distance, buffer, STEP), STEP);
    close_ahead(a, fd);
    assert_int_equal(plan.bytes, (READS - 1) * STEP);
    assert_int_equal(plan.largest, STEP);
}

/* A gap of 64 MiB belongs to reads in order, a gap with a byte more does not. */
static void reads_in_order_may_leave_a_gap(void **state)
{
    const uint64_t begin = 128 * (uint64_t)MIB, near = 64 * (uint64_t)MIB, size = 2 * begin;
    (void)state;
    for (uint64_t more = 0; more < 2; more++) {
        int fd = memfd_create("heft-test", MFD_CLOEXEC);
        assert_int_equal(ftruncate(fd, (off_t)size), 0);
        close(open_file(0));
        heft_read_ahead *a = open_ahead(fd, size);
        assert_int_equal(heft_read_ahead_read(a, begin, buffer, STEP), STEP);
        assert_int_equal(heft_read_ahead_read(a, begin + STEP + near + more, buffer, STEP), STEP);
        close_ahead(a, fd);
        assert_int_equal(plan.largest, more ? STEP : BLOCK);
    }
}

/* Two threads of a program read a file in order: each block is still read once. */
static void reads_at_two_offsets_share_the_blocks(void **state)
{
    enum { SIZE = 10 * BLOCK, HALF = SIZE / 2 };
    (void)state;
    int fd = open_file(SIZE);
    heft_read_ahead *a = open_ahead(fd, SIZE);
    for (uint64_t at = 0; at < HALF; at += MIB) {
        assert_int_equal(read_range(a, at, at + MIB, MIB), 0);
        assert_int_equal(read_range(a, HALF + at, HALF + at + MIB, MIB), 0);
    }
    close_ahead(a, fd);
    assert_int_equal(plan.bytes, SIZE);
}

static void a_range_is_requested_up_to_the_window(void **state)
{
    static const struct {
        uint64_t off, len;
        unsigned blocks;
    } cases[] = {
        { 0, MIB - 1, 0 },           { 0, MIB, 1 },         { 0, BLOCK, 1 },
        { 0, BLOCK + 1, 2 },         { BLOCK - 1, MIB, 2 }, { 0, UINT32_MAX, WINDOW },
        { 8 * BLOCK, 2 * BLOCK, 1 }, /* the file ends */
    };
    enum { SIZE = 9 * BLOCK };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int fd = open_file(SIZE);
        heft_read_ahead *a = open_ahead(fd, SIZE);
        heft_read_ahead_request(a, cases[i].off, cases[i].len);
        assert_int_equal(plan.threads, cases[i].blocks); /* a thread begins for each block */
        close_ahead(a, fd);
        assert_true(plan.calls <= cases[i].blocks);
    }
}

/* ---- failures ---- */

static void failed_requests_leave_the_bytes_before_readable(void **state)
{
    enum { SIZE = 3 * BLOCK, BROKEN = BLOCK + 3 * MIB + 5 };
    (void)state;
    int fd = open_file(SIZE);
    heft_read_ahead *a = open_ahead(fd, SIZE);
    plan.broken = BROKEN;
    assert_int_equal(read_range(a, 0, SIZE, MIB), MIB - 5);
    assert_int_equal(heft_read_ahead_read(a, BROKEN, buffer, 1), 0);
    assert_int_equal(heft_read_ahead_read(a, BROKEN + 1, buffer, 1), 1);
    close_ahead(a, fd);
}

static void a_file_that_ends_early_gives_fewer_bytes(void **state)
{
    enum { SIZE = 2 * BLOCK, END = BLOCK + 2 * MIB };
    (void)state;
    int fd = open_file(SIZE);
    assert_int_equal(ftruncate(fd, END), 0);
    heft_read_ahead *a = open_ahead(fd, SIZE);
    assert_int_equal(read_range(a, 0, SIZE, MIB), SIZE - END);
    close_ahead(a, fd);
}

static void bytes_are_right_whatever_is_short(void **state)
{
    enum { SIZE = 5 * BLOCK + 77 };
    (void)state;
    for (int i = 0; i < 4; i++) {
        int fd = open_file(SIZE);
        heft_read_ahead *a = open_ahead(fd, SIZE);
        plan.is_interrupted = i == 0;
        plan.most = i == 1 ? 3 * MIB : 0;
        plan.has_no_threads = i == 2;
        plan.has_no_memory = i == 3;
        assert_int_equal(read_range(a, 0, SIZE, 2 * MIB), 0);
        close_ahead(a, fd);
        assert_int_equal(plan.bytes, SIZE);
    }
}

static void a_child_process_has_no_threads(void **state)
{
    enum { SIZE = 2 * BLOCK };
    int status = -1;
    (void)state;
    int fd = open_file(SIZE);
    heft_read_ahead *a = open_ahead(fd, SIZE);
    assert_int_equal(read_range(a, 0, MIB, MIB), 0);
    pid_t child = fork();
    if (!child) {
        size_t n = heft_read_ahead_read(a, 0, buffer, MIB);
        heft_read_ahead_request(a, 0, BLOCK);
        heft_read_ahead_free(a);
        _exit(n ? 1 : 0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    close_ahead(a, fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sequential_reads_request_each_block_once),
        cmocka_unit_test(small_reads_become_sequential_after_a_mebibyte),
        cmocka_unit_test(distant_reads_request_only_their_bytes),
        cmocka_unit_test(reads_in_order_may_leave_a_gap),
        cmocka_unit_test(reads_at_two_offsets_share_the_blocks),
        cmocka_unit_test(a_range_is_requested_up_to_the_window),
        cmocka_unit_test(failed_requests_leave_the_bytes_before_readable),
        cmocka_unit_test(a_file_that_ends_early_gives_fewer_bytes),
        cmocka_unit_test(bytes_are_right_whatever_is_short),
        cmocka_unit_test(a_child_process_has_no_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
