/* index.h - the model: what a file holds, or what is to be written.  Parsers fill it, the planner
 * places it, everything else reads it.  Names are lent by the file wherever that is possible. */
#ifndef HEFT_INDEX_H
#define HEFT_INDEX_H
#include <heft/heft.h>

#include <string.h>

#include "base/arena.h"
#include "base/name_hash.h"

enum {                        /* heft_ix_tensor_row.flags */
       HEFT_T_BASE_ID = 1,    /* the base-id column holds a stored id */
       HEFT_T_GRAD_KNOWN = 2, /* requires_grad was stored … */
       HEFT_T_GRAD = 4,       /* … and was true */
       HEFT_T_PARAM_ID = 8,   /* the param-id column holds a stored id */
       HEFT_T_DROPPED = 32,   /* left out of what is written */
       HEFT_T_NAME_HASH = 16  /* embd.name_hash was stored; it is FNV-1a of the name */
};

typedef struct heft_ix_tensor_row {
    const char *name;
    uint32_t name_len;
    uint32_t dims; /* position in the pool */
    uint32_t first_part;
    uint32_t attrs; /* first of its values in attrs, plus one; 0: none */
    uint16_t rank, part_count;
    heft_dtype dtype;
    uint8_t layout; /* heft_layout; from HEFT_LAYOUT_OTHER on, numbers of names */
    uint8_t flags;
} heft_ix_tensor_row;

enum {                        /* heft_ix_part_row.flags */
       HEFT_P_BIG_ENDIAN = 1, /* each number's bytes are turned round */
       HEFT_P_VIEW = 2,       /* there is a heft_ix_view of it */
       HEFT_P_UNUSED = 4      /* belongs to no tensor of what is written */
};

typedef struct heft_ix_part_row {
    uint64_t offset, stored;
    uint64_t length; /* HEFT_NOWHERE: only decoding tells, see core/read/decode.h */
    uint32_t role;   /* number of an interned name */
    heft_dtype dtype;
    uint8_t encoding, flags;
} heft_ix_part_row;

/* Whether what is stored is what the tensor has, byte for byte. */
static inline bool heft_ix_is_plain(const heft_ix_part_row *p)
{
    return p->encoding == HEFT_RAW && !(p->flags & (HEFT_P_BIG_ENDIAN | HEFT_P_VIEW));
}

/* Where the elements of a dense part lie in what it decodes to, when they do not fill that in order: element
 * (i, j, …) stands `first` bytes and i * strides[0] + j * strides[1] + … elements behind its first byte.
 * Columns of a matrix stored one by one, a part of a storage that others share, one row for all. */
typedef struct heft_ix_view {
    uint64_t content; /* bytes that the part decodes to; raw: those stored */
    uint64_t first;
    uint32_t part, tensor; /* of all views the parts ascend */
    uint32_t strides;      /* position in the pool, one for each dimension; HEFT_NONE: row-major */
} heft_ix_view;

enum { HEFT_CHECKSUM_RANGES = 2, HEFT_CHECKSUM_BYTES = 32 };
typedef struct heft_stored_checksum { /* "the digest of these bytes is said to be this" */
    const char *rule;                 /* of the finding when it is not */
    const char *algorithm;            /* "crc32c" */
    heft_range range[HEFT_CHECKSUM_RANGES];
    uint32_t zeros;            /* zero bytes between the two ranges that are not in the file */
    uint32_t tensor;           /* or HEFT_NONE */
    uint32_t part;             /* whose digest this is, or HEFT_NONE */
    bool decoded;              /* covers the part's bytes as they are once decoded */
    bool advisory;             /* broken, it is a warning, and no obstacle to copying */
    bool is_alternative;       /* the next claim is another reading of the same checksum */
    bool covers_metadata_only; /* covers no byte of a tensor: need not be looked for among them */
    bool at_open;     /* checked when the file is opened, too: covers what the parser has read */
    const char *note; /* what to say when this reading is the one that holds; NULL: nothing */
    uint8_t expect[HEFT_CHECKSUM_BYTES];
} heft_stored_checksum;

