/* torch_calls.c - interprets the calls in a pickle.  Heft never calls anything: this table lists
 * the supported calls, and any other call remains a name. */
#include "format/torch/torch.h"

typedef enum action {
    TENSOR, /* rebuilds a tensor from the arguments */
    SPARSE,
    PIECE,     /* the local part of a tensor that is distributed over ranks */
    UNWRAP,    /* stands for the first argument */
    REBUILD,   /* (function, type, arguments, state): a tensor of a subclass */
    CONTENT,   /* a dictionary: the items set later, or the pairs in the arguments */
    NAMESPACE, /* an object with settings as attributes */
    NUMBER,
    DEVICE,
    VARIABLE, /* a tensor before PyTorch 0.4: the first argument, or in the state */
    INSTANCE, /* an instance of the class in the first argument, in protocols 0 and 1 */
    OPAQUE,   /* without numbers, and left out */
    BYTES,
    NUMBERS, /* numbers that are left out */
    ARRAY,   /* an array of NumPy */
    META,    /* a tensor without bytes */
    WRAPPER, /* a tensor that consists of other tensors */
    REFUSE
} action;

typedef struct call {
    const char *module, *name; /* name NULL: all other _rebuild... functions of the module */
    action action;
    heft_torch_form form;
} call;

static const call calls[] = {
    { "torch._utils", "_rebuild_tensor_v2", TENSOR, HEFT_TORCH_PLAIN },
    { "torch._utils", "_rebuild_tensor", TENSOR, HEFT_TORCH_PLAIN },
    { "torch._utils", "_rebuild_tensor_v3", TENSOR, HEFT_TORCH_TYPED },
    { "torch._utils", "_rebuild_qtensor", TENSOR, HEFT_TORCH_QUANTIZED },
    { "torch._utils", "_rebuild_sparse_tensor", SPARSE, 0 },
    { "torch._utils", "_rebuild_sparse_csr_tensor", SPARSE, 0 },
    { "torch._utils", "_rebuild_parameter", UNWRAP, 0 },
    { "torch._utils", "_rebuild_parameter_with_state", UNWRAP, 0 },
    { "torch._utils", "_rebuild_device_tensor_from_cpu_tensor", UNWRAP, 0 },
    { "torch._utils", "_rebuild_device_tensor_from_numpy", UNWRAP, 0 },
    { "torch._utils", "_rebuild_wrapper_subclass", PIECE, 0 },
    { "torch._tensor", "_rebuild_from_type_v2", REBUILD, 0 },
    { "torch._tensor", "_rebuild_from_type", REBUILD, 0 },
    { "torch._utils", "_rebuild_meta_tensor_no_storage", META, 0 },
    { "torch._utils", "_rebuild_nested_tensor", SPARSE, 0 },
    { "torch._utils", NULL, REFUSE, 0 },
    { "torch._tensor", NULL, REFUSE, 0 },
    { "torch.storage", "_load_from_bytes", REFUSE, 0 },
    { "torch", "Size", UNWRAP, 0 },
    { "torch", "device", DEVICE, 0 },
    { "torch.autograd.variable", "Variable", VARIABLE, 0 },
    { "torch.nn.parameter", "Parameter", VARIABLE, 0 },
    { "torch.jit._pickle", "build_intlist", UNWRAP, 0 },
    { "torch.jit._pickle", "build_doublelist", UNWRAP, 0 },
    { "torch.jit._pickle", "build_boollist", UNWRAP, 0 },
    { "torch.jit._pickle", "build_tensorlist", UNWRAP, 0 },
    { "torch.jit._pickle", "restore_type_tag", UNWRAP, 0 },
    { "collections", "OrderedDict", CONTENT, 0 },
    { "collections", "defaultdict", CONTENT, 0 },
    { "collections", "Counter", CONTENT, 0 },
    { "builtins", "dict", CONTENT, 0 },
    { "__builtin__", "dict", CONTENT, 0 },
    { "builtins", "set", UNWRAP, 0 },
    { "builtins", "frozenset", UNWRAP, 0 },
    { "builtins", "list", UNWRAP, 0 },
    { "builtins", "tuple", UNWRAP, 0 },
    { "__builtin__", "set", UNWRAP, 0 },
    { "__builtin__", "frozenset", UNWRAP, 0 },
    { "__builtin__", "list", UNWRAP, 0 },
    { "__builtin__", "tuple", UNWRAP, 0 },
    { "argparse", "Namespace", NAMESPACE, 0 },
    { "types", "SimpleNamespace", NAMESPACE, 0 },
    { "numpy.core.multiarray", "scalar", NUMBER, 0 },
    { "numpy._core.multiarray", "scalar", NUMBER, 0 },
    { "copyreg", "_reconstructor", INSTANCE, 0 },
    { "copy_reg", "_reconstructor", INSTANCE, 0 },
    { "numpy.core.multiarray", "_reconstruct", ARRAY, 0 },
    { "numpy._core.multiarray", "_reconstruct", ARRAY, 0 },
    { "numpy.core.numeric", "_frombuffer", ARRAY, 0 },
    { "numpy._core.numeric", "_frombuffer", ARRAY, 0 },
    { "numpy", "dtype", OPAQUE, 0 },
    { "_codecs", "encode", BYTES, 0 },
    { "builtins", "complex", NUMBERS, 0 },
    { "builtins", "slice", NUMBERS, 0 },
    { "builtins", "range", NUMBERS, 0 },
    { "builtins", "bytearray", NUMBERS, 0 },
    { "__builtin__", "complex", NUMBERS, 0 },
    { "__builtin__", "slice", NUMBERS, 0 },
    { "__builtin__", "xrange", NUMBERS, 0 },
    { "__builtin__", "bytearray", NUMBERS, 0 },
    { "__builtin__", "bytes", NUMBERS, 0 },
    { "datetime", "date", OPAQUE, 0 },
    { "datetime", "datetime", OPAQUE, 0 },
    { "datetime", "timedelta", OPAQUE, 0 },
    { "pathlib", "PosixPath", OPAQUE, 0 },
    { "pathlib", "WindowsPath", OPAQUE, 0 },
    { "pathlib", "PurePosixPath", OPAQUE, 0 },
    { "pathlib", "PureWindowsPath", OPAQUE, 0 },
};

