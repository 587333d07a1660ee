"""Elements of tensors by an index of NumPy, of which only the needed bytes are read."""
import operator


def _is_basic(item):
    return isinstance(item, slice) or item is Ellipsis or item is None or (
        hasattr(item, "__index__") and not isinstance(item, bool) and not getattr(item, "shape", ())
        and getattr(item, "dtype", None) != bool)


def _expanded(index, rank):
    """Return the items with whole dimensions in place of an ellipsis and at the end."""
    used = sum(item is not Ellipsis and item is not None for item in index)
    rest = [slice(None)] * (rank - used)
    at = next((i for i, item in enumerate(index) if item is Ellipsis), len(index))
    return list(index[:at]) + rest + list(index[at + 1:])


def _axis(item, size):
    """Return (start, count, step) of an integer or a slice."""
    if not isinstance(item, slice):
        return operator.index(item) % size, 1, 1
    chosen = range(size)[item]
    return (chosen.start, len(chosen), chosen.step) if len(chosen) else (0, 0, 1)


def _read(tensor, axes, shape, dtype):
    import numpy as np
    array = np.empty(shape, dtype)
    if array.size:
        tensor._read_slice(array.reshape(-1).view(np.uint8), axes)
    return array


def _basic(tensor, items, shape, dtype):
    axes = [_axis(item, size) for item, size in zip((i for i in items if i is not None),
                                                    tensor.shape)]
    return _read(tensor, axes, shape, dtype)


def _list_of(items, shape):
    """Return (dimension, indices) if the only other item is a list of integers."""
    import numpy as np
    lists = [(i, np.asarray(item)) for i, item in enumerate(items) if not _is_basic(item)]
    if len(lists) != 1 or any(item is None for item in items):
        return None
    dimension, indices = lists[0]
    if indices.ndim != 1 or indices.dtype.kind not in "iu" or not indices.size:
        return None
    return dimension, indices.astype(np.int64) % shape[dimension]


def _listed(tensor, items, dimension, indices, dtype):
    """Read the lowest to the highest index of the list, and select from these."""
    lowest = int(indices.min())
    covered = slice(lowest, int(indices.max()) + 1)
    axes = [_axis(covered if i == dimension else item, size)
            for i, (item, size) in enumerate(zip(items, tensor.shape))]
    part = _read(tensor, axes, [count for _, count, _ in axes], dtype)
    index = [slice(None) if isinstance(item, slice) else 0 for item in items]
    index[dimension] = indices - lowest
    return part[tuple(index)]


def _rows(tensor, items, indices, shape, dtype):
    """Read the rows of the list, which follow each other in the result."""
    import numpy as np
    array = np.empty(shape, dtype)
    axes = [_axis(item, size) for item, size in zip(items[1:], tensor.shape[1:])]
    runs = np.split(indices, np.flatnonzero(np.diff(indices) != 1) + 1)
    at = 0
    for run in runs if array.size else []:
        tensor._read_slice(array[at:at + run.size].reshape(-1).view(np.uint8),
                           [(int(run[0]), run.size, 1)] + axes)
        at += run.size
    return array


def take(tensor, index, dtype):
    """Return a copy of the elements of an index; dtype: a type of NumPy with as many bytes."""
    import numpy as np
    index = index if isinstance(index, tuple) else (index, )
    # NumPy checks the index, and computes the shape, with an array that has no memory.
    shape = np.broadcast_to(np.empty((), "u1"), tensor.shape)[index].shape
    items = _expanded(index, len(tensor.shape))
    if all(map(_is_basic, items)):
        array = _basic(tensor, items, shape, dtype)
        return array if any(item is Ellipsis for item in index) else array[()]
    listed = _list_of(items, tensor.shape)
    if listed and listed[0] == 0:
        return _rows(tensor, items, listed[1], shape, dtype)
    if listed:
        return _listed(tensor, items, *listed, dtype)
    whole = [(0, size, 1) for size in tensor.shape]
    return _read(tensor, whole, tensor.shape, dtype)[index]
