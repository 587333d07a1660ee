/* extracted.h - an adapter that is made of two models, for --extract-lora. */
#ifndef HEFT_CLI_EXTRACTED_H
#define HEFT_CLI_EXTRACTED_H
#include <heft/lora.h>

#include "process/command_session.h"
#include "text/outbuf.h"

typedef struct extract_options {
    uint32_t rank;    /* --extract-lora; 0: not asked for */
    const char *base; /* --base, or NULL */
} extract_options;

typedef struct extracted {
    heft_extraction *plan; /* NULL: none */
    heft_file *base;
    const char *paths[2]; /* the base comes first */
} extracted;

/* Compare the model `f`, which was opened from `path`, with --base; say which tensors that differ
 * are not in the adapter. *x must be released, after an error, too. Does nothing without
 * --extract-lora. Return an exit code. */
int extracted_open(extracted *x, const extract_options *o, const session *s, const heft_file *f,
                   const char *path);
/* Return the adapter. */
const heft_file *extracted_file(const extracted *x);
/* Write adapter_config.json into the folder. Return an exit code. */
int extracted_end(const extracted *x, const session *s, const char *folder, bool force,
                  bool no_sync);
/* Print how much of each difference the adapter has: a table with a line for all, or one JSON
 * document. */
void extracted_print(outbuf *o, const extracted *x, const session *s, bool as_json);
void extracted_release(extracted *x);

#endif
