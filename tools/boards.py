"""boards.py - the model of the programs in examples/board, written in several formats without Heft,
and the outputs of the network."""
import pathlib
import random
import struct
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests/py"))
import gen_burnpack  # noqa: E402
import gen_embd  # noqa: E402
import gen_mag  # noqa: E402
import gen_safetensors  # noqa: E402

INPUTS, HIDDEN, OUTPUTS, BLOCKS = 12, 16, 4, 30


def tensors():
    """Return 64 tensors as (name, dtype, shape, bytes): two dense layers, and others between."""
    rng = random.Random("board")

    def floats(name, *shape):
        count = 1
        for d in shape:
            count *= d
        values = (rng.uniform(-1, 1) for _ in range(count))
        return name, "f32", shape, struct.pack(f"<{count}f", *values)

    others = [t for i in range(BLOCKS) for t in (floats(f"blocks.{i}.weight", 4, 5),
                                                 floats(f"blocks.{i}.bias", 4))]
    return [
        floats("dense.1.weight", HIDDEN, INPUTS), floats("dense.1.bias", HIDDEN), *others,
        floats("dense.2.weight", OUTPUTS, HIDDEN), floats("dense.2.bias", OUTPUTS)
    ]


FORMATS = {
    "burnpack": lambda t: gen_burnpack.Pack(t).bytes(),
    "mag": lambda t: gen_mag.Archive(t).bytes(),
    "embd": lambda t: gen_embd.File(t, tokens=None).bytes(),
    "safetensors": gen_safetensors.simple,
}


def write_models(folder):
    """Write the model in each format to folder/FORMAT; return the paths."""
    for name, write in FORMATS.items():
        (folder / name).write_bytes(write(tensors()))
    return [folder / name for name in FORMATS]


def single(v):
    """Round to a 32-bit float, as the processor does after each operation."""
    return struct.unpack("<f", struct.pack("<f", v))[0]


def expected_outputs():
    """Return the outputs of the network as examples/board/network.c prints them."""
    floats = {n: struct.unpack(f"<{len(d) // 4}f", d) for n, _, _, d in tensors()}
    values = [i / 4 - 1 for i in range(INPUTS)]
    for layer in (1, 2):
        weight, bias = floats[f"dense.{layer}.weight"], floats[f"dense.{layer}.bias"]
        after = []
        for i, total in enumerate(bias):
            for k, v in enumerate(values):
                total = single(total + single(weight[i * len(values) + k] * v))
            after.append(max(total, 0.0) if layer == 1 else total)
        values = after
    return [struct.pack(">f", v).hex() for v in values]
