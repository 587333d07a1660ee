"""serialize, serialize_file and deserialize: tensors as addresses and as bytes."""
import ctypes

from .. import _heft
from .._exceptions import LossError
from . import _dtypes
from ._errors import SafetensorError, translated

ALIGNMENT = 8
SYNC = 1  # replace an existing file


class TensorSpec:
    """A tensor for serialize(): element type, shape, and the address and length of its bytes.

    dtype: a name such as "float32"; the attribute is the name in the file, "F32". The memory must
    exist until serialize() returns. float4_e2m1fn_x2: the last dimension counts pairs, and is
    doubled."""

    __slots__ = ("_dtype", "_shape", "_data_ptr", "_data_len")

    def __init__(self, *, dtype, shape, data_ptr, data_len):
        if dtype not in _dtypes.OF_PYTHON:
            raise SafetensorError(f"Unknown dtype: {dtype!r}")
        self._dtype = _dtypes.OF_PYTHON[dtype]
        self._shape = [int(n) for n in shape]
        if self._dtype == "F4" and self._shape:
            self._shape[-1] *= 2
        self._data_ptr, self._data_len = int(data_ptr), int(data_len)
        if self._data_len < 0 or min(self._shape, default=0) < 0:
            raise SafetensorError("the length and the dimensions of a tensor are not negative")

    dtype = property(lambda self: self._dtype, doc="Name of the element type in the file, \"F32\".")
    shape = property(lambda self: list(self._shape), doc="Dimensions, in elements.")
    data_ptr = property(lambda self: self._data_ptr, doc="Address of the first byte.")
    data_len = property(lambda self: self._data_len, doc="Number of bytes.")

    def __repr__(self):
        return f"TensorSpec(dtype={self._dtype}, shape={self._shape}, data_len={self._data_len})"


def _memory(spec):
    if not spec.data_len:
        return b""
    if not spec.data_ptr:
        raise SafetensorError("the address of a tensor with bytes is 0")
    return memoryview((ctypes.c_char * spec.data_len).from_address(spec.data_ptr)).cast("B")


def _row_of(name, spec):
    """Return (element type, shape, bytes) of a TensorSpec."""
    if not isinstance(spec, TensorSpec):
        raise TypeError(f"{name!r}: expected a TensorSpec, not {type(spec).__name__}")
    return _dtypes.HEFT[spec.dtype], spec.shape, _memory(spec)


def check_metadata(metadata):
    """Return the metadata sorted by key; TypeError unless they are a dict of str."""
    if metadata is None:
        return {}
    if not isinstance(metadata, dict):
        raise TypeError(f"metadata must be a dict of str, not {type(metadata).__name__}")
    for key, value in metadata.items():
        if not isinstance(key, str) or not isinstance(value, str):
            raise TypeError(f"metadata must be a dict of str: {key!r} has the value {value!r}")
    return dict(sorted(metadata.items()))


def _refuse(severity, rule, tensor, text):
    if severity:  # more than a note
        error = LossError(text)
        error.status, error.rule, error.tensor = "lossy", rule, tensor
        raise error


def write(rows, path, metadata):
    """Write {name: (element type, shape, bytes)}: the largest elements first, then by name. Return
    the bytes of the file if path is None."""
    for name in rows:
        if not isinstance(name, str):
            raise TypeError(f"names of tensors are str, not {type(name).__name__}")
    ordered = [(name.encode("utf-8", "surrogateescape"), dtype, tuple(shape), data)
               for name, (dtype, shape, data) in rows.items()]
    ordered.sort(key=lambda row: (-_dtypes.ORDER[row[1]], row[0]))
    with translated("Error while serializing", path):
        return _heft._save(path, tuple(ordered), check_metadata(metadata), _refuse, "safetensors", None,
                           None, None, ALIGNMENT, 0, False, False, SYNC)


def _rows_of(tensor_dict):
    return {name: _row_of(name, spec) for name, spec in tensor_dict.items()}


def serialize(tensor_dict, metadata=None):
    """Return the bytes of a safetensors file with tensors {name: TensorSpec}."""
    return write(_rows_of(tensor_dict), None, metadata)


def serialize_file(tensor_dict, filename, metadata=None):
    """Write a safetensors file with tensors {name: TensorSpec}; whole or not at all."""
    write(_rows_of(tensor_dict), filename, metadata)


def opened(data):
    """Open the bytes of a file."""
    with translated("Error while deserializing header"):
        return _heft._open_bytes(bytes(data))


def by_offset(file):
    """Return the tensors of a file in the order of their bytes."""
    return sorted(file.values(), key=lambda t: t.parts[0]["offset"] if t.parts else 0)


def deserialize(bytes):
    """Return [(name, {"shape": [...], "dtype": "F32", "data": bytearray})] of the bytes of a
    file."""
    found = []
    with opened(bytes) as file, translated("Error while deserializing"):
        for tensor in by_offset(file):
            data = bytearray(tensor.nbytes)
            tensor.read_into(data)
            found.append((tensor.name, {"shape": list(tensor.shape),
                                        "dtype": _dtypes.code_of(tensor), "data": data}))
    return found
