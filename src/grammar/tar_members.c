/* tar_members.c - searches the blocks of a tar archive for headers.  tar.c has the layout.
 *
 * After a header, the search goes on after the smallest content that a reader could see, so that a
 * header within a content that another reader skips is found, too.
 */
#include "grammar/tar_members.h"

#include "base/checked_math.h"
#include "base/cursor.h"
#include "base/text.h"
#include "grammar/tar.h"

/* ---- numbers, as Python reads them ---- */

static bool is_space(uint8_t c)
{
    return c == ' ' || (c >= '\t' && c <= '\r') || (c >= 0x1C && c <= 0x1F);
}

/* Read octal text up to a NUL, with spaces, a sign, "0o" and underscores. */
static bool read_octal(int64_t *out, const uint8_t *p, const uint8_t *end)
{
    bool is_negative;
    const uint8_t *nul = heft_str_seek(p, end, "", 1);
    end = nul ? nul : end;
    while (p < end && is_space(*p))
        p++;
    while (p < end && is_space(end[-1]))
        end--;
    is_negative = p < end && *p == '-';
    p += is_negative || (p < end && *p == '+');
    if (end - p > 2 && p[0] == '0' && (p[1] | 0x20) == 'o')
        p += 2;
    for (*out = 0; p < end; p++) {
        if (*p == '_')
            continue;
        if (*p < '0' || *p > '7' || *out >> 60)
            return false;
        *out = *out << 3 | (*p - '0');
    }
    *out = is_negative ? -*out : *out;
    return true;
}

/* Read octal text, or GNU's base 256, whose first byte is 0x80 or, of a negative number, 0xFF. */
static bool read_number(int64_t *out, const uint8_t *p, size_t len)
{
    bool is_negative = p[0] == 0xFF;
    uint64_t n = is_negative ? UINT64_MAX : 0;
    if (p[0] != 0x80 && !is_negative)
        return read_octal(out, p, p + len);
    for (size_t i = 1; i < len; i++) {
        if ((is_negative ? ~n : n) >> 55)
            return false;
        n = n << 8 | p[i];
    }
    *out = is_negative ? -(int64_t)(~n) - 1 : (int64_t)n;
    return true;
}

/* Python sums signed or unsigned bytes, and counts the checksum as spaces. */
static bool is_header(const uint8_t *p)
{
    int64_t stored, sum = HEFT_TAR_CHECKSUM_BYTES * ' ', high = 0;
    uint8_t others = 0;
    if (!read_number(&stored, p + HEFT_TAR_CHECKSUM, HEFT_TAR_CHECKSUM_BYTES))
        return false;
    for (uint32_t i = 0; i < HEFT_TAR_BLOCK; i++) {
        if (i >= HEFT_TAR_CHECKSUM && i < HEFT_TAR_CHECKSUM + HEFT_TAR_CHECKSUM_BYTES)
            continue;
        sum += p[i];
        high += p[i] >> 7;
        others |= p[i];
    }
    return others && (stored == sum || stored + 256 * high == sum);
}

static bool is_zero(const uint8_t *block)
{
    for (uint32_t i = 0; i < HEFT_TAR_BLOCK; i++)
        if (block[i])
            return false;
    return true;
}

/* ---- extension headers ---- */

static bool is_extension(uint8_t type)
{
    return type == 'x' || type == 'X' || type == 'g' || type == 'L' || type == 'K';
}

/* Read digits, up to a number past `most`. */
static uint64_t read_decimal(heft_str s, uint64_t most)
{
    uint64_t n = 0;
    for (size_t i = 0; i < s.len && n <= most && s.ptr[i] >= '0' && s.ptr[i] <= '9'; i++)
        n = n * 10 + (uint64_t)(s.ptr[i] - '0');
    return n;
}

/* Read pax records: "LENGTH KEY=VALUE\n". */
static void read_pax(heft_tar_search *t, heft_str *name, uint64_t *size, bool *is_sparse,
                     heft_range data)
{
    const uint8_t *p = t->bytes + data.offset, *end = p + data.length;
    while (p < end) {
        uint64_t len = 0;
        const uint8_t *start = p, *equals, *key;
        for (; p < end && *p >= '0' && *p <= '9' && len < data.length; p++)
            len = len * 10 + (uint64_t)(*p - '0');
        key = p + 1;
        if (p == end || *p != ' ' || len > (uint64_t)(end - start) ||
            len < (uint64_t)(key - start) + 2)
            return;
        p = start + len;
        equals = heft_str_seek(key, p - 1, "=", 1);
        if (!equals)
            continue;
        heft_str k = { (const char *)key, (size_t)(equals - key) };
        heft_str value = { (const char *)equals + 1, (size_t)(p - equals) - 2 };
        if (heft_str_is(k, "path"))
            *name = value;
        if (heft_str_is(k, "size"))
            *size = read_decimal(value, t->size);
        *is_sparse |= heft_str_begins(k, "GNU.sparse");
    }
}

