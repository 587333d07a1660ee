/* sink_set.c - sinks for the shards of a model; all files appear together.
 *
 * Each shard is written to an unnamed file, as in sink_file.c.  Once all shards are complete and on
 * disk, they get temporary names in the folder, and set_commit.c renames all of them to their final
 * names. */
#include "port/save/sink_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "port/save/set_journal.h"

typedef struct shard_sink {
    heft_sink *sink; /* a heft_staged_sink, borrowed by the caller */
    struct shard_sink *next;
    char *name;
} shard_sink;

struct heft_sink_dir {
    heft_disk disk; /* `sync` does nothing if HEFT_SINK_NO_SYNC is set */
    char *path;
    int dir, lock;
    uint32_t flags, count;
    bool created_dir;
    shard_sink *first, **last;
};

/* ---- one shard: a sink of sink_file.c that only the set commits or frees ---- */

static heft_status finish(heft_sink *s, heft_error *err)
{
    (void)err;
    ((heft_staged_sink *)s)->is_complete = true;
    return HEFT_OK;
}

static void discard(heft_sink *s)
{
    (void)s; /* is_complete stays false, so the set cannot be finished */
}

static const heft_sink_ops shard_ops = {
    .size = sizeof(heft_sink_ops),
    .write_at = heft_staged_write_at,
    .reserve = heft_staged_reserve,
    .finish = finish,
    .discard = discard,
    .read_at = heft_staged_read_at,
    .scratch = heft_staged_scratch,
};

/* ---- opening ---- */

static const char purpose[] = "for a set of files";

static heft_target target_of(const heft_sink_dir *s)
{
    return (heft_target){ .disk = &s->disk, .fd = -1, .dir = s->dir };
}

