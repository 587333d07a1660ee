/* board.c - read a model in flash memory on a board without an operating system.
 *
 * The model file (Burnpack, or any format that the library was built with) is linked into the
 * program as an array.  Opening the file uses at most 64 KiB of static memory; tensors are used in
 * place. board_run() prints a line for each tensor and returns 0 if the file has no faults.
 *
 * The board supplies board_model, board_print(), memcpy, memmove, memset and memcmp.  Build the
 * library with `meson setup build -Dport=none`, and link with the static libheft.a.
 * tools/check_board.py builds and runs this program without a C library. */
#include <heft/heft_ext.h>

extern const uint8_t board_model[];
extern const size_t board_model_bytes;
void board_print(const char *text, size_t len);
int board_run(void);

enum { MEMORY = 64 << 10 };

/* ---- printing ---- */

static void print(const char *text)
{
    size_t len = 0;
    while (text[len])
        len++;
    board_print(text, len);
}

static void print_number(uint64_t v)
{
    char digits[20];
    size_t at = sizeof digits;
    uint32_t low = (uint32_t)v; /* a 64-bit division would need a run-time library on 32-bit CPUs */
    if (v > UINT32_MAX) {
        print("more than 4294967295");
        return;
    }
    do {
        digits[--at] = (char)('0' + low % 10);
        low /= 10;
    } while (low);
    board_print(digits + at, sizeof digits - at);
}

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
        print_number(t.dims[i]);
    }
    print(" at ");
    print_number(p.offset);
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

/* The host has an allocator only: no threads, no codecs, no digests except CRC-32 and CRC-32C. */
static heft_status open_model(heft_file **out, const heft_host *host, heft_error *err)
{
    heft_open_options opt = HEFT_OPEN_OPTIONS_INIT;
    opt.host = host;
    heft_status st = heft_file_begin(out, board_model_bytes, &opt, err);
    if (!st)
        st = heft_file_feed(*out, 0, board_model, board_model_bytes,
                            err); /* borrowed, not copied */
    return st ? st : heft_file_step(*out, err);
}

int board_run(void)
{
    static _Alignas(64) uint8_t memory[MEMORY];
    heft_arena_memory arena = { memory, sizeof memory, 0, 0 };
    heft_allocator al = heft_arena_allocator(&arena);
    heft_host host = { .size = sizeof host, .allocator = &al };
    heft_verify_result found;
    heft_error err;
    heft_file *f = NULL;
    if (open_model(&f, &host, &err))
        return fail(&err);
    for (uint32_t id = 0; id < heft_tensor_count(f); id++)
        print_tensor(f, id);
    if (heft_file_verify(&found, f, NULL, &err))
        return fail(&err);
    print_number(found.faults);
    print(" faults, ");
    print_number(arena.peak);
    print(" bytes of memory\n");
    heft_file_close(f);
    return found.faults != 0;
}
