"""get_slice(): parts of a tensor by index, of which only the needed bytes are read."""
import importlib
import operator

from .. import _arrays
from . import _dtypes, _frameworks
from ._errors import SafetensorError, translated

_WORDS = {1: "u1", 2: "<u2", 4: "<u4", 8: "<u8", 16: "<c16"}  # stand-ins of an element's size


def _shown(item):
    if not isinstance(item, slice):
        return "..." if item is Ellipsis else str(item)
    start, stop = ("" if v is None else str(v) for v in (item.start, item.stop))
    return f"{start}:{stop}" + (f":{item.step}" if item.step not in (None, 1) else "")


def _dimensions(index, shape):
    """Yield (dimension, item) for the items of an index, from both sides of an ellipsis."""
    rest = len(shape) - (len(index) - sum(item is Ellipsis for item in index))
    at = 0
    for item in index:
        if item is not Ellipsis:
            yield at, item
        at += rest if item is Ellipsis else 1


def _check(index, shape):
    """Raise SafetensorError for an index that the tensor has not."""
    shown = f"Error during slicing [{', '.join(map(_shown, index))}] with shape {list(shape)}"
    if sum(item is Ellipsis for item in index) > 1:
        raise SafetensorError(f"{shown}: more than one ellipsis")
    if sum(item is not Ellipsis for item in index) > len(shape):
        raise SafetensorError(f"{shown}: more slicing indexes than dimensions in tensor")
    for dimension, item in _dimensions(index, shape):
        if isinstance(item, slice):
            if item.step is not None and operator.index(item.step) < 1:
                raise SafetensorError(f"{shown}: the step {item.step} is not positive")
        elif item is None or isinstance(item, bool):
            raise SafetensorError(f"{shown}: {item} is no index")
        elif hasattr(item, "__index__") and not getattr(item, "shape", ()):
            _check_integer(operator.index(item), dimension, shape[dimension], shown)


def _check_integer(item, dimension, size, shown):
    if item < -size:
        raise SafetensorError(f"Invalid index {item} for dimension {dimension} of size {size}")
    if item >= size:
        raise SafetensorError(f"{shown}: index {item} out of bounds for tensor dimension "
                              f"#{dimension} of size {size}")


def _plain(item):
    """Return an index that NumPy takes."""
    if isinstance(item, slice):
        return slice(*(None if v is None else operator.index(v)
                       for v in (item.start, item.stop, item.step)))
    if item is Ellipsis or isinstance(item, int):
        return item
    import numpy as np
    if hasattr(item, "__index__") and not getattr(item, "shape", ()):
        return operator.index(item)
    array = np.asarray(item.tolist() if hasattr(item, "tolist") else item)
    return array.astype(np.intp) if isinstance(item, list) and not array.size else array


def _taken(tensor, index, dtype):
    try:
        return _arrays.take(tensor, tuple(_plain(item) for item in index), dtype)
    except (IndexError, TypeError, ValueError) as e:
        shape = list(tensor.shape)
        raise SafetensorError(f"Error during slicing with shape {shape}: {e}") from e


def taken(tensor, index, framework, device):
    """Return the elements of an index as an array of the framework."""
    import numpy as np
    index = index if isinstance(index, tuple) else (index, )
    _check(index, tensor.shape)
    if framework != "torch":
        dtype = _arrays._numpy_dtype(tensor, tensor.dtype)
        return _frameworks.of_numpy(np.asarray(_taken(tensor, index, dtype)), framework)
    torch = importlib.import_module("torch")
    dtype = getattr(torch, _arrays.TORCH.get(tensor.dtype, ""), None)
    if dtype is None:
        raise SafetensorError(f"this version of torch has no element type for {tensor.dtype}")
    words = _WORDS[torch.empty(0, dtype=dtype).element_size()]
    array = np.asarray(_taken(tensor, index, words))
    if not array.size:
        return _frameworks.moved(torch.empty(array.shape, dtype=dtype), device)
    flat = torch.from_numpy(array.reshape(-1).view(np.uint8)).view(dtype)
    return _frameworks.moved(flat.reshape(array.shape), device)


class SafeSlice:
    """A tensor of a file, to be indexed by integers, slices, an ellipsis and lists."""

    def __init__(self, owner, tensor):
        self._owner, self._tensor = owner, tensor

    def get_shape(self):
        """Return the dimensions, a list."""
        self._owner._file_()
        return list(self._tensor.shape)

    def get_dtype(self):
        """Return the name of the element type, "F32"."""
        self._owner._file_()
        return _dtypes.code_of(self._tensor)

    def __getitem__(self, index):
        self._owner._file_()
        with translated("Error during slicing"):
            return taken(self._tensor, index, self._owner._framework, self._owner._device)
