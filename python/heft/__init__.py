"""Model weights in every format: open, read, write, verify, convert.

heft.open(path) gives a mapping from names to tensors, which are read on demand. The commands of Heft
are functions: convert, verify, sign, sbom, doctor, scan, diff, hash, stats, edit, delta, apply,
split, merge, blend, append, info."""
from collections.abc import Mapping

from ._heft import (ArgumentError, CancelledError, ChecksumError, Error, File, FormatError, IOError,
                    LimitError, LossError, NoMemoryError, NotFoundError, Tensor, UnsupportedError,
                    __version__, open)
from . import _commands
from ._blocks import dequantize, quantize
from ._commands import *
from ._exceptions import LossWarning
from ._load import load
from ._lora import merge_lora
from ._params import Parameter, ParamStats, ParamStore
from ._save import save
from ._writer import Part, Writer

Mapping.register(File)

__all__ = [
    "ArgumentError", "CancelledError", "ChecksumError", "Error", "File", "FormatError", "IOError",
    "LimitError", "LossError", "NoMemoryError", "NotFoundError", "Tensor", "UnsupportedError",
    "LossWarning", "ParamStats", "ParamStore", "Parameter", "Part", "Writer", "__version__",
    "dequantize", "load", "merge_lora", "open", "quantize", "save"
]
__all__ += _commands.__all__
