#!/usr/bin/env python3
"""check_torch.py COMMANDS SHARED GENERATOR...: compare Heft with PyTorch.

Names, shapes, element types and bytes must be equal for samples that PyTorch loads, for files that
PyTorch writes here, and for files next to the checkout. Skipped without PyTorch. TAP on stdout."""
import functools
import hashlib
import itertools
import json
import pathlib
import pickle
import pickletools
import struct
import subprocess
import sys
import tempfile
import types
import warnings
import zipfile

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
            return  # Heft lists optimizer states separately
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
    """Return {name: tensor} and True if Heft must list no other tensors (false for TorchScript)."""
    if path.suffix == ".jit":
        return dict(torch.jit.load(path, map_location="cpu").state_dict()), False
    found = {}
    flatten(torch, torch.load(path, map_location="cpu", pickle_module=SAFE_PICKLE), "", found)
    return found, True


def compare(torch, path, known=None):
    want, is_all = (known, True) if known else load(torch, path)
    listed = json.loads(heft("ls", "--raw-tensors", "--json", str(path)))
    got = {t["name"]: t for t in listed["tensors"]}
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
        data, own = heft("cat", "--raw-tensors", str(path), name), raw(torch, tensor)
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


def same(torch, a, b):
    """Return true for equal tensors, of any layout."""
    if a.dtype != b.dtype or a.shape != b.shape or a.layout != b.layout:
        return False
    if a.is_sparse:
        a, b = a.coalesce(), b.coalesce()
        return torch.equal(a.indices(), b.indices()) and torch.equal(a.values(), b.values())
    return raw(torch, a) == raw(torch, b)


def members(path):
    """Return the offset of the data of each member of a zip archive, and its content."""
    with zipfile.ZipFile(path) as z:
        if z.testzip():
            raise ValueError(f"{z.testzip()}: wrong CRC-32")
        data = path.read_bytes()
        for m in z.infolist():
            name, extra = struct.unpack_from("<HH", data, m.header_offset + 26)
            yield m.filename, m.header_offset + 30 + name + extra, z.read(m)


def rewritten(torch, path, weights_only):
    """Convert a file to .pt, and compare what torch.load() makes of both."""
    out = path.with_name("rewritten.pt")
    heft("convert", "--force", str(path), str(out))
    own = dict((name, (at, data)) for name, at, data in members(out))
    if misplaced := [n for n, (at, _) in own.items() if "/data/" in n and at % 64]:
        yield f"not at multiples of 64: {misplaced}"
    for opcode, argument, _ in pickletools.genops(own["archive/data.pkl"][1]):
        if opcode.proto > 2:
            yield f"the pickle has {opcode.name} {argument}"
    got = torch.load(out, weights_only=weights_only)
    want = {}
    flatten(torch, torch.load(path), "", want)
    if list(got) != list(want):
        yield f"the tensors are {list(got)}, not {list(want)}"
    for name, tensor in want.items():
        if not same(torch, got[name], tensor):
            yield f"{name} is {got[name]}, not {tensor}"
    yield from shared(want, got)


def shared(want, got):
    """Compare which tensors share a storage with an equal view of it."""
    dense = [n for n, t in want.items() if not t.is_sparse and t.numel()]

    def key(t):
        return (t.storage().data_ptr(), t.storage_offset(), t.stride(), t.shape)

    for a, b in itertools.combinations(dense, 2):
        is_shared = got[a].storage().data_ptr() == got[b].storage().data_ptr()
        if key(want[a]) == key(want[b]) and not is_shared:
            yield f"{a} and {b} no longer share a storage"
        if want[a].storage().data_ptr() != want[b].storage().data_ptr() and is_shared:
            yield f"{a} and {b} share a storage"


def kinds(torch, folder):
    """Yield (title, differences) of values that are no plain tensors, beside one that is."""
    dense = torch.tensor([[0.0, 2, 0], [3, 0, 0], [0, 0, 5]])
    z = torch.tensor([1 + 2j, 3 - 4j, 5j])
    values = {"csr": (dense.to_sparse_csr(), dense), "coo": (dense.to_sparse(), dense),
              "conjugate": (z.conj(), None), "negative": (z.conj().imag, None),
              "parameter": (torch.nn.Parameter(dense), dense),
              "meta": (torch.empty(3, device="meta"), False)}
    for name, (value, want) in values.items():
        path, out = folder / f"{name}.pt", folder / f"{name}.npz"
        torch.save({"value": value, "w": torch.ones(2)}, path)
        if want is None: # this PyTorch stores no bit for it
            want = torch.load(path)["value"]
        dense_too = ["--densify", "*"] if name in ("csr", "coo") else []
        heft("convert", "--force", *dense_too, str(path), str(out))
        with zipfile.ZipFile(out) as archive:
            found = {n: archive.read(n) for n in archive.namelist()}
        wrong = [] if found["w.npy"].endswith(raw(torch, torch.ones(2))) else ["w differs"]
        if want is False:
            wrong += ["value is there"] if "value.npy" in found else []
        elif not found["value.npy"].endswith(raw(torch, want)):
            wrong.append("value differs")
        yield f"read: {name}", wrong


def conversions(torch, folder):
    """Yield (title, differences) of files that Heft writes."""
    for name, value in views(torch):
        path = folder / f"{name}.pt"
        if name != "checkpoint":
            torch.save(value, path)
            yield f"written: {name}", list(rewritten(torch, path, name != "quantized"))
    coo = torch.sparse_coo_tensor([[0, 1, 1], [2, 0, 2]], [3.0, 4.0, 5.0], (2, 3))
    path = folder / "sparse.pt"
    torch.save({"coo": coo, "w": torch.ones(2)}, path)
    yield "written: sparse", list(rewritten(torch, path, True))
    yield "decoded", list(decoded(torch, folder))
    yield "written: settings", list(settings(torch, folder))
    yield "written: shards", list(sharded(torch, folder))
    yield "written: types without a storage class", list(untyped(folder))


