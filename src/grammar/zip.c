/* zip.c - reads the central directory of a zip archive and compares the local headers.
 *
 *   member   "PK" 3 4  u16 version, flags, method, time, date  u32 crc, stored, content
 *            u16 lengths of name, extra  name  extra  data
 *            [["PK" 7 8]  u32 crc  u32 or u64 stored, content]     when flag 3 is set
 *   entry    "PK" 1 2  u16 made by, version, flags, method, time, date  u32 crc, stored, content
 *            u16 lengths of name, extra, comment  u16 disk, attributes  u32 attributes, head
 *            name  extra  comment
 *   end records: see zip_end.c
 *
 * A number that does not fit is all ones; an extra field (id 1) or end64 has the actual number.
 */
#include "grammar/zip.h"

#include <string.h>

#include "base/bisect.h"
#include "base/checked_math.h"
#include "base/error.h"
#include "base/sort.h"
#include "base/text.h"

enum { MEMBER = 30 };
enum { FLAG_ENCRYPTED = 1, FLAG_DESCRIBED = 8, FLAG_PATCH = 0x20, FLAG_STRONG = 0x40 };
enum { FLAG_MASKED = 0x2000, FLAGS_OF_DEFLATE = 6, FLAG_UTF8 = 0x800 };
enum { FLAGS_KNOWN = FLAG_DESCRIBED | FLAGS_OF_DEFLATE | FLAG_UTF8 };
enum { EXTRA_ZIP64 = 1 };
enum { MAX_RATIO = 1032 }; /* deflate: two bits encode at most 258 bytes */

typedef struct reader {
    heft_window *in;
    heft_zip *z;
    bool takes_opaque;
} reader;

/* ---- headers ---- */

typedef struct header { /* fields common to the local header and the directory entry */
    uint32_t flags, method, crc, name, extra;
    uint64_t stored, content, head;
} header;

static void read_common(heft_cur *c, header *h)
{
    heft_cur_u16(c); /* version needed: flags and method are more precise */
    h->flags = heft_cur_u16(c);
    h->method = heft_cur_u16(c);
    heft_cur_u32(c); /* time and date */
    h->crc = heft_cur_u32(c);
    h->stored = heft_cur_u32(c);
    h->content = heft_cur_u32(c);
    h->name = heft_cur_u16(c);
    h->extra = heft_cur_u16(c);
}

/* §4.5.3: the zip64 field holds the numbers that are all ones in the header, in this order. */
static heft_status take_wide(const reader *r, header *h, heft_cur *c, uint64_t bytes, heft_str name)
{
    uint64_t *wide[] = { &h->content, &h->stored, &h->head };
    uint64_t at = heft_cur_pos(c);
    for (size_t i = 0; i < sizeof wide / sizeof *wide; i++) {
        if (*wide[i] != UINT32_MAX)
            continue;
        if (bytes < 8)
            return heft_error_set(r->in->err, HEFT_E_FORMAT, at,
                                  "zip: member %q: the zip64 field is too short", name);
        *wide[i] = heft_cur_u64(c);
        bytes -= 8;
    }
    heft_cur_take(c, bytes);
    return c->st;
}

/* Read the extra fields and replace numbers that are all ones.  Some writers pad the fields with
 * fewer than four bytes. */
static heft_status read_extra(const reader *r, header *h, uint64_t at, heft_str name)
{
    heft_cur c = heft_cur_whole(r->in, at, h->extra, "zip: the extra fields of a member");
    bool is_wide = false;
    while (!c.st && heft_cur_left(&c) >= 4) {
        uint32_t id = heft_cur_u16(&c);
        uint64_t bytes = heft_cur_u16(&c);
        if (bytes > heft_cur_left(&c))
            return heft_error_set(r->in->err, HEFT_E_FORMAT, heft_cur_pos(&c) - 4,
                                  "zip: member %q: an extra field has %U bytes, only %U are left",
                                  name, bytes, heft_cur_left(&c));
        if (id != EXTRA_ZIP64) {
            heft_cur_take(&c, bytes);
            continue;
        }
        if (is_wide)
            return heft_error_set(r->in->err, HEFT_E_FORMAT, heft_cur_pos(&c) - 4,
                                  "zip: member %q: two zip64 fields", name);
        is_wide = true;
        HEFT_TRY(take_wide(r, h, &c, bytes, name));
    }
    return c.st;
}

/* ---- the central directory ---- */

static heft_status check_name(const reader *r, heft_str name, uint64_t at)
{
    size_t valid = heft_utf8_valid(name.ptr, name.len);
    if (!name.len)
        return heft_error_set(r->in->err, HEFT_E_FORMAT, at, "zip: a member without a name");
    if (valid < name.len)
        return heft_error_set(r->in->err, HEFT_E_UNSUPPORTED, at + valid,
                              "zip: the name of a member is not UTF-8");
    if (heft_str_has_nul(name))
        return heft_error_set(r->in->err, HEFT_E_FORMAT, at,
                              "zip: member %q: the name contains a NUL", name);
    return HEFT_OK;
}

