/* main_file.c - choose the file to open for a model's folder.
 *
 * Canonical names such as model.safetensors win, as in other programs that load such folders; else
 * the only index; else the only weight file, where a numbered set of shards counts as one file, the
 * first shard.  Safetensors files win over PyTorch's canonical names.  The latter win over other
 * files, since a folder of PyTorch weights often holds other files of a training run. */
#include "port/port.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static heft_status list_folder(int dir, const char *path, const char *open_error,
                               void (*fn)(void *arg, const char *name), void *arg, heft_error *err)
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
            fn(arg, e->d_name);
    } while (e);
    closedir(d);
    return os ? heft_os_error(err, os, "the folder cannot be read") : HEFT_OK;
}

heft_status heft_folder_list(int dir, void (*fn)(void *arg, const char *name), void *arg,
                             heft_error *err)
{
    return list_folder(dir, ".", "the folder cannot be read", fn, arg, err);
}

enum { NUMBERING_LENGTH = 15 }; /* strlen("-00001-of-00002") */

static bool ends_with(const char *name, const char *suffix)
{
    size_t n = strlen(name), m = strlen(suffix);
    return n > m && !strcmp(name + n - m, suffix);
}

static bool are_digits(const char *p)
{
    for (int i = 0; i < 5; i++)
        if (p[i] < '0' || p[i] > '9')
            return false;
    return true;
}

/* Return the start of a shard's numbering, "-00001-of-00002" before the suffix, or NULL. */
static const char *find_numbering(const char *name)
{
    const char *dot = strrchr(name, '.');
    if (!dot || dot - name <= NUMBERING_LENGTH)
        return NULL;
    const char *p = dot - NUMBERING_LENGTH;
    bool is_numbering = *p == '-' && are_digits(p + 1) && !memcmp(p + 6, "-of-", 4) &&
                        are_digits(p + 10);
    return is_numbering ? p : NULL;
}

/* Preference of a file name, the highest is chosen. */
typedef enum rank {
    NO_WEIGHTS,
    WEIGHTS,
    TORCH_INDEX,
    CANONICAL_TORCH_INDEX,
    CANONICAL_TORCH,
    INDEX,
    CANONICAL_INDEX,
    CANONICAL
} rank;

static const char index_suffix[] = ".safetensors.index.json",
                  torch_index_suffix[] = ".bin.index.json";

static bool is_torch(rank r)
{
    return r >= TORCH_INDEX && r <= CANONICAL_TORCH;
}

static rank rank_of(const char *name)
{
    static const struct {
        const char *name;
        rank rank;
    } canonical[] = { { "model.safetensors", CANONICAL },
                      { "model.safetensors.index.json", CANONICAL_INDEX },
                      { "pytorch_model.bin", CANONICAL_TORCH },
                      { "pytorch_model.bin.index.json", CANONICAL_TORCH_INDEX } };
    for (size_t i = 0; i < sizeof canonical / sizeof *canonical; i++)
        if (!strcmp(name, canonical[i].name))
            return heft_format_find(is_torch(canonical[i].rank) ? "torch" : "safetensors")
                       ? canonical[i].rank
                       : NO_WEIGHTS;
    if (ends_with(name, index_suffix))
        return INDEX;
    if (ends_with(name, torch_index_suffix) && heft_format_find("torch"))
        return TORCH_INDEX;
    const char *numbering = find_numbering(name);
    bool is_first = !numbering || !memcmp(numbering + 1, "00001", 5);
    return *name != '.' && is_first && heft_format_for_path(name) ? WEIGHTS : NO_WEIGHTS;
}

typedef struct candidates {
    rank rank;
    char **names; /* all names of that rank */
    size_t count, capacity;
    rank best_torch;      /* highest rank of a PyTorch name found */
    bool has_safetensors; /* a weight file in safetensors format was found */
    bool ignores_torch;   /* do not consider PyTorch's canonical names and indices */
    bool has_no_memory;
} candidates;

static void clear_names(candidates *c)
{
    for (size_t i = 0; i < c->count; i++)
        free(c->names[i]);
    c->count = 0;
}

