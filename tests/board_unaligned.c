/* board_unaligned.c - a program for a board that reads a number from an odd address: cortex_m.c
 * makes the processor fault. */
#include "board.h"

int board_run(void)
{
    static _Alignas(8) const uint8_t bytes[8] = { 1 };
    const void *volatile odd = bytes + 1; /* volatile: the compiler must not see the address */
    print_number(*(const volatile uint32_t *)odd);
    return 0;
}