typedef struct heft_digest_row { /* the claim of one part, as the file spells it */
    const char *text;            /* "crc32c:0x1A2B3C4D" */
    const char *rule;
    uint32_t part;
    uint16_t len;
    uint8_t hex_at;    /* where its digits begin */
    uint8_t algorithm; /* number in checksums.c's table; the top bit: over decoded bytes */
} heft_digest_row;

/* A file beside this one in which parts lie.  Its bytes have places of their own behind those of this
 * file: heft_global_offset().  Offsets in rows and claims are places. */
typedef struct heft_ix_shard {
    heft_str label;     /* its name; with a suffix, the name is STEM-label.suffix */
    const char *suffix; /* that this file's own name loses to become the stem, or NULL */
    uint64_t size;      /* that it is said to have */
    bool is_model;      /* a file in its own right, whose tensors belong to this one's */
    const char *own;    /* what this file's own name loses instead of the suffix, or NULL */
} heft_ix_shard;

/* What a file says of a tensor in such a file. */
typedef struct heft_ix_shard_entry {
    heft_str name, file;
    uint64_t at;    /* where it says so */
    uint32_t shard; /* the file's number */
} heft_ix_shard_entry;
enum { HEFT_GLOBAL_OFFSET_BITS = 44 };

/* What a file says of itself as one of several that are one model; count 0: nothing. */
typedef struct heft_ix_shard_info {
    uint32_t number, count;
    uint64_t tensors; /* of all together, or HEFT_NOWHERE */
    heft_str prefix;  /* of the keys in its metadata that say so: they are not the model's */
} heft_ix_shard_info;

typedef struct heft_note {
    heft_severity severity;
    const char *rule, *text; /* static, or in the arena */
    heft_range where;
    uint32_t tensor;
    bool is_early; /* the format's check finds it again */
} heft_note;

typedef struct heft_ix_attr_row {
    heft_value value;
    uint32_t tensor;
} heft_ix_attr_row;

/* The file's vocabulary: strings end to end, each behind its length. */
typedef struct heft_ix_tokens {
    heft_range where;
    uint32_t count;
    uint8_t length_bytes;            /* of each length; 0: there is no vocabulary */
    bool big_endian;                 /* the lengths are */
    bool has_special;                /* else they are found by their names */
    uint32_t special[HEFT_SPECIALS]; /* HEFT_NONE: none */
} heft_ix_tokens;

enum { HEFT_MAX_DEPTH = 256 }; /* no limit on nesting goes beyond */

typedef struct heft_names { /* from a name to its number */
    uint32_t *slots;        /* number + 1; 0: free */
    uint32_t mask, count;
} heft_names;

typedef struct heft_ix_omission { /* see heft_ix_omit() */
    heft_severity severity;
    const char *rule, *text;
    heft_str name;
    uint64_t count; /* how often */
} heft_ix_omission;