static void consider_name(void *arg, const char *name)
{
    candidates *c = arg;
    rank r = c->has_no_memory ? NO_WEIGHTS : rank_of(name);
    if (is_torch(r) && r > c->best_torch)
        c->best_torch = r;
    if (r && ends_with(name, ".safetensors"))
        c->has_safetensors = true;
    if (!r || r < c->rank || (c->ignores_torch && is_torch(r)))
        return;
    if (r > c->rank)
        clear_names(c);
    c->rank = r;
    size_t capacity = c->count < c->capacity ? c->capacity : 2 * c->capacity + 16;
    char **names = capacity == c->capacity ? c->names : realloc(c->names, capacity * sizeof *names);
    char *copy = names ? strdup(name) : NULL;
    c->has_no_memory = !copy;
    if (!names)
        return;
    c->names = names;
    c->capacity = capacity;
    if (copy)
        names[c->count++] = copy;
}

/* Return true for a name such as "model-1.zt" if the root is "model.zt". */
static bool is_numbered_shard_of(const char *name, const char *root)
{
    const char *dot = strrchr(root, '.');
    size_t stem = dot ? (size_t)(dot - root) : 0;
    return stem && !strncmp(name, root, stem) && name[stem] == '-' && ends_with(name, dot);
}

bool heft_folder_may_be_index_of(const char *index, const char *name)
{
    return ends_with(index, index_suffix) || ends_with(index, torch_index_suffix) ||
           is_numbered_shard_of(name, index);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Return the name whose numbered shards are all the other names; NULL if there is none. */
static const char *choose_main_file(candidates *c, heft_error *err)
{
    size_t root = 0;
    for (size_t i = 1; i < c->count; i++)
        if (strlen(c->names[i]) < strlen(c->names[root]))
            root = i;
    for (size_t i = 0; i < c->count; i++) {
        if (i == root || is_numbered_shard_of(c->names[i], c->names[root]))
            continue;
        qsort(c->names, c->count, sizeof *c->names,
              by_name); /* independent of the directory's order */
        heft_error_plain(err, HEFT_E_IO,
                         "the folder has several weight files, among them %q and %q: name one of "
                         "them",
                         (heft_str){ c->names[0], strlen(c->names[0]) },
                         (heft_str){ c->names[1], strlen(c->names[1]) });
        return NULL;
    }
    return c->names[root];
}

static heft_status collect_candidates(candidates *c, const char *path, heft_error *err)
{
    heft_status st = list_folder(AT_FDCWD, path, "the folder cannot be opened", consider_name, c,
                                 err);
    return c->has_no_memory ? heft_error_no_memory(err, "to list a folder") : st;
}

heft_status heft_folder_main_file(char **out, const char **passed_over, const char *path,
                                  heft_error *err)
{
    candidates c = { .rank = NO_WEIGHTS };
    size_t len = strlen(path);
    *out = NULL;
    heft_status st = collect_candidates(&c, path, err);
    if (!st && is_torch(c.rank) && c.has_safetensors) {
        clear_names(&c);
        c.rank = NO_WEIGHTS;
        c.ignores_torch = true;
        st = collect_candidates(&c, path, err);
    }
    bool ignores_torch = (c.has_safetensors || c.rank >= INDEX) && !is_torch(c.rank);
    *passed_over = NULL;
    if (ignores_torch && c.best_torch == CANONICAL_TORCH)
        *passed_over = "pytorch_model.bin";
    if (ignores_torch && c.best_torch == CANONICAL_TORCH_INDEX)
        *passed_over = "pytorch_model.bin.index.json";
    if (!st && !c.count)
        st = heft_error_plain(err, HEFT_E_IO, "the folder has no weight file");
    const char *name = st ? NULL : choose_main_file(&c, err);
    if (!st && !name)
        st = HEFT_E_IO;
    if (!st) {
        *out = malloc(len + strlen(name) + 2);
        st = *out ? HEFT_OK : heft_error_no_memory(err, "for a path");
    }
    if (!st) { /* The path is not empty: it has been opened. */
        memcpy(*out, path, len);
        (*out)[len] = '/';
        strcpy(*out + len + (path[len - 1] != '/'), name);
    }
    clear_names(&c);
    free(c.names);
    return st;
}
