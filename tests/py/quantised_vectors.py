"""quantised_vectors.py - small quantised tensors, and their numbers as derived by hand.

They test quantised_decoders.py, and show how the definitions of the schemes work out."""
import json

import numpy as np

import quantised_decoders as decode
from quantised_models import integers as stored

NAN, INFINITY = float("nan"), float("inf")
ULP = 2.0**-23  # the distance between numbers of float32 from 1 to 2
ONES = stored("F32", [[0x3F800000]])

# Codes 0 to 15 of E2M1, two in a byte, and their numbers
ALL_BYTES = [0x10, 0x32, 0x54, 0x76, 0x98, 0xBA, 0xDC, 0xFE]
ALL_WORDS = [0x76543210, 0xFEDCBA98]
ALL = [0.0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6]


def times(factor, values):
    return [factor * v for v in values]


def state(**values):
    return stored("U8", list(json.dumps(values).encode()))


def signs(magnitudes):
    return magnitudes + [-v for v in magnitudes]


# Value 10 is 5, value 21 is 5, value 31 is 1: the first two cross words.
THREE_BITS = [0x40000000, 0x80000001, 0x20000002]


def of_three_bits(ordinary, five, one):
    return [{10: five, 21: five, 31: one}.get(i, ordinary) for i in range(32)]


def column(words, count):
    """Return columns of words, of which all but the first are zero."""
    return stored("I32", [[w] + [0] * (count - 1) for w in words])


QUARTERS = decode.Stored("F32", (np.arange(16, dtype=np.float32) / 4 - 1).view(np.uint32))
OUTER_MAP = stored("F32", [0x3F000000, 0xBE800000] + [0x7FC00000] * 254)  # 1/2, -1/4, NaN

