/* password.h - ask for a password on the terminal: password.c, or windows/windows_password.c. */
#ifndef HEFT_CLI_PASSWORD_H
#define HEFT_CLI_PASSWORD_H
#include <stdbool.h>
#include <stddef.h>

enum { PASSWORD_MAX = 1024 };

/* Read the password of `path` without an echo into PASSWORD_MAX bytes; return its length, or -1.
 * *has_terminal: there was a terminal to ask. */
ptrdiff_t password_ask(char *buf, const char *path, bool *has_terminal);

#endif
