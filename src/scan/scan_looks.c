/* scan_looks.c - what names and first bytes say about the content of a piece. */
#include "base/cursor.h"
#include "base/text.h"
#include "grammar/tar.h"
#include "grammar/zip_members.h"
#include "scan/scan.h"

bool heft_scan_is_pickle_name(heft_str name)
{
    static const char *const ends[] = { ".pkl", ".pickle", ".joblib", ".pt", ".pth" };
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (heft_str_ends(name, ends[i]))
            return true;
    return heft_str_is(name, "pickle");
}

bool heft_scan_begins_pickle(const uint8_t *p, uint64_t size)
{
    enum { PROTO = 0x80, NEWEST = 5 };
    return size > 1 && p[0] == PROTO && p[1] <= NEWEST;
}

/* The header follows magic, two bytes of version, and its length: u16, from version 2 on u32. */
uint64_t heft_scan_npy_data(const uint8_t *p, uint64_t size)
{
    enum { FIXED = 10, FIXED_2 = 12 };
    if (size < FIXED_2 || memcmp(p, "\x93NUMPY", 6) != 0)
        return 0;
    uint64_t data = p[6] == 1 ? (uint64_t)FIXED + heft_le16(p + 8)
                              : FIXED_2 + (uint64_t)heft_le32(p + 8);
    return data < size ? data : size;
}

bool heft_scan_is_tar(const uint8_t *p, uint64_t size)
{
    enum { BLOCK = 512 };
    return heft_tar_first_name(p, size < BLOCK ? (size_t)size : BLOCK).len;
}

bool heft_scan_wants_all(const uint8_t *head, uint64_t size)
{
    uint64_t data = heft_scan_npy_data(head, size);
    if (data)
        return heft_scan_begins_pickle(head + data, size - data) ||
               heft_str_seek(head, head + data, "O", 1);
    return heft_scan_begins_pickle(head, size) || heft_scan_is_tar(head, size) ||
           heft_zip_begins(head, size);
}
