/* gguf.c - the format GGUF, the files of ggml: parsing and verification.
 *
 *    0  "GGUF"   4  u32 version: 1, 2 or 3
 *    8  u64 tensors   16  u64 entries of metadata; both u32 in version 1
 *       entries: key, u32 kind, value (gguf_meta.c)
 *       tensors: name, u32 rank, u64 dimensions, the innermost first, u32 element type,
 *                u64 offset in the data, a multiple of the alignment
 *       zeros up to a multiple of the alignment, then the data
 *
 * Keys and names are texts: u64 length, bytes.  The alignment is the metadata value
 * "general.alignment", or 32. In version 1 lengths, counts and dimensions are u32.  A file of
 * version 3 may be big-endian throughout, which shows in the version field.  ggml requires the
 * data in the order of the tensors, each padded to the alignment.
 */
#include "format/gguf/gguf.h"

#include "format/losses.h"
#include "model/blocks.h"

enum {
    VERSION_OFFSET = 4,
    COUNTS_OFFSET = 8,
    MAX_VERSION = 3,
    U32_BYTES = 4, /* size of a kind, a rank or a type */
    OFFSET_BYTES = 8
};

/* ---- tensors ---- */

/* Check the number of elements, and that the innermost dimension holds whole blocks.  Set *bytes to
 * the size.  The size of an opaque tensor is unknown until all offsets are read: use one byte until
 * then, or none for an empty tensor. */
static heft_status check_shape(uint64_t *bytes, heft_gguf_reader *r, heft_str name, uint64_t at,
                               const uint64_t *dims, uint32_t rank, heft_dtype t)
{
    const heft_dtype_info *d = heft_dtype_get(t);
    uint64_t elements, inner = rank ? dims[rank - 1] : 1;
    if (!heft_product(&elements, dims, rank) || elements > INT64_MAX)
        return heft_error_set(r->x->err, HEFT_E_FORMAT, at,
                              "tensor %q: its shape has more than 2^63 - 1 elements", name);
    if (t && !heft_dtype_fills_blocks(t, inner))
        return heft_error_set(r->x->err, HEFT_E_FORMAT, at,
                              "tensor %q: rows of %U elements are not a multiple of the block size "
                              "of %s, %U",
                              name, inner, d->name, (uint64_t)d->block_elems);
    *bytes = elements > 0;
    if (t && !heft_dtype_bytes(bytes, t, elements))
        return heft_error_set(r->x->err, HEFT_E_FORMAT, at, "tensor %q: the shape passes 64 bits",
                              name);
    return HEFT_OK;
}

static heft_status read_shape(heft_gguf_reader *r, heft_str name, uint64_t *dims, uint32_t rank)
{
    for (uint32_t i = rank; i-- > 0;) {
        dims[i] = heft_gguf_read_length(r);
        if (!r->c.st && dims[i] > INT64_MAX)
            return heft_error_set(r->x->err, HEFT_E_FORMAT, r->field_offset,
                                  "tensor %q: dimension %U is %U, more than 2^63 - 1", name,
                                  (uint64_t)(rank - 1 - i), dims[i]);
    }
    return r->c.st;
}

/* Read ggml's number of an element type; *t is HEFT_UNTYPED if the type is newer than
 * heft_gguf_types. */
static heft_status read_type(heft_gguf_reader *r, heft_str name, heft_dtype *t, uint32_t *out)
{
    uint32_t number = heft_gguf_read_u32(r);
    *t = HEFT_UNTYPED;
    *out = number;
    if (r->c.st)
        return r->c.st;
    if (number > HEFT_GGUF_MAX_TYPE)
        return heft_error_set(r->x->err, HEFT_E_FORMAT, r->field_offset,
                              "tensor %q: element type %U is implausible (the limit is %U)", name,
                              (uint64_t)number, (uint64_t)HEFT_GGUF_MAX_TYPE);
    if (number >= HEFT_GGUF_TYPES && r->big_endian)
        return heft_error_set(r->x->err, HEFT_E_UNSUPPORTED, r->field_offset,
                              "tensor %q: element type %U is unknown (0 to %U are known), and "
                              "cannot be read from a big-endian file",
                              name, (uint64_t)number, (uint64_t)HEFT_GGUF_TYPES - 1);
    if (number >= HEFT_GGUF_TYPES)
        return HEFT_OK;
    *t = heft_gguf_types[number];
    if (!*t)
        return heft_error_set(r->x->err, HEFT_E_UNSUPPORTED, r->field_offset,
                              "tensor %q: element type %s is not supported: ggml has removed it",
                              name, heft_gguf_removed_type(number));
    if (r->big_endian && heft_dtype_get(*t)->block_elems > 1 && !heft_block_can_byteswap(*t))
        return heft_error_set(r->x->err, HEFT_E_UNSUPPORTED, r->field_offset,
                              "tensor %q: blocks of %s cannot be read from a big-endian file", name,
                              heft_dtype_name(*t));
    return HEFT_OK;
}

