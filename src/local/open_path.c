/* open_path.c - open a model by the path of a file or folder, and the shards in the same
 * directory. */
#include "port/save/set_journal.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "folder/folder_choice.h"
#include "local/hub_cache.h"
#include "local/pipeline_folder.h"
#include "port/folders/model_folder.h"
#include "port/port.h"

enum { MAX_TRIES = 8 };

typedef struct location {
    const char *path, *name;  /* the path, and its last component */
    char *dir;                /* path of the folder */
    heft_model_folder folder; /* opened at first use */
    heft_access access;
    int folder_flags; /* O_NOFOLLOW: the folder must not be a symbolic link */
    bool follows_links;
} location;

static const char purpose[] = "for the name of a folder";

static heft_status open_dir(location *p, heft_error *err)
{
    if (p->folder.count)
        return HEFT_OK;
    heft_status st = heft_model_folder_open(&p->folder, p->dir, p->folder_flags, err);
    p->folder.may_follow = true;
    return st;
}

static heft_status open_named(heft_source **out, location *p, const char *name, heft_error *err)
{
    *out = NULL;
    heft_status st = open_dir(p, err);
    if (st || !p->follows_links)
        return st ? st : heft_model_folder_inner_source(out, &p->folder, name, p->access, err);
    return heft_source_at(out, heft_model_folder_descriptor(&p->folder), name, 0, p->access, err);
}

/* Open a shard, and check its journal: the shard may have been edited halfway even if the index is
 * intact. */
static heft_status open_shard(heft_source **out, location *p, const char *name, heft_error *err)
{
    heft_error cause;
    bool is_same;
    HEFT_TRY(open_named(out, p, name, err));
    char *path = malloc(strlen(p->dir) + strlen(name) + 2);
    heft_status st = HEFT_OK;
    if (path) {
        sprintf(path, "%s/%s", p->dir, name);
        st = heft_journal_check(&is_same, path, heft_source_descriptor(*out), &cause);
    } else
        st = heft_error_no_memory(&cause, purpose);
    free(path);
    if (!st)
        return HEFT_OK;
    heft_source_close(*out);
    *out = NULL;
    heft_error_plain(err, st, "cannot be read: %s", cause.message);
    err->os = cause.os ? cause.os : EBUSY; /* the shard is unreadable for now, not defective */
    return st;
}

/* Return true if errno says that there is no regular file of that name: a fault of the model. */
static bool is_absent(int os)
{
    static const int codes[] = { ENOENT, ENOTDIR, EISDIR, ESPIPE, ENXIO, ENAMETOOLONG, ELOOP };
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        if (codes[i] == os)
            return true;
    return false;
}

static heft_status open_listed_shard(heft_source **out, void *ctx, const char *name,
                                     heft_error *err)
{
    heft_error own;
    err = err ? err : &own;
    heft_status st = open_shard(out, ctx, name, err);
    if (st == HEFT_E_IO && is_absent(err->os))
        err->status = st = HEFT_E_NOTFOUND;
    return st;
}

static heft_status list_folder(void *ctx, void (*fn)(void *arg, const char *name), void *arg,
                               heft_error *err)
{
    location *p = ctx;
    HEFT_TRY(open_dir(p, err));
    return heft_folder_list(heft_model_folder_descriptor(&p->folder), fn, arg, err);
}

/* Fail if the folder has the journal of a shard set.  If the path is a link, this is the link's
 * folder. */
static heft_status check_folder(const char *name, heft_error *err)
{
    int dir = heft_open_at(AT_FDCWD, name, O_PATH | O_DIRECTORY | O_CLOEXEC);
    heft_status st = dir < 0 ? heft_os_error(err, errno, "its folder cannot be opened")
                             : heft_shard_set_check(dir, err);
    if (dir >= 0)
        close(dir);
    return st;
}

/* Open the file.  If the folder has the journal of a shard set, return that error instead: a
 * missing file may have been moved by the set that replaces it.  is_entry: the path was found in a
 * folder rather than named by the caller. */
