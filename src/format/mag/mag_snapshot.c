/* mag_snapshot.c - reads and writes the snapshot layout of Magnetron (since 2026, version 100).
 *
 *    0  "MAG!"             4  u32 100               8  u64 Unix time
 *   16  u32 CRC-32C of [20, where "BUF!" begins)   20  u32 0
 *   24  u32 0 (length of the metadata)             28  u32 tensors
 *   32  "SRP!"  u32 strings, u32 offsets[strings + 1], the strings without gaps
 *       "MDT!"  empty
 *       "DSC!"  per tensor: u32 rank | element type << 8, u32 string, u64 elements,
 *               u64 offset counted from the end of "BUF!", u64 shape[rank]
 *       "BUF!"  payloads without gaps, up to the end of the file
 */
#include "base/sort.h"
#include "format/losses.h"
#include "format/mag/mag.h"

enum {
    VERSION = 100,
    CHECKSUM = 16,
    CHECKED_FROM = 20,
    TENSORS = 28,
    DESCRIPTOR = 24, /* bytes of a descriptor up to the shape */
    MAX_STRINGS = 65534,
    MAX_BLOB = 128 << 20,
    MAX_RECORD_RANK = 63, /* accepted by Magnetron's record reader */
    MAX_RANK = 16         /* supported by Magnetron's tensors */
};

static const heft_dtype types[] = { HEFT_F32, HEFT_F16, HEFT_BF16, HEFT_BOOL, HEFT_U8,  HEFT_I8,
                                    HEFT_U16, HEFT_I16, HEFT_U32,  HEFT_I32,  HEFT_U64, HEFT_I64 };
const heft_mag_layout heft_mag_snapshot_layout = { "snapshot", types, 12, 0, MAX_RANK, MAX_RANK };

/* ---- reading ---- */

typedef struct string_pool { /* borrowed from the file */
    const uint8_t *offsets;  /* count + 1 little-endian u32 */
    const char *blob;
    uint64_t blob_offset;
    uint32_t count, blob_bytes;
} string_pool;

/* Return string i.  A mapped file may change at any time: the string is empty if the offsets have
 * become invalid since check_strings(). */
static heft_str pool_string(const string_pool *s, uint32_t i)
{
    uint32_t from = heft_le32(s->offsets + 4 * (size_t)i);
    uint32_t to = heft_le32(s->offsets + 4 * (size_t)i + 4);
    bool is_inside = from <= to && to <= s->blob_bytes;
    return is_inside ? (heft_str){ s->blob + from, to - from } : (heft_str){ "", 0 };
}

static bool string_less(const void *ctx, uint32_t a, uint32_t b)
{
    return heft_str_order(pool_string(ctx, a), pool_string(ctx, b)) < 0;
}

static heft_status read_marker(heft_cur *c, const char *marker)
{
    uint64_t at = heft_cur_pos(c);
    const uint8_t *p = heft_cur_take(c, 4);
    if (p && memcmp(p, marker, 4) != 0)
        return heft_error_set(c->in->err, HEFT_E_FORMAT, at, "the marker '%s' is missing", marker);
    return c->st;
}

/* Offsets must ascend, and every string must be UTF-8. */
static heft_status check_strings(const string_pool *s, heft_index *x, uint64_t offsets_at)
{
    for (uint32_t i = 0; i < s->count; i++) {
        uint32_t from = heft_le32(s->offsets + 4 * (size_t)i);
        uint32_t to = heft_le32(s->offsets + 4 * (size_t)i + 4);
        if (to <= from || to > s->blob_bytes)
            return heft_error_set(x->err, HEFT_E_FORMAT, offsets_at + 4 * (uint64_t)i,
                                  "string %U of the pool is empty, or its offsets do not ascend "
                                  "within the pool",
                                  (uint64_t)i);
    }
    for (uint32_t i = 0; i < s->count; i++) {
        heft_str text = pool_string(s, i);
        if (heft_utf8_valid(text.ptr, text.len) < text.len)
            return heft_error_set(x->err, HEFT_E_FORMAT,
                                  s->blob_offset + heft_le32(s->offsets + 4 * (size_t)i),
                                  "string %U of the pool is not UTF-8", (uint64_t)i);
    }
    return HEFT_OK;
}

