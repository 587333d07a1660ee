#!/usr/bin/env python3
"""gen_cast_vectors.py: write test vectors for conversions of element types to stdout.

A record is u16 from, u16 to, u32 count, u32[4] number of lost values by kind (docs/casting.md:
range, clamped, NaN, digits), source elements, expected elements. Types have the numbers of
heft/dtypes.h; `to` 0xFFFF means f64 (heft_dtype_to_f64). The count of a packed type is then a
multiple of the block; otherwise unused bits of the last block are 0. Block-quantised types have
whole blocks.

The vectors do not use heft: types of up to 16 bits are rounded by a search for the nearest value,
f32 and f64 by Python's conversions and by integer rounding. If NumPy is installed, f16 must agree
with NumPy."""
import bisect
import random
import struct
import sys

import ggml_blocks

try:
    import numpy
except ImportError:
    numpy = None

INTS = {"u8": (2, 8, 0), "i8": (3, 8, 1), "u16": (4, 16, 0), "i16": (5, 16, 1),
        "u32": (6, 32, 0), "i32": (7, 32, 1), "u64": (8, 64, 0), "i64": (9, 64, 1)}
# number, bits, exponent bits, bias, kind of special values
FLOATS = {
    "f16": (10, 16, 5, 15, "ieee"), "bf16": (11, 16, 8, 127, "ieee"),
    "f32": (12, 32, 8, 127, "ieee"), "f64": (13, 64, 11, 1023, "ieee"),
    "e4m3fn": (14, 8, 4, 7, "ones"), "e5m2": (15, 8, 5, 15, "ieee"),
    "e4m3fnuz": (16, 8, 4, 8, "fnuz"), "e5m2fnuz": (17, 8, 5, 16, "fnuz"), "e8m0": (18, 8, 8, 127,
                                                                                    "powers"),
    "e2m3": (19, 6, 2, 1, "none"), "e3m2": (20, 6, 3, 3, "none"), "e2m1": (21, 4, 2, 1, "none")
}
PACKED = {"e2m3": (4, 3), "e3m2": (4, 3), "e2m1": (2, 1)}  # elements and bytes of a block
BOOL, C64, C128, DOUBLES = 1, 22, 23, 0xFFFF
INF = float("inf")


class Nan:
    def __init__(self, negative, payload):
        self.negative, self.payload = negative, payload  # payload: a string of bits


def mant_bits(t):
    _, bits, exp, _, kind = FLOATS[t]
    return bits - exp - (kind != "powers")


def decode_float(t, code):
    """A Python number, or a Nan."""
    _, bits, exp_bits, bias, kind = FLOATS[t]
    m = mant_bits(t)
    if kind == "powers":
        return Nan(False, "1") if code == 255 else 2.0 ** (code - bias)
    sign, rest = code >> (bits - 1), code & ((1 << (bits - 1)) - 1)
    exp, mant = rest >> m, rest & ((1 << m) - 1)
    if kind == "fnuz" and code == 1 << (bits - 1):
        return Nan(False, "1")
    if kind == "ones" and rest == (1 << (bits - 1)) - 1:
        return Nan(bool(sign), "1")
    if kind == "ieee" and exp == (1 << exp_bits) - 1:
        if mant:
            return Nan(bool(sign), format(mant, f"0{m}b"))
        return -INF if sign else INF
    value = (mant + (1 << m) if exp else mant) * 2.0 ** (max(exp, 1) - bias - m)
    return -value if sign else value


