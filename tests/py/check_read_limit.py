#!/usr/bin/env python3
"""check_read_limit.py HEFT: models whose tensors share bytes, or have far more elements than bytes.

Such a model can describe any amount of work, and much of it is valid. Listing it must take at most
2 s of processor time and 128 MiB of memory; with --max-bytes commands that read the data take at
most 10 s and 256 MiB, even on a busy machine. TAP on stdout."""
import concurrent.futures
import itertools
import pathlib
import struct
import sys
import tempfile

import bounded
import gen_gguf
import gen_npz
import gen_torch
from bounded import GIB, MIB
from cbor import Raw, encode, head
from gen_ztensor1 import File, numbers, repeated
from gen_ztensor2 import FLOOR, File as File2

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import tap  # noqa: E402

DONE, FAULT, USAGE, INVALID, SYSTEM, CANNOT = range(6)  # SYSTEM: no space for the output
LIST = ["ls", "info", "ids"]
READ = ["verify", "hash", "stats", "convert", "diff"]
MAX_BYTES = "100MB"


# ---- zTensor ----

def ztensor(count, shape, layout, parts, version="1.0", dtype="u8"):
    """Return a file with `count` equal tensors; `parts` adds the parts to the file."""
    f = File(version)
    tensor = Raw(encode(f.tensor(dtype, shape, layout, parts(f))))
    return f.end(f.root({f"t{i}": tensor for i in range(count)}))


def dense(f, stored):
    part = f.part("u8", b"", stored=stored)
    part.pop("uncompressed_length", None)
    return {"data": part}


def row_pointers(f):
    part = f.part("u64", b"", stored=repeated(b"\0", GIB - 8))
    part.pop("uncompressed_length", None)
    values = f.part("u8", b"", stored=repeated(b"\0", 8))
    return {"values": values, "indices": dict(values), "indptr": part}


def digests(count):
    """Return a zTensor 2 file with a digest of the same bytes for each of `count` tensors."""
    f, data = File2(FLOOR), bytes(8 * MIB)
    part = f.part("u8", data, algorithm="sha256")
    return f.end({
        "objects": {
            f"t{i}": {"shape": [len(data)], "layout": "dense", "parts": {"data": part}}
            for i in range(count)
        }
    })


# ---- npz ----

def npz(count, header):
    """Return an archive with `count` entries for a deflated array with a long header."""
    head_bytes = b"\x93NUMPY\2\0" + struct.pack("<I", header)
    text = b"{'descr': '<f4', 'fortran_order': False, 'shape': (4,), }"
    m = gen_npz.Member(b"0000000.npy", head_bytes + text.ljust(header - 1) + b"\n" + bytes(16),
                       deflate=True)
    local = gen_npz.head(m) + gen_npz.numbers(m)[0]
    one = gen_npz.entry(m, 0)
    central = b"".join(one.replace(b"0000000", b"%07d" % i) for i in range(count))
    end = struct.pack("<IHHHHIIH", 0x06054B50, 0, 0, min(count, 65535), min(count, 65535),
                      len(central), len(local), 0)
    return local + central + end


def transposed(size):
    """Return an archive with a deflated array in column-major order, decoded twice."""
    side = int(size**0.5)
    text = b"{'descr': '|u1', 'fortran_order': True, 'shape': (%d, %d), }\n" % (side, side)
    content = b"\x93NUMPY\1\0" + struct.pack("<H", len(text)) + text + bytes(side * side)
    m = gen_npz.Member(b"w.npy", content, deflate=True, data=gen_npz.deflated(content, level=1))
    return gen_npz.archive([m])


# ---- PyTorch ----

