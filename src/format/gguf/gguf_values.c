/* gguf_values.c - metadata values in the encoding of GGUF.  gguf_meta.c shows the layout.
 *
 * A number keeps the element type with which the source stored the number.  Without such a type,
 * as in formats with a single integer type, an integer becomes u32 or i32 and a fraction becomes
 * f32 if the value fits, since readers of GGUF expect these types.
 */
#include "format/gguf/gguf.h"
#include "model/float.h"
#include "model/open_containers.h"

static bool is_number(const heft_value *v)
{
    return v->kind == HEFT_KIND_INT || v->kind == HEFT_KIND_UINT || v->kind == HEFT_KIND_FLOAT;
}

/* ---- numbers ---- */

/* Convert a number to the bits of an element type; false: the type cannot represent the number. */
static bool number_bits(uint64_t *bits, const heft_value *v, heft_dtype t)
{
    uint32_t width = 8 * heft_dtype_size(t);
    bool negative = v->kind == HEFT_KIND_INT && v->as.i < 0;
    uint64_t max = UINT64_MAX >> (64 - width + heft_dtype_is_signed_int(t));
    *bits = v->as.u; /* two's complement for an INT */
    if (v->kind != HEFT_KIND_FLOAT)
        return !heft_dtype_is_float(t) &&
               (negative ? heft_dtype_is_signed_int(t) && ~v->as.u <= max : v->as.u <= max);
    *bits = t == HEFT_F32 ? heft_f64_to_f32(heft_f64_bits(v->as.f)) : heft_f64_bits(v->as.f);
    return t == HEFT_F64 ||
           (t == HEFT_F32 && heft_f32_to_f64((uint32_t)*bits) == heft_f64_bits(v->as.f));
}

static heft_dtype type_of(const heft_value *v)
{
    static const heft_dtype preferred[] = { HEFT_U32, HEFT_I32, HEFT_U64, HEFT_I64, HEFT_F32 };
    uint64_t bits;
    if (heft_gguf_kind_of(v->stored) < HEFT_GGUF_KINDS && number_bits(&bits, v, v->stored))
        return v->stored;
    for (size_t i = 0; i < sizeof preferred / sizeof *preferred; i++)
        if (number_bits(&bits, v, preferred[i]))
            return preferred[i];
    return HEFT_F64;
}

/* Return an element type that represents all numbers of a list; HEFT_UNTYPED: none. */
static heft_dtype common_type(const heft_index *x, uint32_t list)
{
    static const heft_dtype wider[] = { HEFT_I32, HEFT_U64, HEFT_I64, HEFT_F64 };
    uint32_t end = heft_ix_value_next(x, list), next_wider = 0;
    heft_dtype t = type_of(heft_ix_value(x, list + 1));
    for (uint32_t k = list + 1; k < end;) {
        uint64_t bits;
        if (number_bits(&bits, heft_ix_value(x, k), t)) {
            k++;
        } else if (next_wider < sizeof wider / sizeof *wider) {
            t = wider[next_wider++];
            k = list + 1;
        } else {
            return HEFT_UNTYPED;
        }
    }
    return t;
}

/* ---- lists ---- */

typedef enum value_class { UNSUPPORTED, NUMBER, BOOLEAN, TEXT, ARRAY } value_class;

static value_class class_of(const heft_value *v)
{
    bool is_array = v->kind == HEFT_KIND_ARRAY;
    if (is_number(v))
        return NUMBER;
    if (v->kind == HEFT_KIND_BOOL)
        return BOOLEAN;
    if (v->kind == HEFT_KIND_STR)
        return heft_str_is_utf8(v->as.s) ? TEXT : UNSUPPORTED;
    if (v->kind == HEFT_KIND_BYTES)
        return v->stored == HEFT_U8 ? TEXT : ARRAY;
    if (v->kind == HEFT_KIND_LIST ||
        (is_array && heft_gguf_kind_of(v->as.array.dtype) < HEFT_GGUF_KINDS))
        return ARRAY;
    return UNSUPPORTED;
}