heft_status heft_zip_refuse_opaque(const heft_zip_entry *e, heft_error *err)
{
    if (!e->is_opaque)
        return HEFT_OK;
    if (e->flags & (FLAG_ENCRYPTED | FLAG_STRONG | FLAG_MASKED))
        return heft_error_set(err, HEFT_E_UNSUPPORTED, e->name_at - ENTRY,
                              "zip: member %q is encrypted", e->name);
    if (e->flags & ~(uint32_t)FLAGS_KNOWN)
        return heft_error_set(err, HEFT_E_UNSUPPORTED, e->name_at - ENTRY,
                              "zip: member %q: unsupported flags 0x%X", e->name,
                              (uint64_t)e->flags);
    return heft_error_set(err, HEFT_E_UNSUPPORTED, e->name_at - ENTRY,
                          "zip: member %q: method %U is neither stored nor deflated", e->name,
                          (uint64_t)e->method);
}

/* Opaque members are not checked, since the relation between the sizes is unknown. */
static heft_status check_sizes(const reader *r, const header *h, heft_str name, uint64_t at)
{
    if (h->method == HEFT_ZIP_STORED && h->stored != h->content)
        return heft_error_set(
            r->in->err, HEFT_E_FORMAT, at,
            "zip: member %q: stored without compression, but sizes differ: %U and %U", name,
            h->stored, h->content);
    uint64_t limit;
    if (h->method == HEFT_ZIP_DEFLATED &&
        (!h->stored || (heft_mul(&limit, h->stored, MAX_RATIO) && h->content > limit)))
        return heft_error_set(r->in->err, HEFT_E_FORMAT, at,
                              "zip: member %q: %U deflated bytes cannot inflate to %U bytes", name,
                              h->stored, h->content);
    return HEFT_OK;
}

static void set_common(heft_zip_entry *e, const header *h)
{
    e->stored = h->stored;
    e->content = h->content;
    e->crc = h->crc;
    e->method = (uint16_t)h->method;
    e->flags = (uint16_t)h->flags;
    e->is_described = h->flags & FLAG_DESCRIBED;
    e->is_opaque = h->flags & ~(uint32_t)FLAGS_KNOWN ||
                   (h->method != HEFT_ZIP_STORED && h->method != HEFT_ZIP_DEFLATED);
}

static heft_status read_entry(const reader *r, heft_cur *c, heft_zip_entry *e)
{
    uint64_t at = heft_cur_pos(c);
    if (heft_cur_u32(c) != SIGN_ENTRY)
        return c->st ? c->st
                     : heft_error_set(r->in->err, HEFT_E_FORMAT, at,
                                      "zip: expected a directory entry here");
    header h;
    heft_cur_u16(c); /* made by */
    read_common(c, &h);
    uint32_t comment = heft_cur_u16(c), disk = heft_cur_u16(c);
    heft_cur_take(c, 6); /* attributes */
    h.head = heft_cur_u32(c);
    e->name_at = heft_cur_pos(c);
    const uint8_t *name = heft_cur_take(c, h.name);
    uint64_t extra = heft_cur_pos(c);
    heft_cur_take(c, (uint64_t)h.extra + comment);
    if (c->st)
        return c->st;
    e->name = (heft_str){ (const char *)name, h.name };
    heft_status st = check_name(r, e->name, e->name_at);
    if (!st)
        st = read_extra(r, &h, extra, e->name);
    if (!st && disk && disk != UINT16_MAX)
        st = heft_error_set(r->in->err, HEFT_E_UNSUPPORTED, at,
                            "zip: member %q lies in another volume", e->name);
    e->head = h.head;
    set_common(e, &h);
    if (st || !e->is_opaque)
        return st ? st : check_sizes(r, &h, e->name, at);
    /* §4.4.4, bit 13: the local headers are masked and cannot be compared with the directory. */
    return r->takes_opaque && !(h.flags & FLAG_MASKED) ? HEFT_OK
                                                       : heft_zip_refuse_opaque(e, r->in->err);
}

/* ---- local headers ---- */

/* Return true if a number of the local header agrees with the directory; with a data descriptor the
 * number may also be 0. */
static bool agrees(uint64_t local, uint64_t central, bool is_described)
{
    return local == central || (is_described && !local);
}

