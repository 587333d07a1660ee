/* npz_write.c - plans and writes .npz archives in a single pass: members are stored without
 * compression, an extra field aligns the data, and the checksum of each member follows the data.
 *
 * When an archive is edited, deflated members are copied as stored, including the array's header,
 * with the checksum from the existing archive. */
#include "base/crc.h"
#include "format/losses.h"
#include "format/numpy/npz.h"
#include "grammar/zip.h"

typedef struct member {
    uint64_t head;          /* offset of the local header */
    uint32_t extra, header; /* bytes of padding, and of the array's header */
    uint32_t digest;        /* number from heft_plan_digest_range(), for the data */
    heft_str name;
} member;

typedef struct archive { /* heft_plan.priv */
    member *members;     /* by tensor */
    bool is_planned;
} archive;

static const heft_ix_part_row *data_of(const heft_plan *p, uint32_t t)
{
    return heft_ix_part_row_at(p->x, heft_ix_row(p->x, t)->first_part);
}

static bool is_deflated(const heft_plan *p, uint32_t t)
{
    return p->existing && data_of(p, t)->encoding == HEFT_DEFLATE;
}

/* Emit the array's header, unless the data is deflated.  Existing data may be in Fortran order. */
static void put_header(const heft_plan *p, uint32_t t, heft_out *o)
{
    if (!is_deflated(p, t))
        heft_npy_put(o, p->x, t, HEFT_NPY_ALIGN, p->existing && data_of(p, t)->flags & HEFT_P_VIEW);
}

static heft_status add_crc(void *ctx, uint64_t at, const void *data, size_t len)
{
    uint32_t *crc = ctx;
    (void)at;
    *crc = heft_crc32(*crc, data, len);
    return HEFT_OK;
}

/* Compute the CRC-32 of a member: the array's header and the data.  Deflated members take the CRC
 * from the existing archive, where tensors and parts have the same numbers.  0 while planning. */
static heft_status content_crc(const heft_plan *p, uint32_t t, uint32_t *out)
{
    const archive *a = p->priv;
    enum { PREFIX = 8 }; /* "crc32:0x" */
    uint8_t buf[256], bytes[HEFT_CHECKSUM_BYTES];
    const uint8_t *data;
    heft_out o = { .buf = buf, .cap = sizeof buf, .flush = add_crc, .ctx = out };
    *out = 0;
    if (!a->is_planned)
        return HEFT_OK;
    if (is_deflated(p, t)) {
        heft_str stored_crc = heft_ix_digest_of(p->existing, heft_ix_row(p->x, t)->first_part);
        if (stored_crc.len <= PREFIX ||
            !heft_ix_digits(bytes, "crc32",
                            (heft_str){ stored_crc.ptr + PREFIX, stored_crc.len - PREFIX }))
            return heft_error_plain(p->err, HEFT_E_UNSUPPORTED, "array %q has no checksum",
                                    heft_ix_name(p->x, t));
        *out = heft_le32(bytes);
        return HEFT_OK;
    }
    put_header(p, t, &o);
    HEFT_TRY(heft_out_flush(&o));
    HEFT_TRY(heft_plan_range_digest(p, a->members[t].digest, &data));
    *out = heft_crc32_join(*out, heft_le32(data), data_of(p, t)->length);
    return HEFT_OK;
}

static heft_zip_member member_of(const heft_plan *p, uint32_t t)
{
    const member *m = &((const archive *)p->priv)->members[t];
    heft_zip_member to = { .name = m->name,
                           .head = m->head,
                           .size = m->header + data_of(p, t)->length,
                           .extra = m->extra };
    if (is_deflated(p, t)) {
        uint32_t part = heft_ix_row(p->x, t)->first_part;
        const heft_ix_view *v = heft_ix_view_of(p->existing, part);
        to.size = v ? v->content : to.size;
        to.is_deflated = true;
        to.deflated = heft_ix_part_row_at(p->existing, part)->stored;
    }
    return to;
}

static heft_status put_descriptor(const heft_plan *p, uint32_t t, heft_out *o)
{
    heft_zip_member m = member_of(p, t);
    HEFT_TRY(content_crc(p, t, &m.crc));
    heft_zip_put_descriptor(o, &m);
    return o->st;
}

/* ---- planning ---- */

/* Name the members, and warn about names that are dangerous for unpacking.  In an edit, names that
 * were dangerous before are not reported, so that other members can be renamed. */
static heft_status name_members(heft_plan *p, archive *a)
{
    for (uint32_t t = 0; t < heft_ix_tensors(p->x); t++) {
        heft_str name = heft_arena_join(p->arena, heft_ix_name(p->x, t), heft_lit(heft_npz_suffix),
                                        heft_lit(""));
        if (!name.ptr)
            return heft_error_no_memory(p->err, "to plan the file");
        a->members[t].name = name;
        const char *risk = heft_npz_risk(name);
        if (risk && !(p->existing && heft_npz_risk(heft_ix_name(p->existing, t))))
            HEFT_TRY(
                heft_loss_report(p, HEFT_WARNING, "npz/name", t,
                                 "the name has %s: unpacking the archive may write elsewhere, or "
                                 "fail (--rename)",
                                 risk));
    }
    return HEFT_OK;
}

