/* hub_cache.c - find files in the local Hugging Face cache by the name of their repository.
 *
 * A name is hub:[OWNER/]NAME[@REVISION][/FILE].  The cache is a folder:
 *
 *     models--OWNER--NAME/refs/REVISION        the name of a folder in snapshots
 *     models--OWNER--NAME/snapshots/COMMIT/    the files of that commit, as links to blobs
 *
 * Nothing is downloaded.  Names and the content of a ref become components of a path only after a
 * check, so that no name leads out of the cache. */
#include "local/hub_cache.h"

#include <heft/private.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char scheme[] = "hub:", repository_prefix[] = "models--";

enum { SCHEME = sizeof scheme - 1, PREFIX = sizeof repository_prefix - 1, MIN_COMMIT_DIGITS = 4 };

static heft_str text_of(const char *text)
{
    return (heft_str){ text, strlen(text) };
}

/* ---- the folder of the cache ---- */

/* Environment variables in the order in which the Hugging Face library reads them, with the folder
 * of the cache below the variable's folder. */
static const struct {
    const char *variable, *below;
} places[] = {
    { "HF_HUB_CACHE", "" },
    { "HUGGINGFACE_HUB_CACHE", "" },
    { "HF_HOME", "/hub" },
    { "XDG_CACHE_HOME", "/huggingface/hub" },
    { "HOME", "/.cache/huggingface/hub" },
};

static heft_status path_too_long(heft_error *err)
{
    return heft_error_plain(err, HEFT_E_LIMIT, "the path in the Hugging Face cache is too long");
}

static heft_status find_cache(char out[PATH_MAX], heft_error *err)
{
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        const char *value = secure_getenv(places[i].variable), *home = "";
        if (!value || !*value)
            continue;
        if (value[0] == '~' && (value[1] == '/' || !value[1])) {
            home = secure_getenv("HOME");
            value++;
        }
        int len = snprintf(out, PATH_MAX, "%s%s%s", home ? home : "", value, places[i].below);
        return len < 0 || len >= PATH_MAX ? path_too_long(err) : HEFT_OK;
    }
    return heft_error_plain(err, HEFT_E_NOTFOUND,
                            "the folder of the Hugging Face cache is not known: set HF_HUB_CACHE");
}

/* ---- names ---- */

static bool is_name_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.';
}

/* Return true for an owner or the name of a repository. */
static bool is_repository_name(heft_str name)
{
    bool is = name.len && name.len <= NAME_MAX && name.ptr[0] != '.';
    for (size_t i = 0; i < name.len && is; i++)
        is = is_name_letter(name.ptr[i]);
    return is;
}

/* Return true if the text is one component of a path, and not "." or "..". */
static bool is_component(heft_str name)
{
    bool is_dots = (name.len == 1 || (name.len == 2 && name.ptr[1] == '.')) && name.ptr[0] == '.';
    return name.len && name.len <= NAME_MAX && !is_dots && !memchr(name.ptr, '/', name.len) &&
           !memchr(name.ptr, '\0', name.len);
}

/* Return true if no component of a relative path is empty, "." or "..". */
static bool is_path_below(heft_str path)
{
    bool is = true;
    for (size_t from = 0; from <= path.len && is;) {
        const char *slash = memchr(path.ptr + from, '/', path.len - from);
        size_t len = slash ? (size_t)(slash - path.ptr) - from : path.len - from;
        is = is_component((heft_str){ path.ptr + from, len });
        from += len + 1;
    }
    return is;
}

typedef struct hub_name {
    heft_str owner, name, revision, file; /* len 0: not given */
} hub_name;

/* Take the text up to the first of the characters in `stops`, and move *p there. */
static heft_str take_until(const char **p, const char *stops)
{
    heft_str taken = { *p, strcspn(*p, stops) };
    *p += taken.len;
    return taken;
}

/* Parse the text after the scheme.  The repository has an owner if `has_owner`. */
static bool parse_name(hub_name *out, const char *p, bool has_owner)
{
    bool is_valid = true;
    *out = (hub_name){ .file = text_of("") };
    if (has_owner) {
        out->owner = take_until(&p, "/@");
        is_valid = is_repository_name(out->owner) && *p == '/';
        p += is_valid;
    }
    out->name = take_until(&p, "/@");
    is_valid = is_valid && is_repository_name(out->name);
    if (*p == '@') {
        p++;
        out->revision = take_until(&p, "/");
        is_valid = is_valid && is_component(out->revision);
    }
    if (*p == '/' && p[1])
        out->file = text_of(p + 1);
    return is_valid && (!out->file.len || is_path_below(out->file));
}

/* ---- a repository ---- */

/* A repository's folder in the cache; `path` grows component by component. */
typedef struct hub_walk {
    char path[PATH_MAX];
    size_t cache_len, repository_len; /* lengths of the path's first parts */
    int os; /* an errno if a failure leaves open what the cache contains, or 0 */
    heft_error *err;
} hub_walk;

