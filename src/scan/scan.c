/* scan.c - scans a source for pickles: the pieces of the scan, and the memory and work allowed. */
#include "scan/scan.h"

#include "base/cursor.h"
#include "base/error.h"
#include "base/sized.h"
#include "base/text.h"
#include "core/read/file.h"
#include "grammar/tar_members.h"
#include "grammar/zip.h"

static heft_str last_member(heft_str path)
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
    out->name = last_member(out->member);
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

static heft_status scan_zip(heft_scan *s, const heft_scan_piece *p)
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

static heft_status scan_tar(heft_scan *s, const heft_scan_piece *p)
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

static bool has_objects(const heft_scan_piece *p, uint64_t data)
{
    static const char *const signs[] = { "O'", "O\"", "O,", "O8", "O4", "object", "\\" };
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++)
        if (heft_str_seek(p->bytes, p->bytes + data, signs[i], heft_lit(signs[i]).len))
            return true;
    return false;
}

/* Return the offset after an array.  A pickle, as which objects are stored, has its own followers;
 * after an array of unknown length, the next header is searched for. */
static uint64_t end_of_array(heft_scan *s, const heft_scan_piece *p, uint64_t data)
{
    uint64_t end = 0;
    if (heft_scan_npy_end(&end, p->bytes, p->size))
        return end && end < p->size ? end : p->size;
    const uint8_t *found = heft_str_seek(p->bytes + data, p->bytes + p->size, "\x93NUMPY", 6);
    end = found ? (uint64_t)(found - p->bytes) : p->size;
    if (heft_scan_charge(s, p, end - data) && data < p->size)
        heft_scan_unreadable(s, p,
                             "is an array of unknown length: what follows it was not "
                             "searched");
    return end;
}

/* Scan the data of an array, unless they are numbers, which no loader takes for a pickle. */
static heft_status scan_array(heft_scan *s, const heft_scan_piece *p, uint64_t data)
{
    heft_scan_piece rest = *p;
    uint64_t end;
    if (heft_scan_npy_end(&end, p->bytes, p->size) && end)
        return HEFT_OK;
    rest.bytes += data;
    rest.size -= data;
    rest.at += data;
    return heft_scan_pickles(s, &rest, has_objects(p, data));
}

/* Scan an npy file whose data begin at an offset, and what follows the array. */
static heft_status scan_npy(heft_scan *s, const heft_scan_piece *p, uint64_t data)
{
    heft_scan_piece next = *p;
    heft_status st = HEFT_OK;
    for (; data && !st && heft_scan_charge(s, p, data);
         data = heft_scan_npy_data(next.bytes, next.size)) {
        st = scan_array(s, &next, data);
        uint64_t end = end_of_array(s, &next, data);
        next.bytes += end;
        next.size -= end;
        next.at += end;
    }
    return st || !next.size ? st : heft_scan_add(s, &next);
}

/* Other bytes may precede an archive. */
static bool is_zip(const heft_scan_piece *p)
{
    return heft_zip_begins(p->bytes, p->size) ||
           (!p->is_open_ended && heft_zip_has_end(p->bytes, p->size));
}

/* Python unpickles whatever a file of such a name holds; other programs use .bin and .ckpt for raw
 * bytes, too. */
static bool promises_pickle(const heft_scan_piece *p)
{
    bool is_shared = heft_str_ends(p->name, ".bin") || heft_str_ends(p->name, ".ckpt");
    return heft_scan_is_pickle_name(p->name) ||
           (is_shared && heft_scan_begins_pickle(p->bytes, p->size));
}

/* Scan everything that a piece holds.  Archives and members are appended to s->pieces. */
static heft_status scan_content(heft_scan *s, const heft_scan_piece *p)
{
    if (!p->size)
        return HEFT_OK;
    enum { LOOK = 1 << 16, LOOK_AHEAD = 1 << 13 }; /* searched for the end of an archive, or not */
    uint64_t data = heft_scan_npy_data(p->bytes, p->size);
    uint64_t looked_at = p->is_open_ended ? LOOK_AHEAD : LOOK;
    if (p->size < looked_at || !*p->bytes) /* zeros may precede a tar */
        looked_at = p->size;
    if (!heft_scan_charge(s, p, looked_at))
        return HEFT_OK;

    if (p->is_in_torchscript && heft_scan_is_script_name(p->name))
        heft_scan_script(s, p);
    if (p->is_in_package && heft_scan_is_script_name(p->name))
        heft_scan_package_code(s, p);
    heft_scan_onnx(s, p);
    heft_scan_library(s, p);
    if (heft_scan_is_json_name(p->name) || heft_scan_is_hdf5(p->bytes, p->size))
        heft_scan_keras(s, p);
    bool is_compressed = false, is_tar = heft_tar_begins(p->bytes, p->size);
    heft_status st = heft_scan_compressed(s, p, &is_compressed);
    if (!st && is_zip(p))
        st = scan_zip(s, p);
    if (!st && is_tar)
        st = scan_tar(s, p);
    if (!st && data)
        st = scan_npy(s, p, data);
    if (st || data || heft_zip_begins(p->bytes, p->size)) /* no loader unpickles such bytes */
        return st;
    return heft_scan_pickles(s, p, promises_pickle(p) && !is_tar && !is_compressed);
}

