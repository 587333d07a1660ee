/* v1_write.c - zTensor 1.0, 1.1 and 1.2 are laid out and written; v1.c shows their layout.
 *
 * As the reference writers have it: keys in the order of their structs, names and roles sorted by their
 * bytes, data in the order of the model.  The manifest comes last and is not aligned.
 */
#include "format/ztensor/v1_write.h"
#include "base/sort.h"
#include "format/losses.h"
#include "model/values.h"

static const heft_zt1_generation generations[] = {
    { "1.0", "1.0", true, false, false },
    { "1.1", "1.1.0", false, false, false },
    { "1.2", "1.2.0", false, true, true },
};
enum { GENERATIONS = sizeof generations / sizeof *generations };

bool heft_zt1_writes(heft_str version, bool is_10)
{
    bool found = false;
    for (size_t i = 0; i < GENERATIONS && !found; i++)
        found = generations[i].is_10 == is_10 && heft_str_is(version, generations[i].version);
    return found;
}

/* ---- order ---- */

static bool name_below(const void *ctx, uint32_t a, uint32_t b)
{
    return heft_str_order(heft_ix_name(ctx, a), heft_ix_name(ctx, b)) < 0;
}

static bool key_below(const void *ctx, uint32_t a, uint32_t b)
{
    return heft_str_order(heft_ix_value(ctx, a)->key, heft_ix_value(ctx, b)->key) < 0;
}

static bool role_below(const void *ctx, uint32_t a, uint32_t b)
{
    return heft_str_order(heft_ix_role(ctx, heft_ix_part_row_at(ctx, a)->role),
                          heft_ix_role(ctx, heft_ix_part_row_at(ctx, b)->role)) < 0;
}

/* Where a part lies in the file it comes from; 0 when it comes from none: then they stay as they are. */
static bool lies_before(const void *ctx, uint32_t a, uint32_t b)
{
    const heft_ix_part_row *p = heft_ix_part_row_at(ctx, a), *q = heft_ix_part_row_at(ctx, b);
    return p->offset != q->offset ? p->offset < q->offset : p->offset && !p->length && q->length;
}

static heft_status sort(heft_plan *p, heft_zt1_listing *l,
                        bool (*below)(const void *ctx, uint32_t a, uint32_t b))
{
    uint32_t *scratch = heft_plan_alloc(p, l->count * sizeof *scratch);
    if (!scratch)
        return HEFT_E_NOMEM;
    heft_sort(l->at, scratch, l->count, below, p->x);
    return HEFT_OK;
}

/* Data are written in the order in which they are read. */
static heft_status order_parts(heft_plan *p)
{
    heft_zt1_listing parts = { heft_plan_alloc(p, p->x->parts.len * sizeof *parts.at), 0 };
    if (!parts.at)
        return HEFT_E_NOMEM;
    for (uint32_t t = 0; t < heft_ix_tensors(p->x); t++)
        for (uint32_t k = 0; k < heft_ix_row(p->x, t)->part_count; k++) {
            uint32_t part = heft_ix_row(p->x, t)->first_part + k;
            if (p->same[part] == part)
                parts.at[parts.count++] = part;
        }
    heft_status st = sort(p, &parts, lies_before);
    p->order = parts.at;
    p->order_count = parts.count;
    return st;
}

static uint32_t count_attributes(const heft_index *x, uint32_t t)
{
    uint32_t count = 0;
    heft_value v;
    for (uint32_t i = 0; heft_ix_attribute(&v, x, t, i); i = heft_value_next(&v, i))
        count++;
    return count;
}

static heft_status order_tensors(heft_plan *p)
{
    heft_zt1_layout *z = p->priv;
    uint32_t n = heft_ix_tensors(p->x), most = 0;
    z->tensors = (heft_zt1_listing){ heft_plan_alloc(p, n * sizeof *z->tensors.at), n };
    if (!z->tensors.at)
        return HEFT_E_NOMEM;
    for (uint32_t t = 0; t < n; t++) {
        uint32_t parts = heft_ix_row(p->x, t)->part_count, count = count_attributes(p->x, t);
        z->tensors.at[t] = t;
        count = parts > count ? parts : count;
        most = count > most ? count : most;
    }
    z->room = heft_plan_alloc(p, 2 * (size_t)most * sizeof *z->room);
    return z->room ? sort(p, &z->tensors, name_below) : HEFT_E_NOMEM;
}

