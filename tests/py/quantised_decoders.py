"""quantised_decoders.py - decode quantised tensors with NumPy, from the definitions of the schemes.

A stored tensor has the element type as safetensors calls it, and an array of integers: its numbers,
or the bits of floating-point numbers.  Decoders compute in float32, with a rounding per operation,
and return float32; rounded() rounds once to the type of the result."""
import collections
import json

import numpy as np

Stored = collections.namedtuple("Stored", "dtype bits")


# ---- numbers ----------------------------------------------------------------------------------


def small_float(exponent_bits, mantissa_bits, bias, special):
    """Return the value of each code of a floating-point type of up to 8 bits.  `special` gives the
    value for an exponent field of ones and a mantissa, or None for an ordinary number."""
    values = []
    for code in range(1 << (1 + exponent_bits + mantissa_bits)):
        mantissa = code & ((1 << mantissa_bits) - 1)
        exponent = code >> mantissa_bits & ((1 << exponent_bits) - 1)
        fraction = mantissa / (1 << mantissa_bits) + (exponent > 0)
        value = fraction * 2.0**(max(exponent, 1) - bias)
        if exponent == (1 << exponent_bits) - 1 and special(mantissa) is not None:
            value = special(mantissa)
        values.append(-value if code >> (exponent_bits + mantissa_bits) else value)
    return np.array(values, np.float32)


NAN, INFINITY = float("nan"), float("inf")
E2M1 = small_float(2, 1, 1, lambda mantissa: None)
E4M3 = small_float(4, 3, 7, lambda mantissa: NAN if mantissa == 7 else None)
E5M2 = small_float(5, 2, 15, lambda mantissa: NAN if mantissa else INFINITY)
E8M0 = np.array([2.0**(code - 127) for code in range(255)] + [NAN], np.float32)
# Without infinities and -0, whose code is the only NaN
E4M3FNUZ, E5M2FNUZ = small_float(4, 3, 8, lambda _: None), small_float(5, 2, 16, lambda _: None)
E4M3FNUZ[0x80] = E5M2FNUZ[0x80] = NAN
TABLES = {"F8_E4M3": E4M3, "F8_E5M2": E5M2, "F8_E8M0": E8M0, "F8_E4M3FNUZ": E4M3FNUZ,
          "F8_E5M2FNUZ": E5M2FNUZ}


def numbers(tensor):
    """Return the numbers of a stored tensor as float32."""
    dtype, bits, shape = tensor.dtype, tensor.bits.reshape(-1), tensor.bits.shape
    if dtype in TABLES:
        return TABLES[dtype][bits].reshape(shape)
    if dtype == "F16":
        return bits.view(np.float16).astype(np.float32).reshape(shape)
    if dtype == "BF16":
        bits = bits.astype(np.uint32) << 16
    elif dtype != "F32":
        raise ValueError(f"{dtype} is no floating-point type")
    return bits.view(np.float32).reshape(shape)


def rounded(values, dtype):
    """Return float32 numbers as a tensor of the type: to the nearest, ties to even."""
    values = np.ascontiguousarray(values)
    if dtype == "F32":
        return Stored(dtype, values.view(np.uint32))
    if dtype == "F16":
        return Stored(dtype, values.astype(np.float16).view(np.uint16))
    bits = values.view(np.uint32).astype(np.uint64)
    nearest = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16
    return Stored(dtype, np.where(np.isnan(values), 0x7FC0, nearest).astype(np.uint16))


# ---- packed integers --------------------------------------------------------------------------


def dense(words, bits, count):
    """Return `count` integers from the last axis, a little-endian stream of bits."""
    raw = np.ascontiguousarray(words).astype(words.dtype.newbyteorder("<")).view(np.uint8)
    stream = np.unpackbits(raw, axis=-1, bitorder="little")[..., :count * bits]
    return stream.reshape(*words.shape[:-1], count, bits).astype(np.int64) @ (1 << np.arange(bits))


