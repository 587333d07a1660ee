/* zt2_write.c - plans and writes zTensor 2; zt2.c shows the layout.
 * | Writes the canonical form (§6.3), unless the caller asks for compression or another alignment:
 * blobs at multiples of 64 KiB in the order of the names of objects and parts, duplicates stored
 * once, a digest of every part, the manifest last. Equal tensors give identical files. | */
#include "base/sort.h"
#include "format/losses.h"
#include "format/ztensor/zt2.h"

static heft_status drop(heft_plan *p, uint32_t t, const char *rule, const char *reason)
{
    heft_plan_drop(p, t);
    return heft_loss_report(p, HEFT_FAULT, rule, t, "%s cannot be stored in zTensor 2", reason);
}

/* Objects have no element type of their own: readers use that of "data" or "values". */
static heft_status plan_type(heft_plan *p, uint32_t t)
{
    heft_dtype tensor_type = heft_ix_row(p->x, t)->dtype, readable_type = HEFT_UNTYPED;
    uint32_t data = heft_ix_part_find(p->x, t, heft_lit("data"));
    if (data == HEFT_NONE)
        data = heft_ix_part_find(p->x, t, heft_lit("values"));
    if (data != HEFT_NONE)
        readable_type = heft_ix_part_row_at(p->x, data)->dtype;
    if (tensor_type == readable_type ||
        (tensor_type == HEFT_U8 && data != HEFT_NONE && !readable_type))
        return HEFT_OK;
    if (!tensor_type)
        return heft_loss_report(p, HEFT_NOTE, "ztensor/part-dtype", t,
                                "the tensor, which has no element type, is read as %s",
                                heft_dtype_name(readable_type));
    return heft_loss_report(p, HEFT_WARNING, "ztensor/part-dtype", t, "element type %s is left out",
                            heft_dtype_name(tensor_type));
}

static heft_status plan_parts(heft_plan *p, uint32_t t)
{
    const heft_ix_tensor_row *row = heft_ix_row(p->x, t);
    for (uint32_t k = 0; k < row->part_count; k++) {
        const heft_ix_part_row *part = heft_ix_part_row_at(p->x, row->first_part + k);
        const char *reason = heft_zt2_bad_name(heft_ix_role(p->x, part->role));
        if (reason)
            return drop(p, t, "ztensor/part-name", reason);
        if (!heft_zt2_type_of(part->dtype)) {
            heft_plan_drop(p, t);
            return heft_loss_report(p, HEFT_FAULT, "ztensor/dtype", t,
                                    "element type %s cannot be stored in zTensor 2",
                                    heft_dtype_name(part->dtype));
        }
        if (!part->dtype)
            HEFT_TRY(
                heft_loss_report(p, HEFT_NOTE, "ztensor/part-dtype", t,
                                 "the bytes of %q, which have no element type, are stored as u8",
                                 heft_ix_role(p->x, part->role)));
    }
    return HEFT_OK;
}

static heft_status plan_values(heft_plan *p, uint32_t tensor)
{
    heft_value v;
    heft_status st = HEFT_OK;
    for (uint32_t i = 0; !st && heft_zt_value(&v, p->x, tensor, i); i = heft_value_next(&v, i)) {
        const char *reason = heft_zt2_value_fault(p->x, tensor, i);
        if (reason)
            st = heft_loss_report(p, HEFT_WARNING, "ztensor/attribute", tensor,
                                  "%s %q is left out: %s cannot be stored in zTensor 2",
                                  tensor == HEFT_NONE ? "metadata" : "attribute", v.key, reason);
    }
    return st;
}

/* Readers may rely on valid values, and verify reports a fault. */
static heft_status plan_data(heft_plan *p, uint32_t t)
{
    heft_value_rule broken = HEFT_ANY_VALUE;
    heft_status st = p->source.check_values ? p->source.check_values(p->source.ctx, t, &broken)
                                            : HEFT_OK;
    if (st || !broken)
        return st;
    heft_plan_drop(p, t);
    return heft_loss_report(p, HEFT_FAULT, heft_value_rule_name(broken), t,
                            "%s, which zTensor 2 does not allow", heft_value_rule_text(broken));
}

