/* index.h - the index: tensors, parts, metadata and checksums of a file read or written.
 *
 * A parser fills the index, a planner assigns offsets, and all other code reads it.  Rows have a
 * fixed size and lie in growing columns (heft_vec); a row is named by its number in the column.
 * Names and strings are borrowed from the file where possible, and copied into the arena of the
 * index otherwise.  Pointers to rows are valid until the column grows. */
#ifndef HEFT_INDEX_H
#define HEFT_INDEX_H
#include <heft/heft.h>
#include <heft/ids.h>
#include <heft/memory_limits.h>
#include <heft/vocabulary.h>

#include <string.h>

#include "base/arena.h"
#include "base/name_hash.h"

/* ---- rows ---- */

enum {                        /* heft_ix_tensor_row.flags */
       HEFT_T_BASE_ID = 1,    /* column base_ids has a stored id */
       HEFT_T_GRAD_KNOWN = 2, /* requires_grad is stored */
       HEFT_T_GRAD = 4,       /* requires_grad is stored as true */
       HEFT_T_PARAM_ID = 8,   /* column param_ids has a stored id */
       HEFT_T_DROPPED = 32,   /* left out of the written file */
       HEFT_T_NAME_HASH = 16  /* embd.name_hash is stored; the value is the FNV-1a of the name */
};

typedef struct heft_ix_tensor_row {
    const char *name;
    uint32_t name_len;
    uint32_t dims;       /* index of the first dimension in heft_index.dims */
    uint32_t first_part; /* index in heft_index.parts; the parts of a tensor are contiguous */
    uint32_t attrs;      /* index of the first attribute in heft_index.attrs, plus 1; 0: none */
    uint16_t rank, part_count; /* number of dimensions, number of parts */
    heft_dtype dtype;
    uint8_t layout; /* heft_layout; from HEFT_LAYOUT_OTHER on, names in heft_index.layouts */
    uint8_t flags;  /* HEFT_T_... */
} heft_ix_tensor_row;

enum {                        /* heft_ix_part_row.flags */
       HEFT_P_BIG_ENDIAN = 1, /* numbers are stored with the most significant byte first */
       HEFT_P_VIEW = 2,       /* the elements are described by a heft_ix_view */
       HEFT_P_UNUSED = 4,     /* belongs to no tensor of the written file */
       HEFT_P_LEFT_OUT = 8,   /* part of the file: weights that are not among the tensors */
       HEFT_P_NEGATED = 16,   /* each number has the opposite sign of the stored number */
       HEFT_P_CONJUGATED = 32 /* each complex number is the conjugate of the stored number */
};

typedef struct heft_ix_part_row {
    uint64_t offset; /* global offset, see heft_global_offset() */
    uint64_t stored; /* stored bytes */
    uint64_t length; /* decoded bytes, or HEFT_UNKNOWN_LENGTH: see core/read/decode.h */
    uint32_t role;   /* index in heft_index.roles */
    heft_dtype dtype;
    uint8_t encoding; /* heft_encoding */
    uint8_t flags;    /* HEFT_P_... */
} heft_ix_part_row;

/* Numbers that differ from the stored ones in the order of their bytes, or in their signs. */
enum {
    HEFT_P_SIGNS = HEFT_P_NEGATED | HEFT_P_CONJUGATED,
    HEFT_P_RESTORED = HEFT_P_BIG_ENDIAN | HEFT_P_SIGNS
};

/* Return true if the stored bytes are the bytes of the tensor. */
static inline bool heft_ix_is_plain(const heft_ix_part_row *p)
{
    return p->encoding == HEFT_RAW && !(p->flags & (HEFT_P_RESTORED | HEFT_P_VIEW));
}

/* Elements of a dense part that do not fill the decoded bytes in row-major order: a matrix stored
 * column by column, a slice of a storage that several tensors share, one row repeated.  Element
 * (i, j, ...) begins at byte first + size * (i * strides[0] + j * strides[1] + ...) of the decoded
 * bytes, where size is the size of an element. */
typedef struct heft_ix_view {
    uint64_t content;      /* decoded bytes of the part; stored bytes if the part is raw */
    uint64_t first;        /* byte offset of element 0 */
    uint32_t part, tensor; /* views are in ascending order of parts */
    uint32_t strides;      /* index in heft_index.strides, one stride for each dimension, counted in
                              elements; HEFT_NONE: row-major */
} heft_ix_view;

enum { HEFT_CHECKSUM_RANGES = 2, HEFT_CHECKSUM_BYTES = 32 };

