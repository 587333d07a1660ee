/* plan.h - heft_planner, the engine's side of planning: the model to write, taken from a file or
 * declared call by call.
 *
 * This room decides what a written file will contain and where: losses, storage, offsets, headers.
 * It moves no payload; that is in convert and writer. */
#ifndef HEFT_PLAN_H
#define HEFT_PLAN_H
#include <heft/heft_ext.h>
#include <heft/write.h>

#include "core/read/partial_crcs.h"
#include "core/read/stored_checksum.h"
#include "model/names.h"

typedef struct heft_text_set {
    heft_vec texts; /* heft_str, borrowed */
    heft_names names;
} heft_text_set;

bool heft_text_set_has(const heft_text_set *s, const heft_name_hash *key, heft_str text);
/* Add a string that is not in the set; the string is borrowed.  false: out of memory. */
bool heft_text_set_add(heft_text_set *s, heft_memory *m, const heft_name_hash *key, heft_str text);
void heft_text_set_free(heft_text_set *s, heft_memory *m); /* a zeroed struct is harmless */

/* Bytes of a model-level part, such as "config": in memory, or read from a file when the format
 * asks. */
typedef struct heft_model_bytes {
    heft_str role, bytes;
    const heft_file *from; /* read `part` of this file instead; NULL: the bytes are in memory */
    uint32_t part;
} heft_model_bytes;

typedef struct heft_part_storage {
    heft_storage storage;
    bool required; /* keep the encoding even if the encoded part is not smaller */
} heft_part_storage;

struct heft_planner {
    heft_plan plan; /* formats call back through plan.planner */
    const heft_format *format;
    const heft_format_writer *writer; /* writer of the format, or NULL */
    const heft_host *host;
    heft_write_options opt;
    heft_index x;
    heft_arena arena;
    heft_vec model_bytes;
    const char *first_loss; /* rule of the first blocking loss; NULL: none */
    /* End of a message about losses: " (listed above)", or the first loss without a callback. */
    const char *listed;
    uint32_t losses;            /* number of blocking losses */
    uint32_t reshaped, dropped; /* numbers of tensors */
    heft_partial_crcs written;  /* checksums of the bytes written to the sink */
    heft_vec range_digests;     /* digests of ranges requested by the format */
    heft_vec part_storage;      /* heft_part_storage, by part; past the end: the default storage */
    const heft_digest **digest_of; /* by part, NULL where no digest is wanted; or NULL */
    /* Parts that get another kind of digest, lose the digest, lose the encoding: same_format.c. */
    uint32_t digests_changed, digests_lost, decoded;
    uint8_t (*part_digests)[HEFT_CHECKSUM_BYTES]; /* by part: the digest */
    uint32_t part_capacity;   /* of storage, digest_of and part_digests, once a file has grown */
    bool warnings_are_errors; /* An edit is strict about losses in any case. */
    bool asks_generator;      /* the caller set x.generator; otherwise the input did */
    heft_text_set reported;   /* losses already reported, if files of the format can grow */
    struct heft_planner *grows_into; /* planner of the model to extend; or NULL */
    /* Update the digest `state` with a range of existing bytes that are not written; or NULL. */
    heft_status (*carry_unwritten)(void *ctx, const heft_digest *d, heft_range r, void *state,
                                   heft_error *err);
    void *carry_unwritten_ctx;
};

/* Refuse a format whose models are folders of files, after heft_planner_init(): a file of it alone
 * is not a model. */
heft_status heft_planner_check_single(const heft_planner *p, heft_error *err);
heft_status heft_planner_init(heft_planner *p, const heft_format *fmt,
                              const heft_write_options *opt, heft_error *err);
void heft_planner_free(heft_planner *p);
/* Return true if the key and the text of a caller's value are UTF-8. */
bool heft_value_is_text(const heft_value *v);
/* Add a model-level part; bytes are borrowed. */
heft_status heft_planner_model_part(heft_planner *p, heft_str role, heft_str bytes,
                                    heft_error *err);
/* Add a model-level part of an open file. */
heft_status heft_planner_model_part_from(heft_planner *p, const heft_file *from, uint32_t part,
                                         heft_error *err);
/* Set the generator that the caller asked for; the text is copied.  HEFT_E_ARGUMENT: not UTF-8. */
heft_status heft_planner_generator(heft_planner *p, heft_str name, heft_error *err);
/* ---- storage parts are stored, part_storage.c ---- */

/* Return the storage of a part without settings of its own. */
heft_storage heft_planner_default_storage(const heft_planner *p);
/* HEFT_E_UNSUPPORTED: the format cannot represent the storage, or this build cannot write the
 * encoding. */
