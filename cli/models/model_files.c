#include "models/model_files.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "process/textfile.h"

const char *const git_paths[GIT_PATHS] = { ".git", ".gitattributes", ".github", ".gitignore" };

typedef struct model_root { /* folders that files may lie in, without links */
    char folder[PATH_MAX];
    char blobs[PATH_MAX + 8]; /* empty: none */
} model_root;

static bool is_below(const char *folder, const char *path)
{
    size_t len = strlen(folder);
    return len && !strncmp(path, folder, len) && (path[len] == '/' || folder[len - 1] == '/');
}

static int find_root(model_root *r, const char *path)
{
    char repository[PATH_MAX];
    r->blobs[0] = '\0';
    if (!realpath(path, r->folder))
        return say_system(errno, path);
    strcpy(repository, r->folder);
    char *slash = strrchr(repository, '/'); /* REPOSITORY/snapshots/REVISION */
    *slash = '\0';
    slash = strrchr(repository, '/');
    if (slash && !strcmp(slash, "/snapshots")) {
        *slash = '\0';
        sprintf(r->blobs, "%s/blobs", repository);
    }
    return CODE_DONE;
}

static bool is_ignored(const char *name, const heft_str *ignored, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        size_t len = ignored[i].len;
        while (len && ignored[i].ptr[len - 1] == '/')
            len--;
        if (len && !strncmp(name, ignored[i].ptr, len) && (!name[len] || name[len] == '/'))
            return true;
    }
    return false;
}

/* Refuse a link that leads out of the model. */
static int check_link(model_files *m, const model_root *r, const char *path, const char *name)
{
    char real[PATH_MAX];
    if (!realpath(path, real))
        return say_system(errno, path);
    bool is_inside = is_below(r->folder, real);
    size_t len = strlen(r->folder);
    m->has_links = m->has_links || !is_inside || strcmp(real + len + 1, name) != 0;
    if (is_inside || is_below(r->blobs, real))
        return CODE_DONE;
    return say_status(HEFT_E_IO, path, "is a symbolic link that leaves the model's folder");
}

static odd_kind kind_of(const char *path, const char *real)
{
    struct stat info;
    if (!lstat(path, &info) && !S_ISLNK(info.st_mode))
        return ODD_SPECIAL;
    return *real ? ODD_LINK : ODD_DANGLING_LINK;
}

/* List the links and special files; a link to a blob is the usual file of a snapshot. */
static int list_odd(model_files *m, const model_root *r, const char *path, const heft_str *ignored,
                    size_t count)
{
    char real[PATH_MAX];
    struct stat info;
    bool is_link = !lstat(path, &info) && S_ISLNK(info.st_mode);
    const char *root = is_link ? r->folder : path; /* the walk does not follow a link */
    int code = path_list_add_odd(&m->found_odd, root);
    m->odd = calloc(m->found_odd.count + 1, sizeof *m->odd);
    if (!code && !m->odd)
        code = say_status(HEFT_E_NOMEM, path, "no memory for the names of files");
    for (size_t i = 0; !code && i < m->found_odd.count; i++) {
        const char *file = m->found_odd.paths[i], *name = file + strlen(root);
        name += strspn(name, "/");
        if (!realpath(file, real))
            real[0] = '\0';
        if (!is_ignored(name, ignored, count) && !is_below(r->blobs, real))
            m->odd[m->odd_count++] = (odd_file){ file, kind_of(file, real) };
    }
    return code;
}

static void add(model_files *m, const char *path, const char *name)
{
    m->path[m->count] = path;
    m->name[m->count++] = name;
}

static int list_folder(model_files *m, const char *path, const heft_str *ignored, size_t count)
{
    model_root r;
    int code = find_root(&r, path);
    for (size_t i = 0; i < m->found.count && !code; i++) {
        const char *file = m->found.paths[i], *name = file + strlen(path);
        name += strspn(name, "/");
        if (is_ignored(name, ignored, count)) {
            m->ignored_count++;
            continue;
        }
        code = check_link(m, &r, file, name);
        add(m, file, name);
    }
    if (!code)
        code = list_odd(m, &r, path, ignored, count);
    return code;
}

