#!/usr/bin/env python3
"""read_ztensor1.py FILE: check a zTensor 1.0, 1.1 or 1.2 file of Heft and print it as JSON.

This independent reader is stricter than the format: the manifest must be encoded like that of the
reference writer, and the bytes between components must be zero and no more than the alignment
requires."""
import ctypes
import ctypes.util
import functools
import json
import struct
import sys

from cbor import decode, encode
from gen_ztensor1 import ALIGN, LOGICAL, LONG, MAGIC, VERSIONS, digest, parts_facts, round_up
from samples import SIZES, describe

LEVELS = 128
ROOT = {
    "1.0": ["version", "generator", "attributes", "tensors"],
    "1.1": ["version", "attributes", "objects"]
}
TENSOR = {
    "1.0": ["dtype", "shape", "format", "components"],
    "1.1": ["shape", "format", "attributes", "components"]
}
PART = {
    "1.0": ["offset", "length", "encoding",
            "digest"], "1.1": ["dtype", "offset", "length", "encoding", "digest"],
    "1.2": ["dtype", "type", "offset", "length", "uncompressed_length", "encoding", "digest"]
}
OPTIONAL = {"attributes", "encoding", "digest", "type", "uncompressed_length"}
SPARSE = {"sparse_csr": {"values", "indices", "indptr"}, "sparse_coo": {"values", "coords"}}


ANY = "any"  # accept any digest, or none


class InvalidFile(Exception):
    pass


def require(condition, message):
    if not condition:
        raise InvalidFile(message)


# ---- zstd ----

OUTPUT_CHUNK = 64 << 10


@functools.cache
def libzstd():
    return ctypes.CDLL(ctypes.util.find_library("zstd"))  # find_library() runs other programs


class Buffer(ctypes.Structure):
    _fields_ = [("at", ctypes.c_void_p), ("size", ctypes.c_size_t), ("pos", ctypes.c_size_t)]


def unzstd(stored, max_size):
    """Decode all frames with libzstd, at most `max_size` bytes and one more."""
    lib = libzstd()
    lib.ZSTD_createDStream.restype = ctypes.c_void_p
    lib.ZSTD_decompressStream.restype = ctypes.c_size_t
    stream = ctypes.c_void_p(lib.ZSTD_createDStream())
    source, room = ctypes.create_string_buffer(
        stored, len(stored)), ctypes.create_string_buffer(OUTPUT_CHUNK)
    given = Buffer(ctypes.addressof(source), len(stored), 0)
    content, left = bytearray(), 1
    while given.pos < given.size or left:
        before = given.pos
        taken = Buffer(ctypes.addressof(room), min(OUTPUT_CHUNK, max_size + 1 - len(content)), 0)
        left = lib.ZSTD_decompressStream(stream, ctypes.byref(taken), ctypes.byref(given))
        require(not lib.ZSTD_isError(ctypes.c_size_t(left)), "a component does not decode")
        require(given.pos > before or taken.pos,
               "a component is cut short, or decodes to more than it should")
        content += ctypes.string_at(room, taken.pos)
    lib.ZSTD_freeDStream(stream)
    require(len(content) <= max_size, "a component decodes to more than it should")
    return bytes(content)


# ---- the manifest ----

def check_keys(m, keys, what):
    require([k for k in keys if k in m] == list(m) and set(keys) - set(m) <= OPTIONAL,
           f"keys of {what}: {list(m)}")


def ascend(names, what):
    require([n.encode() for n in names] == sorted(n.encode() for n in names),
           f"{what} are not sorted")


def read_manifest(raw):
    m, at = decode(raw, 0, LEVELS)
    require(at == len(raw) and encode(m) == raw, "the manifest is not in its shortest form")
    return m


# ---- components ----

def type_of(p):
    for name, pair in LOGICAL.items():
        if "type" in p and pair == (p["dtype"], p["type"]):
            return name
    require("type" not in p and p["dtype"] in LONG, f"type {p}")
    return p["dtype"]


def size_of(dtype, shape):
    base, logical = LOGICAL.get(dtype, (dtype, None))
    size = SIZES[base] * (2 if logical and logical.startswith("complex") else 1)
    for d in shape:
        size *= d
    return size


def max_stored_size(dtype, o, role):
    """Bytes that a component has at most once decoded."""
    if o["format"] == "dense":
        return size_of(dtype, o["shape"])
    if role == "indptr":
        return 8 * (o["shape"][0] + 1)
    return 1 << 26


