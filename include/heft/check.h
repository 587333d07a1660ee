/* check.h - verify checksums and format rules, hash tensors, look for hostile pickles.  The
 * general rules of heft.h apply.
 *
 * Stability: provisional. */
#ifndef HEFT_CHECK_H
#define HEFT_CHECK_H
#include <heft/heft.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- findings ----------------------------------------------------------------------------- */

typedef struct heft_finding {
    heft_severity severity;
    const char *rule; /* stable name, "mag/align-64"; docs/findings.md lists all rules */
    heft_range where; /* offset HEFT_NOWHERE: no particular bytes */
    uint32_t tensor;  /* id, or HEFT_NONE */
    const char *text; /* one line; valid until the callback returns */
    uint32_t shard;   /* file that `where` is in: 0, or a shard as in heft_part */
    uint32_t stage;   /* findings of shares are in order by stage, then by share */
    /* The finding names content of the model that is not among the tensors.  A conversion reports
     * the content as a loss; a strict conversion fails with HEFT_E_LOSSY. */
    bool left_out;
    uint8_t reserved8[3]; /* 0: up to the next member */
    uint32_t reserved[3]; /* 0: room for three numbers */
} heft_finding;
/* Report a finding. */
typedef void (*heft_finding_fn)(void *ctx, const heft_finding *finding);

/* Return the number of findings of opening the file: something allowed but unusual, such as an
 * unknown minor version, unaligned data, or a name that looks like a path.  heft_file_verify()
 * reports the same findings. */
HEFT_API uint32_t heft_notice_count(const heft_file *f);
/* Return finding i of opening the file.  The text stays valid until heft_file_close(). */
HEFT_API heft_finding heft_notice_at(const heft_file *f, uint32_t i);

/* ---- checksums and rules ------------------------------------------------------------------ */

typedef struct heft_verify_result {
    uint64_t bytes_checked; /* bytes compared with checksums or checked as values */
    uint32_t notes, warnings, faults;
    uint32_t origin_digests; /* files compared with the digest that the hub states */
    /* Stored bytes of all parts, and how many of these bytes were compared with checksums.
     * payload_checked is 0 without checksums. */
    uint64_t payload_bytes, payload_checked;
} heft_verify_result;

typedef struct heft_verify_options {
    size_t size;                /* = sizeof(heft_verify_options) */
    heft_finding_fn on_finding; /* may be NULL */
    heft_progress_fn progress;  /* may be NULL */
    void *ctx;                  /* passed to both */
    /* Check only the structure and the checksums of header and index; the cost does not depend on
     * the size of the data.  The note "heft/quick" lists skipped checks: digests and values of
     * data, padding between parts. */
    bool quick;
    uint8_t reserved; /* 0: up to the next member */
    /* Check only share `share` of `share_count`: a run of checksums, of decoded parts and of sparse
     * tensors, each of nearly equal bytes.  Share 1 makes all other checks.  The findings and
     * bytes_checked of all shares together are those of the whole file.  0: no shares. */
    uint16_t share, share_count;
    uint16_t reserved2; /* 0: up to 8 bytes */
} heft_verify_options;
#define HEFT_VERIFY_OPTIONS_INIT                                         \
    {                                                                    \
        sizeof(heft_verify_options), NULL, NULL, NULL, false, 0, 0, 0, 0 \
    }
/* Compare every checksum in the file, then check the format's rules for padding, reserved bits,
 * identities and values.  HEFT_OK: the check was completed; out->faults says whether the file is
 * sound.  out and opt may be NULL. */
HEFT_API HEFT_MUST_CHECK heft_status heft_file_verify(heft_verify_result *out, const heft_file *f,
                                                      const heft_verify_options *opt,
                                                      heft_error *err);
/* Read a part and compare the digest: the digest that the file stores for the part, or the checksum
 * of the archive member that holds the part (npz, PyTorch).  A checksum of several parts, as in
 * EMBD files, does not count: see heft_file_verify().  *checked (may be NULL): the part has a
 * digest and this build has the algorithm.
 *   HEFT_E_CHECKSUM  the digest does not match
 *   HEFT_E_ARGUMENT  the part does not exist */
