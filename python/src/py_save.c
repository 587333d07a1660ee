/* py_save.c - saving arrays: the part of heft.save below heft/_save.py. */
#include "module.h"

#include <string.h>

#include <heft/write.h>

typedef struct saving {
    module_state *s;
    Py_ssize_t count, open; /* the first `open` of the views are open */
    heft_array *arrays;
    Py_buffer *views;
    uint64_t **dims;
    heft_value *meta;
    Py_ssize_t meta_count;
    PyObject *on_loss;
    heft_write_options write;
    heft_save_options save;
} saving;

static void saving_end(saving *v)
{
    for (Py_ssize_t i = 0; v->dims && i < v->count; i++)
        PyMem_Free(v->dims[i]);
    while (v->open)
        PyBuffer_Release(&v->views[--v->open]);
    PyMem_Free(v->arrays);
    PyMem_Free(v->views);
    PyMem_Free(v->dims);
    PyMem_Free(v->meta);
}

/* ---- what is saved ---- */

/* Add (name, element type, shape, buffer). */
static bool add_array(saving *v, PyObject *row)
{
    PyObject *name, *shape, *buffer;
    const char *dtype;
    heft_array *a = &v->arrays[v->open];
    if (!PyArg_ParseTuple(row, "OsO!O", &name, &dtype, &PyTuple_Type, &shape, &buffer) ||
        !text_borrow(&a->name, name) || !dims_new(&v->dims[v->open], &a->rank, shape))
        return false;
    a->dims = v->dims[v->open];
    a->dtype = heft_dtype_find(heft_str_from(dtype));
    if (!a->dtype)
        return raise_text(v->s, HEFT_E_NOTFOUND, "unknown element type");
    if (PyObject_GetBuffer(buffer, &v->views[v->open], PyBUF_SIMPLE))
        return false;
    a->data = v->views[v->open].buf;
    a->bytes = (uint64_t)v->views[v->open++].len;
    return true;
}

/* Borrow the lists, which must live, and keep their length, until the file is saved. */
static bool collect(saving *v, PyObject *arrays, PyObject *meta)
{
    PyObject *key, *value;
    Py_ssize_t at = 0;
    v->count = PyTuple_Size(arrays);
    v->arrays = PyMem_Calloc((size_t)v->count + 1, sizeof *v->arrays);
    v->views = PyMem_Calloc((size_t)v->count + 1, sizeof *v->views);
    v->dims = PyMem_Calloc((size_t)v->count + 1, sizeof *v->dims);
    v->meta = PyMem_Calloc((size_t)PyDict_Size(meta) + 1, sizeof *v->meta);
    if (!v->arrays || !v->views || !v->dims || !v->meta)
        return PyErr_NoMemory();
    for (Py_ssize_t i = 0; i < v->count; i++)
        if (!add_array(v, PyTuple_GetItem(arrays, i)))
            return false;
    while (PyDict_Next(meta, &at, &key, &value))
        if (!value_borrow(&v->meta[v->meta_count++], key, value))
            return false;
    return true;
}

/* ---- the call ---- */

/* Write the file to memory. */
static heft_status write_blob(heft_blob *out, const saving *v, heft_error *err)
{
    heft_sink *sink;
    heft_status st = heft_sink_open_memory(&sink, out, NULL, err);
    return st ? st : heft_array_write(sink, v->arrays, (uint32_t)v->count, &v->save, err);
}

/* Save to the path and return None, or without a path return the bytes of the file. */
static PyObject *run(saving *v, const char *path, PyObject *shown)
{
    heft_blob blob = { NULL, 0, NULL };
    heft_error err;
    heft_status st;
    v->write.on_loss = report_loss;
    v->write.ctx = v->on_loss;
    v->save.write = &v->write;
    v->save.meta = v->meta;
    v->save.meta_count = (size_t)v->meta_count;
    PyThreadState *thread = PyEval_SaveThread();
    st = path ? heft_array_save(path, v->arrays, (uint32_t)v->count, &v->save, &err)
              : write_blob(&blob, v, &err);
    PyEval_RestoreThread(thread);
    if (st)
        return raise_error(v->s, &err, shown, (heft_str){ NULL, 0 });
    PyObject *result = NULL;
    if (!PyErr_Occurred())
        result = path ? Py_NewRef(Py_None)
                      : PyBytes_FromStringAndSize(blob.data, (Py_ssize_t)blob.size);
    heft_blob_free(&blob);
    return result;
}

PyObject *save_arrays(PyObject *module, PyObject *args)
{
    saving v = { .s = state_of(module),
                 .write = HEFT_WRITE_OPTIONS_INIT,
                 .save = HEFT_SAVE_OPTIONS_INIT };
    PyObject *given, *path = NULL, *shown = NULL, *arrays, *meta, *result = NULL;
    const char *format, *encoding;
    int allow_loss, strict;
    if (!PyArg_ParseTuple(args, "OO!O!OzzzzIippI:save", &given, &PyTuple_Type, &arrays,
                          &PyDict_Type, &meta, &v.on_loss, &format, &v.write.version,
                          &v.write.storage.digest, &encoding, &v.write.align,
                          &v.write.storage.level, &allow_loss, &strict, &v.save.flags))
        return NULL;
    if (given != Py_None && !PyUnicode_FSConverter(given, &path))
        return NULL;
    v.write.allow_loss = allow_loss;
    v.write.strict = strict;
    v.write.storage.encoding = encoding && !strcmp(encoding, "zstd") ? HEFT_ZSTD : HEFT_RAW;
    v.save.format = format ? heft_format_find(heft_str_from(format)) : NULL;
    const char *name = path ? PyBytes_AsString(path) : NULL;
    if (path)
        shown = PyUnicode_DecodeFSDefault(name);
    if (format && !v.save.format)
        raise_text(v.s, HEFT_E_NOTFOUND, "unknown format: `heft formats` lists the formats");
    else if ((shown || !path) && collect(&v, arrays, meta))
        result = run(&v, name, shown);
    saving_end(&v);
    Py_XDECREF(shown);
    Py_XDECREF(path);
    return result;
}
