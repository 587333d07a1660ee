/* mag_snapshot.c - the snapshot layout that Magnetron writes since 2026, under version 100.
 *
 *    0  "MAG!"             4  u32 100               8  u64 Unix time
 *   16  u32 CRC-32C of [20, where "BUF!" begins)   20  u32 0
 *   24  u32 0 (length of the metadata)             28  u32 tensors
 *   32  "SRP!"  u32 strings, u32 offsets[strings + 1], the strings end to end
 *       "MDT!"  nothing
 *       "DSC!"  per tensor: u32 rank | element type << 8, u32 string, u64 elements,
 *               u64 offset behind "BUF!", u64 shape[rank]
 *       "BUF!"  payloads end to end, up to the end of the file
 */
#include "base/sort.h"
#include "format/losses.h"
#include "format/mag/mag.h"

enum {
    VERSION = 100,
    CHECKSUM = 16,
    CHECKED_FROM = 20,
    TENSORS = 28,
    DESCRIPTOR = 24,
    MAX_STRINGS = 65534,
    MAX_BLOB = 128 << 20,
    MAX_RANK_READ = 63, /* what Magnetron's record reader takes; its tensors have 16 at most */
    MAX_RANK = 16
};

static const heft_dtype types[] = { HEFT_F32, HEFT_F16, HEFT_BF16, HEFT_BOOL, HEFT_U8,  HEFT_I8,
                                    HEFT_U16, HEFT_I16, HEFT_U32,  HEFT_I32,  HEFT_U64, HEFT_I64 };
const heft_mag_layout heft_mag_snapshot_layout = { "snapshot", types, 12, 0, MAX_RANK, MAX_RANK };

/* ---- reading ---- */

typedef struct pool { /* the strings, as they lie in the file */
    const uint8_t *offsets;
    const char *blob;
    uint64_t blob_at;
    uint32_t count, blob_bytes;
} pool;

/* Empty when the offsets are not those that check_strings() saw: a mapped file may change at any time. */
static heft_str pool_string(const pool *s, uint32_t i)
{
    uint32_t from = heft_le32(s->offsets + 4 * (size_t)i);
    uint32_t to = heft_le32(s->offsets + 4 * (size_t)i + 4);
    bool is_inside = from <= to && to <= s->blob_bytes;
    return is_inside ? (heft_str){ s->blob + from, to - from } : (heft_str){ "", 0 };
}

static bool string_below(const void *ctx, uint32_t a, uint32_t b)
{
    return heft_str_order(pool_string(ctx, a), pool_string(ctx, b)) < 0;
}

static heft_status read_marker(heft_cur *c, const char *marker)
{
    uint64_t at = heft_cur_pos(c);
    const uint8_t *p = heft_cur_take(c, 4);
    if (p && memcmp(p, marker, 4) != 0)
        return heft_error_set(c->in->err, HEFT_E_FORMAT, at, "'%s' does not stand here", marker);
    return c->st;
}

/* Offsets never fall, and what lies between two of them is text. */
static heft_status check_strings(const pool *s, heft_index *x, uint64_t offsets_at)
{
    for (uint32_t i = 0; i < s->count; i++) {
        uint32_t from = heft_le32(s->offsets + 4 * (size_t)i);
        uint32_t to = heft_le32(s->offsets + 4 * (size_t)i + 4);
        if (to <= from || to > s->blob_bytes)
            return heft_error_set(x->err, HEFT_E_FORMAT, offsets_at + 4 * (uint64_t)i,
                                  "string %U of the pool is empty, or its offsets fall",
                                  (uint64_t)i);
    }
    for (uint32_t i = 0; i < s->count; i++) {
        heft_str text = pool_string(s, i);
        if (heft_utf8_valid(text.ptr, text.len) < text.len)
            return heft_error_set(x->err, HEFT_E_FORMAT,
                                  s->blob_at + heft_le32(s->offsets + 4 * (size_t)i),
                                  "string %U of the pool is not UTF-8", (uint64_t)i);
    }
    return HEFT_OK;
}

