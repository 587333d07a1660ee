/* pickle_numpy_checks.c - element types and arrays of NumPy, and the wrappers of joblib.
 *
 * NumPy believes the state of an element type: a type that hides its objects, or whose fields lie
 * past its end, makes NumPy take bytes of the file for addresses.  Only states that NumPy writes
 * are allowed, and a type does not change after an array or another type relies on it.
 */
#include "base/checked_math.h"
#include "grammar/pickle_trace.h"

/* Flags of an element type, in NumPy's order. */
enum { HAS_OBJECT = 1, IS_LIST = 2, IS_POINTER = 4, OF_OBJECTS = 63 };

/* Return the object of an element type, which must not change any more. */
static heft_trace_object *fixed_type(const heft_trace *x, const heft_trace_value *v)
{
    heft_trace_object *type = v->kind == HEFT_TRACE_DTYPE ? heft_trace_object_of(x, v) : NULL;
    if (type)
        type->is_fixed = true;
    return type;
}

/* ---- numpy.dtype ---- */

/* Read "f8", "U5", "O": a letter, and the number of bytes or characters. */
static bool read_simple_type(heft_trace_object *type, heft_str s)
{
    enum { MOST = 10, UNICODE = 4, ADDRESS = 8 };
    static const char letters[] = "biufcSUVOmM";
    uint64_t n = 0;
    if (!s.len || s.len > MOST ||
        !heft_str_seek((const uint8_t *)letters, (const uint8_t *)letters + sizeof letters - 1,
                       s.ptr, 1))
        return false;
    for (size_t i = 1; i < s.len; i++) {
        if (s.ptr[i] < '0' || s.ptr[i] > '9')
            return false;
        n = n * 10 + (uint64_t)(s.ptr[i] - '0');
    }
    n = *s.ptr == 'U' ? n * UNICODE : n;
    n = *s.ptr == 'O' && !n ? ADDRESS : n;
    type->letter = *s.ptr;
    type->len = n < INT32_MAX ? (uint32_t)n : 0;
    type->has_objects = *s.ptr == 'O';
    return n < INT32_MAX;
}

/* (type, align, copy): without a copy, the state would change NumPy's own type. */
bool heft_trace_dtype(heft_trace *x, const heft_trace_value *arguments, uint32_t n,
                      heft_trace_value *result)
{
    heft_trace_object type = { .first = 0 };
    if (n != 3 || !heft_trace_is_number(arguments + 1, 0) ||
        !heft_trace_is_number(arguments + 2, 1) ||
        !read_simple_type(&type, heft_trace_text(arguments)))
        return false;
    *result = heft_trace_new(x, HEFT_TRACE_DTYPE);
    heft_trace_object *made = heft_trace_object_of(x, result);
    if (made)
        *made = type;
    return true;
}

/* Multiply by the number, or the tuple of numbers, of a shape; return false for other values. */
static bool multiply_shape(uint64_t *n, const heft_trace *x, const heft_trace_value *shape)
{
    uint32_t rank = 1;
    const heft_trace_value *sizes = shape;
    if (shape->kind == HEFT_TRACE_TUPLE)
        sizes = heft_trace_items(x, shape, &rank);
    for (uint32_t i = 0; sizes && i < rank; i++)
        if (sizes[i].kind != HEFT_TRACE_NUMBER || sizes[i].number < 0 ||
            !heft_mul(n, *n, (uint64_t)sizes[i].number))
            return false;
    return sizes;
}

/* A subarray: (type, shape). */
static bool check_subarray(heft_trace_object *type, const heft_trace *x,
                           const heft_trace_value *subarray)
{
    uint32_t n;
    const heft_trace_value *items = heft_trace_items(x, subarray, &n);
    const heft_trace_object *element = items && n == 2 ? fixed_type(x, items) : NULL;
    uint64_t bytes = element ? element->len : 0;
    if (!element || !multiply_shape(&bytes, x, items + 1))
        return false;
    type->has_objects = element->has_objects;
    return bytes == type->len;
}

