"""lora_large.py - adapters whose weights exceed what Heft computes at once: rows of many columns,
many rows, high ranks, many experts.  cases(m) gives rows (title, base, adapter) for the module
check_lora, `m`."""
import math

import numpy as np

WIDE = 70001  # columns; a strip has 65536 elements


def linear(m, rows, columns, rank, dtype, stored_as, **config):
    a = m.Adapter(m.config(r=rank, lora_alpha=rank, **config), stored_as)
    a.linear("w", "w.weight", rows, columns, rank=rank, scale=1.0)
    return {"w.weight": m.stored(m.drawn("w", (rows, columns)), dtype)}, a


def embedding(m, tokens, width):
    a = m.Adapter(m.config(r=6, lora_alpha=6))
    down = a.add(m.PEFT + "e.lora_embedding_A", m.drawn("ea", (6, tokens)))
    up = a.add(m.PEFT + "e.lora_embedding_B", m.drawn("eb", (width, 6)))
    a.step("e.weight", lambda w, f: m.merged(w, down.T, up.T, f))
    return {"e.weight": m.stored(m.drawn("e", (tokens, width)), "BF16")}, a


def dora(m):
    base, a = linear(m, 3, WIDE, 4, "F32", "F32", use_dora=True)
    magnitudes = a.add(m.PEFT + "w.lora_magnitude_vector", np.abs(m.drawn("m", (3, ))) + 1)

    def change(w, f):
        norm = [math.sqrt(sum(float(x) * float(x) for x in row)) for row in w]
        return w * (magnitudes / np.array(norm, np.float32))[:, None]

    a.step("w.weight", change)
    return base, a


def experts(m, is_turned, count=40, rank=3):
    rows, columns = (300, 257) if is_turned else (257, 300)
    a = m.Adapter(m.config(target_parameters=["x.down"], r=rank, lora_alpha=rank))
    down = a.add(m.PEFT + "x.lora_A.weight", m.drawn("xa", (rank * count, 300)))
    up = a.add(m.PEFT + "x.lora_B.weight", m.drawn("xb", (257, rank * count)))
    down, up = down.reshape(count, rank, 300), up.reshape(257, rank, count)

    def change(w, f):
        return np.stack([
            m.merged(w[e], down[e].T, up[:, :, e].T, f) if is_turned else m.merged(
                w[e], up[:, :, e], down[e], f) for e in range(count)
        ])

    a.step("x.down", change)
    return {"x.down": m.stored(m.drawn("x", (count, rows, columns)), "BF16")}, a


def cases(m):
    return [
        ("rows of two strips, two panels", *linear(m, 5, WIDE, 20, "F32", "F32")),
        ("rows of three strips, bf16", *linear(m, 3, 2 * WIDE + 1, 33, "BF16", "F32")),
        ("many rows", *linear(m, WIDE, 5, 9, "F16", "BF16")),
        ("a rank of 130", *linear(m, 300, 3000, 130, "BF16", "F16")),
        ("an embedding of many tokens", *embedding(m, WIDE, 13)),
        ("an embedding of wide rows", *embedding(m, 7, 2 * WIDE - 1)),
        ("magnitudes of wide rows", *dora(m)),
        ("many experts", *experts(m, False)),
        ("many experts, transposed", *experts(m, True)),
    ]
