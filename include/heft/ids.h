/* ids.h - identities of tensors besides names: base ids of gpt-rs, parameter ids of Burn.  The
 * general rules of heft.h apply.
 *
 * Stability: stable. */
#ifndef HEFT_IDS_H
#define HEFT_IDS_H
#include <heft/heft.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- identities --------------------------------------------------------------------------- */

typedef struct heft_id128 { /* 128-bit number, little-endian as in gpt-rs */
    uint8_t bytes[16];
} heft_id128;

/* Identity of a tensor besides the name.  A member is valid if `has` contains the flag.  Flags
 * unknown to this version are refused with HEFT_E_ARGUMENT. */
enum { HEFT_HAS_PARAM_ID = 1, HEFT_HAS_BASE_ID = 2, HEFT_HAS_REQUIRES_GRAD = 4 };
typedef struct heft_identity {
    uint32_t has;       /* sum of HEFT_HAS_... */
    bool requires_grad; /* gpt-rs: the tensor is trained */
    uint64_t param_id;  /* Burn's ParamId, unique in a file */
    /* gpt-rs' base id.  If not set, a format that stores base ids derives the id from the name; all
     * zero bytes: store no id. */
    heft_id128 base_id;
    uint64_t reserved[2]; /* 0: room for another id of 16 bytes */
} heft_identity;

/* Compute a base id: the first 16 bytes of BLAKE3(name).  False: the name is not ASCII and has
 * none. */
HEFT_API bool heft_param_base_id(heft_id128 *out, heft_str name);
/* Make a 128-bit number from the low and the high half. */
HEFT_API heft_id128 heft_id128_from(uint64_t low, uint64_t high);
/* Write 32 hexadecimal digits, the most significant first, and a terminator. */
HEFT_API void heft_id128_text(char out[33], heft_id128 id);

/* Burn's parameter ids: random 64-bit numbers, printed as 13 characters of base32hex (digits 0-9
 * and a-v, no padding). */
enum { HEFT_PARAM_ID_TEXT = 14 }; /* bytes, with the terminator */
/* Make a new random id; HEFT_E_IO if the system has no random numbers. */
HEFT_API HEFT_MUST_CHECK heft_status heft_param_id_new(uint64_t *out, heft_error *err);
/* Write the id as Burn prints it: 13 characters and a terminator. */
HEFT_API void heft_param_id_text(char out[HEFT_PARAM_ID_TEXT], uint64_t id);
/* Parse the text of an id, in upper or lower case; false if the text is not an id. */
HEFT_API bool heft_param_id_parse(uint64_t *out, heft_str text);

/* ---- finding tensors ---------------------------------------------------------------------- */

/* Identities of tensors besides names. */
typedef enum heft_id_kind {
    HEFT_ID_BASE, /* gpt-rs: derived from the name; ASCII names only */
    HEFT_ID_BURN  /* Burn: number stored in Burnpack files */
} heft_id_kind;
typedef struct heft_id {
    heft_id_kind kind;
    heft_id128 base; /* HEFT_ID_BASE: see heft_param_base_id() */
    uint64_t burn;   /* HEFT_ID_BURN */
} heft_id;
/* Return the first tensor with that identity, or HEFT_NONE; *count (may be NULL) becomes the number
 * of matching tensors.  Base ids are derived from the names; base ids stored in the file are
 * ignored.  Linear time: for many searches use heft_ids_open(). */
HEFT_API uint32_t heft_tensor_find_id(const heft_file *f, const heft_id *id, uint32_t *count);
/* A sorted table of all identities, searched from any thread.  Close the table before the file. */
typedef struct heft_ids heft_ids;
/* Open a table of all identities, for many searches by heft_ids_find(). */
HEFT_API HEFT_MUST_CHECK heft_status heft_ids_open(heft_ids **out, const heft_file *f,
                                                   heft_error *err);
/* Like heft_tensor_find_id(), in logarithmic time. */
HEFT_API uint32_t heft_ids_find(const heft_ids *ids, const heft_id *id, uint32_t *count);
/* Close a table of identities.  NULL is ignored. */
HEFT_API void heft_ids_close(heft_ids *ids);

#ifdef __cplusplus
}
#endif
#endif
