/* torch_calls.c - what the calls in a pickle stand for.  Nothing is called: this table is all that heft makes of
 * them, and what is not in it stays a name. */
#include "format/torch/torch.h"

typedef enum act {
    TENSOR, /* rebuilt of its arguments */
    SPARSE,
    FOLLOW,    /* its first argument is what counts */
    REBUILD,   /* (function, type, arguments, state): a tensor of a class of its own */
    CONTENT,   /* a dictionary: what was set, or the pairs or dictionary in its arguments */
    NAMESPACE, /* what was set is settings */
    NUMBER,
    DEVICE,
    VARIABLE, /* what tensors that learn were before version 0.4: its first argument, or of what was set the tensor */
    INSTANCE, /* of the class that is its first argument: what protocols 0 and 1 have for it */
    OPAQUE,   /* harmless, and nothing of heft's */
    REFUSE
} act;

typedef struct call {
    const char *module, *name; /* name: NULL: all others of the module that begin with _rebuild */
    act act;
    heft_torch_form form;
} call;

static const call calls[] = {
    { "torch._utils", "_rebuild_tensor_v2", TENSOR, HEFT_TORCH_PLAIN },
    { "torch._utils", "_rebuild_tensor", TENSOR, HEFT_TORCH_PLAIN },
    { "torch._utils", "_rebuild_tensor_v3", TENSOR, HEFT_TORCH_TYPED },
    { "torch._utils", "_rebuild_qtensor", TENSOR, HEFT_TORCH_QUANTIZED },
    { "torch._utils", "_rebuild_sparse_tensor", SPARSE, 0 },
    { "torch._utils", "_rebuild_sparse_csr_tensor", SPARSE, 0 },
    { "torch._utils", "_rebuild_parameter", FOLLOW, 0 },
    { "torch._utils", "_rebuild_parameter_with_state", FOLLOW, 0 },
    { "torch._tensor", "_rebuild_from_type_v2", REBUILD, 0 },
    { "torch._tensor", "_rebuild_from_type", REBUILD, 0 },
    { "torch._utils", NULL, REFUSE, 0 },
    { "torch._tensor", NULL, REFUSE, 0 },
    { "torch.storage", "_load_from_bytes", REFUSE, 0 },
    { "torch", "Size", FOLLOW, 0 },
    { "torch", "device", DEVICE, 0 },
    { "torch.autograd.variable", "Variable", VARIABLE, 0 },
    { "torch.nn.parameter", "Parameter", VARIABLE, 0 },
    { "torch.jit._pickle", "build_intlist", FOLLOW, 0 },
    { "torch.jit._pickle", "build_doublelist", FOLLOW, 0 },
    { "torch.jit._pickle", "build_boollist", FOLLOW, 0 },
    { "torch.jit._pickle", "build_tensorlist", FOLLOW, 0 },
    { "torch.jit._pickle", "restore_type_tag", FOLLOW, 0 },
    { "collections", "OrderedDict", CONTENT, 0 },
    { "collections", "defaultdict", CONTENT, 0 },
    { "collections", "Counter", CONTENT, 0 },
    { "builtins", "dict", CONTENT, 0 },
    { "__builtin__", "dict", CONTENT, 0 },
    { "builtins", "set", FOLLOW, 0 },
    { "builtins", "frozenset", FOLLOW, 0 },
    { "builtins", "list", FOLLOW, 0 },
    { "builtins", "tuple", FOLLOW, 0 },
    { "__builtin__", "set", FOLLOW, 0 },
    { "__builtin__", "frozenset", FOLLOW, 0 },
    { "__builtin__", "list", FOLLOW, 0 },
    { "__builtin__", "tuple", FOLLOW, 0 },
    { "argparse", "Namespace", NAMESPACE, 0 },
    { "types", "SimpleNamespace", NAMESPACE, 0 },
    { "numpy.core.multiarray", "scalar", NUMBER, 0 },
    { "numpy._core.multiarray", "scalar", NUMBER, 0 },
    { "copyreg", "_reconstructor", INSTANCE, 0 },
    { "copy_reg", "_reconstructor", INSTANCE, 0 },
    { "numpy.core.multiarray", "_reconstruct", OPAQUE, 0 },
    { "numpy._core.multiarray", "_reconstruct", OPAQUE, 0 },
    { "numpy", "dtype", OPAQUE, 0 },
    { "_codecs", "encode", OPAQUE, 0 },
    { "builtins", "complex", OPAQUE, 0 },
    { "builtins", "slice", OPAQUE, 0 },
    { "builtins", "range", OPAQUE, 0 },
    { "builtins", "bytearray", OPAQUE, 0 },
    { "datetime", "date", OPAQUE, 0 },
    { "datetime", "datetime", OPAQUE, 0 },
    { "datetime", "timedelta", OPAQUE, 0 },
    { "pathlib", "PosixPath", OPAQUE, 0 },
    { "pathlib", "WindowsPath", OPAQUE, 0 },
    { "pathlib", "PurePosixPath", OPAQUE, 0 },
    { "pathlib", "PureWindowsPath", OPAQUE, 0 },
};

