/* edit.h - a file planned anew in its own format, around data that stays as it is. */
#ifndef HEFT_EDIT_H
#define HEFT_EDIT_H
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
    const heft_file *in;
    heft_edit_options opt;
    heft_str *names; /* by tensor, ptr NULL: as it was; or NULL: all are */
    heft_vocab *vocab;
    uint32_t *claims; /* of the file as it is, by their places */
    heft_edit *e;
    heft_error *err;
} heft_editing;

/* asked.c: the name that tensor t gets. */
heft_str heft_edit_name(const heft_editing *g, uint32_t t);
bool heft_edit_sets(const heft_editing *g, heft_str key);
bool heft_edit_unsets(const heft_editing *g, heft_str key);
bool heft_edit_has(const heft_index *x, heft_str key);
heft_status heft_edit_check_asked(const heft_editing *g);
/* Whether the format can be asked for that version. */
bool heft_edit_writes(const heft_format *f, heft_str version);

/* pieces.c: what a plan that has run comes to. */
heft_status heft_edit_make_pieces(heft_editing *g);
/* Bytes of the edited file. */
heft_status heft_edit_bytes(const heft_editing *g, uint64_t at, void *buf, size_t len,
                            heft_error *err);

const heft_edit_piece *heft_edit_piece_at(const heft_edit *e, uint64_t at); /* or NULL */

/* carry.c */
heft_status heft_edit_sort_claims(heft_editing *g);
/* As heft_planner.passed_by; ctx is a heft_editing. */
heft_status heft_edit_carry(void *ctx, const heft_digest *d, heft_range r, void *state,
                            heft_error *err);

/* check.c: the file must hold what it says of itself, data aside, before it is said again. */
heft_status heft_edit_check_claims(const heft_file *f, heft_error *err);
/* The edited file is opened and must be what was there, but for what was asked for. */
heft_status heft_edit_check(heft_editing *g);

#endif
