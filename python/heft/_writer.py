"""heft.Writer: a file written tensor by tensor, while a program runs."""
from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

from . import _heft
from ._save import NO_SYNC, REPLACE, SYNC, describe, warn_of_loss


class Part:
    """A declared part of a tensor, to which bytes are written."""

    __slots__ = ("_writer", "number", "role")

    def __init__(self, writer, number, role):
        self._writer, self.number, self.role = writer, number, role

    def write(self, data: Any) -> None:
        """Write further elements: an array of the declared element type, or bytes."""
        self._writer.write(self, data)

    def __repr__(self):
        return f"<heft.Part {self.number}: {self.role!r}>"


def _bytes_of(data):
    if isinstance(data, (bytes, bytearray)):
        return data
    if isinstance(data, memoryview) and data.contiguous:
        return data.cast("B") if data.nbytes else b""
    return describe(data)[2]


class Writer:
    """Writes a file tensor by tensor; the file appears whole when finish() returns, or not at all.

    Declare tensors and set metadata, call begin(), and write the parts in the order of declaration,
    each in any number of pieces. Formats that grow (zTensor) accept further tensors and metadata
    after begin(), too. As a context manager the writer calls finish() at the end, or discard() after
    an exception.

    The arguments are those of heft.save. A writer serves a single thread at a time."""

    def __init__(self, path: str | os.PathLike[str], *, format: str | None = None,
                 metadata: Mapping[str, Any] | None = None, version: str | None = None,
                 digest: str | None = None, compress: str | None = None, level: int = 0,
                 align: int = 0, allow_loss: bool = False, strict: bool = False,
                 replace: bool = True, sync: bool | None = None):
        if compress not in (None, "zstd"):
            raise ValueError(f"compress must be 'zstd' or None, not {compress!r}")
        flags = (REPLACE if replace else 0) | {None: 0, True: SYNC, False: NO_SYNC}[sync]
        self._writer = _heft._Writer(path, format, version, digest, compress, align, level,
                                     allow_loss, strict, flags, warn_of_loss)
        self._begun = False
        try:
            for key, value in (metadata or {}).items():
                self.set(key, value)
        except BaseException:
            self.discard()
            raise

    def set(self, key: str, value: str | bytes | int | float | bool) -> None:
        """Add a value of the metadata: str, bytes, int, float or bool."""
        self._writer.set(key, value)

    def declare(self, name: str, dtype: str | None, shape: Iterable[int], *,
                layout: str | None = None,
                parts: Iterable[tuple[str, str | None, int]] | None = None,
                compress: str | None = None, level: int = 0, digest: str | None = None) -> Any:
        """Declare a tensor. Return its Part, or a list of them for a layout with several.

        dtype: "f32"; None only with a layout of your own. shape: dimensions. layout: "dense",
        "sparse_csr", "sparse_coo" or your own; parts: [(role, dtype, number of elements)], in the
        order of writing: values, indices, indptr for sparse_csr; values, coords for sparse_coo."""
        rows = None if parts is None else tuple((role, t, n) for role, t, n in parts)
        first = self._writer.declare(name, dtype, tuple(shape), layout, rows, compress, level,
                                     digest)
        if rows is None:
            return Part(self, first, "data")
        return [Part(self, first + i, row[0]) for i, row in enumerate(rows)]

    def begin(self) -> None:
        """Write the header: warns of losses, or raises LossError before a byte is written."""
        self._writer.begin()
        self._begun = True

    def write(self, part: Part, data: Any) -> None:
        """Write further elements of a part: an array of its element type, or bytes."""
        self._writer.write(part.number, _bytes_of(data))

    def append(self, name: str, array: Any, *, compress: str | None = None, level: int = 0,
               digest: str | None = None) -> None:
        """Declare a dense tensor and write it: after begin(), in a format that grows."""
        dtype, shape, data = describe(array)
        part = self.declare(name, dtype, shape, compress=compress, level=level, digest=digest)
        self.write(part, data)

    def finish(self) -> None:
        """Complete the file. Calls begin() if it was not called."""
        if not self._begun:
            self.begin()
        self._writer.finish()

    def discard(self) -> None:
        """Give up the file: no file appears."""
        self._writer.discard()

    def __enter__(self) -> Writer:
        return self

    def __exit__(self, kind: Any, *_: Any) -> None:
        if kind is None:
            self.finish()
        else:
            self.discard()
