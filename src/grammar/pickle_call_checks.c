/* pickle_call_checks.c - the arguments of allowed names, and the state that BUILD sets. */
#include "grammar/pickle_trace.h"

#include "base/checked_math.h"

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
static bool trace_dtype(heft_trace *x, const heft_trace_value *arguments, uint32_t n,
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
static bool trace_build_dtype(heft_trace *x, heft_trace_value dtype, heft_trace_value state)
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

static bool trace_reconstruct(heft_trace *x, const heft_trace_value *arguments, uint32_t n,
                              heft_trace_value *result)
{
    *result = (heft_trace_value){ .kind = HEFT_TRACE_ARRAY };
    return n == 3 && is_ndarray(x, arguments) && arguments[1].kind == HEFT_TRACE_TUPLE &&
           heft_trace_is_bytes(arguments + 2) && arguments[2].len <= 1;
}

/* ([version,] shape, type, is Fortran order, content) */
static bool trace_build_array(heft_trace *x, heft_trace_value state)
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

static bool trace_scalar(heft_trace *x, const heft_trace_value *arguments, uint32_t n,
                         heft_trace_value *result)
{
    (void)result;
    return n == 2 && is_type_without_objects(x, arguments) && heft_trace_is_bytes(arguments + 1);
}

static bool trace_from_buffer(heft_trace *x, const heft_trace_value *arguments, uint32_t n,
                              heft_trace_value *result)
{
    *result = (heft_trace_value){ .kind = HEFT_TRACE_ARRAY };
    return n >= 2 && n <= 4 && is_type_without_objects(x, arguments + 1);
}

/* ---- joblib: the bytes of an array follow the state of its wrapper ---- */

static bool trace_wrapper(heft_trace *x, const heft_trace_value *arguments, uint32_t n,
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

/* Checks of NumPy's and joblib's functions: return false if no writer uses such arguments. */
static bool trace_build_wrapper(heft_trace *x, heft_trace_value wrapper, heft_trace_value state)
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

/* Return false if no writer of tensors uses these arguments; set *result otherwise. */
typedef bool check_fn(heft_trace *x, const heft_trace_value *arguments, uint32_t n,
                      heft_trace_value *result);

static bool is_never_called(heft_trace *x, const heft_trace_value *arguments, uint32_t n,
                            heft_trace_value *result)
{
    (void)x, (void)arguments, (void)n, (void)result;
    return false;
}

static bool check_enum(heft_trace *x, const heft_trace_value *arguments, uint32_t n,
                       heft_trace_value *result)
{
    (void)x, (void)result;
    return n == 1 && arguments[0].kind == HEFT_TRACE_NUMBER;
}

static bool check_identity(heft_trace *x, const heft_trace_value *arguments, uint32_t n,
                           heft_trace_value *result)
{
    (void)x;
    *result = arguments[0];
    return n;
}

static bool is_member_name(heft_str s)
{
    for (size_t i = 0; i < s.len; i++) {
        bool is_inner = s.ptr[i] == '_' || (s.ptr[i] >= '0' && s.ptr[i] <= '9');
        if (!(s.ptr[i] >= 'A' && s.ptr[i] <= 'Z') && !(i && is_inner))
            return false;
    }
    return s.len;
}

/* The members of ZeroStageEnum of DeepSpeed. */
static bool is_stage_name(heft_str s)
{
    static const char *const stages[] = { "disabled", "optimizer_states", "gradients", "weights" };
    for (size_t i = 0; i < sizeof stages / sizeof *stages; i++)
        if (heft_str_is(s, stages[i]))
            return true;
    return false;
}

/* Python 3.11 writes getattr() for the members of enumerations; protocols before 4 write it for
 * classes within classes. */
static bool check_getattr(heft_trace *x, const heft_trace_value *arguments, uint32_t n,
                          heft_trace_value *result)
{
    const heft_trace_import *owner = n == 2 ? heft_trace_import_of(x, arguments) : NULL;
    if (!owner)
        return false;
    heft_str member = heft_trace_text(arguments + 1);
    if (owner->row->rule == HEFT_CALL_ENUM)
        return is_member_name(member) || is_stage_name(member);
    *result = arguments[0];
    return owner->row->rule == HEFT_CALL_OUTER && heft_str_is(member, "ProcessGroupState");
}

static bool check_encode(heft_trace *x, const heft_trace_value *arguments, uint32_t n,
                         heft_trace_value *result)
{
    static const char *const codecs[] = { "latin1", "latin-1", "utf-8", "utf8", "ascii" };
    (void)x;
    *result = (heft_trace_value){ .kind = HEFT_TRACE_BYTES };
    for (size_t i = 0; n == 2 && i < sizeof codecs / sizeof *codecs; i++)
        if (heft_str_is(heft_trace_text(arguments + 1), codecs[i]))
            return arguments[0].kind == HEFT_TRACE_TEXT;
    return false;
}

static bool check_bytes(heft_trace *x, const heft_trace_value *arguments, uint32_t n,
                        heft_trace_value *result)
{
    (void)x;
    *result = (heft_trace_value){ .kind = HEFT_TRACE_PLAIN };
    return !n || (n <= 2 && heft_trace_is_bytes(arguments)) || arguments[0].kind == HEFT_TRACE_LIST;
}

static bool is_type_of_python(const heft_trace *x, const heft_trace_value *v)
{
    const heft_trace_import *i = heft_trace_import_of(x, v);
    return i &&
           (heft_str_is(i->module, "builtins") || heft_str_is(i->module, "__builtin__") ||
            heft_str_is(i->module, "collections")) &&
           i->row->rule != HEFT_CALL_GETATTR;
}

static bool check_factory(heft_trace *x, const heft_trace_value *arguments, uint32_t n,
                          heft_trace_value *result)
{
    (void)result;
    return !n || arguments[0].kind == HEFT_TRACE_NONE || is_type_of_python(x, arguments);
}

/* The function is called with the third argument. */
static bool check_rebuild(heft_trace *x, const heft_trace_value *arguments, uint32_t n,
                          heft_trace_value *result)
{
    const heft_trace_import *f = n >= 3 ? heft_trace_import_of(x, arguments) : NULL;
    (void)result;
    return f && f->row->rule == HEFT_CALL_ANY && heft_str_is(f->module, "torch._utils") &&
           heft_trace_import_of(x, arguments + 1);
}

static check_fn *const checks[] = {
    [HEFT_CALL_NEVER] = is_never_called,       [HEFT_CALL_ENUM] = check_enum,
    [HEFT_CALL_IDENTITY] = check_identity,     [HEFT_CALL_GETATTR] = check_getattr,
    [HEFT_CALL_ENCODE] = check_encode,         [HEFT_CALL_BYTES] = check_bytes,
    [HEFT_CALL_FACTORY] = check_factory,       [HEFT_CALL_REBUILD] = check_rebuild,
    [HEFT_CALL_DTYPE] = trace_dtype,           [HEFT_CALL_RECONSTRUCT] = trace_reconstruct,
    [HEFT_CALL_SCALAR] = trace_scalar,         [HEFT_CALL_FROM_BUFFER] = trace_from_buffer,
    [HEFT_CALL_ARRAY_WRAPPER] = trace_wrapper,
};

static bool is_checked(heft_pickle_rule rule)
{
    return rule != HEFT_CALL_ANY && rule != HEFT_CALL_OUTER;
}

/* Functions may keep a dictionary and change it later, so that its items are no longer known. */
static void forget_dictionaries(heft_trace *x, const heft_trace_value *arguments, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        heft_trace_object *d = arguments[i].kind == HEFT_TRACE_DICT
                                   ? heft_trace_object_of(x, arguments + i)
                                   : NULL;
        if (d && d->is_fixed)
            heft_trace_report(x, HEFT_PICKLE_ARGUMENTS, heft_lit("numpy"), heft_lit("dtype"));
        if (d) {
            d->has_many = true;
            d->len = 0;
        }
    }
}

static void call_import(heft_trace *x, const heft_trace_import *f,
                        const heft_trace_value *arguments, bool has_keywords)
{
    heft_trace_value result = { .kind = HEFT_TRACE_OBJECT };
    uint32_t n = 0;
    const heft_trace_value *items = heft_trace_items(x, arguments, &n);
    forget_dictionaries(x, items, n);
    bool is_fine = !is_checked(f->row->rule) ||
                   (items && !has_keywords && checks[f->row->rule](x, items, n, &result));
    if (!is_fine) {
        heft_trace_report(x, HEFT_PICKLE_ARGUMENTS, f->module, f->name);
        result = (heft_trace_value){ .kind = HEFT_TRACE_UNKNOWN };
    }
    heft_trace_push(x, result);
}

void heft_trace_call(heft_trace *x, heft_trace_value function, heft_trace_value arguments,
                     bool has_keywords)
{
    const heft_trace_import *f = heft_trace_import_of(x, &function);
    if (f)
        call_import(x, f, &arguments, has_keywords);
    else if (function.kind != HEFT_TRACE_UNKNOWN && function.kind != HEFT_TRACE_OBJECT)
        heft_trace_break(x); /* not a function */
    else {
        if (function.kind == HEFT_TRACE_OBJECT) /* writers call nothing but what they import */
            heft_trace_report(x, HEFT_PICKLE_ARGUMENTS, (heft_str){ 0 }, (heft_str){ 0 });
        x->uses_unknown |= function.kind == HEFT_TRACE_UNKNOWN;
        heft_trace_push_kind(x, HEFT_TRACE_UNKNOWN);
    }
}

/* ---- BUILD ---- */

/* Special methods, which Python would call later, are functions of classes and not of states. */
static bool has_special_key(const heft_trace *x, const heft_trace_value *state)
{
    uint32_t n;
    const heft_trace_value *items = heft_trace_items(x, state, &n);
    const heft_trace_object *dict = heft_trace_object_of(x, state);
    if (dict && state->kind == HEFT_TRACE_DICT)
        return dict->has_special_key;
    for (uint32_t i = 0; items && i < n; i++) {
        dict = items[i].kind == HEFT_TRACE_DICT ? heft_trace_object_of(x, items + i) : NULL;
        if (dict && dict->has_special_key)
            return true;
    }
    return false;
}

static bool check_state(heft_trace *x, heft_trace_value target, heft_trace_value state)
{
    switch ((heft_trace_kind)target.kind) {
    case HEFT_TRACE_IMPORT: /* would change a class or a function */
        return false;
    case HEFT_TRACE_DTYPE:
        return trace_build_dtype(x, target, state);
    case HEFT_TRACE_ARRAY:
        return trace_build_array(x, state);
    case HEFT_TRACE_WRAPPER:
        return trace_build_wrapper(x, target, state);
    default:
        if (target.kind == HEFT_TRACE_OBJECT && target.len) /* may get another type */
            heft_trace_odd_storage(x);
        return !has_special_key(x, &state);
    }
}

void heft_trace_build(heft_trace *x, heft_trace_value state)
{
    static const char *const names[HEFT_TRACE_OBJECT + 1] = {
        [HEFT_TRACE_DTYPE] = "dtype",
        [HEFT_TRACE_ARRAY] = "ndarray",
        [HEFT_TRACE_WRAPPER] = "NumpyArrayWrapper",
    };
    const heft_trace_value *top = heft_trace_top(x);
    x->uses_unknown |= top && top->kind == HEFT_TRACE_UNKNOWN;
    if (!top || check_state(x, *top, state))
        return;
    const heft_trace_import *i = heft_trace_import_of(x, top);
    bool is_numpy = top->kind == HEFT_TRACE_DTYPE || top->kind == HEFT_TRACE_ARRAY;
    heft_str module = heft_lit(is_numpy                          ? "numpy"
                               : top->kind == HEFT_TRACE_WRAPPER ? "joblib.numpy_pickle"
                                                                 : "");
    const char *name = names[top->kind];
    heft_trace_report(x, HEFT_PICKLE_ARGUMENTS, i ? i->module : module,
                      i ? i->name : heft_lit(name ? name : ""));
}