/* Set the offsets of a member and of the data, and advance *end past the data. */
static bool place_member(heft_plan *p, uint32_t t, member *m, uint64_t *end)
{
    heft_ix_part_row *part = heft_ix_part_row_at(p->x, heft_ix_row(p->x, t)->first_part);
    heft_out count = heft_out_counting();
    put_header(p, t, &count);
    m->header = (uint32_t)count.total;
    m->head = *end;
    m->extra = 0;
    heft_zip_member header = member_of(p, t);
    heft_zip_put_header(&count, &header);
    uint64_t at, aligned;
    bool is_copied = is_deflated(p, t); /* never memory-mapped, so not aligned */
    if (!heft_add(&at, m->head, count.total) ||
        !heft_align_up(&aligned, at, is_copied ? 1 : p->align))
        return false;
    while (aligned > at && aligned - at < HEFT_ZIP_EXTRA)
        aligned += p->align;
    m->extra = (uint32_t)(aligned - at);
    part->offset = aligned;
    part->stored = is_copied ? header.deflated : part->length;
    return heft_add(end, aligned, part->stored) && *end < INT64_MAX;
}

static heft_status place_members(heft_plan *p, archive *a)
{
    heft_status st = HEFT_OK;
    uint64_t end = 0;
    for (uint32_t t = 0; t < heft_ix_tensors(p->x) && !st; t++) {
        heft_out descriptor = heft_out_counting();
        if (t) {
            heft_zip_member previous = member_of(p, t - 1);
            heft_zip_put_descriptor(&descriptor, &previous);
        }
        end += descriptor.total;
        if (!place_member(p, t, &a->members[t], &end))
            return heft_error_plain(p->err, HEFT_E_LOSSY, "the file would exceed 2^63 bytes");
        p->order[t] = heft_ix_row(p->x, t)->first_part;
        const heft_ix_part_row *part = data_of(p, t);
        if (!is_deflated(p, t))
            st = heft_plan_digest_range(p, "crc32", (heft_range){ part->offset, part->length },
                                        &a->members[t].digest);
    }
    p->order_count = heft_ix_tensors(p->x);
    p->data_end = end;
    return st;
}

/* ---- writing ---- */

/* Emit the data descriptor of the preceding member, the local header, and the array's header. */
heft_status heft_npz_write_record_header(const heft_plan *p, uint32_t part, heft_out *o)
{
    uint32_t t = heft_ix_owner(p->x, part);
    heft_status st = t ? put_descriptor(p, t - 1, o) : HEFT_OK;
    heft_zip_member m = member_of(p, t);
    if (st)
        return st;
    heft_zip_put_header(o, &m);
    put_header(p, t, o);
    return o->st;
}

heft_status heft_npz_write_header(const heft_plan *p, heft_out *o)
{
    (void)p; /* the file begins with the first member */
    return o->st;
}

heft_status heft_npz_write_trailer(const heft_plan *p, heft_out *o)
{
    uint32_t count = heft_ix_tensors(p->x);
    uint64_t start = o->total;
    heft_status st = count ? put_descriptor(p, count - 1, o) : HEFT_OK;
    heft_range directory = { p->data_end + (o->total - start), o->total };
    for (uint32_t t = 0; t < count && !st; t++) {
        heft_zip_member m = member_of(p, t);
        st = content_crc(p, t, &m.crc);
        heft_zip_put_entry(o, &m);
    }
    directory.length = o->total - directory.length;
    heft_zip_put_end(o, count, directory);
    return st ? st : o->st;
}

/* ---- the plan ---- */

heft_status heft_npz_plan(heft_plan *p)
{
    enum { MAX_NAME = 65535 - 4 };
    archive *a = heft_plan_alloc(p, sizeof *a);
    if (!a)
        return HEFT_E_NOMEM;
    p->priv = a;
    p->needs_preceding_digests = true;
    heft_status st = heft_npy_plan_align(p);
    if (!st)
        st = heft_loss_parts(p, "npz/parts", NULL, "an .npz file");
    if (!st)
        st = heft_loss_metadata(p, "npz/metadata", "an .npz file");
    if (!st)
        st = heft_loss_attributes(p, "npz/attributes", 0);
    for (uint32_t t = 0; t < heft_ix_tensors(p->x) && !st; t++) {
        heft_str name = heft_ix_name(p->x, t);
        const char *why = name.len > MAX_NAME      ? "a name of more than 65531 bytes"
                          : heft_str_has_nul(name) ? "a name with a NUL"
                                                   : NULL;
        if (why)
            heft_plan_drop(p, t);
        st = why ? heft_loss_report(p, HEFT_FAULT, "npz/name", t,
                                    "%s cannot be stored in a zip archive", why)
                 : heft_npy_plan_tensor(p, t);
    }
    if (st)
        return st;
    heft_plan_compact(p);
    a->members = heft_plan_alloc(p, heft_ix_tensors(p->x) * sizeof *a->members);
    p->order = heft_plan_alloc(p, heft_ix_tensors(p->x) * sizeof *p->order);
    st = a->members && p->order ? name_members(p, a) : HEFT_E_NOMEM;
    if (!st)
        st = place_members(p, a);
    heft_out count = heft_out_counting();
    if (!st)
        st = heft_npz_write_trailer(p, &count);
    a->is_planned = true;
    p->file_bytes = p->data_end + count.total; /* place_members() keeps data_end below 2^63 */
    return st;
}