HEFT_API HEFT_MUST_CHECK heft_status heft_part_verify(bool *checked, const heft_file *f,
                                                      uint32_t part, heft_error *err);
typedef struct heft_checksum { /* a checksum stored in the file */
    const char *rule, *algorithm;
    heft_range range;     /* covered bytes; the first range if there are several */
    uint32_t shard;       /* file of the range, as in heft_part */
    uint32_t reserved[3]; /* 0: room for three numbers */
} heft_checksum;
/* Return the number of checksums of the file. */
HEFT_API uint32_t heft_checksum_count(const heft_file *f);
/* Return checksum i of the file. */
HEFT_API heft_checksum heft_checksum_at(const heft_file *f, uint32_t i);
typedef struct heft_part_digest { /* the digest that the file states for a part */
    const char *algorithm;        /* "sha256", "xxh3-64", "crc32c"; valid as long as the file */
    uint32_t len;                 /* bytes */
    uint8_t bytes[32];
    uint32_t reserved[3]; /* 0: room for three numbers */
} heft_part_digest;
/* Get the digest of the decoded bytes of a part, as the file states the digest: nothing is read or
 * compared.  False: the part does not exist, the file states none, or the digest covers other
 * bytes, such as the compressed ones. */
HEFT_API bool heft_part_stated_digest(heft_part_digest *out, const heft_file *f, uint32_t part);

/* ---- checked reads ------------------------------------------------------------------------ */

/* Read many parts through streams, on any threads, and compare all checksums that cover the parts:
 * the digest of each part (by the stream), and checksums over several parts, such as the checksum
 * of all data of an EMBD file (by heft_checked_read_end()). */
typedef struct heft_checked_read heft_checked_read;
/* Open a checked read of `count` parts; parts NULL: all parts of all tensors. */
HEFT_API HEFT_MUST_CHECK heft_status heft_checked_read_open(heft_checked_read **out,
                                                            const heft_file *f,
                                                            const uint32_t *parts, uint32_t count,
                                                            heft_error *err);
/* Open a stream of one of the parts.  Thread-safe. */
HEFT_API HEFT_MUST_CHECK heft_status heft_checked_read_stream(heft_stream **out,
                                                              heft_checked_read *r, uint32_t part,
                                                              heft_error *err);
/* Compare the checksums after the last byte was read.  Covered bytes that no stream has read, such
 * as headers before arrays, are read now.  HEFT_E_CHECKSUM at the first mismatch. */
HEFT_API HEFT_MUST_CHECK heft_status heft_checked_read_end(heft_checked_read *r, heft_error *err);
/* Close a checked read, after all its streams.  NULL is ignored. */
HEFT_API void heft_checked_read_close(heft_checked_read *r);

/* ---- hashes ------------------------------------------------------------------------------- */

/* Compute BLAKE3 hashes of element type, shape, layout and decoded bytes.  Equal tensors have equal
 * hashes in every format (docs/hash.md).  tensors: array of heft_tensor_count() hashes; *model
 * hashes the sorted (name, hash) pairs.  progress may be NULL.
 *   HEFT_E_CHECKSUM     check_parts is set and the digest of a part does not match
 *   HEFT_E_UNSUPPORTED  the tensors have hashes, the model has none: heft_left_out_hash() */
HEFT_API HEFT_MUST_CHECK heft_status heft_file_hash(heft_hash *model, heft_hash *tensors,
                                                    const heft_file *f, heft_progress_fn progress,
                                                    void *progress_ctx, heft_error *err);
/* Compute the hash of the model from the hashes of all its tensors, as heft_file_hash() does, for a
 * program that hashes tensors in several processes.  The tensors are not read again.
 *   HEFT_E_UNSUPPORTED  the model has no hash: heft_left_out_hash() */
HEFT_API HEFT_MUST_CHECK heft_status heft_hash_model(heft_hash *model, const heft_hash *tensors,
                                                     const heft_file *f, heft_error *err);
