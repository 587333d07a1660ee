/* vocab.h - vocabularies: of files of weights, and of texts beside them. */
#ifndef HEFT_CLI_VOCAB_H
#define HEFT_CLI_VOCAB_H
#include "model.h"
#include "textfile.h"

/* That of the file; *out is NULL when it has none.  Not CODE_DONE: said why not. */
int vocab_find(heft_vocab **out, const heft_file *f, const char *path);
/* A token on each line, to stdout. */
int vocab_print(const heft_vocab *v);
/* From a vocab.txt or, when it is called .json, a tokenizer.json. */
int vocab_read(heft_vocab **out, const char *path, text_origin origin);
/* "pad=0,unk=100": sets the ids of special tokens; "none" for none. */
int vocab_set_special(heft_vocab *v, const char *given);

#endif