def torch(count, shape, strides, deflate=()):
    memory = gen_torch.Memory("FloatStorage", bytes(MIB), MIB // 4)
    tensors = {f"t{i}": gen_torch.tensor(memory, shape, strides=strides) for i in range(count)}
    return gen_torch.zipped(tensors, deflate=deflate)


# ---- names and metadata ----

def safetensors(header):
    return struct.pack("<Q", len(header)) + header


def chosen_names(count):
    """Return a file with names that a sum or an exclusive or of their words cannot tell apart: 20
    words, of which 10 are zeros and 10 are ones."""
    def rows():
        for n in itertools.islice(itertools.combinations(range(20), 10), count):
            name = b"".join(b"0000" if i in n else b"1111" for i in range(20))
            yield b'"%s":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}' % name

    return safetensors(b"{" + b",".join(rows()) + b"}")


def metadata(count):
    return safetensors(b'{"__metadata__":{' + b",".join(b'"%d":""' % i
                                                        for i in range(count)) + b"}}")


def gguf_lists(count, depth):
    """Return metadata of nested arrays."""
    layout = gen_gguf.Layout(3, False)
    value = layout.pack("IQ", 9, count) * depth + layout.pack("IQ", 0, 0)
    entry = layout.text("a") + layout.pack("I", 9) + value
    f = gen_gguf.File([], meta=())
    f.entries = [entry]
    return f.bytes()


def files():
    """Yield (name, bytes, commands that may succeed within MAX_BYTES)."""
    all_of_them = set(READ)
    yield "1000 tensors of one component of unknown length, 900 MiB", ztensor(
        1000, [4], "quantized_4bit", lambda f: dense(f, repeated(b"\0", 900 * MIB)), "1.2"), {
            "verify", "stats"}
    yield "1000 sparse tensors with the same row pointers, 1 GiB", ztensor(
        1000, [GIB // 8 - 2, 4], "sparse_csr", row_pointers), set()
    yield "100,000 tensors of one frame of 16 MiB", ztensor(
        100000, [16 * MIB], "dense", lambda f: dense(f, repeated(b"\0", 16 * MIB))), set()
    yield "1000 tensors of the same 8 MiB", ztensor(
        1000, [8 * MIB], "dense", lambda f: {"data": f.part("u8", bytes(8 * MIB))}), {"verify"}
    yield "1000 digests of the same 8 MiB", digests(1000), set()
    yield "20,000 entries for one deflated array, a header of 1 MiB", npz(20000, MIB), all_of_them
    yield "60,000 entries for one deflated array", npz(60000, 10000), all_of_them
    yield "a deflated array of 400 MiB by columns", transposed(400 * MIB), set()
    yield "PyTorch: 2^40 elements of one number", torch(1, (2**20, 2**20), (0, 0)), {"verify"}
    yield "PyTorch: 2^40 elements of one deflated number", torch(
        1, (2**20, 2**20), (0, 0), ["data/0"]), {"verify"}
    yield "PyTorch: 10,000 views of a storage", torch(10000, (1000, 100), (1, 1000)), {"verify"}
    yield "PyTorch: 10,000 views of a deflated storage", torch(
        10000, (1000, 100), (1, 1000), ["data/0"]), {"verify"}
    yield "180,000 names of the same words", chosen_names(180000), all_of_them
    yield "500,000 keys of metadata", metadata(500000), all_of_them
    yield "GGUF: arrays of 2^60 arrays", gguf_lists(2**60, 1), all_of_them
    yield "GGUF: 1,000,000 nested arrays", gguf_lists(1, 1000000), all_of_them


# ---- running ----

def check(job):
    name, path, may_succeed = job
    wrong = []
    for command in LIST:
        wrong += bounded.faults({DONE, INVALID, CANNOT}, HEFT, command, path)
    for command in READ:
        more = {"convert": [f"{path}.out", "--to", "npz", "--force"], "diff": [path]}
        codes = {CANNOT, INVALID} | ({SYSTEM} if command == "convert" else set())
        codes |= {DONE, FAULT, USAGE} if command in may_succeed else set()
        wrong += bounded.faults(codes, HEFT, command, "--max-bytes", MAX_BYTES, path,
                                *more.get(command, []),
                                most=(bounded.READ_SECONDS, bounded.READ_MEMORY))
    return name, wrong


def main():
    with tempfile.TemporaryDirectory() as folder:
        jobs = []
        for i, (name, data, may_succeed) in enumerate(files()):
            path = pathlib.Path(folder, f"{i}.bin")
            path.write_bytes(data)
            jobs.append((name, path, may_succeed))
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            return tap.report(pool.map(check, jobs))


HEFT = sys.argv[1]
sys.exit(main())