int model_files_list(model_files *m, const char *path, const heft_str *ignored, size_t count)
{
    *m = (model_files){ .is_folder = false };
    int code = path_find_folder(&m->is_folder, path);
    if (code)
        return code;
    if (!m->is_folder && !path_exists(path))
        return say_system(ENOENT, path);
    code = path_list_add(&m->found, path);
    m->path = calloc(m->found.count + 1, sizeof *m->path);
    m->name = calloc(m->found.count + 1, sizeof *m->name);
    if (!code && (!m->path || !m->name))
        code = say_status(HEFT_E_NOMEM, path, "no memory for the names of files");
    if (!code && m->is_folder)
        code = list_folder(m, path, ignored, count);
    else if (!code)
        add(m, path, ".");
    return code;
}

void model_files_free(model_files *m)
{
    path_list_free(&m->found);
    path_list_free(&m->found_odd);
    free(m->odd);
    free(m->path);
    free(m->name);
    *m = (model_files){ .count = 0 };
}

char *path_below(const char *folder, const char *path)
{
    char root[PATH_MAX], parent[PATH_MAX], real[2 * PATH_MAX];
    size_t len = strlen(path), at = len;
    while (at && path[at - 1] != '/')
        at--;
    if (at >= sizeof parent || !realpath(folder, root))
        return NULL;
    memcpy(parent, path, at);
    strcpy(parent + at, at ? "" : ".");
    char *resolved = realpath(parent, NULL); /* the file itself may not exist yet */
    if (!resolved)
        return NULL;
    size_t n = strlen(resolved) + (len - at) + 2;
    if (n <= sizeof real)
        sprintf(real, "%s/%s", resolved, path + at);
    free(resolved);
    return n <= sizeof real && is_below(root, real) ? strdup(real + strlen(root) + 1) : NULL;
}

/* Cut separators and components "." from the end of a path. */
static void cut_end(char *path)
{
    size_t len = strlen(path);
    while (len > 1 && (path[len - 1] == '/' || (path[len - 1] == '.' && path[len - 2] == '/')))
        path[--len] = '\0';
}

/* Return the path of an existing file relative to the folder, malloc'ed; NULL if the file does not
 * exist or does not lie below the folder. */
static char *existing_below(const char *folder, const char *path)
{
    char text[PATH_MAX], real[PATH_MAX];
    struct stat info;
    if (strlen(path) >= sizeof text)
        return NULL;
    strcpy(text, path);
    cut_end(text);
    if (lstat(text, &info))
        return NULL;
    const char *slash = strrchr(text, '/'), *last = slash ? slash + 1 : text;
    bool is_plain = strcmp(last, ".") != 0 && strcmp(last, "..") != 0;
    return is_plain               ? path_below(folder, text)
           : realpath(text, real) ? path_below(folder, real)
                                  : NULL;
}

int model_files_find(char **out, const char *folder, const char *path)
{
    char joined[2 * PATH_MAX];
    *out = NULL;
    int len = snprintf(joined, sizeof joined, "%s/%s", folder, path);
    if (len < 0 || (size_t)len >= sizeof joined)
        return say_system(ENAMETOOLONG, path);
    char *inside = *path && *path != '/' ? existing_below(folder, joined) : NULL;
    char *typed = existing_below(folder, path);
    bool are_two = inside && typed && strcmp(inside, typed) != 0;
    int code = CODE_DONE;
    *out = inside ? inside : typed;
    if (are_two)
        code = say_status(HEFT_E_ARGUMENT, path,
                          "can be %s or %s of the folder: give the absolute path", inside, typed);
    else if (!*out)
        code = say_status(HEFT_E_ARGUMENT, path, "--ignore names no file or folder below %s",
                          folder);
    if (inside)
        free(typed);
    return code;
}
