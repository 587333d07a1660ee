/* format.h - the table that implements a file format, and the functions that a format may call.
 *
 * A format parses an index, plans a file and writes headers.  A format performs no I/O, sees only
 * the offset and length of a tensor's data, and allocates only from the index and the plan.
 * docs/adding-a-format.md is a guide. */
#ifndef HEFT_FORMAT_H
#define HEFT_FORMAT_H
#include "base/checked_math.h"
#include "base/cursor.h"
#include "base/error.h"
#include "base/out.h"
#include "base/text.h"
#include "model/dtype.h"
#include "model/index.h"

/* ---- planning: the model to be written, and the offset of every part ---------------------- */

typedef struct heft_frame { /* sizes of a compressed frame of a part: in the file, and decoded */
    uint32_t stored, content;
} heft_frame;

typedef struct heft_plan_shard {         /* an existing shard that the written file refers to */
    heft_str name;                       /* file name as spelled in the index */
    const char *algorithm;               /* of the digest of the whole shard */
    uint8_t digest[HEFT_CHECKSUM_BYTES]; /* as returned by heft_digest.final */
    uint64_t size;
} heft_plan_shard;

/* Information about the tensors' source.  The engine fills this table; every call gets `ctx`. */
typedef struct heft_plan_source {
    void *ctx;
    /* Return the name of a tensor in the source file.  NULL: there is no source file. */
    heft_str (*name)(const void *ctx, uint32_t tensor);
    /* Return the 16 bytes of the base id stored in the source file, or NULL if none is stored.
     * NULL: there is no source file. */
    const uint8_t *(*base_id)(const void *ctx, uint32_t tensor);
    /* Implement heft_plan_find_duplicates() (contents: true) and heft_plan_find_shared() (false).
     * NULL: the bytes are not known while planning. */
    heft_status (*find_duplicates)(void *ctx, uint32_t *duplicate_of, bool contents);
    /* Set *strictly to true if the entries of a sparse tensor are valid, no two have the same
     * position, and the columns of each row ascend.  NULL: there are no sparse tensors. */
    heft_status (*is_sorted)(void *ctx, uint32_t tensor, bool *strictly);
    /* Set *broken to the first rule that the values of a tensor break, or to HEFT_ANY_VALUE.  A
     * caller of the writer who passes such values later gets an error.  NULL: an edit, which
     * writes no values. */
    heft_status (*check_values)(void *ctx, uint32_t tensor, heft_value_rule *broken);
    /* Set *is_part to true if the tensor is part of a quantised tensor of the source file, unless
     * the caller takes the parts for numbers (raw_tensors).  NULL: there is no source file. */
    heft_status (*check_quantised)(void *ctx, uint32_t tensor, bool *is_part);
} heft_plan_source;

typedef struct heft_insertion { /* bytes of the format inside of the data of a part */
    uint64_t at;                /* offset of the data that follow, as if nothing were inserted */
    uint64_t before;            /* bytes of all insertions before */
    heft_str bytes;
} heft_insertion;

