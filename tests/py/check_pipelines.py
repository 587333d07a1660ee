#!/usr/bin/env python3
"""check_pipelines.py HEFT: folders of pipelines, with model_index.json and a folder per component.

A table of folders, hostile indexes, and every command that reads a model. TAP on stdout."""
import hashlib
import json
import os
import pathlib
import re
import sys

from checks import heft, heft_json, require, run
import gen_shards

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import tap  # noqa: E402

DIFFUSION = "diffusion_pytorch_model"
CLASSES = {
    "unet": ["diffusers", "UNet2DConditionModel"],
    "vae": ["diffusers", "AutoencoderKL"],
    "text_encoder": ["transformers", "CLIPTextModel"],
    "scheduler": ["diffusers", "PNDMScheduler"],
    "tokenizer": ["transformers", "CLIPTokenizer"],
    "tokenizer_2": ["transformers", "T5TokenizerFast"],
    "feature_extractor": ["transformers", "CLIPImageProcessor"],
    "safety_checker": [None, None],
}
INDEX = {"_class_name": "StableDiffusionPipeline", "_diffusers_version": "0.21.0",
         "requires_safety_checker": False, **CLASSES}


def weights(name):
    """Return a file with a tensor that is called like the file."""
    return gen_shards.pack({name: ("U8", [len(name)], name.encode())}, {"format": "pt"})


def write(folder, items, index=None):
    """Write a folder. "unet/a*b" stands for an index `a` and the shard `b` in the index."""
    folder.mkdir(parents=True)
    if index is not None:
        (folder / "model_index.json").write_text(
            index if isinstance(index, str) else json.dumps(index))
    for item in items:
        path, _, shard = item.partition("*")
        path = folder / path
        path.parent.mkdir(parents=True, exist_ok=True)
        if shard:
            path.write_text(json.dumps({"weight_map": {shard: shard}}))
            (path.parent / shard).write_bytes(weights(shard))
        else:
            path.write_bytes(weights(path.name) if path.suffix == ".safetensors" else b"{}")
    return folder


UNET, VAE = f"unet/{DIFFUSION}.safetensors", f"vae/{DIFFUSION}.safetensors"
TEXT = "text_encoder/model.safetensors"
OTHERS = ["scheduler/scheduler_config.json", "tokenizer/vocab.json", "README.md"]
ALL = [UNET, VAE, TEXT, *OTHERS]


def only(*names):
    return {"_class_name": "P", **{n: CLASSES[n] for n in names}}


# Files, index; the tensors as "unet.NAME" and the files of notes heft/passed-over, or an exit
# code and words of the message.
FOLDERS = [
    (ALL, INDEX, [f"unet.{DIFFUSION}.safetensors", f"vae.{DIFFUSION}.safetensors",
                  "text_encoder.model.safetensors"], None),
    # variants: alone they are read, otherwise passed over
    ([f"unet/{DIFFUSION}.fp16.safetensors"], only("unet"),
     [f"unet.{DIFFUSION}.fp16.safetensors"], None),
    ([UNET, f"unet/{DIFFUSION}.fp16.safetensors", f"unet/{DIFFUSION}.non_ema.safetensors"],
     only("unet"), [f"unet.{DIFFUSION}.safetensors"],
     [f"unet/{DIFFUSION}.fp16.safetensors", f"unet/{DIFFUSION}.non_ema.safetensors"]),
    ([UNET, f"unet/{DIFFUSION}.bin"], only("unet"), [f"unet.{DIFFUSION}.safetensors"],
     [f"unet/{DIFFUSION}.bin"]),
    # a component in shards, and a variant in shards
    ([f"unet/{DIFFUSION}.safetensors.index.json*x.safetensors", VAE], only("unet", "vae"),
     ["unet.x.safetensors", f"vae.{DIFFUSION}.safetensors"], None),
    ([f"unet/{DIFFUSION}.safetensors.index.fp16.json*x.safetensors"], only("unet"),
     ["unet.x.safetensors"], None),
    # weights of the folder itself: read only if no component is there
    ([UNET, "v1-5-pruned.safetensors"], only("unet"), [f"unet.{DIFFUSION}.safetensors"],
     ["v1-5-pruned.safetensors"]),
    ([UNET, "v1.safetensors", "v1.ckpt", "v1-pruned.safetensors"], only("unet"),
     [f"unet.{DIFFUSION}.safetensors"], ["v1-pruned.safetensors", "v1.ckpt", "v1.safetensors"]),
    # shards of a component without an index
    ([f"unet/{DIFFUSION}-0000{i}-of-00002.safetensors" for i in (1, 2)], only("unet"),
     [f"unet.{DIFFUSION}-0000{i}-of-00002.safetensors" for i in (1, 2)], None),
    (["v1-5-pruned.safetensors"], INDEX, ["v1-5-pruned.safetensors"], None),
    # the longest index
    ([UNET], json.dumps(only("unet")).ljust(1 << 20), [f"unet.{DIFFUSION}.safetensors"], None),
    # not pipelines
    (["model.safetensors"], {"unet": ["diffusers", "U"]}, ["model.safetensors"], None),
    (["model.safetensors"], {"_class_name": "P"}, ["model.safetensors"], None),
    (["model.safetensors"], only("scheduler"), ["model.safetensors"], None),
    # nothing to read
    (["scheduler/scheduler_config.json"], INDEX, 4,
     "component 'unet': the folder cannot be opened"),
    (["unet/config.json"], only("unet"), 4, "component 'unet': the folder has no weight file"),
    (["unet/model.tflite"], only("unet"), 5, "'model.tflite' is a file of TensorFlow Lite"),
    (["unet/a.safetensors", "unet/b.safetensors"], only("unet"), 4,
     "component 'unet': the folder has several weight files, 'a.safetensors' and 'b.safetensors'"),
]

