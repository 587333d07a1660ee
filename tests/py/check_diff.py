#!/usr/bin/env python3
"""check_diff.py HEFT: compare tensors of all pairs of element types with heft diff and NumPy.

TAP on stdout; skipped without NumPy."""
import json
import math
import pathlib
import random
import struct
import subprocess
import sys
import tempfile

import ggml_blocks

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import tap  # noqa: E402

try:
    import numpy as np
except ImportError:
    print("1..0 # SKIP NumPy is not here")
    sys.exit(0)

# Heft's name: name in safetensors, type of NumPy ("bf16" is stored as the upper half of f32)
PLAIN = {
    "u8": ("U8", "u1"), "i8": ("I8", "i1"), "u16": ("U16", "<u2"), "i16": ("I16", "<i2"),
    "u32": ("U32", "<u4"), "i32": ("I32", "<i4"), "u64": ("U64", "<u8"), "i64": ("I64", "<i8"),
    "f16": ("F16", "<f2"), "bf16": ("BF16", "<u2"), "f32": ("F32", "<f4"), "f64": ("F64", "<f8")
}
FLOATS = ("f16", "bf16", "f32", "f64")
BLOCKS = ("q4_0", "q5_1", "q8_0", "q6_k", "q2_k", "q2_0")
OPAQUE = {"later": 43}  # a type that Heft does not know: its number in GGUF
MANTISSA = {"f16": (10, -14), "bf16": (7, -126), "f32": (23, -126), "f64": (52, -1022)}
SHAPE = (3, 23333)  # more elements than Heft compares at a time
RNG = np.random.default_rng(5)


def numbers():
    """Return values that the types represent differently."""
    values = RNG.normal(0, 30, SHAPE)
    values[0, :40] = np.arange(40)  # equal in every type
    values[1, 7] = 2.0**62 + 2.0**10
    values[2, 11:14] = -0.0, 1e-9, 65519
    return values


def stored(dtype, values):
    """Return the bytes of the values in the type, and the values that these bytes have."""
    kind = np.dtype(PLAIN[dtype][1])
    with np.errstate(all="ignore"):
        if dtype == "bf16":
            bits = (values.astype("<f4").view("<u4") >> 16).astype("<u2")
            return bits.tobytes(), (bits.astype("<u4") << 16).view("<f4").astype(float)
        if kind.kind in "ui":
            least, most = np.iinfo(kind).min, np.iinfo(kind).max
            exact = [min(max(int(v), int(least)), int(most)) for v in values.flat]
            a = np.array(exact, dtype=kind).reshape(values.shape)
        else:
            a = values.astype(kind)
    return a.tobytes(), a if kind.kind in "ui" else a.astype(float)


def write_safetensors(path, tensors):
    header, data = {}, b""
    for name, (dtype, shape, raw) in tensors.items():
        header[name] = {"dtype": PLAIN[dtype][0], "shape": shape,
                        "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def gguf_text(s):
    return struct.pack("<Q", len(s)) + s.encode()


def write_gguf(path, tensors):
    """tensors: name -> (type, number of elements, bytes)."""
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), 0)
    data = b""
    for name, (dtype, count, raw) in tensors.items():
        number = OPAQUE.get(dtype) or ggml_blocks.TYPES[dtype][0]
        head += gguf_text(name) + struct.pack("<IQIQ", 1, count, number, len(data))
        data += raw + bytes(-len(raw) % 32)
    path.write_bytes(head + bytes(-len(head) % 32) + data)


def heft_diff(*args):
    command = [HEFT, "diff", "--quiet", "--json", *map(str, args)]
    p = subprocess.run(command, capture_output=True, check=False)
    if p.returncode not in (0, 1) or p.stderr:
        raise AssertionError(f"exit {p.returncode}: {p.stderr.decode()}")
    result = json.loads(p.stdout)
    if result["equal"] != (p.returncode == 0):
        raise AssertionError(f"equal is {result['equal']}, exit {p.returncode}")
    return result


def value_change(result, name):
    return next((c for c in result["changed"] if (c["name"], c["what"]) == (name, "value")), None)


def checked(title, check):
    """Return the result of a check, for tap.report()."""
    try:
        check()
        return title, []
    except AssertionError as error:
        return title, [error]


def is_equal(x, y):
    return x == y or (x != x and y != y)


def differs(a, b, tolerance=None):
    """Compare exactly: NumPy would round integers of 64 bits, Python compares any numbers."""
    if not tolerance and all(x.dtype.kind == "f" or x.dtype.itemsize < 8 for x in (a, b)):
        x, y = a.astype(float), b.astype(float)
        return ((x != y) & ((x == x) | (y == y))).ravel()
    tolerance = tolerance or (lambda x, y, distance: False)
    pairs = [(x.item(), y.item()) for x, y in zip(a.flat, b.flat)]
    return np.array([not is_equal(x, y) and not (math.isfinite(x) and math.isfinite(y) and
                                                 tolerance(x, y, abs(x - y))) for x, y in pairs])


def expect(change, a, b, mask):
    """Compare the numbers of Heft with NumPy's."""
    if change is None:
        assert not mask.any(), f"heft finds no difference, NumPy {mask.sum()}"
        return
    first = np.unravel_index(int(np.argmax(mask)), a.shape)
    x, y = a.astype(float).ravel(), b.astype(float).ravel()
    finite = np.isfinite(x) & np.isfinite(y)
    x, y = x[finite], y[finite]
    d = x - y
    want = {
        "differing": int(mask.sum()), "compared": a.size, "first": [int(i) for i in first],
        "mean_abs": np.abs(d).mean(), "rmse": np.sqrt((d * d).mean()),
        "nmse": (d * d).sum() / (y * y).sum(),
        "cosine": (x * y).sum() / (np.linalg.norm(x) * np.linalg.norm(y))
    }
    if finite.all():
        want["max_abs"] = np.abs(d).max()
    for key, value in want.items():
        same = (change[key] == value if isinstance(value, (int, list))
                else math.isclose(float(change[key]), value, rel_tol=1e-9))
        assert same, f"{key}: {change[key]} instead of {value}"


