#!/usr/bin/env python3
"""read_ztensor2.py FILE: check a zTensor 2 file of Heft and print it as JSON.

This independent reader is stricter than the format: the manifest has the canonical encoding, bytes
between blobs are zero, equal content is stored once, and blobs are packed in the order of names."""
import ctypes
import ctypes.util
import functools
import json
import struct
import sys

from cbor import decode
from gen_ztensor2 import (CANONICAL, FLOOR, FOOTER, LOGICAL, MAGIC, STORAGE, ZSTD, cbor, digest,
                          frame, parts_facts, round_up)
from samples import describe
from xxh3 import xxh3

DEPTH, RANK, NAME = 32, 64, 1024
WIDTH = {
    "f64": 8, "i64": 8, "u64": 8, "f32": 4, "i32": 4, "u32": 4, "f16": 2, "bf16": 2, "i16": 2,
    "u16": 2, "i8": 1, "u8": 1
}
FRAME = 1 << 20
KNOWN = {"zt.sparse_csr/1": "sparse_csr", "zt.sparse_coo/1": "sparse_coo"}


ANY = "any"  # accept any digest, or none


class InvalidFile(Exception):
    pass


def require(condition, message):
    if not condition:
        raise InvalidFile(message)


# ---- CBOR ----

def read_manifest(raw):
    v, at = decode(raw, 0, DEPTH)
    require(at == len(raw), "bytes behind the manifest")
    require(cbor(v) == raw, "the manifest is not in deterministic encoding")
    return v


# ---- zstd ----

@functools.cache
def libzstd():
    return ctypes.CDLL(ctypes.util.find_library("zstd"))  # find_library() runs other programs


def unzstd(stored, length):
    """Decode the frames of the seek table with libzstd."""
    lib = libzstd()
    lib.ZSTD_decompress.restype = ctypes.c_size_t
    frames, flags, magic = struct.unpack("<IBI", stored[-9:])
    require(magic == 0x8F92EAB1 and flags == 0, "no seek table")
    table = stored[len(stored) - 9 - 8 * frames:-9]
    start = len(stored) - 17 - 8 * frames
    require(
        struct.unpack_from("<II", stored, start) == (0x184D2A5E, 9 + 8 * frames),
        "the seek table's frame")
    out, at = b"", 0
    for i in range(frames):
        size, content = struct.unpack_from("<II", table, 8 * i)
        require(content == min(FRAME, length - len(out)), f"frame {i} holds {content} bytes")
        require(stored[at:at + 4] == frame(b"")[:4] and stored[at + 4] & 4,
               f"frame {i} has no checksum")
        buf = ctypes.create_string_buffer(content or 1)
        got = lib.ZSTD_decompress(buf, ctypes.c_size_t(content), stored[at:at + size],
                                  ctypes.c_size_t(size))
        require(got == content, f"frame {i} does not decode")
        out, at = out + buf.raw[:content], at + size
    require(at == start and len(out) == length, "frames and table disagree")
    return out


# ---- the file ----

def type_of(p):
    for name, storage in STORAGE.items():
        if p.get("type") == LOGICAL.get(name, name):
            require(p["dtype"] == storage, f"{name} over {p['dtype']}")
            return name
    require("type" not in p and p["dtype"] in WIDTH, f"type {p}")
    return p["dtype"]


def bytes_of(dtype, count):
    if dtype == "f4_e2m1":
        return (count + 1) // 2
    return count * WIDTH[STORAGE.get(dtype, dtype)] * (2 if dtype in LOGICAL else 1)


def check_name(name):
    require(0 < len(name.encode()) <= NAME and "\0" not in name, f"name {name!r}")


def read_part(data, p, algorithm):
    require(
        set(p) <= {"blob", "type", "dtype", "digest", "encoding", "decoded_length"},
        f"keys {sorted(p)}")
    at, n = p["blob"]
    content = data[at:at + n]
    require(at >= FLOOR and at + n <= len(data) - FOOTER and len(content) == n, f"blob {p['blob']}")
    if "encoding" in p:
        require(p["encoding"] == ZSTD, p["encoding"])
        content = unzstd(content, p["decoded_length"])
    if algorithm == ANY:
        algorithm = p["digest"].split(":")[0] if "digest" in p else None
        require(not algorithm or p["digest"] == digest(content, algorithm),
               f"digest {p.get('digest')}")
        return content
    require(p["digest"] == digest(content, algorithm or "xxh3"), f"digest {p['digest']}")
    return content


