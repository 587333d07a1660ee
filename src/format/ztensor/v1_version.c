/* v1_version.c - version numbers as manifests of zTensor 1 spell them. */
#include "format/ztensor/ztensor.h"

/* Digits at *at, which moves behind them; false: there are none.  MOST stands for all numbers beyond it. */
static bool take_number(heft_str s, size_t *at, uint32_t *out)
{
    enum { MOST = 1000000 };
    size_t first = *at;
    *out = 0;
    while (*at < s.len && s.ptr[*at] >= '0' && s.ptr[*at] <= '9') {
        uint32_t digit = (uint32_t)(s.ptr[(*at)++] - '0');
        *out = *out < MOST / 10 ? *out * 10 + digit : (uint32_t)MOST;
    }
    return *at > first;
}

bool heft_zt1_version(heft_str s, uint32_t *major, uint32_t *minor, size_t *len)
{
    size_t at = 0;
    uint32_t patch;
    if (!take_number(s, &at, major) || at == s.len || s.ptr[at++] != '.' ||
        !take_number(s, &at, minor))
        return false;
    *len = at;
    while (at < s.len)
        if (s.ptr[at++] != '.' || !take_number(s, &at, &patch))
            return false;
    return true;
}
