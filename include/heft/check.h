/* check.h - check files: checksums, the rules of their formats, and hashes of tensors.  heft.h includes this header and
 * has the rules. */
#include <heft/heft.h> /* before the guard: heft.h includes this header, ahead of those that need it */
#ifndef HEFT_CHECK_H
#define HEFT_CHECK_H

#ifdef __cplusplus
extern "C" {
#endif

/* ---- findings ----------------------------------------------------------------------------- */

typedef enum heft_severity { HEFT_NOTE, HEFT_WARNING, HEFT_FAULT } heft_severity;

typedef struct heft_finding {
    heft_severity severity;
    const char *rule; /* a stable name, "mag/align-64"; all are listed in docs/findings.md */
    heft_range where; /* offset HEFT_NOWHERE: no particular place */
    uint32_t tensor;  /* or HEFT_NONE */
    const char *text; /* one line; lives as long as the call it is handed to, or what lends it */
    uint32_t shard;   /* 0, or the file beside this one that where is a place of, as in heft_part */
    uint32_t reserved[5];
} heft_finding;
/* Called on the thread that checks: the one that called the function. */
typedef void (*heft_finding_fn)(void *ctx, const heft_finding *finding);

/* The i-th thing that was noticed while the file was opened: what is allowed but odd, such as a minor version
 * that is not known, data that are not aligned, a name that looks like a path.  heft_file_verify() reports the same
 * findings again, among others.  false past the last.  The text lives as long as the file.  Any thread. */
HEFT_API bool heft_notice_at(heft_finding *out, const heft_file *f, size_t i);

/* ---- checksums and rules ------------------------------------------------------------------ */

typedef struct heft_verify_result {
    uint64_t bytes_checked; /* bytes covered by checksums that were looked at, or read as values */
    uint32_t notes, warnings, faults;
    uint32_t reserved[5];
} heft_verify_result;

typedef struct heft_verify_options {
    size_t size; /* = sizeof(heft_verify_options) */
    heft_finding_fn on_finding;
    void *ctx; /* of on_finding */
    heft_progress_fn progress;
    void *progress_ctx;
    /* Structure and checksums of header and index, in a time that does not depend on the payload.  A note of the rule
     * "heft/quick" says what was left out, if anything was: digests of data, their values, padding between them. */
    bool quick;
    uint8_t reserved[7]; /* 0 */
} heft_verify_options;
#define HEFT_VERIFY_OPTIONS_INIT                                    \
    {                                                               \
        sizeof(heft_verify_options), NULL, NULL, NULL, NULL, false, \
        {                                                           \
            0                                                       \
        }                                                           \
    }
/* Every checksum that the file asserts, then the format's rules for padding, reserved bits, identities and values.
 * HEFT_OK says that the check ran to its end, whatever it found.  opt NULL: the defaults.  out may be NULL. */
HEFT_API HEFT_MUST_CHECK heft_status heft_file_verify(heft_verify_result *out, const heft_file *f,
                                                      const heft_verify_options *opt,
                                                      heft_error *err);
/* Reads all stored bytes of a part and compares them with the digest that the file gives of the part, or with the
 * checksum of the one member of an archive that its bytes are in (npz, PyTorch): HEFT_E_CHECKSUM when they do not
 * match.  *checked (may be NULL) says whether there is such a checksum, and this build has its algorithm.  A checksum
 * of many parts at once, such as that of all data in an EMBD file, is none: see heft_file_verify().  Any thread. */
HEFT_API HEFT_MUST_CHECK heft_status heft_part_verify(bool *checked, const heft_file *f,
                                                      uint32_t part, heft_error *err);
/* The i-th checksum that the file asserts: what it is called and what it covers; false past the
 * last. */
typedef struct heft_checksum {
    const char *rule, *algorithm;
    heft_range range;
    uint32_t shard; /* as in heft_part */
    uint32_t reserved[3];
} heft_checksum;
HEFT_API bool heft_checksum_at(heft_checksum *out, const heft_file *f, size_t i);

/* ---- hashes ------------------------------------------------------------------------------- */

/* BLAKE3 over element type, shape, layout and the decoded bytes of every part: equal for equal
 * tensors, whatever the format.  docs/hash.md writes it down. */
enum { HEFT_HASH_BYTES = 32 };
typedef struct heft_hash {
    uint8_t bytes[HEFT_HASH_BYTES];
} heft_hash;
/* tensors has room for heft_tensor_count() hashes; model covers the sorted (name, hash) pairs. */
HEFT_API HEFT_MUST_CHECK heft_status heft_file_hash(heft_hash *model, heft_hash *tensors,
                                                    const heft_file *f, heft_progress_fn progress,
                                                    void *progress_ctx, heft_error *err);

#ifdef __cplusplus
}
#endif
#endif
