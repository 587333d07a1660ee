/* main_file.c - list a model's folder, from which src/folder chooses the files of the model. */
#include "folder/folder_choice.h"
#include "port/port.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static heft_status list_folder(int dir, const char *path, const char *open_error,
                               void (*fn)(void *arg, const char *name, int dir), void *arg,
                               heft_error *err)
{
    const struct dirent *e;
    int fd = heft_open_at(dir, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    int os = errno;
    if (!d && fd >= 0)
        close(fd);
    if (!d)
        return heft_os_error(err, os, open_error);
    do {
        errno = 0;
        e = readdir(d);
        os = errno;
        if (e)
            fn(arg, e->d_name, fd);
    } while (e);
    closedir(d);
    return os ? heft_os_error(err, os, "the folder cannot be read") : HEFT_OK;
}

typedef struct name_function {
    void (*fn)(void *arg, const char *name);
    void *arg;
} name_function;

static void give_name(void *arg, const char *name, int dir)
{
    const name_function *f = arg;
    (void)dir;
    f->fn(f->arg, name);
}

heft_status heft_folder_list(int dir, void (*fn)(void *arg, const char *name), void *arg,
                             heft_error *err)
{
    name_function f = { fn, arg };
    return list_folder(dir, ".", "the folder cannot be read", give_name, &f, err);
}

/* ---- the choice of files ---- */

typedef struct module_folder {
    heft_folder_listing *listing;
    const char *name;
} module_folder;

/* Add a file of a module's folder by the path "2_Dense/model.safetensors". */
static void add_in_module(void *arg, const char *name, int dir)
{
    const module_folder *m = arg;
    char path[2 * NAME_MAX + 3];
    (void)dir;
    snprintf(path, sizeof path, "%s/%s", m->name, name);
    heft_folder_listing_add(m->listing, path);
}

/* Links are not followed. */
static bool is_folder(const char *name, int dir)
{
    struct stat info;
    return !fstatat(dir, name, &info, AT_SYMLINK_NOFOLLOW) && S_ISDIR(info.st_mode);
}

/* Add a folder of a universal checkpoint of DeepSpeed, by its file with the weights if there is
 * one. */
static void add_in_zero(void *arg, const char *name, int dir)
{
    const module_folder *m = arg;
    char file[NAME_MAX + 16], path[NAME_MAX + 32];
    struct stat info;
    if (name[0] == '.' || !is_folder(name, dir))
        return;
    snprintf(file, sizeof file, "%s/fp32.pt", name);
    bool has_file = !fstatat(dir, file, &info, AT_SYMLINK_NOFOLLOW);
    snprintf(path, sizeof path, "%s/%s%s", m->name, name, has_file ? "/fp32.pt" : "/");
    heft_folder_listing_add(m->listing, path);
}

/* A folder that cannot be listed is left out: its files are no part of the model so far. */
static void add_entry(void *arg, const char *name, int dir)
{
    module_folder m = { arg, name };
    char folder[NAME_MAX + 2];
    bool is_module = heft_folder_is_module(heft_str_from(name));
    bool is_special = is_module || heft_folder_has_pieces(heft_str_from(name));
    if (!is_special || !is_folder(name, dir)) {
        heft_folder_listing_add(arg, name);
        return;
    }
    snprintf(folder, sizeof folder, "%s/", name);
    heft_folder_listing_add(arg, folder);
    if (heft_folder_is_zero(heft_str_from(name)))
        list_folder(dir, name, "", add_in_zero, &m, NULL);
    if (is_module && ((const heft_folder_listing *)arg)->module_folders <= HEFT_MAX_MODULES)
        list_folder(dir, name, "", add_in_module, &m, NULL);
}

heft_status heft_folder_listing_read(heft_folder_listing *l, const char *path, heft_error *err)
{
    heft_folder_listing_init(l, &heft_libc_allocator);
    return list_folder(AT_FDCWD, path, "the folder cannot be opened", add_entry, l, err);
}
