/* zip_records.h - signatures of zip records, and the search for the central directory. */
#ifndef HEFT_ZIP_RECORDS_H
#define HEFT_ZIP_RECORDS_H
#include "grammar/zip.h"

/* Signatures, the first four bytes of each record. */
enum {
    SIGN_MEMBER = 0x04034B50,
    SIGN_DESCRIPTOR = 0x08074B50,
    SIGN_ENTRY = 0x02014B50,
    SIGN_END64 = 0x06064B50,
    SIGN_LOCATOR = 0x07064B50,
    SIGN_END = 0x06054B50
};

enum { ENTRY = 46 }; /* minimum size of a directory entry */

/* Fill z->by_offset.  HEFT_E_FORMAT if two members have the same name. */
heft_status heft_zip_sort(const heft_zip *z, heft_error *err);
/* Read the local header at the start of a range; e->end is not set.  HEFT_E_FORMAT if there is
 * none. */
heft_status heft_zip_read_local(heft_zip_entry *e, heft_window *in, heft_range where);
/* Find the central directory and the number of entries; set z->directory and z->trailing. */
heft_status heft_zip_find_directory(heft_zip *z, heft_window *in, uint64_t *entries);

#endif
