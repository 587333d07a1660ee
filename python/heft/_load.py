"""heft.load: all tensors of a file in memory, read by all processors."""
from __future__ import annotations

import os
from typing import Any

from . import _arrays
from ._heft import Buffer, open

SHARED = 256 * 1024  # smaller tensors share a buffer
ALIGNMENT = 64


def _memory(tensors):
    """Return a writable memoryview for each tensor; large tensors have a buffer of their own."""
    places, used = [], 0
    for tensor in tensors:
        own = tensor.nbytes >= SHARED
        places.append(None if own else used)
        used += 0 if own else -(-tensor.nbytes // ALIGNMENT) * ALIGNMENT
    shared = memoryview(Buffer(used))
    return [memoryview(Buffer(t.nbytes)) if at is None else shared[at:at + t.nbytes]
            for t, at in zip(tensors, places)]


def _array(tensor, memory, framework):
    if framework == "torch":
        return _arrays.torch_over(tensor, memory)
    return _arrays.numpy_over(tensor, memory) if framework == "numpy" else memory


def load(path: str | os.PathLike[str], framework: str | None = "numpy", *, mmap: bool = False,
         key: str | None = None, format: str | None = None, verify: bool = True,
         logical: bool | str = False) -> dict[str, Any]:
    """Read all tensors of a file, or of the model in a folder; return a dict.

    framework: "numpy" for arrays, "torch" for tensors on the CPU, None for memoryviews of bytes.
    mmap: lend the pages of the file in place, read-only; not for torch.
    logical: decode quantised tensors, as heft.open() does."""
    if framework not in ("numpy", "torch", None):
        raise ValueError(f"framework must be 'numpy', 'torch' or None, not {framework!r}")
    with open(path, key, format=format, verify=verify, logical=logical) as file:
        names = file.keys()
        tensors = [file[name] for name in names]
        if mmap and framework != "torch":
            return {t.name: t.numpy() if framework else memoryview(t) for t in tensors}
        memory = _memory(tensors)
        file._read_many(list(zip(tensors, memory)))
        return {name: _array(t, m, framework) for name, t, m in zip(names, tensors, memory)}
