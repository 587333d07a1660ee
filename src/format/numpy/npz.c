/* npz.c - reads zip archives of NumPy arrays, as written by numpy.savez and savez_compressed: each
 * member is an .npy file, stored or deflated, with the name of the array and the suffix ".npy".
 *
 * Any other member, and any array that cannot be read, becomes a part of the model as a whole, with
 * the member's name as the role.  The CRC-32 of a member covers the whole content, including the
 * header of the array. */
#include "format/numpy/npy.h"

#include "format/zip_archive.h"

enum { MAGIC = 6 };

typedef struct member {
    bool is_array;
    heft_error *unreadable; /* why the array cannot be read; NULL: readable, or not an array */
} member;

typedef struct reader {
    heft_window *in;
    heft_index *x;
    heft_zip zip;
    member *members; /* by entry of the archive */
} reader;

static heft_npy_layout layout_of(const heft_zip_entry *e)
{
    heft_range stored = { e->data, e->stored };
    return (heft_npy_layout){ stored, e->content,
                              e->method == HEFT_ZIP_DEFLATED ? HEFT_DEFLATE : HEFT_RAW };
}

static heft_str array_name(heft_str name)
{
    return heft_str_ends(name, heft_npz_suffix) ? (heft_str){ name.ptr, name.len - HEFT_NPZ_SUFFIX }
                                                : name;
}

/* Like NumPy, recognise arrays by content; a member with the suffix must be an array. */
static heft_status recognise_array(reader *r, const heft_zip_entry *e, bool *is_array)
{
    uint8_t buf[MAGIC];
    const uint8_t *p;
    size_t have = MAGIC;
    heft_npy_layout layout = layout_of(e);
    heft_status st = heft_zip_refuse_opaque(e, r->in->err);
    *is_array = heft_str_ends(e->name, heft_npz_suffix);
    if (st || *is_array || e->content < MAGIC)
        return st;
    st = heft_npy_first_bytes(&p, r->in, &layout, buf, &have);
    *is_array = !st && heft_npy_begins(p, have);
    return st;
}

/* Add the CRC-32 of a member, if known.  `tensor` is HEFT_NONE for a part of the whole model. */
static heft_status add_checksum(reader *r, const heft_zip_entry *e, uint32_t part, uint32_t tensor)
{
    if (e->is_cut)
        return HEFT_OK;
    if (e->method == HEFT_ZIP_DEFLATED)
        return heft_ix_digest_crc32(r->x, part, "npz/crc32", e->crc);
    heft_stored_checksum c = { .rule = "npz/crc32",
                               .algorithm = "crc32",
                               .range = { { e->data, e->stored } },
                               .tensor = tensor };
    heft_put_le64(c.expect, e->crc);
    return heft_ix_checksum(r->x, c);
}

static void check_name(reader *r, const heft_zip_entry *e, uint32_t tensor)
{
    const char *risk = heft_npz_risk(e->name);
    if (risk)
        heft_ix_note_format(
            r->x, HEFT_WARNING, "npz/name", (heft_range){ e->name_at, 0 }, tensor,
            "the name of member %q has %s: unpacking it may write elsewhere, or fail", e->name,
            risk);
}

/* Add a tensor if the member is a readable array.  An array without numbers is recorded and
 * skipped, and so is a broken member if the index forgives; other errors are returned. */
static heft_status read_member(reader *r, uint32_t i)
{
    const heft_zip_entry *e = &r->zip.entries[i];
    member *m = &r->members[i];
    heft_npy_layout layout = layout_of(e);
    heft_npy h;
    heft_error why, *err = r->in->err;
    r->in->err = &why;
    heft_status st = recognise_array(r, e, &m->is_array);
    if (!st && m->is_array)
        st = heft_npy_read(&h, r->in, &layout, array_name(e->name), r->x);
    r->in->err = err;
    bool is_skipped = st == HEFT_E_FORMAT ? heft_ix_forgives(r->x)
                                          : st == HEFT_E_UNSUPPORTED || st == HEFT_E_LIMIT;
    if (is_skipped) {
        m->is_array = false;
        m->unreadable = heft_arena_alloc(&r->x->arena, sizeof why, sizeof(uint64_t));
        if (!m->unreadable)
            return heft_error_no_memory(r->in->err, "for a finding");
        *m->unreadable = why;
        return HEFT_OK;
    }
    if (st && err)
        *err = why;
    if (st || !m->is_array)
        return st;
    uint32_t tensor = heft_ix_tensors(r->x);
    st = heft_npy_add(r->x, &h, &layout, array_name(e->name));
    if (st)
        return st;
    check_name(r, e, tensor);
    return add_checksum(r, e, r->x->parts.len - 1, tensor);
}

