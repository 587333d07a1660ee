/* index.h - the index: tensors, parts, metadata and checksums of a file, or of a file to be
 * written.
 *
 * Parsers fill the index, the planner lays it out, everything else reads it.  Names and texts are
 * borrowed from the file where possible, otherwise copied into the arena. */
#ifndef HEFT_INDEX_H
#define HEFT_INDEX_H
#include <heft/heft.h>

#include <string.h>

#include "base/arena.h"
#include "base/name_hash.h"

enum {                        /* heft_ix_tensor_row.flags */
       HEFT_T_BASE_ID = 1,    /* base_ids holds a stored id */
       HEFT_T_GRAD_KNOWN = 2, /* requires_grad is stored … */
       HEFT_T_GRAD = 4,       /* … and is true */
       HEFT_T_PARAM_ID = 8,   /* param_ids holds a stored id */
       HEFT_T_DROPPED = 32,   /* not written */
       HEFT_T_NAME_HASH = 16  /* embd.name_hash is stored: FNV-1a of the name */
};

typedef struct heft_ix_tensor_row {
    const char *name;
    uint32_t name_len;
    uint32_t dims; /* index of the first dimension in heft_index.dims */
    uint32_t first_part;
    uint32_t attrs; /* index of the first attribute in heft_index.attrs, plus one; 0: none */
    uint16_t rank, part_count;
    heft_dtype dtype;
    uint8_t layout; /* heft_layout; from HEFT_LAYOUT_OTHER on, a name in heft_index.layouts */
    uint8_t flags;
} heft_ix_tensor_row;

enum {                        /* heft_ix_part_row.flags */
       HEFT_P_BIG_ENDIAN = 1, /* numbers are stored big-endian */
       HEFT_P_VIEW = 2,       /* the part has a heft_ix_view */
       HEFT_P_UNUSED = 4      /* belongs to no tensor that is written */
};

typedef struct heft_ix_part_row {
    uint64_t offset, stored;
    uint64_t length; /* decoded; HEFT_UNKNOWN_LENGTH until core/read/decode.h resolves it */
    uint32_t role;   /* index in heft_index.roles */
    heft_dtype dtype;
    uint8_t encoding, flags;
} heft_ix_part_row;

/* Return true if the stored bytes are the tensor's bytes: raw, little-endian, in order. */
static inline bool heft_ix_is_plain(const heft_ix_part_row *p)
{
    return p->encoding == HEFT_RAW && !(p->flags & (HEFT_P_BIG_ENDIAN | HEFT_P_VIEW));
}

/* The elements of a dense part that do not fill its decoded bytes in order: element (i, j, …) is at
 * byte first + (i * strides[0] + j * strides[1] + …) * element size.  Examples: a column-major
 * matrix, a slice of a storage that several tensors share, one row repeated by a stride of 0. */
typedef struct heft_ix_view {
    uint64_t content; /* decoded bytes of the part; stored bytes if the part is raw */
    uint64_t first;
    uint32_t part, tensor; /* views are sorted by part */
    uint32_t strides; /* index in heft_index.strides, one per dimension; HEFT_NONE: row-major */
} heft_ix_view;

enum { HEFT_CHECKSUM_RANGES = 2, HEFT_CHECKSUM_BYTES = 32 };
typedef struct heft_stored_checksum { /* the file states the checksum of a range of bytes */
    const char *rule;                 /* rule of the finding if the checksum does not match */
    const char *algorithm;            /* "crc32c" */
    heft_range range[HEFT_CHECKSUM_RANGES];
    uint32_t zeros;            /* zero bytes summed between the two ranges, not in the file */
    uint32_t tensor;           /* or HEFT_NONE */
    uint32_t part;             /* part whose digest this is, or HEFT_NONE */
    bool decoded;              /* covers the part's decoded bytes */
    bool advisory;             /* a mismatch is a warning and does not prevent copying */
    bool is_alternative;       /* the next row is another interpretation of this checksum */
    bool covers_metadata_only; /* covers no byte of a tensor */
    bool at_open;     /* also checked when the file is opened: covers bytes the parser reads */
    const char *note; /* note to report if this interpretation matches; NULL: none */
    uint8_t expect[HEFT_CHECKSUM_BYTES];
} heft_stored_checksum;

