/* folder.h - what stands beside the weights in a folder: config.json, vocab.txt or tokenizer.json. */
#ifndef HEFT_CLI_FOLDER_H
#define HEFT_CLI_FOLDER_H
#include "cmd.h"

typedef struct folder {
    char *vocab;  /* of vocab.txt or tokenizer.json; NULL: there is neither */
    char *config; /* of config.json, when its values are read */
    heft_settings *settings;
    heft_value *values; /* metadata of an EMBD file, from config.json */
    size_t count;
    char name[256], created[32]; /* of two of the values */
} folder;

/* Not CODE_DONE: said why not. */
int folder_open(folder *out, const char *dir);
/* What config.json and SOURCE_DATE_EPOCH say, as the metadata of an EMBD file; strict: without a
 * config.json it is an error. */
int folder_read_values(folder *f, const char *dir, bool strict);
void folder_close(folder *f);

#endif
