/* torch.h - what the files of the PyTorch format share: a pickle, the storages that it speaks of, and
 * what its calls stand for.  Each section names the file that defines its functions; a file calls only
 * functions of the sections above its own. */
#ifndef HEFT_TORCH_H
#define HEFT_TORCH_H
#include "format/format.h"
#include "grammar/pickle.h"
#include "grammar/zip.h"

typedef struct heft_torch_type { /* an element type, by its names in PyTorch */
    const char *dtype;           /* of torch.DTYPE */
    const char *storage;         /* torch.STORAGE, or NULL: it has no storage of its own */
    heft_dtype type;             /* HEFT_UNTYPED: none of heft's */
    bool is_other;               /* heft's type is not the same thing: tensors keep the name */
} heft_torch_type;

typedef struct heft_torch_storage { /* a piece of memory of which tensors are views */
    heft_str key;                   /* as the pickle and the container name it */
    const heft_torch_type *type;
    uint64_t at;       /* of the opcode that first speaks of it */
    uint64_t elements; /* of its type */
    uint64_t offset, bytes;
    uint64_t stored;       /* of a deflated one; bytes is what it inflates to */
    uint32_t crc;          /* of a deflated one, or 0 */
    uint32_t first_tensor; /* that is a view of it, or HEFT_NONE */
    bool is_placed, is_deflated;
} heft_torch_storage;

/* What a number names in archives of before 0.1.11. */
typedef struct heft_torch_keyed {
    int64_t key;
    uint64_t at; /* offset of its record */
} heft_torch_keyed;

/* A storage or a view of one there. */
typedef struct heft_torch_memory {
    heft_torch_keyed id;
    uint64_t base, bytes; /* of the storage: what the view covers */
    uint32_t storage;     /* number in t->storages */
} heft_torch_memory;

/* A tensor there: a record of numbers. */
typedef struct heft_torch_record {
    heft_torch_keyed id;
    uint64_t first;              /* element in the memory */
    const uint8_t *sizes;        /* rank numbers of 8 bytes; the strides follow */
    uint32_t memory, rank;       /* memory: number in t->memories, or HEFT_NONE */
    const heft_torch_type *type; /* of a tensor without a storage */
} heft_torch_record;

typedef struct heft_torch {
    heft_window *in;
    heft_index *x;
    heft_pickle p;
    heft_window_bytes inflated;   /* the pickle of an archive that was packed again */
    heft_torch_storage *storages; /* by key */
    uint32_t storage_count;
    heft_torch_memory *memories; /* by key; NULL: not such an archive */
    heft_torch_record *records;  /* by key */
    uint32_t memory_count, record_count;
    heft_torch_storage nothing; /* of tensors without a storage */
    bool is_tar;
    bool is_big_endian;
    bool is_script; /* it has objects of classes that TorchScript keeps as code */
    heft_status st; /* of what has no status of its own: a value of metadata */
    uint64_t pickle_bytes;
    uint64_t bytes; /* of all tensors so far, as they are read */
    uint64_t work;  /* steps and bytes of names that walking the graph may still take */
    uint32_t told;  /* names of calls that were reported */
    uint32_t calls[32];
} heft_torch;

/* ---- members of archives: torch_inflate.c ---- */

/* What a deflated member inflates to, checked; it lives as long as the index. */
heft_status heft_torch_inflate(const heft_torch *t, const heft_zip_entry *e, heft_str *out);

/* ---- the pickle: torch_pickle.c ---- */

/* Reads the pickle that the graph is walked of; apart: see heft_pickle. */
heft_status heft_torch_read_pickle(heft_torch *t, heft_window *in, heft_range where, uint64_t apart,
                                   const char *what);
/* Values that are shared are looked at again wherever they are used; the pickle's size sets how often.
 * HEFT_E_LIMIT: too often. */
heft_status heft_torch_charge(heft_torch *t, uint64_t work, uint64_t at);

/* ---- storages: torch_storage.c ---- */

/* By the name of a class, whose end is "Storage", or "Tensor" in files as old as FloatTensor. */
const heft_torch_type *heft_torch_type_of_class(const heft_pickle *p, uint32_t global,
                                                const char *end);
/* By the name of an element type. */
const heft_torch_type *heft_torch_type_of_dtype(const heft_pickle *p, uint32_t global);
/* Legacy streams have the classes of modules behind persistent ids, with their source: ("module", class, file,
 * text), in tar archives (class, file, text).  The class, or the value itself. */
uint32_t heft_torch_class(const heft_pickle *p, uint32_t value);
/* All that the pickle speaks of, in t->storages. */
heft_status heft_torch_storages(heft_torch *t);
heft_torch_storage *heft_torch_storage_find(const heft_torch *t, heft_str key);