/* Hash the content of the model that is not among the tensors (findings with left_out), except the
 * state of an optimizer.  *has_any is false, and *out not set, if the file has no such content.
 * The hash of the model covers this hash.
 *   HEFT_E_UNSUPPORTED  the bytes of some content are not known (rule heft/left-out) */
HEFT_API HEFT_MUST_CHECK heft_status heft_left_out_hash(heft_hash *out, bool *has_any,
                                                        const heft_file *f, heft_error *err);
/* Compute the hash of each of `count` tensors as heft_file_hash() does: hashes[i] belongs to
 * tensors[i].  Only the listed tensors are read, by all threads of the file's host; a tensor listed
 * twice is read once.  Equal hashes find a renamed tensor in a second file.
 *   HEFT_E_ARGUMENT  a tensor does not exist
 *   HEFT_E_CHECKSUM  check_parts is set and the digest of a part does not match */
HEFT_API HEFT_MUST_CHECK heft_status heft_tensor_hash_many(heft_hash *hashes, const heft_file *f,
                                                           const uint32_t *tensors, uint32_t count,
                                                           heft_progress_fn progress,
                                                           void *progress_ctx, heft_error *err);

/* ---- pickles ------------------------------------------------------------------------------ */

typedef struct heft_scan_finding {
    heft_severity severity; /* HEFT_FAULT: a known way to run code, or hidden on purpose */
    const char *rule;       /* stable name, "pickle/import"; docs/findings.md lists all rules */
    heft_str member;        /* member of the archive, "archive/data.pkl"; empty: the file itself */
    uint64_t offset;        /* in the file, or in the decoded content if is_decoded */
    heft_str module, name;  /* the imported name; any bytes, empty if not known */
    const char *text;       /* one line; valid, like the strings, until the callback returns */
    bool is_decoded;        /* the finding is in a compressed member, or a compressed file */
    uint8_t reserved[31];   /* 0: room for a range and a number */
} heft_scan_finding;
/* Report a finding. */
typedef void (*heft_scan_finding_fn)(void *ctx, const heft_scan_finding *finding);

typedef struct heft_scan_result {
    uint64_t pickles, findings; /* numbers of pickles and findings */
    uint64_t reserved[6];       /* 0: room for six counts */
} heft_scan_result;

typedef struct heft_scan_options {
    size_t size;                     /* = sizeof(heft_scan_options) */
    heft_scan_finding_fn on_finding; /* may be NULL */
    void *ctx;                       /* passed to on_finding */
    /* Name of the file.  A name such as "model.pkl" makes damage in a pickle a finding; what a
     * program would run is a finding whatever the name.  May be NULL. */
    const char *name;
    const heft_host *host; /* NULL: heft_host_default() */
} heft_scan_options;
#define HEFT_SCAN_OPTIONS_INIT                            \
    {                                                     \
        sizeof(heft_scan_options), NULL, NULL, NULL, NULL \
    }
/* Report the functions that the pickles of a file would import if a program loaded the file.
 * Nothing is executed.  Python calls only imported functions, so that each import outside of the
 * functions that rebuild tensors is a finding, and so is a call of one of these functions with
 * arguments that no writer uses.  What a program would run before the file fails counts: neither
 * the name of the file nor later damage matters.  Every file is taken for a pickle, and so are the
 * members of zip and tar archives, the data of npy files, and the content of files compressed with
 * gzip, zlib or zstd, nested up to three levels deep.  Archives are searched for the members of
 * every reader, so that a wrong checksum or a second directory hides nothing.  A part that cannot
 * be searched is a finding, and so are operators of ONNX that run Python or a program of the model,
 * and its external data outside of the folder.  out and opt may be NULL.  A source without `map` is
 * read into memory as a whole.
 *   HEFT_OK        the scan is complete: out->findings tells the result
 *   HEFT_E_IO      the source failed, or changed during the scan
 *   HEFT_E_NOMEM   also if a pickle needs much more memory than its size */
HEFT_API HEFT_MUST_CHECK heft_status heft_source_scan(heft_scan_result *out, heft_source *s,
                                                      const heft_scan_options *opt,
                                                      heft_error *err);

#ifdef __cplusplus
}
#endif
#endif
