/* hub_names.c - reads the layouts of huggingface_hub: a cache, where snapshots/REVISION/FILE is a
 * link to blobs/DIGEST, and a folder of files with .cache/huggingface/download/FILE.metadata. */
#include "hub_names.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "textfile.h"

static const char *const notes_folders[] = { ".cache/huggingface/download",
                                             ".huggingface/download" };
enum { NOTES_FOLDERS = sizeof notes_folders / sizeof *notes_folders, SHA1 = 40, SHA256 = 64 };

static bool read_digest(hub_name *out, const char *text, size_t len)
{
    if ((len != SHA1 && len != SHA256) || strspn(text, "0123456789abcdef") < len)
        return false;
    out->algorithm = len == SHA1 ? "sha1" : "sha256";
    memcpy(out->hex, text, len);
    out->hex[len] = '\0';
    return true;
}

static bool find_in_blob_name(hub_name *out, const char *real)
{
    static const char blobs[] = "/blobs";
    enum { LEN = sizeof blobs - 1 };
    const char *slash = strrchr(real, '/');
    return slash && slash - real >= LEN && !memcmp(slash - LEN, blobs, LEN) &&
           read_digest(out, slash + 1, strlen(slash + 1));
}

/* The second line of FILE.metadata is the entity tag; the first is the revision. */
static bool read_notes(hub_name *out, const char *path)
{
    char text[512];
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (fd >= 0)
        close(fd);
    text[n > 0 ? n : 0] = '\0';
    const char *line = strchr(text, '\n');
    return line && read_digest(out, line + 1, strcspn(line + 1, "\r\n"));
}

/* Look for the notes in each folder above the file, from the nearest on. */
static bool find_in_notes(hub_name *out, const char *real)
{
    char path[2 * PATH_MAX];
    for (size_t at = strlen(real); at--;) {
        for (size_t i = 0; real[at] == '/' && i < NOTES_FOLDERS; i++) {
            snprintf(path, sizeof path, "%.*s/%s/%s.metadata", (int)at, real, notes_folders[i],
                     real + at + 1);
            if (read_notes(out, path))
                return true;
        }
    }
    return false;
}

bool hub_name_find(hub_name *out, const char *path)
{
    char real[PATH_MAX];
    return realpath(path, real) && (find_in_blob_name(out, real) || find_in_notes(out, real));
}

bool hub_notes_find(char out[PATH_MAX], const char *folder)
{
    char real[PATH_MAX];
    char *slash = realpath(folder, real) ? real + strlen(real) : NULL;
    for (; slash; slash = strrchr(real, '/')) {
        *slash = '\0';
        for (size_t i = 0; i < NOTES_FOLDERS; i++) {
            int n = snprintf(out, PATH_MAX, "%s/%s", real, notes_folders[i]);
            if (n < PATH_MAX && path_is_folder(out))
                return true;
        }
    }
    return false;
}

bool hub_is_own_file(const char *path)
{
    static const char *const parts[] = { "/.cache/huggingface/", "/.huggingface/", "/.no_exist/",
                                         "/.locks/" };
    char blobs[PATH_MAX];
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (strstr(path, parts[i]))
            return true;
    const char *refs = strstr(path, "/refs/");
    if (!refs)
        return false;
    int n = snprintf(blobs, sizeof blobs, "%.*s/blobs", (int)(refs - path), path);
    return n < PATH_MAX && path_is_folder(blobs);
}
