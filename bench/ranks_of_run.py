"""ranks_of_run.py - figures of models whose tensors are spread over the files of the ranks of a
training run: pieces in safetensors, as PyTorch's HuggingFaceStorageWriter stores them. Those of a
distributed checkpoint (DCP) are gathered in the same way."""
import json
import os
import shutil

from harness import HEFT, measure_in_turns, read_all, seconds, speed
from inputs import write_safetensors
from payloads import COPY

RANKS = 8


def write_rank(path, pieces):
    """pieces: name, shape, and offsets of each piece, in f32; the content is a pattern."""
    info = {name: {"saved_offsets": offsets} for name, _, offsets in pieces}
    write_safetensors(path, "F32", {name: shape for name, shape, _ in pieces},
                      metadata={"format": "pt", "DCP_VERSION": "1.0",
                                "DCP_SHARDING_INFO": json.dumps(info)})


def write_ranks(folder, ranks, tensors, shape, is_by_rows):
    """Write `tensors` tensors that are cut into `ranks` pieces each; return the folder."""
    os.mkdir(folder)
    cut = 0 if is_by_rows else 1
    each = [n // ranks if i == cut else n for i, n in enumerate(shape)]
    for rank in range(ranks):
        offsets = [rank * n if i == cut else 0 for i, n in enumerate(each)]
        write_rank(f"{folder}/shard-{rank + 1:05}-model-00001-of-00001.safetensors",
                   [(f"layer.{i}.weight", each, offsets) for i in range(tensors)])
    return folder


def gathering(r, inputs, formats, quick):
    """heft convert of a model from the files of 8 ranks to safetensors, compared with cp of the
    result; 4 GiB, page cache warm; and heft ls of 512 files with 100,000 pieces."""
    out, copy = inputs.path("gathered.safetensors"), inputs.path("copy")
    shape = [4096, 16384] # 256 MiB
    for label, is_by_rows, limit in (("rows", True, 0.8), ("columns", False, 0.5)):
        folder = write_ranks(inputs.path(label), RANKS, 2 if quick else 16, shape, is_by_rows)
        for name in os.listdir(folder):
            read_all(f"{folder}/{name}")
        seconds(*COPY, folder, out)
        model = inputs.path("model.safetensors")
        os.rename(out, model)
        took = measure_in_turns(4, {
            "gather": lambda folder=folder: inputs.timed(*COPY, folder, out, targets=(out, copy)),
            "cp": lambda model=model: inputs.timed("cp", model, copy, targets=(out, copy))})
        r.faster(f"{RANKS} ranks, cut by {label}", took["gather"], took["cp"], "cp", limit,
                 own=(speed(os.path.getsize(model), took["gather"]), "GB/s"))
        inputs.drop(out, copy, model)
        shutil.rmtree(folder)
    ranks, tensors = (64, 156) if quick else (512, 195)
    folder = write_ranks(inputs.path("many"), ranks, tensors, [ranks, 4], True)
    listed = [min(seconds(HEFT, "ls", folder) for _ in range(3)) for _ in range(3)]
    r.add(f"heft ls, {ranks} ranks, {ranks * tensors} pieces", listed, "s", 1)
    shutil.rmtree(folder)
