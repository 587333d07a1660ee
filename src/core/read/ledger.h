/* ledger.h - which of the checksums that a file stores are confirmed by bytes that pass by.  The
 * bytes of a range are shown in any order, by several threads: their CRCs are joined, and bytes
 * that nobody has shown are read at the end.  The stream of a part compares a digest that needs its
 * bytes in order, stored or decoded, and heft_checksum_sweep() reads what nobody else reads. */
#ifndef HEFT_LEDGER_H
#define HEFT_LEDGER_H
#include "core/read/partial_crcs.h"
#include "core/read/stored_checksum.h"

/* The way in which a checksum is compared. */
typedef enum heft_ledger_way {
    HEFT_LEDGER_NOT,
    HEFT_LEDGER_SWEEP,    /* heft_checksum_sweep() reads the bytes */
    HEFT_LEDGER_IN_ORDER, /* the stream of the part compares */
    HEFT_LEDGER_SHOWN     /* heft_ledger_settle() joins the CRCs of bytes that were shown */
} heft_ledger_way;

typedef struct heft_ledger {
    const heft_file *f;
    heft_memory mem;
    heft_partial_crcs crcs;      /* bytes shown, by stored offset */
    heft_checksum_state *states; /* by checksum */
    uint8_t *ways;               /* heft_ledger_way, by checksum */
    uint32_t checksums;          /* 0: the file has none, or the ledger is disabled */
} heft_ledger;

/* Every checksum begins with HEFT_LEDGER_NOT and HEFT_CHECKSUM_UNCHECKED.  is_disabled: nothing is
 * compared.  heft_ledger_free() must follow, even after an error. */
heft_status heft_ledger_open(heft_ledger *l, const heft_file *f, bool is_disabled, heft_error *err);
void heft_ledger_free(heft_ledger *l); /* a zeroed ledger is harmless */
/* Choose HEFT_LEDGER_SHOWN; return false if CRCs of this algorithm cannot be joined. */
bool heft_ledger_join(heft_ledger *l, uint32_t checksum);
/* Return the checksum of a part for which HEFT_LEDGER_IN_ORDER was chosen, or HEFT_NONE. */
uint32_t heft_ledger_in_order(const heft_ledger *l, uint32_t part);
/* Show stored bytes.  Thread-safe. */
static inline heft_status heft_ledger_show(heft_ledger *l, uint64_t offset, const void *data,
                                           size_t len, heft_error *err)
{
    return heft_partial_crcs_add(&l->crcs, offset, data, len, err);
}
/* Join the CRCs of adjacent bytes shown, up to the offsets where a checksum begins or ends. */
heft_status heft_ledger_compact(heft_ledger *l, heft_error *err);
/* After the last byte was shown: compare.  Covered bytes that were not shown are read. */
heft_status heft_ledger_settle(heft_ledger *l, heft_error *err);
/* Iterate over groups of adjacent alternative checksums.  Set *representative to the first match in
 * the group at *i, or to the group's first; advance *i past the group.  Return false at the end. */
bool heft_ledger_next(const heft_ledger *l, uint32_t *i, uint32_t *representative);
/* Return HEFT_E_CHECKSUM for the first mismatch found so far.  advisory: advisory checksums count
 * too. */
heft_status heft_ledger_require(const heft_ledger *l, bool advisory, heft_error *err);

/* Set *holds to whether the checksum, joined from sorted CRCs of the file, is right.  Missing bytes
 * are read. */
heft_status heft_stored_checksum_join(bool *holds, const heft_stored_checksum *c,
                                      const heft_file *f, const heft_partial_crcs *crcs,
                                      heft_error *err);

typedef struct heft_part_check {
    const heft_file *f;
    heft_running_digest digest; /* zeroed: nothing is checked */
    uint32_t part, checksum;
    bool decoded;                 /* the digest covers decoded bytes, not stored bytes */
    uint64_t next;                /* offset of the next stored byte that the digest needs */
    uint64_t end;                 /* offset after the last byte */
    heft_checksum_state *outcome; /* receives the result; NULL: a mismatch is an error */
} heft_part_check;

/* Return the checksum that reading the whole part makes checkable, or HEFT_NONE.  all: even a
 * checksum that covers many more bytes than the part has. */
uint32_t heft_part_checksum(const heft_file *f, uint32_t part, bool all);
/* checksum: from heft_part_checksum(), or HEFT_NONE.  Nothing is checked if this build lacks the
 * algorithm.  Releasing a zeroed struct is harmless. */
heft_status heft_part_check_begin(heft_part_check *k, const heft_file *f, uint32_t part,
                                  uint32_t checksum, heft_error *err);
void heft_part_check_release(heft_part_check *k);
static inline bool heft_part_check_is_on(const heft_part_check *k)
{
    return k->digest.digest;
}
/* Add stored bytes at an offset, in ascending order.  Covered bytes that were skipped are read from
 * the file. */
heft_status heft_part_check_stored(heft_part_check *k, uint64_t offset, const void *data,
                                   size_t len, heft_error *err);
/* Add the next decoded bytes of a compressed part. */
void heft_part_check_decoded(heft_part_check *k, const void *data, size_t len);
/* After the last byte: read the covered bytes that were not seen, compare, and release.
 * HEFT_E_CHECKSUM on a mismatch, unless there is an outcome. */
heft_status heft_part_check_end(heft_part_check *k, heft_error *err);

#endif
