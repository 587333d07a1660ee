#!/usr/bin/env python3
"""check_torch.py COMMANDS SHARED GENERATOR...: compare heft with PyTorch.

Names, shapes, element types and bytes must be equal for samples that PyTorch loads, for files that
PyTorch writes here, and for files next to the checkout. Skipped without PyTorch. TAP on stdout."""
import hashlib
import json
import pathlib
import pickle
import subprocess
import sys
import tempfile
import types
import warnings

from commands import Commands

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import tap  # noqa: E402

FOLDERS = ["burn-store", "candle", "facenet", "lpips", "taesd", "silero-vad", "burn"]
SUFFIXES = {".pt", ".pth", ".jit"}
BROKEN = {"broken.pt"}


class SafeUnpickler(pickle.Unpickler):
    """Unpickle untrusted files: call only functions that weights need."""

    MODULES = {"torch", "torch._utils", "torch._tensor", "torch.storage", "torch.nn.parameter"}

    def find_class(self, module, name):
        if (module, name) != ("collections", "OrderedDict"):
            if module not in self.MODULES or name in {"load", "_load_from_bytes"} or "." in name:
                raise pickle.UnpicklingError(f"{module}.{name}")
        return super().find_class(module, name)


SAFE_PICKLE = types.SimpleNamespace(Unpickler=SafeUnpickler,
                                    load=lambda f, **more: SafeUnpickler(f, **more).load())


def heft(*args):
    p = HEFT.run(*args, text=False)
    if p.returncode:
        raise RuntimeError(
            f"heft {args[0]} ended with {p.returncode}: {p.stderr.decode(errors='replace')[:200]}")
    return p.stdout


def names(torch):
    short = {
        "float32": "f32", "float64": "f64", "float16": "f16", "bfloat16": "bf16", "int64": "i64",
        "int32": "i32", "int16": "i16", "int8": "i8", "uint8": "u8", "bool": "bool",
        "complex64": "c64", "complex128": "c128", "qint8": "i8", "quint8": "u8", "qint32": "i32"
    }
    return {getattr(torch, name): own for name, own in short.items()}


def flatten(torch, value, path, found):
    if isinstance(value, torch.Tensor):
        found[path or "tensor"] = value
    elif isinstance(value, dict):
        if path and "state" in value and ("param_groups" in value or path.startswith("optim")):
            return  # heft lists optimizer states separately
        for key, item in value.items():
            flatten(torch, item, f"{path}.{key}" if path else str(key), found)
    elif isinstance(value, (list, tuple)):
        for i, item in enumerate(value):
            flatten(torch, item, f"{path}.{i}" if path else str(i), found)


def raw(torch, t):
    t = t.detach()
    if t.is_quantized:
        t = t.int_repr()
    t = t.contiguous()
    if t.dtype == torch.bfloat16:
        t = t.view(torch.int16)
    return t.numpy().tobytes()


def load(torch, path):
    """Return {name: tensor} and True if heft must list no other tensors (false for TorchScript)."""
    if path.suffix == ".jit":
        return dict(torch.jit.load(path, map_location="cpu").state_dict()), False
    found = {}
    flatten(torch, torch.load(path, map_location="cpu", pickle_module=SAFE_PICKLE), "", found)
    return found, True


def compare(torch, path, known=None):
    want, is_all = (known, True) if known else load(torch, path)
    got = {t["name"]: t for t in json.loads(heft("ls", "--json", str(path)))["tensors"]}
    if is_all and list(got) != list(want):
        yield f"the tensors are {list(got)}, not {list(want)}"
    type_names = names(torch)
    for name, tensor in want.items():
        t = got.get(name)
        if t is None:
            yield f"there is no {name}"
            continue
        if t["shape"] != list(tensor.shape) or t["dtype"] != type_names[tensor.dtype]:
            want_type = f"{type_names[tensor.dtype]} {list(tensor.shape)}"
            yield f"{name} is {t['dtype']} {t['shape']}, not {want_type}"
        data, own = heft("cat", str(path), name), raw(torch, tensor)
        if data != own:
            hashes = [hashlib.sha256(b).hexdigest() for b in (data, own)]
            yield f"{name}: the bytes have SHA-256 {hashes[0]}, not {hashes[1]}"