/* ---- storages and tensors of a tar archive by their keys: torch_records.c ---- */

/* A key is an integer, or its decimal digits as a text; false: the value is neither. */
bool heft_torch_read_key(int64_t *out, const heft_pickle *p, uint32_t value);
/* Copies things that begin with a heft_torch_keyed into the arena, sorted.  HEFT_E_FORMAT: two of them have the same
 * key; `what` names one in the message: "tensor". */
heft_status heft_torch_sort(const heft_torch *t, const heft_vec *from, size_t size,
                            const char *what, void **out);
/* The number in t->memories of the memory of that key, or HEFT_NONE. */
uint32_t heft_torch_find_memory(const heft_torch *t, int64_t key);
/* The tensor that a persistent id names, or NULL; *is_storage: it names a storage. */
const heft_torch_record *heft_torch_record_of(const heft_torch *t, uint32_t persistent,
                                              bool *is_storage);

/* ---- calls: torch_calls.c ---- */

typedef enum heft_torch_kind {
    HEFT_TORCH_VALUE,     /* what it is in the pickle */
    HEFT_TORCH_TENSOR,    /* a call that rebuilds one: of call */
    HEFT_TORCH_SPARSE,    /* a call that rebuilds a sparse one */
    HEFT_TORCH_PAIRS,     /* a list of keys and values, each pair a tuple or list */
    HEFT_TORCH_NAMESPACE, /* attributes that are settings */
    HEFT_TORCH_NUMBER,    /* numpy's scalar: of call */
    HEFT_TORCH_DEVICE,    /* of call */
    HEFT_TORCH_OBJECT,    /* of a class that is not known: its attributes and items */
    HEFT_TORCH_OPAQUE,    /* a value that is left out */
    HEFT_TORCH_REFUSED    /* holds tensors in a form that is not read */
} heft_torch_kind;

typedef enum heft_torch_form {                       /* of a tensor's arguments */
                               HEFT_TORCH_PLAIN,     /* storage, offset, size, stride, … */
                               HEFT_TORCH_TYPED,     /* …, requires_grad, hooks, dtype */
                               HEFT_TORCH_QUANTIZED, /* …, (scheme, scale, zero point) */
                               HEFT_TORCH_RECORDED /* none: a persistent id, see heft_torch_record */
} heft_torch_form;

typedef struct heft_torch_meaning {
    heft_torch_kind kind;
    heft_torch_form form;
    uint32_t value;    /* the container, or the call */
    uint32_t callable; /* of a call */
    uint32_t args;
} heft_torch_meaning;

/* What a value stands for: calls are looked up in a table, and those of them that hand on an argument
 * are followed. */
heft_torch_meaning heft_torch_meaning_of(const heft_torch *t, uint32_t value);
/* Reports a call that is not in the table, once. */
void heft_torch_report(heft_torch *t, uint32_t object);

/* ---- values of metadata: torch_scalar.c ---- */

/* A value of metadata; false: it is none, or t->st says why it cannot be had. */
bool heft_torch_scalar(heft_torch *t, heft_value *out, uint32_t value);

/* ---- tensors: torch_tensor.c ---- */

/* Adds the tensor that the call rebuilds. */
heft_status heft_torch_tensor(heft_torch *t, heft_str name, const heft_torch_meaning *m);
/* A tensor that is a part of another and lies in order: bytes of the file. */
typedef struct heft_torch_flat {
    heft_range where;
    uint64_t length; /* of what that decodes to */
    heft_encoding encoding;
    uint32_t crc; /* of a deflated one, or 0 */
    uint64_t elements;
    uint32_t size, rank; /* its shape, a tuple */
    heft_dtype type;
} heft_torch_flat;
/* The CRC-32 of what the part added last decodes to, when it is deflated and has one. */
heft_status heft_torch_digest(const heft_torch *t, heft_encoding e, uint32_t crc);
heft_status heft_torch_flat_of(heft_torch *t, heft_str name, uint32_t value, heft_torch_flat *out);

/* ---- sparse tensors: torch_sparse.c ---- */

/* Adds the sparse tensor that the call rebuilds. */
heft_status heft_torch_sparse(heft_torch *t, heft_str name, const heft_torch_meaning *m);

/* ---- the graph: torch_walk.c ---- */

/* Lists tensors and metadata of the value that x->pick names, or of all. */
heft_status heft_torch_walk(heft_torch *t);

/* ---- archives of before 0.1.11: torch_tar.c ---- */

/* Whether a file that begins so is one. */
bool heft_torch_is_tar(const uint8_t *head, size_t len);
heft_status heft_torch_parse_tar(heft_torch *t);

#endif
