/* py_tensor.c - type Tensor: facts of a tensor, and the bytes in place by the buffer protocol. */
#include "module.h"

typedef struct tensor_object {
    PyObject_HEAD PyObject *file; /* File */
    uint32_t id;
} tensor_object;

PyObject *tensor_new(module_state *s, PyObject *file, uint32_t id)
{
    tensor_object *self = (tensor_object *)PyType_GenericAlloc(s->tensor, 0);
    if (!self)
        return NULL;
    self->file = Py_NewRef(file);
    self->id = id;
    return (PyObject *)self;
}

PyObject *tensor_file(PyObject *tensor)
{
    return ((tensor_object *)tensor)->file;
}

uint32_t tensor_id(PyObject *tensor)
{
    return ((tensor_object *)tensor)->id;
}

void *tensor_raise(PyObject *tensor, const heft_file *f, const heft_error *err)
{
    const tensor_object *t = (tensor_object *)tensor;
    heft_error lost;
    heft_file_guard(f); /* the name may lie in the missing bytes of a truncated file */
    raise_error(state_of_self(tensor), err, file_path(t->file), heft_tensor_at(f, t->id).name);
    (void)!heft_file_unguard(f, &lost);
    return NULL;
}

static void tensor_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    Py_CLEAR(((tensor_object *)self)->file);
    PyObject_Free(self);
    Py_DECREF(type);
}

/* ---- facts ---- */

static PyObject *fact_name(const heft_file *f, uint32_t id)
{
    return str_object(heft_tensor_at(f, id).name);
}

static PyObject *fact_dtype(const heft_file *f, uint32_t id)
{
    const heft_dtype_info *type = heft_dtype_get(heft_tensor_at(f, id).dtype);
    return type ? PyUnicode_FromString(type->name) : Py_NewRef(Py_None);
}

static PyObject *fact_shape(const heft_file *f, uint32_t id)
{
    heft_tensor t = heft_tensor_at(f, id);
    PyObject *shape = PyTuple_New((Py_ssize_t)t.rank);
    for (uint32_t i = 0; shape && i < t.rank; i++) {
        PyObject *dim = PyLong_FromUnsignedLongLong(t.dims[i]);
        if (!dim || PyTuple_SetItem(shape, (Py_ssize_t)i, dim) < 0)
            Py_CLEAR(shape);
    }
    return shape;
}

static PyObject *fact_nbytes(const heft_file *f, uint32_t id)
{
    uint64_t bytes = heft_tensor_bytes(f, id);
    return bytes == HEFT_UNKNOWN_LENGTH ? Py_NewRef(Py_None) : PyLong_FromUnsignedLongLong(bytes);
}

static PyObject *fact_layout(const heft_file *f, uint32_t id)
{
    return str_object(heft_tensor_layout_name(f, id));
}

/* Return a dict of a part's facts. */
static PyObject *part_object(heft_part p)
{
    static const char *const encodings[] = { "raw", "zstd", "deflate", "other", "msgpack",
                                        "protobuf" };
    const heft_dtype_info *type = heft_dtype_get(p.dtype);
    bool is_known = p.encoding < sizeof encodings / sizeof *encodings;
    bool has_length = p.length != HEFT_UNKNOWN_LENGTH;
    return Py_BuildValue(
        "{s:N,s:z,s:s,s:K,s:K,s:N,s:N,s:I}", "role", str_object(p.role), "dtype",
        type ? type->name : NULL, "encoding",
        encodings[is_known ? p.encoding : HEFT_ENCODING_OTHER], "offset",
        (unsigned long long)p.offset, "stored", (unsigned long long)p.stored, "nbytes",
        has_length ? PyLong_FromUnsignedLongLong(p.length) : Py_NewRef(Py_None), "digest",
        p.digest.len ? str_object(p.digest) : Py_NewRef(Py_None), "shard", (unsigned)p.shard);
}

static PyObject *fact_parts(const heft_file *f, uint32_t id)
{
    heft_tensor t = heft_tensor_at(f, id);
    PyObject *list = PyList_New(0);
    for (uint32_t i = 0; list && i < t.part_count; i++) {
        PyObject *part = part_object(heft_part_at(f, t.first_part + i));
        if (!part || PyList_Append(list, part) < 0)
            Py_CLEAR(list);
        Py_XDECREF(part);
    }
    return list;
}

