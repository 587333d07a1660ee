/* sign.h - digests of whole files, and signatures of models in the format of OpenSSF Model Signing
 * (OMS) 1.0.  The general rules of heft.h apply.
 *
 * A signature is a Sigstore bundle: JSON text with a signed statement, the list of the files of a
 * model with their digests.  To verify a model, read the signature, check the key or the
 * certificates, and compare the digests of the files with the resources.  A signature proves
 * nothing before heft_signature_check_key() or heft_signature_check_chain() succeeds.
 * Source: https://github.com/ossf/model-signing-spec, DSSE 1.0, in-toto Statement 1.
 *
 * Stability: provisional. */
#ifndef HEFT_SIGN_H
#define HEFT_SIGN_H
#include <heft/heft.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- digests of files --------------------------------------------------------------------- */

enum { HEFT_FILE_DIGEST_BYTES = 64 };
typedef struct heft_file_digest {
    uint32_t length; /* bytes of the digest */
    uint8_t bytes[HEFT_FILE_DIGEST_BYTES];
} heft_file_digest;
/* Compute the digest of `length` bytes at `offset`: "sha256", "blake2b" (512 bits), or "git-sha1",
 * the name of the file in git.  The bytes are read once, in order, in pieces of at most 1 MiB.
 * progress may be NULL.  Thread-safe for different sources.
 *   HEFT_E_UNSUPPORTED  libcrypto is missing, or the algorithm is not known
 *   HEFT_E_IO           the source failed, or changed meanwhile */
HEFT_API HEFT_MUST_CHECK heft_status heft_source_digest(heft_file_digest *out, heft_source *s,
                                                        const char *algorithm, uint64_t offset,
                                                        uint64_t length, heft_progress_fn progress,
                                                        void *progress_ctx, heft_error *err);

/* ---- signatures --------------------------------------------------------------------------- */

typedef struct heft_signature heft_signature;

typedef struct heft_resource { /* a file of the model, or a range of a file */
    heft_str name;             /* path relative to the model's folder; "." for a single file */
    heft_str algorithm;        /* "sha256", "blake2b" */
    heft_file_digest digest;
    uint64_t from, to; /* range of bytes; `to` is HEFT_UNKNOWN_LENGTH for a whole file */
} heft_resource;

/* Read a signature: check the JSON, the statement, and the digest over all resources, but neither
 * key nor signature.  The text may be freed afterwards.  host NULL: heft_host_default().
 *   HEFT_E_FORMAT       not a signature of a model; err->offset is the offset in the text
 *   HEFT_E_UNSUPPORTED  another version of the format, or the build lacks SHA-256 */
HEFT_API HEFT_MUST_CHECK heft_status heft_signature_read(heft_signature **out, heft_str text,
                                                         const heft_host *host, heft_error *err);

typedef struct heft_signature_options {
    size_t size;    /* = sizeof(heft_signature_options) */
    heft_str model; /* name of the folder or file; not compared by the functions of this header */
    const heft_resource *resources; /* whole files with SHA-256 digests, in any order */
    uint32_t resource_count;
    bool allow_symlinks;     /* some files are symbolic links */
    uint8_t reserved[3];     /* 0: up to the next member */
    const heft_str *ignored; /* paths relative to the folder: "sub", not "./sub" or "sub/" */
    uint32_t ignored_count;
    uint32_t reserved_too; /* 0: up to the next member */
    const heft_host *host; /* NULL: heft_host_default() */
} heft_signature_options;
/* Make the statement about a model; sign it with heft_signature_sign().
 *   HEFT_E_ARGUMENT     a resource is not a whole file, has no SHA-256 digest, or occurs twice; a
 *                       path is not UTF-8, not relative, or has a component that is empty, "." or
 *                       ".."
 *   HEFT_E_UNSUPPORTED  the build lacks SHA-256 */
HEFT_API HEFT_MUST_CHECK heft_status heft_signature_new(heft_signature **out,
                                                        const heft_signature_options *opt,
                                                        heft_error *err);
/* Close a signature.  NULL is ignored. */
HEFT_API void heft_signature_close(heft_signature *s);