typedef struct heft_digest_row { /* the digest of one part, as the file spells the digest */
    const char *text;            /* "crc32c:0x1A2B3C4D" */
    const char *rule;
    uint32_t part;
    uint16_t len;
    uint8_t hex_at;    /* offset of the digits in text */
    uint8_t algorithm; /* index in the table of checksums.c; top bit: of decoded bytes */
} heft_digest_row;

/* Another file of the model that holds parts.  Offsets in rows and checksums are global offsets,
 * which also hold the number of the file: heft_global_offset(). */
typedef struct heft_ix_shard {
    heft_str label;     /* the shard's name or, with a suffix, the label in STEM-label.suffix */
    const char *suffix; /* stripped from this file's name to obtain the stem, or NULL */
    uint64_t size;      /* stated size in bytes */
    bool is_model;      /* a complete file of its own, whose tensors are part of this model */
    const char *own;    /* stripped from this file's name instead of suffix, or NULL */
} heft_ix_shard;

/* An entry of an index of shards: the file that holds a tensor. */
typedef struct heft_ix_shard_entry {
    heft_str name, file;
    uint64_t at;    /* offset of the entry */
    uint32_t shard; /* number of the file */
} heft_ix_shard_entry;
enum { HEFT_GLOBAL_OFFSET_BITS = 44 };

/* Numbering that a shard states of itself; count 0: none. */
typedef struct heft_ix_shard_info {
    uint32_t number, count;
    uint64_t tensors; /* tensors of all shards, or HEFT_NOWHERE */
    heft_str prefix;  /* prefix of the metadata keys that state the numbering */
} heft_ix_shard_info;

typedef struct heft_note {
    heft_severity severity;
    const char *rule, *text; /* static, or in the arena */
    heft_range where;
    uint32_t tensor;
    bool is_early; /* the format's check reports the finding, too */
} heft_note;

typedef struct heft_ix_attr_row {
    heft_value value;
    uint32_t tensor;
} heft_ix_attr_row;

/* The file's vocabulary: strings without gaps, each preceded by its length. */
typedef struct heft_ix_tokens {
    heft_range where;
    uint32_t count;
    uint8_t length_bytes;            /* bytes of a length field; 0: there is no vocabulary */
    bool big_endian;                 /* the length fields are big-endian */
    bool has_special;                /* false: special tokens are found by name */
    uint32_t special[HEFT_SPECIALS]; /* HEFT_NONE: none */
} heft_ix_tokens;

enum { HEFT_MAX_DEPTH = 256 }; /* upper bound of limits.depth */

typedef struct heft_names { /* hash table from names to numbers */
    uint32_t *slots;        /* number + 1; 0: free */
    uint32_t mask, count;
} heft_names;

typedef struct heft_ix_omission { /* see heft_ix_omit() */
    heft_severity severity;
    const char *rule, *text;
    heft_str name;
    uint64_t count; /* number of occurrences */
} heft_ix_omission;

