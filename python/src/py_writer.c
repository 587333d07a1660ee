/* py_writer.c - type _Writer: the part of heft.Writer below heft/_writer.py. */
#include "module.h"

#include <string.h>

#include <heft/write.h>

typedef struct writer_object {
    PyObject_HEAD heft_writer *writer; /* NULL after finish() and discard() */
    PyObject *path, *on_loss;
    PyObject *texts; /* list of bytes that the writer borrows: version and digests */
    bool is_busy;    /* a call runs without the interpreter's lock, or has called back */
} writer_object;

/* ---- calls ---- */

/* A writer serves a single call at a time. Return NULL with an exception if there is none left, or
 * if a call is running. */
static heft_writer *enter(writer_object *self)
{
    module_state *s = state_of_self((PyObject *)self);
    if (self->is_busy)
        return raise_text(s, HEFT_E_ARGUMENT, "the writer is in use by another call");
    if (!self->writer)
        return raise_text(s, HEFT_E_ARGUMENT, "the writer is closed");
    self->is_busy = true;
    return self->writer;
}

/* End the call: return a new reference to None, or NULL with the exception of the error. */
static PyObject *leave(writer_object *self, heft_status st, const heft_error *err)
{
    self->is_busy = false;
    if (st)
        return raise_error(state_of_self((PyObject *)self), err, self->path, (heft_str){ NULL, 0 });
    return PyErr_Occurred() ? NULL : Py_NewRef(Py_None);
}

/* ---- opening ---- */

/* Keep a copy of a text as long as the writer; "" is NULL. False with an exception. */
static bool keep_text(writer_object *self, const char **out, PyObject *text)
{
    *out = NULL;
    if (text == Py_None)
        return true;
    PyObject *bytes = PyUnicode_AsUTF8String(text);
    bool ok = bytes && PyList_Append(self->texts, bytes) == 0;
    *out = ok ? PyBytes_AsString(bytes) : NULL;
    Py_XDECREF(bytes); /* the list has a reference */
    return ok;
}

static const heft_format *format_of(module_state *s, const char *name, const char *path)
{
    const heft_format *format = name ? heft_format_find(heft_str_from(name))
                                     : heft_format_for_path(path);
    if (format)
        return format;
    return raise_text(s, name ? HEFT_E_NOTFOUND : HEFT_E_ARGUMENT,
                      name ? "unknown format: `heft formats` lists the formats"
                           : "no format has the suffix of the path: give the format");
}

static PyObject *open_file(writer_object *self, const char *path, const heft_format *format,
                           uint32_t flags, const heft_write_options *options)
{
    heft_error err;
    heft_sink *sink;
    heft_status st;
    self->is_busy = true;
    PyThreadState *thread = PyEval_SaveThread();
    st = heft_sink_open_file(&sink, path, flags, &err);
    if (!st)
        st = heft_writer_open(&self->writer, format, sink, options, &err);
    PyEval_RestoreThread(thread);
    return leave(self, st, &err);
}

static PyObject *writer_init(writer_object *self, PyObject *args)
{
    module_state *s = state_of_self((PyObject *)self);
    heft_write_options options = HEFT_WRITE_OPTIONS_INIT;
    PyObject *given, *path = NULL, *version, *digest, *result = NULL;
    const char *format, *encoding;
    unsigned flags;
    int allow_loss, strict;
    if (!PyArg_ParseTuple(args, "OzOOzIippIO:Writer", &given, &format, &version, &digest, &encoding,
                          &options.align, &options.storage.level, &allow_loss, &strict, &flags,
                          &self->on_loss))
        return (self->on_loss = NULL);
    Py_INCREF(self->on_loss);
    options.allow_loss = allow_loss;
    options.strict = strict;
    options.storage.encoding = encoding && !strcmp(encoding, "zstd") ? HEFT_ZSTD : HEFT_RAW;
    options.on_loss = report_loss;
    options.ctx = self->on_loss;
    self->texts = PyList_New(0);
    if (!self->texts || !PyUnicode_FSConverter(given, &path))
        return NULL;
    const char *name = PyBytes_AsString(path);
    const heft_format *found = format_of(s, format, name);
    self->path = PyUnicode_DecodeFSDefault(name);
    if (found && self->path && keep_text(self, &options.version, version) &&
        keep_text(self, &options.storage.digest, digest))
        result = open_file(self, name, found, flags, &options);
    Py_DECREF(path);
    return result;
}

