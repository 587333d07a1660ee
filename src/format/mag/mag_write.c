/* mag_write.c - plans and writes .mag archives of versions 1 and 100; mag.c shows the layout. */
#include "format/losses.h"
#include "format/mag/mag.h"

enum { ALIGN = HEFT_MAG_ALIGN, CHECKED_FROM = 12 };

/* Return why a tensor cannot be stored in any version, or NULL if nothing prevents storing it. */
static const char *unsupported_reason(const heft_index *x, uint32_t t)
{
    const heft_ix_tensor_row *row = heft_ix_row(x, t);
    uint64_t elements;
    if (!heft_loss_is_plain(x, t))
        return "only dense tensors can be stored in .mag";
    if (!row->name_len)
        return "an empty name cannot be stored in .mag";
    if (row->name_len > HEFT_MAG_MAX_KEY)
        return "a name of more than 65535 bytes cannot be stored in .mag";
    if (heft_str_has_nul(heft_ix_name(x, t)))
        return "a name that contains NUL cannot be stored in .mag";
    if (!heft_product(&elements, heft_ix_dims(x, t), row->rank) || elements > INT64_MAX)
        return "more than 2^63 - 1 elements cannot be stored in .mag";
    return elements ? NULL : "a dimension of 0 cannot be stored in .mag";
}

static heft_status plan_tensor(heft_plan *p, uint32_t t, const heft_mag_layout *l)
{
    const char *reason = unsupported_reason(p->x, t);
    heft_dtype type = heft_ix_row(p->x, t)->dtype;
    uint32_t rank = heft_ix_row(p->x, t)->rank;
    if (reason)
        return heft_loss_tensor(p, "mag/tensor", t, reason);
    if (heft_mag_code(&heft_mag_layout_100, type) == HEFT_MAG_NO_CODE &&
        heft_mag_code(l, type) == HEFT_MAG_NO_CODE)
        return heft_loss_type(p, "mag/dtype", t, ".mag");
    if (rank > l->max_rank || heft_mag_code(l, type) == HEFT_MAG_NO_CODE)
        heft_plan_drop(p, t);
    if (heft_mag_code(l, type) == HEFT_MAG_NO_CODE)
        return heft_loss_report(p, HEFT_FAULT, "mag/dtype", t,
                                "element type %s cannot be stored in .mag version %s, only in 100",
                                heft_dtype_name(type), l->version);
    if (rank > l->max_rank)
        return heft_loss_report(p, HEFT_FAULT, "mag/rank", t,
                                "rank %U exceeds the maximum of .mag version %s (%U)",
                                (uint64_t)rank, l->version, (uint64_t)l->max_rank);
    if (rank < l->min_rank)
        return heft_loss_scalar(p, "mag/rank-0", t, ".mag");
    if (rank > l->max_reader_rank && !p->existing) /* an edited file has such ranks already */
        return heft_loss_report(p, HEFT_WARNING, "mag/rank", t,
                                "rank %U exceeds the maximum of Magnetron's reader (%U)",
                                (uint64_t)rank, (uint64_t)l->max_reader_rank);
    return HEFT_OK;
}

heft_status heft_mag_plan_tensors(heft_plan *p, const heft_mag_layout *l)
{
    heft_status st = heft_loss_parts(p, "mag/parts", NULL, "a .mag file");
    if (!st)
        st = heft_loss_attributes(p, "mag/attributes", 0);
    for (uint32_t t = 0; t < heft_ix_tensors(p->x) && !st; t++)
        st = plan_tensor(p, t, l);
    if (!st)
        heft_plan_compact(p);
    return st;
}

heft_status heft_mag_put_checked(const heft_plan *p, heft_out *o, uint32_t crc,
                                 void (*put)(const heft_plan *p, heft_out *o))
{
    uint8_t digest[HEFT_CHECKSUM_BYTES];
    heft_status st = heft_plan_emit_digested(p, o, "crc32c", put, digest);
    if (st || heft_le32(digest) == crc)
        return st;
    return heft_error_plain(p->err, HEFT_E_IO,
                            "the input changed while being converted: its names or metadata no "
                            "longer match the checksum in the header");
}