static PyObject *fact_repr(const heft_file *f, uint32_t id)
{
    PyObject *name = fact_name(f, id), *dtype = fact_dtype(f, id), *shape = fact_shape(f, id);
    PyObject *text = NULL;
    if (name && dtype && shape)
        text = PyUnicode_FromFormat("<heft.Tensor %R: %S %R>", name, dtype, shape);
    Py_XDECREF(name);
    Py_XDECREF(dtype);
    Py_XDECREF(shape);
    return text;
}

typedef PyObject *(*fact_fn)(const heft_file *f, uint32_t id);
static const fact_fn facts[] = { fact_name,   fact_dtype,  fact_shape,
                                 fact_nbytes, fact_layout, attributes_object };

/* Call a function that reads the index, and raise an exception if the file was truncated. */
static PyObject *guarded(PyObject *self, fact_fn fn)
{
    const tensor_object *t = (tensor_object *)self;
    PyObject *handle = file_handle(state_of_self(self), t->file);
    if (!handle)
        return NULL;
    const heft_file *f = handle_file(handle);
    heft_file_guard(f);
    PyObject *value = file_unguard(t->file, f, fn(f, t->id));
    Py_DECREF(handle);
    return value;
}

/* Return a fact of the tensor that lies in the mapped file; fact points to the function. */
static PyObject *tensor_fact(PyObject *self, void *fact)
{
    return guarded(self, *(const fact_fn *)fact);
}

/* Return a fact of the tensor that the open file has in memory; fact points to the function. */
static PyObject *tensor_own_fact(PyObject *self, void *fact)
{
    const tensor_object *t = (tensor_object *)self;
    PyObject *handle = file_handle(state_of_self(self), t->file);
    PyObject *value = handle ? (*(const fact_fn *)fact)(handle_file(handle), t->id) : NULL;
    Py_XDECREF(handle);
    return value;
}

/* A decoded tensor has no parts of its own. */
static PyObject *tensor_parts(PyObject *self, void *Py_UNUSED(none))
{
    const tensor_object *t = (tensor_object *)self;
    PyObject *handle = file_handle(state_of_self(self), t->file);
    if (!handle)
        return NULL;
    const heft_file *f = handle_file(logical_stored(handle));
    heft_file_guard(f);
    uint32_t id = logical_stored_tensor(handle, t->id);
    PyObject *parts = id == HEFT_NONE ? PyList_New(0) : fact_parts(f, id);
    parts = file_unguard(t->file, f, parts);
    Py_DECREF(handle);
    return parts;
}

static PyObject *tensor_quantised(PyObject *self, void *Py_UNUSED(none))
{
    PyObject *handle = file_handle(state_of_self(self), tensor_file(self));
    PyObject *value = handle ? logical_facts(self, handle) : NULL;
    Py_XDECREF(handle);
    return value;
}

static PyObject *tensor_repr(PyObject *self)
{
    return guarded(self, fact_repr);
}

/* ---- the bytes ---- */

/* Formats of the struct module for element types. Elements of other types, and tensors with more
 * dimensions than a memoryview can have, are lent as bytes. */
static const char *const formats[HEFT_DTYPES] = {
    [HEFT_BOOL] = "?", [HEFT_U8] = "B",  [HEFT_I8] = "b",   [HEFT_U16] = "H",  [HEFT_I16] = "h",
    [HEFT_U32] = "I",  [HEFT_I32] = "i", [HEFT_U64] = "Q",  [HEFT_I64] = "q",  [HEFT_F16] = "e",
    [HEFT_F32] = "f",  [HEFT_F64] = "d", [HEFT_C64] = "Zf", [HEFT_C128] = "Zd"
};

typedef struct lent { /* memory of one exported buffer */
    heft_array array;
    PyObject *handle;
    Py_ssize_t dims[]; /* shape, strides */
} lent;

/* Describe the array as elements in rows. */
static void set_dims(Py_buffer *view, lent *l, int flags)
{
    const heft_array *a = &l->array;
    view->itemsize = heft_dtype_get(a->dtype)->block_bytes;
    view->ndim = (int)a->rank;
    view->shape = l->dims;
    view->strides = flags & PyBUF_STRIDES ? l->dims + a->rank : NULL;
    view->format = flags & PyBUF_FORMAT ? (char *)(uintptr_t)formats[a->dtype] : NULL;
    Py_ssize_t stride = view->itemsize;
    for (uint32_t i = a->rank; i--;) {
        l->dims[i] = (Py_ssize_t)a->dims[i];
        l->dims[a->rank + i] = stride;
        stride *= l->dims[i] ? l->dims[i] : 1;
    }
}