/* ---- the manifest ---- */

static void put_key(heft_out *o, const char *key)
{
    heft_cbor_put_text(o, heft_lit(key));
}

static void put_hex(char *to, uint8_t byte, const char *digits)
{
    to[0] = digits[byte >> 4];
    to[1] = digits[byte & 15];
}

static void put_digest(heft_out *o, const heft_plan *p, uint32_t part)
{
    static const uint8_t none[HEFT_CLAIM_BYTES];
    const uint8_t *bytes = o->buf ? heft_plan_part_digest(p, p->same[part])
                                  : none; /* only counted */
    bool is_crc = heft_str_is(heft_lit(p->storage[part].digest), "crc32c");
    heft_str start = heft_lit(is_crc ? "crc32c:0x" : "sha256:");
    uint32_t count = is_crc ? 4 : 32;
    char text[80];
    memcpy(text, start.ptr, start.len);
    for (uint32_t i = 0; i < count; i++) /* a number: its last byte first */
        put_hex(text + start.len + 2 * i, bytes[is_crc ? 3 - i : i],
                is_crc ? "0123456789ABCDEF" : "0123456789abcdef");
    put_key(o, "digest");
    heft_cbor_put_text(o, (heft_str){ text, start.len + 2 * count });
}

static void put_type(heft_out *o, const heft_zt1_generation *g, heft_dtype t)
{
    const heft_zt_type *type = heft_zt_type_of(t), *stored = type;
    if (type->logical)
        stored = heft_zt_type_of(type->base);
    put_key(o, "dtype");
    put_key(o, g->is_10 ? stored->long_name : stored->name);
    if (!type->logical)
        return;
    put_key(o, "type");
    put_key(o, type->logical);
}

static void put_part(heft_out *o, const heft_plan *p, uint32_t t, uint32_t part)
{
    const heft_zt1_layout *z = p->priv;
    heft_dtype type = heft_zt1_written_type(p->x, t, part);
    heft_str role = heft_ix_role(p->x, heft_ix_part_row_at(p->x, part)->role);
    const heft_ix_part_row *row = heft_ix_part_row_at(p->x, p->same[part]);
    bool is_zstd = row->encoding == HEFT_ZSTD, has_type = !z->g->is_10;
    bool is_logical = has_type && heft_zt_type_of(type)->logical;
    heft_str kept = p->kept ? heft_ix_digest_of(p->kept, part) : (heft_str){ NULL, 0 };
    heft_cbor_put_text(o, role);
    heft_cbor_put_map(o, 2u + has_type + is_logical + is_zstd + (is_zstd && z->g->is_logical) +
                             (kept.len || p->storage[part].digest));
    if (has_type)
        put_type(o, z->g, type);
    put_key(o, "offset");
    heft_cbor_put_u64(o, row->offset);
    put_key(o, "length");
    heft_cbor_put_u64(o, row->stored);
    if (is_zstd && z->g->is_logical) {
        put_key(o, "uncompressed_length");
        heft_cbor_put_u64(o, row->length);
    }
    if (is_zstd) {
        put_key(o, "encoding");
        put_key(o, "zstd");
    }
    if (kept.len) {
        put_key(o, "digest");
        heft_cbor_put_text(o, kept);
    } else if (p->storage[part].digest)
        put_digest(o, p, part);
}

static void put_parts(heft_out *o, const heft_plan *p, uint32_t t)
{
    const heft_zt1_layout *z = p->priv;
    const heft_ix_tensor_row *row = heft_ix_row(p->x, t);
    for (uint32_t i = 0; i < row->part_count; i++)
        z->room[i] = row->first_part + i;
    heft_sort(z->room, z->room + row->part_count, row->part_count, role_below, p->x);
    put_key(o, "components");
    heft_cbor_put_map(o, row->part_count);
    for (uint32_t i = 0; i < row->part_count; i++)
        put_part(o, p, t, z->room[i]);
}

typedef struct owner {
    const heft_index *x;
    uint32_t tensor;
} owner;

