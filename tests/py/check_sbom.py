#!/usr/bin/env python3
"""check_sbom.py HEFT: bills of materials have the structure of CycloneDX 1.6. TAP on stdout."""
import hashlib
import json
import pathlib
import re
import struct
import subprocess
import sys
import tempfile

import gen_shards

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import tap  # noqa: E402

# Members that the schema of CycloneDX 1.6 requires of an object, and those that it allows here.
SHAPES = {
    "bom": ({"bomFormat", "specVersion"}, {"version", "metadata", "components"}),
    "component": ({"type", "name"}, {"bom-ref", "version", "hashes", "licenses", "pedigree",
                                     "modelCard", "properties"}),
}


def heft(*args):
    p = subprocess.run([sys.argv[1], *map(str, args)], capture_output=True, check=False)
    return p.returncode, p.stdout, p.stderr.decode()


def misshapen(kind, value):
    required, allowed = SHAPES[kind]
    return [f"{kind}: {k}" for k in required - set(value)] + [
        f"{kind}: unknown {k}" for k in set(value) - required - allowed]


def complaints(bom):
    """Return the violations of the schema."""
    bad = misshapen("bom", bom)
    parts = [bom["metadata"]["component"], *bom["components"]]
    parts += parts[0].get("pedigree", {}).get("ancestors", [])
    refs = [p["bom-ref"] for p in parts if "bom-ref" in p]
    bad += [] if len(set(refs)) == len(refs) else ["a bom-ref occurs twice"]
    for part in parts:
        bad += misshapen("component", part)
        bad += [] if part["type"] in ("file", "machine-learning-model") else [part["type"]]
        bad += [str(h) for h in part.get("hashes", [])
                if h["alg"] != "SHA-256" or not re.fullmatch("[0-9a-f]{64}", h["content"])]
        bad += [str(x) for x in part.get("properties", [])
                if set(x) != {"name", "value"} or not isinstance(x["value"], str)]
        bad += [str(x) for x in part.get("licenses", [])
                if len(x["license"].keys() & {"id", "name"}) != 1 or
                x["license"].keys() - {"id", "name", "url"}]
    head = (bom["bomFormat"], bom["specVersion"])
    return bad + ([] if head == ("CycloneDX", "1.6") else ["head"])


WEIGHTS = {"a": ("F32", [2], bytes(8)), "b": ("U8", [3], b"xyz")}


def facts_of(bom):
    """Return the facts of a bill, by the keys of a model card."""
    model = bom["metadata"]["component"]
    card = model.get("modelCard", {}).get("modelParameters", {})
    facts = {
        "license": [x["license"].get("id") or x["license"]["name"]
                    for x in model.get("licenses", [])],
        "base_model": [a["name"] for a in model.get("pedigree", {}).get("ancestors", [])],
        "datasets": [d["name"] for d in card.get("datasets", [])],
        "pipeline_tag": [card["task"]] if "task" in card else [],
        "library_name": [p["value"] for p in model["properties"] if p["name"] == "heft:library"],
        "language": [p["value"] for p in model["properties"] if p["name"] == "heft:language"],
    }
    return {k: v for k, v in facts.items() if v}