/* Keep errno unless it says that there is no such file. */
static void note_failure(hub_walk *w)
{
    if (errno != ENOENT && errno != ENOTDIR && errno != ENAMETOOLONG && errno != ELOOP)
        w->os = errno;
}

/* Append to the path; return false if the path becomes too long. */
static bool append(hub_walk *w, size_t at, const char *text, heft_str rest)
{
    int len = snprintf(w->path + at, sizeof w->path - at, "%s%.*s", text, (int)rest.len,
                       rest.ptr ? rest.ptr : "");
    return len >= 0 && (size_t)len < sizeof w->path - at;
}

static bool is_at_folder(hub_walk *w)
{
    struct stat info;
    if (!stat(w->path, &info))
        return S_ISDIR(info.st_mode);
    note_failure(w);
    return false;
}

/* Set the path to the repository's folder; return false if the folder does not exist. */
static bool enter_repository(hub_walk *w, const hub_name *n)
{
    char folder[2 * NAME_MAX + 16];
    if (n->owner.len)
        snprintf(folder, sizeof folder, "%s%.*s--%.*s", repository_prefix, (int)n->owner.len,
                 n->owner.ptr, (int)n->name.len, n->name.ptr);
    else
        snprintf(folder, sizeof folder, "%s%.*s", repository_prefix, (int)n->name.len, n->name.ptr);
    if (!append(w, w->cache_len, "/", text_of(folder)) || !is_at_folder(w))
        return false;
    w->repository_len = strlen(w->path);
    return true;
}

static heft_status not_found(heft_error *err, const char *fmt, heft_str what, heft_str where)
{
    heft_error_plain(err, HEFT_E_IO, fmt, what, where);
    return heft_error_os(err, HEFT_E_IO, ENOENT);
}

/* ---- a revision ---- */

enum { COMMIT_BYTES = NAME_MAX + 1 };

/* Read the name of a snapshot from a ref.  Return false if the ref does not exist, or if the
 * content is not the name of a folder. */
static bool read_ref(char out[COMMIT_BYTES], hub_walk *w, heft_str revision)
{
    char path[PATH_MAX];
    struct stat info;
    int len = snprintf(path, sizeof path, "%.*s/refs/%.*s", (int)w->repository_len, w->path,
                       (int)revision.len, revision.ptr);
    if (len < 0 || (size_t)len >= sizeof path)
        return false;
    int fd = heft_open_at(AT_FDCWD, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) {
        note_failure(w);
        return false;
    }
    ssize_t n = fstat(fd, &info) ? -1 : 0;
    if (!n && S_ISREG(info.st_mode))
        do
            n = read(fd, out, COMMIT_BYTES);
        while (n < 0 && errno == EINTR);
    if (n < 0)
        note_failure(w);
    close(fd);
    while (n > 0 && (out[n - 1] == '\n' || out[n - 1] == '\r' || out[n - 1] == ' '))
        n--;
    bool is_name = n > 0 && n < COMMIT_BYTES && is_component((heft_str){ out, (size_t)n });
    out[is_name ? n : 0] = '\0';
    return is_name;
}

/* Return the number of snapshots whose names begin with `prefix`, and the name of the last
 * snapshot. */
static size_t count_snapshots(char out[COMMIT_BYTES], hub_walk *w, heft_str prefix)
{
    char path[PATH_MAX];
    size_t count = 0;
    const struct dirent *e;
    int len = snprintf(path, sizeof path, "%.*s/snapshots", (int)w->repository_len, w->path);
    DIR *dir = len < 0 || (size_t)len >= sizeof path ? NULL : opendir(path);
    errno = dir ? 0 : errno;
    while (dir && (e = readdir(dir)) != NULL) {
        bool begins = !strncmp(e->d_name, prefix.len ? prefix.ptr : "", prefix.len);
        if (!begins || e->d_name[0] == '.' || strlen(e->d_name) >= COMMIT_BYTES)
            continue;
        strcpy(out, e->d_name);
        count++;
    }
    if (errno)
        note_failure(w);
    if (dir)
        closedir(dir);
    return count;
}

static bool is_commit_prefix(heft_str text)
{
    bool is = text.len >= MIN_COMMIT_DIGITS;
    for (size_t i = 0; i < text.len && is; i++)
        is = memchr("0123456789abcdef", text.ptr[i], 16) != NULL;
    return is;
}

static heft_status enter_snapshot(hub_walk *w, const char *commit, heft_str revision)
{
    if (!append(w, w->repository_len, "/snapshots/", text_of(commit)))
        return path_too_long(w->err);
    if (is_at_folder(w))
        return HEFT_OK;
    w->path[w->repository_len] = '\0';
    heft_error_plain(w->err, HEFT_E_IO,
                     "the revision %q is the commit %q, which is not in the cache: %s", revision,
                     text_of(commit), w->path);
    return heft_error_os(w->err, HEFT_E_IO, ENOENT);
}