static bool attribute_below(const void *ctx, uint32_t a, uint32_t b)
{
    const owner *w = ctx;
    heft_value v, u;
    return heft_ix_attribute(&v, w->x, w->tensor, a) && heft_ix_attribute(&u, w->x, w->tensor, b) &&
           heft_str_order(v.key, u.key) < 0;
}

static void put_attributes(heft_out *o, const heft_plan *p, uint32_t t, uint32_t count)
{
    const heft_zt1_layout *z = p->priv;
    owner w = { p->x, t };
    heft_value v;
    uint32_t n = 0;
    for (uint32_t i = 0; heft_ix_attribute(&v, p->x, t, i); i = heft_value_next(&v, i))
        z->room[n++] = i;
    heft_sort(z->room, z->room + count, count, attribute_below, &w);
    put_key(o, "attributes");
    heft_cbor_put_map(o, count);
    for (uint32_t i = 0; i < count; i++) {
        if (heft_ix_attribute(&v, p->x, t, z->room[i]))
            heft_cbor_put_text(o, v.key);
        heft_zt_put_value(o, p->x, t, z->room[i]);
    }
}

static void put_tensor(heft_out *o, const heft_plan *p, uint32_t t)
{
    const heft_zt1_layout *z = p->priv;
    const heft_ix_tensor_row *row = heft_ix_row(p->x, t);
    uint32_t attributes = z->g->is_10 ? 0 : count_attributes(p->x, t);
    heft_cbor_put_text(o, heft_ix_name(p->x, t));
    heft_cbor_put_map(o, 3u + z->g->is_10 + !!attributes);
    if (z->g->is_10)
        put_type(o, z->g, row->dtype ? row->dtype : (heft_dtype)HEFT_U8);
    put_key(o, "shape");
    heft_cbor_put_array(o, row->rank);
    for (uint32_t i = 0; i < row->rank; i++)
        heft_cbor_put_u64(o, heft_ix_dims(p->x, t)[i]);
    put_key(o, "format");
    heft_cbor_put_text(o, heft_ix_layout(p->x, t));
    if (attributes)
        put_attributes(o, p, t, attributes);
    put_parts(o, p, t);
}

static void put_metadata(heft_out *o, const heft_plan *p)
{
    const heft_zt1_layout *z = p->priv;
    if (!z->g->is_10 && !z->metadata.count)
        return;
    put_key(o, "attributes");
    heft_cbor_put_map(o, z->metadata.count);
    for (uint32_t i = 0; i < z->metadata.count; i++) {
        heft_cbor_put_text(o, heft_ix_value(p->x, z->metadata.at[i])->key);
        heft_zt_put_value(o, p->x, HEFT_NONE, z->metadata.at[i]);
    }
}

static void put_generator(heft_out *o, const heft_index *x)
{
    const uint64_t numbers[] = { HEFT_VERSION_MAJOR, HEFT_VERSION_MINOR, HEFT_VERSION_PATCH };
    char own[80] = "heft";
    size_t len = 4;
    for (unsigned i = 0; i < 3; i++) {
        own[len++] = i ? '.' : ' ';
        len += heft_u64_text(own + len, numbers[i]);
    }
    put_key(o, "generator");
    heft_cbor_put_text(o, x->generator.ptr ? x->generator : (heft_str){ own, len });
}

static void put_manifest(heft_out *o, const heft_plan *p)
{
    const heft_zt1_layout *z = p->priv;
    heft_cbor_put_map(o, z->g->is_10 ? 4 : 2u + (z->metadata.count > 0));
    put_key(o, "version");
    put_key(o, z->g->version);
    if (z->g->is_10)
        put_generator(o, p->x);
    put_metadata(o, p);
    put_key(o, z->g->is_10 ? "tensors" : "objects");
    heft_cbor_put_map(o, z->tensors.count);
    for (uint32_t i = 0; i < z->tensors.count; i++)
        put_tensor(o, p, z->tensors.at[i]);
}

/* ---- places ---- */

