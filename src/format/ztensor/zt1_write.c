/* zt1_write.c - plans and writes zTensor 1.0, 1.1 and 1.2; zt1.c shows the layout.
 * | Output matches the reference writers: keys in the order of their structs, names and roles
 * sorted by bytes, data in the order of the model. The manifest comes last and is not aligned. | */
#include "format/ztensor/zt1_write.h"
#include "base/sort.h"
#include "format/losses.h"
#include "model/values.h"

/* ---- order ---- */

static bool key_less(const void *ctx, uint32_t a, uint32_t b)
{
    return heft_str_order(heft_ix_value(ctx, a)->key, heft_ix_value(ctx, b)->key) < 0;
}

/* Order parts by offset in their source file. Parts without a source have offset 0 and keep
 * their order. */
static bool is_before_in_source(const void *ctx, uint32_t a, uint32_t b)
{
    const heft_ix_part_row *p = heft_ix_part_row_at(ctx, a), *q = heft_ix_part_row_at(ctx, b);
    return p->offset != q->offset ? p->offset < q->offset : p->offset && !p->length && q->length;
}

static heft_status sort_ids(heft_plan *p, heft_zt1_ids *l,
                            bool (*less)(const void *ctx, uint32_t a, uint32_t b))
{
    uint32_t *sort_scratch = heft_plan_alloc(p, l->count * sizeof *sort_scratch);
    if (!sort_scratch)
        return HEFT_E_NOMEM;
    heft_sort(l->at, sort_scratch, l->count, less, p->x);
    return HEFT_OK;
}

/* Write data in the order in which the source stores it, so that the source is read
 * sequentially. */
static heft_status order_parts(heft_plan *p)
{
    heft_zt1_ids parts = { heft_plan_alloc(p, p->x->parts.len * sizeof *parts.at), 0 };
    if (!parts.at)
        return HEFT_E_NOMEM;
    for (uint32_t t = 0; t < heft_ix_tensors(p->x); t++)
        for (uint32_t k = 0; k < heft_ix_row(p->x, t)->part_count; k++) {
            uint32_t part = heft_ix_row(p->x, t)->first_part + k;
            if (p->duplicate_of[part] == part)
                parts.at[parts.count++] = part;
        }
    heft_status st = sort_ids(p, &parts, is_before_in_source);
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
    heft_zt1_plan_state *z = p->priv;
    uint32_t n = heft_ix_tensors(p->x), max_ids = 0;
    z->tensors = (heft_zt1_ids){ heft_plan_alloc(p, n * sizeof *z->tensors.at), n };
    if (!z->tensors.at)
        return HEFT_E_NOMEM;
    for (uint32_t t = 0; t < n; t++) {
        uint32_t parts = heft_ix_row(p->x, t)->part_count, count = count_attributes(p->x, t);
        z->tensors.at[t] = t;
        count = parts > count ? parts : count;
        max_ids = count > max_ids ? count : max_ids;
    }
    z->scratch = heft_plan_alloc(p, 2 * (size_t)max_ids * sizeof *z->scratch);
    return z->scratch ? sort_ids(p, &z->tensors, heft_zt_name_less) : HEFT_E_NOMEM;
}

/* ---- the manifest ---- */

static void put_digest(heft_out *o, const heft_plan *p, uint32_t part)
{
    bool is_crc = heft_str_is(heft_lit(p->storage[part].digest), "crc32c");
    const uint8_t *bytes = o->buf ? heft_plan_part_digest(p, p->duplicate_of[part])
                                  : NULL; /* counting only */
    heft_cbor_put_key(o, "digest");
    heft_zt_put_hex(o, heft_lit(is_crc ? "crc32c:0x" : "sha256:"), bytes, is_crc ? 4 : 32, is_crc,
                    is_crc);
}

static void put_type(heft_out *o, const heft_zt1_generation *g, heft_dtype t)
{
    const heft_zt_type *type = heft_zt_type_of(t), *stored = type;
    if (type->logical)
        stored = heft_zt_type_of(type->base);
    heft_cbor_put_key(o, "dtype");
    heft_cbor_put_key(o, g->is_10 ? stored->long_name : stored->name);
    if (!type->logical)
        return;
    heft_cbor_put_key(o, "type");
    heft_cbor_put_key(o, type->logical);
}

