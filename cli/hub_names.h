/* hub_names.h - the digest that a Hugging Face cache states for a file. */
#ifndef HEFT_CLI_HUB_NAMES_H
#define HEFT_CLI_HUB_NAMES_H
#include <limits.h>
#include <stdbool.h>

typedef struct hub_name {
    const char *algorithm; /* "sha256" of the content, or "sha1" of a git blob with the content */
    char hex[65];          /* the digest */
} hub_name;

/* Find the digest of a file: the name of the blob that the path leads to, or the entity tag that a
 * download into a folder noted. Return false if there is none. */
bool hub_name_find(hub_name *out, const char *path);

/* Find the notes of a download into the folder or into one above; false if there are none. */
bool hub_notes_find(char out[PATH_MAX], const char *folder);

/* Return true for files of the cache itself, which no repository contains. */
bool hub_is_own_file(const char *path);

#endif