/* Read the range of a tensor with the size `bytes`, relative to the start of the data. */
static heft_status read_range(heft_gguf_reader *r, heft_str name, uint64_t bytes, uint64_t align,
                              heft_range *out)
{
    uint64_t offset = heft_gguf_read_u64(r), left = heft_cur_left(&r->c);
    if (r->c.st)
        return r->c.st;
    heft_status st = HEFT_OK;
    uint64_t aligned;
    if (!heft_gguf_align_up(&aligned, offset, align) || aligned != offset)
        st = heft_error_set(r->x->err, HEFT_E_FORMAT, r->field_offset,
                            "tensor %q: its offset %U is not a multiple of the alignment %U", name,
                            offset, align);
    if (heft_ix_forgive(r->x, st, "alignment"))
        return st;
    if (!heft_range_in((heft_range){ offset, bytes }, left))
        return heft_error_expect(
            r->x->err,
            heft_error_set(
                r->x->err, HEFT_E_FORMAT, r->field_offset,
                "tensor %q: its range of %U bytes at offset %U of the data passes the end "
                "of the file",
                name, bytes, offset),
            heft_cur_pos(&r->c) + offset, bytes);
    *out = (heft_range){ offset, bytes };
    return HEFT_OK;
}

static heft_status mark_opaque(heft_gguf_reader *r, uint32_t id, uint32_t number, uint64_t at)
{
    heft_status st = heft_ix_set_layout(r->x, id, heft_lit(heft_gguf_opaque));
    if (!r->has_opaque)
        heft_ix_note(
            r->x, HEFT_WARNING, "gguf/type", at, id,
            "its element type is unknown: the size of its data is derived from the offset of the "
            "next tensor (there may be more)");
    r->has_opaque = true;
    return st ? st : heft_gguf_set_type_number(r->x, id, number);
}

static heft_status read_tensor(heft_gguf_reader *r, uint64_t align)
{
    uint64_t dims[HEFT_GGUF_MAX_RANK], *to, bytes;
    heft_str name = heft_gguf_read_text(r, "a tensor's name");
    uint32_t rank = heft_gguf_read_u32(r), id, number = 0;
    heft_range where;
    heft_dtype t = HEFT_UNTYPED;
    uint64_t at = heft_cur_pos(&r->c);
    if (r->c.st)
        return r->c.st;
    if (rank > HEFT_GGUF_MAX_RANK)
        return heft_error_set(r->x->err, HEFT_E_FORMAT, r->field_offset,
                              "tensor %q: %U dimensions, at most 4 are allowed", name,
                              (uint64_t)rank);
    HEFT_TRY(read_shape(r, name, dims, rank));
    HEFT_TRY(read_type(r, name, &t, &number));
    HEFT_TRY(check_shape(&bytes, r, name, at, dims, rank, t));
    HEFT_TRY(read_range(r, name, bytes, align, &where));
    HEFT_TRY(heft_ix_tensor(r->x, name, t, rank, &to, &id));
    memcpy(to, dims, rank * sizeof *to);
    if (!t)
        HEFT_TRY(mark_opaque(r, id, number, at));
    HEFT_TRY(heft_ix_part(r->x, id, heft_lit("data"), t, where, where.length, HEFT_RAW));
    if (r->big_endian)
        heft_ix_part_row_at(r->x, id)->flags |= HEFT_P_BIG_ENDIAN;
    return HEFT_OK;
}

/* ---- offsets ---- */

/* Extend every opaque tensor to the start of the next tensor, or to the end of the file. */
static void size_opaque(heft_index *x, const uint32_t *order, uint32_t count)
{
    uint64_t end = x->file_bytes, begin = end;
    for (uint32_t i = count; i-- > 0;) {
        if (order[i] >= x->parts.len)
            continue; /* the vocabulary lies in the metadata */
        heft_ix_part_row *part = heft_ix_part_row_at(x, order[i]);
        end = part->offset < begin ? begin : end;
        begin = part->offset;
        if (!part->dtype)
            part->length = part->stored = end - begin;
    }
}

