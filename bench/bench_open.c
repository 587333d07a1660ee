/* open WHAT FILE TIMES - measures time and memory of opening FILE:
 *   Heft    heft_file_open()
 *   find    heft_file_open(), then look up one name and read the first bytes of the tensor
 *   floor   lower bound: sum the bytes of the index, hash each name, write one random slot for
 *           each */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <heft/heft.h>

#include "base/name_hash.h"
#include "bench_measure.h"

static heft_file *open_or_die(const char *path)
{
    heft_error err;
    heft_file *f;
    if (heft_file_open(&f, path, NULL, &err))
        die(path, err.message);
    return f;
}

static void note_file(result *r, heft_file *f)
{
    r->tensors = heft_tensor_count(f);
    r->index = heft_file_memory(f);
    note_memory(r);
    heft_file_close(f);
}

static void run_heft(result *r, const char *path)
{
    double begin = now();
    heft_file *f = open_or_die(path);
    r->seconds = now() - begin;
    note_file(r, f);
}

/* Open the file, find the tensor in the middle by name, read 4 bytes. */
static void run_find(result *r, const char *path)
{
    char name[64], bytes[4];
    heft_file *f = open_or_die(path);
    uint32_t middle = heft_tensor_count(f) / 2;
    heft_str s = heft_tensor_at(f, middle).name;
    int len = snprintf(name, sizeof name, "%.*s", (int)s.len, s.ptr);
    heft_file_close(f);
    double begin = now();
    f = open_or_die(path);
    uint32_t id = heft_tensor_find(f, (heft_str){ name, (size_t)len });
    if (id != middle ||
        heft_part_read(bytes, f, heft_tensor_at(f, id).first_part, 0, sizeof bytes, NULL))
        die(path, "the tensor in the middle was not found");
    r->seconds = now() - begin;
    note_file(r, f);
}

/* ---- lower bound for building an index ---- */

typedef struct name {
    uint64_t at;
    uint32_t len;
} name;

typedef struct names { /* offsets of the names in the file, and the range that contains all */
    name *list;
    uint64_t begin, end;
} names;

static names find_names(const char *path, uint32_t *count)
{
    heft_file *f = open_or_die(path);
    uint32_t part = heft_tensor_at(f, 0).first_part;
    const char *data = heft_part_view(f, part);
    *count = heft_tensor_count(f);
    names n = { malloc((*count + 1ull) * sizeof *n.list), UINT64_MAX, 0 };
    if (!n.list || !data)
        die(path, n.list ? "the first tensor is not mapped" : "no memory");
    const char *base = data - heft_part_at(f, part).offset;
    for (uint32_t i = 0; i < *count; i++) {
        heft_str s = heft_tensor_at(f, i).name;
        uint64_t at = (uint64_t)((uintptr_t)s.ptr - (uintptr_t)base);
        if (at >= heft_file_size(f))
            die(path, "the names are copies, not part of the mapping");
        n.list[i] = (name){ at, (uint32_t)s.len };
        n.begin = at < n.begin ? at : n.begin;
        n.end = at + s.len > n.end ? at + s.len : n.end;
    }
    heft_file_close(f);
    return n;
}

static uint64_t sum_bytes(const uint8_t *p, uint64_t len)
{
    uint64_t sum = 0, eight;
    for (uint64_t i = 0; i + sizeof eight <= len; i += sizeof eight) {
        memcpy(&eight, p + i, sizeof eight);
        sum += eight;
    }
    return sum;
}

static void run_floor(result *r, const char *path)
{
    uint64_t slots = 16;
    names n = find_names(path, &r->tensors);
    while (slots < 2ull * r->tensors)
        slots *= 2;
    double begin = now();
    mapping m = map_file(path);
    uint32_t *table = calloc(slots, sizeof *table);
    uint64_t key[2] = { sum_bytes(m.ptr + n.begin, n.end - n.begin), 1 };
    for (uint32_t i = 0; table && i < r->tensors; i++)
        table[heft_siphash13(key, m.ptr + n.list[i].at, n.list[i].len) & (slots - 1)] = i;
    keep(table);
    r->seconds = now() - begin;
    note_memory(r);
    unmap_file(m);
    free(table);
    free(n.list);
}

static const struct {
    const char *name;
    void (*run)(result *r, const char *path);
} kinds[] = {
    { "heft", run_heft },
    { "find", run_find },
    { "floor", run_floor },
};

int main(int argc, char **argv)
{
    for (size_t k = 0; argc == 4 && k < sizeof kinds / sizeof *kinds; k++)
        if (!strcmp(argv[1], kinds[k].name)) {
            measure(kinds[k].run, argv[2], argv[3]);
            return 0;
        }
    fputs("usage: open heft|find|floor FILE TIMES\n", stderr);
    return 2;
}