static PyObject *writer_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    if (kwargs && PyDict_Size(kwargs))
        return PyErr_Format(PyExc_TypeError, "_Writer() takes no keyword arguments");
    PyObject *self = PyType_GenericAlloc(type, 0);
    PyObject *opened = self ? writer_init((writer_object *)self, args) : NULL;
    if (!opened)
        Py_CLEAR(self);
    Py_XDECREF(opened);
    return self;
}

static void writer_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    writer_object *w = (writer_object *)self;
    heft_writer_discard(w->writer);
    Py_XDECREF(w->path);
    Py_XDECREF(w->on_loss);
    Py_XDECREF(w->texts);
    PyObject_Free(self);
    Py_DECREF(type);
}

/* ---- what is declared ---- */

static PyObject *writer_set(PyObject *object, PyObject *args)
{
    writer_object *self = (writer_object *)object;
    PyObject *key, *value;
    heft_value v = { .kind = HEFT_KIND_NULL };
    heft_error err;
    if (!PyArg_ParseTuple(args, "UO:set", &key, &value) || !value_borrow(&v, key, value))
        return NULL;
    heft_writer *w = enter(self);
    return w ? leave(self, heft_writer_add_meta(w, v, &err), &err) : NULL;
}

typedef struct declaration {
    heft_tensor_spec spec;
    uint64_t *dims;
    heft_component *components;
    heft_storage storage;
} declaration;

/* Add a component (role, element type or None, count). */
static bool add_component(heft_component *c, PyObject *row, const heft_storage *storage)
{
    PyObject *role, *count;
    const char *dtype;
    if (!PyArg_ParseTuple(row, "UzO", &role, &dtype, &count) || !text_borrow(&c->role, role))
        return false;
    c->count = PyLong_AsUnsignedLongLong(count);
    if (PyErr_Occurred())
        return false;
    c->dtype = dtype ? heft_dtype_find(heft_str_from(dtype)) : HEFT_UNTYPED;
    c->storage = storage;
    return true;
}

static bool add_components(declaration *d, PyObject *rows)
{
    Py_ssize_t count = rows == Py_None ? 0 : PyTuple_Size(rows);
    if (count < 0)
        return false;
    d->components = PyMem_Calloc((size_t)count + 1, sizeof *d->components);
    if (!d->components)
        return PyErr_NoMemory();
    for (Py_ssize_t i = 0; i < count; i++)
        if (!add_component(&d->components[i], PyTuple_GetItem(rows, i), d->spec.storage))
            return false;
    d->spec.components = count ? d->components : NULL;
    d->spec.component_count = (uint32_t)count;
    return true;
}

static bool find_dtype(writer_object *self, heft_dtype *out, const char *name)
{
    *out = name ? heft_dtype_find(heft_str_from(name)) : HEFT_UNTYPED;
    if (*out || !name)
        return true;
    return raise_text(state_of_self((PyObject *)self), HEFT_E_NOTFOUND, "unknown element type");
}

/* Parse (name, dtype, shape, layout, components, encoding, level, digest). */
static bool parse_declaration(writer_object *self, declaration *d, PyObject *args)
{
    PyObject *name, *shape, *layout, *components, *digest;
    const char *dtype, *encoding;
    if (!PyArg_ParseTuple(args, "OzO!OOziO:declare", &name, &dtype, &PyTuple_Type, &shape, &layout,
                          &components, &encoding, &d->storage.level, &digest))
        return false;
    d->storage.encoding = encoding && !strcmp(encoding, "zstd") ? HEFT_ZSTD : HEFT_RAW;
    d->spec.storage = encoding || digest != Py_None ? &d->storage : NULL;
    bool ok = text_borrow(&d->spec.name, name) && dims_new(&d->dims, &d->spec.rank, shape) &&
              (layout == Py_None || text_borrow(&d->spec.layout, layout)) &&
              keep_text(self, &d->storage.digest, digest) &&
              find_dtype(self, &d->spec.dtype, dtype) && add_components(d, components);
    d->spec.dims = d->dims;
    return ok;
}

