/* textfile.h - a whole file in memory. */
#ifndef HEFT_CLI_TEXTFILE_H
#define HEFT_CLI_TEXTFILE_H
#include <sys/stat.h>

#include "cmd.h"

typedef enum text_origin {
    TEXT_NAMED, /* by the user: any link is followed, and a pipe is read to its end */
    TEXT_FOUND  /* in a model's folder: a regular file, as shards are, which no link leads out of */
} text_origin;

/* At most 256 MiB.  Release with text_free().  Not CODE_DONE: said why not. */
int text_read(heft_str *out, const char *path, text_origin origin);
void text_free(heft_str text);
/* DIR/NAME, malloc'ed; NULL: no memory, which was said. */
char *path_in(const char *dir, const char *name);
bool path_exists(const char *path); /* be it a link to nothing; true also when nobody can tell */
bool path_is_folder(const char *path);
bool path_is_same(const char *path, const struct stat *file); /* the same file, whatever its name */

#endif
