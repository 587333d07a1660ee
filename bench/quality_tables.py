#!/usr/bin/env python3
"""quality_tables.py MODEL TITLE [--write]: the tables of docs/quantisation.md about losses.

What each block type and each scheme loses on the numbers of a model, and how fast a core encodes
and decodes block types. MODEL is any model with floating-point weights of at least two dimensions;
their numbers become matrices of 256 columns in the order in which they are stored, since few small
models have rows that all types can store. TITLE names it in the page. Heft itself measures the
losses (--verify-quality, which tests judge by NumPy). All figures are of one run; --write puts them
into the page, between two marks."""
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import textwrap

from harness import HEFT, ROOT, machine, program
from indexes import find_ggml
from publish import describe

sys.path.insert(0, str(ROOT / "tests/cli"))
from samples import write_safetensors  # noqa: E402

PAGE = ROOT / "docs/quantisation.md"
BEGIN, END = "<!-- losses: written by bench/quality_tables.py -->", "<!-- end of losses -->"
COLUMNS, LEAST = 256, 16 * 256  # least numbers of a tensor
TYPES = ("q8_0", "q6_k", "q5_1", "q5_k", "q5_0", "q4_1", "q4_k", "iq4_nl", "q4_0", "nvfp4",
         "iq4_xs", "mxfp4", "q3_k", "q2_k", "q2_0", "tq2_0", "tq1_0", "q1_0")
METHODS = ("fp8", "fp8:channel", "mxfp8", "mxfp4", "nvfp4", "nvfp4:modelopt", "int8", "int8:64",
           "int4", "int4:32", "int4:channel")
SPEED_MIB, TURNS = 8, 7
MIXES = {"q3_k": "q3_k_s", "q4_k": "q4_k_s", "q5_k": "q5_k_s"}


def heft(*args):
    p = subprocess.run([HEFT, *map(str, args)], capture_output=True, text=True, check=False)
    if p.returncode:
        sys.exit(f"heft {' '.join(map(str, args))}: {p.stderr}")
    return p.stdout


def matrices(model, folder):
    """Write the weights as matrices of f32; return the file, their number and that of numbers."""
    copy = folder / "copy.safetensors"
    heft("convert", "--cast", "f32", model, copy)
    raw, tensors = copy.read_bytes(), {}
    size = int.from_bytes(raw[:8], "little")
    for name, t in json.loads(raw[8:8 + size]).items():
        begin, end = (8 + size + at for at in t.get("data_offsets", (0, 0)))
        rows = (end - begin) // 4 // COLUMNS
        if name != "__metadata__" and t["dtype"] == "F32" and len(t["shape"]) > 1 and (
                rows * COLUMNS >= LEAST):
            data = raw[begin:begin + rows * COLUMNS * 4]
            tensors[f"blk.{len(tensors)}.ffn_up.weight"] = ("F32", [rows, COLUMNS], data)
    (folder / "in").mkdir()
    out = folder / "in/model.safetensors"
    write_safetensors(out, tensors)
    return out, len(tensors), sum(t[1][0] * COLUMNS for t in tensors.values())


def losses(source, out, *args):
    """Return the figures of the whole model, and the bytes of the written weights."""
    total = json.loads(heft("convert", "-f", "--verify-quality", "--json", *args, source, out))
    written = json.loads(heft("ls", "--json", "--raw-tensors", out))["tensors"]
    return total["total"], sum(t["nbytes"] for t in written)


def percent(nmse):
    """Return the root of the squares' ratio, in percent."""
    return f"{100 * nmse**0.5:.2g}"


def rate(runs, column):
    """Return numbers per second of a core, in millions."""
    return f"{SPEED_MIB * 2**20 / 4 / 1e6 / statistics.median(r[column] for r in runs[1:]):.0f}"


def block_types(source, folder, numbers):
    library = find_ggml()
    yield "| type | bits per weight | error, % | cosine | encoding, M/s | of ggml | decoding, M/s |"
    yield "|---|---|---|---|---|---|---|"
    for name in TYPES:
        method = ("--quantize", name + ":gguf") if name in ("nvfp4", "mxfp4") else (
            "--quantize", MIXES.get(name, name), "--pure", "--set", "general.architecture=llama")
        total, size = losses(source, folder / "out.gguf", *method)
        encode = library and program("encode", library, name, SPEED_MIB, TURNS)
        decode = library and program("blocks", library, name, SPEED_MIB, TURNS)
        times = encode and statistics.median(theirs / ours for ours, theirs, _ in encode[1:])
        yield (f"| {name} | {8 * size / numbers:.5g} | {percent(total['nmse'])} | "
               f"{total['cosine']:.6f} | {rate(encode, 0) if encode else ''} | "
               f"{f'{times:.1f}' if times else ''} | {rate(decode, 0) if decode else ''} |")


def schemes(source, folder, numbers):
    yield "| method | bits per weight | error, % | largest difference | cosine |"
    yield "|---|---|---|---|---|"
    for name in METHODS:
        target = folder / name.replace(":", "-")
        target.mkdir()
        total, size = losses(source, target / "model.safetensors", "--quantize", name)
        yield (f"| `{name}` | {8 * size / numbers:.4g} | {percent(total['nmse'])} | "
               f"{total['max_abs']:.3g} | {total['cosine']:.6f} |")


def text(model, title):
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        source, count, numbers = matrices(model, folder)
        about = describe({**machine(folder), "quick": False})
        yield textwrap.fill(
            f"Of {title}: {count} weights, {numbers:,} numbers, as matrices of {COLUMNS} columns, "
            "without an imatrix. The error is the root of the summed squares of the differences, "
            "in percent of that of the written numbers. Speeds are millions of numbers per second "
            "of one core's processor time, on numbers like weights; ggml's are its reference "
            f"functions. {about}.", 118)
        yield ""
        yield from block_types(source, folder, numbers)
        yield ""
        yield from schemes(source, folder, numbers)


def main():
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    lines = "\n".join(text(*sys.argv[1:3]))
    if sys.argv[3:] != ["--write"]:
        print(lines)
        return
    before, marked, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    _, ended, after = rest.partition(END)
    if not marked or not ended:
        sys.exit(f"{PAGE.name} lacks the marks between which the tables stand")
    PAGE.write_text(f"{before}{BEGIN}\n\n{lines}\n\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
