"""npy_bytes.py - NumPy's array format, written from its description without NumPy."""
import random
import struct

# Heft's name: NumPy's letter, bytes per element, bytes per number
TYPES = {
    "bool": ("b", 1, 1), "u8": ("u", 1, 1), "i8": ("i", 1, 1), "u16": ("u", 2, 2),
    "i16": ("i", 2, 2), "f16": ("f", 2, 2), "u32": ("u", 4, 4), "i32": ("i", 4, 4),
    "f32": ("f", 4, 4), "u64": ("u", 8, 8), "i64": ("i", 8, 8), "f64": ("f", 8, 8),
    "c64": ("c", 8, 4), "c128": ("c", 16, 8)
}


def count_of(shape):
    n = 1
    for d in shape:
        n *= d
    return n


def tensor(name, dtype, shape):
    rng = random.Random(f"{name} {dtype}")
    data = rng.randbytes(count_of(shape) * TYPES[dtype][1])
    return name, dtype, tuple(shape), bytes(b & 1 for b in data) if dtype == "bool" else data


def descr(dtype, order="<"):
    letter, size, number = TYPES[dtype]
    return f"{'|' if number == 1 else order}{letter}{size}"


def byteswapped(data, number):
    return b"".join(data[i:i + number][::-1] for i in range(0, len(data), number))


def by_columns(data, shape, size):
    """Reorder row-major elements so that the first dimension is contiguous."""
    out = []
    for n in range(count_of(shape)):
        at, rest, step = 0, n, 1
        index = []
        for d in shape:
            index.append(rest % d)
            rest //= d
        for d, i in zip(reversed(shape), reversed(index)):
            at += i * step
            step *= d
        out.append(data[at * size:(at + 1) * size])
    return b"".join(out)


def header(text, version=(1, 0), length=None, align=64, end="\n"):
    """Return a header; `text` is the literal, `length` replaces the length field."""
    width = 2 if version[0] == 1 else 4
    if align:
        text += " " * (-(8 + width + len(text) + len(end)) % align)
    raw = (text + end).encode()
    field = struct.pack("<H" if width == 2 else "<I", len(raw) if length is None else length)
    return b"\x93NUMPY" + bytes(version) + field + raw


def literal(dtype, shape, order="<", fortran=False):
    tuple_ = "(" + ", ".join(map(str, shape)) + ("," if len(shape) == 1 else "") + ")"
    return f"{{'descr': '{descr(dtype, order)}', 'fortran_order': {fortran}, 'shape': {tuple_}, }}"


def array(t, order="<", fortran=False, **more):
    _, dtype, shape, data = t
    _, size, number = TYPES[dtype]
    if fortran:
        data = by_columns(data, shape, size)
    if order == ">":
        data = byteswapped(data, number)
    return header(literal(dtype, shape, order, fortran), **more) + data
