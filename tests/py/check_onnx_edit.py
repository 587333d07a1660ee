#!/usr/bin/env python3
"""check_onnx_edit.py HEFT: `heft edit --tensor` writes new values over the old ones in ONNX models
and in their files of external data, judged by Debian's python3-onnx. TAP on stdout."""
import gzip
import hashlib
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile

try:
    import numpy
    import onnx
    from onnx import TensorProto, helper, numpy_helper
except ImportError as e:
    print(f"1..0 # SKIP {e.name} is not installed")
    sys.exit(0)

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[1] / "tools"), str(HERE)]
import tap  # noqa: E402



def heft(*args):
    return subprocess.run([HEFT, *map(str, args)], capture_output=True, check=False)


def expect(p, code, *words):
    text = p.stderr.decode() + p.stdout.decode()
    if p.returncode != code or not all(w in text for w in words):
        yield f"{p.args[1:]}: {p.returncode}, not {code}: {text}"


def model(path, tensors, sparse=()):
    graph = helper.make_graph([], "g", [], [], tensors, sparse_initializer=list(sparse))
    onnx.save(helper.make_model(graph), str(path))
    return path


def values(path):
    """Arrays by name; python3-onnx cannot read empty external data."""
    return {t.name: numpy_helper.to_array(t) if all(t.dims) else numpy.zeros(t.dims, "f4")
            for t in onnx.load(str(path)).graph.initializer}


def files(folder):
    return {p.name: p.read_bytes() for p in folder.iterdir()}


def array_of(dtype, shape, rng):
    kind = numpy.dtype(dtype)
    a = rng.integers(0, 256, (*shape, kind.itemsize), "u1").view(kind)[..., 0]
    return a != 0 if kind == bool else a


def replaced_in(folder, path, name, old_values, data_file):
    """Replace one tensor, and compare all others, and all bytes but its own."""
    old = old_values[name]
    new = array_of(old.dtype, old.shape, numpy.random.default_rng(len(name)))
    numpy.save(folder.parent / "new.npy", new)
    before = files(folder)
    yield from expect(heft("edit", "-v", path, "--tensor", f"{name}={folder.parent / 'new.npy'}"),
                      0, "in place" if new.tobytes() != old.tobytes() else "replaced")
    got = values(path)
    for other, a in old_values.items():
        wanted = new if other == name else a
        if got[other].dtype != wanted.dtype or got[other].tobytes() != wanted.tobytes():
            yield f"{path.name}, {name}: {other} is {got[other]}, not {wanted}"
    after = files(folder)
    whole, changed = before[data_file], after[data_file]
    at = whole.find(old.tobytes()) if old.size else 0
    if changed != whole[:at] + new.tobytes() + whole[at + new.nbytes:]:
        yield f"{path.name}, {name}: other bytes of {data_file} have changed"
    if {n: d for n, d in after.items() if n != data_file} != {
            n: d for n, d in before.items() if n != data_file}:
        yield f"{path.name}, {name}: other files have changed: {sorted(after)}"


