#!/usr/bin/env python3
"""check_modules.py HEFT MODULE...: a build without these modules does the rest, and names them.

The judge of a conversion is tests/py/read_safetensors.py. TAP on stdout."""
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "cli"), str(HERE.parents[1] / "tools")]
import samples  # noqa: E402
import tap  # noqa: E402

HEFT = pathlib.Path(sys.argv[1]).resolve()
CANNOT = 5
ROWS = (HERE.parents[1] / "cli/commands/commands.def").read_text().split("\n")
COMMANDS = dict(row[2:-1].split(", ") for row in ROWS if row)  # the module of each command
# Options and names of a module that commands of the core take.
USES = {
    "map": [("ls", "--map", "auto", "in.safetensors"),
            ("convert", "--map", "auto", "in.safetensors", "mapped.safetensors")],
    "quantise": [("convert", "--cast", "f32=q8_0", "in.safetensors", "cast.safetensors")] + [
        ("convert", *options, "in.safetensors", "quantised.safetensors") for options in (
            ["--quantize", "fp8"], ["--quantize", "q4_k_m"], ["--requantize"], ["--allow-nan"],
            ["--verify-quality"], ["--dequantize"], ["--tensor-type", "w=f16"], ["--pure"],
            ["--token-embedding-type", "f16"], ["--output-tensor-type", "f16"],
            ["--leave-output-tensor"], ["--imatrix", "x"])],
    "remote": [("ls", "hub:"), ("ls", "hub:gpt2"), ("info", "hf://a/b"), ("cat", "s3://a/b", "w"),
               ("verify", "--hub", "in.safetensors")],
    "move": [("convert", "--inline", "in.onnx", "out.onnx"),
             ("convert", "--external-data", "data", "in.onnx", "out.onnx")],
    "share": [("convert", "--share", "1/2", "in.safetensors", "out.safetensors"),
              ("convert", "--finish", "in.safetensors", "out.safetensors"),
              ("convert", "--abort", "in.safetensors", "out.safetensors"),
              ("merge", "--share", "auto", "in.safetensors", "out.safetensors"),
              ("verify", "--share", "1/2", "in.safetensors"),
              ("verify", "--join", "records", "in.safetensors")],
    "sign": [("verify", "--signature", "s", "--public-key", "k", "in.safetensors")],
}


def heft(*args, folder=None):
    p = subprocess.run([HEFT, *args], cwd=folder, capture_output=True, text=True, check=False)
    return p.returncode, p.stdout, p.stderr


def listed():
    """Return the commands that the help lists."""
    code, out, err = heft("--help")
    rows = [line.split()[0] for line in out.splitlines() if line.startswith("  ")]
    return [] if code or err else [row for row in rows if row in COMMANDS]


def refusal_faults(module, uses, folder):
    """Yield how uses of a module that is left out are not refused."""
    for use in uses:
        code, out, err = heft(*use, folder=folder)
        if code != CANNOT or out or f"module '{module}'" not in err or err.count("\n") != 1:
            yield f"heft {' '.join(use)}: {code}, {out!r}, {err!r}"


def refusals(module, folder):
    """Yield faults of all commands and options of a module."""
    names = [c for c, m in COMMANDS.items() if m == module]
    uses = [use for c in names for use in ((c, "x"), (c, "--help"), ("help", c))]
    yield from refusal_faults(module, [*uses, *USES.get(module, [])], folder)


def gguf_refusals(folder):
    """Yield faults of maps to and from GGUF without the module for what is not a tensor."""
    own = folder / "llm"
    own.mkdir()
    shutil.copy(folder / "in.safetensors", own / "model.safetensors")
    (own / "config.json").write_text("{}")
    done = heft("convert", "model.safetensors", "model.gguf", folder=own)
    if done[0]:
        yield f"heft convert: {done}"
    yield from refusal_faults("gguf_texts", [
        ("convert", "--map", "bert", "model.safetensors", "mapped.gguf"),
        ("convert", "--map", "bert:inverse", "model.gguf", "texts/")], own)
    remains = sorted(p.name for p in own.iterdir())
    if remains != ["config.json", "model.gguf", "model.safetensors"]:
        yield f"the folder has {remains}"
    shutil.rmtree(own)