/* A checksum that the file stores, with the bytes that the checksum covers. */
typedef struct heft_stored_checksum {
    const char *rule;      /* rule id of the finding if the checksum does not match */
    const char *algorithm; /* e.g. "crc32c" */
    heft_range range[HEFT_CHECKSUM_RANGES]; /* covered bytes; unused ranges have length 0 */
    uint32_t zeros;      /* zero bytes hashed between the two ranges, absent from the file */
    uint32_t tensor;     /* tensor that the bytes belong to, or HEFT_NONE */
    uint32_t part;       /* part whose digest this is, or HEFT_NONE */
    bool decoded;        /* covers the decoded bytes of the part */
    bool advisory;       /* a mismatch is a warning, and does not prevent copying */
    bool is_alternative; /* the next checksum is another interpretation of the same stored value */
    bool covers_metadata_only; /* covers no byte of a tensor */
    bool covers_piece;         /* covers bytes of a piece of the tensor, which is assembled */
    bool at_open;     /* also compared when the file is opened: the parser reads the bytes */
    const char *note; /* text of the note if this interpretation matches; NULL: no note */
    uint8_t expect[HEFT_CHECKSUM_BYTES]; /* as heft_digest.final gives the digest */
} heft_stored_checksum;

/* The digest of one part, as the file spells the digest. */
typedef struct heft_digest_row {
    const char *text; /* e.g. "crc32c:0x1A2B3C4D" */
    const char *rule; /* rule id of the finding if the digest does not match */
    uint32_t part;
    uint16_t len;      /* length of text */
    uint8_t hex_at;    /* offset of the first digit in text */
    uint8_t algorithm; /* index in the table of checksums.c; top bit set: covers decoded bytes */
} heft_digest_row;

/* Another file that holds parts of the model.  Offsets of its bytes are global offsets, after those
 * of the first file: see heft_global_offset(). */
typedef struct heft_ix_shard {
    heft_str label;     /* file name; with a suffix, the file name is STEM-label.suffix */
    const char *suffix; /* suffix of the shard, stripped from this file's name to obtain the stem;
                               NULL: label is the whole name */
    uint64_t size;      /* stated bytes, or HEFT_UNKNOWN_LENGTH */
    bool is_model;      /* a model file whose tensors are joined; else a file of bytes alone */
    const char *own_suffix; /* stripped from this file's name instead of suffix, or NULL */
} heft_ix_shard;

/* Content of the range of a box. */
typedef enum heft_box_content {
    HEFT_BOX_BYTES, /* the elements */
    HEFT_BOX_FILE,  /* a file of weights with one tensor: the elements */
    HEFT_BOX_PART   /* a part of the shard, a model, whose elements are not stored one after the
                       other; the length is the number of the part */
} heft_box_content;

/* A piece of an assembled tensor, see boxes.h. */
typedef struct heft_ix_box {
    uint64_t offset, length; /* global offset and length of the range */
    uint8_t holds;           /* heft_box_content */
} heft_ix_box;

/* A tensor whose elements are assembled from boxes when they are read. */
typedef struct heft_ix_assembled {
    uint64_t elements, start, bytes; /* the last two: range of its part in the source */
    uint32_t tensor, first_box, box_count;
    uint32_t numbers; /* index of the first number of its boxes in heft_index.box_numbers */
    bool is_flat;     /* boxes are ranges of elements in row-major order */
} heft_ix_assembled;

/* A tensor of a file with has_pieces: a box of a tensor of the model, whose pieces are in several
 * files and have the same name. */
typedef struct heft_ix_piece {
    uint32_t tensor;
    uint32_t numbers; /* index in heft_index.box_numbers: for each dimension the offset in the
                         tensor of the model, then for each the size of that tensor, or
                         HEFT_NOWHERE: the pieces tell */
    bool may_repeat;  /* other files may have the same box, with the same elements */
} heft_ix_piece;

/* An entry of a shard index: the tensor `name` is in `file`. */
typedef struct heft_ix_shard_entry {
    heft_str name, file;
    uint64_t at;    /* offset of the entry in the shard index */
    uint32_t shard; /* number of the shard, from 1 */
} heft_ix_shard_entry;

/* A global offset has the number of the file above the offset in the file, which takes 44 bits. */
enum { HEFT_GLOBAL_OFFSET_BITS = 44 };

/* A file's statement that the file is one of several shards; count 0: the file states nothing. */
typedef struct heft_ix_shard_info {
    uint32_t number, count; /* number of this shard, from 0; number of shards */
    uint64_t tensors;       /* number of tensors in all shards, or HEFT_NOWHERE if not stated */
    heft_str prefix;        /* prefix of the metadata keys that state this: not keys of the model */
} heft_ix_shard_info;

/* A note may name content of the model that is not among the tensors. */
typedef enum heft_left_out {
    HEFT_LEFT_OUT_NOT,     /* the note is about something else */
    HEFT_LEFT_OUT,         /* cannot be read, or was not read */
    HEFT_LEFT_OUT_READABLE /* read if the caller asks: the state of an optimizer */
} heft_left_out;

/* Unusual but allowed content that a parser has found. */
typedef struct heft_note {
    heft_severity severity;
    const char *rule, *text; /* static, or in the arena */
    heft_range where;
    uint32_t tensor;  /* or HEFT_NONE */
    bool is_early;    /* verify skips the note: the check of the format reports the fact, too */
    uint8_t left_out; /* heft_left_out */
} heft_note;

