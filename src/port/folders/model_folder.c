/* model_folder.c - open files of a model's folder without following links that leave the folder.
 *
 * Shards, indices and companions may be symbolic links.  The system never resolves a link; this
 * file does, one component at a time: each directory is opened relative to its parent without
 * following links, and ".." returns to the directory from which the walk came.  So a program that
 * changes the folder at the same time cannot redirect the walk.
 *
 * The walk may not climb above the root.  The root is the folder itself or, in a Hugging Face
 * cache, the folder of the repository, whose snapshots consist of links to the repository's blobs:
 *
 *     models--OWNER--NAME/blobs/HASH
 *     models--OWNER--NAME/snapshots/REVISION/model.safetensors -> ../../blobs/HASH */
#include "port/folders/model_folder.h"

#include "base/path_risk.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    MAX_LINKS = 40, /* the limit of Linux */
    DIRECTORY = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC,
};

heft_status heft_model_folder_open(heft_model_folder *f, const char *path, int flags,
                                   heft_error *err)
{
    int fd = heft_open_at(AT_FDCWD, path, O_PATH | O_DIRECTORY | O_CLOEXEC | flags);
    *f = (heft_model_folder){ .count = 0 };
    if (fd < 0)
        return heft_os_error(err, errno, "is in a folder that cannot be opened");
    f->levels[f->count++] = fd;
    return HEFT_OK;
}

void heft_model_folder_close(heft_model_folder *f)
{
    while (f->count)
        close(f->levels[--f->count]);
}

int heft_model_folder_descriptor(const heft_model_folder *f)
{
    return f->count ? f->levels[f->count - 1] : -1;
}

/* ---- the root ---- */

/* Return true if `dir` is a repository's folder and `below` is the snapshots folder in `dir`. */
static bool is_repository(int dir, const struct stat *below)
{
    struct stat snapshots, blobs;
    return !fstatat(dir, "snapshots", &snapshots, AT_SYMLINK_NOFOLLOW) &&
           S_ISDIR(snapshots.st_mode) && snapshots.st_dev == below->st_dev &&
           snapshots.st_ino == below->st_ino &&
           !fstatat(dir, "blobs", &blobs, AT_SYMLINK_NOFOLLOW) && S_ISDIR(blobs.st_mode);
}

/* Open the directories above the folder, up to the folder of its repository; return their number,
 * or 0 if the folder is not in a repository. */
static size_t open_parents(int parents[MAX_PARENTS], int folder)
{
    struct stat below;
    size_t n = 0;
    bool found = false;
    for (int dir = folder; n < MAX_PARENTS && !found && !fstat(dir, &below); dir = parents[n++]) {
        parents[n] = heft_open_at(dir, "..", DIRECTORY);
        if (parents[n] < 0)
            break;
        found = is_repository(parents[n], &below);
    }
    while (!found && n)
        close(parents[--n]);
    return n;
}

/* Insert the directories from the root to the folder before the folder. */
static void find_root(heft_model_folder *f)
{
    if (f->is_rooted)
        return;
    int parents[MAX_PARENTS], folder = f->levels[0];
    size_t parent_count = open_parents(parents, folder);
    f->is_rooted = true;
    for (f->count = 0; f->count < parent_count; f->count++)
        f->levels[f->count] = parents[parent_count - 1 - f->count];
    f->levels[f->count++] = folder;
}

/* ---- the walk ---- */

typedef struct link_walk {
    heft_model_folder *folder;
    int dirs[MAX_DEPTH];    /* from the root to the current directory */
    size_t depth, borrowed; /* number of dirs, and of the first dirs that belong to `folder` */
    unsigned links;         /* links followed so far */
    char path[PATH_MAX];    /* rest of the path, to be resolved */
} link_walk;

static void begin_walk(link_walk *w)
{
    const heft_model_folder *f = w->folder;
    memcpy(w->dirs, f->levels, f->count * sizeof *f->levels);
    w->depth = w->borrowed = f->count;
}

static void leave_directory(link_walk *w)
{
    w->depth--;
    if (w->depth >= w->borrowed)
        close(w->dirs[w->depth]);
    else
        w->borrowed = w->depth;
}

static heft_status leaves_folder(const link_walk *w, heft_error *err)
{
    return heft_error_plain(err, HEFT_E_IO, "is a symbolic link that leaves the model's folder%s",
                            w->folder->may_follow ? "; --follow-links allows it" : "");
}

static heft_status cannot_resolve(heft_error *err, int os)
{
    return heft_os_error(err, os, "is a symbolic link that cannot be resolved");
}

static heft_status cannot_open(const link_walk *w, heft_error *err, int os)
{
    return w->links ? cannot_resolve(err, os) : heft_os_error(err, os, "cannot be opened");
}

