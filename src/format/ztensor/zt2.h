/* zt2.h - what the files of zTensor 2 share: facts of the format, and its types. */
#ifndef HEFT_ZT2_H
#define HEFT_ZT2_H
#include "format/ztensor/ztensor.h"
#include "grammar/cbor.h"

enum {
    HEFT_ZT2_FOOTER = 40,       /* at the end of the file */
    HEFT_ZT2_FLOOR = 4096,      /* blobs begin at multiples of it, and not before */
    HEFT_ZT2_CANONICAL = 65536, /* the same in canonical form */
    HEFT_ZT2_VERSION = 2,
    HEFT_ZT2_DEPTH = 32, /* of lists and maps, the manifest's own included */
    HEFT_ZT2_RANK = 64,
    HEFT_ZT2_NAME = 1024, /* bytes of a name */
    HEFT_ZT2_SHARD_NAME = 64,
    HEFT_ZT2_MANIFEST = 1 << 30
};

/* An element type: a storage type, and unless the two are the same a logical one over it. */
typedef struct heft_zt2_type {
    const char *storage, *logical; /* logical NULL: none */
    heft_dtype dtype;
} heft_zt2_type;
extern const heft_zt2_type heft_zt2_types[];
extern const size_t heft_zt2_type_count;
/* NULL: it cannot be stored. */
const heft_zt2_type *heft_zt2_type_of(heft_dtype t);

/* What is wrong with an object, a part or an attribute of that name, or NULL. */
const char *heft_zt2_bad_name(heft_str name);

extern const char heft_zt2_zstd[]; /* the name of the encoding */

/* A layout that heft knows as another: "zt.sparse_csr/1" is "sparse_csr". */
heft_str heft_zt2_layout_known(heft_str spelled);
heft_str heft_zt2_layout_spelled(heft_str known);
/* Gives the indices of a sparse tensor one type that readers take: u32 where that has room for what each of them can
 * hold, else u64.  What is not an integer stays for heft_zt2_layout_fault(). */
heft_status heft_zt2_plan_indices(heft_plan *p, uint32_t t);
/* What breaks the rules that the layout of tensor t has for its parts and shape, or NULL.  *role names the part
 * that it is about, unless it is empty. */
const char *heft_zt2_layout_fault(const heft_index *x, uint32_t t, heft_str *role);

/* ---- reading: zt2_object.c ---- */

typedef struct heft_zt2_shard {
    heft_str name;
    uint64_t size;
    uint32_t number; /* for heft_global_offset() */
} heft_zt2_shard;

typedef struct heft_zt2_reader {
    heft_cbor c;
    heft_index *x;
    uint64_t data_end; /* blobs of this file end before it */
    const heft_zt2_shard *shards;
    uint32_t shard_count;
    heft_str object; /* that is being read, for messages */
} heft_zt2_reader;

/* Fails with the object's name in front. */
heft_status heft_zt2_fail(heft_zt2_reader *r, const char *what);
/* The next item is to be a text, a number, a map. */
heft_status heft_zt2_text(heft_zt2_reader *r, heft_str *out, const char *what);
heft_status heft_zt2_number(heft_zt2_reader *r, uint64_t *out, const char *what);
/* Its pairs are counted in r->c.u. */
heft_status heft_zt2_map(heft_zt2_reader *r, const char *what);
/* The value of a key that is not known. */
heft_status heft_zt2_skip(heft_zt2_reader *r, heft_str key, const char *text);
/* The key of the next pair, or the end of the map: *more is false. */
heft_status heft_zt2_key(heft_zt2_reader *r, heft_str *key, bool *more);
/* The same with the rules for names. */
heft_status heft_zt2_name(heft_zt2_reader *r, heft_str *key, bool *more, const char *what);
/* A map of attributes, of the tensor added last or with HEFT_NONE of the file. */
heft_status heft_zt2_attributes(heft_zt2_reader *r, uint32_t tensor);
/* A text of the form "xxh3:…" or "sha256:…"; *hex_at is where its digits begin, and algorithm NULL when it is not
 * known here. */
heft_status heft_zt2_digest(heft_zt2_reader *r, heft_str *out, const char **algorithm,
                            size_t *hex_at);
/* The object called r->object, behind its key. */
heft_status heft_zt2_object(heft_zt2_reader *r);

/* ---- writing: zt2_losses.c ---- */

/* Report what the format cannot store of the model, and drop the tensors that it cannot store. */
heft_status heft_zt2_plan_model(heft_plan *p);

/* ---- writing: zt2_values.c ---- */

typedef struct heft_zt2_values { /* attributes on their way out */
    const heft_index *x;
    uint32_t *ids;  /* room for two numbers per value of the largest set of attributes */
    uint32_t room;  /* values in that set */
    heft_str twice; /* a key that a map has twice, if one was met */
    bool moved;     /* keys were in another order */
} heft_zt2_values;

/* As many values as the file, or the tensor with the most of them, has. */
uint32_t heft_zt2_most_values(const heft_index *x);
/* Why a top-level value cannot be written, or NULL; tensor HEFT_NONE: it is the file's. */
const char *heft_zt2_value_fault(const heft_index *x, uint32_t tensor, uint32_t i);
/* Whether there are any to write. */
bool heft_zt2_has_values(heft_zt2_values *v, uint32_t tensor);
/* The map of them, keys sorted. */
void heft_zt2_put_values(heft_zt2_values *v, heft_out *o, uint32_t tensor);
/* The type of a part that heft does not know, as it was read: false when there is none. */
bool heft_zt2_kept_type(const heft_index *x, uint32_t tensor, uint32_t part, heft_str *storage,
                        heft_str *logical);
/* The order of keys: shorter ones first. */
int heft_zt2_key_order(heft_str a, heft_str b);

/* ---- checking: zt2_seekable.c ---- */

/* The seek table of a compressed part, and what the encoding demands of its frames. */
heft_status heft_zt2_check_frames(heft_check *c, uint32_t part);

#endif
