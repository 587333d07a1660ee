/* zip_plan.h - plans and writes a zip archive of tensors in a single pass: members are stored
 * without compression, an extra field aligns the data, and the checksum of each member follows its
 * data.
 *
 * A member holds the data of one part of a tensor, after a prefix that the format may emit.
 * Members without a part come first and are bytes of the format's header. */
#ifndef HEFT_ZIP_PLAN_H
#define HEFT_ZIP_PLAN_H
#include "format/format.h"
#include "grammar/zip.h"

enum { HEFT_ZIP_MAX_ALIGN = 32768 }; /* padding must fit into the extra field of a member */

typedef struct heft_zip_plan_member {
    heft_str name; /* UTF-8, at most 65535 bytes */
    uint32_t part;
    uint64_t head;          /* set by heft_zip_plan_place(): offset of the local header */
    uint32_t extra, prefix; /* bytes of padding, and of the prefix */
    uint32_t digest;        /* number from heft_plan_digest_range(), for the data */
} heft_zip_plan_member;

typedef struct heft_zip_plan {
    heft_zip_plan_member *members; /* members with data, by ascending part; name and part are set */
    uint32_t count;
    const heft_zip_member *leading; /* members of the header, which write_header() emits */
    uint32_t leading_count;
    /* Emit the bytes of the member before the data of the part; NULL: there are none. */
    void (*put_prefix)(const heft_plan *p, uint32_t part, heft_out *o);
    bool is_planned;
} heft_zip_plan;

/* Raise p->align to `least`; HEFT_E_ARGUMENT if the requested alignment is too large. */
heft_status heft_zip_plan_align(heft_plan *p, uint64_t least);
/* Place the members after `start`, the end of the header, in the order of their parts; set the
 * offsets, p->order, header_bytes, data_end and file_bytes.  In an edit, deflated members keep the
 * bytes of the existing archive. */
heft_status heft_zip_plan_place(heft_plan *p, heft_zip_plan *z, uint64_t start);
/* Return true if the part is copied deflated from the existing archive. */
bool heft_zip_plan_is_deflated(const heft_plan *p, uint32_t part);
/* Implement heft_format_writer: the plan must have needs_preceding_digests. */
heft_status heft_zip_plan_record_header(const heft_plan *p, const heft_zip_plan *z, uint32_t part,
                                        heft_out *o);
heft_status heft_zip_plan_trailer(const heft_plan *p, const heft_zip_plan *z, heft_out *o);

#endif