typedef struct heft_ix_attr_row {
    heft_value value;
    uint32_t tensor;
} heft_ix_attr_row;

/* The vocabulary of the file: strings one after another, each after its length. */
typedef struct heft_ix_tokens {
    heft_range where;
    uint32_t count;
    uint8_t length_bytes;            /* size of each length in bytes; 0: there is no vocabulary */
    bool big_endian;                 /* lengths are big-endian */
    bool has_special;                /* special[] is set; else special tokens are found by name */
    uint32_t special[HEFT_SPECIALS]; /* token numbers; HEFT_NONE: none */
} heft_ix_tokens;

enum { HEFT_MAX_DEPTH = 256 }; /* upper bound for heft_limits.depth */

/* A hash table from names to numbers, see names.h. */
typedef struct heft_names {
    heft_slot *slots; /* number + 1; 0: free */
    uint32_t mask;    /* number of slots - 1; the number of slots is a power of two */
    uint32_t count;   /* number of names */
} heft_names;

/* A fact that the file states and the index does not hold, see heft_ix_omit(). */
typedef struct heft_ix_omission {
    heft_severity severity;
    const char *rule, *text;
    heft_str name;
    uint64_t count; /* number of occurrences */
} heft_ix_omission;

typedef struct heft_index {
    heft_memory mem;
    heft_limits limits;
    heft_error *err;     /* error of the call that fills the index */
    uint64_t file_bytes; /* size of the file; 0 while planning */
    heft_str pick;       /* key of the part of a nested file to open; empty: open everything */
    heft_name_hash key;
    const heft_array_types
        *array_types; /* NULL, or the types of arrays that are stored without one */

    /* Columns. */
    heft_vec tensors;          /* heft_ix_tensor_row */
    heft_vec hashes;           /* uint32_t for each tensor: hash of the name, with `key` */
    heft_vec parts;            /* heft_ix_part_row, tensor by tensor */
    heft_vec model_parts;      /* heft_ix_part_row: parts of the file itself */
    heft_vec dims;             /* uint64_t */
    heft_vec values;           /* heft_value: metadata, each container before its children */
    heft_vec attrs;            /* heft_ix_attr_row */
    heft_vec checksums;        /* heft_stored_checksum */
    heft_vec digests;          /* heft_digest_row, in ascending order of parts */
    heft_vec notes;            /* heft_note */
    heft_vec roles;            /* heft_str */
    heft_vec layouts;          /* heft_str: names of layouts that have no number */
    heft_vec shards;           /* heft_ix_shard; the first has number 1 */
    heft_vec shard_entries;    /* heft_ix_shard_entry */
    heft_vec shard_groups;     /* heft_ix_shard_entry, named by what is before the last "/" of
                                * tensors: an index names them, and not each tensor */
    heft_vec views;            /* heft_ix_view, in ascending order of parts */
    heft_vec strides;          /* uint64_t, in elements */
    heft_vec omitted;          /* heft_ix_omission */
    heft_vec assembled;        /* heft_ix_assembled, in ascending order of tensors */
    heft_vec boxes;            /* heft_ix_box, by assembled tensor */
    heft_vec box_numbers;      /* uint64_t, see boxes.h */
    heft_vec pieces;           /* heft_ix_piece, in ascending order of tensors */
    heft_vec tensor_checksums; /* uint32_t: see heft_ix_list_tensor_checksums() */
    heft_vec base_ids;         /* 16 bytes for each tensor up to the last that has a base id */
    heft_vec param_ids;        /* uint64_t for each tensor up to the last that has a param id */

    heft_names names, role_names;
    uint32_t last_role; /* role that was used last */
    heft_arena arena;   /* strings that cannot be borrowed from the file */
    heft_str version;
    heft_ix_tokens tokens;
    /* Facts of the file of a rank, in the arena, for heft_format.join_ranks; NULL: the file is not
     * one of those that the format joins by itself. */
    const void *rank_facts;
    uint64_t format_private; /* a value of the format's header that a rewrite of the file needs */
    heft_str generator;      /* program that wrote the file, as the file states; may be empty */
    uint64_t data_start, data_end; /* range that payload may occupy, for the check of the format
                                      that sets the range */
    uint64_t present;         /* bytes of the file, after which the window has zeros (`forgives`) */
    uint32_t unknown_lengths; /* number of parts that were added with HEFT_UNKNOWN_LENGTH */
    /* Number of the shard that assembles tensors from boxes, or of the arrays that the host's
     * library decodes (core/read/opened_container.h); 0: the engine has not added it, and offsets
     * of the parts of assembled tensors count from its beginning. */
    uint32_t assembled_shard;
    heft_ix_shard_info shard_info;
    uint64_t stated_tensor_bytes; /* stated bytes of all tensors, or HEFT_UNKNOWN_LENGTH */
    heft_vec open; /* uint32_t: values that are containers not yet ended, innermost last */
    /* Called every 1024 tensors with the last name parsed, or by a parser with the place it has
     * reached, so that the engine can drop mapped pages already parsed; *from: end of the pages
     * dropped so far, NULL at first.  May be NULL. */
    void (*on_parsed_upto)(void *ctx, const char **from, const char *name);
    void *on_parsed_ctx;
    const char *parsed_from; /* *from of on_parsed_upto */
    /* Return the offset in the file of text that the parser borrowed, or HEFT_NOWHERE; ctx is
     * on_parsed_ctx.  May be NULL. */
    uint64_t (*offset_of)(const void *ctx, const char *text);
    uint32_t left_out; /* number of notes about content that is left out, discarded ones too */
    uint32_t left_out_unread; /* content without a part that has HEFT_P_LEFT_OUT */
    uint32_t max_rank;        /* highest rank of a tensor that a parser has added */
    /* Flags side by side: a board has no byte to spare for padding. */
    bool has_omissions;    /* the file states facts that the index lacks: heft_ix_omit() */
    bool strict;           /* values invalid for their dtype or layout are faults, not warnings */
    bool forgives;         /* see heft_ix_forgive(); kept by heft_ix_reset() */
    bool has_alternatives; /* some stored checksum has is_alternative set */
    bool is_shard_index;   /* an index of shards, which has no tensors of its own */
    bool rank_has_states;  /* with rank_facts: files of its kind have nothing that it lacks */
    bool has_pieces;       /* the tensors are pieces of the tensors of a model */
    bool has_inner_paths;  /* shards may be in folders of the folder */
    bool has_name_table;   /* heft_ix_find() can be used */
    bool lost_notes;       /* a note was lost: opening the file fails */
    bool lost_omissions;   /* an omission, or the name of one, was lost: out of memory */
    bool notes_cut;        /* notes beyond the maximum number were discarded */
    bool odd_names;        /* heft_str_may_be_path() holds for a name */
    uint64_t offset_bits;  /* bitwise OR of the offsets of all parts of tensors */
    /* Call fn(arg, i) for each i below n, on several threads if the host has threads; NULL: call fn
     * in a loop.  Use heft_ix_run(). */
    void (*run)(void *ctx, size_t n, void (*fn)(void *arg, size_t i), void *arg);
    void *run_ctx;
} heft_index;

