/* test_copy_range.c - copies between open files by reflinks, by the kernel and through a buffer. */
#include "heft_test.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "port/system/disk.h"

enum { SOURCE_SIZE = (5 << 20) / 2 + 77, PAGE = 4096 };

static struct {
    int copy_os, reflink_os; /* errno of these calls; 0: they work */
    bool ends;               /* copy_file_range() copies nothing */
    unsigned copies, reflinks, writes;
} copying;

static ssize_t copy_some(int from, off_t at, int to, off_t to_at, size_t len)
{
    static uint8_t buf[1 << 20];
    errno = copying.copy_os;
    if (copying.copy_os && !copying.ends)
        return -1;
    if (copying.ends)
        return 0;
    copying.copies++;
    size_t n = len < sizeof buf ? len : sizeof buf;
    assert_int_equal(pread(from, buf, n, at), n);
    return pwrite(to, buf, n, to_at);
}

static int reflink_all(int from, off_t at, int to, off_t to_at, size_t len)
{
    errno = copying.reflink_os;
    if (copying.reflink_os)
        return -1;
    copying.reflinks++;
    assert_int_equal(at % PAGE, 0);
    assert_int_equal(to_at % PAGE, 0);
    assert_int_equal(len % PAGE, 0);
    for (size_t done = 0; done < len;)
        done += (size_t)copy_some(from, at + (off_t)done, to, to_at + (off_t)done, len - done);
    return 0;
}

static ssize_t count_write(int fd, const void *data, size_t len, off_t at)
{
    copying.writes++;
    return heft_system_disk.write(fd, data, len, at);
}

