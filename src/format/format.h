/* format.h - what a format is, and what a format file may call.  No I/O, no memory but the index's and the
 * plan's, no tensor bytes: to a format they are ranges.  docs/adding-a-format.md walks through it. */
#ifndef HEFT_FORMAT_H
#define HEFT_FORMAT_H
#include "base/checked_math.h"
#include "base/cursor.h"
#include "base/error.h"
#include "base/out.h"
#include "base/text.h"
#include "model/dtype.h"
#include "model/index.h"

/* ---- planning: the model to be written, and where everything goes ------------------------- */

typedef struct heft_frame { /* a compressed piece of a part: bytes in the file, and of content */
    uint32_t stored, content;
} heft_frame;

typedef struct heft_plan_shard { /* a file beside the one that is written */
    heft_str name;               /* what the index calls it */
    const char *algorithm;
    uint8_t digest[HEFT_CHECKSUM_BYTES]; /* of all of it, as heft_digest.final gives it */
    uint64_t size;
} heft_plan_shard;

/* Where the tensors of a plan come from, with the engine's context for the calls. */
typedef struct heft_plan_source {
    void *ctx;
    /* The name of a tensor in its source.  NULL: there is no source. */
    heft_str (*name)(const void *ctx, uint32_t tensor);
    /* The base id stored there, sixteen bytes, or NULL: none is stored.  NULL: there is no source. */
    const uint8_t *(*base_id)(const void *ctx, uint32_t tensor);
    /* For heft_plan_find_duplicates().  NULL: the bytes are not known while planning. */
    heft_status (*find_duplicates)(void *ctx, uint32_t *duplicate_of, bool contents);
    /* Whether the entries of a sparse tensor are right, no two in the same place, and the columns of
     * each row ascend.  NULL: there are no sparse tensors. */
    heft_status (*is_sorted)(void *ctx, uint32_t tensor, bool *strictly);
} heft_plan_source;

typedef struct heft_planner heft_planner; /* the engine's side of a plan, opaque to formats */
typedef struct heft_plan heft_plan;
struct heft_plan {
    heft_planner *planner; /* passed back to the engine by every call of a format */
    /* The model; plan() sets the offsets of its parts.  Until then these tell where a part lies in
     * the file that it comes from; 0: in none. */
    heft_index *x;
    const char *version;      /* generation asked for, or NULL */
    uint64_t align;           /* of payloads: what was asked for, else the format's own */
    uint64_t requested_align; /* 0: nothing was */
    uint8_t fill;             /* byte between payloads */
    uint64_t header_bytes;    /* write_header() writes exactly these */
    uint64_t
        data_end; /* write_trailer() begins here; padding behind the last payload is before it */
    uint64_t file_bytes;
    uint32_t *order; /* parts in the order of their place in the file; NULL: by number */
    uint32_t order_count;
    /* What the caller asked for; plan() changes it to what will be done. */
    heft_storage *storage; /* by part; one that is not raw: see heft_plan_append() */
    bool digest_decoded;   /* digests cover decoded bytes, not stored ones */
    bool appended;         /* set by heft_plan_append() */
    /* Of a format with HEFT_CAN_APPEND, which has neither write_record_header() nor digests of ranges: the file is written and the
     * model grows, so that plan() places nothing, and calls heft_plan_append(). */
    bool grows;
    bool writes_generator;        /* set by plan(): the file says which program wrote it */
    bool needs_preceding_digests; /* write_record_header() needs digests of the parts before it */
    /* Of compressed parts: content of each frame but the last (0: the engine's choice, up to 16 MiB),
     * whether frames have checksums, and what stands behind the frames of a part; or NULL. */
    uint32_t frame_bytes;
    bool frame_checksums;
    void (*frames_end)(heft_out *o, const heft_frame *frames, uint32_t count);
    uint32_t
        *duplicate_of; /* from heft_plan_find_duplicates() or heft_plan_find_shared(), or NULL */
    const heft_vocab *vocab; /* of the model, or NULL */
    /* The file as it is, when it is this one that is planned anew, in its own format: tensors and parts
     * have the same numbers, and their bytes stay stored as they are.  What the file says of them
     * (encodings, digests, ids) is written again, not made.  Or NULL. */
    const heft_index *existing;
    /* Parts of kept that lie in another file, by heft_global_offset_file(), are added to the file and come behind its own,
     * as they are stored there.  false: there are none. */
    bool has_added_parts;
    /* Set by plan(), of a file that is kept: its data are placed one by one, and not moved as one; what it has
     * behind its data stays, in front of what is added. */
    bool places_each_part, keeps_trailer;
    bool is_new_vocab, is_new_config; /* with kept: not what the file has, but what was asked for */
    /* All parts lie in these files already: rows hold their places, where file n is links[n - 1], and how they are
     * stored; spelled, by part, their digests.  Nothing is placed.  NULL: as usual. */
    const heft_plan_shard *shards;
    uint32_t shard_count;
    const heft_str *digest_texts;
    void *priv; /* the format's own, from heft_plan_alloc() */
    heft_arena *arena;
    heft_error *err;
    heft_plan_source source;
    bool allow_loss;
    bool is_declared; /* by calls: a type that does not fit its tensor is a fault of the caller */
};

