/* main_file.c - choose the file to open for a model's folder.
 *
 * A table lists the names that other programs give to weights, the best first; else the only weight
 * file is chosen, where a numbered set of shards counts as one file, the first shard.  Safetensors
 * files win over the names of PyTorch.  The latter win over other files, since a folder of PyTorch
 * weights often holds other files of a training run. */
#include "base/text.h"
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

static bool matches(const char *name, const char *pattern)
{
    return heft_glob(heft_str_from(pattern), heft_str_from(name));
}

/* Names of weight files, the best first: docs/shards.md. */
static const struct preference {
    const char *pattern;
    bool is_torch;
} preferences[] = {
    { "model.safetensors", false },
    { "model.safetensors.index.json", false },
    { "diffusion_pytorch_model.safetensors", false },
    { "diffusion_pytorch_model.safetensors.index.json", false },
    { "consolidated.safetensors", false },
    { "consolidated.safetensors.index.json", false },
    { "adapter_model.safetensors", false },
    { "*.safetensors.index.json", false },
    { "*.safetensors.index.*.json", false },
    { "pytorch_model.bin", true },
    { "pytorch_model.bin.index.json", true },
    { "diffusion_pytorch_model.bin", true },
    { "diffusion_pytorch_model.bin.index.json", true },
    { "consolidated.pth", true },
    { "consolidated.*.pth", true },
    { "adapter_model.bin", true },
    { "*.bin.index.json", true },
    { "*.bin.index.*.json", true },
};
static const char adapter[] = "adapter_model.safetensors";

/* The preference of a name, the highest is chosen; the rows of the table come before the others. */
enum {
    NO_WEIGHTS,
    UNKNOWN_WEIGHTS, /* a suffix of many formats */
    WEIGHTS,         /* the suffix of a format */
    LAST_PREFERENCE,
    PREFERENCES = sizeof preferences / sizeof *preferences,
    BEST = LAST_PREFERENCE + PREFERENCES - 1
};
typedef int rank;

static const struct preference *preference_of(rank r)
{
    return r < LAST_PREFERENCE ? NULL : &preferences[BEST - r];
}

static bool is_torch(rank r)
{
    const struct preference *p = preference_of(r);
    return p && p->is_torch;
}

/* Files that are not weights in a format of Heft.  format NULL: not the weights of a model. */
static const struct {
    const char *pattern, *format;
} other_files[] = {
    { "training_args.bin", NULL },
    { "optimizer.bin", NULL },
    { "scheduler.bin", NULL },
    { "*.onnx", "ONNX" },
    { "flax_model*.msgpack", "Flax" },
    { "tf_model*.h5", "TensorFlow" },
    { "saved_model.pb", "TensorFlow" },
    { "*.ckpt.index", "TensorFlow" },
    { "*.tflite", "TensorFlow Lite" },
    { "*.h5", "Keras" },
    { "*.keras", "Keras" },
    { "openvino_model*.xml", "OpenVINO" },
    { "openvino_model*.bin", "OpenVINO" },
    { "*.mlmodel", "Core ML" },
    { "*.pdparams", "PaddlePaddle" },
    { "*.nemo", "NeMo" },
};
enum { OTHER_FILES = sizeof other_files / sizeof *other_files };

/* Return the row of a file that Heft does not read, or OTHER_FILES. */
static size_t find_other(const char *name)
{
    size_t i = 0;
    while (i < OTHER_FILES && !matches(name, other_files[i].pattern))
        i++;
    return i;
}

/* Return the preference of a name, whether or not this build reads the format. */
static rank rank_of(const char *name)
{
    if (*name == '.')
        return NO_WEIGHTS;
    for (int i = 0; i < PREFERENCES; i++)
        if (matches(name, preferences[i].pattern))
            return BEST - i;
    const char *numbering = find_numbering(name);
    bool is_first = !numbering || !memcmp(numbering + 1, "00001", 5);
    if (!is_first)
        return NO_WEIGHTS;
    if (heft_format_for_path(name))
        return WEIGHTS;
    bool is_unknown = ends_with(name, ".bin") || ends_with(name, ".ckpt");
    return is_unknown && !numbering && heft_format_find(HEFT_STR("torch")) ? UNKNOWN_WEIGHTS
                                                                           : NO_WEIGHTS;
}

