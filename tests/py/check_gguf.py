#!/usr/bin/env python3
"""check_gguf.py HEFT SHARED: compare GGUF metadata and blocks with an independent reader.

The metadata of every good sample must be listed completely, and must keep types and order in a
conversion. Blocks must decode to the numbers that the definition of the type gives. TAP on
stdout."""
import json
import math
import pathlib
import random
import struct
import subprocess
import sys
import tempfile

import gen_gguf
import ggml_blocks
import read_gguf
from samples import Samples

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import tap  # noqa: E402

NOT_FINITE = {math.inf: "Infinity", -math.inf: "-Infinity"}


def heft(*args, codes=(0,)):
    p = subprocess.run([HEFT, *map(str, args)], capture_output=True, check=False)
    if p.returncode not in codes:
        raise AssertionError(f"{args[0]} ended with {p.returncode}: {p.stderr.decode()[:200]}")
    return p.stdout


def as_json(kind, value):
    """Return a metadata value as Heft prints it in JSON."""
    if kind == "arr":
        return [as_json(value[0], v) for v in value[1]]
    if kind in ("f32", "f64"):
        return NOT_FINITE.get(value, value)
    return value.hex() if isinstance(value, bytes) else value


def lists_metadata(path):
    _, _, meta, _, _ = read_gguf.parse(path.read_bytes())
    want = {k: as_json(kind, v) for k, kind, v in meta if not k.startswith("heft.")}
    got = {
        k: v for k, v in json.loads(heft("info", "--json", path))["metadata"].items()
        if not k.startswith("heft.")
    }
    if got != want:
        yield f"metadata are {str(got)[:300]}"
    if list(got) != list(want):
        yield "the order of metadata differs"


def kinds(meta):
    """Return the types of metadata, without those of empty lists, which a conversion may change."""
    def kind_of(kind, value):
        if kind != "arr":
            return kind
        return kind, value[0] if value[1] and value[0] != "arr" or value[0] in LETTERS else [
            kind_of("arr", v) for v in value[1]
        ]
    return [(k, kind_of(kind, v)) for k, kind, v in meta if not k.startswith("heft.")]


LETTERS = gen_gguf.LETTERS


def keeps_kinds(path):
    with tempfile.TemporaryDirectory() as scratch:
        for version in ("3", "2"):
            out = pathlib.Path(scratch, f"out{version}.gguf")
            heft("convert", "--allow-loss", "--format-version", version, path, out)
            got, want = read_gguf.parse(out.read_bytes()), read_gguf.parse(path.read_bytes())
            if got[0] != int(version) or got[1]:
                yield f"version {got[0]} was written"
            if kinds(got[2]) != kinds(want[2]):
                yield f"kinds are {str(kinds(got[2]))[:200]}"
            if got[3] != [(n, t, s or [1], raw) for n, t, s, raw in want[3]]:
                yield "the tensors differ"


def decodes(name):
    """Compare decoded values with those of --cast, stats and show."""
    rng = random.Random(name)
    elements = ggml_blocks.BLOCKS[name][1]
    shape = (3, 8 * elements)
    raw = ggml_blocks.draw(name, 3 * 8 * elements, rng)
    values = ggml_blocks.decode(name, raw)
    with tempfile.TemporaryDirectory() as scratch:
        for big in (False, True) if name in ggml_blocks.NUMBERS else (False,):
            path, out = pathlib.Path(scratch,
                                     "in.gguf"), pathlib.Path(scratch, f"{big}.safetensors")
            path.write_bytes(gen_gguf.File([("t", name, shape, raw)], big=big).bytes())
            heft("convert", "--cast", "*=f32", "--allow-loss", path, out)
            if heft("cat", out, "t") != struct.pack(f"<{len(values)}f", *values):
                yield "values cast to f32 differ"
            yield from compare_stats(
                json.loads(heft("stats", "--json", path))["tensors"][0], values)
            if heft("cat", path, "t") != raw:
                yield "bytes differ"
        if json.loads(heft("diff", "--json", path, out, codes=(0, 1)))["equal"] is True:
            yield "diff reports blocks and f32 as equal"
        first = heft("show", path, "t").decode().replace("[", " ").split()[0]
        if abs(float(first) - values[0]) > 1e-3 * max(map(abs, values)):
            yield f"the first value is shown as {first}, not {values[0]}"


