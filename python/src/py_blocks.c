/* py_blocks.c - rows of block-quantised types: the part of heft.quantize and heft.dequantize below
 * heft/_blocks.py. */
#include "module.h"

#include <heft/block_rows.h>

/* Rows of the same number of columns; the buffers are open. */
typedef struct block_rows {
    Py_buffer in, out, importance;
    heft_dtype type;
    Py_ssize_t columns;
} block_rows;

static void release(block_rows *r)
{
    PyBuffer_Release(&r->in);
    PyBuffer_Release(&r->out);
    PyBuffer_Release(&r->importance);
}

/* Raise an exception unless the buffers have as many rows, and return their number, or -1. */
static Py_ssize_t count_rows(module_state *s, const block_rows *r, Py_ssize_t floats,
                             Py_ssize_t blocks)
{
    const heft_dtype_info *d = heft_dtype_get(r->type);
    if (!d) {
        raise_text(s, HEFT_E_NOTFOUND, "unknown element type");
        return -1;
    }
    Py_ssize_t bytes = r->columns / d->block_elems * d->block_bytes;
    Py_ssize_t rows = r->columns > 0 ? floats / (Py_ssize_t)sizeof(float) / r->columns : 0;
    Py_ssize_t weights = (Py_ssize_t)sizeof(float) * r->columns;
    if (r->columns <= 0 || rows * r->columns * (Py_ssize_t)sizeof(float) != floats ||
        (bytes && blocks / bytes < rows) || (r->importance.obj && r->importance.len != weights)) {
        raise_text(s, HEFT_E_ARGUMENT, "the buffers do not have as many rows or columns");
        return -1;
    }
    return rows;
}

static PyObject *run(module_state *s, block_rows *r, bool encodes)
{
    const Py_ssize_t rows = encodes ? count_rows(s, r, r->in.len, r->out.len)
                                    : count_rows(s, r, r->out.len, r->in.len);
    heft_status st = HEFT_OK;
    heft_error err;
    if (rows < 0)
        return NULL;
    const heft_dtype_info *d = heft_dtype_get(r->type);
    const size_t columns = (size_t)r->columns;
    const size_t bytes = columns / d->block_elems * d->block_bytes;
    const float *weights = r->importance.obj ? r->importance.buf : NULL;
    uint8_t *out = r->out.buf;
    const uint8_t *in = r->in.buf;
    PyThreadState *thread = PyEval_SaveThread();
    for (Py_ssize_t i = 0; !st && i < rows; i++) {
        if (encodes)
            st = heft_block_encode(out, bytes, r->type, (const float *)(const void *)in, columns,
                                   weights, &err);
        else
            st = heft_block_decode((float *)(void *)out, r->type, in, bytes, columns, &err);
        in += encodes ? columns * sizeof(float) : bytes;
        out += encodes ? bytes : columns * sizeof(float);
    }
    PyEval_RestoreThread(thread);
    if (st)
        return raise_error(s, &err, NULL, (heft_str){ NULL, 0 });
    return Py_NewRef(Py_None);
}

/* Arguments: bytes to fill, element type, bytes to read, columns, importance or None.  Numbers are
 * f32 in the order of the machine. */
static PyObject *run_with(PyObject *module, PyObject *args, bool encodes)
{
    block_rows r = { .type = HEFT_UNTYPED };
    PyObject *out, *in, *importance, *result = NULL;
    const char *dtype;
    if (!PyArg_ParseTuple(args, "OsOnO", &out, &dtype, &in, &r.columns, &importance))
        return NULL;
    r.type = heft_dtype_find(heft_str_from(dtype));
    if (!PyObject_GetBuffer(out, &r.out, PyBUF_WRITABLE) &&
        !PyObject_GetBuffer(in, &r.in, PyBUF_SIMPLE) &&
        (importance == Py_None || !PyObject_GetBuffer(importance, &r.importance, PyBUF_SIMPLE)))
        result = run(state_of(module), &r, encodes);
    release(&r);
    return result;
}

PyObject *blocks_encode(PyObject *module, PyObject *args)
{
    return run_with(module, args, true);
}

PyObject *blocks_decode(PyObject *module, PyObject *args)
{
    return run_with(module, args, false);
}

PyObject *blocks_size(PyObject *module, PyObject *name)
{
    heft_str text;
    if (!text_borrow(&text, name))
        return NULL;
    const heft_dtype_info *d = heft_dtype_get(heft_dtype_find(text));
    if (!d)
        return raise_text(state_of(module), HEFT_E_NOTFOUND, "unknown element type");
    return Py_BuildValue("II", (unsigned)d->block_elems, (unsigned)d->block_bytes);
}