heft_status heft_planner_check_storage(const heft_planner *p, const heft_storage *storage,
                                       heft_error *err);
/* Set the storage of an added part, if it differs from the default.  The settings are copied. */
heft_status heft_planner_set_storage(heft_planner *p, uint32_t part, const heft_storage *storage,
                                     heft_error *err);
/* Keep the encoding of a part after heft_planner_set_storage(), even if the encoded part is not
 * smaller. */
void heft_planner_require_encoding(heft_planner *p, uint32_t part);
bool heft_planner_requires_encoding(const heft_planner *p, uint32_t part);
/* Fill plan.storage; once the storage is final, look up the digests of the parts. */
heft_status heft_planner_fill_storage(heft_planner *p);
heft_status heft_planner_part_digests(heft_planner *p, heft_error *err);
const heft_digest *heft_planner_digest_of(const heft_planner *p, uint32_t part); /* NULL: none */
/* Once a plan has run: refuse parts that this build cannot compress. */
heft_status heft_planner_check_codecs(const heft_planner *p, heft_error *err);

/* ---- running ---- */

/* Let the format report losses and plan the layout.  HEFT_E_LOSSY: some losses are not allowed. */
heft_status heft_planner_run(heft_planner *p, heft_error *err);

/* ---- the layout, layout.c ---- */

/* List the parts that have bytes, sorted by offset; the list belongs to the planner's arena. */
heft_status heft_planner_parts_in_order(heft_planner *p, uint32_t **out, uint32_t *count,
                                        heft_error *err);
/* Return the planned file size in bytes, or an upper bound if parts are compressed. */
uint64_t heft_planner_max_bytes(const heft_planner *p);
/* Set *moves to whether all data of plan.existing move as a block. */
heft_status heft_planner_moves_block(const heft_planner *p, bool *moves);
/* Return the bytes that the format writes after the data: as planned, or for appended parts,
 * counted now that the end of the data is known. */
heft_status heft_planner_trailer_bytes(const heft_planner *p, uint64_t *out);

/* ---- digests requested by the format, plan_digests.c ---- */

/* Compute the digests that write_trailer() will ask for, once all data are written. */
heft_status heft_planner_digests(heft_planner *p, heft_error *err);
void heft_planner_digests_free(heft_planner *p);
/* Join the CRCs of adjacent written bytes, up to the offsets where a range with a digest begins or
 * ends. */
heft_status heft_planner_compact_crcs(heft_planner *p, heft_error *err);

/* ---- bytes written by formats, write_headers.c ---- */

typedef enum heft_section { HEFT_HEADER, HEFT_TRAILER } heft_section;
/* Run write_header() or write_trailer() of the format into the sink, which gets no more bytes
 * than planned. HEFT_E_IO: the format wrote more or fewer, because the input has changed. */
heft_status heft_planner_emit(heft_planner *p, heft_section section, heft_sink *sink,
                              heft_error *err);
/* Fill dst with bytes [at, at + len) of the file, between part i - 1 and part i in file order,
 * or the end of the data if i == count: the output of write_record_header(), then padding.
 * HEFT_E_IO: write_record_header() wrote another number of bytes than planned. */
heft_status heft_planner_record_header(const heft_planner *p, const uint32_t *file_order,
                                       uint32_t count, uint32_t i, uint64_t at, size_t len,
                                       uint8_t *dst, heft_error *err);
/* Write bytes [at, to) before part `i` in file order, as above, into the sink. */
heft_status heft_planner_write_record_header(heft_planner *p, const uint32_t *file_order,
                                             uint32_t count, uint32_t i, uint64_t at, uint64_t to,
                                             heft_sink *sink, heft_error *err);
/* Write what the file still needs once all data are written: record headers that contain digests
 * of preceding parts, unless they are in the stream already, and the trailer. */
heft_status heft_planner_close_file(heft_planner *p, heft_sink *sink, heft_error *err);
/* Write bytes of the file and update the plan's digests of ranges. */
heft_status heft_planner_write(heft_planner *p, heft_sink *sink, uint64_t at, const void *data,
                               size_t len, heft_error *err);

/* ---- additions while writing, plan_addition.c ---- */

/* Start a planner for an addition to the model of p, after p has been planned. */
heft_status heft_planner_trial(heft_planner *q, heft_planner *p, heft_error *err);
/* Apply the plan of q's parts to the parts of p from number `first` on. */
heft_status heft_planner_adopt_layout(heft_planner *p, uint32_t first, const heft_planner *q,
                                      heft_error *err);
/* Plan the whole model again after all parts are written, for the bytes that follow the parts. */
heft_status heft_planner_replan(heft_planner *p, heft_error *err);

