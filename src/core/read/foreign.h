/* foreign.h - kinds of files that no format recognises, each with advice.  Errors of opening and
 * heft_diagnose() use the same table. */
#ifndef HEFT_FOREIGN_H
#define HEFT_FOREIGN_H
#include <heft/heft.h>

typedef struct heft_foreign_kind {
    const char *kind; /* stable name, "git-lfs-pointer" */
    const char *description, *advice;
} heft_foreign_kind;

/* Return the kind of a file with these first and last bytes, or NULL if unknown. */
const heft_foreign_kind *heft_foreign_find(const uint8_t *head, size_t head_len,
                                           const uint8_t *tail, size_t tail_len);

#endif
