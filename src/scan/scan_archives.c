/* scan_archives.c - the members of zip and tar archives. */
#include "base/cursor.h"
#include "base/error.h"
#include "base/text.h"
#include "grammar/tar_members.h"
#include "grammar/zip.h"
#include "grammar/zip_members.h"
#include "scan/scan.h"

static heft_str last_part(heft_str path)
{
    for (size_t i = path.len; i--;)
        if (path.ptr[i] == '/' || path.ptr[i] == '\\')
            return (heft_str){ path.ptr + i + 1, path.len - i - 1 };
    return path;
}

/* Describe a member; `outer` is the archive, and `range` lies within the archive. */
static heft_status member_of(heft_scan_piece *out, heft_scan *s, const heft_scan_piece *outer,
                             heft_str name, heft_range range)
{
    *out = *outer;
    out->bytes += range.offset;
    out->size = range.length;
    out->at += range.offset;
    out->member = outer->member.len
                      ? heft_arena_join(&s->names, outer->member, HEFT_STR("!/"), name)
                      : heft_arena_copy(&s->names, name);
    out->name = last_part(out->member);
    out->is_open_ended = false;
    out->depth++;
    return out->member.ptr ? HEFT_OK : heft_error_no_memory(s->err, "to scan an archive");
}

/* ---- zip ---- */

static heft_status scan_zip_member(heft_scan *s, const heft_scan_piece *archive,
                                   const heft_zip_found *m)
{
    heft_scan_piece piece;
    heft_status st = member_of(&piece, s, archive, m->name, (heft_range){ m->data, m->stored });
    if (st || !m->stored)
        return st;
    /* Any bytes may look like a header that no directory names: programs do. */
    bool is_certain = m->directory || heft_zip_begins(archive->bytes, archive->size);
    if (m->claims_encrypted && is_certain)
        heft_scan_unreadable(s, &piece, "is encrypted, or claims to be");
    if (m->method != HEFT_ZIP_STORED && m->method != HEFT_ZIP_DEFLATED) {
        if (is_certain)
            heft_scan_unreadable(s, &piece, "is compressed by a method that cannot be searched");
        return HEFT_OK;
    }
    piece.is_open_ended = m->has_no_size;
    piece.packing = m->method == HEFT_ZIP_DEFLATED ? &heft_scan_deflate : NULL;
    return heft_scan_add(s, &piece);
}

static bool has_name(const heft_vec *members, bool (*is_wanted)(heft_str name))
{
    for (uint32_t i = 0; i < members->len; i++)
        if (is_wanted(((const heft_zip_found *)members->ptr)[i].name))
            return true;
    return false;
}

heft_status heft_scan_zip(heft_scan *s, const heft_scan_piece *p)
{
    heft_zip_members found;
    heft_status st = HEFT_OK;
    heft_scan_piece archive = *p;
    if (!heft_scan_charge(s, p, p->size))
        return HEFT_OK;
    if (!heft_zip_find_members(&found, &s->mem, p->bytes, p->size))
        st = heft_error_no_memory(s->err, "for the directory of an archive");
    archive.is_in_torchscript = has_name(&found.members, heft_scan_is_constants_name);
    archive.is_in_package = has_name(&found.members, heft_scan_is_package_name);
    for (uint32_t i = found.members.len; i-- && !st;) /* the last piece is scanned first */
        st = scan_zip_member(s, &archive, (const heft_zip_found *)found.members.ptr + i);
    if (!st && found.has_more_end_records)
        heft_scan_unreadable(s, p, "has many directories, and not all were searched");
    if (!st && found.has_overlaps)
        heft_scan_overlap(s, p, true);
    heft_vec_free(&s->mem, &found.members, sizeof(heft_zip_found));
    return st;
}

/* ---- tar ---- */

/* Any bytes may look like a header that has no magic: programs and pictures do. */
static heft_status scan_tar_member(heft_scan *s, const heft_scan_piece *archive,
                                   const heft_tar_found *m, bool is_certain)
{
    heft_scan_piece piece;
    HEFT_TRY(member_of(&piece, s, archive, m->name, m->data));
    if (m->is_sparse)
        heft_scan_unreadable(s, &piece,
                             "is a sparse file, which cannot be searched: unpack it "
                             "first");
    if (m->is_too_long && is_certain)
        heft_scan_unreadable(s, &piece, "ends before the size that its header states");
    return m->data.length ? heft_scan_add(s, &piece) : HEFT_OK;
}

heft_status heft_scan_tar(heft_scan *s, const heft_scan_piece *p)
{
    heft_tar_search t;
    heft_tar_found m;
    heft_status st = HEFT_OK;
    bool has_overlaps = false;
    if (!heft_scan_charge(s, p, p->size))
        return HEFT_OK;
    heft_tar_search_begin(&t, p->bytes, p->size);
    while (!st && heft_tar_search_next(&t, &m)) {
        st = scan_tar_member(s, p, &m, t.is_certain);
        has_overlaps |= m.data.offset + m.data.length > t.at;
    }
    if (!st && t.is_damaged && t.is_certain)
        heft_scan_unreadable(s, p, "is a damaged tar archive");
    if (!st && has_overlaps)
        heft_scan_overlap(s, p, t.is_certain);
    return st;
}
