/* board_x86_64.c - Linux on x86-64 as a board without an operating system: entry point, two system
 * calls. */
#include <stddef.h>

int board_run(void);
void board_print(const char *text, size_t len);
_Noreturn void board_start(void);

enum { WRITE = 1, EXIT = 60 };

static long call(long number, long a, long b, long c)
{
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c)
                     : "rcx", "r11", "memory");
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
        "  andq $-16, %rsp\n"
        "  call board_start\n");
