/* py_values.c - names, metadata and attributes as Python objects. */
#include "module.h"

#include <string.h>

#include <heft/write.h>

/* Names of files may hold any bytes; those that are not UTF-8 become lone surrogates. */
PyObject *str_object(heft_str s)
{
    return PyUnicode_DecodeUTF8(s.ptr ? s.ptr : "", (Py_ssize_t)s.len, "surrogateescape");
}

static PyObject *bytes_object(const void *p, size_t len)
{
    return PyBytes_FromStringAndSize(p, (Py_ssize_t)len);
}

/* Return a list of numbers. */
static PyObject *array_object(const heft_value *v)
{
    const heft_dtype_info *type = heft_dtype_get(v->as.array.dtype);
    PyObject *list = PyList_New(0);
    for (uint32_t i = 0; list && i < v->as.array.count; i++) {
        double real = 0;
        int64_t whole = 0;
        PyObject *item = NULL;
        if (type->kind == HEFT_DTYPE_FLOAT) {
            heft_dtype_to_f64(&real, v->as.array.dtype, v->as.array.ptr, i, 1);
            item = PyFloat_FromDouble(real);
        } else {
            const char *at = (const char *)v->as.array.ptr + (size_t)i * type->block_bytes;
            heft_dtype to = type->kind == HEFT_DTYPE_INT ? HEFT_I64 : HEFT_U64;
            heft_dtype_cast(&whole, to, at, v->as.array.dtype, 1);
            item = type->kind == HEFT_DTYPE_BOOL  ? PyBool_FromLong((long)whole)
                   : type->kind == HEFT_DTYPE_INT ? PyLong_FromLongLong(whole)
                                                  : PyLong_FromUnsignedLongLong((uint64_t)whole);
        }
        if (!item || PyList_Append(list, item) < 0)
            Py_CLEAR(list);
        Py_XDECREF(item);
    }
    return list;
}

/* Return a scalar, or an empty list or dict for a container. */
static PyObject *value_object(const heft_value *v)
{
    switch (v->kind) {
    case HEFT_KIND_BOOL:
        return PyBool_FromLong(v->as.b);
    case HEFT_KIND_INT:
        return PyLong_FromLongLong(v->as.i);
    case HEFT_KIND_UINT:
        return PyLong_FromUnsignedLongLong(v->as.u);
    case HEFT_KIND_FLOAT:
        return PyFloat_FromDouble(v->as.f);
    case HEFT_KIND_STR:
        return str_object(v->as.s);
    case HEFT_KIND_BYTES:
    case HEFT_KIND_ID128:
        return bytes_object(v->as.s.ptr, v->as.s.len);
    case HEFT_KIND_ARRAY:
        return array_object(v);
    case HEFT_KIND_LIST:
        return PyList_New(0);
    case HEFT_KIND_MAP:
        return PyDict_New();
    case HEFT_KIND_NULL:
        break;
    }
    return Py_NewRef(Py_None);
}

/* Add an item to a list or a dict and release the item. */
static bool add(PyObject *container, heft_str key, PyObject *item)
{
    bool ok = false;
    if (item && PyList_Check(container)) {
        ok = PyList_Append(container, item) == 0;
    } else if (item) {
        PyObject *name = str_object(key);
        ok = name && PyDict_SetItem(container, name, item) == 0;
        Py_XDECREF(name);
    }
    Py_XDECREF(item);
    return ok;
}

typedef struct values { /* a flat list of values: metadata, or the attributes of a tensor */
    const heft_file *f;
    uint32_t tensor; /* HEFT_NONE: metadata */
} values;

static uint32_t value_count(const values *from)
{
    return from->tensor != HEFT_NONE ? heft_attribute_count(from->f, from->tensor)
                                     : heft_meta_count(from->f);
}

static heft_value value_at(const values *from, uint32_t i)
{
    return from->tensor != HEFT_NONE ? heft_attribute_at(from->f, from->tensor, i)
                                     : heft_meta_at(from->f, i);
}

enum { DEEPEST = 256 }; /* heft_limits.depth is at most 256 */

typedef struct open_container {
    PyObject *object; /* borrowed from the parent */
    uint32_t end;
} open_container;

