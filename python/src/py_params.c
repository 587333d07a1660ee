/* py_params.c - types _ParamStore and Parameter: the part of heft.ParamStore below
 * heft/_params.py. */
#include "module.h"

#include <string.h>

#include <heft/params.h>

/* The library's store belongs to a capsule; each loan has a reference, and the last closes the
 * store. */
static const char handle_name[] = "heft.params";

static void handle_free(PyObject *handle)
{
    heft_params_close(PyCapsule_GetPointer(handle, handle_name));
}

static heft_params *params_of(PyObject *handle)
{
    return PyCapsule_GetPointer(handle, handle_name);
}

/* ---- loans ---- */

typedef struct loan_object {
    PyObject_HEAD PyObject *handle; /* NULL after the parameter was returned to the store */
    heft_id128 key;
    heft_param param;
    bool is_f32;   /* the form of f32 */
    bool is_ended; /* release() was called: the parameter returns with the last view */
    Py_ssize_t views;
} loan_object;

static void give_back(loan_object *loan)
{
    PyObject *handle = loan->handle;
    loan->handle = NULL;
    if (handle && loan->is_f32)
        heft_params_release_form(params_of(handle), loan->key, heft_derivation_f32().kind);
    else if (handle)
        heft_params_release(params_of(handle), loan->key);
    Py_XDECREF(handle);
}

static void loan_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    give_back((loan_object *)self);
    PyObject_Free(self);
    Py_DECREF(type);
}

static PyObject *loan_release(PyObject *self, PyObject *none)
{
    loan_object *loan = (loan_object *)self;
    (void)none;
    loan->is_ended = true;
    if (!loan->views)
        give_back(loan);
    return Py_NewRef(Py_None);
}

static int loan_get_buffer(PyObject *self, Py_buffer *view, int flags)
{
    loan_object *loan = (loan_object *)self;
    if (loan->is_ended) {
        raise_text(state_of_self(self), HEFT_E_ARGUMENT, "the parameter is released");
        return -1;
    }
    void *data = (void *)(uintptr_t)loan->param.data;
    if (PyBuffer_FillInfo(view, self, data, (Py_ssize_t)loan->param.bytes, 1, flags))
        return -1;
    loan->views++;
    return 0;
}

static void loan_release_buffer(PyObject *self, Py_buffer *view)
{
    loan_object *loan = (loan_object *)self;
    (void)view;
    if (!--loan->views && loan->is_ended)
        give_back(loan);
}

static PyObject *loan_dtype(PyObject *self, void *none)
{
    (void)none;
    const heft_dtype_info *type = heft_dtype_get(((loan_object *)self)->param.dtype);
    return type ? PyUnicode_FromString(type->name) : Py_NewRef(Py_None);
}

static PyObject *loan_shape(PyObject *self, void *none)
{
    loan_object *loan = (loan_object *)self;
    (void)none;
    if (!loan->handle) /* the dims are the store's */
        return raise_text(state_of_self(self), HEFT_E_ARGUMENT, "the parameter is released");
    PyObject *shape = PyTuple_New((Py_ssize_t)loan->param.rank);
    for (uint32_t i = 0; shape && i < loan->param.rank; i++) {
        PyObject *n = PyLong_FromUnsignedLongLong(loan->param.dims[i]);
        if (!n || PyTuple_SetItem(shape, (Py_ssize_t)i, n) < 0)
            Py_CLEAR(shape);
    }
    return shape;
}

static PyMethodDef loan_methods[] = {
    { "release", loan_release, METH_NOARGS,
      "release(): return the parameter, as soon as no view of the memory is left." },
    { NULL, NULL, 0, NULL },
};

static PyGetSetDef loan_getters[] = {
    { "dtype", loan_dtype, NULL, "Name of the element type.", NULL },
    { "shape", loan_shape, NULL, "Dimensions: a tuple of int.", NULL },
    { NULL, NULL, NULL, NULL, NULL },
};

static PyType_Slot loan_slots[] = {
    { Py_tp_doc, "A parameter lent by a store. The buffer protocol lends the bytes, read-only." },
    { Py_tp_dealloc, loan_dealloc },
    { Py_tp_methods, loan_methods },
    { Py_tp_getset, loan_getters },
    { Py_bf_getbuffer, loan_get_buffer },
    { Py_bf_releasebuffer, loan_release_buffer },
    { 0, NULL },
};