static heft_status open_source(heft_source **out, location *p, bool is_entry, heft_error *err)
{
    heft_error folder_error, cause;
    heft_str name = { p->name, strlen(p->name) };
    heft_status st;
    if (!is_entry) {
        st = heft_source_open_file(out, p->path, p->access, err);
    } else if ((st = open_named(out, p, p->name, &cause))) { /* no more trusted than other files */
        if (st == HEFT_E_NOMEM)
            heft_error_plain(err, st, "%s", cause.message);
        else
            heft_error_plain(err, st, "shard %q %s", name, cause.message);
        heft_error_os(err, st, cause.os);
    }
    heft_status folder_status = check_folder(p->dir, &folder_error);
    if (!folder_status || (st && folder_error.os != EBUSY))
        return st;
    heft_source_close(*out);
    *out = NULL;
    *err = folder_error;
    return folder_status;
}

static heft_status replaced_repeatedly(heft_error *err)
{
    return heft_error_plain(err, HEFT_E_IO, "was replaced repeatedly while it was being opened");
}

/* Ways to find the path of a file. */
typedef enum origin {
    NAMED,             /* by the caller */
    FOUND,             /* in a folder that the caller named */
    FOUND_IN_COMPONENT /* in a folder that model_index.json named */
} origin;

/* Open the file once; *is_same false: files were replaced at the same time, and the caller should
 * retry. */
static heft_status try_open(heft_file **out, bool *is_same, location *p, bool is_entry,
                            const heft_open_options *opt, heft_error *err)
{
    heft_source *s;
    *out = NULL;
    *is_same = true;
    HEFT_TRY(open_source(&s, p, is_entry, err));
    int fd = heft_source_descriptor(s);
    heft_status st = heft_journal_check(is_same, p->path, fd, err);
    if (st || !*is_same) {
        heft_source_close(s);
        return st ? st : replaced_repeatedly(err);
    }
    st = heft_file_open_source(out, s, opt, err);
    if (st == HEFT_E_FORMAT && is_entry) /* the caller has named the folder */
        heft_error_in(err, st, heft_str_from(p->name));
    if (!st && heft_shard_file_count(*out)) /* all shards must be from the same set, old or new */
        st = heft_journal_check(is_same, p->path, fd, err);
    if (!st && *is_same)
        return HEFT_OK;
    heft_file_close(*out);
    *out = NULL;
    return st ? st : replaced_repeatedly(err);
}

/* Return the path of the folder of a file, malloc'ed. */
static char *folder_of(const char *path, const char *slash)
{
    size_t len = slash ? (size_t)(slash - path) : 0;
    if (!slash)
        return strdup(".");
    return strndup(path, len ? len : 1); /* without a slash at the end, except the root */
}

static heft_status open_file(heft_file **out, const char *path, origin from,
                             const heft_open_options *opt, heft_error *err)
{
    heft_error own;
    heft_open_options o = HEFT_OPEN_OPTIONS_INIT;
    const char *slash = strrchr(path, '/');
    /* The number of a descriptor is no name. */
    bool is_descriptor = !strncmp(path, "/dev/fd/", sizeof "/dev/fd/" - 1);
    location p = { .path = path,
                   .name = is_descriptor ? ""
                           : slash       ? slash + 1
                                         : path,
                   .folder_flags = from == FOUND_IN_COMPONENT ? O_NOFOLLOW : 0 };
    heft_shard_folder shards = { sizeof shards, p.name, open_listed_shard, &p, list_folder, NULL };
    bool is_same = false;
    err = err ? err : &own;
    *out = NULL;
    heft_status st = heft_sized_copy(&o, offsetof(heft_open_options, reserved), opt, err);
    if (o.access > HEFT_ACCESS_DIRECT)
        st = heft_error_plain(err, HEFT_E_ARGUMENT, "access %U is not a heft_access",
                              (uint64_t)o.access);
    if (st)
        return st;
    p.access = (heft_access)o.access;
    p.follows_links = o.follow_links;
    p.folder_flags = o.follow_links ? 0 : p.folder_flags;
    o.shards = o.shards ? o.shards : &shards;
    p.dir = folder_of(path, slash);
    if (!p.dir)
        return heft_error_no_memory(err, purpose);
    for (int attempt = 0; attempt < MAX_TRIES && !is_same; attempt++)
        st = try_open(out, &is_same, &p, from != NAMED, &o, err);
    heft_model_folder_close(&p.folder);
    free(p.dir);
    return st;
}