def views(torch):
    """Yield (name, value) pairs for torch.save()."""
    x = torch.arange(120, dtype=torch.float32).reshape(2, 3, 4, 5)
    every = {
        str(t): torch.arange(12).to(t).reshape(3, 4) for t in names(torch) if "q" not in str(t)
    }
    tied = torch.arange(6.0)
    yield "types", every
    yield "views", {
        "whole": x, "transposed": x.transpose(1, 3), "permuted": x.permute(3, 0, 2, 1),
        "every second": x[:, ::2], "inside": x[1, 1:, 2:, 3], "one row": x[0, 0, 0].expand(7, 5),
        "last": x[:, :, :, -1], "channels last": x.contiguous(memory_format=torch.channels_last),
        "none": x[:, :0], "scalar": x[1, 2, 3, 4]
    }
    yield "tied", {"a": tied, "b": tied, "c": tied[2:], "d": {"a": tied}}
    yield "parameters", {
        "p": torch.nn.Parameter(x), "q": torch.nn.Parameter(x[0], requires_grad=False)
    }
    yield "quantized", {"q": torch.quantize_per_tensor(x, 0.5, 3, torch.quint8)}
    model = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4),
                                torch.nn.Linear(5, 6))
    yield "state", model.state_dict()
    optimizer = torch.optim.Adam(model.parameters())
    sum(p.sum() for p in model.parameters()).backward()
    optimizer.step()
    yield "checkpoint", {
        "epoch": 3, "model": model.state_dict(), "optimizer": optimizer.state_dict(),
        "list": [x, (x[0], 1)]
    }


def written(torch, folder):
    for name, value in views(torch):
        for protocol in (2, 3, 4, 5):
            for is_zip in (True, False):
                path = folder / f"{name} {'zip' if is_zip else 'legacy'} {protocol}.pt"
                torch.save(value, path, pickle_protocol=protocol,
                           _use_new_zipfile_serialization=is_zip)
                yield path
    path = folder / "script.jit"
    torch.jit.script(
        torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(),
                            torch.nn.Linear(4, 2))).save(str(path))
    yield path


def modules(torch, folder):
    """Save whole modules; yield (path, state_dict())."""
    model = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4),
                                torch.nn.TransformerEncoderLayer(8, 2), torch.nn.LSTM(4, 5, 2),
                                torch.nn.Embedding(5, 3))
    for is_zip in (True, False):
        path = folder / f"module {'zip' if is_zip else 'legacy'}.pt"
        torch.save(model, path, _use_new_zipfile_serialization=is_zip)
        yield path, model.state_dict()


def generated(generators, folder):
    for generator in generators:
        subprocess.run([sys.executable, generator, folder], check=True)
    for facts in sorted(folder.glob("*/good/*.json")):
        if json.loads(facts.read_text()).get("judge") == "torch":
            yield facts.with_suffix("")


def main():
    global HEFT
    program, shared, *generators = sys.argv[1:]
    HEFT = Commands(program)
    try:
        import torch
    except ImportError:
        print("1..0 # SKIP python3-torch is not installed")
        return 0
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        found = [p for d in FOLDERS for p in sorted((pathlib.Path(shared) / "data" / d).rglob("*"))]
        paths = [p for p in found if p.suffix in SUFFIXES and p.name not in BROKEN]
        paths += [*written(torch, folder), *generated(generators, folder / "samples")]
        results = []
        for path, known in [*((p, None) for p in paths), *modules(torch, folder)]:
            try:
                results.append((path.name, list(compare(torch, path, known))))
            except Exception as e:
                results.append((path.name, [f"{type(e).__name__}: {e}"]))
        return tap.report(results)


sys.exit(main())