static void lent_free(lent *l)
{
    heft_array_free(&l->array);
    Py_DECREF(l->handle);
    PyMem_Free(l);
}

/* Return the memory of a tensor, without a copy if possible. */
static lent *lend(PyObject *self)
{
    const tensor_object *t = (tensor_object *)self;
    module_state *s = state_of_self(self);
    heft_error err;
    heft_status st;
    PyObject *handle = file_handle(s, t->file);
    if (!handle || !logical_verify(self, handle)) {
        Py_XDECREF(handle);
        return NULL;
    }
    const heft_file *f = handle_file(handle);
    heft_tensor info = heft_tensor_at(f, t->id);
    lent *l = PyMem_Calloc(1, sizeof *l + 2 * (size_t)info.rank * sizeof *l->dims);
    if (!l) {
        Py_DECREF(handle);
        PyErr_NoMemory();
        return NULL;
    }
    l->handle = handle;
    PyThreadState *thread = PyEval_SaveThread();
    st = heft_array_view(&l->array, f, info.name, &err);
    PyEval_RestoreThread(thread);
    if (!st)
        return l;
    tensor_raise(self, f, &err);
    lent_free(l);
    return NULL;
}

static int tensor_get_buffer(PyObject *self, Py_buffer *view, int flags)
{
    view->obj = NULL;
    lent *l = lend(self);
    if (!l)
        return -1;
    const heft_array *a = &l->array;
    /* Release the memory if the caller asks for a writable buffer. */
    if (PyBuffer_FillInfo(view, self, (void *)(uintptr_t)a->data, (Py_ssize_t)a->bytes, 1, flags)) {
        lent_free(l);
        return -1;
    }
    view->internal = l;
    if (formats[a->dtype] && flags & PyBUF_ND && a->rank <= PyBUF_MAX_NDIM)
        set_dims(view, l, flags);
    return 0;
}

static void tensor_release_buffer(PyObject *Py_UNUSED(self), Py_buffer *view)
{
    lent_free(view->internal);
}

/* ---- conversions, in heft._arrays.py ---- */

/* Call a function of heft._arrays with the tensor as the first argument. */
static PyObject *delegate(const char *name, PyObject *self, PyObject *args, PyObject *kwargs)
{
    PyObject *module = PyImport_ImportModule("heft._arrays");
    PyObject *function = module ? PyObject_GetAttrString(module, name) : NULL;
    PyObject *first = PyTuple_Pack(1, self);
    PyObject *all = function && first ? PySequence_Concat(first, args) : NULL;
    PyObject *result = all ? PyObject_Call(function, all, kwargs) : NULL;
    Py_XDECREF(all);
    Py_XDECREF(first);
    Py_XDECREF(function);
    Py_XDECREF(module);
    return result;
}

static PyObject *tensor_numpy(PyObject *self, PyObject *args, PyObject *kwargs)
{
    return delegate("numpy", self, args, kwargs);
}

static PyObject *tensor_torch(PyObject *self, PyObject *args, PyObject *kwargs)
{
    return delegate("torch", self, args, kwargs);
}

static PyObject *tensor_to(PyObject *self, PyObject *args, PyObject *kwargs)
{
    return delegate("to", self, args, kwargs);
}

static PyObject *tensor_array_interface(PyObject *self, void *Py_UNUSED(none))
{
    PyObject *none = PyTuple_New(0);
    PyObject *result = none ? delegate("array_interface", self, none, NULL) : NULL;
    Py_XDECREF(none);
    return result;
}

static PyObject *tensor_sparse(PyObject *self, PyObject *args, PyObject *kwargs)
{
    return delegate("sparse", self, args, kwargs);
}

static PyObject *tensor_subscript(PyObject *self, PyObject *index)
{
    PyObject *args = PyTuple_Pack(1, index);
    PyObject *result = args ? delegate("getitem", self, args, NULL) : NULL;
    Py_XDECREF(args);
    return result;
}

/* ---- reading ---- */