static heft_status plan_tensor(heft_plan *p, uint32_t t)
{
    const heft_ix_tensor_row *row = heft_ix_row(p->x, t);
    heft_str name = heft_ix_name(p->x, t), role;
    const char *reason = heft_zt2_bad_name(name);
    uint64_t n;
    if (!reason && !heft_str_is_utf8(name))
        reason = "a name that is not UTF-8";
    if (!reason && row->rank > HEFT_ZT2_MAX_RANK)
        reason = "more than 64 dimensions";
    if (!reason && !heft_product(&n, heft_ix_dims(p->x, t), row->rank))
        reason = "a shape of more than 2^64 elements";
    if (!reason && !row->part_count)
        reason = "a tensor without parts";
    if (reason)
        return drop(p, t, "ztensor/tensor", reason);
    heft_status st = plan_parts(p, t);
    if (st || row->flags & HEFT_T_DROPPED)
        return st;
    st = heft_zt2_plan_indices(p, t);
    if (st)
        return st;
    reason = heft_zt2_layout_fault(p->x, t, &role);
    if (reason) {
        heft_plan_drop(p, t);
        return heft_loss_report(p, HEFT_FAULT, "ztensor/layout", t, "%s%s%s",
                                role.len ? role.ptr : "", role.len ? ": " : "", reason);
    }
    bool strictly = true;
    if (p->source.is_sorted && (row->layout == HEFT_SPARSE_CSR || row->layout == HEFT_SPARSE_COO))
        st = p->source.is_sorted(p->source.ctx, t, &strictly);
    if (!st && !strictly) { /* readers require sorted entries, and verify reports a fault */
        heft_plan_drop(p, t);
        st = heft_plan_loss(
            p, HEFT_FAULT, "ztensor/entries", t,
            "sparse entries are invalid, or not in the order that zTensor 2 requires");
    }
    if (!st)
        st = plan_data(p, t);
    if (!st && row->layout >= HEFT_LAYOUT_OTHER)
        st = plan_type(p, t);
    return !st && (row->attrs || row->flags) ? plan_values(p, t) : st;
}

/* Report what the format cannot store of the model, and drop the tensors that it cannot store. */
static heft_status zt2_plan_model(heft_plan *p)
{
    heft_status st = heft_loss_parts(p, "ztensor/parts", NULL, "zTensor 2");
    if (!st)
        st = plan_values(p, HEFT_NONE);
    for (uint32_t t = 0; t < heft_ix_tensors(p->x) && !st; t++)
        st = plan_tensor(p, t);
    heft_plan_compact(p);
    return st;
}

enum { FRAME = 1 << 20 }; /* content bytes of a compressed frame */
#define OFFSET_MASK ((UINT64_C(1) << HEFT_GLOBAL_OFFSET_BITS) - 1) /* offset within its file */

typedef struct zt2_plan_state { /* heft_plan.priv */
    uint32_t *objects;          /* tensors in the order of their keys */
    uint32_t *parts;            /* scratch: twice the parts of the object with the most parts */
    uint32_t max_parts;
    heft_zt2_values values;
    uint64_t manifest; /* bytes; not final while parts are compressed */
} zt2_plan_state;

/* ---- orders ---- */

static bool key_less(const void *ctx, uint32_t a, uint32_t b)
{
    return heft_zt2_key_order(heft_ix_name(ctx, a), heft_ix_name(ctx, b)) < 0;
}

static heft_str role_of(const heft_index *x, uint32_t part)
{
    return heft_ix_role(x, heft_ix_part_row_at(x, part)->role);
}

static bool role_key_less(const void *ctx, uint32_t a, uint32_t b)
{
    return heft_zt2_key_order(role_of(ctx, a), role_of(ctx, b)) < 0;
}

