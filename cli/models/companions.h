/* companions.h - read config.json, vocab.txt or tokenizer.json next to the weights in a folder, and
 * other JSON files that describe a model. */
#ifndef HEFT_CLI_COMPANIONS_H
#define HEFT_CLI_COMPANIONS_H
#include <heft/companion.h>

#include "process/cmd.h"

typedef struct folder {
    bool strict;  /* a missing file or value is an error */
    char *vocab;  /* path of vocab.txt or tokenizer.json; NULL if neither exists */
    char *config; /* path of config.json, once values are read */
    heft_settings *settings;
    heft_value *values; /* metadata for an EMBD file */
    size_t count;
    char name[256], revision[128], created[32]; /* storage for three of the values */
} folder;

/* Find the vocabulary in the folder. Return an exit code. */
int folder_open(folder *out, bool strict, const char *dir);
/* Collect metadata for an EMBD file from the folder's path, config.json and SOURCE_DATE_EPOCH. A
 * missing config.json and an invalid date are warnings, or errors under --strict. Return an exit
 * code. */
int folder_read_values(folder *f, const char *dir);
/* Remove the hub revision from `values` if the weights have a "model_version" of their own. Return
 * the new number of values. */
size_t folder_drop_revision(const folder *f, heft_value *values, size_t count,
                            const heft_file *weights);
void folder_close(folder *f);

/* Read NAME, for example config.json, of the model opened from `path`. A single file may lie in a
 * folder with other models, so NAME is read for a folder or a model in shards only. *out is NULL
 * if NAME does not exist or is not valid JSON; `warns`: print a warning then.  Return an exit
 * code. */
int model_config_open(heft_settings **out, const heft_file *f, const char *path, const char *name,
                      bool warns);
/* Do the same for a file that belongs to the model in any case. */
int model_config_read(heft_settings **out, const char *path, const char *name, bool warns);

#endif
