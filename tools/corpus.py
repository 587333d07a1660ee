#!/usr/bin/env python3
"""corpus.py OUT.tar.xz [SAMPLES]: pack the samples of the tests for other implementations.

SAMPLES is a folder that tests/py/gen_samples.py has filled; without it the generators run. The same
samples give the same archive: members are sorted, and have one time and owner. Prints a summary."""
import io
import json
import pathlib
import subprocess
import sys
import tarfile
import tempfile

TREE = pathlib.Path(__file__).resolve().parents[1]
OWN = {
    "LICENSE": "LICENSE", "README.md": "tests/corpus/about.md", "run.py": "tests/corpus/judge.py",
    "numpy_reader.py": "tests/corpus/numpy_reader.py",
    "numpy_known.txt": "tests/corpus/numpy_known.txt"
}
TOP = "heft-corpus"


def generate(folder):
    generators = [p for p in sorted((TREE / "tests/py").glob("gen_*.py"))
                  if "samples import" in p.read_text()]
    for generator in generators:
        subprocess.run([sys.executable, generator, folder], check=True, stdout=subprocess.DEVNULL)


def is_model(facts):
    """Readers differ on files of PyTorch that hold settings, but no tensor."""
    want = json.loads(facts.read_text())
    return want.get("format") != "torch" or want.get("tensors") != []


def members(samples):
    """Yield (name, bytes, mode) of all files of the archive, sorted by name."""
    paths = {name: TREE / path for name, path in OWN.items()}
    for facts in samples.glob("*/*/*.json"):
        path = facts.with_suffix("")
        if facts.parent.name in ("good", "bad") and path.is_file() and is_model(facts):
            paths |= {p.relative_to(samples).as_posix(): p for p in (path, facts)}
    for name in sorted(paths):
        yield name, paths[name].read_bytes(), 0o755 if name.endswith(".py") else 0o644


def pack(out, samples):
    counts = {"good": 0, "bad": 0}
    with tarfile.open(out, "w:xz", format=tarfile.PAX_FORMAT, preset=1) as tar:
        for name, data, mode in members(samples):
            info = tarfile.TarInfo(f"{TOP}/{name}")
            info.size, info.mode = len(data), mode
            tar.addfile(info, io.BytesIO(data))
            kind = name.split("/")[1] if "/" in name and not name.endswith(".json") else None
            counts[kind] = counts.get(kind, 0) + 1
    return counts


def main():
    out = pathlib.Path(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder:
        samples = pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else folder)
        if len(sys.argv) == 2:
            generate(samples)
        counts = pack(out, samples)
    print(f"{out}: {counts['good']} good and {counts['bad']} bad files")
    return 0


if __name__ == "__main__":
    sys.exit(main())
