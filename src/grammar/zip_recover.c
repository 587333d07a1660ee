/* zip_recover.c - finds the members of an archive that has lost its end, and so the directory.
 *
 * Each member begins with a local header.  Writers to a stream, such as PyTorch, state the sizes
 * after the data only, in a data descriptor: the data end where a descriptor states their length.
 */
#include "base/checked_math.h"
#include "base/error.h"
#include "base/text.h"
#include "grammar/zip.h"

enum { MEMBER = 30, DESCRIPTOR = 16, DESCRIPTOR64 = 24 };

typedef struct recovery {
    heft_window *in;
    uint64_t present; /* bytes of the file */
    uint64_t at;      /* offset of the next local header */
    heft_memory *mem;
    heft_vec found; /* heft_zip_entry */
} recovery;

/* Return true if a record of the archive, or the end of the file, follows a descriptor. */
static bool ends_there(const uint8_t *p, const uint8_t *end, size_t size)
{
    if ((size_t)(end - p) < size + 4)
        return (size_t)(end - p) >= size;
    uint32_t sign = heft_le32(p + size);
    return sign == SIGN_MEMBER || sign == SIGN_ENTRY || sign == SIGN_END || sign == SIGN_END64;
}

/* Read a descriptor at p if it belongs to `length` bytes of data; return its size, or 0. */
static size_t read_descriptor(heft_zip_entry *e, const uint8_t *p, const uint8_t *end,
                              uint64_t length)
{
    bool is_short = ends_there(p, end, DESCRIPTOR) && heft_le32(p + 8) == length &&
                    (heft_le32(p + 12) || !length); /* else half of a number of 64 bits */
    bool is_long = ends_there(p, end, DESCRIPTOR64) && heft_le64(p + 8) == length;
    if (!is_short && !is_long)
        return 0;
    e->crc = heft_le32(p + 4);
    e->stored = length;
    e->content = is_short ? heft_le32(p + 12) : heft_le64(p + 16);
    return is_short ? DESCRIPTOR : DESCRIPTOR64;
}

/* Let the data end with the file.  The size of deflated content may be known. */
static void cut(const recovery *r, heft_zip_entry *e)
{
    e->is_cut = true;
    e->crc = 0;
    e->stored = r->present - e->data;
    e->content = e->method == HEFT_ZIP_STORED || !e->content ? e->stored : e->content;
    e->end = r->present;
}

/* Search for the end of data of an unknown size.  If there is none, the data are cut. */
static heft_status find_descriptor(const recovery *r, heft_zip_entry *e)
{
    static const uint8_t sign[] = { 'P', 'K', 7, 8 };
    uint64_t length = r->present - e->data;
    heft_cur c = heft_cur_whole(r->in, e->data, length, "zip: a member");
    const uint8_t *data = heft_cur_take(&c, length), *p = data;
    if (!data)
        return c.st;
    while ((p = heft_str_seek(p, data + length, sign, sizeof sign)) != NULL) {
        size_t size = read_descriptor(e, p, data + length, (uint64_t)(p - data));
        e->end = e->data + e->stored + size;
        if (size)
            return HEFT_OK;
        p++;
    }
    cut(r, e);
    return HEFT_OK;
}

/* Read the member at r->at.  *found: there is one. */
static heft_status next_member(recovery *r, bool *found)
{
    heft_error ignored, *err = r->in->err;
    heft_zip_entry e = { .head = r->at };
    *found = heft_range_in((heft_range){ r->at, MEMBER }, r->present);
    if (!*found)
        return HEFT_OK;
    r->in->err = &ignored;
    heft_status st = heft_zip_read_local(&e, r->in, (heft_range){ r->at, r->present - r->at });
    r->in->err = err;
    *found = !st;
    if (st)
        return st == HEFT_E_FORMAT || st == HEFT_E_UNSUPPORTED ? HEFT_OK : st;
    e.end = e.data + e.stored;
    if (e.is_described && !e.stored)
        st = find_descriptor(r, &e);
    else if (!heft_range_in((heft_range){ e.data, e.stored }, r->present))
        cut(r, &e);
    r->at = e.end;
    return st || heft_vec_add(r->mem, &r->found, &e, sizeof e)
               ? st
               : heft_error_no_memory(err, "for the members of an archive");
}

/* Copy the entries to the arena. */
static heft_status keep(heft_zip *out, const recovery *r, heft_arena *arena)
{
    size_t bytes = r->found.len * sizeof *out->entries;
    out->count = r->found.len;
    out->entries = heft_arena_alloc(arena, bytes, 8);
    out->by_offset = heft_arena_alloc(arena, 2 * (size_t)out->count * sizeof *out->by_offset, 4);
    if (!out->entries || !out->by_offset)
        return heft_error_no_memory(r->in->err, "for the members of an archive");
    memcpy(out->entries, r->found.ptr, bytes);
    return heft_zip_sort(out, r->in->err);
}

heft_status heft_zip_recover(heft_zip *out, heft_window *in, heft_arena *arena, uint64_t present)
{
    recovery r = { .in = in, .present = present, .mem = arena->mem };
    bool found = true;
    heft_status st = HEFT_OK;
    *out = (heft_zip){ .directory = { present, 0 }, .is_recovered = true };
    while (!st && found)
        st = next_member(&r, &found);
    if (!st && !r.found.len)
        st = heft_error_set(in->err, HEFT_E_FORMAT, 0, "zip: there is no member");
    if (!st)
        st = keep(out, &r, arena);
    heft_vec_free(r.mem, &r.found, sizeof(heft_zip_entry));
    return st;
}
