#!/usr/bin/env python3
"""check_ggml_blocks.py LIBHEFT DIR: decode every block type of GGUF with Heft and with ggml.

DIR has ggml's library as npm ships it. Both decode 10,000 blocks of any bytes for each type; blocks
of equal bytes, with each byte at the first offsets, and with zero, infinity, NaN and other numbers
of 16 bits at each offset; and, for the types that ggml quantises without an importance matrix,
blocks of numbers. Values must be equal to the bit; any NaN equals any other. TAP on stdout."""
import pathlib
import random
import struct
import sys

import ggml_blocks
import ggml_library
import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import tap  # noqa: E402

BLOCKS = 10_000
SCALES = 4  # offsets where scales of 8 bits may be
# Zeros, the least and the largest subnormal number, the largest number, infinities, NaNs.
HALVES = (0, 0x8000, 1, 0x03FF, 0x83FF, 0x7BFF, 0xFBFF, 0x7C00, 0xFC00, 0x7C01, 0x7E00, 0xFFFF)
NEEDS_MATRIX = ("iq1_s", "iq1_m", "iq2_xxs", "iq2_xs")
# ggml has no function that decodes them: intermediate results of its products.
NOT_STORED = ("q8_1", "q8_k")


def is_nan(bits):
    return bits & 0x7FFFFFFF > 0x7F800000


def differences(heft, ggml, name, data, count):
    ours, theirs = (library.decode(name, data, count) for library in (heft, ggml))
    if bytes(ours) == bytes(theirs):
        return
    for i, (a, b) in enumerate(zip(ours, theirs)):
        if a != b and not (is_nan(a) and is_nan(b)):
            values = [struct.unpack("<f", struct.pack("<I", x))[0] for x in (a, b)]
            yield f"element {i}: {values[0]} ({a:08x}), ggml has {values[1]} ({b:08x})"
            return


def spread(half):
    """Return the words of iq1_m, whose upper halves are the scale, all other bits set."""
    return struct.pack("<4H", *(half >> 4 * i << 12 & 0xF000 | 0xFFF for i in range(4)))


def hostile(name, size, rng):
    """Yield blocks that random bytes do not reach."""
    for byte in range(256):
        yield bytes([byte]) * size
        for at in range(SCALES):
            block = bytearray(rng.randbytes(size))
            block[at] = byte
            yield bytes(block)
    for half in HALVES:
        for at in range(size - 1):
            block = bytearray(rng.randbytes(size))
            struct.pack_into("<H", block, at, half)
            yield bytes(block)
        if name == "iq1_m":
            yield rng.randbytes(size - 8) + spread(half)


def check(heft, ggml, name):
    _, elements, size = ggml_blocks.BLOCKS[name]
    rng = random.Random(name)
    blocks = rng.randbytes(BLOCKS * size) + b"".join(hostile(name, size, rng))
    yield from differences(heft, ggml, name, blocks, len(blocks) // size * elements)
    if name not in NEEDS_MATRIX:
        rows = np.array([rng.gauss(0, 0.02) for _ in range(16 * 256)], np.float32).reshape(16, 256)
        data = ggml.encode(name, rows).tobytes()
        yield from differences(heft, ggml, name, data, rows.size)


def main():
    both = ggml_library.open_both(*sys.argv[1:3])
    if not both:
        print("1..0 # SKIP npm has no ggml for this machine")
        return 0
    names = [n for n in ggml_blocks.BLOCKS if n not in NOT_STORED]
    return tap.report((f"{n} is decoded as ggml does", list(check(*both, n))) for n in names)


if __name__ == "__main__":
    sys.exit(main())