typedef struct archive_plan { /* heft_plan.priv */
    const heft_mag_layout *layout;
    uint64_t records_end;
    uint32_t metas, crc;
} archive_plan;

/* Set *bits to the stored form of a value and return the type of its record, or 0 if the value
 * cannot be stored. */
static uint32_t encode_value(const heft_value *v, uint64_t *bits)
{
    if (!v->key.len || v->key.len > HEFT_MAG_MAX_KEY || heft_str_has_nul(v->key))
        return 0;
    switch (v->kind) {
    case HEFT_KIND_BOOL:
        *bits = v->as.b;
        return HEFT_MAG_I64;
    case HEFT_KIND_INT:
        *bits = (uint64_t)v->as.i;
        return HEFT_MAG_I64;
    case HEFT_KIND_UINT:
        *bits = v->as.u;
        return v->as.u <= INT64_MAX ? HEFT_MAG_I64 : 0;
    case HEFT_KIND_FLOAT:
        memcpy(bits, &v->as.f, sizeof *bits);
        return HEFT_MAG_F64;
    default:
        return 0;
    }
}

static heft_status plan_meta(heft_plan *p, const heft_value *v, uint32_t *metas)
{
    uint64_t bits;
    bool is_number = v->kind >= HEFT_KIND_BOOL && v->kind <= HEFT_KIND_FLOAT;
    if (is_number && v->key.len > HEFT_MAG_MAX_KEY)
        return heft_loss_length(p, "mag/metadata-length", v->key, "key", v->key.len,
                                HEFT_MAG_MAX_KEY, ".mag");
    if (!encode_value(v, &bits))
        return heft_loss_report(
            p, HEFT_WARNING, "mag/metadata", HEFT_NONE,
            "metadata %q is left out: .mag stores only 64-bit numbers under keys "
            "of 1 to 65535 bytes without NUL",
            v->key);
    ++*metas;
    if (v->kind == HEFT_KIND_BOOL || v->kind == HEFT_KIND_UINT)
        return heft_loss_report(p, HEFT_NOTE, "mag/metadata-i64", HEFT_NONE,
                                "metadata %q becomes an i64", v->key);
    return HEFT_OK;
}

static void put_tensor(heft_out *o, const heft_index *x, uint32_t t, const heft_mag_layout *l)
{
    const heft_ix_tensor_row *row = heft_ix_row(x, t);
    const heft_ix_part_row *part = heft_ix_part_row_at(x, row->first_part);
    const uint64_t *dims = heft_ix_dims(x, t);
    uint64_t elements;
    (void)heft_product(&elements, dims, row->rank); /* plan_tensor() checked for overflow */
    heft_out_u32(o, heft_mag_code(l, row->dtype) | (uint32_t)row->rank << 8);
    heft_out_u64(o, elements);
    heft_out_u64(o, part->offset);
    for (uint32_t i = 0; i < row->rank; i++)
        heft_out_u64(o, dims[i]);
    heft_out_u32(o, row->name_len);
    heft_out_str(o, heft_ix_name(x, t));
}

/* Emit all bytes that the checksum covers. */
static void put_checked(const heft_plan *p, heft_out *o)
{
    const heft_index *x = p->x;
    const archive_plan *a = p->priv;
    heft_out_u32(o, heft_ix_tensors(x));
    heft_out_u32(o, a->metas);
    heft_out_u32(o, 0);
    for (uint32_t i = 0; i < x->values.len; i = heft_ix_value_next(x, i)) {
        const heft_value *v = heft_ix_value(x, i);
        uint64_t bits;
        uint32_t type = encode_value(v, &bits);
        if (!type)
            continue;
        heft_out_u32(o, type);
        heft_out_u64(o, bits);
        heft_out_u32(o, (uint32_t)v->key.len);
        heft_out_str(o, v->key);
    }
    for (uint32_t t = 0; t < heft_ix_tensors(x); t++)
        put_tensor(o, x, t, a->layout);
}

