/* folder.c - a model as a folder: the file in it that stands for the model.
 *
 * The usual names come first, as programs that load such folders have it; else it is the one index, else the
 * one file of weights, where the files of a numbered set count as one: its first. */
#include "port/port.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { NUMBERS = 15 }; /* of "-00001-of-00002" */

static bool ends_with(const char *name, const char *end)
{
    size_t n = strlen(name), m = strlen(end);
    return n > m && !strcmp(name + n - m, end);
}

static bool are_digits(const char *p)
{
    for (int i = 0; i < 5; i++)
        if (p[i] < '0' || p[i] > '9')
            return false;
    return true;
}

/* Where the numbers of a file of a set begin, or NULL: "-00001-of-00002" in front of the suffix. */
static const char *numbers_in(const char *name)
{
    const char *dot = strrchr(name, '.');
    if (!dot || dot - name <= NUMBERS)
        return NULL;
    const char *p = dot - NUMBERS;
    bool is = *p == '-' && are_digits(p + 1) && !memcmp(p + 6, "-of-", 4) && are_digits(p + 10);
    return is ? p : NULL;
}

static bool is_first(const char *name)
{
    const char *numbers = numbers_in(name);
    return !numbers || !memcmp(numbers + 1, "00001", 5);
}

/* What a name says: 0 nothing, then the better the smaller. */
typedef enum rank { NO_WEIGHTS, WEIGHTS, INDEX, USUAL_INDEX, USUAL } rank;

static rank rank_of(const char *name)
{
    static const char index[] = ".safetensors.index.json";
    if (!strcmp(name, "model.safetensors"))
        return USUAL;
    if (!strcmp(name, "model.safetensors.index.json"))
        return USUAL_INDEX;
    if (ends_with(name, index))
        return INDEX;
    return *name != '.' && heft_format_for_path(name) && is_first(name) ? WEIGHTS : NO_WEIGHTS;
}

typedef struct choice {
    rank rank;
    char *name, *other; /* other: of the same rank, so that nobody can tell */
} choice;

static bool take(choice *c, const char *name)
{
    rank r = rank_of(name);
    if (!r || r < c->rank)
        return true;
    char *copy = strdup(name);
    if (!copy)
        return false;
    if (r > c->rank) {
        free(c->name);
        free(c->other);
        *c = (choice){ r, copy, NULL };
        return true;
    }
    bool before = strcmp(copy, c->name) < 0; /* whatever the order of the folder */
    char *spare = before ? c->name : copy;
    c->name = before ? copy : c->name;
    bool second = !c->other || strcmp(spare, c->other) < 0;
    free(second ? c->other : spare);
    c->other = second ? spare : c->other;
    return true;
}

static heft_status look_through(choice *c, DIR *dir, heft_error *err)
{
    const struct dirent *e = NULL;
    bool room = true;
    do {
        errno = 0;
        e = readdir(dir);
        room = !e || take(c, e->d_name);
    } while (e && room);
    if (!room)
        return heft_error_plain(err, HEFT_E_NOMEM, "no memory to look through a folder");
    return errno ? heft_os_error(err, errno, "the folder cannot be read") : HEFT_OK;
}

heft_status heft_folder_entry(char **out, const char *path, heft_error *err)
{
    choice c = { NO_WEIGHTS, NULL, NULL };
    size_t len = strlen(path);
    DIR *dir = opendir(path);
    *out = NULL;
    if (!dir)
        return heft_os_error(err, errno, "the folder cannot be opened");
    heft_status st = look_through(&c, dir, err);
    closedir(dir);
    if (!st && !c.name)
        st = heft_error_plain(err, HEFT_E_IO, "a folder without a file of weights");
    if (!st && c.other)
        st = heft_error_plain(err, HEFT_E_IO,
                              "a folder with several files of weights, %q and %q among them: name "
                              "one of them",
                              (heft_str){ c.name, strlen(c.name) },
                              (heft_str){ c.other, strlen(c.other) });
    if (!st) {
        *out = malloc(len + strlen(c.name) + 2);
        st = *out ? HEFT_OK : heft_error_plain(err, HEFT_E_NOMEM, "no memory for a path");
    }
    if (!st) {
        memcpy(*out, path, len);
        (*out)[len] = '/';
        strcpy(*out + len + (len && path[len - 1] != '/'), c.name);
    }
    free(c.name);
    free(c.other);
    return st;
}

heft_status heft_folder_list(int dir, void (*fn)(void *arg, const char *name), void *arg,
                             heft_error *err)
{
    const struct dirent *e;
    int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    if (!d) {
        int os = errno;
        if (fd >= 0)
            close(fd);
        return heft_os_error(err, os, "the folder cannot be read");
    }
    while ((e = readdir(d)))
        fn(arg, e->d_name);
    closedir(d);
    return HEFT_OK;
}
