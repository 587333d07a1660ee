/* file_system.c - find out whether requests to the file system of a file take long.
 *
 * Each missing page of a mapped file costs a request, with a little read-ahead, and the thread
 * waits for the answer.  That suits disks; on a server, the host of a virtual machine or a program
 * that serves files, the time per request decides. */
#include "port/system/read_ahead.h"

#include <errno.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

enum {
    SLOW_NANOSECONDS = 100000, /* a read that takes longer is slow; bytes in memory take 1 us */
    SAMPLES = 4,               /* reads to time at most */
    PROBED_MIN = 1 << 20       /* smaller files are read without a measurement */
};

/* File systems that send requests to another machine or program, by statfs(2). */
static const struct {
    uint32_t magic;
    heft_file_cost cost; /* FUSE drops cached pages whenever a file is opened */
} file_systems[] = {
    { 0x65735546, HEFT_COST_PASSING }, /* FUSE, virtiofs */
    { 0x00006969, HEFT_COST_REQUEST }, /* NFS */
    { 0x0BD00BD0, HEFT_COST_REQUEST }, /* Lustre */
    { 0x01021997, HEFT_COST_REQUEST }, /* 9p */
    { 0xFE534D42, HEFT_COST_REQUEST }, /* SMB 2 and 3 */
    { 0xFF534D42, HEFT_COST_REQUEST }, /* CIFS */
    { 0x0000517B, HEFT_COST_REQUEST }, /* SMB 1 */
    { 0x00C36400, HEFT_COST_REQUEST }, /* Ceph */
    { 0x5346414F, HEFT_COST_REQUEST }, /* AFS */
    { 0x6B414653, HEFT_COST_REQUEST }, /* AFS of the kernel */
    { 0x47504653, HEFT_COST_REQUEST }, /* GPFS */
    { 0x19830326, HEFT_COST_REQUEST }, /* BeeGFS */
    { 0xAAD7AAEA, HEFT_COST_REQUEST }, /* PanFS */
    { 0x20030528, HEFT_COST_REQUEST }, /* OrangeFS */
    { 0x786F4256, HEFT_COST_REQUEST }, /* folders that VirtualBox shares */
};

static heft_file_cost cost_of_magic(uint32_t magic)
{
    for (size_t i = 0; i < sizeof file_systems / sizeof *file_systems; i++)
        if (file_systems[i].magic == magic)
            return file_systems[i].cost;
    return HEFT_COST_LOCAL;
}

static int64_t nanoseconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Time reads of single bytes, from the start of the file on, until one is slow.  Bytes in the page
 * cache are fast, wherever the file lies. */
static bool has_slow_reads(int fd, uint64_t size)
{
    for (uint64_t i = 0; i < SAMPLES; i++) {
        char byte;
        int64_t begin = nanoseconds();
        ssize_t n = pread(fd, &byte, 1, (off_t)(size / SAMPLES * i));
        if (n != 1 || nanoseconds() - begin >= SLOW_NANOSECONDS)
            return true;
    }
    return false;
}

/* Return true if the page cache cannot keep a file of that size for the next reader. */
static bool exceeds_memory(uint64_t size)
{
    uint64_t pages = (uint64_t)sysconf(_SC_PHYS_PAGES);
    return size / heft_page_size() > pages / 2;
}

heft_file_cost heft_file_cost_of(int fd, uint64_t size)
{
    struct statfs info;
    /* A local file system always answers. */
    heft_file_cost cost = fstatfs(fd, &info) ? HEFT_COST_REQUEST
                                             : cost_of_magic((uint32_t)info.f_type);
    if (cost == HEFT_COST_LOCAL || (size >= PROBED_MIN && !has_slow_reads(fd, size)))
        return HEFT_COST_LOCAL;
    return exceeds_memory(size) ? HEFT_COST_PASSING : cost;
}