static PyObject *tensor_read_into(PyObject *self, PyObject *args)
{
    const tensor_object *t = (tensor_object *)self;
    module_state *s = state_of_self(self);
    const char *as = NULL;
    Py_buffer to;
    heft_array array;
    heft_error err;
    heft_status st;
    if (!PyArg_ParseTuple(args, "w*|z:read_into", &to, &as))
        return NULL;
    heft_dtype dtype = as ? heft_dtype_find(heft_str_from(as)) : HEFT_UNTYPED;
    PyObject *handle = as && !dtype ? raise_text(s, HEFT_E_NOTFOUND, "unknown element type")
                                    : file_handle(s, t->file);
    PyObject *result = NULL;
    if (handle && logical_verify(self, handle)) {
        const heft_file *f = handle_file(handle);
        heft_str name = heft_tensor_at(f, t->id).name;
        PyThreadState *thread = PyEval_SaveThread();
        st = heft_array_read(&array, f, name, dtype, to.buf, (size_t)to.len, &err);
        PyEval_RestoreThread(thread);
        result = st ? tensor_raise(self, f, &err) : PyLong_FromUnsignedLongLong(array.bytes);
        heft_array_free(&array);
    }
    Py_XDECREF(handle);
    PyBuffer_Release(&to);
    return result;
}

/* Fill in the axes of a slice from a list of (start, count, step), one for each dimension. */
static bool set_axes(heft_slice *axes, PyObject *list, uint32_t rank)
{
    if (PyList_Size(list) != (Py_ssize_t)rank) {
        PyErr_SetString(PyExc_ValueError, "a slice needs an entry for each dimension");
        return false;
    }
    for (uint32_t i = 0; i < rank; i++) {
        PyObject *axis = PyList_GetItem(list, (Py_ssize_t)i);
        unsigned long long start, count;
        long long step;
        if (!axis || !PyArg_ParseTuple(axis, "KKL", &start, &count, &step))
            return false;
        axes[i] = (heft_slice){ start, count, step };
    }
    return true;
}

static PyObject *read_slice(PyObject *self, PyObject *handle, PyObject *list, Py_buffer *to)
{
    const tensor_object *t = (tensor_object *)self;
    const heft_file *f = handle_file(handle);
    heft_tensor info = heft_tensor_at(f, t->id);
    heft_error err;
    heft_status st;
    heft_slice *axes = PyMem_Calloc((size_t)info.rank + 1, sizeof *axes);
    if (!axes)
        return PyErr_NoMemory();
    if (!set_axes(axes, list, info.rank)) {
        PyMem_Free(axes);
        return NULL;
    }
    PyThreadState *thread = PyEval_SaveThread();
    st = heft_array_read_slice(to->buf, (size_t)to->len, f, info.name, axes, HEFT_UNTYPED, &err);
    PyEval_RestoreThread(thread);
    PyMem_Free(axes);
    return st ? tensor_raise(self, f, &err) : Py_NewRef(Py_None);
}

static PyObject *tensor_read_slice(PyObject *self, PyObject *args)
{
    Py_buffer to;
    PyObject *list, *result = NULL;
    if (!PyArg_ParseTuple(args, "w*O:_read_slice", &to, &list))
        return NULL;
    PyObject *handle = PyList_Check(list)
                           ? file_handle(state_of_self(self), tensor_file(self))
                           : PyErr_Format(PyExc_TypeError, "the axes of a slice are a list");
    if (handle)
        result = read_slice(self, handle, list, &to);
    Py_XDECREF(handle);
    PyBuffer_Release(&to);
    return result;
}

/* Return the decoded bytes of a part in a new bytearray. */
static PyObject *part_bytes(PyObject *self, const heft_file *f, uint32_t part)
{
    heft_error err;
    heft_status st;
    uint64_t length = heft_part_at(f, part).length;
    if (length > PY_SSIZE_T_MAX)
        return PyErr_NoMemory();
    PyObject *bytes = PyByteArray_FromStringAndSize(NULL, (Py_ssize_t)length);
    if (!bytes)
        return NULL;
    char *data = PyByteArray_AsString(bytes);
    PyThreadState *thread = PyEval_SaveThread();
    st = heft_part_read(data, f, part, 0, (size_t)length, &err);
    PyEval_RestoreThread(thread);
    if (!st)
        return bytes;
    Py_DECREF(bytes);
    return tensor_raise(self, f, &err);
}

static PyObject *tensor_read_part(PyObject *self, PyObject *args)
{
    const tensor_object *t = (tensor_object *)self;
    module_state *s = state_of_self(self);
    const char *role;
    Py_ssize_t len;
    if (!PyArg_ParseTuple(args, "s#:read_part", &role, &len))
        return NULL;
    PyObject *handle = file_handle(s, t->file);
    if (!handle || !logical_verify(self, handle)) {
        Py_XDECREF(handle);
        return NULL;
    }
    const heft_file *f = handle_file(handle);
    heft_file_guard(f);
    uint32_t part = heft_part_find(f, t->id, (heft_str){ role, (size_t)len });
    PyObject *result = file_unguard(t->file, f, Py_None);
    if (result)
        result = part == HEFT_NONE
                     ? raise_text(s, HEFT_E_NOTFOUND, "the tensor has no part of that role")
                     : part_bytes(self, f, part);
    Py_DECREF(handle);
    return result;
}

