"""heft.save: arrays of any kind to a file of any format."""
from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Mapping
from typing import Any

from . import _arrays, _heft
from ._exceptions import LossWarning

FROM_NUMPY = {name: dtype for dtype, name in {**_arrays.NUMPY, **_arrays.ML_DTYPES}.items()}
FROM_TORCH = {name: dtype for dtype, name in _arrays.TORCH.items()}
CODES = {"?": "bool", "e": "f16", "f": "f32", "d": "f64", "Zf": "c64", "Zd": "c128"}
REPLACE, SYNC, NO_SYNC = 1, 2, 4
NOTE = 0


def _of_torch(value):
    torch = sys.modules["torch"]
    if value.layout is not torch.strided:
        raise TypeError(f"a torch tensor of layout {value.layout}: only dense ones are saved")
    dtype = FROM_TORCH[str(value.dtype).removeprefix("torch.")]
    value = value.detach().cpu().contiguous()
    return dtype, tuple(value.shape), value.reshape(-1).view(torch.uint8).numpy()


def _of_numpy(value):
    np = sys.modules["numpy"]
    if value.dtype.name not in FROM_NUMPY:
        raise TypeError(f"an array of {value.dtype}: there is no such element type")
    little = value.astype(value.dtype.newbyteorder("<"), order="C", copy=False)
    return FROM_NUMPY[value.dtype.name], value.shape, little.reshape(-1).view(np.uint8)


def _of_buffer(value):
    view = memoryview(value)
    code = view.format.lstrip("@=<")
    dtype = CODES.get(code)
    if code in tuple("bhilqn"):
        dtype = f"i{view.itemsize * 8}"
    elif code in tuple("BHILQN"):
        dtype = f"u{view.itemsize * 8}"
    if not dtype or (view.format[0] in "=<" and sys.byteorder != "little"):
        raise TypeError(f"a buffer of format {view.format!r}: there is no such element type")
    flat = view.cast("B") if view.c_contiguous and view.nbytes else view.tobytes()
    return dtype, view.shape, flat


def describe(value):
    """Return (element type, shape, bytes in rows) of an array of any kind."""
    if isinstance(value, _heft.Tensor):
        return value.dtype, value.shape, memoryview(value).cast("B") if value.nbytes else b""
    torch, numpy = sys.modules.get("torch"), sys.modules.get("numpy")
    if torch and isinstance(value, torch.Tensor):
        return _of_torch(value)
    if numpy and isinstance(value, (numpy.ndarray, numpy.generic)):
        return _of_numpy(numpy.asarray(value))
    try:
        return _of_buffer(value)
    except TypeError:
        if not hasattr(value, "__dlpack__"):
            raise
    import numpy
    return _of_numpy(numpy.from_dlpack(value))


def _row(name, value):
    if not isinstance(name, str):
        raise TypeError(f"names of tensors are str, not {type(name).__name__}")
    try:
        return (name.encode(errors="surrogateescape"), *describe(value))
    except TypeError as e:
        raise TypeError(f"tensor {name!r}: {e}") from None


def warn_of_loss(severity, rule, tensor, text):
    if severity != NOTE:
        about = "" if tensor is None else f" (tensor {tensor!r})"
        warnings.warn(LossWarning(f"{text}{about}", rule, tensor), stacklevel=3)


def save(tensors: Mapping[str, Any], path: str | os.PathLike[str], *, format: str | None = None,
         metadata: Mapping[str, Any] | None = None, version: str | None = None,
         digest: str | None = None, compress: str | None = None, level: int = 0, align: int = 0,
         allow_loss: bool = False, strict: bool = False, replace: bool = True,
         sync: bool | None = None) -> None:
    """Save arrays under their names; the file appears whole or not at all.

    tensors: dict of arrays of numpy or torch, tensors of files, or objects with the buffer protocol
    or DLPack. format: by the suffix of the path unless given. metadata: dict of str, bytes, int,
    float and bool. compress: "zstd". sync: wait for the disk; None: when a file is replaced.

    What the format cannot represent is a LossWarning, or a LossError if data would be lost; with
    allow_loss such parts are left out, with strict each warning is an error."""
    if compress not in (None, "zstd"):
        raise ValueError(f"compress must be 'zstd' or None, not {compress!r}")
    flags = (REPLACE if replace else 0) | {None: 0, True: SYNC, False: NO_SYNC}[sync]
    rows = tuple(_row(name, value) for name, value in tensors.items())
    _heft._save(path, rows, dict(metadata or {}), warn_of_loss, format, version, digest, compress, align,
                level, allow_loss, strict, flags)
