/* damage_read.h - reads a file that may be damaged: opens, lists, verifies and reads everything. */
#ifndef DAMAGE_READ_H
#define DAMAGE_READ_H
#include <heft/heft_ext.h>

enum { DAMAGE_MEMORY = 64 << 20 }; /* bytes of memory that reading may take */

/* The answer of the library about a file. */
typedef struct damage_answer {
    bool is_accepted;    /* the file opens, and neither a fault nor a wrong checksum is found */
    uint32_t warnings;   /* number of warnings */
    uint32_t hash;       /* hash of the whole answer, without numbers in messages */
    uint32_t content;    /* hash of the dense tensors and the data */
    uint64_t peak;       /* bytes of memory */
    char violation[300]; /* a broken promise of the library, or empty */
} damage_answer;

/* Rules of the checksums of a file: a wrong checksum may be a warning. */
typedef struct damage_rules {
    const char *at[64];
    size_t count;
} damage_rules;

heft_status damage_open(heft_file **f, const uint8_t *p, size_t len, const heft_host *host,
                        bool no_verify, heft_error *err);

/* Read a file; if only a checksum is wrong, once more without checking checksums. */
void damage_read(damage_answer *out, const uint8_t *p, size_t len, const damage_rules *rules);

#endif