typedef struct candidates {
    rank rank;
    char **names; /* all names of that rank */
    size_t count, capacity;
    rank best_torch;     /* highest rank of a PyTorch name found */
    bool has_adapter;    /* an adapter in safetensors format was found */
    char unreadable[64]; /* a weight file that this build does not read; empty: none */
    const char *unreadable_format;
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

static void note_unreadable(candidates *c, const char *name, const char *format)
{
    size_t len = strlen(name), shown = len < sizeof c->unreadable ? len : sizeof c->unreadable - 1;
    memcpy(c->unreadable, name, shown);
    c->unreadable[shown] = '\0';
    c->unreadable_format = format;
}

/* Return the preference of a name, or NO_WEIGHTS for a file that this build does not read. */
static rank readable_rank(candidates *c, const char *name)
{
    size_t other = *name == '.' ? OTHER_FILES : find_other(name);
    rank r = c->has_no_memory || other < OTHER_FILES ? NO_WEIGHTS : rank_of(name);
    if (other < OTHER_FILES && other_files[other].format)
        note_unreadable(c, name, other_files[other].format);
    if (!is_torch(r) || heft_format_find(HEFT_STR("torch")))
        return r;
    note_unreadable(c, name, "PyTorch");
    return NO_WEIGHTS;
}

static void consider_name(void *arg, const char *name)
{
    candidates *c = arg;
    rank r = readable_rank(c, name);
    c->has_adapter = c->has_adapter || !strcmp(name, adapter);
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
    bool is_listing = ends_with(index, ".safetensors.index.json") ||
                      ends_with(index, ".bin.index.json") ||
                      matches(index, "*.safetensors.index.*.json") ||
                      matches(index, "*.bin.index.*.json");
    return is_listing || is_numbered_shard_of(name, index);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The names are sorted, so that the message does not depend on the order of the directory. */
static void report_several(candidates *c, heft_error *err)
{
    heft_str name[3] = { { "", 0 }, { "", 0 }, { "", 0 } };
    qsort(c->names, c->count, sizeof *c->names, by_name);
    for (size_t i = 0; i < c->count && i < 3; i++)
        name[i] = (heft_str){ c->names[i], strlen(c->names[i]) };
    if (c->count == 2)
        heft_error_plain(err, HEFT_E_IO,
                         "the folder has several weight files, %q and %q: name one of them",
                         name[0], name[1]);
    else
        heft_error_plain(err, HEFT_E_IO,
                         "the folder has %U weight files, among them %q, %q and %q: name one of "
                         "them",
                         (uint64_t)c->count, name[0], name[1], name[2]);
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
        report_several(c, err);
        return NULL;
    }
    return c->names[root];
}

static heft_status report_none(const candidates *c, heft_error *err)
{
    if (!*c->unreadable)
        return heft_error_plain(err, HEFT_E_IO, "the folder has no weight file");
    return heft_error_plain(
        err, HEFT_E_UNSUPPORTED,
        "the folder has no weight file that this build reads: %q is a file of %s",
        (heft_str){ c->unreadable, strlen(c->unreadable) }, c->unreadable_format);
}

/* Return the name of weights of the model that were not chosen, or NULL. */
static const char *find_passed_over(const candidates *c)
{
    const struct preference *torch = preference_of(c->best_torch), *chosen = preference_of(c->rank);
    bool is_before = (c->has_safetensors || (chosen && !chosen->is_torch)) && !is_torch(c->rank);
    if (is_before && torch && !strchr(torch->pattern, '*'))
        return torch->pattern;
    return c->has_adapter && chosen && strcmp(chosen->pattern, adapter) != 0 ? adapter : NULL;
}

static heft_status list_path(void *ctx, void (*fn)(void *arg, const char *name), void *arg,
                             heft_error *err)
{
    return list_folder(AT_FDCWD, ctx, "the folder cannot be opened", fn, arg, err);
}

static heft_status collect_candidates(candidates *c, heft_name_lister *list, void *ctx,
                                      heft_error *err)
{
    heft_status st = list(ctx, consider_name, c, err);
    return c->has_no_memory ? heft_error_no_memory(err, "to list a folder") : st;
}

heft_status heft_names_main_file(char **out, const char **passed_over, heft_name_lister *list,
                                 void *ctx, heft_error *err)
{
    candidates c = { .rank = NO_WEIGHTS };
    *out = NULL;
    heft_status st = collect_candidates(&c, list, ctx, err);
    if (!st && is_torch(c.rank) && c.has_safetensors) {
        clear_names(&c);
        c.rank = NO_WEIGHTS;
        c.ignores_torch = true;
        st = collect_candidates(&c, list, ctx, err);
    }
    *passed_over = find_passed_over(&c);
    if (!st && !c.count)
        st = report_none(&c, err);
    const char *name = st ? NULL : choose_main_file(&c, err);
    if (!st && !name)
        st = HEFT_E_IO;
    if (!st) {
        *out = strdup(name);
        st = *out ? HEFT_OK : heft_error_no_memory(err, "for a path");
    }
    clear_names(&c);
    free(c.names);
    return st;
}

heft_status heft_folder_main_file(char **out, const char **passed_over, const char *path,
                                  heft_error *err)
{
    char *name;
    size_t len = strlen(path);
    heft_status st = heft_names_main_file(&name, passed_over, list_path, (void *)(uintptr_t)path,
                                          err);
    *out = st ? NULL : malloc(len + strlen(name) + 2);
    if (!st && !*out)
        st = heft_error_no_memory(err, "for a path");
    if (!st) { /* The path is not empty: it has been opened. */
        memcpy(*out, path, len);
        (*out)[len] = '/';
        strcpy(*out + len + (path[len - 1] != '/'), name);
    }
    free(name);
    return st;
}
