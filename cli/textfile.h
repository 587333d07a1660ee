/* textfile.h - a whole file in memory. */
#ifndef HEFT_CLI_TEXTFILE_H
#define HEFT_CLI_TEXTFILE_H
#include <sys/stat.h>

#include "cmd.h"

/* Release with free((void *)out->ptr).  Not CODE_DONE: said why not. */
int text_read(heft_str *out, const char *path);
void text_free(heft_str text);
/* DIR/NAME, malloc'ed; NULL: no memory, which was said. */
char *path_in(const char *dir, const char *name);
bool path_exists(const char *path);
bool path_is_folder(const char *path);
bool path_is_same(const char *path, const struct stat *file); /* the same file, whatever its name */

#endif
