#!/usr/bin/env python3
"""check_index.py HEFT: `heft index` writes and repairs the indexes of shards.

Indexes are judged with Python's json, against the headers of the shards. TAP on stdout."""
import json
import os
import pathlib
import struct
import sys

from checks import heft, heft_json, require, run

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import tap  # noqa: E402

INDEX = "model.safetensors.index.json"


def write_shard(path, names, elements=3):
    header, at = {"__metadata__": {"format": "pt"}}, 0
    for name in names:
        offsets = [at, at + 4 * elements]
        header[name] = {"dtype": "F32", "shape": [elements], "data_offsets": offsets}
        at += 4 * elements
    raw = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(raw)) + raw + bytes(at))


def make_set(scratch, count=3, stem="model"):
    expected = {}
    for i in range(1, count + 1):
        name = f"{stem}-{i:05}-of-{count:05}.safetensors"
        names = [f"layers.{i}.w", f"layers.{i}.\u00fc\"b", *([f"head.{i}"] if i == count else [])]
        write_shard(scratch / name, names)
        expected.update({n: name for n in names})
    return expected


def require_index(path, expected, **texts):
    index = json.loads(path.read_text())
    require(index["weight_map"] == expected, index)
    require(index["metadata"] == {"total_size": 12 * len(expected), **texts}, index["metadata"])
    require(list(index["weight_map"]) == sorted(expected, key=str.encode), "not sorted by name")


# ---- checks ----

def indexes_are_written(scratch):
    expected = make_set(scratch)
    before = {p.name: p.read_bytes() for p in scratch.iterdir()}
    p = heft("index", scratch)
    require(p.stdout.decode().startswith(f"{INDEX}: written (3 shards, 7 tensors"), p.stdout)
    require_index(scratch / INDEX, expected)
    after = {n: (scratch / n).read_bytes() for n in before}
    require(before == after, "a shard changed")
    require(len(list(scratch.iterdir())) == len(before) + 1, "more files than the index")
    heft("verify", scratch / INDEX)
    stat = (scratch / INDEX).stat()
    require(b"is right" in heft("index", scratch).stdout, "written twice")
    require((scratch / INDEX).stat().st_ino == stat.st_ino, "a right index was replaced")


def indexes_are_repaired(scratch):
    expected = make_set(scratch)
    first = next(iter(expected))
    wrong = {**expected, "gone": expected[first], first: expected["head.3"]}
    for text, texts in [
        (json.dumps({"metadata": {"total_size": 1, "license": "mit", "n": 3}, "weight_map": wrong}),
         {"license": "mit"}), (json.dumps({"weight_map": {}}), {}), ("{", {}), ("", {}),
            (json.dumps({"metadata": {"a": "b"}, "weight_map": {"x": "none.safetensors"}}),
             {"a": "b"})]:
        (scratch / INDEX).write_text(text)
        found = heft_json("index", "-n", scratch)
        require(found["existed"] and not found["changed"], found)
        require((scratch / INDEX).read_text() == text, "a dry run writes")
        p = heft("index", scratch)
        require(b"repaired" in p.stdout, p.stdout)
        require((b"could not be read" in p.stderr) == (text in ("{", "")), p.stderr)
        require_index(scratch / INDEX, expected, **texts)


def right_indexes_of_other_programs_stay(scratch):
    """transformers states total_parameters and escapes other letters; diffusers sorts otherwise."""
    expected = make_set(scratch)
    metadata = {"total_parameters": 21, "total_size": 12 * len(expected), "format": "pt"}
    index = {"weight_map": dict(reversed(expected.items())), "metadata": metadata}
    for text in json.dumps(index, indent=2, sort_keys=True) + "\n", json.dumps(index):
        (scratch / INDEX).write_text(text)
        p = heft("index", scratch)
        require(b"is right" in p.stdout and (scratch / INDEX).read_text() == text, p.stdout)
    first = next(iter(expected))
    for change in ({"weight_map": {**expected, first: expected["head.3"]}},
                   {"weight_map": {**expected, "gone": expected[first]}},
                   {"weight_map": {n: f for n, f in expected.items() if n != first}},
                   {"metadata": {**metadata, "total_size": 83}}, {"metadata": {}}):
        (scratch / INDEX).write_text(json.dumps({**index, **change}))
        require(b"repaired" in heft("index", scratch).stdout, f"{change} is right")
    (scratch / INDEX).write_text("\ufeff" + json.dumps(index))
    require(b"repaired" in heft("index", scratch).stdout, "a byte order mark is right")


