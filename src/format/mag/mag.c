/* mag.c - reads Magnetron .mag archives, versions 1 and 100, and dispatches to the snapshot reader.
 *
 *    0  "MAG!"             4  u32 version
 *    8  u32 CRC-32C of [12, end of the tensor records)
 *   12  u32 tensors       16  u32 metadata records      20  u32 0
 *   24  metadata records: u32 type, u64 bits, u32 key length, key
 *       tensor records:   u32 element type | rank << 8, u64 elements, u64 offset, u64 shape[rank],
 *                         u32 key length, key
 *       0xFF up to a multiple of 64, then payloads, each aligned and padded to a multiple of 64
 */
#include "format/mag/mag.h"

#include "model/parallel.h"
#include "model/records.h"
#include "model/values.h"

enum {
    HEADER = 24,
    CHECKSUM = 8,
    CHECKED_FROM = 12, /* first byte that the checksum covers */
    ALIGN = HEFT_MAG_ALIGN,
    META_HEADER = 16,               /* metadata record up to the key */
    TENSOR_HEADER = 20,             /* tensor record up to the shape */
    MIN_META = META_HEADER + 1,     /* a key has 1 byte or more */
    MIN_TENSOR = TENSOR_HEADER + 13 /* 1 dimension, key length, 1 byte of key */
};

/* ---- reading ---- */

static heft_str reject_key(heft_cur *c, uint32_t len, const char *what)
{
    if (!len)
        heft_cur_fail(c, "%s is empty", what);
    else
        heft_cur_fail(c, "%s has %U bytes, at most %U are allowed", what, (uint64_t)len,
                      (uint64_t)HEFT_MAG_MAX_KEY);
    return heft_cur_text(c, len, what);
}

static inline heft_str read_key(heft_cur *c, uint32_t len, const char *what)
{
    return heft_unlikely(len - 1 >= HEFT_MAG_MAX_KEY) ? reject_key(c, len, what)
                                                      : heft_cur_text(c, len, what);
}

static heft_status read_meta(heft_cur *c, heft_index *x)
{
    uint64_t at = heft_cur_pos(c);
    const uint8_t *head = heft_cur_take(c, META_HEADER);
    if (!head)
        return c->st;
    uint32_t type = heft_le32(head);
    uint64_t bits = heft_le64(head + 4);
    heft_value v = { .kind = HEFT_KIND_INT,
                     .key = read_key(c, heft_le32(head + 12), "a metadata key") };
    if (c->st)
        return c->st;
    if (type != HEFT_MAG_I64 && type != HEFT_MAG_F64)
        return heft_error_set(x->err, HEFT_E_FORMAT, at,
                              "metadata %q: type 0x%X is neither 1 (i64) nor 2 (f64)", v.key,
                              (uint64_t)type);
    memcpy(&v.as.i, &bits, sizeof bits);
    if (type == HEFT_MAG_F64) {
        v.kind = HEFT_KIND_FLOAT;
        memcpy(&v.as.f, &bits, sizeof bits);
    }
    return heft_ix_meta(x, v);
}

typedef struct payloads { /* of consecutive tensor records */
    uint64_t first_offset, last_end, lowest_offset;
    uint32_t count, lowest_tensor;
    bool is_ascending; /* no payload begins before the end of the payload of the previous record */
} payloads;

static const payloads no_payloads = { .lowest_offset = UINT64_MAX, .is_ascending = true };

static heft_status check_record_header(heft_index *x, const heft_mag_layout *l, uint64_t at,
                                       uint32_t aux, heft_str name)
{
    uint32_t code = aux & 255;
    if (aux >> 16)
        return heft_error_set(x->err, HEFT_E_FORMAT, at,
                              "tensor %q: reserved bits are set (0x%X), they must be zero", name,
                              (uint64_t)aux);
    if (!(aux >> 8))
        return heft_error_set(x->err, HEFT_E_FORMAT, at,
                              "tensor %q: rank is 0, at least 1 is required", name);
    if (code >= l->type_count)
        return heft_error_set(x->err, HEFT_E_FORMAT, at,
                              "tensor %q: element type %U is unknown in version %s (0 to %U are "
                              "known)",
                              name, (uint64_t)code, l->version, (uint64_t)(l->type_count - 1));
    return HEFT_OK;
}

/* §limits: every dimension is 1 to 2^63 - 1, and the product of the dimensions is the number of
 * elements. */
