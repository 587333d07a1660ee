/* signature.h - a signature in memory: a statement about the files of a model, and the bundle
 * around the statement.
 *
 *   bundle     JSON; contains key hint or certificates, the statement in base64, the signature
 *   statement  JSON; the signed text: the name of the model, and the resources
 *   message    "DSSEv1 LENGTH TYPE LENGTH STATEMENT", the bytes that are signed */
#ifndef HEFT_SIGNATURE_H
#define HEFT_SIGNATURE_H
#include <heft/sign.h>

#include "base/arena.h"
#include "grammar/json.h"

#define HEFT_BUNDLE_TYPE    "application/vnd.dev.sigstore.bundle.v0.3+json"
#define HEFT_PAYLOAD_TYPE   "application/vnd.in-toto+json"
#define HEFT_STATEMENT_TYPE "https://in-toto.io/Statement/v1"
#define HEFT_PREDICATE_TYPE "https://model_signing/signature/v1.0"

struct heft_signature {
    const heft_host *host;
    heft_memory mem;
    heft_arena arena; /* all strings */
    heft_str model, message, statement, signature, key_hint;
    heft_vec resources;    /* heft_resource, as listed in the statement */
    heft_vec ignored;      /* heft_str */
    heft_vec certificates; /* heft_str */
    uint32_t *order;       /* numbers of resources by name and range; 2 * order_count numbers */
    uint32_t order_count;
    bool allow_symlinks;
};

/* Allocate an empty signature. */
heft_status heft_signature_open(heft_signature **out, const heft_host *wanted, heft_error *err);
/* Set s->message to the statement behind the prefix of DSSE. */
heft_status heft_signature_wrap(heft_signature *s, heft_error *err);
/* Sort the resources; HEFT_E_FORMAT if two have the same name and range. */
heft_status heft_signature_sort(heft_signature *s, heft_error *err);
/* Return true for relative paths without empty, "." and ".." components, and for "." alone. */
bool heft_resource_name_is_safe(heft_str name);
/* Compare names as paths: folder by folder. */
int heft_resource_order(const heft_resource *a, const heft_resource *b);
/* Compute the SHA-256 of the digests of all resources; of resource order[i] if order is given. */
heft_status heft_signature_root(uint8_t out[32], const heft_signature *s, const uint32_t *order,
                                heft_error *err);

/* Read the statement in s->statement; offsets of errors are offsets in the statement. */
heft_status heft_statement_read(heft_signature *s, heft_error *err);

/* ---- hexadecimal ---- */

/* Decode 2 to 128 digits; return false if the text is not hexadecimal. */
bool heft_hex_decode(heft_file_digest *out, heft_str text);

/* ---- reads JSON objects by tables of members ---- */

typedef struct heft_member_reader {
    heft_json j;
    heft_signature *s;
    uint64_t payload_at; /* offset of the payload's text */
    bool is_sharded;
    heft_file_digest root;  /* digest of the subject */
    heft_resource resource; /* being read */
    uint32_t materials, subjects, signatures;
} heft_member_reader;

/* Read a value that begins with the token `first`. */
typedef heft_status (*heft_member_fn)(heft_member_reader *r, heft_json_kind first);

typedef struct heft_member {
    const char *name;
    heft_member_fn read;
    bool is_required;
} heft_member;

/* Read an object; members that the table lacks are skipped, a listed member may occur once. */
heft_status heft_read_members(heft_member_reader *r, heft_json_kind first,
                              const heft_member *members, size_t count);
/* Read an array, each item with fn. */
heft_status heft_read_items(heft_member_reader *r, heft_json_kind first, heft_member_fn fn);
/* Copy a string into the arena of the signature. */
heft_status heft_read_text(heft_str *out, heft_member_reader *r, heft_json_kind first);
/* Read a string that has to equal `text`; otherwise fail with `status`. */
heft_status heft_read_constant(heft_member_reader *r, heft_json_kind first, const char *text,
                               const char *what, heft_status status);
/* Read base64 into the arena of the signature. */
heft_status heft_read_base64(heft_str *out, heft_member_reader *r, heft_json_kind first);

#endif
