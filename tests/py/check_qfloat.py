#!/usr/bin/env python3
"""check_qfloat.py HEFT: judge conversions of quantised models to Burn's quantised tensors.

NumPy takes the tensors of a Burnpack apart by the definition of Burn, and compares the products of
integers and scales with what the scheme of the source represents in float32: to the bit, but any
NaN equals any other.  Models are those of the test of --dequantize, and PyTorch's if it is here.
What has no form in Burn must be refused, with a tensor and the ways on, and nothing written.
TAP on stdout."""
import math
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import tap  # noqa: E402

try:
    import numpy as np
except ImportError:
    print("1..0 # SKIP NumPy is not here")
    sys.exit(0)

import check_dequantize as dequantize
import check_onnx_blocks as onnx
import gguf_models
import quantised_decoders as decode
import quantised_models as models
import read_burnpack
from onnx_proto import constant
from quantised_cases import CASES, CHANNELS, Case, gptq, packed, weights

RELEASES = ("0.21", "0.20", "0.22", "0.22-pre.2")
UNSUPPORTED = 5
BITS = {"Q8F": 8, "Q8S": 8, "Q4F": 4, "Q4S": 4}


def heft(*args):
    return subprocess.run([HEFT, *map(str, args)], capture_output=True, text=True, check=False)


# ---- Burn's quantised tensors -----------------------------------------------------------------


def split_scheme(scheme):
    """Return value, store and sizes of a block, or None, as any release spells them."""
    if "level" in scheme:
        assert scheme["param"] == "F32", scheme
        level = scheme["level"]
        size = None if level == "Tensor" else level["Block"]
    else:
        size = scheme["block"] and scheme["block"]["size"]
        assert scheme["tensor" if size is None else "block"] in ("F32", {"size": size,
                                                                         "dtype": "F32"}), scheme
    assert scheme["mode"] == "Symmetric", scheme
    return scheme["value"], scheme["store"], size and size["storage"][:size["len"]]


