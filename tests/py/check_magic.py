#!/usr/bin/env python3
"""check_magic.py HEFT SAMPLES: compare file(1), with share/heft/magic, to Heft.

Every sample that Heft opens must get the MIME type of the format, and the generation if the text
names generations; other files must get no such type. TAP on stdout; skipped without file."""
import collections
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import tap  # noqa: E402

MAGIC = ROOT / "share/heft/magic"
TYPES = {"npy": "npy", "npz": "npz", "torch": "pytorch"}
# Texts of file for versions of Heft, where the two differ.
VERSIONS = {
    ("ztensor", "1.1"): "1.1 or 1.2", ("ztensor", "1.2"): "1.1 or 1.2",
    ("ztensor", "2"): "version 2", ("embd", "simple"): "simple stream",
    ("mag", "snapshot"): "(snapshot)", ("gptrs-checkpoint", "2-bincode"): "version 2",
    ("gptrs-archive", "2-bincode"): "version 2",
}
NAMES_VERSION = {"ztensor", "embd", "mag", "gguf", "gptrs-checkpoint", "gptrs-archive"}
# Formats that other members, prefixes or compression hide from a program that reads the beginning.
HIDDEN = {"torch", "npz", "burn-record", "flax", "safetensors"}
PLAIN = {"application/octet-stream", "application/x-tar", "application/zip", "application/gzip",
         "text/plain"}  # the last: pickles of protocol 0
OTHERS = {
    "empty": b"", "text": b"hello, world\n", "json": b'{"a": 1}', "zeros": bytes(4096),
    "html": b"<!DOCTYPE html><html></html>", "gzip": b"\x1f\x8b\x08\x00" + bytes(20),
    "zip": b"PK\x03\x04" + bytes(22) + b"\x08\x00\x00\x00note.txt", "elf": b"\x7fELF" + bytes(60),
    "pickle": b"\x80\x04}q\x00.", "number": (20).to_bytes(8, "little") + b'{"data": [1, 2, 3]} ',
}


def run(*command):
    return subprocess.run([str(c) for c in command], capture_output=True, text=True, check=False)


def file_says(paths):
    """Return {path: (MIME type, text)}."""
    out = collections.defaultdict(list)
    for option in (["--mime-type"], []):
        p = run("file", "-m", MAGIC, "-N", "-0", "-0", "-r", *option, *paths)
        fields = p.stdout.split("\0")
        for path, text in zip(fields[::2], fields[1::2]):
            out[path.lstrip("\n")].append(text.strip())
    return out


def heft_says(heft, path):
    p = run(heft, "ls", "--json", "-q", path)
    try:
        found = json.loads(p.stdout)
    except ValueError:
        return None, None
    return found["format"], found["version"]


def complaints(name, version, said):
    mime, text = said
    if not mime.endswith("/x-" + TYPES.get(name, name)):
        yield f"{name} is {mime} ({text})"
    elif name in NAMES_VERSION and version:
        want = VERSIONS.get((name, version), version.split(" ")[0].removesuffix("-be"))
        if want not in text:
            yield f"{name} {version} is {text}"


def samples(heft, folder):
    """Yield a result for each format among the samples."""
    paths = sorted(p for p in folder.glob("*/good/*") if p.is_file())
    said, wrong, seen, hidden = file_says(paths), collections.defaultdict(list), {}, {}
    for path in paths:
        name, version = heft_says(heft, path)
        if not name:
            continue
        seen[name] = seen.get(name, 0) + 1
        mime = said[str(path)][0]
        if name in HIDDEN and mime in PLAIN:
            hidden[name] = hidden.get(name, 0) + 1
            continue
        wrong[name] += [f"{path.name}: {c}" for c in complaints(name, version, said[str(path)])]
    for name, count in sorted(seen.items()):
        yield f"file names {count - hidden.get(name, 0)} of {count} samples of {name}", wrong[name]
        if hidden.get(name, 0) > count * 2 // 3:
            yield f"most samples of {name}", ["file does not know them"]


def written(heft, scratch):
    """Yield a result for each generation that Heft writes: none may be missed."""
    model = scratch / "model.safetensors"
    run(sys.executable, ROOT / "tools/make_model.py", model, "--layers", "1", "--hidden", "16")
    formats = json.loads(run(heft, "formats", "--json").stdout)["formats"]
    for each in formats:
        for version in each["versions"] or [None]:
            if not each["write"]:
                continue
            out = scratch / f"{each['name']}-{version}"
            more = ["--format-version", version] if version else []
            one = ["--keep", "norm.weight"] if each["name"] == "npy" else []
            p = run(heft, "convert", "-q", "--allow-loss", "-t", each["name"], *more, *one, model,
                    out)
            title = f"{each['name']} {version or ''}".strip()
            if p.returncode:
                yield f"{title} is written", p.stderr.splitlines()
                continue
            said = file_says([out])[str(out)]
            yield f"file knows {title}: {said[1]}", list(
                complaints(*heft_says(heft, out), said))


def others(scratch):
    for name, content in OTHERS.items():
        path = scratch / f"other-{name}"
        path.write_bytes(content)
        mime = file_says([path])[str(path)][0]
        yield f"{name} is none of these formats", [mime] if "/x-" in mime and mime not in (
            "inode/x-empty", "application/x-empty") else []


def results(heft, folder, scratch):
    shutil.copy(MAGIC, scratch / "magic")
    p = subprocess.run(["file", "-C", "-m", "magic"], cwd=scratch, capture_output=True, text=True,
                       check=False)
    yield "file compiles the magic without a word", (p.stdout + p.stderr).splitlines()
    yield from samples(heft, folder)
    yield from written(heft, scratch)
    yield from others(scratch)


def main():
    if not shutil.which("file"):
        print("1..0 # SKIP file is not installed")
        return 0
    with tempfile.TemporaryDirectory(prefix="heft-magic-") as scratch:
        return tap.report(results(pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]),
                                  pathlib.Path(scratch)))


sys.exit(main())
