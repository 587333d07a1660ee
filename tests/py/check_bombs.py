#!/usr/bin/env python3
"""check_bombs.py HEFT: small files that declare, or decode to, far more bytes than they have.

Each command must refuse or read each file within 2 s of processor time and 128 MiB of memory. TAP
on stdout."""
import concurrent.futures
import gzip
import pathlib
import random
import struct
import sys
import tempfile

import bounded
from bounded import GIB, MIB
from cbor import Raw, encode, head
from gen_torch import archive
from gen_ztensor1 import File, T, frame, numbers, repeated
from gen_ztensor2 import FLOOR, File as File2, seek_table

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import tap  # noqa: E402

DONE, FAULT, USAGE, INVALID, CANNOT = 0, 1, 2, 3, 5
COMMANDS = ["ls", "info", "verify", "hash", "stats", "convert"]


# ---- frames ----

def one_block_too_long(claimed):
    """Return a frame of a repeated byte that declares `claimed` bytes."""
    return repeated(b"\0", claimed, claimed)


def dense(stored, shape, version="1.0", **more):
    f = File(version)
    o = f.tensor("u8", shape, "dense", {"data": f.part("u8", b"", stored=stored)})
    data = o["components"]["data"]
    data.pop("uncompressed_length", None)
    data |= more
    return f.end(f.root({"t": o}))


def unknown_layout(stored, version="1.0"):
    """Return a file with a component of unknown layout, without a decoded length."""
    f = File(version)
    part = {k: v for k, v in f.part("u8", b"", stored=stored).items() if k != "uncompressed_length"}
    return f.end(f.root({"t": f.tensor("u8", [4], "quantized_4bit", {"data": part})}))


def sparse(stored):
    f = File()
    parts = {
        "values": f.part("f32", b"", stored=stored), "indices": f.part("u64", b"", stored=stored),
        "indptr": f.part("u64", numbers("Q", [0, 2**40]))
    }
    return f.end(f.root({"t": f.tensor("f32", [1, 2**41], "sparse_csr", parts)}))


