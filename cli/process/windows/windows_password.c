#include "process/term.h"

/* No password is asked for: builds for Windows have no OpenSSL, and so no keys. */
ptrdiff_t password_ask(char *buf, const char *path, bool *has_terminal)
{
    (void)buf;
    (void)path;
    *has_terminal = false;
    return -1;
}
