/* npz_names.c - names of members: the suffix of arrays, and names that are unsafe to unpack. */
#include "base/path_risk.h"
#include "format/numpy/npy.h"

const char heft_npz_suffix[] = ".npy";

/* Return true if the name, UTF-8, contains U+0000 to U+001F or U+007F to U+009F. */
static bool has_control(heft_str name)
{
    for (size_t i = 0; i < name.len; i++) {
        uint8_t c = (uint8_t)name.ptr[i], next = i + 1 < name.len ? (uint8_t)name.ptr[i + 1] : 0;
        if (c < ' ' || c == 0x7F || (c == 0xC2 && next >= 0x80 && next < 0xA0))
            return true;
    }
    return false;
}

const char *heft_npz_risk(heft_str name)
{
    heft_path_risk risk = heft_str_path_risk(name);
    if (risk == HEFT_PATH_ABSOLUTE)
        return "a leading '/'";
    if (risk == HEFT_PATH_PARENT)
        return "a '..'";
    if (name.len > 1 && name.ptr[1] == ':' && (uint8_t)((name.ptr[0] | 0x20) - 'a') < 26)
        return "a drive letter";
    if (has_control(name))
        return "a control character";
    return risk == HEFT_PATH_BACKSLASH ? "a backslash" : NULL;
}