/* Return the path of a file in a folder, malloc'ed. */
static char *path_in(const char *folder, const char *name)
{
    size_t len = strlen(folder);
    char *path = malloc(len + strlen(name) + 2);
    if (path)
        sprintf(path, "%s%s%s", folder, len && folder[len - 1] == '/' ? "" : "/", name);
    return path;
}

/* Open the chosen file of a folder, and the shards that belong to the file. */
static heft_status open_chosen(heft_file **out, const char *path, const heft_folder_choice *c,
                               origin from, heft_open_options *o, heft_error *err)
{
    char *entry = path_in(path, c->main);
    if (!entry)
        return heft_error_no_memory(err, purpose);
    o->folder = &c->folder;
    heft_status st = open_file(out, entry, from, o, err);
    free(entry);
    return st;
}

/* Open the model of a folder.  component: the name of the component of a pipeline, or NULL. */
static heft_status open_main_file(heft_file **out, const char *path, const char *component,
                                  heft_open_options *o, heft_error *err)
{
    char prefix[NAME_MAX + 2];
    heft_folder_choice c;
    heft_folder_listing l;
    heft_status st = heft_folder_listing_read(&l, path, err);
    if (!st)
        st = heft_folder_choose(&c, &l, NULL, err);
    if (!st && component) { /* findings name the folder, too */
        snprintf(prefix, sizeof prefix, "%s/", component);
        c.folder.prefix = prefix;
    }
    if (!st)
        st = open_chosen(out, path, &c, component ? FOUND_IN_COMPONENT : FOUND, o, err);
    heft_folder_listing_free(&l);
    return st;
}

/* Open an index that the caller has named, and report the files that the index does not list.  A
 * folder that cannot be listed is no error here: the index may still be read. */
static heft_status open_named_model(heft_file **out, const char *path, const heft_open_options *opt,
                                    heft_error *err)
{
    heft_error own, unused;
    heft_folder_choice c;
    heft_folder_listing l;
    heft_open_options o = HEFT_OPEN_OPTIONS_INIT;
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    if (!heft_weight_name_of(name).is_index || (opt && opt->shards))
        return open_file(out, path, NAMED, opt, err);
    err = err ? err : &own;
    char *folder = folder_of(path, slash);
    heft_status st = folder ? heft_sized_copy(&o, offsetof(heft_open_options, reserved), opt, err)
                            : heft_error_no_memory(err, purpose);
    if (st) {
        free(folder);
        return st;
    }
    bool is_listed = !heft_folder_listing_read(&l, folder, &unused) &&
                     !heft_folder_choose(&c, &l, name, &unused);
    if (is_listed)
        o.folder = &c.folder;
    st = open_file(out, path, NAMED, &o, err);
    heft_folder_listing_free(&l);
    free(folder);
    return st;
}

/* ---- pipelines ---- */