typedef struct heft_planner heft_planner; /* the engine's part of a plan, opaque to formats */
typedef struct heft_plan heft_plan;
struct heft_plan {
    heft_planner *planner; /* the heft_plan_...() functions find the engine here */
    /* The model.  Before plan(), the offset of a part is the offset in the source file, or 0
     * without a source file; plan() replaces it by the offset in the written file. */
    heft_index *x;
    const char *version;      /* requested version of the format, or NULL */
    uint64_t align;           /* alignment of payloads: as requested, or the format's default */
    uint64_t requested_align; /* 0: no alignment was requested */
    uint8_t fill;             /* padding byte between payloads */
    uint64_t header_bytes;    /* exact number of bytes that write_header() emits */
    uint64_t data_end;        /* write_trailer() begins here, after padding of the last payload */
    uint64_t file_bytes;      /* size of the file; 0: unknown before writing */
    uint32_t *order;          /* parts by ascending offset; NULL: by number */
    uint32_t order_count;
    /* Storage of each part: on entry the caller's request; plan() sets the actual storage.  Parts
     * that are not raw need heft_plan_append(). */
    heft_storage *storage;
    bool digest_decoded; /* digests of parts cover decoded bytes instead of stored bytes */
    bool appended;       /* set by heft_plan_append(): stored sizes are unknown before writing */
    /* The file is written while tensors are still being added: plan() must call heft_plan_append()
     * and place nothing.  Only for HEFT_CAN_APPEND formats without write_record_header() and
     * without digests of ranges. */
    bool grows;
    bool writes_generator; /* set by plan(): the file names the program that writes it */
    /* Set by plan(): write_record_header() needs digests of all preceding parts, so the engine
     * calls write_record_header() in file order. */
    bool needs_preceding_digests;
    /* Compressed parts: decoded bytes of each frame but the last (0: chosen by the engine, up to
     * 16 MiB), whether frames have checksums, and an optional function that emits the bytes after
     * the last frame of a part. */
    uint32_t frame_bytes;
    bool frame_checksums;
    void (*frames_end)(heft_out *o, const heft_frame *frames, uint32_t count);
    uint32_t *duplicate_of;  /* set by heft_plan_find_duplicates() or heft_plan_find_shared() */
    const heft_vocab *vocab; /* vocabulary of the model, or NULL */
    /* While a file is edited in its own format, the index of the present file; otherwise NULL.
     * Tensors and parts have the same numbers as in x, and the data stays stored as it is:
     * encodings, digests and ids are copied to the new header, not computed. */
    const heft_index *existing;
    /* Some parts of `existing` lie in a second file (see heft_global_offset_file()).  The engine
     * appends that data to the existing data, without changing the encoding. */
    bool has_added_parts;
    /* Both are set by plan() for an existing file: place each part separately instead of moving the
     * data as a whole; keep the present trailer where it is and append after the trailer. */
    bool places_each_part, keeps_trailer;
    /* Only with existing: the edit replaces the vocabulary, the config. */
    bool is_new_vocab, is_new_config;
    /* The existing shards that hold all parts, if the written file only refers to shards; or NULL.
     * Rows hold encodings and global offsets, where file n is shards[n - 1]; digest_texts holds the
     * spelled digest of each part.  plan() places nothing. */
    const heft_plan_shard *shards;
    uint32_t shard_count;
    const heft_str *digest_texts;
    /* Set by plan(): what is inserted, by ascending offset.  All other offsets and sizes of the
     * plan are those of a file without insertions. */
    const heft_insertion *insertions;
    uint32_t insertion_count;
    void *priv; /* private state of the format, from heft_plan_alloc() */
    heft_arena *arena;
    heft_error *err;
    heft_plan_source source;
    bool allow_loss;
    /* Tensors were declared through heft_writer_...(): a type that does not match the tensor is the
     * caller's error. */
    bool is_declared;
    /* plan() adds metadata that other programs need, if the model has other metadata. */
    bool fills_metadata;
};

/* Report something that the target cannot represent.
 *   HEFT_NOTE     stored in a different form
 *   HEFT_WARNING  metadata left out or altered
 *   HEFT_FAULT    prevents the conversion unless p->allow_loss.  With allow_loss the format alters
 *                 or drops the tensor or text; otherwise plan() continues, so that all losses are
 *                 listed, and the engine fails after plan().
 * `text` is a single line without the tensor's name, and must live as long as the plan.
 * Formats must return any status except HEFT_OK: out of memory or cancelled. */
heft_status heft_plan_loss(heft_plan *p, heft_severity s, const char *rule, uint32_t tensor,
                           const char *text);
/* Warn that a request of the caller is only met in a different form.  Like every warning, this
 * stops a strict conversion; an edit continues. */
heft_status heft_plan_warn(heft_plan *p, const char *rule, const char *text);
/* Mark a tensor as left out.  Numbers of tensors do not change until heft_plan_compact() removes
 * all marked tensors. */
void heft_plan_drop(heft_plan *p, uint32_t tensor);
void heft_plan_compact(heft_plan *p);
/* Change the shape of a tensor.  The number of elements must stay the same. */
heft_status heft_plan_reshape(heft_plan *p, uint32_t tensor, const uint64_t *dims, uint32_t rank);
/* Assign an offset to every raw part of a tensor in p->order, from `start` on, at multiples of
 * p->align.  Space for write_record_header() is reserved before each part; a duplicate
 * (p->duplicate_of) gets the offset of the first copy.  Set p->data_end to the end of the last
 * part, rounded up to tail_align (1: no padding).  With p->existing, the data is moved as a whole,
 * gaps included, unless write_record_header() emits any bytes or p->places_each_part is set. */