def seekable(content, frames, claimed):
    """Return a zTensor 2 file with `frames` frames of zeros and a matching seek table."""
    f = File2(FLOOR)
    one = struct.pack("<IBI", 0xFD2FB528, 0xA4, content)
    blocks = -(-content // 131072)
    one += b"".join(
        struct.pack("<I",
                    min(131072, content - i * 131072) << 3 | 2 | (i + 1 == blocks))[:3] + b"\0"
        for i in range(blocks))
    one += bytes(4)
    encoded = one * frames + seek_table([(len(one), content)] * frames)
    part = {
        "dtype": "u8", "blob": f.blob(encoded), "encoding": "zt.zstd-seekable/1",
        "decoded_length": claimed
    }
    return f.end(
        {"objects": {"t": {"shape": [claimed], "layout": "dense", "parts": {"data": part}}}})


# ---- manifests ----

def manifest(raw, version="1.0"):
    return File(version).end(raw)


def burnpack(raw, size=None):
    return b"NRUB\x01\x00" + struct.pack("<I",
                                         len(raw) if size is None else size) + raw + bytes(512)


def nested(byte, levels, end=b"\0"):
    return b"\xa1\x61x" + byte * levels + end


def names(count):
    """Return the pairs of a map of tensors with long names that differ only at the end."""
    return b"".join(encode("n" * 200 + str(i)) + b"\xa0" for i in range(count))


def announced(key, head_byte, count, filler):
    return b"\xa1" + encode(key) + bytes([head_byte]) + count.to_bytes(8, "big") + filler


def files():
    """Yield (name, bytes, allowed exit statuses of verify)."""
    bad = {FAULT}
    yield "8 bytes declared, decodes to 4 GiB", dense(repeated(b"\0", 4 * GIB), [8]), bad
    yield "8 bytes declared, decodes to 4 GiB, 1.2", dense(repeated(b"\0", 4 * GIB), [8], "1.2",
                                                      uncompressed_length=8), bad
    yield "8 bytes declared, the frame declares 4 GiB", dense(one_block_too_long(4 * GIB), [8]), bad
    yield "a frame declares 2^62 bytes", dense(repeated(b"\0", MIB, 2**62), [2**20]), bad
    yield "2^60 bytes declared, decodes to 1 MiB", dense(repeated(b"\0", MIB), [2**60]), bad
    yield "2^40 bytes declared, decodes to nothing", dense(frame(b""), [2**40]), bad
    yield "uncompressed_length of 2^60, 1.2", dense(repeated(b"\0", MIB), [2**20], "1.2",
                                             uncompressed_length=2**60), bad
    yield "a window of 2^41 bytes", dense(frame(T[3], window=0xF8), [8]), bad
    yield "a window of 1 GiB", dense(frame(T[3], window=0xA0), [8]), {DONE}
    yield "10,000 empty frames and a frame that is too long", dense(
        frame(b"") * 10000 + frame(bytes(9)), [8]), bad
    yield "200,000 skippable frames", dense((struct.pack("<II", 0x184D2A50, 0)) * 200000,
                                                [8]), bad
    yield "a component of an unknown layout, 64 GiB", unknown_layout(
        repeated(b"\0", 64 * GIB)[:MIB]), bad | {CANNOT}
    yield "a component of an unknown layout, 300 MiB", unknown_layout(repeated(
        b"\0", 300 * MIB)), bad | {DONE, CANNOT}
    yield "sparse parts of 2^40 entries", sparse(repeated(b"\0", 2 * GIB)), bad | {CANNOT}
    yield "zTensor 2: frames of 16 MiB, 1 GiB in all", seekable(16 * MIB, 64, GIB), bad
    yield "zTensor 2: frames of 1 GiB", seekable(GIB, 2, 2 * GIB), bad
    yield "zTensor 2: 2^50 bytes", seekable(MIB, 1, 2**50), bad
    yield "zTensor 2: a million frames", seekable(1, 100000, 2**20), bad
    for name, wrap, keys in (("zTensor", manifest, ["tensors"]),
                             ("zTensor 1.2", lambda r: manifest(r, "1.2"), ["objects"]),
                             ("Burnpack", burnpack, ["tensors", "metadata", "scalars"])):
        for byte, what in ((b"\x81", "lists"), (b"\x9f", "open lists"), (b"\xa1\x61x", "maps"),
                           (b"\xc1", "tags"), (b"\xbf\x61x", "open maps"),
                           (b"\x81\xc1\xa1\x00", "lists, tags and maps")):
            yield f"{name}: 1,000,000 {what}", wrap(nested(byte, 1000000)), bad | {CANNOT}
        for key in keys:
            for count in (2**64 - 1, 2**32, 2**28):
                yield f"{name}: a map of {count} {key}", wrap(
                    announced(key, 0xBB, count, bytes(4096))), bad | {CANNOT}
                yield f"{name}: a list of {count} {key}", wrap(
                    announced(key, 0x9B, count, bytes(4096))), bad | {CANNOT}
            yield f"{name}: as many {key} as there are bytes", wrap(
                announced(key, 0xBB, 4 * MIB, bytes(8 * MIB))), bad | {CANNOT}
        yield f"{name}: a text of 2^60 bytes", wrap(b"\xa1\x7b" + (2**60).to_bytes(8, "big")), bad
        yield f"{name}: 500,000 chunks of a text", wrap(b"\xa1\x7f" + b"\x61a" * 500000 +
                                                        b"\xff\0"), bad
        yield f"{name}: 20,000 long names", wrap(b"\xa1" + encode(keys[0]) + head(5, 20000) +
                                                 names(20000)), bad
    yield "zTensor: a shape of a million dimensions", one_shape(1000000), bad | {CANNOT}
    yield "zTensor: 60,000 dimensions", one_shape(60000), bad | {DONE, CANNOT}
    yield "zTensor: 100,000 components", components(100000), bad | {CANNOT}
    for name, item in (("1,000,000 lists", b"\x91" * 1000000 + b"\xc0"),
                       ("1,000,000 maps", b"\x81\xa0" * 1000000 + b"\xc0"),
                       ("a list of 8,000,000 nils",
                        b"\xdd" + struct.pack(">I", 8000000) + b"\xc0" * 8000000),
                       ("a list of 8,000,000 numbers",
                        b"\xdd" + struct.pack(">I", 8000000) + b"\x05" * 8000000),
                       ("a list of 4,000,000 texts",
                        b"\xdd" + struct.pack(">I", 4000000) + b"\xa0" * 4000000),
                       ("2^32 - 1 items", b"\xdd\xff\xff\xff\xff"), ("2^32 - 1 pairs",
                                                                     b"\xdf\xff\xff\xff\xff")):
        yield f"Burn record: {name}", burn_record(item), bad | {DONE, CANNOT}
    size = GIB // 4
    zeros = b"\x81\xa1w" + gen_pack({"bytes": b"", "shape": [size], "dtype": "U8"}).replace(
        b"\xc4\0", b"\xc6" + struct.pack(">I", size) + bytes(size), 1)
    yield "Burn record: 256 MiB of zeros, packed", gzip.compress(burn_record(zeros), 1), {CANNOT}
    noise = random.Random(1).randbytes(MIB)
    yield "PyTorch: a deflated pickle of 1 MiB of nothing", pickled(bytes(MIB - 8)), {FAULT}
    yield "PyTorch: a deflated pickle of 1 MiB and a byte of nothing", pickled(
        bytes(MIB - 7)), bad | {CANNOT}
    yield "PyTorch: a deflated pickle of 1 MiB of noise", pickled(noise), {FAULT}
    yield "Burnpack: a manifest of 4 GiB", burnpack(b"\xa0", 2**32 - 1), bad
    yield "zTensor: a manifest of 2^64 - 1 bytes", File().end(b"\xa0", 2**64 - 1), bad


def gen_pack(fields):
    """Encode a map of text to bytes, lists of numbers and text as MessagePack."""
    out = bytes([0x80 | len(fields)])
    for key, value in fields.items():
        out += bytes([0xA0 | len(key)]) + key.encode()
        if isinstance(value, bytes):
            out += b"\xc4" + bytes([len(value)]) + value
        elif isinstance(value, list):
            out += bytes([0x90 | len(value)]) + b"".join(b"\xcf" + struct.pack(">Q", v)
                                                         for v in value)
        else:
            out += bytes([0xA0 | len(value)]) + value.encode()
    return out


def pickled(content):
    """An archive of PyTorch with a deflated pickle of 8 bytes more than the content: it opens, and
    verify says that it has no tensor."""
    return archive([("data.pkl", b"\x80\x02B" + struct.pack("<I", len(content)) + content + b"."),
                    ("version", b"3\n")], deflate={"data.pkl"})


def burn_record(item):
    about = gen_pack({k: "f32" for k in ("float", "int", "format", "version", "settings")})
    return b"\x82\xa8metadata" + about + b"\xa4item" + item


def one_shape(rank):
    f = File()
    o = f.dense(T)
    o["shape"] = Raw(head(4, rank) + b"\x01" * (rank - 1) + b"\x08")
    return f.end(f.root({"t": o}))


def components(count):
    f = File()
    o = f.dense(T)
    o["components"] = {f"c{i}": {"offset": 64, "length": 8} for i in range(count)} | o["components"]
    return f.end(f.root({"t": o}))


# ---- running ----

def check(job):
    name, path, allowed = job
    wrong = []
    for command in COMMANDS:
        out = [f"{path}.out", "--to", "safetensors", "--force"] if command == "convert" else []
        codes = allowed if command == "verify" else {DONE, FAULT, USAGE, INVALID, CANNOT}
        wrong += bounded.faults(codes, HEFT, command, path, *out)
    return name, wrong


def main():
    with tempfile.TemporaryDirectory() as folder:
        jobs = []
        for i, (name, data, allowed) in enumerate(files()):
            path = pathlib.Path(folder, f"{i}.bin")
            path.write_bytes(data)
            jobs.append((name, path, allowed))
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            return tap.report(pool.map(check, jobs))


HEFT = sys.argv[1]
sys.exit(main())
