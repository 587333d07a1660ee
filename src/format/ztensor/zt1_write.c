/* zt1_write.c - plans and writes zTensor 1.0, 1.1 and 1.2; zt1.c shows the layout.
 * | Output matches the reference writers: keys in the order of their structs, names and roles
 * sorted by bytes, data in the order of the model. The manifest comes last and is not aligned. | */
#include "format/ztensor/ztensor.h"

#include "base/sort.h"
#include "format/losses.h"
#include "model/values.h"

static bool is_sparse(const heft_ix_tensor_row *row)
{
    return row->layout == HEFT_SPARSE_CSR || row->layout == HEFT_SPARSE_COO;
}

/* ---- tensors ---- */

static bool has_type(const heft_zt1_generation *g, heft_dtype t)
{
    const heft_zt_type *type = heft_zt_type_of(t);
    return type && (*type->name || g->has_logical_types);
}

/* Return the part whose element type is the tensor's element type in 1.0. */
static uint32_t main_part(const heft_index *x, uint32_t t)
{
    return heft_ix_part_find(x, t, heft_zt_main_role(heft_ix_row(x, t)));
}

/* Return the element type to write for a part: that of the part, otherwise the tensor's for the
 * main part, otherwise u8. */
static heft_dtype zt1_written_type(const heft_index *x, uint32_t t, uint32_t part)
{
    heft_dtype type = heft_ix_part_row_at(x, part)->dtype;
    if (!type && part == main_part(x, t))
        type = heft_ix_row(x, t)->dtype;
    return type ? type : (heft_dtype)HEFT_U8;
}

/* Return the reason why a tensor cannot be stored, element types aside, or NULL. */
static const char *unsupported_reason(const heft_index *x, uint32_t t)
{
    const heft_ix_tensor_row *row = heft_ix_row(x, t);
    uint32_t data = main_part(x, t);
    uint64_t elements, bytes;
    if (!heft_str_is_utf8(heft_ix_name(x, t)))
        return "zTensor cannot store a name that is not UTF-8 (rename the tensor)";
    if (heft_str_has_nul(heft_ix_name(x, t)))
        return "zTensor cannot store a name with a NUL (rename the tensor)";
    if (row->part_count > HEFT_ZT_MAX_PARTS)
        return "zTensor 1 cannot store more than 256 components (use --format-version 2)";
    if (data == HEFT_NONE && row->layout < HEFT_LAYOUT_OTHER)
        return "data required by the layout is missing";
    if (row->layout == HEFT_DENSE && (!heft_product(&elements, heft_ix_dims(x, t), row->rank) ||
                                      !heft_dtype_bytes(&bytes, row->dtype, elements) ||
                                      bytes != heft_ix_part_row_at(x, data)->length))
        return "data length does not match the shape, as zTensor requires";
    return NULL;
}

static heft_status refuse_type(heft_plan *p, uint32_t t, heft_dtype type)
{
    const heft_zt1_plan_state *z = p->priv;
    heft_plan_drop(p, t);
    return heft_loss_report(p, HEFT_FAULT, "ztensor/dtype", t,
                            "element type %s cannot be stored in zTensor %s", heft_dtype_name(type),
                            z->g->name);
}

/* Report losses of parts of unknown layouts, and of extra parts of dense tensors. */
static heft_status plan_other_part(heft_plan *p, uint32_t t, uint32_t number)
{
    const heft_zt1_plan_state *z = p->priv;
    const heft_ix_part_row *part = heft_ix_part_row_at(p->x, number);
    heft_str role = heft_ix_role(p->x, part->role);
    if (z->g->is_10 && part->dtype && part->dtype != heft_ix_row(p->x, t)->dtype)
        return heft_loss_report(p, HEFT_WARNING, "ztensor/part-dtype", t,
                                "element type of %q, %s, is left out", role,
                                heft_dtype_name(part->dtype));
    if (z->g->is_10 || part->dtype)
        return HEFT_OK;
    heft_dtype own = heft_ix_row(p->x, t)->dtype;
    uint32_t main = main_part(p->x, t);
    bool is_main = main != HEFT_NONE && part == heft_ix_part_row_at(p->x, main);
    if (is_main && own && own != HEFT_U8)
        return heft_loss_report(p, HEFT_WARNING, "ztensor/part-dtype", t,
                                "element type %s is left out: the bytes of %q are stored as u8",
                                heft_dtype_name(own), role);
    return heft_loss_report(p, HEFT_NOTE, "ztensor/part-dtype", t,
                            "%q, which has no element type, is stored as %s", role,
                            heft_dtype_name(zt1_written_type(p->x, t, number)));
}