static heft_status reject_duplicates(const string_pool *s, heft_index *x)
{
    size_t bytes = 2 * sizeof(uint32_t) * (size_t)s->count;
    if (!bytes)
        return HEFT_OK;
    uint32_t *ids = heft_mem_alloc(&x->mem, bytes);
    if (!ids)
        return heft_error_plain(x->err, HEFT_E_NOMEM, "no memory for %U strings",
                                (uint64_t)s->count);
    for (uint32_t i = 0; i < s->count; i++)
        ids[i] = i;
    heft_sort(ids, ids + s->count, s->count, string_less, s);
    heft_status st = HEFT_OK;
    for (uint32_t i = 1; i < s->count && !st; i++) {
        heft_str text = pool_string(s, ids[i]);
        if (heft_str_eq(pool_string(s, ids[i - 1]), text))
            st = heft_error_set(x->err, HEFT_E_FORMAT,
                                s->blob_offset + (uint64_t)(text.ptr - s->blob),
                                "string %q occurs twice in the pool", text);
    }
    heft_mem_free(&x->mem, ids, bytes);
    return st;
}

static heft_status read_pool(heft_cur *c, heft_index *x, string_pool *s)
{
    heft_status st = read_marker(c, "SRP!");
    s->count = heft_cur_u32(c);
    if (s->count > MAX_STRINGS)
        return heft_cur_fail(c, "the pool holds %U strings, at most %U are allowed",
                             (uint64_t)s->count, (uint64_t)MAX_STRINGS);
    uint64_t offsets_at = heft_cur_pos(c);
    s->offsets = heft_cur_take(c, 4 * ((uint64_t)s->count + 1));
    if (st || c->st)
        return st ? st : c->st;
    uint32_t first = heft_le32(s->offsets), bytes = heft_le32(s->offsets + 4 * (size_t)s->count);
    s->blob_bytes = bytes;
    if (first)
        return heft_error_set(x->err, HEFT_E_FORMAT, offsets_at,
                              "the pool's first offset is %U, not 0", (uint64_t)first);
    if (bytes > MAX_BLOB)
        return heft_error_set(x->err, HEFT_E_FORMAT, offsets_at,
                              "the pool has %U bytes, at most 128 MiB are allowed",
                              (uint64_t)bytes);
    s->blob_offset = heft_cur_pos(c);
    s->blob = (const char *)heft_cur_take(c, bytes);
    if (c->st)
        return c->st;
    st = check_strings(s, x, offsets_at);
    return st ? st : reject_duplicates(s, x);
}

static heft_status check_descriptor(heft_index *x, const string_pool *s, uint64_t at, uint32_t aux,
                                    uint32_t key)
{
    if (key >= s->count)
        return heft_error_set(x->err, HEFT_E_FORMAT, at + 4,
                              "a tensor's name is string %U of the pool, which has only %U",
                              (uint64_t)key, (uint64_t)s->count);
    heft_str name = pool_string(s, key);
    uint32_t code = aux >> 8 & 255;
    if (!name.len)
        return heft_error_set(x->err, HEFT_E_IO, at, "the file changed while being read");
    if (aux >> 16)
        return heft_error_set(x->err, HEFT_E_FORMAT, at,
                              "tensor %q: reserved bits are set (0x%X), they must be zero", name,
                              (uint64_t)aux);
    if (code >= heft_mag_snapshot_layout.type_count)
        return heft_error_set(x->err, HEFT_E_FORMAT, at,
                              "tensor %q: element type %U is unknown in snapshots (0 to 11 are "
                              "known)",
                              name, (uint64_t)code);
    if ((aux & 255) > MAX_RECORD_RANK)
        return heft_error_set(x->err, HEFT_E_FORMAT, at,
                              "tensor %q: rank is %U, at most 63 is allowed", name,
                              (uint64_t)(aux & 255));
    return HEFT_OK;
}

/* Add a tensor.  The payload begins at *end, where the previous payload ends; *end is then advanced
 * past the payload.  Offsets in descriptors count from data_start. */