/* Sort the parts of a tensor into s->parts; return their number. */
static uint32_t sort_parts(const zt2_plan_state *s, const heft_index *x, uint32_t t,
                           bool (*less)(const void *ctx, uint32_t a, uint32_t b))
{
    const heft_ix_tensor_row *row = heft_ix_row(x, t);
    for (uint32_t k = 0; k < row->part_count; k++)
        s->parts[k] = row->first_part + k;
    heft_sort(s->parts, s->parts + s->max_parts, row->part_count, less, x);
    return row->part_count;
}

/* Store the first part, in the order of names, of each group of duplicates. */
static heft_status order_parts(heft_plan *p, const zt2_plan_state *s, uint32_t *tensors)
{
    uint32_t n = heft_ix_tensors(p->x), part_count = p->x->parts.len;
    uint32_t *stored =
        heft_plan_alloc(p, part_count * sizeof *stored); /* stored part of each group, plus one */
    p->order = heft_plan_alloc(p, part_count * sizeof *p->order);
    if (!stored || !p->order)
        return HEFT_E_NOMEM;
    heft_sort_numbers(tensors, n, heft_ix_name_before, p->x);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t count = sort_parts(s, p->x, tensors[i], heft_ix_role_before);
        for (uint32_t k = 0; k < count; k++) {
            uint32_t part = s->parts[k], group = p->duplicate_of[part];
            if (!stored[group]) {
                stored[group] = part + 1;
                p->order[p->order_count++] = part;
            }
        }
    }
    for (uint32_t i = 0; i < part_count; i++)
        p->duplicate_of[i] = stored[p->duplicate_of[i]] ? stored[p->duplicate_of[i]] - 1 : i;
    return HEFT_OK;
}

static heft_status prepare(heft_plan *p, zt2_plan_state *s)
{
    uint32_t n = heft_ix_tensors(p->x);
    for (uint32_t t = 0; t < n; t++) {
        uint32_t count = heft_ix_row(p->x, t)->part_count;
        s->max_parts = count > s->max_parts ? count : s->max_parts;
    }
    s->values = (heft_zt2_values){ .x = p->x, .scratch = heft_zt2_max_values(p->x) };
    s->values.ids = heft_plan_alloc(p, 2 * (size_t)s->values.scratch * sizeof(uint32_t));
    s->parts = heft_plan_alloc(p, 2 * (size_t)s->max_parts * sizeof(uint32_t));
    s->objects = heft_plan_alloc(p, 2 * (size_t)n * sizeof(uint32_t));
    if (!s->values.ids || !s->parts || !s->objects)
        return HEFT_E_NOMEM;
    heft_status st = HEFT_OK;
    if (p->shards) { /* only the manifest is written */
        p->duplicate_of = heft_plan_alloc(p, p->x->parts.len * sizeof *p->duplicate_of);
        p->order = heft_plan_alloc(p, sizeof *p->order);
        for (uint32_t i = 0; p->duplicate_of && i < p->x->parts.len; i++)
            p->duplicate_of[i] = i;
        st = p->duplicate_of && p->order ? HEFT_OK : HEFT_E_NOMEM;
    } else {
        st = heft_plan_find_duplicates(p);
        if (!st)
            st = order_parts(p, s, s->objects);
    }
    if (!st)
        st = heft_plan_copy_shared_storage(p);
    heft_sort_numbers(s->objects, n, key_less, p->x);
    return st;
}

/* ---- the manifest ---- */

enum { XXH3 = 8, SHA256 = 32 }; /* bytes of a digest */

/* Write an xxh3 digest as a number, most significant byte first; write SHA-256 in byte order. */
static void put_hex(heft_out *o, const char *algorithm, const uint8_t *bytes)
{
    bool is_xxh3 = heft_str_is(heft_lit(algorithm), "xxh3");
    heft_str prefix = heft_lit(is_xxh3 ? "xxh3:" : "sha256:");
    heft_zt_put_hex(o, prefix, bytes, is_xxh3 ? XXH3 : SHA256, is_xxh3, false);
}