/* ---- lifetime: for the engine ---- */

/* Initialise *x.  Members of limits that are 0, and limits NULL, select the defaults.  secret: key
 * of the name hash. */
void heft_ix_init(heft_index *x, const heft_allocator *al, const heft_limits *limits,
                  const uint64_t secret[2]);
/* Remove all rows and free the arena; columns keep their capacity. */
void heft_ix_reset(heft_index *x);
void heft_ix_free(heft_index *x);
/* Shrink columns whose unused capacity is large. */
void heft_ix_trim(heft_index *x);
/* Trim the columns and build the name table; return HEFT_E_FORMAT if a name occurs twice. */
heft_status heft_ix_build_name_table(heft_index *x);
/* Give a tensor another name before the name table is built; name.ptr NULL: out of memory. */
heft_status heft_ix_rename(heft_index *x, uint32_t tensor, heft_str name);

/* Call fn(arg, i) for each i below n, with heft_index.run if the host has it, else in a loop. */
void heft_ix_run(const heft_index *x, size_t n, void (*fn)(void *arg, size_t i), void *arg);
/* Initialise *to as a worker's view of x: shared settings and roles, empty columns, no memory to
 * allocate, no error object. */
void heft_ix_worker_view(heft_index *to, const heft_index *x);
/* Make "data" the role that was used last, which heft_ix_add() requires; false: out of memory. */
bool heft_ix_cache_data_role(heft_index *x);
extern const heft_str heft_ix_data; /* "data" */
/* Call on_parsed_upto after every 1024th tensor; name: of the tensor added last. */
static inline void heft_ix_parsed_upto(heft_index *x, const char *name)
{
    enum { EVERY = 1024 };
    if (x->on_parsed_upto && x->tensors.len % EVERY == 0)
        x->on_parsed_upto(x->on_parsed_ctx, &x->parsed_from, name);
}
/* Return the offset of text in the file that is parsed, or HEFT_NOWHERE. */
static inline uint64_t heft_ix_offset_of(const heft_index *x, heft_str s)
{
    return x->offset_of && s.len ? x->offset_of(x->on_parsed_ctx, s.ptr) : HEFT_NOWHERE;
}
/* Set and return HEFT_E_NOMEM, with a message that states the size of the index. */
heft_status heft_ix_no_memory(heft_index *x);

/* ---- filling: for parsers; functions that fail set x->err ----
 * `at` is the offset of the record, for messages.  Strings are borrowed unless stated otherwise. */

/* Reserve rows for `count` tensors that the file announces.  Return HEFT_E_FORMAT if records of at
 * least min_bytes each do not fit into the `left` bytes that remain, HEFT_E_LIMIT past the limit.
 * */