def check_places(data, parts, manifest_at, align):
    """parts: (object, role, blob, content); in the order of names, each content once."""
    seen, next_at = {}, align
    for _, _, blob, content in sorted(parts, key=lambda p: (p[0].encode(), p[1].encode())):
        if content in seen:
            require(seen[content] == blob, f"equal content at {blob} and {seen[content]}")
            continue
        require(blob[0] == round_up(next_at, align),
                f"a blob at {blob[0]}, not {round_up(next_at, align)}")
        seen[content], end = blob, blob[0] + blob[1]
        require(not data[next_at:blob[0]].strip(b"\0"), f"bytes before {blob[0]} are not zero")
        next_at = max(end, align)
    require(manifest_at == round_up(next_at, align), f"the manifest at {manifest_at}")
    require(not data[len(MAGIC):align].strip(b"\0") and not data[next_at:manifest_at].strip(b"\0"),
           "padding that is not zero")


def check_appended(data, previous, parts, manifest_at):
    """§2.5: appended bytes follow the previous file, which does not change."""
    require(data.startswith(previous), "bytes that were there have changed")
    blobs = sorted({blob for _, _, blob, _ in parts if blob[1]}
                   | {(manifest_at, len(data) - FOOTER - manifest_at)})
    for (at, n), (following, _) in zip(blobs, blobs[1:]):
        require(at % FLOOR == 0 and at + n <= following, f"blobs at {at} and {following}")
        require(at + n <= len(previous) or at >= len(previous), f"a blob at {at}")


def read(path, align=None, algorithm=None, previous=None):
    """Read a file; `previous` are the bytes before an append."""
    data = path.read_bytes() if hasattr(path, "read_bytes") else open(path, "rb").read()
    require(len(data) >= 48 and data[:8] == MAGIC and data[-8:] == MAGIC, "a magic number")
    at, size, hashed, version, reserved = struct.unpack("<QQQII", data[-FOOTER:-8])
    require((version, reserved) == (2, 0) and at + size == len(data) - FOOTER, "the footer")
    raw = data[at:at + size]
    require(xxh3(raw) == hashed, "the manifest's hash")
    manifest = read_manifest(raw)
    require(set(manifest) <= {"objects", "attributes"}, f"keys {sorted(manifest)}")
    tensors, parts = [], []
    for name, o in manifest["objects"].items():
        check_name(name)
        require(
            set(o) <= {"parts", "shape", "layout", "attributes"} and len(o["shape"]) <= RANK,
            f"object {name!r}")
        for role, p in o["parts"].items():
            check_name(role)
            parts.append((name, role, tuple(p["blob"]), read_part(data, p, algorithm)))
        if o["layout"] == "dense":
            p, count = o["parts"]["data"], 1
            for d in o["shape"]:
                count *= d
            require(
                len(parts[-1][3]) == bytes_of(type_of(p), count),
                f"{name!r} has {len(parts[-1][3])} bytes")
            tensors.append(describe(name, type_of(p), o["shape"], parts[-1][3]))
        else:
            own = {role: content for n, role, _, content in parts if n == name}
            tensors.append(
                parts_facts(name, None, o["shape"], KNOWN.get(o["layout"], o["layout"]), own))
    encoded = any("encoding" in p for o in manifest["objects"].values()
                  for p in o["parts"].values())
    if previous:
        check_appended(data, previous, parts, at)
    else:
        check_places(data, parts, at, align or (FLOOR if encoded else CANONICAL))
    return {"tensors": tensors, "metadata": manifest.get("attributes", {})}


if __name__ == "__main__":
    try:
        print(json.dumps(read(sys.argv[1]), indent=1, default=repr))
    except (InvalidFile, KeyError, ValueError, IndexError, struct.error) as e:
        sys.exit(f"{sys.argv[1]}: {e!r}")
