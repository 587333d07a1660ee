/* sink_set.c - files that appear together.
 *
 * Each is written without a name, as sink_file.c does it.  When all are complete, what is to be replaced gets a
 * second name, then the new files get theirs, one after the other; should one fail, those before it go again. */
#include "port/sink_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct member {
    heft_sink base; /* what is handed out */
    heft_sink *inner;
    struct member *next;
    bool is_done;
} member;

struct heft_sink_set {
    char *dir;
    uint32_t flags;
    bool made_dir;
    member *first, **last;
};

/* ---- a file of the set ---- */

static heft_status write_at(heft_sink *s, uint64_t off, const void *data, size_t len,
                            heft_error *err)
{
    heft_sink *inner = ((const member *)s)->inner;
    return inner->ops->write_at(inner, off, data, len, err);
}

static heft_status reserve(heft_sink *s, uint64_t size, heft_error *err)
{
    heft_sink *inner = ((const member *)s)->inner;
    return inner->ops->reserve(inner, size, err);
}

static heft_status read_at(heft_sink *s, uint64_t off, void *buf, size_t len, heft_error *err)
{
    heft_sink *inner = ((const member *)s)->inner;
    return inner->ops->read_at(inner, off, buf, len, err);
}

static heft_status scratch(heft_sink *s, heft_scratch **out, uint64_t bytes, heft_error *err)
{
    heft_sink *inner = ((const member *)s)->inner;
    return inner->ops->scratch(inner, out, bytes, err);
}

static heft_status finish(heft_sink *s, heft_error *err)
{
    (void)err;
    ((member *)s)->is_done = true;
    return HEFT_OK;
}

static void discard(heft_sink *s)
{
    (void)s; /* the set sees that it is not done */
}

static const heft_sink_ops member_ops = {
    .write_at = write_at,
    .reserve = reserve,
    .finish = finish,
    .discard = discard,
    .read_at = read_at,
    .scratch = scratch,
};

/* ---- the set ---- */

static heft_status no_memory(heft_error *err)
{
    return heft_error_plain(err, HEFT_E_NOMEM, "no memory for a set of files");
}

heft_status heft_sink_set_open(heft_sink_set **out, const char *dir, uint32_t flags,
                               heft_error *err)
{
    struct stat about;
    heft_sink_set *s = calloc(1, sizeof *s);
    *out = NULL;
    if (!s)
        return no_memory(err);
    s->dir = strdup(*dir ? dir : ".");
    s->flags = flags;
    s->last = &s->first;
    heft_status st = s->dir ? HEFT_OK : no_memory(err);
    if (!st && !mkdir(s->dir, 0777))
        s->made_dir = true;
    else if (!st && errno != EEXIST)
        st = heft_os_error(err, errno, "cannot be created");
    else if (!st && (stat(s->dir, &about) || !S_ISDIR(about.st_mode)))
        st = heft_os_error(err, ENOTDIR, "cannot be written into");
    if (st)
        heft_sink_set_discard(s);
    else
        *out = s;
    return st;
}

static bool is_component(const char *name)
{
    return *name && !strchr(name, '/') && strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
}

static heft_status open_inner(heft_sink **out, const heft_sink_set *s, const char *name,
                              heft_error *err)
{
    size_t len = strlen(s->dir);
    char *path = malloc(len + strlen(name) + 2);
    if (!path)
        return no_memory(err);
    sprintf(path, "%s/%s", s->dir, name);
    uint32_t unswept = s->first ? HEFT_FILE_SINK_UNSWEPT : 0; /* once is enough */
    heft_status st = heft_file_sink_open(out, &heft_system_disk, path, s->flags | unswept, err);
    free(path);
    if (!st && !heft_sink_is_file(*out)) {
        heft_sink_discard(*out);
        *out = NULL;
        st = heft_error_plain(err, HEFT_E_ARGUMENT, "is no regular file");
    }
    return st;
}

heft_status heft_sink_set_add(heft_sink **out, heft_sink_set *s, const char *name, heft_error *err)
{
    heft_error why;
    *out = NULL;
    if (!is_component(name))
        return heft_error_plain(err, HEFT_E_ARGUMENT, "%q is no name of a file",
                                (heft_str){ name, strlen(name) });
    member *m = calloc(1, sizeof *m);
    if (!m)
        return no_memory(err);
    heft_status st = open_inner(&m->inner, s, name, &why);
    if (st) {
        free(m);
        heft_error_plain(err, st, "%s: %s", name, why.message);
        if (err)
            err->os = why.os;
        return st;
    }
    m->base.ops = &member_ops;
    *s->last = m;
    s->last = &m->next;
    *out = &m->base;
    return HEFT_OK;
}

static heft_status settle(const heft_sink_set *s, heft_error *err)
{
    heft_status st = HEFT_OK;
    for (member *m = s->first; m && !st; m = m->next) {
        if (!m->is_done)
            return heft_error_plain(err, HEFT_E_ARGUMENT, "a file of the set is not complete");
        st = heft_file_sink_settle(m->inner, err);
    }
    for (member *m = s->first; m && !st; m = m->next)
        st = heft_file_sink_keep_old(m->inner, err);
    return st;
}

heft_status heft_sink_set_finish(heft_sink_set *take, heft_error *err)
{
    heft_sink_set *s = take;
    member *m = s->first;
    heft_status st = settle(s, err);
    while (!st && m) {
        st = heft_file_sink_appear(m->inner, err);
        m = st ? m : m->next;
    }
    for (member *done = s->first; st && done && m && done != m; done = done->next)
        if (done->is_done)
            heft_file_sink_undo(done->inner);
    s->made_dir = s->made_dir && st;
    heft_sink_set_discard(s);
    return st;
}

void heft_sink_set_discard(heft_sink_set *s)
{
    if (!s)
        return;
    for (member *m = s->first, *next; m; m = next) {
        next = m->next;
        heft_sink_discard(m->inner);
        free(m);
    }
    if (s->made_dir)
        rmdir(s->dir);
    free(s->dir);
    free(s);
}