def all_pairs(folder):
    values = numbers()
    kept = {dtype: stored(dtype, values) for dtype in PLAIN}
    for dtype, (raw, _) in kept.items():
        write_safetensors(folder / f"{dtype}.safetensors", {"w": (dtype, SHAPE, raw)})
    for x, (_, a) in kept.items():
        for y, (_, b) in kept.items():
            def check(x=x, y=y, a=a, b=b):
                files = folder / f"{x}.safetensors", folder / f"{y}.safetensors"
                mask = differs(a, b)
                expect(value_change(heft_diff(*files), "w"), a, b, mask)
                assert heft_diff("--ignore-dtype", *files)["equal"] == (not mask.any())
            yield checked(f"{x} with {y}", check)


def spacing(dtype, x):
    bits, least = MANTISSA[dtype]
    return math.ldexp(1, max(math.frexp(x)[1] - 1 if x else least, least) - bits)


def tolerances(folder):
    values = RNG.normal(0, 1, SHAPE)
    raw, a = stored("f32", values)
    write_safetensors(folder / "a.safetensors", {"w": ("f32", SHAPE, raw)})
    for dtype in FLOATS:
        for ulp in (1, 2, 5):
            def check(dtype=dtype, ulp=ulp):
                step = np.array([spacing(dtype, v) for v in values.flat]).reshape(SHAPE)
                raw, b = stored(dtype, values + step * RNG.integers(-4, 5, SHAPE))
                write_safetensors(folder / "b.safetensors", {"w": (dtype, SHAPE, raw)})
                coarse = min(dtype, "f32", key=lambda d: MANTISSA[d])
                mask = differs(a, b, lambda x, y, d: d <= ulp * spacing(
                    coarse, max(abs(x), abs(y))))
                change = value_change(heft_diff("--ulp", ulp, folder / "a.safetensors",
                                                folder / "b.safetensors"), "w")
                expect(change, a, b, mask)
            yield checked(f"{ulp} ulp of f32 and {dtype}", check)

    def both():
        raw, b = stored("f16", values)
        write_safetensors(folder / "b.safetensors", {"w": ("f16", SHAPE, raw)})
        mask = differs(a, b, lambda x, y, d: d <= 1e-5 + 1e-4 * abs(y))
        expect(value_change(heft_diff("--atol", 1e-5, "--rtol", 1e-4, folder / "a.safetensors",
                                      folder / "b.safetensors"), "w"), a, b, mask)
    yield checked("atol and rtol of f32 and f16", both)


def specials(folder):
    inf, nan = math.inf, math.nan
    a = np.array([nan, inf, -inf, inf, 1, nan, 0.0, 1e300, 3], dtype="<f8")
    b = np.array([nan, inf, -inf, -inf, nan, 2, -0.0, 1e300, 4], dtype="<f8")

    def check():
        for name, x in (("a", a), ("b", b)):
            write_safetensors(folder / f"{name}.safetensors", {"w": ("f64", x.shape, x.tobytes())})
        change = value_change(heft_diff("--atol", 0.5, folder / "a.safetensors",
                                        folder / "b.safetensors"), "w")
        assert change["max_abs"] == change["max_rel"] == "Infinity", change
        assert (change["differing"], change["first"]) == (4, [3]), change
        assert math.isclose(change["mean_abs"], 1 / 3), change
    yield checked("NaN and infinities", check)


def blocks(folder):
    for dtype in BLOCKS:
        def check(dtype=dtype):
            elements = ggml_blocks.BLOCKS[dtype][1]
            count = (70_000 // elements if dtype == "q8_0" else 12) * elements
            raw = ggml_blocks.draw(dtype, count, random.Random(3))
            a = np.array(ggml_blocks.decode(dtype, raw), dtype=float)
            assert a.size == count > 0
            source = (a + RNG.integers(0, 2, a.size) * 0.25).astype("<f4")
            write_gguf(folder / "a.gguf", {"w": (dtype, a.size, raw)})
            write_safetensors(folder / "b.safetensors", {"w": ("f32", a.shape, source.tobytes())})
            b = source.astype(float)
            expect(value_change(heft_diff(folder / "a.gguf", folder / "b.safetensors"), "w"), a, b,
                   differs(a, b))
            expect(value_change(heft_diff(folder / "b.safetensors", folder / "a.gguf"), "w"), b, a,
                   differs(b, a))
        yield checked(f"{dtype} with f32", check)


def opaque(folder):
    """Compare elements without numbers as bytes."""
    a = RNG.integers(0, 256, 3 * 66, dtype="u1")
    b = a.copy()
    b[[5, 6, 190]] ^= 0x41

    def check():
        for name, x in (("a", a), ("b", b)):
            write_gguf(folder / f"{name}.gguf", {"w": ("later", 3 * 256, x.tobytes())})
        change = value_change(heft_diff(folder / "a.gguf", folder / "b.gguf"), "w")
        assert change["differing"] == 3, change
        assert change["first"] == [5], change
        assert heft_diff(folder / "a.gguf", folder / "a.gguf")["equal"]
    yield checked("elements of an unknown type", check)


def main():
    with tempfile.TemporaryDirectory() as folder:
        return tap.report(result for part in (all_pairs, tolerances, specials, blocks, opaque)
                          for result in part(pathlib.Path(folder)))


if __name__ == "__main__":
    HEFT = sys.argv[1]
    sys.exit(main())