static const call *look_up(const heft_pickle *p, uint32_t callable)
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

/* OrderedDict of Python 2 and of protocol 0 takes its pairs as an argument. */
static heft_torch_meaning content(const heft_pickle *p, uint32_t value, uint32_t arg)
{
    const heft_pickle_value *o = heft_pickle_at(p, value);
    heft_torch_meaning m = { .kind = HEFT_TORCH_VALUE, .value = o->as.object.content };
    if (m.value != HEFT_NONE)
        return m;
    m.value = arg;
    if (heft_pickle_is(p, arg, HEFT_PICKLE_LIST))
        m.kind = HEFT_TORCH_PAIRS;
    else if (!heft_pickle_is(p, arg, HEFT_PICKLE_DICT))
        m.value = heft_pickle_at(p, value)->as.object.args; /* without items */
    return m;
}

/* One step; true: *m stands for another value, which is to be looked at. */
static bool step(const heft_pickle *p, heft_torch_meaning *m)
{
    const heft_pickle_value *v = heft_pickle_at(p, m->value);
    m->kind = HEFT_TORCH_VALUE;
    if (v->kind != HEFT_PICKLE_OBJECT)
        return false;
    m->callable = heft_torch_class(p, v->as.object.callable);
    m->args = v->as.object.args;
    const call *c = look_up(p, m->callable);
    if (c && c->act == REBUILD) {
        m->callable = heft_pickle_item(p, m->args, 0);
        m->args = heft_pickle_item(p, m->args, 2);
        c = look_up(p, m->callable);
        c = c && c->act == REBUILD ? NULL : c;
    }
    uint32_t first = heft_pickle_item(p, m->args, 0);
    if (c && c->act == INSTANCE) {
        const call *of = look_up(p, first);
        c = of && (of->act == NAMESPACE || of->act == VARIABLE) ? of : c;
        first = c->act == VARIABLE ? HEFT_NONE : first;
    }
    if (c && c->act == VARIABLE) {
        /* Without arguments its state was (data, gradient, hooks, requires_grad, volatile). */
        enum { VOLATILE = 4 };
        uint32_t state = v->as.object.state, data = first;
        if (data == HEFT_NONE && heft_pickle_item(p, state, VOLATILE) != HEFT_NONE)
            data = heft_pickle_item(p, state, 0);
        m->value = data == HEFT_NONE ? m->value : data;
        m->kind = HEFT_TORCH_OBJECT;
        return data != HEFT_NONE;
    }
    static const heft_torch_kind kinds[] = {
        [TENSOR] = HEFT_TORCH_TENSOR,       [SPARSE] = HEFT_TORCH_SPARSE,
        [NAMESPACE] = HEFT_TORCH_NAMESPACE, [NUMBER] = HEFT_TORCH_NUMBER,
        [DEVICE] = HEFT_TORCH_DEVICE,       [INSTANCE] = HEFT_TORCH_OBJECT,
        [OPAQUE] = HEFT_TORCH_OPAQUE,       [REFUSE] = HEFT_TORCH_REFUSED
    };
    if (!c || (c->act == FOLLOW && first == HEFT_NONE && v->as.object.state != HEFT_NONE)) {
        m->kind = HEFT_TORCH_OBJECT;
        return false;
    }
    if (c->act == FOLLOW) {
        m->value = first == HEFT_NONE ? m->args : first;
        return true;
    }
    if (c->act == CONTENT) {
        /* A defaultdict's argument is what makes its values. */
        *m = content(p, m->value, first);
        return false;
    }
    m->kind = kinds[c->act];
    m->form = c->form;
    return false;
}