typedef struct heft_signature_info { /* strings are valid until heft_signature_close() */
    heft_str model;
    heft_str message;   /* the signed bytes, with the prefix of DSSE */
    heft_str signature; /* DER; empty before heft_signature_sign() */
    heft_str key_hint;  /* SHA-256 of the public key in PEM form, in hex digits; may be empty */
    uint32_t resources, ignored, certificates; /* counts */
    bool allow_symlinks;
    uint8_t reserved[19]; /* 0: room for a text */
} heft_signature_info;
/* Get the facts about a signature.  The strings are borrowed. */
HEFT_API void heft_signature_get(heft_signature_info *out, const heft_signature *s);
/* Return the number of resources. */
HEFT_API uint32_t heft_resource_count(const heft_signature *s);
/* Return resource i in the order of names and offsets. */
HEFT_API heft_resource heft_resource_at(const heft_signature *s, uint32_t i);
/* Return the number of the first resource of that name, or HEFT_NONE. */
HEFT_API uint32_t heft_resource_find(const heft_signature *s, heft_str name);
/* Return ignored path i. */
HEFT_API heft_str heft_signature_ignored_at(const heft_signature *s, uint32_t i);
/* Return certificate i (DER), the signer's first. */
HEFT_API heft_str heft_signature_certificate_at(const heft_signature *s, uint32_t i);
/* Store a signature of info.message from another program. */
HEFT_API HEFT_MUST_CHECK heft_status heft_signature_set(heft_signature *s, heft_str signature,
                                                        heft_str key_hint, heft_error *err);
/* Append a certificate (DER) to the chain of the signature, the signer's first.  The certificate is
 * not checked; heft_signature_certify() reads PEM and checks the chain.  The signature is written
 * with certificates or with a key hint, never with both. */
HEFT_API HEFT_MUST_CHECK heft_status heft_signature_add_certificate(heft_signature *s, heft_str der,
                                                                    heft_error *err);
/* Write the bundle as JSON text and finish the sink, taken over even on failure. */
HEFT_API HEFT_MUST_CHECK heft_status heft_signature_write(const heft_signature *s, heft_sink *take,
                                                          heft_error *err);

/* ---- keys and certificates, by libcrypto -------------------------------------------------- */

/* libcrypto is loaded on first use, by a function below, heft_source_digest() or a SHA-256.
 * Before a program enters a sandbox without access to the folders of libraries, call
 * heft_source_digest(). */

/* Take the certificates of a signature from a text in PEM form: the signer's certificate, followed
 * by the certificate of each issuer.  Blocks of other kinds are skipped.  Call once, before
 * heft_signature_sign(); close the signature after a failure.
 *   HEFT_E_ARGUMENT     no certificate, or a damaged, misplaced or weak one; the signer's
 *                       certificate has expired, or is not meant for signatures
 *   HEFT_E_UNSUPPORTED  libcrypto is missing */
HEFT_API HEFT_MUST_CHECK heft_status heft_signature_certify(heft_signature *s,
                                                            heft_str certificates, heft_error *err);
/* Sign with a private key on the curve P-256, P-384 or P-521, in PEM form; the digest is SHA-256,
 * SHA-384 or SHA-512.  password: of an encrypted key, otherwise empty.
 *   HEFT_E_ARGUMENT     the text is not a private key, the password is wrong, or the key does
 *                       not belong to the first certificate of the signature
 *   HEFT_E_UNSUPPORTED  libcrypto is missing */
HEFT_API HEFT_MUST_CHECK heft_status heft_signature_sign(heft_signature *s, heft_str key,
                                                         heft_str password, heft_error *err);
/* Check the signature with a public key (PEM).
 *   HEFT_E_CHECKSUM     err->rule is "signature/key": another key, or "signature/invalid"
 *   HEFT_E_ARGUMENT     the text is not a public key on one of the curves
 *   HEFT_E_UNSUPPORTED  libcrypto is missing */
HEFT_API HEFT_MUST_CHECK heft_status heft_signature_check_key(const heft_signature *s, heft_str key,
                                                              heft_error *err);
/* Check the signature with the key of the first certificate, and the chain of certificates to
 * one of `authorities` (PEM, several in a row).  `certificate` (PEM, may be empty) must equal the
 * first certificate of the signature.  Dates are compared with the beginning of the first
 * certificate's validity, because a signature has no trusted time.  Signatures of certificates by
 * SHA-1, and RSA keys below 2048 bits, are refused.
 *   HEFT_E_CHECKSUM     err->rule is "signature/certificate" or "signature/invalid"
 *   HEFT_E_ARGUMENT     a text has no certificate, or a damaged one
 *   HEFT_E_UNSUPPORTED  libcrypto is missing */
HEFT_API HEFT_MUST_CHECK heft_status heft_signature_check_chain(const heft_signature *s,
                                                                heft_str authorities,
                                                                heft_str certificate,
                                                                heft_error *err);

#ifdef __cplusplus
}
#endif
#endif
