"""quantised_encoders.py - encode weights with NumPy, from the definitions of the schemes.

An encoder takes float32 numbers and returns the stored tensors by the suffix of their names."""
import numpy as np

from quantised_decoders import E2M1, E4M3, Stored, numbers, rounded


def nearest(values, table):
    """Return codes of the nearest numbers of a table that ascends, without the sign; of two that
    are as near, the even code. Numbers beyond the table become the last."""
    table, x = table.astype(np.float64), np.abs(values).astype(np.float64)
    above = np.clip(np.searchsorted(table, x), 1, len(table) - 1)
    low, high = x - table[above - 1], table[above] - x
    takes_low = (low < high) | ((low == high) & ((above - 1) % 2 == 0))
    return np.where(takes_low, above - 1, above).astype(np.uint8)


def e4m3(values):
    codes = nearest(np.where(np.isnan(values), 0, values), E4M3[:127])
    codes = np.where(np.isnan(values), 127, codes)
    return (codes | np.signbit(values) * 128).astype(np.uint8)


def e2m1(values):
    values = np.where(np.isnan(values), np.float32(0), values)
    return (nearest(values, E2M1[:8]) | np.signbit(values) * 8).astype(np.uint8)


def pairs(codes):
    """Pack codes of 4 bits, the first of two in the low half of a byte."""
    return (codes[..., ::2] | codes[..., 1::2] << 4).astype(np.uint8)


def largest(values):
    """Return the largest magnitude along the last axis, of finite numbers."""
    return np.max(np.where(np.isfinite(values), np.abs(values), 0), -1).astype(np.float32)


def grouped(values, size):
    return values.reshape(*values.shape[:-1], -1, size)


def f32(values):
    return Stored("F32", np.array(values, np.float32).view(np.uint32))


def or_one(scales):
    return np.where(scales == 0, np.float32(1), scales)


# ---- floating-point numbers of 8 bits ---------------------------------------------------------


def fp8(values, block, **_):
    *stack, rows, columns = values.shape
    height, width = (min(b, n) if b else n for b, n in zip(block, (rows, columns)))
    down, across = -(-rows // height), -(-columns // width)
    scales = np.zeros((*stack, down, across), np.float32)
    codes = np.zeros(values.shape, np.uint8)
    for i in range(down):
        for k in range(across):
            cell = (..., slice(i * height, (i + 1) * height), slice(k * width, (k + 1) * width))
            x = values[cell]
            scale = or_one(largest(x.reshape(*stack, -1)) / np.float32(448))
            scales[..., i, k] = scale
            codes[cell] = e4m3(x / scale[..., None, None])
    suffix = "_scale" if block == (1, 0) else "_scale_inv"
    return {"": Stored("F8_E4M3", codes), suffix: f32(scales)}


def power_codes(values, most):
    """Return the codes of E8M0 by the rule of OCP."""
    exponent = np.frexp(largest(values).astype(np.float64))[1] - 1
    code = np.where(largest(values) == 0, 0, exponent - most + 127)
    return np.clip(code, 0, 254).astype(np.uint8)


def powers(codes):
    return 2.0**(codes.astype(np.float64) - 127)


def mxfp8(values, **_):
    groups = grouped(values, 32)
    scale = power_codes(groups, 8)
    codes = e4m3(groups / powers(scale)[..., None]).reshape(values.shape)
    return {"": Stored("F8_E4M3", codes), "_scale": Stored("U8", scale)}


# ---- floating-point numbers of 4 bits ---------------------------------------------------------


def mxfp4_codes(values):
    groups = grouped(values, 32)
    scale = power_codes(groups, 2)
    return e2m1(groups / powers(scale)[..., None]).reshape(values.shape), scale


def mxfp4(values, **_):
    codes, scale = mxfp4_codes(values)
    return {"_packed": Stored("U8", pairs(codes)), "_scale": Stored("U8", scale)}


def gpt_oss(values, **_):
    """The source has rows and columns exchanged."""
    codes, scale = mxfp4_codes(np.ascontiguousarray(values.swapaxes(-1, -2)))
    raw = pairs(codes)
    return {"_blocks": Stored("U8", grouped(raw, 16)), "_scales": Stored("U8", scale)}


def nvfp4_parts(values, most, divides):
    """Return codes, codes of scales, and the factor, for a largest magnitude."""
    six, all_most, most = np.float32(6), np.float32(2688), np.float32(most)
    factor = all_most / most if divides else most / all_most
    factor = np.float32(1) if most == 0 or factor == 0 else factor
    factor = min(factor, np.finfo(np.float32).max)
    groups = grouped(values, 16)
    top = largest(groups)
    wanted = top / six * factor if divides else top / (six * factor)
    scale = np.maximum(e4m3(np.where(top == 0, np.float32(1), wanted).astype(np.float32)), 1)
    by = E4M3[scale] / factor if divides else E4M3[scale] * factor
    codes = e2m1(groups / or_one(by)[..., None]).reshape(values.shape)
    return codes, scale.astype(np.uint8), factor


def nvfp4(values, most=None, **_):
    most = largest(values.reshape(-1)) if most is None else most
    codes, scale, factor = nvfp4_parts(values, most, True)
    return {"_packed": Stored("U8", pairs(codes)), "_scale": Stored("F8_E4M3", scale),
            "_global_scale": f32([factor])}


def modelopt(values, most=None, **_):
    most = largest(values.reshape(-1)) if most is None else most
    codes, scale, factor = nvfp4_parts(values, most, False)
    return {"": Stored("U8", pairs(codes)), "_scale": Stored("F8_E4M3", scale),
            "_scale_2": f32(factor)}


# ---- integers ---------------------------------------------------------------------------------


def integers(values, bits, group, kind, **_):
    groups = grouped(values, group or values.shape[-1])
    # The least number, times the scale, is still a number of f16 or bf16.
    most = np.float32(65504 if kind == "F16" else 255 * 2.0**120) / np.float32(2**(bits - 1))
    scale = rounded(np.minimum(largest(groups) / np.float32((2**bits - 1) / 2), most), kind)
    one = rounded(np.float32([1]), kind).bits[0]
    scale = Stored(kind, np.where(numbers(scale) == 0, one, scale.bits).astype(scale.bits.dtype))
    half = 2**(bits - 1)
    x = groups / numbers(scale)[..., None]
    q = np.clip(np.rint(np.where(np.isnan(x), 0, x)), -half, half - 1).astype(np.int64) + half
    q = q.reshape(values.shape).astype(np.uint8)
    raw = np.ascontiguousarray(pairs(q) if bits == 4 else q)
    return {"_packed": Stored("I32", raw.view(np.int32)), "_scale": scale,
            "_shape": Stored("I64", np.array(values.shape[-2:], np.int64))}


# ---- blocks of GGUF ---------------------------------------------------------------------------


def gguf_blocks(codes, scale, group, scales):
    """Lay codes out as blocks: `scales` bytes, then the halves of groups side by side."""
    groups = grouped(codes, group)
    half = (groups[..., :group // 2] | groups[..., group // 2:] << 4).astype(np.uint8)
    half = half.reshape(-1, scales * group // 2)
    return np.concatenate([scale.reshape(-1, scales), half], -1).tobytes()
