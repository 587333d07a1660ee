/* zip_end.c - finds the central directory of a zip archive from the records at the end of the file.
 *
 *   end64    "PK" 6 6  u64 bytes that follow  u16 made by, version  u32 disk, disk
 *            u64 entries, entries, size and offset of the directory
 *            "PK" 6 7  u32 disk  u64 offset of end64  u32 disks
 *   end      "PK" 5 6  u16 disk, disk, entries, entries  u32 size and offset of the directory
 *            u16 length of comment  comment
 */
#include "base/checked_math.h"
#include "base/error.h"
#include "grammar/zip.h"

enum { END = 22, LOCATOR = 20, END64 = 56, MAX_COMMENT = 0xFFFF };

typedef struct end_record {
    uint64_t at;                                   /* offset of the record */
    uint64_t entries, entries_here, bytes, offset; /* the directory's */
    uint64_t end;                                  /* offset after the comment */
    uint32_t disk, directory_disk;
} end_record;

/* Find the last signature of an end record, as every zip reader does. */
static heft_status find_end(heft_window *in, uint64_t *at)
{
    uint64_t size = in->size, max = END + MAX_COMMENT;
    if (size < END)
        return heft_error_set(in->err, HEFT_E_FORMAT, size,
                              "zip: the file has %U bytes, but the end record alone takes 22",
                              size);
    heft_cur c = heft_cur_whole(in, size - END, END, "zip: the end of the archive");
    *at = size - END;
    if (c.st || heft_cur_u32(&c) == SIGN_END)
        return c.st;
    max = size < max ? size : max;
    c = heft_cur_whole(in, size - max, max, "zip: the end of the archive");
    const uint8_t *p = heft_cur_take(&c, max);
    if (!p)
        return c.st;
    for (uint64_t i = max - END; i; i--)
        if (heft_le32(p + i - 1) == SIGN_END) {
            *at = size - max + i - 1;
            return HEFT_OK;
        }
    return heft_error_set(in->err, HEFT_E_FORMAT, size,
                          "zip: no end record found: not a zip archive, or truncated");
}

static heft_status read_end(heft_window *in, end_record *e)
{
    HEFT_TRY(find_end(in, &e->at));
    heft_cur c = heft_cur_whole(in, e->at, END, "zip: the end of the archive");
    heft_cur_take(&c, 4);
    e->disk = heft_cur_u16(&c);
    e->directory_disk = heft_cur_u16(&c);
    e->entries_here = heft_cur_u16(&c);
    e->entries = heft_cur_u16(&c);
    e->bytes = heft_cur_u32(&c);
    e->offset = heft_cur_u32(&c);
    uint64_t comment = heft_cur_u16(&c), left = in->size - e->at - END;
    if (c.st)
        return c.st;
    /* Python and PyTorch ignore bytes after the comment. */
    if (comment > left)
        return heft_error_set(in->err, HEFT_E_FORMAT, e->at + END - 2,
                              "zip: the comment should have %U bytes, but %U bytes follow", comment,
                              left);
    e->end = e->at + END + comment;
    return HEFT_OK;
}

static bool agrees(uint64_t small, uint64_t full, uint64_t large)
{
    return small == full || small == large;
}