# Lines of a model card; the facts; words of the warnings, one for each.
CARDS = [
    ("license: mit", {"license": ["MIT"]}, []),
    ("license: mit # not \"gpl\"", {"license": ["MIT"]}, []),
    ("license: 'it''s'\nlanguage: \"a\\\"b\"", {"license": ["it's"], "language": ['a"b']}, []),
    ("license: [mit, 'apache-2.0' , \"x\"] # y", {"license": ["MIT", "Apache-2.0", "x"]}, []),
    ("license: other\nlicense_name: own\nlicense_link: LICENSE", {"license": ["own"]}, []),
    ("license: mit\nlicense_name: own", {"license": ["MIT"]}, []),
    ("license:\nlanguage: ~\ndatasets: null\nbase_model: []", {}, []),
    ("language: no", {"language": ["no"]}, []),
    ("language:\n- en\n-  \"fr\" # b\n\n# c\n-\n- en\nlicense: mit",
     {"language": ["en", "fr"], "license": ["MIT"]}, []),
    ("datasets:\n  - a/b\n  - c d\npipeline_tag: text-to-image\nlibrary_name: peft",
     {"datasets": ["a/b", "c d"], "pipeline_tag": ["text-to-image"], "library_name": ["peft"]}, []),
    ("base_model: http://x/y#z", {"base_model": ["http://x/y#z"]}, []),
    ("widget:\n- text: 'license: gpl'\n  license: gpl\nmodel-index:\n- name: x\n  license: [\n"
     "license: mit", {"license": ["MIT"]}, []),
    ("description: |\n  license: gpl\n\n  ---x\nlicense: mit", {"license": ["MIT"]}, []),
    ("\tlicense: gpl\nlicenses: gpl\nlicense:gpl\nlicense : gpl", {}, []),
    ("license: &a mit\nlanguage: *a\ndatasets: !!str x\nbase_model: {a: b}\npipeline_tag: |\n  x\n"
     "library_name: >-\n  y", {}, [f"line {n} is ignored" for n in (2, 3, 4, 5, 6, 8)]),
    ("license: \"mit\nlanguage: 'en\ndatasets: [a\nbase_model: [a, [b]]\nlibrary_name: a: b", {},
     [f"line {n} is ignored" for n in (2, 3, 4, 5, 6)]),
    ("license: mit\n  or gpl\nlanguage: en", {"language": ["en"]}, ["line 2 is ignored"]),
    ("license: \"a\\x41\"", {}, ["line 2 is ignored"]),
    ("license: \"mit\" gpl\ndatasets:\n- a: b\n- c\n  d\n- f", {"datasets": ["f"]},
     ["line 2", "line 4", "line 6"]),
    ("datasets:\n- \"a\" b\n- 'c' d\n- \"e\" # f", {"datasets": ["e"]}, ["line 3", "line 4"]),
    ("datasets:\n  -c\n  - d", {"datasets": ["d"]}, ["line 3 is ignored"]),
    ("license: mit\nlicense: gpl\nlanguage: en", {"license": ["MIT"], "language": ["en"]},
     ["line 3 is ignored: the key occurs twice"]),
    ("license: " + "x" * 1024, {"license": ["x" * 1024]}, []),
    ("license: " + "x" * 1025, {}, ["longer than 1024 bytes"]),
    ("language: [" + ",".join(f"l{i}" for i in range(257)) + "]",
     {"language": [f"l{i}" for i in range(256)]}, ["more than 256 texts"]),
    ("license: a\0b\nlanguage: e\x1bn", {"license": ["a"], "language": ["e\x1bn"]}, []),
    ("[" * 100000, {}, []),
    ("language: " + "[" * 100000, {}, ["line 2 is ignored"]),
]
# Whole files.
READMES = [
    ("", {}, []),
    ("---", {}, ["no line --- ends them"]),
    ("---\nlicense: mit", {}, ["no line --- ends them"]),
    ("---\r\nlicense: mit\r\n---\r\n", {"license": ["MIT"]}, []),
    ("\ufeff---  \nlicense: mit\n...\nlicense: gpl\n", {"license": ["MIT"]}, []),
    ("# a title\n---\nlicense: mit\n---\n", {}, []),
    ("----\nlicense: mit\n---\n", {}, []),
    ("---\nlicense: mit\n---", {"license": ["MIT"]}, []),
    ("---\n" + "# \n" * 100000 + "---\n", {}, ["more than 256 KiB"]),
]


def as_yaml_says(text):
    """Return the facts of a card as PyYAML reads them, or None without PyYAML."""
    try:
        import yaml
    except ImportError:
        return None
    try:
        read = yaml.load(text, yaml.BaseLoader)
    except yaml.YAMLError:
        return None
    return read if isinstance(read, dict) else None


def cards(folder):
    path = folder / "card" / "model.safetensors"
    path.parent.mkdir()
    path.write_bytes(gen_shards.pack(WEIGHTS))
    plain = json.loads(heft("sbom", path)[1])
    whole = [(f"---\n{text}\n---\n# title\n", *row) for text, *row in CARDS] + READMES
    for number, (text, wanted, warnings) in enumerate(whole):
        (path.parent / "README.md").write_text(text, newline="")
        code, out, err = heft("sbom", path)
        lines = err.splitlines()
        bom = json.loads(out) if code == 0 else None
        got = facts_of(bom) if bom else code
        bad = complaints(bom) if bom else []
        bad += [] if got == wanted else [f"{got}, not {wanted}"]
        bad += [] if len(lines) == len(warnings) and all(
            w in line and "README.md: warning: " in line for w, line in zip(warnings, lines)) else [
                f"warnings: {err}"]
        bad += [] if heft("sbom", "--quiet", path)[1:] == (out, "") else ["--quiet"]
        bad += [] if wanted or bom == plain else ["the bill has more"]
        yield f"card {number}: {text[4:60]!r}", bad
        is_good = number < len(CARDS) and wanted and not warnings
        front = as_yaml_says(text[4:-13]) if is_good else None
        for key, values in wanted.items() if front else ():
            said = front.get(key)
            said = said if isinstance(said, list) else [said]
            known = {"mit": "MIT", "apache-2.0": "Apache-2.0", "other": "own"}
            said = list(dict.fromkeys(known.get(v, v) for v in said if v))
            yield f"card {number}: {key} as PyYAML reads it", [] if said == values else [str(said)]
    (path.parent / "README.md").unlink()
    (path.parent / "README.md").symlink_to("/etc/hostname")
    yield "a link that leaves the folder", [] if heft("sbom", path)[0] == 4 else ["no exit 4"]


