/* embd.c - reads EMBD .weights files in the specified layout:
 *    0  "EMBD"   4  u16 1, u16 minor   8  u32 flags
 *   12  u32 offset and size of the metadata       20  u32 offset and size of the vocabulary
 *   28  u32 offset of the index   32  u32 tensors   36  u32 offset, u64 size of the data
 *   48  u64 size of the file   56  u32 CRC-32 of [0, 56)   60  u32 0
 *       metadata: u32 entries, u32 bytes of entries; u16 key length, u16 value length, key, value
 *       vocabulary: embd_vocab.c
 *       index: per tensor u32 FNV-1a of the name, u8 element type, u8 rank, u16 name length,
 *              u32 shape[4], u64 offset in the data; then the names, without gaps
 *       data, each tensor at a multiple of 64
 *  -16  u32 CRC-32 of the data, u32 CRC-32 of all bytes before the footer, "DBME", u32 0
 *
 * The header gives the offset of each section, so sections may come in any order.  EMBD's own
 * programs use a different layout with the same magic: embd_simple.c.
 */
#include "format/embd/embd.h"

#include "base/crc.h"
#include "model/values.h"

enum { SECTIONS = 5 };

static heft_status check_gap(heft_check *c, uint64_t from, uint64_t to)
{
    heft_range gap = { from, to - from };
    return from < to ? c->padding(c, "embd/padding", HEFT_WARNING, gap, 0) : HEFT_OK;
}

/* Compute the ranges of the sections again from the header and the names, as in
 * parse_specified(). */
static heft_status find_sections(heft_check *c, heft_range out[SECTIONS])
{
    uint8_t h[HEFT_EMBD_HEADER] = { 0 }, total[4] = { 0 };
    heft_status st = c->read(c, 0, h, sizeof h);
    uint64_t meta = heft_le32(h + 12), index = 0;
    if (!st && heft_le32(h + 16))
        st = c->read(c, meta + 4, total, sizeof total);
    if (st)
        return st;
    for (uint32_t t = 0; t < heft_ix_tensors(c->x); t++) {
        const heft_ix_tensor_row *row = heft_ix_row(c->x, t);
        uint64_t data = heft_ix_part_row_at(c->x, row->first_part)->offset;
        if (!heft_global_offset_file(c->x, data))
            index += HEFT_EMBD_DESCRIPTOR + (uint64_t)row->name_len;
    }
    out[0] = (heft_range){ 0, HEFT_EMBD_HEADER };
    out[1] = (heft_range){ meta, heft_le32(h + 16)
                                     ? HEFT_EMBD_META_HEADER + (uint64_t)heft_le32(total)
                                     : 0 };
    out[2] = (heft_range){ heft_le32(h + 20), heft_le32(h + 24) };
    out[3] = (heft_range){ heft_le32(h + 28), index };
    out[4] = (heft_range){ heft_le32(h + 36), heft_le64(h + 40) };
    return HEFT_OK;
}

static void sort_sections(heft_range s[SECTIONS])
{
    for (unsigned i = 1; i < SECTIONS; i++)
        for (unsigned k = i; k && s[k].offset < s[k - 1].offset; k--) {
            heft_range swap = s[k];
            s[k] = s[k - 1];
            s[k - 1] = swap;
        }
}

static heft_status check_data(heft_check *c, heft_range data)
{
    const uint32_t *order;
    uint64_t data_end = data.offset; /* of the parts so far */
    uint32_t count;
    heft_status st = c->order(c, &order, &count);
    for (uint32_t i = 0; !st && i < count; i++) {
        const heft_ix_part_row *part = heft_ix_part_row_at(c->x, order[i]);
        uint64_t end = part->offset + part->stored;
        if (order[i] >= c->x->parts.len)
            continue; /* the vocabulary is a part of the file, not of a tensor */
        st = check_gap(c, data_end, part->offset);
        data_end = end > data_end ? end : data_end;
    }
    return st ? st : check_gap(c, data_end, data.offset + data.length);
}

