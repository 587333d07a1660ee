/* py_file.c - type File: a mapping from the names of tensors to Tensor objects. */
#include "module.h"

#include <structmember.h>

#include <heft/companion.h>
#include <heft/source.h>
#include <heft/vocabulary.h>

typedef struct file_object {
    PyObject_HEAD PyObject *handle; /* NULL after close() */
    PyObject *path;
} file_object;

static const char handle_name[] = "heft.file";

/* The context of the capsule is the object whose memory the file borrows, or NULL. */
static void handle_free(PyObject *handle)
{
    PyObject *owner = PyCapsule_GetContext(handle);
    heft_file_close(PyCapsule_GetPointer(handle, handle_name));
    Py_XDECREF(owner);
}

heft_file *handle_file(PyObject *handle)
{
    return PyCapsule_GetPointer(handle, handle_name);
}

PyObject *file_handle(module_state *s, PyObject *file)
{
    PyObject *handle = ((file_object *)file)->handle;
    return handle ? Py_NewRef(handle) : raise_text(s, HEFT_E_ARGUMENT, "the file is closed");
}

PyObject *file_path(PyObject *file)
{
    return ((file_object *)file)->path;
}

/* ---- opening ---- */

static const heft_format *find_format(module_state *s, const char *name)
{
    const heft_format *format = heft_format_find(heft_str_from(name));
    heft_error err = { .status = HEFT_E_NOTFOUND, .offset = HEFT_NOWHERE };
    if (format)
        return format;
    PyOS_snprintf(err.message, sizeof err.message, "unknown format '%.100s'", name);
    return raise_error(s, &err, NULL, (heft_str){ NULL, 0 });
}

PyObject *file_new(module_state *s, heft_file *f, PyObject *path, PyObject *owner)
{
    PyObject *handle = PyCapsule_New(f, handle_name, handle_free);
    if (handle && owner)
        PyCapsule_SetContext(handle, Py_NewRef(owner));
    file_object *self = handle ? (file_object *)PyType_GenericAlloc(s->file, 0) : NULL;
    if (!handle)
        heft_file_close(f);
    if (!self) {
        Py_XDECREF(handle);
        return NULL;
    }
    self->handle = handle;
    self->path = Py_NewRef(path);
    return (PyObject *)self;
}

static PyObject *open_path(module_state *s, PyObject *path, const char *name,
                           const heft_open_options *options)
{
    heft_file *f;
    heft_error err;
    heft_status st;
    PyThreadState *thread = PyEval_SaveThread();
    st = heft_file_open(&f, name, options, &err);
    PyEval_RestoreThread(thread);
    return st ? raise_error(s, &err, path, (heft_str){ NULL, 0 }) : file_new(s, f, path, NULL);
}

PyObject *file_open(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static char *names[] = { "path", "key", "format", "verify", "mmap", "raw_tensors", "logical", NULL };
    heft_open_options options = HEFT_OPEN_OPTIONS_INIT;
    module_state *s = state_of(module);
    PyObject *given, *bytes = NULL, *path, *file = NULL, *logical = Py_False;
    const char *format = NULL;
    int verify = 1, mmap = 1, raw_tensors = 0;
    heft_dtype as;
    bool is_logical;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|z$zpppO:open", names, &given, &options.key,
                                     &format, &verify, &mmap, &raw_tensors, &logical) ||
        !logical_type(s, &as, &is_logical, logical) ||
        (format && !(options.format = find_format(s, format))) ||
        (is_logical && raw_tensors &&
         !raise_text(s, HEFT_E_ARGUMENT, "either logical or raw_tensors can be asked for")) ||
        !PyUnicode_FSConverter(given, &bytes))
        return NULL;
    options.no_verify = !verify;
    options.check_parts = verify;
    options.raw_tensors = raw_tensors;
    options.access = mmap ? HEFT_ACCESS_AUTO : HEFT_ACCESS_READ;
    path = PyUnicode_DecodeFSDefault(PyBytes_AsString(bytes));
    if (path)
        file = open_path(s, path, PyBytes_AsString(bytes), &options);
    if (file && is_logical) {
        PyObject *stored = file;
        file = logical_open(s, stored, PyBytes_AsString(bytes), as, verify);
        Py_DECREF(stored);
    }
    Py_XDECREF(path);
    Py_DECREF(bytes);
    return file;
}

