/* members.h - reads JSON objects by tables of members. */
#ifndef HEFT_SIGN_MEMBERS_H
#define HEFT_SIGN_MEMBERS_H
#include "grammar/json.h"
#include "sign/signature.h"

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
