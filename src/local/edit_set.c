/* edit_set.c - refuse to edit a single shard.
 *
 * After an edit of one shard the model's index would list tensors that the shard no longer has, or
 * a wrong digest and size.  The shard itself does not say that it is one; an index in the same
 * directory lists it.  An index is recognised by its name: "NAME.safetensors.index.json",
 * "NAME.bin.index.json" or, for the shard "model-1.zt", "model.zt".  The index is opened without
 * the shards. */
#include "folder/weight_names.h"
#include "port/system/disk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct index_search {
    int dir;
    const char *name; /* file to be edited */
    const heft_host *host;
    heft_status st;
    heft_error *err;
} index_search;

static heft_status refuse_shard(heft_source **out, void *ctx, const char *name, heft_error *err)
{
    (void)ctx;
    (void)name;
    *out = NULL;
    return heft_error_plain(err, HEFT_E_IO, "only the index is opened");
}

static heft_status open_index(heft_file **out, const index_search *s, const char *index,
                              heft_error *cause)
{
    heft_shard_folder shards = { .size = sizeof shards, .name = index, .open = refuse_shard };
    heft_open_options o = HEFT_OPEN_OPTIONS_INIT;
    heft_source *source;
    o.host = s->host;
    o.shards = &shards;
    *out = NULL;
    heft_status st = heft_source_at(&source, s->dir, index, 0, HEFT_ACCESS_AUTO, cause);
    if (!st)
        return heft_file_open_source(out, source, &o, cause);
    /* a removed file, a directory, a pipe and a symbolic link loop are not an index */
    bool is_file = cause->os != ENOENT && cause->os != EISDIR && cause->os != ESPIPE &&
                   cause->os != ELOOP;
    return is_file ? st : HEFT_E_FORMAT;
}

static bool lists_shard(const heft_file *index, const char *name)
{
    size_t len = strlen(name);
    for (uint32_t i = 0; i < heft_shard_file_count(index); i++) {
        heft_str s = heft_shard_file_at(index, i).name;
        if (s.len == len && !memcmp(s.ptr, name, len))
            return true;
    }
    return false;
}

/* A file that cannot be parsed is not an index.  A file that cannot be read may be an index, so
 * that is an error. */
static void check_index(void *arg, const char *index)
{
    index_search *s = arg;
    heft_file *f;
    heft_error cause;
    heft_str name = { index, strlen(index) };
    if (s->st || !strcmp(index, s->name) || !heft_weight_name_may_be_index_of(index, s->name))
        return;
    heft_status st = open_index(&f, s, index, &cause);
    if (st == HEFT_E_IO || st == HEFT_E_NOMEM || st == HEFT_E_LIMIT) {
        s->st = heft_error_plain(s->err, st, "%q, which may list it as a shard, cannot be read: %s",
                                 name, cause.message);
        heft_error_os(s->err, st, cause.os);
    }
    if (!st && lists_shard(f, s->name))
        s->st = heft_error_plain(s->err, HEFT_E_UNSUPPORTED,
                                 "it is a shard of %q: shards cannot be edited one by one "
                                 "('heft merge' them, edit the result, 'heft split' it again)",
                                 name);
    heft_file_close(f);
}

static heft_status check_folder(int dir, const char *name, const heft_host *host, heft_error *err)
{
    index_search s = { dir, name, host, HEFT_OK, err };
    HEFT_TRY(heft_folder_list(dir, check_index, &s, err));
    return s.st;
}

heft_status heft_target_check_not_shard(const heft_target *t, const char *path,
                                        const heft_host *host, heft_error *err)
{
    struct stat info;
    heft_status st = check_folder(t->dir, t->name, host, err);
    if (!st && lstat(path, &info))
        st = heft_os_error(err, errno, "its status cannot be read");
    if (st || !S_ISLNK(info.st_mode))
        return st;
    /* an index may list the symbolic link as well as the file behind the link */
    const char *slash = strrchr(path, '/');
    int dir = heft_open_folder_of(path, O_RDONLY);
    if (dir < 0)
        return heft_os_error(err, errno, "its directory cannot be opened");
    st = check_folder(dir, slash ? slash + 1 : path, host, err);
    close(dir);
    return st;
}