/* Something the target cannot carry.  HEFT_NOTE: carried in another form.  HEFT_WARNING: metadata that is left
 * out.  HEFT_FAULT: a tensor cannot be carried as it is, a text is too long for its length field; with allow_loss the format bends it or
 * leaves it out and returns HEFT_OK from here, otherwise planning goes on to list the rest and fails at its end.
 * Not OK: out of memory or cancelled; return it.  text says what, in one line, without the tensor's name. */
heft_status heft_plan_loss(heft_plan *p, heft_severity s, const char *rule, uint32_t tensor,
                           const char *text);
/* A warning about something that was asked for and is carried in another form.  It stops a conversion that is strict, as
 * every warning does, but no edit. */
heft_status heft_plan_warn(heft_plan *p, const char *rule, const char *text);
/* Leaves a tensor out of what is written: marks it, so that numbers stay as they are until
 * heft_plan_compact() takes all that are marked away. */
void heft_plan_drop(heft_plan *p, uint32_t tensor);
void heft_plan_compact(heft_plan *p);
/* Gives a tensor another shape of as many elements. */
heft_status heft_plan_reshape(heft_plan *p, uint32_t tensor, const uint64_t *dims, uint32_t rank);
/* Places every raw part of the tensors, but those that p->duplicate_of gives the place of another, from `start` on, in p->order, at multiples of p->align, each
 * behind room for what the format's write_record_header() writes, and sets data_end to the end of the last, padded to
 * tail_align (1: not).  With p->existing, all of the data is moved as one, what lies between parts with
 * them, unless write_record_header() has something to say. */
heft_status heft_plan_place(heft_plan *p, uint64_t start, uint64_t tail_align);
/* Of a format that can have more room than it needs in front of the data: raises *start, where these could
 * begin, to where they are in p->existing, or if that lies before it, to where they stay as aligned as
 * they are.  false: nothing of the kind is kept, and *start is as it was. */
bool heft_plan_keep_data_start(const heft_plan *p, uint64_t *start);
/* Instead of heft_plan_place(), for parts whose stored size shows only when they are written: they
 * come in p->order from `start` on, each at a multiple of p->align.  write_trailer() finds offset, stored
 * and encoding in their rows, the end in p->data_end.  file_bytes stays 0: unknown. */
heft_status heft_plan_append(heft_plan *p, uint64_t start);
/* Sets p->duplicate_of, by part: the first of those that will have the same bytes, perhaps the part itself.  What the
 * format leaves out of p->order then is not written; write_trailer() gives it the place of the first. */
heft_status heft_plan_find_duplicates(heft_plan *p);
/* The same for parts that share their bytes in the file they come from, whatever these are: nothing is read. */
heft_status heft_plan_find_shared(heft_plan *p);
/* Whether parts of tensors are to be compressed: some of them, or all that there might be. */
bool heft_plan_compresses(const heft_plan *p);
/* Asks of the storage of each part of a tensor whether the format has it. */
heft_status heft_plan_check_storage(const heft_plan *p,
                                    heft_status (*check)(const heft_plan *p,
                                                         const heft_storage *how));
/* Once p->duplicate_of is set: parts that share their bytes have the storage of the first of them. */
heft_status heft_plan_copy_shared_storage(heft_plan *p);
/* Whether this build can compute the digest. */
bool heft_plan_can_digest(const heft_plan *p, const char *algorithm);
/* For write_trailer(): emits into o, and sets digest to that of what was emitted. */
heft_status heft_plan_emit_digested(const heft_plan *p, heft_out *o, const char *algorithm,
                                    void (*emit)(const heft_plan *p, heft_out *o),
                                    uint8_t digest[HEFT_CHECKSUM_BYTES]);
/* A digest of a range of the written file, for write_trailer(): its number goes to
 * heft_plan_range_digest().  Only algorithms that can be joined from pieces: crc32, crc32c. */
heft_status heft_plan_digest_range(heft_plan *p, const char *algorithm, heft_range r,
                                   uint32_t *number);
/* For write_trailer(), and for a late write_record_header() of what lies before: bytes as heft_digest.final gives them (checksums
 * little-endian). */
heft_status heft_plan_range_digest(const heft_plan *p, uint32_t number, const uint8_t **out);
const uint8_t *heft_plan_part_digest(const heft_plan *p, uint32_t part);
void *heft_plan_alloc(heft_plan *p, size_t size); /* cleared; NULL: no memory, error set */
/* Bytes of a part of the file itself, such as "config"; ptr NULL when the model has none. */
heft_status heft_plan_model_part(heft_plan *p, const char *role, heft_str *out);

/* ---- checking: what verify asks of a format beyond its checksums -------------------------- */

