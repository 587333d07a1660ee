#!/usr/bin/env python3
"""check_torch_package.py HEFT: packages of torch.export (.pt2) by every command, judged by NumPy.

Packages are made with zipfile; files in them by PyTorch. One of them is read from a server that
counts requests. TAP on stdout."""
import io
import json
import pathlib
import sys
import zipfile

try:
    import numpy
    import torch
except ImportError as why:
    print(f"1..0 # SKIP {why}")
    sys.exit(0)

from checks import heft, require, run

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "tests/remote")]
import loopback  # noqa: E402
import tap  # noqa: E402

NUMBERS = {"float32": 7, "float16": 6, "int64": 5, "bool": 12, "complex64": 10, "uint8": 1}
END = {"archive_format": b"pt2", "archive_version": b"0", "byteorder": b"little",
       ".data/serialization_id": b"7", "version": b"3\n", ".data/version": b"6\n"}
RANDOM = numpy.random.default_rng(7)
BASE = RANDOM.standard_normal(240).astype("f4")
VIEWS = {"whole": BASE.reshape(12, 20), "turned": BASE.reshape(12, 20).T, "tail": BASE[200:],
         "slice": BASE.reshape(12, 20)[2:9:3, 1::4],
         "cube": BASE.reshape(2, 3, 40).transpose(1, 2, 0)}
OTHERS = {"half": RANDOM.standard_normal(9).astype("f2"), "count": numpy.array(-3, "i8"),
          "mask": RANDOM.integers(0, 2, (3, 5)).astype(bool), "none": numpy.zeros((0, 4), "f4"),
          "wave": (RANDOM.standard_normal(6) + 1j).astype("c8").reshape(2, 3)}


def saved(value):
    out = io.BytesIO()
    torch.save(value, out)
    return out.getvalue()