PyType_Spec loan_spec = {
    .name = "heft._heft._Loan",
    .basicsize = sizeof(loan_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = loan_slots,
};

/* ---- the store ---- */

typedef struct store_object {
    PyObject_HEAD PyObject *handle; /* NULL after close() */
} store_object;

/* Return a new reference to the handle; NULL with an exception if the store is closed. */
static PyObject *open_handle(PyObject *self)
{
    PyObject *handle = ((store_object *)self)->handle;
    return handle ? Py_NewRef(handle)
                  : raise_text(state_of_self(self), HEFT_E_ARGUMENT, "the store is closed");
}

static PyObject *store_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    heft_params_options options = HEFT_PARAMS_OPTIONS_INIT;
    PyObject *budget;
    int copy, verify;
    heft_params *p;
    heft_error err;
    if (kwargs && PyDict_Size(kwargs))
        return PyErr_Format(PyExc_TypeError, "_ParamStore() takes no keyword arguments");
    if (!PyArg_ParseTuple(args, "Opp:ParamStore", &budget, &copy, &verify))
        return NULL;
    options.budget = PyLong_AsUnsignedLongLong(budget);
    if (PyErr_Occurred())
        return NULL;
    options.copy = copy;
    options.check_parts = verify;
    PyObject *self = PyType_GenericAlloc(type, 0);
    if (!self)
        return NULL;
    heft_status st = heft_params_open(&p, &options, &err);
    if (st)
        raise_error(state_of_self(self), &err, NULL, (heft_str){ NULL, 0 });
    else
        ((store_object *)self)->handle = PyCapsule_New(p, handle_name, handle_free);
    if (!((store_object *)self)->handle)
        Py_CLEAR(self);
    return self;
}

static PyObject *store_close(PyObject *self, PyObject *none)
{
    (void)none;
    Py_CLEAR(((store_object *)self)->handle);
    return Py_NewRef(Py_None);
}

static void store_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    Py_CLEAR(((store_object *)self)->handle);
    PyObject_Free(self);
    Py_DECREF(type);
}

/* Open the file and add it as a model; return the namespace as bytes. */
static PyObject *store_add(PyObject *self, PyObject *given)
{
    PyObject *handle = open_handle(self), *bytes = NULL;
    heft_file *f;
    heft_error err;
    heft_id128 space;
    heft_status st;
    if (!handle || !PyUnicode_FSConverter(given, &bytes)) {
        Py_XDECREF(handle);
        return NULL;
    }
    const char *path = PyBytes_AsString(bytes);
    PyObject *shown = PyUnicode_DecodeFSDefault(path);
    PyThreadState *thread = PyEval_SaveThread();
    st = heft_file_open(&f, path, NULL, &err);
    if (!st)
        st = heft_params_add(&space, params_of(handle), f, &err);
    PyEval_RestoreThread(thread);
    PyObject *result = st ? raise_error(state_of_self(self), &err, shown, (heft_str){ NULL, 0 })
                          : PyBytes_FromStringAndSize((const char *)&space, sizeof space);
    Py_XDECREF(shown);
    Py_DECREF(bytes);
    Py_DECREF(handle);
    return result;
}

/* Return the key of a name in a namespace (bytes), or None. */
static PyObject *store_find(PyObject *self, PyObject *args)
{
    const char *space_bytes, *name;
    Py_ssize_t space_len, len;
    heft_id128 space, key;
    PyObject *handle = NULL, *result = NULL;
    if (!PyArg_ParseTuple(args, "y#s#:find", &space_bytes, &space_len, &name, &len) ||
        !(handle = open_handle(self)))
        return NULL;
    memcpy(&space, space_bytes, sizeof space);
    bool is_found = space_len == sizeof space && heft_params_find(&key, params_of(handle), space,
                                                                  (heft_str){ name, (size_t)len });
    result = is_found ? PyBytes_FromStringAndSize((const char *)&key, sizeof key)
                      : Py_NewRef(Py_None);
    Py_DECREF(handle);
    return result;
}

static bool key_of(heft_id128 *out, PyObject *object)
{
    char *bytes;
    Py_ssize_t len;
    if (PyBytes_AsStringAndSize(object, &bytes, &len))
        return false;
    if (len != sizeof *out)
        return PyErr_Format(PyExc_ValueError, "a key of %zd bytes", len);
    memcpy(out, bytes, sizeof *out);
    return true;
}

