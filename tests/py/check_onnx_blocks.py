#!/usr/bin/env python3
"""check_onnx_blocks.py HEFT DIR: decode quantised weights with Heft and with ONNX Runtime,
those of other conventions and those of the models of ONNX themselves.

DIR has onnxruntime-node as npm ships it. The stored integers, floats of 8 bits, scales and zero
points of random weights become constants of a model with one operator: DequantizeLinear, or
MatMulNBits times the identity. Scales have few bits, so that no product is rounded; then the order
of operations, which ONNX leaves open, makes no difference. TAP on stdout."""
import pathlib
import struct
import subprocess
import sys
import tempfile

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import tap  # noqa: E402

import quantised_models as models  # noqa: E402
from onnx_proto import constant, content, number  # noqa: E402
from quantised_cases import awq, compressed, gptq, method, packed  # noqa: E402
from quantised_decoders import Stored, numbers  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
F32, U8, I8, U4, I4 = 1, 2, 3, 21, 22
FLOATS = {"F8_E4M3": 17, "F8_E4M3FNUZ": 18, "F8_E5M2": 19, "F8_E5M2FNUZ": 20}


# ---- models of ONNX ---------------------------------------------------------------------------


def operator(kind, inputs, domain="", **attributes):
    node = b"".join(content(1, i) for i in inputs) + content(2, "y") + content(4, kind)
    for name, n in attributes.items():
        node += content(5, content(1, name) + number(3, n) + number(20, 2))
    return content(1, node + content(7, domain))


def model(node, constants, shape):
    dims = b"".join(content(1, number(1, d)) for d in shape)
    kind = content(1, number(1, F32) + content(2, dims))
    graph = node + content(2, "g") + b"".join(constants) + content(
        12, content(1, "y") + content(2, kind))
    versions = content(8, number(2, 21)) + content(
        8, content(1, "com.microsoft") + number(2, 1))
    return number(1, 10) + content(7, graph) + versions


def dequantize(kind, shape, raw, scale, zero=None, block=0):
    """Return a model that decodes `raw`; scale and zero are matrices, or vectors of channels."""
    attributes = {"axis": 1, "block_size": block} if block else {"axis": 0}
    constants = [constant("q", kind, shape, raw),
                 constant("s", F32, scale.shape, scale.astype(np.float32).tobytes())]
    names = ["q", "s"]
    if zero is not None:
        constants.append(constant("z", kind, scale.shape, zero))
        names.append("z")
    return model(operator("DequantizeLinear", names, **attributes), constants, shape)


def halves(codes):
    """Return two codes of 4 bits to a byte, the first one low."""
    flat = codes.reshape(-1).astype(np.uint8)
    flat = np.append(flat, np.zeros(len(flat) % 2, np.uint8))
    return (flat[0::2] | flat[1::2] << 4).tobytes()