static void put_part(heft_out *o, const heft_plan *p, uint32_t t, uint32_t part)
{
    const heft_zt1_plan_state *z = p->priv;
    heft_dtype type = heft_zt1_written_type(p->x, t, part);
    heft_str role = heft_ix_role(p->x, heft_ix_part_row_at(p->x, part)->role);
    const heft_ix_part_row *row = heft_ix_part_row_at(p->x, p->duplicate_of[part]);
    bool is_zstd = row->encoding == HEFT_ZSTD, has_type = !z->g->is_10;
    bool has_logical_types = has_type && heft_zt_type_of(type)->logical;
    heft_str kept_digest = p->existing ? heft_ix_digest_of(p->existing, part)
                                       : (heft_str){ NULL, 0 };
    heft_cbor_put_text(o, role);
    heft_cbor_put_map(o, 2u + has_type + has_logical_types + is_zstd +
                             (is_zstd && z->g->has_logical_types) +
                             (kept_digest.len || p->storage[part].digest));
    if (has_type)
        put_type(o, z->g, type);
    heft_cbor_put_key(o, "offset");
    heft_cbor_put_u64(o, row->offset);
    heft_cbor_put_key(o, "length");
    heft_cbor_put_u64(o, row->stored);
    if (is_zstd && z->g->has_logical_types) {
        heft_cbor_put_key(o, "uncompressed_length");
        heft_cbor_put_u64(o, row->length);
    }
    if (is_zstd) {
        heft_cbor_put_key(o, "encoding");
        heft_cbor_put_key(o, "zstd");
    }
    if (kept_digest.len) {
        heft_cbor_put_key(o, "digest");
        heft_cbor_put_text(o, kept_digest);
    } else if (p->storage[part].digest)
        put_digest(o, p, part);
}

typedef struct value_owner {
    const heft_index *x;
    uint32_t tensor;
} value_owner;

static bool attribute_less(const void *ctx, uint32_t a, uint32_t b)
{
    const value_owner *w = ctx;
    return heft_str_order(heft_zt_value_at(w->x, w->tensor, a).key,
                          heft_zt_value_at(w->x, w->tensor, b).key) < 0;
}

static void put_attributes(heft_out *o, const heft_plan *p, uint32_t t, uint32_t count)
{
    const heft_zt1_plan_state *z = p->priv;
    value_owner w = { p->x, t };
    heft_value v;
    uint32_t n = 0;
    for (uint32_t i = 0; heft_ix_attribute(&v, p->x, t, i); i = heft_value_next(&v, i))
        z->scratch[n++] = i;
    heft_sort(z->scratch, z->scratch + count, count, attribute_less, &w);
    heft_cbor_put_key(o, "attributes");
    heft_cbor_put_map(o, count);
    for (uint32_t i = 0; i < count; i++) {
        heft_cbor_put_text(o, heft_zt_value_at(p->x, t, z->scratch[i]).key);
        heft_zt_put_value(o, p->x, t, z->scratch[i]);
    }
}

static void put_tensor(heft_out *o, const heft_plan *p, uint32_t t)
{
    const heft_zt1_plan_state *z = p->priv;
    const heft_ix_tensor_row *row = heft_ix_row(p->x, t);
    uint32_t attributes = z->g->is_10 ? 0 : count_attributes(p->x, t);
    heft_cbor_put_text(o, heft_ix_name(p->x, t));
    heft_cbor_put_map(o, 3u + z->g->is_10 + !!attributes);
    if (z->g->is_10)
        put_type(o, z->g, row->dtype ? row->dtype : (heft_dtype)HEFT_U8);
    heft_zt_put_shape(o, p->x, t);
    heft_cbor_put_key(o, "format");
    heft_cbor_put_text(o, heft_ix_layout(p->x, t));
    if (attributes)
        put_attributes(o, p, t, attributes);
    for (uint32_t i = 0; i < row->part_count; i++)
        z->scratch[i] = row->first_part + i;
    heft_sort(z->scratch, z->scratch + row->part_count, row->part_count, heft_zt_role_less, p->x);
    heft_cbor_put_key(o, "components");
    heft_cbor_put_map(o, row->part_count);
    for (uint32_t i = 0; i < row->part_count; i++)
        put_part(o, p, t, z->scratch[i]);
}

static void put_manifest(heft_out *o, const heft_plan *p)
{
    const heft_zt1_plan_state *z = p->priv;
    const uint64_t numbers[] = { HEFT_VERSION_MAJOR, HEFT_VERSION_MINOR, HEFT_VERSION_PATCH };
    char generator[80] = "heft";
    size_t len = 4;
    for (unsigned i = 0; i < 3; i++) {
        generator[len++] = i ? '.' : ' ';
        len += heft_u64_text(generator + len, numbers[i]);
    }
    heft_cbor_put_map(o, z->g->is_10 ? 4 : 2u + (z->metadata.count > 0));
    heft_cbor_put_key(o, "version");
    heft_cbor_put_key(o, z->g->version);
    if (z->g->is_10) {
        heft_cbor_put_key(o, "generator");
        heft_cbor_put_text(o, p->x->generator.ptr ? p->x->generator : (heft_str){ generator, len });
    }
    if (z->g->is_10 || z->metadata.count) {
        heft_cbor_put_key(o, "attributes");
        heft_cbor_put_map(o, z->metadata.count);
    }
    for (uint32_t i = 0; i < z->metadata.count; i++) {
        heft_cbor_put_text(o, heft_ix_value(p->x, z->metadata.at[i])->key);
        heft_zt_put_value(o, p->x, HEFT_NONE, z->metadata.at[i]);
    }
    heft_cbor_put_key(o, z->g->is_10 ? "tensors" : "objects");
    heft_cbor_put_map(o, z->tensors.count);
    for (uint32_t i = 0; i < z->tensors.count; i++)
        put_tensor(o, p, z->tensors.at[i]);
}