static heft_status open_memory(heft_file **out, const void *data, size_t len, heft_error *err)
{
    heft_open_options options = HEFT_OPEN_OPTIONS_INIT;
    heft_source *source;
    options.check_parts = true;
    heft_status st = heft_source_open_memory(&source, data, len, err);
    return st ? st : heft_file_open_source(out, source, &options, err);
}

PyObject *file_open_bytes(PyObject *module, PyObject *data)
{
    module_state *s = state_of(module);
    char *bytes;
    Py_ssize_t len;
    heft_file *f;
    heft_error err;
    heft_status st;
    if (PyBytes_AsStringAndSize(data, &bytes, &len))
        return NULL;
    PyThreadState *thread = PyEval_SaveThread();
    st = open_memory(&f, bytes, (size_t)len, &err);
    PyEval_RestoreThread(thread);
    return st ? raise_error(s, &err, NULL, (heft_str){ NULL, 0 }) : file_new(s, f, Py_None, data);
}

PyObject *file_unguard(PyObject *file, const heft_file *f, PyObject *value)
{
    heft_error err;
    if (!heft_file_unguard(f, &err))
        return value;
    Py_XDECREF(value);
    PyErr_Clear();
    return raise_error(state_of_self(file), &err, file_path(file), (heft_str){ NULL, 0 });
}

/* ---- the mapping ---- */

static PyObject *not_found(module_state *s, PyObject *self, PyObject *name)
{
    heft_error err = { .status = HEFT_E_NOTFOUND, .offset = HEFT_NOWHERE };
    Py_ssize_t len = 0;
    const char *text = PyUnicode_AsUTF8AndSize(name, &len);
    if (!text)
        PyErr_Clear(); /* a name with lone surrogates */
    PyOS_snprintf(err.message, sizeof err.message, "there is no tensor '%.150s'",
                  text ? text : "?");
    return raise_error(s, &err, file_path(self), (heft_str){ text, (size_t)len });
}

/* Find a name. -1 with an exception if the name is missing because the file was truncated. */
static int64_t find_text(PyObject *self, const heft_file *f, heft_str name)
{
    int64_t id = heft_tensor_find(f, name);
    if (id != HEFT_NONE)
        return id;
    heft_file_guard(f);
    return file_unguard(self, f, Py_None) ? id : -1;
}

/* Return the id of a tensor, HEFT_NONE for an unknown name; -1 with an exception. */
static int64_t find(module_state *s, PyObject *self, PyObject *name)
{
    Py_ssize_t len;
    PyObject *handle = file_handle(s, self), *bytes = NULL;
    if (!handle)
        return -1;
    const char *text = PyUnicode_AsUTF8AndSize(name, &len);
    if (!text && PyErr_ExceptionMatches(PyExc_UnicodeEncodeError)) { /* not UTF-8 in the file */
        PyErr_Clear();
        bytes = PyUnicode_AsEncodedString(name, "utf-8", "surrogateescape");
        text = bytes ? PyBytes_AsString(bytes) : NULL;
        len = bytes ? PyBytes_Size(bytes) : 0;
    }
    int64_t id = -1;
    if (text)
        id = find_text(self, handle_file(handle), (heft_str){ text, (size_t)len });
    Py_XDECREF(bytes);
    Py_DECREF(handle);
    return id;
}

static PyObject *file_subscript(PyObject *self, PyObject *name)
{
    module_state *s = state_of_self(self);
    if (!PyUnicode_Check(name))
        return PyErr_Format(PyExc_TypeError, "names of tensors are str, not %R",
                            (PyObject *)Py_TYPE(name));
    int64_t id = find(s, self, name);
    if (id < 0)
        return NULL;
    return id == HEFT_NONE ? not_found(s, self, name) : tensor_new(s, self, (uint32_t)id);
}

static int file_contains(PyObject *self, PyObject *name)
{
    if (!PyUnicode_Check(name))
        return 0;
    int64_t id = find(state_of_self(self), self, name);
    return id < 0 ? -1 : id != HEFT_NONE;
}

static Py_ssize_t file_length(PyObject *self)
{
    PyObject *handle = file_handle(state_of_self(self), self);
    Py_ssize_t count = handle ? (Py_ssize_t)heft_tensor_count(handle_file(handle)) : -1;
    Py_XDECREF(handle);
    return count;
}

/* Call a function that reads the index, of the file as it is stored or with decoded tensors, and
 * raise an exception if the file was truncated. */