heft_status heft_ix_reserve(heft_index *x, uint64_t at, uint64_t count, uint64_t left,
                            uint64_t min_bytes);
/* Append a dense tensor without parts.  The caller sets the `rank` elements of *dims, which is
 * valid until the next call. */
heft_status heft_ix_tensor(heft_index *x, heft_str name, heft_dtype t, uint32_t rank,
                           uint64_t **dims, uint32_t *id);
/* Append a dimension to the tensor added last, for files that do not state the rank first. */
heft_status heft_ix_dim(heft_index *x, uint64_t dim);
/* Set the layout by name: "dense", "sparse_csr", "sparse_coo", or one of up to 253 other names. */
heft_status heft_ix_set_layout(heft_index *x, uint32_t tensor, heft_str name);
/* Append a part to the tensor added last; owner HEFT_NONE: to the file.  A raw part has a length of
 * where.length.  length HEFT_UNKNOWN_LENGTH: the length is known only after decoding. */
heft_status heft_ix_part(heft_index *x, uint32_t owner, heft_str role, heft_dtype t,
                         heft_range where, uint64_t length, heft_encoding e);
/* Append the raw part "data" to a dense tensor, the one added last, whose shape is set.  Return
 * HEFT_E_FORMAT if the size overflows, differs from length (unless HEFT_UNKNOWN_LENGTH), or passes
 * the end of the file. */
heft_status heft_ix_dense(heft_index *x, uint32_t tensor, uint64_t at, uint64_t offset,
                          uint64_t length);
/* Append the part "data" to a dense tensor, the one added last, whose elements are strided.  The
 * range `where` decodes to `content` bytes (raw: content is where.length).  Element 0 begins at
 * byte `first` of the content; strides has one stride for each dimension, in elements, or is NULL
 * for row-major. Record contiguous elements as heft_ix_dense() would.  Return HEFT_E_FORMAT if
 * elements lie outside of the content.  Record the digest of a raw part with heft_ix_checksum()
 * over its range, since the part keeps only the bytes that the elements span; heft_ix_digest()
 * suits a compressed part, whose digest covers the whole content. */
heft_status heft_ix_strided(heft_index *x, uint32_t tensor, uint64_t at, heft_range where,
                            heft_encoding e, uint64_t content, uint64_t first,
                            const uint64_t *strides);
/* Copy the view of a part of another index, if there is one, to the part added last. */
heft_status heft_ix_view_copy(heft_index *x, uint32_t tensor, const heft_index *from,
                              uint32_t part);
/* Mark the numbers of the part added last as big-endian. */
void heft_ix_big_endian(heft_index *x);
/* Set signs, HEFT_P_NEGATED and HEFT_P_CONJUGATED, of the part added last, whose element type is
 * IEEE's or bf16 and has a sign bit. */
void heft_ix_signs(heft_index *x, uint8_t signs);
/* Append a metadata value.  LIST and MAP open a container, which heft_ix_meta_end() closes. */
heft_status heft_ix_meta(heft_index *x, heft_value v);
void heft_ix_meta_end(heft_index *x);
/* Append an attribute to the tensor added last; containers as for heft_ix_meta(). */
heft_status heft_ix_attr(heft_index *x, uint32_t tensor, heft_value v);
void heft_ix_attr_end(heft_index *x);
static inline heft_status heft_ix_meta_text(heft_index *x, heft_str key, heft_str text)
{
    return heft_ix_meta(x, (heft_value){ .kind = HEFT_KIND_STR, .key = key, .as.s = text });
}
static inline heft_status heft_ix_attr_text(heft_index *x, uint32_t tensor, heft_str key,
                                            heft_str text)
{
    return heft_ix_attr(x, tensor, (heft_value){ .kind = HEFT_KIND_STR, .key = key, .as.s = text });
}
heft_status heft_ix_base_id(heft_index *x, uint32_t tensor, const uint8_t id[16]);
heft_status heft_ix_param_id(heft_index *x, uint32_t tensor, uint64_t id);
/* Return the identity of a tensor, without the base id, which follows from the name. */
heft_identity heft_ix_identity(const heft_index *x, uint32_t tensor);
/* Refuse flags of a later version (HEFT_E_ARGUMENT); the error names the tensor. */
heft_status heft_identity_check(const heft_identity *id, heft_str tensor, heft_error *err);
/* Set the members that id->has names, the base id included. */
heft_status heft_ix_identify(heft_index *x, uint32_t tensor, const heft_identity *id);
/* Append a stored checksum; c.part is ignored.  Digests of parts: heft_ix_digest(). */
heft_status heft_ix_checksum(heft_index *x, heft_stored_checksum c);
/* Append the digest of a part; call in ascending order of parts.  `spelled` is the text of the
 * file, with the digits from offset hex_at on; an algorithm that is a number may have fewer digits
 * than usual.  decoded: the digest covers the decoded bytes.  Return HEFT_E_FORMAT if the digits
 * are invalid.  `name` is one of the algorithms of checksums.c. */
