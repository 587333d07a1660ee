"""heft.safetensors.torch: dicts of tensors of torch, and whole modules."""
import collections
import os

import torch

from .. import _arrays
from .._load import load as _load
from .._save import describe as _describe
from . import _dtypes, _files, _frameworks, _serial
from ._errors import SafetensorError as _SafetensorError
from ._errors import translated as _translated

# Element types by name in the file, and bytes of an element, for this version of torch.
_TYPES = {code: getattr(torch, _arrays.TORCH[heft]) for code, heft in _dtypes.HEFT.items()
          if hasattr(torch, _arrays.TORCH.get(heft, ""))}
_SIZE = {dtype: torch.empty(0, dtype=dtype).element_size() for dtype in _TYPES.values()}


# ---- memory of tensors

def _storage(tensor):
    try:
        return tensor.untyped_storage()
    except AttributeError:  # before torch 2.0
        storage = tensor.storage()
        return storage.untyped() if hasattr(storage, "untyped") else storage


def storage_ptr(tensor):
    """Return the address of the first byte of the tensor's storage; 0 if there is none."""
    try:
        return _storage(tensor).data_ptr()
    except NotImplementedError:  # a device without addresses
        return 0


def storage_size(tensor):
    """Return the size of the tensor's storage in bytes."""
    try:
        return _storage(tensor).nbytes()
    except NotImplementedError:
        return tensor.nelement() * tensor.element_size()


def _end_ptr(tensor):
    """Return the address after the last element of a tensor."""
    if not tensor.nelement():
        return tensor.data_ptr()
    last = sum((n - 1) * step for n, step in zip(tensor.shape, tensor.stride()))
    return tensor.data_ptr() + (last + 1) * tensor.element_size()


def _is_complete(tensor):
    """Return true if the tensor covers its storage."""
    return (tensor.data_ptr() == storage_ptr(tensor) and
            tensor.nelement() * tensor.element_size() == storage_size(tensor))


def _overlapping(state_dict, names):
    """Split the names of tensors in one storage into sets whose ranges of bytes overlap."""
    groups, end = [], None
    for begin, stop, name in sorted((state_dict[n].data_ptr(), _end_ptr(state_dict[n]), n)
                                    for n in names):
        if end is None or begin >= end:
            groups.append(set())
            end = stop
        groups[-1].add(name)
        end = max(end, stop)
    return groups


def _find_shared_tensors(state_dict):
    """Return sets of names whose tensors overlap in memory; most have one name."""
    storages = collections.defaultdict(list)
    for name, tensor in state_dict.items():
        at = storage_ptr(tensor), storage_size(tensor)
        if tensor.device.type != "meta" and all(at):
            storages[(str(tensor.device), *at)].append(name)
    return [group for names in storages.values() for group in _overlapping(state_dict, names)]


def _kept(shared, complete, preferred_names, discard_names):
    """Return the first of the most wanted names that cover the storage."""
    for wanted in (complete & preferred_names, complete - discard_names, complete):
        if wanted:
            return min(wanted)
    raise RuntimeError(f"no tensor of {sorted(shared)} covers the memory that they share: a file "
                       "would hold much more, or less, than the model. Clone these tensors first")


def _remove_duplicate_names(state_dict, *, preferred_names=None, discard_names=None):
    """Return {name that is kept: [names of the same memory that are left out]}."""
    preferred, discarded = set(preferred_names or ()), set(discard_names or ())
    removed = {}
    for shared in _find_shared_tensors(state_dict):
        complete = {name for name in shared if _is_complete(state_dict[name])}
        kept = _kept(shared, complete, preferred, discarded)
        if len(shared) > 1:
            removed[kept] = sorted(shared - {kept})
    return removed


# ---- saving

def _check_dict(tensors):
    if not isinstance(tensors, dict):
        raise ValueError(f"Expected a dict of [str, torch.Tensor] but received {type(tensors)}")
    for name, tensor in tensors.items():
        if not isinstance(tensor, torch.Tensor):
            raise ValueError(f"Key `{name}` is invalid, expected torch.Tensor but received "
                             f"{type(tensor)}")
    sparse = [name for name, tensor in tensors.items() if tensor.layout != torch.strided]
    if sparse:
        raise ValueError(f"You are trying to save a sparse tensors: `{sparse}` which this library "
                         "does not support. You can make it a dense tensor before saving with "
                         "`.to_dense()` but be aware this might make a much larger file than "
                         "needed.")
    shared = [sorted(names) for names in _find_shared_tensors(tensors) if len(names) > 1]
    if shared:
        raise RuntimeError(f"tensors share memory: {shared}. A file holds each of them, and after "
                           "loading they are separate: use save_model(), or clone() them first")


