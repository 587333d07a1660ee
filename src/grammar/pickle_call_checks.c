/* pickle_call_checks.c - the arguments of allowed names, and the state that BUILD sets. */
#include "grammar/pickle_trace.h"

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
        return is_member_name(member);
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
    [HEFT_CALL_NEVER] = is_never_called,
    [HEFT_CALL_ENUM] = check_enum,
    [HEFT_CALL_IDENTITY] = check_identity,
    [HEFT_CALL_GETATTR] = check_getattr,
    [HEFT_CALL_ENCODE] = check_encode,
    [HEFT_CALL_BYTES] = check_bytes,
    [HEFT_CALL_FACTORY] = check_factory,
    [HEFT_CALL_REBUILD] = check_rebuild,
    [HEFT_CALL_DTYPE] = heft_trace_dtype,
    [HEFT_CALL_RECONSTRUCT] = heft_trace_reconstruct,
    [HEFT_CALL_SCALAR] = heft_trace_scalar,
    [HEFT_CALL_FROM_BUFFER] = heft_trace_from_buffer,
    [HEFT_CALL_ARRAY_WRAPPER] = heft_trace_wrapper,
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
        return heft_trace_build_dtype(x, target, state);
    case HEFT_TRACE_ARRAY:
        return heft_trace_build_array(x, state);
    case HEFT_TRACE_WRAPPER:
        return heft_trace_build_wrapper(x, target, state);
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
