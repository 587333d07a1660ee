#!/usr/bin/env python3
"""check_scan.py HEFT: heft scan reports the imports of hostile pickles, and none of harmless files.

The hostile files are made here: pickles of every protocol and every opcode that imports, inside
each kind of file, and archives that are damaged so that scanners miss a member. Python's
pickletools says where the imports are. No pickle is loaded. TAP on stdout."""
import argparse
import bz2
import gzip
import io
import json
import lzma
import os
import pathlib
import pickle
import pickletools
import random
import struct
import subprocess
import sys
import tarfile
import tempfile
import warnings
import zipfile
import zlib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import gen_onnx as onnx  # noqa: E402
import tap  # noqa: E402
from onnx_proto import content, number  # noqa: E402

LEGACY_MAGIC = 0x1950A86A20F9469CFC6C


class Payload:
    """Pickled as a call of os.system, which is called posix.system inside."""

    def __reduce__(self):
        return os.system, ("true",)


def evil(protocol=2):
    return pickle.dumps({"weights": [1.0, 2.0], "x": Payload()}, protocol)


def imports(data):
    """Return (offset, module, name) of each import that pickletools finds by itself."""
    found, texts = [], []
    for opcode, argument, at in pickletools.genops(data):
        if opcode.name in ("GLOBAL", "INST"):
            found.append((at, *argument.split(" ")))
        if opcode.name == "STACK_GLOBAL":
            found.append((at, *texts[-2:]))
        if "UNICODE" in opcode.name:
            texts.append(argument)
    return found


# ---- pickles --------------------------------------------------------------------------------

HANDMADE = {
    "INST": b"(S'true'\nios\nsystem\n.",
    "OBJ": b"(cos\nsystem\nX\x04\0\0\0trueo.",
    "BUILD": b"c__main__\nX\n)\x81}X\x0c\0\0\0__setstate__cos\nsystem\nsbX\x04\0\0\0trueb.",
    "NEWOBJ_EX": b"\x80\x04cos\nsystem\n(X\x04\0\0\0true}t}\x92.",
    "import without a call": b"cos\nsystem\n.",
    "nested in a tuple": b"((((cos\nsystem\n(S'true'\ntRtttt.",
    "list of pairs": b"\x80\x02](cos\nsystem\n\x85cos\npopen\n\x85e.",
    "no protocol 0 newline style": b"\x80\x02c__builtin__\neval\nX\x01\0\0\x001\x85R.",
    "below torch": b"\x80\x02ctorch.hub\nload\n)R.",
    "a prefix of a harmless module": b"\x80\x02ctorch._utilsx\n_rebuild_tensor_v2\n.",
    "a dotted name in a harmless module": b"\x80\x02ctorch._utils\n_rebuild_tensor.__globals__\n.",
    "_load_from_bytes": b"\x80\x02ctorch.storage\n_load_from_bytes\n.",
}
STACK_GLOBALS = {
    "memoized names": b"\x80\x04\x8c\x05posix\x94\x8c\x06system\x940h\x00h\x01\x93"
                      b"\x8c\x04true\x85R.",
    "LONG_BINPUT": b"\x80\x04\x8c\x05posixr\xe8\x03\0\0\x8c\x06systemr\xe9\x03\0\0"
                   b"00j\xe8\x03\0\0j\xe9\x03\0\0\x93.",
    "duplicated names": b"\x80\x04\x8c\x05posix2\x8c\x06system\x93.",
    "strings of protocol 0": b"\x80\x04S'posix'\nV\\u0073ystem\n\x93.",
    "names of a call": b"\x80\x04\x8c\x05posix\x8c\x01a\x8c\x01b\x93)R\x93.",
}


def expected(data, base=0, member=None, unpacked=False):
    """Return the findings that the imports of a pickle at the offset `base` must give."""
    return [(base + at, module, name, member, unpacked) for at, module, name in imports(data)]


# ---- files ----------------------------------------------------------------------------------


def zipped(members, method=zipfile.ZIP_STORED):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        for name, data in members.items():
            archive.writestr(zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, 0)), data, method)
    return out.getvalue()