/* Add a member that is not a tensor as a part; directories (empty, with a trailing slash) are
 * skipped.  A broken array is a fault of the file; an array without numbers, or with an unsupported
 * compression, is a warning.  The content size of an opaque member is not trusted. */
static heft_status add_part(reader *r, uint32_t i)
{
    const heft_zip_entry *e = &r->zip.entries[i];
    const heft_error *why = r->members[i].unreadable;
    heft_npy_layout layout = layout_of(e);
    check_name(r, e, HEFT_NONE);
    if (!e->content && e->name.ptr[e->name.len - 1] == '/')
        return HEFT_OK;
    if (why)
        heft_ix_left_out(r->x, HEFT_LEFT_OUT, "npz/unreadable", layout.stored, "%s: left out",
                         why->message);
    else
        heft_ix_note(r->x, HEFT_NOTE, "npz/no-array", e->data, HEFT_NONE,
                     "a member is not an array: listed as a part of the file");
    if (why && why->status == HEFT_E_FORMAT)
        heft_ix_left_out_is_fault(r->x);
    heft_status st = heft_ix_part(r->x, HEFT_NONE, e->name, HEFT_UNTYPED, layout.stored,
                                  e->is_opaque ? e->stored : layout.content,
                                  e->is_opaque ? (heft_encoding)HEFT_ENCODING_OTHER
                                               : layout.encoding);
    if (!st && why && !e->is_opaque)
        heft_ix_part_is_left_out(r->x);
    if (st || e->is_opaque)
        return st;
    return add_checksum(r, e, r->x->parts.len + r->x->model_parts.len - 1, HEFT_NONE);
}

static heft_status open_archive(reader *r)
{
    heft_status st = heft_zip_archive(&r->zip, r->x, r->in);
    if (!st)
        st = heft_ix_reserve(r->x, r->zip.directory.offset, r->zip.count, r->in->size, 1);
    if (st || !r->zip.count)
        return st;
    size_t bytes = r->zip.count * sizeof *r->members; /* less than the size of the entries */
    r->members = heft_arena_alloc(&r->x->arena, bytes, sizeof(void *));
    if (!r->members)
        return heft_error_no_memory(r->in->err, "for the members");
    memset(r->members, 0, bytes);
    return HEFT_OK;
}

/* Add all tensors first: the numbers of other parts come after the tensors' parts. */
static heft_status npz_parse(heft_window *in, heft_index *x)
{
    reader r = { .in = in, .x = x };
    HEFT_TRY(open_archive(&r));
    for (uint32_t i = 0; i < r.zip.count; i++)
        HEFT_TRY(read_member(&r, i));
    /* Without any readable array, fail with the first reason. */
    for (uint32_t i = 0; i < r.zip.count && !heft_ix_tensors(x); i++) {
        const heft_error *why = r.members[i].unreadable;
        if (why)
            return heft_error_set(in->err, why->status, why->offset, "%s", why->message);
    }
    for (uint32_t i = 0; i < r.zip.count; i++)
        if (!r.members[i].is_array)
            HEFT_TRY(add_part(&r, i));
    return HEFT_OK;
}

static int npz_probe(const uint8_t *head, size_t head_len, const uint8_t *tail, size_t tail_len,
                     uint64_t size)
{
    enum { SURE = 64, UNSURE = 16, EMPTY = 22 };
    int bits;
    heft_str first = heft_zip_first_name(&bits, head, head_len);
    if (!bits)
        return 0;
    if (heft_str_ends(first, heft_npz_suffix))
        return SURE;
    /* A directory entry in the tail has a name with the suffix.  Members may be archives, too. */
    heft_str entries = heft_zip_directory_in(tail, tail_len);
    const uint8_t *from = (const uint8_t *)entries.ptr;
    bool has_array = heft_str_seek(from, tail + tail_len, ".npyPK\1\2", 8) ||
                     heft_str_seek(from, tail + tail_len, ".npyPK\5\6", 8);
    return (size == EMPTY && !first.len) || has_array ? UNSURE : 0;
}

const heft_format heft_format_npz = {
    .name = "npz",
    .title = "NumPy archive",
    .structure_rule = "npz/structure",
    .suffixes = ".npz",
    .versions = "",
    .caps = HEFT_CAN_READ | HEFT_CAN_WRITE | HEFT_CAN_EDIT | HEFT_CAN_SCHEMES,
    .align = HEFT_NPY_ALIGN,
    .probe = npz_probe,
    .parse = npz_parse,
};

const heft_format_writer heft_format_writer_npz = {
    .plan = heft_npz_plan,
    .write_record_header = heft_npz_write_record_header,
    .write_header = heft_npz_write_header,
    .write_trailer = heft_npz_write_trailer,
};
