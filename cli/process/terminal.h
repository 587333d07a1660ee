/* terminal.h - what the system knows about the terminal and the command line: terminal.c, or
 * windows/windows_terminal.c. */
#ifndef HEFT_CLI_TERMINAL_H
#define HEFT_CLI_TERMINAL_H
#include <stdbool.h>
#include <stddef.h>

/* Prepare stdin, stdout and stderr: a closed one is opened, because the next file would get its
 * number. Return the arguments of main() in UTF-8. */
char **terminal_prepare(int *argc, char **argv);
/* Make every separator of a path a slash: Windows has backslashes, too. */
void terminal_use_slashes(char *path);
/* Return true if the terminal understands escape sequences for colours. */
bool terminal_has_colour(void);
/* Return true if the descriptor is such a terminal. */
bool terminal_shows_colour(int fd);
/* Return the width of the terminal; 0: unknown. */
size_t terminal_columns(int fd);

#endif