/* Open the folder of a component, by default without following a link. */
static heft_status check_component(const char *path, bool follows, heft_error *err)
{
    struct stat info;
    bool is_link = !fstatat(AT_FDCWD, path, &info, AT_SYMLINK_NOFOLLOW) && S_ISLNK(info.st_mode);
    if (is_link && !follows)
        return heft_error_plain(err, HEFT_E_IO,
                                "the folder is a symbolic link, which is not followed; "
                                "--follow-links allows it");
    int dir = heft_open_at(AT_FDCWD, path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    int os = errno;
    if (dir >= 0)
        close(dir);
    if (dir >= 0)
        return HEFT_OK;
    heft_status st = heft_os_error(err, os, "the folder cannot be opened");
    if (is_absent(os))
        err->status = st = HEFT_E_NOTFOUND;
    return st;
}

static heft_status open_component(heft_file **out, void *ctx, const char *name,
                                  const heft_open_options *opt, heft_error *err)
{
    heft_open_options o = *opt;
    char *folder = path_in(ctx, name);
    *out = NULL;
    heft_status st = folder ? check_component(folder, o.follow_links, err)
                            : heft_error_no_memory(err, purpose);
    if (!st)
        st = check_folder(folder, err);
    if (!st)
        st = open_main_file(out, folder, name, &o, err);
    free(folder);
    return st;
}

/* Tell a missing index (no error) from a broken link. */
static heft_status check_absence(const char *path, heft_error *err)
{
    struct stat info;
    int dir = heft_open_at(AT_FDCWD, path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    int failed = dir < 0 ? -1 : fstatat(dir, HEFT_PIPELINE_INDEX, &info, AT_SYMLINK_NOFOLLOW);
    int os = errno;
    if (dir >= 0)
        close(dir);
    if (failed && dir >= 0 && os == ENOENT)
        return HEFT_OK;
    return failed ? heft_os_error(err, os, "model_index.json cannot be looked for")
                  : heft_os_error(err, ENOENT,
                                  "model_index.json is a symbolic link that cannot be resolved");
}

static heft_status open_pipeline_index(heft_source **out, void *ctx, heft_error *err)
{
    heft_error why;
    heft_status st = heft_source_open_in_folder(out, ctx, HEFT_PIPELINE_INDEX, HEFT_ACCESS_READ,
                                                &why);
    if (!st)
        return HEFT_OK;
    *out = NULL;
    if (why.os == ENOENT)
        return check_absence(ctx, err);
    if (st == HEFT_E_NOMEM)
        heft_error_plain(err, st, "%s", why.message);
    else
        heft_error_plain(err, st, "model_index.json %s", why.message);
    return heft_error_os(err, st, why.os);
}

static heft_status list_pipeline(heft_folder_listing *l, void *ctx, heft_error *err)
{
    return heft_folder_listing_read(l, ctx, err);
}

/* Open the pipeline in a folder; *out stays NULL after HEFT_OK if the folder has none. */
static heft_status open_pipeline(heft_file **out, const char *folder, const heft_open_options *o,
                                 heft_error *err)
{
    heft_pipeline_store store = { open_pipeline_index, open_component, list_pipeline,
                                  (void *)(uintptr_t)folder };
    return heft_pipeline_open(out, &store, o, err);
}

/* Open the pipeline in the folder of an index; *out stays NULL after HEFT_OK if the index does not
 * describe a pipeline. */
static heft_status open_index(heft_file **out, const char *path, const heft_open_options *opt,
                              heft_error *err)
{
    heft_error own;
    heft_open_options o = HEFT_OPEN_OPTIONS_INIT;
    char *folder = folder_of(path, strrchr(path, '/'));
    err = err ? err : &own;
    heft_status st = folder ? heft_sized_copy(&o, offsetof(heft_open_options, reserved), opt, err)
                            : heft_error_no_memory(err, purpose);
    if (!st)
        st = open_pipeline(out, folder, &o, err);
    free(folder);
    return st;
}

static heft_status open_folder(heft_file **out, const char *path, const heft_open_options *opt,
                               heft_error *err)
{
    heft_error own;
    heft_open_options o = HEFT_OPEN_OPTIONS_INIT;
    err = err ? err : &own;
    HEFT_TRY(heft_sized_copy(&o, offsetof(heft_open_options, reserved), opt, err));
    HEFT_TRY(check_folder(path, err));
    HEFT_TRY(open_pipeline(out, path, &o, err));
    return *out ? HEFT_OK : open_main_file(out, path, NULL, &o, err);
}

heft_status heft_file_open(heft_file **out, const char *path, const heft_open_options *opt,
                           heft_error *err)
{
    struct stat info;
    char cached[PATH_MAX];
    *out = NULL;
    if (!path)
        return heft_error_plain(err, HEFT_E_ARGUMENT, "the path to open is missing");
    if (heft_is_url(path))
        return heft_file_open_url(out, path, opt, NULL, err);
    if (heft_is_hub_name(path)) {
        heft_status found = heft_hub_path(cached, sizeof cached, path, err);
        if (found)
            return found;
        path = cached;
    }
    bool exists = !stat(path, &info);
    if (!exists && errno != ENOENT)
        return heft_os_error(err, errno, "cannot be opened");
    if (exists && S_ISDIR(info.st_mode))
        return open_folder(out, path, opt, err);
    if (exists && heft_is_pipeline_index(path))
        HEFT_TRY(open_index(out, path, opt, err));
    return *out ? HEFT_OK : open_named_model(out, path, opt, err);
}
