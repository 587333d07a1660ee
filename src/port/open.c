/* open.c - opening by path, and the shards beside that path. */
#include "port/disk.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "port/model_folder.h"

typedef struct place { /* the folder of a path */
    const char *path;
    size_t dir_len;           /* of path, up to and with the last slash */
    heft_model_folder folder; /* not open until it is needed */
} place;

static heft_status open_dir(place *p, heft_error *err)
{
    if (p->folder.count)
        return HEFT_OK;
    char *name = p->dir_len ? strndup(p->path, p->dir_len) : strdup(".");
    if (!name)
        return heft_error_plain(err, HEFT_E_NOMEM, "no memory for the name of a folder");
    heft_status st = heft_model_folder_open(&p->folder, name, err);
    free(name);
    return st;
}

static heft_status open_shard(heft_source **out, void *ctx, const char *name, heft_error *err)
{
    place *p = ctx;
    *out = NULL;
    heft_status st = open_dir(p, err);
    return st ? st : heft_model_folder_source(out, &p->folder, name, HEFT_ACCESS_AUTO, err);
}

static heft_status list(void *ctx, void (*fn)(void *arg, const char *name), void *arg,
                        heft_error *err)
{
    place *p = ctx;
    heft_status st = open_dir(p, err);
    return st ? st : heft_folder_list(heft_model_folder_descriptor(&p->folder), fn, arg, err);
}

/* The file that stands for the model in its folder: no more trusted than the other files there. */
static heft_status open_entry(heft_source **out, place *p, const char *name, heft_error *err)
{
    heft_error cause;
    heft_status st = open_shard(out, p, name, &cause);
    if (!st)
        return HEFT_OK;
    if (st == HEFT_E_NOMEM)
        return heft_error_plain(err, st, "%s", cause.message);
    heft_error_plain(err, st, "shard %q %s", (heft_str){ name, strlen(name) }, cause.message);
    if (err)
        err->os = cause.os;
    return st;
}

/* is_entry: the path was found in a folder rather than named by the caller. */
static heft_status open_file(heft_file **out, const char *path, bool is_entry,
                             const heft_open_options *opt, heft_error *err)
{
    heft_source *s;
    heft_open_options o = HEFT_OPEN_OPTIONS_INIT;
    const char *slash = strrchr(path, '/');
    place p = { path, slash ? (size_t)(slash - path) + 1 : 0, { .count = 0 } };
    heft_siblings siblings = { slash ? slash + 1 : path, open_shard, &p, list };
    if (opt)
        memcpy(&o, opt, opt->size < sizeof o ? opt->size : sizeof o);
    o.size = sizeof o;
    o.siblings = o.siblings ? o.siblings : &siblings;
    heft_status st = is_entry ? open_entry(&s, &p, siblings.name, err)
                              : heft_source_file(&s, path, HEFT_ACCESS_AUTO, err);
    if (!st && heft_journal_is_there(path)) {
        heft_source_close(s);
        st = heft_error_plain(err, HEFT_E_IO,
                              "an edit of it was interrupted, or is going on: there is a journal "
                              "beside it ('heft edit' with no options undoes the edit)");
    }
    if (!st)
        st = heft_open_source(out, s, &o, err);
    heft_model_folder_close(&p.folder);
    return st;
}

heft_status heft_open(heft_file **out, const char *path, const heft_open_options *opt,
                      heft_error *err)
{
    struct stat about;
    char *entry;
    *out = NULL;
    if (stat(path, &about) || !S_ISDIR(about.st_mode))
        return open_file(out, path, false, opt, err);
    heft_status st = heft_folder_entry(&entry, path, err);
    if (!st)
        st = open_file(out, entry, true, opt, err);
    free(entry);
    return st;
}
