/* tar.c - reads tar archives: 512-byte headers, each followed by the bytes of a member, padded to a
 * multiple of 512.
 *
 *     0 name 100 · 100 mode 8 · 108 uid 8 · 116 gid 8 · 124 size 12 · 136 mtime 12
 *   148 checksum 8 · 156 type 1 · 157 link 100 · 257 magic 6 · 263 version 2 · 265 owner 32
 *   297 group 32 · 329 device 16 · 345 prefix 155
 *
 * Numbers are octal text.  A member of type x or g (pax) or L or K (GNU) describes the next member.
 * The archive ends at a block of zeros, or at the end of the file.
 */
#include "grammar/tar.h"

#include "base/checked_math.h"
#include "base/error.h"
#include "base/text.h"

enum {
    PREFIX = 345,
    MAX_EXTENSION = 1 << 20 /* limit for a member that describes the next member */
};

static const char what[] = "a header of the archive";

/* ---- numbers ---- */

/* Read leading spaces, octal digits, trailing spaces or NULs; 12 digits fit into 64 bits. */
static bool read_octal(uint64_t *out, const uint8_t *p, size_t len)
{
    size_t i = 0;
    *out = 0;
    while (i < len && p[i] == ' ')
        i++;
    for (; i < len && p[i] >= '0' && p[i] <= '7'; i++)
        *out = *out << 3 | (uint64_t)(p[i] - '0');
    while (i < len && (p[i] == ' ' || !p[i]))
        i++;
    return i == len;
}

/* Read an octal number or GNU's base 256: the top bit is set, and the remaining bits are a
 * big-endian number. */
static bool read_number(uint64_t *out, const uint8_t *p, size_t len)
{
    if (!(p[0] & 0x80))
        return read_octal(out, p, len);
    *out = 0;
    if (p[0] != 0x80) /* negative, or beyond 64 bits */
        return false;
    for (size_t i = 1; i < len; i++) {
        if (*out >> 56)
            return false;
        *out = *out << 8 | p[i];
    }
    return true;
}

/* Verify the sum of the header's bytes, counting the checksum field as spaces; early writers added
 * signed bytes. */
static bool has_checksum(const uint8_t *p)
{
    uint64_t stored;
    uint32_t sum = HEFT_TAR_CHECKSUM_BYTES * ' ', high = 0;
    for (uint32_t i = 0; i < HEFT_TAR_BLOCK; i++) {
        bool is_checksum = i >= HEFT_TAR_CHECKSUM &&
                           i < HEFT_TAR_CHECKSUM + HEFT_TAR_CHECKSUM_BYTES;
        sum += is_checksum ? 0 : p[i];
        high += !is_checksum && p[i] & 0x80;
    }
    return read_octal(&stored, p + HEFT_TAR_CHECKSUM, HEFT_TAR_CHECKSUM_BYTES) &&
           (stored == sum || stored + 256 * (uint64_t)high == sum);
}

/* Return the text up to a NUL or the end of the field. */
static heft_str field(const uint8_t *p, size_t max)
{
    heft_str s = { (const char *)p, 0 };
    while (s.len < max && s.ptr[s.len])
        s.len++;
    return s;
}

static uint64_t padded(uint64_t bytes)
{
    uint64_t out;
    return heft_align_up(&out, bytes, HEFT_TAR_BLOCK) ? out : HEFT_UNKNOWN_LENGTH;
}

/* ---- members that describe the next member ---- */

typedef struct extension { /* properties that override the next header */
    heft_str name;         /* ptr NULL: no override */
    uint64_t size;         /* or HEFT_NOWHERE */
} extension;

static bool is_extension(uint8_t type)
{
    return type == 'x' || type == 'g' || type == 'L' || type == 'K';
}

/* Read a decimal number up to `end`; return false unless a valid number that fits in 64 bits. */
static bool read_decimal(uint64_t *out, const uint8_t *p, const uint8_t *end)
{
    *out = 0;
    if (p == end)
        return false;
    for (; p < end; p++)
        if (*p < '0' || *p > '9' || !heft_mul(out, *out, 10) ||
            !heft_add(out, *out, (uint64_t)(*p - '0')))
            return false;
    return true;
}

/* Read a pax record "LENGTH KEY=VALUE\n", where LENGTH is the length of the whole record.  Return
 * the length, or 0 if invalid. */
static size_t take_record(extension *e, const uint8_t *p, size_t left)
{
    size_t digits = 0, equals;
    uint64_t len;
    while (digits < left && p[digits] != ' ')
        digits++;
    if (!read_decimal(&len, p, p + digits) || len > left || len < digits + 3 || p[len - 1] != '\n')
        return 0;
    for (equals = digits + 1; equals < len && p[equals] != '=';)
        equals++;
    if (equals == len)
        return 0;
    heft_str key = { (const char *)p + digits + 1, equals - digits - 1 };
    heft_str value = { (const char *)p + equals + 1, (size_t)len - equals - 2 };
    if (heft_str_is(key, "path"))
        e->name = value;
    if (heft_str_is(key, "size") &&
        !read_decimal(&e->size, (const uint8_t *)value.ptr, (const uint8_t *)value.ptr + value.len))
        return 0;
    return (size_t)len;
}