def torch_like(data, **more):
    return {"archive/data.pkl": data, "archive/version": b"3\n", "archive/data/0": bytes(64),
            **more}


def tarred(members):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return out.getvalue()


def npy(descr, data, version=1):
    header = f"{{'descr': {descr}, 'fortran_order': False, 'shape': (1,), }}\n".encode()
    length = struct.pack("<H" if version == 1 else "<I", len(header))
    return b"\x93NUMPY" + bytes([version, 0]) + length + header + data


def without_directory(archive):
    return archive[:archive.index(b"PK\1\2")]


def with_flag(archive, bit):
    data = bytearray(archive)
    for sign, at in ((b"PK\3\4", 6), (b"PK\1\2", 8)):
        where = data.find(sign)
        while where >= 0:
            data[where + at] |= bit
            where = data.find(sign, where + 4)
    return bytes(data)


def with_wrong_sums(archive):
    data = bytearray(archive)
    for sign, at in ((b"PK\3\4", 14), (b"PK\1\2", 16)):
        where = data.find(sign)
        while where >= 0:
            data[where + at] ^= 0xFF
            where = data.find(sign, where + 4)
    return bytes(data)


def hidden_between(visible, hidden):
    """Put the local record of an archive before another archive, and mend the offsets."""
    return without_directory(hidden) + visible


def with_second_end(archive):
    """Append an end record that knows no members: Python reads the last, others the first."""
    return archive + b"PK\5\6" + bytes(18)


def renamed_locally(archive, old, new):
    at = archive.index(old)
    return archive[:at] + new + archive[at + len(new):]


def legacy(*pickles):
    head = pickle.dumps(LEGACY_MAGIC, 2) + pickle.dumps(1001, 2) + pickle.dumps({"x": 1}, 2)
    return head, b"".join(pickles)


def hostile():
    """Yield (title, file name, bytes, findings): (offset, module, name, member, unpacked)."""
    for protocol in range(6):
        data = evil(protocol)
        for suffix in (".pkl", ".pt", ".bin", ""):
            yield f"protocol {protocol}, m{suffix}", "m" + suffix, data, expected(data)
    for title, data in HANDMADE.items():
        yield title, "m.pkl", data, expected(data)
    at = STACK_GLOBALS["memoized names"].index(b"\x93")
    yield ("memoized names", "m.pkl", STACK_GLOBALS["memoized names"],
           [(at, "posix", "system", None, False)])
    yield ("LONG_BINPUT", "m.pkl", STACK_GLOBALS["LONG_BINPUT"],
           [(STACK_GLOBALS["LONG_BINPUT"].index(b"\x93"), "posix", "system", None, False)])
    data = STACK_GLOBALS["strings of protocol 0"]
    yield ("strings of protocol 0", "m.pkl", data,
           [(data.index(b"\x93"), "posix", "system", None, False)])
    data = STACK_GLOBALS["names of a call"]
    yield "names of a call", "m.pkl", data, [("pickle/hidden-import", data.rindex(b"\x93"))]
    yield "extension", "m.pkl", b"\x80\x02\x82\x01.", [("pickle/extension", 2)]
    yield "broken after the call", "m.dat", evil()[:-1] + b"\xff", expected(evil())
    yield "cut after the call", "m.pkl", evil()[:-2], expected(evil())
    yield ("broken", "m.pkl", b"\x80\x02]q\x00\xff", [("pickle/broken", 5)])
    harmless = pickle.dumps([1, 2, 3], 2)
    yield ("second pickle", "m.pkl", harmless + evil(), expected(evil(), len(harmless)))
    head, rest = legacy(evil(), pickle.dumps(["0"], 2), struct.pack("<Q", 1), bytes(4))
    yield "legacy PyTorch", "m.pt", head + rest, expected(evil(), len(head))
    yield from hostile_archives()
    yield from hostile_packages()
    yield from hostile_packages()
    yield from hostile_arrays()
    yield from compressed()
    yield from hostile_graphs()


def in_member(archive, data, member="archive/data.pkl"):
    return expected(data, archive.index(data), member)


