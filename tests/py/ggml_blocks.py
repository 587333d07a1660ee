"""ggml_blocks.py - ggml's element types: numbers, sizes and decoding of blocks.

The code follows the published descriptions element by element. Decoding is exact: Python's floats
represent every product and sum, and the result is rounded to f32 once."""
import struct

# ggml's number, elements of a block, bytes of a block
PLAIN = {"f32": (0, 1, 4), "f16": (1, 1, 2), "i8": (24, 1, 1), "i16": (25, 1, 2), "i32": (26, 1, 4),
         "i64": (27, 1, 8), "f64": (28, 1, 8), "bf16": (30, 1, 2)}
BLOCKS = {
    "q4_0": (2, 32, 18), "q4_1": (3, 32, 20), "q5_0": (6, 32, 22), "q5_1": (7, 32, 24),
    "q8_0": (8, 32, 34), "q8_1": (9, 32, 36), "q2_k": (10, 256, 84), "q3_k": (11, 256, 110),
    "q4_k": (12, 256, 144), "q5_k": (13, 256, 176), "q6_k": (14, 256, 210), "q8_k": (15, 256, 292),
    "iq2_xxs": (16, 256, 66), "iq2_xs": (17, 256, 74), "iq3_xxs": (18, 256, 98),
    "iq1_s": (19, 256, 50), "iq4_nl": (20, 32, 18), "iq3_s": (21, 256, 110), "iq2_s": (22, 256, 82),
    "iq4_xs": (23, 256, 136), "iq1_m": (29, 256, 56), "tq1_0": (34, 256, 54), "tq2_0": (35, 256,
                                                                                        66),
    "mxfp4": (39, 32, 17), "nvfp4": (40, 64, 36), "q1_0": (41, 128, 18), "q2_0": (42, 64, 18)
}
TYPES = {**PLAIN, **BLOCKS}
NAMES = {number: name for name, (number, _, _) in TYPES.items()}
# Layouts of the numbers of more than one byte in a block.
NUMBERS = {
    "q4_0": "e", "q4_1": "ee", "q5_0": "eI", "q5_1": "eeI", "q8_0": "e", "q8_1": "ee",
    "q2_k": "80xee", "q3_k": "108xe", "q4_k": "ee", "q5_k": "ee", "q6_k": "208xe",
    "q8_k": "f256x16h", "iq4_nl": "e", "iq4_xs": "eH", "q1_0": "e", "q2_0": "e", "tq1_0": "52xe",
    "tq2_0": "64xe", "mxfp4": "", "nvfp4": ""
}


def bits(data):
    """Return the bits of bytes, lowest bit of the first byte first."""
    return [byte >> i & 1 for byte in data for i in range(8)]


def half(data, at=0):
    return struct.unpack_from("<e", data, at)[0]


def halves(data):
    """Return the low nibbles of all bytes, then the high nibbles."""
    return [b & 15 for b in data] + [b >> 4 for b in data]


def quarters(data):
    return [b >> s & 3 for s in (0, 2, 4, 6) for b in data]


def in_runs(unpack, data, run):
    return [code for i in range(0, len(data), run) for code in unpack(data[i:i + run])]


def signed(byte):
    return byte - 256 if byte > 127 else byte


def q4_0(b):
    return [half(b) * (c - 8) for c in halves(b[2:18])]


def q4_1(b):
    return [half(b) * c + half(b, 2) for c in halves(b[4:20])]


def q5_0(b):
    return [half(b) * (c + 16 * h - 16) for c, h in zip(halves(b[6:22]), bits(b[2:6]))]


def q5_1(b):
    return [half(b) * (c + 16 * h) + half(b, 2) for c, h in zip(halves(b[8:24]), bits(b[4:8]))]


def q8_0(b):
    return [half(b) * signed(c) for c in b[2:34]]


def q8_1(b):
    return [half(b) * signed(c) for c in b[4:36]]