static heft_str field(const uint8_t *p, size_t max)
{
    heft_str s = { (const char *)p, 0 };
    while (s.len < max && s.ptr[s.len])
        s.len++;
    return s;
}

/* Take in what a header says of the next member, or of all members. */
static void read_extension(heft_tar_search *t, uint8_t type, heft_range data)
{
    if (type == 'L')
        t->next_name = field(t->bytes + data.offset, (size_t)data.length);
    if (type == 'x' || type == 'X')
        read_pax(t, &t->next_name, &t->next_size, &t->next_is_sparse, data);
    if (type == 'g')
        read_pax(t, &t->global_name, &t->global_size, &t->global_is_sparse, data);
}

/* ---- members ---- */

static void forget_next(heft_tar_search *t)
{
    t->next_name = (heft_str){ NULL, 0 };
    t->next_size = HEFT_UNKNOWN_LENGTH;
    t->next_is_sparse = false;
}

void heft_tar_search_begin(heft_tar_search *t, const uint8_t *bytes, uint64_t size)
{
    *t = (heft_tar_search){ .bytes = bytes, .size = size, .global_size = HEFT_UNKNOWN_LENGTH };
    forget_next(t);
}

/* Some readers skip blocks of zeros, and blocks that are no header. */
bool heft_tar_begins(const uint8_t *bytes, uint64_t size)
{
    enum { MOST = 128 };
    uint32_t others = 0;
    for (; size >= HEFT_TAR_BLOCK && others < MOST;
         size -= HEFT_TAR_BLOCK, bytes += HEFT_TAR_BLOCK) {
        if (is_header(bytes))
            return true;
        others += !is_zero(bytes);
    }
    return false;
}

/* Python reads a directory of the oldest archives from its name. */
static bool is_file(uint8_t type, heft_str name)
{
    bool is_folder = !type && name.len && name.ptr[name.len - 1] == '/';
    return (type < '1' || type > '6') && !is_folder;
}

/* Describe the member of the header at p, whose content begins at t->at, and skip the smallest
 * content.  Without a valid size, nothing is skipped. */
static void describe(heft_tar_search *t, heft_tar_found *out, const uint8_t *p)
{
    uint64_t left = t->size - t->at, skipped = 0, longest;
    int64_t stated;
    bool has_size = read_number(&stated, p + HEFT_TAR_SIZE, HEFT_TAR_SIZE_BYTES) && stated >= 0;
    uint64_t sizes[] = { has_size ? (uint64_t)stated : left, t->next_size, t->global_size };
    *out = (heft_tar_found){ .name = field(p, HEFT_TAR_NAME_BYTES),
                             .is_sparse = p[HEFT_TAR_TYPE] == 'S' };
    longest = sizes[0];
    skipped = has_size && is_file(p[HEFT_TAR_TYPE], out->name) ? sizes[0] : 0;
    for (size_t i = 1; i < 3 && !is_extension(p[HEFT_TAR_TYPE]); i++) {
        if (sizes[i] == HEFT_UNKNOWN_LENGTH)
            continue;
        longest = sizes[i] > longest ? sizes[i] : longest;
        skipped = sizes[i] < skipped ? sizes[i] : skipped;
    }

    out->name = t->global_name.ptr ? t->global_name : out->name;
    out->name = t->next_name.ptr ? t->next_name : out->name;
    out->is_sparse |= t->next_is_sparse || t->global_is_sparse;
    out->is_too_long = !has_size || longest > left;
    out->data = (heft_range){ t->at, longest < left ? longest : left };
    skipped = skipped < left ? skipped : left;
    skipped += (HEFT_TAR_BLOCK - skipped % HEFT_TAR_BLOCK) % HEFT_TAR_BLOCK;
    t->at += skipped < left ? skipped : left;
}

bool heft_tar_search_next(heft_tar_search *t, heft_tar_found *out)
{
    while (t->size - t->at >= HEFT_TAR_BLOCK) {
        const uint8_t *p = t->bytes + t->at;
        t->at += HEFT_TAR_BLOCK;
        if (!is_header(p)) {
            t->has_ended |= is_zero(p);
            t->has_other |= !is_zero(p);
            t->is_damaged |= !t->has_ended;
            continue;
        }
        t->is_certain |= !t->has_other || !memcmp(p + HEFT_TAR_MAGIC, "ustar", 5);
        describe(t, out, p);
        if (!is_extension(p[HEFT_TAR_TYPE])) {
            forget_next(t);
            return true;
        }
        read_extension(t, p[HEFT_TAR_TYPE], out->data);
    }
    t->is_damaged |= !t->has_ended && t->at < t->size;
    return false;
}
