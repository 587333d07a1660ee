/* network.c - run a small network on a model in flash memory, without copying a weight.
 *
 * The model has two dense layers: a matrix "dense.N.weight" of f32 with a row for each output, and
 * a vector "dense.N.bias".  Opening the file builds the index in a fixed block of memory; the
 * weights are used where they are in the file.  board_run() prints the outputs, as the bits of
 * floats, and the memory that the index takes. */
#include <heft/heft_ext.h>

#include "board.h"
#include "run_network.h"

enum { MEMORY = 8 << 10 };

/* Open the model, or print the error and return NULL. */
static heft_file *open_model(const heft_host *host)
{
    heft_open_options opt = HEFT_OPEN_OPTIONS_INIT;
    heft_error err;
    heft_file *f = NULL;
    opt.host = host;
    if (heft_file_open_in_place(&f, board_model, board_model_bytes, &opt, &err)) {
        print("error: ");
        print(err.message);
        print("\n");
    }
    return f;
}

int board_run(void)
{
    static _Alignas(16) uint8_t memory[MEMORY];
    heft_arena_memory arena = { memory, sizeof memory, 0, 0 };
    heft_allocator al = heft_arena_allocator(&arena);
    /* No threads, no codecs, no digests except CRC-32 and CRC-32C. */
    heft_host host = { .size = sizeof host, .allocator = &al };
    heft_file *f = open_model(&host);
    if (!f)
        return 1;
    print("tensors ");
    print_number(heft_tensor_count(f));
    print("\n");
    int status = run_network(f);
    heft_file_close(f);
    print("memory ");
    print_number((uint32_t)arena.peak);
    print("\nblock ");
    print_number(sizeof memory);
    print("\n");
    return status;
}
