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

/* Find the central directory and the number of entries; set z->directory and z->trailing. */
heft_status heft_zip_find_directory(heft_zip *z, heft_window *in, uint64_t *entries);

#endif
