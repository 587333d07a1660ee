/* gptrs.h - constants and functions that gpt-rs checkpoints and tensor archives share. */
#ifndef HEFT_GPTRS_H
#define HEFT_GPTRS_H
#include "format/format.h"
#include "model/records.h"

enum { HEFT_GPTRS_MAGIC = 8, HEFT_GPTRS_BASE_ID = 16 }; /* bytes */

/* Return the magic of a checkpoint or of a tensor archive, HEFT_GPTRS_MAGIC characters. */
static inline const char *heft_gptrs_magic(bool is_checkpoint)
{
    return is_checkpoint ? "GPTRSCHK" : "GPTRSTEN";
}

typedef struct heft_gptrs_config { /* properties of a valid config_json */
    bool is_untagged;              /* a bare GPT configuration, without "kind" */
    bool has_invalid_runtime;      /* "runtime" is neither null nor an object */
} heft_gptrs_config;

/* Check a config_json, which begins at offset `at` of the file.  HEFT_E_FORMAT: the text is neither
 * a JSON object with a string "kind", nor a bare GPT configuration. */
heft_status heft_gptrs_config_read(heft_gptrs_config *out, heft_str text, uint64_t at,
                                   uint32_t depth, heft_arena *arena, heft_error *err);

/* Return true if the base id is the id of the name: the first bytes of BLAKE3(name). */
bool heft_gptrs_is_id_of(const uint8_t *base_id, heft_str name);
/* Note stored base ids that are wrong for the name, in large models only for a sample. */
void heft_gptrs_note_base_ids(heft_index *x);
/* Report every stored base id that is wrong for the name as a fault. */
heft_status heft_gptrs_check_base_ids(heft_check *c);
/* Warn if the source stores a wrong base id for the tensor, since that id is not written. */
heft_status heft_gptrs_plan_base_id(heft_plan *p, uint32_t tensor, bool is_checkpoint);

/* functions of heft_format, in gptrs_write.c */
heft_status heft_gptrs_plan_checkpoint(heft_plan *p);
heft_status heft_gptrs_plan_archive(heft_plan *p);
heft_status heft_gptrs_write_header(const heft_plan *p, heft_out *o);

/* ---- an entry of a gpt-rs index, and a function that adds the entry as a tensor ---- */

typedef struct heft_gptrs_entry { /* pointers are borrowed from the file */
    heft_str name;
    const uint8_t *base_id; /* HEFT_GPTRS_BASE_ID bytes, or NULL */
    const uint8_t *dims;    /* `rank` little-endian u64 */
    uint64_t rank;
    uint32_t tag;            /* element type */
    uint8_t grad;            /* requires_grad: nonzero is true */
    bool is_ascii;           /* the name is ASCII; false: unknown */
    uint64_t at;             /* offset of the entry */
    uint64_t offset, length; /* place of the data */
} heft_gptrs_entry;

enum { HEFT_GPTRS_TYPES = 4, HEFT_GPTRS_TAIL = 21 }; /* TAIL: bytes of an entry after the shape */
extern const heft_dtype heft_gptrs_types[HEFT_GPTRS_TYPES]; /* by tag */

/* Return an error if the element type is unknown, the rank too large, or the name not allowed. */
heft_status heft_gptrs_check_entry(heft_index *x, const heft_gptrs_entry *e, bool is_checkpoint);

/* Check an entry, apart from conflicts with other entries, and add the tensor to the index. */
static inline heft_status heft_gptrs_add(heft_index *x, const heft_gptrs_entry *e,
                                         bool is_checkpoint)
{
    if (heft_unlikely(e->tag >= HEFT_GPTRS_TYPES || (is_checkpoint && !e->is_ascii) ||
                      e->rank > UINT16_MAX)) {
        heft_gptrs_entry copy = *e; /* taking the address of *e would keep *e out of registers */
        heft_status bad = heft_gptrs_check_entry(x, &copy, is_checkpoint);
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
    /* zero bytes mean that there is no id */
    bool has_id = e->base_id && (heft_le64(e->base_id) | heft_le64(e->base_id + 8));
    return heft_unlikely(st) || !has_id ? st : heft_ix_add_base_id(x, r.id, e->base_id);
}

#endif
