"""adapters.py - figures of adapters (LoRA) that are merged into a model."""
import json
import os
import shutil
import subprocess

from harness import HEFT, MIB, measure_in_turns, read_all, speed
from inputs import write_safetensors

SIZE, RANK = 4096, 16
NAME = "model.layers.{}.mlp.up_proj"


def write(path, shapes):
    """Write tensors of bf16 whose numbers are small, so that no sum is too large."""
    block = bytes(b if i % 2 == 0 else 0x3C + b % 2 * 0x80 for i, b in enumerate(os.urandom(MIB)))
    write_safetensors(path, "BF16", shapes, block)


def merging(r, inputs, formats, quick):
    """heft convert --lora of an adapter of rank 16 with two threads, compared with cp of the
    output; 1 GiB of bf16, page cache warm."""
    if "safetensors" not in formats:
        return
    layers = 4 if quick else 32
    names = [NAME.format(i) for i in range(layers)]
    base, out, copy, adapter = (inputs.path(n) for n in ("base.safetensors", "out.safetensors",
                                                         "copy", "adapter"))
    os.mkdir(adapter)
    write(base, {f"{n}.weight": [SIZE, SIZE] for n in names})
    write(f"{adapter}/adapter_model.safetensors",
          {f"base_model.model.{n}.lora_{k}.weight": [RANK, SIZE] if k == "A" else [SIZE, RANK]
           for n in names for k in "AB"})
    with open(f"{adapter}/adapter_config.json", "w", encoding="utf-8") as f:
        json.dump({"peft_type": "LORA", "r": RANK, "lora_alpha": 2 * RANK}, f)
    read_all(base)
    convert = [HEFT, "convert", "--no-sync", "--threads", "2", "--lora", adapter, base, out]
    subprocess.run(convert, check=True, stderr=subprocess.DEVNULL)
    kept = inputs.path("kept.safetensors")
    os.rename(out, kept)
    took = measure_in_turns(3 if quick else 5, {
        "heft": lambda: inputs.timed(*convert, targets=(copy, out)),
        "cp": lambda: inputs.timed("cp", kept, copy, targets=(copy, out))})
    r.faster(f"adapter of rank {RANK} merged", took["heft"], took["cp"], "cp", 0.8,
             own=(speed(os.path.getsize(kept), took["heft"]), "GB/s"))
    inputs.drop(out, copy, kept, base)
    shutil.rmtree(adapter)