heft_status heft_plan_place(heft_plan *p, uint64_t start, uint64_t tail_align);
/* Raise *start, the lowest possible offset of the data, to the offset of the data in p->existing,
 * so that the data need not move; if the header has outgrown that offset, to the next offset with
 * the same alignment.  Return false, with *start unchanged, if there is no existing data.  For
 * formats that may have a gap before the data. */
bool heft_plan_keep_data_start(const heft_plan *p, uint64_t *start);
/* Use instead of heft_plan_place() if stored sizes are known only after writing: the parts of
 * p->order are written one after another from `start` on, at multiples of p->align.
 * write_trailer() finds offset, stored size and encoding in the rows, and the end in p->data_end;
 * p->file_bytes stays 0. */
heft_status heft_plan_append(heft_plan *p, uint64_t start);
/* Set p->duplicate_of: for each part the first part with the same bytes, or the part's own number.
 * The bytes of a duplicate are not written if the format leaves the duplicate out of p->order;
 * write_trailer() then refers to the first copy. */
heft_status heft_plan_find_duplicates(heft_plan *p);
/* Set p->duplicate_of for parts that occupy the same range of the source file.  Reads no bytes. */
heft_status heft_plan_find_shared(heft_plan *p);
/* Return true if some part of a tensor is, or may have to be, compressed. */
bool heft_plan_compresses(const heft_plan *p);
/* Call `check` for the storage of each part of a tensor, to refuse storage that the format
 * lacks. */
heft_status heft_plan_check_storage(const heft_plan *p,
                                    heft_status (*check)(const heft_plan *p,
                                                         const heft_storage *how));
/* Give every duplicate the storage of the first copy, after p->duplicate_of is set. */
heft_status heft_plan_copy_shared_storage(heft_plan *p);
/* Return true if this build can compute the digest. */
bool heft_plan_can_digest(const heft_plan *p, const char *algorithm);
/* Call `emit`, pass the emitted bytes to o, and compute the digest.  For write_trailer(). */
heft_status heft_plan_emit_digested(const heft_plan *p, heft_out *o, const char *algorithm,
                                    void (*emit)(const heft_plan *p, heft_out *o),
                                    uint8_t digest[HEFT_CHECKSUM_BYTES]);
/* Request a digest of a range of the written file.  For plan().  Pass *number to
 * heft_plan_range_digest().  Only crc32 and crc32c, which can be combined from chunks. */
heft_status heft_plan_digest_range(heft_plan *p, const char *algorithm, heft_range r,
                                   uint32_t *number);
/* Get a requested digest of a range, or the digest of a part, as returned by heft_digest.final
 * (checksums little-endian).  For write_trailer(), and for write_record_header() with
 * needs_preceding_digests. */
heft_status heft_plan_range_digest(const heft_plan *p, uint32_t number, const uint8_t **out);
const uint8_t *heft_plan_part_digest(const heft_plan *p, uint32_t part);
/* Allocate zeroed memory that lives as long as the plan.  NULL: out of memory, the error is set. */
void *heft_plan_alloc(heft_plan *p, size_t size);
/* Sort n numbers; is_before gets the index of the plan as ctx. */
heft_status heft_plan_sort(heft_plan *p, uint32_t *ids, uint32_t n,
                           bool (*is_before)(const void *ctx, uint32_t a, uint32_t b));
/* Get the bytes of a part of the model as a whole ("config"); ptr is NULL if there is none. */
heft_status heft_plan_model_part(heft_plan *p, const char *role, heft_str *out);

/* ---- checking: verification beyond checksums ---------------------------------------------- */

/* Passed to heft_format.check; the engine supplies the functions. */
typedef struct heft_check heft_check;
struct heft_check {
    const heft_index *x;
    uint64_t size; /* file size in bytes */
    bool is_quick; /* do not read payloads: padding() succeeds without reading, and check() must not
                      read the bytes of parts */
    void (*report)(heft_check *c, heft_severity s, const char *rule, heft_range where,
                   uint32_t tensor, const char *text);
    /* Report a finding from the first byte of the range that differs from `byte`. */
    heft_status (*padding)(heft_check *c, const char *rule, heft_severity s, heft_range where,
                           uint8_t byte);
    /* Read stored bytes at a global offset; `can_read` is false if the shard is missing. */
    heft_status (*read)(heft_check *c, uint64_t global_offset, void *buf, size_t len);
    bool (*can_read)(heft_check *c, uint64_t global_offset);
    /* Get the parts of this file, without those of shards, by offset, like heft_ix_order().  The
     * engine releases the array. */
    heft_status (*order)(heft_check *c, const uint32_t **out, uint32_t *count);
    heft_error *err;
};

