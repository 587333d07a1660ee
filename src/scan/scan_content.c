/* scan_content.c - follows what the first bytes of a piece say.  Several answers may be true of the
 * same bytes, for different readers: each is followed. */
#include "base/cursor.h"
#include "base/text.h"
#include "grammar/zip_members.h"
#include "scan/scan.h"

/* NumPy writes an array of objects as a pickle.  Their type is "|O" or "object" in the header. */
static heft_status scan_npy(heft_scan *s, const heft_scan_piece *p, uint64_t data)
{
    const uint8_t *end = p->bytes + data;
    heft_scan_piece rest = *p;
    bool has_objects = heft_str_seek(p->bytes, end, "O'", 2) ||
                       heft_str_seek(p->bytes, end, "O\"", 2) ||
                       heft_str_seek(p->bytes, end, "object", 6);
    rest.bytes += data;
    rest.size -= data;
    rest.at += data;
    rest.name = heft_lit(has_objects ? "pickle" : "");
    return heft_scan_pickles(s, &rest);
}

/* Other bytes may precede an archive, but not in an archive within another. */
static bool is_zip(const heft_scan_piece *p)
{
    return heft_zip_begins(p->bytes, p->size) || (!p->depth && heft_zip_has_end(p->bytes, p->size));
}

static heft_status scan_plain(heft_scan *s, const heft_scan_piece *p)
{
    uint64_t data = heft_scan_npy_data(p->bytes, p->size);
    if (data)
        return scan_npy(s, p, data);
    return heft_scan_is_tar(p->bytes, p->size) ? heft_scan_tar(s, p) : heft_scan_pickles(s, p);
}

heft_status heft_scan_content(heft_scan *s, const heft_scan_piece *p)
{
    bool is_compressed = false;
    if (!p->size)
        return HEFT_OK;
    heft_status st = heft_scan_compressed(s, p, &is_compressed);
    if (!st && is_zip(p))
        st = heft_scan_zip(s, p);
    if (st || is_compressed || heft_zip_begins(p->bytes, p->size))
        return st;
    return scan_plain(s, p);
}
