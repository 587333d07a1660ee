/* vocab_file.h - vocabularies: of files of weights, and of texts beside them. */
#ifndef HEFT_CLI_VOCAB_FILE_H
#define HEFT_CLI_VOCAB_FILE_H
#include "model.h"
#include "textfile.h"

/* That of the file; *out is NULL when it has none.  Not CODE_DONE: said why not. */
int vocab_find(heft_vocab **out, const heft_file *f, const char *path);
/* A token on each line, to stdout. */
int vocab_print(const heft_vocab *v);
/* From a vocab.txt or, when it is called .json, a tokenizer.json. */
int vocab_read(heft_vocab **out, const char *path, text_origin origin);

typedef struct specials { /* what --special gives */
    heft_special_id id[HEFT_SPECIALS];
    uint32_t count;
} specials;
/* "pad=0,unk=100"; "none" for none.  Of one that is given twice the last counts.  who: the command. */
int vocab_read_special(specials *out, const char *cmd, const char *arg);
/* For convert: the ids have to be of the vocabulary. */
int vocab_set_special(heft_vocab *v, const specials *s);

#endif