def hostile_archives():
    data = evil()
    plain = zipped(torch_like(data))
    wanted = in_member(plain, data)
    yield "PyTorch", "m.pt", plain, wanted
    yield "PyTorch, no suffix", "m", plain, wanted
    yield ("PyTorch, deflated", "m.pt", zipped(torch_like(data), zipfile.ZIP_DEFLATED),
           expected(data, 0, "archive/data.pkl", True))
    yield "bytes before the archive", "m.pt", b"#!/bin/sh\n" + plain, \
        in_member(b"#!/bin/sh\n" + plain, data)
    yield "wrong checksums", "m.pt", with_wrong_sums(plain), wanted
    yield "encrypted by its flags", "m.pt", with_flag(plain, 1), wanted
    yield "no directory", "m.pt", without_directory(plain), wanted
    yield "second end record", "m.pt", with_second_end(plain), wanted
    yield "renamed in the local header", "m.pt", \
        renamed_locally(plain, b"archive/data.pkl", b"archive/data.txt"), wanted
    odd = zipped({"archive/data.pkl": pickle.dumps({}, 2), "archive/weights.jpg": data})
    yield "member of another name", "m.pt", odd, in_member(odd, data, "archive/weights.jpg")
    visible = zipped(torch_like(pickle.dumps({}, 2)))
    hidden = hidden_between(visible, plain)
    yield "member that no directory names", "m.pt", hidden, in_member(hidden, data)
    inner = zipped({"data.pkl": data})
    nested = zipped({"model.pt": inner})
    yield "archive in an archive", "m.zip", nested, in_member(nested, data, "model.pt!/data.pkl")
    script = zipped(torch_like(data, **{"archive/constants.pkl": pickle.dumps((), 2)}))
    yield "claims to be TorchScript", "m.pt", script, in_member(script, data)
    archive = tarred({"pickle": data, "storages": b""})
    yield "tar", "m.tar", archive, in_member(archive, data, "pickle")
    unpacked = tarred({"model.pkl": data})
    yield ("tar.gz", "m.tar.gz", gzip.compress(unpacked),
           expected(data, unpacked.index(data), "model.pkl", True))


def hostile_packages():
    """Code of AOTInductor in packages of torch.export, by its name and by its first bytes."""
    more = bytes(60)
    for name, code in (("m.so", b"words"), ("m.cpp", b"int f();"), ("m.bin", b"\x7fELF" + more),
                       ("m", b"MZ" + more), ("m.dat", b"\xcf\xfa\xed\xfe" + more)):
        path = f"m/data/aotinductor/model/{name}"
        packed = zipped({path: code}, zipfile.ZIP_DEFLATED)
        plain = zipped({"m/archive_format": b"pt2", path: code})
        yield f"package with {name}", "m.pt2", plain, [("torch/library", plain.index(code))]
        yield f"package with {name}, deflated", "m.pt2", packed, [("torch/library", 0)]
    data = evil()
    inner = zipped(torch_like(data))
    for member in ("data/weights/model.pt", "data/constants/custom_obj_0",
                   "data/sample_inputs/model.pt"):
        package = zipped({"m/archive_format": b"pt2", f"m/{member}": inner})
        yield f"package, {member}", "m.pt2", package, in_member(
            package, data, f"m/{member}!/archive/data.pkl")


def hostile_arrays():
    data = evil(4)
    for version in (1, 2, 3):
        array = npy("'|O'", data, version)
        yield f"npy {version}", "m.npy", array, expected(data, array.index(data))
    fields = npy("[('a', '<f4'), ('b', 'O')]", data)
    yield "npy with a field", "m.npy", fields, expected(data, fields.index(data))
    array = npy("'|O'", data)
    archive = zipped({"x.npy": npy("'<f4'", bytes(4)), "y.npy": array})
    yield "npz", "m.npz", archive, in_member(archive, data, "y.npy")
    yield ("npz, deflated", "m.npz", zipped({"y.npy": array}, zipfile.ZIP_DEFLATED),
           expected(data, array.index(data), "y.npy", True))


