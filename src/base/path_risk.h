/* path_risk.h - names that would lead elsewhere if a program made paths of them. */
#ifndef HEFT_PATH_RISK_H
#define HEFT_PATH_RISK_H
#include <heft/heft.h>

#include <string.h>

typedef enum heft_path_risk {
    HEFT_PATH_PLAIN,
    HEFT_PATH_ABSOLUTE,  /* '/' at its beginning */
    HEFT_PATH_PARENT,    /* a component ".." */
    HEFT_PATH_DRIVE,     /* "C:\" or "C:/" at its beginning */
    HEFT_PATH_BACKSLASH, /* a separator on some systems */
    HEFT_PATH_NUL        /* the end of the name for a program in C */
} heft_path_risk;

/* The first of these risks that the name has. */
heft_path_risk heft_str_path_risk(heft_str name);

/* Whether some byte of eight is 0. */
static inline uint64_t heft_path_zeros(uint64_t v)
{
    static const uint64_t ones = UINT64_C(0x0101010101010101), tops = UINT64_C(0x8080808080808080);
    return (v - ones) & ~v & tops;
}

static inline uint64_t heft_path_odd(uint64_t v)
{
    static const uint64_t slashes = UINT64_C(0x2F2F2F2F2F2F2F2F);
    static const uint64_t backslashes = UINT64_C(0x5C5C5C5C5C5C5C5C);
    return heft_path_zeros(v) | heft_path_zeros(v ^ slashes) | heft_path_zeros(v ^ backslashes);
}

/* Whether heft_str_path_risk() is worth a call: a few instructions for names of 8 bytes and more. */
static inline bool heft_str_may_be_path(heft_str name)
{
    uint64_t word = 0, odd = 0;
    if (name.len < sizeof word) {
        bool is = name.len == 2 && name.ptr[0] == '.' && name.ptr[1] == '.';
        for (size_t i = 0; i < name.len; i++)
            is = is || !name.ptr[i] || name.ptr[i] == '/' || name.ptr[i] == '\\';
        return is;
    }
    for (size_t i = 0; i < name.len - sizeof word; i += sizeof word) {
        memcpy(&word, name.ptr + i, sizeof word);
        odd |= heft_path_odd(word);
    }
    memcpy(&word, name.ptr + name.len - sizeof word, sizeof word); /* some bytes again */
    return odd | heft_path_odd(word);
}

#endif