typedef struct heft_index {
    heft_memory mem;
    heft_limits limits;
    heft_error *err;     /* error of the call that fills the index */
    uint64_t file_bytes; /* 0 while planning */
    heft_str pick;       /* key of the part to open in a nested file; empty: the whole file */
    heft_name_hash key;
    heft_vec tensors, hashes, parts, model_parts, dims, values, attrs, checksums, digests, notes,
        roles, layouts, shards, shard_entries, views, strides, omitted;
    /* `hashes` holds the low 32 bits of each tensor name's hash, keyed by `key`. */
    heft_vec around; /* numbers of checksums that cover bytes of tensors, sorted by offset */
    heft_vec base_ids, param_ids; /* 16 and 8 bytes per tensor; empty if no tensor has an id */
    heft_names names, role_names;
    uint32_t last_role; /* role that was interned or found last */
    heft_arena arena;   /* copies of texts that cannot be borrowed from the file */
    heft_str version;
    heft_ix_tokens tokens;
    uint64_t own;                  /* format's own number, needed to write the file again */
    heft_str generator;            /* program that wrote the file, as stated; may be empty */
    uint64_t data_start, data_end; /* range of the payloads, for the check of some formats */
    bool unread;                   /* the index omits content of the file: heft_ix_omit() */
    bool strict;              /* values that break the rules of their type or layout are faults */
    uint32_t unknown_lengths; /* number of parts with HEFT_UNKNOWN_LENGTH */
    bool has_alternatives;    /* some checksum has is_alternative */
    heft_ix_shard_info shard_info;
    uint64_t stated;     /* stated total of all tensors' bytes, or HEFT_UNKNOWN_LENGTH */
    heft_vec open;       /* open containers, as numbers of values */
    bool has_name_table; /* heft_ix_build_name_table() has run */
    /* Called every 1024 tensors with the last name parsed, or NULL: lets the source drop pages that
     * have been parsed. */
    void (*on_parsed_upto)(void *ctx, const char **from, const char *name);
    void *on_parsed_ctx;
    const char *parsed_from; /* bytes before this were reported */
    bool lost_notes;         /* memory ran out for a note */
    bool lost_omissions;     /* memory ran out for an omission or its name */
    bool notes_cut;          /* the limit on notes was reached */
    bool odd_names;          /* some name contains a path separator or a NUL */
    uint32_t max_rank;       /* highest rank of a tensor that a parser has added */
    uint64_t offset_bits;    /* bitwise or of the offsets of all tensors' parts */
    /* Call fn(arg, i) for each i below n, in parallel if the host can; NULL: in sequence. */
    void (*run)(void *ctx, size_t n, void (*fn)(void *arg, size_t i), void *arg);
    void *run_ctx;
} heft_index;

/* ---- lifetime: called by the engine ---- */
void heft_ix_init(heft_index *x, const heft_allocator *al, const heft_limits *limits,
                  const uint64_t secret[2]);
void heft_ix_reset(heft_index *x); /* empty the index; keep memory for the next use */
void heft_ix_free(heft_index *x);
void heft_ix_trim(heft_index *x); /* release unused capacity */
/* Build the name table, so that heft_ix_find() works.  HEFT_E_FORMAT: a name occurs twice. */
heft_status heft_ix_build_name_table(heft_index *x);

/* Call heft_index.run, or run in sequence without it. */
void heft_ix_run(const heft_index *x, size_t n, void (*fn)(void *arg, size_t i), void *arg);
/* Initialise `to` as a worker's view of x: shared settings, empty columns, no allocator, no
 * error. */
void heft_ix_worker_view(heft_index *to, const heft_index *x);
/* Intern "data" and make it last_role, so that workers need not.  false: no memory. */
bool heft_ix_cache_data_role(heft_index *x);
extern const heft_str heft_ix_data;
/* Call on_parsed_upto after every 1024 tensors. */
static inline void heft_ix_parsed_upto(heft_index *x, const char *name)
{
    enum { EVERY = 1024 };
    if (x->on_parsed_upto && x->tensors.len % EVERY == 0)
        x->on_parsed_upto(x->on_parsed_ctx, &x->parsed_from, name);
}
/* Set HEFT_E_NOMEM with a message that states the size of the index. */
heft_status heft_ix_no_memory(heft_index *x);

/* ---- filling: for parsers; every function sets x->err if it fails ---- */
/* Reserve rows for `count` tensors that the file announces at offset `at`.  HEFT_E_FORMAT if
 * records of at least min_bytes each do not fit into the `left` bytes that remain. */
heft_status heft_ix_reserve(heft_index *x, uint64_t at, uint64_t count, uint64_t left,
                            uint64_t min_bytes);
/* Add a tensor.  The caller fills *dims, `rank` numbers, before the next call. */
heft_status heft_ix_tensor(heft_index *x, heft_str name, heft_dtype t, uint32_t rank,
                           uint64_t **dims, uint32_t *id);
