#include "text/hex.h"

#include <stdint.h>
#include <string.h>

static const char digits[] = "0123456789abcdef";

void hex_text(char *out, const void *p, size_t n)
{
    const uint8_t *bytes = p;
    for (size_t i = 0; i < n; i++) {
        *out++ = digits[bytes[i] >> 4];
        *out++ = digits[bytes[i] & 15];
    }
    *out = '\0';
}

unsigned hex_digit(char c)
{
    const char *found = c ? strchr(digits, c >= 'A' && c <= 'F' ? c | 0x20 : c) : NULL;
    return found ? (unsigned)(found - digits) : 16;
}