typedef struct heft_check heft_check;
struct heft_check {
    const heft_index *x;
    uint64_t size;
    bool is_quick; /* payload is not read: padding() passes, and what lies in parts is left alone */
    void (*report)(heft_check *c, heft_severity s, const char *rule, heft_range where,
                   uint32_t tensor, const char *text);
    /* Reports bytes of [at, at + len) that are not `byte`: the first such range. */
    heft_status (*padding)(heft_check *c, const char *rule, heft_severity s, heft_range where,
                           uint8_t byte);
    /* Stored bytes at a place, and whether they can be had: files beside this one may be missing. */
    heft_status (*read)(heft_check *c, uint64_t place, void *buf, size_t len);
    bool (*can_read)(heft_check *c, uint64_t place);
    /* As heft_ix_order(), to be left alone when done with. */
    heft_status (*order)(heft_check *c, const uint32_t **out, uint32_t *count);
    heft_error *err;
};

/* ---- models in several files ---------------------------------------------------------------- */

typedef struct heft_shard_set { /* that is being written */
    heft_str stem;
    uint32_t count; /* files, the index aside */
    const heft_index *x;
    const uint32_t *file, *order; /* by tensor of x: its file, from 0 on; tensors by name */
    uint64_t bytes;               /* of all tensors */
} heft_shard_set;

enum { HEFT_SHARD_SET_VALUES = 4 };
typedef struct heft_sharding {
    const char *version; /* generation of the format that can be split; NULL: any */
    /* The name of file i of so many, or of the index when i == count. */
    void (*name)(heft_out *o, heft_str stem, uint32_t i, uint32_t count);
    /* A text beside the files that lists what is in them; or NULL. */
    void (*index)(heft_out *o, const heft_shard_set *s);
    /* The index is a file of the format that refers to the parts of the others: see heft_plan.shards. */
    bool index_refers_to_parts;
    /* What file i says of itself in its metadata: how many values.  The metadata of the model are then those of file 0
     * alone.  tensors: of the model.  NULL: nothing. */
    uint32_t (*values)(heft_value out[HEFT_SHARD_SET_VALUES], uint32_t i, uint32_t count,
                       uint32_t tensors);
} heft_sharding;

/* ---- a format ----------------------------------------------------------------------------- */

typedef struct heft_name_rules { /* of warnings about what is odd in any format */
    const char *name;            /* a name that looks like a path */
    const char *nul;             /* a name with a NUL; NULL: as above */
    const char *nul_text;        /* NULL: that there is one */
    const char *rank;            /* more than 64 dimensions; NULL: there cannot be as many */
} heft_name_rules;

struct heft_format {
    const char *name, *title, *suffixes, *versions;
    const char *structure_rule; /* the rule of an error of parse() that has none of its own */
    uint32_t caps, align;
    bool may_be_gzipped; /* as a whole: the file is unpacked before it is parsed */
    /* A file of the format begins with one of these texts, separated by spaces; NULL: probe() tells. */
    const char *magics;
    /* How many bits of the file speak for this format, 0: not it.  head and tail hold at least
     * the first and last 64 bytes, or the whole file.  NULL: the magics tell all. */
    int (*probe)(const uint8_t *head, size_t head_len, const uint8_t *tail, size_t tail_len,
                 uint64_t size);
    /* Fills x.  Pure: run again from the start after HEFT_AGAIN. */
    heft_status (*parse)(heft_window *in, heft_index *x);
    const heft_name_rules *name_rules; /* NULL: the parser looks for such things itself */
    /* Notes what the index as a whole tells that is odd, after a parse, without a look at any byte.  May be NULL. */
    heft_status (*notice)(heft_index *x);
    /* Everything that verify reports beyond claims and notes.  May be NULL. */
    heft_status (*check)(heft_check *c);
    /* How a part of a tensor is stored, where nothing was asked for; or with is_kept, where *how is what the part has in
     * a file of the format, perhaps of another generation: what this one cannot do is replaced.  NULL: as asked for. */
    void (*storage)(const heft_plan *p, heft_storage *how, bool is_kept);
    /* Losses, sizes, offsets: before any byte.  NULL, as front and back, when only read. */
    heft_status (*plan)(heft_plan *p);
    /* Header and, if it comes first, the index: header_bytes. */
    heft_status (*write_header)(const heft_plan *p, heft_out *o);
    /* What stands right in front of a part, wherever that is: a record's head.  Any order, any number
     * of times, on any thread, unless the plan is late.  May be NULL. */
    heft_status (*write_record_header)(const heft_plan *p, uint32_t part, heft_out *o);
    /* What follows the data: file_bytes - data_end.  May be NULL. */
    heft_status (*write_trailer)(const heft_plan *p, heft_out *o);
    const heft_sharding *sharding; /* NULL: models come in one file */
    /* A map of the metadata whose numbers are also given as MAP.NAME, "burn.scalars"; or NULL. */
    const char *number_map;
};

size_t heft_registry_count(void);
const heft_format *heft_registry_at(size_t i);

#endif