DEEP = '{"_class_name": "P", "unet": ["diffusers", "U"], "x": ' + "[" * 5000 + "]" * 5000 + "}"


def named(name):
    return {"_class_name": "P", name: ["diffusers", "Model"]}


# Index, exit code, words of the message; unet/ has weights, as has the folder around the pipeline.
HOSTILE = [
    (named(".."), 3, "component '..' is not the name of a folder"),
    (named("../outside"), 3, "component '../outside' is not the name of a folder"),
    (named("/etc"), 3, "component '/etc' is not"),
    (named("a/b"), 3, "component 'a/b' is not"),
    (named("unet.x"), 3, "component 'unet.x' is not"),
    (named("a\0b"), 3, "is not the name of a folder"),
    (named("\u00fcnet"), 3, "is not the name of a folder"),
    (named(""), 3, "component '' is not"),
    (named("n" * 65), 3, "is not the name of a folder"),
    ('{"_class_name": "P", "unet": ["d", "U"], "unet": ["d", "U"]}', 3,
     "component 'unet' is listed twice"),
    ({"_class_name": "P", **{f"c{i}": ["d", "M"] for i in range(65)}}, None, "more than 64"),
    (DEEP, None, "model_index.json"),
    ("{", 3, "model_index.json"),
    ("[]", 3, "model_index.json"),
    ("", 3, "model_index.json"),
    ('{"_class_name": "P", "x": "' + "y" * (1 << 20) + '"}', None, "more than 1048576"),
]


# ---- checks ----

def the_table_decides(scratch):
    for number, (items, index, wanted, detail) in enumerate(FOLDERS):
        folder = write(scratch / f"f{number}", items, index)
        p = heft("ls", "--json", folder, code=wanted if isinstance(wanted, int) else 0)
        if isinstance(wanted, int):
            require(detail in p.stderr.decode(), f"{items}: {p.stderr.decode()}")
            continue
        listed = json.loads(p.stdout)["tensors"]
        require([t["name"] for t in listed] == wanted or
                sorted(t["name"] for t in listed) == sorted(wanted), f"{items}: {listed}")
        for t in listed:
            raw = heft("cat", folder, t["name"]).stdout
            require(t["name"].encode().endswith(raw), f"{t['name']}: {raw}")
        notes = [f["text"] for f in heft_json("verify", folder)["findings"]]
        found = [re.search("'(.*)'", n)[1] for n in notes if "joined" not in n]
        require(sorted(found) == sorted(detail or []), f"{items}: {notes}")


def hostile_indexes(scratch):
    (scratch / "outside").mkdir()
    (scratch / "outside" / "model.safetensors").write_bytes(weights("outside"))
    for number, (index, code, detail) in enumerate(HOSTILE):
        folder = write(scratch / f"h{number}", [UNET], index)
        p = heft("ls", folder, code=code)
        require(p.returncode in (3, 5), f"{detail}: exit {p.returncode}")
        require(detail in p.stderr.decode() and not p.stdout,
                f"{detail}: {p.stderr.decode()[:300]}")