static heft_status check_header(const reader *r, const header *h, const heft_zip_entry *e,
                                heft_str name)
{
    const uint32_t may_differ = FLAGS_OF_DEFLATE | FLAG_UTF8;
    bool described = e->is_described;
    const char *difference = NULL;
    if (!heft_str_eq(name, e->name))
        difference = "name";
    else if (h->method != e->method)
        difference = "method";
    else if ((h->flags ^ e->flags) & ~may_differ)
        difference = "flags";
    else if (!agrees(h->crc, e->crc, described))
        difference = "CRC-32";
    else if (!agrees(h->stored, e->stored, described) || !agrees(h->content, e->content, described))
        difference = "size";
    if (difference)
        return heft_error_set(r->in->err, HEFT_E_FORMAT, e->head,
                              "zip: member %q: local header and directory disagree about the %s",
                              e->name, difference);
    return HEFT_OK;
}

/* §4.3.9: the descriptor may have a signature, and 32-bit or 64-bit numbers. */
static heft_status read_descriptor(const reader *r, heft_zip_entry *e)
{
    enum { LONGEST = 24 };
    uint8_t buf[LONGEST];
    uint64_t left = r->z->directory.offset - e->end;
    heft_cur c = heft_cur_whole(r->in, e->end, left < LONGEST ? left : LONGEST,
                                "zip: a data descriptor");
    uint64_t have = heft_cur_left(&c);
    const uint8_t *p = heft_cur_take(&c, have);
    if (!p)
        return c.st;
    for (uint32_t form = 0; form < 4; form++) {
        heft_out o = { .buf = buf, .cap = sizeof buf };
        if (!(form & 2))
            heft_out_u32(&o, SIGN_DESCRIPTOR);
        heft_out_u32(&o, e->crc);
        for (uint32_t i = 0; i < 2; i++) {
            uint64_t n = i ? e->content : e->stored;
            heft_out_u32(&o, (uint32_t)n);
            if (form & 1 || n > UINT32_MAX) /* larger numbers need 64 bits in any form */
                heft_out_u32(&o, (uint32_t)(n >> 32));
        }
        if (o.len <= have && !memcmp(p, buf, o.len)) {
            e->end += o.len;
            return HEFT_OK;
        }
    }
    return heft_error_set(r->in->err, HEFT_E_FORMAT, e->end,
                          "zip: member %q: the data descriptor does not match the directory",
                          e->name);
}

/* Read a local header; *data becomes the offset of the data, *name_at that of the name. */
static heft_status read_local(const reader *r, header *h, heft_range where, heft_str *name,
                              uint64_t *name_at, uint64_t *data)
{
    heft_cur c = heft_cur_open(r->in, where.offset, where.length, "zip: the header of a member");
    uint32_t sign = heft_cur_u32(&c);
    read_common(&c, h);
    h->head = 0;
    *name_at = heft_cur_pos(&c);
    *name = (heft_str){ (const char *)heft_cur_take(&c, h->name), h->name };
    uint64_t extra = heft_cur_pos(&c);
    if (!c.st && sign != SIGN_MEMBER)
        return heft_error_set(r->in->err, HEFT_E_FORMAT, where.offset,
                              "zip: there is no local header at %U", where.offset);
    heft_cur_take(&c, h->extra);
    *data = heft_cur_pos(&c);
    return c.st ? c.st : read_extra(r, h, extra, *name);
}

heft_status heft_zip_read_local(heft_zip_entry *e, heft_window *in, heft_range where)
{
    const reader r = { .in = in };
    header h;
    HEFT_TRY(read_local(&r, &h, where, &e->name, &e->name_at, &e->data));
    e->head = where.offset;
    set_common(e, &h);
    return check_name(&r, e->name, e->name_at);
}

static heft_status read_member(const reader *r, heft_zip_entry *e)
{
    uint64_t limit = r->z->directory.offset, name_at;
    if (!heft_range_in((heft_range){ e->head, MEMBER }, limit))
        return heft_error_set(r->in->err, HEFT_E_FORMAT, e->name_at,
                              "zip: member %q cannot begin at %U, the directory is at %U", e->name,
                              e->head, limit);
    header h;
    heft_str name;
    HEFT_TRY(
        read_local(r, &h, (heft_range){ e->head, limit - e->head }, &name, &name_at, &e->data));
    HEFT_TRY(check_header(r, &h, e, name));
    if (!heft_range_in((heft_range){ e->data, e->stored }, limit))
        return heft_error_set(r->in->err, HEFT_E_FORMAT, e->head,
                              "zip: member %q: %U bytes at %U extend past the directory at %U",
                              e->name, e->stored, e->data, limit);
    e->end = e->data + e->stored;
    return e->is_described ? read_descriptor(r, e) : HEFT_OK;
}

/* Read all local headers that are available.  Request missing headers from the window, a single
 * request for members close to each other, and return HEFT_AGAIN. */
