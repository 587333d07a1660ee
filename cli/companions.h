/* companions.h - what stands beside the weights in a folder: config.json, vocab.txt or tokenizer.json. */
#ifndef HEFT_CLI_COMPANIONS_H
#define HEFT_CLI_COMPANIONS_H
#include "cmd.h"

typedef struct folder {
    char *vocab;  /* of vocab.txt or tokenizer.json; NULL: there is neither */
    char *config; /* of config.json, when its values are read */
    heft_settings *settings;
    heft_value *values; /* metadata of an EMBD file, from config.json */
    size_t count;
    char name[256], revision[128], created[32]; /* of three of the values */
} folder;

/* Not CODE_DONE: said why not. */
int folder_open(folder *out, const char *dir);
/* What the folder's path, config.json and SOURCE_DATE_EPOCH say, as the metadata of an EMBD file; strict: without a
 * config.json, or with a date that is none, it is an error. */
int folder_read_values(folder *f, const char *dir, bool strict);
/* Takes the revision of a hub out of the values that will be set when the weights say their version themselves.  The
 * number of values that are left. */
size_t folder_drop_revision(const folder *f, heft_value *values, size_t count,
                            const heft_file *weights);
void folder_close(folder *f);

#endif
