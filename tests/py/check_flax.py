#!/usr/bin/env python3
"""check_flax.py HEFT GENERATOR [PIECES]: compare Heft with another reader and writer of Flax's
MessagePack.

Debian's python3-msgpack reads what Heft writes, as flax.serialization does, and writes trees that
Heft reads. PIECES writes arrays in small pieces; tests/flax_pieces.c. TAP on stdout."""
import hashlib
import json
import pathlib
import subprocess
import sys
import tempfile

try:
    import msgpack
    import numpy
except ImportError as e:
    print(f"1..0 # SKIP {e.name} is not installed")
    sys.exit(0)

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import tap  # noqa: E402

ARRAY, COMPLEX, SCALAR = 1, 2, 3


def heft(*args):
    return subprocess.run([HEFT, *map(str, args)], capture_output=True, check=False)


# ---- flax.serialization with python3-msgpack ----

class Array:
    def __init__(self, shape, dtype, data):
        self.shape, self.dtype, self.data = list(shape), dtype, data

    def __eq__(self, other):
        return vars(self) == vars(other)


def restore_leaf(kind, data):
    if kind in (ARRAY, SCALAR):
        shape, dtype, content = msgpack.unpackb(data, raw=True)
        return Array(shape, dtype.decode(), content)
    if kind == COMPLEX:
        return complex(*msgpack.unpackb(data))
    raise ValueError(kind)


def restore(data):
    return msgpack.unpackb(data, ext_hook=restore_leaf, raw=False, strict_map_key=False)


def pack_leaf(value):
    if isinstance(value, numpy.ndarray):
        kind = ARRAY
    elif isinstance(value, numpy.generic):
        kind, value = SCALAR, numpy.asarray(value)
    elif isinstance(value, complex):
        return msgpack.ExtType(COMPLEX, msgpack.packb((value.real, value.imag)))
    else:
        raise ValueError(value)
    content = (value.shape, value.dtype.name, value.tobytes("C"))
    return msgpack.ExtType(kind, msgpack.packb(content, use_bin_type=True))


def serialize(tree):
    return msgpack.packb(tree, default=pack_leaf, strict_types=True)


def flatten(tree, prefix=()):
    """Yield (keys, leaf); an empty map is a leaf."""
    for key, value in tree.items():
        if isinstance(value, dict) and value:
            yield from flatten(value, (*prefix, str(key)))
        else:
            yield (*prefix, str(key)), value


# ---- tests ----

def written_by_heft(path, scratch):
    """A sample, read and written again, has the arrays of the sample."""
    want = json.loads(path.with_name(path.name + ".json").read_text())["tensors"]
    out = scratch / "out.msgpack"
    p = heft("convert", "--force", path, out)
    if p.returncode:
        yield f"exit {p.returncode}: {p.stderr.decode()[:200]}"
        return
    got = {"/".join(k): v for k, v in flatten(restore(out.read_bytes())) if isinstance(v, Array)}
    if set(got) != {t["name"] for t in want}:
        yield f"the arrays are {sorted(got)[:10]}"
        return
    for t in want:
        array = got[t["name"]]
        if array.shape != t["shape"] or hashlib.sha256(array.data).hexdigest() != t["sha256"]:
            yield f"{t['name']} differs"


def edited(path, scratch):
    """An edit keeps all other leaves: arrays, numbers, texts, nil, lists and empty maps."""
    copy = scratch / "edited.msgpack"
    copy.write_bytes(path.read_bytes())
    p = heft("edit", copy, "--set", "note=an edit", "--unset", "step")
    if p.returncode:
        yield f"exit {p.returncode}: {p.stderr.decode()[:200]}"
        return
    want = dict(flatten(restore(path.read_bytes())))
    del want[("step",)]
    want[("note",)] = "an edit"
    got = dict(flatten(restore(copy.read_bytes())))
    yield from (f"{'/'.join(k)}: {got.get(k)!r}" for k in want if got.get(k) != want[k])
    yield from (f"{'/'.join(k)} is new" for k in set(got) - set(want))


