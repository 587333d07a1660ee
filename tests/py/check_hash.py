#!/usr/bin/env python3
"""check_hash.py HEFT: compute the content digests of docs/hash.md for a safetensors file.

heft hash must print the same digests for the file and for a copy that Heft converts. TAP on
stdout."""
import json
import pathlib
import struct
import subprocess
import sys
import tempfile

from blake3_ref import blake3

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import tap  # noqa: E402

CHUNK = 1 << 20
TENSORS = {  # name: safetensors type, Heft type, shape, bytes
    "vector": ("F32", "f32", [5], bytes(range(20))),
    "scalar": ("F16", "f16", [], b"\x00\x3c"),
    "none": ("F32", "f32", [0, 4], b""),
    "Ünïcode": ("I64", "i64", [1, 2], bytes(16)),
    "large": ("U8", "u8", [CHUNK + 70_000], bytes(i * i % 251 for i in range(CHUNK + 70_000))),
}


def u32(n):
    return struct.pack("<I", n)


def u64(n):
    return struct.pack("<Q", n)


def text(s):
    return u32(len(s.encode())) + s.encode()


def part_digest(data):
    return blake3(b"".join(blake3(data[i : i + CHUNK]) for i in range(0, len(data), CHUNK)))


def tensor_digest(dtype, shape, data):
    head = text("heft tensor 1") + text(dtype) + u32(len(shape)) + b"".join(map(u64, shape))
    return blake3(head + text("dense") + u32(1) + text("data") + u64(len(data)) + part_digest(data))


def model_digest(digests):
    names = sorted(digests, key=lambda name: name.encode())
    return blake3(text("heft model 1") + b"".join(text(name) + digests[name] for name in names))


def write_model(path):
    header, data = {}, b""
    for name, (dtype, _, shape, raw) in TENSORS.items():
        header[name] = {
            "dtype": dtype, "shape": shape, "data_offsets": [len(data),
                                                             len(data) + len(raw)]
        }
        data += raw
    encoded = json.dumps(header).encode()
    path.write_bytes(u64(len(encoded)) + encoded + data)


def compare(path, want):
    p = subprocess.run([HEFT, "hash", "--json", path], capture_output=True, check=True)
    got = json.loads(p.stdout)
    have = {t["name"]: t["digest"] for t in got["tensors"]}
    wrong = [
        f"{n}: {have.get(n)}, not {d.hex()}" for n, d in want.items() if have.get(n) != d.hex()
    ]
    if got["model"] != model_digest(want).hex():
        wrong.append(f"the model: {got['model']}")
    return wrong


def main():
    want = {
        name: tensor_digest(dtype, shape, raw) for name, (_, dtype, shape, raw) in TENSORS.items()
    }
    with tempfile.TemporaryDirectory() as scratch:
        model, again = pathlib.Path(scratch, "model"), pathlib.Path(scratch, "again.safetensors")
        write_model(model)
        results = [("digests are those of docs/hash.md", compare(model, want))]
        subprocess.run([HEFT, "convert", model, again], check=True)
        results.append(("digests of a rewritten file are the same", compare(again, want)))
        return tap.report(results)


HEFT = sys.argv[1]
sys.exit(main())
