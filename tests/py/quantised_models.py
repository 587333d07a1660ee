"""quantised_models.py - stored tensors of quantised models, drawn at random, and their files.

Nothing is encoded: words and scales are any bits.  Scales have zeros, subnormal and infinite
numbers and NaN among ordinary ones, and bytes have every value if there are 256 of them.  Builders
return the parts of a weight by role; NAMES says how a convention calls them."""
import json
import pathlib
import struct

import numpy as np

from quantised_decoders import Stored, numbers

KINDS = {
    "U8": np.uint8, "I8": np.int8, "I16": np.int16, "I32": np.int32, "U32": np.uint32,
    "I64": np.int64, "F32": np.uint32, "F16": np.uint16, "BF16": np.uint16, "F8_E4M3": np.uint8,
    "F8_E5M2": np.uint8, "F8_E8M0": np.uint8, "F8_E4M3FNUZ": np.uint8, "F8_E5M2FNUZ": np.uint8
}
LAYOUTS = {"F32": (8, 23), "F16": (5, 10), "BF16": (8, 7)}  # bits of exponent and mantissa

# The convention's name of the weight, and of its parts by role; the module is in front.
NAMES = {
    "inverse": (".weight", {"weight": ".weight", "scale": ".weight_scale_inv"}),
    "stacked": (".up_proj", {"weight": ".up_proj", "scale": ".up_proj_scale_inv"}),
    "scale": (".weight", {"weight": ".weight", "scale": ".weight_scale",
                          "zero_point": ".weight_zero_point", "group_index": ".weight_g_idx",
                          "columns": ".pre_quant_scale"}),
    "modelopt": (".weight", {"weight": ".weight", "scale": ".weight_scale",
                             "global_scale": ".weight_scale_2", "columns": ".pre_quant_scale",
                             "unused": ".input_scale"}),
    "comfy": (".weight", {"weight": ".weight", "scale": ".weight_scale",
                          "global_scale": ".weight_scale_2", "description": ".comfy_quant",
                          "columns": ".pre_quant_scale", "unused": ".input_scale"}),
    "deepseek": (".weight", {"weight": ".weight", "scale": ".scale"}),
    "mistral": (".weight", {"weight": ".weight", "scale": ".qscale_weight",
                            "unused": ".qscale_act"}),
    "comfyui": (".weight", {"weight": ".weight", "scale": ".scale_weight",
                            "unused": ".scale_input"}),
    "gate_up": (".gate_up_proj", {"weight": ".gate_up_proj_blocks",
                                  "scale": ".gate_up_proj_scales"}),
    "down": (".down_proj", {"weight": ".down_proj_blocks", "scale": ".down_proj_scales"}),
    "openai": (".mlp1_weight", {"weight": ".mlp1_weight.blocks", "scale": ".mlp1_weight.scales"}),
    "packed": (".weight", {"weight": ".weight_packed", "scale": ".weight_scale",
                           "shape": ".weight_shape", "zero_point": ".weight_zero_point",
                           "group_index": ".weight_g_idx"}),
    "packed_global": (".weight", {"weight": ".weight_packed", "scale": ".weight_scale",
                                  "global_scale": ".weight_global_scale",
                                  "unused": ".input_global_scale"}),
    "qweight": (".weight", {"weight": ".qweight", "scale": ".scales", "zero_point": ".qzeros",
                            "group_index": ".g_idx"}),
    "mlx": (".weight", {"weight": ".weight", "scale": ".scales", "bias": ".biases",
                        "global_scale": ".global_scale"}),
    "int8": (".weight", {"weight": ".weight", "scale": ".SCB", "format": ".weight_format"}),
}
for _kind in ("nf4", "fp4"):
    NAMES[_kind] = (".weight", {
        "weight": ".weight", "absmax": ".weight.absmax", "map": ".weight.quant_map",
        "nested_absmax": ".weight.nested_absmax", "nested_map": ".weight.nested_quant_map",
        "state": f".weight.quant_state.bitsandbytes__{_kind}"})


# ---- any numbers ------------------------------------------------------------------------------


def codes(rng, dtype, shape):
    """Return any bits, every byte among them if there is room."""
    kind = np.dtype(KINDS[dtype])
    raw = rng.integers(0, 256, (*shape, kind.itemsize), np.uint8).reshape(-1)
    raw[:256] = rng.permutation(256)[:len(raw)] if len(raw) >= 256 else raw
    return Stored(dtype, raw.view(kind).reshape(shape))


def special_bits(exponent, mantissa):
    """Return zero, subnormal numbers, the least normal and the largest one, infinity, and NaN."""
    ones = ((1 << exponent) - 1) << mantissa
    return [0, 1, (1 << mantissa) - 1, 1 << mantissa, ones - 1, ones, ones + 1,
            ones | 1 << (mantissa - 1)]