# title, decoder, parts, options, numbers
VECTORS = [
    ("fp8, partial blocks", decode.fp8, {
        "weight": stored("F8_E4M3", [[0x38, 0x40, 0x3C], [0xB8, 0x01, 0x7E], [0x80, 0x08, 0x7F]]),
        "scale": stored("F32", [[0x40000000, 0x3F000000], [0x40800000, 0x40400000]])
    }, dict(block=(2, 2)), [[2, 4, 0.75], [-2, 2.0**-8, 224], [-0.0, 0.0625, NAN]]),
    ("fp8, channels of e5m2", decode.fp8, {
        "weight": stored("F8_E5M2", [[0x3C, 0x7B], [0x7C, 0x01]]),
        "scale": stored("BF16", [0x4040, 0xC000])
    }, {}, [[3, 3 * 57344], [-INFINITY, -2.0**-15]]),
    ("fp8, a scale in e8m0", decode.fp8, {
        "weight": stored("F8_E4M3", [[0x38, 0xC4]]), "scale": stored("F8_E8M0", 0)
    }, {}, [[2.0**-127, -3 * 2.0**-127]]),
    ("fp8, a scale in f16", decode.fp8, {
        "weight": stored("F8_E4M3", [[0x38, 0x7E]]), "scale": stored("F16", [[0x0001]])
    }, {}, [[2.0**-24, 448 * 2.0**-24]]),
    ("mxfp8", decode.mxfp8, {
        "weight": stored("F8_E4M3", [[0x38] * 31 + [0x40] + [0x38] * 32] * 2),
        "scale": stored("U8", [[130, 255], [0, 127]])
    }, {}, [[8] * 31 + [16] + [NAN] * 32, [2.0**-127] * 31 + [2.0**-126] + [1] * 32]),
    ("mxfp4", decode.mxfp4, {
        "weight": stored("U8", [ALL_BYTES * 2]), "scale": stored("U8", [[128]])
    }, {}, [times(2, ALL) * 2]),
    ("mxfp4 in i8", decode.mxfp4, {
        "weight": stored("I8", [ALL_BYTES * 2]), "scale": stored("F8_E8M0", [[254]])
    }, {}, [[v * 2.0**127 if abs(v) < 2 else v * INFINITY for v in ALL] * 2]),
    ("mxfp4 of gpt-oss", decode.gpt_oss, {
        "weight": stored("U8", [[[ALL_BYTES * 2], [[0x22] * 16]]]),
        "scale": stored("U8", [[[127], [126]]])
    }, {}, [[[v, 0.5] for v in ALL * 2]]),
    # 1.5 * (1 + ULP) is a tie that becomes 1.5 + 2 ULP, and so are its products with 1.5, 3 and 6.
    ("nvfp4 of ModelOpt", decode.nvfp4, {
        "weight": stored("U8", [ALL_BYTES]), "scale": stored("F8_E4M3", [[0x3C]]),
        "global_scale": stored("F32", 0x3F800001)
    }, {}, [signs([0.0, 0.75 + ULP, 1.5 + 2 * ULP, 2.25 + 4 * ULP, 3 + 4 * ULP, 4.5 + 8 * ULP,
                   6 + 8 * ULP, 9 + 16 * ULP])]),
    # 1/7 is 9586981 * 2^-26, and three times as much is a tie that becomes 14380472 * 2^-25; 3/7
    # would be 14380471 * 2^-25.
    ("nvfp4 of compressed-tensors", decode.nvfp4, {
        "weight": stored("U8", [ALL_BYTES]), "scale": stored("F8_E4M3", [[0x38]]),
        "global_scale": stored("F32", [0x40E00000])
    }, dict(is_reciprocal=True), [signs([
        0.0, 9586981 * 2.0**-27, 9586981 * 2.0**-26, 14380472 * 2.0**-26, 9586981 * 2.0**-25,
        14380472 * 2.0**-25, 9586981 * 2.0**-24, 14380472 * 2.0**-24])]),
    # Row 33 of the matrix, group 5: line 1 of the second tile across, the second four, number 1.
    ("mxfp8 in tiles", lambda parts, **_: decode.mxfp8(parts, tiled=True)[33:34, 159:193], {
        "weight": stored("F8_E4M3", [[0x38] * 193] * 34),
        "scale": stored("U8", [129 if i == 512 + 16 + 4 + 1 else 127 for i in range(1024)])
    }, {}, [[1] + [4] * 32 + [1]]),
    ("nvfp4 of ComfyUI", decode.comfyui, {
        "weight": stored("U8", [ALL_BYTES]), "global_scale": stored("F32", 0x40000000),
        "scale": stored("F8_E4M3", [0x38] + [0] * 511)
    }, dict(form="nvfp4"), [times(2, [0.5, 0, 1.5, 1, 3, 2, 6, 4, -0.5, -0.0, -1.5, -1, -3, -2, -6,
                                      -4])]),
    ("rotated int8 of ComfyUI", decode.comfyui, {
        "weight": stored("I8", [[4, 0, 0, 0], [1, 2, 3, 4]]),
        "scale": stored("F32", [[0x3F800000], [0x40000000]])
    }, dict(form="int8_tensorwise", convrot=True, convrot_groupsize=4),
     [[2, 2, 2, -2], [2, 4, 6, 8]]),
    ("int4 awq of ModelOpt", decode.modelopt_int4, {
        "weight": stored("U8", [[0x7F, 0x80]]), "scale": stored("BF16", [[0x3F80], [0x4000]]),
        "columns": stored("F32", [0x40000000, 0x3F000000])
    }, dict(groups=1), [[-2, 0], [28, -8]]),
    ("int-quantized", decode.int_quantised, {
        "weight": stored("I8", [[-128, 127, 3], [0, 5, -1]]),
        "scale": stored("BF16", [[0x3F00], [0xC000]]), "zero_point": stored("I8", [[-128], [5]])
    }, {}, [[0.0, 127.5, 65.5], [10, -0.0, 12]]),
    ("int-quantized, groups", decode.int_quantised, {
        "weight": stored("I8", [[1, 2, 3, 4]]), "scale": stored("F16", [[0x3C00, 0x4000]]),
        "zero_point": stored("I8", [[1, 3]])
    }, {}, [[0, 1, 0, 2]]),
    ("pack-quantized", decode.pack_quantised, {
        "weight": stored("I32", [[0x76543210, 0x1234567F]]), "scale": stored("F32", [[0x40000000]]),
        "shape": stored("I64", [1, 9])
    }, dict(bits=4), [[-16, -14, -12, -10, -8, -6, -4, -2, 14]]),
    ("pack-quantized, zero points down the rows", decode.pack_quantised, {
        "weight": stored("I32", [[0x08], [0x1F]]), "scale": stored("F32", [[0x3F800000]] * 2),
        "shape": stored("I64", [2, 2]), "zero_point": stored("I32", [[0x0F]])
    }, dict(bits=4), [[-7, -15], [15, 1]]),
    ("pack-quantized, group indices", decode.pack_quantised, {
        "weight": stored("I32", [[0x00AA]]), "scale": stored("BF16", [[0x3F80, 0x4040]]),
        "shape": stored("I64", [1, 2]), "group_index": stored("I32", [1, 0])
    }, dict(bits=4), [[6, 2]]),
    ("pack-quantized, 3 bits across words", decode.pack_quantised, {
        "weight": stored("I32", [[0x80000000, 1]]), "scale": ONES, "shape": stored("I64", [1, 11])
    }, dict(bits=3), [[-4] * 10 + [2]]),
    ("pack-quantized, 3 bits in whole words", decode.pack_quantised, {
        "weight": stored("I32", [[0x80000000, 5]]), "scale": ONES, "shape": stored("I64", [1, 11])
    }, dict(bits=3, old=True), [[-4] * 10 + [1]]),
    # Zero points 0, and 15 of all outputs but the first
    *[(f"gptq, version {version}", decode.gptq, {
        "weight": column([0x76543210], 8), "zero_point": stored("I32", [[0xFFFFFFF0]]),
        "scale": stored("F16", [[0x3C00, 0x4000] + [0x3C00] * 6])
    }, dict(bits=4, is_v2=version == 2), numbers) for version, numbers in [
        (1, [[-1, 0, 1, 2, 3, 4, 5, 6]] + [[0] * 8] * 7),
        (2, [[0, 1, 2, 3, 4, 5, 6, 7], [-30] * 8] + [[-15] * 8] * 6)]],
    ("gptq, 3 bits", decode.gptq, {
        "weight": column(THREE_BITS, 32), "zero_point": stored("I32", [[0, 0, 0]]),
        "scale": stored("F16", [[0x3C00] * 32])
    }, dict(bits=3), [of_three_bits(-1, 4, 0)] + [[-1] * 32] * 31),
    ("gptq, group indices", decode.gptq, {
        "weight": column([0x00004321], 4), "zero_point": stored("I32", [[0x00], [0x01]]),
        "scale": stored("F16", [[0x3C00] * 4, [0x4000] * 4]),
        "group_index": stored("I32", [1, 0, 1, 0])
    }, dict(bits=8), [[2 * (0x21 - 2), 0x43 - 1, -4, -1]] + [[-2, -1, -2, -1]] * 3),
    ("awq", decode.awq, {
        "weight": stored("I32", [[0x76543210]]), "zero_point": stored("I32", [[0x00000001]]),
        "scale": stored("F16", [[0x3C00] * 8])
    }, {}, [[-1], [4], [1], [5], [2], [6], [3], [7]]),
    ("bitsandbytes", decode.bitsandbytes, {
        "weight": stored("U8", [[0x1F], [0x40]]), "map": QUARTERS,
        "absmax": stored("F32", [0x40000000, 0x40400000]),
        "state": state(blocksize=2, shape=[2, 2])
    }, {}, [[-1.5, 5.5], [0, -3]]),
    ("bitsandbytes, nested", decode.bitsandbytes, {
        "weight": stored("U8", [[0x1F], [0x40]]), "map": QUARTERS, "absmax": stored("U8", [1, 0]),
        "nested_absmax": stored("F32", [0x40800000]), "nested_map": OUTER_MAP,
        "state": state(blocksize=2, shape=[2, 2], nested_blocksize=256, nested_offset=1)
    }, {}, [[-0.0, 0], [0, -3]]),
    ("bitsandbytes int8", decode.int8, { # 1/127 is 8454660 * 2^-30
        "weight": stored("I8", [[127, 1], [-128, 0]]), "scale": stored("F32", [0x3F800000] * 2)
    }, {}, [[1, 8454660 * 2.0**-30], [-8454660 * 2.0**-23, 0]]),
    ("mlx, 3 bits", decode.mlx_affine, {
        "weight": stored("U32", [THREE_BITS]), "scale": stored("BF16", [[0x3F00]]),
        "bias": stored("BF16", [[0xBF80]])
    }, dict(bits=3, group=32), [of_three_bits(-1, 1.5, -0.5)]),
    # 3 * (1 + ULP) is a tie that becomes 3 + 4 ULP, before -3 is added.
    ("mlx, a rounding per operation", decode.mlx_affine, {
        "weight": stored("U32", [[0xFFFFFFFF, 0xFFFFFFFF]]), "scale": stored("F32", [[0x3F800001]]),
        "bias": stored("F32", [[0xC0400000]])
    }, dict(bits=2, group=32), [[4 * ULP] * 32]),
    ("mlx nvfp4", decode.mlx_float, {
        "weight": stored("U32", [ALL_WORDS]), "scale": stored("U8", [[0x40]])
    }, dict(mode="nvfp4"), [times(2, ALL)]),
    ("mlx mxfp4", decode.mlx_float, {
        "weight": stored("U32", [ALL_WORDS * 2]), "scale": stored("U8", [[126]])
    }, dict(mode="mxfp4"), [times(0.5, ALL) * 2]),
    ("mlx mxfp8", decode.mlx_float, {
        "weight": stored("U32", [[0x38403CB8] * 8]), "scale": stored("U8", [[128]])
    }, dict(mode="mxfp8"), [[-2, 3, 4, 2] * 8]),
    ("bitnet", decode.bitnet, {
        "weight": stored("U8", [[0xE4, 0x55]]), "scale": stored("F32", [0x40800000])
    }, {}, [[-0.25, 0], [0, 0], [0.25, 0], [0.5, 0]]),
]