static heft_status check_shape(heft_index *x, heft_str name, uint64_t at, const uint8_t *shape,
                               uint32_t rank, uint64_t elements)
{
    uint64_t product = 1;
    bool fits = true;
    for (uint32_t i = 0; i < rank; i++) {
        uint64_t dim = heft_le64(shape + 8 * i);
        fits = heft_mul(&product, product, dim) && fits;
        if (!dim || dim > INT64_MAX)
            return heft_error_set(x->err, HEFT_E_FORMAT, at + TENSOR_HEADER + 8 * i,
                                  "tensor %q: dimension %U is %U, not 1 to 2^63 - 1", name,
                                  (uint64_t)i, dim);
    }
    if (!fits)
        return heft_error_set(x->err, HEFT_E_FORMAT, at,
                              "tensor %q: the shape has more than 2^64 elements", name);
    if (product != elements)
        return heft_error_set(x->err, HEFT_E_FORMAT, at + 4,
                              "tensor %q: the shape has %U elements, the record says %U", name,
                              product, elements);
    return HEFT_OK;
}

static heft_status read_tensor(heft_cur *c, heft_index *x, const heft_mag_layout *l, payloads *s)
{
    uint64_t at = heft_cur_pos(c);
    const uint8_t *head = heft_cur_take(c, TENSOR_HEADER);
    if (!head)
        return c->st;
    uint32_t aux = heft_le32(head), rank = aux >> 8 & 255;
    const uint8_t *shape = heft_cur_take(c, 8 * rank + 4);
    if (!shape)
        return c->st;
    heft_str name = read_key(c, heft_le32(shape + 8 * rank), "a tensor key");
    if (c->st)
        return c->st;
    HEFT_TRY(check_record_header(x, l, at, aux, name));
    heft_ix_record r = { .name = name,
                         .shape = shape,
                         .at = at,
                         .offset = heft_le64(head + 12),
                         .length = HEFT_UNKNOWN_LENGTH,
                         .rank = rank,
                         .dtype = l->types[aux & 255] };
    uint64_t elements = heft_le64(head + 4);
    heft_status st = heft_ix_add(x, &r);
    /* If the product is 1 to 2^63 - 1, so is every dimension: check_shape() is needed only
     * otherwise. */
    if (heft_unlikely(st || r.elements != elements || elements - 1 >= INT64_MAX)) {
        heft_status bad = check_shape(x, name, at, shape, rank, elements);
        if (bad || st)
            return bad ? bad : st;
    }
    if (r.offset < s->last_end)
        s->is_ascending = false;
    if (r.offset < s->lowest_offset) {
        s->lowest_offset = r.offset;
        s->lowest_tensor = r.id;
    }
    s->first_offset = s->count++ ? s->first_offset : r.offset;
    s->last_end = r.offset + r.length;
    return HEFT_OK;
}

typedef struct parallel_read {
    const heft_mag_layout *layout;
    payloads payloads[HEFT_IX_CHUNKS];
} parallel_read;

static void skip_tensor(const void *ctx, heft_cur *c, uint32_t *rank)
{
    (void)ctx;
    const uint8_t *head = heft_cur_take(c, TENSOR_HEADER);
    *rank = head ? heft_le32(head) >> 8 & 255 : 0;
    const uint8_t *shape = heft_cur_take(c, 8 * *rank + 4);
    heft_cur_take(c, shape ? heft_le32(shape + 8 * *rank) : 0);
}

static heft_status read_records(heft_cur *c, heft_index *x, const heft_mag_layout *l,
                                uint32_t count, payloads *s)
{
    *s = no_payloads;
    for (uint32_t i = 0; i < count; i++)
        HEFT_TRY(read_tensor(c, x, l, s));
    return HEFT_OK;
}

static heft_status read_chunk(void *ctx, heft_cur *c, heft_index *x, uint32_t count, uint32_t chunk)
{
    parallel_read *parallel = ctx;
    payloads s; /* on the stack: the elements of parallel->payloads share cache lines */
    heft_status st = read_records(c, x, parallel->layout, count, &s);
    parallel->payloads[chunk] = s;
    return st;
}

static heft_status read_tensors(heft_cur *c, heft_index *x, const heft_mag_layout *l,
                                uint32_t count, payloads *s)
{
    parallel_read parallel = { .layout = l };
    heft_ix_binary_records records = { .skip = skip_tensor, .read = read_chunk, .ctx = &parallel };
    if (!heft_ix_parallel_binary(x, c, count, &records))
        return read_records(c, x, l, count, s);
    *s = parallel.payloads[0];
    for (uint32_t i = 1; i < HEFT_IX_CHUNKS; i++) {
        const payloads *next = &parallel.payloads[i];
        s->is_ascending = s->is_ascending && next->is_ascending &&
                          next->first_offset >= s->last_end;
        if (next->lowest_offset < s->lowest_offset) {
            s->lowest_offset = next->lowest_offset;
            s->lowest_tensor = next->lowest_tensor;
        }
        s->count += next->count;
        s->last_end = next->last_end;
    }
    return HEFT_OK;
}

/* ---- checks that need all records ---- */