/* A revision is a ref, the name of a snapshot, or the beginning of one; without a revision, the
 * ref "main", or the only snapshot. */
static heft_status enter_revision(hub_walk *w, heft_str revision)
{
    char commit[COMMIT_BYTES];
    bool is_given = revision.len > 0, may_be_prefix = !is_given || is_commit_prefix(revision);
    heft_str ref = is_given ? revision : text_of("main");
    if (read_ref(commit, w, ref))
        return enter_snapshot(w, commit, ref);
    if (is_given && append(w, w->repository_len, "/snapshots/", revision) && is_at_folder(w))
        return HEFT_OK;
    w->path[w->repository_len] = '\0';
    size_t count = may_be_prefix ? count_snapshots(commit, w, revision) : 0;
    if (count == 1)
        return enter_snapshot(w, commit, ref);
    if (count)
        return heft_error_plain(w->err, HEFT_E_ARGUMENT,
                                is_given
                                    ? "%U commits in the cache begin with %q: write more digits"
                                    : "%U commits are in the cache, and none is %q: name one "
                                      "after an @",
                                (uint64_t)count, ref);
    return not_found(w->err, "the cache has no revision %q in %q", ref, text_of(w->path));
}

/* ---- a path ---- */

const char heft_no_remote[] = "was built without libcurl";

bool heft_is_hub_name(const char *path)
{
    return !strncmp(path, scheme, SCHEME);
}

static heft_status find_repository(hub_walk *w, hub_name *n, const char *text)
{
    hub_name alone;
    bool has_owner = parse_name(n, text, true), is_alone = parse_name(&alone, text, false);
    if (has_owner && enter_repository(w, n))
        return HEFT_OK;
    if (is_alone && enter_repository(w, &alone)) {
        *n = alone;
        return HEFT_OK;
    }
    w->path[w->cache_len] = '\0';
    if (!has_owner && (!is_alone || alone.file.len))
        return heft_error_plain(w->err, HEFT_E_ARGUMENT,
                                "is not a name in the cache: write hub:OWNER/NAME[@REV][/FILE]");
    if (!is_at_folder(w))
        return not_found(w->err, "%q cannot be found: there is no Hugging Face cache in %q",
                         text_of(text), text_of(w->path));
    return not_found(w->err, "%q is not in the Hugging Face cache %q", text_of(text),
                     text_of(w->path));
}

heft_status heft_hub_path(char *out, size_t capacity, const char *name, heft_error *err)
{
    hub_name n;
    hub_walk w = { .err = err };
    if (!name || !heft_is_hub_name(name))
        return heft_error_plain(w.err, HEFT_E_ARGUMENT, "is not a name that begins with hub:");
    heft_status st = find_cache(w.path, w.err);
    w.cache_len = st ? 0 : strlen(w.path);
    if (!st && name[SCHEME]) {
        st = find_repository(&w, &n, name + SCHEME);
        if (!st)
            st = enter_revision(&w, n.revision);
        if (!st && n.file.len && !append(&w, strlen(w.path), "/", n.file))
            st = path_too_long(w.err);
    }
    if (w.os)
        st = heft_os_error(err, w.os, "the Hugging Face cache cannot be read");
    if (!st && strlen(w.path) >= capacity)
        st = path_too_long(w.err);
    if (!st)
        strcpy(out, w.path);
    return st;
}

/* ---- all repositories ---- */

/* Write "OWNER/NAME" for the folder "models--OWNER--NAME".  A name may contain "--", an owner may
 * not. */
static bool name_of_folder(char out[NAME_MAX + 1], const char *folder)
{
    const char *from = folder + PREFIX;
    if (strncmp(folder, repository_prefix, PREFIX) != 0 || !*from || strlen(from) > NAME_MAX)
        return false;
    const char *dashes = strstr(from, "--");
    if (!dashes || dashes == from || !dashes[2])
        strcpy(out, from);
    else
        sprintf(out, "%.*s/%s", (int)(dashes - from), from, dashes + 2);
    return true;
}

heft_status heft_hub_list(void (*fn)(void *ctx, const char *name), void *ctx, heft_error *err)
{
    char path[PATH_MAX], name[NAME_MAX + 1];
    const struct dirent *e;
    HEFT_TRY(find_cache(path, err));
    DIR *dir = opendir(path);
    if (!dir)
        return heft_os_error(err, errno, "the Hugging Face cache cannot be listed");
    errno = 0;
    while ((e = readdir(dir)) != NULL) {
        if (name_of_folder(name, e->d_name))
            fn(ctx, name);
        errno = 0;
    }
    int os = errno;
    closedir(dir);
    return os ? heft_os_error(err, os, "the Hugging Face cache cannot be listed") : HEFT_OK;
}
