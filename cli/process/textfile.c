#include "process/textfile.h"

#include <heft/heft_ext.h>
#include <heft/remote.h>

#include "process/cmd.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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

enum { MAX_TEXT = 256 << 20, STEP = 1 << 16 };

static int say_too_long(const char *path)
{
    return say_status(HEFT_E_UNSUPPORTED, path, "exceeds the limit of %d MiB for text files",
                      MAX_TEXT >> 20);
}

/* ---- files ---- */

/* Read as many bytes as the file had when it was opened; a file that has shrunk since is an
 * error. */
int text_from_source(heft_str *out, heft_source *s, const char *path)
{
    heft_error err;
    if (s->size > MAX_TEXT)
        return say_too_long(path);
    size_t len = (size_t)s->size;
    char *text = malloc(len + 1);
    if (!text)
        return say_system(ENOMEM, path);
    if (len && s->ops->read(s, 0, text, len, &err)) {
        free(text);
        return say_error(path, &err);
    }
    *out = (heft_str){ text, len };
    return CODE_DONE;
}

static heft_status open_found(heft_source **out, const char *path, heft_error *err)
{
    const char *slash = strrchr(path, '/');
    char *folder = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
    *out = NULL;
    *err = (heft_error){ .status = HEFT_E_NOMEM, .offset = HEFT_NOWHERE, .message = "no memory" };
    heft_status st = folder ? heft_source_open_in_folder(out, folder, slash ? slash + 1 : path,
                                                         HEFT_ACCESS_READ, err)
                            : err->status;
    free(folder);
    return st;
}

/* ---- pipes ---- */

/* Read to the end of the pipe; stop with an error after MAX_TEXT bytes. */
static int read_pipe(heft_str *out, int fd, const char *path)
{
    ssize_t n = 1;
    outbuf text;
    out_open(&text, -1);
    while (n > 0 && text.used <= MAX_TEXT && out_reserve(&text, STEP)) {
        do
            n = read(fd, text.buf + text.used, STEP);
        while (n < 0 && errno == EINTR);
        text.used += n > 0 ? (size_t)n : 0;
    }
    int os = n < 0 ? errno : text.os;
    if (!os && text.used <= MAX_TEXT) {
        *out = (heft_str){ text.buf, text.used };
        return CODE_DONE;
    }
    out_free(&text);
    return os ? say_system(os, path) : say_too_long(path);
}

static int text_from_pipe(heft_str *out, const char *path)
{
    struct stat info;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0)
        return say_system(errno, path);
    int code = CODE_SYSTEM;
    if (fstat(fd, &info) || !S_ISFIFO(info.st_mode))
        say_status(HEFT_E_IO, path, "changed while it was being opened");
    else
        code = read_pipe(out, fd, path);
    close(fd);
    return code;
}

int text_read(heft_str *out, const char *path, text_origin origin)
{
    heft_error err;
    heft_source *s;
    struct stat info;
    *out = (heft_str){ NULL, 0 };
    if (origin == TEXT_NAMED && !stat(path, &info) && S_ISFIFO(info.st_mode))
        return text_from_pipe(out, path);
    heft_status st = origin == TEXT_FOUND ? open_found(&s, path, &err)
                                          : heft_source_open_file(&s, path, HEFT_ACCESS_READ, &err);
    if (st)
        return say_error(path, &err);
    int code = text_from_source(out, s, path);
    heft_source_close(s);
    return code;
}

void text_free(heft_str text)
{
    free((void *)(uintptr_t)text.ptr);
}

char *path_in(const char *dir, const char *name)
{
    size_t len = strlen(dir);
    char *path = malloc(len + strlen(name) + 2);
    if (path)
        sprintf(path, "%s%s%s", dir, len && dir[len - 1] == '/' ? "" : "/", name);
    else
        say_status(HEFT_E_NOMEM, dir, "no memory for a path");
    return path;
}

heft_str path_last_component(const char *path)
{
    size_t end = strlen(path), from;
    while (end > 1 && path[end - 1] == '/')
        end--;
    for (from = end; from && path[from - 1] != '/'; from--)
        ;
    return (heft_str){ path + from, end - from };
}

bool path_is_absent(int os)
{
    return os == ENOENT || os == ENOTDIR || os == ENAMETOOLONG || os == ELOOP;
}

bool path_exists(const char *path)
{
    struct stat info;
    return !lstat(path, &info) || !path_is_absent(errno);
}

int path_find(bool *exists, const char *path)
{
    struct stat info;
    *exists = !lstat(path, &info);
    return *exists || path_is_absent(errno) ? CODE_DONE : say_system(errno, path);
}

bool path_is_folder(const char *path)
{
    struct stat info;
    return !stat(path, &info) && S_ISDIR(info.st_mode);
}

int path_find_folder(bool *is_folder, const char *path)
{
    struct stat info;
    bool exists = !stat(path, &info);
    *is_folder = exists && S_ISDIR(info.st_mode);
    return exists || path_is_absent(errno) ? CODE_DONE : say_system(errno, path);
}

bool path_is_same(const char *path, const struct stat *file)
{
    struct stat info;
    return !stat(path, &info) && info.st_dev == file->st_dev && info.st_ino == file->st_ino;
}
