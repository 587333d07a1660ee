/* mag.c - Magnetron's .mag files: archives of versions 1 and 100, and the way to the snapshot.
 *
 *    0  "MAG!"             4  u32 version
 *    8  u32 CRC-32C of [12, end of the tensor records)
 *   12  u32 tensors       16  u32 metadata records      20  u32 0
 *   24  metadata records: u32 type, u64 bits, u32 key length, key
 *       tensor records:   u32 element type | rank << 8, u64 elements, u64 offset, u64 shape[rank],
 *                         u32 key length, key
 *       0xFF up to a multiple of 64, then payloads, each begun and padded to a multiple of 64
 */
#include "format/mag/mag.h"

#include "model/names.h"
#include "model/parallel.h"
#include "model/records.h"

enum {
    HEADER = 24,
    CHECKED_FROM = 12, /* where the checksum's range begins */
    CHECKSUM = 8,
    ALIGN = HEFT_MAG_ALIGN,
    META_HEAD = 16,
    TENSOR_HEAD = 20,
    MIN_META = META_HEAD + 1,     /* a key is at least one byte */
    MIN_TENSOR = TENSOR_HEAD + 13 /* one dimension, key length, key */
};

/* ---- reading ---- */

static heft_str odd_key(heft_cur *c, uint32_t len, const char *what)
{
    if (!len)
        heft_cur_fail(c, "%s is empty", what);
    if (len > HEFT_MAG_MAX_KEY)
        heft_cur_fail(c, "%s has %U bytes, at most %U are allowed", what, (uint64_t)len,
                      (uint64_t)HEFT_MAG_MAX_KEY);
    return heft_cur_text(c, len, what);
}

static inline heft_str read_key(heft_cur *c, uint32_t len, const char *what)
{
    return heft_unlikely(len - 1 >= HEFT_MAG_MAX_KEY) ? odd_key(c, len, what)
                                                      : heft_cur_text(c, len, what);
}