static heft_status embd_check(heft_check *c)
{
    heft_range s[SECTIONS] = { { 0, 0 } };
    uint64_t section_end = 0;
    if (heft_str_is(c->x->version, heft_embd_simple_version))
        return HEFT_OK;
    HEFT_TRY(find_sections(c, s));
    heft_range data = s[SECTIONS - 1];
    sort_sections(s);
    heft_status st = HEFT_OK;
    for (unsigned i = 0; i < SECTIONS && !st; i++) {
        if (!s[i].length)
            continue;
        st = check_gap(c, section_end, s[i].offset);
        section_end = s[i].offset + s[i].length;
    }
    if (!st)
        st = check_gap(c, section_end, c->size - HEFT_EMBD_FOOTER);
    return st ? st : check_data(c, data);
}

enum {
    HEADER = HEFT_EMBD_HEADER,
    FOOTER = HEFT_EMBD_FOOTER,
    DESCRIPTOR = HEFT_EMBD_DESCRIPTOR,
    RANK = HEFT_EMBD_RANK,
    CHECKED = HEFT_EMBD_CHECKED,
    META_HEADER = HEFT_EMBD_META_HEADER,
    CHECKSUMS = 3, /* header, data and file */
    KNOWN_FLAGS = 15
};

typedef struct layout {
    uint32_t flags, minor, tensors;
    heft_range meta, vocab, index, data; /* the names belong to the index */
    uint64_t footer;                     /* offset in the file */
} layout;

/* ---- header and footer ---- */

static heft_status fail(heft_index *x, uint64_t at, const char *what)
{
    return heft_error_set(x->err, HEFT_E_FORMAT, at, "%s", what);
}

static heft_status check_header(heft_index *x, const uint8_t *h, const layout *l)
{
    if (heft_le16(h + 4) != 1)
        return heft_error_set(x->err, HEFT_E_FORMAT, 4, "version %U.%U is not 1.x",
                              (uint64_t)heft_le16(h + 4), (uint64_t)l->minor);
    if (heft_le64(h + 48) != x->file_bytes)
        return heft_error_expect(x->err,
                                 heft_error_set(x->err, HEFT_E_FORMAT, 48,
                                                "the file has %U bytes, the header says %U",
                                                x->file_bytes, heft_le64(h + 48)),
                                 heft_le64(h + 48), 0);
    if (heft_le32(h + 60)) {
        heft_ix_omit(x, HEFT_WARNING, "embd/reserved", (heft_str){ NULL, 0 },
                     "nonzero reserved bytes of the header are reset to 0");
        heft_ix_note(x, HEFT_WARNING, "embd/reserved", 60, HEFT_NONE,
                     "reserved bytes of the header are not 0");
    }
    x->has_omissions = x->has_omissions || l->minor;
    x->format_private = l->flags;
    if (l->minor)
        heft_ix_note(x, HEFT_WARNING, "embd/minor", 6, HEFT_NONE,
                     "the minor version is above 0: the file may contain more than is read");
    if (l->flags & ~(uint32_t)KNOWN_FLAGS)
        return heft_error_set(x->err, HEFT_E_FORMAT, 8,
                              "reserved flags are set (0x%X), they must be zero",
                              (uint64_t)l->flags);
    if (l->flags & HEFT_EMBD_COMPRESSED)
        return fail(x, 8,
                    "unsupported: the data are flagged as compressed, but the specification "
                    "defines no compression");
    if (l->flags & HEFT_EMBD_VOCAB && !l->vocab.length)
        return fail(x, 24, "the flags announce a vocabulary, but the vocabulary section is empty");
    if (!(l->flags & HEFT_EMBD_VOCAB) && l->vocab.length)
        heft_ix_note(x, HEFT_WARNING, "embd/vocab-flag", 8, HEFT_NONE,
                     "there is a vocabulary, but the flag for a vocabulary is not set");
    return HEFT_OK;
}