static const call *find_call(const heft_pickle *p, uint32_t callable)
{
    if (!heft_pickle_is(p, callable, HEFT_PICKLE_GLOBAL))
        return NULL;
    heft_str module = heft_pickle_module(p, callable), name = heft_pickle_name(p, callable);
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        if (heft_str_is(module, calls[i].module) &&
            (calls[i].name ? heft_str_is(name, calls[i].name) : heft_str_begins(name, "_rebuild")))
            return &calls[i];
    return NULL;
}

/* Interpret a dictionary.  OrderedDict of Python 2 and of protocol 0 gets the pairs as an
 * argument. */
static heft_torch_interpretation interpret_dict(const heft_pickle *p, uint32_t value, uint32_t arg)
{
    const heft_pickle_value *o = heft_pickle_at(p, value);
    heft_torch_interpretation m = { .kind = HEFT_TORCH_VALUE, .value = o->as.object.content };
    if (m.value != HEFT_NONE)
        return m;
    m.value = arg;
    if (heft_pickle_is(p, arg, HEFT_PICKLE_LIST))
        m.kind = HEFT_TORCH_PAIRS;
    else if (!heft_pickle_is(p, arg, HEFT_PICKLE_DICT))
        m.value = heft_pickle_at(p, value)->as.object.args; /* an empty tuple: no items */
    return m;
}

/* A tensor of any other subclass that is rebuilt like a piece consists of other tensors. */
static const call wrapper = { "", "", WRAPPER, 0 };

static bool is_piece(const heft_pickle *p, uint32_t class)
{
    heft_str name = { "", 0 };
    if (heft_pickle_is(p, class, HEFT_PICKLE_GLOBAL))
        name = heft_pickle_name(p, class);
    return !name.len || heft_str_is(name, "DTensor") || heft_str_is(name, "ShardedTensor");
}

