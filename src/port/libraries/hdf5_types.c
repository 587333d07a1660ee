/* hdf5_types.c - the element types of HDF5 as those of Heft. */
#include "port/libraries/hdf5_library.h"

#include <stdlib.h>
#include <string.h>

/* ---- numbers ---- */

static heft_dtype integer_of(hid_t t)
{
    static const heft_dtype types[][2] = { [1] = { HEFT_U8, HEFT_I8 },
                                           [2] = { HEFT_U16, HEFT_I16 },
                                           [4] = { HEFT_U32, HEFT_I32 },
                                           [8] = { HEFT_U64, HEFT_I64 } };
    size_t bytes = heft_hdf5->H5Tget_size(t);
    if (bytes >= sizeof types / sizeof *types || heft_hdf5->H5Tget_precision(t) != 8 * bytes ||
        heft_hdf5->H5Tget_offset(t) != 0)
        return HEFT_UNTYPED;
    return types[bytes][heft_hdf5->H5Tget_sign(t) == H5T_SGN_2];
}

/* Bits of floating-point types, from the lowest. */
static const struct {
    heft_dtype dtype;
    uint8_t bytes, mantissa, exponent;
    uint16_t bias;
} floats[] = {
    { HEFT_F32, 4, 23, 8, 127 }, { HEFT_F64, 8, 52, 11, 1023 },  { HEFT_F16, 2, 10, 5, 15 },
    { HEFT_BF16, 2, 7, 8, 127 }, { HEFT_F8_E4M3FN, 1, 3, 4, 7 }, { HEFT_F8_E5M2, 1, 2, 5, 15 },
};

static heft_dtype float_of(hid_t t)
{
    size_t sign, exponent_at, exponent, mantissa_at, mantissa, bytes = heft_hdf5->H5Tget_size(t);
    if (heft_hdf5->H5Tget_fields(t, &sign, &exponent_at, &exponent, &mantissa_at, &mantissa) < 0 ||
        heft_hdf5->H5Tget_norm(t) != H5T_NORM_IMPLIED || mantissa_at ||
        heft_hdf5->H5Tget_precision(t) != 8 * bytes || heft_hdf5->H5Tget_offset(t) != 0)
        return HEFT_UNTYPED;
    for (size_t i = 0; i < sizeof floats / sizeof *floats; i++)
        if (floats[i].bytes == bytes && floats[i].mantissa == mantissa &&
            floats[i].exponent == exponent && exponent_at == mantissa &&
            sign == mantissa + exponent && floats[i].bias == heft_hdf5->H5Tget_ebias(t))
            return floats[i].dtype;
    return HEFT_UNTYPED;
}

/* Return false for a byte order that is neither of the two. */
static bool find_order(heft_hdf5_type *out, hid_t t)
{
    H5T_order_t order = heft_hdf5->H5Tget_order(t);
    out->is_big_endian = order == H5T_ORDER_BE && heft_hdf5->H5Tget_size(t) > 1;
    return order == H5T_ORDER_LE || order == H5T_ORDER_BE || order == H5T_ORDER_NONE;
}

static void number(heft_hdf5_type *out, hid_t t, heft_dtype dtype, const char *text)
{
    bool is_known = find_order(out, t) && dtype;
    out->dtype = is_known ? dtype : (heft_dtype)HEFT_UNTYPED;
    out->text = is_known ? NULL : text;
}

/* ---- types of several members ---- */

static bool is_member(hid_t t, unsigned i, const char *name)
{
    char *found = heft_hdf5->H5Tget_member_name(t, i);
    bool is_it = found && !strcmp(found, name);
    heft_hdf5->H5free_memory(found);
    return is_it;
}

/* h5py writes truth values as an enumeration of FALSE and TRUE. */
static bool is_bool(hid_t t)
{
    int8_t values[2] = { -1, -1 };
    if (heft_hdf5->H5Tget_size(t) != 1 || heft_hdf5->H5Tget_nmembers(t) != 2)
        return false;
    for (unsigned i = 0; i < 2; i++)
        heft_hdf5->H5Tget_member_value(t, i, &values[i]);
    return is_member(t, 0, "FALSE") && is_member(t, 1, "TRUE") && values[0] == 0 && values[1] == 1;
}

