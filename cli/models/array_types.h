/* array_types.h - --view NAME=TYPE: the types of arrays that a file stores without a type. */
#ifndef HEFT_CLI_ARRAY_TYPES_H
#define HEFT_CLI_ARRAY_TYPES_H
#include "process/command_session.h"

/* Read the rules of --view, NAME=TYPE or PATTERN=TYPE, into s->types. Return an exit code. */
int array_types_read(session *s);
/* Return the rules for heft_open_options, or NULL if there are none. */
const heft_array_types *array_types_chosen(const session *s);
/* Report each rule that has been used for no array of the files opened so far: an error if a tensor
 * of f matches, which has a type of its own, else a warning (an error under --strict). Return an
 * exit code. */
int array_types_check(const session *s, const heft_file *f, const char *path);
void array_types_free(struct array_types *t);

#endif