def quantised(folder):
    """Yield faults about a model of fp8 where nothing decodes: it is listed as stored, with a
    warning, and no number of it is taken for another."""
    own = folder / "fp8"
    own.mkdir()
    samples.write_safetensors(own / "m.safetensors", {
        "up.weight": ("F8_E4M3", [2, 2], b"\x38\x40\x44\x48"),
        "up.weight_scale_inv": ("F32", [1, 1], samples.f32(2))})
    code, out, err = heft("ls", "--raw", "m.safetensors", folder=own)
    names = [line.split("\t")[0] for line in out.splitlines()]
    if code or names != ["up.weight", "up.weight_scale_inv"] or "module 'quantise'" not in err:
        yield f"heft ls: {code}, {out!r}, {err!r}"
    yield from refusal_faults("quantise", [
        ("cat", "m.safetensors", "up.weight"), ("show", "m.safetensors", "up.weight")], own)
    code, out, err = heft("convert", "--cast", "f16", "m.safetensors", "o.safetensors", folder=own)
    if code != CANNOT or "would lose the scale" not in err:
        yield f"heft convert: {code}, {out!r}, {err!r}"
    if [p.name for p in own.iterdir()] != ["m.safetensors"]:
        yield "a file was written"
    shutil.rmtree(own)


def tensors(path):
    p = subprocess.run([sys.executable, HERE / "read_safetensors.py", path], capture_output=True,
                       check=True)
    return json.loads(p.stdout)["tensors"]


def converted(folder):
    """Yield differences between a file and its copy without a tensor."""
    samples.write_safetensors(folder / "in.safetensors", {
        "w": ("F32", [2, 2], samples.f32(1, 2, 3, 4)), "n": ("I64", [1], samples.i64(5))})
    code, out, err = heft("ls", "--json", "in.safetensors", folder=folder)
    names = [] if code else [t["name"] for t in json.loads(out)["tensors"]]
    if names != ["w", "n"] or err:
        yield f"heft ls: {code}, {out!r}, {err!r}"
    done = heft("convert", "--drop", "n", "in.safetensors", "out.safetensors", folder=folder)
    if done != (0, "", ""):
        yield f"heft convert: {done}"
        return
    before, after = (tensors(folder / name) for name in ("in.safetensors", "out.safetensors"))
    if after != [t for t in before if t["name"] == "w"]:
        yield f"{before}, {after}"


def checkpoints(folder):
    """Yield what is wrong about the refusal of a distributed checkpoint."""
    own = folder / "checkpoint"
    own.mkdir()
    for name in (".metadata", "__0_0.distcp"):
        (own / name).write_bytes(b"\x80\x02N.")
    code, out, err = heft("ls", own)
    shutil.rmtree(own)
    if code != CANNOT or out or "this build does not read files of PyTorch" not in err:
        yield f"{code}, {out!r}, {err!r}"


def main():
    left_out = sys.argv[2:]
    expected = [c for c, m in COMMANDS.items() if m not in left_out]
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        results = [
            ("the help lists the commands that are there",
             [] if listed() == expected else [f"{listed()}, not {expected}"]),
            ("a file is listed and converted", list(converted(folder))),
        ] + [(f"what needs '{m}' is refused with its name", list(refusals(m, folder)))
             for m in left_out]
        if "quantise" in left_out:
            results.append(("a quantised model is listed as stored", list(quantised(folder))))
        formats = heft("formats")[1].split()
        if "gguf_texts" in left_out and "map" not in left_out and "gguf" in formats:
            results.append(("maps to and from GGUF are refused", list(gguf_refusals(folder))))
        if "torch" not in formats:
            results.append(("a distributed checkpoint is refused", list(checkpoints(folder))))
        remains = sorted(p.name for p in folder.iterdir())
        results.append(("nothing else is written",
                        [] if remains == ["in.safetensors", "out.safetensors"] else remains))
    return tap.report(results)


sys.exit(main())