static void put_digest(const heft_plan *p, heft_out *o, uint32_t part)
{
    if (p->existing || p->shards) {
        heft_cbor_put_key(o, "digest");
        heft_cbor_put_text(o, p->shards ? p->digest_texts[part]
                                        : heft_ix_digest_of(p->existing, part));
        return;
    }
    const uint8_t *digest = o->buf ? heft_plan_part_digest(p, part)
                                   : NULL; /* counting: the value does not matter */
    heft_cbor_put_key(o, "digest");
    put_hex(o, p->storage[part].digest, digest);
}

static void put_part(const heft_plan *p, heft_out *o, uint32_t tensor, uint32_t part)
{
    const heft_ix_part_row *own = heft_ix_part_row_at(p->x, part);
    const heft_ix_part_row *row = heft_ix_part_row_at(p->x, p->duplicate_of[part]);
    const heft_zt2_type *type = heft_zt2_type_of(own->dtype);
    heft_str storage = heft_lit(type->storage), logical = { NULL, 0 };
    if (type->logical)
        logical = heft_lit(type->logical);
    else if (!heft_zt2_preserved_type(p->x, tensor, part, &storage, &logical)) {
        storage = heft_lit(type->storage);
        logical.ptr = NULL;
    }
    bool encoded = row->encoding != HEFT_RAW;
    bool has_digest = p->existing ? heft_ix_digest_of(p->existing, part).len
                      : p->shards ? p->digest_texts[part].len
                                  : p->storage[part].digest != NULL;
    heft_cbor_put_map(o, 2u + has_digest + (logical.ptr != NULL) + (encoded ? 2 : 0) +
                             (p->shards != NULL));
    heft_cbor_put_key(o, "blob");
    heft_cbor_put_array(o, 2);
    heft_cbor_put_u64(o, p->shards ? row->offset & OFFSET_MASK : row->offset);
    heft_cbor_put_u64(o, row->stored);
    if (logical.ptr) {
        heft_cbor_put_key(o, "type");
        heft_cbor_put_text(o, logical);
    }
    heft_cbor_put_key(o, "dtype");
    heft_cbor_put_text(o, storage);
    if (p->shards) {
        heft_cbor_put_key(o, "shard");
        heft_cbor_put_text(o, p->shards[(row->offset >> HEFT_GLOBAL_OFFSET_BITS) - 1].name);
    }
    if (has_digest)
        put_digest(p, o, p->duplicate_of[part]);
    if (encoded) {
        heft_cbor_put_key(o, "encoding");
        heft_cbor_put_key(o, heft_zt2_zstd);
        heft_cbor_put_key(o, "decoded_length");
        heft_cbor_put_u64(o, row->length);
    }
}

static void put_object(const heft_plan *p, heft_out *o, uint32_t t)
{
    zt2_plan_state *s = p->priv;
    bool has_values = heft_zt2_has_values(&s->values, t);
    heft_cbor_put_text(o, heft_ix_name(p->x, t));
    heft_cbor_put_map(o, has_values ? 4 : 3);
    heft_cbor_put_key(o, "parts");
    uint32_t count = sort_parts(s, p->x, t, role_key_less);
    heft_cbor_put_map(o, count);
    for (uint32_t k = 0; k < count; k++) {
        heft_cbor_put_text(o, role_of(p->x, s->parts[k]));
        put_part(p, o, t, s->parts[k]);
    }
    heft_zt_put_shape(o, p->x, t);
    heft_cbor_put_key(o, "layout");
    heft_cbor_put_text(o, heft_zt2_layout_to_file(heft_ix_layout(p->x, t)));
    if (has_values) {
        heft_cbor_put_key(o, "attributes");
        heft_zt2_put_values(&s->values, o, t);
    }
}