static heft_status check_footer(heft_index *x, const uint8_t *f, const layout *l)
{
    if (memcmp(f + 8, "DBME", 4) != 0)
        return fail(x, l->footer + 8, "the footer does not end with 'DBME'");
    if (heft_le32(f + 12)) {
        heft_ix_omit(x, HEFT_WARNING, "embd/reserved", (heft_str){ NULL, 0 },
                     "nonzero reserved bytes of the footer are reset to 0");
        heft_ix_note(x, HEFT_WARNING, "embd/reserved", l->footer + 12, HEFT_NONE,
                     "reserved bytes of the footer are not 0");
    }
    if (l->data.length && l->data.offset + l->data.length < l->footer)
        heft_ix_note(x, HEFT_WARNING, "embd/footer", l->footer, HEFT_NONE,
                     "the footer does not follow the data");
    return HEFT_OK;
}

/* Add a checksum.  Without the flag HEFT_EMBD_CHECKSUMS the field should be 0, and a nonzero value
 * is advisory: a mismatch is only a warning. */
static heft_status add_checksum(heft_index *x, const layout *l, const char *rule, heft_range range,
                                const uint8_t *stored)
{
    heft_stored_checksum c = { .rule = rule,
                               .algorithm = "crc32",
                               .range = { range },
                               .tensor = HEFT_NONE,
                               .advisory = !(l->flags & HEFT_EMBD_CHECKSUMS),
                               .at_open = rule == heft_embd_header_crc };
    memcpy(c.expect, stored, 4);
    return c.advisory && !heft_le32(stored) ? HEFT_OK : heft_ix_checksum(x, c);
}

/* ---- metadata ---- */

/* Correct section->length if the file counts the entries only, without the 8 bytes before the
 * entries. */
static heft_status read_metadata(heft_window *in, heft_index *x, heft_range *section)
{
    if (!section->length)
        return HEFT_OK;
    heft_cur c = heft_cur_whole(in, section->offset, META_HEADER, "the metadata");
    uint64_t entries = heft_cur_u32(&c), total = heft_cur_u32(&c);
    if (c.st)
        return c.st;
    if (section->length != META_HEADER + total && section->length != total)
        return heft_error_set(x->err, HEFT_E_FORMAT, section->offset + 4,
                              "the metadata section has %U bytes, but total_size is %U",
                              section->length, total);
    if (entries * HEFT_EMBD_META_ENTRY > total)
        return heft_error_set(x->err, HEFT_E_FORMAT, section->offset,
                              "%U metadata entries do not fit into %U bytes", entries, total);
    section->length = META_HEADER + total;
    c = heft_cur_whole(in, section->offset + META_HEADER, total, "the metadata");
    HEFT_TRY(c.st);
    for (uint64_t i = 0; i < entries; i++) {
        uint16_t key_len = heft_cur_u16(&c), value_len = heft_cur_u16(&c);
        heft_str key = heft_cur_text(&c, key_len, "a metadata key");
        heft_str value = heft_cur_text(&c, value_len, "a metadata value");
        HEFT_TRY(c.st ? c.st : heft_ix_meta_text(x, key, value));
    }
    if (heft_cur_left(&c))
        return heft_cur_fail(&c, "the metadata entries end here, but according to total_size at %U",
                             section->offset + section->length);
    return heft_meta_unique(x, "the metadata");
}

/* ---- the index ---- */

static heft_status read_shape(heft_index *x, heft_str name, uint64_t at, const uint8_t *d,
                              uint64_t *dims, uint32_t rank)
{
    for (uint32_t i = 0; i < RANK; i++) {
        uint64_t dim = heft_le32(d + 8 + 4 * i);
        if (i < rank ? !dim : dim)
            return heft_error_set(x->err, HEFT_E_FORMAT, at + 8 + 4 * (uint64_t)i,
                                  "tensor %q: dimension %U is %U in a tensor of %U dimensions",
                                  name, (uint64_t)i, dim, (uint64_t)rank);
        if (i < rank)
            dims[i] = dim;
    }
    return HEFT_OK;
}

