/* board_i386.c - Linux on i386 as a board without an operating system: entry point, two system
 * calls. */
#include <stddef.h>

int board_run(void);
void board_print(const char *text, size_t len);
_Noreturn void board_start(void);

enum { WRITE = 4, EXIT = 1 };

static long call(long number, long a, long b, long c)
{
    long result;
    __asm__ volatile("int $0x80" : "=a"(result) : "a"(number), "b"(a), "c"(b), "d"(c) : "memory");
    return result;
}

void board_print(const char *text, size_t len)
{
    call(WRITE, 1, (long)text, (long)len);
}

_Noreturn void board_start(void)
{
    for (long code = board_run();;)
        call(EXIT, code, 0, 0);
}

/* Align the stack as the calling convention requires. */
__asm__(".globl _start\n"
        "_start:\n"
        "  andl $-16, %esp\n"
        "  call board_start\n");
