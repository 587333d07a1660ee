/* amalgamated.c - list and hash a model with the library or with heft_core.c.  The program
 * is C and C++; HEADER is heft/all.h or heft_core.h.
 *
 * usage: amalgamated MODEL; prints tensors, the number of faults, and the hash of the model. */
#include HEADER
#include <stdio.h>
#include <stdlib.h>

enum { MEMORY = 4 << 20, MAX_TENSORS = 64 };

static void print_tensor(const heft_file *f, uint32_t id)
{
    heft_tensor t = heft_tensor_at(f, id);
    heft_part p = heft_part_at(f, t.first_part);
    const heft_dtype_info *type = heft_dtype_get(t.dtype);
    printf("%.*s %s", (int)t.name.len, t.name.ptr, type ? type->name : "bytes");
    for (uint32_t i = 0; i < t.rank; i++)
        printf("%c%lu", i ? 'x' : ' ', (unsigned long)t.dims[i]);
    printf(" at %lu\n", (unsigned long)p.offset);
}

static heft_status print_model(heft_file *f, heft_error *err)
{
    heft_verify_result found;
    heft_hash hash = { { 0 } }, hashes[MAX_TENSORS];
    for (uint32_t id = 0; id < heft_tensor_count(f); id++)
        print_tensor(f, id);
    heft_status st = heft_file_verify(&found, f, NULL, err);
    if (!st && heft_tensor_count(f) <= MAX_TENSORS)
        st = heft_file_hash(&hash, hashes, f, NULL, NULL, err);
    if (st)
        return st;
    printf("%lu faults, ", (unsigned long)found.faults);
    for (size_t i = 0; i < sizeof hash.bytes; i++)
        printf("%02x", hash.bytes[i]);
    printf("\n");
    return HEFT_OK;
}

static heft_status open_bytes(heft_file **out, const void *bytes, size_t len, const heft_host *host,
                              heft_error *err)
{
    heft_open_options opt = HEFT_OPEN_OPTIONS_INIT;
    opt.host = host;
    heft_status st = heft_file_begin(out, len, &opt, err);
    if (!st)
        st = heft_file_feed(*out, 0, bytes, len, err);
    return st ? st : heft_file_step(*out, err);
}

int main(int argc, char **argv)
{
    static uint8_t bytes[MEMORY], memory[MEMORY];
    heft_arena_memory arena = { memory, sizeof memory, 0, 0 };
    heft_allocator allocator = heft_arena_allocator(&arena);
    heft_host host = { sizeof host, &allocator, NULL, NULL, NULL, NULL, NULL, NULL };
    heft_file *file = NULL;
    heft_error err;
    FILE *in = argc == 2 ? fopen(argv[1], "rb") : NULL;
    if (!in)
        return 2;
    size_t len = fread(bytes, 1, sizeof bytes, in);
    fclose(in);
    heft_status st = open_bytes(&file, bytes, len, &host, &err);
    if (!st)
        st = print_model(file, &err);
    if (st)
        printf("error: %s\n", err.message);
    heft_file_close(file);
    return st != HEFT_OK;
}
