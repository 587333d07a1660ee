/* zt2.h - limits, element types and functions shared by the zTensor 2 reader and writer. */
#ifndef HEFT_ZT2_H
#define HEFT_ZT2_H
#include "format/ztensor/ztensor.h"
#include "grammar/cbor.h"

enum {
    HEFT_ZT2_FOOTER = 40,             /* bytes at the end of the file */
    HEFT_ZT2_ALIGN = 4096,            /* alignment of blobs, and the lowest blob offset */
    HEFT_ZT2_CANONICAL_ALIGN = 65536, /* alignment in canonical form */
    HEFT_ZT2_VERSION = 2,
    HEFT_ZT2_MAX_DEPTH = 32, /* nesting of lists and maps, the manifest's root map included */
    HEFT_ZT2_MAX_RANK = 64,
    HEFT_ZT2_MAX_NAME = 1024, /* bytes */
    HEFT_ZT2_MAX_SHARD_NAME = 64,
    HEFT_ZT2_MAX_MANIFEST = 1 << 30
};

/* An element type: a storage type, and a logical type unless both are the same. */
typedef struct heft_zt2_type {
    const char *storage, *logical; /* logical NULL: the storage type alone */
    heft_dtype dtype;
} heft_zt2_type;
extern const heft_zt2_type heft_zt2_types[];
extern const size_t heft_zt2_type_count;
/* Return NULL if t cannot be stored. */
const heft_zt2_type *heft_zt2_type_of(heft_dtype t);

/* Return the reason why `name` is not allowed for an object, part or attribute, or NULL. */
const char *heft_zt2_bad_name(heft_str name);

extern const char heft_zt2_zstd[]; /* name of the seekable zstd encoding */

/* Translate layout names between the file and Heft: "zt.sparse_csr/1" is "sparse_csr". Return
 * other names unchanged. */
heft_str heft_zt2_layout_from_file(heft_str spelled);
heft_str heft_zt2_layout_to_file(heft_str known);
/* Convert the indices of a sparse tensor to one type that readers accept: u32 if each index part
 * fits, otherwise u64. Leave parts that are not integers to heft_zt2_layout_fault(). */
heft_status heft_zt2_plan_indices(heft_plan *p, uint32_t t);
/* Return the reason why the parts or shape of tensor t break the rules of its layout, or NULL.
 * *role names the affected part; it is empty if the reason concerns the whole tensor. */
const char *heft_zt2_layout_fault(const heft_index *x, uint32_t t, heft_str *role);

/* ---- reading: zt2_object.c ---- */

typedef struct heft_zt2_shard {
    heft_str name;
    uint64_t size;
    uint32_t number; /* file number for heft_global_offset() */
} heft_zt2_shard;

typedef struct heft_zt2_reader {
    heft_cbor c;
    heft_index *x;
    uint64_t data_end; /* end of the blobs in this file */
    const heft_zt2_shard *shards;
    uint32_t shard_count;
    heft_str object; /* object being read, for messages */
} heft_zt2_reader;

/* Fail with a message that names the current object. */
heft_status heft_zt2_fail(heft_zt2_reader *r, const char *what);
/* Expect the next item to be a text, a non-negative integer or a map. */
heft_status heft_zt2_text(heft_zt2_reader *r, heft_str *out, const char *what);
heft_status heft_zt2_number(heft_zt2_reader *r, uint64_t *out, const char *what);
/* r->c.u holds the number of pairs. */
heft_status heft_zt2_map(heft_zt2_reader *r, const char *what);
/* Skip the value of an unknown key and record its loss. */
heft_status heft_zt2_skip(heft_zt2_reader *r, heft_str key, const char *text);
/* Read the next key of a map; clear *more at the end of the map. */
heft_status heft_zt2_key(heft_zt2_reader *r, heft_str *key, bool *more);
/* Like heft_zt2_key(), but also check the rules for names. */
heft_status heft_zt2_name(heft_zt2_reader *r, heft_str *key, bool *more, const char *what);
/* Read a map of attributes: the file's for HEFT_NONE, otherwise those of the tensor added last. */
heft_status heft_zt2_attributes(heft_zt2_reader *r, uint32_t tensor);
/* Read a digest text, "xxh3:…" or "sha256:…". *hex_at is the offset of the digits; *algorithm is
 * NULL if the algorithm is unknown. */
heft_status heft_zt2_digest(heft_zt2_reader *r, heft_str *out, const char **algorithm,
                            size_t *hex_at);
/* Read the object named r->object; its key has been read. */
heft_status heft_zt2_object(heft_zt2_reader *r);

/* ---- writing: zt2_values.c ---- */

typedef struct heft_zt2_values { /* state for writing attributes */
    const heft_index *x;
    uint32_t *ids;          /* scratch: two ids per value of the largest set of attributes */
    uint32_t scratch;       /* number of values in the largest set of attributes */
    heft_str duplicate_key; /* a key that occurs twice in a map, if found */
    bool reordered;         /* true if sorting changed the order of keys */
} heft_zt2_values;

/* Return the largest number of values that the file, or one tensor, has. */
uint32_t heft_zt2_max_values(const heft_index *x);
/* Return the reason why a top-level value cannot be written, or NULL. tensor HEFT_NONE: file
 * metadata. */
const char *heft_zt2_value_fault(const heft_index *x, uint32_t tensor, uint32_t i);
/* Return true if the file or tensor has attributes to write. */
bool heft_zt2_has_values(heft_zt2_values *v, uint32_t tensor);
/* Write the attributes as a map with sorted keys. */
void heft_zt2_put_values(heft_zt2_values *v, heft_out *o, uint32_t tensor);
/* Get the element type of a part as it was read, if Heft does not know the type; otherwise
 * return false. */
bool heft_zt2_preserved_type(const heft_index *x, uint32_t tensor, uint32_t part, heft_str *storage,
                             heft_str *logical);
/* Compare keys: shorter keys first, then by bytes. */
int heft_zt2_key_order(heft_str a, heft_str b);

/* ---- seek tables of compressed parts: checked in zt2_seekable.c, written in zt2_write.c ----
 *
 *   frames   each with a content checksum, at most 16 MiB of content, all but the last of one size
 *   0x184D2A5E  u32 bytes that follow
 *   entries  u32 stored  u32 content  (u32 checksum)
 *   u32 number of frames  u8 descriptor: 0x80 when entries have checksums  0x8F92EAB1 */

enum {
    HEFT_ZT2_SKIPPABLE = 0x184D2A5E,
    HEFT_ZT2_SEEK_HEAD = 8,
    HEFT_ZT2_SEEK_ENTRY = 8, /* without the checksum */
    HEFT_ZT2_SEEK_TAIL = 9
};
static const uint32_t heft_zt2_seekable = 0x8F92EAB1;

/* Check the seek table of a compressed part, and the rules of the encoding for its frames. */
heft_status heft_zt2_check_frames(heft_check *c, uint32_t part);

#endif