def refused_edit(path, scratch):
    """A file with facts that the index does not hold, or with arrays in pieces, is not edited."""
    copy = scratch / "refused.msgpack"
    copy.write_bytes(path.read_bytes())
    p = heft("edit", copy, "--set", "note=an edit")
    if p.returncode != 5 or copy.read_bytes() != path.read_bytes():
        yield f"exit {p.returncode}"


def read_by_heft(scratch):
    rng = numpy.random.default_rng(3)
    tree = {"step": 12, "params": {}, "opt_state": {"0": {}, "1": {"mu": {}, "count": None}}}
    for i, dtype in enumerate(("float32", "float16", "int8", "uint64", "bool", "complex64")):
        values = rng.integers(0, 2, (3, i)).astype(dtype)
        tree["params"][f"layer_{i}"] = {"kernel": values, "scale": numpy.float32(i)}
    path = scratch / "peer.msgpack"
    path.write_bytes(serialize(tree))
    for keys, value in flatten(tree):
        if not isinstance(value, (numpy.ndarray, numpy.generic)):
            continue
        p = heft("cat", path, "/".join(keys))
        if p.stdout != value.tobytes():
            yield f"{'/'.join(keys)}: {p.stdout[:40]!r} {p.stderr.decode()[:100]}"
    p = heft("convert", "--force", path, scratch / "again.msgpack")
    again = dict(flatten(restore((scratch / "again.msgpack").read_bytes())))
    if p.returncode or again != dict(flatten(restore(path.read_bytes()))):
        yield f"a copy differs: exit {p.returncode}"


