/* windows_wide.c - characters of UTF-8 and their widths: the C library of Windows lacks both. */
#include "port/windows/posix.h"

/* Decode one character, as mbrtowc() does in a locale with UTF-8.  Characters above U+FFFF, for
 * which wchar_t is too small, become U+FFFF. */
size_t windows_mbrtowc(wchar_t *out, const char *text, size_t len, mbstate_t *state)
{
    const unsigned char *p = (const unsigned char *)text;
    (void)state;
    if (!len)
        return (size_t)-2;
    size_t n = p[0] < 0x80   ? 1
               : p[0] < 0xC2 ? 0
               : p[0] < 0xE0 ? 2
               : p[0] < 0xF0 ? 3
               : p[0] < 0xF5 ? 4
                             : 0;
    uint32_t c = n == 1 ? p[0] : p[0] & (0x7FU >> n);
    for (size_t i = 1; i < n && i < len; i++) {
        if ((p[i] & 0xC0) != 0x80)
            return (size_t)-1;
        c = c << 6 | (p[i] & 0x3FU);
    }
    if (n > len)
        return (size_t)-2;
    static const uint32_t smallest[] = { 0, 0, 0x80, 0x800, 0x10000 };
    if (!n || c < smallest[n] || c > 0x10FFFF || (c >= 0xD800 && c < 0xE000))
        return (size_t)-1;
    *out = c > 0xFFFF ? 0xFFFF : (wchar_t)c;
    return c ? n : 0;
}

typedef struct range {
    uint16_t first, last;
} range;

static bool contains(const range *ranges, size_t count, wchar_t c)
{
    for (size_t i = 0; i < count; i++)
        if (c >= ranges[i].first && c <= ranges[i].last)
            return true;
    return false;
}

/* Return the columns of a character: Unicode's East Asian Width, by blocks.  Most characters above
 * U+FFFF, here U+FFFF, are pictures of two columns. */
int windows_wcwidth(wchar_t c)
{
    static const range combining[] = {
        { 0x0300, 0x036F }, { 0x0483, 0x0489 }, { 0x0591, 0x05BD }, { 0x0610, 0x061A },
        { 0x064B, 0x065F }, { 0x093C, 0x093C }, { 0x0941, 0x0948 }, { 0x094D, 0x094D },
        { 0x0E31, 0x0E31 }, { 0x0E34, 0x0E3A }, { 0x0E47, 0x0E4E }, { 0x1AB0, 0x1AFF },
        { 0x1DC0, 0x1DFF }, { 0x200B, 0x200F }, { 0x202A, 0x202E }, { 0x2060, 0x2064 },
        { 0x20D0, 0x20FF }, { 0xFE00, 0xFE0F }, { 0xFE20, 0xFE2F }, { 0xFEFF, 0xFEFF },
    };
    static const range wide[] = {
        { 0x1100, 0x115F }, { 0x231A, 0x231B }, { 0x23E9, 0x23EC }, { 0x2E80, 0x303E },
        { 0x3041, 0x33FF }, { 0x3400, 0x4DBF }, { 0x4E00, 0x9FFF }, { 0xA000, 0xA4CF },
        { 0xA960, 0xA97F }, { 0xAC00, 0xD7A3 }, { 0xF900, 0xFAFF }, { 0xFE30, 0xFE6F },
        { 0xFF01, 0xFF60 }, { 0xFFE0, 0xFFE6 }, { 0xFFFF, 0xFFFF },
    };
    if (c < 0x20 || (c >= 0x7F && c < 0xA0))
        return c ? -1 : 0;
    if (contains(combining, sizeof combining / sizeof *combining, c))
        return 0;
    return contains(wide, sizeof wide / sizeof *wide, c) ? 2 : 1;
}