static heft_status check_descriptor(heft_index *x, uint64_t at, const uint8_t *d, heft_str name)
{
    heft_status st = HEFT_OK;
    if (heft_str_fnv1a(name) != heft_le32(d))
        st = heft_error_set(x->err, HEFT_E_FORMAT, at,
                            "tensor %q: the hash of the name is 0x%X, but 0x%X is stored", name,
                            (uint64_t)heft_str_fnv1a(name), (uint64_t)heft_le32(d));
    st = heft_ix_forgive(x, st, "name-hash");
    if (st)
        return st;
    if (d[4] >= HEFT_EMBD_TYPES)
        return heft_error_set(x->err, HEFT_E_FORMAT, at + 4,
                              "tensor %q: element type %U is unknown (0 to 8 are known)", name,
                              (uint64_t)d[4]);
    if (!d[5] || d[5] > RANK)
        return heft_error_set(x->err, HEFT_E_FORMAT, at + 5, "tensor %q: rank is %U, not 1 to 4",
                              name, (uint64_t)d[5]);
    return HEFT_OK;
}

static heft_status read_tensor(heft_index *x, const layout *l, uint64_t at, const uint8_t *d,
                               heft_str name)
{
    uint64_t *dims, offset = heft_le64(d + 24);
    uint32_t id;
    HEFT_TRY(check_descriptor(x, at, d, name));
    HEFT_TRY(heft_ix_tensor(x, name, heft_embd_types[d[4]], d[5], &dims, &id));
    HEFT_TRY(read_shape(x, name, at, d, dims, d[5]));
    if (offset > l->data.length)
        return heft_error_set(x->err, HEFT_E_FORMAT, at + 24,
                              "tensor %q: its data begin at %U, after the end of all data at %U",
                              name, offset, l->data.length);
    HEFT_TRY(heft_ix_dense(x, id, at, l->data.offset + offset, HEFT_UNKNOWN_LENGTH));
    /* Every tensor has a single part, so part and tensor numbers are equal. */
    uint64_t length = heft_ix_part_row_at(x, id)->length;
    if (length > l->data.length - offset)
        return heft_error_set(x->err, HEFT_E_FORMAT, at + 24,
                              "tensor %q: %U bytes at %U exceed the end of the data at %U", name,
                              length, offset, l->data.length);
    heft_status st = HEFT_OK;
    if (l->flags & HEFT_EMBD_ALIGNED && offset % HEFT_EMBD_ALIGN)
        st = heft_error_set(x->err, HEFT_E_FORMAT, at + 24,
                            "tensor %q: its data at %U are not aligned to 64 bytes, contrary to "
                            "the flags",
                            name, offset);
    st = heft_ix_forgive(x, st, "alignment");
    if (st)
        return st;
    heft_ix_row(x, id)->flags |= HEFT_T_NAME_HASH;
    if (!name.len)
        heft_ix_note(x, HEFT_WARNING, "embd/empty-name", at, id, "its name is empty");
    return HEFT_OK;
}

/* Read the index and set l->index.length, which depends on the name lengths in the
 * descriptors. */
static heft_status read_index(heft_window *in, heft_index *x, layout *l)
{
    uint64_t at = l->index.offset, left = l->footer > at ? l->footer - at : 0;
    uint64_t bytes = (uint64_t)l->tensors * DESCRIPTOR;
    HEFT_TRY(heft_ix_reserve(x, 32, l->tensors, left, DESCRIPTOR));
    heft_cur d = heft_cur_whole(in, at, bytes, "the index"), lengths = d;
    l->index.length = bytes;
    for (uint32_t i = 0; i < l->tensors; i++) {
        const uint8_t *p = heft_cur_take(&lengths, DESCRIPTOR);
        l->index.length += p ? heft_le16(p + 6) : 0;
    }
    if (d.st)
        return d.st;
    heft_cur names = heft_cur_whole(in, at + bytes, l->index.length - bytes, "the names");
    HEFT_TRY(names.st);
    for (uint32_t i = 0; i < l->tensors; i++) {
        at = heft_cur_pos(&d);
        const uint8_t *p = heft_cur_take(&d, DESCRIPTOR);
        if (!p)
            return d.st;
        heft_str name = heft_cur_text(&names, heft_le16(p + 6), "a tensor's name");
        HEFT_TRY(names.st ? names.st : read_tensor(x, l, at, p, name));
    }
    return HEFT_OK;
}