static heft_status read_meta(heft_cur *c, heft_index *x)
{
    uint64_t at = heft_cur_pos(c);
    const uint8_t *head = heft_cur_take(c, META_HEAD);
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

typedef struct places {          /* what the records said together */
    uint64_t begin, end, lowest; /* of the first one's payload, behind the last one's; the lowest */
    uint32_t count, lowest_tensor;
    bool ascending; /* each payload begins behind the one before */
} places;

static const places no_places = { .lowest = UINT64_MAX, .ascending = true };

static heft_status check_head(heft_index *x, const heft_mag_layout *l, uint64_t at, uint32_t aux,
                              heft_str name)
{
    uint32_t code = aux & 255;
    if (aux >> 16)
        return heft_error_set(x->err, HEFT_E_FORMAT, at,
                              "tensor %q: reserved bits are set (0x%X), they must be zero", name,
                              (uint64_t)aux);
    if (!(aux >> 8))
        return heft_error_set(x->err, HEFT_E_FORMAT, at,
                              "tensor %q: its rank is 0, at least 1 is required", name);
    if (code >= l->type_count)
        return heft_error_set(x->err, HEFT_E_FORMAT, at,
                              "tensor %q: element type %U is none of version %s (0 to %U)", name,
                              (uint64_t)code, l->version, (uint64_t)(l->type_count - 1));
    return HEFT_OK;
}

/* §limits: dimensions of 1 to 2^63 - 1, and their product is the element count. */
static heft_status check_shape(heft_index *x, heft_str name, uint64_t at, const uint8_t *shape,
                               uint32_t rank, uint64_t elements)
{
    uint64_t product = 1;
    bool fits = true;
    for (uint32_t i = 0; i < rank; i++) {
        uint64_t dim = heft_le64(shape + 8 * i);
        fits = heft_mul(&product, product, dim) && fits;
        if (!dim || dim > INT64_MAX)
            return heft_error_set(x->err, HEFT_E_FORMAT, at + TENSOR_HEAD + 8 * i,
                                  "tensor %q: dimension %U is %U, not 1 to 2^63 - 1", name,
                                  (uint64_t)i, dim);
    }
    if (!fits)
        return heft_error_set(x->err, HEFT_E_FORMAT, at,
                              "tensor %q: its shape holds more than 2^64 elements", name);
    if (product != elements)
        return heft_error_set(x->err, HEFT_E_FORMAT, at + 4,
                              "tensor %q: its shape holds %U elements, its record says %U", name,
                              product, elements);
    return HEFT_OK;
}

static heft_status read_tensor(heft_cur *c, heft_index *x, const heft_mag_layout *l, places *s)
{
    uint64_t at = heft_cur_pos(c);
    const uint8_t *head = heft_cur_take(c, TENSOR_HEAD);
    if (!head)
        return c->st;
    uint32_t aux = heft_le32(head), rank = aux >> 8 & 255;
    const uint8_t *shape = heft_cur_take(c, 8 * rank + 4);
    if (!shape)
        return c->st;
    heft_str name = read_key(c, heft_le32(shape + 8 * rank), "a tensor key");
    if (c->st)
        return c->st;
    heft_status st = check_head(x, l, at, aux, name);
    if (st)
        return st;
    heft_ix_record r = { .name = name,
                         .shape = shape,
                         .at = at,
                         .offset = heft_le64(head + 12),
                         .length = HEFT_UNKNOWN_LENGTH,
                         .rank = rank,
                         .dtype = l->types[aux & 255] };
    uint64_t elements = heft_le64(head + 4);
    st = heft_ix_add(x, &r);
    /* a product of 1 to 2^63 - 1 has no dimension that is anything else */
    if (heft_unlikely(st || r.elements != elements || elements - 1 >= INT64_MAX)) {
        heft_status bad = check_shape(x, name, at, shape, rank, elements);
        if (bad || st)
            return bad ? bad : st;
    }
    if (r.offset < s->end)
        s->ascending = false;
    if (r.offset < s->lowest) {
        s->lowest = r.offset;
        s->lowest_tensor = r.id;
    }
    s->begin = s->count++ ? s->begin : r.offset;
    s->end = r.offset + r.length;
    return HEFT_OK;
}

typedef struct many {
    const heft_mag_layout *layout;
    places places[HEFT_IX_CHUNKS];
} many;

static void skip_tensor(const void *ctx, heft_cur *c, uint32_t *rank)
{
    (void)ctx;
    const uint8_t *head = heft_cur_take(c, TENSOR_HEAD);
    *rank = head ? heft_le32(head) >> 8 & 255 : 0;
    const uint8_t *shape = heft_cur_take(c, 8 * *rank + 4);
    heft_cur_take(c, shape ? heft_le32(shape + 8 * *rank) : 0);
}

static heft_status read_run(heft_cur *c, heft_index *x, const heft_mag_layout *l, uint32_t count,
                            places *s)
{
    heft_status st = HEFT_OK;
    *s = no_places;
    for (uint32_t i = 0; i < count && !st; i++)
        st = read_tensor(c, x, l, s);
    return st;
}

static heft_status read_slice(void *ctx, heft_cur *c, heft_index *x, uint32_t count, uint32_t slice)
{
    many *m = ctx;
    places s; /* not in m, where the workers would be in each other's way */
    heft_status st = read_run(c, x, m->layout, count, &s);
    m->places[slice] = s;
    return st;
}

static heft_status read_tensors(heft_cur *c, heft_index *x, const heft_mag_layout *l,
                                uint32_t count, places *s)
{
    many m = { .layout = l };
    heft_ix_binary_records how = { .skip = skip_tensor, .read = read_slice, .ctx = &m };
    if (!heft_ix_parallel_binary(x, c, count, &how))
        return read_run(c, x, l, count, s);
    *s = m.places[0];
    for (uint32_t i = 1; i < HEFT_IX_CHUNKS; i++) {
        const places *more = &m.places[i];
        s->ascending = s->ascending && more->ascending && more->begin >= s->end;
        if (more->lowest < s->lowest) {
            s->lowest = more->lowest;
            s->lowest_tensor = more->lowest_tensor;
        }
        s->count += more->count;
        s->end = more->end;
    }
    return HEFT_OK;
}

/* ---- what can be said once all records are known ---- */

/* Notes by heft_mag_code_3. */
static const struct {
    const char *rule, *text;
} code_3_notes[] = {
    [HEFT_MAG_U8_PERHAPS] = { "mag/code-3-undecided",
                              "element type 3 is read as u8, though nothing in the file rules out "
                              "i32, as before 23 November 2025" },
    [HEFT_MAG_I32_BY_SIZE] = { "mag/code-3", "element type 3 is read as i32, as before 23 November "
                                             "2025: u8 would "
                                             "leave gaps" },
    [HEFT_MAG_I32_BY_PADDING] = { "mag/code-3",
                                  "element type 3 is read as i32, as before 23 November 2025: the "
                                  "bytes behind u8 data would not be padding" },
};

static heft_status settle_code_3(heft_window *in, heft_index *x, const uint32_t *order)
{
    heft_mag_code_3 code;
    heft_status st = heft_mag_guess_code_3(&code, in, x, order);
    if (st || code == HEFT_MAG_U8)
        return st;
    if (code != HEFT_MAG_U8_PERHAPS) {
        heft_mag_u8_to_i32(x);
        heft_ix_omit(x, HEFT_NOTE, "mag/code-3", (heft_str){ NULL, 0 },
                     "i32 data of the element type 3 are written as the type that i32 has since "
                     "November 2025");
    }
    heft_ix_note(x, HEFT_NOTE, code_3_notes[code].rule, HEFT_NOWHERE, HEFT_NONE,
                 code_3_notes[code].text);
    return HEFT_OK;
}

/* Every tensor has one part of its own number: parts and tensors are counted alike here. */
static heft_status check_places(heft_window *in, heft_index *x, const heft_mag_layout *l,
                                const places *s, uint64_t records_end)
{
    if (s->lowest < records_end)
        return heft_error_set(x->err, HEFT_E_FORMAT, s->lowest,
                              "tensor %q: its data at %U lie before the end of the records at %U",
                              heft_ix_name(x, s->lowest_tensor), s->lowest, records_end);
    uint32_t *order = NULL, count = 0;
    heft_status st = s->ascending ? HEFT_OK : heft_ix_order(x, &order, &count);
    if (st)
        return st;
    if (l == &heft_mag_layout_100)
        st = settle_code_3(in, x, order);
    if (!st && order)
        st = heft_ix_refuse_overlap(x, order, count);
    heft_ix_order_free(x, order);
    return st;
}

/* §checksum names neither the polynomial nor the exact range; Magnetron's own is the first. */
static heft_status claim_checksum(heft_index *x, const uint8_t *stored, uint64_t end)
{
    static const struct {
        const char *algorithm, *note;
        bool from_start;
        uint32_t zeros;
    } readings[] = {
        { "crc32c", NULL, false, 0 },
        { "crc32", "the checksum is a CRC-32, not a CRC-32C, of the records", false, 0 },
        { "crc32c", "the checksum covers the header as well, with itself as zero", true, 4 },
        { "crc32", "the checksum is a CRC-32 of header and records, with itself as zero", true, 4 },
        { "crc32c", "the checksum covers the header as well, without itself", true, 0 },
        { "crc32", "the checksum is a CRC-32 of header and records, without itself", true, 0 },
    };
    enum { COUNT = sizeof readings / sizeof *readings };
    heft_range records = { CHECKED_FROM, end - CHECKED_FROM };
    for (unsigned i = 0; i < COUNT; i++) {
        heft_stored_checksum claim = { .rule = i ? "mag/checksum-reading" : "mag/header-crc",
                                       .algorithm = readings[i].algorithm,
                                       .range = { records },
                                       .zeros = readings[i].zeros,
                                       .tensor = HEFT_NONE,
                                       .is_alternative = i + 1 < COUNT,
                                       .at_open = true,
                                       .note = readings[i].note };
        if (readings[i].from_start) {
            claim.range[0] = (heft_range){ 0, CHECKSUM };
            claim.range[1] = records;
        }
        memcpy(claim.expect, stored, 4);
        heft_status st = heft_ix_checksum(x, claim);
        if (st)
            return st;
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
        return heft_cur_fail(c, "%U metadata records are announced, %U bytes are left",
                             (uint64_t)metas, left);
    heft_status st = heft_ix_reserve(x, heft_cur_pos(c), tensors, left - meta_bytes, MIN_TENSOR);
    for (uint32_t i = 0; i < metas && !st; i++)
        st = read_meta(c, x);
    places s = no_places;
    if (!st)
        st = read_tensors(c, x, l, tensors, &s);
    if (!st)
        st = check_places(c->in, x, l, &s, heft_cur_pos(c));
    if (!st)
        st = claim_checksum(x, header + CHECKSUM, heft_cur_pos(c));
    return st ? st : heft_meta_unique(x, "the metadata records");
}

static heft_status mag_parse(heft_window *in, heft_index *x)
{
    heft_cur c = heft_cur_open(in, 0, in->size, "the header and records"), head = c;
    const uint8_t *magic = heft_cur_take(&head, 8);
    if (!magic)
        return head.st;
    if (!memcmp(magic, "MAG&", 4))
        return heft_error_set(x->err, HEFT_E_FORMAT, 0,
                              "a .mag file of before August 2025 ('MAG&'), which nothing reads");
    if (memcmp(magic, "MAG!", 4) != 0)
        return heft_error_set(x->err, HEFT_E_FORMAT, 0, "it does not begin with 'MAG!'");
    uint32_t version = heft_le32(magic + 4);
    if (version != 1 && version != 100)
        return heft_error_set(x->err, HEFT_E_FORMAT, 4, "version %U is neither 1 nor 100",
                              (uint64_t)version);
    if (version == 1)
        return parse_archive(&c, x, &heft_mag_layout_1);
    /* A version-100 file is a snapshot when its string pool stands behind the longer header. */
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

/* ---- what is allowed but odd ---- */

static const heft_name_rules odd_rules = { "mag/name", "mag/nul-in-key",
                                           "a NUL in its key ends Magnetron with an assertion",
                                           "mag/rank" };

static heft_status mag_notice(heft_index *x)
{
    if (!heft_str_is(x->version, heft_mag_snapshot_layout.version))
        heft_ix_note_offsets(x, ALIGN, "mag/align-64", "its data do not begin at a multiple of 64");
    for (uint32_t i = 0; i < x->values.len; i++)
        if (heft_str_has_nul(heft_ix_value(x, i)->key))
            heft_ix_note(x, HEFT_WARNING, "mag/nul-in-key", HEFT_NOWHERE, HEFT_NONE,
                         "a NUL in a metadata key ends Magnetron with an assertion");
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

static heft_status mag_front(const heft_plan *p, heft_out *o)
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
    .caps = HEFT_CAN_READ | HEFT_CAN_WRITE | HEFT_CAN_META,
    .align = ALIGN,
    .magics = "MAG! MAG&",
    .parse = mag_parse,
    .name_rules = &odd_rules,
    .notice = mag_notice,
    .plan = mag_plan,
    .write_header = mag_front,
};