def decoded(torch, folder):
    """--dequantize writes what dequantize() returns: for each type, per tensor and per channel."""
    x = torch.randn(5, 7, 6)
    scales = {axis: torch.rand(x.shape[axis]) / 8 + 0.05 for axis in range(3)}
    want = {}
    for kind in (torch.qint8, torch.quint8, torch.qint32):
        want[f"{kind}"] = torch.quantize_per_tensor(x, 0.07, 3, kind)
        for axis in scales if kind != torch.qint32 else ():
            zeros = torch.arange(x.shape[axis]) - (3 if kind == torch.qint8 else 0)
            want[f"{kind}.{axis}"] = torch.quantize_per_channel(x, scales[axis], zeros, axis, kind)
    four = torch.randn(9, 300)
    of_rows = [torch.rand(9) / 8 + 0.05, torch.rand(9) * 15]
    want["four"] = torch.quantize_per_channel(four, *of_rows, 0, torch.quint4x2)
    path, out = folder / "quantised.pt", folder / "decoded.pt"
    torch.save(want, path)
    heft("convert", "--force", "--dequantize", str(path), str(out))
    got = torch.load(out)
    if set(got) != set(want):
        yield f"the tensors are {list(got)}"
    for name in set(got) & set(want):
        if not torch.equal(got[name], want[name].dequantize()):
            yield f"{name} is {got[name]}, not {want[name].dequantize()}"


def settings(torch, folder):
    """Metadata is a dictionary beside the tensors when asked for."""
    path, out = folder / "state.pt", folder / "settings.pt"
    torch.save({"w": torch.ones(2)}, path)
    values = ["--set", "rate=0.5", "--set", "epoch:u64=18446744073709551615", "--set", "least=-7",
              "--set", "list:[i32]=[1,200,70000,-70000]", "--set", "none:null=", "--set", "on=true",
              "--set", "name=caf\u00e9"]
    heft("convert", "--force", "--format-version", "checkpoint", *values, str(path), str(out))
    want = {"rate": 0.5, "epoch": 2**64 - 1, "least": -7, "list": [1, 200, 70000, -70000],
            "none": None, "on": True, "name": "caf\u00e9"}
    got = torch.load(out)["__metadata__"]
    if list(got.items()) != list(want.items()):
        yield f"the settings are {got}"
    again = folder / "again.pt"
    heft("convert", "--force", str(out), str(again))
    if again.read_bytes() != out.read_bytes():
        yield "a second conversion writes other bytes"
    deep = functools.reduce(lambda inner, _: [inner], range(100), 5)
    torch.save({"w": torch.ones(2), "__metadata__": {"deep": deep, "on": True}}, path)
    heft("convert", "--force", "--format-version", "checkpoint", str(path), str(out))
    if torch.load(out)["__metadata__"] != {"deep": deep, "on": True}:
        yield "deep settings are others"


def sharded(torch, folder):
    """Shards have the names that transformers expects, and the index says where a tensor is."""
    tied = torch.arange(300.0)
    value = {"a": torch.rand(20, 30), "b": tied, "c": torch.rand(700), "d": tied,
             "e": torch.rand(3)}
    path, out = folder / "whole.pt", folder / "shards"
    torch.save(value, path)
    heft("split", "--max-size", "3000", str(path), str(out))
    index = json.loads((out / "pytorch_model.bin.index.json").read_text())
    files = sorted(p.name for p in out.glob("*.bin"))
    count = len(files)
    if count < 2 or files != [f"pytorch_model-{i + 1:05}-of-{count:05}.bin" for i in range(count)]:
        yield f"the shards are {files}"
    loaded = {name: torch.load(out / name, weights_only=True) for name in files}
    found = {n: name for name, tensors in loaded.items() for n in tensors}
    if index["weight_map"] != found or set(found) != set(value):
        yield f"the index is {index}, the shards have {found}"
    if found["b"] != found["d"]:
        yield "tied tensors are in different shards"
    for name, tensor in value.items():
        if not torch.equal(loaded[found[name]][name], tensor):
            yield f"{name} differs"


def untyped(folder):
    """A type that this PyTorch does not know: the pickle names it, and the bytes are the same."""
    for name, kind in [("float8_e4m3fn", "F8_E4M3"), ("float8_e5m2", "F8_E5M2"), ("uint16", "U16"),
                       ("uint32", "U32"), ("uint64", "U64")]:
        data = bytes(range(16))
        shape = [16 * 8 // int("".join(c for c in kind[1:].split("_")[0] if c.isdigit()))]
        entry = {"dtype": kind, "shape": shape, "data_offsets": [0, 16]}
        header = json.dumps({"w": entry}).encode()
        source, out = folder / "untyped.safetensors", folder / "untyped.pt"
        source.write_bytes(struct.pack("<Q", len(header)) + header + data)
        heft("convert", "--force", str(source), str(out))
        found = {n: content for n, _, content in members(out)}
        ops = [str(a) for _, a, _ in pickletools.genops(found["archive/data.pkl"])]
        for text in ("torch._utils _rebuild_tensor_v3", "torch.storage UntypedStorage",
                     f"torch {name}"):
            if text not in ops:
                yield f"{name}: {text} is not in the pickle"
        if found["archive/data/0"] != data or found["archive/byteorder"] != b"little":
            yield f"{name}: other bytes"


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
        return tap.report(results + [*kinds(torch, folder), *conversions(torch, folder)])


sys.exit(main())