static heft_status read_descriptor(heft_cur *c, heft_index *x, const string_pool *s,
                                   uint64_t data_start, uint64_t *end)
{
    uint64_t at = heft_cur_pos(c);
    const uint8_t *head = heft_cur_take(c, DESCRIPTOR);
    uint32_t aux = head ? heft_le32(head) : 0, key = head ? heft_le32(head + 4) : 0;
    uint32_t rank = aux & 255;
    const uint8_t *shape = heft_cur_take(c, 8 * rank);
    if (c->st)
        return c->st;
    HEFT_TRY(check_descriptor(x, s, at, aux, key));
    heft_str name = pool_string(s, key);
    uint64_t elements = heft_le64(head + 8), offset = heft_le64(head + 16), product, *dims;
    uint32_t id;
    HEFT_TRY(heft_ix_tensor(x, name, types[aux >> 8], rank, &dims, &id));
    for (uint32_t i = 0; i < rank; i++)
        dims[i] = heft_le64(shape + 8 * (size_t)i);
    if (rank > MAX_RANK)
        heft_ix_note(x, HEFT_WARNING, "mag/rank", at, id,
                     "its rank exceeds the 16 dimensions of Magnetron's tensors");
    if (!heft_product(&product, dims, rank) || product != elements || !elements)
        return heft_error_set(
            x->err, HEFT_E_FORMAT, at + 8,
            "tensor %q: the record says %U elements, which is 0 or does not match "
            "the shape",
            name, elements);
    if (offset != *end - data_start)
        return heft_error_set(x->err, HEFT_E_FORMAT, at + 16,
                              "tensor %q: its data begin %U bytes after 'BUF!', not %U", name,
                              offset, *end - data_start);
    HEFT_TRY(heft_ix_dense(x, id, at, *end, HEFT_UNKNOWN_LENGTH));
    *end += heft_ix_part_row_at(x, heft_ix_row(x, id)->first_part)->length;
    return HEFT_OK;
}

static heft_status read_tensors(heft_cur *c, heft_index *x, const string_pool *s,
                                const uint8_t *header)
{
    uint32_t tensors = heft_le32(header + TENSORS);
    heft_status st = heft_ix_reserve(x, TENSORS, tensors, heft_cur_left(c), DESCRIPTOR);
    /* Payload offsets count from the end of the descriptors, which vary in length: skip all
     * descriptors first. */
    heft_cur skip = *c;
    for (uint32_t i = 0; i < tensors && !st && !skip.st; i++) {
        const uint8_t *head = heft_cur_take(&skip, DESCRIPTOR);
        (void)heft_cur_take(&skip, head ? 8 * (uint64_t)head[0] : 0);
    }
    uint64_t marker = heft_cur_pos(&skip);
    if (!st)
        st = skip.st ? skip.st : read_marker(&skip, "BUF!");
    uint64_t data_start = marker + 4, data_end = data_start;
    for (uint32_t i = 0; i < tensors && !st; i++)
        st = read_descriptor(c, x, s, data_start, &data_end);
    if (st)
        return st;
    if (data_end < x->file_bytes)
        heft_ix_note(x, HEFT_WARNING, "mag/trailing-bytes", data_end, HEFT_NONE,
                     "unexpected bytes after the last payload");
    heft_stored_checksum sum = { .rule = "mag/header-crc",
                                 .algorithm = "crc32c",
                                 .range = { { CHECKED_FROM, marker - CHECKED_FROM } },
                                 .tensor = HEFT_NONE,
                                 .at_open = true };
    memcpy(sum.expect, header + CHECKSUM, 4);
    return heft_ix_checksum(x, sum);
}

heft_status heft_mag_snapshot_parse(heft_window *in, heft_index *x)
{
    heft_cur c = heft_cur_open(in, 0, in->size, "the snapshot's index");
    const uint8_t *header = heft_cur_take(&c, HEFT_MAG_SNAPSHOT_HEADER);
    if (!header)
        return c.st;
    if (heft_le64(header + CHECKED_FROM))
        return heft_error_set(x->err, HEFT_E_FORMAT, CHECKED_FROM,
                              "reserved fields of the header are set, they must be zero");
    x->version = heft_lit(heft_mag_snapshot_layout.version);
    x->format_private = heft_le64(header + 8);
    string_pool s = { 0 };
    HEFT_TRY(read_pool(&c, x, &s));
    HEFT_TRY(read_marker(&c, "MDT!"));
    HEFT_TRY(read_marker(&c, "DSC!"));
    return read_tensors(&c, x, &s, header);
}

/* ---- writing ---- */

