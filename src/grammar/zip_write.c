/* zip_write.c - the records of an archive; zip.c shows their layout. */
#include "base/text.h"
#include "grammar/zip.h"
#include "grammar/zip_records.h"

enum {
    VERSION = 20,       /* of the specification, for directories and descriptors */
    VERSION_ZIP64 = 45, /* … and for wide numbers */
    UNIX = 3 << 8,      /* what the attributes are of */
    READ_WRITE = 0600,  /* … the owner's */
    DATE = 0x21,        /* 1 January 1980, the first there is: output knows no clock */
    FLAGS = 8,          /* a descriptor follows */
    FLAG_UTF8 = 0x800,  /* the name is not ASCII */
    EXTRA_ZIP64 = 1,
    EXTRA_ALIGN = 0xD935 /* a field of padding, as Android's tools write it */
};

static bool is_wide(uint64_t n)
{
    return n >= UINT32_MAX;
}

static uint64_t stored(const heft_zip_member *m)
{
    return m->is_deflated ? m->deflated : m->size;
}

/* Then both sizes are written with 64 bits. */
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

/* §4.4.4: with a descriptor to follow, checksum and sizes are zero here; the zip64 field says that the
 * descriptor's numbers are wide. */
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
    bool wide = has_wide_size(m), far = is_wide(m->head);
    uint32_t bytes = (wide ? 16u : 0) + (far ? 8u : 0);
    heft_out_u32(o, SIGN_ENTRY);
    heft_out_u16(o, UNIX | VERSION_ZIP64);
    put_common(o, m, wide || far);
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
        heft_out_u64(o, m->size); /* §4.5.3: here, this one first */
        heft_out_u64(o, stored(m));
    }
    if (far)
        heft_out_u64(o, m->head);
}

void heft_zip_put_end(heft_out *o, uint64_t members, heft_range directory)
{
    enum { BYTES_THAT_FOLLOW = 44 };
    bool many = members >= UINT16_MAX;
    uint16_t count = many ? UINT16_MAX : (uint16_t)members;
    if (many || is_wide(directory.offset) || is_wide(directory.length)) {
        heft_out_u32(o, SIGN_END64);
        heft_out_u64(o, BYTES_THAT_FOLLOW);
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