/* ---- offsets ---- */

static heft_status lay_out(heft_plan *p)
{
    heft_zt1_plan_state *z = p->priv;
    uint64_t footer = z->g->is_10 ? 8 : 16;
    bool is_empty = !p->order_count;
    p->align = p->align > HEFT_ZT_ALIGN ? p->align : HEFT_ZT_ALIGN;
    uint64_t kept_digest = HEFT_ZT_MAGIC;
    p->header_bytes = is_empty && !z->g->is_10 ? HEFT_ZT_MAGIC : HEFT_ZT_ALIGN;
    if (heft_plan_compresses(p) || p->grows)
        return heft_plan_append(p, p->header_bytes);
    if (heft_plan_keep_data_start(p, &kept_digest))
        p->header_bytes = HEFT_ZT_MAGIC;
    else
        kept_digest = p->header_bytes;
    HEFT_TRY(heft_plan_place(p, kept_digest, 1));
    heft_out count = heft_out_counting();
    put_manifest(&count, p);
    if (!heft_add(&p->file_bytes, p->data_end, count.total + footer))
        return heft_error_plain(p->err, HEFT_E_LOSSY, "file would exceed 2^64 bytes");
    return HEFT_OK;
}

static heft_status check_storage(const heft_plan *p, const heft_storage *how)
{
    const heft_zt1_plan_state *z = p->priv;
    if (how->digest && !heft_zt_has_digest(how->digest, "crc32c"))
        return heft_error_plain(p->err, HEFT_E_UNSUPPORTED,
                                "zTensor %s stores crc32c or sha256 digests, not %s", z->g->name,
                                how->digest);
    if (how->encoding != HEFT_RAW && how->encoding != HEFT_ZSTD)
        return heft_error_plain(p->err, HEFT_E_UNSUPPORTED,
                                "zTensor supports only zstd compression");
    return HEFT_OK;
}

heft_status heft_zt1_plan(heft_plan *p)
{
    heft_zt1_plan_state *z = heft_plan_alloc(p, sizeof *z);
    if (!z)
        return HEFT_E_NOMEM;
    p->priv = z;
    z->g = p->version ? NULL : &heft_zt1_generations[0];
    for (size_t i = 0; p->version && i < HEFT_ZT1_GENERATIONS; i++)
        if (heft_str_is(heft_lit(p->version), heft_zt1_generations[i].name))
            z->g = &heft_zt1_generations[i];
    if (!z->g)
        return heft_error_plain(p->err, HEFT_E_ARGUMENT,
                                "cannot write zTensor version %s (supported: 1.0, 1.1, 1.2 and 2)",
                                p->version);
    heft_status st = heft_plan_check_storage(p, check_storage);
    p->writes_generator = z->g->is_10;
    if (!st)
        st = heft_loss_parts(p, "ztensor/parts", NULL, "zTensor");
    if (!st)
        st = heft_zt1_plan_metadata(p);
    if (!st)
        st = heft_zt1_plan_tensors(p);
    if (!st)
        st = sort_ids(p, &z->metadata, key_less);
    if (!st)
        st = order_tensors(p);
    if (!st)
        st = heft_plan_find_shared(p);
    if (!st)
        st = heft_plan_copy_shared_storage(p);
    if (!st)
        st = order_parts(p);
    return st ? st : lay_out(p);
}

heft_status heft_zt1_write_header(const heft_plan *p, heft_out *o)
{
    heft_out_str(o, heft_lit("ZTEN1000"));
    heft_out_fill(o, 0, p->header_bytes - HEFT_ZT_MAGIC);
    return o->st;
}

heft_status heft_zt1_write_trailer(const heft_plan *p, heft_out *o)
{
    const heft_zt1_plan_state *z = p->priv;
    uint64_t start = o->total;
    put_manifest(o, p);
    heft_out_u64(o, o->total - start);
    if (!z->g->is_10)
        heft_out_str(o, heft_lit("ZTEN1000"));
    return o->st;
}