static void enumeration(heft_hdf5_type *out, hid_t t)
{
    hid_t base = heft_hdf5->H5Tget_super(t);
    number(out, base, is_bool(t) ? (heft_dtype)HEFT_BOOL : integer_of(base),
           "values of an enumeration of unusual numbers");
    if (base >= 0)
        heft_hdf5->H5Tclose(base);
}

/* h5py writes complex numbers as a pair of numbers "r" and "i". */
static void compound(heft_hdf5_type *out, hid_t t)
{
    heft_dtype types[2] = { HEFT_UNTYPED, HEFT_UNTYPED };
    bool is_pair = heft_hdf5->H5Tget_nmembers(t) == 2 && is_member(t, 0, "r") &&
                   is_member(t, 1, "i") && !heft_hdf5->H5Tget_member_offset(t, 0);
    out->text = "records of several values";
    for (unsigned i = 0; is_pair && i < 2; i++) {
        hid_t m = heft_hdf5->H5Tget_member_type(t, i);
        bool is_float = heft_hdf5->H5Tget_class(m) == H5T_FLOAT;
        types[i] = is_float && find_order(out, m) ? float_of(m) : (heft_dtype)HEFT_UNTYPED;
        is_pair = types[i] == types[0] && heft_hdf5->H5Tget_size(m) * 2 == out->bytes;
        if (m >= 0)
            heft_hdf5->H5Tclose(m);
    }
    if (is_pair && (types[0] == HEFT_F32 || types[0] == HEFT_F64)) {
        out->dtype = types[0] == HEFT_F32 ? HEFT_C64 : HEFT_C128;
        out->text = NULL;
    }
}

static void of_class(heft_hdf5_type *out, hid_t t)
{
    static const char *const texts[] = { [H5T_TIME] = "times",
                                         [H5T_STRING] = "text",
                                         [H5T_BITFIELD] = "bits",
                                         [H5T_OPAQUE] = "bytes without a type",
                                         [H5T_REFERENCE] = "references",
                                         [H5T_VLEN] = "lists of different lengths",
                                         [H5T_ARRAY] = "arrays of arrays" };
    int kind = heft_hdf5->H5Tget_class(t);
    out->bytes = heft_hdf5->H5Tget_size(t);
    if (kind == H5T_INTEGER)
        number(out, t, integer_of(t), "integers of an unusual size");
    else if (kind == H5T_FLOAT)
        number(out, t, float_of(t), "floating-point numbers of an unusual form");
    else if (kind == H5T_ENUM)
        enumeration(out, t);
    else if (kind == H5T_COMPOUND)
        compound(out, t);
    else
        out->text = kind >= 0 && kind <= H5T_ARRAY && texts[kind] ? texts[kind]
                                                                  : "values of an unknown type";
}

heft_hdf5_type heft_hdf5_type_of(hid_t type)
{
    heft_hdf5_type out = { .dtype = HEFT_UNTYPED };
    hsize_t dims[H5S_MAX_RANK];
    int rank = heft_hdf5->H5Tget_class(type) == H5T_ARRAY ? heft_hdf5->H5Tget_array_ndims(type) : 0;
    if (rank <= 0 || rank > H5S_MAX_RANK || heft_hdf5->H5Tget_array_dims2(type, dims) < 0) {
        of_class(&out, type);
        return out;
    }
    hid_t base = heft_hdf5->H5Tget_super(type);
    of_class(&out, base);
    for (int i = 0; i < rank; i++)
        out.dims[i] = dims[i];
    out.rank = (uint32_t)rank;
    out.bytes = heft_hdf5->H5Tget_size(type);
    if (base >= 0)
        heft_hdf5->H5Tclose(base);
    return out;
}
