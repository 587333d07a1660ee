"""delta_file.py - reads, applies and writes deltas as docs/delta.md describes them, with numpy and
the command zstd, and the layouts of other programs; nothing of it knows Heft."""
import functools
import json
import struct
import subprocess
import zlib

import numpy as np

import cbor
import blake3_ref
from gen_ztensor1 import File

blake3 = functools.cache(blake3_ref.blake3)
BLOCK, PIECE = 65536, 1 << 20
NAMES = {"F64": "f64", "F32": "f32", "BF16": "bf16", "F16": "f16", "I64": "i64", "I8": "i8",
         "U8": "u8"}
UNITS = {"f64": 8, "f32": 4, "bf16": 2, "f16": 2, "i64": 8, "i8": 1, "u8": 1}


# ---- safetensors ----

def write_model(path, tensors, metadata=None):
    """tensors: {name: (type, array)}."""
    header, at = {"__metadata__": metadata} if metadata else {}, 0
    for name, (kind, array) in tensors.items():
        end = at + array.nbytes
        header[name] = {"dtype": kind, "shape": list(array.shape), "data_offsets": [at, end]}
        at = end
    text = json.dumps(header).encode()
    data = b"".join(array.tobytes() for _, array in tensors.values())
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def read_model(path):
    """Return {name: (type, shape, bytes as an array)} and the metadata."""
    raw = path.read_bytes()
    n = struct.unpack("<Q", raw[:8])[0]
    header = json.loads(raw[8:8 + n])
    metadata = header.pop("__metadata__", {})
    cut = {name: raw[8 + n + t["data_offsets"][0]:8 + n + t["data_offsets"][1]]
           for name, t in header.items()}
    return {name: (t["dtype"], t["shape"], np.frombuffer(cut[name], np.uint8))
            for name, t in header.items()}, metadata


# ---- digests of docs/hash.md ----

def _u32(n):
    return struct.pack("<I", n)


def _text(s):
    return _u32(len(s.encode())) + s.encode()


def tensor_hash(dtype, shape, data):
    pieces = b"".join(blake3(data[i:i + PIECE]) for i in range(0, len(data), PIECE))
    head = _text("heft tensor 1") + _text(dtype) + _u32(len(shape))
    head += b"".join(struct.pack("<Q", d) for d in shape) + _text("dense") + _u32(1)
    return blake3(head + _text("data") + struct.pack("<Q", len(data)) + blake3(pieces)).hex()


# ---- applying ----

def zstd(data, *options):
    return subprocess.run(["zstd", "-q", "-c", *options], input=data, capture_output=True,
                          check=True).stdout


def _part(raw, part):
    data = raw[part["offset"]:part["offset"] + part["length"]]
    return zstd(data, "-d") if part.get("encoding") == "zstd" else data


def positions(counts, gaps):
    counts, gaps = counts.astype(np.int64), gaps.astype(np.int64)
    total = np.cumsum(gaps)
    before = np.concatenate([[0], total])[np.cumsum(counts) - counts]
    return total - np.repeat(before, counts) + np.repeat(np.arange(len(counts)) * BLOCK, counts)


def read_delta(path):
    raw = path.read_bytes()
    length = struct.unpack("<Q", raw[-16:-8])[0]
    manifest, _ = cbor.decode(raw, len(raw) - 16 - length, 16)
    return raw, manifest


def apply_delta(base, delta):
    """Return the tensors and metadata that a delta makes of the base, a safetensors file."""
    tensors, metadata = read_model(base)
    raw, manifest = read_delta(delta)
    listed, out = manifest["attributes"]["heft.delta"], {}
    for name, row in listed["tensors"].items():
        if row["change"] == "none":
            out[name] = tensors[name]
        elif row["change"] != "removed":
            found = manifest["objects"][name]
            parts = {role: _part(raw, p) for role, p in found["components"].items()}
            out[name] = _change(row, tensors.get(name), found["shape"], parts)
    metadata = {k: v for k, v in metadata.items() if k not in listed["unset"]}
    return out, metadata | listed["set"]


def _change(row, base, shape, parts):
    if row["change"] in ("whole", "added"):
        return row["dtype"].upper(), shape, np.frombuffer(parts["data"], np.uint8)
    new = base[2].copy()
    if row["change"] == "xor":
        new ^= np.frombuffer(parts["xor"], np.uint8)
    else:
        unit = UNITS[row["dtype"]]
        at = positions(np.frombuffer(parts["counts"], "<u4"), np.frombuffer(parts["gaps"], "<u2"))
        new.view(f"<u{unit}")[at] = np.frombuffer(parts["values"], f"<u{unit}")
    return base[0], base[1], new


# ---- writing by hand ----

def sparse_parts(old, new, unit):
    """Return counts, gaps and values, and the old values that are replaced."""
    a, b = (x.tobytes() for x in (old, new))
    a, b = np.frombuffer(a, f"<u{unit}"), np.frombuffer(b, f"<u{unit}")
    counts, gaps = [], []
    for start in range(0, len(a), BLOCK):
        at = np.flatnonzero(a[start:start + BLOCK] != b[start:start + BLOCK])
        counts.append(len(at))
        gaps += np.diff(at, prepend=0).tolist()
    changed = a != b
    return (np.array(counts, "<u4").tobytes(), np.array(gaps, "<u2").tobytes(),
            b[changed].tobytes(), a[changed].tobytes())