static heft_status refuse_twins(const pool *s, heft_index *x)
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
    heft_sort(ids, ids + s->count, s->count, string_below, s);
    heft_status st = HEFT_OK;
    for (uint32_t i = 1; i < s->count && !st; i++) {
        heft_str text = pool_string(s, ids[i]);
        if (heft_str_eq(pool_string(s, ids[i - 1]), text))
            st = heft_error_set(x->err, HEFT_E_FORMAT, s->blob_at + (uint64_t)(text.ptr - s->blob),
                                "string %q stands in the pool twice", text);
    }
    heft_mem_free(&x->mem, ids, bytes);
    return st;
}

static heft_status read_pool(heft_cur *c, heft_index *x, pool *s)
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
    s->blob_at = heft_cur_pos(c);
    s->blob = (const char *)heft_cur_take(c, bytes);
    if (c->st)
        return c->st;
    st = check_strings(s, x, offsets_at);
    return st ? st : refuse_twins(s, x);
}

static heft_status check_head(heft_index *x, const pool *s, uint64_t at, uint32_t aux, uint32_t key)
{
    if (key >= s->count)
        return heft_error_set(x->err, HEFT_E_FORMAT, at + 4,
                              "a tensor's name is string %U, the pool has %U", (uint64_t)key,
                              (uint64_t)s->count);
    heft_str name = pool_string(s, key);
    uint32_t code = aux >> 8 & 255;
    if (!name.len)
        return heft_error_set(x->err, HEFT_E_IO, at, "the file changed while it was read");
    if (aux >> 16)
        return heft_error_set(x->err, HEFT_E_FORMAT, at,
                              "tensor %q: reserved bits are set (0x%X), they must be zero", name,
                              (uint64_t)aux);
    if (code >= heft_mag_snapshot_layout.type_count)
        return heft_error_set(x->err, HEFT_E_FORMAT, at,
                              "tensor %q: element type %U is none of a snapshot (0 to 11)", name,
                              (uint64_t)code);
    if ((aux & 255) > MAX_RANK_READ)
        return heft_error_set(x->err, HEFT_E_FORMAT, at,
                              "tensor %q: its rank is %U, at most 63 is allowed", name,
                              (uint64_t)(aux & 255));
    return HEFT_OK;
}

typedef struct stretch { /* of the file */
    uint64_t from, end;
} stretch;

/* Adds a tensor whose data begin where those before it end. */
static heft_status read_descriptor(heft_cur *c, heft_index *x, const pool *s, stretch *data)
{
    uint64_t at = heft_cur_pos(c);
    const uint8_t *head = heft_cur_take(c, DESCRIPTOR);
    uint32_t aux = head ? heft_le32(head) : 0, key = head ? heft_le32(head + 4) : 0;
    uint32_t rank = aux & 255;
    const uint8_t *shape = heft_cur_take(c, 8 * rank);
    if (c->st)
        return c->st;
    heft_status st = check_head(x, s, at, aux, key);
    if (st)
        return st;
    heft_str name = pool_string(s, key);
    uint64_t elements = heft_le64(head + 8), offset = heft_le64(head + 16), product, *dims;
    uint32_t id;
    st = heft_ix_tensor(x, name, types[aux >> 8], rank, &dims, &id);
    if (st)
        return st;
    for (uint32_t i = 0; i < rank; i++)
        dims[i] = heft_le64(shape + 8 * (size_t)i);
    if (rank > MAX_RANK)
        heft_ix_note(x, HEFT_WARNING, "mag/rank", at, id,
                     "its rank is more than Magnetron's tensors have (16)");
    if (!heft_product(&product, dims, rank) || product != elements || !elements)
        return heft_error_set(x->err, HEFT_E_FORMAT, at + 8,
                              "tensor %q: %U elements are not what its shape holds", name,
                              elements);
    if (offset != data->end - data->from)
        return heft_error_set(x->err, HEFT_E_FORMAT, at + 16,
                              "tensor %q: its data begin at %U behind 'BUF!', not at %U", name,
                              offset, data->end - data->from);
    st = heft_ix_dense(x, id, at, data->end, HEFT_UNKNOWN_LENGTH);
    if (!st)
        data->end += heft_ix_part_row_at(x, heft_ix_row(x, id)->first_part)->length;
    return st;
}