static void put_manifest(const heft_plan *p, heft_out *o)
{
    zt2_plan_state *s = p->priv;
    bool has_values = heft_zt2_has_values(&s->values, HEFT_NONE);
    heft_cbor_put_map(o, 1u + has_values + (p->shards != NULL));
    if (p->shards) {
        heft_cbor_put_key(o, "shards");
        heft_cbor_put_map(o, p->shard_count);
    }
    for (uint32_t i = 0; p->shards && i < p->shard_count;
         i++) { /* shards are named by number, so this order is sorted */
        const heft_plan_shard *shard = &p->shards[i];
        heft_cbor_put_text(o, shard->name);
        heft_cbor_put_map(o, 2);
        heft_cbor_put_key(o, "size");
        heft_cbor_put_u64(o, shard->size);
        heft_cbor_put_key(o, "digest");
        put_hex(o, shard->algorithm, shard->digest);
    }
    heft_cbor_put_key(o, "objects");
    heft_cbor_put_map(o, heft_ix_tensors(p->x));
    for (uint32_t i = 0; i < heft_ix_tensors(p->x); i++)
        put_object(p, o, s->objects[i]);
    if (has_values) {
        heft_cbor_put_key(o, "attributes");
        heft_zt2_put_values(&s->values, o, HEFT_NONE);
    }
}

static const char too_large[] = "manifest would exceed 1 GiB";

static heft_status size_manifest(heft_plan *p, zt2_plan_state *s)
{
    heft_out count = heft_out_counting();
    put_manifest(p, &count);
    s->manifest = count.total;
    if (s->values.duplicate_key.ptr)
        return heft_error_plain(p->err, HEFT_E_ARGUMENT, "metadata key %q occurs twice",
                                s->values.duplicate_key);
    if (count.total > HEFT_ZT2_MAX_MANIFEST)
        return heft_error_plain(p->err, HEFT_E_LOSSY, "%s", too_large);
    /* Maps are sorted, so a model in another order loses that order. */
    bool sorted = !s->values.reordered;
    for (uint32_t i = 0; i < heft_ix_tensors(p->x); i++) {
        const heft_ix_tensor_row *row = heft_ix_row(p->x, i);
        sorted = sorted && s->objects[i] == i;
        for (uint32_t k = row->first_part + 1; k < row->first_part + row->part_count; k++)
            sorted = sorted && role_key_less(p->x, k - 1, k);
    }
    return sorted ? HEFT_OK
                  : heft_plan_loss(p, HEFT_NOTE, "ztensor/order", HEFT_NONE,
                                   "tensors, parts and attributes are stored sorted by name, "
                                   "shorter names first");
}

/* ---- compressed parts ---- */

static void put_seek_table(heft_out *o, const heft_frame *frames, uint32_t count)
{
    heft_out_u32(o, HEFT_ZT2_SKIPPABLE);
    heft_out_u32(o, count * HEFT_ZT2_SEEK_ENTRY + HEFT_ZT2_SEEK_TAIL);
    for (uint32_t i = 0; i < count; i++) {
        heft_out_u32(o, frames[i].stored);
        heft_out_u32(o, frames[i].content);
    }
    heft_out_u32(o, count);
    heft_out_u8(o, 0); /* no checksums */
    heft_out_u32(o, heft_zt2_seekable);
}

/* ---- entry points ---- */

static heft_status check_storage(const heft_plan *p, const heft_storage *storage)
{
    if (storage->digest && !heft_zt_has_digest(storage->digest, "xxh3"))
        return heft_error_plain(p->err, HEFT_E_ARGUMENT,
                                "zTensor 2 stores xxh3 or sha256 digests, not %s", storage->digest);
    if (storage->encoding != HEFT_RAW && storage->encoding != HEFT_ZSTD)
        return heft_error_plain(p->err, HEFT_E_UNSUPPORTED,
                                "zTensor 2 supports only zstd compression");
    return HEFT_OK;
}