typedef struct heft_index {
    heft_memory mem;
    heft_limits limits;
    heft_error *err;     /* of the call that is filling it */
    uint64_t file_bytes; /* 0 while planning */
    heft_str pick;       /* of a file that nests: the part that is wanted; empty: all of it */
    heft_name_hash key;
    heft_vec tensors, hashes, parts, model_parts, dims, values, attrs, checksums, digests, notes,
        roles, layouts, shards, shard_entries, views, strides, omitted;
    heft_vec
        around; /* claims over the bytes of a tensor's parts and a few more, by offset: numbers */
    /* hashes: of the tensors' names, keyed by `key`, 32 bits each */
    heft_vec base_ids, param_ids; /* per tensor, 16 and 8 bytes; empty unless some tensor has one */
    heft_names names, role_names;
    uint32_t last_role; /* that was interned or met */
    heft_arena arena;   /* copies of what the file cannot lend */
    heft_str version;
    heft_ix_tokens tokens;
    uint64_t own;                  /* of the format: of its header, for writing the file again */
    heft_str generator;            /* the program that wrote the file, as it says; may be empty */
    uint64_t data_start, data_end; /* where payloads can lie: for the check of the format that
                                      sets them */
    bool unread; /* the file says things that the index does not hold: see heft_ix_omit() */
    bool strict; /* values that break the rules of their type or layout are faults of the file */
    uint32_t unknown_lengths; /* parts of a length that only decoding tells */
    bool has_alternatives;    /* some claim is or_next */
    heft_ix_shard_info shard_info;
    uint64_t stated;     /* bytes that all tensors are said to have, or HEFT_NOWHERE */
    heft_vec open;       /* containers begun and not ended, as numbers of values */
    bool has_name_table; /* names can be looked up */
    /* Told now and then how far the names have come, while the index is filled; or NULL. */
    void (*on_parsed_upto)(void *ctx, const char **from, const char *name);
    void *on_parsed_ctx;
    const char *parsed_from; /* what lies before was reported */
    bool lost_notes;         /* there was no room for one */
    bool lost_omissions;  /* there was no memory for something that is omitted, or for its name */
    bool notes_cut;       /* there were more notes than a file may have */
    bool odd_names;       /* some name has a separator of paths in it, or a NUL */
    uint32_t most_rank;   /* of a tensor that a parser has added */
    uint64_t offset_bits; /* of all offsets of tensors' parts, as the records give them */
    /* fn(arg, i) for each i below n, side by side where the host can; NULL: one after the other. */
    void (*run)(void *ctx, size_t n, void (*fn)(void *arg, size_t i), void *arg);
    void *run_ctx;
} heft_index;

/* ---- lifetime: the engine's business ---- */
void heft_ix_init(heft_index *x, const heft_allocator *al, const heft_limits *limits,
                  const uint64_t secret[2]);
void heft_ix_reset(heft_index *x); /* empty again; memory is kept where that helps */
void heft_ix_free(heft_index *x);
void heft_ix_trim(heft_index *x); /* gives back what no column will fill */
/* Builds the name table; a name that occurs twice is HEFT_E_FORMAT. */
heft_status heft_ix_build_name_table(heft_index *x);

/* heft_index.run, whether it is there or not. */
void heft_ix_run(const heft_index *x, size_t n, void (*fn)(void *arg, size_t i), void *arg);
/* For one who fills a share of x: the same, but with empty columns, no memory and no messages. */
void heft_ix_worker_view(heft_index *to, const heft_index *x);
/* Makes "data" the role that was met last; false: no memory. */
bool heft_ix_cache_data_role(heft_index *x);
extern const heft_str heft_ix_data;
/* After a tensor was added: a word to the engine now and then. */
static inline void heft_ix_parsed_upto(heft_index *x, const char *name)
{
    enum { EVERY = 1024 };
    if (x->on_parsed_upto && x->tensors.len % EVERY == 0)
        x->on_parsed_upto(x->on_parsed_ctx, &x->parsed_from, name);
}
/* HEFT_E_NOMEM, with a message that tells how large the index is. */
heft_status heft_ix_no_memory(heft_index *x);

/* ---- filling: what a parser may call; each sets x->err when it fails ---- */
/* The file announces count tensors whose records take at least min_bytes of the left bytes: refused when
 * that cannot be, room made when it can. */
heft_status heft_ix_reserve(heft_index *x, uint64_t at, uint64_t count, uint64_t left,
                            uint64_t min_bytes);
/* A tensor.  *dims has room for rank numbers and is valid until the next call. */
heft_status heft_ix_tensor(heft_index *x, heft_str name, heft_dtype t, uint32_t rank,
                           uint64_t **dims, uint32_t *id);