def links(scratch):
    outside = write(scratch / "outside", ["model.safetensors"])
    for name, make, detail in (
            ("folder", lambda f: os.symlink(outside, f / "unet"), "symbolic link"),
            ("inside", lambda f: os.symlink("vae", f / "unet"), "symbolic link"),
            ("file", lambda f: ((f / "unet").mkdir(), os.symlink(
                outside / "model.safetensors", f / UNET)), "leaves the model's folder"),
            ("plain", lambda f: (f / "unet").write_text("x"), "cannot be opened")):
        folder = write(scratch / name, [VAE], only("unet", "vae"))
        make(folder)
        p = heft("ls", "--json", folder)
        names = [t["name"] for t in json.loads(p.stdout)["tensors"]]
        require(names == [f"vae.{DIFFUSION}.safetensors"], names)
        require("component 'unet'" in p.stderr.decode() and detail in p.stderr.decode(),
                f"{name}: {p.stderr.decode()}")
        heft("hash", folder, code=4)
        found = heft_json("verify", folder, code=1)["findings"]
        require([(f["rule"], f["severity"]) for f in found] == [("heft/file-missing", "fault")],
                found)
    index = write(scratch / "index", [UNET])
    (scratch / "model_index.json").write_text(json.dumps(INDEX))
    os.symlink("../model_index.json", index / "model_index.json")
    p = heft("ls", index, code=4)
    require(b"model_index.json is a symbolic link that leaves" in p.stderr, p.stderr)
    broken = write(scratch / "broken", ["model.safetensors"])
    os.symlink("gone", broken / "model_index.json")
    p = heft("ls", broken, code=4)
    require(b"model_index.json is a symbolic link that cannot be resolved" in p.stderr, p.stderr)


def incomplete(scratch):
    """A missing, damaged or ambiguous component. Commands that need all tensors refuse."""
    for name, change, code, rule in (
            ("missing", lambda f: (f / UNET).unlink(), 4, "heft/file-missing"),
            ("none", lambda f: ((f / UNET).unlink(), (f / "unet").rmdir()), 4,
             "heft/file-missing"),
            ("several", lambda f: ((f / UNET).unlink(), write(
                f / "x", ["a.safetensors", "b.safetensors"]), (f / "unet").rmdir(),
                (f / "x").rename(f / "unet")), 4, "heft/file-missing"),
            ("damaged", lambda f: (f / UNET).write_bytes(b"not weights at all"), 3, "heft/shard"),
            ("cut", lambda f: (f / UNET).write_bytes(weights("x" * 40)[:-7]), 3, "heft/shard")):
        folder = write(scratch / name, ALL, INDEX)
        change(folder)
        p = heft("ls", "--json", folder)
        names = [t["name"].split(".")[0] for t in json.loads(p.stdout)["tensors"]]
        require(sorted(names) == ["text_encoder", "vae"], f"{name}: {names}")
        require("incomplete: component 'unet'" in p.stderr.decode(), p.stderr.decode())
        states = {c["name"]: c["state"]
                  for c in heft_json("info", folder)["pipeline"]["components"]}
        require((states["unet"], states["vae"], states["scheduler"], states["safety_checker"]) ==
                ("missing", "present", "no weights", "none"), states)
        for args in (["hash", folder], ["stats", folder], ["sbom", folder],
                     ["convert", folder, scratch / "no.safetensors"]):
            p = heft(*args, code=code)
            require("component 'unet'" in p.stderr.decode(), f"{args[0]}: {p.stderr.decode()}")
        found = heft_json("verify", folder, code=1)["findings"]
        require([(f["rule"], f["severity"]) for f in found] == [(rule, "fault")], found)
    folder = write(scratch / "shard",
                   [VAE, f"unet/{DIFFUSION}.safetensors.index.json*x.safetensors"],
                   only("unet", "vae"))
    (folder / "unet" / "x.safetensors").unlink()
    require("component 'unet': shard 'x.safetensors'" in heft("ls", folder).stderr.decode(),
            "a missing shard of a component")
    found = heft_json("verify", folder, code=1)["findings"]
    require([f["rule"] for f in found] == ["heft/file-missing"], found)
    require("component 'unet'" in found[0]["text"], found)