static heft_status read_members(const reader *r)
{
    enum { NEAR = 64 << 10, HEAD = 512 };
    const heft_zip *z = r->z;
    const heft_zip_entry *previous = NULL;
    uint64_t from = 0, to = 0; /* pending request; to == 0: none */
    bool again = false;
    for (uint32_t i = 0; i < z->count; i++) {
        heft_zip_entry *e = &z->entries[z->by_offset[i]];
        if (to && e->head - from <= to - from + NEAR) {
            to = e->head + HEAD;
            continue;
        }
        if (to)
            r->in->need(r->in, from, to - from);
        to = 0;
        heft_status st = read_member(r, e);
        if (st == HEFT_AGAIN) {
            again = true;
            from = e->head;
            to = from + HEAD;
        } else if (st) {
            return st;
        } else if (previous && previous->end > e->head) {
            return heft_error_set(r->in->err, HEFT_E_FORMAT, e->head,
                                  "zip: members %q and %q overlap", previous->name, e->name);
        } else {
            previous = e;
        }
    }
    if (to)
        r->in->need(r->in, from, to - from);
    return again ? HEFT_AGAIN : HEFT_OK;
}

/* ---- the archive ---- */

static bool offset_below(const void *ctx, uint32_t a, uint32_t b)
{
    const heft_zip_entry *entries = ctx;
    return entries[a].head < entries[b].head;
}

static bool name_below(const void *ctx, uint32_t a, uint32_t b)
{
    const heft_zip_entry *entries = ctx;
    return heft_str_order(entries[a].name, entries[b].name) < 0;
}

/* The directory, with at least 46 bytes and a name per entry, was already read: memory stays
 * proportional to the file. */
static heft_status allocate_entries(const reader *r, heft_arena *arena, uint64_t entries)
{
    heft_zip *z = r->z;
    uint64_t bytes = 0;
    if (entries < UINT32_MAX && heft_mul(&bytes, entries, sizeof *z->entries) &&
        bytes <= SIZE_MAX) {
        z->count = (uint32_t)entries;
        z->entries = heft_arena_alloc(arena, (size_t)bytes, 8);
        z->by_offset = heft_arena_alloc(arena, 2 * (size_t)z->count * sizeof *z->by_offset, 4);
    }
    if (!z->entries || !z->by_offset)
        return heft_error_set(r->in->err, HEFT_E_NOMEM, z->directory.offset,
                              "zip: no memory for the entries of %U members", entries);
    memset(z->entries, 0, (size_t)bytes);
    return HEFT_OK;
}

heft_status heft_zip_sort(const heft_zip *z, heft_error *err)
{
    heft_sort_numbers(z->by_offset, z->count, name_below, z->entries);
    for (uint32_t i = 1; i < z->count; i++) {
        const heft_zip_entry *e = &z->entries[z->by_offset[i]];
        if (heft_str_eq(e->name, z->entries[z->by_offset[i - 1]].name))
            return heft_error_set(err, HEFT_E_FORMAT, e->name_at,
                                  "zip: two members have the name %q", e->name);
    }
    heft_sort_numbers(z->by_offset, z->count, offset_below, z->entries);
    return HEFT_OK;
}

heft_status heft_zip_open(heft_zip *out, heft_window *in, heft_arena *arena, bool takes_opaque)
{
    *out = (heft_zip){ 0 };
    reader r = { .in = in, .z = out, .takes_opaque = takes_opaque };
    uint64_t entries = 0;
    HEFT_TRY(heft_zip_find_directory(out, in, &entries));
    heft_cur c;
    c = heft_cur_whole(in, out->directory.offset, out->directory.length,
                       "zip: the central directory");
    HEFT_TRY(c.st);
    if (entries)
        HEFT_TRY(allocate_entries(&r, arena, entries));
    for (uint32_t i = 0; i < out->count; i++)
        HEFT_TRY(read_entry(&r, &c, &out->entries[i]));
    if (heft_cur_left(&c))
        return heft_error_set(r.in->err, HEFT_E_FORMAT, heft_cur_pos(&c),
                              "zip: %U unexpected bytes after the last entry of the directory",
                              heft_cur_left(&c));
    if (entries)
        HEFT_TRY(heft_zip_sort(out, in->err));
    return read_members(&r);
}

heft_str heft_zip_first_name(int *bits, const uint8_t *head, size_t len)
{
    enum { SURE = 32 };
    const heft_str none = { "", 0 };
    *bits = 0;
    if (len < 4)
        return none;
    uint32_t sign = heft_le32(head);
    *bits = sign == SIGN_MEMBER || sign == SIGN_END ? SURE : 0;
    if (sign != SIGN_MEMBER || len <= MEMBER)
        return none;
    size_t name = heft_le16(head + MEMBER - 4), left = len - MEMBER;
    return (heft_str){ (const char *)head + MEMBER, name < left ? name : left };
}