/* One more dimension of the tensor added last, for ranks that show late. */
heft_status heft_ix_dim(heft_index *x, uint64_t dim);
/* By name: "dense", "sparse_csr", "sparse_coo" or any other, of which there may be 253. */
heft_status heft_ix_set_layout(heft_index *x, uint32_t tensor, heft_str name);
/* A part of the tensor added last, or with HEFT_NONE of the file.  A raw part: stored == length; one whose
 * length only decoding tells: HEFT_NOWHERE. */
heft_status heft_ix_part(heft_index *x, uint32_t owner, heft_str role, heft_dtype t,
                         heft_range where, uint64_t length, heft_encoding e);
/* A whole dense tensor with one raw part "data", after its shape is known: checks the product, the
 * size against the length when that is not HEFT_NOWHERE, and the range against the file. */
heft_status heft_ix_dense(heft_index *x, uint32_t tensor, uint64_t at, uint64_t offset,
                          uint64_t length);
/* As heft_ix_dense(), for elements that lie apart, of a tensor that has its shape: `content` decoded bytes come from the range
 * `where` (raw: as many as are stored), element 0 stands at byte `first` of them, and strides, one for each
 * dimension, count elements; NULL: row-major.  What turns out to be contiguous is recorded as such, so
 * that heft_ix_dense() would have done.  Refuses elements outside of the content.  A raw part's digest
 * is to be a claim over its range, not heft_ix_digest(); that of a compressed one covers all its content. */
heft_status heft_ix_strided(heft_index *x, uint32_t tensor, uint64_t at, heft_range where,
                            heft_encoding e, uint64_t content, uint64_t first,
                            const uint64_t *strides);
/* Makes the part added last a view of the same kind as one of another index, if that is one. */
heft_status heft_ix_view_copy(heft_index *x, uint32_t tensor, const heft_index *from,
                              uint32_t part);
/* The numbers of the part added last are stored with their most significant byte first. */
void heft_ix_big_endian(heft_index *x);
/* Metadata of the file; strings are lent.  LIST and MAP open a container: _end closes it. */
heft_status heft_ix_meta(heft_index *x, heft_value v);
void heft_ix_meta_end(heft_index *x);
/* An attribute of the tensor added last; containers as in heft_ix_meta(). */
heft_status heft_ix_attr(heft_index *x, uint32_t tensor, heft_value v);
void heft_ix_attr_end(heft_index *x);
/* The same for a text. */
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
/* The identity that is kept in columns and flags, without the base id, which a name implies.
 * heft_ix_identify() sets what `id` has. */
heft_identity heft_ix_identity(const heft_index *x, uint32_t tensor);
heft_status heft_ix_identify(heft_index *x, uint32_t tensor, const heft_identity *id);
heft_status heft_ix_checksum(heft_index *x, heft_stored_checksum c);
/* The digest of a part: its digits stand in spelled from hex_at on (at most as many as the
 * algorithm has; numbers may have fewer).  HEFT_E_FORMAT when they are no such digits.  Parts come in
 * ascending order.  Unknown algorithms are for the caller: heft_ix_knows_digest(). */
heft_status heft_ix_digest(heft_index *x, uint32_t part, const char *rule, const char *name,
                           heft_str spelled, size_t hex_at, bool decoded);
/* The CRC-32 of what a compressed part decodes to, as a number. */
heft_status heft_ix_digest_crc32(heft_index *x, uint32_t part, const char *rule, uint32_t crc);
bool heft_ix_knows_digest(const char *algorithm);
/* The digits of such a digest as the bytes that a claim expects; false: they are none. */
bool heft_ix_digits(uint8_t out[HEFT_CHECKSUM_BYTES], const char *algorithm, heft_str hex);
void heft_ix_note(heft_index *x, heft_severity s, const char *rule, uint64_t at, uint32_t tensor,
                  const char *text);
