/* zip_plan.c - plans and writes a zip archive of tensors; grammar/zip_write.c writes its records.
 *
 * When an archive is edited, deflated members are copied as stored, prefix included, with the
 * checksum from the existing archive. */
#include "format/zip_plan.h"

#include "base/bisect.h"
#include "base/crc.h"

static const heft_ix_part_row *data_of(const heft_plan *p, uint32_t part)
{
    return heft_ix_part_row_at(p->x, part);
}

bool heft_zip_plan_is_deflated(const heft_plan *p, uint32_t part)
{
    return p->existing && data_of(p, part)->encoding == HEFT_DEFLATE;
}

/* Return the member that holds a part. */
static uint32_t find_member(const heft_zip_plan *z, uint32_t part)
{
    heft_bisect b = { .end = z->count };
    while (heft_bisect_next(&b))
        heft_bisect_narrow(&b, z->members[b.mid].part < part);
    return b.first;
}

/* Emit the prefix, unless the member is deflated as a whole. */
static void put_prefix(const heft_plan *p, const heft_zip_plan *z, uint32_t part, heft_out *o)
{
    if (z->put_prefix && !heft_zip_plan_is_deflated(p, part))
        z->put_prefix(p, part, o);
}

/* Get the CRC-32 of a deflated member from the existing archive, where parts have the same
 * numbers. */
static heft_status stored_crc(const heft_plan *p, uint32_t part, uint32_t *out)
{
    enum { PREFIX = 8 }; /* "crc32:0x" */
    uint8_t bytes[HEFT_CHECKSUM_BYTES];
    heft_str text = heft_ix_digest_of(p->existing, part);
    if (text.len <= PREFIX ||
        !heft_ix_digits(bytes, "crc32", (heft_str){ text.ptr + PREFIX, text.len - PREFIX }))
        return heft_error_plain(p->err, HEFT_E_UNSUPPORTED, "array %q has no checksum",
                                heft_ix_name(p->x, heft_ix_owner(p->x, part)));
    *out = heft_le32(bytes);
    return HEFT_OK;
}

/* Compute the CRC-32 of a member: the prefix and the data.  0 while planning. */
static heft_status content_crc(const heft_plan *p, const heft_zip_plan *z, uint32_t i,
                               uint32_t *out)
{
    const heft_zip_plan_member *m = &z->members[i];
    uint8_t buf[256];
    const uint8_t *data;
    heft_out o = heft_zip_crc_out(buf, sizeof buf, out);
    *out = 0;
    if (!z->is_planned)
        return HEFT_OK;
    if (heft_zip_plan_is_deflated(p, m->part))
        return stored_crc(p, m->part, out);
    put_prefix(p, z, m->part, &o);
    HEFT_TRY(heft_out_flush(&o));
    HEFT_TRY(heft_plan_range_digest(p, m->digest, &data));
    *out = heft_crc32_join(*out, heft_le32(data), data_of(p, m->part)->length);
    return HEFT_OK;
}

static heft_zip_member record_of(const heft_plan *p, const heft_zip_plan *z, uint32_t i)
{
    const heft_zip_plan_member *m = &z->members[i];
    heft_zip_member to = { .name = m->name,
                           .head = m->head,
                           .size = m->prefix + data_of(p, m->part)->length,
                           .extra = m->extra };
    if (heft_zip_plan_is_deflated(p, m->part)) {
        const heft_ix_view *v = heft_ix_view_of(p->existing, m->part);
        to.size = v ? v->content : to.size;
        to.is_deflated = true;
        to.deflated = heft_ix_part_row_at(p->existing, m->part)->stored;
    }
    return to;
}

static heft_status put_descriptor(const heft_plan *p, const heft_zip_plan *z, uint32_t i,
                                  heft_out *o)
{
    heft_zip_member m = record_of(p, z, i);
    HEFT_TRY(content_crc(p, z, i, &m.crc));
    heft_zip_put_descriptor(o, &m);
    return o->st;
}

/* ---- planning ---- */

