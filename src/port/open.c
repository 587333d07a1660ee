/* open.c - opening by path, and the files beside that path.
 *
 * A sibling is one name in the directory of the path.  Links are not followed by the system: one that
 * names another file of the same directory is followed here, every other leads out and is refused. */
#include "port/disk.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST_LINKS = 8 };

typedef struct place { /* the directory of a path */
    const char *path;
    size_t dir_len; /* of path, up to and with the last slash */
    int dir;        /* -1 until it is needed */
} place;

static heft_status open_dir(place *p, heft_error *err)
{
    char *name = p->dir_len ? strndup(p->path, p->dir_len) : strdup(".");
    if (!name)
        return heft_error_plain(err, HEFT_E_NOMEM, "no memory for the name of a directory");
    p->dir = open(name, O_PATH | O_DIRECTORY | O_CLOEXEC);
    int os = errno;
    free(name);
    return p->dir < 0 ? heft_os_error(err, os, "its directory cannot be opened") : HEFT_OK;
}

static bool is_component(const char *name)
{
    return *name && !strchr(name, '/') && strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
}

/* What the link stands for, when that is in the same directory. */
static bool follow(const place *p, char name[NAME_MAX + 1])
{
    char target[NAME_MAX + 1];
    ssize_t n = readlinkat(p->dir, name, target, sizeof target);
    if (n <= 0 || (size_t)n == sizeof target)
        return false;
    memcpy(name, target, (size_t)n);
    name[n] = '\0';
    return is_component(name);
}

static heft_status open_named(heft_source **out, place *p, const char *wanted, bool links,
                              heft_error *err)
{
    char name[NAME_MAX + 1];
    heft_error own;
    *out = NULL;
    err = err ? err : &own;
    if (!is_component(wanted) || strlen(wanted) > NAME_MAX)
        return heft_error_plain(err, HEFT_E_ARGUMENT, "is no name of a file");
    strcpy(name, wanted);
    heft_status st = p->dir < 0 ? open_dir(p, err) : HEFT_OK;
    if (st)
        return st;
    for (int followed = 0;; followed++) {
        st = heft_source_at(out, p->dir, name, O_NOFOLLOW, HEFT_ACCESS_AUTO, err);
        if (st != HEFT_E_IO || err->os != ELOOP)
            return st;
        if (!links)
            return heft_error_plain(err, HEFT_E_IO, "is a symbolic link, and none is followed");
        if (followed == MOST_LINKS || !follow(p, name))
            return heft_error_plain(err, HEFT_E_IO, "is a link that leads out of its directory");
    }
}

static heft_status open_sibling(heft_source **out, void *ctx, const char *name, heft_error *err)
{
    return open_named(out, ctx, name, true, err);
}

static heft_status open_plain(heft_source **out, void *ctx, const char *name, heft_error *err)
{
    return open_named(out, ctx, name, false, err);
}

static heft_status list(void *ctx, void (*fn)(void *arg, const char *name), void *arg,
                        heft_error *err)
{
    place *p = ctx;
    heft_status st = p->dir < 0 ? open_dir(p, err) : HEFT_OK;
    return st ? st : heft_folder_list(p->dir, fn, arg, err);
}

static heft_status open_file(heft_file **out, const char *path, const heft_open_options *opt,
                             heft_error *err)
{
    heft_source *s;
    heft_open_options o = HEFT_OPEN_OPTIONS_INIT;
    const char *slash = strrchr(path, '/');
    place p = { path, slash ? (size_t)(slash - path) + 1 : 0, -1 };
    heft_siblings siblings = { slash ? slash + 1 : path, open_sibling, &p, open_plain, list };
    if (opt)
        memcpy(&o, opt, opt->size < sizeof o ? opt->size : sizeof o);
    o.size = sizeof o;
    o.siblings = o.siblings ? o.siblings : &siblings;
    heft_status st = heft_source_file(&s, path, HEFT_ACCESS_AUTO, err);
    if (!st && heft_journal_is_there(path)) {
        heft_source_close(s);
        return heft_error_plain(err, HEFT_E_IO,
                                "an edit of it was interrupted, or is going on: there is a journal "
                                "beside it ('heft edit' with no options undoes the edit)");
    }
    if (!st)
        st = heft_open_source(out, s, &o, err);
    if (p.dir >= 0)
        close(p.dir);
    return st;
}

heft_status heft_open(heft_file **out, const char *path, const heft_open_options *opt,
                      heft_error *err)
{
    struct stat about;
    char *entry;
    *out = NULL;
    if (stat(path, &about) || !S_ISDIR(about.st_mode))
        return open_file(out, path, opt, err);
    heft_status st = heft_folder_entry(&entry, path, err);
    if (!st)
        st = open_file(out, entry, opt, err);
    free(entry);
    return st;
}
