"""quantised.py - figures of models that are stored by a quantisation scheme."""
import os
import pathlib
import shutil
import statistics
import sys

from harness import (HEFT, MIB, ROOT, measure_in_turns, peak_memory, processor_seconds,
                     program, speed)
from indexes import find_ggml

sys.path.insert(0, str(ROOT / "tests/py"))

SIZE, GROUP = 4096, 128  # rows and columns of a weight; columns in a group
# Bits of an ordinary scale: special numbers take another time.
ORDINARY = {"U8": 127, "F8_E4M3": 0x38, "F16": 0x2400, "BF16": 0x3C80, "F32": 0x3C800000}


def models():
    """Yield the title of a model, its convention, the parts of a weight and the settings."""
    import numpy as np

    import quantised_cases as cases
    import quantised_models as build
    rng, shape = np.random.default_rng(1), (SIZE, SIZE)
    groups = {"shape": shape, "groups": SIZE // GROUP}
    for title, names, parts, settings in (
            ("fp8, blocks", "inverse", build.fp8(rng, shape, block=(128, 128)),
             cases.blocks(128, 128)),
            ("mxfp4", "packed", build.mxfp4(rng, shape),
             cases.compressed("mxfp4-pack-quantized", 4, "group", 32, kind="float")),
            ("nvfp4", "modelopt", build.nvfp4(rng, shape, ORDINARY["F32"]),
             cases.MODELOPT["NVFP4"]),
            ("gptq", "qweight", build.gptq(rng, bits=4, **groups), cases.gptq(4, GROUP)),
            ("awq", "qweight", build.awq(rng, **groups), cases.awq(GROUP)),
            ("pack-quantized", "packed", build.pack_quantised(rng, bits=4, **groups),
             cases.packed(4, GROUP))):
        for role in {"scale", "global_scale"} & set(parts):
            parts[role].bits[...] = ORDINARY[parts[role].dtype]
        yield title, cases.Weight(names, None, None, {}), parts, settings


def write_model(folder, layers, weight, parts, settings):
    """Write a model with the same weight in every layer."""
    import quantised_cases as cases
    import quantised_models as build
    tensors = {}
    for i in range(layers):
        names = cases.stored_names(weight, i)[1]
        tensors.update({names[role]: part for role, part in parts.items()})
    build.write(pathlib.Path(folder), tensors, settings)


def dequantise(r, inputs, layers, turns, limit=None):
    """Add rows for models whose weights have so many layers of 32 MiB of bf16; limit: bytes of own
    memory."""
    for title, weight, parts, settings in models():
        folder, out, copy = (inputs.path(n) for n in ("model", "out.safetensors", "copy"))
        write_model(folder, layers, weight, parts, settings)
        convert = [HEFT, "convert", "--dequantize=bf16", "--no-sync", "--threads", "2", folder, out]
        peak = peak_memory(*convert, shared=False)
        kept = inputs.path("kept.safetensors")
        os.rename(out, kept)
        size = os.path.getsize(kept)
        if size < layers * SIZE * SIZE * 2:
            sys.exit(f"{title}: {size // MIB} MiB were written, so weights were left as they are")
        took = measure_in_turns(turns, {
            "heft": lambda: inputs.timed(*convert, targets=(copy, out)),
            "cp": lambda: inputs.timed("cp", kept, copy, targets=(copy, out))})
        r.faster(f"{title} to bf16", took["heft"], took["cp"], "cp", 0.8,
                 own=(speed(size, took["heft"]), "GB/s"))
        if limit:
            r.add(f"{title}, own memory", peak / MIB, "MiB", limit / MIB)
        inputs.drop(out, copy, kept)
        shutil.rmtree(folder)


def dequantises(formats):
    """Return whether the models can be made and read."""
    try:
        import numpy  # noqa: F401
    except ImportError:
        print("  numpy is not installed")
        return False
    return "safetensors" in formats


def dequantising(r, inputs, formats, quick):
    """heft convert --dequantize to bf16 with two threads, compared with cp of the output; 1 GiB of
    bf16, page cache warm."""
    if dequantises(formats):
        dequantise(r, inputs, 4 if quick else 32, 3 if quick else 5)


def dequantising_large(r, inputs, formats, quick):
    """heft convert --dequantize to bf16 with two threads, compared with cp of the output; 4 GiB of
    bf16, page cache warm, up to 10 GiB of files at once. Own memory is that beside mapped files."""
    if dequantises(formats):
        dequantise(r, inputs, 12 if quick else 128, 2 if quick else 3, 256 * MIB)


def write_floats(folder, layers):
    """Write the same random matrix of f32, like weights, as each layer; return the path."""
    import numpy as np

    import quantised_models as build
    numbers = np.random.default_rng(1).standard_normal((SIZE, SIZE), np.float32) / 50
    path = pathlib.Path(folder)
    weight = build.Stored("F32", numbers.view(np.uint32))
    build.write(path, {f"layers.{i}.weight": weight for i in range(layers)}, {})
    return path / "model.safetensors"


def quantising(r, inputs, formats, quick):
    """Processor time of heft convert --cast of 1 GiB of f32 to block types of GGUF with two
    threads, compared with heft_block_encode() and cp of the input together; page cache warm."""
    library, folder, layers = find_ggml(), inputs.path("floats"), 2 if quick else 16
    out, copy = inputs.path("out.gguf"), inputs.path("copy")

    def fresh(*command):
        inputs.drop(out, copy)
        return processor_seconds(*command)

    model = write_floats(folder, layers)
    size = os.path.getsize(model)
    for name in ("q8_0", "q4_k") if quick else ("q8_0", "q4_0", "q4_k", "q6_k", "iq4_xs"):
        runs = library and program("encode", library, name, 64, 5)
        convert = [HEFT, "convert", "--no-sync", "--threads", "2", "--cast", name, model, out]
        took = measure_in_turns(3 if quick else 5, {
            "heft": lambda: fresh(*convert), "cp": lambda: fresh("cp", model, copy)})
        own = (speed(size, took["heft"]), "GB/s")
        if runs:
            encoder = statistics.median(ours for ours, _, _ in runs[1:]) * size / (64 * MIB)
            r.faster(f"file to {name}", took["heft"], [t + encoder for t in took["cp"]],
                     "encoder and cp", 0.8, own=own)
        else:
            r.missing(f"file to {name}", "encoder and cp", 0.8, own=own)
        inputs.drop(out, copy)
    shutil.rmtree(folder)