static heft_status acquire(loan_object *loan, heft_params *p, heft_error *err)
{
    heft_derivation f32 = heft_derivation_f32();
    return loan->is_f32 ? heft_params_resolve(&loan->param, p, loan->key, &f32, err)
                        : heft_params_acquire(&loan->param, p, loan->key, err);
}

/* Lend the parameter of a key, as f32 if asked. */
static PyObject *store_acquire(PyObject *self, PyObject *args)
{
    module_state *s = state_of_self(self);
    PyObject *key, *handle;
    int is_f32;
    heft_id128 id;
    heft_error err;
    if (!PyArg_ParseTuple(args, "Op:acquire", &key, &is_f32) || !key_of(&id, key) ||
        !(handle = open_handle(self)))
        return NULL;
    loan_object *loan = (loan_object *)PyType_GenericAlloc(s->loan, 0);
    if (!loan) {
        Py_DECREF(handle);
        return NULL;
    }
    loan->key = id;
    loan->is_f32 = is_f32;
    heft_status st;
    PyThreadState *thread = PyEval_SaveThread();
    st = acquire(loan, params_of(handle), &err);
    PyEval_RestoreThread(thread);
    if (!st) {
        loan->handle = handle;
        return (PyObject *)loan;
    }
    raise_error(s, &err, NULL, heft_params_name(params_of(handle), id));
    Py_DECREF(loan);
    Py_DECREF(handle);
    return NULL;
}

/* Load the parameters of a tuple of keys in the background. */
static PyObject *store_prefetch(PyObject *self, PyObject *keys)
{
    PyObject *handle = open_handle(self), *result = NULL;
    Py_ssize_t count = handle ? PyTuple_Size(keys) : -1;
    heft_id128 *ids = count < 0 ? NULL : PyMem_Calloc((size_t)count + 1, sizeof *ids);
    bool ok = ids;
    for (Py_ssize_t i = 0; ok && i < count; i++)
        ok = key_of(&ids[i], PyTuple_GetItem(keys, i));
    if (ok) {
        heft_params_prefetch(params_of(handle), ids, (size_t)count);
        result = Py_NewRef(Py_None);
    } else if (!PyErr_Occurred()) {
        PyErr_NoMemory();
    }
    PyMem_Free(ids);
    Py_XDECREF(handle);
    return result;
}

/* Return the names of all parameters with their keys. */
static PyObject *store_names(PyObject *self, PyObject *none)
{
    PyObject *handle = open_handle(self), *list = handle ? PyList_New(0) : NULL;
    (void)none;
    for (uint32_t i = 0; list && i < heft_params_count(params_of(handle)); i++) {
        heft_id128 key = heft_params_key_at(params_of(handle), i);
        PyObject *name = str_object(heft_params_name(params_of(handle), key));
        if (!name || PyList_Append(list, name) < 0)
            Py_CLEAR(list);
        Py_XDECREF(name);
    }
    Py_XDECREF(handle);
    return list;
}

static PyObject *store_statistics(PyObject *self, PyObject *none)
{
    PyObject *handle = open_handle(self);
    (void)none;
    if (!handle)
        return NULL;
    heft_params_stats s = heft_params_statistics(params_of(handle));
    Py_DECREF(handle);
    return Py_BuildValue("(KKKKKKK)", s.hits, s.loads, s.evictions, s.stalls, s.bytes_loaded,
                         s.resident, s.peak);
}

static PyMethodDef store_methods[] = {
    { "add", store_add, METH_O, "add(path): add a model; return the namespace." },
    { "find", store_find, METH_VARARGS, "find(namespace, name): the key, or None." },
    { "acquire", store_acquire, METH_VARARGS, "acquire(key, as_f32): lend a parameter." },
    { "prefetch", store_prefetch, METH_O, "prefetch(keys): load in the background." },
    { "names", store_names, METH_NOARGS, "names(): names of all parameters." },
    { "statistics", store_statistics, METH_NOARGS, "statistics(): counts and bytes." },
    { "close", store_close, METH_NOARGS, "close(): the files close with the last loan." },
    { NULL, NULL, 0, NULL },
};

static PyType_Slot store_slots[] = {
    { Py_tp_doc, "A store of parameters." },
    { Py_tp_new, store_new },
    { Py_tp_dealloc, store_dealloc },
    { Py_tp_methods, store_methods },
    { 0, NULL },
};

PyType_Spec store_spec = {
    .name = "heft._heft._ParamStore",
    .basicsize = sizeof(store_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = store_slots,
};