def gguf(values):
    """Return a GGUF file with texts and lists of texts, and a tensor of four bytes."""
    def text(s):
        return struct.pack("<Q", len(s)) + s.encode()
    head = b"GGUF" + struct.pack("<IQQ", 3, 1, len(values))
    for key, value in values.items():
        is_list = isinstance(value, list)
        head += text(key) + (struct.pack("<IIQ", 9, 8, len(value)) + b"".join(map(text, value))
                             if is_list else struct.pack("<I", 8) + text(value))
    head += text("w") + struct.pack("<IQIQ", 1, 1, 0, 0)
    return head + bytes(-len(head) % 32) + bytes(4)


def metadata(folder):
    """Metadata of the file come before the model card; lists are joined."""
    path = folder / "meta" / "m.gguf"
    path.parent.mkdir()
    path.write_bytes(gguf({
        "general.license": "mit", "general.base_model.0.name": "one",
        "general.base_model.1.name": "two", "general.dataset.0.name": "d",
        "general.languages": ["en", "de", ""], "general.datasets": ["e", "d"],
        "general.version": "1.5"}))
    (path.parent / "README.md").write_text(
        "---\nlicense: gpl-3.0\nbase_model: [two, three]\nlanguage: fr\ndatasets: f\n---\n")
    bom = json.loads(heft("sbom", path)[1])
    wanted = {"license": ["MIT"], "base_model": ["one", "two", "three"],
              "datasets": ["d", "e", "f"], "language": ["en", "de", "fr"]}
    yield "metadata", complaints(bom) + ([] if facts_of(bom) == wanted else [str(facts_of(bom))])
    version = bom["metadata"]["component"].get("version")
    yield "the version", [] if version == "1.5" else [str(version)]
    single = path.parent / "single.gguf"
    single.write_bytes(gguf({"general.languages": "en", "general.datasets": "d"}))
    got = facts_of(json.loads(heft("sbom", single)[1]))
    wanted = {"license": ["GPL-3.0-only"], "base_model": ["two", "three"], "datasets": ["d", "f"],
              "language": ["en", "fr"]}
    yield "texts instead of lists", [] if got == wanted else [str(got)]
    (path.parent / "README.md").write_text(
        "---\nlicense: other\nlicense_name: own\nlicense_link: https://example.org/a\n---\n")
    one = path.parent / "one.safetensors"
    one.write_bytes(gen_shards.pack(WEIGHTS, {"ss_sd_model_name": "sd.safetensors"}))
    model = json.loads(heft("sbom", one)[1])["metadata"]["component"]
    got = (model["licenses"], model["pedigree"]["ancestors"][0]["name"])
    yield "link of a licence", [] if got == ([{"license": {
        "name": "own", "url": "https://example.org/a"}}], "sd.safetensors") else [str(got)]