def compressed():
    data = evil(3)
    wanted = expected(data, 0, None, True)
    yield "gzip", "m.pkl.gz", gzip.compress(data), wanted
    parts = gzip.compress(data[:20]) + gzip.compress(data[20:])
    yield "gzip in two members", "m.pkl", parts, wanted
    yield "zlib", "m.joblib", zlib.compress(data), wanted
    yield ("gzip of too many bytes", "m.pkl.gz", gzip.compress(data + bytes(300 << 20), 1),
           [*wanted, ("pickle/unreadable", 0)])
    for name, pack in (("bz2", bz2.compress), ("xz", lzma.compress),
                       ("lzma", lambda d: lzma.compress(d, lzma.FORMAT_ALONE))):
        yield name, f"m.pkl.{name}", pack(data), [("pickle/unreadable", 0)]
    bzipped = zipped({"data.pkl": data}, zipfile.ZIP_BZIP2)
    yield "zip with bzip2", "m.zip", bzipped, [("pickle/unreadable", None)]


def hostile_graphs():
    """Models of ONNX that run Python, bring programs, or name files outside of their folder."""
    def at_operator(model, kind):
        return model.index(content(4, kind))

    for kind, rule in (("PyOp", "onnx/python"), ("PythonOp", "onnx/python"),
                       ("PythonOpGrad", "onnx/python"), ("EPContext", "onnx/program")):
        inner = onnx.graph((), [onnx.node(kind, ["y"], (), domain="com.microsoft")])
        for title, model in {
                "in the graph": onnx.model(inner),
                "in a branch": onnx.model(onnx.graph((), [onnx.node("If", ["z"], [
                    onnx.attribute("then_branch", content(6, inner))])])),
                "in a function": onnx.model(onnx.graph(), content(25, content(1, "f") + content(
                    7, onnx.node(kind, ["y"]))))}.items():
            yield f"{kind} {title}", "m.onnx", model, [(rule, at_operator(model, kind))]
    t = ("w", "f32", (2,), bytes(8))
    for path in ("/etc/passwd", "../w.bin", "a/../../w.bin", "C:\\w.bin"):
        model = onnx.model(onnx.graph([onnx.external(t, ("location", path))]))
        yield f"external data in {path}", "m.onnx", model, [("onnx/path", None)]
        entry = content(13, content(2, path) + content(1, "location"))
        model = onnx.model(onnx.graph([content(8, "w") + number(2, 1) + entry + number(14, 1)]))
        yield f"{path}, the value first", "m", model, [("onnx/path", None)]
        yield f"{path} in an archive", "m.zip", zipped({"m.onnx": model}), [("onnx/path", None)]
    deep = onnx.graph()
    for _ in range(60):
        deep = onnx.graph((), [onnx.node("If", ["x"], [onnx.attribute("b", content(6, deep))])])
    yield "graphs in graphs", "m.onnx", onnx.model(deep), [("pickle/unreadable", None)]


def harmless_graphs():
    t = ("w", "f32", (2,), bytes(8))
    yield "plain.onnx", onnx.model(onnx.graph([onnx.raw(t)], [
        onnx.node("MatMul", ["y"]), onnx.node("Custom", ["z"], domain="my.ops")]))
    for i, path in enumerate(("w.bin", "a/w.bin", "..w", "a..b/w")):
        yield f"external{i}.onnx", onnx.model(onnx.graph([onnx.external(t, ("location", path))]))
    yield "text.onnx", onnx.model(onnx.graph([onnx.raw(t)], [
        onnx.node("Constant", ["PyOp"], [onnx.attribute("PythonOp", content(4, "PyOp"))])]))
    yield "cut.onnx", onnx.model(onnx.graph((), [onnx.node("PyOp", ["y"])]))[:12]


