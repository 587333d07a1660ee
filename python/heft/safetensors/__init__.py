"""The interface of the package safetensors, for files of every format that Heft reads.

Replace `import safetensors` by `import heft.safetensors`, and `safetensors.torch` or `.numpy` by
`heft.safetensors.torch` or `.numpy`. What is written is equal byte for byte."""
from .. import __version__
from ._errors import SafetensorError
from ._files import _safe_open_handle, safe_open
from ._serial import TensorSpec, deserialize, serialize, serialize_file

__all__ = ["SafetensorError", "TensorSpec", "__version__", "deserialize", "safe_open", "serialize",
           "serialize_file"]