class Small:
    """Round by searching all values of a type of at most 16 bits."""

    def __init__(self, t):
        self.t = t
        _, bits, _, _, self.kind = FLOATS[t]
        self.sign = 1 << (bits - 1)
        values = [decode_float(t, c) for c in range(self.sign)]
        self.values = [v for v in values if not isinstance(v, Nan) and v != INF]
        self.all = frozenset(self.values)
        self.infinity = len(self.values) if self.kind == "ieee" else None
        step = self.values[-1] - self.values[-2]
        self.middles = [(a + b) / 2 for a, b in zip(self.values, self.values[1:])]
        self.middles.append(self.values[-1] + step / 2)  # larger values overflow

    def encode(self, x):
        if isinstance(x, Nan):
            return self.nan(x)
        negative = x < 0 or (x == 0 and str(x)[0] == "-")
        i = bisect.bisect_left(self.middles, abs(x))
        if i < len(self.middles) and self.middles[i] == abs(x) and i % 2:
            i += 1
        if i >= len(self.values):
            i = len(self.values) - 1 if self.infinity is None else self.infinity
        if self.kind == "fnuz" and i == 0:
            negative = False
        return i | (self.sign if negative else 0)

    def nan(self, x):
        negative = self.sign if x.negative else 0
        if self.kind == "none":
            return len(self.values) - 1
        if self.kind == "fnuz":
            return self.sign
        if self.kind == "ones":
            return negative | (self.sign - 1)
        return negative | self.infinity | nan_payload(x, mant_bits(self.t))


def nan_payload(x, width):
    kept = x.payload[:width].ljust(width, "0")
    return int(kept, 2) or 1 << (width - 1)


def int_to_f32(n):
    """Round an integer to the nearest f32 by shifting."""
    cut = max(0, abs(n).bit_length() - 24)
    kept, rest = divmod(abs(n), 1 << cut)
    if 2 * rest > 1 << cut or (2 * rest == 1 << cut and cut and kept % 2):
        kept += 1
    return (-1 if n < 0 else 1) * float(kept << cut)


def encode_wide(t, x):
    size, m = (4, 23) if t == "f32" else (8, 52)
    if isinstance(x, Nan):
        code = (x.negative <<
                (size * 8 - 1)) | (255 << 23 if size == 4 else 2047 << 52) | nan_payload(x, m)
        return code.to_bytes(size, "little")
    if isinstance(x, int):
        x = int_to_f32(x) if size == 4 else float(x)
    try:
        return struct.pack("<f" if size == 4 else "<d", x)
    except OverflowError:
        return struct.pack("<f", INF if x > 0 else -INF)