/* Append a dimension to the tensor added last, if its rank was not known before. */
heft_status heft_ix_dim(heft_index *x, uint64_t dim);
/* Set the layout by name: "dense", "sparse_csr", "sparse_coo", or up to 253 other names. */
heft_status heft_ix_set_layout(heft_index *x, uint32_t tensor, heft_str name);
/* Add a part to the tensor added last or, with HEFT_NONE, to the file.  `length` is the decoded
 * length: the stored one for a raw part, HEFT_UNKNOWN_LENGTH if the file does not state it. */
heft_status heft_ix_part(heft_index *x, uint32_t owner, heft_str role, heft_dtype t,
                         heft_range where, uint64_t length, heft_encoding e);
/* Add the raw part "data" of a dense tensor whose shape is known, at `offset`.  Check the product
 * of the dimensions, the size against `length` unless HEFT_UNKNOWN_LENGTH, and the range against
 * the file.  `at` is the offset for messages. */
heft_status heft_ix_dense(heft_index *x, uint32_t tensor, uint64_t at, uint64_t offset,
                          uint64_t length);
/* Like heft_ix_dense(), for a tensor whose elements are strided.  The range `where` decodes to
 * `content` bytes (raw: the stored bytes); element 0 is at byte `first` of the content.  `strides`
 * count elements, one per dimension; NULL: row-major.  Contiguous elements are recorded as a plain
 * part.  Refuse elements outside of the content.  The digest of a raw part is added by
 * heft_ix_checksum() over its range; heft_ix_digest() of a compressed part covers all its
 * content. */
heft_status heft_ix_strided(heft_index *x, uint32_t tensor, uint64_t at, heft_range where,
                            heft_encoding e, uint64_t content, uint64_t first,
                            const uint64_t *strides);
/* If the part of `from` is a view, make the part added last an equal view. */
heft_status heft_ix_view_copy(heft_index *x, uint32_t tensor, const heft_index *from,
                              uint32_t part);
/* Mark the numbers of the part added last as big-endian. */
void heft_ix_big_endian(heft_index *x);
/* Add metadata of the file; strings are borrowed.  LIST and MAP open a container, which
 * heft_ix_meta_end() closes. */
heft_status heft_ix_meta(heft_index *x, heft_value v);
void heft_ix_meta_end(heft_index *x);
/* Add an attribute of the tensor added last; containers as for heft_ix_meta(). */
heft_status heft_ix_attr(heft_index *x, uint32_t tensor, heft_value v);
void heft_ix_attr_end(heft_index *x);
/* Add a text as metadata or as an attribute. */
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
/* Return the tensor's identity without the base id that its name implies.  heft_ix_identify() sets
 * the members that `id` has. */
heft_identity heft_ix_identity(const heft_index *x, uint32_t tensor);
heft_status heft_ix_identify(heft_index *x, uint32_t tensor, const heft_identity *id);
heft_status heft_ix_checksum(heft_index *x, heft_stored_checksum c);
/* Add the digest of a part.  Its hexadecimal digits begin at `hex_at` in `spelled`: at most as many
 * as the algorithm has; numbers may have fewer.  HEFT_E_FORMAT for other characters.  Parts must
 * ascend, and the caller checks the algorithm before: heft_ix_knows_digest(). */
heft_status heft_ix_digest(heft_index *x, uint32_t part, const char *rule, const char *name,
                           heft_str spelled, size_t hex_at, bool decoded);
/* Add the CRC-32 of the decoded bytes of a compressed part. */
heft_status heft_ix_digest_crc32(heft_index *x, uint32_t part, const char *rule, uint32_t crc);
bool heft_ix_knows_digest(const char *algorithm);
/* Convert hexadecimal digits of a digest to bytes; false if they are not such digits. */
bool heft_ix_digits(uint8_t out[HEFT_CHECKSUM_BYTES], const char *algorithm, heft_str hex);
void heft_ix_note(heft_index *x, heft_severity s, const char *rule, uint64_t at, uint32_t tensor,
                  const char *text);
void heft_ix_note_range(heft_index *x, heft_severity s, const char *rule, heft_range where,
                        uint32_t tensor, const char *text);