# Bits of float32, a type, and the bits of the nearest number of that type, ties to even
ROUNDED = [
    (0x3F808000, "BF16", 0x3F80), (0x3F818000, "BF16", 0x3F82), (0x3F808001, "BF16", 0x3F81),
    (0x7F7FFFFF, "BF16", 0x7F80), (0x00008000, "BF16", 0x0000), (0x00018000, "BF16", 0x0002),
    (0x80000001, "BF16", 0x8000), (0xFF800000, "BF16", 0xFF80),
    (0x477FF000, "F16", 0x7C00), (0x477FEFFF, "F16", 0x7BFF), (0x33000000, "F16", 0x0000),
    (0x33400000, "F16", 0x0001), (0x33C00000, "F16", 0x0002), (0x3F801000, "F16", 0x3C00),
    (0x3F803000, "F16", 0x3C02), (0x00000001, "F32", 0x00000001)]


def complaints(decoder, parts, options, numbers):
    got = decoder(parts, **options)
    want = np.array(numbers, np.float32)
    both_nan = np.isnan(got) & np.isnan(want) if got.shape == want.shape else False
    if got.shape != want.shape or not np.all((got.view(np.uint32) == want.view(np.uint32))
                                             | both_nan):
        yield f"decoded to {got.tolist()}, not {want.tolist()}"


def wrong_roundings():
    for bits, dtype, want in ROUNDED:
        got = decode.rounded(np.array([bits], np.uint32).view(np.float32), dtype)
        if got.bits[0] != want:
            yield f"{bits:08x} is rounded to {dtype} {got.bits[0]:04x}, not {want:04x}"


def results():
    yield "numbers are rounded once, ties to even", list(wrong_roundings())
    for title, *row in VECTORS:
        yield f"the judge decodes {title}", list(complaints(*row))