heft_status heft_zip_plan_align(heft_plan *p, uint64_t least)
{
    p->align = p->align > least ? p->align : least;
    return p->align <= HEFT_ZIP_MAX_ALIGN
               ? HEFT_OK
               : heft_error_plain(p->err, HEFT_E_ARGUMENT, "an alignment of %U is too large",
                                  p->align);
}

/* Set the offsets of a member and of the data, and advance *end past the data. */
static bool place_member(heft_plan *p, heft_zip_plan *z, uint32_t i, uint64_t *end)
{
    heft_zip_plan_member *m = &z->members[i];
    heft_ix_part_row *part = heft_ix_part_row_at(p->x, m->part);
    heft_out count = heft_out_counting();
    put_prefix(p, z, m->part, &count);
    m->prefix = (uint32_t)count.total;
    m->head = *end;
    m->extra = 0;
    heft_zip_member header = record_of(p, z, i);
    heft_zip_put_header(&count, &header);
    uint64_t at, aligned;
    bool is_copied = header.is_deflated; /* never memory-mapped, so not aligned */
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

static heft_status place_members(heft_plan *p, heft_zip_plan *z, uint64_t end)
{
    heft_status st = HEFT_OK;
    for (uint32_t i = 0; i < z->count && !st; i++) {
        uint32_t part = z->members[i].part;
        heft_out descriptor = heft_out_counting();
        if (i)
            st = put_descriptor(p, z, i - 1, &descriptor);
        end += descriptor.total;
        if (!place_member(p, z, i, &end))
            return heft_error_plain(p->err, HEFT_E_LOSSY, "the file would exceed 2^63 bytes");
        p->order[i] = part;
        const heft_ix_part_row *row = data_of(p, part);
        if (!st && !heft_zip_plan_is_deflated(p, part))
            st = heft_plan_digest_range(p, "crc32", (heft_range){ row->offset, row->length },
                                        &z->members[i].digest);
    }
    p->order_count = z->count;
    p->data_end = end;
    return st;
}

heft_status heft_zip_plan_place(heft_plan *p, heft_zip_plan *z, uint64_t start)
{
    p->needs_preceding_digests = true;
    p->header_bytes = start;
    p->order = heft_plan_alloc(p, z->count * sizeof *p->order);
    heft_status st = p->order ? place_members(p, z, start) : HEFT_E_NOMEM;
    heft_out count = heft_out_counting();
    if (!st)
        st = heft_zip_plan_trailer(p, z, &count);
    z->is_planned = true;
    p->file_bytes = p->data_end + count.total; /* place_members() keeps data_end below 2^63 */
    return st;
}

/* ---- writing ---- */

/* Emit the data descriptor of the preceding member, the local header, and the prefix. */
heft_status heft_zip_plan_record_header(const heft_plan *p, const heft_zip_plan *z, uint32_t part,
                                        heft_out *o)
{
    uint32_t i = find_member(z, part);
    heft_status st = i ? put_descriptor(p, z, i - 1, o) : HEFT_OK;
    heft_zip_member m = record_of(p, z, i);
    if (st)
        return st;
    heft_zip_put_header(o, &m);
    put_prefix(p, z, part, o);
    return o->st;
}

heft_status heft_zip_plan_trailer(const heft_plan *p, const heft_zip_plan *z, heft_out *o)
{
    uint64_t start = o->total;
    heft_status st = z->count ? put_descriptor(p, z, z->count - 1, o) : HEFT_OK;
    heft_range directory = { p->data_end + (o->total - start), o->total };
    for (uint32_t i = 0; i < z->leading_count; i++)
        heft_zip_put_entry(o, &z->leading[i]);
    for (uint32_t i = 0; i < z->count && !st; i++) {
        heft_zip_member m = record_of(p, z, i);
        st = content_crc(p, z, i, &m.crc);
        heft_zip_put_entry(o, &m);
    }
    directory.length = o->total - directory.length;
    heft_zip_put_end(o, (uint64_t)z->leading_count + z->count, directory);
    return st ? st : o->st;
}
