#!/usr/bin/env python3
"""check_sbom.py HEFT: bills of materials have the structure of CycloneDX 1.6. TAP on stdout."""
import hashlib
import json
import pathlib
import re
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
        bad += [str(x) for x in part.get("licenses", []) if len(x["license"]) != 1]
    head = (bom["bomFormat"], bom["specVersion"])
    return bad + ([] if head == ("CycloneDX", "1.6") else ["head"])


def results(folder):
    weights = {"a": ("F32", [2], bytes(8)), "b": ("U8", [3], b"xyz")}
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


def main():
    with tempfile.TemporaryDirectory() as folder:
        return tap.report(results(pathlib.Path(folder)))


if __name__ == "__main__":
    sys.exit(main())