class Delta:
    """A delta by hand: rows and tensors are dictionaries that a test may change."""

    def __init__(self):
        self.file, self.rows, self.objects = File("1.2"), {}, {}
        self.listed = {"version": 1, "tensors": self.rows, "set": {}, "unset": []}

    def sparse(self, name, kind, old, new, **parts):
        dtype, unit = NAMES[kind], UNITS[NAMES[kind]]
        made = dict(zip(("counts", "gaps", "values", "old"), sparse_parts(old, new, unit)))
        made |= parts
        self.rows[name] = {"change": "sparse", "dtype": dtype,
                           "base": tensor_hash(dtype, old.shape, old.tobytes()),
                           "result": tensor_hash(dtype, new.shape, new.tobytes()),
                           "replaced": blake3(made["old"]).hex()}
        self.objects[name] = self.file.tensor(f"u{8 * unit}", old.shape, "heft.sparse_change", {
            "counts": self.file.part("u32", made["counts"]),
            "gaps": self.file.part("u16", made["gaps"]),
            "values": self.file.part(f"u{8 * unit}", made["values"])})

    def xor(self, name, kind, old, new, data=None):
        dtype = NAMES[kind]
        a, b = (np.frombuffer(x.tobytes(), np.uint8) for x in (old, new))
        self.rows[name] = {"change": "xor", "dtype": dtype,
                           "base": tensor_hash(dtype, old.shape, old.tobytes()),
                           "result": tensor_hash(dtype, new.shape, new.tobytes())}
        self.objects[name] = self.file.tensor("u8", old.shape, "heft.xor_change", {
            "xor": self.file.part("u8", (a ^ b).tobytes() if data is None else data)})

    def same(self, name, kind, array):
        dtype = NAMES[kind]
        self.rows[name] = {"change": "none", "dtype": dtype,
                           "base": tensor_hash(dtype, array.shape, array.tobytes())}

    def write(self, path):
        root = self.file.root(self.objects, {"heft.delta": self.listed})
        path.write_bytes(self.file.end(root))


# ---- other programs ----

CHECKSUMS = {"adler32": lambda data: f"{zlib.adler32(data):08x}",
             "blake3": lambda data: blake3(data).hex(),
             "xxh3-128": lambda data: subprocess.run(
                 ["xxhsum", "-H2"], input=data, capture_output=True,
                 check=True).stdout.split()[0].decode()}


def write_disk_delta(folder, old, new, encoding, checksum, version=1):
    """Write the folder that miles, slime and SGLang use, in two files."""
    folder.mkdir(parents=True)
    (a, _), (b, _) = read_model(old), read_model(new)
    tensors, sums = {}, {}
    for name in b:
        x, y = a[name][2], b[name][2]
        if np.array_equal(x, y):
            continue
        at = np.flatnonzero(x != y).astype("<u4")
        raw = (x ^ y).tobytes() if encoding == "xor" else (
            _u32(len(at)) + at.tobytes() + y[at].tobytes())
        tensors[name] = "U8", np.frombuffer(zstd(raw, "-1"), np.uint8)
        sums[name] = CHECKSUMS[checksum](y.tobytes())
    names, where = list(tensors), {}
    for i, some in enumerate((names[:1], names[1:])):
        file = f"model-{i:05d}-of-00002.safetensors"
        write_model(folder / file, {n: tensors[n] for n in some}, {n: sums[n] for n in some})
        where |= {n: file for n in some}
    index = {"metadata": {"version": f"{version:06d}", "base_version": f"{version - 1:06d}",
                          "delta_encoding": encoding, "compression_format": "zstd",
                          "checksum_format": checksum}, "weight_map": where}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))


def apply_disk_delta(base, folder):
    """Return the tensors that a disk delta makes of the base; compare checksums."""
    tensors, _ = read_model(base)
    index = json.loads((folder / "model.safetensors.index.json").read_text())
    about = index["metadata"]
    for file in sorted(set(index["weight_map"].values())):
        changes, sums = read_model(folder / file)
        for name, (kind, _, packed) in changes.items():
            assert kind == "U8" and index["weight_map"][name] == file
            raw = np.frombuffer(zstd(packed.tobytes(), "-d"), np.uint8)
            dtype, shape, new = tensors[name]
            new = new.copy()
            if about["delta_encoding"] == "xor":
                new ^= raw
            else:
                count = int(raw[:4].view("<u4")[0])
                new[raw[4:4 + 4 * count].view("<u4")] = raw[4 + 4 * count:]
            assert CHECKSUMS[about["checksum_format"]](new.tobytes()) == sums[name], name
            tensors[name] = dtype, shape, new
    return tensors


def write_patch(path, old, new, encoding):
    """Write a sparse patch of TRL, of the tensors of bf16."""
    (a, _), (b, _) = read_model(old), read_model(new)
    tensors = {}
    for name, (kind, _, y) in b.items():
        if kind != "BF16":
            continue
        x, y = a[name][2].view("<u2"), y.view("<u2")
        at = np.flatnonzero(x != y)
        gaps = np.diff(at, prepend=-1) - 1
        width = "U16" if not len(gaps) or gaps.max() < 65536 else "U32"
        tensors[name + ".val"] = "BF16", y[at]
        tensors[name + ".idx"] = ("I32", at.astype("<i4")) if encoding == "raw" else (
            width, gaps.astype("<u2" if width == "U16" else "<u4"))
    write_model(path, tensors, {"format": "sparse_weight_patch", "version": "1", "sparse": "True",
                                "encoding": encoding})
