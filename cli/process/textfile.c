#include "process/textfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <heft/heft_ext.h>

enum { MAX_TEXT = 256 << 20, STEP = 1 << 16 };

static int say_too_long(const char *path)
{
    return say_status(HEFT_E_UNSUPPORTED, path, "exceeds the limit of %d MiB for text files",
                      MAX_TEXT >> 20);
}

/* ---- files ---- */

/* Read as many bytes as the file had when it was opened; a file that has shrunk since is an
 * error. */
static int read_source(heft_str *out, heft_source *s, const char *path)
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
    int code = read_source(out, s, path);
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