def _check_contiguous(name, tensor):
    if not tensor.is_contiguous():
        raise ValueError(f"tensor `{name}` is not contiguous: use .contiguous() first, which "
                         "writes the elements that are shown in their order")


def _tobytes(tensor, name):
    """Return the bytes of a contiguous tensor, little-endian."""
    _check_contiguous(name, tensor)
    return bytes(_describe(tensor)[2])


def _rows(tensors):
    _check_dict(tensors)
    rows = {}
    for name, tensor in tensors.items():
        _check_contiguous(name, tensor)
        try:
            rows[name] = _describe(tensor)
        except (KeyError, TypeError):
            raise _SafetensorError(f"tensor `{name}`: no element type for {tensor.dtype}") from None
    return rows


def save(tensors, metadata=None):
    """Return the bytes of a safetensors file with the tensors."""
    return _serial.write(_rows(tensors), None, metadata)


def save_file(tensors, filename, metadata=None):
    """Write a safetensors file with the tensors, which must be contiguous and not share memory;
    whole or not at all."""
    _serial.write(_rows(tensors), filename, metadata)


def save_model(model, filename, metadata=None, force_contiguous=True):
    """Write the tensors of a module. Of tensors that share memory one is written; the names of the
    others are keys of the metadata, with that name as the value."""
    state = dict(model.state_dict())
    notes = dict(_serial.check_metadata(metadata))
    for kept, names in _remove_duplicate_names(state).items():
        for name in names:
            notes.setdefault(name, kept)
            del state[name]
    if force_contiguous:
        state = {name: tensor.contiguous() for name, tensor in state.items()}
    try:
        save_file(state, filename, metadata=notes or None)
    except ValueError as e:
        hint = "" if force_contiguous else " Or use save_model(..., force_contiguous=True)."
        raise ValueError(f"{e}.{hint}") from None


# ---- loading

def load(data):
    """Return the tensors in the bytes of a file of any format: {name: tensor}."""
    with _serial.opened(data) as file, _translated("Error while deserializing"):
        return {t.name: _arrays.torch(t) for t in _serial.by_offset(file)}


def load_file(filename, device="cpu", *, backend="mmap"):
    """Return the tensors of a file, or of the model in a folder: {name: tensor}."""
    if backend not in _files.BACKENDS:
        raise _SafetensorError(f"backend {backend!r} is invalid: use one of {_files.BACKENDS}")
    _frameworks.check_device("torch", device)
    with _translated("Error while deserializing header", os.fspath(filename)):
        found = _load(filename, "torch")
    return {name: _frameworks.moved(tensor, device) for name, tensor in found.items()}


def _complaint(model, missing, unexpected):
    lines = [f"Error(s) in loading state_dict for {type(model).__name__}:"]
    for title, names in (("Missing", missing), ("Unexpected", unexpected)):
        if names:
            listed = ", ".join(f'"{name}"' for name in sorted(names))
            lines.append(f"    {title} key(s) in state_dict: {listed}")
    return "\n".join(lines)


def load_model(model, filename, strict=True, device="cpu", *, backend="mmap"):
    """Load the tensors of a file into a module; return (missing names, unexpected names).

    Names that save_model() left out are present if the module's tensors share memory, too. With
    strict, missing and unexpected names are a RuntimeError."""
    state = load_file(filename, device=device, backend=backend)
    removed = _remove_duplicate_names(model.state_dict(), preferred_names=state.keys())
    missing, unexpected = model.load_state_dict(state, strict=False)
    missing, unexpected = set(missing), set(unexpected)
    for name in (name for names in removed.values() for name in names):
        if name in missing:
            missing.remove(name)
        else:
            unexpected.add(name)
    if strict and (missing or unexpected):
        raise RuntimeError(_complaint(model, missing, unexpected))
    return missing, sorted(unexpected)