static PyMethodDef methods[] = {
    { "read_part", tensor_read_part, METH_VARARGS,
      "read_part(role) -> bytearray: the decoded bytes of a part, \"values\"." },
    { "sparse", (PyCFunction)(void (*)(void))tensor_sparse, METH_VARARGS | METH_KEYWORDS,
      "sparse(framework=None): the parts of a sparse tensor as arrays of NumPy, (indptr, indices,\n"
      "values) for sparse_csr and (coordinates, values) for sparse_coo; \"scipy\" or \"torch\": "
      "as\n"
      "a sparse array of that framework." },
    { "numpy", (PyCFunction)(void (*)(void))tensor_numpy, METH_VARARGS | METH_KEYWORDS,
      "numpy(copy=False) -> numpy.ndarray: the elements, read-only and in place unless copied.\n"
      "bf16 and 8-bit floats need ml_dtypes." },
    { "torch", (PyCFunction)(void (*)(void))tensor_torch, METH_VARARGS | METH_KEYWORDS,
      "torch() -> torch.Tensor: a copy of the elements on the CPU." },
    { "to", (PyCFunction)(void (*)(void))tensor_to, METH_VARARGS | METH_KEYWORDS,
      "to(dtype) -> numpy.ndarray: a copy of the elements converted to dtype, \"f32\"." },
    { "read_into", tensor_read_into, METH_VARARGS,
      "read_into(buffer, dtype=None) -> int: read the elements, row by row, into a writable "
      "buffer,\n"
      "converted to dtype. Returns the number of bytes." },
    { "_read_slice", tensor_read_slice, METH_VARARGS,
      "_read_slice(buffer, list of (start, count, step)): read the elements of a slice." },
    { "__dlpack__", (PyCFunction)(void (*)(void))tensor_dlpack, METH_VARARGS | METH_KEYWORDS,
      "The elements as a DLPack capsule: in place and read-only for consumers of version 1, else "
      "a\n"
      "copy." },
    { "__dlpack_device__", tensor_dlpack_device, METH_NOARGS, "(1, 0): the CPU." },
    { NULL, NULL, 0, NULL },
};

static PyGetSetDef getters[] = {
    { "name", tensor_fact, NULL, "Name of the tensor.", (void *)&facts[0] },
    { "dtype", tensor_own_fact, NULL, "Name of the element type, \"f32\", or None.",
      (void *)&facts[1] },
    { "shape", tensor_own_fact, NULL, "Dimensions: a tuple of int.", (void *)&facts[2] },
    { "nbytes", tensor_own_fact, NULL, "Decoded bytes, or None if not known.", (void *)&facts[3] },
    { "layout", tensor_fact, NULL, "\"dense\", \"sparse_csr\", ...", (void *)&facts[4] },
    { "parts", tensor_parts, NULL,
      "Parts: a list of dicts with role, dtype, encoding, offset, stored, nbytes, digest and "
      "shard.",
      NULL },
    { "attributes", tensor_fact, NULL, "Attributes: a new dict.", (void *)&facts[5] },
    { "quantised", tensor_quantised, NULL,
      "Of a decoded tensor (logical=True): a dict with scheme, variant, bits, block, and parts, the\n"
      "names of the stored tensors by role. Else None.",
      NULL },
    { "__array_interface__", tensor_array_interface, NULL,
      "The elements for NumPy and others, read-only; AttributeError for types that NumPy lacks.",
      NULL },
    { NULL, NULL, NULL, NULL, NULL },
};

static PyType_Slot slots[] = {
    { Py_tp_doc,
      "A tensor of an open file. The buffer protocol lends the stored bytes, read-only." },
    { Py_tp_dealloc, tensor_dealloc },
    { Py_tp_repr, tensor_repr },
    { Py_tp_methods, methods },
    { Py_tp_getset, getters },
    { Py_mp_subscript, tensor_subscript },
    { Py_bf_getbuffer, tensor_get_buffer },
    { Py_bf_releasebuffer, tensor_release_buffer },
    { 0, NULL },
};

PyType_Spec tensor_spec = {
    .name = "heft.Tensor",
    .basicsize = sizeof(tensor_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = slots,
};