/* ---- existing data of a rewritten file, kept_offsets.c ---- */

/* Return the range from the first to the last byte of tensor data in file number `file` (see
 * heft_global_offset()), including empty parts at the end; false: there are none. */
bool heft_existing_data(const heft_index *kept, uint32_t file, heft_range *out);
/* Return the range of the file that moves as a block: the data, and the rest of the file if the
 * format writes no trailer; with plan.keeps_trailer, everything after the header.  false: there is
 * none. */
bool heft_planner_existing_block(const heft_planner *p, heft_range *out);
/* Move that block to start; false: an offset would overflow 2^64. */
bool heft_planner_move_block(heft_planner *p, uint64_t start, uint64_t tail_align);

/* ---- copy attributes of tensors to the planned model ---- */

/* Copy everything known about a tensor besides type and shape.  cast: the element type changes,
 * so that attributes of the stored type are dropped.  identity: replaces the identity of the
 * source; NULL: keep that identity. */
heft_status heft_copy_attributes(heft_planner *p, const heft_index *from, uint32_t id,
                                 uint32_t source, bool cast, const heft_identity *identity);

/* copy_metadata.c.  Return true if `key` has the form MAP.NAME for the format's number map; for a
 * value, if the value can also move into the map. */
bool heft_is_in_number_map(const heft_format *f, heft_str key, heft_str *name);
bool heft_is_map_number(const heft_format *f, const heft_value *v, heft_str *name);
/* HEFT_E_ARGUMENT: the key has the form MAP.NAME, but the value cannot move into the map. */
heft_status heft_check_map_number(const heft_format *f, const heft_value *v, heft_error *err);
/* Move top-level numbers with keys MAP.NAME into the map; the last number of a name wins. */
heft_status heft_planner_nest_numbers(heft_planner *p);

/* Return true if the kind of a value is known, all strings are UTF-8, the length fits the kind,
 * and numbers are not complex: no format has metadata of complex numbers. */
bool heft_is_metadata_value(const heft_value *v);
/* Return the index after value i of the caller's metadata and its children. */
static inline size_t heft_set_next(const heft_value *set, size_t i)
{
    return heft_value_nests(&set[i]) ? set[i].as.container.end : i + 1;
}
/* Return HEFT_E_ARGUMENT unless the metadata are scalars, and lists that precede their scalars. */
heft_status heft_set_check(const heft_value *set, size_t count, heft_error *err);
/* Append value i of the caller's metadata, which may be a list, as `first`: the value itself, or
 * with another kind. */
heft_status heft_set_add(heft_index *x, const heft_value *set, size_t i, heft_value first);

/* ---- report quantised tensors whose parts no longer belong together ---- */

/* Warn about quantised tensors of `in` of which only some parts are planned, or whose planned parts
 * have names that do not show the quantised tensor.  planned: id in the plan of each tensor of
 * `in`, HEFT_NONE if it is left out; NULL: the ids are equal.  schemes: the quantised tensors of
 * `in`; NULL: they are found. */
heft_status heft_warn_torn(heft_planner *p, const heft_file *in, const heft_schemes *schemes,
                           const uint32_t *planned);

/* ---- the engine's calls of a sink ---- */

/* Write at an offset of the file; a stream is written in order, so that the offset is the
 * current position. */
heft_status heft_sink_put(heft_sink *s, uint64_t at, const void *data, size_t len, heft_error *err);
heft_status heft_sink_fill(heft_sink *s, uint64_t at, uint64_t len, uint8_t byte, heft_error *err);
/* Announce the size of the file, if the sink wants to know it. */
heft_status heft_sink_reserve(heft_sink *s, uint64_t size, heft_error *err);
heft_status heft_sink_read_back(heft_sink *s, uint64_t at, void *buf, size_t len, heft_error *err);
heft_status heft_sink_finish(heft_sink *take, heft_error *err);
/* Adds the insertions of a plan to what is written. */
typedef struct heft_inserting_sink {
    heft_sink base;
    heft_sink *to;
    const heft_plan *plan;
    uint64_t at; /* next byte of a stream, as the plan counts */
} heft_inserting_sink;
/* Return the sink to write to: `s` over `to`, or `to` if the plan has no insertions. */
heft_sink *heft_sink_inserting(heft_inserting_sink *s, heft_sink *to, const heft_plan *plan);
/* Return the size of the planned file, with its insertions; inserting_sink.c. */
uint64_t heft_plan_size(const heft_plan *plan);
/* Finish the sink after work that returned st; discard the sink after a failure. */
heft_status heft_sink_end(heft_sink *take, heft_status st, heft_error *err);

#endif
