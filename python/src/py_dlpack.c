/* py_dlpack.c - tensors for other frameworks by DLPack (dmlc.github.io/dlpack, version 1.0).
 *
 * A consumer that knows version 1 gets the memory in place, marked as read-only. Older consumers
 * cannot be told that memory is read-only, and get a copy. */
#include "module.h"

#include <string.h>

typedef struct dl_device {
    int32_t type, id;
} dl_device;

typedef struct dl_tensor {
    void *data;
    dl_device device;
    int32_t ndim;
    struct {
        uint8_t code, bits;
        uint16_t lanes;
    } dtype;
    int64_t *shape, *strides;
    uint64_t byte_offset;
} dl_tensor;

typedef struct dl_managed {
    dl_tensor tensor;
    void *owner;
    void (*deleter)(struct dl_managed *self);
} dl_managed;

typedef struct dl_versioned {
    struct {
        uint32_t major, minor;
    } version;
    void *owner;
    void (*deleter)(struct dl_versioned *self);
    uint64_t flags;
    dl_tensor tensor;
} dl_versioned;

enum { DL_CPU = 1, DL_READ_ONLY = 1, DL_IS_COPY = 2 };
static const char old_name[] = "dltensor", versioned_name[] = "dltensor_versioned";

typedef struct exported { /* one export, freed by the consumer or by an unused capsule */
    dl_managed old;
    dl_versioned versioned;
    heft_array array;
    PyObject *handle; /* NULL: a copy */
    int64_t dims[];   /* shape, strides */
} exported;

/* Free an export on any thread, with or without the interpreter's lock. */
static void exported_free(exported *e)
{
    PyGILState_STATE state = PyGILState_Ensure();
    heft_array_free(&e->array);
    Py_XDECREF(e->handle);
    PyMem_Free(e);
    PyGILState_Release(state);
}

static void delete_old(dl_managed *m)
{
    exported_free(m->owner);
}

static void delete_versioned(dl_versioned *m)
{
    exported_free(m->owner);
}

static void old_capsule_free(PyObject *capsule)
{
    if (PyCapsule_IsValid(capsule, old_name)) /* a consumer renames the capsule */
        delete_old(PyCapsule_GetPointer(capsule, old_name));
}

static void versioned_capsule_free(PyObject *capsule)
{
    if (PyCapsule_IsValid(capsule, versioned_name))
        delete_versioned(PyCapsule_GetPointer(capsule, versioned_name));
}

static dl_tensor describe(exported *e)
{
    const heft_array *a = &e->array;
    const heft_dtype_info *type = heft_dtype_get(a->dtype);
    int64_t stride = 1;
    for (uint32_t i = a->rank; i--;) {
        e->dims[i] = (int64_t)a->dims[i];
        e->dims[a->rank + i] = stride;
        stride *= e->dims[i] ? e->dims[i] : 1;
    }
    return (dl_tensor){ .data = a->bytes ? (void *)(uintptr_t)a->data : NULL,
                        .device = { DL_CPU, 0 },
                        .ndim = (int32_t)a->rank,
                        .dtype = { type->dlpack_code, type->dlpack_bits, 1 },
                        .shape = e->dims,
                        .strides = e->dims + a->rank };
}

static PyObject *capsule_of(exported *e, bool is_versioned, bool is_copy)
{
    dl_tensor tensor = describe(e);
    PyObject *capsule;
    e->old = (dl_managed){ tensor, e, delete_old };
    e->versioned = (dl_versioned){ .version = { 1, 0 },
                                   .owner = e,
                                   .deleter = delete_versioned,
                                   .flags = is_copy ? DL_IS_COPY : DL_READ_ONLY,
                                   .tensor = tensor };
    if (is_versioned)
        capsule = PyCapsule_New(&e->versioned, versioned_name, versioned_capsule_free);
    else
        capsule = PyCapsule_New(&e->old, old_name, old_capsule_free);
    if (!capsule)
        exported_free(e);
    return capsule;
}

/* Get the elements, in place or as a copy. */
static PyObject *export(PyObject *self, bool is_versioned, bool is_copy)
{
    module_state *s = state_of_self(self);
    PyObject *file = tensor_file(self), *handle = file_handle(s, file);
    heft_error err;
    heft_status st;
    if (!handle || !logical_verify(self, handle)) {
        Py_XDECREF(handle);
        return NULL;
    }
    const heft_file *f = handle_file(handle);
    heft_tensor t = heft_tensor_at(f, tensor_id(self));
    const heft_dtype_info *type = heft_dtype_get(t.dtype);
    exported *e = PyMem_Calloc(1, sizeof *e + 2 * (size_t)t.rank * sizeof *e->dims);
    if (e)
        e->handle = handle;
    if (!e) {
        Py_DECREF(handle);
        return PyErr_NoMemory();
    }
    if (!type || type->dlpack_code == 255) {
        exported_free(e);
        return PyErr_Format(PyExc_BufferError, "DLPack has no element type for %s",
                            type ? type->name : "untyped bytes");
    }
    PyThreadState *thread = PyEval_SaveThread();
    st = is_copy ? heft_array_read(&e->array, f, t.name, HEFT_UNTYPED, NULL, 0, &err)
                 : heft_array_view(&e->array, f, t.name, &err);
    PyEval_RestoreThread(thread);
    if (!st)
        return capsule_of(e, is_versioned, is_copy);
    tensor_raise(self, f, &err);
    exported_free(e);
    return NULL;
}

PyObject *tensor_dlpack(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = { "stream", "max_version", "dl_device", "copy", NULL };
    PyObject *stream = Py_None, *version = Py_None, *device = Py_None, *copy = Py_None;
    long major = 0, minor = 0, type = DL_CPU, id = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|$OOOO:__dlpack__", names, &stream, &version,
                                     &device, &copy) ||
        (version != Py_None && !PyArg_ParseTuple(version, "ll", &major, &minor)) ||
        (device != Py_None && !PyArg_ParseTuple(device, "ll", &type, &id)))
        return NULL;
    if (type != DL_CPU || stream != Py_None)
        return PyErr_Format(PyExc_BufferError, "tensors of files are in the memory of the CPU");
    int asked = copy == Py_None ? 0 : PyObject_IsTrue(copy);
    if (asked < 0)
        return NULL;
    if (copy != Py_None && !asked && major < 1)
        return PyErr_Format(PyExc_BufferError,
                            "memory of files is read-only, which DLPack before 1.0 cannot express");
    return export(self, major >= 1, asked || major < 1);
}

PyObject *tensor_dlpack_device(PyObject *self, PyObject *Py_UNUSED(none))
{
    (void)self;
    return Py_BuildValue("ii", DL_CPU, 0);
}
