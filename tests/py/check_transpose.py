#!/usr/bin/env python3
"""check_transpose.py HEFT: transpose matrices of every element type of EMBD.

An independent reader checks the files in the specified layout and in the simple stream. TAP on
stdout."""
import pathlib
import subprocess
import sys
import tempfile

import read_embd
from gen_embd import META, SPECIAL, TOKENS, TYPES, File
from samples import SIZES, describe, tensor

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import tap  # noqa: E402

SHAPES = [(3, 5), (1, 7), (7, 1), (64, 64), (65, 33), (300, 257)]


def transposed(t):
    name, dtype, (rows, columns), data = t
    size = SIZES[dtype]
    out = bytearray(len(data))
    for row in range(rows):
        for column in range(columns):
            to, at = (column * rows + row) * size, (row * columns + column) * size
            out[to:to + size] = data[at:at + size]
    return name, dtype, (columns, rows), bytes(out)


def convert(source, out, *options):
    p = subprocess.run(
        [HEFT, "convert", "--to", "embd", "--force", *options,
         str(source), str(out)], capture_output=True, text=True, check=False)
    return [f"convert ended with {p.returncode}: {p.stderr.strip()[:200]}"] if p.returncode else []


def check(source, out, expected, *options):
    wrong = convert(source, out, *options)
    if wrong:
        return wrong
    try:
        got = read_embd.read(out.read_bytes())
    except (read_embd.InvalidFile, ValueError) as e:
        return [str(e)]
    if got["tensors"] != [describe(*t) for t in expected]:
        return ["the tensors differ"]
    return [] if got["vocab"] == TOKENS and got["special"][:2] == list(SPECIAL)[:2] else [
        "the vocabulary differs"
    ]


def results(folder):
    source, out = folder / "in.weights", folder / "out.weights"
    others = [tensor("vector", "f32", (9,)), tensor("cube", "f32", (2, 3, 4))]
    for name, types, options in (("specified", TYPES, []), ("simple", ["f32"],
                                                            ["--format-version", "simple"])):
        tensors = [tensor(f"m.{t}.{r}x{c}", t, (r, c)) for t in types for r, c in SHAPES]
        source.write_bytes(File(tensors + others, meta=META if name == "specified" else []).bytes())
        yield f"{name}: matrices stay as stored", check(source, out, tensors + others, *options)
        all_transposed = [transposed(t) for t in tensors] + others
        yield f"{name}: all matrices transposed", check(source, out, all_transposed, "--transpose",
                                                        "m.*", *options)
        one_transposed = [transposed(t) if t[0] == tensors[0][0] else t for t in tensors + others]
        yield f"{name}: a single matrix transposed", check(source, out, one_transposed,
                                                           "--transpose", tensors[0][0], *options)
        restored = folder / "again.weights"
        wrong = convert(source, out, "--transpose", "m.*", *options)
        yield f"{name}: transposed twice", wrong or check(out, restored, tensors + others,
                                                          "--transpose", "m.*", *options)


def main():
    with tempfile.TemporaryDirectory() as folder:
        return tap.report(results(pathlib.Path(folder)))


HEFT = sys.argv[1]
sys.exit(main())
