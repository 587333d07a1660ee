/* torch.h - shared by the files of the PyTorch format: the pickle, storages, and calls.  Each
 * section names the file that defines the functions; a file calls only functions of the preceding
 * sections. */
#ifndef HEFT_TORCH_H
#define HEFT_TORCH_H
#include "format/format.h"
#include "grammar/pickle.h"
#include "grammar/torch_types.h"
#include "grammar/zip.h"
#include "model/values.h"

typedef struct heft_torch_storage { /* memory of one or more tensors */
    heft_str key;                   /* name in the pickle and in the container */
    heft_str class;                 /* name of the class in the pickle */
    const heft_torch_type *type;    /* never NULL */
    uint64_t at;                    /* offset of the first opcode that mentions the storage */
    uint64_t elements;              /* number of elements of `type` */
    uint64_t offset, bytes;         /* file offset; size after inflating */
    uint64_t stored;                /* stored size if deflated */
    uint32_t crc;                   /* CRC-32 if deflated, or 0 */
    uint32_t first_tensor;          /* first tensor that is a view of the storage, or HEFT_NONE */
    bool is_located, is_deflated;
    bool is_opaque; /* encrypted, or compressed by an unsupported method */
    bool is_meta;   /* the device is "meta", whose storages have a size and no bytes */
    bool is_hidden; /* follows a storage of unknown size, so that the offset is not known */
    bool is_mesh;   /* has the ranks of a mesh, which were checked */
} heft_torch_storage;

/* The number of a storage or tensor in an archive before PyTorch 0.1.11. */
typedef struct heft_torch_id {
    int64_t key;
    uint64_t at; /* offset of the record */
} heft_torch_id;

/* A storage, or a view of a storage, in an archive before 0.1.11. */
typedef struct heft_torch_storage_view {
    heft_torch_id id;
    uint64_t base, bytes; /* range of the storage */
    uint32_t storage;     /* index in t->storages */
} heft_torch_storage_view;

/* The record of a tensor in an archive before 0.1.11. */
typedef struct heft_torch_record {
    heft_torch_id id;
    uint64_t first;              /* index of the first element in the storage view */
    const uint8_t *sizes;        /* `rank` sizes of 8 bytes each, then `rank` strides */
    uint32_t storage_view, rank; /* storage_view: index in t->storage_views, or HEFT_NONE */
    const heft_torch_type *type; /* type of a tensor without a storage */
} heft_torch_record;

typedef struct heft_torch { /* state of the parser */
    heft_window *in;
    heft_index *x;
    heft_pickle p;
    heft_window_bytes inflated;   /* the pickle, if deflated in the archive */
    heft_torch_storage *storages; /* sorted by key */
    uint32_t storage_count;
    heft_torch_storage_view *storage_views; /* tar archives: sorted by key; otherwise NULL */
    heft_torch_record *records;             /* tar archives: sorted by key */
    uint32_t storage_view_count, record_count;
    heft_torch_storage no_storage; /* shared by tensors without a storage */
    heft_range member; /* the file of torch.save() in a package; length 0: the file itself */
    heft_str prefix;   /* begins the names in a member, without the dot that follows it; or empty */
    bool is_tar;
    bool is_big_endian;
    bool is_script; /* some objects have classes that TorchScript stores as code */
    heft_status st; /* error of functions that return bool */
    uint64_t pickle_bytes;
    uint64_t bytes;    /* total size of all tensors so far */
    uint64_t budget;   /* steps and bytes of names that heft_torch_walk() may still take */
    uint32_t reported; /* number of reported_calls */
    uint32_t reported_calls[32];
} heft_torch;

/* ---- members of archives: torch_inflate.c ---- */

/* Inflate a deflated member and verify size and CRC.  The result lives as long as the index. */
heft_status heft_torch_inflate(const heft_torch *t, const heft_zip_entry *e, heft_str *out);

/* ---- the pickle: torch_pickle.c ---- */

/* Read the main pickle.  decoded_from: see heft_pickle. */
heft_status heft_torch_read_pickle(heft_torch *t, heft_window *in, heft_range where,
                                   uint64_t decoded_from, const char *what);
/* Subtract `work` from the budget, which is proportional to the pickle's size.  Shared values are
 * listed at every use, so a small pickle could otherwise take unlimited time.  HEFT_E_LIMIT if
 * exceeded. */
heft_status heft_torch_charge(heft_torch *t, uint64_t work, uint64_t at);

/* ---- storages: torch_storage.c ---- */

/* Find a type by the name of a class that ends in `end`: "Storage", or "Tensor" in old files
 * (FloatTensor). */
