/* py_load.c - type Buffer, memory for weights, and reading of many tensors by all threads. */
#include "module.h"

#include <stdlib.h>

typedef struct buffer_object {
    PyObject_HEAD void *data;
    size_t bytes;
} buffer_object;

static PyObject *buffer_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    Py_ssize_t bytes;
    if (kwargs && PyDict_Size(kwargs))
        return PyErr_Format(PyExc_TypeError, "Buffer() takes no keyword arguments");
    if (!PyArg_ParseTuple(args, "n:Buffer", &bytes))
        return NULL;
    if (bytes < 0)
        return PyErr_Format(PyExc_ValueError, "a buffer of %zd bytes", bytes);
    buffer_object *self = (buffer_object *)PyType_GenericAlloc(type, 0);
    if (!self)
        return NULL;
    self->bytes = (size_t)bytes;
    self->data = heft_buffer_new(self->bytes ? self->bytes : 1);
    if (self->data)
        return (PyObject *)self;
    Py_DECREF(self);
    return PyErr_NoMemory();
}

static void buffer_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    buffer_object *b = (buffer_object *)self;
    heft_buffer_free(b->data, b->bytes ? b->bytes : 1);
    PyObject_Free(self);
    Py_DECREF(type);
}

static int buffer_get(PyObject *self, Py_buffer *view, int flags)
{
    buffer_object *b = (buffer_object *)self;
    return PyBuffer_FillInfo(view, self, b->data, (Py_ssize_t)b->bytes, 0, flags);
}

static PyType_Slot slots[] = {
    { Py_tp_doc, "Buffer(bytes): zeroed, writable memory, aligned to huge pages." },
    { Py_tp_new, buffer_new },
    { Py_tp_dealloc, buffer_dealloc },
    { Py_bf_getbuffer, buffer_get },
    { 0, NULL },
};

PyType_Spec buffer_spec = {
    .name = "heft._heft.Buffer",
    .basicsize = sizeof(buffer_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = slots,
};

/* ---- reading many tensors ---- */

typedef struct reading {
    Py_ssize_t count;
    Py_buffer *views; /* count buffers, the first `open` of them are open */
    Py_ssize_t open;
    void **data;
    uint32_t *parts;
    uint32_t tensor; /* the tensor that an error is about, or HEFT_NONE */
} reading;

static void reading_end(reading *r)
{
    while (r->open)
        PyBuffer_Release(&r->views[--r->open]);
    PyMem_Free(r->views);
    PyMem_Free(r->data);
    PyMem_Free(r->parts);
}

/* Find the data of tensor i, and open the buffer for the data. False with an exception. */
static bool reading_add(reading *r, module_state *s, PyObject *handle, PyObject *file,
                        PyObject *pair)
{
    const heft_file *f = handle_file(handle);
    PyObject *tensor, *buffer;
    Py_buffer *view = &r->views[r->open];
    if (!PyArg_ParseTuple(pair, "O!O", s->tensor, &tensor, &buffer))
        return false;
    if (tensor_file(tensor) != file)
        return raise_text(s, HEFT_E_ARGUMENT, "the tensor belongs to another file");
    uint32_t id = tensor_id(tensor), part = heft_part_find(f, id, HEFT_STR("data"));
    heft_tensor t = heft_tensor_at(f, id);
    if (t.layout != HEFT_DENSE || part == HEFT_NONE)
        return raise_text(s, HEFT_E_UNSUPPORTED, "the tensor is not dense");
    if (!logical_verify(tensor, handle) || PyObject_GetBuffer(buffer, view, PyBUF_WRITABLE))
        return false;
    r->data[r->open] = view->buf;
    r->parts[r->open++] = part;
    if ((uint64_t)view->len == heft_part_at(f, part).length)
        return true;
    return raise_text(s, HEFT_E_ARGUMENT, "the buffer has another length than the tensor");
}

/* Read the tensors without the interpreter's lock. */
static PyObject *reading_run(reading *r, module_state *s, const heft_file *f, PyObject *file)
{
    heft_error err;
    heft_status st;
    PyThreadState *thread = PyEval_SaveThread();
    st = heft_part_read_many(r->data, f, r->parts, (uint32_t)r->count, NULL, NULL, &err);
    if (!st)
        st = heft_file_is_unchanged(f, &err);
    PyEval_RestoreThread(thread);
    return st ? raise_error(s, &err, file_path(file), (heft_str){ NULL, 0 }) : Py_NewRef(Py_None);
}

PyObject *file_read_many(PyObject *self, PyObject *pairs)
{
    module_state *s = state_of_self(self);
    reading r = { .count = PyList_Check(pairs) ? PyList_Size(pairs) : -1 };
    PyObject *result = NULL, *handle = file_handle(s, self);
    if (!handle)
        return NULL;
    if (r.count < 0) {
        PyErr_SetString(PyExc_TypeError, "a list of pairs of tensor and buffer is needed");
    } else {
        const heft_file *f = handle_file(handle);
        size_t n = (size_t)r.count + 1;
        r.views = PyMem_Calloc(n, sizeof *r.views);
        r.data = PyMem_Calloc(n, sizeof *r.data);
        r.parts = PyMem_Calloc(n, sizeof *r.parts);
        bool ok = r.views && r.data && r.parts;
        if (!ok)
            PyErr_NoMemory();
        for (Py_ssize_t i = 0; ok && i < r.count; i++) {
            PyObject *pair = PyList_GetItem(pairs, i); /* the list may have become shorter */
            ok = pair && reading_add(&r, s, handle, self, pair);
        }
        result = ok ? reading_run(&r, s, f, self) : NULL;
    }
    reading_end(&r);
    Py_DECREF(handle);
    return result;
}