/* Return the layout of the requested version, or NULL if the version is unknown.  Without a request
 * choose version 1, unless an element type needs version 100. */
static const heft_mag_layout *choose_layout(const heft_plan *p)
{
    heft_str version = heft_lit(p->version ? p->version : "");
    bool is_100 = heft_str_is(version, heft_mag_layout_100.version);
    if (p->version && !is_100 && !heft_str_is(version, heft_mag_layout_1.version))
        return NULL;
    for (uint32_t t = 0; !p->version && t < heft_ix_tensors(p->x); t++) {
        heft_dtype type = heft_ix_row(p->x, t)->dtype;
        is_100 = is_100 || (heft_mag_code(&heft_mag_layout_1, type) == HEFT_MAG_NO_CODE &&
                            heft_mag_code(&heft_mag_layout_100, type) != HEFT_MAG_NO_CODE);
    }
    return is_100 ? &heft_mag_layout_100 : &heft_mag_layout_1;
}

static heft_status place_payloads(heft_plan *p, const archive_plan *a)
{
    bool is_empty = !heft_ix_tensors(p->x);
    p->header_bytes = a->records_end;
    if (!is_empty && !heft_align_up(&p->header_bytes, p->header_bytes, p->align))
        return heft_error_plain(p->err, HEFT_E_ARGUMENT, "an alignment of %U is too large",
                                p->align);
    uint64_t start = a->records_end;
    if (heft_plan_keep_data_start(p, &start))
        p->header_bytes = start;
    p->data_end = p->header_bytes;
    return is_empty ? HEFT_OK : heft_plan_place(p, p->header_bytes, ALIGN);
}

static heft_status plan_layout(heft_plan *p, archive_plan *a)
{
    heft_out count = heft_out_counting();
    put_checked(p, &count);
    a->records_end = CHECKED_FROM + count.total;
    p->fill = HEFT_MAG_PADDING;
    p->align = p->align > ALIGN ? p->align : ALIGN;
    heft_status st = place_payloads(p, a);
    if (st || a->layout != &heft_mag_layout_100 || !heft_mag_sizes_imply_i32(p->x, p->data_end))
        return st;
    p->align = ALIGN;
    st = heft_plan_loss(p, HEFT_NOTE, "mag/align", HEFT_NONE,
                        "payloads are aligned to 64 bytes only: with larger gaps a reader may "
                        "mistake u8 for the i32 of early version-100 files");
    return st ? st : place_payloads(p, a);
}

heft_status heft_mag_archive_plan(heft_plan *p)
{
    archive_plan *a = heft_plan_alloc(p, sizeof *a);
    if (!a)
        return HEFT_E_NOMEM;
    p->priv = a;
    a->layout = choose_layout(p);
    if (!a->layout)
        return heft_error_plain(p->err, HEFT_E_ARGUMENT,
                                ".mag version %s cannot be written, only 1, 100 and snapshot",
                                p->version);
    heft_status st = heft_mag_plan_tensors(p, a->layout);
    for (uint32_t i = 0; i < p->x->values.len && !st; i = heft_ix_value_next(p->x, i))
        st = plan_meta(p, heft_ix_value(p->x, i), &a->metas);
    if (!st)
        st = plan_layout(p, a);
    if (st)
        return st;
    p->file_bytes = p->data_end;
    uint8_t scratch[HEFT_MAG_CRC_SCRATCH];
    heft_out o = heft_out_crc32c(&a->crc, scratch, sizeof scratch);
    put_checked(p, &o);
    return heft_out_flush(&o);
}

heft_status heft_mag_archive_write_header(const heft_plan *p, heft_out *o)
{
    const archive_plan *a = p->priv;
    heft_out_str(o, heft_lit("MAG!"));
    heft_out_u32(o, a->layout == &heft_mag_layout_1 ? 1 : 100);
    heft_out_u32(o, a->crc);
    heft_status st = heft_mag_put_checked(p, o, a->crc, put_checked);
    heft_out_fill(o, HEFT_MAG_PADDING, p->header_bytes - a->records_end);
    return st ? st : o->st;
}