heft_status heft_ix_digest(heft_index *x, uint32_t part, const char *rule, const char *name,
                           heft_str spelled, size_t hex_at, bool decoded);
/* Append the CRC-32 of the decoded bytes of a compressed part. */
heft_status heft_ix_digest_crc32(heft_index *x, uint32_t part, const char *rule, uint32_t crc);
/* Convert hexadecimal digits to heft_stored_checksum.expect; false if the digits are invalid.
 * `algorithm` is one of checksums.c. */
bool heft_ix_digits(uint8_t out[HEFT_CHECKSUM_BYTES], const char *algorithm, heft_str hex);
/* Append a note about the byte `at` (or HEFT_NOWHERE) and a tensor (or HEFT_NONE).  rule and text
 * are static, or in the arena. */
void heft_ix_note(heft_index *x, heft_severity s, const char *rule, uint64_t at, uint32_t tensor,
                  const char *text);
void heft_ix_note_range(heft_index *x, heft_severity s, const char *rule, heft_range where,
                        uint32_t tensor, const char *text);
/* Append a note of another index, whose text is borrowed. */
void heft_ix_note_copy(heft_index *x, const heft_note *note);
/* Append a warning for each part whose offset is not a multiple of align, a power of two. */
void heft_ix_note_offsets(heft_index *x, uint32_t align, const char *rule, const char *text);
/* Append a note with a text formatted as by heft_error_set(). */
void heft_ix_note_format(heft_index *x, heft_severity s, const char *rule, heft_range where,
                         uint32_t tensor, const char *fmt, ...);
/* Append a note that verify skips, because the check of the format reports the same fact, perhaps
 * with a higher severity. */
void heft_ix_note_early(heft_index *x, heft_severity s, const char *rule, uint64_t at,
                        uint32_t tensor, const char *text);
/* Append a warning about content of the model that is not among the tensors.  A conversion reports
 * the warning as a loss, and a strict conversion fails; `verify` refuses a model that has no tensor
 * because of it.  The model has a hash if each content is HEFT_LEFT_OUT_READABLE, or a part of the
 * file that is marked by heft_ix_part_is_left_out().  The text names the content and the reason;
 * fmt as for heft_error_set(). */
void heft_ix_left_out(heft_index *x, heft_left_out how, const char *rule, heft_range where,
                      const char *fmt, ...);
/* Make the note added last a fault: the content is damaged. */
void heft_ix_left_out_is_fault(heft_index *x);
/* Mark the part of the file added last as the content of the note added last: the bytes of the part
 * count when models are compared. */
void heft_ix_part_is_left_out(heft_index *x);
/* Return true if tensors are assembled from boxes, which boards and browsers do not do. */
static inline bool heft_ix_has_assembled(const heft_index *x)
{
    return !HEFT_IS_LEAN && x->assembled.len;
}
/* Return true while the doctor opens a file that breaks rules. */
static inline bool heft_ix_forgives(const heft_index *x)
{
    return !HEFT_IS_LEAN && x->forgives;
}
/* Pass over an error that leaves the meaning of the file clear, if the file is opened to be
 * examined (heft_index.forgives): x->err, which the caller has just set to st, becomes a note with
 * the severity HEFT_FAULT and the static name `kind` as its rule.  Return HEFT_OK then, else st. */
heft_status heft_ix_forgive_error(heft_index *x, heft_status st, const char *kind);
static inline heft_status heft_ix_forgive(heft_index *x, heft_status st, const char *kind)
{
    return !st || !heft_ix_forgives(x) ? st : heft_ix_forgive_error(x, st, kind);
}
/* Record that the index does not hold a fact that the file states.  Such a file cannot be edited,
 * and a conversion into the same format reports the fact with severity s.  name: the key (copied),
 * or ptr NULL; text: a static sentence that continues the name.  At most 32 different facts are
 * listed; more of them count as repetitions of the last. */
void heft_ix_omit(heft_index *x, heft_severity s, const char *rule, heft_str name,
                  const char *text);
/* Append a shard; *number is the number of its file for heft_global_offset(). */
heft_status heft_ix_shard_add(heft_index *x, heft_ix_shard s, uint32_t *number);
/* Append everything that another index holds except metadata.  `base` is the number in x of the
 * file of `from`; shards of `from` follow.  The prefix precedes the names of the tensors; without a
 * prefix, names stay borrowed from the file of `from`.  kept[i] is nonzero if tensor i is appended.
 * Discards the name table of x. */
heft_status heft_ix_merge(heft_index *x, const heft_index *from, uint32_t base, heft_str prefix,
                          const uint8_t *kept);
/* heft_ix_merge(); instead(ctx, i) may append other tensors where tensor i of `from` is left
 * out. */
heft_status heft_ix_merge_with(heft_index *x, const heft_index *from, uint32_t base,
                               heft_str prefix, const uint8_t *kept,
                               heft_status (*instead)(void *ctx, uint32_t tensor), void *ctx);
