/* print.c - prints text and numbers with the board's function. */
#include "board.h"

void print(const char *text)
{
    size_t len = 0;
    while (text[len])
        len++;
    board_print(text, len);
}

void print_number(uint32_t v)
{
    char digits[10];
    size_t at = sizeof digits;
    do {
        digits[--at] = (char)('0' + v % 10);
        v /= 10;
    } while (v);
    board_print(digits + at, sizeof digits - at);
}