def described(path, array, base=None, use_pickle=False):
    """Return the entry of an array, a view of the memory of `base`."""
    size = array.itemsize
    first = 0 if base is None else array.ctypes.data - base.ctypes.data
    meta = {
        "dtype": NUMBERS[array.dtype.name], "sizes": [{"as_int": n} for n in array.shape],
        "requires_grad": False, "device": {"type": "cpu", "index": None},
        "strides": [{"as_int": n // size} for n in array.strides],
        "storage_offset": {"as_int": first // size}, "layout": 7
    }
    return {"path_name": path, "is_param": True, "use_pickle": use_pickle, "tensor_meta": meta}


def config(entries):
    return json.dumps({"config": entries}).encode()


def packed(members, root="model/"):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as z:
        for name, data in {**members, **END}.items():
            z.writestr(root + name, data)
    return out.getvalue()


def views(model="model"):
    """Return the members of a model as PyTorch 2.9 writes it, and its arrays."""
    members, entries = {"data/weights/weight_0": BASE.tobytes()}, {}
    for name, array in VIEWS.items():
        entries[name] = described("weight_0", array, BASE)
    for i, (name, array) in enumerate(OTHERS.items(), 1):
        members[f"data/weights/weight_{i}"] = array.tobytes()
        entries[name] = described(f"weight_{i}", array)
    members[f"data/weights/{model}_weights_config.json"] = config(entries)
    members[f"data/constants/{model}_constants_config.json"] = config({})
    members[f"models/{model}.json"] = b"{}"
    members[f"data/sample_inputs/{model}.pt"] = saved(((torch.ones(2),), {}))
    return members, {**VIEWS, **OTHERS}


def in_files(model="model"):
    """Return the members of a model as PyTorch 2.7 writes it, and its arrays."""
    state = {n: torch.from_numpy(a.copy()) for n, a in OTHERS.items()}
    state["turned"] = torch.from_numpy(BASE.copy().reshape(12, 20)).T
    members = {
        f"data/weights/{model}.pt": saved(state),
        f"data/constants/{model}.pt": saved({"c": torch.arange(3)}), f"models/{model}.json": b"{}"
    }
    return members, {**OTHERS, "turned": VIEWS["turned"], "c": numpy.arange(3)}


def compiled():
    """Return the members of compiled code with its weights beside it, and its arrays."""
    rows = {n: ["weight_0", a.shape, [s // 4 for s in a.strides],
                (a.ctypes.data - BASE.ctypes.data) // 4] for n, a in VIEWS.items()}
    return {
        "data/aotinductor/model/c.so": b"\x7fELF" + bytes(99),
        "data/aotinductor/model/weights_config.json": json.dumps(rows).encode(),
        "data/weights/weight_0": saved(torch.from_numpy(BASE.copy()))
    }, VIEWS


KINDS = {"views": views, "files": in_files, "compiled": compiled}


def write(scratch, name, data):
    (scratch / name).write_bytes(data)
    return scratch / name


def require_arrays(path, arrays, *options):
    listed = json.loads(heft("ls", "--json", *options, path).stdout)["tensors"]
    shapes = {t["name"]: tuple(t["shape"]) for t in listed}
    require(shapes == {n: a.shape for n, a in arrays.items()}, f"{path}: {shapes}")
    for name, array in arrays.items():
        got = heft("cat", *options, path, name).stdout
        require(got == numpy.ascontiguousarray(array).tobytes(), f"{path}: other bytes in {name}")


# ---- checks ----

def values(scratch):
    for kind, made in KINDS.items():
        members, arrays = made()
        path = write(scratch, f"{kind}.pt2", packed(members))
        for way in "auto", "map", "read", "direct":
            require_arrays(path, arrays, "--access", way)
        findings = json.loads(heft("verify", "--json", path).stdout)["findings"]
        require({f["severity"] for f in findings} == {"note"}, findings)
        require(b"torch pt2" in heft("info", path).stdout, "info does not name the kind")


def other_commands(scratch):
    for kind, made in KINDS.items():
        members, arrays = made()
        path = write(scratch, f"{kind}.pt2", packed(members))
        heft("convert", path, scratch / f"{kind}.npz")
        with numpy.load(scratch / f"{kind}.npz") as z:
            require(set(z) == set(arrays) and all((z[n] == a).all() for n, a in arrays.items()),
                    f"{kind}: other arrays in npz")
        heft("convert", path, scratch / f"{kind}.pt")
        state = torch.load(scratch / f"{kind}.pt")
        require(all((state[n].numpy() == a).all() for n, a in arrays.items()), f"{kind}: torch")
        heft("diff", path, scratch / f"{kind}.npz")
        require(heft("hash", path).stdout == heft("hash", scratch / f"{kind}.pt").stdout,
                f"{kind}: another hash")
        stats = json.loads(heft("stats", "--json", path).stdout)
        require(len(stats["tensors"]) == len(arrays), f"{kind}: {stats}")
        heft("doctor", path)
        heft("scan", path, code=int(kind == "compiled"))
        heft("edit", "--set", "a=b", path, code=5)


def several_models(scratch):
    one, arrays = in_files("one")
    two, others = in_files("two")
    path = write(scratch, "two.pt2", packed({**one, **two}))
    both = {f"one.{n}": a for n, a in arrays.items()}
    both.update((f"two.{n}", a) for n, a in others.items())
    require_arrays(path, both)
    require_arrays(path, arrays, "--key", "two")
    p = heft("ls", "--key", "three", path, code=2)
    require(b"no model" in p.stderr, p.stderr)


def pickled(count):
    entries, members, arrays = {}, {}, {}
    for i in range(count):
        arrays[f"w{i}"] = BASE[i:i + 5]
        members[f"data/weights/weight_{i}"] = saved(torch.from_numpy(arrays[f"w{i}"].copy()))
        entries[f"w{i}"] = described(f"weight_{i}", arrays[f"w{i}"].copy(), None, True)
    return {**members, "data/weights/model_weights_config.json": config(entries)}, arrays


def from_a_server(scratch):
    """Many files of torch.save() in a package are asked for together."""
    large = {"extra/big": bytes(1 << 20)}
    for made in views(), in_files(), compiled(), pickled(60):
        members, arrays = made
        server = loopback.Server({"/m.pt2": packed({**members, **large})})
        url = f"{server.url}/m.pt2"
        listed = json.loads(heft("ls", "--json", url).stdout)["tensors"]
        require({t["name"] for t in listed} == set(arrays), listed)
        require(len(server.requests) <= 12, f"{len(server.requests)} requests")
        name = next(iter(arrays))
        got = heft("cat", url, name).stdout
        require(got == numpy.ascontiguousarray(arrays[name]).tobytes(), "other bytes")
        server.shutdown()


def cut(scratch):
    """Every cut is an error, or leaves the weights whole."""
    for kind, made in KINDS.items():
        members, arrays = made()
        data = packed(members)
        for i in range(60):
            path = write(scratch, f"{kind}.pt2", data[:len(data) * i // 60])
            p = heft("verify", path, code=None)
            require(p.returncode in (1, 3), f"{kind} cut to {i}/60: exit {p.returncode}")
            p = heft("doctor", path, code=None)
            require(p.returncode in (1, 3, 5), f"{kind}, doctor, {i}/60: exit {p.returncode}")


CHECKS = [values, other_commands, several_models, from_a_server, cut]
sys.exit(tap.report([(check.__name__.replace("_", " "), run(check)) for check in CHECKS]))
