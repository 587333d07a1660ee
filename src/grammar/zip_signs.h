/* zip_signs.h - what the records of a zip archive begin with. */
#ifndef HEFT_ZIP_SIGNS_H
#define HEFT_ZIP_SIGNS_H

enum {
    SIGN_MEMBER = 0x04034B50,
    SIGN_DESCRIPTOR = 0x08074B50,
    SIGN_ENTRY = 0x02014B50,
    SIGN_END64 = 0x06064B50,
    SIGN_LOCATOR = 0x07064B50,
    SIGN_END = 0x06054B50
};

#endif