static heft_status read_tensors(heft_cur *c, heft_index *x, const pool *s, const uint8_t *header)
{
    uint32_t tensors = heft_le32(header + TENSORS);
    heft_status st = heft_ix_reserve(x, TENSORS, tensors, heft_cur_left(c), DESCRIPTOR);
    /* Descriptors vary in length and come before the data they point into: one walk to find the end. */
    heft_cur walk = *c;
    for (uint32_t i = 0; i < tensors && !st && !walk.st; i++) {
        const uint8_t *head = heft_cur_take(&walk, DESCRIPTOR);
        (void)heft_cur_take(&walk, head ? 8 * (uint64_t)head[0] : 0);
    }
    uint64_t marker = heft_cur_pos(&walk);
    if (!st)
        st = walk.st ? walk.st : read_marker(&walk, "BUF!");
    stretch data = { marker + 4, marker + 4 };
    for (uint32_t i = 0; i < tensors && !st; i++)
        st = read_descriptor(c, x, s, &data);
    if (st)
        return st;
    if (data.end < x->file_bytes)
        heft_ix_note(x, HEFT_WARNING, "mag/trailing-bytes", data.end, HEFT_NONE,
                     "bytes follow the last payload, where a snapshot ends");
    heft_stored_checksum claim = { .rule = "mag/header-crc",
                                   .algorithm = "crc32c",
                                   .range = { { CHECKED_FROM, marker - CHECKED_FROM } },
                                   .tensor = HEFT_NONE,
                                   .at_open = true };
    memcpy(claim.expect, header + CHECKSUM, 4);
    return heft_ix_checksum(x, claim);
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
    x->own = heft_le64(header + 8);
    pool s = { 0 };
    heft_status st = read_pool(&c, x, &s);
    if (!st)
        st = read_marker(&c, "MDT!");
    if (!st)
        st = read_marker(&c, "DSC!");
    return st ? st : read_tensors(&c, x, &s, header);
}

/* ---- writing ---- */

static void put_descriptor(heft_out *o, const heft_index *x, uint32_t t, uint64_t data)
{
    const heft_ix_tensor_row *row = heft_ix_row(x, t);
    const uint64_t *dims = heft_ix_dims(x, t);
    uint64_t elements;
    (void)heft_product(&elements, dims, row->rank); /* heft_mag_plan_tensors() saw to it */
    heft_out_u32(o, row->rank | heft_mag_code(&heft_mag_snapshot_layout, row->dtype) << 8);
    heft_out_u32(o, t);
    heft_out_u64(o, elements);
    heft_out_u64(o, heft_ix_part_row_at(x, row->first_part)->offset - data);
    for (uint32_t i = 0; i < row->rank; i++)
        heft_out_u64(o, dims[i]);
}

/* Everything that the checksum covers. */
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
                                "a snapshot holds at most %U tensors, there are %U",
                                (uint64_t)MAX_STRINGS, (uint64_t)count);
    if (name_bytes > MAX_BLOB)
        return heft_error_plain(p->err, HEFT_E_LOSSY,
                                "a snapshot holds 128 MiB of names, there are %U bytes",
                                name_bytes);
    return HEFT_OK;
}

heft_status heft_mag_snapshot_plan(heft_plan *p)
{
    heft_status st = heft_loss_metadata(p, "mag/metadata");
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
    p->align = 1; /* the layout has no room for another */
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
    heft_out_u64(o,
                 p->existing ? p->existing->own : 0); /* output depends on nothing but the input */
    heft_out_u32(o, *crc);
    heft_status st = heft_mag_put_checked(p, o, *crc, put_checked);
    heft_out_str(o, heft_lit("BUF!"));
    return st ? st : o->st;
}