heft_torch_meaning heft_torch_meaning_of(const heft_torch *t, uint32_t value)
{
    enum { MOST_STEPS = 8 }; /* a parameter of a tensor is two */
    heft_torch_meaning m = { .value = value };
    for (uint32_t i = 0; step(&t->p, &m); i++)
        if (i == MOST_STEPS) {
            m.kind = HEFT_TORCH_OBJECT;
            break;
        }
    if (t->is_tar && m.kind == HEFT_TORCH_VALUE &&
        heft_pickle_is(&t->p, m.value, HEFT_PICKLE_PERSISTENT) &&
        heft_torch_class(&t->p, m.value) == m.value) {
        bool is_storage;
        heft_torch_record_of(t, m.value, &is_storage);
        m.kind = is_storage ? HEFT_TORCH_OPAQUE : HEFT_TORCH_TENSOR;
        m.form = HEFT_TORCH_RECORDED;
    }
    return m;
}

/* ---- what is not in the table ---- */

enum { MOST_NAME = 80 }; /* bytes of a name that are looked at and told */

static heft_str clipped(heft_str s)
{
    return (heft_str){ s.ptr, s.len < MOST_NAME ? s.len : MOST_NAME };
}

/* Text for a finding: printable ASCII of a name that may hold anything. */
static char *put_name(char *to, heft_str name)
{
    name = clipped(name);
    for (size_t i = 0; i < name.len; i++)
        *to++ = name.ptr[i] > ' ' && name.ptr[i] < 0x7F ? name.ptr[i] : '?';
    return to;
}

static const char *tell_text(heft_torch *t, uint32_t callable, const char *ends)
{
    char text[300], *to = text;
    heft_str end = heft_lit(ends);
    to = put_name(to, heft_pickle_module(&t->p, callable));
    *to++ = '.';
    to = put_name(to, heft_pickle_name(&t->p, callable));
    memcpy(to, end.ptr, end.len + 1);
    return heft_ix_copy(t->x, (heft_str){ text, (size_t)(to - text) + end.len + 1 }).ptr;
}

/* What is called first of a call of a call; values are made before they are used, so this ends. */
static uint32_t innermost(const heft_pickle *p, uint32_t object)
{
    enum { MOST = 16 };
    uint32_t callable = heft_pickle_at(p, object)->as.object.callable;
    for (uint32_t i = 0; i < MOST && heft_pickle_is(p, callable, HEFT_PICKLE_OBJECT); i++) {
        object = callable;
        callable = heft_pickle_at(p, object)->as.object.callable;
    }
    return object;
}

static bool was_told(heft_torch *t, uint32_t callable)
{
    const heft_pickle *p = &t->p;
    heft_str module = clipped(heft_pickle_module(p, callable));
    heft_str name = clipped(heft_pickle_name(p, callable));
    for (uint32_t i = 0; i < t->told; i++)
        if (heft_str_eq(clipped(heft_pickle_module(p, t->calls[i])), module) &&
            heft_str_eq(clipped(heft_pickle_name(p, t->calls[i])), name))
            return true;
    if (t->told == sizeof t->calls / sizeof *t->calls)
        return true;
    t->calls[t->told++] = callable;
    return false;
}

void heft_torch_report(heft_torch *t, uint32_t object)
{
    const heft_pickle *p = &t->p;
    object = innermost(p, object);
    const heft_pickle_value *v = heft_pickle_at(p, object);
    uint32_t callable = heft_torch_class(p, v->as.object.callable);
    uint64_t at = heft_pickle_offset(p, object);
    const call *c = look_up(p, callable);
    bool is_class = v->is_instance;
    if (c && c->act == INSTANCE) {
        callable = heft_pickle_item(p, v->as.object.args, 0);
        is_class = true;
    }
    if (!heft_pickle_is(p, callable, HEFT_PICKLE_GLOBAL)) {
        heft_ix_note(t->x, HEFT_WARNING, "torch/call", at, HEFT_NONE,
                     "a call of something that has no name; heft does not make it");
        return;
    }
    if (heft_str_begins(heft_pickle_module(p, callable), "__torch__")) {
        t->is_script = true;
        return;
    }
    if (was_told(t, callable))
        return;
    const char *text = tell_text(
        t, callable,
        is_class ? ": a class that is not known here; tensors among its attributes are listed"
                 : ": a function that Python would call to load the file; heft does not");
    if (text)
        heft_ix_note(t->x, is_class ? HEFT_NOTE : HEFT_WARNING,
                     is_class ? "torch/class" : "torch/call", at, HEFT_NONE, text);
}
