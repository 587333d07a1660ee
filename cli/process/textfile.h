/* textfile.h - read a whole text file, and helpers for paths. */
#ifndef HEFT_CLI_TEXTFILE_H
#define HEFT_CLI_TEXTFILE_H
#include <sys/stat.h>

#include "process/cmd.h"

typedef enum text_origin {
    TEXT_NAMED, /* by the user: links are followed, and a pipe is read to its end */
    TEXT_FOUND  /* in a model's folder: a regular file; no link may lead out of the folder */
} text_origin;

/* Read at most 256 MiB. Release with text_free(). Return an exit code. */
int text_read(heft_str *out, const char *path, text_origin origin);
void text_free(heft_str text);
/* Return DIR/NAME, malloc'ed; NULL, after an error line, without memory. */
char *path_in(const char *dir, const char *name);
/* Return the last component of a path, without slashes at the end. */
heft_str path_last_component(const char *path);
/* Return true for the errno of a path that cannot name a file, as of an address of a server. */
bool path_is_absent(int os);
bool path_exists(const char *path);    /* true for a dangling link, and if unknown */
bool path_is_folder(const char *path); /* false if unknown */
/* Set *is_folder; it is false for a missing file.  Return an exit code, after an error line if the
 * system cannot tell. */
int path_find_folder(bool *is_folder, const char *path);
/* Set *exists in the same way; it is true for a dangling link. */
int path_find(bool *exists, const char *path);
bool path_is_same(const char *path, const struct stat *file); /* same inode */

#endif