/* ---- sections and payloads ---- */

static heft_status check_sections(heft_index *x, const layout *l)
{
    const struct {
        const char *name;
        heft_range range;
        unsigned field; /* offset of the range in the header */
    } sections[] = {
        { "the header", { 0, HEADER }, 0 }, { "the metadata", l->meta, 12 },
        { "the vocabulary", l->vocab, 20 }, { "the index", l->index, 28 },
        { "the data", l->data, 36 },        { "the footer", { l->footer, FOOTER }, 0 },
    };
    enum { COUNT = sizeof sections / sizeof *sections };
    for (unsigned i = 0; i < COUNT; i++) {
        heft_range b = sections[i].range;
        if (!b.length)
            continue;
        if (!heft_range_in(b, x->file_bytes))
            return heft_error_set(x->err, HEFT_E_FORMAT, sections[i].field,
                                  "%s: %U bytes at %U exceed the end of the file at %U",
                                  sections[i].name, b.length, b.offset, x->file_bytes);
        for (unsigned k = 0; k < i; k++) {
            heft_range a = sections[k].range;
            uint64_t a_end = a.offset + a.length, b_end = b.offset + b.length;
            if (a.length && a_end > b.offset && b_end > a.offset)
                return heft_error_set(x->err, HEFT_E_FORMAT, a.offset,
                                      "%s, at %U to %U, and %s, at %U to %U, overlap",
                                      sections[k].name, a.offset, a_end, sections[i].name, b.offset,
                                      b_end);
        }
    }
    return HEFT_OK;
}

static heft_status check_payloads(heft_index *x, const layout *l)
{
    uint64_t previous_end = 0;
    bool is_ascending = true;
    if (l->flags & HEFT_EMBD_ALIGNED && l->tensors && l->data.offset % HEFT_EMBD_ALIGN)
        heft_ix_note(x, HEFT_WARNING, "embd/align", l->data.offset, HEFT_NONE,
                     "offsets within the data are multiples of 64, but the data section does not "
                     "begin at a multiple of 64");
    for (uint32_t i = 0; i < x->parts.len && is_ascending; i++) {
        const heft_ix_part_row *part = heft_ix_part_row_at(x, i);
        is_ascending = part->offset >= previous_end;
        previous_end = part->offset + part->stored;
    }
    if (is_ascending)
        return HEFT_OK;
    return heft_ix_note_overlaps(x, "embd/overlap", "its data overlap with another tensor's",
                                 false);
}

/* ---- parsing ---- */

