/* main_file.c - a model as a folder: the file in it that stands for the model.
 *
 * The usual names come first, as programs that load such folders have it; else it is the one index, else the
 * one file of weights, where the files of a numbered set count as one: its first.  Safetensors come before
 * PyTorch's files of the usual names, which come before other files: beside them lie those of a training run. */
#include "port/port.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static heft_status list(int dir, const char *path, const char *not_opened,
                        void (*fn)(void *arg, const char *name), void *arg, heft_error *err)
{
    const struct dirent *e;
    int fd = heft_open_at(dir, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    int os = errno;
    if (!d && fd >= 0)
        close(fd);
    if (!d)
        return heft_os_error(err, os, not_opened);
    do {
        errno = 0;
        e = readdir(d);
        os = errno;
        if (e)
            fn(arg, e->d_name);
    } while (e);
    closedir(d);
    return os ? heft_os_error(err, os, "the folder cannot be read") : HEFT_OK;
}

heft_status heft_folder_list(int dir, void (*fn)(void *arg, const char *name), void *arg,
                             heft_error *err)
{
    return list(dir, ".", "the folder cannot be read", fn, arg, err);
}

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

/* What a name says, the more the better. */
typedef enum rank {
    NO_WEIGHTS,
    WEIGHTS,
    TORCH_INDEX,
    USUAL_TORCH_INDEX,
    USUAL_TORCH,
    INDEX,
    USUAL_INDEX,
    USUAL
} rank;

static const char index_suffix[] = ".safetensors.index.json",
                  torch_index_suffix[] = ".bin.index.json";

static bool is_of_torch(rank r)
{
    return r >= TORCH_INDEX && r <= USUAL_TORCH;
}

static rank rank_of(const char *name)
{
    static const struct {
        const char *name;
        rank rank;
    } usual[] = { { "model.safetensors", USUAL },
                  { "model.safetensors.index.json", USUAL_INDEX },
                  { "pytorch_model.bin", USUAL_TORCH },
                  { "pytorch_model.bin.index.json", USUAL_TORCH_INDEX } };
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++)
        if (!strcmp(name, usual[i].name))
            return heft_format_find(is_of_torch(usual[i].rank) ? "torch" : "safetensors")
                       ? usual[i].rank
                       : NO_WEIGHTS;
    if (ends_with(name, index_suffix))
        return INDEX;
    if (ends_with(name, torch_index_suffix) && heft_format_find("torch"))
        return TORCH_INDEX;
    const char *numbers = numbers_in(name);
    bool is_first = !numbers || !memcmp(numbers + 1, "00001", 5);
    return *name != '.' && is_first && heft_format_for_path(name) ? WEIGHTS : NO_WEIGHTS;
}

typedef struct choice {
    rank rank;
    char **names; /* of that rank */
    size_t count, room;
    rank torch;        /* the best of PyTorch's names that was met */
    bool safetensors;  /* some file of weights is one of safetensors */
    bool passes_torch; /* PyTorch's files of the usual names do not count */
    bool has_no_memory;
} choice;

static void forget(choice *c)
{
    for (size_t i = 0; i < c->count; i++)
        free(c->names[i]);
    c->count = 0;
}

static void take(void *arg, const char *name)
{
    choice *c = arg;
    rank r = c->has_no_memory ? NO_WEIGHTS : rank_of(name);
    if (is_of_torch(r) && r > c->torch)
        c->torch = r;
    if (r && ends_with(name, ".safetensors"))
        c->safetensors = true;
    if (!r || r < c->rank || (c->passes_torch && is_of_torch(r)))
        return;
    if (r > c->rank)
        forget(c);
    c->rank = r;
    size_t room = c->count < c->room ? c->room : 2 * c->room + 16;
    char **names = room == c->room ? c->names : realloc(c->names, room * sizeof *names);
    char *copy = names ? strdup(name) : NULL;
    c->has_no_memory = !copy;
    if (!names)
        return;
    c->names = names;
    c->room = room;
    if (copy)
        names[c->count++] = copy;
}

/* "model-1.zt" belongs to "model.zt". */
static bool belongs_to(const char *name, const char *root)
{
    const char *dot = strrchr(root, '.');
    size_t stem = dot ? (size_t)(dot - root) : 0;
    return stem && !strncmp(name, root, stem) && name[stem] == '-' && ends_with(name, dot);
}

bool heft_folder_may_list(const char *index, const char *name)
{
    return ends_with(index, index_suffix) || ends_with(index, torch_index_suffix) ||
           belongs_to(name, index);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The one to which all others belong; it is among the shortest. */
static const char *choose(choice *c, heft_error *err)
{
    size_t root = 0;
    for (size_t i = 1; i < c->count; i++)
        if (strlen(c->names[i]) < strlen(c->names[root]))
            root = i;
    for (size_t i = 0; i < c->count; i++) {
        if (i == root || belongs_to(c->names[i], c->names[root]))
            continue;
        qsort(c->names, c->count, sizeof *c->names, by_name); /* whatever the folder's order */
        heft_error_plain(err, HEFT_E_IO,
                         "a folder with several files of weights, %q and %q among them: name one "
                         "of them",
                         (heft_str){ c->names[0], strlen(c->names[0]) },
                         (heft_str){ c->names[1], strlen(c->names[1]) });
        return NULL;
    }
    return c->names[root];
}

static heft_status collect(choice *c, const char *path, heft_error *err)
{
    heft_status st = list(AT_FDCWD, path, "the folder cannot be opened", take, c, err);
    return c->has_no_memory ? heft_error_no_memory(err, "to look through a folder") : st;
}

heft_status heft_folder_entry(char **out, const char **passed, const char *path, heft_error *err)
{
    choice c = { .rank = NO_WEIGHTS };
    size_t len = strlen(path);
    *out = NULL;
    heft_status st = collect(&c, path, err);
    if (!st && is_of_torch(c.rank) && c.safetensors) {
        forget(&c);
        c.rank = NO_WEIGHTS;
        c.passes_torch = true;
        st = collect(&c, path, err);
    }
    bool passes_torch = (c.safetensors || c.rank >= INDEX) && !is_of_torch(c.rank);
    *passed = NULL;
    if (passes_torch && c.torch == USUAL_TORCH)
        *passed = "pytorch_model.bin";
    if (passes_torch && c.torch == USUAL_TORCH_INDEX)
        *passed = "pytorch_model.bin.index.json";
    if (!st && !c.count)
        st = heft_error_plain(err, HEFT_E_IO, "a folder without a file of weights");
    const char *name = st ? NULL : choose(&c, err);
    if (!st && !name)
        st = HEFT_E_IO;
    if (!st) {
        *out = malloc(len + strlen(name) + 2);
        st = *out ? HEFT_OK : heft_error_no_memory(err, "for a path");
    }
    if (!st) {
        memcpy(*out, path, len);
        (*out)[len] = '/';
        strcpy(*out + len + (len && path[len - 1] != '/'), name);
    }
    forget(&c);
    free(c.names);
    return st;
}
