/* hex.h - hexadecimal digits. */
#ifndef HEFT_CLI_HEX_H
#define HEFT_CLI_HEX_H
#include <stddef.h>

/* Write two small digits for each of n bytes, and a terminator. */
void hex_text(char *out, const void *p, size_t n);
/* Return the value of a digit, or 16 if c is not one. */
unsigned hex_digit(char c);

#endif
