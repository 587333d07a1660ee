#!/usr/bin/env python3
"""make_model.py OUT [--layers N] [--hidden N] [--vocab N] [--matrices DTYPE] [--seed N]

Write a safetensors file with the tensors of a small decoder: embeddings, and for each layer four
attention and two feed-forward matrices with their norms. Norms and embeddings are f32; --matrices
(f16, bf16 or f32) chooses the type of the matrices. Equal arguments give equal bytes. Memory does
not grow with the model."""
import argparse
import json
import random
import struct

PATTERN = 1 << 18  # random elements, repeated in each tensor from a random start
BYTES = {"f32": 4, "f16": 2, "bf16": 2}
STORED = {"f32": "F32", "f16": "F16", "bf16": "BF16"}


def shapes(layers, hidden, vocab, matrices):
    """Yield (name, dtype, shape) in the order of the file."""
    yield "tok_embeddings.weight", "f32", (vocab, hidden)
    yield "pos_embeddings.weight", "f32", (4 * hidden, hidden)
    for i in range(layers):
        block = f"blocks.{i}."
        yield block + "norm1.weight", "f32", (hidden,)
        for matrix in "qkvo":
            yield block + f"attention.{matrix}_proj.weight", matrices, (hidden, hidden)
        yield block + "norm2.weight", "f32", (hidden,)
        yield block + "ff.up.weight", matrices, (hidden, 4 * hidden)
        yield block + "ff.up.bias", "f32", (4 * hidden,)
        yield block + "ff.down.weight", matrices, (4 * hidden, hidden)
    yield "norm.weight", "f32", (hidden,)
    yield "lm_head.weight", matrices, (hidden, vocab)


def pattern(dtype, seed):
    """Return PATTERN normally distributed weights as bytes, without NaN and infinity."""
    rng = random.Random(seed)
    values = [rng.gauss(0, 0.02) for _ in range(PATTERN)]
    if dtype == "f16":
        return struct.pack(f"<{PATTERN}e", *values)
    f32 = struct.pack(f"<{PATTERN}f", *values)
    if dtype == "f32":
        return f32
    out = bytearray(2 * PATTERN)  # bf16 is the upper half of f32
    out[0::2], out[1::2] = f32[2::4], f32[3::4]
    return bytes(out)


def write_tensor(out, data, size, start):
    """Write size bytes of data, repeated endlessly, beginning at start."""
    view = memoryview(data)
    while size:
        piece = view[start : start + size]
        out.write(piece)
        size -= len(piece)
        start = 0


def main():
    args = argparse.ArgumentParser(description=__doc__,
                                   formatter_class=argparse.RawTextHelpFormatter)
    args.add_argument("out")
    args.add_argument("--layers", type=int, default=4)
    args.add_argument("--hidden", type=int, default=256)
    args.add_argument("--vocab", type=int, default=0, help="default: eight times hidden")
    args.add_argument("--matrices", choices=sorted(BYTES), default="f16")
    args.add_argument("--seed", type=int, default=1)
    a = args.parse_args()

    tensors, header, at = [], {}, 0
    for name, dtype, shape in shapes(a.layers, a.hidden, a.vocab or 8 * a.hidden, a.matrices):
        size = BYTES[dtype]
        for n in shape:
            size *= n
        header[name] = {"dtype": STORED[dtype], "shape": shape, "data_offsets": [at, at + size]}
        tensors.append((dtype, size))
        at += size

    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    data = {dtype: pattern(dtype, a.seed) for dtype in {dtype for dtype, _ in tensors}}
    rng = random.Random(a.seed)
    with open(a.out, "wb", buffering=1 << 20) as out:
        out.write(struct.pack("<Q", len(text)) + text)
        for dtype, size in tensors:
            write_tensor(out, data[dtype], size, rng.randrange(PATTERN) * BYTES[dtype])


main()
