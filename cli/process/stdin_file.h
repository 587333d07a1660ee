/* stdin_file.h - standard input as a model: the argument "-".
 *
 * Reading a model needs random access, so that a pipe is copied into a temporary file without a
 * name first, in TMPDIR or /var/tmp. A file on standard input is read in place. */
#ifndef HEFT_CLI_STDIN_FILE_H
#define HEFT_CLI_STDIN_FILE_H
#include "process/command_session.h"

/* Replace "-", an input of the command, by the path of standard input. An input that the command
 * would change is refused. Return an exit code. */
int stdin_take(session *s, const char **input, bool is_changed);
/* Return true if the path is that of standard input. */
bool stdin_is(const char *path);
/* Return the path for people, "standard input", and for JSON, "-". Other paths stay. */
const char *stdin_label(const char *path);
const char *stdin_name(const char *path);

#endif
