/* folder_files.c - collects paths with nftw(), which follows each folder once. */
#include "folder_files.h"

#include <errno.h>
#include <ftw.h>
#include <stdlib.h>
#include <sys/stat.h>

enum { OPEN_FOLDERS = 32 };

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

static int visit(const char *path, const struct stat *info, int kind, struct FTW *place)
{
    (void)place;
    if (kind == FTW_DNR || kind == FTW_NS)
        walk.code = say_system(kind == FTW_DNR ? EACCES : errno, path);
    bool is_file = kind == FTW_F && S_ISREG(info->st_mode);
    bool is_broken = kind == FTW_SLN && walk.list->keeps_broken_links;
    if ((is_file || is_broken) && !append(walk.list, path))
        walk.code = say_status(HEFT_E_NOMEM, path, "no memory for the names of files");
    return 0;
}

static int compare_paths(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

int path_list_add(path_list *list, const char *path)
{
    struct stat info;
    size_t before = list->count;
    bool is_folder = !stat(path, &info) && S_ISDIR(info.st_mode);
    if (!is_folder)
        return append(list, path)
                   ? CODE_DONE
                   : say_status(HEFT_E_NOMEM, path, "no memory for the names of files");
    walk.list = list;
    walk.code = CODE_DONE;
    if (nftw(path, visit, OPEN_FOLDERS, 0))
        walk.code = say_system(errno, path);
    if (list->count > before)
        qsort(list->paths + before, list->count - before, sizeof *list->paths, compare_paths);
    return walk.code;
}

void path_list_free(path_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        free(list->paths[i]);
    free(list->paths);
    *list = (path_list){ 0 };
}