def every_type(scratch):
    """raw, packed and external elements of every type are replaced, and nothing else"""
    rng = numpy.random.default_rng(3)
    folder = scratch / "types"
    folder.mkdir()
    types = ("f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "?", "c8", "c16")
    raw = [numpy_helper.from_array(array_of(t, (3, 50), rng), f"größe/{t}") for t in types]
    raw += [numpy_helper.from_array(numpy.zeros((0, 3), "f4"), "empty"),
            numpy_helper.from_array(numpy.array(7.5, "f4"), "scalar"),
            numpy_helper.from_array(rng.random((300, 400), "f4"), "large")]
    typed = [helper.make_tensor("floats", TensorProto.FLOAT, [4], [1.5, 2.5, 3.5, 4.5]),
             helper.make_tensor("doubles", TensorProto.DOUBLE, [3], [1e300, 2.5, -7.25])]
    inside = model(folder / "in.onnx", raw + typed)
    outside = folder / "out.onnx"
    onnx.save(onnx.load(str(inside)), str(outside), save_as_external_data=True, location="w.bin",
              size_threshold=0)
    for path, names in ((inside, [t.name for t in raw + typed]), (outside, [t.name for t in raw])):
        for name in names:
            data_file = "w.bin" if path == outside else path.name
            yield from replaced_in(folder, path, name, values(path), data_file)


def special_values(scratch):
    """NaN with a payload, infinities and minus zero keep their bits; two tensors are one edit"""
    folder = scratch / "special"
    folder.mkdir()
    ones = numpy.ones(4, "f4")
    path = model(folder / "m.onnx", [numpy_helper.from_array(ones, n) for n in "abc"])
    bits = numpy.array([0x7FA00001, 0xFFC12345, 0x80000000, 0xFF800000], "u4").view("f4")
    numpy.savez(folder / "new.npz", a=bits, b=bits[::-1])
    yield from expect(heft("edit", path, "--tensor", f"a={folder}/new.npz", "--tensor",
                           f"b={folder}/new.npz"), 0)
    got = values(path)
    if got["a"].tobytes() != bits.tobytes() or got["b"].tobytes() != bits[::-1].tobytes() or (
            got["c"] != 1).any():
        yield f"{got}"
    yield from expect(heft("edit", path, "--tensor", f"a={path}:b", "--tensor", f"b={path}:a"), 0)
    got = values(path)
    if got["b"].tobytes() != bits.tobytes() or got["a"].tobytes() != bits[::-1].tobytes():
        yield f"after an exchange: {got}"
    before = path.read_bytes()
    yield from expect(heft("edit", "-n", path, "--tensor", f"a={path}:c"), 0, "in place")
    if path.read_bytes() != before:
        yield "a dry run changes the file"


def external(name, location, **keys):
    t = TensorProto(name=name, data_type=TensorProto.FLOAT, dims=[4],
                    data_location=TensorProto.EXTERNAL)
    for key, value in {"location": location, **keys}.items():
        t.external_data.add(key=key, value=str(value))
    return t


def refused(scratch):
    """Values without a place of their own are refused, with the way on, and nothing changes."""
    folder = scratch / "refused"
    (folder / "a").mkdir(parents=True)
    ones = numpy.ones(4, "f4")
    for name, array in {"f4": ones, "f8": ones.astype("f8"), "long": numpy.ones(5, "f4"),
                        "square": ones.reshape(2, 2), "i8": numpy.ones(4, "i8")}.items():
        numpy.save(scratch / f"{name}.npy", array)
    numpy.savez(scratch / "both.npz", w=ones, x=ones)
    (folder / "w.bin").write_bytes(bytes(64))
    (folder / "a/w.bin").write_bytes(bytes(64))
    sparse = helper.make_sparse_tensor(numpy_helper.from_array(ones, "sparse"),
                                       numpy_helper.from_array(numpy.arange(4)), [4])
    plain = model(folder / "plain.onnx", [
        numpy_helper.from_array(ones, "w"),
        helper.make_tensor("varints", TensorProto.INT64, [4], [1, 2, 3, 400]),
        external("x", "w.bin"), external("y", "a/w.bin", length=16)], [sparse])
    shared = model(folder / "shared.onnx", [external("x", "w.bin", length=16),
                                            external("y", "w.bin", offset=8, length=16)])
    digest = hashlib.sha1(bytes(64)).hexdigest()
    summed = model(folder / "summed.onnx", [external("x", "w.bin", length=16),
                                            external("y", "w.bin", offset=16, length=16,
                                                     checksum=digest)])
    own = model(folder / "own.onnx", [external("x", "own.onnx", length=16)])
    missing = model(folder / "missing.onnx", [external("x", "none.bin"),
                                              numpy_helper.from_array(ones, "w")])
    short = model(folder / "short.onnx", [external("x", "w.bin", offset=60, length=16)])
    whole = model(scratch / "whole.onnx", [numpy_helper.from_array(ones, "w")])
    with zipfile.ZipFile(folder / "archive.zip", "w") as z:
        z.write(whole, "m.onnx")
    with tarfile.open(folder / "archive.tar", "w") as t:
        t.add(whole, "m.onnx")
    (folder / "packed.onnx.gz").write_bytes(gzip.compress(whole.read_bytes()))
    before = {p: p.read_bytes() for p in folder.rglob("*") if p.is_file()}
    for path in (folder / "archive.zip", folder / "archive.tar"):
        yield from expect(heft("edit", path, "--tensor", f"w={scratch}/f4.npy"), 5, "an archive")
    yield from expect(heft("edit", folder / "packed.onnx.gz", "--tensor", f"w={scratch}/f4.npy"),
                      3, "gzip")
    for path, code, word, *changes in (
            (plain, 5, "varying length", "varints=i8"), (plain, 5, "sparse", "sparse=f4"),
            (plain, 5, "another type or shape", "w=f8"),
            (plain, 5, "another type or shape", "w=long"),
            (plain, 5, "another type or shape", "w=square"),
            (plain, 5, "one file", "w=both", "x=both"), (plain, 2, "none", "none=f4"),
            (shared, 5, "shares its bytes", "x=f4"), (summed, 5, "checksum of 'w.bin'", "x=f4"),
            (own, 5, "the model itself", "x=f4"), (missing, 4, "none.bin", "w=f4"),
            (short, 3, "w.bin", "x=f4")):
        changes = [c.replace("=", f"={scratch}/") + (".npz" if "both" in c else ".npy")
                   for c in changes]
        args = [a for c in changes for a in ("--tensor", c)]
        yield from expect(heft("edit", path, *args), code, word)
    for more in (["--round"], ["--allow-change"]):
        yield from expect(heft("edit", plain, "--tensor", f"w={scratch}/f8.npy", *more), 5,
                          "another type or shape")
    yield from expect(heft("edit", plain, "--tensor", f"w={HEFT}"), 3)
    if {p: p.read_bytes() for p in folder.rglob("*") if p.is_file()} != before:
        yield "something has changed"


def places(scratch):
    """external data in folders, behind a link inside of the folder, and never outside"""
    top = scratch / "places"
    (top / "a/b").mkdir(parents=True)
    new = numpy.arange(4, dtype="f4")
    numpy.save(scratch / "new.npy", new)
    (top / "a/b/w.bin").write_bytes(bytes(16))
    (top / "link.bin").symlink_to("a/b/w.bin")
    (scratch / "secret").write_bytes(bytes(16))
    (top / "out.bin").symlink_to(scratch / "secret")
    for name in ("a/b/w.bin", "./a/b/w.bin", "link.bin"):
        (top / "a/b/w.bin").write_bytes(bytes(16))
        path = model(top / "m.onnx", [external("w", name)])
        yield from expect(heft("edit", path, "--tensor", f"w={scratch}/new.npy"), 0)
        if (top / "a/b/w.bin").read_bytes() != new.tobytes():
            yield f"{name}: nothing has changed"
    for name in ("out.bin", "../secret", str(scratch / "secret")):
        p = heft("edit", model(top / "m.onnx", [external("w", name)]), "--tensor",
                 f"w={scratch}/new.npy")
        if p.returncode not in (3, 4, 5):
            yield f"{name}: {p.returncode}"
    if (scratch / "secret").read_bytes() != bytes(16) or not (top / "link.bin").is_symlink():
        yield "a file outside of the folder, or a link, has changed"


def read_only(scratch):
    """a file that is read-only is not changed"""
    folder = scratch / "locked"
    folder.mkdir()
    path = model(folder / "m.onnx", [external("w", "w.bin")])
    (folder / "w.bin").write_bytes(bytes(16))
    os.chmod(folder / "w.bin", 0o444)
    numpy.save(scratch / "new.npy", numpy.ones(4, "f4"))
    yield from expect(heft("edit", path, "--tensor", f"w={scratch}/new.npy"), 4, "read-only")
    if (folder / "w.bin").read_bytes() != bytes(16):
        yield "it has changed"
    shutil.rmtree(folder)


TESTS = every_type, special_values, refused, places, read_only


def main():
    results = []
    for test in TESTS:
        with tempfile.TemporaryDirectory() as scratch:
            results.append((test.__doc__, list(test(pathlib.Path(scratch)))))
    return tap.report(results)


if __name__ == "__main__":
    HEFT = sys.argv[1]
    sys.exit(main())