static PyObject *guarded(PyObject *self, PyObject *(*fn)(const heft_file *f), bool is_stored)
{
    PyObject *handle = file_handle(state_of_self(self), self);
    if (!handle)
        return NULL;
    const heft_file *f = handle_file(is_stored ? logical_stored(handle) : handle);
    heft_file_guard(f);
    PyObject *value = file_unguard(self, f, fn(f));
    Py_DECREF(handle);
    return value;
}

static PyObject *names_of(const heft_file *f)
{
    uint32_t count = heft_tensor_count(f);
    PyObject *list = PyList_New((Py_ssize_t)count);
    for (uint32_t i = 0; list && i < count; i++) {
        PyObject *name = str_object(heft_tensor_at(f, i).name);
        if (!name || PyList_SetItem(list, (Py_ssize_t)i, name) < 0)
            Py_CLEAR(list);
    }
    return list;
}

static PyObject *file_keys(PyObject *self, PyObject *Py_UNUSED(none))
{
    return guarded(self, names_of, false);
}

static PyObject *file_iter(PyObject *self)
{
    PyObject *keys = file_keys(self, NULL), *iter = keys ? PyObject_GetIter(keys) : NULL;
    Py_XDECREF(keys);
    return iter;
}

/* Call a function or class of collections.abc with the file as the first argument. */
static PyObject *call_abc(const char *name, const char *attribute, PyObject *self, PyObject *args)
{
    PyObject *abc = PyImport_ImportModule("collections.abc");
    PyObject *class = abc ? PyObject_GetAttrString(abc, name) : NULL;
    PyObject *function = class && attribute ? PyObject_GetAttrString(class, attribute)
                                            : Py_XNewRef(class);
    PyObject *first = PyTuple_Pack(1, self);
    PyObject *all = function && first ? PySequence_Concat(first, args) : NULL;
    PyObject *result = all ? PyObject_Call(function, all, NULL) : NULL;
    Py_XDECREF(all);
    Py_XDECREF(first);
    Py_XDECREF(function);
    Py_XDECREF(class);
    Py_XDECREF(abc);
    return result;
}

static PyObject *file_items(PyObject *self, PyObject *args)
{
    return call_abc("ItemsView", NULL, self, args);
}

static PyObject *file_values(PyObject *self, PyObject *args)
{
    return call_abc("ValuesView", NULL, self, args);
}

static PyObject *file_get(PyObject *self, PyObject *args)
{
    return call_abc("Mapping", "get", self, args);
}

/* ---- closing ---- */

static PyObject *file_close(PyObject *self, PyObject *Py_UNUSED(none))
{
    Py_CLEAR(((file_object *)self)->handle);
    Py_RETURN_NONE;
}

static PyObject *file_enter(PyObject *self, PyObject *Py_UNUSED(none))
{
    return Py_NewRef(self);
}

static PyObject *file_exit(PyObject *self, PyObject *Py_UNUSED(args))
{
    return file_close(self, NULL);
}

static void file_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    file_object *f = (file_object *)self;
    Py_CLEAR(f->handle);
    Py_CLEAR(f->path);
    PyObject_Free(self);
    Py_DECREF(type);
}

/* ---- facts ---- */

static PyObject *fact_format(const heft_file *f)
{
    return PyUnicode_FromString(heft_format_name(heft_file_format(f)));
}

static PyObject *fact_version(const heft_file *f)
{
    return str_object(heft_file_version(f));
}

static PyObject *fact_size(const heft_file *f)
{
    return PyLong_FromUnsignedLongLong(heft_file_size(f));
}

static PyObject *fact_shards(const heft_file *f)
{
    PyObject *list = PyList_New(0);
    for (uint32_t i = 0; list && i < heft_shard_file_count(f); i++) {
        PyObject *name = str_object(heft_shard_file_at(f, i).name);
        if (!name || PyList_Append(list, name) < 0)
            Py_CLEAR(list);
        Py_XDECREF(name);
    }
    return list;
}

static PyObject *tokens_of(const heft_vocab *v)
{
    PyObject *list = PyList_New(0);
    for (uint32_t i = 0; list && i < heft_vocab_count(v); i++) {
        PyObject *token = str_object(heft_vocab_at(v, i));
        if (!token || PyList_Append(list, token) < 0)
            Py_CLEAR(list);
        Py_XDECREF(token);
    }
    return list;
}

