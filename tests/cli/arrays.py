"""arrays.py - files of safetensors made of arrays of NumPy, for the cases."""
from samples import write_safetensors

NAMES = {"float32": "F32", "float16": "F16", "int64": "I64", "int8": "I8"}


def save(path, metadata=None, **arrays):
    write_safetensors(path, {name: (NAMES[str(x.dtype)], x.shape, x.tobytes())
                             for name, x in arrays.items()}, metadata)