def chunk(array, size):
    """flax.serialization's _chunk(), which calls it with 2^30 bytes."""
    elements, flat = max(1, size // array.itemsize), array.reshape(-1)
    chunks = [flat[i:i + elements] for i in range(0, flat.size, elements)]
    return {"__msgpack_chunked_array__": True,
            "shape": {str(i): d for i, d in enumerate(array.shape)},
            "chunks": {str(i): c for i, c in enumerate(chunks)}}


def pieces(scratch):
    """Arrays in pieces are read as the arrays that were cut."""
    rng = numpy.random.default_rng(5)
    arrays = {f"{t}/{n}": rng.integers(0, 99, shape).astype(t) for t in ("float32", "int8", "int64")
              for n, shape in enumerate(((7, 9), (100,), (3, 1, 50), (40000,)))}
    path, out = scratch / "pieces.msgpack", scratch / "whole.msgpack"
    for size in (8, 64, 1000):
        tree = {"params": {}}
        for name, array in arrays.items():
            kind, n = name.split("/")
            tree["params"].setdefault(kind, {})[n] = chunk(array, size)
        path.write_bytes(serialize(tree))
        p = heft("convert", "--force", path, out)
        if p.returncode:
            yield p.stderr.decode()[:200]
            continue
        got = {"/".join(k[1:]): v for k, v in flatten(restore(out.read_bytes()))}
        for name, array in arrays.items():
            if got[name] != Array(array.shape, array.dtype.name, array.tobytes()):
                yield f"{name}, in pieces of {size} bytes"


def unchunk(tree):
    """Join arrays in pieces as flax.serialization's _unchunk(): all of them, in order, reshaped."""
    if not isinstance(tree, dict):
        return tree
    if "__msgpack_chunked_array__" not in tree:
        return {k: unchunk(v) for k, v in tree.items()}
    if list(tree) != ["__msgpack_chunked_array__", "shape", "chunks"] or not tree[
            "__msgpack_chunked_array__"]:
        raise ValueError(f"a map of {list(tree)}")
    shape = [tree["shape"][str(i)] for i in range(len(tree["shape"]))]
    chunks = [tree["chunks"][str(i)] for i in range(len(tree["chunks"]))]
    for c in chunks:
        if c.shape != [len(c.data) // numpy.dtype(SIZES.get(c.dtype, c.dtype)).itemsize]:
            raise ValueError(f"a piece of {c.shape} with {len(c.data)} bytes")
    return Array(shape, chunks[0].dtype, b"".join(c.data for c in chunks))


SIZES = {"bfloat16": "uint16"}


def written_in_pieces(scratch):
    """Arrays of more than a bound are written in pieces, which flax's rule joins."""
    if not PIECES:
        return
    rng = numpy.random.default_rng(6)
    arrays = {"a/whole": rng.random(1024, "<f4"), "a/more": rng.random(1025, "<f4"),
              "a/b/cube": rng.random((30, 17, 9), "<f4"),
              "c64": rng.random(3000, "<f4").view("<c8"),
              "bytes": rng.integers(0, 255, 4097, "u1"), "vast": rng.random((700, 900), "<f4"),
              "wide": rng.random((50, 41)), "z/none": numpy.zeros((0, 9000), "<f4"),
              "z/one": numpy.array(3, "<i8"), "twice": rng.random((64, 64), "<f4")}
    numpy.savez(scratch / "in.npz", **arrays)
    for mode in ("file", "stream", "arrays"):
        out = scratch / f"pieces_{mode}.msgpack"
        p = subprocess.run([PIECES, mode, scratch / "in.npz", out], capture_output=True,
                           check=False)
        if p.returncode:
            yield f"{mode}: {p.returncode}, {p.stderr.decode()}"
            continue
        stored = restore(out.read_bytes())
        for name, array in arrays.items():
            leaf, got = stored, unchunk(stored)
            for key in name.split("/"):
                leaf, got = leaf[key], got[key]
            if mode != "arrays" and array.dtype == "f8":
                bits = (array.astype("<f4").view("u4").astype("u8") + 0x7FFF +
                        (array.astype("<f4").view("u4") >> 16 & 1)) >> 16
                array, dtype = bits.astype("<u2"), "bfloat16"
            else:
                dtype = array.dtype.name
            if got != Array(array.shape, dtype, array.tobytes()):
                yield f"{mode}: {name} differs"
            most = max((len(c.data) for c in leaf["chunks"].values()), default=0) if isinstance(
                leaf, dict) else len(leaf.data)
            if most > 4096 or isinstance(leaf, dict) != (array.nbytes > 4096):
                yield f"{mode}: {name}: pieces of {most} bytes"
        if mode == "arrays":
            p = heft("diff", scratch / "in.npz", out)
            if p.returncode:
                yield p.stdout.decode()
    for mode in ("file", "stream"):
        if (scratch / f"pieces_{mode}.msgpack").read_bytes() != (
                scratch / "pieces_file.msgpack").read_bytes():
            yield f"{mode} has other bytes"
    for verb in ("verify", "hash"):
        p = heft(verb, out)
        if p.returncode:
            yield f"{verb}: {p.returncode}, {p.stderr.decode()}"


def shards_in_pieces(scratch):
    """A shard may have an array in pieces."""
    folder = scratch / "shards_in_pieces"
    folder.mkdir()
    a, b = numpy.arange(30.0).reshape(5, 6), numpy.arange(40)
    parts = {"flax_model-00001-of-00002.msgpack": {"w": a},
             "flax_model-00002-of-00002.msgpack": {"v": {"w": chunk(b, 64)}}}
    for name, tree in parts.items():
        (folder / name).write_bytes(serialize(tree))
    weight_map = {"w": list(parts)[0], "v/w": list(parts)[1]}
    (folder / "flax_model.msgpack.index.json").write_text(
        json.dumps({"metadata": {"total_size": 560}, "weight_map": weight_map}))
    for name, array in (("w", a), ("v/w", b)):
        p = heft("cat", folder, name)
        if p.stdout != array.tobytes():
            yield f"{name}: {p.stdout[:40]!r} {p.stderr.decode()[:200]}"


def complex_numbers(scratch):
    """A complex number of Python is two numbers of metadata."""
    path = scratch / "z.msgpack"
    path.write_bytes(serialize({"w": numpy.zeros(2), "z": 1.5 - 2j}))
    p = heft("info", "--json", path)
    if b"1.5" not in p.stdout or b"-2" not in p.stdout:
        yield f"{p.stdout!r} {p.stderr!r}"


def no_array(scratch):
    """The message about MessagePack without an array says what to do."""
    path = scratch / "other.msgpack"
    path.write_bytes(serialize({"step": 1, "name": {"x": "y"}}))
    p = heft("ls", path)
    if p.returncode != 3 or b"choose the file" not in p.stderr:
        yield f"exit {p.returncode}: {p.stderr.decode()[:200]}"


def conflicts(scratch):
    """Tensors "a" and "a/b" cannot be in a tree."""
    path, out = scratch / "c.npz", scratch / "c.msgpack"
    numpy.savez(path, **{"a": numpy.zeros(2), "a/b": numpy.ones(3), "a.b": numpy.ones(1)})
    p = heft("convert", "--force", path, out)
    if p.returncode != 5 or out.exists() or b"needs a map" not in p.stderr:
        yield f"exit {p.returncode}: {p.stderr.decode()[:200]}"
    p = heft("convert", "--force", "--allow-loss", path, out)
    if p.returncode or set(restore(out.read_bytes())) != {"a", "a.b"}:
        yield f"exit {p.returncode}: {p.stderr.decode()[:200]}"


def index(scratch):
    """A folder of shards with an index of transformers."""
    folder = scratch / "shards"
    folder.mkdir()
    parts = {"flax_model-00001-of-00002.msgpack": {"a": {"w": numpy.arange(3.0)}},
             "flax_model-00002-of-00002.msgpack": {"b": {"w": numpy.arange(4)}}}
    for name, tree in parts.items():
        (folder / name).write_bytes(serialize(tree))
    weight_map = {"/".join(k): name for name, tree in parts.items() for k, _ in flatten(tree)}
    (folder / "flax_model.msgpack.index.json").write_text(
        json.dumps({"metadata": {"total_size": 56}, "weight_map": weight_map}))
    for what in (folder, folder / "flax_model.msgpack.index.json"):
        p = heft("ls", "--json", what)
        names = sorted(t["name"] for t in json.loads(p.stdout or b"{}").get("tensors", []))
        if names != ["a/w", "b/w"]:
            yield f"{what.name}: {names} {p.stderr.decode()[:200]}"


def split(scratch):
    """A model that Heft splits is what transformers' flax_shard_checkpoint() writes."""
    folder, path = scratch / "split", scratch / "large.npz"
    arrays = {f"model/layers_{i}/kernel": numpy.full((40, 40 + i), i, "float32") for i in range(5)}
    numpy.savez(path, **arrays)
    p = heft("split", "--to", "flax", "--max-size", "15kB", path, folder)
    index = folder / "flax_model.msgpack.index.json"
    if p.returncode or not index.exists():
        yield f"exit {p.returncode}: {p.stderr.decode()[:200]}"
        return
    listed = json.loads(index.read_text())
    total = sum(a.nbytes for a in arrays.values())
    if listed["metadata"]["total_size"] != total or set(listed["weight_map"]) != set(arrays):
        yield f"{listed}"
    shards = {f: dict(flatten(restore((folder / f).read_bytes())))
              for f in set(listed["weight_map"].values())}
    if len(shards) < 2:
        yield f"{sorted(shards)}"
    for name, file in listed["weight_map"].items():
        got, array = shards[file].get(tuple(name.split("/"))), arrays[name]
        if got != Array(array.shape, "float32", array.tobytes()):
            yield f"{name} differs"
    p = heft("diff", path, folder)
    if p.returncode:
        yield p.stdout.decode()


def main():
    global HEFT, PIECES
    HEFT, generator, PIECES = [*sys.argv[1:], None][:3]
    with tempfile.TemporaryDirectory() as name:
        scratch = pathlib.Path(name)
        subprocess.run([sys.executable, generator, scratch], check=True)
        good = scratch / "flax" / "good"
        files = sorted(p for p in good.iterdir() if p.suffix != ".json")
        results = [(f"{p.name}, written by heft", list(written_by_heft(p, scratch)))
                   for p in files]
        results.append(("an edit", list(edited(good / "state.msgpack", scratch))))
        results += [(f"{n} is not edited", list(refused_edit(good / n, scratch)))
                    for n in ("complex.msgpack", "haiku.msgpack", "pieces.msgpack")]
        results += [(f.__doc__ or f.__name__, list(f(scratch)))
                    for f in (read_by_heft, pieces, written_in_pieces, shards_in_pieces,
                              complex_numbers, no_array,
                              conflicts, index, split)]
        return tap.report(results)


sys.exit(main())