static heft_status read_extension(extension *e, heft_window *in, const heft_tar_entry *m,
                                  uint8_t type)
{
    if (m->data.length > MAX_EXTENSION)
        return heft_error_set(in->err, HEFT_E_LIMIT, m->header,
                              "%s: the description of the next member has %U bytes, more than %U",
                              what, m->data.length, (uint64_t)MAX_EXTENSION);
    heft_cur c = heft_cur_whole(in, m->data.offset, m->data.length, what);
    const uint8_t *p = heft_cur_take(&c, m->data.length);
    if (p && type == 'L')
        e->name = field(p, (size_t)m->data.length);
    for (size_t at = 0, n; p && type == 'x' && at < m->data.length; at += n) {
        n = take_record(e, p + at, (size_t)m->data.length - at);
        if (!n)
            return heft_error_set(in->err, HEFT_E_FORMAT, m->data.offset + at,
                                  "%s: a pax record is not LENGTH KEY=VALUE", what);
    }
    return c.st; /* g (whole archive) and K (link target) are ignored */
}

/* ---- members ---- */

static heft_status read_header(heft_tar *t, const uint8_t *p, heft_tar_entry *out)
{
    *out = (heft_tar_entry){ .name = field(p, HEFT_TAR_NAME_BYTES),
                             .header = t->at,
                             .has_prefix = !memcmp(p + HEFT_TAR_MAGIC, "ustar", 6) && p[PREFIX],
                             .is_file = p[HEFT_TAR_TYPE] == '0' || !p[HEFT_TAR_TYPE] ||
                                        p[HEFT_TAR_TYPE] == '7' };
    if (memcmp(p + HEFT_TAR_MAGIC, "ustar", 5) != 0 || !has_checksum(p))
        return heft_error_set(t->in->err, HEFT_E_FORMAT, t->at, "%s: the checksum does not match",
                              what);
    out->data.offset = t->at + HEFT_TAR_BLOCK;
    if (!read_number(&out->data.length, p + HEFT_TAR_SIZE, HEFT_TAR_SIZE_BYTES))
        return heft_error_set(t->in->err, HEFT_E_FORMAT, t->at + HEFT_TAR_SIZE,
                              "%s: the size of %q is not a number", what, out->name);
    /* Links, devices and directories have no content even if the header states a size. */
    if (p[HEFT_TAR_TYPE] >= '1' && p[HEFT_TAR_TYPE] <= '6')
        out->data.length = 0;
    return HEFT_OK;
}

/* Advance past a member.  The content must lie in the file, the padding need not. */
static heft_status skip_member(heft_tar *t, const heft_tar_entry *e)
{
    if (!heft_range_in(e->data, t->in->size))
        return heft_error_set(t->in->err, HEFT_E_FORMAT, e->header,
                              "member %q: %U bytes are announced, %U are left", e->name,
                              e->data.length, t->in->size - e->data.offset);
    uint64_t length = padded(e->data.length), left = t->in->size - e->data.offset;
    t->at = e->data.offset + (length < left ? length : left);
    return HEFT_OK;
}

heft_status heft_tar_next(heft_tar *t, heft_tar_entry *out, bool *found)
{
    extension next = { .name = { NULL, 0 }, .size = HEFT_UNKNOWN_LENGTH };
    *found = false;
    for (;;) {
        if (t->at >= t->in->size)
            return HEFT_OK;
        heft_cur c = heft_cur_whole(t->in, t->at, HEFT_TAR_BLOCK, what);
        const uint8_t *p = heft_cur_take(&c, HEFT_TAR_BLOCK);
        if (!p)
            return c.st;
        uint32_t zeros = 0;
        while (zeros < HEFT_TAR_BLOCK && !p[zeros])
            zeros++;
        if (zeros == HEFT_TAR_BLOCK)
            return HEFT_OK;
        HEFT_TRY(read_header(t, p, out));
        if (!is_extension(p[HEFT_TAR_TYPE]))
            break;
        HEFT_TRY(skip_member(t, out));
        HEFT_TRY(read_extension(&next, t->in, out, p[HEFT_TAR_TYPE]));
    }
    if (next.name.ptr) {
        out->name = next.name;
        out->has_prefix = false;
    }
    if (next.size != HEFT_UNKNOWN_LENGTH)
        out->data.length = next.size;
    *found = true;
    return skip_member(t, out);
}

/* Ignores long names from extension members: the names that probes look for are short. */
heft_str heft_tar_first_name(const uint8_t *head, size_t len)
{
    for (uint64_t at = 0, bytes; at + HEFT_TAR_BLOCK <= len; at += HEFT_TAR_BLOCK + padded(bytes)) {
        const uint8_t *p = head + at;
        if (memcmp(p + HEFT_TAR_MAGIC, "ustar", 5) != 0 || !has_checksum(p) ||
            !read_number(&bytes, p + HEFT_TAR_SIZE, HEFT_TAR_SIZE_BYTES))
            break;
        if (!is_extension(p[HEFT_TAR_TYPE]))
            return field(p, HEFT_TAR_NAME_BYTES);
        if (bytes > MAX_EXTENSION)
            break;
    }
    return (heft_str){ "", 0 };
}
