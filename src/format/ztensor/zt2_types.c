/* zt2_types.c - element types, name rules and layout rules of zTensor 2. */
#include "format/losses.h"
#include "format/ztensor/zt2.h"

const char heft_zt2_zstd[] = "zt.zstd-seekable/1";

const heft_zt2_type heft_zt2_types[] = {
    { "f64", NULL, HEFT_F64 },
    { "f32", NULL, HEFT_F32 },
    { "f16", NULL, HEFT_F16 },
    { "bf16", NULL, HEFT_BF16 },
    { "i64", NULL, HEFT_I64 },
    { "i32", NULL, HEFT_I32 },
    { "i16", NULL, HEFT_I16 },
    { "i8", NULL, HEFT_I8 },
    { "u64", NULL, HEFT_U64 },
    { "u32", NULL, HEFT_U32 },
    { "u16", NULL, HEFT_U16 },
    { "u8", NULL, HEFT_U8 },
    { "u8", "bool", HEFT_BOOL },
    { "u8", "f8_e4m3fn", HEFT_F8_E4M3FN },
    { "u8", "f8_e5m2", HEFT_F8_E5M2 },
    { "u8", "f8_e4m3fnuz", HEFT_F8_E4M3FNUZ },
    { "u8", "f8_e5m2fnuz", HEFT_F8_E5M2FNUZ },
    { "u8", "f8_e8m0", HEFT_F8_E8M0 },
    { "u8", "f4_e2m1", HEFT_F4_E2M1 },
    { "f32", "complex64", HEFT_C64 },
    { "f64", "complex128", HEFT_C128 },
    { "u8", NULL, HEFT_UNTYPED }, /* write untyped bytes as u8 */
};
const size_t heft_zt2_type_count = sizeof heft_zt2_types / sizeof *heft_zt2_types;

const heft_zt2_type *heft_zt2_type_of(heft_dtype t)
{
    for (size_t i = 0; i < heft_zt2_type_count; i++)
        if (heft_zt2_types[i].dtype == t)
            return &heft_zt2_types[i];
    return NULL;
}

const char *heft_zt2_bad_name(heft_str name)
{
    if (!name.len)
        return "an empty name";
    if (name.len > HEFT_ZT2_MAX_NAME)
        return "a name of more than 1024 bytes";
    return heft_str_has_nul(name) ? "a NUL in a name" : NULL;
}

/* ---- layouts ---- */

typedef struct layout {
    const char *spelled, *known;
} layout;

static const layout layouts[] = {
    { "zt.sparse_csr/1", "sparse_csr" },
    { "zt.sparse_coo/1", "sparse_coo" },
};

heft_str heft_zt2_layout_from_file(heft_str spelled)
{
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++)
        if (heft_str_is(spelled, layouts[i].spelled))
            return heft_lit(layouts[i].known);
    return spelled;
}

heft_str heft_zt2_layout_to_file(heft_str known)
{
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++)
        if (heft_str_is(known, layouts[i].known))
            return heft_lit(layouts[i].spelled);
    return known;
}

/* ---- rules of layouts ---- */

static const heft_ix_part_row *part_of(const heft_index *x, uint32_t t, const char *role)
{
    uint32_t part = heft_ix_part_find(x, t, heft_lit(role));
    return part == HEFT_NONE ? NULL : heft_ix_part_row_at(x, part);
}

/* Set *out to the number of entries of `each` indices; return false if the length is not a
 * multiple. */
static bool count_entries(uint64_t *out, const heft_ix_part_row *p, uint32_t each)
{
    uint64_t size = (uint64_t)heft_dtype_size(p->dtype) * each;
    *out = heft_div(p->length, size);
    return *out * size == p->length;
}

static bool has_elements(const heft_ix_part_row *p, uint64_t elements)
{
    uint64_t bytes;
    return p->dtype == HEFT_UNTYPED ||
           (heft_dtype_bytes(&bytes, p->dtype, elements) && bytes == p->length);
}

static bool is_index(const heft_ix_part_row *p)
{
    return p->dtype == HEFT_U32 || p->dtype == HEFT_U64;
}

