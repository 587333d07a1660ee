"""mapped_models.py - figures of models under a map: experts that are stacked, and many tensors.

With one thread, processor time is measured, of the process and of the system for it: the time of
the disk is that of any copy. Two threads wait for each other in the system, which takes processor
time, too: the time that passes is measured."""
import json
import os
import shutil

from harness import HEFT, measure_in_turns, processor_seconds, read_all, seconds, speed
from inputs import write_safetensors
from payloads import COPY

EXPERTS = 128


def write_model(folder, layers, shape):
    """Write a model of Hugging Face whose layers have only experts; return the folder."""
    os.mkdir(folder)
    shapes = {"model.embed_tokens.weight": [8, shape[1]]}
    for i in range(layers):
        for e in range(EXPERTS):
            for part in ("gate", "up", "down"):
                shapes[f"model.layers.{i}.mlp.experts.{e}.{part}_proj.weight"] = (
                    shape[::-1] if part == "down" else shape)
    write_safetensors(f"{folder}/model.safetensors", "BF16", shapes)
    with open(f"{folder}/config.json", "w", encoding="utf-8") as f:
        json.dump({"model_type": "qwen3_moe", "num_attention_heads": 4, "num_experts": EXPERTS}, f)
    return folder


def maps(r, inputs, formats, quick):
    """heft convert --map of 128 experts in 48 layers, stacked in one pass, compared with cp of the
    result, 1.2 GB; processor time, with two threads elapsed time. heft ls --map of 100,000
    tensors."""
    out, copy = inputs.path("stacked.safetensors"), inputs.path("copy")
    folder = write_model(inputs.path("experts"), 6 if quick else 48, [128, 256])
    read_all(f"{folder}/model.safetensors")
    convert = [*COPY, "--map", "qwen3moe", folder, out, "--threads"]

    def fresh(measure, *command):
        def once():
            inputs.drop(out, copy)
            return measure(*command)
        return inputs.stable_memory.run(once)

    processor_seconds(*convert, "1")
    model = inputs.path("model.safetensors")
    os.rename(out, model)
    took = measure_in_turns(5, {
        "threads: 1": lambda: fresh(processor_seconds, *convert, "1"),
        "cp": lambda: fresh(processor_seconds, "cp", model, copy),
        "threads: 2, elapsed": lambda: fresh(seconds, *convert, "2"),
        "cp, elapsed": lambda: fresh(seconds, "cp", model, copy)
    })
    for threads, peer in ("threads: 1", "cp"), ("threads: 2, elapsed", "cp, elapsed"):
        r.faster(f"{EXPERTS} experts stacked, {threads}", took[threads], took[peer], "cp", 0.8,
                 own=(speed(os.path.getsize(model), took[threads]), "GB/s"))
    inputs.drop(out, copy, model)
    shutil.rmtree(folder)
    layers = 26 if quick else 261
    folder = write_model(inputs.path("many"), layers, [4, 4])
    listed = [processor_seconds(HEFT, "ls", "--map", "qwen3moe", folder) for _ in range(5)]
    r.add(f"heft ls --map, {3 * layers * EXPERTS + 1} tensors", listed, "s", 0.5)
    shutil.rmtree(folder)
