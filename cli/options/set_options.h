/* set_options.h - the options --set KEY=VALUE and --set-file KEY=FILE: metadata to set, matched
 * with the metadata of the file. */
#ifndef HEFT_CLI_SET_OPTIONS_H
#define HEFT_CLI_SET_OPTIONS_H
#include "options/assign.h"
#include "options/opt.h"

typedef struct set_options {
    opt_list args, files;
    assignment *given; /* one per key; the last value of a repeated key counts */
    size_t count;
    heft_str *texts;    /* contents of the files of --set-file */
    heft_value *values; /* values for the library, after set_options_resolve() */
    size_t value_count;
    struct set_list *lists; /* contents of lists; freed with the options */
} set_options;

/* Parse the arguments and read the files. Return an exit code; cmd is the command named in the
 * error line. */
int set_options_prepare(set_options *s, const char *cmd);
/* Add metadata before the values of the options, which take precedence. Return false without
 * memory. */
bool set_options_add(set_options *s, const heft_value *values, size_t count);
/* Make s->values: a value without a type gets the kind of the file's value under the same key, and
 * is refused if the text has another form. can_list: the target stores lists, so [...] is a list.
 * Return an exit code. */
int set_options_resolve(set_options *s, const heft_file *f, bool can_list, const char *path);
void set_options_release(set_options *s);

#endif