/* ---- models in several files -------------------------------------------------------------- */

typedef struct heft_shard_set { /* a model that is written as several files */
    heft_str stem;              /* common beginning of all file names */
    uint32_t count;             /* number of shards, without the index */
    const heft_index *x;
    const uint32_t *file, *order; /* by tensor of x: number of the shard, from 0; tensors by name */
    uint64_t bytes;               /* size of all tensors */
    const char *const *names;     /* names of the shards; NULL: they follow from the stem */
    const heft_index *settings;   /* texts of its metadata go into the index; may be NULL */
} heft_shard_set;

enum { HEFT_SHARD_SET_VALUES = 4 };
typedef struct heft_sharding {
    const char *version; /* the only version of the format that can be split; NULL: any */
    /* Emit the name of shard i of `count`; i == count: the name of the index. */
    void (*name)(heft_out *o, heft_str stem, uint32_t i, uint32_t count);
    /* Emit a text index that lists the shard of each tensor; NULL: there is none. */
    void (*index)(heft_out *o, const heft_shard_set *s);
    /* The index is a file of the format that refers to parts in the shards: see
     * heft_plan.shards. */
    bool index_refers_to_parts;
    /* Set the metadata that describes shard i of `count`; return the number of values.  `tensors`
     * is the number of tensors of the model.  The model's own metadata is then stored in shard 0
     * only.  NULL: shards do not describe themselves. */
    uint32_t (*values)(heft_value out[HEFT_SHARD_SET_VALUES], uint32_t i, uint32_t count,
                       uint32_t tensors);
} heft_sharding;

/* ---- moving the elements of tensors between a file and another one ------------------------ */

typedef struct heft_move_piece { /* pieces of the written file follow one another */
    const void *bytes;           /* new bytes, or NULL */
    heft_range from;             /* place in the present file; new bytes, and those of a part,
                                    have a length only */
    uint32_t part;               /* its elements, decoded; HEFT_NONE: none */
} heft_move_piece;

typedef struct heft_moved_part {
    uint32_t part;
    uint64_t at; /* offset in the other file */
} heft_moved_part;

/* A file whose graph or index stays as it is, while elements move.  Memory is that of `x`. */
typedef struct heft_data_move {
    heft_window *in;
    heft_index *x;     /* filled by move(), with the same numbers as by parse() */
    heft_str location; /* name of the other file, which gets elements; len 0: all go into this
                          one */
    uint64_t align;    /* elements in the other file begin at multiples; 0: as programs expect */
    heft_vec pieces;   /* heft_move_piece: this file */
    heft_vec parts;    /* heft_moved_part: the other file, by offset */
    uint64_t bytes, other_bytes; /* sizes of this file and the other one */
    uint32_t count;              /* tensors whose elements move */
} heft_data_move;

/* ---- a format ----------------------------------------------------------------------------- */

typedef struct heft_name_rules { /* ids of the warnings that the engine issues for any format */
    const char *path_rule;       /* a name looks like a path */
    const char *nul_rule;        /* a name contains a NUL; NULL: path_rule */
    const char *nul_text;        /* message for a NUL; NULL: a default */
    const char *rank_rule;       /* more than 64 dimensions; NULL: the format has a lower limit */
} heft_name_rules;

/* A file of a rank, of which heft_format.join_ranks makes a model. */
typedef struct heft_rank_file {
    const heft_index *x; /* its rank_facts are NULL if the file is not of a rank */
    heft_str name;
    uint32_t number;  /* number of the file in heft_global_offset() of the model */
    uint32_t *joined; /* by tensor of x: set to a tensor of the model that has its elements, or left
                         as it is, HEFT_NONE */
} heft_rank_file;

