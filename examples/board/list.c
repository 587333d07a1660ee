/* list.c - list a model in flash memory on a board without an operating system.
 *
 * Opening the file uses at most 64 KiB of static memory; tensors are used in place.  board_run()
 * prints a line for each tensor and returns 0 if the file has no faults. */
#include <heft/check.h>
#include <heft/heft_ext.h>

#include "board.h"

enum { MEMORY = 64 << 10 };

static void print_tensor(const heft_file *f, uint32_t id)
{
    heft_tensor t = heft_tensor_at(f, id);
    heft_part p = heft_part_at(f, t.first_part);
    const heft_dtype_info *type = heft_dtype_get(t.dtype);
    const uint8_t *data = heft_part_view(f, t.first_part);
    uint32_t sum = 0; /* stands for the real use of the data */
    for (size_t i = 0; data && i < (size_t)p.length; i++)
        sum = sum * 31 + data[i];
    board_print(t.name.ptr, t.name.len);
    print(" ");
    print(type ? type->name : "bytes");
    for (uint32_t i = 0; i < t.rank; i++) {
        print(i ? "x" : " ");
        print_number((uint32_t)t.dims[i]);
    }
    print(" at ");
    print_number((uint32_t)p.offset);
    print(" sum ");
    print_number(sum);
    print("\n");
}

/* ---- opening ---- */

static int fail(const heft_error *err)
{
    print("error: ");
    print(err->message);
    print("\n");
    return 1;
}

int board_run(void)
{
    static _Alignas(64) uint8_t memory[MEMORY];
    heft_arena_memory arena = { memory, sizeof memory, 0, 0 };
    heft_allocator al = heft_arena_allocator(&arena);
    /* No threads, no codecs, no digests except CRC-32 and CRC-32C. */
    heft_host host = { .size = sizeof host, .allocator = &al };
    heft_open_options opt = HEFT_OPEN_OPTIONS_INIT;
    heft_verify_result found;
    heft_error err;
    heft_file *f = NULL;
    opt.host = &host;
    if (heft_file_open_in_place(&f, board_model, board_model_bytes, &opt, &err))
        return fail(&err);
    for (uint32_t id = 0; id < heft_tensor_count(f); id++)
        print_tensor(f, id);
    if (heft_file_verify(&found, f, NULL, &err))
        return fail(&err);
    print_number(found.faults);
    print(" faults, ");
    print_number((uint32_t)arena.peak);
    print(" bytes of memory\n");
    heft_file_close(f);
    return found.faults != 0;
}
