/* hub_names.c - names and metadata files that the Python package huggingface_hub writes.
 *
 *     models--OWNER--NAME/snapshots/REVISION/FILE -> ../../blobs/DIGEST
 *     DIR/FILE, with DIR/.cache/huggingface/download/FILE.metadata: lines with the revision, the
 *         digest, and the time of the download
 *
 * The digest is the SHA-256 of a large file (64 digits), or git's SHA-1 of a small file (40
 * digits). */
#include "models/profile.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "process/textfile.h"

enum { SHA1_DIGITS = 40, LINE = 256 };

static bool set_name(hub_name *out, const char *text, size_t len)
{
    if ((len != SHA1_DIGITS && len != HUB_DIGITS) || strspn(text, "0123456789abcdef") < len)
        return false;
    memcpy(out->hex, text, len);
    out->hex[len] = '\0';
    out->algorithm = len == HUB_DIGITS ? "sha256" : "git-sha1";
    return true;
}

/* Return true if the last folder of the path is called "blobs". */
static bool is_in_blobs(const char *path, const char *last_slash)
{
    static const char blobs[] = "/blobs";
    size_t len = sizeof blobs - 1;
    return (size_t)(last_slash - path) >= len && !memcmp(last_slash - len, blobs, len);
}

bool hub_metadata_folder(char *out, unsigned long capacity, const char *dir)
{
    int n = snprintf(out, capacity, "%s/.cache/huggingface/download", dir);
    return n > 0 && (unsigned long)n < capacity;
}

static bool read_metadata(hub_name *out, const char *path)
{
    char line[LINE] = "";
    FILE *f = fopen(path, "re");
    if (!f) { /* a folder above may belong to someone else */
        out->os = path_is_absent(errno) || errno == EACCES ? out->os : errno;
        return false;
    }
    bool ok = fgets(line, sizeof line, f) && fgets(line, sizeof line, f);
    out->os = ferror(f) ? errno : out->os;
    fclose(f);
    return ok && set_name(out, line, strcspn(line, "\r\n"));
}

/* Look for the metadata file in the folder of the file and in all folders above. */
static bool find_metadata(hub_name *out, const char *real)
{
    char dir[PATH_MAX], folder[PATH_MAX], path[2 * PATH_MAX];
    size_t len = strlen(real);
    while (len) {
        while (real[len - 1] != '/') /* realpath() begins with a slash */
            len--;
        memcpy(dir, real, len - 1);
        dir[len - 1] = '\0';
        if (hub_metadata_folder(folder, sizeof folder, dir)) {
            snprintf(path, sizeof path, "%s/%s.metadata", folder, real + len);
            if (read_metadata(out, path))
                return true;
        }
        len--;
    }
    return false;
}

bool hub_name_of(hub_name *out, const char *path)
{
    char real[PATH_MAX];
    out->os = realpath(path, real) ? 0 : errno;
    if (out->os)
        return false;
    const char *slash = strrchr(real, '/');
    if (slash && is_in_blobs(real, slash) && set_name(out, slash + 1, strlen(slash + 1)))
        return true;
    return find_metadata(out, real);
}
