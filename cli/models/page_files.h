/* page_files.h - the files that `heft view` serves: those of the page, and those of models. */
#ifndef HEFT_CLI_PAGE_FILES_H
#define HEFT_CLI_PAGE_FILES_H
#include <heft/private.h>

#include "process/command_session.h"
#include "text/outbuf.h"

extern const char installed_page[]; /* the folder of the page below the prefix */

typedef struct served_list {
    heft_served_file *items; /* paths, locations and data are owned */
    uint32_t count, capacity;
} served_list;

/* Add a file; path, location and data are taken, even after an error, and a NULL path is missing
 * memory. Return an exit code. */
int served_add(served_list *l, const char *type, char *take_path, char *take_location,
               heft_str take_data);
void served_free(served_list *l);

/* Read the files of the page: from $HEFT_PAGE, ../share/heft/page or ../build-web/page next to the
 * executable, or the installed data folder. Return an exit code. */
int page_read(served_list *l);

/* Open a model and add its files below /NAME/, or below /far/NAME/ if it is on a server: pages
 * do not read values from there unasked. Append the address of the model in a link of the page.
 * Return an exit code. */
int view_files_add(served_list *l, outbuf *link, const session *s, const char *path,
                   const char *name);

#endif
