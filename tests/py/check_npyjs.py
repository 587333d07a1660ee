#!/usr/bin/env python3
"""check_npyjs.py HEFT DIR: read .npy files of Heft with npyjs, a package below DIR. TAP on
stdout."""
import json
import math
import pathlib
import struct
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "tools"))
import tap  # noqa: E402

# safetensors type: NumPy type, struct code, values
TYPES = {
    "F64": ("<f8", "d", [1.5, -0.0, math.inf, 1e300, 5e-324, 0.1]),
    "F32": ("<f4", "f", [1.5, -0.0, -math.inf, 2.0 ** 127, 2.0 ** -149, 0.0]),
    "F16": ("<f2", "e", [1.5, -2.0, 65504.0, 2.0 ** -14, 0.25, 0.0]),
    "I64": ("<i8", "q", [0, -1, 2 ** 63 - 1, -2 ** 63, 7, 8]),
    "U64": ("<u8", "Q", [0, 1, 2 ** 64 - 1, 2 ** 53 + 1, 7, 8]),
    "I32": ("<i4", "i", [0, -1, 2 ** 31 - 1, -2 ** 31, 7, 8]),
    "U32": ("<u4", "I", [0, 1, 2 ** 32 - 1, 6, 7, 8]),
    "I16": ("<i2", "h", [0, -1, 2 ** 15 - 1, -2 ** 15, 7, 8]),
    "U16": ("<u2", "H", [0, 1, 2 ** 16 - 1, 6, 7, 8]),
    "I8": ("|i1", "b", [0, -1, 127, -128, 7, 8]),
    "U8": ("|u1", "B", [0, 1, 255, 6, 7, 8]),
}
SHAPES = [[2, 3], [6], [1, 3, 2, 1]]


def spelled(value):
    if isinstance(value, int):
        return str(value)
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return "-0" if value == 0 and math.copysign(1, value) < 0 else value


def same(got, want):
    return got == want if isinstance(want, str) else float(got) == want


def write(root, name, shape):
    """Write a tensor as safetensors and convert the file to .npy."""
    _, letter, values = TYPES[name]
    data = struct.pack(f"<{len(values)}{letter}", *values)
    head = json.dumps({"w": {"dtype": name, "shape": shape, "data_offsets": [0,
                                                                             len(data)]}}).encode()
    source = root / f"{name}-{len(shape)}.safetensors"
    source.write_bytes(struct.pack("<Q", len(head)) + head + data)
    out = source.with_suffix(".npy")
    subprocess.run([HEFT, "convert", source, out], check=True, capture_output=True)
    return out


def compare(found, name, shape):
    if "error" in found:
        yield found["error"]
        return
    dtype, _, values = TYPES[name]
    if (found["dtype"], found["shape"], found["fortranOrder"]) != (dtype[1:], shape, False):
        yield f"{found['dtype']} {found['shape']} {found['fortranOrder']}"
    want = [spelled(v) for v in values]
    if len(found["values"]) != len(want) or not all(map(same, found["values"], want)):
        yield f"values {found['values']}, not {want}"


def main():
    with tempfile.TemporaryDirectory() as root:
        jobs = [(name, shape) for name in TYPES for shape in SHAPES]
        paths = [write(pathlib.Path(root), *job) for job in jobs]
        p = subprocess.run(["node", HERE.parent / "js" / "read_npy.mjs", *paths], cwd=PACKAGES,
                           text=True, capture_output=True, check=True)
        found = [json.loads(line) for line in p.stdout.splitlines()]
    return tap.report([(f"npyjs reads {name} of {shape}", list(compare(got, name, shape)))
                       for got, (name, shape) in zip(found, jobs)])


HEFT, PACKAGES = str(pathlib.Path(sys.argv[1]).resolve()), sys.argv[2]
sys.exit(main())