def encode_int(t, x):
    _, bits, signed = INTS[t]
    low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)
    if isinstance(x, Nan):
        n = 0
    elif x in (INF, -INF):
        n = high if x > 0 else low
    else:
        n = min(max(int(x), low), high)
    return n.to_bytes(bits // 8, "little", signed=bool(signed))


SMALL = {t: Small(t) for t in FLOATS if FLOATS[t][1] <= 16 and t != "e8m0"}
HALFWAY = [1.5 * 2.0**(code - 127)
           for code in range(254)]  # larger values round to the next power


def encode_power(x):
    """Encode e8m0: negative values become NaN; zero and infinity become the smallest and largest
    value."""
    if isinstance(x, Nan) or x < 0:
        return b"\xff"
    return bytes([bisect.bisect_right(HALFWAY, x)])


def encode(t, x):
    if t == "e8m0":
        return encode_power(x)
    if t == "bool":
        return bytes([isinstance(x, Nan) or x != 0])
    if t in INTS:
        return encode_int(t, x)
    if t in SMALL:
        return SMALL[t].encode(x).to_bytes(FLOATS[t][1] // 8, "little")
    return encode_wide(t, x)


# ---- losses ----

RANGE, CLAMPED, LOST_NAN, DIGITS = range(4)


def lost_int(t, x):
    _, bits, signed = INTS[t]
    if isinstance(x, Nan):
        return LOST_NAN
    low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)
    return CLAMPED if x in (INF, -INF) or not low <= int(x) <= high else None


def lost_power(x):
    if isinstance(x, Nan):
        return None
    if not 1.5 * 2.0**-128 <= x < 1.5 * 2.0**127:
        return CLAMPED
    return DIGITS if isinstance(x, int) and x & (x - 1) else None


def lost_small(s, x):
    if isinstance(x, Nan):
        return LOST_NAN if s.kind == "none" else None
    if abs(x) > s.middles[-1] or (abs(x) == s.middles[-1] and len(s.values) % 2 == 0):
        return CLAMPED if s.infinity is None else None if abs(x) == INF else RANGE
    return DIGITS if isinstance(x, int) and abs(x) not in s.all else None


def lost_wide(t, x):
    if isinstance(x, Nan) or x in (INF, -INF):
        return None
    got = struct.unpack("<f" if t == "f32" else "<d", encode_wide(t, x))[0]
    if got in (INF, -INF):
        return RANGE
    return DIGITS if isinstance(x, int) and got != x else None


def lost(t, to, values):
    """Count the lost values by kind (docs/casting.md)."""
    counts = [0] * 4
    for x in values if to not in ("bool", t) else ():
        kind = (lost_int(to, x) if to in INTS else lost_power(x)
                if to == "e8m0" else lost_small(SMALL[to], x) if to in SMALL else lost_wide(to, x))
        if kind is not None:
            counts[kind] += 1
    return counts


# ---- conversions ------------------------------------------------------------------------


def f32_codes(rng):
    """Return codes near the values of narrower types, and random codes."""
    codes = set(rng.getrandbits(32) for _ in range(6000))
    exps = [0, 1, 2, 101, 102, 103, 104, 105, 111, 112, 113, 114, 117, 118, 119, 120, 126, 127, 134,
            135, 136, 142, 143, 150, 157, 158, 159, 160, 189, 190, 191, 192, 253, 254, 255]
    mants = {0, 1, 2, 3, 0x7FFFFF, 0x7FFFFE, 0x400000, 0x400001, 0x3FFFFF}
    for cut in (12, 13, 15, 16, 19, 20, 21):
        for step in (0, 1, 2, 3, 1 << (22 - cut)):
            for delta in (-1, 0, 1):
                mants.add(((step << cut | 1 << (cut - 1)) + delta) & 0x7FFFFF)
    for exp in exps:
        for mant in mants:
            codes.add(exp << 23 | mant)
            codes.add(1 << 31 | exp << 23 | mant)
    for exp in range(256):
        codes.update((exp << 23, 1 << 31 | exp << 23 | 0x600000))
    return sorted(codes)


def f64_codes(rng):
    codes = set(rng.getrandbits(64) for _ in range(2000))
    for code in f32_codes(rng):
        wide = decode_float("f32", code)
        if isinstance(wide, Nan):
            sign = wide.negative << 63
            codes.update((sign | 2047 << 52 | int(wide.payload, 2) << 29, sign | 2047 << 52 | 1))
            continue
        at = struct.unpack("<Q", struct.pack("<d", wide))[0]
        codes.update((at, at ^ 1, at ^ 0x10000000, at ^ 0x0FFFFFFF, at ^ 0x10000001))
    for n in (2**31, 2**32, 2**63, 2**64, 2**15, 2**16, 127, 128, 255, 256, 448, 464, 480, 240, 248,
              57344, 61440, 65504, 65520, 3.4028235677973366e38):
        for sign in (1.0, -1.0):
            at = struct.unpack("<Q", struct.pack("<d", sign * n))[0]
            codes.update((at, at - 1, at + 1))
    rest = sorted(codes)
    return rest if len(rest) < 20000 else sorted(rng.sample(rest, 20000))


def ints(t, rng):
    _, bits, signed = INTS[t]
    if bits == 8:
        return list(range(256))
    codes = set(rng.getrandbits(bits) >> rng.randrange(bits) for _ in range(3000))
    for p in range(bits):
        for near in (-3, -2, -1, 0, 1, 2, 3):
            codes.add(((1 << p) + near) % (1 << bits))
            codes.add((-(1 << p) + near) % (1 << bits))
    for p in range(24, bits):  # midpoints between two f32 or two f64, and neighbours
        for lost in (p - 23, p - 52):
            if lost > 0:
                for kept in (0, 1, 2, 3):
                    half = (1 << p) + (kept << lost) + (1 << (lost - 1))
                    codes.update(c % (1 << bits)
                                 for c in (half - 1, half, half + 1, -half, -half + 1))
    return sorted(codes)


def sources(rng):
    """(name, size, codes, values)"""
    yield "bool", 1, [0, 1, 2, 128, 255], [0, 1, 1, 1, 1]
    for t, (_, bits, signed) in INTS.items():
        codes = ints(t, rng)
        yield t, bits // 8, codes, [
            c - (1 << bits) if signed and c >> (bits - 1) else c for c in codes
        ]
    for t, (_, bits, *_) in FLOATS.items():
        if t in PACKED:
            continue
        codes = {32: f32_codes, 64: f64_codes}.get(bits, lambda _, bits=bits: range(1 << bits))(rng)
        yield t, bits // 8, list(codes), [decode_float(t, c) for c in codes]


