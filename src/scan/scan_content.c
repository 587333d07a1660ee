/* scan_content.c - follows what the first bytes of a piece say.  Several answers may be true of the
 * same bytes, for different readers: each is followed. */
#include "base/cursor.h"
#include "base/text.h"
#include "grammar/tar_members.h"
#include "grammar/zip_members.h"
#include "scan/scan.h"

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

heft_status heft_scan_content(heft_scan *s, const heft_scan_piece *p)
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
    bool is_compressed = false, is_tar = heft_tar_begins(p->bytes, p->size);
    heft_status st = heft_scan_compressed(s, p, &is_compressed);
    if (!st && is_zip(p))
        st = heft_scan_zip(s, p);
    if (!st && is_tar)
        st = heft_scan_tar(s, p);
    if (!st && data)
        st = heft_scan_npy(s, p, data);
    if (st || data || heft_zip_begins(p->bytes, p->size)) /* no loader unpickles such bytes */
        return st;
    return heft_scan_pickles(s, p, promises_pickle(p) && !is_tar && !is_compressed);
}