def q2_0(b):
    return [half(b) * (byte // 4 ** k % 4 - 1) for byte in b[2:18] for k in range(4)]


def q2_k(b):
    codes = in_runs(quarters, b[16:80], 32)
    return [
        half(b, 80) * (b[i // 16] & 15) * c - half(b, 82) * (b[i // 16] >> 4)
        for i, c in enumerate(codes)
    ]


def q3_k(b):
    low, high = halves(b[96:104]), quarters(b[104:108])
    scales = [lo + 16 * hi - 32 for lo, hi in zip(low, high)]
    thirds = [b[k] >> s & 1 for s in range(8) for k in range(32)]
    codes = in_runs(quarters, b[32:96], 32)
    return [
        half(b, 108) * scales[i // 16] * (c - 4 + 4 * t)
        for i, (c, t) in enumerate(zip(codes, thirds))
    ]


def k_scales(b):
    """Scales and minima: six bits each."""
    first, second, mixed = b[4:8], b[8:12], b[12:16]
    scales = [x & 63 for x in first] + [m % 16 + 16 * (x >> 6) for m, x in zip(mixed, first)]
    minima = [x & 63 for x in second] + [m // 16 + 16 * (x >> 6) for m, x in zip(mixed, second)]
    return [half(b) * s for s in scales], [half(b, 2) * m for m in minima]


def q4_k(b):
    scales, minima = k_scales(b)
    return [
        scales[i // 32] * c - minima[i // 32] for i, c in enumerate(in_runs(halves, b[16:144], 32))
    ]


def q5_k(b):
    scales, minima = k_scales(b)
    fifths = [b[16 + k] >> s & 1 for s in range(8) for k in range(32)]
    codes = zip(in_runs(halves, b[48:176], 32), fifths)
    return [scales[i // 32] * (c + 16 * h) - minima[i // 32] for i, (c, h) in enumerate(codes)]


def q6_k(b):
    low, high = in_runs(halves, b[:128], 64), in_runs(quarters, b[128:192], 32)
    return [half(b, 208) * signed(b[192 + i // 16]) * (lo + 16 * hi - 32)
            for i, (lo, hi) in enumerate(zip(low, high))]


def q8_k(b):
    return [struct.unpack_from("<f", b)[0] * signed(c) for c in b[4:260]]


DECODERS = {
    f.__name__: f
    for f in (q4_0, q4_1, q5_0, q5_1, q8_0, q8_1, q2_k, q3_k, q4_k, q5_k, q6_k, q8_k, q2_0)
}


def decode(name, data):
    """Decode whole blocks to f32 values."""
    size = BLOCKS[name][2]
    exact = [x for at in range(0, len(data), size) for x in DECODERS[name](data[at:at + size])]
    return [struct.unpack("<f", struct.pack("<f", x))[0] for x in exact]


def draw(name, count, rng):
    """Return random blocks of `count` elements with finite scales."""
    _, elements, size = BLOCKS[name]
    blocks = []
    for _ in range(count // elements):
        block = bytearray(rng.randbytes(size))
        layout = NUMBERS.get(name, "")
        at = 0
        for part in split_layout(layout):
            if part == "e":
                block[at + 1] = block[at + 1] & 0x83 | rng.randrange(31) << 2
            elif part == "f":
                struct.pack_into("<f", block, at,
                                 rng.uniform(-1, 1) * 2.0**rng.randrange(-149, 120))
            at += struct.calcsize("<" + part)
        blocks.append(bytes(block))
    return b"".join(blocks)


def split_layout(layout):
    """"80xee" as "80x", "e", "e"."""
    parts, digits = [], ""
    for c in layout:
        if c.isdigit():
            digits += c
        elif c == "x":
            parts.append(digits + c)
            digits = ""
        else:
            parts += [c] * int(digits or 1)
            digits = ""
    return parts


def byteswap(name, data):
    """Return the bytes of a big-endian machine."""
    _, _, size = TYPES[name]
    if name in PLAIN:
        return b"".join(data[i:i + size][::-1] for i in range(0, len(data), size))
    out = bytearray(data)
    for start in range(0, len(data), size):
        at = start
        for part in split_layout(NUMBERS[name]):
            n = struct.calcsize("<" + part)
            if not part.endswith("x"):
                out[at:at + n] = out[at:at + n][::-1]
            at += n
    return bytes(out)