/* Make offsets absolute; `data` is the start of the data.  Tensor t has a single part, number t. */
static heft_status resolve_offsets(heft_gguf_reader *r, uint64_t data)
{
    heft_index *x = r->x;
    uint64_t end = data;
    bool ascending = !r->has_opaque;
    for (uint32_t t = 0; t < heft_ix_tensors(x); t++) {
        heft_ix_part_row *part = heft_ix_part_row_at(x, t);
        part->offset += data; /* no overflow: at most twice the file size */
        if (!heft_range_in((heft_range){ part->offset, part->length }, x->file_bytes))
            return heft_error_expect(
                x->err,
                heft_error_set(x->err, HEFT_E_FORMAT, part->offset,
                               "tensor %q: its %U bytes at offset %U pass the end of the file, %U",
                               heft_ix_name(x, t), part->length, part->offset, x->file_bytes),
                part->offset, part->length);
        ascending = ascending && part->offset >= end;
        end = part->offset + part->length;
    }
    if (ascending)
        return HEFT_OK;
    uint32_t *order = NULL, count = 0;
    heft_status st = heft_ix_order(x, &order, &count);
    if (!st && r->has_opaque)
        size_opaque(x, order, count);
    if (!st)
        st = heft_ix_refuse_overlap(x, order, count);
    heft_ix_order_free(x, order);
    return st;
}

/* ---- the header ---- */

static heft_status read_counts(heft_gguf_reader *r, uint64_t *tensors, uint64_t *entries)
{
    uint64_t min_entry_bytes = r->length_bytes + 1 + U32_BYTES + 1;
    *tensors = heft_gguf_read_length(r);
    *entries = heft_gguf_read_length(r);
    uint64_t left = heft_cur_left(&r->c), bytes;
    if (r->c.st)
        return r->c.st;
    if (!heft_mul(&bytes, *entries, min_entry_bytes) || bytes > left)
        return heft_error_set(r->x->err, HEFT_E_FORMAT, r->field_offset,
                              "%U entries of metadata do not fit into the %U bytes that are left",
                              *entries, left);
    return HEFT_OK;
}

/* Read the version and the byte order: a small big-endian number, read as little-endian, has a
 * zero low half. */
static heft_status read_version(heft_gguf_reader *r, const uint8_t *head)
{
    static const char *const names[] = { "1", "2", "3" };
    uint32_t version = heft_le32(head + VERSION_OFFSET);
    r->big_endian = version && !(version & 0xFFFF);
    if (r->big_endian)
        version = (uint32_t)head[VERSION_OFFSET + 2] << 8 | head[VERSION_OFFSET + 3];
    if (!version || (r->big_endian && version < MAX_VERSION))
        return heft_error_set(r->x->err, HEFT_E_FORMAT, VERSION_OFFSET,
                              "there is no%s version %U of GGUF",
                              r->big_endian ? " big-endian" : "", (uint64_t)version);
    if (version > MAX_VERSION)
        return heft_error_set(r->x->err, HEFT_E_UNSUPPORTED, VERSION_OFFSET,
                              "version %U is not supported (versions 1 to 3 are)",
                              (uint64_t)version);
    r->length_bytes = version == 1 ? 4 : 8;
    r->x->version = heft_lit(names[version - 1]);
    if (r->big_endian) /* register the omission even without tensors */
        heft_ix_omit(r->x, HEFT_NOTE, "gguf/big-endian", (heft_str){ NULL, 0 },
                     "big-endian numbers are written little-endian");
    if (r->big_endian)
        heft_ix_note(r->x, HEFT_NOTE, "gguf/big-endian", VERSION_OFFSET, HEFT_NONE,
                     "the file is big-endian");
    return HEFT_OK;
}

static heft_status gguf_parse(heft_window *in, heft_index *x)
{
    heft_gguf_reader r = { .c = heft_cur_open(in, 0, in->size, "the file"), .x = x };
    const uint8_t *head = heft_cur_take(&r.c, COUNTS_OFFSET);
    uint64_t tensors = 0, entries, align = 0, data;
    if (!head)
        return r.c.st;
    if (memcmp(head, "GGUF", VERSION_OFFSET) != 0)
        return heft_error_set(x->err, HEFT_E_FORMAT, 0,
                              "not a GGUF file: it does not begin with 'GGUF'");
    r.binary_start = r.c;
    HEFT_TRY(read_version(&r, head));
    HEFT_TRY(read_counts(&r, &tensors, &entries));
    HEFT_TRY(heft_gguf_read_metadata(&r, entries));
    align = heft_gguf_alignment(x);
    HEFT_TRY(heft_ix_reserve(x, COUNTS_OFFSET, tensors, heft_cur_left(&r.c),
                             r.length_bytes + U32_BYTES + U32_BYTES + OFFSET_BYTES));
    for (uint64_t i = 0; i < tensors; i++)
        HEFT_TRY(heft_gguf_explain_error(&r, read_tensor(&r, align)));
    x->data_start = heft_cur_pos(&r.c);
    if (!heft_gguf_align_up(&data, x->data_start, align))
        return heft_error_set(x->err, HEFT_E_FORMAT, x->data_start,
                              "the data begin past 2^64 bytes");
    HEFT_TRY(resolve_offsets(&r, data));
    HEFT_TRY(heft_gguf_read_split(x));
    return heft_attributes_from_metadata(x);
}