/* Interpret a single value; return true if *m now refers to another value that must be
 * interpreted. */
static bool interpret_step(const heft_pickle *p, heft_torch_interpretation *m)
{
    const heft_pickle_value *v = heft_pickle_at(p, m->value);
    m->kind = HEFT_TORCH_VALUE;
    if (v->kind != HEFT_PICKLE_OBJECT)
        return false;
    m->callable = heft_torch_class(p, v->as.object.callable);
    m->args = v->as.object.args;
    m->state = HEFT_NONE;
    const call *c = find_call(p, m->callable);
    if (c && c->action == REBUILD) {
        uint32_t class = heft_pickle_item(p, m->args, 1);
        m->callable = heft_pickle_item(p, m->args, 0);
        m->state = heft_pickle_item(p, m->args, 3);
        m->args = heft_pickle_item(p, m->args, 2);
        c = find_call(p, m->callable);
        c = c && c->action == REBUILD ? NULL : c;
        if (c && c->action == PIECE && !is_piece(p, class)) {
            m->callable = class;
            c = &wrapper;
        }
    }
    uint32_t first = heft_pickle_item(p, m->args, 0);
    if (c && c->action == INSTANCE) {
        const call *of = find_call(p, first);
        c = of && (of->action == NAMESPACE || of->action == VARIABLE) ? of : c;
        first = c->action == VARIABLE ? HEFT_NONE : first;
    }
    if (c && c->action == VARIABLE) {
        /* Without arguments the state was (data, gradient, hooks, requires_grad, volatile). */
        enum { VOLATILE = 4 };
        uint32_t state = v->as.object.state, data = first;
        if (data == HEFT_NONE && heft_pickle_item(p, state, VOLATILE) != HEFT_NONE)
            data = heft_pickle_item(p, state, 0);
        m->value = data == HEFT_NONE ? m->value : data;
        m->kind = HEFT_TORCH_OBJECT;
        return data != HEFT_NONE;
    }
    static const heft_torch_kind kinds[] = {
        [TENSOR] = HEFT_TORCH_TENSOR,   [SPARSE] = HEFT_TORCH_SPARSE,
        [PIECE] = HEFT_TORCH_PIECE,     [NAMESPACE] = HEFT_TORCH_NAMESPACE,
        [NUMBER] = HEFT_TORCH_NUMBER,   [DEVICE] = HEFT_TORCH_DEVICE,
        [INSTANCE] = HEFT_TORCH_OBJECT, [OPAQUE] = HEFT_TORCH_OPAQUE,
        [NUMBERS] = HEFT_TORCH_NUMBERS, [ARRAY] = HEFT_TORCH_ARRAY,
        [REFUSE] = HEFT_TORCH_REFUSED,  [BYTES] = HEFT_TORCH_BYTES,
        [META] = HEFT_TORCH_META,       [WRAPPER] = HEFT_TORCH_WRAPPER
    };
    if (!c || (c->action == UNWRAP && first == HEFT_NONE && v->as.object.state != HEFT_NONE)) {
        m->kind = HEFT_TORCH_OBJECT;
        return false;
    }
    if (c->action == UNWRAP) {
        m->value = first == HEFT_NONE ? m->args : first;
        return true;
    }
    if (c->action == CONTENT) {
        /* The argument of a defaultdict is the factory of values. */
        *m = interpret_dict(p, m->value, first);
        return false;
    }
    m->kind = kinds[c->action];
    m->form = c->form;
    return false;
}

heft_torch_interpretation heft_torch_interpret(const heft_torch *t, uint32_t value)
{
    enum { MAX_STEPS = 8 }; /* a Parameter around a tensor takes two */
    heft_torch_interpretation m = { .value = value, .state = HEFT_NONE };
    for (uint32_t i = 0; interpret_step(&t->p, &m); i++)
        if (i == MAX_STEPS) {
            m.kind = HEFT_TORCH_OBJECT;
            break;
        }
    if (t->is_tar && m.kind == HEFT_TORCH_VALUE &&
        heft_pickle_is(&t->p, m.value, HEFT_PICKLE_PERSISTENT) &&
        heft_torch_class(&t->p, m.value) == m.value) {
        bool is_storage;
        heft_torch_record_of(t, m.value, &is_storage);
        m.kind = is_storage ? HEFT_TORCH_NUMBERS : HEFT_TORCH_TENSOR;
        m.form = HEFT_TORCH_RECORDED;
    }
    return m;
}