def compare_stats(got, values):
    if got["min"] != min(values) or got["max"] != max(values):
        yield f"values from {got['min']} to {got['max']}, not {min(values)} to {max(values)}"
    if not math.isclose(got["mean"],
                        math.fsum(values) / len(values), rel_tol=1e-9,
                        abs_tol=1e-9 * max(map(abs, values))):
        yield f"the mean is {got['mean']}"


def differs_in_one():
    """diff compares values, not bytes."""
    raw = ggml_blocks.draw("q4_k", 512, random.Random(1))
    changed = bytearray(raw)
    changed[20] ^= 1
    gap = [
        abs(a - b)
        for a, b in zip(ggml_blocks.decode("q4_k", raw), ggml_blocks.decode("q4_k", bytes(changed)))
    ]
    with tempfile.TemporaryDirectory() as scratch:
        paths = [pathlib.Path(scratch, n) for n in ("a.gguf", "b.gguf")]
        for path, data in zip(paths, (raw, bytes(changed))):
            path.write_bytes(gen_gguf.File([("t", "q4_k", (2, 256), data)]).bytes())
        (found,) = json.loads(heft("diff", "--json", *paths, codes=(1,)))["changed"]
    if found["differing"] != 1 or found["max_abs"] != max(gap):
        yield f"{found}, not one difference of {max(gap)}"


def opaque_is_not_cast():
    t = gen_gguf.tensor("t", "f32", (1, 256))
    with tempfile.TemporaryDirectory() as scratch:
        path, out = pathlib.Path(scratch, "in.gguf"), pathlib.Path(scratch, "out.gguf")
        path.write_bytes(gen_gguf.File([t]).replace(0, number=43).bytes())
        heft("convert", "--cast", "t=f16", path, out, codes=(5,))
        if out.exists():
            yield "an output file exists"


def many_texts():
    """Read and copy 300,000 texts; each takes one node of the index and is not copied."""
    texts = [f"token {i}" for i in range(300_000)]
    meta = [("general.architecture", "str", "x"), ("tokenizer.ggml.tokens", "arr", ("str", texts)),
            ("end", "u8", 1)]
    with tempfile.TemporaryDirectory() as scratch:
        path, out = pathlib.Path(scratch, "in.gguf"), pathlib.Path(scratch, "out.gguf")
        path.write_bytes(gen_gguf.File([gen_gguf.tensor("t", "f32", (3,))], meta).bytes())
        found = json.loads(heft("info", "--json", "--verbose", path))
        if found["metadata"]["tokenizer.ggml.tokens"] != texts or found["vocabulary"][
                "tokens"] != len(texts):
            yield "texts differ"
        if found["memory"] > 48 * len(texts):
            yield f"the index takes {found['memory']} bytes"
        heft("convert", path, out)
        if out.read_bytes() != path.read_bytes():
            yield "the written file differs"


def shared_files():
    """Check published files next to the checkout; Heft must report the first damaged byte."""
    for path, at in (("damaged/ggml-vocab-bert-bge.gguf", 208), ("damaged/ggml-vocab-gpt-2.gguf",
                                                                 335)):
        if not (SHARED / path).exists():
            continue
        p = subprocess.run([HEFT, "ls", SHARED / path], capture_output=True, text=True, check=False)
        if p.returncode != 3 or f"at byte {at}" not in p.stderr:
            yield f"{path}: {p.returncode}, {p.stderr}"
    for path in sorted((SHARED / "restored").glob("*.gguf")):
        yield from lists_metadata(path)
        yield from keeps_kinds(path)


def run(title, check, *args):
    try:
        return title, list(check(*args))
    except (AssertionError, read_gguf.InvalidFile) as e:
        return title, [str(e)[:300]]


def main():
    results = []
    with tempfile.TemporaryDirectory() as root:
        samples = Samples(root, "gguf")
        for write in (gen_gguf.good_meta, gen_gguf.good_types, gen_gguf.good_shapes,
                      gen_gguf.good_places, gen_gguf.good_vocabularies, gen_gguf.good_attributes):
            write(samples)
        for path in sorted(samples.dir.glob("good/*.gguf")):
            results.append(run(f"metadata of {path.name}", lists_metadata, path))
            results.append(run(f"{path.name} written again", keeps_kinds, path))
    results += [run(f"values of {name}", decodes, name) for name in ggml_blocks.DECODERS]
    results.append(run("difference of blocks", differs_in_one))
    results.append(run("many texts", many_texts))
    results.append(run("opaque blocks", opaque_is_not_cast))
    results.append(run("files beside the checkout", shared_files))
    return tap.report(results)


HEFT, SHARED = sys.argv[1], pathlib.Path(sys.argv[2], "data")
sys.exit(main())