const heft_torch_type *heft_torch_type_of_class(const heft_pickle *p, uint32_t global,
                                                const char *end);
/* Find a type by the name of a dtype. */
const heft_torch_type *heft_torch_type_of_dtype(const heft_pickle *p, uint32_t global);
/* Return the type that is written for a type of Heft; NULL: PyTorch has none. */
const heft_torch_type *heft_torch_type_stored_as(heft_dtype type);
/* Return the type whose name stored_dtype keeps, or NULL. */
const heft_torch_type *heft_torch_type_named(heft_str stored_dtype);
/* Keep the name of a type that is only similar to that of the tensor, and warn about it. */
heft_status heft_torch_keep_name(heft_index *x, uint32_t tensor, const heft_torch_type *type,
                                 uint64_t at);
/* Return the class that a value refers to, or the value.  Legacy streams wrap classes of modules in
 * persistent ids with source code: ("module", class, file, text); tar archives: (class, file,
 * text). */
uint32_t heft_torch_class(const heft_pickle *p, uint32_t value);
/* Return true for a persistent id of a storage. */
bool heft_torch_is_storage(const heft_pickle *p, uint32_t value);
/* Return true if Heft does not know the class of the storage. */
bool heft_torch_has_unknown_class(const heft_torch_storage *s);
/* Collect all storages that the pickle mentions in t->storages. */
heft_status heft_torch_storages(heft_torch *t);
/* Read the main pickle, and collect the storages. */
heft_status heft_torch_read_main(heft_torch *t, heft_window *in, heft_range where,
                                 uint64_t decoded_from, const char *what);
heft_torch_storage *heft_torch_storage_find(const heft_torch *t, heft_str key);

/* ---- records of tar archives by key: torch_records.c ---- */

/* Read a key, an integer or a text of decimal digits; return false for any other value. */
bool heft_torch_read_key(int64_t *out, const heft_pickle *p, uint32_t value);
/* Copy records that begin with a heft_torch_id into the arena, sorted by key.  HEFT_E_FORMAT for
 * duplicate keys; `what` ("tensor") names a record in the message. */
heft_status heft_torch_sort(const heft_torch *t, const heft_vec *from, size_t size,
                            const char *what, void **out);
/* Return the index of the key in t->storage_views, or HEFT_NONE. */
uint32_t heft_torch_find_storage_view(const heft_torch *t, int64_t key);
/* Return the tensor with a persistent id, or NULL.  Set *is_storage if the id names a storage. */
const heft_torch_record *heft_torch_record_of(const heft_torch *t, uint32_t persistent,
                                              bool *is_storage);

/* ---- calls: torch_calls.c ---- */

typedef enum heft_torch_kind {
    HEFT_TORCH_VALUE,     /* an ordinary value of the pickle */
    HEFT_TORCH_TENSOR,    /* a call that rebuilds a tensor */
    HEFT_TORCH_SPARSE,    /* a call that rebuilds a sparse tensor */
    HEFT_TORCH_PIECE,     /* a call that rebuilds a tensor of which a rank has a piece */
    HEFT_TORCH_PAIRS,     /* a list of pairs (tuples or lists) of keys and values */
    HEFT_TORCH_NAMESPACE, /* an object with settings as attributes */
    HEFT_TORCH_NUMBER,    /* a NumPy scalar */
    HEFT_TORCH_DEVICE,    /* a torch.device */
    HEFT_TORCH_OBJECT,    /* an object of an unknown class, with attributes and items */
    HEFT_TORCH_OPAQUE,    /* a value without numbers, which is left out */
    HEFT_TORCH_BYTES,     /* bytes, as protocols before 3 store them */
    HEFT_TORCH_NUMBERS,   /* numbers, which are left out */
    HEFT_TORCH_ARRAY,     /* an array of NumPy, which is left out */
    HEFT_TORCH_META,      /* a tensor of the device "meta", without bytes */
    HEFT_TORCH_WRAPPER,   /* a tensor that consists of the tensors among its attributes */
    HEFT_TORCH_REFUSED    /* a call that rebuilds tensors in an unsupported form */
} heft_torch_kind;

/* Arguments of a call that rebuilds a tensor. */
typedef enum heft_torch_form {
    HEFT_TORCH_PLAIN,     /* storage, offset, size, stride, … */
    HEFT_TORCH_TYPED,     /* …, requires_grad, hooks, dtype */
    HEFT_TORCH_QUANTIZED, /* …, (scheme, scale, zero point) */
    HEFT_TORCH_RECORDED   /* no arguments: a persistent id, see heft_torch_record */
} heft_torch_form;

