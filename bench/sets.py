"""sets.py - figures of models in many files, and of many small tensors in one."""
import json
import os
import shutil

from harness import HEFT, MIB, measure_in_turns, seconds
from inputs import write_safetensors

LIMIT = 2.0  # of the time for one safetensors file with the same tensors


def write(path, names):
    """Write tensors of four f32, all zero."""
    write_safetensors(path, "F32", dict.fromkeys(names, [4]), bytes(MIB))


def write_set(folder, names, shards):
    os.makedirs(folder)
    each, files = len(names) // shards, {}
    for k in range(shards):
        file = f"model-{k + 1:05d}-of-{shards:05d}.safetensors"
        part = names[k * each:] if k == shards - 1 else names[k * each:(k + 1) * each]
        write(os.path.join(folder, file), part)
        files.update(dict.fromkeys(part, file))
    with open(os.path.join(folder, "model.safetensors.index.json"), "w", encoding="utf-8") as file:
        json.dump({"metadata": {"total_size": 16 * len(names)}, "weight_map": files}, file)


def sets(r, inputs, formats, quick):
    """heft info of 100,000 tensors of 16 bytes in several files, and of a .pt with an archive
    member for each, compared with one safetensors file of the same tensors."""
    count = 10_000 if quick else 100_000
    names = [f"model.layers.{i // 1000}.experts.{i % 1000}.weight" for i in range(count)]
    one, torch = inputs.path("one.safetensors"), inputs.path("one.pt")
    write(one, names)
    seconds(HEFT, "convert", "--no-sync", one, torch)
    paths = {"one": one, "a .pt file": torch}
    for shards in (64, 1000):
        folder = inputs.path(f"set-{shards}")
        write_set(folder, names, shards)
        paths[f"{shards} shards"] = folder
    took = measure_in_turns(2 if quick else 5, {
        what: lambda path=path: seconds(HEFT, "info", path) for what, path in paths.items()})
    for what in paths:
        if what != "one":
            r.ratio(f"heft info, {what}", took[what], took["one"], "one file", LIMIT,
                    own=([t * 1e3 for t in took[what]], "ms"))
    inputs.drop(one, torch)
    for path in list(paths.values())[2:]:
        shutil.rmtree(path)
