/* plan.h - the engine's side of planning: a model to be written, from a file or from calls. */
#ifndef HEFT_PLAN_H
#define HEFT_PLAN_H
#include "core/read/partial_crcs.h"
#include "core/read/running_digest.h"
#include "core/write/text_set.h"

typedef struct heft_model_bytes { /* a part of the file itself, at hand … */
    heft_str role, bytes;
    const heft_file *from; /* … or read from here when the format asks for it */
    uint32_t part;
} heft_model_bytes;

typedef struct heft_stored {
    heft_storage how;
    bool required; /* on the encoding, also of what does not get smaller */
} heft_stored;

struct heft_planner {
    heft_plan plan; /* formats call back through plan.planner */
    const heft_format *format;
    const heft_host *host;
    heft_write_options opt;
    heft_index x;
    heft_arena arena;
    heft_vec model_bytes;
    const char *first_loss;        /* its rule; NULL: none stops the writing */
    uint32_t losses;               /* that stop the writing */
    heft_partial_crcs written;     /* checksums of what went to the sink */
    heft_vec range_digests;        /* that the format asked for */
    heft_vec stored;               /* heft_stored, by part; shorter: the others as usual */
    const heft_digest **digest_of; /* by part, where its storage asks for one; or NULL */
    uint32_t digests_changed,
        decoded; /* parts with another kind of digest, or without encoding: within.c */
    uint8_t (*part_digests)[HEFT_CHECKSUM_BYTES]; /* by part: their values */
    uint32_t
        part_capacity;   /* of plan.storage, digest_of and part_digests, once the file has grown */
    bool asks_generator; /* x.generator was asked for, and is not only that of the input */
    heft_text_set reported;          /* losses, of a format whose files can grow */
    struct heft_planner *grows_into; /* that the model of this one is to be added to, or NULL */
    /* Carries a checksum over a range that was not written, because it is there; or NULL. */
    heft_status (*carry_unwritten)(void *ctx, const heft_digest *d, heft_range r, void *state,
                                   heft_error *err);
    void *carry_unwritten_ctx;
};

heft_status heft_planner_init(heft_planner *p, const heft_format *fmt,
                              const heft_write_options *opt, heft_error *err);
void heft_planner_free(heft_planner *p);
/* Whether key and text of a value that the caller gave are UTF-8. */
bool heft_value_is_text(const heft_value *v);
/* bytes are borrowed. */
heft_status heft_planner_model_part(heft_planner *p, heft_str role, heft_str bytes,
                                    heft_error *err);
/* The same for that part of an open file. */
heft_status heft_planner_part_of(heft_planner *p, const heft_file *from, uint32_t part,
                                 heft_error *err);
/* Sets the generator that was asked for; HEFT_E_ARGUMENT: not UTF-8.  The text is copied. */
heft_status heft_planner_generator(heft_planner *p, heft_str name, heft_error *err);
/* ---- how parts are stored, part_storage.c ---- */

/* Of parts of which nothing else is said. */
heft_storage heft_planner_default_storage(const heft_planner *p);
/* HEFT_E_UNSUPPORTED: the format has no place for it, or this build cannot make it. */
heft_status heft_planner_check_storage(const heft_planner *p, const heft_storage *how,
                                       heft_error *err);
/* How a part that was added is stored, unless as usual.  Nothing of *how is borrowed. */
heft_status heft_planner_store(heft_planner *p, uint32_t part, const heft_storage *how,
                               heft_error *err);
/* A part that was stored so has its encoding even when that makes it no smaller. */
void heft_planner_require_encoding(heft_planner *p, uint32_t part);
bool heft_planner_requires_encoding(const heft_planner *p, uint32_t part);
/* Sets plan.storage, and once that is settled, the digests of parts. */
heft_status heft_planner_storage(heft_planner *p);
heft_status heft_planner_part_digests(heft_planner *p, heft_error *err);
const heft_digest *heft_planner_digest_of(const heft_planner *p, uint32_t part); /* NULL: none */

/* ---- running ---- */