typedef struct heft_torch_interpretation {
    heft_torch_kind kind;
    heft_torch_form form;
    uint32_t value;    /* the container, or the call */
    uint32_t callable; /* function or class of a call */
    uint32_t args;     /* arguments of a call */
    uint32_t state;    /* PIECE, WRAPPER: the state of the tensor, or HEFT_NONE */
} heft_torch_interpretation;

/* Interpret a value: look up calls in a table, and follow calls that only wrap an argument. */
heft_torch_interpretation heft_torch_interpret(const heft_torch *t, uint32_t value);
/* Add a note about a call that is not in the table, unless the same call was reported before. */
void heft_torch_report(heft_torch *t, uint32_t object);

/* ---- containers and objects: torch_object.c, torch_pick.c ---- */

/* Return the key in Python's spelling; a key that is not a scalar is replaced by `index`, the
 * position in the dictionary.  HEFT_NONE: an item of a list. */
heft_str heft_torch_key_text(const heft_pickle *p, uint32_t key, uint32_t index,
                             char buf[HEFT_F64_TEXT]);
bool heft_torch_is_container(const heft_pickle *p, uint32_t value);
/* Return true for an instance of a class with the name, in any module. */
bool heft_torch_is(const heft_pickle *p, uint32_t value, const char *class_name);
/* Return the DICT of the fields of an instance: its state, or the second of a pair; HEFT_NONE if it
 * has none, or more than a class of PyTorch. */
uint32_t heft_torch_fields(const heft_pickle *p, uint32_t value);
/* Return a field of an instance; HEFT_NONE if it is absent or None. */
uint32_t heft_torch_field(const heft_pickle *p, uint32_t value, const char *name);
/* Accept a TUPLE of numbers from 0 on, or a torch.Size of one, to which *value is set.  Return
 * false for another value, or on error: t->st is set. */
bool heft_torch_sizes(heft_torch *t, uint32_t *value, uint32_t *count);
/* Find the dictionaries of an object's state: the state or, of a tuple, the attributes and the
 * slots.  Return false if the state has another form. */
bool heft_torch_find_attributes(const heft_torch *t, uint32_t state, uint32_t dicts[2]);
/* Return the attributes of an object, or HEFT_NONE. */
uint32_t heft_torch_attributes(const heft_torch *t, uint32_t object);
/* Set *root to the value that x->pick names, or to the root of the pickle.  HEFT_E_NOTFOUND: there
 * is none. */
heft_status heft_torch_pick(const heft_torch *t, uint32_t *root);

/* ---- values of metadata: torch_scalar.c ---- */

/* Convert a value to metadata.  Return false if the value is not a scalar, or on error: t->st is
 * set. */
bool heft_torch_scalar(heft_torch *t, heft_value *out, uint32_t value);

/* ---- tensors: torch_tensor.c ---- */

/* Leave a tensor out if st, which x->err explains, is HEFT_E_UNSUPPORTED; else return st.  The file
 * may have damaged bytes only where another status is returned. */
heft_status heft_torch_leave_unsupported(const heft_torch *t, heft_status st, uint64_t at);
/* Add the tensor that a call rebuilds, or leave the tensor out. */
heft_status heft_torch_tensor(heft_torch *t, heft_str name, const heft_torch_interpretation *m);
/* A view of a storage whose shape a package states. */
typedef struct heft_torch_stated {
    heft_torch_storage *storage;
    const heft_torch_type *type;
    const uint64_t *sizes, *strides; /* `rank` of each */
    uint32_t rank;
    uint64_t first; /* index of the first element in the storage */
    uint64_t at;    /* offset for messages */
} heft_torch_stated;
heft_status heft_torch_add_stated(heft_torch *t, heft_str name, const heft_torch_stated *s);
/* Set storage, type and `at` to those of the tensor that the pickle is. */
heft_status heft_torch_single(heft_torch *t, heft_torch_stated *out);
/* A contiguous tensor that is a part of a sparse tensor. */
typedef struct heft_torch_contiguous {
    heft_torch_storage *storage;
    heft_range where; /* stored bytes */
    uint64_t length;  /* decoded length */
    heft_encoding encoding;
    uint32_t crc; /* CRC-32 of a deflated part, or 0 */
    uint64_t elements;
    uint32_t size, rank; /* shape: a TUPLE of the pickle */
    const heft_torch_type *type;
} heft_torch_contiguous;
heft_status heft_torch_contiguous_of(heft_torch *t, heft_str name, uint32_t value,
                                     heft_torch_contiguous *out);
/* Add the CRC-32 of the part added last, if deflated and the CRC is known. */
heft_status heft_torch_digest(const heft_torch *t, heft_encoding e, uint32_t crc);