static heft_status check_options(heft_plan *p)
{
    HEFT_TRY(heft_plan_check_storage(p, check_storage));
    if (!heft_plan_can_digest(p, "xxh3"))
        return heft_error_plain(p->err, HEFT_E_UNSUPPORTED,
                                "this build cannot compute xxh3, which zTensor 2 requires");
    p->digest_decoded = true;
    p->align = p->requested_align        ? p->requested_align
               : heft_plan_compresses(p) ? HEFT_ZT2_ALIGN
                                         : HEFT_ZT2_CANONICAL_ALIGN;
    p->align = p->align < HEFT_ZT2_ALIGN ? HEFT_ZT2_ALIGN : p->align;
    /* Section 2.5: appending neither moves nor overwrites anything. */
    p->keeps_trailer = p->has_added_parts;
    if (p->existing)
        p->align = p->existing->format_private % HEFT_ZT2_CANONICAL_ALIGN
                       ? HEFT_ZT2_ALIGN
                       : HEFT_ZT2_CANONICAL_ALIGN;
    return HEFT_OK;
}

static heft_status lay_out(heft_plan *p, zt2_plan_state *s)
{
    uint64_t start = HEFT_ZT_MAGIC;
    p->header_bytes = HEFT_ZT_MAGIC;
    if (!p->keeps_trailer && !heft_plan_keep_data_start(p, &start))
        start = p->align;
    HEFT_TRY(heft_plan_place(p, start, p->align));
    HEFT_TRY(size_manifest(p, s));
    if (!heft_add(&p->file_bytes, p->data_end, s->manifest + HEFT_ZT2_FOOTER))
        return heft_error_plain(p->err, HEFT_E_LOSSY, "file would exceed 2^64 bytes");
    return HEFT_OK;
}

heft_status heft_zt2_plan(heft_plan *p)
{
    zt2_plan_state *s = heft_plan_alloc(p, sizeof *s);
    heft_status st = s ? check_options(p) : HEFT_E_NOMEM;
    p->priv = s;
    if (!st)
        st = zt2_plan_model(p);
    if (!st)
        st = prepare(p, s);
    if (st || !(heft_plan_compresses(p) || p->grows))
        return st ? st : lay_out(p, s);
    p->frame_bytes = FRAME;
    p->frame_checksums = true;
    p->frames_end = put_seek_table;
    st = size_manifest(p, s); /* report manifest errors before writing */
    return st ? st : heft_plan_append(p, HEFT_ZT_MAGIC);
}

static const heft_str magic = { "\x89ZT2\r\n\x1a\n", HEFT_ZT_MAGIC };

heft_status heft_zt2_write_header(const heft_plan *p, heft_out *o)
{
    (void)p;
    heft_out_str(o, magic);
    return o->st;
}

heft_status heft_zt2_write_trailer(const heft_plan *p, heft_out *o)
{
    uint8_t hash[HEFT_CHECKSUM_BYTES];
    uint64_t at, before;
    if (!heft_align_up(&at, p->data_end, p->align))
        return heft_error_plain(p->err, HEFT_E_LOSSY, "file would exceed 2^64 bytes");
    heft_out_fill(o, 0, at - p->data_end);
    before = o->total;
    HEFT_TRY(heft_plan_emit_digested(p, o, "xxh3", put_manifest, hash));
    uint64_t length = o->total - before;
    if (length > HEFT_ZT2_MAX_MANIFEST)
        return heft_error_plain(p->err, HEFT_E_LOSSY, "%s", too_large);
    heft_out_u64(o, at);
    heft_out_u64(o, length);
    heft_out_bytes(o, hash, 8);
    heft_out_u32(o, HEFT_ZT2_VERSION);
    heft_out_u32(o, 0);
    heft_out_str(o, magic);
    return o->st;
}

/* ---- models in several files: §7 ---- */

static void put_name(heft_out *o, heft_str stem, uint32_t i, uint32_t count)
{
    char number[20];
    heft_out_str(o, stem);
    if (i < count) {
        heft_out_u8(o, '-');
        heft_out_bytes(o, number, heft_u64_text(number, i + 1));
    }
    heft_out_str(o, heft_lit(".zt"));
}

const heft_sharding heft_zt2_sharding = { .version = "2",
                                          .name = put_name,
                                          .index_refers_to_parts = true };
