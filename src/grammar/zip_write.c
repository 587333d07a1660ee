/* zip_write.c - writes the records of a zip archive; zip.c shows the layout. */
#include "base/crc.h"
#include "base/text.h"
#include "grammar/zip.h"

enum {
    VERSION = 20,       /* version needed for deflate and data descriptors */
    VERSION_ZIP64 = 45, /* version needed for 64-bit numbers */
    UNIX = 3 << 8,      /* external attributes are Unix modes */
    READ_WRITE = 0600,
    DATE = 0x21,       /* 1 January 1980, the earliest date: output does not depend on a clock */
    FLAGS = 8,         /* a descriptor follows */
    FLAG_UTF8 = 0x800, /* the name is not ASCII */
    EXTRA_ZIP64 = 1,
    EXTRA_ALIGN = 0xD935 /* padding, as written by Android's zipalign */
};

static bool is_wide(uint64_t n)
{
    return n >= UINT32_MAX;
}

static uint64_t stored(const heft_zip_member *m)
{
    return m->is_deflated ? m->deflated : m->size;
}

/* Return true if the sizes need 64 bits; both sizes are then written with 64 bits. */
static bool has_wide_size(const heft_zip_member *m)
{
    return is_wide(m->size) || is_wide(stored(m));
}

static uint32_t narrow(uint64_t n)
{
    return is_wide(n) ? UINT32_MAX : (uint32_t)n;
}

static void put_common(heft_out *o, const heft_zip_member *m, bool wide)
{
    bool ascii = heft_is_ascii(m->name.ptr, m->name.len);
    heft_out_u16(o, wide ? VERSION_ZIP64 : VERSION);
    heft_out_u16(o, (uint16_t)(FLAGS | (ascii ? 0 : FLAG_UTF8)));
    heft_out_u16(o, m->is_deflated ? HEFT_ZIP_DEFLATED : HEFT_ZIP_STORED);
    heft_out_u16(o, 0);
    heft_out_u16(o, DATE);
}

static heft_status add_crc(void *ctx, uint64_t at, const void *data, size_t len)
{
    uint32_t *crc = ctx;
    (void)at;
    *crc = heft_crc32(*crc, data, len);
    return HEFT_OK;
}

heft_out heft_zip_crc_out(uint8_t *buf, size_t cap, uint32_t *crc)
{
    return (heft_out){ .buf = buf, .cap = cap, .flush = add_crc, .ctx = crc };
}

/* §4.4.4: with a data descriptor, checksum and sizes are zero here.  The zip64 field announces
 * 64-bit sizes in the descriptor. */
void heft_zip_put_header(heft_out *o, const heft_zip_member *m)
{
    bool wide = has_wide_size(m);
    uint32_t size = wide ? UINT32_MAX : 0;
    heft_out_u32(o, SIGN_MEMBER);
    put_common(o, m, wide);
    heft_out_u32(o, 0);
    heft_out_u32(o, size);
    heft_out_u32(o, size);
    heft_out_u16(o, (uint16_t)m->name.len);
    heft_out_u16(o, (uint16_t)(m->extra + (wide ? 20 : 0)));
    heft_out_str(o, m->name);
    if (wide) {
        heft_out_u16(o, EXTRA_ZIP64);
        heft_out_u16(o, 16);
        heft_out_u64(o, 0);
        heft_out_u64(o, 0);
    }
    if (!m->extra)
        return;
    heft_out_u16(o, EXTRA_ALIGN);
    heft_out_u16(o, (uint16_t)(m->extra - 4));
    heft_out_u16(o, 0);
    heft_out_fill(o, 0, m->extra - HEFT_ZIP_EXTRA);
}

static void put_size(heft_out *o, uint64_t n, bool wide)
{
    if (wide)
        heft_out_u64(o, n);
    else
        heft_out_u32(o, (uint32_t)n);
}

void heft_zip_put_descriptor(heft_out *o, const heft_zip_member *m)
{
    heft_out_u32(o, SIGN_DESCRIPTOR);
    heft_out_u32(o, m->crc);
    put_size(o, stored(m), has_wide_size(m));
    put_size(o, m->size, has_wide_size(m));
}

void heft_zip_put_entry(heft_out *o, const heft_zip_member *m)
{
    bool wide = has_wide_size(m), is_far = is_wide(m->head);
    uint32_t bytes = (wide ? 16u : 0) + (is_far ? 8u : 0);
    heft_out_u32(o, SIGN_ENTRY);
    heft_out_u16(o, UNIX | VERSION_ZIP64);
    put_common(o, m, wide || is_far);
    heft_out_u32(o, m->crc);
    heft_out_u32(o, wide ? UINT32_MAX : (uint32_t)stored(m));
    heft_out_u32(o, wide ? UINT32_MAX : (uint32_t)m->size);
    heft_out_u16(o, (uint16_t)m->name.len);
    heft_out_u16(o, (uint16_t)(bytes ? bytes + 4 : 0));
    heft_out_fill(o, 0, 6); /* comment, disk, internal attributes */
    heft_out_u32(o, (uint32_t)READ_WRITE << 16);
    heft_out_u32(o, narrow(m->head));
    heft_out_str(o, m->name);
    if (!bytes)
        return;
    heft_out_u16(o, EXTRA_ZIP64);
    heft_out_u16(o, (uint16_t)bytes);
    if (wide) {
        heft_out_u64(o, m->size); /* §4.5.3: the original size comes first */
        heft_out_u64(o, stored(m));
    }
    if (is_far)
        heft_out_u64(o, m->head);
}

void heft_zip_put_end(heft_out *o, uint64_t members, heft_range directory)
{
    enum { REMAINING_BYTES = 44 };
    bool is_many = members >= UINT16_MAX;
    uint16_t count = is_many ? UINT16_MAX : (uint16_t)members;
    if (is_many || is_wide(directory.offset) || is_wide(directory.length)) {
        heft_out_u32(o, SIGN_END64);
        heft_out_u64(o, REMAINING_BYTES);
        heft_out_u16(o, UNIX | VERSION_ZIP64);
        heft_out_u16(o, VERSION_ZIP64);
        heft_out_u64(o, 0); /* disks */
        heft_out_u64(o, members);
        heft_out_u64(o, members);
        heft_out_u64(o, directory.length);
        heft_out_u64(o, directory.offset);
        heft_out_u32(o, SIGN_LOCATOR);
        heft_out_u32(o, 0);
        heft_out_u64(o, directory.offset + directory.length);
        heft_out_u32(o, 1);
    }
    heft_out_u32(o, SIGN_END);
    heft_out_u32(o, 0);
    heft_out_u16(o, count);
    heft_out_u16(o, count);
    heft_out_u32(o, narrow(directory.length));
    heft_out_u32(o, narrow(directory.offset));
    heft_out_u16(o, 0);
}
