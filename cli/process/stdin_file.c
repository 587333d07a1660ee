#include "process/stdin_file.h"

#include <errno.h>
#include <heft/remote.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "process/cmd.h"

static const char stdin_path[] = "/dev/fd/0";

bool stdin_is(const char *path)
{
    return path && !strcmp(path, stdin_path);
}

/* Return the path, or a URL without credentials: these names are printed. */
static const char *shown(const char *path)
{
    static _Thread_local char text[PATH_MAX]; /* valid until the next call: messages print it */
    if (!path || !heft_is_url(path))
        return path;
    heft_url_redact(text, sizeof text, path);
    return text;
}

const char *stdin_label(const char *path)
{
    return stdin_is(path) ? "standard input" : shown(path);
}

const char *stdin_name(const char *path)
{
    return stdin_is(path) ? "-" : shown(path);
}

/* ---- copying ---- */

static int open_temporary(void)
{
    char path[PATH_MAX];
    const char *dir = getenv("TMPDIR");
    int length = snprintf(path, sizeof path, "%s/heft-XXXXXX", dir && *dir ? dir : "/var/tmp");
    if (length < 0 || (size_t)length >= sizeof path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    int fd = mkstemp(path);
    if (fd >= 0)
        unlink(path);
    return fd;
}

static bool write_all(int fd, const char *p, size_t left)
{
    while (left) {
        ssize_t n = write(fd, p, left);
        if (n < 0 && errno != EINTR)
            return false;
        p += n > 0 ? n : 0;
        left -= n > 0 ? (size_t)n : 0;
    }
    return true;
}

static bool copy_all(int to)
{
    enum { CHUNK = 1 << 16 };
    char buf[CHUNK];
    for (;;) {
        ssize_t n = read(STDIN_FILENO, buf, sizeof buf);
        if (!n)
            return true;
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 || !write_all(to, buf, (size_t)n))
            return false;
    }
}

/* Make standard input a file. Return false, with errno, on failure. */
static bool spool(void)
{
    struct stat info;
    if (!fstat(STDIN_FILENO, &info) && S_ISREG(info.st_mode) && !lseek(STDIN_FILENO, 0, SEEK_CUR))
        return true;
    int fd = open_temporary();
    if (fd < 0)
        return false;
    bool ok = copy_all(fd) && dup2(fd, STDIN_FILENO) >= 0;
    int os = errno;
    close(fd);
    errno = os;
    return ok;
}

/* ---- arguments ---- */

int stdin_take(session *s, const char **input, bool is_changed)
{
    const char *name = s->name;
    if (is_changed)
        return say_usage(name, "standard input cannot be changed: name a file");
    if (s->reads_stdin)
        return say_usage(name, "standard input can be read only once");
    if (isatty(STDIN_FILENO))
        return say_usage(name, "standard input is a terminal: name a file, or use a pipe");
    if (!spool())
        return say_status(HEFT_E_IO, "standard input", "cannot be copied to %s: %s",
                          getenv("TMPDIR") ? "TMPDIR" : "/var/tmp", strerror(errno));
    s->reads_stdin = true;
    *input = stdin_path;
    return CODE_DONE;
}
