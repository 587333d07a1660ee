"""Arrays of the frameworks that safetensors knows, imported on first use."""
import importlib

from .. import _arrays
from ._errors import SafetensorError

_NAMES = {"pt": "torch", "torch": "torch", "pytorch": "torch", "np": "numpy", "numpy": "numpy",
          "tf": "tensorflow", "tensorflow": "tensorflow", "flax": "jax", "jax": "jax", "mlx": "mlx",
          "paddle": "paddle"}
# Module and function that make an array of the framework from one of NumPy.
_FROM_NUMPY = {"tensorflow": ("tensorflow", "convert_to_tensor"), "jax": ("jax.numpy", "asarray"),
               "mlx": ("mlx.core", "array"), "paddle": ("paddle", "to_tensor")}


def named(name):
    """Return the framework for a name such as "pt"."""
    if name not in _NAMES:
        raise SafetensorError(f"framework {name!r} is invalid: use one of {sorted(_NAMES)}")
    return _NAMES[name]


def check_device(framework, device):
    """Refuse a device where the framework has none but the processor's memory."""
    if framework != "torch" and str(device) != "cpu":
        raise SafetensorError(f"device {device!r} is invalid: with this framework only \"cpu\" is")
    if framework == "torch":
        torch = importlib.import_module("torch")
        try:
            torch.device(device)
        except RuntimeError as e:
            raise SafetensorError(f"device {device!r} is invalid: {e}") from None


def array_over(tensor, memory, framework, device="cpu"):
    """Return an array of the framework over the writable bytes of a whole tensor."""
    if framework == "torch":
        return moved(_arrays.torch_over(tensor, memory), device)
    return of_numpy(_arrays.numpy_over(tensor, memory), framework)


def moved(value, device):
    """Return a tensor of torch on the device."""
    return value if str(device) == "cpu" else value.to(device)


def of_numpy(array, framework):
    """Return an array of a framework other than torch."""
    if framework == "numpy":
        return array
    module, function = _FROM_NUMPY[framework]
    return getattr(importlib.import_module(module), function)(array)
