/* textfile.h - read a whole text file, and helpers for paths. */
#ifndef HEFT_CLI_TEXTFILE_H
#define HEFT_CLI_TEXTFILE_H
#include <heft/heft_ext.h>
#include <sys/stat.h>

#include "process/cmd.h"
#include "process/command_session.h"

typedef enum text_origin {
    TEXT_NAMED, /* by the user: links are followed, and a pipe is read to its end */
    TEXT_FOUND  /* in a model's folder: a regular file; no link may lead out of the folder */
} text_origin;

/* Read at most 256 MiB. Release with text_free(). Return an exit code. */
int text_read(heft_str *out, const char *path, text_origin origin);
/* Read a whole source in the same way; `path` names it in messages. */
int text_from_source(heft_str *out, heft_source *s, const char *path);
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

/* ---- standard input as a model ---- */

/* Replace "-", an input of the command, by the path of standard input. An input that the command
 * would change is refused. Return an exit code. */
int stdin_take(session *s, const char **input, bool is_changed);
/* Return true if the path is that of standard input. */
bool stdin_is(const char *path);
/* Return the path for people, "standard input", and for JSON, "-". Other paths stay. */
const char *stdin_label(const char *path);
const char *stdin_name(const char *path);

/* ---- the regular files in a folder and in all folders below ---- */

typedef struct path_list {
    char **paths; /* owned, as each path is */
    size_t count, capacity;
    bool keeps_broken_links; /* dangling links in folders count as files */
    bool keeps_unreadable;   /* so do pipes, devices, and what cannot be read */
    bool is_quiet;           /* print no error about folders that cannot be read */
} path_list;

/* Append the path of a file, or the sorted paths of all regular files in a folder; links are
 * followed. Return an exit code. */
int path_list_add(path_list *list, const char *path);
/* Append the sorted paths of all symbolic links, pipes, sockets and devices in a folder and in the
 * folders below; no link is followed. Return an exit code. */
int path_list_add_odd(path_list *list, const char *folder);
void path_list_free(path_list *list);

#endif
