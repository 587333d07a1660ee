/* path_risk.h - detects names that would escape a folder if a program used the names as paths, and
 * the limits of names of shards. */
#ifndef HEFT_PATH_RISK_H
#define HEFT_PATH_RISK_H
#include <heft/heft.h>

#include <string.h>

enum {
    HEFT_MAX_SHARDS = 4096,   /* in every format, and in folders */
    HEFT_MAX_SHARD_NAME = 255 /* bytes without folders, as most file systems allow */
};

typedef enum heft_path_risk {
    HEFT_PATH_PLAIN,
    HEFT_PATH_ABSOLUTE,  /* begins with '/' */
    HEFT_PATH_PARENT,    /* a component ".." */
    HEFT_PATH_DRIVE,     /* begins with a drive, "C:\" or "C:/" */
    HEFT_PATH_BACKSLASH, /* a separator on some systems */
    HEFT_PATH_NUL        /* a NUL byte, which ends the name in a C program */
} heft_path_risk;

/* Return the first risk, in the order of the enumeration, that the name has. */
heft_path_risk heft_str_path_risk(heft_str name);

/* Return true if the name is that of a file in the same folder on any system: a single component of
 * at most HEFT_MAX_SHARD_NAME bytes. */
bool heft_str_is_file_name(heft_str name);

/* Return true if the name is that of a file in the same folder, or in folders of that folder, at
 * most seven, joined by slashes: each component is as above. */
bool heft_str_is_inner_path(heft_str name);

/* Return nonzero if one of the eight bytes of v is 0. */
static inline uint64_t heft_path_zeros(uint64_t v)
{
    static const uint64_t ones = UINT64_C(0x0101010101010101), tops = UINT64_C(0x8080808080808080);
    return (v - ones) & ~v & tops;
}

/* Return nonzero if one of the eight bytes of v is NUL, a slash or a backslash. */
static inline uint64_t heft_path_specials(uint64_t v)
{
    static const uint64_t slashes = UINT64_C(0x2F2F2F2F2F2F2F2F);
    static const uint64_t backslashes = UINT64_C(0x5C5C5C5C5C5C5C5C);
    return heft_path_zeros(v) | heft_path_zeros(v ^ slashes) | heft_path_zeros(v ^ backslashes);
}

/* Return false if the name certainly has no risk, so that heft_str_path_risk() need not be called.
 * Takes a few instructions for names of at least 8 bytes. */
static inline bool heft_str_may_be_path(heft_str name)
{
    uint64_t word = 0, specials = 0;
    if (name.len < sizeof word) {
        bool may_be = name.len == 2 && name.ptr[0] == '.' && name.ptr[1] == '.';
        for (size_t i = 0; i < name.len; i++)
            may_be = may_be || !name.ptr[i] || name.ptr[i] == '/' || name.ptr[i] == '\\';
        return may_be;
    }
    for (size_t i = 0; i < name.len - sizeof word; i += sizeof word) {
        memcpy(&word, name.ptr + i, sizeof word);
        specials |= heft_path_specials(word);
    }
    /* The last word may overlap the word before. */
    memcpy(&word, name.ptr + name.len - sizeof word, sizeof word);
    return specials | heft_path_specials(word);
}

#endif