void heft_ix_note_range(heft_index *x, heft_severity s, const char *rule, heft_range where,
                        uint32_t tensor, const char *text);
/* A warning of each tensor with a part whose offset is no multiple of align, a power of two. */
void heft_ix_note_offsets(heft_index *x, uint32_t align, const char *rule, const char *text);
/* The same for what the format's check reports, too, and perhaps more severely: verify leaves it to that. */
void heft_ix_note_early(heft_index *x, heft_severity s, const char *rule, uint64_t at,
                        uint32_t tensor, const char *text);
/* What the file says and the index does not hold: the file cannot be edited, and a conversion into its own format says
 * so, with that severity.  name: of the key, or ptr NULL; text: a sentence about it, which begins behind the name.
 * Of very many keys only the first are listed by name. */
void heft_ix_omit(heft_index *x, heft_severity s, const char *rule, heft_str name,
                  const char *text);
/* A file beside this one; *number is for heft_global_offset(). */
heft_status heft_ix_shard_add(heft_index *x, heft_ix_shard s, uint32_t *number);
/* Adds what another index holds, but for its metadata, whose files have numbers from base on here;
 * kept says which of its tensors (a byte each).  Names stay lent by what lends them there.  Unseals. */
heft_status heft_ix_merge(heft_index *x, const heft_index *from, uint32_t base,
                          const uint8_t *kept);
/* Reserve room for so many more tensors of one part each, with so many dimensions in all. */
bool heft_ix_reserve_rows(heft_index *x, uint64_t tensors, uint64_t dims);
/* Copy value i of another index with all that it contains: metadata or, unless id is HEFT_NONE, an attribute, which
 * tensor id of x gets. */
heft_status heft_ix_copy_value(heft_index *x, const heft_index *from, uint32_t i, uint32_t id);
/* Takes a value of the top level away that is no container. */
void heft_ix_drop_value(heft_index *x, uint32_t i);
/* Whether two top-level values say the same. */
bool heft_ix_same_value(const heft_index *x, uint32_t i, const heft_index *y, uint32_t k);
/* A copy that lives as long as the index; ptr NULL: no memory, and the error is set. */
heft_str heft_ix_copy(heft_index *x, heft_str s);
/* Tensors' parts by where they lie: *out holds the numbers of all parts with bytes, by offset.
 * Release with heft_ix_order_free(). */
heft_status heft_ix_order(heft_index *x, uint32_t **out, uint32_t *count);
void heft_ix_order_free(heft_index *x, uint32_t *ids);
/* The same in memory of the caller's; NULL: there is none. */
uint32_t *heft_ix_order_in(heft_memory *m, const heft_index *x, uint32_t *count);
void heft_ix_order_free_in(heft_memory *m, const heft_index *x, uint32_t *ids);
/* Of tensors in that order, each of which has one part, of its own number: HEFT_E_FORMAT where one begins
 * within another. */
heft_status heft_ix_refuse_overlap(heft_index *x, const uint32_t *order, uint32_t count);
/* A warning of each tensor with a part that begins within another; may_share: unless they are the same bytes. */
heft_status heft_ix_note_overlaps(heft_index *x, const char *rule, const char *text,
                                  bool may_share);
/* Renumbers the tensors, each of which has one part, so that their parts ascend: by offset, empty ones
 * first.  Not for an index with views. */
heft_status heft_ix_sort(heft_index *x);