/* Notes, indexed by heft_mag_code_3. */
static const struct {
    const char *rule, *text;
} code_3_notes[] = {
    [HEFT_MAG_U8_UNDECIDED] = { "mag/code-3-undecided",
                                "element type 3 is read as u8; the file does not rule out i32, "
                                "the meaning before 23 November 2025" },
    [HEFT_MAG_I32_BY_SIZE] = { "mag/code-3",
                               "element type 3 is read as i32, the meaning before 23 November "
                               "2025: u8 would leave gaps between payloads" },
    [HEFT_MAG_I32_BY_PADDING] = { "mag/code-3",
                                  "element type 3 is read as i32, the meaning before 23 November "
                                  "2025: the bytes after u8 data would not be padding" },
};

static heft_status resolve_code_3(heft_window *in, heft_index *x, const uint32_t *order)
{
    heft_mag_code_3 code;
    heft_status st = heft_mag_guess_code_3(&code, in, x, order);
    if (st || code == HEFT_MAG_U8)
        return st;
    if (code != HEFT_MAG_U8_UNDECIDED) {
        heft_mag_retype_u8_as_i32(x);
        heft_ix_omit(x, HEFT_NOTE, "mag/code-3", (heft_str){ NULL, 0 },
                     "i32 data stored under element type 3 are written under the type that means "
                     "i32 since November 2025");
    }
    heft_ix_note(x, HEFT_NOTE, code_3_notes[code].rule, HEFT_NOWHERE, HEFT_NONE,
                 code_3_notes[code].text);
    return HEFT_OK;
}

/* Every tensor has a single part, so the part numbers in `order` are tensor numbers. */
static heft_status check_payloads(heft_window *in, heft_index *x, const heft_mag_layout *l,
                                  const payloads *s, uint64_t records_end)
{
    if (s->lowest_offset < records_end)
        return heft_error_set(x->err, HEFT_E_FORMAT, s->lowest_offset,
                              "tensor %q: its data at %U begin before the end of the records at %U",
                              heft_ix_name(x, s->lowest_tensor), s->lowest_offset, records_end);
    uint32_t *order = NULL, count = 0;
    heft_status st = s->is_ascending ? HEFT_OK : heft_ix_order(x, &order, &count);
    if (st)
        return st;
    if (l == &heft_mag_layout_100)
        st = resolve_code_3(in, x, order);
    if (!st && order)
        st = heft_ix_refuse_overlap(x, order, count);
    heft_ix_order_free(x, order);
    return st;
}

/* Add an alternative for each interpretation of the stored CRC: §checksum specifies neither the
 * polynomial nor the exact range.  The first alternative is what Magnetron writes. */
static heft_status add_checksums(heft_index *x, const uint8_t *stored, uint64_t end)
{
    static const struct {
        const char *algorithm, *note;
        bool covers_header;
        uint32_t zeros; /* zero bytes hashed in place of the checksum field */
    } alternatives[] = {
        { "crc32c", NULL, false, 0 },
        { "crc32", "the checksum is a CRC-32, not a CRC-32C, of the records", false, 0 },
        { "crc32c", "the checksum also covers the header, with the checksum field as zero", true,
          4 },
        { "crc32",
          "the checksum is a CRC-32 of header and records, with the checksum field as zero", true,
          4 },
        { "crc32c", "the checksum also covers the header, without the checksum field", true, 0 },
        { "crc32", "the checksum is a CRC-32 of header and records, without the checksum field",
          true, 0 },
    };
    enum { COUNT = sizeof alternatives / sizeof *alternatives };
    heft_range records = { CHECKED_FROM, end - CHECKED_FROM };
    if (!heft_vec_reserve(&x->mem, &x->checksums, COUNT, sizeof(heft_stored_checksum)))
        return heft_ix_no_memory(x);
    for (unsigned i = 0; i < COUNT; i++) {
        heft_stored_checksum sum = { .rule = i ? "mag/checksum-reading" : "mag/header-crc",
                                     .algorithm = alternatives[i].algorithm,
                                     .range = { records },
                                     .zeros = alternatives[i].zeros,
                                     .tensor = HEFT_NONE,
                                     .is_alternative = i + 1 < COUNT,
                                     .at_open = true,
                                     .note = alternatives[i].note };
        if (alternatives[i].covers_header) {
            sum.range[0] = (heft_range){ 0, CHECKSUM };
            sum.range[1] = records;
        }
        memcpy(sum.expect, stored, 4);
        HEFT_TRY(heft_ix_checksum(x, sum));
    }
    return HEFT_OK;
}

