/* scan_looks.c - what names and first bytes say about the content of a piece. */
#include "base/cursor.h"
#include "base/text.h"
#include "scan/scan.h"

static char small(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c;
}

static bool ends_like(heft_str name, const char *suffix)
{
    size_t len = heft_lit(suffix).len;
    if (name.len < len)
        return false;
    for (size_t i = 0; i < len; i++)
        if (small(name.ptr[name.len - len + i]) != suffix[i])
            return false;
    return true;
}

bool heft_scan_is_pickle_name(heft_str name)
{
    static const char *const ends[] = { ".pkl", ".pickle", ".joblib", ".pt", ".pth" };
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (ends_like(name, ends[i]))
            return true;
    return heft_str_is(name, "pickle");
}

bool heft_scan_is_script_name(heft_str name)
{
    return ends_like(name, ".py");
}

bool heft_scan_is_json_name(heft_str name)
{
    return ends_like(name, ".json");
}

bool heft_scan_is_constants_name(heft_str name)
{
    return ends_like(name, "constants.pkl");
}

bool heft_scan_is_package_name(heft_str name)
{
    return ends_like(name, ".data/extern_modules");
}

bool heft_scan_begins_pickle(const uint8_t *p, uint64_t size)
{
    enum { PROTO = 0x80, NEWEST = 5 };
    return size > 1 && p[0] == PROTO && p[1] <= NEWEST;
}
