/* fuzz_mutator.c - mutation of models for libFuzzer: mutate bytes and repair checksums, or let the
 * library rewrite the model with other names, types and metadata, so that lengths stay right. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz_repair.h"
#include "fuzz_request.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);

/* Print the size of the script and end, for the program that makes seeds. */
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    if (*argc == 2 && !strcmp((*argv)[1], "--script-bytes")) {
        printf("%zu\n", fuzz_this.script_bytes);
        exit(0);
    }
    return 0;
}

/* Replace the model by a conversion of the model, to the same format or to any other; return 0 if
 * that is not possible. */
static size_t rewrite(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    uint8_t choices[FUZZ_SCRIPT];
    fuzz_script s = { choices, sizeof choices, 0 };
    fuzz_memory m;
    fuzz_request r;
    fuzz_bytes bytes = { .ptr = NULL };
    for (size_t i = 0; i < sizeof choices; i++, seed = seed * 1103515245u + 12345u)
        choices[i] = (uint8_t)(seed >> 16);
    fuzz_memory_init(&m, UINT32_MAX);
    heft_file *f = fuzz_open_model(&m.host, data, size);
    const heft_format *to = f ? heft_file_format(f) : NULL;
    if (to && (!(heft_format_caps(to) & HEFT_CAN_WRITE) || fuzz_next(&s) % 4 == 0))
        to = fuzz_writable(fuzz_next(&s));
    if (to) {
        fuzz_request_init(&r, &m.host, to, &s);
        r.opt.no_verify = true;
    }
    bool is_written = to && !heft_file_convert(f, to, fuzz_sink(&bytes), &r.opt, NULL) &&
                      bytes.len <= max_size;
    if (is_written)
        memcpy(data, bytes.ptr, bytes.len);
    heft_file_close(f);
    free(bytes.ptr);
    return is_written ? bytes.len : 0;
}

/* Mutate a model of `size` bytes with a script behind it. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    uint8_t script[64];
    size_t len = fuzz_this.script_bytes, model = size, room = max_size - len, mutated = 0;
    if (!fuzz_this.takes_models || size < len || max_size < len || len > sizeof script)
        return LLVMFuzzerMutate(data, size, max_size);
    model -= len;
    memcpy(script, data + model, len);
    if (len && seed % 4 == 0)
        LLVMFuzzerMutate(script, len, len);
    if (seed % 16 == 1)
        mutated = rewrite(data, model, room, seed / 16);
    if (!mutated && !(len && seed % 8 == 0))
        mutated = LLVMFuzzerMutate(data, model, room);
    model = mutated ? mutated : model;
    if (seed / 16 % 2)
        fuzz_repair(data, model);
    memcpy(data + model, script, len);
    return model + len;
}
