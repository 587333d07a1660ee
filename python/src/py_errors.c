/* py_errors.c - exceptions for errors of the library. The classes are those of
 * heft/_exceptions.py. */
#include "module.h"

#include <string.h>

static const char *const class_names[ERROR_CLASSES] = {
    [0] = "Error",
    [-HEFT_E_FORMAT] = "FormatError",
    [-HEFT_E_UNSUPPORTED] = "UnsupportedError",
    [-HEFT_E_LIMIT] = "LimitError",
    [-HEFT_E_NOMEM] = "NoMemoryError",
    [-HEFT_E_IO] = "IOError",
    [-HEFT_E_CHECKSUM] = "ChecksumError",
    [-HEFT_E_NOTFOUND] = "NotFoundError",
    [-HEFT_E_ARGUMENT] = "ArgumentError",
    [-HEFT_E_LOSSY] = "LossError",
    [-HEFT_E_CANCELLED] = "CancelledError",
};

bool errors_load(PyObject *module, module_state *s)
{
    PyObject *classes = PyImport_ImportModule("heft._exceptions");
    for (int i = 0; classes && i < ERROR_CLASSES; i++) {
        s->errors[i] = PyObject_GetAttrString(classes, class_names[i]);
        if (!s->errors[i] || PyModule_AddObjectRef(module, class_names[i], s->errors[i]) < 0)
            Py_CLEAR(classes);
    }
    Py_XDECREF(classes);
    return classes != NULL;
}

void errors_clear(module_state *s)
{
    for (int i = 0; i < ERROR_CLASSES; i++)
        Py_CLEAR(s->errors[i]);
}

static PyObject *class_of(const module_state *s, heft_status status)
{
    bool is_known = status < 0 && -status < ERROR_CLASSES;
    return s->errors[is_known ? -status : 0];
}

/* Return a new exception with the arguments that its class expects. */
static PyObject *exception(const module_state *s, const heft_error *err, PyObject *path)
{
    PyObject *class = class_of(s, err->status);
    PyObject *text = PyUnicode_DecodeUTF8(err->message, (Py_ssize_t)strlen(err->message),
                                          "replace");
    PyObject *made = NULL;
    if (!text)
        return NULL;
    if (err->status == HEFT_E_IO)
        made = PyObject_CallFunction(class, "iOO", (int)err->os, text, path ? path : Py_None);
    else if (path)
        made = PyObject_CallFunction(class, "N", PyUnicode_FromFormat("%U: %U", path, text));
    else
        made = PyObject_CallFunctionObjArgs(class, text, NULL);
    Py_DECREF(text);
    return made;
}

/* Set an attribute and release the value; false with an exception, also for a value of NULL. */
static bool set(PyObject *object, const char *name, PyObject *value)
{
    bool ok = value && PyObject_SetAttrString(object, name, value) == 0;
    Py_XDECREF(value);
    return ok;
}

void *raise_error(module_state *s, const heft_error *err, PyObject *path, heft_str tensor)
{
    if (PyErr_Occurred()) /* raised by a callback, or by a signal */
        return NULL;
    PyObject *e = exception(s, err, path);
    bool has_offset = err->offset != HEFT_NOWHERE;
    if (e && set(e, "status", PyUnicode_FromString(heft_status_name(err->status))) &&
        set(e, "offset",
            has_offset ? PyLong_FromUnsignedLongLong(err->offset) : Py_NewRef(Py_None)) &&
        set(e, "rule", err->rule ? PyUnicode_FromString(err->rule) : Py_NewRef(Py_None)) &&
        set(e, "tensor", tensor.ptr ? str_object(tensor) : Py_NewRef(Py_None)))
        PyErr_SetObject((PyObject *)Py_TYPE(e), e);
    Py_XDECREF(e);
    return NULL;
}

void *raise_text(module_state *s, heft_status status, const char *text)
{
    heft_error err = { .status = status, .offset = HEFT_NOWHERE };
    strncpy(err.message, text, sizeof err.message - 1);
    return raise_error(s, &err, NULL, (heft_str){ NULL, 0 });
}