def integers_of(data, value, store, shape):
    """Return the integers, and the bytes behind them."""
    count = math.prod(shape)
    if BITS[value] == 8:
        assert store == "Native", store
        return np.frombuffer(data[:count], np.int8).reshape(shape), data[count:]
    assert store == {"PackedU32": 0} and shape[-1] % 8 == 0, (store, shape)
    words = np.frombuffer(data[:count // 2], "<u4")
    nibbles = (words[:, None] >> np.arange(0, 32, 4, dtype=np.uint32) & 15).astype(np.int64)
    return ((nibbles ^ 8) - 8).reshape(shape), data[count // 2:]


def scale_of_each(scales, sizes, shape):
    """Spread the scales of blocks over the elements."""
    if sizes is None:
        assert len(scales) == 1
        return np.full(shape, scales[0], np.float32)
    sizes = [1] * (len(shape) - len(sizes)) + list(sizes)
    assert all(n % size == 0 and 0 < size < 256 for n, size in zip(shape, sizes)), (shape, sizes)
    grid = scales.reshape([n // size for n, size in zip(shape, sizes)])
    for axis, size in enumerate(sizes):
        grid = np.repeat(grid, size, axis)
    return grid


def decoded(dtype, shape, data):
    value, store, sizes = split_scheme(dtype["QFloat"])
    integers, rest = integers_of(data, value, store, shape)
    scales = np.frombuffer(rest, "<f4")
    return integers.astype(np.float32) * scale_of_each(scales, sizes, shape)


def unpack(path, release):
    """Return the decoded tensors of a Burnpack, and the names of the others."""
    raw = path.read_bytes()
    found = read_burnpack.read(raw, release)
    size = int.from_bytes(raw[6:10], "little")
    root, _ = read_burnpack.decode(raw[10:10 + size])
    start, values, others = -(-(10 + size) // 256) * 256, {}, set()
    for name, d in root["tensors"].items():
        begin, end = d["data_offsets"]
        if isinstance(d["dtype"], dict) and "QFloat" in d["dtype"]:
            values[name] = decoded(d["dtype"], d["shape"], raw[start + begin:start + end])
        else:
            others.add(name)
    assert len(found["tensors"]) == len(root["tensors"])
    return values, others


def differ(got, wanted):
    yield from models.differ({name: decode.rounded(x, "F32") for name, x in got.items()},
                             {name: decode.rounded(x, "F32") for name, x in wanted.items()}, True)


def converts(source, out, wanted, release="0.21", *further):
    p = heft("convert", "--format-version", release, *further, source, out)
    if p.returncode:
        yield f"ends with {p.returncode}: {p.stderr[:300]}"
        return
    if "with the same numbers" not in p.stderr:
        yield f"the copy is not said: {p.stderr[:300]}"
    got, others = unpack(out, release)
    yield from differ(got, wanted)
    if others & set(wanted):
        yield f"not quantised: {others & set(wanted)}"


def is_refused(source, out, names, why="no form in Burn"):
    p = heft("convert", source, out)
    if p.returncode != UNSUPPORTED or out.exists():
        yield f"ends with {p.returncode}, and {'a' if out.exists() else 'no'} file"
    if not any(name in p.stderr for name in names):
        yield f"no line names one of {names[:3]}: {p.stderr[:300]}"
    if why not in p.stderr or "--dequantize" not in p.stderr:
        yield f"{why}, or the way on, is not said: {p.stderr[:300]}"


# ---- models of safetensors --------------------------------------------------------------------

SCHEME = {"compressed-tensors"}
# Words of zero points in the middle; the first form of gptq stores them less one
MIDDLES = {("gptq", 4): 0x77777777, ("gptq", 8): 0x7F7F7F7F,
           ("gptq_v2", 4): 0x88888888 - 2**32, ("gptq_v2", 8): 0x80808080 - 2**32}
SHAPES = (16, 36), (3, 1000), (2, 512), (4, 254), (4, 6144)
LONGER = [ # runs of more numbers than a block has, whose scales are repeated
    Case("channels of 8 bits", SCHEME, weights(
        "scale", models.int_quantised, decode.int_quantised, *[
            dict(shape=shape, scale_shape=(shape[0], 1), scale=scale)
            for shape in SHAPES for scale in ("BF16", "F32")]), CHANNELS),
    *[Case(f"{bits} bits in words, {title}", SCHEME, weights(
        "packed", models.pack_quantised, decode.pack_quantised, *[
            dict(shape=shape, bits=bits, groups=shape[-1] // group if group else 1, scale=scale)
            for scale in ("BF16", "F16", "F32")]), packed(bits, group))
      for title, shape, group in (("channels", (5, 2048), None), ("groups of 512", (6, 1024), 512),
                                  ("groups of 24", (4, 96), 24)) for bits in (4, 8)],
    *[Case(f"symmetric {form}, {bits} bits, {title}", {"gptq"}, weights(
        "qweight", models.gptq, decode.gptq, *[
            dict(shape=shape, bits=bits, groups=shape[1] // group if group > 0 else 1, scale=scale,
                 is_v2=form == "gptq_v2", zero_words=MIDDLES[form, bits], plain=plain)
            for scale in ("F16", "BF16", "F32")]), gptq(bits, group, form))
      for form in ("gptq", "gptq_v2") for bits in (4, 8)
      for title, shape, group, plain in (
          ("groups", (40, 256), 32, False), ("one group", (16, 2048), -1, False),
          ("groups of 512", (24, 1024), 512, False), ("indices in order", (8, 96), 32, True))],
    Case("ComfyUI, integers", {"comfyui"}, weights(
        "comfy", models.comfyui, decode.comfyui, dict(form="int8_tensorwise", shape=(6, 50)),
        dict(form="int8_tensorwise", shape=(6, 1300), scale_shape=(6, ), scale="F16"),
        dict(form="int8_tensorwise", shape=(3, 40), scale_shape=(3, 1), scale="BF16"),
        dict(form="int8_blockwise", shape=(256, 384), block=128),
        dict(form="int8_blockwise", shape=(20, 36), block=8)), {}),
]


def is_symmetric(o):
    form = "gptq_v2" if o.get("is_v2") else "gptq"
    return o["bits"] in (4, 8) and o.get("zero_words") == MIDDLES[form, o["bits"]]


def has_form(weight):
    o = weight.options
    if weight.builder is models.gptq:
        return is_symmetric(o) and not o.get("by_index")
    if weight.builder is models.comfyui:
        run = math.gcd(o.get("block") or 0, o["shape"][-1])
        return (o["form"].startswith("int8") and not o.get("convrot") and not o.get("columns")
                and run > 1)
    if weight.builder not in (models.int_quantised, models.pack_quantised):
        return False
    is_each = weight.builder is models.int_quantised and o["shape"][-1] == 1
    fills = weight.builder is models.int_quantised or o["shape"][-1] % 8 == 0 or o["bits"] == 8
    return (not o.get("zero") and not o.get("by_index") and o.get("bits", 8) in (4, 8) and fills
            and not is_each)


def check_case(case, scratch):
    stored, _, numbers = dequantize.make(case)
    models.write(scratch / "model", {**dequantize.ordinary({}), **stored}, case.settings)
    out = scratch / "out.bpk"
    names = list(numbers)
    if all(map(has_form, case.weights)):
        wanted = {name: values for name, (values, _) in numbers.items()}
        for release in RELEASES:
            for complaint in converts(scratch / "model", out, wanted, release, "-f"):
                yield f"{release}: {complaint}"
        second = scratch / "two"
        models.write(second, {**dequantize.ordinary({}), **stored}, case.settings,
                     sorted(stored)[::2])
        yield from converts(second, scratch / "two.bpk", wanted)
    else:
        bad = [name for name, weight in zip(names, case.weights) if not has_form(weight)]
        yield from is_refused(scratch / "model", out, bad)


# ---- blocks of GGUF ---------------------------------------------------------------------------


def blocks(rng, shape, kind):
    """Return any bits as blocks, with all scales among them, and what they represent."""
    count, size = math.prod(shape) // 32, 16 if kind == "q4_0" else 32
    codes = rng.integers(0, 256, (count, size), np.uint8)
    scale = rng.integers(0, 1 << 16, count).astype("<u2")
    raw = np.concatenate([scale.view(np.uint8).reshape(count, 2), codes], 1)
    x = codes.view(np.int8).astype(np.float32)
    if kind == "q4_0":
        x = np.concatenate([codes & 15, codes >> 4], 1).astype(np.float32) - 8
    x = x * scale.view(np.float16).astype(np.float32)[:, None]
    return (shape, kind, raw.tobytes()), x.reshape(shape)


def check_gguf(_, scratch):
    rng, tensors, wanted = np.random.default_rng(11), {}, {}
    for i, shape in enumerate(((64, ), (3, 32), (70, 4096), (2, 5, 96))):
        for kind in ("q8_0", "q4_0"):
            name = f"blk.{i}.{kind}.weight"
            tensors[name], wanted[name] = blocks(rng, shape, kind)
    tensors["output_norm.weight"] = np.ones(32, np.float32)
    source, out = scratch / "m.gguf", scratch / "m.bpk"
    gguf_models.write(source, {"general.architecture": "llama"}, tensors)
    for release in RELEASES:
        yield from converts(source, out, wanted, release, "-f")
    casts = "--cast", "*q8_0*=f16", "--cast", "blk.1.q4_0.weight=f32"
    kept = {name: x for name, x in wanted.items() if "q4_0" in name and "blk.1" not in name}
    yield from converts(source, out, kept, "0.21", "-f", *casts)
    tensors["blk.0.ffn_up.weight"] = ((2, 32), "q5_0", bytes(44))
    gguf_models.write(source, {"general.architecture": "llama"}, tensors)
    p = heft("convert", "-f", source, out)
    if p.returncode != UNSUPPORTED or "q5_0 cannot be stored" not in p.stderr:
        yield f"q5_0: ends with {p.returncode}: {p.stderr[:300]}"
    yield from converts(source, out, wanted, "0.21", "-f", "--cast", "*ffn_up*=bf16")


# ---- models of ONNX ---------------------------------------------------------------------------


def node(kind, codes, scale, zero=None, low=0, **attributes):
    """Return a model with DequantizeLinear; codes are stored plus `low`."""
    def raw(v):
        return onnx.halves(v & 15) if kind in (onnx.I4, onnx.U4) else (v & 255).astype(
            np.uint8).tobytes()

    parts = [constant("q", kind, codes.shape, raw(codes + low)),
             constant("s", onnx.F32, scale.shape, scale.tobytes())]
    if zero is not None:
        parts.append(constant("z", kind, scale.shape, raw(zero)))
    return onnx.model(onnx.operator("DequantizeLinear", ["q", "s", "z"][:len(parts)], **attributes),
                      parts, codes.shape)


def matmul(codes, scale, bits, zero=None, index=None):
    """Return a model with MatMulNBits; codes are stored plus the middle."""
    rows, columns = codes.shape
    block = columns // scale.shape[1]
    stored = codes + (1 << (bits - 1))
    raw = onnx.halves(stored) if bits == 4 else stored.astype(np.uint8).tobytes()
    parts = [constant("a", onnx.F32, (columns, columns),
                      np.eye(columns, dtype=np.float32).tobytes()),
             constant("b", onnx.U8, (rows, scale.shape[1], block * bits // 8), raw),
             constant("s", onnx.F32, (scale.size, ), scale.tobytes())]
    names = ["a", "b", "s", "", ""]
    if zero is not None:
        padded = np.pad(zero, ((0, 0), (0, zero.shape[1] % 2 if bits == 4 else 0)))
        data = onnx.halves(padded) if bits == 4 else padded.astype(np.uint8).tobytes()
        parts.append(constant("z", onnx.U8, (len(data), ), data))
        names[3] = "z"
    if index is not None:
        parts.append(constant("g", 6, (columns, ), index.astype("<i4").tobytes()))
        names[4] = "g"
    return onnx.model(onnx.operator("MatMulNBits", names, "com.microsoft", K=columns, N=rows,
                                    bits=bits, block_size=block), parts, (columns, rows))


def onnx_models(rng):
    """Yield a title, a model, the name of its weight, and its numbers, or why it has no form."""
    def draw(shape, bits):
        return rng.integers(-1 << (bits - 1), 1 << (bits - 1), shape)

    def scales(*shape):
        return rng.uniform(1e-3, 2, shape).astype(np.float32)

    kinds = {"int8": (onnx.I8, 8, 0), "uint8": (onnx.U8, 8, 128), "int4": (onnx.I4, 4, 0),
             "uint4": (onnx.U4, 4, 8)}
    for title, (kind, bits, middle) in kinds.items():
        for shape, axis, block in (((6, 40), 0, 0), ((6, 64), 1, 32), ((3, 5, 16), 1, 0),
                                   ((4, 8), 1, -1)):
            codes, more = draw(shape, bits), {"axis": axis}
            if block > 0:
                more["block_size"] = block
            scale = scales() if block < 0 else scales(shape[axis]) if not block else scales(
                *shape[:axis], shape[axis] // block)
            spread = scale if block < 0 else np.repeat(scale, block, axis) if block else (
                scale.reshape([-1 if i == axis else 1 for i in range(len(shape))]))
            zero = np.full(scale.shape, middle) if middle else None
            yield (f"{title} of {shape}, axis {axis}, blocks of {block}",
                   node(kind, codes, scale, zero, middle, **more), "q",
                   (codes.astype(np.float32) * spread).astype(np.float32))
            if not middle:
                yield (f"{title} of {shape} with zeros", node(
                    kind, codes, scale, np.zeros(scale.shape, int), **more), "q",
                       (codes.astype(np.float32) * spread).astype(np.float32))
        one = np.full((6, ), middle)
        one[5] += 1
        yield (f"{title} with a zero point", node(kind, draw((6, 40), bits), scales(6), one, middle,
                                                  axis=0), "q", "has a zero point")
    for title in ("uint8", "uint4"):
        kind, bits, middle = kinds[title]
        yield (f"{title} from 0", node(kind, draw((6, 40), bits), scales(6), None, middle, axis=0),
               "q", "has a zero point")
    yield ("scales of the last axis", node(onnx.I8, draw((6, 8), 8), scales(8), axis=1), "q",
           "blocks of 2 to 255 numbers")
    for bits in (4, 8):
        codes, scale = draw((8, 96), bits), scales(8, 3)
        wanted = codes.astype(np.float32) * np.repeat(scale, 32, 1)
        middle = np.full((8, 3), 1 << (bits - 1))
        yield f"MatMulNBits, {bits} bits", matmul(codes, scale, bits), "b", wanted
        yield (f"MatMulNBits, {bits} bits, zero points in the middle",
               matmul(codes, scale, bits, middle), "b", wanted)
        other = middle.copy()
        other[7, 2] -= 1
        yield (f"MatMulNBits, {bits} bits, a zero point", matmul(codes, scale, bits, other), "b",
               "has a zero point")
        yield (f"MatMulNBits, {bits} bits, blocks by index",
               matmul(codes, scale, bits, index=np.arange(96) % 3), "b",
               "not in the order of their groups")


def check_onnx(case, scratch):
    _, model, name, wanted = case
    source, out = scratch / "m.onnx", scratch / "m.bpk"
    source.write_bytes(model)
    if isinstance(wanted, str):
        yield from is_refused(source, out, [name], wanted)
        return
    for release in RELEASES:
        yield from converts(source, out, {name: wanted}, release, "-f")


# ---- models of PyTorch ------------------------------------------------------------------------


def torch_models(torch):
    """Yield a title, a tensor, and None or why it has no form."""
    def per_tensor(shape, scale, zero, dtype, kind=np.int8):
        info = np.iinfo(kind)
        count = math.prod(shape)
        x = np.arange(count) % (info.max - info.min + 1) + info.min
        raw = torch.from_numpy(x.astype(kind).reshape(shape))
        return torch._make_per_tensor_quantized_tensor(raw, scale, zero)

    def per_channel(shape, axis, zero=0, kind=np.int8):
        """Scales are those of f32: builds of PyTorch differ in how they use the digits beyond."""
        x = np.random.default_rng(7).integers(-128, 128, shape) + (128 if kind is np.uint8 else 0)
        scales = np.random.default_rng(3).uniform(1e-6, 3, shape[axis]).astype(np.float32)
        scales = torch.from_numpy(scales.astype(np.float64))
        zeros = torch.full((shape[axis], ), zero, dtype=torch.int64)
        if zero and kind is np.int8:
            zeros[:-1] = 0 # one of all channels
        return torch._make_per_channel_quantized_tensor(torch.from_numpy(x.astype(kind)), scales,
                                                        zeros, axis)

    shift = "has a zero point, and Burn has none"
    for shape in ((16, 33), (3, ), (1, ), (300, 260), (2, 3, 4, 5), (1025, )):
        yield f"{shape}, a scale", per_tensor(shape, 0.1, 0, torch.qint8), None
    for scale in (1e-45, 3e38, 1 / 3, 5e-324, 0.0078431372549):
        yield f"scale {scale}", per_tensor((4, 8), scale, 0, torch.qint8), None
    yield "quint8 around 128", per_tensor((16, 32), 0.3, 128, torch.quint8, np.uint8), None
    for shape in ((0, 4), ()):
        yield f"{shape}", per_tensor(shape, 0.1, 0, torch.qint8), "empty, or a single number"
    yield "a zero point", per_tensor((4, 8), 0.3, 1, torch.qint8), shift
    yield "quint8 from 0", per_tensor((4, 8), 0.3, 0, torch.quint8, np.uint8), shift
    yield ("qint32", torch.quantize_per_tensor(torch.rand(4, 4), 0.1, 0, torch.qint32),
           "neither 4 nor 8 bits")
    for shape in ((6, 768), (5, 1000), (64, 300), (8, 16, 3, 3), (4, 5, 7), (4, 255), (3, 7, 8, 1)):
        yield f"{shape}, channels", per_channel(shape, 0), None
    yield "channels of 257", per_channel((2, 17, 257), 0), "blocks of 2 to 255 numbers"
    yield "channels of quint8", per_channel((6, 64), 0, 128, np.uint8), None
    yield "channels of the second axis", per_channel((3, 5, 32), 1), None
    yield "channels of the last axis", per_channel((6, 8), 1), "blocks of 2 to 255 numbers"
    yield "a zero point of the last channel", per_channel((200, 8), 0, 3), shift


def check_torch(torch):
    for title, tensor, why in torch_models(torch):
        with tempfile.TemporaryDirectory() as scratch:
            source, out = (pathlib.Path(scratch, name) for name in ("m.pt", "m.bpk"))
            torch.save({"w": tensor, "other": torch.ones(3)}, source)
            complaints = [] if not why else list(is_refused(source, out, ["'w'"], why))
            for release in RELEASES if not why else ():
                if release == "0.22" and tensor.numel() % 4: # releases differ in the padding
                    p = heft("convert", "-f", "--format-version", release, source, out)
                    complaints += [p.stderr] if p.returncode != UNSUPPORTED else []
                    continue
                complaints += converts(source, out, {"w": tensor.dequantize().numpy()}, release,
                                       "-f")
            yield f"PyTorch: {title}", complaints


def main():
    np.seterr(all="ignore") # infinite and subnormal numbers are wanted
    results = [(f"{row.title}: {'is copied' if all(map(has_form, row.weights)) else 'is refused'}",
                dequantize.run(check_case, row)) for row in LONGER + CASES]
    results += [("blocks q8_0 and q4_0 of GGUF", dequantize.run(check_gguf, None))]
    results += [(f"ONNX: {case[0]}", dequantize.run(check_onnx, case))
                for case in onnx_models(np.random.default_rng(17))]
    try:
        import torch
        results += check_torch(torch)
    except ImportError:
        print("# python3-torch is not installed")
    return tap.report(results)


if __name__ == "__main__":
    HEFT = dequantize.HEFT = sys.argv[1]
    sys.exit(main())
