#include "textfile.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int text_read(heft_str *out, const char *path)
{
    FILE *file = path_is_folder(path) ? NULL : fopen(path, "rb");
    size_t size = 0;
    outbuf text;
    *out = (heft_str){ NULL, 0 };
    if (!file) {
        say(path, "%s", strerror(path_is_folder(path) ? EISDIR : errno));
        return CODE_SYSTEM;
    }
    out_open(&text, -1);
    while (out_reserve(&text, 1 << 16) &&
           (size = fread(text.buf + text.used, 1, text.room - text.used, file)) > 0)
        text.used += size;
    int os = text.os ? text.os : ferror(file) ? EIO : 0;
    fclose(file);
    if (os) {
        say(path, "%s", strerror(os));
        out_free(&text);
        return CODE_SYSTEM;
    }
    *out = (heft_str){ text.buf, text.used };
    return CODE_DONE;
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
        say(dir, "no memory for a path");
    return path;
}

bool path_exists(const char *path)
{
    return !access(path, F_OK);
}

bool path_is_folder(const char *path)
{
    struct stat about;
    return !stat(path, &about) && S_ISDIR(about.st_mode);
}

bool path_is_same(const char *path, const struct stat *file)
{
    struct stat about;
    return !stat(path, &about) && about.st_dev == file->st_dev && about.st_ino == file->st_ino;
}
