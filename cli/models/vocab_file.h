/* vocab_file.h - vocabularies in model files and in text files. */
#ifndef HEFT_CLI_VOCAB_FILE_H
#define HEFT_CLI_VOCAB_FILE_H
#include <heft/editing.h>
#include <heft/vocabulary.h>

#include "models/model.h"
#include "process/textfile.h"

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