static heft_status open_set(heft_sink_dir *s, const char *dir, heft_error *err)
{
    heft_recovery earlier;
    s->path = strdup(*dir ? dir : ".");
    if (!s->path)
        return heft_error_no_memory(err, purpose);
    if (!mkdir(s->path, 0777))
        s->created_dir = true;
    else if (errno != EEXIST)
        return heft_os_error(err, errno, "cannot be created");
    s->dir = heft_open_at(AT_FDCWD, s->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (s->dir < 0 && errno == EACCES)
        s->dir = heft_open_at(AT_FDCWD, s->path,
                              O_PATH | O_DIRECTORY |
                                  O_CLOEXEC); /* enough for everything but syncing */
    if (s->dir < 0)
        return heft_os_error(err, errno, "cannot be written into");
    heft_target t = target_of(s);
    HEFT_TRY(heft_shard_set_lock(&s->lock, &s->disk, s->dir, err));
    return heft_shard_set_recover_locked(&earlier, &t, err);
}

heft_status heft_sink_dir_open_on(const heft_disk *disk, heft_sink_dir **out, const char *dir,
                                  uint32_t flags, heft_error *err)
{
    heft_sink_dir *s = malloc(sizeof *s);
    *out = NULL;
    if (!s)
        return heft_error_no_memory(err, purpose);
    *s = (heft_sink_dir){ .disk = *disk, .dir = -1, .lock = -1, .flags = flags, .last = &s->first };
    if (flags & HEFT_SINK_NO_SYNC)
        s->disk.sync = heft_disk_no_sync;
    heft_status st = open_set(s, dir, err);
    if (st)
        heft_sink_dir_discard(s);
    else
        *out = s;
    return heft_error_about(err, st, HEFT_ABOUT_TARGET);
}

heft_status heft_sink_dir_open(heft_sink_dir **out, const char *dir, uint32_t flags,
                               heft_error *err)
{
    return heft_sink_dir_open_on(&heft_system_disk, out, dir, flags, err);
}

/* ---- adding ---- */

static heft_status prefix_name(heft_error *err, heft_status st, const char *name,
                               const heft_error *cause)
{
    heft_error_plain(err, st, "%s: %s", name, cause->message);
    return heft_error_os(err, st, cause->os);
}

/* Refuse a symbolic link: the file behind the link may be in another folder, outside of the atomic
 * rename. */
static heft_status check_name(const heft_sink_dir *s, const char *name, heft_error *err)
{
    struct stat info;
    heft_str text = { name, strlen(name) };
    if (!*name || strchr(name, '/') || !strcmp(name, ".") || !strcmp(name, ".."))
        return heft_error_plain(err, HEFT_E_ARGUMENT, "%q is not a file name", text);
    if (heft_shard_set_is_reserved_name(name))
        return heft_error_plain(err, HEFT_E_ARGUMENT, "%q is a name reserved for journals", text);
    if (s->count == HEFT_SHARD_SET_MAX_FILES)
        return heft_error_plain(err, HEFT_E_LIMIT, "a model has at most %U shards",
                                (uint64_t)HEFT_SHARD_SET_MAX_FILES);
    if (!fstatat(s->dir, name, &info, AT_SYMLINK_NOFOLLOW) && S_ISLNK(info.st_mode))
        return heft_error_plain(err, HEFT_E_ARGUMENT,
                                "%q is a symbolic link: shards are not written through links, "
                                "remove the link first",
                                text);
    return HEFT_OK;
}

static heft_status open_shard(heft_sink **out, const heft_sink_dir *s, const char *name,
                              heft_error *err)
{
    size_t len = strlen(s->path);
    char *path = malloc(len + strlen(name) + 2);
    if (!path)
        return heft_error_no_memory(err, purpose);
    sprintf(path, "%s/%s", s->path, name);
    uint32_t keep_stale = s->first ? HEFT_FILE_SINK_KEEP_STALE
                                   : 0; /* the first shard removed stale files */
    heft_status st = heft_file_sink_open(out, &s->disk, path, s->flags | keep_stale, err);
    free(path);
    if (st)
        return st;
    if (heft_sink_is_file(*out)) {
        (*out)->ops = &shard_ops;
        return HEFT_OK;
    }
    heft_sink_discard(*out);
    *out = NULL;
    return heft_error_plain(err, HEFT_E_ARGUMENT, "is not a regular file");
}

static void free_shard(shard_sink *shard)
{
    if (shard->sink)
        heft_file_sink_discard(shard->sink);
    free(shard->name);
    free(shard);
}

heft_status heft_sink_dir_add(heft_sink **out, heft_sink_dir *s, const char *name, heft_error *err)
{
    heft_error cause;
    *out = NULL;
    HEFT_TRY(check_name(s, name, err));
    shard_sink *shard = calloc(1, sizeof *shard);
    if (!shard)
        return heft_error_no_memory(err, purpose);
    shard->name = strdup(name);
    heft_status st = shard->name ? open_shard(&shard->sink, s, name, &cause)
                                 : heft_error_no_memory(&cause, purpose);
    if (st) {
        free_shard(shard);
        return prefix_name(err, st, name, &cause);
    }
    *s->last = shard;
    s->last = &shard->next;
    s->count++;
    *out = shard->sink;
    return HEFT_OK;
}

/* ---- finishing ---- */

/* Sync the parent of a new folder, since the parent holds the folder's name. */
static heft_status sync_parent(const heft_sink_dir *s, heft_error *err)
{
    heft_target parent = target_of(s);
    if (!s->created_dir)
        return HEFT_OK;
    parent.dir = heft_open_at(s->dir, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    heft_status st = parent.dir < 0 ? HEFT_OK : heft_target_sync_dir(&parent, err);
    if (parent.dir >= 0)
        close(parent.dir);
    return st;
}

/* Give all files temporary names.  *at: the number of files named so far. */
static heft_status stage_shards(const heft_sink_dir *s, heft_shard_set_file *files, uint32_t *at,
                                heft_error *err)
{
    heft_status st = HEFT_OK;
    *at = 0;
    for (shard_sink *shard = s->first; shard && !st; shard = shard->next) {
        char name[HEFT_SHARD_SET_NAME];
        strcpy(files[*at].name, shard->name);
        heft_shard_set_staged_name(name, *at);
        st = heft_file_sink_stage(shard->sink, name, err);
        *at += !st;
    }
    return st;
}

static heft_status commit_set(const heft_sink_dir *s, heft_error *err)
{
    heft_error cause;
    heft_target t = target_of(s);
    uint32_t at = s->count;
    for (const shard_sink *shard = s->first; shard; shard = shard->next)
        if (!((const heft_staged_sink *)shard->sink)->is_complete)
            return heft_error_plain(err, HEFT_E_ARGUMENT, "a shard is not complete");
    heft_shard_set_file *files = calloc((size_t)s->count + 1, sizeof *files);
    if (!files)
        return heft_error_no_memory(err, purpose);
    heft_status st = sync_parent(s, &cause);
    if (!st && (st = stage_shards(s, files, &at, &cause)))
        heft_shard_set_remove_staged(&t, at);
    if (!st)
        st = heft_shard_set_commit(&t, files, s->count, s->flags & HEFT_SINK_REPLACE, &at, &cause);
    free(files);
    const shard_sink *node = s->first;
    while (node && at--)
        node = node->next;
    if (st && node)
        return prefix_name(err, st, node->name, &cause);
    if (st && err)
        *err = cause;
    return st;
}

heft_status heft_sink_dir_finish(heft_sink_dir *s, heft_error *err)
{
    heft_status st = heft_error_about(err, commit_set(s, err), HEFT_ABOUT_TARGET);
    s->created_dir = s->created_dir && st;
    heft_sink_dir_discard(s);
    return st;
}

void heft_sink_dir_discard(heft_sink_dir *s)
{
    if (!s)
        return;
    for (shard_sink *shard = s->first, *next; shard; shard = next) {
        next = shard->next;
        free_shard(shard);
    }
    if (s->created_dir)
        rmdir(s->path);
    if (s->lock >= 0)
        close(s->lock);
    if (s->dir >= 0)
        close(s->dir);
    free(s->path);
    free(s);
}
