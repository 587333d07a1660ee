/* dcp.h - shared by the files that read distributed checkpoints of PyTorch (DCP). */
#ifndef HEFT_DCP_H
#define HEFT_DCP_H
#include "format/torch/torch.h"
#include "model/names.h"

enum { HEFT_DCP_MAX_NAME = 4096 }; /* bytes of the name of an item */

typedef struct heft_dcp_item { /* an entry of storage_data */
    heft_str name;             /* fqn of the index */
    uint32_t offsets;          /* TUPLE of the offsets of the piece; HEFT_NONE: not a tensor */
    uint32_t info;             /* DICT with the fields of _StorageInfo */
    uint32_t key;              /* the index, for messages */
} heft_dcp_item;

typedef struct heft_dcp { /* state of the parser */
    heft_window *in;
    heft_index *x;
    heft_pickle p;
    heft_dcp_item *items; /* sorted by name, then offsets */
    uint32_t item_count;
    heft_names files;     /* the shards of x by name */
    uint32_t passed_over; /* entries outside of the key that the caller has picked */
    uint64_t *numbers;    /* offsets and sizes of a piece, 2 * `capacity` numbers */
    uint32_t capacity;
    uint64_t chunks; /* of all tensors so far */
} heft_dcp;

/* ---- values of the pickle: dcp_values.c ---- */

/* Refuse a pickle that calls anything but the classes of DCP and what their fields need. */
heft_status heft_dcp_check_calls(const heft_dcp *d);
/* Return the TUPLE of a torch.Size, or a tuple, of at most 64 items; HEFT_NONE for another
 * value. */
uint32_t heft_dcp_size(const heft_pickle *p, uint32_t v);
/* Set HEFT_E_FORMAT at the value; fmt as for heft_error_set(). */
heft_status heft_dcp_fail(const heft_dcp *d, uint32_t value, const char *fmt, ...);

/* ---- where items are stored: dcp_storage.c ---- */

/* Collect storage_data, and add the files as shards. */
heft_status heft_dcp_read_storage(heft_dcp *d, uint32_t storage_data);
/* Return the item, or NULL.  offsets: a TUPLE; HEFT_NONE for an object that is not a tensor. */
const heft_dcp_item *heft_dcp_find(const heft_dcp *d, heft_str name, uint32_t offsets);
/* Set box->offset and length. */
heft_status heft_dcp_locate(const heft_dcp *d, const heft_dcp_item *item, heft_ix_box *box);

#endif