static uint32_t kind_of(value_class c, heft_dtype number)
{
    return c == NUMBER    ? heft_gguf_kind_of(number)
           : c == BOOLEAN ? heft_gguf_kind_of(HEFT_BOOL)
           : c == TEXT    ? (uint32_t)HEFT_GGUF_STRING
           : c == ARRAY   ? (uint32_t)HEFT_GGUF_ARRAY
                          : (uint32_t)HEFT_GGUF_KINDS;
}

/* Return the common kind of the elements of a list; HEFT_GGUF_KINDS: none.  An empty list counts
 * as texts. */
static uint32_t element_kind(const heft_index *x, uint32_t list)
{
    uint32_t end = heft_ix_value_next(x, list);
    if (list + 1 == end)
        return HEFT_GGUF_STRING;
    value_class common = class_of(heft_ix_value(x, list + 1));
    for (uint32_t k = list + 1; k < end; k = heft_ix_value_next(x, k))
        if (class_of(heft_ix_value(x, k)) != common)
            return HEFT_GGUF_KINDS;
    return kind_of(common, common == NUMBER ? common_type(x, list) : HEFT_UNTYPED);
}

bool heft_gguf_is_nested(const heft_index *x, uint32_t i)
{
    return heft_ix_value(x, i)->kind == HEFT_KIND_LIST && element_kind(x, i) == HEFT_GGUF_ARRAY;
}

bool heft_gguf_can_store(const heft_index *x, uint32_t i)
{
    if (class_of(heft_ix_value(x, i)) == UNSUPPORTED)
        return false;
    for (uint32_t k = i; k < heft_ix_value_next(x, i); k++)
        if (heft_value_nests(heft_ix_value(x, k)) &&
            (heft_ix_value(x, k)->kind == HEFT_KIND_MAP || element_kind(x, k) == HEFT_GGUF_KINDS))
            return false;
    return true;
}

/* ---- writing ---- */

void heft_gguf_put_text(heft_out *o, heft_str s)
{
    heft_out_u64(o, s.len);
    heft_out_str(o, s);
}

/* Write value i without the kind.  Of a list, write only the head, and set *inner to the kind of
 * the elements. */
static void put_payload(heft_out *o, const heft_index *x, uint32_t i, uint32_t kind,
                        uint32_t *inner)
{
    const heft_value *v = heft_ix_value(x, i);
    uint64_t bits = v->kind == HEFT_KIND_BOOL && v->as.b;
    if (v->kind == HEFT_KIND_LIST) {
        heft_out_u32(o, *inner = element_kind(x, i));
        heft_out_u64(o, v->as.container.count);
    } else if (v->kind == HEFT_KIND_ARRAY) {
        heft_out_u32(o, heft_gguf_kind_of(v->as.array.dtype));
        heft_out_u64(o, v->as.array.count);
        heft_out_bytes(o, v->as.array.ptr,
                       (size_t)v->as.array.count * heft_dtype_size(v->as.array.dtype));
    } else if (kind == HEFT_GGUF_ARRAY) { /* bytes become an array of u8 */
        heft_out_u32(o, heft_gguf_kind_of(HEFT_U8));
        heft_gguf_put_text(o, v->as.s);
    } else if (kind == HEFT_GGUF_STRING) {
        heft_gguf_put_text(o, v->as.s);
    } else {
        if (is_number(v))
            number_bits(&bits, v, heft_gguf_value_type(kind));
        for (uint32_t k = 0; k < heft_dtype_size(heft_gguf_value_type(kind)); k++)
            heft_out_u8(o, (uint8_t)(bits >> 8 * k));
    }
}

void heft_gguf_put_value(heft_out *o, const heft_index *x, uint32_t i)
{
    heft_open_containers open; /* each with the kind of the children */
    const heft_value *v = heft_ix_value(x, i);
    uint32_t kind = kind_of(class_of(v), is_number(v) ? type_of(v) : HEFT_UNTYPED);
    heft_out_u32(o, kind);
    open.depth = 0;
    do {
        uint32_t inner = 0;
        v = heft_ix_value(x, i);
        put_payload(o, x, i++, heft_open_kind(&open, kind), &inner);
        if (v->kind == HEFT_KIND_LIST)
            heft_open_enter(&open, v->as.container.count, inner);
        else
            heft_open_leaf(&open);
        while (heft_open_leave(&open))
            continue;
    } while (open.depth);
}