static PyObject *values_object(const values *from)
{
    open_container open[DEEPEST + 2] = { { PyDict_New(), UINT32_MAX } };
    bool ok = open[0].object != NULL;
    size_t depth = 0;
    for (uint32_t i = 0, n = value_count(from); ok && i < n; i++) {
        heft_value v = value_at(from, i);
        while (i >= open[depth].end)
            depth--;
        PyObject *item = value_object(&v);
        ok = add(open[depth].object, v.key, Py_XNewRef(item));
        bool is_container = v.kind == HEFT_KIND_LIST || v.kind == HEFT_KIND_MAP;
        if (ok && is_container && depth <= DEEPEST)
            open[++depth] = (open_container){ item, v.as.container.end };
        Py_XDECREF(item); /* the parent holds it */
    }
    if (!ok)
        Py_CLEAR(open[0].object);
    return open[0].object;
}

PyObject *metadata_object(const heft_file *f)
{
    return values_object(&(values){ f, HEFT_NONE });
}

PyObject *attributes_object(const heft_file *f, uint32_t tensor)
{
    return values_object(&(values){ f, tensor });
}

/* ---- objects as values of the library ---- */

bool text_borrow(heft_str *out, PyObject *object)
{
    Py_ssize_t len;
    const char *text = PyBytes_Check(object) ? PyBytes_AsString(object)
                                             : PyUnicode_AsUTF8AndSize(object, &len);
    if (text && PyBytes_Check(object))
        len = PyBytes_Size(object);
    *out = (heft_str){ text, text ? (size_t)len : 0 };
    return text != NULL;
}

bool dims_new(uint64_t **out, uint32_t *rank, PyObject *shape)
{
    Py_ssize_t count = PyTuple_Size(shape);
    *out = NULL;
    if (count < 0)
        return false;
    uint64_t *dims = *out = PyMem_Calloc((size_t)count + 1, sizeof *dims);
    for (Py_ssize_t i = 0; dims && i < count; i++) {
        dims[i] = PyLong_AsUnsignedLongLong(PyTuple_GetItem(shape, i));
        if (PyErr_Occurred())
            return false;
    }
    *rank = (uint32_t)count;
    return dims || PyErr_NoMemory();
}

bool value_borrow(heft_value *out, PyObject *key, PyObject *value)
{
    if (!text_borrow(&out->key, key))
        return false;
    if (PyBool_Check(value)) {
        out->kind = HEFT_KIND_BOOL;
        out->as.b = value == Py_True;
    } else if (PyLong_Check(value)) {
        int overflow;
        out->kind = HEFT_KIND_INT;
        out->as.i = PyLong_AsLongLongAndOverflow(value, &overflow);
        if (overflow > 0) {
            out->kind = HEFT_KIND_UINT;
            out->as.u = PyLong_AsUnsignedLongLong(value);
        } else if (overflow < 0) {
            PyErr_SetString(PyExc_OverflowError, "a number of the metadata is below -2^63");
        }
    } else if (PyFloat_Check(value)) {
        out->kind = HEFT_KIND_FLOAT;
        out->as.f = PyFloat_AsDouble(value);
    } else if (PyUnicode_Check(value) || PyBytes_Check(value)) {
        out->kind = PyBytes_Check(value) ? HEFT_KIND_BYTES : HEFT_KIND_STR;
        text_borrow(&out->as.s, value);
    } else {
        PyErr_Format(PyExc_TypeError,
                     "metadata %R: values are str, bytes, int, float or bool, not %R", key,
                     (PyObject *)Py_TYPE(value));
    }
    return !PyErr_Occurred();
}

/* ---- losses ---- */

void report_loss(void *ctx, heft_severity severity, const char *rule, heft_str tensor,
                 const char *text)
{
    PyGILState_STATE state = PyGILState_Ensure();
    PyObject *name = tensor.ptr ? str_object(tensor) : Py_NewRef(Py_None);
    if (name && !PyErr_Occurred()) {
        PyObject *result = PyObject_CallFunction(ctx, "isOs", (int)severity, rule, name, text);
        Py_XDECREF(result);
    }
    Py_XDECREF(name);
    PyGILState_Release(state);
}
