/* windows_walk.c - nftw(): call a function for every file and folder below a folder. */
#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <sys/stat.h>

#include "port/windows/posix.h"

typedef int visit_fn(const char *path, const struct stat *info, int kind, struct FTW *place);

typedef struct folder { /* folder that remains to be listed */
    struct folder *next;
    char path[];
} folder;

static bool push(folder **list, const char *dir, const char *name)
{
    size_t size = strlen(dir) + strlen(name) + 2, len = strlen(dir);
    folder *f = malloc(sizeof *f + size);
    if (!f)
        return false;
    bool has_slash = !*name || (len && dir[len - 1] == '/');
    snprintf(f->path, size, "%s%s%s", dir, has_slash ? "" : "/", name);
    f->next = *list;
    *list = f;
    return true;
}

/* Visit the first path of the list; keep the path in the list if it is a folder. */
static int visit(folder **list, visit_fn *fn, int flags, bool *is_folder)
{
    struct FTW place = { 0, 0 };
    struct stat info = { .st_size = 0 };
    const char *path = (*list)->path;
    int failed = lstat(path, &info), kind = failed ? FTW_NS : FTW_F;
    if (!failed && S_ISLNK(info.st_mode)) {
        kind = flags & FTW_PHYS ? FTW_SL : FTW_F;
        if (kind == FTW_F && stat(path, &info))
            kind = FTW_SLN;
    } else if (!failed && S_ISDIR(info.st_mode))
        kind = FTW_D;
    *is_folder = kind == FTW_D;
    return fn(path, &info, kind, &place);
}

static int list_folder(folder **list, const char *path, visit_fn *fn)
{
    struct FTW place = { 0, 0 };
    struct stat info = { .st_size = 0 };
    DIR *d = opendir(path);
    if (!d)
        return fn(path, &info, FTW_DNR, &place);
    bool ok = true;
    for (struct dirent *e; ok && (e = readdir(d)) != NULL;)
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
            ok = push(list, path, e->d_name);
    closedir(d);
    return ok ? 0 : -1;
}

int nftw(const char *path, visit_fn *fn, int folders, int flags)
{
    folder *list = NULL;
    int result = push(&list, path, "") ? 0 : -1;
    (void)folders;
    while (list) {
        folder *first = list, *rest = list->next;
        bool is_folder = false;
        if (!result)
            result = visit(&first, fn, flags, &is_folder);
        list = rest;
        if (!result && is_folder)
            result = list_folder(&list, first->path, fn);
        free(first);
    }
    return result;
}
