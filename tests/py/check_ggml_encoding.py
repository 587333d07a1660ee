#!/usr/bin/env python3
"""check_ggml_encoding.py LIBHEFT DIR [ROWS [TYPE...]]: encode rows to blocks with Heft and ggml.

DIR has ggml's library as npm ships it. Both encode ROWS rows, 10,000 if not given, for each type,
with and without importance of the columns: numbers like weights, numbers of all exponents, ties,
constants, zeros, outliers, infinities and NaN. The bytes must be equal, but for the sign of a scale
that is NaN: ggml has the one of the processor, and Heft none. TAP on stdout."""
import pathlib
import struct
import sys

import ggml_blocks
import ggml_library
import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import tap  # noqa: E402

TYPES = ("q8_0", "q4_0", "q4_1", "q5_0", "q5_1", "q2_k", "q3_k", "q4_k", "q5_k", "q6_k", "q8_k",
         "iq4_nl", "iq4_xs", "tq1_0", "tq2_0", "q1_0", "q2_0", "mxfp4", "nvfp4")

# ---- rows ----


def weights(rng, shape):
    """Rows as models have them, of several magnitudes."""
    return rng.standard_normal(shape) * 10.0**rng.integers(-4, 2, (shape[0], 1))


def heavy(rng, shape):
    return rng.standard_t(2, shape) * 0.02


def ties(rng, shape):
    """Multiples of one number, many of them half-way between codes."""
    return rng.integers(-31, 32, shape) * 0.5**rng.integers(0, 9, (shape[0], 1))


def same_sign(rng, shape):
    return np.abs(rng.standard_normal(shape)) * rng.choice([-1, 1], (shape[0], 1)) + 0.25


def outlier(rng, shape):
    out = rng.standard_normal(shape) * 0.01
    out[np.arange(shape[0]), rng.integers(0, shape[1], shape[0])] = 1000
    return out


def sparse(rng, shape):
    return rng.standard_normal(shape) * (rng.random(shape) < 0.05)


def constant(rng, shape):
    return np.broadcast_to(rng.standard_normal((shape[0], 1)), shape)


def constant_groups(rng, shape):
    return np.repeat(rng.standard_normal((shape[0], shape[1] // 16)), 16, axis=1)


def tiny(rng, shape):
    """Numbers of the magnitudes below which ggml sees zeros, and subnormal numbers."""
    return rng.standard_normal(shape) * 10.0**rng.uniform(-46, -13, (shape[0], 1))


def exponents(rng, shape):
    """Numbers of 64 exponents in one row."""
    return rng.standard_normal(shape) * 2.0**rng.uniform(-40, 24, shape)


def powers(rng, shape):
    """Powers of two and numbers next to them."""
    power = 2.0**rng.integers(-120, 120, (shape[0], 1))
    return power * (1 - rng.integers(-4, 200, shape) * 2.0**-24)


def huge(rng, shape):
    return rng.standard_normal(shape) * 10.0**rng.uniform(4, 38, (shape[0], 1))


def zeros(_, shape):
    return np.zeros(shape) * np.where(np.arange(shape[1]) % 3, 1, -1)


def strangers(rng, shape, numbers):
    out = weights(rng, shape).astype(np.float32)
    out[rng.random(shape) < 0.004] = numbers[0]
    out[rng.random(shape) < 0.002] = numbers[-1]
    return out


def infinities(rng, shape):
    return strangers(rng, shape, (np.inf, -np.inf))


def nans(rng, shape):
    return strangers(rng, shape, (np.nan,))


def both(rng, shape):
    return strangers(rng, shape, (np.nan, np.inf))


KINDS = ((weights, 3500), (heavy, 1000), (ties, 1000), (same_sign, 500), (outlier, 500),
         (sparse, 500), (constant, 200), (constant_groups, 200), (tiny, 500), (exponents, 500),
         (powers, 500), (huge, 500), (zeros, 50), (infinities, 200), (nans, 200), (both, 150))

ALL = sum(count for _, count in KINDS)


def importance_of(rng, columns):
    """Mean squares of activations; some columns are never active."""
    out = (rng.standard_normal(columns)**2 * 10.0**rng.uniform(-3, 2, columns)).astype(np.float32)
    out[rng.random(columns) < 0.02] = 0
    return out


# ---- comparison ----


def unsigned_nans(name, rows):
    """Clear the signs of the f16 of blocks that are NaN."""
    _, _, size = ggml_blocks.BLOCKS[name]
    blocks, at = rows.reshape(-1, size), 0
    for part in ggml_blocks.split_layout(ggml_blocks.NUMBERS[name]):
        if part == "e":
            half = blocks[:, at:at + 2].copy().view("<u2")
            half[(half & 0x7FFF) > 0x7C00] &= 0x7FFF
            blocks[:, at:at + 2] = half.view(np.uint8)
        at += struct.calcsize("<" + part)
    return rows


def first_difference(name, kind, ours, theirs):
    size = ggml_blocks.BLOCKS[name][2]
    wrong = np.argwhere(ours != theirs)
    if len(wrong):
        row, byte = (int(x) for x in wrong[0])
        rows = len(np.unique(wrong[:, 0]))
        yield (f"{kind}: {rows} of {len(ours)} rows differ; row {row}, block {byte // size}, "
               f"byte {byte % size}: {ours[row, byte]:02x}, ggml has {theirs[row, byte]:02x}")


def check(heft, ggml, name, total, with_importance):
    rng = np.random.default_rng(list(name.encode()))
    for kind, count in KINDS:
        columns = int(rng.choice([256, 512]))
        rows = np.ascontiguousarray(kind(rng, (count * total // ALL, columns)), np.float32)
        importance = importance_of(rng, columns) if with_importance else None
        ours = heft.encode(name, rows, importance)
        theirs = unsigned_nans(name, ggml.encode(name, rows, importance))
        yield from first_difference(name, kind.__name__, ours, theirs)


def main():
    both_libraries = ggml_library.open_both(*sys.argv[1:3])
    if not both_libraries:
        print("1..0 # SKIP npm has no ggml for this machine")
        return 0
    names = sys.argv[4:] or TYPES
    total = int(sys.argv[3]) if sys.argv[3:] else ALL
    np.seterr(all="ignore")
    return tap.report((f"{name} is encoded as ggml does{', by importance' * by_importance}",
                       list(check(*both_libraries, name, total, by_importance)))
                      for name in names for by_importance in (False, True))


if __name__ == "__main__":
    sys.exit(main())