static void put_descriptor(heft_out *o, const heft_index *x, uint32_t t, uint64_t data)
{
    const heft_ix_tensor_row *row = heft_ix_row(x, t);
    const uint64_t *dims = heft_ix_dims(x, t);
    uint64_t elements;
    (void)heft_product(&elements, dims,
                       row->rank); /* heft_mag_plan_tensors() checked for overflow */
    heft_out_u32(o, row->rank | heft_mag_code(&heft_mag_snapshot_layout, row->dtype) << 8);
    heft_out_u32(o, t);
    heft_out_u64(o, elements);
    heft_out_u64(o, heft_ix_part_row_at(x, row->first_part)->offset - data);
    for (uint32_t i = 0; i < row->rank; i++)
        heft_out_u64(o, dims[i]);
}

/* Emit all bytes that the checksum covers. */
static void put_checked(const heft_plan *p, heft_out *o)
{
    const heft_index *x = p->x;
    uint32_t offset = 0;
    heft_out_u64(o, 0);
    heft_out_u32(o, heft_ix_tensors(x));
    heft_out_str(o, heft_lit("SRP!"));
    heft_out_u32(o, heft_ix_tensors(x));
    heft_out_u32(o, offset);
    for (uint32_t t = 0; t < heft_ix_tensors(x); t++)
        heft_out_u32(o, offset += heft_ix_row(x, t)->name_len);
    for (uint32_t t = 0; t < heft_ix_tensors(x); t++)
        heft_out_str(o, heft_ix_name(x, t));
    heft_out_str(o, heft_lit("MDT!DSC!"));
    for (uint32_t t = 0; t < heft_ix_tensors(x); t++)
        put_descriptor(o, x, t, p->header_bytes);
}

static heft_status plan_limits(heft_plan *p)
{
    uint32_t count = heft_ix_tensors(p->x);
    uint64_t name_bytes = 0;
    for (uint32_t t = 0; t < count; t++)
        name_bytes += heft_ix_row(p->x, t)->name_len;
    if (count > MAX_STRINGS)
        return heft_error_plain(p->err, HEFT_E_LOSSY,
                                "too many tensors for a snapshot: %U, at most %U are allowed",
                                (uint64_t)count, (uint64_t)MAX_STRINGS);
    if (name_bytes > MAX_BLOB)
        return heft_error_plain(p->err, HEFT_E_LOSSY,
                                "the tensor names are too long for a snapshot: %U bytes, at most "
                                "128 MiB are allowed",
                                name_bytes);
    return HEFT_OK;
}

heft_status heft_mag_snapshot_plan(heft_plan *p)
{
    heft_status st = heft_loss_metadata(p, "mag/metadata", "a .mag snapshot");
    if (!st)
        st = heft_mag_plan_tensors(p, &heft_mag_snapshot_layout);
    if (!st)
        st = plan_limits(p);
    uint32_t *crc = st ? NULL : heft_plan_alloc(p, sizeof *crc);
    if (!crc)
        return st ? st : HEFT_E_NOMEM;
    heft_out count = heft_out_counting();
    put_checked(p, &count);
    p->priv = crc;
    p->align = 1; /* the layout has no padding */
    p->header_bytes = CHECKED_FROM + count.total + 4;
    p->data_end = p->header_bytes;
    if (heft_ix_tensors(p->x))
        st = heft_plan_place(p, p->header_bytes, 1);
    if (st)
        return st;
    p->file_bytes = p->data_end;
    uint8_t scratch[HEFT_MAG_CRC_SCRATCH];
    heft_out o = heft_out_crc32c(crc, scratch, sizeof scratch);
    put_checked(p, &o);
    return heft_out_flush(&o);
}

heft_status heft_mag_snapshot_write_header(const heft_plan *p, heft_out *o)
{
    const uint32_t *crc = p->priv;
    heft_out_str(o, heft_lit("MAG!"));
    heft_out_u32(o, VERSION);
    /* The time of an existing file is kept; otherwise 0, since output depends on the input
     * alone. */
    heft_out_u64(o, p->existing ? p->existing->format_private : 0);
    heft_out_u32(o, *crc);
    heft_status st = heft_mag_put_checked(p, o, *crc, put_checked);
    heft_out_str(o, heft_lit("BUF!"));
    return st ? st : o->st;
}
