/* beside.h - the texts next to a model, in its folder or on its server. */
#ifndef HEFT_CLI_BESIDE_H
#define HEFT_CLI_BESIDE_H
#include <heft/companion.h>

#include "process/cmd.h"

/* Return the address of the file `name` next to that of a URL, malloc'ed; NULL: no memory. A query
 * is left out: it belongs to one file. */
char *url_beside(const char *url, const char *name);
/* Read the text `name` next to the model opened from `path`; out->ptr is NULL if there is none.
 * *file is its path or address, for messages; release it with free(), after an error, too. Return
 * an exit code. */
int text_beside(heft_str *out, char **file, const char *path, const char *name);
/* Read settings in JSON in the same way. *out is NULL if there are none; a text that is not valid
 * JSON is ignored, with a warning if `warns` is set. */
int settings_beside(heft_settings **out, const char *path, const char *name, bool warns);

#endif