def files_are_named(scratch):
    names = {"a.safetensors": ["x"], "b.safetensors": ["y", "z"]}
    for name, tensors in names.items():
        write_shard(scratch / name, tensors)
    heft("index", scratch, code=4)
    heft("index", scratch, "a.safetensors", scratch / "b.safetensors")
    require_index(scratch / INDEX, {t: n for n, tensors in names.items() for t in tensors})
    require(len(heft_json("ls", scratch / INDEX)["tensors"]) == 3, "the index opens")


def other_formats(scratch):
    make_set(scratch)
    for to, index in [("torch", "pytorch_model.bin.index.json"),
                      ("flax", "flax_model.msgpack.index.json")]:
        folder = scratch / to
        heft("split", "--to", to, "-c", 2, scratch, folder)
        written = json.loads((folder / index).read_text())
        (folder / index).unlink()
        heft("index", folder)
        require(json.loads((folder / index).read_text()) == written, f"{to}: another index")
    heft("split", "--to", "gguf", "-c", 2, scratch, scratch / "gguf")
    names = sorted(p.name for p in (scratch / "gguf").iterdir())
    require(names == [f"model-0000{i}-of-00002.gguf" for i in (1, 2)], names)
    p = heft("index", scratch / "gguf", code=5)
    require(b"no index of this kind" in p.stderr, p.stderr)


def variants_have_the_names_of_transformers(scratch):
    """_add_variant() of transformers and diffusers puts the variant before the last suffix."""
    for folder, name, index in [
        ("a", "model.fp16-{:05}-of-00002.safetensors", "model.safetensors.index.fp16.json"),
        ("b", "model-{:05}-of-00002.fp16.safetensors", "model.safetensors.index.fp16.json"),
        ("c", "Llama-3.1-8B-{:05}-of-00002.safetensors", "Llama-3.1-8B.safetensors.index.json")]:
        (scratch / folder).mkdir()
        for i in 1, 2:
            write_shard(scratch / folder / name.format(i), [f"t{i}"])
        heft("index", scratch / folder)
        require_index(scratch / folder / index, {f"t{i}": name.format(i) for i in (1, 2)})
        require(len(heft_json("ls", scratch / folder)["tensors"]) == 2, "the folder opens")


def names_are_text(scratch):
    for i in b"12":
        name = b"m\xff-0000" + bytes([i]) + b"-of-00002.safetensors"
        write_shard(pathlib.Path(os.fsdecode(bytes(scratch) + b"/" + name)), [chr(i)])
    p = heft("index", scratch, code=2)
    require(b"not UTF-8" in p.stderr, p.stderr)
    require(len(list(scratch.iterdir())) == 2, "an index was written")


def refusals(scratch):
    for name, make, code, words in [
        ("none", lambda f: None, 4, b"no numbered shards"),
        ("missing", lambda f: (make_set(f), (f / "model-00002-of-00003.safetensors").unlink()), 4,
         b"model-00002-of-00003.safetensors"),
        ("two", lambda f: (make_set(f), make_set(f, stem="other")), 4, b"several sets"),
        ("same", lambda f: (make_set(f, 2), write_shard(f / "model-00002-of-00002.safetensors",
                                                       ["layers.1.w"])), 2, b"layers.1.w"),
        ("broken", lambda f: (make_set(f, 2), (f / "model-00002-of-00002.safetensors").write_bytes(
            b"x" * 99)), 3, b"model-00002-of-00002")]:
        folder = scratch / name
        folder.mkdir()
        make(folder)
        p = heft("index", folder, code=None)
        require(p.returncode == code and words in p.stderr, f"{name}: {p.returncode} {p.stderr}")
        require(not list(folder.glob("*.json")), f"{name}: an index was written")
    heft("index", scratch / "absent", code=4)
    heft("index", scratch / "two", "a/b.safetensors", code=2)
    heft("index", scratch / "two", "../x.safetensors", code=2)


CHECKS = [
    indexes_are_written, indexes_are_repaired, right_indexes_of_other_programs_stay,
    files_are_named, other_formats, variants_have_the_names_of_transformers, names_are_text,
    refusals
]
sys.exit(tap.report([(check.__name__.replace("_", " "), run(check)) for check in CHECKS]))
