/* board.h - what the programs of this folder expect from a board: the model in memory and a
 * function that prints.  A board also supplies memcpy, memmove, memset and memcmp (memory.c). */
#ifndef BOARD_H
#define BOARD_H
#include <stddef.h>
#include <stdint.h>

/* The model file, aligned to 64 bytes. */
extern const uint8_t board_model[];
extern const size_t board_model_bytes;

/* Print text that is not terminated. */
void board_print(const char *text, size_t len);
/* The program: list.c or network.c.  Return 0 on success. */
int board_run(void);

/* Print terminated text, or a number. */
void print(const char *text);
void print_number(uint32_t v);

#endif