def by_word(words, bits, count):
    """Return `count` integers from the last axis; no integer crosses a word of 32 bits."""
    places = bits * np.arange(32 // bits)
    fields = words.astype(np.int64)[..., None] >> places & ((1 << bits) - 1)
    return fields.reshape(*words.shape[:-1], -1)[..., :count]


def nibbles(raw):
    """Return the integers of 4 bits of bytes along the last axis, the low one first."""
    return np.stack([raw & 15, raw >> 4], -1).reshape(*raw.shape[:-1], -1)


# ---- scales ------------------------------------------------------------------------------------


def spread(scales, shape, block):
    """Repeat scales so that each element of the last dimensions has that of its block."""
    for axis, size in zip((-2, -1)[-len(block):], block):
        scales = np.repeat(scales, size, axis)
    return scales[tuple(slice(0, n) for n in shape)]


def groups_of(parts, columns, count):
    """Return the group of each column."""
    if "group_index" in parts:
        return parts["group_index"].bits
    return np.arange(columns) // (columns // count)


def column_of(scales):
    """Give scales of rows the shape of a column."""
    return scales[:, None] if scales.ndim == 1 and scales.size > 1 else scales


def untiled(bits, shape, group):
    """Put scales in tiles of 128 x 4, of which each is 32 lines of 4 x 4, into rows and columns."""
    *stack, rows, columns = shape
    down, across = -(-rows // 128), -(-columns // (4 * group))
    tiles = bits.reshape(*stack, down, across, 32, 4, 4)
    grid = np.moveaxis(tiles, -2, -3).reshape(*stack, down, across, 128, 4)
    grid = np.moveaxis(grid, -2, -3).reshape(*stack, down * 128, across * 4)
    return grid[..., :rows, :-(-columns // group)]


def by_columns(values, parts):
    """Multiply by what the inputs of each column were divided by."""
    return values * numbers(parts["columns"]) if "columns" in parts else values


# ---- floating-point numbers of 8 and 4 bits ----------------------------------------------------


def fp8(parts, block=None, **_):
    """The scale is a factor, also where it is called inverse."""
    weight, scale = numbers(parts["weight"]), numbers(parts["scale"])
    if scale.ndim > weight.ndim: # a dimension of 1 follows each
        scale = scale.reshape(scale.shape[::2])
    values = weight * (spread(scale, weight.shape, block) if block else column_of(scale))
    return by_columns(values, parts)


def mxfp8(parts, tiled=False, **_):
    weight = numbers(parts["weight"])
    scale = untiled(parts["scale"].bits, weight.shape, 32) if tiled else parts["scale"].bits
    return weight * spread(E8M0[scale], weight.shape, (32, ))


def mxfp4(parts, **_):
    weight = E2M1[nibbles(parts["weight"].bits.view(np.uint8))]
    return weight * spread(E8M0[parts["scale"].bits], weight.shape, (32, ))


def gpt_oss(parts, transposed=True, **_):
    """The 16 bytes of a group are a dimension of their own."""
    experts, rows, groups, group = parts["weight"].bits.shape
    raw = Stored("U8", parts["weight"].bits.reshape(experts, rows, groups * group))
    values = mxfp4({"weight": raw, "scale": parts["scale"]})
    return np.ascontiguousarray(values.swapaxes(1, 2)) if transposed else values


def nvfp4(parts, is_reciprocal=False, tiled=False, **_):
    weight, scale = E2M1[nibbles(parts["weight"].bits)], numbers(parts["scale"])
    if tiled:
        scale = untiled(scale, weight.shape, 16)
    factor = numbers(parts["global_scale"]).reshape(())
    scale = scale / factor if is_reciprocal else scale * factor
    return by_columns(weight * spread(scale, weight.shape, (16, )), parts)


def rotation(size):
    """Return the regular Hadamard matrix of a power of four, which is its own inverse."""
    four = np.ones((4, 4)) - 2 * np.eye(4)[::-1]
    matrix = np.ones((1, 1))
    while len(matrix) < size:
        matrix = np.kron(matrix, four)
    return matrix / np.sqrt(size)


def comfyui(parts, form, block=None, convrot=False, convrot_groupsize=256, storage=None, **_):
    """The first of two numbers of nvfp4 is the high half of a byte."""
    raw = parts["weight"].bits
    if form == "nvfp4":
        swapped = Stored("U8", raw >> 4 | raw << 4 & 0xF0)
        scale = Stored("F8_E4M3", parts["scale"].bits)
        return nvfp4({**parts, "weight": swapped, "scale": scale}, tiled=True)
    if form == "mxfp8":
        return by_columns(mxfp8(parts, tiled=True), parts)
    if form.startswith("int8"):
        weight = raw.astype(np.float32)
    else:
        weight = (E4M3 if form == "float8_e4m3fn" else E5M2)[raw]
    scale = numbers(parts["scale"])
    values = weight * (spread(scale, weight.shape, (block, block)) if block else column_of(scale))
    if convrot:
        grouped = values.astype(np.float64).reshape(len(values), -1, convrot_groupsize)
        values = (grouped @ rotation(convrot_groupsize)).reshape(values.shape).astype(np.float32)
    return by_columns(values, parts)


def modelopt_int4(parts, groups, **_):
    """The even row of two is in the low half of a byte; numbers are from -8 to 7."""
    raw = parts["weight"].bits.astype(np.int64)
    codes = np.stack([raw & 15, raw >> 4], -2).reshape(*raw.shape[:-2], -1, raw.shape[-1])
    signed = (codes ^ 8) - 8
    scale = np.repeat(numbers(parts["scale"]), raw.shape[-1] // groups, -1)
    return by_columns(signed.astype(np.float32) * scale, parts)


# ---- integers ----------------------------------------------------------------------------------


def scaled(integers, zeros, scales):
    """Return (integer - zero point) * scale."""
    return (integers - zeros).astype(np.float32) * scales


def int_quantised(parts, **_):
    weight, scale = parts["weight"].bits.astype(np.int64), column_of(numbers(parts["scale"]))
    zero = parts["zero_point"].bits.astype(np.int64) if "zero_point" in parts else np.zeros((1, 1))
    zero = column_of(zero)
    columns = weight.shape[-1]
    if scale.ndim == 2 and scale.shape[-1] > 1:
        group = groups_of(parts, columns, scale.shape[-1])
        scale, zero = scale[:, group], zero[:, group] if zero.shape[-1] > 1 else zero
    return scaled(weight, zero, scale)


def pack_quantised(parts, bits, old=False, **_):
    """Stored integers are 2^(bits - 1) larger; zero points are packed down the rows."""
    unpack, half = by_word if old else dense, 1 << (bits - 1)
    rows, columns = parts["shape"].bits[-2:]
    scale = numbers(parts["scale"])
    group = groups_of(parts, columns, scale.shape[-1])
    zero = 0
    if "zero_point" in parts:
        down = parts["zero_point"].bits.swapaxes(-1, -2)
        zero = (unpack(down, bits, rows) - half).swapaxes(-1, -2)[..., group]
    return scaled(unpack(parts["weight"].bits, bits, columns) - half, zero, scale[..., group])


def gptq(parts, bits, is_v2=False, **_):
    """Words go down the inputs.  Version 1 stores the zero point less one, modulo 2^bits."""
    scale = numbers(parts["scale"])
    inputs, outputs = parts["weight"].bits.shape[0] * 32 // bits, scale.shape[1]
    weight = dense(parts["weight"].bits.T, bits, inputs)
    zero = dense(parts["zero_point"].bits, bits, outputs)
    if not is_v2:
        zero = (zero + 1) % (1 << bits)
    group = groups_of(parts, inputs, len(scale))
    return scaled(weight, zero[group].T, scale[group].T)


def awq(parts, **_):
    """Nibble i of a word has the column order[i] of eight."""
    order = [0, 2, 4, 6, 1, 3, 5, 7]

    def columns(words):
        fields = by_word(words, 4, 8 * words.shape[1]).reshape(len(words), -1, 8)
        out = np.empty_like(fields)
        out[..., order] = fields
        return out.reshape(len(words), -1)

    scale, weight = numbers(parts["scale"]), columns(parts["weight"].bits)
    group = groups_of({}, len(weight), len(scale))
    return np.ascontiguousarray(scaled(weight, columns(parts["zero_point"].bits)[group],
                                       scale[group]).T)


def bitsandbytes(parts, **_):
    """The high nibble comes first, and blocks go through the rows."""
    state = json.loads(parts["state"].bits.tobytes())
    raw = np.frombuffer(parts["weight"].bits.tobytes(), np.uint8)
    count = int(np.prod(state["shape"]))
    codes = np.stack([raw >> 4, raw & 15], -1).reshape(-1)[:count]
    if "nested_absmax" in parts:
        outer = np.repeat(numbers(parts["nested_absmax"]), state["nested_blocksize"])
        largest = numbers(parts["nested_map"])[parts["absmax"].bits]
        largest = largest * outer[:len(largest)] + np.float32(state["nested_offset"])
    else:
        largest = numbers(parts["absmax"])
    factors = np.repeat(largest, state["blocksize"])[:count]
    return (numbers(parts["map"])[codes] * factors).reshape(state["shape"])


def int8(parts, **_):
    product = parts["weight"].bits.astype(np.float32) * numbers(parts["scale"])[:, None]
    return product * np.float32(1 / 127)


# ---- MLX and others ----------------------------------------------------------------------------


def mlx_affine(parts, bits, group, **_):
    scale = numbers(parts["scale"])
    shape = (*scale.shape[:-1], scale.shape[-1] * group)
    codes = dense(parts["weight"].bits, bits, shape[-1]).astype(np.float32)
    products = codes * spread(scale, shape, (group, ))
    return products + spread(numbers(parts["bias"]), shape, (group, ))


def mlx_float(parts, mode, **_):
    """The codes of the words, and scales that are E8M0, or E4M3 for nvfp4."""
    raw = np.ascontiguousarray(parts["weight"].bits).view(np.uint8)
    weight = E4M3[raw] if mode == "mxfp8" else E2M1[nibbles(raw)]
    table, group = (E4M3, 16) if mode == "nvfp4" else (E8M0, 32)
    scale = table[parts["scale"].bits]
    if "global_scale" in parts:
        scale = scale * (numbers(parts["global_scale"]).reshape(()) / np.float32(6 * 448))
    return weight * spread(scale, weight.shape, (group, ))


def bitnet(parts, **_):
    """The rows of a byte are a quarter of the rows apart."""
    raw = parts["weight"].bits
    codes = np.concatenate([raw >> shift & 3 for shift in (0, 2, 4, 6)])
    return (codes.astype(np.float32) - 1) / numbers(parts["scale"]).reshape(())