struct heft_format {
    const char *name;     /* on the command line, such as "gptrs-archive" */
    const char *title;    /* for people */
    const char *suffixes; /* of file names, separated by spaces */
    const char *versions; /* that can be written, separated by spaces; the first is the default */
    const char *structure_rule; /* rule of parse() errors that set no rule */
    uint32_t caps, align;       /* HEFT_CAN_...; default alignment of payloads */
    bool may_be_gzipped;        /* a file that is gzipped as a whole is unpacked before parsing */
    /* Magic texts, separated by spaces; a file begins with any of the texts.  NULL: call
     * probe(). */
    const char *magics;
    /* Return how many bits of the file identify the format (a magic number of 4 bytes: 32); 0 for a
     * file of a different format.  `head` and `tail` hold at least the first and last 64 bytes, or
     * the whole file if shorter.  NULL: `magics` is sufficient. */
    int (*probe)(const uint8_t *head, size_t head_len, const uint8_t *tail, size_t tail_len,
                 uint64_t size);
    /* Fill x.  Must be a pure function: after HEFT_AGAIN the engine calls parse() again with an
     * empty x. */
    heft_status (*parse)(heft_window *in, heft_index *x);
    const heft_name_rules *name_rules; /* NULL: the parser checks names and ranks */
    /* Add notes that need the complete index, for example about overlapping data.  Called after
     * parse(); reads no bytes of the file.  May be NULL. */
    heft_status (*notice)(heft_index *x);
    /* Add to x the tensors of the model whose files of ranks are given, the first of them the one
     * that was opened; x has no tensors yet.  Every element of the model is read from exactly one
     * file, and its copies are replicas (boxes.h).  NULL: the format has no such files. */
    heft_status (*join_ranks)(heft_index *x, heft_rank_file *files, uint32_t count);
    /* Report findings beyond checksums and notes, for verification only.  May be NULL. */
    heft_status (*check)(heft_check *c);
    /* Key of a metadata map with numbers that are also addressed as KEY.NAME ("burn.scalars"); or
     * NULL. */
    const char *number_map;
    /* The writer of a format that is not in the registry; otherwise NULL. */
    const struct heft_format_writer *writer;
};

/* The functions that write a format.  heft_format does not refer to the writer, so that a program
 * without writers can be linked. */
typedef struct heft_format_writer {
    /* Set *how to the default storage of a tensor's part.  If is_kept, *how is the present storage
     * of the part in an existing file, perhaps of another version: replace only options that the
     * requested version does not support.  NULL: parts are stored as requested. */
    void (*storage)(const heft_plan *p, heft_storage *how, bool is_kept);
    /* Report losses, and compute the offset of every part and p->header_bytes, data_end and
     * file_bytes. Nothing is written before plan() succeeds.  NULL, like write_header, if the
     * format is read-only. */
    heft_status (*plan)(heft_plan *p);
    /* Emit p->header_bytes bytes: the header, including the index if that precedes the data. */
    heft_status (*write_header)(const heft_plan *p, heft_out *o);
    /* Emit the record header immediately before a part.  Called in any order, any number of times,
     * on any thread, unless p->needs_preceding_digests.  May be NULL. */
    heft_status (*write_record_header)(const heft_plan *p, uint32_t part, heft_out *o);
    /* Emit the bytes after the data: file_bytes - data_end.  May be NULL. */
    heft_status (*write_trailer)(const heft_plan *p, heft_out *o);
    const heft_sharding *sharding; /* NULL: a model is always a single file */
    /* Plan a file whose elements move to another file, or back into it.  A pure function, as
     * parse().  NULL: the format refers to no other files. */
    heft_status (*move)(heft_data_move *m);
} heft_format_writer;

/* The formats of this build, in the order of formats.def.  heft_registry_at() returns NULL from
 * heft_registry_count() on. */
uint32_t heft_registry_count(void);
const heft_format *heft_registry_at(size_t i);
/* Return the writer of a format; NULL for a format that is only read; registry_writers.c. */
const heft_format_writer *heft_registry_writer(const heft_format *f);
/* Return the writer of a format with move(), or NULL. */
const heft_format_writer *heft_registry_mover(const heft_format *f);

/* ---- files of weights in archives of other programs: archives.c ---- */

typedef struct heft_archive_member {
    heft_range where;     /* in the archive */
    heft_str name, other; /* the member and another that is left out */
    uint32_t others, crc; /* number of files left out; CRC-32 of the member, if has_crc */
    bool has_crc;
} heft_archive_member;

bool heft_archive_is_tar(const uint8_t *head, size_t len);
/* If the file, of which `head` is the beginning, is an archive with a file of weights, set *out;
 * otherwise out->name.ptr is NULL.  Names are borrowed from the window.  HEFT_AGAIN: more bytes are
 * needed.  HEFT_E_UNSUPPORTED: it cannot be told which member is meant, or the member is
 * compressed. */
heft_status heft_archive_find(heft_archive_member *out, heft_window *in, heft_arena *arena,
                              const uint8_t *head, size_t len, heft_error *err);

#endif