static heft_status parse_specified(heft_window *in, heft_index *x, const uint8_t *h,
                                   const uint8_t *f)
{
    layout l = {
        .flags = heft_le32(h + 8),
        .minor = heft_le16(h + 6),
        .tensors = heft_le32(h + 32),
        .meta = { heft_le32(h + 12), heft_le32(h + 16) },
        .vocab = { heft_le32(h + 20), heft_le32(h + 24) },
        .index = { heft_le32(h + 28), 0 },
        .data = { heft_le32(h + 36), heft_le64(h + 40) },
        .footer = in->size - FOOTER,
    };
    char version[24] = "1.";
    HEFT_TRY(check_header(x, h, &l));
    HEFT_TRY(check_sections(x, &l));
    HEFT_TRY(check_footer(x, f, &l));
    HEFT_TRY(read_metadata(in, x, &l.meta));
    if (l.vocab.length)
        HEFT_TRY(heft_embd_read_vocab(in, x, l.vocab));
    HEFT_TRY(read_index(in, x, &l));
    HEFT_TRY(check_sections(x, &l)); /* again: the lengths of metadata and index are known now */
    HEFT_TRY(check_payloads(x, &l));
    if (!heft_vec_reserve(&x->mem, &x->checksums, CHECKSUMS, sizeof(heft_stored_checksum)))
        HEFT_TRY(heft_ix_no_memory(x));
    HEFT_TRY(add_checksum(x, &l, heft_embd_header_crc, (heft_range){ 0, CHECKED }, h + CHECKED));
    HEFT_TRY(add_checksum(x, &l, heft_embd_data_crc, l.data, f));
    HEFT_TRY(add_checksum(x, &l, heft_embd_file_crc, (heft_range){ 0, l.footer }, f + 4));
    heft_str text = { version, 2 + heft_u64_text(version + 2, l.minor) };
    x->version = l.minor ? heft_ix_copy(x, text) : heft_lit(heft_embd_version);
    return x->version.ptr ? HEFT_OK : HEFT_E_NOMEM;
}

/* The file size, the header's checksum and the footer's magic each identify the specified layout.
 * Two matches are enough, or one and a possible offset of the metadata, so that a damaged file gets
 * the errors of the right layout.  A simple stream may have such bytes of a tensor, too; there the
 * length of the first name is at the place of that offset.  *matches is the number of matches. */
static bool is_specified(int *matches, const uint8_t *h, const uint8_t *f, uint64_t size)
{
    uint32_t metadata = heft_le32(h + 12);
    *matches = (heft_le64(h + 48) == size) + (heft_crc32(0, h, CHECKED) == heft_le32(h + CHECKED)) +
               !memcmp(f + 8, "DBME", 4);
    return *matches > 1 || (*matches && metadata >= HEADER && metadata <= size);
}

static heft_status embd_parse(heft_window *in, heft_index *x)
{
    heft_cur start = heft_cur_open(in, 0, 4, "the magic");
    const uint8_t *magic = heft_cur_take(&start, 4);
    if (!magic)
        return start.st;
    if (memcmp(magic, "EMBD", 4) != 0)
        return fail(x, 0, "the file does not begin with 'EMBD'");
    if (in->size < HEADER + FOOTER)
        return heft_embd_simple_parse(in, x, false);
    heft_cur head = heft_cur_whole(in, 0, HEADER, "the header");
    const uint8_t *h = heft_cur_take(&head, HEADER);
    if (!h)
        return head.st;
    heft_cur tail = heft_cur_whole(in, in->size - FOOTER, FOOTER, "the footer");
    const uint8_t *f = heft_cur_take(&tail, FOOTER);
    if (!f)
        return tail.st;
    int matches;
    return is_specified(&matches, h, f, in->size) ? parse_specified(in, x, h, f)
                                                  : heft_embd_simple_parse(in, x, matches);
}

/* ---- the format ---- */

static const heft_name_rules name_rules = { "embd/name", NULL, NULL, NULL };

const heft_format heft_format_embd = {
    .name = "embd",
    .title = "EMBD .weights",
    .structure_rule = "embd/structure",
    .suffixes = ".weights",
    .versions = "1.0 simple",
    .caps = HEFT_CAN_READ | HEFT_CAN_WRITE | HEFT_CAN_EDIT | HEFT_CAN_META | HEFT_CAN_VOCAB,
    .align = HEFT_EMBD_ALIGN,
    .magics = "EMBD",
    .parse = embd_parse,
    .name_rules = &name_rules,
    .check = embd_check,
};

const heft_format_writer heft_format_writer_embd = {
    .plan = heft_embd_plan,
    .write_header = heft_embd_write_header,
    .write_record_header = heft_embd_write_record_header,
    .write_trailer = heft_embd_write_trailer,
};
