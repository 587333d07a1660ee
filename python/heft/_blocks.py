"""Rows of block-quantised types: quantize and dequantize."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._heft import _blocks_decode, _blocks_encode, _block_size

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray


def quantize(array: ArrayLike, dtype: str, importance: ArrayLike | None = None) -> bytes:
    """Return the blocks of an array, as llama-quantize makes them: equal to the byte.

    The last dimension must fill whole blocks: 32 elements for q8_0, 256 for q4_k. importance has a
    number for each column, which says how much its error counts, such as the mean square of an
    activation. Numbers are converted to float32 first. Nothing is refused for its value: blocks with
    NaN, infinities or numbers too large for their scale, which ends at 65504 in f16, may become NaN,
    infinite or 0, as in ggml."""
    import numpy as np
    values = np.ascontiguousarray(array, dtype=np.float32)
    columns, (elements, size) = values.shape[-1], _block_size(dtype)
    out = bytearray(values.size // elements * size)
    weights = None if importance is None else np.ascontiguousarray(importance, dtype=np.float32)
    if columns:
        _blocks_encode(out, dtype, values, columns, weights)
    return bytes(out)


def dequantize(data: Any, dtype: str, shape: tuple[int, ...]) -> NDArray[np.float32]:
    """Return the float32 array that blocks represent, with the values of ggml."""
    import numpy as np
    out = np.empty(shape, dtype=np.float32)
    if not out.ndim:
        raise ValueError("a scalar has no columns")
    elements, size = _block_size(dtype)
    if memoryview(data).nbytes != out.size // elements * size:
        raise ValueError(f"{out.size} elements of {dtype} take {out.size // elements * size} bytes, "
                         f"and there are {memoryview(data).nbytes}")
    if out.size:
        _blocks_decode(out, dtype, data, out.shape[-1], None)
    return out
