"""ggml_blocks.py - ggml's element types: numbers, sizes and decoding of blocks.

The code follows the published descriptions element by element. Decoding is exact: Python's floats
represent every product and sum, and the result is rounded to f32 once. The code books of iq1 to iq3
are those of tools/gen_block_grids.py; tests/test_blocks.c compares them with ggml's results."""
import pathlib
import struct
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import gen_block_grids  # pylint: disable=wrong-import-position

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


def q1_0(b):
    return [half(b) * (2 * bit - 1) for bit in bits(b[2:18])]


def tq2_0(b):
    return [half(b, 64) * (c - 1) for c in in_runs(quarters, b[:64], 32)]


def tq1_0(b):
    def digits(data, count):
        return [(byte * 3**n % 256) * 3 // 256 for n in range(count) for byte in data]

    codes = digits(b[:32], 5) + digits(b[32:48], 5) + digits(b[48:52], 4)
    return [half(b, 52) * (c - 1) for c in codes]


IQ4 = (-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113)
FP4 = (0, .5, 1, 1.5, 2, 3, 4, 6, 0, -.5, -1, -1.5, -2, -3, -4, -6)


def iq4_nl(b):
    return [half(b) * IQ4[c] for c in halves(b[2:18])]


def iq4_xs(b):
    low, high = [x >> s & 15 for x in b[4:8] for s in (0, 4)], struct.unpack_from("<H", b, 2)[0]
    scales = [lo + 16 * (high >> 2 * i & 3) - 32 for i, lo in enumerate(low)]
    codes = in_runs(halves, b[8:136], 16)
    return [half(b) * scales[i // 32] * IQ4[c] for i, c in enumerate(codes)]


def mxfp4(b):
    return [2.0**(b[0] - 127) * FP4[c] for c in halves(b[1:17])]


def nvfp4(b):
    def scale(code):
        exponent, mantissa = code >> 3 & 15, code & 7
        number = (mantissa + 8 * (exponent > 0)) * 2.0**(max(exponent, 1) - 10)
        return 0.0 if code == 0x7F else number

    codes = in_runs(halves, b[4:36], 8)
    return [scale(b[i // 16]) * FP4[c] for i, c in enumerate(codes)]


# ---- code books: an entry is a tuple of numbers ----


def book(name, numbers):
    base, digits, _ = gen_block_grids.BOOKS[name]
    width = 2 if base == 3 else 3
    return [
        tuple(numbers[e >> width * i & (1 << width) - 1] for i in range(digits))
        for e in gen_block_grids.entries(*gen_block_grids.BOOKS[name])
    ]


IQ2 = {name: book(name, (8, 25, 43)) for name in ("iq2_xxs", "iq2_xs", "iq2_s")}
IQ3_XXS = book("iq3_xxs", (4, 12, 20, 28, 36, 44, 52, 62))
IQ3_S = book("iq3_s", (1, 3, 5, 7, 9, 11, 13, 15))
IQ1 = book("iq1", (-1, 0, 1))


def eight_signs(seven):
    """Return eight signs of which an even number is minus."""
    stored = [-1 if seven >> i & 1 else 1 for i in range(7)]
    return stored + [-1 if stored.count(-1) % 2 else 1]


def plain_signs(byte):
    return [-1 if byte >> i & 1 else 1 for i in range(8)]


def signed_groups(groups):
    """groups: (scale, magnitudes, signs)."""
    return [scale * m * s for scale, numbers, signs in groups for m, s in zip(numbers, signs)]


def iq2_xxs(b):
    groups = []
    for sub in range(8):
        word = struct.unpack_from("<I", b, 6 + 8 * sub)[0]
        groups += [(half(b) * (.5 + (word >> 28)) / 4, IQ2["iq2_xxs"][b[2 + 8 * sub + k]],
                    eight_signs(word >> 7 * k & 127)) for k in range(4)]
    return signed_groups(groups)


def iq2_scales(b, at):
    return [half(b) * (.5 + (x >> s & 15)) / 4 for x in b[at:at + 8] for s in (0, 0, 4, 4)]


def iq2_xs(b):
    words = struct.unpack_from("<32H", b, 2)
    return signed_groups((s, IQ2["iq2_xs"][w & 511], eight_signs(w >> 9))
                         for s, w in zip(iq2_scales(b, 66), words))


def iq2_s(b):
    high = [x >> s & 3 for x in b[66:74] for s in (0, 2, 4, 6)]
    return signed_groups((s, IQ2["iq2_s"][lo + 256 * hi], plain_signs(byte))
                         for s, lo, hi, byte in zip(iq2_scales(b, 74), b[2:34], high, b[34:66]))


def iq3_xxs(b):
    groups = []
    for g in range(32):
        word = struct.unpack_from("<I", b, 66 + g // 4 * 4)[0]
        groups.append((half(b) * (.5 + (word >> 28)) / 2,
                       IQ3_XXS[b[2 + 2 * g]] + IQ3_XXS[b[3 + 2 * g]],
                       eight_signs(word >> g % 4 * 7 & 127)))
    return signed_groups(groups)


def iq3_s(b):
    scales = [half(b) * (1 + 2 * (x >> s & 15)) for x in b[106:110] for s in (0, 4)]
    entries = [IQ3_S[lo + 256 * hi] for lo, hi in zip(b[2:66], bits(b[66:74]))]
    return signed_groups((scales[g // 4], entries[2 * g] + entries[2 * g + 1], plain_signs(byte))
                         for g, byte in enumerate(b[74:106]))


def iq1_s(b):
    out = []
    for g in range(32):
        word = struct.unpack_from("<H", b, 34 + g // 4 * 2)[0]
        entry = IQ1[b[2 + g] + 256 * (word >> g % 4 * 3 & 7)]
        scale = half(b) * (2 * (word >> 12 & 7) + 1)
        out += [scale * (x + (-.125 if word >> 15 else .125)) for x in entry]
    return out


def iq1_m(b):
    words = struct.unpack_from("<4H", b, 48)
    whole = half(struct.pack("<H", sum(w >> 12 << 4 * i for i, w in enumerate(words))))
    scales = [whole * (2 * (w >> s & 7) + 1) for w in words for s in (0, 3, 6, 9)]
    out = []
    for g, high in enumerate(x >> s & 15 for x in b[32:48] for s in (0, 4)):
        entry = IQ1[b[g] + 256 * (high & 7)]
        out += [scales[g // 2] * (x + (-.125 if high >> 3 else .125)) for x in entry]
    return out


DECODERS = {
    f.__name__: f
    for f in (q4_0, q4_1, q5_0, q5_1, q8_0, q8_1, q2_k, q3_k, q4_k, q5_k, q6_k, q8_k, q2_0, q1_0,
              tq1_0, tq2_0, iq4_nl, iq4_xs, mxfp4, nvfp4, iq2_xxs, iq2_xs, iq2_s, iq3_xxs, iq3_s,
              iq1_s, iq1_m)
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
        layout = NUMBERS.get(name, "e")  # iq1 to iq3 begin with the scale
        at = 0
        if name == "iq1_m":  # four words have the bits of the scale
            layout = ""
            block[55] &= 0xBF
        elif name == "mxfp4":
            block[0] = min(block[0], 250)
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