/* ---- sparse tensors: torch_sparse.c ---- */

enum { HEFT_TORCH_SPARSE_PARTS = 4, HEFT_TORCH_LAYOUTS = 6, HEFT_TORCH_WRITTEN_LAYOUTS = 2 };
typedef struct heft_torch_layout { /* a layout of sparse tensors; those that are written first */
    const char *name, *layout;     /* names in PyTorch and in Heft */
    const char *roles[HEFT_TORCH_SPARSE_PARTS];
    uint32_t parts, values; /* number of parts, index of the values; the shape follows */
    uint32_t compressed;    /* the dimension that the first of three parts divides */
    bool has_blocks;        /* each value is a matrix */
} heft_torch_layout;
extern const heft_torch_layout heft_torch_layouts[HEFT_TORCH_LAYOUTS];

/* Add the sparse tensor that a call rebuilds, or leave the tensor out. */
heft_status heft_torch_sparse(heft_torch *t, heft_str name, const heft_torch_interpretation *m);

/* ---- settings beside the tensors: torch_settings.c ---- */

/* Key of the dictionary of settings, and the version of a file that has it. */
extern const char heft_torch_metadata[], heft_torch_checkpoint[];
/* Add the settings of a dictionary.  Set *taken to false, and add nothing, if a value is none. */
heft_status heft_torch_settings(heft_torch *t, uint32_t dict, bool *taken);

/* ---- pieces in the files of ranks: torch_piece.c ---- */

/* Add the piece of a tensor that a rank has, or leave it out. */
heft_status heft_torch_piece(heft_torch *t, heft_str name, const heft_torch_interpretation *m);
/* Call after the last tensor: if some are pieces, the others are whole.  Refuse flat parameters. */
heft_status heft_torch_end_pieces(heft_torch *t);

/* ---- the graph: torch_walk.c ---- */

/* Add the tensors and metadata of the value that x->pick names, or of all values. */
heft_status heft_torch_walk(heft_torch *t);

/* ---- zip archives: torch_member.c, torch_zip.c ---- */

typedef struct heft_torch_archive {
    heft_zip z;
    heft_str folder;  /* "NAME/", from the first member */
    heft_str storage; /* "NAME/data/", the prefix of storages */
} heft_torch_archive;
/* Read the directory of the archive in t->member. */
heft_status heft_torch_open_member(heft_zip *out, const heft_torch *t);
/* Open the archive, of the file or in t->member, and read its version and its byte order. */
heft_status heft_torch_open_archive(heft_torch *t, heft_torch_archive *a);
/* Add the tensors of an archive of torch.save(). */
heft_status heft_torch_parse_archive(heft_torch *t, const heft_torch_archive *a);
/* Add the checksum of a stored member.  0 means that the writer left the checksum out. */
heft_status heft_torch_checksum(const heft_torch *t, const heft_zip_entry *e, uint32_t tensor,
                                bool at_open);
/* Open the archive of a single tensor in t->member: heft_torch_single().  The caller adds the
 * checksum of the storage, and frees the pickle. */
heft_status heft_torch_open_single(heft_torch *t, heft_torch_stated *out);
/* Open and add the archive in t->member, and free the pickle. */
heft_status heft_torch_parse_member(heft_torch *t);

/* ---- packages, since PyTorch 2.7: torch_package.c ---- */

#define HEFT_TORCH_FIRST_WEIGHT "data/weights/weight_0" /* the first member since PyTorch 2.9 */
/* Return true if the first member, or a part of the directory, is that of a package (.pt2). */
bool heft_torch_looks_like_package(heft_str first, heft_str directory);
/* Return true for the archive of a package. */
bool heft_torch_is_package(const heft_zip *z);
/* Add the weights and constants of a package. */
heft_status heft_torch_parse_package(const heft_torch *t, const heft_zip *z);

/* ---- streams, before PyTorch 1.6: torch_legacy.c ---- */

/* Recognise the pickle of the magic number, in any protocol. */
bool heft_torch_is_legacy(const uint8_t *head, size_t len);
heft_status heft_torch_parse_legacy(heft_torch *t);

/* Refuse what lean builds leave out; files: in the plural, "tar files". */
heft_status heft_torch_refuse_lean(const heft_index *x, const char *files);

/* ---- tar archives, before PyTorch 0.1.11: torch_tar.c ---- */

/* Return true if a file that begins with `head` is a tar archive of torch.save(). */
bool heft_torch_is_tar(const uint8_t *head, size_t len);
heft_status heft_torch_parse_tar(heft_torch *t);

#endif