def scales(rng, dtype, shape, value=None):
    """Return scales; `value` is the bits of each, instead of ordinary and special ones."""
    if value is not None:
        return Stored(dtype, np.full(shape, value, KINDS[dtype]))
    if dtype == "F8_E4M3":
        return codes(rng, dtype, shape)
    if dtype in ("F8_E8M0", "U8"):
        bits, special = rng.integers(100, 150, shape), np.array([0, 255, 1, 254])
    else:
        exponent, mantissa = LAYOUTS[dtype]
        one = ((1 << (exponent - 1)) - 1) << mantissa  # from 1/512 to 4
        bits = rng.integers(one - (9 << mantissa), one + (2 << mantissa), shape)
        special = np.array(special_bits(exponent, mantissa))
        bits = bits | rng.integers(0, 2, shape) << (exponent + mantissa)
        special = np.concatenate([special, special | 1 << (exponent + mantissa)])
    flat = np.array(bits).reshape(-1)
    places = rng.permutation(len(flat))[:min(len(flat) // 3, len(special))]
    flat[places] = rng.permutation(special)[:len(places)]
    return Stored(dtype, flat.astype(KINDS[dtype]).reshape(shape))


def integers(dtype, values):
    return Stored(dtype, np.array(values, np.int64).astype(KINDS[dtype]))


def words(bits, count):
    return -(-bits * count // 32)


def group_index(rng, columns, groups):
    return integers("I32", rng.integers(0, groups, columns))


def tiles(shape, group):
    """Return the shape of scales in tiles of 128 x 4, for a group of elements each."""
    *stack, rows, columns = shape
    return (*stack, -(-rows // 128) * 128, -(-columns // (4 * group)) * 4)


def columns_of(rng, shape, scale):
    """Return a number for each column, or no part."""
    return {"columns": scales(rng, scale, (shape[-1], ))} if scale else {}


# ---- the parts of a weight --------------------------------------------------------------------


def fp8(rng, shape, block=None, scale_shape=(), scale="F32", weight="F8_E4M3", value=None,
        columns=None, tiled=False, spread=False, **_):
    """The sizes of a block are those of the last dimensions.  spread: a dimension of 1 follows each
    of the scale."""
    if block:
        blocks = [-(-n // size) for n, size in zip(shape[-len(block):], block)]
        scale_shape = (*shape[:-len(block)], *blocks)
    if tiled:
        scale_shape = (int(np.prod(tiles(shape, 32))), )
    if spread:
        scale_shape = [n for size in scale_shape for n in (size, 1)]
    return {"weight": codes(rng, weight, shape), "scale": scales(rng, scale, scale_shape, value),
            **columns_of(rng, shape, columns)}


def mxfp4(rng, shape, scale="U8", weight="U8", **_):
    *rows, columns = shape
    return {"weight": codes(rng, weight, (*rows, columns // 2)),
            "scale": scales(rng, scale, (*rows, columns // 32))}


def gpt_oss(rng, shape, **_):
    *rows, columns = shape
    return {"weight": codes(rng, "U8", (*rows, columns // 32, 16)),
            "scale": scales(rng, "U8", (*rows, columns // 32))}


def nvfp4(rng, shape, value, global_shape=(), columns=None, tiled=False, **_):
    *rows, last = shape
    scale_shape = (int(np.prod(tiles(shape, 16))), ) if tiled else (*rows, last // 16)
    return {"weight": codes(rng, "U8", (*rows, last // 2)),
            "scale": scales(rng, "F8_E4M3", scale_shape),
            "global_scale": scales(rng, "F32", global_shape, value),
            **columns_of(rng, shape, columns)}


COMFYUI = { # the type of the weight and of scales, and the elements that share a scale in tiles
    "float8_e4m3fn": ("F8_E4M3", "F32", None), "float8_e5m2": ("F8_E5M2", "F32", None),
    "int8_tensorwise": ("I8", "F32", None), "int8_blockwise": ("I8", "F32", None),
    "mxfp8": ("F8_E4M3", "F8_E8M0", 32), "nvfp4": ("U8", "F8_E4M3", 16)}


def comfyui(rng, shape, form, scale_shape=(), storage=None, scale=None, columns=None, value=None,
            block=None, in_metadata=False, **described):
    """`described` goes to the description; `storage` and `scale` replace usual element types."""
    weight, kind, group = COMFYUI[form]
    *rows, last = shape
    if group:
        scale_shape = tiles(shape, group)
    if block:
        scale_shape = [-(-n // block) for n in shape]
        described["group_size"] = block
    text = json.dumps({"format": form, **described})
    stored = last // 2 if form == "nvfp4" else last
    parts = {"weight": codes(rng, storage or weight, (*rows, stored)),
             "scale": scales(rng, scale or kind, scale_shape, value),
             "description": integers("U8", list(text.encode())), **columns_of(rng, shape, columns)}
    if form == "nvfp4":
        parts["global_scale"] = scales(rng, "F32", (), 0x3C23D70B)
    if in_metadata:
        del parts["description"]
    return parts


def modelopt_int4(rng, shape, groups, scale="BF16", columns=None, **_):
    """A byte has a column of two rows."""
    *stack, rows, last = shape
    return {"weight": codes(rng, "U8", (*stack, rows // 2, last)),
            "scale": scales(rng, scale, (*stack, rows, groups)), **columns_of(rng, shape, columns)}


def int_quantised(rng, shape, scale_shape, scale="BF16", zero=False, by_index=False, value=None,
                  **_):
    parts = {"weight": codes(rng, "I8", shape), "scale": scales(rng, scale, scale_shape, value)}
    if zero:
        parts["zero_point"] = codes(rng, "I8", scale_shape)
    if by_index:
        parts["group_index"] = group_index(rng, shape[-1], scale_shape[-1])
    return parts


def pack_quantised(rng, shape, bits, groups=1, scale="BF16", zero=False, by_index=False, old=False,
                   **_):
    def count(numbers):
        return -(-numbers // (32 // bits)) if old else words(bits, numbers)

    *stack, rows, columns = shape
    parts = {"weight": codes(rng, "I32", (*stack, rows, count(columns))),
             "scale": scales(rng, scale, (*stack, rows, groups)), "shape": integers("I64", shape)}
    if zero:
        parts["zero_point"] = codes(rng, "I32", (*stack, count(rows), groups))
    if by_index:
        parts["group_index"] = group_index(rng, columns, groups)
    return parts


def gptq(rng, shape, bits, groups=1, scale="F16", by_index=False, zero_words=None, plain=False,
         **_):
    """`zero_words` takes the place of the words of zero points, if given; plain: group indices
    that name the groups in their order."""
    outputs, inputs = shape
    parts = {"weight": codes(rng, "I32", (words(bits, inputs), outputs)),
             "zero_point": codes(rng, "I32", (groups, words(bits, outputs))),
             "scale": scales(rng, scale, (groups, outputs))}
    if zero_words is not None:
        parts["zero_point"].bits[:] = zero_words
    if by_index:
        parts["group_index"] = group_index(rng, inputs, groups)
    if plain:
        parts["group_index"] = integers("I32", np.arange(inputs) // (inputs // groups))
    return parts


def awq(rng, shape, groups=1, scale="F16", **_):
    outputs, inputs = shape
    return {"weight": codes(rng, "I32", (inputs, outputs // 8)),
            "zero_point": codes(rng, "I32", (groups, outputs // 8)),
            "scale": scales(rng, scale, (groups, outputs))}


def bitsandbytes(rng, shape, kind="nf4", blocksize=64, nested=False, storage="U8", **_):
    count = int(np.prod(shape))
    blocks = -(-count // blocksize)
    state = {"quant_type": kind, "blocksize": blocksize, "dtype": "bfloat16", "shape": shape}
    parts = {"map": scales(rng, "F32", (16, ))}
    if nested:
        state.update(nested_blocksize=256, nested_dtype="float32", nested_offset=0.0371)
        parts.update(absmax=codes(rng, "U8", (blocks, )), nested_map=scales(rng, "F32", (256, )),
                     nested_absmax=scales(rng, "F32", (-(-blocks // 256), )))
    else:
        parts["absmax"] = scales(rng, "F32", (blocks, ))
    size = np.dtype(KINDS[storage]).itemsize
    parts["weight"] = codes(rng, storage, ((count + 1) // 2 // size, 1))
    parts["state"] = integers("U8", list(json.dumps(state).encode()))
    return parts


def int8(rng, shape, form=0, **_):
    return {"weight": codes(rng, "I8", shape), "scale": scales(rng, "F32", (shape[0], )),
            "format": integers("U8", form)}


def mlx_affine(rng, shape, bits, group, scale="BF16", **_):
    *rows, columns = shape
    parts = {"weight": codes(rng, "U32", (*rows, words(bits, columns)))}
    for role in ("scale", "bias"):
        parts[role] = scales(rng, scale, (*rows, columns // group))
    return parts


def mlx_float(rng, shape, mode, value=None, **_):
    """`value` is the bits of a scale of the whole tensor."""
    *rows, columns = shape
    bits, group = (8 if mode == "mxfp8" else 4), (16 if mode == "nvfp4" else 32)
    drawn = scales(rng, "F8_E4M3" if mode == "nvfp4" else "U8", (*rows, columns // group))
    parts = {"weight": codes(rng, "U32", (*rows, words(bits, columns))),
             "scale": Stored("U8", drawn.bits)}
    if value is not None:
        parts["global_scale"] = scales(rng, "F32", (1, ), value)
    return parts


def bitnet(rng, shape, scale="BF16", value=None, **_):
    return {"weight": codes(rng, "U8", (shape[0] // 4, shape[1])),
            "scale": scales(rng, scale, (1, ), value)}


# ---- files ------------------------------------------------------------------------------------


METADATA = "metadata of the file"  # among settings, instead of the name of a file


def pieces(tensors, metadata=None):
    """Yield the header of a file of safetensors, and the bytes of each tensor; wider element types
    come first, and so all are aligned."""
    header, at = {"__metadata__": metadata} if metadata else {}, 0
    order = sorted(tensors, key=lambda name: -tensors[name].bits.itemsize)
    for name in order:
        dtype, bits = tensors[name]
        header[name] = {"dtype": dtype, "shape": list(bits.shape),
                        "data_offsets": [at, at + bits.nbytes]}
        at += bits.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    yield struct.pack("<Q", len(text)) + text
    for name in order:
        yield tensors[name].bits.tobytes()


def pack(tensors, metadata=None):
    """Return a file of safetensors."""
    return b"".join(pieces(tensors, metadata))


def metadata_of(path):
    """Return the metadata of a file of safetensors."""
    raw = pathlib.Path(path).read_bytes()
    size = struct.unpack("<Q", raw[:8])[0]
    return json.loads(raw[8:8 + size]).get("__metadata__", {})


def unpack(path):
    """Return the tensors of a file of safetensors."""
    raw = pathlib.Path(path).read_bytes()
    size = struct.unpack("<Q", raw[:8])[0]
    tensors = {}
    for name, entry in json.loads(raw[8:8 + size]).items():
        if name != "__metadata__":
            begin, end = (8 + size + o for o in entry["data_offsets"])
            bits = np.frombuffer(raw[begin:end], KINDS[entry["dtype"]]).reshape(entry["shape"])
            tensors[name] = Stored(entry["dtype"], bits)
    return tensors


def write(folder, tensors, settings, second=()):
    """Write a model, its settings by file name, and the tensors in `second` to a second shard."""
    folder.mkdir()
    metadata = settings.get(METADATA)
    for name, document in settings.items():
        if name != METADATA:
            (folder / name).write_text(json.dumps(document))
    if not second:
        with open(folder / "model.safetensors", "wb") as f:
            f.writelines(pieces(tensors, metadata))
        return
    index = {}
    for i in (1, 2):
        file = f"model-0000{i}-of-00002.safetensors"
        shard = {n: t for n, t in tensors.items() if (n in second) == (i == 2)}
        (folder / file).write_bytes(pack(shard, metadata))
        index.update(dict.fromkeys(shard, file))
    (folder / "model.safetensors.index.json").write_text(json.dumps({
        "metadata": {"total_size": sum(t.bits.nbytes for t in tensors.values())},
        "weight_map": index}))


def bits_differ(got, want, any_nan):
    """Return a complaint about the first element that differs, or None. any_nan: NaN is equal to
    NaN."""
    differs = got.bits != want.bits
    if any_nan and want.dtype in LAYOUTS:
        differs &= ~(np.isnan(numbers(got)) & np.isnan(numbers(want)))
    if not np.any(differs):
        return None
    at = tuple(int(k) for k in np.argwhere(differs)[0])
    return (f"{np.count_nonzero(differs)} of {differs.size} elements differ, first {list(at)}: "
            f"{got.bits[at]:x}, not {want.bits[at]:x}")


def differ(got, wanted, any_nan=False):
    """Yield what differs between two sets of stored tensors."""
    if sorted(got) != sorted(wanted):
        yield (f"missing {sorted(set(wanted) - set(got))}, "
               f"not wanted {sorted(set(got) - set(wanted))}")
    for name in sorted(set(got) & set(wanted)):
        a, b = got[name], wanted[name]
        if (a.dtype, a.bits.shape) != (b.dtype, b.bits.shape):
            yield (f"{name} is {a.dtype} {list(a.bits.shape)}, "
                   f"not {b.dtype} {list(b.bits.shape)}")
        elif (complaint := bits_differ(a, b, any_nan)) is not None:
            yield f"{name}: {complaint}"