/* Warn of each tensor with a part whose offset is not a multiple of `align`, a power of two. */
void heft_ix_note_offsets(heft_index *x, uint32_t align, const char *rule, const char *text);
/* Note a finding that the format's check reports, too, perhaps more severely: `verify` omits this
 * note. */
void heft_ix_note_early(heft_index *x, heft_severity s, const char *rule, uint64_t at,
                        uint32_t tensor, const char *text);
/* Record content of the file that the index does not hold: the file cannot be edited, and a
 * conversion within the format reports the omission with this severity.  `name` is the key, or has
 * a NULL pointer; `text` continues a sentence that begins with the name.  If there are very many
 * keys, only the first are listed by name. */
void heft_ix_omit(heft_index *x, heft_severity s, const char *rule, heft_str name,
                  const char *text);
/* Add a shard; *number is for heft_global_offset(). */
heft_status heft_ix_shard_add(heft_index *x, heft_ix_shard s, uint32_t *number);
/* Append the tensors of another index for which kept[i] is not 0, with parts and checksums, without
 * metadata.  The files of `from` get numbers from `base` on.  Names stay borrowed from the other
 * file.  The name table must be built again. */
heft_status heft_ix_merge(heft_index *x, const heft_index *from, uint32_t base,
                          const uint8_t *kept);
/* Reserve capacity for more tensors of one part each, with `dims` dimensions in total. */
bool heft_ix_reserve_rows(heft_index *x, uint64_t tensors, uint64_t dims);
/* Copy value i of another index with its children, as metadata or, unless id is HEFT_NONE, as an
 * attribute of tensor id. */
heft_status heft_ix_copy_value(heft_index *x, const heft_index *from, uint32_t i, uint32_t id);
/* Remove a top-level value that is not a container. */
void heft_ix_drop_value(heft_index *x, uint32_t i);
/* Return true if two top-level values are equal. */
bool heft_ix_same_value(const heft_index *x, uint32_t i, const heft_index *y, uint32_t k);
/* Copy a text into the arena; a NULL pointer: no memory, the error is set. */
heft_str heft_ix_copy(heft_index *x, heft_str s);
/* Sort parts by offset: *out receives the numbers of all tensors' parts that have bytes.  The
 * caller calls heft_ix_order_free(). */
heft_status heft_ix_order(heft_index *x, uint32_t **out, uint32_t *count);
void heft_ix_order_free(heft_index *x, uint32_t *ids);
/* Like heft_ix_order(), with the caller's allocator; NULL: no memory. */
uint32_t *heft_ix_order_in(heft_memory *m, const heft_index *x, uint32_t *count);
void heft_ix_order_free_in(heft_memory *m, const heft_index *x, uint32_t *ids);
/* HEFT_E_FORMAT if a tensor begins within another.  `order` lists tensors by offset; tensor i has
 * one part, number i. */
heft_status heft_ix_refuse_overlap(heft_index *x, const uint32_t *order, uint32_t count);
/* Warn of each tensor with a part that begins within another part.  may_share: parts with equal
 * ranges are allowed. */
heft_status heft_ix_note_overlaps(heft_index *x, const char *rule, const char *text,
                                  bool may_share);
/* Sort the tensors by the offset of their only part, empty parts first.  Not for an index with
 * views. */
heft_status heft_ix_sort(heft_index *x);

/* ---- checksums: numbered through all rows of `checksums` and `digests` ---- */
uint32_t heft_ix_checksums(const heft_index *x);
heft_stored_checksum heft_ix_checksum_at(const heft_index *x, uint32_t i);
/* Return one member of a checksum, for loops over all of them: these read no borrowed text. */
const char *heft_ix_checksum_algorithm(const heft_index *x, uint32_t i);
uint32_t heft_ix_checksum_part(const heft_index *x, uint32_t i);
bool heft_ix_checksum_is_alternative(const heft_index *x, uint32_t i);
/* After the last checksum: list those over bytes of tensors, for heft_ix_checksum_around().  false:
 * no memory. */
