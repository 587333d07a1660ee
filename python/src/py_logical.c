/* py_logical.c - a file with a tensor for each quantised one, decoded whenever it is read.
 *
 * The handle of such a file keeps an object `logical`, which keeps the handle of the stored one. */
#include "module.h"

#include <limits.h>
#include <string.h>

#include <heft/check.h>
#include <heft/companion.h>
#include <heft/heft_ext.h>
#include <heft/remote.h>
#include <heft/scheme.h>

typedef struct logical {
    PyObject *stored; /* handle of the file as it was opened */
    heft_schemes *schemes;
    uint32_t *quantised; /* by decoded tensor: number in schemes; HEFT_NONE: a stored tensor */
    bool *is_checked;    /* by decoded tensor: the checksums of its parts are right */
    bool verifies;
} logical;

static const char logical_name[] = "heft.logical";

static void logical_free(logical *l)
{
    heft_schemes_close(l->schemes);
    Py_XDECREF(l->stored);
    PyMem_Free(l->quantised);
    PyMem_Free(l->is_checked);
    PyMem_Free(l);
}

static void capsule_free(PyObject *capsule)
{
    logical_free(PyCapsule_GetPointer(capsule, logical_name));
}

static logical *logical_of(PyObject *handle)
{
    PyObject *owner = PyCapsule_GetContext(handle);
    return owner && PyCapsule_IsValid(owner, logical_name)
               ? PyCapsule_GetPointer(owner, logical_name)
               : NULL;
}

/* ---- settings beside the model ---- */

/* Return the local path of a name, or NULL with an error if it is not in the cache. */
static const char *local_path(char cached[PATH_MAX], const char *name, heft_error *err)
{
    if (strncmp(name, "hub:", 4) != 0)
        return name;
    return heft_hub_path(cached, PATH_MAX, name, err) ? NULL : cached;
}

/* Parse the first text that has the settings of a quantised model; *out is NULL if none has. Texts
 * that are not JSON are passed over. */
static heft_status find_settings(heft_settings **out, PyObject *texts, heft_error *err)
{
    heft_status st = HEFT_OK;
    *out = NULL;
    for (Py_ssize_t i = 0; i < PyList_Size(texts) && !*out && st != HEFT_E_NOMEM; i++) {
        PyObject *text = PyList_GetItem(texts, i);
        heft_str json = { PyBytes_AsString(text), (size_t)PyBytes_Size(text) };
        st = heft_settings_parse_json(out, json, NULL, err);
        if (!st && !heft_settings_are_quantised(*out)) {
            heft_settings_close(*out);
            *out = NULL;
        }
    }
    return st == HEFT_E_NOMEM ? st : HEFT_OK;
}

/* Call heft._logical.texts(path). */
static PyObject *texts_beside(const char *path)
{
    PyObject *module = PyImport_ImportModule("heft._logical");
    PyObject *function = module ? PyObject_GetAttrString(module, "texts") : NULL;
    PyObject *name = function ? PyUnicode_DecodeFSDefault(path) : NULL;
    PyObject *texts = name ? PyObject_CallFunctionObjArgs(function, name, NULL) : NULL;
    Py_XDECREF(name);
    Py_XDECREF(function);
    Py_XDECREF(module);
    return texts;
}

/* ---- opening ---- */

/* Decoded numbers are in the last shard of the file. */
static bool is_decoded(const heft_file *f, uint32_t tensor)
{
    uint32_t part = tensor == HEFT_NONE ? HEFT_NONE : heft_part_find(f, tensor, HEFT_STR("data"));
    return part != HEFT_NONE && heft_part_at(f, part).shard == heft_shard_file_count(f);
}

static bool find_tensors(logical *l, const heft_file *f)
{
    size_t count = (size_t)heft_tensor_count(f) + 1;
    l->quantised = PyMem_Calloc(count, sizeof *l->quantised);
    l->is_checked = PyMem_Calloc(count, sizeof *l->is_checked);
    if (!l->quantised || !l->is_checked)
        return false;
    for (size_t i = 0; i < count; i++)
        l->quantised[i] = HEFT_NONE;
    for (uint32_t q = 0; q < heft_schemes_count(l->schemes); q++) {
        uint32_t i = heft_tensor_find(f, heft_schemes_at(l->schemes, q).name);
        if (is_decoded(f, i))
            l->quantised[i] = q;
    }
    return true;
}

/* Open what the stored file represents; *out stays NULL if no tensor is quantised. */
static heft_status decode(heft_file **out, logical *l, const heft_settings *settings, heft_dtype as,
                          heft_error *err)
{
    heft_decode_options options = HEFT_DECODE_OPTIONS_INIT;
    const heft_file *f = handle_file(l->stored);
    heft_status st;
    options.as = as;
    options.keeps_undecoded = true;
    PyThreadState *thread = PyEval_SaveThread();
    st = heft_schemes_open(&l->schemes, f, settings, err);
    if (!st && heft_schemes_count(l->schemes))
        st = heft_schemes_decode(out, f, l->schemes, &options, err);
    PyEval_RestoreThread(thread);
    return st;
}

/* Make the object of a decoded file, which keeps l. */
static PyObject *wrap(module_state *s, logical *l, heft_file *f, PyObject *path)
{
    PyObject *owner = find_tensors(l, f) ? PyCapsule_New(l, logical_name, capsule_free)
                                         : PyErr_NoMemory();
    if (!owner) {
        heft_file_close(f);
        logical_free(l);
        return NULL;
    }
    PyObject *file = file_new(s, f, path, owner);
    Py_DECREF(owner);
    return file;
}

