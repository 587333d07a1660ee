/* value_journal.h - a journal of values that change within the data of a file, which may be many.
 * It has the name and the role of the journal of an edit (journal.c), and version 3. */
#ifndef HEFT_VALUE_JOURNAL_H
#define HEFT_VALUE_JOURNAL_H
#include "base/blake3.h"
#include "port/system/disk.h"

enum { HEFT_VALUE_JOURNAL_VERSION = 3 };

typedef struct heft_value_record { /* units in a range of the file */
    uint64_t at;                   /* offset of the range */
    uint32_t length;               /* bytes of the range */
    uint32_t unit, count;          /* bytes of a unit: 1, 2, 4 or 8; at most 65536 units */
    const uint16_t *positions; /* ascending; the first unit is at the offset.  NULL: all units */
    const uint8_t *old;        /* their values */
} heft_value_record;

typedef struct heft_value_journal {
    const heft_target *t;
    int fd; /* -1: not begun, or closed */
    char name[NAME_MAX + 1], partial[NAME_MAX + 1];
    heft_blake3 seal;
    uint64_t written;
    uint8_t *buffer;
    size_t used;
} heft_value_journal;

/* Begin the journal of changes within a range of the file.  heft_value_journal_close() must follow,
 * even after an error. */
heft_status heft_value_journal_begin(heft_value_journal *j, const heft_target *t, heft_range within,
                                     heft_error *err);
/* Add a record; records come in ascending order and do not overlap. */
heft_status heft_value_journal_add(heft_value_journal *j, const heft_value_record *r,
                                   heft_error *err);
/* Make the journal durable and give it its name: from now on the file may change. */
heft_status heft_value_journal_commit(heft_value_journal *j, heft_error *err);
/* The file has changed, or was not touched: remove the journal. */
heft_status heft_value_journal_remove(const heft_value_journal *j, heft_error *err);
/* Release what is in memory, and remove a journal that was not committed. */
void heft_value_journal_close(heft_value_journal *j);

/* Write the old values back that a journal of this version, in memory, lists.
 *   HEFT_E_FORMAT  the journal is damaged, or of another file */
heft_status heft_value_journal_restore(const heft_target *t, const char *name, const uint8_t *bytes,
                                       size_t len, heft_error *err);

#endif
