#!/usr/bin/env python3
"""check_damage.py DAMAGE COMMANDS SAMPLES [--full | --seconds N] [--seed N]: run tests/damage.c on
a small file of each generation of each format.

Heft writes a file of each generation that it can write. The generators of samples write the other
files: the smallest sample of each generation and the samples of MORE. TAP on stdout."""
import json
import pathlib
import subprocess
import sys
import tempfile

import commands
import gen_shards as gen

SMALLEST, LARGEST = 140, 20000  # bytes of a sample; smaller samples are nearly empty
# The type of .mag tensors with code 3 depends on the length of the file: no sample has code 3.
MORE = [  # other byte orders, encodings and checksums of the same generation
    "flat_big_endian.gguf", "vocabulary.gguf", "version2.npy", "version3.npy", "f32_big.npy",
    "deflated_plain.npz", "stored_plain.npz", "zip64.npz", "crc_ieee_skipped.mag", "chk.bin",
    "ztensor01_zstd.zt", "ztensor10_zstd_crc32c.zt", "ztensor10_csr_zstd_sha256.zt",
    "ztensor12_crc.zt", "small.weights", "special_before.weights", "legacy_protocol4.pt",
    "python2_lines.pt", "old_f16.mpk.gz"
]
OPTIONS = {  # further files of a generation that Heft writes
    ("ztensor", "1.0"): (["--digest", "sha256", "--compress", "zstd"],),
    ("ztensor", "1.1"): (["--digest", "crc32c"],),
    ("ztensor", "1.2"): (["--digest", "crc32c"], ["--digest", "sha256", "--compress", "zstd"]),
    ("ztensor", "2"): (["--digest", "xxh3", "--compress", "zstd"],),
}


def written(heft, folder):
    """Yield files that Heft writes: every generation, with OPTIONS."""
    model = folder / "model.safetensors"
    values = bytes(range(1, 25))
    model.write_bytes(gen.pack({"a": ("F32", [2, 3], values), "b": ("F16", [4], values[:8])}))
    formats = json.loads(heft.run("formats", "--json").stdout)["formats"]
    for f in (f for f in formats if f["write"]):
        for version in f["versions"] or [None]:
            for more in ([], *OPTIONS.get((f["name"], version), ())):
                title = "-".join(filter(None, [f["name"], version, *more[1::2]]))
                out = folder / f"{title}{f['suffixes'][0]}"
                args = ["convert", "--allow-loss", "--to", f["name"], *more, str(model), str(out)]
                args += ["--align", "4096"] if (f["name"], version) == ("ztensor", "2") else []
                p = heft.run(*args, *(["--format-version", version] if version else []))
                if p.returncode:
                    raise RuntimeError(f"{out.name}: {p.stderr}")
                yield out


def samples(heft, root):
    """Yield the smallest sample with data of each generation, and the samples of MORE."""
    smallest, more = {}, []
    for facts in sorted(root.glob("*/good/*.json")):
        path = facts.with_suffix("")
        size = path.stat().st_size
        if path.name in MORE:
            more.append(path)
        if not SMALLEST <= size <= LARGEST or "code3" in path.name:
            continue
        p = heft.run("ls", "--json", "--", str(path))
        listing = json.loads(p.stdout) if p.returncode == 0 else {"tensors": []}
        if any(t["nbytes"] for t in listing["tensors"]):
            key = listing["format"], listing["version"], path.suffix
            smallest[key] = min(smallest.get(key, (size, path)), (size, path))
    missing = set(MORE) - {path.name for path in more}
    if missing:
        raise RuntimeError(f"there are no samples {missing}")
    return sorted({path for _, path in smallest.values()} | set(more))


def main():
    program, server, root, *options = sys.argv[1:]
    heft = commands.Commands(server)
    with tempfile.TemporaryDirectory(prefix="heft-damage-") as folder:
        files = [*written(heft, pathlib.Path(folder)), *samples(heft, pathlib.Path(root))]
        failed = heft.end()
        return subprocess.run([program, *options, *files], check=False).returncode or failed


if __name__ == "__main__":
    sys.exit(main())
