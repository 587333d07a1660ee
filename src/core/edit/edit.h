/* edit.h - plan a file anew in the same format, around data that stays as stored. */
#ifndef HEFT_EDIT_H
#define HEFT_EDIT_H
#include <heft/editing.h>

#include "core/check/source_verifier.h"
#include "core/write/plan/plan.h"

struct heft_edit {
    const heft_host *host;
    heft_memory mem;
    heft_arena arena; /* bytes of the extents */
    heft_vec extents;
    uint64_t size;
    bool in_place;
};

/* Bytes of the file that those of a second file take the place of. */
typedef struct heft_edit_swap {
    heft_range at; /* in the file */
    uint64_t from; /* global offset of the new bytes */
    uint32_t part;
} heft_edit_swap;

typedef struct heft_edit_job {
    heft_planner p;
    const heft_file *in;         /* the file joined with the tensors to append, if any */
    const heft_file *original;   /* the file before the edit */
    uint32_t align;              /* alignment of appended tensors; 0: the format's own */
    bool size_only;              /* only compute the size, and report obstacles */
    bool adds;                   /* tensors of a second file follow those of the file */
    bool places_each;            /* a tensor is replaced by one with another number of bytes */
    const heft_edit_swap *swaps; /* in ascending order */
    uint32_t swap_count;
    heft_edit_options opt;
    /* New names by tensor, ptr NULL: unchanged; or NULL: all names are unchanged. */
    heft_str *names;
    /* Identities by tensor after the edit; or NULL: all identities are unchanged. */
    heft_identity *identities;
    heft_vocab *vocab; /* owned: the file's vocabulary, or a copy of the requested vocabulary */
    /* Tracks the checksums of the file before the edit: confirmed, or not yet checked. */
    heft_ledger ledger;
    uint32_t *checksums;  /* checksums of the file, sorted by offset */
    uint32_t *copy_order; /* copied extents, sorted by offset in the file before the edit */
    /* number of copied extents; the checksum being checked, or HEFT_NONE */
    uint32_t copy_count, checking;
    bool all_checksums_hold;   /* all checksums of the file were checked */
    heft_status layout_status; /* error found in bytes that the edit replaces */
    heft_edit *e;
    heft_error *err;
} heft_edit_job;

/* edit.c: plan g, with files and options set.  The caller closes *out. */
heft_status heft_edit_plan_job(heft_edit **out, heft_edit_job *g);
/* Return an error if this file cannot be edited. */
heft_status heft_edit_check_file(const heft_file *f, heft_error *err);
/* Set *out to the version of the file if the format can write that version.  Otherwise NULL: the
 * format chooses, and reading the edited file shows whether the version has changed. */
heft_status heft_edit_version(const char **out, const heft_file *f, heft_arena *a, heft_error *err);

/* edit_request.c: return the name of tensor t after the edit. */
heft_str heft_edit_name(const heft_edit_job *g, uint32_t t);
/* Return the identity of tensor t after the edit. */
heft_identity heft_edit_identity(const heft_edit_job *g, uint32_t t);
/* Return true if the caller sets a vocabulary or ids of special tokens. */
bool heft_edit_has_new_vocab(const heft_edit_job *g);
bool heft_edit_sets(const heft_edit_job *g, heft_str key);
bool heft_edit_unsets(const heft_edit_job *g, heft_str key);
/* Return true if the edit replaces the part with this role: the vocabulary or the configuration. */
bool heft_edit_replaces_part(const heft_edit_job *g, heft_str role);
/* Return the top-level value with that key, or for MAP.NAME the value in the format's number
 * map; or NULL. */
const heft_value *heft_edit_find(const heft_index *x, const heft_format *f, heft_str key);
/* Return true if the edit adds numbers to the map of that name, or removes some. */
bool heft_edit_changes_map(const heft_edit_job *g, heft_str map);
heft_status heft_edit_check_request(const heft_edit_job *g);

/* edit_layout.c: turn a plan that has run into extents. */
heft_status heft_edit_lay_out(heft_edit_job *g);

/* edit_extents.c: append an extent copied from the file, or an extent of new bytes; *to: the
 * buffer to fill. */
heft_status heft_edit_add_copy(heft_edit_job *g, uint64_t at, uint64_t length, uint64_t from);
heft_status heft_edit_add_bytes(heft_edit_job *g, uint64_t at, uint64_t length, uint8_t **to);
/* Read bytes of the edited file. */
heft_status heft_edit_bytes(const heft_edit_job *g, uint64_t at, void *buf, size_t len,
                            heft_error *err);
const heft_edit_extent *heft_edit_extent_at(const heft_edit *e, uint64_t at); /* or NULL */

/* edit_tensors.c: tensors of a second file in place of those of the file with the same names. */
typedef struct heft_edit_tensors {
    const heft_file *f, *added;
    heft_memory *mem;      /* allocates the swaps */
    heft_edit_swap *swaps; /* result, for heft_edit_job; `room` of them are allocated */
    uint32_t swap_count, room;
    bool places_each; /* result */
    heft_error *err;
} heft_edit_tensors;
/* Return an error unless each tensor of x has one in f to replace, with the same type and shape
 * unless may_differ.  *bytes_differ: the new bytes do not fit in the place of the old ones. */
heft_status heft_edit_check_tensors(bool *bytes_differ, const heft_file *f, const heft_index *x,
                                    bool may_differ, heft_error *err);
/* Let the index of `in`, a view of e->f, have the tensors of e->added. */
heft_status heft_edit_put_tensors(heft_edit_tensors *e, heft_file *in);
void heft_edit_tensors_free(heft_edit_tensors *e);

/* edit_checksums.c */
heft_status heft_edit_sort_checksums(heft_edit_job *g);
/* Implement heft_planner.carry_unwritten; ctx is a heft_edit_job. */
heft_status heft_edit_carry(void *ctx, const heft_digest *d, heft_range r, void *state,
                            heft_error *err);
/* Add a range of the file before the edit to a running digest, using checksums of the file where
 * possible. */
heft_status heft_edit_carry_original(heft_edit_job *g, const heft_digest *d, heft_range r,
                                     void *state, heft_error *err);
/* Require every checksum of the file before the edit to hold. */
heft_status heft_edit_check_all_checksums(heft_edit_job *g, heft_error *err);

/* edit_replaced.c: check all bytes of the file that no extent copies, once all extents are
 * planned.  HEFT_E_CHECKSUM, HEFT_E_FORMAT: a replaced byte range is damaged. */
heft_status heft_edit_check_replaced(heft_edit_job *g);

/* edit_check.c: check all checksums that cover no tensor data, before the edit repeats the
 * assertions of the file.  The caller frees w. */
heft_status heft_edit_check_checksums(heft_ledger *w, const heft_file *f, heft_error *err);
/* Open the edited file and compare the model with the expected model. */
heft_status heft_edit_check(heft_edit_job *g);

#endif
