/* folder_files.h - the regular files in a folder and in all folders below. */
#ifndef HEFT_CLI_FOLDER_FILES_H
#define HEFT_CLI_FOLDER_FILES_H
#include "process/cmd.h"

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
