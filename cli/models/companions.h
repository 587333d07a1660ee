/* companions.h - read config.json, vocab.txt or tokenizer.json next to the weights in a folder, and
 * other JSON files that describe a model. */
#ifndef HEFT_CLI_COMPANIONS_H
#define HEFT_CLI_COMPANIONS_H
#include <heft/companion.h>
#include <heft/editing.h>
#include <heft/vocabulary.h>

#include "models/model.h"
#include "process/cmd.h"
#include "process/textfile.h"

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

/* ---- vocabularies in model files and in text files ---- */

/* Open the file's vocabulary; *out is NULL if it has none. Return an exit code. */
int vocab_find(heft_vocab **out, const heft_file *f, const char *path);
/* Write one token per line. */
void vocab_put(outbuf *o, const heft_vocab *v);
/* Read a tokenizer.json if the path ends with ".json", otherwise a vocab.txt. Return an exit
 * code. */
int vocab_read(heft_vocab **out, const char *path, text_origin origin);

typedef struct specials { /* parsed --special */
    heft_special_id id[HEFT_SPECIALS];
    uint32_t count;
} specials;
/* Parse "pad=0,unk=100"; the id "none" removes a special token. The last of a repeated name counts.
 * Return an exit code; cmd is the command named in the error line. */
int vocab_read_special(specials *out, const char *cmd, const char *arg);
/* Set the special tokens of v for convert; refuse ids outside the vocabulary. Return an exit
 * code. */
int vocab_set_special(heft_vocab *v, const specials *s);

#endif
