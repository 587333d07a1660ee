/* module.h - what the files of the extension share.
 *
 * All state is that of the module, so that several interpreters can load the extension. A heft_file
 * belongs to a capsule (handle): each object that borrows from the file, and each call that reads
 * without the interpreter's lock, holds a reference to the handle, and the last one closes the
 * file. */
#ifndef HEFT_PYTHON_MODULE_H
#define HEFT_PYTHON_MODULE_H
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <heft/heft.h>

enum { ERROR_CLASSES = 11 };

typedef struct module_state {
    PyObject *errors[ERROR_CLASSES]; /* by -status; 0: heft.Error */
    PyTypeObject *file, *tensor, *buffer, *writer, *store, *loan;
} module_state;

module_state *state_of(PyObject *module);
/* Return the state of the module that defines the type of self, which has no subclasses. */
module_state *state_of_self(PyObject *self);

/* ---- errors (py_errors.c) ---- */

bool errors_load(PyObject *module, module_state *s);
void errors_clear(module_state *s);
/* Raise the exception for a failed call about a file and return NULL. path may be NULL. */
void *raise_error(module_state *s, const heft_error *err, PyObject *path, heft_str tensor);
/* Raise an exception of the class of that status with a text and return NULL. */
void *raise_text(module_state *s, heft_status status, const char *text);

/* ---- files (py_file.c) ---- */

extern PyType_Spec file_spec;
PyObject *file_open(PyObject *module, PyObject *args, PyObject *kwargs);
PyObject *file_open_bytes(PyObject *module, PyObject *data);
/* Return a new reference to the handle of a File; NULL with an exception if the file is closed. */
PyObject *file_handle(module_state *s, PyObject *file);
PyObject *file_path(PyObject *file); /* borrowed */
/* Return the library's file of a handle. */
heft_file *handle_file(PyObject *handle);

/* End heft_file_guard(), which the caller has begun. Return value, or NULL with an exception,
 * without a reference to value, if the file was truncated. */
PyObject *file_unguard(PyObject *file, const heft_file *f, PyObject *value);

/* Make the object of an open file, which it takes over; owner keeps what the file borrows, or is
 * NULL. */
PyObject *file_new(module_state *s, heft_file *take, PyObject *path, PyObject *owner);

/* ---- decoded files (py_logical.c) ---- */

/* Read the argument `logical` of open(): a truth, or an element type. False with an exception. */
bool logical_type(module_state *s, heft_dtype *out, bool *is_asked, PyObject *value);
/* Return a file with a tensor for each quantised one of an open file, or the file itself if it has
 * none. name: the path from which the file was opened; as: the element type, or HEFT_UNTYPED;
 * verifies: checksums of parts are compared when a tensor is read as a whole. */
PyObject *logical_open(module_state *s, PyObject *file, const char *name, heft_dtype as,
                       bool verifies);
/* Return the handle, borrowed, of the file as it is stored. */
PyObject *logical_stored(PyObject *handle);
/* Return the number of a tensor in the file as it is stored; HEFT_NONE for a decoded one. */
uint32_t logical_stored_tensor(PyObject *handle, uint32_t tensor);
/* Compare the checksums of the parts of a decoded tensor, once, unless verify=False. False with an exception. */
bool logical_verify(PyObject *tensor, PyObject *handle);
/* Return a dict of what a decoded tensor is, or None. */
PyObject *logical_facts(PyObject *tensor, PyObject *handle);

/* ---- tensors (py_tensor.c) ---- */

extern PyType_Spec tensor_spec;
PyObject *tensor_new(module_state *s, PyObject *file, uint32_t id);
PyObject *tensor_file(PyObject *tensor); /* borrowed */
uint32_t tensor_id(PyObject *tensor);
/* Raise the exception for a failed call about a tensor of the open file f and return NULL. */
void *tensor_raise(PyObject *tensor, const heft_file *f, const heft_error *err);

/* ---- DLPack (py_dlpack.c) ---- */

PyObject *tensor_dlpack(PyObject *self, PyObject *args, PyObject *kwargs);
PyObject *tensor_dlpack_device(PyObject *self, PyObject *none);

/* ---- rows of blocks (py_blocks.c) ---- */

PyObject *blocks_encode(PyObject *module, PyObject *args);
PyObject *blocks_decode(PyObject *module, PyObject *args);
/* Return the elements and the bytes of a block of a type. */
PyObject *blocks_size(PyObject *module, PyObject *name);

/* ---- loading (py_load.c) ---- */

extern PyType_Spec buffer_spec;
/* Read the tensors of a list of pairs (Tensor of this file, writable buffer). */
PyObject *file_read_many(PyObject *file, PyObject *pairs);

/* ---- saving (py_save.c) ---- */

PyObject *save_arrays(PyObject *module, PyObject *args);

/* ---- values (py_values.c) ---- */

PyObject *str_object(heft_str s);
/* Return metadata value i of the file as an object, with all children. */
PyObject *metadata_object(const heft_file *f);
PyObject *attributes_object(const heft_file *f, uint32_t tensor);
/* Borrow the bytes of a str or bytes object. False with an exception. */
bool text_borrow(heft_str *out, PyObject *object);
/* Make an array, for PyMem_Free(), of the numbers in a tuple. False with an exception. */
bool dims_new(uint64_t **out, uint32_t *rank, PyObject *shape);
/* Borrow key and value: bool, int, float, str or bytes. False with an exception. */
bool value_borrow(heft_value *out, PyObject *key, PyObject *value);
/* Call on_loss(severity, rule, tensor, text), without the interpreter's lock before and after. An
 * exception stays set when the call has ended. */
void report_loss(void *on_loss, heft_severity severity, const char *rule, heft_str tensor,
                 const char *text);

/* ---- writing (py_writer.c) ---- */

extern PyType_Spec writer_spec;

/* ---- parameters (py_params.c) ---- */

extern PyType_Spec store_spec, loan_spec;

#endif
