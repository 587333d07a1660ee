/* folder_files.c - collects paths with nftw(), which follows each folder once. */

#include <errno.h>
#include <ftw.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "process/textfile.h"

/* Folders of this depth are not entered: musl's nftw() keeps each folder open, and passes by deeper
 * ones without a word. */
enum { DEEPEST = 256 };

static struct { /* state of the walk: nftw() passes no context to its function */
    path_list *list;
    int code;
} walk;

static bool append(path_list *list, const char *path)
{
    if (list->count == list->capacity) {
        size_t capacity = list->capacity * 2 + 16;
        char **paths = realloc(list->paths, capacity * sizeof *paths);
        if (!paths)
            return false;
        list->paths = paths;
        list->capacity = capacity;
    }
    list->paths[list->count] = strdup(path);
    return list->paths[list->count] && ++list->count;
}

static bool is_too_deep(const char *path, int kind, const struct FTW *place)
{
    bool is = kind == FTW_D && place->level >= DEEPEST;
    if (is && walk.list->is_quiet)
        walk.code = CODE_SYSTEM;
    else if (is)
        walk.code = say_status(HEFT_E_LIMIT, path, "folders are nested deeper than %d", DEEPEST);
    return is;
}

typedef int walk_fn(const char *path, const struct stat *info, int kind, struct FTW *place);

static int visit(const char *path, const struct stat *info, int kind, struct FTW *place)
{
    if (is_too_deep(path, kind, place))
        return 1;
    const path_list *list = walk.list;
    bool is_unreadable = kind == FTW_DNR || kind == FTW_NS;
    if (is_unreadable && !list->keeps_unreadable && !list->is_quiet)
        walk.code = say_system(kind == FTW_DNR ? EACCES : errno, path);
    bool is_odd = is_unreadable || (kind == FTW_F && !S_ISREG(info->st_mode));
    bool is_file = kind == FTW_F && S_ISREG(info->st_mode);
    bool is_broken = kind == FTW_SLN && (list->keeps_broken_links || list->keeps_unreadable);
    if ((is_file || is_broken || (is_odd && list->keeps_unreadable)) && !append(walk.list, path))
        walk.code = say_status(HEFT_E_NOMEM, path, "no memory for the names of files");
    return 0;
}

static int visit_odd(const char *path, const struct stat *info, int kind, struct FTW *place)
{
    if (is_too_deep(path, kind, place))
        return 1;
    bool is_odd = kind == FTW_SL || (kind == FTW_F && !S_ISREG(info->st_mode));
    if (is_odd && !append(walk.list, path))
        walk.code = say_status(HEFT_E_NOMEM, path, "no memory for the names of files");
    return 0;
}

static int compare_paths(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Walk through a folder and sort the paths that `fn` has appended. */
static int walk_folder(path_list *list, const char *folder, walk_fn *fn, int flags)
{
    size_t before = list->count;
    walk.list = list;
    walk.code = CODE_DONE;
    if (nftw(folder, fn, DEEPEST, flags) < 0 && !list->is_quiet)
        walk.code = say_system(errno, folder);
    if (list->count > before)
        qsort(list->paths + before, list->count - before, sizeof *list->paths, compare_paths);
    return walk.code;
}

int path_list_add(path_list *list, const char *path)
{
    bool is_folder;
    int code = path_find_folder(&is_folder, path);
    if (code)
        return code;
    if (!is_folder)
        return append(list, path)
                   ? CODE_DONE
                   : say_status(HEFT_E_NOMEM, path, "no memory for the names of files");
    return walk_folder(list, path, visit, 0);
}

int path_list_add_odd(path_list *list, const char *folder)
{
    return walk_folder(list, folder, visit_odd, FTW_PHYS);
}

void path_list_free(path_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        free(list->paths[i]);
    free(list->paths);
    *list = (path_list){ 0 };
}
