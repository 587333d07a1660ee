/* module.c - the module heft._heft. All state belongs to the module object. */
#include "module.h"

module_state *state_of(PyObject *module)
{
    return PyModule_GetState(module);
}

module_state *state_of_self(PyObject *self)
{
    return PyType_GetModuleState(Py_TYPE(self));
}

static PyTypeObject *add_type(PyObject *module, PyType_Spec *spec)
{
    PyTypeObject *type = (PyTypeObject *)PyType_FromModuleAndSpec(module, spec, NULL);
    if (type && PyModule_AddType(module, type) < 0)
        Py_CLEAR(type);
    return type;
}

static int load(PyObject *module)
{
    module_state *s = state_of(module);
    uint32_t v = heft_version();
    PyObject *version = PyUnicode_FromFormat("%u.%u.%u", v >> 16, v >> 8 & 0xFF, v & 0xFF);
    bool ok = version && PyModule_AddObjectRef(module, "__version__", version) == 0;
    Py_XDECREF(version);
    ok = ok && errors_load(module, s) && (s->file = add_type(module, &file_spec)) &&
         (s->tensor = add_type(module, &tensor_spec)) &&
         (s->buffer = add_type(module, &buffer_spec)) &&
         (s->writer = add_type(module, &writer_spec)) &&
         (s->store = add_type(module, &store_spec)) && (s->loan = add_type(module, &loan_spec));
    return ok ? 0 : -1;
}

static int clear(PyObject *module)
{
    module_state *s = state_of(module);
    errors_clear(s);
    Py_CLEAR(s->file);
    Py_CLEAR(s->tensor);
    Py_CLEAR(s->buffer);
    Py_CLEAR(s->writer);
    Py_CLEAR(s->store);
    Py_CLEAR(s->loan);
    return 0;
}

static int traverse(PyObject *module, visitproc visit, void *arg)
{
    module_state *s = state_of(module);
    for (int i = 0; i < ERROR_CLASSES; i++)
        Py_VISIT(s->errors[i]);
    Py_VISIT(s->file);
    Py_VISIT(s->tensor);
    Py_VISIT(s->buffer);
    Py_VISIT(s->writer);
    Py_VISIT(s->store);
    Py_VISIT(s->loan);
    return 0;
}

static void release(void *module)
{
    clear(module);
}

static PyMethodDef functions[] = {
    { "open", (PyCFunction)(void (*)(void))file_open, METH_VARARGS | METH_KEYWORDS,
      "open(path, key=None, *, format=None, verify=True, mmap=True, raw_tensors=False,\n"
      "     logical=False) -> File\n\n"
      "Open a file, or the model in a folder. Only the index is read. logical: quantised tensors\n"
      "are one tensor each, decoded when they are read; \"f32\", \"f16\" or \"bf16\": to that type." },
    { "_open_bytes", file_open_bytes, METH_O, "Open a file in memory: a bytes object." },
    { "_save", save_arrays, METH_VARARGS, "Save arrays, as heft/_save.py describes them." },
    { "_blocks_encode", blocks_encode, METH_VARARGS, "Encode, as heft/_blocks.py describes it." },
    { "_blocks_decode", blocks_decode, METH_VARARGS, "Decode, as heft/_blocks.py describes it." },
    { "_block_size", blocks_size, METH_O, "_block_size(dtype): elements and bytes of a block." },
    { NULL, NULL, 0, NULL },
};

static PyModuleDef_Slot slots[] = { { Py_mod_exec, load }, { 0, NULL } };

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "heft._heft",
    .m_doc = "Model weights in every format.",
    .m_size = sizeof(module_state),
    .m_methods = functions,
    .m_slots = slots,
    .m_traverse = traverse,
    .m_clear = clear,
    .m_free = release,
};

PyMODINIT_FUNC PyInit__heft(void);
PyMODINIT_FUNC PyInit__heft(void)
{
    return PyModuleDef_Init(&definition);
}
