/* zip_records.h - what the files about zip archives share. */
#ifndef HEFT_ZIP_RECORDS_H
#define HEFT_ZIP_RECORDS_H
#include "grammar/zip.h"

/* What the records begin with. */
enum {
    SIGN_MEMBER = 0x04034B50,
    SIGN_DESCRIPTOR = 0x08074B50,
    SIGN_ENTRY = 0x02014B50,
    SIGN_END64 = 0x06064B50,
    SIGN_LOCATOR = 0x07064B50,
    SIGN_END = 0x06054B50
};

enum { ENTRY = 46 }; /* bytes that a member takes in the directory, at least */

/* Find the central directory and the number of its entries; set z->directory and z->comment. */
heft_status heft_zip_find_directory(heft_zip *z, heft_window *in, uint64_t *entries);

#endif
