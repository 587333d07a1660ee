#!/usr/bin/env python3
"""check_edited.py COMMANDS: edit samples, and read the results independently.

Each sample of gen_*.py is written in its own format and edited. The readers in tests/py must find
the requested change and nothing else. TAP on stdout."""
import concurrent.futures
import json
import pathlib
import subprocess
import sys
import tempfile

import commands
import gen_gptrs
import read_burnpack
import read_embd
import read_gguf
import read_gptrs
import read_mag
import read_npz
import read_safetensors
import read_ztensor1
import read_ztensor2

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import tap  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
TEXT, NUMBER = ('added="some text"', "some text"), ("added=7", "0000000000000007")
ZSTD = ["--compress", "zstd"]
# Key: directory of samples. Value: format, version, options, --set argument and expected metadata
# (None if the format has no metadata).
TARGETS = {
    "burnpack": [("burnpack", "0.21", [], TEXT), ("burnpack", "0.20", [], TEXT)],
    "embd": [("embd", "1.0", [], TEXT), ("embd", "simple", [], None)],
    "gguf": [("gguf", "3", [], NUMBER[:1] + (["u32", 7],)),
             ("gguf", "2", [], TEXT[:1] + (["str", "some text"],))],
    "gptrs": [("gptrs-checkpoint", "2", [], None), ("gptrs-archive", "2", [], None)],
    "mag": [("mag", "1", [], NUMBER), ("mag", "100", [], NUMBER), ("mag", "snapshot", [], None)],
    "npy": [("npz", None, [], None)],
    "npz": [("npz", None, [], None)],
    "safetensors": [("safetensors", None, [], TEXT)],
    "ztensor": [("ztensor", "1.0", [], TEXT), ("ztensor", "1.1", ["--digest", "crc32c"], TEXT),
                ("ztensor", "1.2", ["--digest", "sha256", *ZSTD], TEXT),
                ("ztensor", "1.2", [], NUMBER[:1] + (7,)), ("ztensor", "2", [], TEXT),
                ("ztensor", "2", ZSTD, TEXT)],
}
LONGEST = 1000


def heft(*args):
    return HEFT.run(*args)


def read_back(name, version, options, path):
    if name == "safetensors":
        got = read_safetensors.read(path, of_heft=True)
        del got["data"]
        return got
    if name == "gguf":
        got = read_gguf.read(path.read_bytes())
        got["metadata"] = {k: [t, v]
                           for k, t, v in read_gguf.parse(path.read_bytes())[2]}  # with types
        return got
    if name == "ztensor" and version != "2":
        return read_ztensor1.read(path, version, None,
                                  options[1] if "--digest" in options else read_ztensor1.ANY)
    if name == "ztensor":
        return read_ztensor2.read(path, read_ztensor2.FLOOR if options else None, read_ztensor2.ANY)
    reader = {"mag": read_mag, "embd": read_embd, "burnpack": read_burnpack, "npz": read_npz}
    return reader.get(name, read_gptrs).read(path.read_bytes())


def normalise(got):
    """Return metadata as a mapping, and tensors sorted by name."""
    if isinstance(got.get("metadata"), list):
        got["metadata"] = {m["key"]: m.get("bits", m.get("value")) for m in got["metadata"]}
    got["tensors"] = sorted(got["tensors"], key=lambda t: t["name"])
    return json.loads(json.dumps(got, default=repr))


def can_rename(name):
    return "=" not in name and "\0" not in name and len(name) < LONGEST


def renamed(want, old, new):
    tensors = [{**t, "name": new} if t["name"] == old else t for t in want["tensors"]]
    tensors = [{k: v for k, v in t.items() if k != "base_id"} for t in tensors]
    meta = want["metadata"] if "metadata" in want else {}
    meta = {
        k.replace("/" + old, "/" + new) if k.startswith("heft.") and k.endswith("/" + old) else k: v
        for k, v in meta.items()
    }  # attributes that Heft stores as metadata because the format has no field
    return {
        **want, "tensors": sorted(tensors, key=lambda t: t["name"]),
        **({"metadata": meta} if meta else {})
    }


def differences(want, got):
    for key in sorted(set(want) | set(got)):
        if want.get(key) != got.get(key):
            yield f"{key}: {str(want.get(key))[:200]} became {str(got.get(key))[:200]}"


def edit(path, want, target, args, reader=None):
    to, version, options, _ = target
    p = heft("edit", *args, "--", str(path))
    if p.returncode:
        return [f"edit {args} ended with {p.returncode}: {p.stderr.strip()[:300]}"]
    if heft("verify", str(path)).returncode:
        return [f"after edit {args} verify finds a fault"]
    return list(
        differences(
            want,
            normalise(
                reader(path.read_bytes()) if reader else read_back(to, version, options, path))))


# ---- texts and identities -------------------------------------------------------------------

TOKENS = {
    "few.txt": ["[UNK]", "the", "[PAD]", "##s"],
    "many.txt": ["[CLS]", *(f"token{i}" for i in range(500))]
}
BARE = gen_gptrs.GPT
CONFIGS = {
    "short.json": {"kind": "k"}, "long.json": {"kind": "k", "config": {"text": "x" * 3000}},
    "bare.json": BARE
}