/* Asks the format for losses and the layout; HEFT_E_LOSSY when something stands in the way. */
heft_status heft_planner_run(heft_planner *p, heft_error *err);

/* ---- the layout, layout.c ---- */

/* Parts that take bytes in the order of their places: owned by the planner's arena. */
heft_status heft_planner_parts_in_order(heft_planner *p, uint32_t **out, uint32_t *count,
                                        heft_error *err);
/* Bytes of the file; when parts are compressed, at most these. */
uint64_t heft_planner_most(const heft_planner *p);
/* Whether all data of plan.existing is moved as one. */
heft_status heft_planner_moves_whole(const heft_planner *p, bool *moves);
/* What the format writes behind the data: as planned, or when parts are appended, now that these end. */
heft_status heft_planner_trailer_bytes(const heft_planner *p, uint64_t *out);

/* ---- digests that the format asked for, plan_digests.c ---- */

/* Computes the digests that back() will ask for, once all data are written. */
heft_status heft_planner_digests(heft_planner *p, heft_error *err);
void heft_planner_digests_free(heft_planner *p);

/* ---- what formats write themselves, emit.c ---- */

typedef enum heft_section { HEFT_HEADER, HEFT_TRAILER } heft_section;
/* Run front() or back() of the format into the sink, which gets no byte beyond the planned ones: HEFT_E_IO when the
 * format writes more or fewer, since names and texts of the input have changed. */
heft_status heft_planner_emit(heft_planner *p, heft_section section, heft_sink *sink,
                              heft_error *err);
/* Bytes [at, at + len) of the file, which lie in front of place i of so many, or behind the last:
 * what between() writes, then the plan's fill.  HEFT_E_IO when between() does not write what was planned. */
heft_status heft_planner_record_header(const heft_planner *p, const uint32_t *places,
                                       uint32_t count, uint32_t i, uint64_t at, size_t len,
                                       uint8_t *dst, heft_error *err);
/* The same for bytes [at, to), into the sink. */
heft_status heft_planner_write_record_header(heft_planner *p, const uint32_t *places,
                                             uint32_t count, uint32_t i, uint64_t at, uint64_t to,
                                             heft_sink *sink, heft_error *err);
/* All those bytes of a late plan, once the digests are known. */
heft_status heft_planner_write_record_headers(heft_planner *p, heft_sink *sink, heft_error *err);
/* Write bytes of the file, of which the plan's digests of ranges take note. */
heft_status heft_planner_write(heft_planner *p, heft_sink *sink, uint64_t at, const void *data,
                               size_t len, heft_error *err);
/* At a place of the file, whatever the sink is: streams are written in order. */
heft_status heft_sink_put(heft_sink *s, uint64_t at, const void *data, size_t len, heft_error *err);
heft_status heft_sink_fill(heft_sink *s, uint64_t at, uint64_t len, uint8_t byte, heft_error *err);

/* ---- a file that grows while it is written, grow.c ---- */

/* A planner for what is to be added to the model of p, which was planned. */
heft_status heft_planner_trial(heft_planner *q, heft_planner *p, heft_error *err);
/* The parts of p's model from number `first` on, which are those of q's, are planned as they are there. */
heft_status heft_planner_take(heft_planner *p, uint32_t first, const heft_planner *q,
                              heft_error *err);
/* Plans the whole model, whose parts are written, for what comes after them. */
heft_status heft_planner_again(heft_planner *p, heft_error *err);

/* ---- a file that is written anew, in_place.c ---- */

/* From the first byte to the last that tensors have in the file of that number, see heft_global_offset(), those without
 * bytes included at the end; false: there are none. */
bool heft_existing_data(const heft_index *kept, uint32_t file, heft_range *out);
/* What of the file itself is moved as one: its data, and what follows them in a format that writes nothing there; with
 * plan.keeps_tail all behind the front.  false: there is nothing. */
bool heft_planner_existing(const heft_planner *p, heft_range *out);
/* Moves it to start; false: it would pass 2^64. */
bool heft_planner_move(heft_planner *p, uint64_t start, uint64_t tail_align);

#endif
