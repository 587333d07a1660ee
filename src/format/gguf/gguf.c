/* gguf.c - the files of ggml.
 *
 *    0  "GGUF"   4  u32 version: 1, 2 or 3
 *    8  u64 tensors   16  u64 entries of metadata; both u32 in version 1
 *       entries: key, u32 kind, value (gguf_meta.c)
 *       tensors: name, u32 rank, u64 dimensions, the innermost first, u32 element type,
 *                u64 offset in the data, a multiple of the alignment
 *       zeros up to a multiple of the alignment, then the data
 *
 * Key and name are texts: u64 length, bytes.  The alignment is 32 or what the metadata say under
 * "general.alignment".  In version 1 lengths, counts and dimensions are u32.  A file of version 3 may be
 * big-endian throughout; its version says so.  ggml wants the data in the order of the tensors, each
 * padded to the alignment.
 */
#include "format/gguf/gguf.h"

#include "format/attribute_metadata.h"
#include "model/blocks.h"

enum {
    VERSION_AT = 4,
    COUNTS_AT = 8,
    NEWEST = 3,
    KIND = 4, /* bytes of a kind, a rank, a type */
    OFFSET = 8
};

/* ---- tensors ---- */

/* Product, and that the innermost dimension is of whole blocks. */
static heft_status check_shape(heft_gguf_reader *r, heft_str name, uint64_t at,
                               const uint64_t *dims, uint32_t rank, heft_dtype t)
{
    const heft_dtype_info *d = heft_dtype_get(t);
    uint64_t elements, inner = rank ? dims[rank - 1] : 1;
    if (!heft_product(&elements, dims, rank) || elements > INT64_MAX)
        return heft_error_set(r->x->err, HEFT_E_FORMAT, at,
                              "tensor %q: its shape holds more than 2^63 - 1 elements", name);
    if (t && !heft_dtype_fills_blocks(t, inner))
        return heft_error_set(r->x->err, HEFT_E_FORMAT, at,
                              "tensor %q: rows of %U elements are no whole blocks of %s, which "
                              "hold %U",
                              name, inner, d->name, (uint64_t)d->block_elems);
    return HEFT_OK;
}

static heft_status read_shape(heft_gguf_reader *r, heft_str name, uint64_t *dims, uint32_t rank)
{
    for (uint32_t i = rank; i-- > 0;) {
        dims[i] = heft_gguf_length(r);
        if (!r->c.st && dims[i] > INT64_MAX)
            return heft_error_set(r->x->err, HEFT_E_FORMAT, r->field,
                                  "tensor %q: dimension %U is %U, not 0 to 2^63 - 1", name,
                                  (uint64_t)(rank - 1 - i), dims[i]);
    }
    return r->c.st;
}

/* *t is HEFT_UNTYPED for one that is newer than the table. */
static heft_status read_type(heft_gguf_reader *r, heft_str name, heft_dtype *t, uint32_t *out)
{
    uint32_t number = heft_gguf_u32(r);
    *t = HEFT_UNTYPED;
    *out = number;
    if (r->c.st)
        return r->c.st;
    if (number > HEFT_GGUF_MAX_TYPE)
        return heft_error_set(r->x->err, HEFT_E_FORMAT, r->field,
                              "tensor %q: element type %U is none that ggml could have (0 to %U)",
                              name, (uint64_t)number, (uint64_t)HEFT_GGUF_MAX_TYPE);
    if (number >= HEFT_GGUF_TYPES && r->big_endian)
        return heft_error_set(r->x->err, HEFT_E_UNSUPPORTED, r->field,
                              "tensor %q: element type %U is not known (0 to %U are), and cannot "
                              "be read from a big-endian file",
                              name, (uint64_t)number, (uint64_t)HEFT_GGUF_TYPES - 1);
    if (number >= HEFT_GGUF_TYPES)
        return HEFT_OK;
    *t = heft_gguf_types[number];
    if (!*t)
        return heft_error_set(r->x->err, HEFT_E_UNSUPPORTED, r->field,
                              "tensor %q: element type %s is one that ggml has removed", name,
                              heft_gguf_removed_type(number));
    if (r->big_endian && heft_dtype_get(*t)->block_elems > 1 && !heft_block_can_byteswap(*t))
        return heft_error_set(r->x->err, HEFT_E_UNSUPPORTED, r->field,
                              "tensor %q: blocks of %s cannot be read from a big-endian file", name,
                              heft_dtype_name(*t));
    return HEFT_OK;
}