/* Append the checksums of another index, of no tensor; see heft_ix_merge(). */
heft_status heft_ix_merge_checksums(heft_index *x, const heft_index *from, uint32_t base);
/* Reserve rows for additional tensors of one part each, with `dims` dimensions in total; false: out
 * of memory. */
bool heft_ix_reserve_rows(heft_index *x, uint64_t tensors, uint64_t dims);
/* Append a copy of value i of another index, children included: a metadata value if id is
 * HEFT_NONE, else attribute row i of `from`, as an attribute of tensor id of x. */
heft_status heft_ix_copy_value(heft_index *x, const heft_index *from, uint32_t i, uint32_t id);
/* Remove a top-level metadata value that is not a container. */
void heft_ix_drop_value(heft_index *x, uint32_t i);
/* Return true if two metadata values have equal keys and contents, children included. */
bool heft_ix_same_value(const heft_index *x, uint32_t i, const heft_index *y, uint32_t k);
/* Copy a string into the arena of the index; ptr NULL: out of memory, with x->err set. */
heft_str heft_ix_copy(heft_index *x, heft_str s);
/* Orders for heft_sort(), with the index as ctx: tensors by name, parts by role, values of the
 * metadata by key. */
bool heft_ix_name_before(const void *ctx, uint32_t a, uint32_t b);
bool heft_ix_role_before(const void *ctx, uint32_t a, uint32_t b);
bool heft_ix_key_before(const void *ctx, uint32_t a, uint32_t b);
/* Set *out to the numbers of all parts that have stored bytes, in order of offset, then of stored
 * bytes.  Release with heft_ix_order_free(). */
heft_status heft_ix_order(heft_index *x, uint32_t **out, uint32_t *count);
void heft_ix_order_free(heft_index *x, uint32_t *ids);
/* Return the order of heft_ix_order() in memory of the caller; NULL: out of memory. */
uint32_t *heft_ix_order_in(heft_memory *m, const heft_index *x, uint32_t *count);
void heft_ix_order_free_in(heft_memory *m, const heft_index *x, uint32_t *ids);
/* Return HEFT_E_FORMAT if a tensor begins inside another.  order: of heft_ix_order(); each tensor
 * has exactly one part, so that part i belongs to tensor i. */
heft_status heft_ix_refuse_overlap(heft_index *x, const uint32_t *order, uint32_t count);
/* Append a warning for each tensor that begins inside another.  Each tensor has exactly one part.
 * may_share: tensors with the same range do not overlap. */
heft_status heft_ix_note_overlaps(heft_index *x, const char *rule, const char *text,
                                  bool may_share);
/* Sort the tensors and their parts by offset; at equal offsets, empty parts come first.  Each
 * tensor has exactly one part, and the index has no views. */
heft_status heft_ix_sort(heft_index *x);

/* ---- checksums: those of heft_index.checksums, then those of heft_index.digests ---- */

/* Return the number of checksums. */
uint32_t heft_ix_checksums(const heft_index *x);
heft_stored_checksum heft_ix_checksum_at(const heft_index *x, uint32_t i);
/* Return one member of checksum i without access to text of the file, for loops over all checksums.
 * */
const char *heft_ix_checksum_algorithm(const heft_index *x, uint32_t i);
uint32_t heft_ix_checksum_part(const heft_index *x, uint32_t i);
bool heft_ix_checksum_is_alternative(const heft_index *x, uint32_t i);
/* List the checksums over bytes of a tensor that are one range and neither advisory nor
 * alternatives, in order of offset, for heft_ix_checksum_covering().  Call after the last checksum
 * is added; false: out of memory. */
bool heft_ix_list_tensor_checksums(heft_index *x);
/* Return the listed checksum whose range includes the stored bytes of the range, or HEFT_NONE. */
uint32_t heft_ix_checksum_of_range(const heft_index *x, heft_range of);
/* The same for the stored bytes of a part. */
uint32_t heft_ix_checksum_covering(const heft_index *x, uint32_t part);
/* Return the row of the part in heft_index.digests, or HEFT_NONE. */
uint32_t heft_ix_digest_find(const heft_index *x, uint32_t part);
/* Return the digest of the part as the file spells it; empty: none. */
heft_str heft_ix_digest_of(const heft_index *x, uint32_t part);
/* Return the tensor of the part; HEFT_NONE: the part belongs to the file. */
uint32_t heft_ix_owner(const heft_index *x, uint32_t part);

/* ---- planning ---- */

/* Remove tensors with HEFT_T_DROPPED; parts keep their numbers.  Discards the name table. */
void heft_ix_compact(heft_index *x);
heft_status heft_ix_reshape(heft_index *x, uint32_t tensor, const uint64_t *dims, uint32_t rank);

/* ---- reading ---- */