/* A field: a name, and (type, offset) or (type, offset, title). */
static bool check_field(heft_trace_object *type, const heft_trace *x, const heft_trace_value *name,
                        const heft_trace_value *field)
{
    uint32_t n;
    const heft_trace_value *items = heft_trace_items(x, field, &n);
    const heft_trace_object *element = items && (n == 2 || n == 3) ? fixed_type(x, items) : NULL;
    if (!element || !heft_trace_is_bytes(name) || items[1].kind != HEFT_TRACE_NUMBER ||
        items[1].number < 0)
        return false;
    type->has_objects |= element->has_objects;
    return heft_range_in((heft_range){ (uint64_t)items[1].number, element->len }, type->len);
}

/* Fields of numbers may share bytes, but a number over a pointer would make it point anywhere. */
static bool are_apart(const heft_trace_value *fields, uint32_t n, const heft_trace *x)
{
    const heft_trace_value *last = NULL;
    int64_t end = 0;
    for (uint32_t i = 0, items; i < n; i += 2) {
        const heft_trace_value *field = heft_trace_items(x, fields + i + 1, &items);
        bool is_title = last && field[0].index == last[0].index &&
                        field[1].number == last[1].number;
        if (field[1].number < end && !is_title)
            return false;
        end = field[1].number + heft_trace_object_of(x, field)->len;
        last = field;
    }
    return true;
}

static bool check_fields(heft_trace_object *type, const heft_trace *x,
                         const heft_trace_value *fields)
{
    heft_trace_object *dict = fields->kind == HEFT_TRACE_DICT ? heft_trace_object_of(x, fields)
                                                              : NULL;
    const heft_trace_value *items = x->items.ptr;
    if (!dict || dict->has_many)
        return false;
    dict->is_fixed = true;
    for (uint32_t i = 0; i < dict->len; i += 2)
        if (!check_field(type, x, items + dict->first + i, items + dict->first + i + 1))
            return false;
    return !type->has_objects || are_apart(items + dict->first, dict->len, x);
}

/* Flags are a signed byte; those of a type with objects make NumPy read a list. */
static bool check_flags(const heft_trace_object *type, const heft_trace_value *flags)
{
    if (flags->kind != HEFT_TRACE_NUMBER)
        return false;
    if (type->letter == 'O')
        return (flags->number & OF_OBJECTS) == OF_OBJECTS;
    int64_t wanted = type->has_objects ? HAS_OBJECT | IS_LIST : 0;
    return (flags->number & (HAS_OBJECT | IS_LIST | IS_POINTER)) == wanted;
}

/* (version, byte order, subarray, names, fields, bytes, alignment, flags[, metadata]) */
bool heft_trace_build_dtype(heft_trace *x, heft_trace_value dtype, heft_trace_value state)
{
    enum { SUBARRAY = 2, NAMES, FIELDS, BYTES, ALIGNMENT, FLAGS, COUNT };
    uint32_t n;
    const heft_trace_value *items = heft_trace_items(x, &state, &n);
    heft_trace_object *type = heft_trace_object_of(x, &dtype);
    if (!type || !items || type->is_fixed || type->is_built || (n != COUNT && n != COUNT + 1))
        return false;

    type->is_built = true;
    bool is_plain = items[SUBARRAY].kind == HEFT_TRACE_NONE &&
                    items[NAMES].kind == HEFT_TRACE_NONE && items[FIELDS].kind == HEFT_TRACE_NONE;
    bool has_size = heft_trace_is_number(items + BYTES, type->len) ||
                    (is_plain && heft_trace_is_number(items + BYTES, -1));
    if (!has_size || (!is_plain && type->letter != 'V'))
        return false;
    if (items[SUBARRAY].kind != HEFT_TRACE_NONE && !check_subarray(type, x, items + SUBARRAY))
        return false;
    if (items[FIELDS].kind != HEFT_TRACE_NONE && !check_fields(type, x, items + FIELDS))
        return false;
    return check_flags(type, items + FLAGS);
}

/* ---- arrays ---- */

static bool is_ndarray(const heft_trace *x, const heft_trace_value *v)
{
    const heft_trace_import *i = heft_trace_import_of(x, v);
    return i && heft_str_is(i->module, "numpy") && heft_str_is(i->name, "ndarray");
}

