/* gptrs.h - constants and functions that gpt-rs checkpoints and tensor archives share. */
#ifndef HEFT_GPTRS_H
#define HEFT_GPTRS_H
#include "format/format.h"

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

#endif