def harmless():
    """Yield (name, bytes) of files without a finding."""
    value = {"a": [1, 2.5, "text", b"bytes", None, True], "b": ({1, 2}, frozenset((3,)))}
    for protocol in range(6):
        yield f"p{protocol}.pkl", pickle.dumps(value, protocol)
    for protocol in range(2, 6):
        settings = argparse.Namespace(lr=0.5, name="run")
        yield f"settings{protocol}.pkl", pickle.dumps(settings, protocol)
    yield "empty.pt", b""
    yield "page.pt", b"<!doctype html><title>Not found</title>"
    yield "plain.npy", npy("'<f4'", bytes(4))
    yield "plain.npz", zipped({"x.npy": npy("'<f4'", bytes(400))}, zipfile.ZIP_DEFLATED)
    yield "package.pt2", zipped({"m/archive_format": b"pt2", "m/data/weights/weight_0": bytes(99),
                                 "m/extra/words.so": b"words"})
    yield "m.safetensors", struct.pack("<Q", 2) + b"{}"
    source = random.Random(1)
    for i in range(60):
        start = (b"", b"\x80\x02", b"\x80\x04\x95", b"(", b"c", b"x\x9c", b"\x1f\x8b")[i % 7]
        weights = start + source.randbytes(5000)
        yield f"weights{i}.bin" if i % 7 not in (1, 2) else f"weights{i}.raw", weights
        yield f"member{i}.zip", zipped({"archive/data/0": weights})
    yield from harmless_of_torch()
    yield from harmless_of_numpy()
    yield from harmless_graphs()


def harmless_of_torch():
    try:
        import torch
    except ImportError:
        return
    warnings.simplefilter("ignore")
    layer = torch.nn.Linear(3, 2)
    values = {
        "state": layer.state_dict(), "parameter": layer.weight, "half": torch.zeros(3).half(),
        "bfloat16": torch.zeros(3, dtype=torch.bfloat16), "complex": torch.zeros(2) * 1j,
        "sparse": torch.eye(3).to_sparse(), "csr": torch.eye(3).to_sparse_csr(),
        "quantised": torch.quantize_per_tensor(torch.ones(3), 0.1, 0, torch.qint8),
        "checkpoint": {"epoch": 3, "model": layer.state_dict(), "size": torch.Size([1, 2])},
        "optimizer": torch.optim.Adam(layer.parameters()).state_dict(),
    }
    for name, value in values.items():
        for is_zip in (True, False):
            out = io.BytesIO()
            if is_zip or name not in ("csr",):
                torch.save(value, out, _use_new_zipfile_serialization=is_zip)
                yield f"{name}{'' if is_zip else '-legacy'}.pt", out.getvalue()
    out = io.BytesIO()
    torch.jit.save(torch.jit.script(torch.nn.Sequential(layer, torch.nn.ReLU())), out)
    yield "script.pt", out.getvalue()


def harmless_of_numpy():
    try:
        import numpy as np
    except ImportError:
        return
    for name, array in (("f", np.arange(9.)), ("s", np.array(["a", "bc"])),
                        ("objects", np.array([1, "x", None], dtype=object))):
        out = io.BytesIO()
        np.save(out, array)
        yield f"{name}.npy", out.getvalue()
    out = io.BytesIO()
    for numbers in np.random.default_rng(2).standard_normal((20000, 3)):
        np.save(out, numbers)
    yield "many.npy", out.getvalue()
    out = io.BytesIO()
    for i in range(10000):
        np.save(out, np.array([i, "x"], object))
        pickle.dump(i, out)
    yield "objects.npy", out.getvalue()
    fields = np.zeros(3, [("a", "f4"), ("b", "u2", (2, 3)), (("t", "c"), [("d", "S3"), ("e", "U")]),
                          ("f", "M8[D]")])
    for name, array in (("fields", fields), ("large", np.zeros(60 << 20)), ("none", fields[:0])):
        out = io.BytesIO()
        np.savez_compressed(out, array)
        yield f"{name}.npz", out.getvalue()
    out = io.BytesIO()
    np.savez_compressed(out, a=np.random.default_rng(1).standard_normal(30000))
    yield "compressed.npz", out.getvalue()
    yield "array.pkl", pickle.dumps({"w": np.arange(3), "s": np.float32(1)}, 4)


# ---- judging --------------------------------------------------------------------------------