/* Replace the link `name` in the current directory by the link's target, followed by the rest of
 * the path. */
static heft_status follow_link(link_walk *w, const char *name, const char *rest, heft_error *err)
{
    char path[PATH_MAX];
    ssize_t n = readlinkat(w->dirs[w->depth - 1], name, path, sizeof path);
    size_t tail = strlen(rest) + 1;
    if (n < 0)
        return cannot_open(w, err, errno == EINVAL ? ENOTDIR : errno);
    if (!w->links++) { /* before the first link the walk has not left the folder itself */
        find_root(w->folder);
        begin_walk(w);
    }
    if (w->links > MAX_LINKS)
        return cannot_resolve(err, ELOOP);
    if (!n || path[0] == '/')
        return leaves_folder(w, err);
    if ((size_t)n + tail > sizeof path)
        return cannot_resolve(err, ENAMETOOLONG);
    memcpy(path + n, rest, tail);
    strcpy(w->path, path);
    return HEFT_OK;
}

static heft_status enter_directory(link_walk *w, const char *name, const char *rest,
                                   heft_error *err)
{
    if (w->depth == MAX_DEPTH)
        return cannot_resolve(err, ELOOP);
    int dir = heft_open_at(w->dirs[w->depth - 1], name, DIRECTORY);
    if (dir < 0)
        return errno == ENOTDIR ? follow_link(w, name, rest, err) : cannot_open(w, err, errno);
    w->dirs[w->depth++] = dir;
    memmove(w->path, rest, strlen(rest) + 1);
    return HEFT_OK;
}

static heft_status open_last(heft_source **out, link_walk *w, const char *name, heft_access access,
                             heft_error *err)
{
    heft_status st = heft_source_at(out, w->dirs[w->depth - 1], name, O_NOFOLLOW, access, err);
    if (st != HEFT_E_IO)
        return st;
    if (err->os == ELOOP)
        return follow_link(w, name, "", err);
    return w->links && err->os == ENOENT ? cannot_resolve(err, ENOENT) : st;
}

/* Resolve one component of the path; set *out after the last component. */
static heft_status resolve_component(heft_source **out, link_walk *w, heft_access access,
                                     heft_error *err)
{
    char name[NAME_MAX + 1];
    const char *from = w->path + strspn(w->path, "/");
    size_t len = strcspn(from, "/");
    const char *rest = from + len;
    if (len > NAME_MAX)
        return cannot_open(w, err, ENAMETOOLONG);
    memcpy(name, from, len);
    name[len] = '\0';
    bool is_parent = !strcmp(name, ".."), is_current = !len || !strcmp(name, ".");
    if (!is_parent && !is_current)
        return *rest ? enter_directory(w, name, rest, err) : open_last(out, w, name, access, err);
    if (is_parent)
        leave_directory(w);
    if (!w->depth)
        return leaves_folder(w, err);
    if (!*rest)
        return cannot_open(w, err, EISDIR);
    memmove(w->path, rest, strlen(rest) + 1);
    return HEFT_OK;
}

bool heft_is_file_name(const char *name)
{
    return *name && !strchr(name, '/') && strcmp(name, ".") != 0 && strcmp(name, "..") != 0 &&
           strlen(name) <= NAME_MAX;
}

heft_status heft_model_folder_source(heft_source **out, heft_model_folder *f, const char *name,
                                     heft_access access, heft_error *err)
{
    *out = NULL;
    return heft_is_file_name(name) ? heft_model_folder_inner_source(out, f, name, access, err)
                                   : heft_error_plain(err, HEFT_E_ARGUMENT, "is not a file name");
}

heft_status heft_model_folder_inner_source(heft_source **out, heft_model_folder *f,
                                           const char *name, heft_access access, heft_error *err)
{
    heft_error own;
    link_walk w = { .folder = f };
    heft_status st = HEFT_OK;
    *out = NULL;
    err = err ? err : &own;
    if (!heft_str_is_inner_path(heft_str_from(name)) || strlen(name) >= sizeof w.path)
        return heft_error_plain(err, HEFT_E_ARGUMENT, "is not a file name");
    begin_walk(&w);
    strcpy(w.path, name);
    while (!st && !*out)
        st = resolve_component(out, &w, access, err);
    while (w.depth > w.borrowed)
        leave_directory(&w);
    return st;
}

heft_status heft_source_open_in_folder(heft_source **out, const char *folder, const char *name,
                                       heft_access access, heft_error *err)
{
    heft_model_folder f;
    heft_status st = heft_model_folder_open(&f, folder, 0, err);
    *out = NULL;
    if (!st)
        st = heft_model_folder_source(out, &f, name, access, err);
    heft_model_folder_close(&f);
    return st;
}