/* Its place counts from the data, which begin behind the last record.  The size of an opaque tensor follows from
 * where the next one begins: until all are known a byte stands for it. */
static heft_status read_place(heft_gguf_reader *r, heft_str name, heft_dtype t, uint64_t elements,
                              uint64_t align, heft_range *out)
{
    uint64_t offset = heft_gguf_u64(r), left = heft_cur_left(&r->c), bytes;
    if (r->c.st)
        return r->c.st;
    if (offset & (align - 1))
        return heft_error_set(r->x->err, HEFT_E_FORMAT, r->field,
                              "tensor %q: its offset %U is no multiple of %U", name, offset, align);
    bool fits = t ? heft_dtype_bytes(&bytes, t, elements) : true;
    if (!t)
        bytes = elements > 0;
    if (!fits || !heft_range_in((heft_range){ offset, bytes }, left))
        return heft_error_set(r->x->err, HEFT_E_FORMAT, r->field,
                              "tensor %q: %U bytes at %U of the data pass the end of the file",
                              name, bytes, offset);
    *out = (heft_range){ offset, bytes };
    return HEFT_OK;
}

static heft_status mark_opaque(heft_gguf_reader *r, uint32_t id, uint32_t number, uint64_t at)
{
    heft_status st = heft_ix_set_layout(r->x, id, heft_lit(heft_gguf_opaque));
    if (!r->has_opaque)
        heft_ix_note(r->x, HEFT_WARNING, "gguf/type", at, id,
                     "its element type is newer than those known here: its size is deduced from "
                     "where the next tensor begins (perhaps more)");
    r->has_opaque = true;
    return st ? st : heft_gguf_keep_number(r->x, id, number);
}

static heft_status read_tensor(heft_gguf_reader *r, uint64_t align)
{
    uint64_t dims[HEFT_GGUF_RANK], *to, elements = 1;
    heft_str name = heft_gguf_text(r, "a tensor's name");
    uint32_t rank = heft_gguf_u32(r), id, number = 0;
    heft_range where;
    heft_dtype t = HEFT_UNTYPED;
    uint64_t at = heft_cur_pos(&r->c);
    if (r->c.st)
        return r->c.st;
    if (rank > HEFT_GGUF_RANK)
        return heft_error_set(r->x->err, HEFT_E_FORMAT, r->field,
                              "tensor %q: %U dimensions, at most 4 are allowed", name,
                              (uint64_t)rank);
    r->number = r->c;
    r->after_number = true;
    heft_status st = read_shape(r, name, dims, rank);
    if (!st)
        st = read_type(r, name, &t, &number);
    if (!st)
        st = check_shape(r, name, at, dims, rank, t);
    if (st)
        return st;
    heft_product(&elements, dims, rank);
    st = read_place(r, name, t, elements, align, &where);
    if (!st)
        st = heft_ix_tensor(r->x, name, t, rank, &to, &id);
    if (st)
        return st;
    memcpy(to, dims, rank * sizeof *to);
    st = t ? HEFT_OK : mark_opaque(r, id, number, at);
    if (!st)
        st = heft_ix_part(r->x, id, heft_lit("data"), t, where, where.length, HEFT_RAW);
    if (!st && r->big_endian)
        heft_ix_part_row_at(r->x, id)->flags |= HEFT_P_BIG_ENDIAN;
    return st;
}

/* ---- where the data lie ---- */

/* Up to where the next tensor begins, or the file ends. */
static void size_opaque(heft_index *x, const uint32_t *order, uint32_t count)
{
    uint64_t end = x->file_bytes, begin = end;
    for (uint32_t i = count; i-- > 0;) {
        if (order[i] >= x->parts.len)
            continue; /* the vocabulary, among the metadata */
        heft_ix_part_row *part = heft_ix_part_row_at(x, order[i]);
        end = part->offset < begin ? begin : end;
        begin = part->offset;
        if (!part->dtype)
            part->length = part->stored = end - begin;
    }
}

