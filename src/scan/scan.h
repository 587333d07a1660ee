/* scan.h - looks for pickles in the bytes of a file, of archives and of compressed data.  A scan
 * goes through pieces: the file is the first piece, and the members of archives are pieces, too. */
#ifndef HEFT_SCAN_H
#define HEFT_SCAN_H
#include <heft/check.h>
#include <heft/heft_ext.h>

#include "base/arena.h"

typedef struct heft_scan_packing heft_scan_packing; /* a kind of compression */
extern const heft_scan_packing heft_scan_deflate;   /* members of zip archives */

typedef struct heft_scan_piece { /* contiguous bytes that may hold pickles */
    const uint8_t *bytes;
    uint64_t size;
    uint64_t at;                      /* offset of the first byte, in the file or decoded bytes */
    heft_str member;                  /* path of the member, empty for the file */
    heft_str name;                    /* last part of the path, or the name of the file */
    uint32_t depth;                   /* number of archives around the piece */
    const heft_scan_packing *packing; /* the bytes are compressed; NULL: as they are */
    bool is_decoded;                  /* the bytes are not those of the file */
    bool is_open_ended;               /* other members may follow in the bytes */
    bool is_in_torchscript, is_in_package; /* of torch.package */
} heft_scan_piece;

typedef struct heft_scan_decoded {
    uint8_t *bytes;
    uint64_t size, capacity;
    uint64_t consumed; /* encoded bytes of the last member */
    uint64_t taken;    /* encoded bytes of all members, with their headers */
    uint64_t to_drop;  /* decoded bytes that are not kept, before the first that is */
    uint64_t dropped;
    bool is_cut; /* there is more than was wanted */
    bool is_damaged, is_truncated, has_no_decoder;
    bool is_followed; /* bytes of another compression follow */
} heft_scan_decoded;

typedef struct heft_scan {
    const heft_host *host;
    heft_memory mem; /* holds pickles and decoded bytes; the limit is in proportion to the file */
    heft_arena names;
    heft_vec pieces; /* heft_scan_piece, to be looked into */
    heft_vec kept;   /* heft_scan_decoded, the bytes of pieces */
    uint64_t work;   /* bytes that may still be gone through */
    bool is_spent;   /* more work was needed: a finding has said so, and the scan ends */
    heft_scan_finding_fn on_finding;
    void *ctx;
    heft_scan_result result;
    heft_error *err;
} heft_scan;

/* ---- pieces ---- */

/* Append a piece that lies in an archive or is decoded, to be scanned later.  A piece within more
 * than three archives is a finding instead. */
heft_status heft_scan_add(heft_scan *s, const heft_scan_piece *p);
/* Report that a piece cannot be searched; `why` ends the sentence that begins with the piece. */
void heft_scan_unreadable(heft_scan *s, const heft_scan_piece *p, const char *why);
/* Count bytes of work; return false if nothing more may be done, after a finding. */
bool heft_scan_charge(heft_scan *s, const heft_scan_piece *p, uint64_t bytes);
/* Leave work for a few members of an archive only, because the members share bytes; a finding, if
 * the piece is an archive for certain. */
void heft_scan_overlap(heft_scan *s, const heft_scan_piece *archive, bool is_certain);
/* Free the bytes, or keep the bytes until the end of the scan because pieces refer to them. */
void heft_scan_free(heft_scan *s, heft_scan_decoded *d);
heft_status heft_scan_keep(heft_scan *s, heft_scan_decoded *d);

/* ---- looks ---- */

/* Return true if programs load files of this name as pickles, whatever they hold. */
bool heft_scan_is_pickle_name(heft_str name);
/* Return true if the bytes begin like a pickle of protocol 2 or later. */
bool heft_scan_begins_pickle(const uint8_t *p, uint64_t size);
/* Return true for the name of a text of Python's syntax, as TorchScript stores its code. */
bool heft_scan_is_script_name(heft_str name);
/* Return true for the name of a text in JSON, as Keras stores the configuration of a model. */
bool heft_scan_is_json_name(heft_str name);
/* Return true if archives with a member of this name are TorchScript. */
bool heft_scan_is_constants_name(heft_str name);
/* Return true if archives with a member of this name are packages of Python code, which
 * torch.package runs when a pickle in the archive imports a module. */
bool heft_scan_is_package_name(heft_str name);
/* Return the offset of the data of an npy file; 0 for any other bytes. */
uint64_t heft_scan_npy_data(const uint8_t *p, uint64_t size);
/* Set *end to the offset after the array of an npy file, or to 0 for a pickle; return false if the
 * length is unknown. */
bool heft_scan_npy_end(uint64_t *end, const uint8_t *p, uint64_t size);

/* ---- storages of legacy PyTorch files ---- */

typedef struct heft_scan_storages { /* the storages that a pickle mentions */
    heft_vec rows;
    bool is_odd; /* of one, the key or the length of an element is unknown */
} heft_scan_storages;

/* Add a storage; return false if out of memory.  element_bytes: 0 if unknown. */
bool heft_scan_storage(heft_scan *s, heft_scan_storages *to, heft_str key, uint32_t element_bytes);
void heft_scan_storages_free(heft_scan *s, heft_scan_storages *storages);
/* Set *end to the offset after the storages that follow the list of their keys, a pickle; lengths
 * that are unknown are a finding. */
heft_status heft_scan_follow_storages(uint64_t *end, heft_scan *s, const heft_scan_piece *p,
                                      heft_range list, const heft_scan_storages *storages);

/* ---- scanning ---- */

/* Report the imports of all pickles at the beginning of a piece.  Damage is a finding if programs
 * are sure to take the piece for a pickle. */
heft_status heft_scan_pickles(heft_scan *s, const heft_scan_piece *p, bool is_promised);
/* Set *goes_on to whether the bytes end within a pickle. */
heft_status heft_scan_is_pickle_cut(bool *goes_on, heft_scan *s, const uint8_t *p, uint64_t size);
/* Report the calls in the code of TorchScript that reach files. */
void heft_scan_script(heft_scan *s, const heft_scan_piece *p);
/* Report operators and paths of an ONNX model by which a program would run code, or leave the
 * folder; other pieces are left alone. */
void heft_scan_onnx(heft_scan *s, const heft_scan_piece *p);
/* Report code of AOTInductor in a package of torch.export. */
void heft_scan_library(heft_scan *s, const heft_scan_piece *p);
/* Report code that torch.package runs. */
void heft_scan_package_code(heft_scan *s, const heft_scan_piece *p);
/* Report code and imports in the configuration of a model of Keras. */
void heft_scan_keras(heft_scan *s, const heft_scan_piece *p);
/* Return true for an HDF5 file, perhaps after a block of the user. */
bool heft_scan_is_hdf5(const uint8_t *p, uint64_t size);
/* Set *wants to whether the bytes after this beginning of a piece matter: a program that loads the
 * piece would read on. */
heft_status heft_scan_wants_all(bool *wants, heft_scan *s, const uint8_t *head, uint64_t size);
/* Append the content of a piece that is compressed as a whole, and set *found. */
heft_status heft_scan_compressed(heft_scan *s, const heft_scan_piece *p, bool *found);
/* Replace a compressed piece by its content, in the memory of *d. */
heft_status heft_scan_unpack(heft_scan_decoded *d, heft_scan *s, heft_scan_piece *p);

#endif
