/* gptrs_entry.h - what an index says of a tensor, and how that becomes one. */
#ifndef HEFT_GPTRS_ENTRY_H
#define HEFT_GPTRS_ENTRY_H
#include "format/gptrs/gptrs.h"
#include "model/records.h"

typedef struct heft_gptrs_entry { /* of an index, as it lies in the file */
    heft_str name;
    const uint8_t *base_id; /* sixteen bytes, or NULL */
    const uint8_t *dims;    /* rank numbers of eight bytes */
    uint64_t rank;
    uint32_t tag; /* of the element type */
    uint8_t grad;
    bool is_ascii;               /* the name is known to be */
    uint64_t at, offset, length; /* at: where the entry begins */
} heft_gptrs_entry;

enum { HEFT_GPTRS_TYPES = 4, HEFT_GPTRS_TAIL = 21 };
extern const heft_dtype heft_gptrs_types[HEFT_GPTRS_TYPES]; /* by tag */

/* Refuses what no entry may say. */
heft_status heft_gptrs_check_entry(heft_index *x, const heft_gptrs_entry *e, bool checkpoint);

/* Adds a tensor after all checks that do not need the others. */
static inline heft_status heft_gptrs_add(heft_index *x, const heft_gptrs_entry *e, bool checkpoint)
{
    if (heft_unlikely(e->tag >= HEFT_GPTRS_TYPES || (checkpoint && !e->is_ascii) ||
                      e->rank > UINT16_MAX)) {
        heft_gptrs_entry odd = *e; /* so that others can stay in registers */
        heft_status bad = heft_gptrs_check_entry(x, &odd, checkpoint);
        if (bad)
            return bad;
    }
    heft_ix_record r = { .name = e->name,
                         .shape = e->dims,
                         .at = e->at,
                         .offset = e->offset,
                         .length = e->length,
                         .rank = (uint32_t)e->rank,
                         .dtype = heft_gptrs_types[e->tag],
                         .flags = (uint8_t)(HEFT_T_GRAD_KNOWN | (e->grad ? HEFT_T_GRAD : 0)) };
    heft_status st = heft_ix_add(x, &r);
    if (heft_unlikely(!st && !e->rank))
        heft_ix_note(x, HEFT_WARNING, "gptrs/rank-0", e->at, r.id,
                     "its rank is 0, which gpt-rs does not read");
    bool has_id = e->base_id &&
                  (heft_le64(e->base_id) | heft_le64(e->base_id + 8)); /* not sixteen zeros */
    return heft_unlikely(st) || !has_id ? st : heft_ix_add_base_id(x, r.id, e->base_id);
}

#endif