static PyObject *specials_of(const heft_vocab *v)
{
    PyObject *dict = PyDict_New();
    for (int i = HEFT_PAD; dict && i <= HEFT_MASK; i++) {
        uint32_t id = heft_vocab_special(v, (heft_special)i);
        PyObject *number = id == HEFT_NONE ? Py_NewRef(Py_None) : PyLong_FromUnsignedLong(id);
        const char *name = heft_vocab_special_name((heft_special)i);
        if (!number || PyDict_SetItemString(dict, name, number) < 0)
            Py_CLEAR(dict);
        Py_XDECREF(number);
    }
    return dict;
}

/* Return (tokens, ids of special tokens), or None without a vocabulary. */
static PyObject *file_vocab(PyObject *self, void *none)
{
    module_state *s = state_of_self(self);
    PyObject *handle = file_handle(s, self), *result = NULL;
    heft_vocab *v = NULL;
    heft_error err;
    (void)none;
    if (!handle)
        return NULL;
    heft_status st = heft_vocab_open(&v, handle_file(logical_stored(handle)), &err);
    if (st == HEFT_E_NOTFOUND)
        result = Py_NewRef(Py_None);
    else if (st)
        raise_error(s, &err, file_path(self), (heft_str){ NULL, 0 });
    else
        result = Py_BuildValue("(NN)", tokens_of(v), specials_of(v));
    heft_vocab_close(v);
    Py_DECREF(handle);
    return result;
}

typedef PyObject *(*fact_fn)(const heft_file *f);
static const fact_fn facts[] = { fact_format, fact_version, fact_size, fact_shards,
                                 metadata_object };

/* Return a fact of the file; fact points to the function. */
static PyObject *file_fact(PyObject *self, void *fact)
{
    return guarded(self, *(const fact_fn *)fact, true);
}

static PyObject *file_closed(PyObject *self, void *Py_UNUSED(none))
{
    return PyBool_FromLong(!((file_object *)self)->handle);
}

static PyObject *file_repr(PyObject *self)
{
    return PyUnicode_FromFormat("<heft.File %R>", file_path(self));
}

static PyMethodDef methods[] = {
    { "keys", file_keys, METH_NOARGS, "keys() -> list[str]: names of the tensors, in file order." },
    { "items", file_items, METH_VARARGS, "items(): view of pairs of name and tensor." },
    { "values", file_values, METH_VARARGS, "values(): view of the tensors." },
    { "get", file_get, METH_VARARGS, "get(name, default=None): the tensor, or default." },
    { "close", file_close, METH_NOARGS,
      "close(): end the use of the file. Memory that was borrowed stays valid." },
    { "_read_many", file_read_many, METH_O,
      "_read_many(list of (tensor, buffer)): read tensors into writable buffers, by all threads." },
    { "__enter__", file_enter, METH_NOARGS, NULL },
    { "__exit__", file_exit, METH_VARARGS, NULL },
    { NULL, NULL, 0, NULL },
};

static PyMemberDef members[] = {
    { "path", T_OBJECT, offsetof(file_object, path), READONLY, "Path as given to open()." },
    { NULL, 0, 0, 0, NULL },
};

static PyGetSetDef getters[] = {
    { "format", file_fact, NULL, "Name of the format, \"safetensors\".", (void *)&facts[0] },
    { "version", file_fact, NULL, "Version of the format; may be empty.", (void *)&facts[1] },
    { "size", file_fact, NULL, "Size of the file in bytes.", (void *)&facts[2] },
    { "shards", file_fact, NULL, "Names of the other files of the model.", (void *)&facts[3] },
    { "metadata", file_fact, NULL, "Metadata: a new dict.", (void *)&facts[4] },
    { "vocab", file_vocab, NULL, "Vocabulary, (list of tokens, {\"pad\": id, ...}), or None.",
      NULL },
    { "closed", file_closed, NULL, "True after close().", NULL },
    { NULL, NULL, NULL, NULL, NULL },
};

static PyType_Slot slots[] = {
    { Py_tp_doc, "A model file: a mapping from names to tensors, read on demand." },
    { Py_tp_dealloc, file_dealloc },
    { Py_tp_repr, file_repr },
    { Py_tp_iter, file_iter },
    { Py_tp_methods, methods },
    { Py_tp_members, members },
    { Py_tp_getset, getters },
    { Py_mp_length, file_length },
    { Py_mp_subscript, file_subscript },
    { Py_sq_contains, file_contains },
    { 0, NULL },
};

PyType_Spec file_spec = {
    .name = "heft.File",
    .basicsize = sizeof(file_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = slots,
};
