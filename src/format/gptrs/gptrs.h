/* gptrs.h - what the files of gpt-rs' two formats share. */
#ifndef HEFT_GPTRS_H
#define HEFT_GPTRS_H
#include "format/format.h"

/* The eight characters that a file begins with. */
static inline const char *heft_gptrs_magic(bool checkpoint)
{
    return checkpoint ? "GPTRSCHK" : "GPTRSTEN";
}

/* Version 1: from the tensor count on, data between the records. */
heft_status heft_gptrs_parse_v1(heft_window *in, heft_index *x, uint64_t at, bool checkpoint);
/* The bincode index of two days in December 2025, over the same version number 2. */
bool heft_gptrs_is_bincode(heft_cur index, bool checkpoint);
heft_status heft_gptrs_parse_bincode(heft_cur *index, heft_index *x, bool checkpoint);

typedef struct heft_gptrs_config { /* what a config_json is */
    bool is_untagged;              /* a bare GPT configuration, without "kind" */
    bool is_runtime_odd;           /* "runtime" is neither null nor an object */
} heft_gptrs_config;

/* Refuses what is no JSON object with a string "kind", nor a bare GPT configuration. */
heft_status heft_gptrs_config_read(heft_gptrs_config *out, heft_str text, uint64_t at,
                                   uint32_t depth, heft_arena *arena, heft_error *err);

enum { HEFT_GPTRS_MAGIC = 8, HEFT_GPTRS_BASE_ID = 16 };

/* Whether a base id is the one that follows from a name. */
bool heft_gptrs_is_id_of(const uint8_t *base_id, heft_str name);
/* Notes stored base ids that are not those of the names, of tensors up to a number all, else a sample. */
void heft_gptrs_note_base_ids(heft_index *x);
/* Reports all of them as faults. */
heft_status heft_gptrs_check_base_ids(heft_check *c);
/* A warning where such an id is not carried. */
heft_status heft_gptrs_plan_base_id(heft_plan *p, uint32_t tensor, bool checkpoint);

/* Functions of heft_format; gptrs_write.c. */
heft_status heft_gptrs_plan_checkpoint(heft_plan *p);
heft_status heft_gptrs_plan_archive(heft_plan *p);
heft_status heft_gptrs_write_header(const heft_plan *p, heft_out *o);

#endif
