"""Tensors as arrays of numpy and torch, which are imported on first use."""
import importlib

from ._heft import UnsupportedError
from ._slices import take

NUMPY = {
    "bool": "bool", "u8": "uint8", "i8": "int8", "u16": "uint16", "i16": "int16", "u32": "uint32",
    "i32": "int32", "u64": "uint64", "i64": "int64", "f16": "float16", "f32": "float32",
    "f64": "float64", "c64": "complex64", "c128": "complex128"
}
ML_DTYPES = {
    "bf16": "bfloat16", "f8_e4m3fn": "float8_e4m3fn", "f8_e5m2": "float8_e5m2",
    "f8_e4m3fnuz": "float8_e4m3fnuz", "f8_e5m2fnuz": "float8_e5m2fnuz",
    "f8_e8m0": "float8_e8m0fnu"
}
TORCH = {
    "bool": "bool", "u8": "uint8", "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64",
    "u16": "uint16", "u32": "uint32", "u64": "uint64", "f16": "float16", "bf16": "bfloat16",
    "f32": "float32", "f64": "float64", "c64": "complex64", "c128": "complex128",
    "f8_e4m3fn": "float8_e4m3fn", "f8_e5m2": "float8_e5m2", "f8_e4m3fnuz": "float8_e4m3fnuz",
    "f8_e5m2fnuz": "float8_e5m2fnuz"
}


def _unsupported(tensor, text):
    error = UnsupportedError(f"tensor {tensor.name!r}: {text}")
    error.status, error.tensor = "unsupported", tensor.name
    return error


_made = {}  # types of NumPy by name


def _numpy_dtype(tensor, dtype):
    made = _made.get(dtype)
    if made is None:
        made = _made[dtype] = _make_dtype(tensor, dtype)
    return made


def _make_dtype(tensor, dtype):
    import numpy
    if dtype in NUMPY:
        return numpy.dtype(NUMPY[dtype])
    if dtype not in ML_DTYPES:
        raise _unsupported(tensor, f"NumPy has no element type for {dtype}: convert with to()")
    try:
        ml_dtypes = importlib.import_module("ml_dtypes")
        return numpy.dtype(getattr(ml_dtypes, ML_DTYPES[dtype]))
    except (ImportError, AttributeError):
        raise _unsupported(tensor, f"NumPy has no element type for {dtype}: install ml_dtypes, "
                           "use torch(), or convert with to()") from None


def numpy(tensor, copy=False):
    """Return the elements as an array; read-only and in place unless copied."""
    dtype = _numpy_dtype(tensor, tensor.dtype)
    if copy:
        import numpy as np
        array = np.empty(tensor.shape, dtype)
        _read(tensor, array, None)
        return array
    return numpy_over(tensor, tensor if tensor.nbytes else b"")


def numpy_over(tensor, memory):
    """Return an array over the bytes of a tensor."""
    import numpy as np
    dtype = _numpy_dtype(tensor, tensor.dtype)
    return np.frombuffer(memory, dtype).reshape(tensor.shape)


def _read(tensor, array, dtype):
    """Read into a contiguous array, which may be empty or have no struct format."""
    import numpy as np
    if array.size:
        tensor.read_into(array.reshape(-1).view(np.uint8), dtype)


def array_interface(tensor):
    """Return the array interface, version 3; the memoryview keeps the bytes in memory."""
    if tensor.dtype not in NUMPY:
        raise AttributeError(f"NumPy has no element type for {tensor.dtype}")
    return {"version": 3, "shape": tensor.shape, "typestr": _numpy_dtype(tensor, tensor.dtype).str,
            "data": memoryview(tensor)}


def getitem(tensor, index):
    """Return a copy of the elements of an index of NumPy, of which only the bytes are read."""
    return take(tensor, index, _numpy_dtype(tensor, tensor.dtype))


def to(tensor, dtype):
    """Return a copy of the elements, converted."""
    import numpy as np
    array = np.empty(tensor.shape, _numpy_dtype(tensor, dtype))
    _read(tensor, array, dtype)
    return array


def _part(tensor, role):
    """Return a part of a tensor as an array."""
    import numpy as np
    dtypes = {part["role"]: part["dtype"] for part in tensor.parts}
    return np.frombuffer(tensor.read_part(role), _numpy_dtype(tensor, dtypes.get(role)))


def sparse(tensor, framework=None):
    """Return the parts of a sparse tensor as arrays, or as a sparse array of scipy or torch."""
    if framework not in (None, "scipy", "torch"):
        raise ValueError(f"framework must be 'scipy', 'torch' or None, not {framework!r}")
    if tensor.layout == "sparse_csr":
        return _csr(tensor, framework)
    if tensor.layout == "sparse_coo":
        return _coo(tensor, framework)
    raise _unsupported(tensor, f"the layout {tensor.layout} is not sparse_csr or sparse_coo")


def _csr(tensor, framework):
    indptr, indices, values = (_part(tensor, r) for r in ("indptr", "indices", "values"))
    if framework == "scipy":
        module = importlib.import_module("scipy.sparse")
        return module.csr_array((values, indices, indptr), shape=tensor.shape)
    if framework == "torch":
        module = importlib.import_module("torch")
        return module.sparse_csr_tensor(*(module.from_numpy(a) for a in (
            indptr.astype("int64"), indices.astype("int64"), values)), size=tensor.shape)
    return indptr, indices, values


def _coo(tensor, framework):
    coordinates, values = _part(tensor, "coords"), _part(tensor, "values")
    coordinates = coordinates.reshape(len(tensor.shape), values.size)
    if framework == "scipy":
        module = importlib.import_module("scipy.sparse")
        return module.coo_array((values, tuple(coordinates)), shape=tensor.shape)
    if framework == "torch":
        module = importlib.import_module("torch")
        return module.sparse_coo_tensor(*(module.from_numpy(a) for a in (
            coordinates.astype("int64"), values)), size=tensor.shape)
    return coordinates, values


def torch(tensor):
    """Return a copy of the elements as a tensor on the CPU."""
    data = bytearray(tensor.nbytes)
    tensor.read_into(data)
    return torch_over(tensor, data)


def torch_over(tensor, memory):
    """Return a tensor over the writable bytes of a tensor."""
    module = importlib.import_module("torch")
    dtype = getattr(module, TORCH.get(tensor.dtype, ""), None)
    if dtype is None:
        raise _unsupported(tensor, f"this version of torch has no element type for {tensor.dtype}: "
                           "convert with to()")
    if not tensor.nbytes:
        return module.empty(tensor.shape, dtype=dtype)
    return module.frombuffer(memory, dtype=dtype).reshape(tensor.shape)
