/* test_file_cost.c - tells files that are read ahead by the file system, the size and the time of
 * a read.  meson.build intercepts the calls of the system. */
#include <errno.h>
#include <linux/magic.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "port/system/read_ahead.h"
#include "test_memory.h"

enum { PROBED_MIN = 1 << 20, SLOW = 100000, SAMPLES = 4, MEMORY_PAGES = 1000 };

static struct {
    uint32_t magic;      /* 0: fstatfs() fails */
    int slow, failing;   /* number of the read that takes long, or fails, from 1 */
    int64_t nanoseconds; /* time of the slow read */
    int64_t now;
    int reads;
    off_t offsets[SAMPLES + 1];
} system_state;

int __wrap_fstatfs64(int fd, struct statfs *info);
int __wrap_fstatfs64(int fd, struct statfs *info)
{
    (void)fd;
    errno = EIO;
    info->f_type = (__fsword_t)system_state.magic;
    return system_state.magic ? 0 : -1;
}

int __wrap_clock_gettime(clockid_t clock, struct timespec *t);
int __wrap_clock_gettime(clockid_t clock, struct timespec *t)
{
    (void)clock;
    t->tv_sec = (time_t)(system_state.now / 1000000000);
    t->tv_nsec = (long)(system_state.now % 1000000000);
    return 0;
}

ssize_t __wrap_pread64(int fd, void *to, size_t len, off_t off);
ssize_t __wrap_pread64(int fd, void *to, size_t len, off_t off)
{
    (void)fd;
    assert_true(len == 1 && system_state.reads < SAMPLES);
    *(char *)to = 0;
    system_state.offsets[system_state.reads++] = off;
    if (system_state.reads == system_state.slow)
        system_state.now += system_state.nanoseconds;
    return system_state.reads == system_state.failing ? -1 : 1;
}

long __real_sysconf(int name);
long __wrap_sysconf(int name);
long __wrap_sysconf(int name)
{
    return name == _SC_PHYS_PAGES ? MEMORY_PAGES : __real_sysconf(name);
}

static heft_file_cost cost_of(uint32_t magic, uint64_t size, int slow, int64_t nanoseconds)
{
    memset(&system_state, 0, sizeof system_state);
    system_state.magic = magic;
    system_state.slow = slow;
    system_state.nanoseconds = nanoseconds;
    system_state.now = 5999999999; /* a read ends in the next second */
    return heft_file_cost_of(0, size);
}

/* The numbers of the kernel's header, and of file systems that the kernel does not list. */
static void slow_file_systems_are_known(void **state)
{
    static const struct {
        uint32_t magic;
        heft_file_cost cost;
    } cases[] = {
        { FUSE_SUPER_MAGIC, HEFT_COST_PASSING },
        { NFS_SUPER_MAGIC, HEFT_COST_REQUEST },
        { 0x0BD00BD0, HEFT_COST_REQUEST },
        { V9FS_MAGIC, HEFT_COST_REQUEST },
        { SMB2_SUPER_MAGIC, HEFT_COST_REQUEST },
        { CIFS_SUPER_MAGIC, HEFT_COST_REQUEST },
        { SMB_SUPER_MAGIC, HEFT_COST_REQUEST },
        { CEPH_SUPER_MAGIC, HEFT_COST_REQUEST },
        { AFS_SUPER_MAGIC, HEFT_COST_REQUEST },
        { AFS_FS_MAGIC, HEFT_COST_REQUEST },
        { 0x47504653, HEFT_COST_REQUEST },
        { 0x19830326, HEFT_COST_REQUEST },
        { 0xAAD7AAEA, HEFT_COST_REQUEST },
        { 0x20030528, HEFT_COST_REQUEST },
        { 0x786F4256, HEFT_COST_REQUEST },
        { EXT4_SUPER_MAGIC, HEFT_COST_LOCAL },
        { TMPFS_MAGIC, HEFT_COST_LOCAL },
        { XFS_SUPER_MAGIC, HEFT_COST_LOCAL },
        { 0, HEFT_COST_REQUEST }, /* no answer */
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        heft_file_cost cost = cost_of(cases[i].magic, PROBED_MIN, 1, SLOW);
        if (cost != cases[i].cost)
            fail_msg("%#x: %d", (unsigned)cases[i].magic, cost);
        assert_int_equal(system_state.reads, cost != HEFT_COST_LOCAL);
    }
}

static void fast_reads_make_a_file_local(void **state)
{
    (void)state;
    for (int slow = 1; slow <= SAMPLES; slow++) {
        assert_int_equal(cost_of(NFS_SUPER_MAGIC, PROBED_MIN, slow, SLOW), HEFT_COST_REQUEST);
        assert_int_equal(system_state.reads, slow);
        assert_int_equal(cost_of(NFS_SUPER_MAGIC, PROBED_MIN, slow, SLOW - 1), HEFT_COST_LOCAL);
        assert_int_equal(system_state.reads, SAMPLES);
        assert_int_equal(cost_of(NFS_SUPER_MAGIC, PROBED_MIN, 0, 0), HEFT_COST_LOCAL);
        system_state.reads = 0;
        system_state.failing = slow;
        assert_int_equal(heft_file_cost_of(0, PROBED_MIN), HEFT_COST_REQUEST);
        assert_int_equal(system_state.reads, slow);
    }
    for (int i = 0; i < SAMPLES; i++)
        assert_int_equal(system_state.offsets[i], i * (PROBED_MIN / SAMPLES));
}

static void small_files_are_not_measured(void **state)
{
    (void)state;
    assert_int_equal(cost_of(NFS_SUPER_MAGIC, PROBED_MIN - 1, 0, 0), HEFT_COST_REQUEST);
    assert_int_equal(cost_of(NFS_SUPER_MAGIC, 0, 0, 0), HEFT_COST_REQUEST);
    assert_int_equal(system_state.reads, 0);
}

static void files_beyond_half_of_the_memory_pass_the_cache(void **state)
{
    (void)state;
    uint64_t half = MEMORY_PAGES / 2 * (uint64_t)heft_page_size(), more = half + heft_page_size();
    assert_int_equal(cost_of(NFS_SUPER_MAGIC, more - 1, 1, SLOW), HEFT_COST_REQUEST);
    assert_int_equal(cost_of(NFS_SUPER_MAGIC, more, 1, SLOW), HEFT_COST_PASSING);
    assert_int_equal(cost_of(EXT4_SUPER_MAGIC, more, 1, SLOW), HEFT_COST_LOCAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slow_file_systems_are_known),
        cmocka_unit_test(fast_reads_make_a_file_local),
        cmocka_unit_test(small_files_are_not_measured),
        cmocka_unit_test(files_beyond_half_of_the_memory_pass_the_cache),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