/* Return the number of the first part. */
static PyObject *writer_declare(PyObject *object, PyObject *args)
{
    writer_object *self = (writer_object *)object;
    declaration d = { .spec = HEFT_TENSOR_SPEC_INIT };
    PyObject *done = NULL;
    uint32_t part = 0;
    heft_error err;
    heft_writer *w = parse_declaration(self, &d, args) ? enter(self) : NULL;
    if (w) {
        heft_status st;
        PyThreadState *thread = PyEval_SaveThread(); /* losses call back */
        st = heft_writer_add_tensor(&part, w, &d.spec, &err);
        PyEval_RestoreThread(thread);
        done = leave(self, st, &err);
    }
    PyMem_Free(d.dims);
    PyMem_Free(d.components);
    Py_XDECREF(done);
    return done ? PyLong_FromUnsignedLong(part) : NULL;
}

/* ---- writing ---- */

static PyObject *writer_begin(PyObject *object, PyObject *none)
{
    (void)none;
    writer_object *self = (writer_object *)object;
    heft_writer *w = enter(self);
    heft_error err;
    heft_status st;
    if (!w)
        return NULL;
    PyThreadState *thread = PyEval_SaveThread();
    st = heft_writer_begin(w, &err);
    PyEval_RestoreThread(thread);
    return leave(self, st, &err);
}

static PyObject *writer_write(PyObject *object, PyObject *args)
{
    writer_object *self = (writer_object *)object;
    unsigned part;
    Py_buffer bytes;
    heft_error err;
    heft_status st;
    if (!PyArg_ParseTuple(args, "Iy*:write", &part, &bytes))
        return NULL;
    heft_writer *w = enter(self);
    PyObject *done = NULL;
    if (w) {
        PyThreadState *thread = PyEval_SaveThread();
        st = heft_writer_write(w, part, bytes.buf, (size_t)bytes.len, &err);
        PyEval_RestoreThread(thread);
        done = leave(self, st, &err);
    }
    PyBuffer_Release(&bytes);
    return done;
}

static PyObject *writer_finish(PyObject *object, PyObject *none)
{
    (void)none;
    writer_object *self = (writer_object *)object;
    heft_writer *w = enter(self);
    heft_error err;
    heft_status st;
    if (!w)
        return NULL;
    self->writer = NULL;
    PyThreadState *thread = PyEval_SaveThread();
    st = heft_writer_finish(w, &err);
    PyEval_RestoreThread(thread);
    return leave(self, st, &err);
}

static PyObject *writer_discard(PyObject *object, PyObject *none)
{
    (void)none;
    writer_object *self = (writer_object *)object;
    if (self->is_busy)
        return raise_text(state_of_self(object), HEFT_E_ARGUMENT,
                          "the writer is in use by another call");
    heft_writer_discard(self->writer);
    self->writer = NULL;
    return Py_NewRef(Py_None);
}

static PyMethodDef methods[] = {
    { "set", writer_set, METH_VARARGS, "set(key, value): add a value of the metadata." },
    { "declare", writer_declare, METH_VARARGS, "Declare a tensor; return its first part." },
    { "begin", writer_begin, METH_NOARGS, "Write the header." },
    { "write", writer_write, METH_VARARGS, "write(part, bytes): write further bytes of a part." },
    { "finish", writer_finish, METH_NOARGS, "Complete the file." },
    { "discard", writer_discard, METH_NOARGS, "Give up the file." },
    { NULL, NULL, 0, NULL },
};

static PyType_Slot slots[] = {
    { Py_tp_doc, "Writes a file tensor by tensor." },
    { Py_tp_new, writer_new },
    { Py_tp_dealloc, writer_dealloc },
    { Py_tp_methods, methods },
    { 0, NULL },
};

PyType_Spec writer_spec = {
    .name = "heft._heft._Writer",
    .basicsize = sizeof(writer_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = slots,
};