def scan(path, *more):
    p = subprocess.run([sys.argv[1], "scan", *more, str(path)], capture_output=True, check=False)
    return p.returncode, p.stdout, p.stderr.decode(errors="replace")


def is_reported(wanted, findings):
    if len(wanted) == 2:
        return any(f["rule"] == wanted[0] and wanted[1] in (None, f["offset"]) for f in findings)
    return any((f["offset"], f["module"], f["name"], f["member"], f["unpacked"]) == wanted
               for f in findings)


def complaints_hostile(path, wanted):
    code, out, err = scan(path, "--json")
    if code != 1 or err:
        return [f"exit {code}: {err}"]
    findings = json.loads(out)["findings"]
    bad = [f"not reported: {w}; reported: {findings}" for w in wanted
           if not is_reported(w, findings)]
    return bad if wanted else ["the test expects nothing"]


def complaints_harmless(path):
    code, out, err = scan(path, "--json")
    return [] if code == 0 else [f"exit {code}: {err} {out.decode()[:500]}"]


def check_text(folder):
    """The text output names each file, and a folder is scanned with everything below."""
    below = folder / "below"
    below.mkdir()
    (below / "a\x1b[31m.pkl").write_bytes(b"cos\nsystem\n.")
    (below / "b.pkl").write_bytes(pickle.dumps(1, 2))
    os.mkfifo(below / "pipe")
    (below / "link").symlink_to("b.pkl")
    (below / "gone").symlink_to("nothing")
    outside = folder.parent / (folder.name + ".pkl")
    outside.write_bytes(pickle.dumps(1, 2))
    (below / "outside").symlink_to(outside)
    code, out, err = scan(folder)
    text = out.decode()
    yield "exit status", code == 1 and not err
    yield "fault", ('a\\x1b[31m.pkl: fault: pickle/import: would import \'system\' from '
                    "'os', a way to run code or to reach files (at byte 0)\n") in text
    yield "a pipe", "pipe: warning: pickle/unreadable: cannot be read: a pipe" in text
    yield "a dangling link", "gone: warning: pickle/unreadable: cannot be read: leads to no" in text
    yield "verdicts", ": ok (" not in text and text.count(": failed (1 finding in ") == 3
    yield "total", text.endswith("6 files, 4 pickles: failed (3 findings)\n")
    code, out, err = scan(folder, "-v")
    yield "all files", out.decode().count(": ok (1 pickle)\n") == 3
    code, out, err = scan(folder, "--json")
    yield "JSON", code == 1 and [len(f["findings"]) for f in json.loads(out)] == [1, 0, 1, 0, 0, 1]
    for name in ("gone", "pipe", "a\x1b[31m.pkl"):
        (below / name).unlink()
    code, out, err = scan(folder)
    yield "one line for clean files", code == 0 and out == b"3 files, 3 pickles: ok\n"
    code, out, err = scan(folder, "--name", "m.pkl")
    yield "a name without standard input", code == 2
    damaged = b"\x80\x02]q\x00\xff"
    for name, wanted in (("m.pkl", 1), ("m.txt", 0)):
        p = subprocess.run([sys.argv[1], "scan", "-", "--name", name], input=damaged,
                           capture_output=True, check=False)
        yield f"standard input, {name}", p.returncode == wanted
    outside.unlink()
    code, out, err = scan(folder / "nothing.pt")
    yield "missing file", code == 4 and not out and "nothing.pt" in err


def results(folder):
    for title, name, data, wanted in hostile():
        path = folder / name
        path.write_bytes(data)
        yield f"hostile: {title}", complaints_hostile(path, wanted)
        path.unlink()
    for name, data in harmless():
        path = folder / name
        path.write_bytes(data)
        yield f"harmless: {name}", complaints_harmless(path)
        path.unlink()
    for title, ok in check_text(folder):
        yield f"text: {title}", [] if ok else ["differs"]


def main():
    with tempfile.TemporaryDirectory() as folder:
        return tap.report(results(pathlib.Path(folder)))


if __name__ == "__main__":
    sys.exit(main())
