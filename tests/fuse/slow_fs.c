/* slow_fs FOLDER FILE OPTION=NUMBER... - a file system with slow requests.
 *
 * Mount a read-only file system with FILE on the empty FOLDER, and serve the file until the folder
 * is unmounted:
 *   latency=N   a request takes N microseconds ...
 *   rate=N      ... and a second for every N MiB
 *   workers=N   at most N requests are served at the same time
 *   fail=N      a request for the byte at offset N fails ...
 *   errno=N     ... with this error
 *   shrink=N    after the first N requests the file has half of the size
 *   gather=N    a request waits for others, until N wait or until 0.3 s have passed
 *
 * Reading the file "counts" returns the number of requests for FILE, the bytes of all requests and
 * of the largest request, and the largest number of requests at the same time, and sets these
 * numbers to 0. */
#define FUSE_USE_VERSION 31
#include <errno.h>
#include <fcntl.h>
#include <fuse.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { LATENCY, RATE, WORKERS, FAIL, ERRNO, SHRINK, GATHER, OPTIONS };

static const char *const names[OPTIONS] = { "latency", "rate",   "workers", "fail",
                                            "errno",   "shrink", "gather" };
static long long option[OPTIONS] = { 0, 0, 16, -1, EIO, -1, 0 };
static const char *name; /* the file's name, without folders */
static int fd;
static off_t size;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t gathered = PTHREAD_COND_INITIALIZER;
static long long requests, bytes, largest, at_once, most_at_once, served, groups;

static bool is_shrunk(void)
{
    pthread_mutex_lock(&lock);
    bool is_over = option[SHRINK] >= 0 && served > option[SHRINK];
    pthread_mutex_unlock(&lock);
    return is_over;
}

static off_t current_size(void)
{
    return is_shrunk() ? size / 2 : size;
}

static bool is_counts(const char *path)
{
    return !strcmp(path, "/counts");
}

static bool is_file(const char *path)
{
    return *path == '/' && !strcmp(path + 1, name);
}

/* Let the kernel send more requests than can be served at the same time. */
static void *set_limits(struct fuse_conn_info *connection, struct fuse_config *config)
{
    (void)config;
    connection->max_background = (unsigned)option[WORKERS] * 2;
    connection->congestion_threshold = connection->max_background;
    return NULL;
}

static int get_status(const char *path, struct stat *out, struct fuse_file_info *info)
{
    (void)info;
    memset(out, 0, sizeof *out);
    out->st_nlink = 1;
    if (!strcmp(path, "/")) {
        out->st_mode = S_IFDIR | 0755;
        return 0;
    }
    out->st_mode = S_IFREG | 0444;
    out->st_size = is_counts(path) ? 0 : current_size();
    return is_counts(path) || is_file(path) ? 0 : -ENOENT;
}

static int list(const char *path, void *to, fuse_fill_dir_t fill, off_t off,
                struct fuse_file_info *info, enum fuse_readdir_flags flags)
{
    (void)path, (void)off, (void)info, (void)flags;
    fill(to, name, NULL, 0, 0);
    return 0;
}

static int open_one(const char *path, struct fuse_file_info *info)
{
    info->direct_io = is_counts(path);
    return is_counts(path) || is_file(path) ? 0 : -ENOENT;
}

static int read_counts(char *to, size_t len, off_t off)
{
    if (off)
        return 0;
    pthread_mutex_lock(&lock);
    int n = snprintf(to, len, "%lld %lld %lld %lld\n", requests, bytes, largest, most_at_once);
    requests = bytes = largest = most_at_once = 0;
    pthread_mutex_unlock(&lock);
    return n;
}

static void begin_request(size_t len)
{
    pthread_mutex_lock(&lock);
    requests++;
    served++;
    bytes += (long long)len;
    largest = largest > (long long)len ? largest : (long long)len;
    at_once++;
    most_at_once = most_at_once > at_once ? most_at_once : at_once;
    pthread_mutex_unlock(&lock);
}

/* Wait until enough requests are here, so that the largest number of them at the same time does not
 * depend on how busy the machine is. */
static void wait_for_others(void)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += 300000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_mutex_lock(&lock);
    long long group = groups;
    if (at_once >= option[GATHER]) {
        groups++;
        pthread_cond_broadcast(&gathered);
    }
    while (group == groups && !pthread_cond_timedwait(&gathered, &lock, &until))
        continue;
    pthread_mutex_unlock(&lock);
}

static void end_request(void)
{
    pthread_mutex_lock(&lock);
    at_once--;
    pthread_mutex_unlock(&lock);
}

static void wait_for(size_t len)
{
    long long ns = option[LATENCY] * 1000;
    if (option[RATE])
        ns += (long long)len * 1000000000 / (option[RATE] << 20);
    struct timespec t = { ns / 1000000000, ns % 1000000000 };
    nanosleep(&t, NULL);
}

static int read_file(char *to, size_t len, off_t off)
{
    off_t end = current_size();
    if (option[FAIL] >= off && option[FAIL] < off + (off_t)len)
        return -(int)option[ERRNO];
    if (off >= end)
        return 0;
    ssize_t n = pread(fd, to, (off_t)len < end - off ? len : (size_t)(end - off), off);
    return n < 0 ? -errno : (int)n;
}

static int read_one(const char *path, char *to, size_t len, off_t off, struct fuse_file_info *info)
{
    (void)info;
    if (is_counts(path))
        return read_counts(to, len, off);
    begin_request(len);
    wait_for_others();
    wait_for(len);
    int n = read_file(to, len, off);
    end_request();
    return n;
}

static bool set_option(const char *text)
{
    const char *value = strchr(text, '=');
    for (int i = 0; value && i < OPTIONS; i++)
        if (strlen(names[i]) == (size_t)(value - text) &&
            !strncmp(text, names[i], strlen(names[i]))) {
            option[i] = strtoll(value + 1, NULL, 10);
            return true;
        }
    return false;
}

int main(int argc, char **argv)
{
    static const struct fuse_operations operations = { .init = set_limits,
                                                       .getattr = get_status,
                                                       .readdir = list,
                                                       .open = open_one,
                                                       .read = read_one };
    struct stat info;
    char threads[64];
    for (int i = 3; i < argc; i++)
        if (!set_option(argv[i])) {
            fprintf(stderr, "slow_fs: there is no option '%s'\n", argv[i]);
            return 2;
        }
    fd = argc < 3 ? -1 : open(argv[2], O_RDONLY);
    if (fd < 0 || fstat(fd, &info)) {
        fputs("usage: slow_fs FOLDER FILE OPTION=NUMBER...\n", stderr);
        return 2;
    }
    size = info.st_size;
    name = strrchr(argv[2], '/') ? strrchr(argv[2], '/') + 1 : argv[2];
    snprintf(threads, sizeof threads, "-omax_threads=%lld,max_idle_threads=%lld", option[WORKERS],
             option[WORKERS]);
    char *words[] = { argv[0], "-f", threads, argv[1], NULL };
    return fuse_main(4, words, &operations, NULL);
}
