"""Models with quantised tensors, and what they represent, decoded here from the definitions."""
import random
import struct

from samples import write_safetensors


def bf16(x):
    """Round to the nearest bf16, ties to even; return its bits."""
    bits = struct.unpack("<I", struct.pack("<f", x))[0]
    return bits + 0x7FFF + (bits >> 16 & 1) >> 16


def bf16s(values):
    return struct.pack(f"<{len(values)}H", *map(bf16, values))


def e4m3(code):
    sign, exponent, mantissa = code >> 7, code >> 3 & 15, code & 7
    x = (8 + mantissa) * 2.0 ** (exponent - 10) if exponent else mantissa * 2.0 ** -9
    return -x if sign else x


def f32(x):
    return struct.unpack("<f", struct.pack("<f", x))[0]


def fp8(rng, rows, columns, block):
    """Return codes, scales, and the values of a matrix with a scale for each square block."""
    codes = [rng.choice((0, 128)) + rng.randrange(0x78) for _ in range(rows * columns)]
    down, across = -(-rows // block), -(-columns // block)
    scales = [f32(rng.uniform(.001, .01)) for _ in range(down * across)]
    values = [f32(e4m3(c) * scales[i // columns // block * across + i % columns // block])
              for i, c in enumerate(codes)]
    return bytes(codes), struct.pack(f"<{len(scales)}f", *scales), values


def gptq(rng, inputs, outputs, group):
    """Return qweight, qzeros, scales, and the values as outputs x inputs: 4 bits, zero points are
    stored minus 1."""
    q = [[rng.randrange(16) for _ in range(outputs)] for _ in range(inputs)]
    groups = inputs // group
    z = [[rng.randrange(1, 16) for _ in range(outputs)] for _ in range(groups)]
    s = [[rng.randrange(1, 64) / 1024 for _ in range(outputs)] for _ in range(groups)]
    words = [sum(q[8 * r + k][c] << 4 * k for k in range(8))
             for r in range(inputs // 8) for c in range(outputs)]
    zeros = [sum(z[g][8 * c + k] - 1 << 4 * k for k in range(8))
             for g in range(groups) for c in range(outputs // 8)]
    values = [s[i // group][o] * (q[i][o] - z[i // group][o])
              for o in range(outputs) for i in range(inputs)]
    return (struct.pack(f"<{len(words)}I", *words), struct.pack(f"<{len(zeros)}I", *zeros),
            struct.pack(f"<{groups * outputs}e", *sum(s, [])), values)


def write(seed=1):
    """Write fp8.safetensors, gptq.safetensors and true.safetensors; return the values by name."""
    rng = random.Random(seed)
    norm = ("F32", [2], struct.pack("<2f", 1, 2))
    codes, scales, a = fp8(rng, 6, 20, 128)
    quantised = {"a.weight": ("F8_E4M3", [6, 20], codes),
                 "a.weight_scale_inv": ("F32", [1, 1], scales)}
    codes, scales, b = fp8(rng, 130, 140, 128)
    quantised |= {"b.weight": ("F8_E4M3", [130, 140], codes),
                  "b.weight_scale_inv": ("F32", [2, 2], scales)}
    write_safetensors("fp8.safetensors", quantised | {"norm": norm})
    words, zeros, scales, c = gptq(rng, 32, 16, 16)
    write_safetensors("gptq.safetensors", {
        "c.qweight": ("I32", [4, 16], words), "c.qzeros": ("I32", [2, 2], zeros),
        "c.scales": ("F16", [2, 16], scales), "norm": norm})
    write_safetensors("true.safetensors", {
        "a.weight": ("BF16", [6, 20], bf16s(a)), "b.weight": ("BF16", [130, 140], bf16s(b)),
        "norm": norm})
    return {"a.weight": a, "b.weight": b, "c.weight": c}
