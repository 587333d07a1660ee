"""heft.safetensors.numpy: dicts of arrays of NumPy."""
from .. import _arrays
from .._load import load as _load
from .._save import describe as _describe
from . import _serial
from ._errors import translated as _translated


def _rows(tensor_dict):
    rows = {}
    for name, value in tensor_dict.items():
        try:
            rows[name] = _describe(value)
        except TypeError as e:
            raise TypeError(f"tensor {name!r}: {e}") from None
    return rows


def save(tensor_dict, metadata=None):
    """Return the bytes of a safetensors file with the arrays, in little-endian byte order."""
    return _serial.write(_rows(tensor_dict), None, metadata)


def save_file(tensor_dict, filename, metadata=None):
    """Write a safetensors file with the arrays; whole or not at all."""
    _serial.write(_rows(tensor_dict), filename, metadata)


def load(data):
    """Return the arrays in the bytes of a file of any format: {name: array}."""
    with _serial.opened(data) as file, _translated("Error while deserializing"):
        return {t.name: _arrays.numpy(t, copy=True) for t in _serial.by_offset(file)}


def load_file(filename):
    """Return the arrays of a file, or of the model in a folder: {name: array}."""
    with _translated("Error while deserializing header", filename):
        return _load(filename, "numpy")