/* Replace the numbers of the end record by the numbers of end64, including e->at. */
static heft_status read_end64(heft_window *in, end_record *e, uint64_t at, uint64_t locator)
{
    if (!heft_range_in((heft_range){ at, END64 }, locator))
        return heft_error_set(in->err, HEFT_E_FORMAT, locator + 8,
                              "zip: the zip64 record cannot lie at %U, the locator is at %U", at,
                              locator);
    heft_cur c = heft_cur_whole(in, at, END64, "zip: the zip64 record");
    uint32_t sign = heft_cur_u32(&c);
    uint64_t bytes = heft_cur_u64(&c);
    heft_cur_u32(&c); /* versions */
    end_record big = { .at = at };
    big.disk = heft_cur_u32(&c);
    big.directory_disk = heft_cur_u32(&c);
    big.entries_here = heft_cur_u64(&c);
    big.entries = heft_cur_u64(&c);
    big.bytes = heft_cur_u64(&c);
    big.offset = heft_cur_u64(&c);
    if (c.st)
        return c.st;
    if (sign != SIGN_END64 || bytes != locator - at - 12)
        return heft_error_set(in->err, HEFT_E_FORMAT, at,
                              "zip: no zip64 record of %U bytes before the locator", locator - at);
    if (!agrees(e->entries, UINT16_MAX, big.entries) || !agrees(e->bytes, UINT32_MAX, big.bytes) ||
        !agrees(e->offset, UINT32_MAX, big.offset) ||
        !agrees(e->entries_here, UINT16_MAX, big.entries_here) ||
        !agrees(e->disk, UINT16_MAX, big.disk) ||
        !agrees(e->directory_disk, UINT16_MAX, big.directory_disk))
        return heft_error_set(in->err, HEFT_E_FORMAT, e->at,
                              "zip: the end of the archive and its zip64 record disagree");
    *e = big;
    return HEFT_OK;
}

static heft_status read_optional_end64(heft_window *in, end_record *e)
{
    if (e->at < LOCATOR)
        return HEFT_OK;
    heft_cur c = heft_cur_whole(in, e->at - LOCATOR, LOCATOR, "zip: the zip64 locator");
    uint32_t sign = heft_cur_u32(&c), disk = heft_cur_u32(&c);
    uint64_t at = heft_cur_u64(&c);
    uint32_t disks = heft_cur_u32(&c);
    if (c.st || sign != SIGN_LOCATOR)
        return c.st;
    if (disk || disks > 1)
        return heft_error_set(in->err, HEFT_E_UNSUPPORTED, e->at - LOCATOR,
                              "zip: the archive has %U volumes, which is not supported",
                              (uint64_t)disks);
    return read_end64(in, e, at, e->at - LOCATOR);
}

heft_status heft_zip_find_directory(heft_zip *z, heft_window *in, uint64_t *entries)
{
    end_record e = { 0 };
    heft_status st = read_end(in, &e);
    z->trailing = (heft_range){ e.end, in->size - e.end };
    if (!st)
        st = read_optional_end64(in, &e);
    if (st)
        return st;
    if (e.disk || e.directory_disk || e.entries != e.entries_here)
        return heft_error_set(in->err, HEFT_E_UNSUPPORTED, e.at,
                              "zip: an archive in several volumes is not supported");
    if (e.offset > e.at || e.bytes != e.at - e.offset)
        return heft_error_set(
            in->err, HEFT_E_FORMAT, e.at,
            "zip: a central directory of %U bytes at %U does not end at the end records at %U",
            e.bytes, e.offset, e.at);
    if (e.entries > heft_div(e.bytes, ENTRY))
        return heft_error_set(in->err, HEFT_E_FORMAT, e.at,
                              "zip: %U members do not fit in a directory of %U bytes", e.entries,
                              e.bytes);
    z->directory = (heft_range){ e.offset, e.bytes };
    *entries = e.entries;
    return HEFT_OK;
}

heft_str heft_zip_directory_in(const uint8_t *tail, size_t len)
{
    for (size_t i = len < END ? 0 : len - END + 1; i; i--) {
        const uint8_t *p = tail + i - 1;
        uint32_t bytes = heft_le32(p + 12);
        if (heft_le32(p) != SIGN_END)
            continue;
        size_t wide = i > END64 + LOCATOR && heft_le32(p - LOCATOR) == SIGN_LOCATOR
                          ? END64 + LOCATOR
                          : 0;
        size_t left = i - 1 - wide, shown = bytes < left ? bytes : left;
        return (heft_str){ (const char *)p - wide - shown, shown };
    }
    return (heft_str){ (const char *)tail, 0 };
}
