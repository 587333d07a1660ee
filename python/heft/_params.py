"""heft.ParamStore: parameters loaded on first use and evicted under a memory budget."""
from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterable
from typing import Any

from . import _arrays, _heft
from ._exceptions import ArgumentError, NotFoundError


@dataclasses.dataclass(frozen=True)
class ParamStats:
    """Counts of a store; resident and peak are bytes in memory, now and at most."""
    hits: int
    loads: int
    evictions: int
    stalls: int
    bytes_loaded: int
    resident: int
    peak: int


class Parameter:
    """A parameter lent by a store, and kept in memory until release(), the end of the `with` block,
    or the end of the last array over its memory."""

    def __init__(self, name, loan):
        self.name, self._loan = name, loan
        self.dtype, self.shape = loan.dtype, loan.shape

    def numpy(self) -> Any:
        """Return a read-only array in the store's memory."""
        return _arrays.numpy_over(self, memoryview(self._loan))

    def __enter__(self) -> Any:
        return self.numpy()

    def __exit__(self, *_: Any) -> None:
        self.release()

    def release(self) -> None:
        """Return the parameter to the store, which may evict it when no array is left."""
        self._loan.release()

    def __repr__(self):
        return f"<heft.Parameter {self.name!r}: {self.dtype} {self.shape}>"


def _error(cls, status, text):
    error = cls(text)
    error.status = status
    return error


class ParamStore:
    """Parameters of models, loaded on first use and evicted when their memory exceeds a budget.

    budget: bytes; 0: no limit. Lent parameters are never evicted, and count. copy: read into memory
    of the store rather than lend mapped pages. verify: compare digests on loading. Only dense
    tensors with ASCII names are parameters. All methods may be called by several threads."""

    def __init__(self, budget: int = 0, *, copy: bool = False, verify: bool = True):
        if budget < 0:
            raise ValueError(f"a budget of {budget} bytes")
        self._store = _heft._ParamStore(budget, copy, verify)
        self._models = []

    def add(self, file: str | os.PathLike[str] | _heft.File) -> int:
        """Add the model in a file or folder: a path, or an open heft.File, which is opened again.
        Return the number of the model."""
        path = file.path if isinstance(file, _heft.File) else os.fspath(file)
        space = self._store.add(path)
        self._models.append(space)
        return self._models.index(space)

    def _key(self, name, model):
        spaces = list(self._models) if model is None else [self._models[model]]
        keys = [key for key in (self._store.find(space, name) for space in spaces) if key]
        if not keys:
            raise _error(NotFoundError, "not-found", f"there is no parameter {name!r}")
        if len(keys) > 1:
            raise _error(ArgumentError, "argument",
                         f"{len(keys)} models have a parameter {name!r}: give the model")
        return keys[0]

    def acquire(self, name: str, *, model: int | None = None,
                dtype: str | None = None) -> Parameter:
        """Load a parameter if necessary and lend it: `with store.acquire(name) as array`.

        model: number of the model, if several have the name. dtype: "f32" for a copy of that type,
        made once; None as stored."""
        if dtype not in (None, "f32"):
            raise ValueError(f"dtype must be 'f32' or None, not {dtype!r}")
        return Parameter(name, self._store.acquire(self._key(name, model), dtype == "f32"))

    def prefetch(self, names: Iterable[str], *, model: int | None = None) -> None:
        """Load parameters in the background, in this order, as far as the budget allows."""
        self._store.prefetch(tuple(self._key(name, model) for name in names))

    def names(self) -> list[str]:
        """Return the names of all parameters, model by model."""
        return self._store.names()

    def statistics(self) -> ParamStats:
        """Return the counts of the store, a ParamStats."""
        return ParamStats(*self._store.statistics())

    def close(self) -> None:
        """Close the store. Its memory is freed when the last lent parameter is released."""
        self._store.close()

    def __enter__(self) -> ParamStore:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()
