/* edit.h - a file planned anew in its own format, around data that stays as it is. */
#ifndef HEFT_EDIT_H
#define HEFT_EDIT_H
#include "core/check/source_verifier.h"
#include "core/write/plan.h"

struct heft_edit {
    const heft_host *host;
    heft_memory mem;
    heft_arena arena; /* of the pieces' bytes */
    heft_vec pieces;
    uint64_t size;
    bool in_place;
};

typedef struct heft_editing {
    heft_planner p;
    const heft_file *in;    /* with the tensors that are added, if there are some */
    const heft_file *plain; /* the file as it is */
    uint32_t align;         /* of what is added; 0: the format's own */
    bool is_rough;          /* only the size is wanted, and what stands in the way */
    heft_edit_options opt;
    heft_str *names; /* by tensor, ptr NULL: as it was; or NULL: all are */
    heft_identity
        *identities;   /* by tensor: those of the edited file; or NULL: all are as they were */
    heft_vocab *vocab; /* of its own: the file's, or a copy of the one that was asked for */
    heft_source_verifier
        verifier; /* the checksums of the file as it is, and those that hold or were not judged yet */
    uint32_t *checksums; /* those, by their places */
    uint32_t *copied;    /* pieces that are copied, by their places in the file as it is */
    uint8_t
        *is_carried; /* by claim: what the edited file says of the same bytes is derived from it */
    uint32_t copies, judged; /* how many are copied; the claim that is being judged, or HEFT_NONE */
    bool is_swept;           /* all claims hold */
    heft_status refused;     /* for what was found in bytes that are made anew */
    heft_edit *e;
    heft_error *err;
} heft_editing;

/* edit.c: plans g, which has files and options; *out is to be closed. */
heft_status heft_edit_make(heft_edit **out, heft_editing *g);
/* Whether a file is one that is edited at all. */
heft_status heft_edit_check_file(const heft_file *f, heft_error *err);
/* What the format calls the file's version, when it can write it; else NULL, for what it writes without being asked:
 * reading that shows whether it is the same. */
heft_status heft_edit_version(const char **out, const heft_file *f, heft_arena *a, heft_error *err);

/* edit_request.c: the name that tensor t gets. */
heft_str heft_edit_name(const heft_editing *g, uint32_t t);
/* The identity that tensor t gets. */
heft_identity heft_edit_identity(const heft_editing *g, uint32_t t);
/* Whether a vocabulary, or ids of special tokens, are asked for. */
bool heft_edit_has_new_vocab(const heft_editing *g);
bool heft_edit_sets(const heft_editing *g, heft_str key);
bool heft_edit_unsets(const heft_editing *g, heft_str key);
/* Whether the edit replaces the part of the file with this role: the vocabulary or the configuration. */
bool heft_edit_replaces_part(const heft_editing *g, heft_str role);
/* The value of that key, of the top level or, as MAP.NAME, of the map in which the format keeps numbers; or NULL. */
const heft_value *heft_edit_find(const heft_index *x, const heft_format *f, heft_str key);
/* Whether the map of that name gets or loses a number. */
bool heft_edit_changes_map(const heft_editing *g, heft_str map);
heft_status heft_edit_check_request(const heft_editing *g);

/* edit_layout.c: what a plan that has run comes to. */
heft_status heft_edit_lay_out(heft_editing *g);

/* edit_extents.c: adds a piece of the file as it is, or one of new bytes, with *to for them. */
heft_status heft_edit_add_copy(heft_editing *g, uint64_t at, uint64_t length, uint64_t from);
heft_status heft_edit_add_bytes(heft_editing *g, uint64_t at, uint64_t length, uint8_t **to);
/* Bytes of the edited file. */
heft_status heft_edit_bytes(const heft_editing *g, uint64_t at, void *buf, size_t len,
                            heft_error *err);
const heft_edit_extent *heft_edit_extent_at(const heft_edit *e, uint64_t at); /* or NULL */

/* edit_checksums.c */
heft_status heft_edit_sort_checksums(heft_editing *g);
/* As heft_planner.carry_unwritten; ctx is a heft_editing. */
heft_status heft_edit_carry(void *ctx, const heft_digest *d, heft_range r, void *state,
                            heft_error *err);
/* Add a range of the file before the edit to a running digest, from the checksums of the file where they tell. */
heft_status heft_edit_carry_old(heft_editing *g, const heft_digest *d, heft_range r, void *state,
                                heft_error *err);
/* Every checksum of the file as it is must hold. */
heft_status heft_edit_sweep(heft_editing *g, heft_error *err);

/* edit_replaced.c: once all pieces are there, looks at the bytes of the file as it is that are not among them.
 * HEFT_E_CHECKSUM or HEFT_E_FORMAT when they are damaged. */
heft_status heft_edit_check_replaced(heft_editing *g);

/* edit_check.c: a file must hold what it says of itself, data aside, before that is said again.  w is to be freed. */
heft_status heft_edit_check_checksums(heft_source_verifier *w, const heft_file *f, heft_error *err);
/* The edited file is opened and must be what was there, but for what was asked for. */
heft_status heft_edit_check(heft_editing *g);

#endif