bool heft_ix_list_around(heft_index *x);
/* Return the checksum whose range contains the part's stored bytes, or HEFT_NONE. */
uint32_t heft_ix_checksum_around(const heft_index *x, uint32_t part);
/* Return the part's row in x->digests, or HEFT_NONE. */
uint32_t heft_ix_digest_find(const heft_index *x, uint32_t part);
heft_str heft_ix_digest_of(const heft_index *x, uint32_t part); /* as spelled; may be empty */
uint32_t heft_ix_owner(const heft_index *x, uint32_t part);     /* tensor, or HEFT_NONE */

/* ---- planning ---- */
/* Remove the tensors with HEFT_T_DROPPED; the name table must be built again. */
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
/* Return true if a metadata key states the file's shard numbering and is not the model's. */
static inline bool heft_ix_is_shard_key(const heft_index *x, heft_str key)
{
    heft_str prefix = x->shard_info.prefix;
    return prefix.len && key.len > prefix.len && !memcmp(key.ptr, prefix.ptr, prefix.len);
}
/* Combine the number of a file, 0 for this file and 1 for its first shard, with an offset. */
static inline uint64_t heft_global_offset(uint32_t number, uint64_t offset)
{
    return (uint64_t)number << HEFT_GLOBAL_OFFSET_BITS | offset;
}
/* Split a global offset into the number of the file and the offset in the file. */
static inline uint32_t heft_global_offset_file(const heft_index *x, uint64_t place)
{
    return x->shards.len && place != HEFT_NOWHERE ? (uint32_t)(place >> HEFT_GLOBAL_OFFSET_BITS)
                                                  : 0;
}
static inline uint64_t heft_global_offset_local(const heft_index *x, uint64_t place)
{
    return place - heft_global_offset(heft_global_offset_file(x, place), 0);
}
static inline const heft_ix_shard *heft_ix_shard_at(const heft_index *x, uint32_t number)
{
    return (const heft_ix_shard *)x->shards.ptr + (number - 1);
}
/* Return a part's row; the parts of tensors are numbered first, then those of the file. */
static inline heft_ix_part_row *heft_ix_part_row_at(const heft_index *x, uint32_t part)
{
    return part < x->parts.len ? (heft_ix_part_row *)x->parts.ptr + part
                               : (heft_ix_part_row *)x->model_parts.ptr + (part - x->parts.len);
}
static inline bool heft_ix_has_part(const heft_index *x, uint32_t part)
{
    return part < (uint64_t)x->parts.len + x->model_parts.len;
}
/* Return the number of parts, of tensors and of the file. */
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
/* Return the number of the value after v, which is number i, and its children. */
static inline uint32_t heft_value_next(const heft_value *v, uint32_t i)
{
    return heft_value_nests(v) ? v->as.container.end : i + 1;
}
static inline uint32_t heft_ix_value_next(const heft_index *x, uint32_t i)
{
    return heft_value_next(heft_ix_value(x, i), i);
}
/* Return the part's view, or NULL if its elements are in order.  heft_ix_strides() returns NULL if
 * the elements are in order from v->first on. */
const heft_ix_view *heft_ix_view_of(const heft_index *x, uint32_t part);
static inline const uint64_t *heft_ix_strides(const heft_index *x, const heft_ix_view *v)
{
    return v->strides == HEFT_NONE ? NULL : (const uint64_t *)x->strides.ptr + v->strides;
}
heft_str heft_ix_role(const heft_index *x, uint32_t role);
heft_str heft_ix_layout(const heft_index *x, uint32_t tensor); /* "dense", "sparse_csr", … */
uint32_t heft_ix_find(const heft_index *x, heft_str name);     /* or HEFT_NONE */
uint32_t heft_ix_part_find(const heft_index *x, uint32_t owner, heft_str role);
bool heft_ix_attribute(heft_value *out, const heft_index *x, uint32_t tensor, uint32_t i);
/* Return the tensor's attribute stored_dtype; a NULL pointer: none. */
heft_str heft_ix_stored_dtype(const heft_index *x, uint32_t tensor);
const uint8_t *heft_ix_base_id_at(const heft_index *x, uint32_t tensor); /* or NULL */

#endif