def matmul(codes, scale, zero, group):
    """Return a model that multiplies the identity by codes [rows, columns]: columns come out."""
    rows, columns = codes.shape
    padded = np.pad(zero, ((0, 0), (0, zero.shape[1] % 2)))
    one = np.eye(columns, dtype=np.float32)
    constants = [
        constant("a", F32, (columns, columns), one.tobytes()),
        constant("b", U8, (rows, columns // group, group // 2), halves(codes)),
        constant("s", F32, (scale.size, ), scale.astype(np.float32).tobytes()),
        constant("z", U8, (padded.size // 2, ), halves(padded))]
    return model(operator("MatMulNBits", ["a", "b", "s", "z"], "com.microsoft", K=columns, N=rows,
                          bits=4, block_size=group), constants, (columns, rows))


# ---- weights ----------------------------------------------------------------------------------


def plain(rng, dtype, shape):
    """Return scales of 4 significant bits."""
    values = rng.integers(8, 16, shape) * 2.0**rng.integers(-12, 3, shape)
    values = (values * rng.choice([-1, 1], shape)).astype(np.float32)
    bits = values.view(np.uint32)
    return Stored(dtype, bits if dtype == "F32" else (bits >> 16).astype(np.uint16)
                  if dtype == "BF16" else values.astype(np.float16).view(np.uint16))


def floats(rng, kind, shape, scale_shape, group):
    """Floats of 8 bits; the columns of a group share a scale."""
    weight, scale = models.codes(rng, kind, shape), plain(rng, "F32", scale_shape)
    s = numbers(scale)
    parts = {".weight": weight, ".weight_scale": scale}
    return parts, dequantize(FLOATS[kind], shape, weight.bits.tobytes(),
                             s if group or not s.ndim else s.reshape(-1), None, group)


def int8(rng, shape, groups):
    weight, scale = models.codes(rng, "I8", shape), plain(rng, "BF16", (shape[0], groups))
    zero = models.codes(rng, "I8", (shape[0], groups))
    s, z = numbers(scale), zero.bits
    if groups == 1:
        s, z = s.reshape(-1), z.reshape(-1)
    parts = {".weight": weight, ".weight_scale": scale, ".weight_zero_point": zero}
    return parts, dequantize(I8, shape, weight.bits.tobytes(), s, z.tobytes(),
                             shape[1] // groups if groups > 1 else 0)


def int4(rng, shape, group):
    """Words of compressed-tensors have the same unsigned codes along a row as ONNX."""
    rows, columns = shape
    groups = columns // group
    codes, zero = (rng.integers(0, 16, (rows, n)) for n in (columns, groups))
    scale = plain(rng, "BF16", (rows, groups))
    down = np.frombuffer(halves(np.ascontiguousarray(zero.T)), np.int32).reshape(groups, -1)
    parts = {".weight_packed": Stored("I32", np.frombuffer(halves(codes), np.int32).reshape(
                 rows, -1)), ".weight_scale": scale,
             ".weight_zero_point": Stored("I32", np.ascontiguousarray(down.T)),
             ".weight_shape": models.integers("I64", shape)}
    return parts, dequantize(U4, shape, halves(codes), numbers(scale), halves(zero), group)


def gptq_words(rng, shape, group):
    """Words of GPTQ go down the inputs, and store the zero point less one."""
    rows, columns = shape
    codes, zero = (rng.integers(0, 16, (rows, n)) for n in (columns, columns // group))
    scale = plain(rng, "F16", (columns // group, rows))
    words = np.frombuffer(halves(codes), np.int32).reshape(rows, -1)
    zeros = halves((np.ascontiguousarray(zero.T) - 1) & 15)
    parts = {".qweight": Stored("I32", np.ascontiguousarray(words.T)), ".scales": scale,
             ".qzeros": Stored("I32", np.frombuffer(zeros, np.int32).reshape(columns // group, -1))}
    return parts, matmul(codes, numbers(scale).T.copy(), zero, group)


def awq_words(rng, shape, group):
    """Words of AWQ go along the outputs, in the order 0 2 4 6 1 3 5 7."""
    rows, columns = shape
    codes, zero = (rng.integers(0, 16, (rows, n)) for n in (columns, columns // group))
    scale = plain(rng, "F16", (columns // group, rows))

    def ordered(of):
        eights = np.ascontiguousarray(of.T).reshape(of.shape[1], -1, 8)
        eights = eights[..., [0, 2, 4, 6, 1, 3, 5, 7]]
        return Stored("I32", np.frombuffer(halves(eights), np.int32).reshape(of.shape[1], -1))

    parts = {".qweight": ordered(codes), ".scales": scale, ".qzeros": ordered(zero)}
    return parts, matmul(codes, numbers(scale).T.copy(), zero, group)


FP8 = method("fp8")
CASES = [ # title, weight, arguments, settings, whether columns come out
    *[(f"{kind} {title}", floats, (kind, shape, scale, group), settings, False)
      for kind in FLOATS for title, shape, scale, group, settings in [
          ("with one scale", (9, 70), (), 0, FP8),
          ("with a scale for each row", (9, 70), (9, 1), 0, FP8),
          ("with groups", (9, 64), (9, 4), 16,
           compressed("float-quantized", 8, "group", 16, kind="float"))]],
    ("int8 with a scale for each row", int8, ((9, 33), 1),
     compressed("int-quantized", 8, "channel", symmetric=False), False),
    ("int8 with groups", int8, ((9, 96), 3),
     compressed("int-quantized", 8, "group", 32, symmetric=False), False),
    ("int4 with groups of 32", int4, ((16, 96), 32), packed(4, 32, False), False),
    ("int4 with groups of 16", int4, ((8, 64), 16), packed(4, 16, False), False),
    ("gptq, by MatMulNBits", gptq_words, ((16, 96), 32), gptq(4, 32), True),
    ("gptq with groups of 16, by MatMulNBits", gptq_words, ((24, 64), 16), gptq(4, 16), True),
    ("awq, by MatMulNBits", awq_words, ((16, 96), 32), awq(32), True),
]


def own_models(rng):
    """Models that no other convention has: axes, signs, blocks that are cut."""
    def node(kind, shape, raw, scale, zero, **attributes):
        constants = [constant("q", kind, shape, raw),
                     constant("s", F32, scale.shape, scale.tobytes())]
        if zero is not None:
            constants.append(constant("z", kind, scale.shape, zero))
        names = ["q", "s", "z"][:len(constants)]
        return model(operator("DequantizeLinear", names, **attributes), constants, shape)

    for shape, axis, block in (((6, 5, 4), 1, 0), ((6, 5, 4), -3, 0), ((6, 5, 4), 2, 0),
                               ((7, 5, 4), 1, 2), ((8, 6), 0, 4), ((10, 6), 0, 4), ((3, 70), 1, 16),
                               ((5, 3, 9), 0, 2)):
        dims = list(shape)
        if block:
            dims[axis] = -(-dims[axis] // block)
        scale = numbers(plain(rng, "F32", tuple(dims) if block else (dims[axis],)))
        more = {"axis": axis, **({"block_size": block} if block else {})}
        for title, kind, low in (("int8", I8, -128), ("uint8", U8, 0), ("int4", I4, -8),
                                 ("uint4", U4, 0)):
            bits = 4 if kind in (I4, U4) else 8
            codes, zero = (rng.integers(low, low + 2**bits, n) for n in (shape, scale.shape))
            raw, zeros = ((halves(v & 15) if bits == 4 else (v & 255).astype(np.uint8).tobytes())
                          for v in (codes, zero))
            yield (f"{title} of {shape}, axis {axis}, blocks of {block}", "q", shape,
                   node(kind, shape, raw, scale, zeros, **more))
    codes = rng.integers(0, 16, (8, 64))
    scale = numbers(plain(rng, "F32", (8, 2)))
    one = np.eye(40, dtype=np.float32)
    parts = [constant("a", F32, one.shape, one.tobytes()),
             constant("b", U8, (8, 2, 16), halves(codes)),
             constant("s", F32, (16,), scale.tobytes())]
    yield ("MatMulNBits without zero points, the last block cut", "b", (8, 40),
           model(operator("MatMulNBits", ["a", "b", "s"], "com.microsoft", K=40, N=8, bits=4,
                          block_size=32), parts, (40, 8)))


def indexed_models(rng):
    """MatMulNBits with the block of each column, packed zero points or none."""
    rows, columns, block = 8, 96, 32
    codes = rng.integers(0, 16, (rows, columns))
    scale = numbers(plain(rng, "F32", (rows, columns // block)))
    zero = rng.integers(0, 16, (rows, 4)) # three blocks, padded to whole bytes
    index = rng.integers(0, columns // block, columns).astype("<i4")
    one = np.eye(columns, dtype=np.float32)
    for title, with_zero in (("packed zero points", True), ("no zero points", False)):
        parts = [constant("a", F32, one.shape, one.tobytes()),
                 constant("b", U8, (rows, columns // block, block // 2), halves(codes)),
                 constant("s", F32, (scale.size,), scale.tobytes()),
                 constant("z", U8, (zero.size // 2,), halves(zero)),
                 constant("g", 6, (columns,), index.tobytes())]
        names = ["a", "b", "s", "z" if with_zero else "", "g"]
        want = (codes - (zero if with_zero else np.full_like(zero, 8))[:, index]) * scale[:, index]
        yield (f"MatMulNBits with the block of each column, {title}", want.astype(np.float32),
               model(operator("MatMulNBits", names, "com.microsoft", K=columns, N=rows, bits=4,
                              block_size=block), parts, (columns, rows)))


def decoded_by_heft(model, out, name="m.weight"):
    subprocess.run([sys.argv[1], "convert", "-q", "-f", "--dequantize=f32", model, out], check=True)
    return numbers(models.unpack(out)[name])


def differ(got, want):
    same = (got == want) | (np.isnan(got) & np.isnan(want))
    if got.shape != want.shape:
        yield f"{got.shape}, not {want.shape}"
    elif not same.all():
        at = tuple(int(k) for k in np.argwhere(~same)[0])
        yield f"{np.count_nonzero(~same)} numbers differ, first {at}: {got[at]}, not {want[at]}"


def results(scratch):
    rng, files = np.random.default_rng(1), []
    for i, (_, weight, arguments, settings, _) in enumerate(CASES):
        parts, onnx = weight(rng, *arguments)
        files.append(scratch / f"{i}.onnx")
        files[-1].write_bytes(onnx)
        models.write(scratch / str(i), {"m" + name: part for name, part in parts.items()}, settings)
    own, indexed = list(own_models(rng)), list(indexed_models(rng))
    for i, (_, _, _, onnx) in enumerate(own):
        (scratch / f"own{i}.onnx").write_bytes(onnx)
    files += [scratch / f"own{i}.onnx" for i in range(len(own))]
    for i, (title, want, onnx) in enumerate(indexed):
        files.append(scratch / f"indexed{i}.onnx")
        files[-1].write_bytes(onnx)
        got = decoded_by_heft(files[-1], scratch / "indexed.safetensors", "b")
        yield f"Heft decodes {title} as NumPy does", list(differ(got, want))
    subprocess.run(["node", HERE / "run_onnx.mjs", pathlib.Path(sys.argv[2]).resolve(), *files],
                   check=True)
    for i, (title, _, _, _, is_transposed) in enumerate(CASES):
        raw = (scratch / f"{i}.onnx.out").read_bytes()
        want = np.array(struct.unpack(f"<{len(raw) // 4}f", raw), np.float32)
        got = decoded_by_heft(scratch / str(i), scratch / f"{i}.safetensors")
        want = want.reshape(got.shape[::-1]).T if is_transposed else want.reshape(got.shape)
        yield f"ONNX Runtime decodes {title} to the same numbers", list(differ(got, want))
        got = decoded_by_heft(scratch / f"{i}.onnx", scratch / f"{i}.safetensors",
                              "b" if is_transposed else "q")
        yield f"Heft decodes the model of ONNX, {title}", list(differ(got, want))


    # The last one has no zero points: together with blocks of columns, ONNX Runtime 1.20 takes 8.
    title, want, _ = indexed[-1]
    got = np.fromfile(scratch / f"indexed{len(indexed) - 1}.onnx.out", np.float32)
    yield f"ONNX Runtime decodes {title}", list(differ(got.reshape(want.shape[::-1]).T, want))
    for i, (title, name, shape, _) in enumerate(own):
        want = np.fromfile(scratch / f"own{i}.onnx.out", np.float32)
        got = decoded_by_heft(scratch / f"own{i}.onnx", scratch / "own.safetensors", name)
        want = want.reshape(shape[::-1]).T if name == "b" else want.reshape(shape)
        yield f"Heft decodes the model of ONNX, {title}", list(differ(got, want))


def main():
    with tempfile.TemporaryDirectory() as scratch:
        return tap.report(list(results(pathlib.Path(scratch))))


if __name__ == "__main__":
    sys.exit(main())