static inline uint32_t heft_ix_tensors(const heft_index *x)
{
    return x->tensors.len;
}
static inline heft_ix_tensor_row *heft_ix_row(const heft_index *x, uint32_t id)
{
    return (heft_ix_tensor_row *)x->tensors.ptr + id;
}
/* Return true if a metadata key describes the set of shards, not the model. */
static inline bool heft_ix_is_shard_key(const heft_index *x, heft_str key)
{
    heft_str prefix = x->shard_info.prefix;
    return prefix.len && key.len > prefix.len && !memcmp(key.ptr, prefix.ptr, prefix.len);
}
/* Return the global offset of byte `offset` of file `number`: 0 is this file, 1 its first shard. */
static inline uint64_t heft_global_offset(uint32_t number, uint64_t offset)
{
    return (uint64_t)number << HEFT_GLOBAL_OFFSET_BITS | offset;
}
/* Split a global offset into the number of the file and the offset in the file. */
static inline uint32_t heft_global_offset_file(const heft_index *x, uint64_t global_offset)
{
    return x->shards.len && global_offset != HEFT_NOWHERE
               ? (uint32_t)(global_offset >> HEFT_GLOBAL_OFFSET_BITS)
               : 0;
}
static inline uint64_t heft_global_offset_local(const heft_index *x, uint64_t global_offset)
{
    return global_offset - heft_global_offset(heft_global_offset_file(x, global_offset), 0);
}
static inline const heft_ix_shard *heft_ix_shard_at(const heft_index *x, uint32_t number)
{
    return (const heft_ix_shard *)x->shards.ptr + (number - 1);
}
/* Return a part; parts of tensors are numbered first, then parts of the file. */
static inline heft_ix_part_row *heft_ix_part_row_at(const heft_index *x, uint32_t part)
{
    return part < x->parts.len ? (heft_ix_part_row *)x->parts.ptr + part
                               : (heft_ix_part_row *)x->model_parts.ptr + (part - x->parts.len);
}
static inline bool heft_ix_has_part(const heft_index *x, uint32_t part)
{
    return part < (uint64_t)x->parts.len + x->model_parts.len;
}
/* Return the number of parts: of all tensors and of the file. */
static inline uint32_t heft_ix_all_parts(const heft_index *x)
{
    return x->parts.len + x->model_parts.len;
}
static inline heft_str heft_ix_name(const heft_index *x, uint32_t id)
{
    const heft_ix_tensor_row *t = heft_ix_row(x, id);
    return (heft_str){ t->name, t->name_len };
}
static inline uint64_t *heft_ix_dims(const heft_index *x, uint32_t id)
{
    uint64_t *pool = x->dims.ptr; /* NULL while every tensor is a scalar */
    return pool ? pool + heft_ix_row(x, id)->dims : NULL;
}
static inline heft_value *heft_ix_value(const heft_index *x, uint32_t i)
{
    return (heft_value *)x->values.ptr + i;
}
/* Return true if the value is a container. */
static inline bool heft_value_nests(const heft_value *v)
{
    return v->kind == HEFT_KIND_LIST || v->kind == HEFT_KIND_MAP;
}
/* Return the number of the value after v, which is value i, and after its children. */
static inline uint32_t heft_value_next(const heft_value *v, uint32_t i)
{
    return heft_value_nests(v) ? v->as.container.end : i + 1;
}
static inline uint32_t heft_ix_value_next(const heft_index *x, uint32_t i)
{
    return heft_value_next(heft_ix_value(x, i), i);
}
/* Return the view of the part; NULL: the elements fill the decoded bytes in row-major order. */
const heft_ix_view *heft_ix_view_of(const heft_index *x, uint32_t part);
/* Return the strides of the view; NULL: row-major from v->first on. */
static inline const uint64_t *heft_ix_strides(const heft_index *x, const heft_ix_view *v)
{
    return v->strides == HEFT_NONE ? NULL : (const uint64_t *)x->strides.ptr + v->strides;
}
heft_str heft_ix_role(const heft_index *x, uint32_t role);
/* Return the name of the layout, e.g. "sparse_csr". */
heft_str heft_ix_layout(const heft_index *x, uint32_t tensor);
/* Return the tensor with the name; HEFT_NONE: there is none, or the name table is not built. */
uint32_t heft_ix_find(const heft_index *x, heft_str name);
/* Return the first part of the owner with the role, or HEFT_NONE.  owner HEFT_NONE: the file. */
uint32_t heft_ix_part_find(const heft_index *x, uint32_t owner, heft_str role);
/* Set *out to attribute i of the tensor: identity first, then stored attributes.  Return false past
 * the last. */
bool heft_ix_attribute(heft_value *out, const heft_index *x, uint32_t tensor, uint32_t i);
/* Set *out to the attribute with the key, not one inside of another; false: there is none. */
bool heft_ix_find_attribute(heft_value *out, const heft_index *x, uint32_t tensor, const char *key);
/* Return the text of the attribute stored_dtype; ptr NULL: the tensor has none. */
heft_str heft_ix_stored_dtype(const heft_index *x, uint32_t tensor);
/* Return the 16 bytes of the stored base id; NULL: the tensor has none. */
const uint8_t *heft_ix_base_id_at(const heft_index *x, uint32_t tensor);

#endif