/* ---- reports of unknown calls ---- */

enum { MAX_NAME = 80 }; /* bytes of a name that are compared and shown */

static heft_str clipped(heft_str s)
{
    return (heft_str){ s.ptr, s.len < MAX_NAME ? s.len : MAX_NAME };
}

/* Write printable ASCII for a finding; other characters become '?'. */
static char *put_name(char *to, heft_str name)
{
    name = clipped(name);
    for (size_t i = 0; i < name.len; i++)
        *to++ = name.ptr[i] > ' ' && name.ptr[i] < 0x7F ? name.ptr[i] : '?';
    return to;
}

static const char *format_report(heft_torch *t, uint32_t callable, const char *suffix)
{
    char text[300], *to = text;
    heft_str end = heft_lit(suffix);
    to = put_name(to, heft_pickle_module(&t->p, callable));
    *to++ = '.';
    to = put_name(to, heft_pickle_name(&t->p, callable));
    memcpy(to, end.ptr, end.len + 1);
    return heft_ix_copy(t->x, (heft_str){ text, (size_t)(to - text) + end.len + 1 }).ptr;
}

/* Return the innermost call of a call of a call ...  Values refer only to earlier values, so the
 * loop ends. */
static uint32_t innermost(const heft_pickle *p, uint32_t object)
{
    enum { MAX_DEPTH = 16 };
    uint32_t callable = heft_pickle_at(p, object)->as.object.callable;
    for (uint32_t i = 0; i < MAX_DEPTH && heft_pickle_is(p, callable, HEFT_PICKLE_OBJECT); i++) {
        object = callable;
        callable = heft_pickle_at(p, object)->as.object.callable;
    }
    return object;
}

static bool was_reported(heft_torch *t, uint32_t callable)
{
    const heft_pickle *p = &t->p;
    heft_str module = clipped(heft_pickle_module(p, callable));
    heft_str name = clipped(heft_pickle_name(p, callable));
    for (uint32_t i = 0; i < t->reported; i++)
        if (heft_str_eq(clipped(heft_pickle_module(p, t->reported_calls[i])), module) &&
            heft_str_eq(clipped(heft_pickle_name(p, t->reported_calls[i])), name))
            return true;
    if (t->reported == sizeof t->reported_calls / sizeof *t->reported_calls)
        return true;
    t->reported_calls[t->reported++] = callable;
    return false;
}

void heft_torch_report(heft_torch *t, uint32_t object)
{
    const heft_pickle *p = &t->p;
    object = innermost(p, object);
    const heft_pickle_value *v = heft_pickle_at(p, object);
    uint32_t callable = heft_torch_class(p, v->as.object.callable);
    uint64_t at = heft_pickle_offset(p, object);
    const call *c = find_call(p, callable);
    bool is_class = v->is_instance;
    if (c && c->action == INSTANCE) {
        callable = heft_pickle_item(p, v->as.object.args, 0);
        is_class = true;
    }
    if (!heft_pickle_is(p, callable, HEFT_PICKLE_GLOBAL)) {
        heft_ix_note(t->x, HEFT_WARNING, "torch/call", at, HEFT_NONE,
                     "a call of a function without a name, which Heft does not make");
        return;
    }
    if (heft_str_begins(heft_pickle_module(p, callable), "__torch__")) {
        t->is_script = true;
        return;
    }
    if (was_reported(t, callable))
        return;
    const char *text = format_report(
        t, callable,
        is_class ? ": an unknown class; tensors in its attributes are listed"
                 : ": a function that Python would call while loading the file; Heft does not");
    if (text)
        heft_ix_note(t->x, is_class ? HEFT_NOTE : HEFT_WARNING,
                     is_class ? "torch/class" : "torch/call", at, HEFT_NONE, text);
}