/* Claims of the file and of its parts, counted through. */
uint32_t heft_ix_checksums(const heft_index *x);
heft_stored_checksum heft_ix_checksum_at(const heft_index *x, uint32_t i);
/* Its fields part, algorithm and or_next alone, for loops over all claims: these look at no text that the file lends. */
const char *heft_ix_checksum_algorithm(const heft_index *x, uint32_t i);
uint32_t heft_ix_checksum_part(const heft_index *x, uint32_t i);
bool heft_ix_checksum_is_alternative(const heft_index *x, uint32_t i);
/* After the last claim: lists those that are about a tensor's bytes, so that they can be looked up.  false: no memory. */
bool heft_ix_list_around(heft_index *x);
/* Of those the one whose range the part's stored bytes lie in, or HEFT_NONE. */
uint32_t heft_ix_checksum_around(const heft_index *x, uint32_t part);
/* Which of x->digests is that of the part, or HEFT_NONE. */
uint32_t heft_ix_digest_find(const heft_index *x, uint32_t part);
heft_str heft_ix_digest_of(const heft_index *x, uint32_t part); /* as spelled; empty: none */
uint32_t heft_ix_owner(const heft_index *x, uint32_t part);     /* its tensor, or HEFT_NONE */

/* ---- planning ---- */
void heft_ix_compact(heft_index *x); /* takes the tensors marked HEFT_T_DROPPED away; unseals */
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
/* Whether a key of the metadata is about the file's place in a set, and not about the model. */
static inline bool heft_ix_is_shard_key(const heft_index *x, heft_str key)
{
    heft_str prefix = x->shard_info.prefix;
    return prefix.len && key.len > prefix.len && !memcmp(key.ptr, prefix.ptr, prefix.len);
}
/* Where byte `offset` of a file is, this one being number 0 and the first of its shards 1. */
static inline uint64_t heft_global_offset(uint32_t number, uint64_t offset)
{
    return (uint64_t)number << HEFT_GLOBAL_OFFSET_BITS | offset;
}
/* The file of a place, and the offset there. */
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
/* Numbers run through the tensors' parts, then through the file's. */
static inline heft_ix_part_row *heft_ix_part_row_at(const heft_index *x, uint32_t part)
{
    return part < x->parts.len ? (heft_ix_part_row *)x->parts.ptr + part
                               : (heft_ix_part_row *)x->model_parts.ptr + (part - x->parts.len);
}
static inline bool heft_ix_has_part(const heft_index *x, uint32_t part)
{
    return part < (uint64_t)x->parts.len + x->model_parts.len;
}
/* The parts of all tensors, then those of the file itself. */
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
/* Whether others may be its children. */
static inline bool heft_value_nests(const heft_value *v)
{
    return v->kind == HEFT_KIND_LIST || v->kind == HEFT_KIND_MAP;
}
/* What stands behind value i, which is v, and its children: in the metadata or in attributes. */
static inline uint32_t heft_value_next(const heft_value *v, uint32_t i)
{
    return heft_value_nests(v) ? v->as.container.end : i + 1;
}
static inline uint32_t heft_ix_value_next(const heft_index *x, uint32_t i)
{
    return heft_value_next(heft_ix_value(x, i), i);
}
/* NULL: the elements of the part lie in order.  heft_ix_strides(): NULL: in order from v->first on. */
const heft_ix_view *heft_ix_view_of(const heft_index *x, uint32_t part);
static inline const uint64_t *heft_ix_strides(const heft_index *x, const heft_ix_view *v)
{
    return v->strides == HEFT_NONE ? NULL : (const uint64_t *)x->strides.ptr + v->strides;
}
heft_str heft_ix_role(const heft_index *x, uint32_t role);
heft_str heft_ix_layout(const heft_index *x, uint32_t tensor); /* "dense", "sparse_csr", … */
uint32_t heft_ix_find(const heft_index *x, heft_str name);     /* or HEFT_NONE; sealed only */
uint32_t heft_ix_part_find(const heft_index *x, uint32_t owner, heft_str role);
bool heft_ix_attribute(heft_value *out, const heft_index *x, uint32_t tensor, uint32_t i);
/* The text of its attribute stored_dtype; ptr NULL: it has none. */
heft_str heft_ix_stored_dtype(const heft_index *x, uint32_t tensor);
const uint8_t *heft_ix_base_id_at(const heft_index *x, uint32_t tensor); /* or NULL */

#endif
