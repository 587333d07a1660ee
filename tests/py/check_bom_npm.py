#!/usr/bin/env python3
"""check_bom_npm.py HEFT DIR [DATA]: bills of materials follow the schema of CycloneDX 1.6.

The schema is in a package below DIR (tests/js/package.json). The models are made here, and those
below DATA are used, too, if the folder exists. TAP on stdout."""
import copy
import json
import pathlib
import subprocess
import sys
import tempfile

import gen_shards
from check_sbom import CARDS, gguf

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "tools"))
import tap  # noqa: E402

HEFT, PACKAGES = sys.argv[1:3]
DATA = pathlib.Path(sys.argv[3]) if len(sys.argv) > 3 else None
MOST = 40  # real models; the others are of the same kinds
LARGEST = 400 << 20
SUFFIXES = {".safetensors", ".gguf", ".pt", ".pth", ".bin", ".mpk", ".bpk", ".zt", ".npz"}


def model(folder, name, metadata=None):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gen_shards.pack({"w": ("F32", [2], bytes(8))}, metadata))
    return path


def made(folder):
    """Yield a title and a path for each kind of facts in a bill."""
    yield "a file", model(folder, "a.safetensors", {"license": "x\x1b\ud7ff \u00e9",
                                                    "modelspec.title": ""})
    for number, (text, *_) in enumerate(CARDS):
        path = model(folder, f"card{number}/model.safetensors")
        (path.parent / "README.md").write_text(f"---\n{text}\n---\n", newline="")
        yield f"model card {number}", path
    path = folder / "m.gguf"
    path.write_bytes(gguf({"general.license": "apache-2.0", "general.name": "n",
                           "general.version": "1", "general.base_model.0.name": "b",
                           "general.architecture": "llama", "general.datasets": ["d", "e"],
                           "general.languages": ["en"]}))
    yield "GGUF", path
    adapter = model(folder, "lora/adapter_model.safetensors").parent
    (adapter / "adapter_config.json").write_text('{"base_model_name_or_path": "own/base"}')
    yield "an adapter", adapter
    subprocess.run([HEFT, "split", "--count", "1", path, folder / "shards", "--to", "safetensors",
                    "--allow-loss"], check=True, capture_output=True)
    yield "shards", folder / "shards"
    model(folder, "pipeline/unet/diffusion_pytorch_model.safetensors")
    model(folder, "pipeline/vae/diffusion_pytorch_model.safetensors")
    (folder / "pipeline" / "model_index.json").write_text(json.dumps({
        "_class_name": "P", "unet": ["diffusers", "U"], "vae": ["diffusers", "V"],
        "scheduler": ["diffusers", "DDIMScheduler"], "safety_checker": [None, None]}))
    yield "a pipeline", folder / "pipeline"


def real():
    found = sorted(p for p in (DATA.rglob("*") if DATA and DATA.is_dir() else ())
                   if p.suffix in SUFFIXES and p.is_file() and p.stat().st_size < LARGEST)
    step = max(1, -(-len(found) // MOST))
    yield from ((str(p.relative_to(DATA)), p) for p in found[::step])


def broken(bill):
    """Yield bills that violate the schema, to show that the check can fail."""
    def component(b):
        return b["metadata"]["component"]

    for change in (lambda b: b.pop("bomFormat"),
                   lambda b: component(b).pop("name"),
                   lambda b: component(b).update(type="model"),
                   lambda b: component(b).update(extra=1),
                   lambda b: component(b)["hashes"][0].update(content="0" * 63),
                   lambda b: component(b).update(licenses=[{"license": {"id": "apache-2.0"}}]),
                   lambda b: component(b).update(modelCard={"modelParameters": {"task": 1}})):
        bad = copy.deepcopy(bill)
        change(bad)
        yield bad


def results(folder):
    titles, files = [], []
    bills = folder / "bills"
    bills.mkdir()
    for title, path in [*made(folder), *real()]:
        out = bills / f"{len(files)}.json"
        p = subprocess.run([HEFT, "sbom", path, "-o", out], capture_output=True, check=False)
        if p.returncode in (3, 4, 5) and DATA and path.is_relative_to(DATA):
            continue  # a damaged file, one whose shards are elsewhere, or one of no model
        if p.returncode:
            yield title, [p.stderr.decode()]
            continue
        titles.append(title)
        files.append(out)
    good = len(files)
    for number, bad in enumerate(broken(json.loads(files[0].read_text()))):
        titles.append(f"a violation is noticed: {number}")
        files.append(bills / f"bad{number}.json")
        files[-1].write_text(json.dumps(bad))
    p = subprocess.run(["node", HERE.parent / "js" / "check_bom.mjs", PACKAGES, *files],
                       capture_output=True, check=False)
    if p.returncode:
        yield "the schema", [p.stderr.decode()[-2000:]]
        return
    for i, found in enumerate(json.loads(p.stdout)):
        yield titles[i], found if i < good else [] if found else ["no complaint"]


def main():
    with tempfile.TemporaryDirectory() as folder:
        return tap.report(results(pathlib.Path(folder)))


if __name__ == "__main__":
    sys.exit(main())