static void copies_by_the_cheapest_way(void **state)
{
    static const struct {
        int copy_os, reflink_os;
        bool ends;
        uint64_t from, at, length;
        heft_status st;
        bool reflinks, writes; /* what is used */
    } rows[] = {
        { 0, 0, false, 0, 0, SOURCE_SIZE, HEFT_OK, true, false },
        { 0, 0, false, 100, 100 + PAGE, 3 * PAGE, HEFT_OK, true, false },
        { 0, 0, false, 100, 101, 3 * PAGE, HEFT_OK, false, false }, /* not aligned */
        { 0, 0, false, 1, 1, PAGE - 1, HEFT_OK, false, false },     /* no whole block */
        { 0, 0, false, 1, 1, 2 * PAGE - 1, HEFT_OK, true, false },
        { 0, 0, false, 5, 5, 0, HEFT_OK, false, false },
        { 0, EOPNOTSUPP, false, 0, 0, SOURCE_SIZE, HEFT_OK, false, false },
        { ENOSYS, EXDEV, false, 0, 0, SOURCE_SIZE, HEFT_OK, false, true },
        { EXDEV, EINVAL, false, 0, 0, SOURCE_SIZE, HEFT_OK, false, true },
        { EINVAL, EBADF, false, 9, 9, 1 << 20, HEFT_OK, false, true },
        { EBADF, EPERM, false, 9, 9, (1 << 20) + 1, HEFT_OK, false, true },
        { EPERM, ENOTTY, false, 9, 9, 5, HEFT_OK, false, true },
        { ETXTBSY, ENOSYS, false, 9, 9, 5, HEFT_OK, false, true },
        { EIO, ENOTTY, true, 9, 9, 5, HEFT_OK, false, true },
        { EIO, ENOTTY, false, 0, 0, PAGE, HEFT_E_IO, false, false },
        { 0, EIO, false, 0, 0, PAGE, HEFT_E_IO, false, false },
        { EIO, 0, false, 1, 1, 3 * PAGE, HEFT_E_IO, false, false },
        { EXDEV, EXDEV, false, SOURCE_SIZE, 0, 1, HEFT_E_IO, false, false }, /* past the end */
    };
    uint8_t *bytes = malloc(SOURCE_SIZE);
    for (size_t i = 0; i < SOURCE_SIZE; i++)
        bytes[i] = (uint8_t)(i * 7 + (i >> 8) * 3 + (i >> 16));
    heft_test_save(heft_test_path(*state, "from"), bytes, SOURCE_SIZE);
    heft_disk disk = heft_system_disk;
    disk.copy = copy_some;
    disk.reflink = reflink_all;
    disk.write = count_write;
    for (size_t i = 0; i < HEFT_COUNT(rows); i++) {
        heft_error err;
        int from = open(heft_test_path(*state, "from"), O_RDONLY | O_CLOEXEC);
        int to = open(heft_test_path(*state, "to"), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        heft_range_copier c = { .disk = &disk, .to = to };
        heft_edit_extent e = { .at = rows[i].at, .length = rows[i].length, .from = rows[i].from };
        memset(&copying, 0, sizeof copying);
        copying.copy_os = rows[i].copy_os;
        copying.reflink_os = rows[i].reflink_os;
        copying.ends = rows[i].ends;
        heft_status st = heft_copy_range(&c, from, e, &err);
        heft_range_copier_end(&c);
        heft_assert_status(st, rows[i].st, &err);
        close(from);
        close(to);
        if (st)
            continue;
        assert_int_equal(c.done, rows[i].length);
        assert_int_equal(copying.reflinks > 0, rows[i].reflinks);
        assert_int_equal(copying.writes > 0, rows[i].writes);
        heft_bytes copy = heft_test_load(heft_test_path(*state, "to"));
        assert_int_equal(copy.len, rows[i].length ? rows[i].at + rows[i].length : 0);
        for (uint64_t k = 0; k < rows[i].length; k++)
            assert_true(copy.p[rows[i].at + k] == bytes[rows[i].from + k]);
        heft_test_free(&copy);
    }
    free(bytes);
}

static unsigned go_on; /* reports of progress before the cancellation */

static bool count_down(void *ctx, uint64_t done, uint64_t total)
{
    (void)ctx;
    assert_true(done <= total);
    return go_on-- > 0;
}

static void a_copy_is_cancelled_after_each_step(void **state)
{
    static const struct {
        int copy_os, reflink_os;
        unsigned steps;
    } rows[] = { { 0, 0, 3 }, { 0, EXDEV, 3 }, { EXDEV, EXDEV, 3 } };
    uint8_t *bytes = calloc(1, SOURCE_SIZE);
    heft_test_save(heft_test_path(*state, "from"), bytes, SOURCE_SIZE);
    free(bytes);
    heft_disk disk = heft_system_disk;
    disk.copy = copy_some;
    disk.reflink = reflink_all;
    for (size_t i = 0; i < HEFT_COUNT(rows); i++)
        for (unsigned n = 0; n <= rows[i].steps; n++) {
            heft_error err;
            int from = open(heft_test_path(*state, "from"), O_RDONLY | O_CLOEXEC);
            int to = open(heft_test_path(*state, "to"), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
            heft_range_copier c = { .disk = &disk,
                                    .to = to,
                                    .progress = count_down,
                                    .cancelled_message = "enough",
                                    .total = SOURCE_SIZE };
            heft_edit_extent e = { .at = 1, .length = SOURCE_SIZE - 1, .from = 1 };
            memset(&copying, 0, sizeof copying);
            copying.copy_os = rows[i].copy_os;
            copying.reflink_os = rows[i].reflink_os;
            go_on = n;
            heft_status st = heft_copy_range(&c, from, e, &err);
            heft_range_copier_end(&c);
            if (n < rows[i].steps)
                heft_assert_fails(st, HEFT_E_CANCELLED, &err, "enough");
            else
                heft_assert_ok(st, &err);
            close(from);
            close(to);
        }
}

#define with_dir(fn) cmocka_unit_test_setup_teardown(fn, heft_test_dir_make, heft_test_dir_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        with_dir(copies_by_the_cheapest_way),
        with_dir(a_copy_is_cancelled_after_each_step),
    };
    return cmocka_run_group_tests_name("copy_range", tests, NULL, NULL);
}
