"""Tensors as arrays of numpy and torch, which are imported on first use."""
import importlib

from ._heft import UnsupportedError

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


def _numpy_dtype(tensor, dtype):
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
    import numpy as np
    dtype = _numpy_dtype(tensor, tensor.dtype)
    if copy:
        array = np.empty(tensor.shape, dtype)
        _read(tensor, array, None)
        return array
    return numpy_over(tensor, memoryview(tensor).cast("B") if tensor.nbytes else b"")


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


def getitem(tensor, index):
    """Return the elements of an index of NumPy: of a mapped file only these pages are read."""
    return numpy(tensor)[index]


def to(tensor, dtype):
    """Return a copy of the elements, converted."""
    import numpy as np
    array = np.empty(tensor.shape, _numpy_dtype(tensor, dtype))
    _read(tensor, array, dtype)
    return array


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
