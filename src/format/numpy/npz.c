/* npz.c - a zip archive of NumPy's arrays, as numpy.savez and savez_compressed write it: each member an .npy,
 * stored or deflated, under the array's name with ".npy" behind it.
 *
 * A member that is no array is a part of the file, of the role that is its name.  The CRC-32 of a member is
 * that of all its content, the header of the array included.
 */
#include "format/numpy/npz.h"

#include "grammar/zip.h"

const char heft_npz_suffix[] = ".npy";

enum { SUFFIX = HEFT_NPZ_SUFFIX, MAGIC = 6 };

typedef struct reader {
    heft_in *in;
    heft_index *x;
    heft_zip zip;
} reader;

static heft_npy_place place_of(const heft_zip_entry *e)
{
    heft_range stored = { e->data, e->stored };
    return (heft_npy_place){ stored, e->content,
                             e->method == HEFT_ZIP_DEFLATED ? HEFT_DEFLATE : HEFT_RAW };
}

static bool has_suffix(heft_str name)
{
    return name.len >= SUFFIX && !memcmp(name.ptr + name.len - SUFFIX, heft_npz_suffix, SUFFIX);
}

static heft_str array_name(heft_str member)
{
    return has_suffix(member) ? (heft_str){ member.ptr, member.len - SUFFIX } : member;
}

/* NumPy looks at the first bytes, whatever a member is called; what is called an array has to be one. */
static heft_status is_array(reader *r, const heft_zip_entry *e, bool *is)
{
    uint8_t buf[MAGIC];
    const uint8_t *p = buf;
    size_t have = MAGIC;
    heft_status st = HEFT_OK;
    *is = has_suffix(e->name);
    if (*is || e->content < MAGIC)
        return HEFT_OK;
    if (e->method == HEFT_ZIP_STORED) {
        heft_cur c = heft_cur_whole(r->in, e->data, MAGIC, "a member");
        p = heft_cur_take(&c, MAGIC);
        st = c.st;
    } else {
        st = heft_in_decode(r->in, HEFT_DEFLATE, (heft_range){ e->data, e->stored }, buf, &have);
    }
    *is = !st && heft_npy_begins(p, have);
    return st;
}

static heft_claim claim_of(const heft_zip_entry *e)
{
    heft_claim c = { .rule = "npz/crc32", .algorithm = "crc32", .tensor = HEFT_NONE };
    c.range[0] = (heft_range){ e->data, e->stored };
    for (uint32_t i = 0; i < 4; i++)
        c.expect[i] = (uint8_t)(e->crc >> 8 * i);
    return c;
}

static heft_status add_digest(reader *r, uint32_t part, uint32_t crc)
{
    return heft_ix_digest_crc32(r->x, part, "npz/crc32", crc);
}

static heft_status add_array(reader *r, const heft_zip_entry *e)
{
    heft_npy h;
    heft_npy_place place = place_of(e);
    heft_str name = array_name(e->name);
    heft_status st = heft_npy_read(&h, r->in, &place, name, &r->x->arena);
    if (!st)
        st = heft_npy_add(r->x, &h, &place, name);
    if (st)
        return st;
    if (place.encoding == HEFT_DEFLATE)
        return add_digest(r, r->x->parts.len - 1, e->crc);
    heft_claim c = claim_of(e);
    c.tensor = heft_ix_tensors(r->x) - 1;
    return heft_ix_claim(r->x, c);
}

/* A directory is no part: it is empty, and its name ends in a slash. */
static heft_status add_part(reader *r, const heft_zip_entry *e)
{
    heft_npy_place place = place_of(e);
    if (!e->content && e->name.ptr[e->name.len - 1] == '/')
        return HEFT_OK;
    heft_status st = heft_ix_part(r->x, HEFT_NONE, e->name, HEFT_UNTYPED, place.stored,
                                  place.content, place.encoding);
    heft_ix_note(r->x, HEFT_NOTE, "npz/no-array", e->data, HEFT_NONE,
                 "a member is no array: it is a part of the file");
    if (st)
        return st;
    if (place.encoding == HEFT_DEFLATE)
        return add_digest(r, r->x->parts.len + r->x->model_parts.len - 1, e->crc);
    heft_claim c = claim_of(e);
    c.apart = true;
    return heft_ix_claim(r->x, c);
}

/* Parts of the file after all tensors: their numbers follow. */
static heft_status npz_parse(heft_in *in, heft_index *x)
{
    reader r = { .in = in, .x = x };
    heft_status st = heft_zip_open(&r.zip, in, &x->arena);
    if (!st)
        st = heft_ix_reserve(x, r.zip.directory.offset, r.zip.count, in->size, 1);
    for (uint32_t pass = 0; pass < 2; pass++)
        for (uint32_t i = 0; i < r.zip.count && !st; i++) {
            const heft_zip_entry *e = &r.zip.entries[i];
            bool is = false;
            st = is_array(&r, e, &is);
            if (!st && is == !pass)
                st = is ? add_array(&r, e) : add_part(&r, e);
        }
    return st;
}

/* Whether the directory, as far as it lies in the tail, has an entry that is called an array. */
static bool names_an_array(const uint8_t *tail, size_t len)
{
    static const char entry_behind[] = ".npyPK\1\2", end_behind[] = ".npyPK\5\6";
    enum { LENGTH = sizeof entry_behind - 1 };
    for (size_t i = 0; i + LENGTH <= len; i++)
        if (tail[i] == '.' &&
            (!memcmp(tail + i, entry_behind, LENGTH) || !memcmp(tail + i, end_behind, LENGTH)))
            return true;
    return false;
}

static int npz_probe(const uint8_t *head, size_t head_len, const uint8_t *tail, size_t tail_len,
                     uint64_t size)
{
    enum { SURE = 64, UNSURE = 16, EMPTY = 22 };
    int bits;
    heft_str first = heft_zip_first(&bits, head, head_len);
    if (!bits)
        return 0;
    if (has_suffix(first))
        return SURE;
    return (size == EMPTY && !first.len) || names_an_array(tail, tail_len) ? UNSURE : 0;
}

const heft_format heft_format_npz = {
    .name = "npz",
    .title = "NumPy archive",
    .suffixes = ".npz",
    .versions = "",
    .caps = HEFT_CAN_READ | HEFT_CAN_WRITE,
    .align = HEFT_NPY_ALIGN,
    .probe = npz_probe,
    .parse = npz_parse,
    .plan = heft_npz_plan,
    .between = heft_npz_between,
    .front = heft_npz_front,
    .back = heft_npz_back,
};