static heft_status place(heft_plan *p)
{
    heft_zt1_layout *z = p->priv;
    uint64_t footer = z->g->is_10 ? 8 : 16;
    bool is_empty = !p->order_count;
    p->align = p->align > HEFT_ZT_ALIGN ? p->align : HEFT_ZT_ALIGN;
    uint64_t kept = HEFT_ZT_MAGIC;
    p->front_bytes = is_empty && !z->g->is_10 ? HEFT_ZT_MAGIC : HEFT_ZT_ALIGN;
    if (heft_plan_compresses(p) || p->grows)
        return heft_plan_append(p, p->front_bytes);
    if (heft_plan_room(p, &kept))
        p->front_bytes = HEFT_ZT_MAGIC;
    else
        kept = p->front_bytes;
    heft_status st = heft_plan_place(p, kept, 1);
    if (st)
        return st;
    heft_out count = heft_out_counting();
    put_manifest(&count, p);
    if (!heft_add(&p->file_bytes, p->data_end, count.total + footer))
        return heft_error_plain(p->err, HEFT_E_LOSSY, "the file would pass 2^64 bytes");
    return HEFT_OK;
}

static const heft_zt1_generation *asked_generation(const heft_plan *p)
{
    for (size_t i = 0; p->version && i < GENERATIONS; i++)
        if (heft_str_is(heft_lit(p->version), generations[i].name))
            return &generations[i];
    return p->version ? NULL : &generations[0];
}

static bool has_digest(const char *algorithm)
{
    return heft_str_is(heft_lit(algorithm), "crc32c") || heft_str_is(heft_lit(algorithm), "sha256");
}

void heft_zt1_storage(heft_storage *how, bool is_kept)
{
    if (is_kept && how->digest && !has_digest(how->digest))
        how->digest = "crc32c";
    if (is_kept && how->encoding != HEFT_ZSTD)
        how->encoding = HEFT_RAW;
}

static heft_status check_storage(const heft_plan *p, const heft_storage *how)
{
    const heft_zt1_layout *z = p->priv;
    if (how->digest && !has_digest(how->digest))
        return heft_error_plain(p->err, HEFT_E_UNSUPPORTED,
                                "digests in zTensor %s are crc32c or sha256, not %s", z->g->name,
                                how->digest);
    if (how->encoding != HEFT_RAW && how->encoding != HEFT_ZSTD)
        return heft_error_plain(p->err, HEFT_E_UNSUPPORTED,
                                "zTensor compresses with zstd and nothing else");
    return HEFT_OK;
}

static heft_status check_asked(const heft_plan *p, const heft_zt1_generation *g)
{
    if (!g)
        return heft_error_plain(p->err, HEFT_E_ARGUMENT,
                                "there is no zTensor version %s to write (there are 1.0, 1.1, 1.2 "
                                "and 2)",
                                p->version);
    return heft_plan_check_storage(p, check_storage);
}

heft_status heft_zt1_plan(heft_plan *p)
{
    heft_zt1_layout *z = heft_plan_alloc(p, sizeof *z);
    if (!z)
        return HEFT_E_NOMEM;
    p->priv = z;
    z->g = asked_generation(p);
    heft_status st = check_asked(p, z->g);
    p->names_generator = z->g && z->g->is_10;
    if (!st)
        st = heft_loss_parts(p, "ztensor/parts", NULL);
    if (!st)
        st = heft_zt1_plan_metadata(p);
    if (!st)
        st = heft_zt1_plan_tensors(p);
    if (!st)
        st = sort(p, &z->metadata, key_below);
    if (!st)
        st = order_tensors(p);
    if (!st)
        st = heft_plan_share(p);
    if (!st)
        st = heft_plan_share_storage(p);
    if (!st)
        st = order_parts(p);
    return st ? st : place(p);
}

heft_status heft_zt1_front(const heft_plan *p, heft_out *o)
{
    heft_out_str(o, heft_lit("ZTEN1000"));
    heft_out_fill(o, 0, p->front_bytes - HEFT_ZT_MAGIC);
    return o->st;
}

heft_status heft_zt1_back(const heft_plan *p, heft_out *o)
{
    const heft_zt1_layout *z = p->priv;
    uint64_t start = o->total;
    put_manifest(o, p);
    heft_out_u64(o, o->total - start);
    if (!z->g->is_10)
        heft_out_str(o, heft_lit("ZTEN1000"));
    return o->st;
}