enum { FREE_WORK = 384 << 20, WORK_RATIO = 64, FREE_MEMORY = 256 << 20, MEMORY_RATIO = 32 };

/* ---- the bytes of the source ---- */

typedef struct contents {
    const uint8_t *bytes;
    void *memory; /* NULL if mapped */
    size_t size;
} contents;

static heft_status read_contents(contents *out, heft_scan *s, heft_source *source)
{
    out->size = (size_t)source->size;
    if (!source->size)
        return HEFT_OK;
    if (source->ops->map)
        out->bytes = source->ops->map(source, 0, source->size);
    if (out->bytes)
        return HEFT_OK;
    if (source->size < SIZE_MAX)
        out->memory = heft_alloc(s->host->allocator, out->size, 64);
    if (!out->memory)
        return heft_error_no_memory(s->err, "for the file");
    out->bytes = out->memory;
    return source->ops->read(source, 0, out->memory, out->size, s->err);
}

static void begin_access(heft_source *source)
{
    if (source->ops->begin_access)
        source->ops->begin_access(source);
}

/* Return an error if bytes were missing or changed while they were scanned. */
static heft_status end_access(heft_source *source, heft_status st, heft_error *err)
{
    if (source->ops->end_access)
        source->ops->end_access(source);
    if (!st && source->ops->check)
        st = source->ops->check(source, err);
    if (!st && HEFT_HAS(source->ops, check_unchanged))
        st = source->ops->check_unchanged(source, err);
    return st;
}

/* ---- the scan ---- */

static uint64_t in_proportion(uint64_t size, uint64_t ratio, uint64_t more)
{
    return size > (UINT64_MAX - more) / ratio ? UINT64_MAX : size * ratio + more;
}

/* Scan a compressed piece; its content is kept if the content holds further pieces. */
static heft_status scan_packed(heft_scan *s, heft_scan_piece *p)
{
    heft_scan_decoded d = { 0 };
    uint32_t others = s->pieces.len;
    heft_status st = heft_scan_unpack(&d, s, p);
    if (!st)
        st = scan_content(s, p);
    if (!st && s->pieces.len > others)
        st = heft_scan_keep(s, &d);
    heft_scan_free(s, &d);
    return st;
}

static heft_status scan_pieces(heft_scan *s)
{
    while (s->pieces.len && !s->is_spent) {
        heft_scan_piece p = ((heft_scan_piece *)s->pieces.ptr)[--s->pieces.len];
        HEFT_TRY(p.packing ? scan_packed(s, &p) : scan_content(s, &p));
    }
    return HEFT_OK;
}

static heft_str last_part(const char *path)
{
    heft_str name = heft_str_from(path ? path : "");
    for (size_t i = name.len; i--;)
        if (name.ptr[i] == '/')
            return (heft_str){ name.ptr + i + 1, name.len - i - 1 };
    return name;
}

static heft_status scan_source(heft_scan *s, heft_source *source, const char *name)
{
    contents c = { 0 };
    begin_access(source);
    heft_status st = read_contents(&c, s, source);
    heft_scan_piece whole = { .bytes = c.bytes, .size = c.size, .name = last_part(name) };
    if (!st)
        st = heft_scan_add(s, &whole);
    if (!st)
        st = scan_pieces(s);
    st = end_access(source, st, s->err);
    heft_free(s->host->allocator, c.memory, c.size, 64);
    return st;
}

static void free_scan(heft_scan *s)
{
    for (uint32_t i = 0; i < s->kept.len; i++)
        heft_scan_free(s, (heft_scan_decoded *)s->kept.ptr + i);
    heft_vec_free(&s->mem, &s->kept, sizeof(heft_scan_decoded));
    heft_vec_free(&s->mem, &s->pieces, sizeof(heft_scan_piece));
    heft_arena_free(&s->names);
}

heft_status heft_source_scan(heft_scan_result *out, heft_source *source,
                             const heft_scan_options *opt, heft_error *err)
{
    heft_error own;
    heft_scan_options o = HEFT_SCAN_OPTIONS_INIT;
    err = heft_error_begin(err, &own);
    heft_status st = heft_sized_copy(&o, sizeof o, opt, err);
    heft_scan s = { .on_finding = o.on_finding, .ctx = o.ctx, .err = err };
    if (!st)
        st = heft_host_resolve(&s.host, o.host, err);
    if (!st)
        st = heft_source_check(source, err);
    if (!st) {
        s.mem = (heft_memory){ .al = s.host->allocator,
                               .limit = in_proportion(source->size, MEMORY_RATIO, FREE_MEMORY) };
        s.names.mem = &s.mem;
        s.work = in_proportion(source->size, WORK_RATIO, FREE_WORK);
        st = scan_source(&s, source, o.name);
        free_scan(&s);
    }
    if (out)
        *out = s.result;
    return heft_error_end(err, st);
}