def write_texts(folder):
    for name, tokens in TOKENS.items():
        (folder / name).write_text("".join(t + "\n" for t in tokens), encoding="utf-8")
    for name, config in CONFIGS.items():
        (folder / name).write_text(json.dumps(config), encoding="utf-8")


def edit_vocabulary(path, first, target):
    for name, tokens in TOKENS.items():
        special = [tokens.index(n) if n in tokens else read_embd.NONE for n in read_embd.NAMES]
        want = {**first, "vocab": tokens, "special": special}
        yield edit(path, want, target, ["--vocab", str(path.parent / name)])
    if target[1] == "1.0":
        yield edit(path, {**want, "special": [3, *special[1:3], 500, read_embd.NONE]}, target,
                   ["--special", "sep=500,pad=3"])
        want = {
            **first, "vocab": TOKENS["few.txt"],
            "special": [1, 0, read_embd.NONE, read_embd.NONE, 3]
        }
        yield edit(path, want, target,
                   ["--vocab", str(path.parent / "few.txt"), "--special", "mask=3,pad=1"])


def edit_gptrs(path, first, target):
    want, checkpoint = first, first["checkpoint"]
    for name, config in CONFIGS.items() if checkpoint else ():
        want = {**first, "config": {"kind": "gpt", "config": config} if config is BARE else config}
        yield edit(path, want, target, ["--config", str(path.parent / name)])
    names = sorted(t["name"] for t in first["tensors"])
    for value in ("true", "false"):
        want = {**want, "tensors": [{**t, "flag": value == "true"} for t in want["tensors"]]}
        yield edit(path, want, target, ["--requires-grad", value])
    one = next((n for n in names if can_rename(n) and not set(n) & set("*?[\\")), None)
    if one is not None:
        want = {**want, "tensors": [{**t, "flag": t["name"] == one} for t in want["tensors"]]}
        yield edit(path, want, target,
                   ["--requires-grad", one + "=true", "--requires-grad", "unset"])
    if checkpoint:
        yield edit(path, want, target, ["--base-ids", "none"],
                   lambda data: read_gptrs.read(data, has_ids=False))
        yield edit(path, want, target, ["--base-ids", "name"])


FURTHER_EDITS = {
    "embd": edit_vocabulary, "gptrs-checkpoint": edit_gptrs, "gptrs-archive": edit_gptrs
}


def edit_further(path, first, target):
    return next((c for c in FURTHER_EDITS[target[0]](path, first, target)
                 if c), []) if target[0] in FURTHER_EDITS else []


def check(job):
    path, target, out = job
    to, version, options, setting = target
    title = " ".join(filter(None, [f"{path.parts[-3]}/{path.name} as {to}", version, *options]))
    args = [*(["--format-version", version] if version else []), *options]
    if heft("convert", "--allow-loss", "--to", to, *args, "--", str(path), str(out)).returncode:
        return title, []  # The target cannot represent the model.
    first = normalise(read_back(to, version, options, out))
    if heft("verify", str(out)).returncode:
        return title, []  # verify reports a loss of the conversion.
    names = [t["name"] for t in first["tensors"] if can_rename(t["name"])]
    # The new name sorts last like the old name, so sorted files stay sorted.
    last = max(names, key=lambda n: n.encode()) if names else None
    apply_options, undo_options, edited = [], [], first
    if setting:
        edited = {**edited, "metadata": {**edited["metadata"], "added": setting[1]}}
        apply_options, undo_options = ["--set", setting[0]], ["--unset", "added"]
    if last is not None:
        new = last + "_that_is_longer" * 9
        edited = renamed(edited, last, new)
        apply_options, undo_options = [*apply_options, "--rename", f"{last}={new}"
                                       ], [*undo_options, "--rename", f"{new}={last}"]
    complaints = apply_options and (edit(out, edited, target, apply_options)
                                    or edit(out, first, target, undo_options))
    complaints = complaints or edit_further(out, first, target)
    out.unlink()
    return title, complaints


def check_or_report(job):
    try:
        return check(job)
    except (read_mag.InvalidFile, read_npz.InvalidFile, read_burnpack.InvalidFile,
            read_safetensors.InvalidFile, read_ztensor1.InvalidFile, read_ztensor2.InvalidFile,
            ValueError, KeyError) as e:
        return f"{job[0].name} as {job[1][:2]}", [repr(e)[:300]]


def main():
    with tempfile.TemporaryDirectory() as scratch:
        root = pathlib.Path(scratch)
        for generator in sorted(HERE.glob("gen_*.py")):
            if generator.stem[4:] not in ("samples", "cast_vectors", "nfc_vectors"):
                subprocess.run([sys.executable, generator, root], check=True)
        write_texts(root)
        paths = [p.with_suffix("") for p in sorted(root.glob("*/good/*.json"))]
        jobs = [(p, t) for p in paths for t in TARGETS.get(p.parts[-3], [])]
        jobs = [(*job, root / f"out{i}") for i, job in enumerate(jobs)]
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            return tap.report(pool.map(check_or_report, jobs)) or HEFT.end()


if __name__ == "__main__":
    HEFT = commands.Commands(sys.argv[1])
    sys.exit(main())