def every_command_reads_a_pipeline(scratch):
    folder = write(scratch / "p", [*ALL[1:],
                                   f"unet/{DIFFUSION}.safetensors.index.json*x.safetensors"], INDEX)
    shown = heft("info", folder).stdout.decode()
    for line in ("Model       StableDiffusionPipeline, by model_index.json _class_name\n",
                 "unet: UNet2DConditionModel, present\n", "tokenizer: CLIPTokenizer, no weights\n",
                 f"unet/{DIFFUSION}.safetensors.index.json, ", "safety_checker: none\n",
                 "Files       "):
        require(line in shown, f"{line}: {shown}")
    require(heft_json("info", folder)["pipeline"]["class"] == "StableDiffusionPipeline", "class")
    whole = scratch / "whole.safetensors"
    heft("convert", folder, whole)
    heft("diff", folder, whole)
    require(heft_json("hash", folder)["model"] == heft_json("hash", whole)["model"], "hash")
    heft("split", "--count", "2", folder, scratch / "split")
    heft("merge", folder, scratch / "merged.mag")
    heft("diff", scratch / "split", scratch / "merged.mag")
    for args in (["stats", folder], ["ids", folder], ["ls", "--tree", folder], ["scan", folder],
                 ["show", folder, "unet.x.safetensors"], ["ls", "-l", folder, "unet.*"],
                 ["report", folder, "-o", scratch / "r.html"], ["ls", folder / "unet"]):
        heft(*args)
    require([t["name"] for t in heft_json("ls", folder / "vae")["tensors"]] ==
            [f"{DIFFUSION}.safetensors"], "a component by itself")
    heft("edit", "--set", "a=b", folder, code=4)
    index = folder / "model_index.json"
    require(heft_json("hash", index)["model"] == heft_json("hash", folder)["model"], "the index")
    require(heft_json("info", index)["pipeline"] == heft_json("info", folder)["pipeline"], "info")
    require(json.loads(heft("sbom", index).stdout)["components"] ==
            json.loads(heft("sbom", folder).stdout)["components"], "sbom")
    before = index.read_bytes()
    p = heft("edit", "--set", "a=b", index, code=5)
    p = heft("append", index, folder / TEXT, code=5)
    require(index.read_bytes() == before, "the index was changed")
    other = write(scratch / "other", [], {"a": 1}) / "model_index.json"
    require(b"JSON" in heft("ls", other, code=3).stderr, "not an index")
    heft("convert", folder, folder / TEXT, "--force", code=2)
    bill = json.loads(heft("sbom", folder).stdout)
    got = {c["name"]: c["hashes"][0]["content"] for c in bill["components"]}
    wanted = {str(p.relative_to(folder)): hashlib.sha256(p.read_bytes()).hexdigest()
              for p in folder.rglob("*") if p.is_file() and (
                  p.suffix == ".safetensors" or p.name.endswith("index.json"))}
    require(got == wanted, f"{got} {wanted}")


def findings_name_tensors_of_the_component(scratch):
    """A finding of the check of a format names the tensor and file of the pipeline."""
    heft("convert", "--digest", "crc32c", (write(scratch / "x", [VAE]) / VAE), scratch / "a.zt")
    data = bytearray((scratch / "a.zt").read_bytes())
    at = data.index(DIFFUSION.encode())
    data[at] ^= 1
    folder = write(scratch / "p", [UNET], only("unet", "vae"))
    (folder / "vae").mkdir()
    (folder / "vae" / "a.zt").write_bytes(data)
    found = heft_json("verify", folder, code=1)["findings"]
    require([(f["rule"], f["tensor"], f["shard"]) for f in found] ==
            [("ztensor/digest", f"vae.{DIFFUSION}.safetensors", "vae/a.zt")], found)


def hub(scratch):
    """A pipeline in the Hugging Face cache: snapshots of links to blobs."""
    cache = scratch / "cache"
    repository = cache / "models--own--sd"
    commit = "0123456789abcdef0123456789abcdef01234567"
    (repository / "blobs").mkdir(parents=True)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text(commit)
    plain = write(scratch / "plain", ALL, INDEX)
    snapshot = repository / "snapshots" / commit
    for path in sorted(plain.rglob("*")):
        to = snapshot / path.relative_to(plain)
        if path.is_dir():
            to.mkdir(parents=True, exist_ok=True)
            continue
        data = path.read_bytes()
        name = (hashlib.sha256(data) if path.suffix == ".safetensors" else hashlib.sha1(
            b"blob %d\0" % len(data) + data)).hexdigest()
        (repository / "blobs" / name).write_bytes(data)
        to.parent.mkdir(parents=True, exist_ok=True)
        os.symlink(os.path.relpath(repository / "blobs" / name, to.parent), to)
    os.environ["HF_HUB_CACHE"] = str(cache)
    try:
        for name in ("hub:own/sd", "hub:own/sd@0123", snapshot):
            require(heft_json("hash", name)["model"] == heft_json("hash", plain)["model"], name)
            heft("verify", name)
            heft("verify", "--hub", name)
            require(len(json.loads(heft("sbom", name).stdout)["components"]) == 4, "the bill")
        require(len(heft_json("ls", "hub:own/sd/unet")["tensors"]) == 1, "a component")
        blob = (snapshot / TEXT).resolve()
        blob.write_bytes(blob.read_bytes()[:-1] + b"X")
        p = heft("verify", "--hub", "hub:own/sd", code=1)
        require(TEXT.encode() in p.stdout and p.stdout.count(b"fault: hub/sha256") == 1, p.stdout)
    finally:
        del os.environ["HF_HUB_CACHE"]


CHECKS = [the_table_decides, hostile_indexes, links, incomplete, every_command_reads_a_pipeline,
          findings_name_tensors_of_the_component, hub]


sys.exit(tap.report([(check.__name__.replace("_", " "), run(check)) for check in CHECKS]))
