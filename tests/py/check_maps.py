#!/usr/bin/env python3
"""check_maps.py HEFT: apply every shipped map to a made model of its architecture.

map_models.py computes what the model is in the other framework; Heft must give the same bytes,
choose the map by config.json, and give the model back by the inverse.  TAP on stdout."""
import json
import pathlib
import struct
import subprocess
import sys
import tempfile

import numpy as np

from checks import read_safetensors
from map_diffusion_models import DIFFUSION
from map_models import CONFIG, MODELS

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import tap  # noqa: E402

MODELS = {**MODELS, **DIFFUSION}
SHARED = {"decoder", "experts", "diffusers-vae"}  # maps that only others use


def stored(dtype, numbers):
    """Return the bytes of a tensor."""
    bits = np.ascontiguousarray(numbers, np.float32)
    return (bits.view(np.uint32) >> 16).astype("<u2").tobytes() if dtype == "BF16" else \
        bits.astype("<f4").tobytes()


def write(path, tensors):
    header, blobs, at = {}, [], 0
    for name, (dtype, numbers) in tensors.items():
        blobs.append(stored(dtype, numbers))
        header[name] = {"dtype": dtype, "shape": list(numbers.shape),
                        "data_offsets": [at, at + len(blobs[-1])]}
        at += len(blobs[-1])
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(blobs))


def heft(*args):
    return subprocess.run([HEFT, *map(str, args)], capture_output=True, text=True, check=False)


def differences(got, tensors):
    wanted = {name: (dtype, numbers.shape, stored(dtype, numbers))
              for name, (dtype, numbers) in tensors.items()}
    yield from (f"{name} is missing" for name in wanted if name not in got)
    yield from (f"{name} is not expected" for name in got if name not in wanted)
    for name in wanted:
        if name in got and got[name] != wanted[name]:
            yield f"{name}: {got[name][:2]}, expected {wanted[name][:2]}" + \
                (", other values" if got[name][:2] == wanted[name][:2] else "")


def make(folder, name):
    function, settings = MODELS[name]
    model = function()
    folder.mkdir()
    write(folder / "model.safetensors", model.left)
    (folder / "config.json").write_text(json.dumps({**CONFIG, **settings}))
    return model


def check_result(folder, name, model, *options):
    out = folder / "out.safetensors"
    has_type = "model_type" in MODELS[name][1]
    p = heft("convert", "--force", "--map", "auto" if has_type else name, *options, folder, out)
    if p.returncode:
        return [p.stderr.strip()]
    wrong = list(differences(read_safetensors(out), model.right))
    return wrong + ([] if f"map {name}:" in p.stderr else [f"another map: {p.stderr.strip()}"])


def check_inverse(folder, name, model):
    p = heft("maps", "check", name + ":forward", folder)
    if p.returncode:
        return [p.stdout.strip() + p.stderr.strip()]
    return [] if f"{len(model.left)} of {len(model.left)} " in p.stdout else [p.stdout]


def check_diff(folder, name):
    p = heft("diff", "--map", name + ":forward", folder, folder / "out.safetensors")
    return [p.stdout + p.stderr] if p.returncode else []


def results(folder):
    listed = {m["name"] for m in json.loads(heft("maps", "--json").stdout)["maps"]}
    yield "every shipped map has a made model", sorted(listed ^ set(MODELS) ^ SHARED)
    for name in MODELS:
        path = folder / name
        model = make(path, name)
        yield f"{name} gives the bytes that numpy gives", check_result(path, name, model)
        yield f"{name}: without a mapping", check_result(path, name, model, "--access=read")
        yield f"{name}: the inverse gives the model back", check_inverse(path, name, model)
        yield f"{name}: diff sees no difference", check_diff(path, name)


if __name__ == "__main__":
    HEFT = sys.argv[1]
    with tempfile.TemporaryDirectory() as d:
        sys.exit(tap.report(results(pathlib.Path(d))))
