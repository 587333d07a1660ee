/* glob.h - shell patterns for names: `*`, `?`, `[a-z]` and alternatives `{a,b}`. */
#ifndef HEFT_CLI_GLOB_H
#define HEFT_CLI_GLOB_H
#include <stdbool.h>

/* Return true if the name matches the pattern. Braces may be nested; braces without a comma, and
 * braces that are escaped, in brackets or not closed, stand for themselves. *no_memory is set,
 * never cleared, if memory ran out. */
bool glob_matches(bool *no_memory, const char *name, const char *glob);

#endif