def encode_all(t, values):
    if t not in PACKED:
        return b"".join(encode(t, v) for v in values)
    return pack(t, [SMALL[t].encode(v) for v in values])


def pack(t, codes):
    elements, size = PACKED[t]
    joined = sum(c << FLOATS[t][1] * i for i, c in enumerate(codes))
    return joined.to_bytes(-(-len(codes) // elements) * size, "little")


def number(t):
    return BOOL if t == "bool" else (INTS.get(t) or FLOATS[t])[0]


def record(out, source, target, count, given, expected, losses=(0, 0, 0, 0)):
    out.write(struct.pack("<HHI4I", source, target, count, *losses) + given + expected)


def numpy_agrees(t, codes, expected):
    """Compare f16 with NumPy; NaN payloads may differ."""
    kinds = {"f32": "<u4 <f4", "f64": "<u8 <f8"}
    if numpy is None or t not in kinds:
        return
    raw, real = kinds[t].split()
    given = numpy.array(codes, dtype=raw).view(real)
    with numpy.errstate(all="ignore"):
        theirs = given.astype("<f2").view("<u2")
    ours = numpy.frombuffer(expected, dtype="<u2")
    wrong = numpy.flatnonzero((theirs != ours) & ~numpy.isnan(given))
    assert not len(
        wrong
    ), f"{t} to f16: {codes[wrong[0]]:#x}: {ours[wrong[0]]:#x}, numpy {theirs[wrong[0]]:#x}"


TARGETS = ["bool", *INTS, *FLOATS]


def plain(out, rng):
    for t, size, codes, values in sources(rng):
        given = b"".join(c.to_bytes(size, "little") for c in codes)
        record(out, number(t), DOUBLES, len(codes), given,
               b"".join(encode("f64", v) for v in values))
        for to in TARGETS:
            expected = given if to == t else encode_all(to, values)
            if to == "f16":
                numpy_agrees(t, codes, expected)
            record(out, number(t), number(to), len(codes), given, expected, lost(t, to, values))
            if t in ("f32", "f64") and to in ("f32", "f64"):
                complex_pair(out, t, to, values, given, expected)


def complex_pair(out, t, to, values, given, expected):
    wide, narrow = {"f32": C64, "f64": C128}[t], {"f32": C64, "f64": C128}[to]
    sizes = {"f32": 4, "f64": 8}
    pairs = len(values) // 2
    record(out, wide, narrow, pairs, given[:pairs * 2 * sizes[t]], expected[:pairs * 2 * sizes[to]],
           lost(t, to, values[:pairs * 2]))


def packed(out, rng):
    for t in PACKED:
        kind, bits = FLOATS[t][:2]
        codes = list(range(1 << bits)) + [rng.getrandbits(bits) for _ in range(161)]
        whole = codes[:-1]
        record(out, kind, DOUBLES, len(whole), pack(t, whole),
               encode_all("f64", [decode_float(t, c) for c in whole]))
        values = [decode_float(t, c) for c in codes]
        for to in TARGETS:
            record(out, kind, number(to), len(codes), pack(t, codes),
                   pack(t, codes) if to == t else encode_all(to, values), lost(t, to, values))


# Heft's numbers follow the order of ggml's numbers, except q2_0
BLOCK_NUMBERS = {t: 24 + i for i, t in enumerate(ggml_blocks.BLOCKS)}


def blocks(out, rng):
    for t in ggml_blocks.DECODERS:
        count = 2560
        given = ggml_blocks.draw(t, count, rng)
        values = ggml_blocks.decode(t, given)
        for to in ("f16", "bf16", "f32", "f64"):
            record(out, BLOCK_NUMBERS[t], number(to), count, given,
                   b"".join(encode(to, v) for v in values), lost(t, to, values))
        record(out, BLOCK_NUMBERS[t], DOUBLES, count, given,
               b"".join(encode("f64", v) for v in values))


def main():
    rng = random.Random(14)
    plain(sys.stdout.buffer, rng)
    packed(sys.stdout.buffer, rng)
    blocks(sys.stdout.buffer, rng)


main()
