/* windows_folders.c - list folders. */
#include "port/windows/system.h"

struct windows_dir {
    HANDLE search;
    WIN32_FIND_DATAW found;
    bool has_found;
    int fd; /* owned, or -1 */
    struct windows_dirent entry;
};

static windows_dir *list(int dir, const char *path)
{
    wchar_t *folder = windows_path(dir, path);
    size_t len = folder ? wcslen(folder) : 0;
    wchar_t *pattern = folder ? realloc(folder, (len + 3) * sizeof *pattern) : NULL;
    windows_dir *d = pattern ? calloc(1, sizeof *d) : NULL;
    if (!d) {
        free(pattern ? pattern : folder);
        return NULL;
    }
    wcscpy(pattern + len, len && pattern[len - 1] == L'\\' ? L"*" : L"\\*");
    d->fd = -1;
    d->search = FindFirstFileExW(pattern, FindExInfoBasic, &d->found, FindExSearchNameMatch, NULL,
                                 FIND_FIRST_EX_LARGE_FETCH);
    d->has_found = d->search != INVALID_HANDLE_VALUE;
    if (!d->has_found && GetLastError() != ERROR_FILE_NOT_FOUND) {
        (void)windows_fail();
        free(d);
        d = NULL;
    }
    free(pattern);
    return d;
}

windows_dir *windows_opendir(const char *path)
{
    return list(WINDOWS_HERE, path);
}

windows_dir *windows_fdopendir(int fd)
{
    windows_dir *d = list(fd, ".");
    if (d)
        d->fd = fd;
    return d;
}

struct windows_dirent *windows_readdir(windows_dir *d)
{
    if (!d->has_found)
        return NULL;
    int n = WideCharToMultiByte(CP_UTF8, 0, d->found.cFileName, -1, d->entry.d_name,
                                sizeof d->entry.d_name, NULL, NULL);
    if (!n)
        d->entry.d_name[0] = 0;
    d->has_found = FindNextFileW(d->search, &d->found);
    return &d->entry;
}

int windows_closedir(windows_dir *d)
{
    if (d->search != INVALID_HANDLE_VALUE)
        FindClose(d->search);
    if (d->fd >= 0)
        windows_close(d->fd);
    free(d);
    return 0;
}

static int compare_entries(const void *a, const void *b)
{
    const struct windows_dirent *const *x = a, *const *y = b;
    return strcmp((*x)->d_name, (*y)->d_name);
}

int windows_scandir(const char *path, struct windows_dirent ***out)
{
    windows_dir *d = windows_opendir(path);
    size_t count = 0;
    bool ok = d;
    *out = NULL;
    for (struct windows_dirent *e; ok && (e = windows_readdir(d)) != NULL;) {
        struct windows_dirent **grown = realloc(*out, (count + 1) * sizeof *grown);
        ok = grown && (grown[count] = malloc(sizeof **grown)) != NULL;
        *out = grown ? grown : *out;
        if (ok)
            *grown[count++] = *e;
    }
    if (d)
        windows_closedir(d);
    if (ok && count)
        qsort(*out, count, sizeof **out, compare_entries);
    if (ok)
        return (int)count;
    while (count)
        free((*out)[--count]);
    free(*out);
    *out = NULL;
    return -1;
}