bool heft_trace_reconstruct(heft_trace *x, const heft_trace_value *arguments, uint32_t n,
                            heft_trace_value *result)
{
    *result = (heft_trace_value){ .kind = HEFT_TRACE_ARRAY };
    return n == 3 && is_ndarray(x, arguments) && arguments[1].kind == HEFT_TRACE_TUPLE &&
           heft_trace_is_bytes(arguments + 2) && arguments[2].len <= 1;
}

/* ([version,] shape, type, is Fortran order, content) */
bool heft_trace_build_array(heft_trace *x, heft_trace_value state)
{
    uint32_t n;
    const heft_trace_value *items = heft_trace_items(x, &state, &n);
    if (!items || (n != 4 && n != 5))
        return false;
    items += n - 4;
    const heft_trace_object *type = fixed_type(x, items + 1);
    return type && items[0].kind == HEFT_TRACE_TUPLE &&
           (type->has_objects ? items[3].kind == HEFT_TRACE_LIST : heft_trace_is_bytes(items + 3));
}

static bool is_type_without_objects(const heft_trace *x, const heft_trace_value *v)
{
    const heft_trace_object *type = fixed_type(x, v);
    return type && !type->has_objects;
}

bool heft_trace_scalar(heft_trace *x, const heft_trace_value *arguments, uint32_t n,
                       heft_trace_value *result)
{
    (void)result;
    return n == 2 && is_type_without_objects(x, arguments) && heft_trace_is_bytes(arguments + 1);
}

bool heft_trace_from_buffer(heft_trace *x, const heft_trace_value *arguments, uint32_t n,
                            heft_trace_value *result)
{
    *result = (heft_trace_value){ .kind = HEFT_TRACE_ARRAY };
    return n >= 2 && n <= 4 && is_type_without_objects(x, arguments + 1);
}

/* ---- joblib: the bytes of an array follow the state of its wrapper ---- */

bool heft_trace_wrapper(heft_trace *x, const heft_trace_value *arguments, uint32_t n,
                        heft_trace_value *result)
{
    (void)arguments;
    *result = heft_trace_new(x, HEFT_TRACE_WRAPPER);
    return !n;
}

/* Joblib reads from the file what follows the current frame, and goes on in the frame. */
static void skip_array(heft_trace *x, const heft_trace_object *type, uint64_t bytes,
                       bool has_padding)
{
    uint64_t here = heft_cur_pos(&x->c), size = x->c.limit;
    uint64_t at = x->frame_end > here ? x->frame_end : here;
    at = x->jump_to > at ? x->jump_to : at;
    x->has_nested = type->has_objects;
    if (!type->has_objects) {
        at += has_padding && at < size ? 1 + (uint64_t)x->bytes[at] : 0;
        at = at < size && bytes < size - at ? at + bytes : size;
    }
    x->frame_end = x->frame_end > here ? x->frame_end : here;
    x->jump_to = at;
}

bool heft_trace_build_wrapper(heft_trace *x, heft_trace_value wrapper, heft_trace_value state)
{
    heft_trace_object *w = heft_trace_object_of(x, &wrapper);
    const heft_trace_value *type = heft_trace_find(x, &state, "dtype"),
                           *shape = heft_trace_find(x, &state, "shape"),
                           *class = heft_trace_find(x, &state, "subclass"),
                           *padding = heft_trace_find(x, &state, "numpy_array_alignment_bytes");
    const heft_trace_object *element = type ? fixed_type(x, type) : NULL;
    uint64_t bytes = element ? element->len : 0;
    x->has_arrays = true;
    if (!w || w->is_built || !element || !shape || shape->kind != HEFT_TRACE_TUPLE ||
        !multiply_shape(&bytes, x, shape) || !class || !is_ndarray(x, class))
        return false;

    w->is_built = true;
    if (x->s->is_joblib) {
        skip_array(x, element, bytes, padding && padding->kind != HEFT_TRACE_NONE);
        heft_trace_value *top = heft_trace_top(x);
        if (top)
            top->kind = HEFT_TRACE_OBJECT;
    }
    return true;
}