static heft_status parse_archive(heft_cur *c, heft_index *x, const heft_mag_layout *l)
{
    const uint8_t *header = heft_cur_take(c, HEADER);
    if (!header)
        return c->st;
    if (heft_le32(header + 20))
        return heft_error_set(x->err, HEFT_E_FORMAT, 20,
                              "reserved bits are set in the header (0x%X), they must be zero",
                              (uint64_t)heft_le32(header + 20));
    x->version = heft_lit(l->version);
    uint32_t tensors = heft_le32(header + 12), metas = heft_le32(header + 16);
    uint64_t left = heft_cur_left(c), meta_bytes = (uint64_t)metas * MIN_META;
    if (meta_bytes > left)
        return heft_cur_fail(c, "the header announces %U metadata records, only %U bytes are left",
                             (uint64_t)metas, left);
    HEFT_TRY(heft_ix_reserve(x, heft_cur_pos(c), tensors, left - meta_bytes, MIN_TENSOR));
    for (uint32_t i = 0; i < metas; i++)
        HEFT_TRY(read_meta(c, x));
    payloads s = no_payloads;
    HEFT_TRY(read_tensors(c, x, l, tensors, &s));
    HEFT_TRY(check_payloads(c->in, x, l, &s, heft_cur_pos(c)));
    HEFT_TRY(add_checksums(x, header + CHECKSUM, heft_cur_pos(c)));
    return heft_meta_unique(x, "the metadata records");
}

static heft_status mag_parse(heft_window *in, heft_index *x)
{
    heft_cur c = heft_cur_open(in, 0, in->size, "the header and records"), head = c;
    const uint8_t *magic = heft_cur_take(&head, 8);
    if (!magic)
        return head.st;
    if (!memcmp(magic, "MAG&", 4))
        return heft_error_set(x->err, HEFT_E_FORMAT, 0,
                              "unsupported: a .mag file from before August 2025 ('MAG&')");
    if (memcmp(magic, "MAG!", 4) != 0)
        return heft_error_set(x->err, HEFT_E_FORMAT, 0, "the file does not begin with 'MAG!'");
    uint32_t version = heft_le32(magic + 4);
    if (version != 1 && version != 100)
        return heft_error_set(x->err, HEFT_E_FORMAT, 4, "version %U is neither 1 nor 100",
                              (uint64_t)version);
    if (version == 1)
        return parse_archive(&c, x, &heft_mag_layout_1);
    /* A version-100 file is a snapshot if a string pool follows the longer snapshot header. */
    if (in->size >= HEFT_MAG_SNAPSHOT_HEADER + 4) {
        heft_cur pool = heft_cur_open(in, HEFT_MAG_SNAPSHOT_HEADER, 4, "the header");
        const uint8_t *marker = heft_cur_take(&pool, 4);
        if (!marker)
            return pool.st;
        if (!memcmp(marker, "SRP!", 4))
            return heft_mag_snapshot_parse(in, x);
    }
    return parse_archive(&c, x, &heft_mag_layout_100);
}

/* ---- allowed but unusual content ---- */

static const heft_name_rules name_rules = {
    "mag/name", "mag/nul-in-key", "its key contains NUL: Magnetron aborts with an assertion",
    "mag/rank"
};

static heft_status mag_notice(heft_index *x)
{
    if (!heft_str_is(x->version, heft_mag_snapshot_layout.version))
        heft_ix_note_offsets(x, ALIGN, "mag/align-64", "its data do not begin at a multiple of 64");
    for (uint32_t i = 0; i < x->values.len; i++)
        if (heft_str_has_nul(heft_ix_value(x, i)->key))
            heft_ix_note(x, HEFT_WARNING, "mag/nul-in-key", HEFT_NOWHERE, HEFT_NONE,
                         "a metadata key contains NUL: Magnetron aborts with an assertion");
    return HEFT_OK;
}

/* ---- the format ---- */

static bool writes_snapshot(const heft_plan *p)
{
    return p->version && heft_str_is(heft_lit(p->version), heft_mag_snapshot_layout.version);
}

static heft_status mag_plan(heft_plan *p)
{
    return writes_snapshot(p) ? heft_mag_snapshot_plan(p) : heft_mag_archive_plan(p);
}

static heft_status mag_write_header(const heft_plan *p, heft_out *o)
{
    return writes_snapshot(p) ? heft_mag_snapshot_write_header(p, o)
                              : heft_mag_archive_write_header(p, o);
}

const heft_format heft_format_mag = {
    .name = "mag",
    .title = "Magnetron .mag",
    .structure_rule = "mag/structure",
    .suffixes = ".mag",
    .versions = "1 100 snapshot",
    .caps = HEFT_CAN_READ | HEFT_CAN_WRITE | HEFT_CAN_EDIT | HEFT_CAN_META,
    .align = ALIGN,
    .magics = "MAG! MAG&",
    .parse = mag_parse,
    .name_rules = &name_rules,
    .notice = mag_notice,
};

const heft_format_writer heft_format_writer_mag = {
    .plan = mag_plan,
    .write_header = mag_write_header,
};
