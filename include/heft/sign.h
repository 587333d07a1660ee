/* sign.h - digests of whole files, and signatures of models in the format of OpenSSF Model Signing
 * (OMS) 1.0.  Not included by heft.h; the general rules of heft.h apply.
 *
 * A signature is a Sigstore bundle: JSON text with a signed statement that lists the files of a
 * model and their digests.  To verify a model, read the signature, check the key or the
 * certificates, and compare the digests of the files with the resources.  Nothing in a signature
 * can be trusted before heft_signature_check_key() or heft_signature_check_chain() succeeds.
 * Source: https://github.com/ossf/model-signing-spec, DSSE 1.0, in-toto Statement 1. */
#ifndef HEFT_SIGN_H
#define HEFT_SIGN_H
#include <heft/heft_ext.h>

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
 * the name that git gives to a file with these bytes.  The bytes are read once, in order, in pieces
 * of at most 1 MiB.  progress may be NULL.  Thread-safe for different sources.
 *   HEFT_E_UNSUPPORTED  this build lacks libcrypto, or the algorithm is not known
 *   HEFT_E_IO           the source failed, or changed meanwhile */
HEFT_API HEFT_MUST_CHECK heft_status heft_source_digest(heft_file_digest *out, heft_source *s,
                                                        const char *algorithm, uint64_t offset,
                                                        uint64_t length, heft_progress_fn progress,
                                                        void *progress_ctx, heft_error *err);

#ifdef __cplusplus
}
#endif
#endif
