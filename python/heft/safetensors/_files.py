"""safe_open: the tensors of a file by name, for one framework."""
import json
import os
import tempfile

from .. import _heft
from .._load import load
from . import _frameworks, _serial
from ._errors import SafetensorError, translated
from ._slices import SafeSlice

HEADER_BYTES = 100_000_000
BACKENDS = ("mmap", "pread")


def _text_of(value):
    return value if isinstance(value, str) else json.dumps(value, default=str)


class safe_open:
    """Open a file, or the model in a folder; tensors are read on demand.

    framework: "pt", "np", "tf", "flax", "mlx" or "paddle"; device: where tensors of torch are put.
    backend: "mmap" or "pread"; the results are the same."""

    def __init__(self, filename, framework, device="cpu", *, backend="mmap"):
        self._framework, self._device = _frameworks.named(framework), device
        if backend not in BACKENDS:
            raise SafetensorError(f"backend {backend!r} is invalid: use one of {BACKENDS}")
        _frameworks.check_device(self._framework, device)
        self._path = os.fspath(filename)
        with translated("Error while deserializing header", self._path):
            self._file = _heft.open(self._path)

    def _file_(self):
        if self._file.closed:
            raise SafetensorError("File is closed")
        return self._file

    def __enter__(self):
        self._file_()
        return self

    def __exit__(self, *_):
        self._file.close()

    def keys(self):
        """Return the names of the tensors, sorted."""
        return sorted(self._file_().keys())

    def offset_keys(self):
        """Return the names of the tensors in the order of their bytes."""
        return [tensor.name for tensor in _serial.by_offset(self._file_())]

    def metadata(self):
        """Return the metadata as a dict of str, or None if there are none. Values of other types,
        which other formats have, are written as JSON."""
        with translated("Error while reading metadata"):
            found = self._file_().metadata
        return {key: _text_of(value) for key, value in found.items()} or None

    def _tensor(self, name):
        file = self._file_()
        if not isinstance(name, str):
            raise TypeError(f"names of tensors are str, not {type(name).__name__}")
        if name not in file:
            raise SafetensorError(f"File does not contain tensor {name}")
        return file[name]

    def _bytes(self, tensor):
        data = bytearray(tensor.nbytes)
        tensor.read_into(data)
        return data

    def get_tensor(self, name):
        """Return a copy of a tensor."""
        tensor = self._tensor(name)
        with translated(f"Error while reading {name}", self._path):
            return _frameworks.array_over(tensor, self._bytes(tensor), self._framework,
                                          self._device)

    def get_tensors(self):
        """Return all tensors, read by all processors: a dict in the order of the bytes."""
        names = self.offset_keys()
        with translated("Error while reading", self._path):
            found = self._all()
        return {name: found[name] for name in names}

    def _all(self):
        direct = self._framework if self._framework == "torch" else "numpy"
        found = load(self._path, direct)
        if direct == "torch":
            return {name: _frameworks.moved(t, self._device) for name, t in found.items()}
        return {name: _frameworks.of_numpy(a, self._framework) for name, a in found.items()}

    def get_slice(self, name):
        """Return an object whose [index] reads only the needed part of a tensor."""
        return SafeSlice(self, self._tensor(name))

    def get_strided_slice(self, name, dim, intervals):
        """Return the intervals [(begin, end)] of a dimension, one after the other."""
        tensor = self._tensor(name)
        shape = tensor.shape
        if not 0 <= dim < len(shape):
            raise SafetensorError(f"dimension {dim} of a tensor with {len(shape)} dimensions")
        if not intervals:
            raise SafetensorError("no intervals are given")
        for begin, end in intervals:
            if not 0 <= begin < end <= shape[dim]:
                raise SafetensorError(f"the interval {begin}:{end} is empty or outside of dimension "
                                      f"{dim} of size {shape[dim]}")
        rows = [i for begin, end in intervals for i in range(begin, end)]
        index = (slice(None), ) * dim + (rows, )
        return SafeSlice(self, tensor)[index]


class _safe_open_handle(safe_open):
    """Like safe_open, for an open binary file that can seek."""

    def __init__(self, f, framework, device="cpu"):
        self._framework, self._device = _frameworks.named(framework), device
        _frameworks.check_device(self._framework, device)
        self._source = getattr(f, "buffer", f)
        self._path = getattr(f, "name", None)
        size = self._source.seek(0, os.SEEK_END)
        # A file of holes with the same header: the library checks the header as in any file.
        with tempfile.NamedTemporaryFile(suffix=".safetensors") as holes:
            holes.write(self._header(size))
            holes.truncate(size)
            holes.flush()
            with translated("Error while deserializing header", self._path):
                self._file = _heft.open(holes.name, format="safetensors")

    def _header(self, size):
        head = self._at(0, min(8, size))
        length = int.from_bytes(head, "little")
        if length > HEADER_BYTES:
            raise SafetensorError(f"Error while deserializing header: {length} bytes are too many")
        return head + self._at(8, min(length, max(0, size - 8)))

    def _at(self, offset, size):
        self._source.seek(offset)
        data = b""
        while len(data) < size:
            piece = self._source.read(size - len(data))
            if not piece:
                raise SafetensorError("the file ends too early")
            data = data + piece if data else piece
        return data

    def _bytes(self, tensor):
        return bytearray(self._at(tensor.parts[0]["offset"], tensor.nbytes))

    def _all(self):
        return {name: self.get_tensor(name) for name in self._file_().keys()}

    def get_slice(self, name):
        """Return an object whose [index] takes a part of a tensor, which is read whole."""
        tensor = self._tensor(name)
        rows = {name: (tensor.dtype, tensor.shape, self._bytes(tensor))}
        return SafeSlice(self, _serial.opened(_serial.write(rows, None, None))[name])