/* Every tensor has one part, of its own number. */
static heft_status place_data(heft_gguf_reader *r, uint64_t data)
{
    heft_index *x = r->x;
    uint64_t end = data;
    bool ascending = !r->has_opaque;
    for (uint32_t t = 0; t < heft_ix_tensors(x); t++) {
        heft_ix_part_row *part = heft_ix_part_row_at(x, t);
        part->offset += data; /* no more than twice the size of the file */
        if (!heft_range_in((heft_range){ part->offset, part->length }, x->file_bytes))
            return heft_error_set(x->err, HEFT_E_FORMAT, part->offset,
                                  "tensor %q: %U bytes at %U pass the end of the file, %U",
                                  heft_ix_name(x, t), part->length, part->offset, x->file_bytes);
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
    uint64_t least = r->length_bytes + 1 + KIND + 1; /* bytes of an entry */
    *tensors = heft_gguf_length(r);
    *entries = heft_gguf_length(r);
    uint64_t left = heft_cur_left(&r->c), bytes;
    if (r->c.st)
        return r->c.st;
    if (!heft_mul(&bytes, *entries, least) || bytes > left)
        return heft_error_set(r->x->err, HEFT_E_FORMAT, r->field,
                              "%U entries of metadata are announced, %U bytes are left", *entries,
                              left);
    uint64_t record = r->length_bytes + KIND + KIND + OFFSET;
    if (!heft_mul(&bytes, *tensors, record) || bytes > left)
        return heft_error_set(r->x->err, HEFT_E_FORMAT, COUNTS_AT,
                              "%U tensors are announced, %U bytes are left", *tensors, left);
    return HEFT_OK;
}

/* A big-endian file shows in its version: the upper half of a small number is zero. */
static heft_status read_version(heft_gguf_reader *r, const uint8_t *head)
{
    static const char *const names[] = { "1", "2", "3" };
    uint32_t version = heft_le32(head + VERSION_AT);
    r->big_endian = version && !(version & 0xFFFF);
    if (r->big_endian)
        version = (uint32_t)head[VERSION_AT + 2] << 8 | head[VERSION_AT + 3];
    if (!version || (r->big_endian && version < NEWEST))
        return heft_error_set(r->x->err, HEFT_E_FORMAT, VERSION_AT, "there is no%s version %U",
                              r->big_endian ? " big-endian" : "", (uint64_t)version);
    if (version > NEWEST)
        return heft_error_set(r->x->err, HEFT_E_UNSUPPORTED, VERSION_AT,
                              "version %U is newer than what is known here, 3", (uint64_t)version);
    r->length_bytes = version == 1 ? 4 : 8;
    r->x->version = heft_lit(names[version - 1]);
    if (r->big_endian) /* even without tensors */
        heft_ix_omit(r->x, HEFT_NOTE, "gguf/big-endian", (heft_str){ NULL, 0 },
                     "its numbers are big-endian, and are written little-endian");
    if (r->big_endian)
        heft_ix_note(r->x, HEFT_NOTE, "gguf/big-endian", VERSION_AT, HEFT_NONE,
                     "the file is big-endian");
    return HEFT_OK;
}

static heft_status gguf_parse(heft_window *in, heft_index *x)
{
    heft_gguf_reader r = { .c = heft_cur_open(in, 0, in->size, "the file"), .x = x };
    const uint8_t *head = heft_cur_take(&r.c, COUNTS_AT);
    uint64_t tensors, entries, align = 0, data;
    if (!head)
        return r.c.st;
    if (memcmp(head, "GGUF", VERSION_AT) != 0)
        return heft_error_set(x->err, HEFT_E_FORMAT, 0, "it does not begin with 'GGUF'");
    heft_status st = read_version(&r, head);
    if (!st)
        st = read_counts(&r, &tensors, &entries);
    if (!st)
        st = heft_gguf_read_metadata(&r, entries);
    if (!st) {
        align = heft_gguf_alignment(x);
        st = heft_ix_reserve(x, COUNTS_AT, tensors, heft_cur_left(&r.c),
                             r.length_bytes + KIND + KIND + OFFSET);
    }
    for (uint64_t i = 0; !st && i < tensors; i++)
        st = heft_gguf_error(&r, read_tensor(&r, align));
    if (st)
        return st;
    x->data_start = heft_cur_pos(&r.c);
    if (!heft_align_up(&data, x->data_start, align))
        return heft_error_set(x->err, HEFT_E_FORMAT, x->data_start, "the data begin past 2^64");
    st = place_data(&r, data);
    if (!st)
        st = heft_gguf_read_split(x);
    return st ? st : heft_attributes_from_metadata(x);
}

/* ---- what is allowed but odd ---- */

static const heft_name_rules odd_rules = { "gguf/name", NULL, NULL, NULL };

/* What ggml asks of a file beyond what can be read.  Each tensor has one part, of its own number. */
static heft_status gguf_notice(heft_index *x)
{
    uint64_t align = heft_gguf_alignment(x), expected;
    bool in_order = heft_align_up(&expected, x->data_start, align);
    if (!x->shard_info.number && !heft_gguf_find(x, "general.architecture"))
        heft_ix_note(x, HEFT_NOTE, "gguf/architecture", HEFT_NOWHERE, HEFT_NONE,
                     "the metadata have no general.architecture");
    if (align < HEFT_GGUF_LEAST_ALIGN)
        heft_ix_note(x, HEFT_WARNING, "gguf/alignment", HEFT_NOWHERE, HEFT_NONE,
                     "general.alignment is no multiple of 8");
    for (uint32_t t = 0; t < heft_ix_tensors(x); t++) {
        const heft_ix_part_row *part = heft_ix_part_row_at(x, t);
        heft_range where = { part->offset, part->stored };
        if (heft_ix_row(x, t)->name_len >= HEFT_GGUF_NAME)
            heft_ix_note_range(x, HEFT_NOTE, "gguf/long-name", where, t,
                               "its name has more than the 63 bytes that ggml reads");
        if (in_order && part->offset != expected)
            heft_ix_note_range(x, HEFT_WARNING, "gguf/order", where, t,
                               "its data do not follow those of the tensor before, as ggml "
                               "requires (perhaps more)");
        in_order = in_order && part->offset == expected;
        heft_align_up(&expected, part->offset + part->stored, align);
    }
    return HEFT_OK;
}

/* ---- checking ---- */

/* Bytes beyond the padding are those of no tensor, perhaps of one whose dimensions are damaged. */
static heft_status gguf_check(heft_check *c)
{
    const uint32_t *order;
    uint32_t count, last_tensor = HEFT_NONE;
    uint64_t at = c->x->data_start, align = heft_gguf_alignment(c->x), last;
    heft_status st = c->order(c, &order, &count);
    for (uint32_t i = 0; i < count && !st; i++) {
        const heft_ix_part_row *part = heft_ix_part_row_at(c->x, order[i]);
        if (order[i] >= c->x->parts.len)
            continue; /* the vocabulary, among the metadata */
        if (heft_global_offset_file(c->x, part->offset))
            break;
        bool is_padding = heft_align_up(&last, at, align) && part->offset <= last;
        st = c->padding(c, "gguf/padding", is_padding ? HEFT_NOTE : HEFT_WARNING,
                        (heft_range){ at, part->offset - at }, 0);
        at = part->offset + part->stored;
        last_tensor = order[i];
    }
    if (st || !heft_align_up(&last, at, align))
        return st;
    if (last > c->size && last_tensor != HEFT_NONE && !heft_gguf_is_opaque(c->x, last_tensor))
        c->report(c, HEFT_NOTE, "gguf/cut-padding", (heft_range){ at, c->size - at }, last_tensor,
                  "the padding behind the last tensor is missing: ggml does not load the file's "
                  "data as a whole");
    if (last > c->size)
        return HEFT_OK;
    if (last < c->size)
        c->report(c, HEFT_NOTE, "gguf/trailing", (heft_range){ last, c->size - last }, HEFT_NONE,
                  "the file goes on behind the data");
    return c->padding(c, "gguf/padding", HEFT_NOTE, (heft_range){ at, last - at }, 0);
}

/* ---- the format ---- */

const heft_format heft_format_gguf = {
    .name = "gguf",
    .title = "GGUF",
    .structure_rule = "gguf/structure",
    .suffixes = ".gguf",
    .versions = "3 2",
    .caps = HEFT_CAN_READ | HEFT_CAN_WRITE | HEFT_CAN_META | HEFT_CAN_VOCAB,
    .align = HEFT_GGUF_ALIGN,
    .magics = "GGUF",
    .parse = gguf_parse,
    .name_rules = &odd_rules,
    .notice = gguf_notice,
    .check = gguf_check,
    .plan = heft_gguf_plan,
    .write_header = heft_gguf_write_header,
    .sharding = &heft_gguf_sharding,
};