/* ---- unusual but allowed content ---- */

static const heft_name_rules name_rules = { "gguf/name", NULL, NULL, NULL };

/* Note content that Heft can read, but ggml cannot.  Tensor t has a single part, number t. */
static heft_status gguf_notice(heft_index *x)
{
    uint64_t align = heft_gguf_alignment(x), expected;
    bool is_contiguous = heft_gguf_align_up(&expected, x->data_start, align);
    if (!x->shard_info.number && !heft_gguf_find_value(x, "general.architecture"))
        heft_ix_note(x, HEFT_NOTE, "gguf/architecture", HEFT_NOWHERE, HEFT_NONE,
                     "the metadata have no general.architecture");
    if (align < HEFT_GGUF_MIN_ALIGN)
        heft_ix_note(x, HEFT_WARNING, "gguf/alignment", HEFT_NOWHERE, HEFT_NONE,
                     "general.alignment is not a multiple of 8");
    for (uint32_t t = 0; t < heft_ix_tensors(x); t++) {
        const heft_ix_part_row *part = heft_ix_part_row_at(x, t);
        heft_range where = { part->offset, part->stored };
        if (heft_ix_row(x, t)->name_len >= HEFT_GGUF_NAME_BUFFER)
            heft_ix_note_range(x, HEFT_NOTE, "gguf/long-name", where, t,
                               "its name is longer than 63 bytes, ggml's limit");
        if (is_contiguous && part->offset != expected)
            heft_ix_note_range(
                x, HEFT_WARNING, "gguf/order", where, t,
                "its data do not directly follow the data of the previous tensor, as "
                "ggml requires (there may be more)");
        is_contiguous = is_contiguous && part->offset == expected;
        heft_gguf_align_up(&expected, part->offset + part->stored, align);
    }
    return HEFT_OK;
}

/* ---- checking ---- */

/* Check that padding is zero.  Non-zero bytes in a gap longer than the padding get a warning:
 * such a gap belongs to no tensor, so the dimensions of a tensor may be damaged. */
static heft_status gguf_check(heft_check *c)
{
    const uint32_t *order;
    uint32_t count, last_tensor = HEFT_NONE;
    uint64_t at = c->x->data_start, align = heft_gguf_alignment(c->x), padded_end;
    heft_status st = c->order(c, &order, &count);
    for (uint32_t i = 0; i < count && !st; i++) {
        const heft_ix_part_row *part = heft_ix_part_row_at(c->x, order[i]);
        if (order[i] >= c->x->parts.len)
            continue; /* the vocabulary lies in the metadata */
        bool is_padding = heft_gguf_align_up(&padded_end, at, align) && part->offset <= padded_end;
        st = c->padding(c, "gguf/padding", is_padding ? HEFT_NOTE : HEFT_WARNING,
                        (heft_range){ at, part->offset - at }, 0);
        at = part->offset + part->stored;
        last_tensor = order[i];
    }
    if (st || !heft_gguf_align_up(&padded_end, at, align))
        return st;
    if (padded_end > c->size && last_tensor != HEFT_NONE && !heft_gguf_is_opaque(c->x, last_tensor))
        c->report(
            c, HEFT_NOTE, "gguf/cut-padding", (heft_range){ at, c->size - at }, last_tensor,
            "the padding after the last tensor is missing: ggml cannot load all data at once");
    if (padded_end > c->size)
        return HEFT_OK;
    if (padded_end < c->size)
        c->report(c, HEFT_NOTE, "gguf/trailing", (heft_range){ padded_end, c->size - padded_end },
                  HEFT_NONE, "extra bytes follow the data");
    return c->padding(c, "gguf/padding", HEFT_NOTE, (heft_range){ at, padded_end - at }, 0);
}

/* ---- the format ---- */

const heft_format heft_format_gguf = {
    .name = "gguf",
    .title = "GGUF",
    .structure_rule = "gguf/structure",
    .suffixes = ".gguf",
    .versions = "3 2",
    .caps = HEFT_CAN_READ | HEFT_CAN_WRITE | HEFT_CAN_EDIT | HEFT_CAN_META | HEFT_CAN_LISTS |
            HEFT_CAN_VOCAB,
    .align = HEFT_GGUF_ALIGN,
    .magics = "GGUF",
    .parse = gguf_parse,
    .name_rules = &name_rules,
    .notice = gguf_notice,
    .check = gguf_check,
};

const heft_format_writer heft_format_writer_gguf = {
    .plan = heft_gguf_plan,
    .write_header = heft_gguf_write_header,
    .sharding = &heft_gguf_sharding,
};