static PyObject *open_logical(module_state *s, PyObject *file, PyObject *texts, heft_dtype as,
                              bool verifies)
{
    heft_error err;
    heft_settings *settings;
    heft_file *f = NULL;
    logical *l = PyMem_Calloc(1, sizeof *l);
    if (!l)
        return PyErr_NoMemory();
    l->verifies = verifies;
    l->stored = file_handle(s, file);
    heft_status st = find_settings(&settings, texts, &err);
    if (!st)
        st = decode(&f, l, settings, as, &err);
    heft_settings_close(settings);
    if (f)
        return wrap(s, l, f, file_path(file));
    logical_free(l);
    return st ? raise_error(s, &err, file_path(file), (heft_str){ NULL, 0 }) : Py_NewRef(file);
}

bool logical_type(module_state *s, heft_dtype *out, bool *is_asked, PyObject *value)
{
    int truth = PyObject_IsTrue(value);
    *out = HEFT_UNTYPED;
    *is_asked = truth > 0;
    if (truth < 0 || !PyUnicode_Check(value))
        return truth >= 0;
    const char *name = PyUnicode_AsUTF8AndSize(value, NULL);
    *out = name ? heft_dtype_find(heft_str_from(name)) : HEFT_UNTYPED;
    *is_asked = true;
    if (*out == HEFT_F32 || *out == HEFT_F16 || *out == HEFT_BF16)
        return true;
    return name && raise_text(s, HEFT_E_ARGUMENT, "logical is True, 'f32', 'f16' or 'bf16'");
}

PyObject *logical_open(module_state *s, PyObject *file, const char *name, heft_dtype as,
                       bool verifies)
{
    char cached[PATH_MAX];
    heft_error err;
    const char *path = local_path(cached, name, &err);
    if (!path)
        return raise_error(s, &err, file_path(file), (heft_str){ NULL, 0 });
    PyObject *texts = heft_is_url(path) ? PyList_New(0) : texts_beside(path);
    PyObject *result = texts ? open_logical(s, file, texts, as, verifies) : NULL;
    Py_XDECREF(texts);
    return result;
}

/* ---- tensors ---- */

PyObject *logical_stored(PyObject *handle)
{
    const logical *l = logical_of(handle);
    return l ? l->stored : handle;
}

uint32_t logical_stored_tensor(PyObject *handle, uint32_t tensor)
{
    const logical *l = logical_of(handle);
    if (!l)
        return tensor;
    heft_str name = heft_tensor_at(handle_file(handle), tensor).name;
    return l->quantised[tensor] == HEFT_NONE ? heft_tensor_find(handle_file(l->stored), name)
                                             : HEFT_NONE;
}

static heft_status verify_parts(const logical *l, uint32_t quantised, heft_error *err)
{
    const heft_file *f = handle_file(l->stored);
    uint32_t parts = heft_schemes_at(l->schemes, quantised).part_count;
    for (uint32_t k = 0; k < parts; k++) {
        heft_tensor t = heft_tensor_at(f, heft_schemes_part_at(l->schemes, quantised, k).tensor);
        for (uint32_t p = 0; p < t.part_count; p++) {
            heft_status st = heft_part_verify(NULL, f, t.first_part + p, err);
            if (st)
                return st;
        }
    }
    return HEFT_OK;
}

bool logical_verify(PyObject *tensor, PyObject *handle)
{
    logical *l = logical_of(handle);
    uint32_t id = tensor_id(tensor);
    heft_error err;
    heft_status st;
    if (!l || !l->verifies || l->quantised[id] == HEFT_NONE || l->is_checked[id])
        return true;
    PyThreadState *thread = PyEval_SaveThread();
    st = verify_parts(l, l->quantised[id], &err);
    PyEval_RestoreThread(thread);
    l->is_checked[id] = !st;
    return !st || tensor_raise(tensor, handle_file(handle), &err);
}

/* Return a dict of the names of the stored tensors, by their roles in the scheme. */
static PyObject *parts_of(const logical *l, uint32_t quantised)
{
    const heft_file *f = handle_file(l->stored);
    PyObject *parts = PyDict_New();
    for (uint32_t k = 0; parts && k < heft_schemes_at(l->schemes, quantised).part_count; k++) {
        heft_quantised_part p = heft_schemes_part_at(l->schemes, quantised, k);
        PyObject *name = str_object(heft_tensor_at(f, p.tensor).name);
        if (!name || PyDict_SetItemString(parts, p.role, name) < 0)
            Py_CLEAR(parts);
        Py_XDECREF(name);
    }
    return parts;
}

PyObject *logical_facts(PyObject *tensor, PyObject *handle)
{
    const logical *l = logical_of(handle);
    uint32_t i = l ? l->quantised[tensor_id(tensor)] : HEFT_NONE;
    if (i == HEFT_NONE)
        Py_RETURN_NONE;
    heft_quantised q = heft_schemes_at(l->schemes, i);
    PyObject *block = q.has_block ? Py_BuildValue("(KK)", (unsigned long long)q.block[0],
                                                  (unsigned long long)q.block[1])
                                  : Py_NewRef(Py_None);
    PyObject *variant = q.variant.len ? str_object(q.variant) : Py_NewRef(Py_None);
    PyObject *bits = q.bits ? PyLong_FromUnsignedLong(q.bits) : Py_NewRef(Py_None);
    return Py_BuildValue("{s:N,s:N,s:N,s:N,s:N}", "scheme", str_object(q.scheme), "variant",
                         variant, "bits", bits, "block", block, "parts", parts_of(l, i));
}