/* 1.0 requires an element type for every tensor, and has no tensor attributes. */
static heft_status plan_tensor_type(heft_plan *p, uint32_t t)
{
    const heft_zt1_plan_state *z = p->priv;
    const heft_ix_tensor_row *row = heft_ix_row(p->x, t);
    if (!z->g->is_10 || row->layout < HEFT_LAYOUT_OTHER)
        return HEFT_OK;
    heft_value v;
    for (uint32_t i = 0; heft_ix_attribute(&v, p->x, t, i); i++) {
        if (!heft_str_is(v.key, "stored_dtype"))
            continue;
        HEFT_TRY(
            heft_loss_report(p, HEFT_FAULT, "ztensor/layout", t,
                             "layout %q is meaningless without the attribute stored_dtype, which "
                             "zTensor 1.0 cannot store (use --format-version 1.1, 1.2 or 2)",
                             heft_ix_layout(p->x, t)));
        break;
    }
    if (has_type(z->g, row->dtype))
        return HEFT_OK;
    if (row->dtype)
        return refuse_type(p, t, row->dtype);
    return heft_plan_loss(p, HEFT_NOTE, "ztensor/no-dtype", t,
                          "tensor without an element type is stored as uint8");
}

static heft_status plan_tensor(heft_plan *p, uint32_t t)
{
    const heft_zt1_plan_state *z = p->priv;
    const heft_ix_tensor_row *row = heft_ix_row(p->x, t);
    const char *reason = unsupported_reason(p->x, t);
    if (reason) {
        heft_plan_drop(p, t);
        return heft_plan_loss(p, HEFT_FAULT, "ztensor/tensor", t, reason);
    }
    heft_status st = plan_tensor_type(p, t);
    for (uint32_t i = 0; i < row->part_count && !st && !(row->flags & HEFT_T_DROPPED); i++) {
        uint32_t part = row->first_part + i;
        heft_ix_part_row *data = heft_ix_part_row_at(p->x, part);
        if (is_sparse(row) && !heft_str_is(heft_ix_role(p->x, data->role), "values")) {
            st = heft_loss_index_type(p, "ztensor/indices", t, data,
                                      HEFT_U64); /* readers accept only u64 */
            continue;
        }
        bool is_main = part == main_part(p->x, t) && row->layout < HEFT_LAYOUT_OTHER;
        heft_dtype type = zt1_written_type(p->x, t, part);
        st = is_main ? HEFT_OK : plan_other_part(p, t, part);
        if (!st && (is_main || !z->g->is_10) && !has_type(z->g, type))
            st = refuse_type(p, t, type);
    }
    return st;
}

static heft_status zt1_plan_tensors(heft_plan *p)
{
    const heft_zt1_plan_state *z = p->priv;
    heft_status st = HEFT_OK;
    if (z->g->is_10)
        st = heft_loss_attributes(p, "ztensor/attributes", 0);
    for (uint32_t t = 0; t < heft_ix_tensors(p->x) && !st; t++)
        st = plan_tensor(p, t);
    if (!st)
        heft_plan_compact(p);
    return st;
}

/* ---- metadata ---- */

/* Report losses of tensors and of metadata; drop tensors and values that cannot be stored. */
static heft_status zt1_plan_metadata(heft_plan *p)
{
    heft_zt1_plan_state *z = p->priv;
    const heft_text_losses losses = { "ztensor/metadata", "ztensor/metadata-text", "zTensor ",
                                      z->g->name };
    z->metadata.at = heft_plan_alloc(p, p->x->values.len * sizeof *z->metadata.at);
    if (!z->metadata.at)
        return HEFT_E_NOMEM;
    heft_status st = heft_meta_unique(p->x, "the metadata");
    for (uint32_t i = 0; i < p->x->values.len && !st; i = heft_ix_value_next(p->x, i)) {
        heft_value *v = heft_ix_value(p->x, i);
        bool kept = heft_str_is_utf8(v->key);
        if (!kept)
            st = heft_loss_report(p, HEFT_WARNING, "ztensor/metadata", HEFT_NONE,
                                  "metadata %q is left out: its key is not UTF-8", v->key);
        else if (!z->g->has_any_value)
            st = heft_loss_as_text(&kept, p, v, losses);
        if (kept)
            z->metadata.at[z->metadata.count++] = i;
    }
    return st;
}

/* ---- order ---- */

/* Order parts by offset in their source file. Parts without a source have offset 0 and keep
 * their order. */
static bool is_before_in_source(const void *ctx, uint32_t a, uint32_t b)
{
    const heft_ix_part_row *p = heft_ix_part_row_at(ctx, a), *q = heft_ix_part_row_at(ctx, b);
    return p->offset != q->offset ? p->offset < q->offset : p->offset && !p->length && q->length;
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
    heft_status st = heft_plan_sort(p, parts.at, parts.count, is_before_in_source);
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
    return z->scratch ? heft_plan_sort(p, z->tensors.at, n, heft_ix_name_before) : HEFT_E_NOMEM;
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
    heft_dtype type = zt1_written_type(p->x, t, part);
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
    heft_sort(z->scratch, z->scratch + row->part_count, row->part_count, heft_ix_role_before, p->x);
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
        st = zt1_plan_metadata(p);
    if (!st)
        st = zt1_plan_tensors(p);
    if (!st)
        st = heft_plan_sort(p, z->metadata.at, z->metadata.count, heft_ix_key_before);
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
