/* metadata_diff.h - compare the metadata of two files, key by key. */
#ifndef HEFT_CLI_METADATA_DIFF_H
#define HEFT_CLI_METADATA_DIFF_H
#include "text/jsonout.h"

typedef struct metadata_change { /* a key whose values differ */
    uint32_t a, b;               /* values of the files, or HEFT_NONE: the file lacks the key */
} metadata_change;

typedef struct metadata_diff {
    const heft_file *a, *b;
    metadata_change *changes; /* sorted by key */
    uint32_t count;
    /* There is no change, except that files of different formats or generations have different
     * keys: none stores all that another can. */
    bool equal;
} metadata_diff;

/* Compare. Keys that describe the file instead of the model do not count: safetensors' "format",
 * the alignment and the numbers of shards of GGUF. Return an exit code. */
int metadata_diff_find(metadata_diff *d, const heft_file *a, const heft_file *b, const char *path);
/* Print a line for each change, at most `most`. */
void metadata_diff_print(outbuf *o, const metadata_diff *d, uint32_t most);
/* Write the member "metadata". */
void metadata_diff_json(json *j, const metadata_diff *d);
void metadata_diff_free(metadata_diff *d); /* safe on a zeroed struct */

#endif