def output(folder):
    path, out = folder / "out.safetensors", folder / "out.json"
    path.write_bytes(gen_shards.pack(WEIGHTS))
    wanted = heft("sbom", path)[1]
    got = heft("sbom", path, "-o", out)
    yield "a file", [] if got == (0, b"", "") and out.read_bytes() == wanted else [str(got)]
    out.write_bytes(b"mine")
    code, _, err = heft("sbom", path, "--output", out)
    yield "not replaced", [] if (code, out.read_bytes()) == (
        2, b"mine") and "--force replaces it" in err else [err]
    yield "a model that fails", [] if heft("sbom", folder / "none", "-f", "-o", out)[0] == 4 and (
        out.read_bytes() == b"mine") else ["replaced"]
    code, _, err = heft("sbom", path, "--force", "--no-sync", "-o", out)
    yield "replaced", [] if (code, out.read_bytes()) == (0, wanted) else [err]
    yield "stdout", [] if heft("sbom", path, "-o", "-") == (0, wanted, "") else ["differs"]
    before = path.read_bytes()
    code, _, err = heft("sbom", path, "-f", "-o", path)
    yield "the input", [] if code == 2 and path.read_bytes() == before else [err]
    with open(path, "rb") as stdin:
        bom = json.loads(subprocess.run([sys.argv[1], "sbom", "-"], stdin=stdin, check=True,
                                        capture_output=True).stdout)
    names = [bom["metadata"]["component"]["name"], *(c["name"] for c in bom["components"])]
    yield "standard input is called -", complaints(bom) + ([] if names == ["-", "-"] else names)
    (folder / "kept").mkdir()
    (folder / "kept/model.safetensors").write_bytes(gen_shards.pack(WEIGHTS))
    got = [json.loads(heft("sbom", f"{folder}/kept{end}")[1])["metadata"]["component"]["name"]
           for end in ("", "/", "//")]
    yield "the name of a folder", [] if got == ["kept"] * 3 else got
    yield "a folder", [] if heft("sbom", path, "-f", "-o", folder)[0] == 2 else ["no exit 2"]
    code = heft("sbom", path, "-o", folder / "no" / "x")[0]
    yield "no folder", [] if code == 4 else [str(code)]
    code, _, err = heft("sbom", path, "-o", "/dev/full")
    yield "a full disk", [] if code == 4 and "No space left" in err else [code, err]
    left = sorted(p.name for p in folder.iterdir())
    yield "nothing else", [] if left == ["kept", "out.json", "out.safetensors"] else [str(left)]


def results(folder):
    weights = WEIGHTS
    for title, license_text, wanted in (
            ("a known licence", "Apache-2.0", {"id": "Apache-2.0"}),
            ("another licence", "my\x1b terms", {"name": "my\x1b terms"})):
        path = folder / "m.safetensors"
        path.write_bytes(gen_shards.pack(weights, {"license": license_text,
                                                   "modelspec.title": "The \"model\""}))
        code, out, err = heft("sbom", path)
        bom = json.loads(out) if code == 0 else None
        yield f"{title}: structure", complaints(bom) if bom else [err]
        model = bom["metadata"]["component"]
        yield title, [] if model["licenses"][0]["license"] == wanted else [str(model)]
        sums = [hashlib.sha256(path.read_bytes()).hexdigest()] * 2
        yield f"{title}: sums", [] if sums == [
            model["hashes"][0]["content"], bom["components"][0]["hashes"][0]["content"]] else ["no"]
        facts = {p["name"]: p["value"] for p in model["properties"]}
        digest = json.loads(heft("hash", "--json", path)[1])["model"]
        yield f"{title}: facts", [] if (
            facts["heft:model-digest"], facts["heft:parameters"], facts["heft:tensors:f32"],
            model["name"]) == (digest, "5", "1", 'The "model"') else [str(facts)]
        yield f"{title}: same again", [] if heft("sbom", path)[1] == out else ["differs"]
    shards = folder / "set"
    heft("split", "--count", "2", path, shards)
    bom = json.loads(heft("sbom", shards)[1])
    wanted = {p.name: hashlib.sha256(p.read_bytes()).hexdigest() for p in shards.iterdir()}
    got = {c["name"]: c["hashes"][0]["content"] for c in bom["components"]}
    yield "shards", complaints(bom) + ([] if got == wanted and len(got) == 3 else [str(got)])
    adapter = folder / "lora"
    adapter.mkdir()
    (adapter / "adapter_model.safetensors").write_bytes(gen_shards.pack(weights))
    (adapter / "adapter_config.json").write_text('{"base_model_name_or_path": "own/base"}')
    bom = json.loads(heft("sbom", adapter)[1])
    bases = bom["metadata"]["component"]["pedigree"]["ancestors"]
    yield "base", complaints(bom) + ([] if [b["name"] for b in bases] == ["own/base"] else ["no"])
    next(shards.glob("*00002*")).unlink()
    yield "missing shard", [] if heft("sbom", shards)[0] == 4 else ["no exit 4"]
    (folder / "no").write_bytes(b"not a model")
    yield "not a model", [] if heft("sbom", folder / "no")[0] == 3 else ["no exit 3"]
    yield from cards(folder)
    yield from metadata(folder)
    (folder / "written").mkdir()
    yield from output(folder / "written")


def main():
    with tempfile.TemporaryDirectory() as folder:
        return tap.report(results(pathlib.Path(folder)))


if __name__ == "__main__":
    sys.exit(main())