static const char *dense_fault(const heft_index *x, uint32_t t, heft_str *role)
{
    const heft_ix_part_row *data = part_of(x, t, "data");
    uint64_t n;
    if (heft_ix_row(x, t)->part_count != 1 || !data)
        return "a dense tensor has one part, called \"data\"";
    *role = heft_lit("data");
    heft_product(&n, heft_ix_dims(x, t), heft_ix_row(x, t)->rank);
    return has_elements(data, n) ? NULL : "length does not match the shape";
}

static const char *csr_fault(const heft_index *x, uint32_t t, heft_str *role)
{
    const heft_ix_part_row *values = part_of(x, t, "values"), *indices = part_of(x, t, "indices");
    const heft_ix_part_row *indptr = part_of(x, t, "indptr");
    uint64_t entries, rows;
    if (heft_ix_row(x, t)->rank != 2)
        return "zt.sparse_csr/1 requires two dimensions";
    if (heft_ix_row(x, t)->part_count != 3 || !values || !indices || !indptr)
        return "zt.sparse_csr/1 requires exactly the parts values, indices and indptr";
    *role = heft_lit("indices");
    if (!is_index(indices) || !count_entries(&entries, indices, 1))
        return "element type is neither u32 nor u64";
    *role = heft_lit("indptr");
    if (indptr->dtype != indices->dtype)
        return "element type differs from that of the indices";
    if (!count_entries(&rows, indptr, 1) || !rows || rows - 1 != heft_ix_dims(x, t)[0])
        return "length is not the number of rows plus one";
    *role = heft_lit("values");
    return has_elements(values, entries) ? NULL
                                         : "number of values differs from the number of indices";
}

static const char *coo_fault(const heft_index *x, uint32_t t, heft_str *role)
{
    const heft_ix_part_row *values = part_of(x, t, "values"), *coords = part_of(x, t, "coords");
    uint32_t rank = heft_ix_row(x, t)->rank;
    uint64_t entries;
    if (!rank)
        return "zt.sparse_coo/1 does not allow scalars";
    if (heft_ix_row(x, t)->part_count != 2 || !values || !coords)
        return "zt.sparse_coo/1 requires exactly the parts values and coords";
    *role = heft_lit("coords");
    if (!is_index(coords))
        return "element type is neither u32 nor u64";
    if (!count_entries(&entries, coords, rank))
        return "length is not a multiple of the number of dimensions";
    *role = heft_lit("values");
    return has_elements(values, entries) ? NULL
                                         : "number of values differs from the number of entries";
}

const char *heft_zt2_layout_fault(const heft_index *x, uint32_t t, heft_str *role)
{
    *role = (heft_str){ "", 0 };
    switch (heft_ix_row(x, t)->layout) {
    case HEFT_DENSE:
        return dense_fault(x, t, role);
    case HEFT_SPARSE_CSR:
        return csr_fault(x, t, role);
    case HEFT_SPARSE_COO:
        return coo_fault(x, t, role);
    default:
        return NULL;
    }
}

/* ---- indices ---- */

static bool is_index_role(const heft_index *x, const heft_ix_part_row *part)
{
    heft_str role = heft_ix_role(x, part->role);
    return heft_str_is(role, "indices") || heft_str_is(role, "indptr") ||
           heft_str_is(role, "coords");
}

heft_status heft_zt2_plan_indices(heft_plan *p, uint32_t t)
{
    const heft_ix_tensor_row *row = heft_ix_row(p->x, t);
    bool is_sparse = row->layout == HEFT_SPARSE_CSR || row->layout == HEFT_SPARSE_COO;
    heft_dtype to = HEFT_U32;
    for (uint32_t k = 0; k < row->part_count && is_sparse; k++) {
        const heft_ix_part_row *part = heft_ix_part_row_at(p->x, row->first_part + k);
        if (is_index_role(p->x, part) && heft_dtype_size(part->dtype) > sizeof(uint32_t))
            to = HEFT_U64;
    }
    for (uint32_t k = 0; k < row->part_count && is_sparse; k++) {
        heft_ix_part_row *part = heft_ix_part_row_at(p->x, row->first_part + k);
        if (is_index_role(p->x, part) && heft_dtype_is_int(part->dtype))
            HEFT_TRY(heft_loss_index_type(p, "ztensor/indices", t, part, to));
    }
    return HEFT_OK;
}