def read_part(data, p, max_size, algorithm):
    at, n = p["offset"], p["length"]
    stored = data[at:at + n]
    require(at % ALIGN == 0 and len(stored) == n, f"a component at {at}")
    if algorithm == ANY:
        algorithm = p["digest"].split(":")[0] if "digest" in p else None
    require(("digest" in p) == bool(algorithm), f"digest {p.get('digest')}")
    require(not algorithm or p["digest"] == digest(stored, algorithm), f"digest {p.get('digest')}")
    if "encoding" not in p:
        return stored
    content = unzstd(stored, p.get("uncompressed_length", max_size))
    require(p["encoding"] == "zstd" and p.get("uncompressed_length", len(content)) == len(content),
           f"{len(content)} bytes decoded")
    return content


def check_sparse(o, types, parts):
    """Indices are u64 and in bounds, and as many as there are values."""
    require(set(parts) == SPARSE[o["format"]], f"components {sorted(parts)}")
    require(all(types[r] == "u64" for r in parts if r != "values"), f"types {types}")
    whole = {r: struct.unpack(f"<{len(d) // 8}Q", d) for r, d in parts.items() if r != "values"}
    size = size_of(types["values"], ())
    count, rest = divmod(len(parts["values"]), size)
    require(not rest, "values are no whole number of elements")
    if o["format"] == "sparse_coo":
        coords, rank = whole["coords"], len(o["shape"])
        require(len(coords) == count * rank, f"{len(coords)} coordinates")
        require(all(c < o["shape"][i // count] for i, c in enumerate(coords)),
               "a coordinate out of bounds")
        return
    rows, columns = o["shape"]
    indptr = whole["indptr"]
    require(
        len(indptr) == rows + 1 and indptr[0] == 0 and indptr[-1] == count
        and list(indptr) == sorted(indptr), "row pointers")
    require(
        len(whole["indices"]) == count and all(c < columns for c in whole["indices"]),
        "a column out of bounds")


def check_places(data, parts, manifest_at, align):
    """Check that each component begins at the first multiple of `align` after zeros."""
    end = len(MAGIC)
    for at, n in sorted(set(parts), key=lambda p: (p[0], p[1] != 0)):
        require(at == round_up(end, align), f"a component at {at}, not {round_up(end, align)}")
        require(not data[end:at].strip(b"\0"), f"bytes before {at} are not zero")
        end = at + n
    require(not data[end:manifest_at].strip(b"\0"), "bytes before the manifest are not zero")
    require(manifest_at == end or (not parts and manifest_at == ALIGN),
           f"the manifest at {manifest_at}, not {end}")


# ---- the file ----

def read(path, version="1.0", align=None, algorithm=None):
    data = open(path, "rb").read()
    footer = 8 if version == "1.0" else 16
    require(data[:8] == MAGIC and (footer == 8 or data[-8:] == MAGIC), "a magic number")
    size = struct.unpack_from("<Q", data, len(data) - footer)[0]
    at = len(data) - footer - size
    require(at >= len(MAGIC), f"a manifest of {size} bytes")
    m = read_manifest(data[at:at + size])
    container = "1.0" if version == "1.0" else "1.1"
    check_keys(m, ROOT[container], "the manifest")
    require(m["version"] == VERSIONS[version], f"version {m['version']}")
    require(version == "1.2" or all(isinstance(v, str) for v in m.get("attributes", {}).values()),
           "an attribute that is no text")
    ascend(m.get("attributes", {}), "attributes")
    objects = m["tensors" if version == "1.0" else "objects"]
    ascend(objects, "names")
    tensors, places = [], []
    for name, o in objects.items():
        check_keys(o, TENSOR[container], "a tensor")
        ascend(o["components"], "roles")
        types, parts = {}, {}
        for role, p in o["components"].items():
            check_keys(p, PART[version], "a component")
            is_index = o["format"] in SPARSE and role != "values"
            long = {v: k for k, v in LONG.items()}
            types[role] = type_of(p) if version != "1.0" else "u64" if is_index else long[
                o["dtype"]]
            parts[role] = read_part(data, p, max_stored_size(types[role], o, role), algorithm)
            places.append((p["offset"], p["length"]))
        if o["format"] == "dense":
            require(
                len(parts["data"]) == size_of(types["data"], o["shape"]),
                f"{name!r} has {len(parts['data'])} bytes")
            tensors.append(describe(name, types["data"], o["shape"], parts["data"]))
            continue
        if o["format"] in SPARSE:
            check_sparse(o, types, parts)
        tensors.append(parts_facts(name, None, o["shape"], o["format"], parts))
    check_places(data, places, at, align or ALIGN)
    return {"tensors": tensors, "metadata": m.get("attributes", {})}


if __name__ == "__main__":
    try:
        print(json.dumps(read(*sys.argv[1:3]), indent=1, default=repr))
    except (InvalidFile, KeyError, ValueError, IndexError, struct.error) as e:
        sys.exit(f"{sys.argv[1]}: {e!r}")
