#!/usr/bin/env python3
"""check_no_memory.py HEFT SHIM: make each allocation of a command fail once.

At even calls all later allocations fail too. The command must end with status 4, its own message
and an unchanged folder, or succeed with the usual result if it can do without the memory. TAP on
stdout."""
import concurrent.futures
import pathlib
import subprocess
import sys
import tempfile

from boxes import Box, safetensors

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import tap  # noqa: E402

HEFT, SHIM = (str(pathlib.Path(a).resolve()) for a in sys.argv[1:3])
SYSTEM = 4
MAX_CALLS = 2000  # allocations of a command; more would take too long
TARGETS = ["bpk", "gptrs", "gten", "zt", "weights", "mag", "safetensors", "gguf", "npz"]
ALL_RULES = [
    "--rename", "s/layer/l/g", "--cast", "*=f16", "--keep", "layer.*", "--drop", "*.2.*",
    "--sparsify", "*.0.*=csr", "--set", "a=1", "--transpose", "*.1.*"
]


def commands():
    """Yield (name, arguments). The folder has m.safetensors, other.safetensors, c.zt and set/."""
    yield from ((f"convert to {t}", ["convert", "-j1", "--allow-loss", "m.safetensors", f"o.{t}"])
                for t in TARGETS)
    yield "convert to npy", [
        "convert", "-j1", "--allow-loss", "--keep", "layer.0.*", "m.safetensors", "o.npy"
    ]
    yield "convert by rules", [
        "convert", "-j1", "--allow-loss", *ALL_RULES, "m.safetensors", "o.zt"
    ]
    yield "compress", [
        "convert", "-j1", "--compress", "zstd", "--digest", "sha256", "m.safetensors", "o.zt"
    ]
    yield "compress, version 2", [
        "convert", "-j1", "--compress", "zstd", "--format-version", "2", "m.safetensors", "o.zt"
    ]
    yield "decompress", ["convert", "-j1", "c.zt", "o.gguf"]
    yield "convert to a pipe", ["convert", "-j1", "--to", "mag", "--allow-loss", "c.zt", "-"]
    yield "split", ["split", "-j1", "-n", "2", "m.safetensors", "o"]
    yield "split, linked", ["split", "-j1", "-n", "2", "--to", "ztensor", "m.safetensors", "o"]
    yield "merge a set", ["merge", "-j1", "set", "o.gguf"]
    yield "merge files", [
        "merge", "-j1", "--allow-loss", "m.safetensors", "other.safetensors", "o.zt"
    ]
    yield from ((f"edit {f}", ["edit", "--set", "zz=1", "--rename", "layer.0.weight=w", f])
                for f in ("m.safetensors", "c.zt"))
    yield from ((f"append to {f}", [
        "append", "-j1", "--duplicates", "first", *more, f, "other.safetensors", "m.safetensors"
    ]) for f, *more in (["m.safetensors"], ["c.zt", "--rename", "s/layer/x/", "--keep", "layer.*"]))
    yield from ((f"{c} {f}", [c, *more, f])
                for c, *more in (["ls", "-l"], ["ls", "--json"], ["info"], ["verify"], ["hash"],
                                 ["stats"], ["stats", "--json"], ["ids"])
                for f in ("m.safetensors", "c.zt"))
    yield "verify a set", ["verify", "--json", "set"]
    yield "ls of some", ["ls", "--raw", "c.zt", "layer.?.*"]
    yield "diff", ["diff", "m.safetensors", "c.zt"]
    yield "show", ["show", "c.zt", "layer.0.weight"]
    yield "cat", ["cat", "--npy", "c.zt", "layer.0.weight"]
    yield "formats", ["formats"]
    yield "help", ["convert", "--help"]


def unexpected_result(box, got, good):
    _, code, _, messages, after = got
    if got[1:] == good[1:]:
        return None
    text = messages.decode(errors="replace")
    if code != SYSTEM:
        return f"ended with {code}: {text[:200]}"
    if not text.startswith("heft: ") or text.rstrip("\n").endswith(
            ": ") or "no details are available" in text:
        return f"says {text[:200]!r}"
    if after == box.start:
        return None
    return f"left {sorted(set(after) ^ set(box.start)) or 'a changed file'}"


def fail_every_call(box, args):
    good = box.run(args, 0)
    box.reset()
    if good[1]:
        return [f"ends with {good[1]}: {good[3].decode()}"]
    bad = []
    for n in range(1, MAX_CALLS):
        fail_on = n % 2 == 0
        got = box.run(args, n, fail_on)
        if got[4] != box.start:
            box.reset()
        if not got[0]:
            return bad if n > 1 else ["no call for memory was seen"]
        why = unexpected_result(box, got, good)
        if why:
            bad.append(f"call {n}{' and later' if fail_on else ''}: {why}")
        if len(bad) == 5:
            return bad
    return [f"it takes {MAX_CALLS} calls for memory or more"]


def main():
    cases = list(commands())
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        model = root / "model"
        model.mkdir()
        (model / "m.safetensors").write_bytes(
            safetensors([f"layer.{i}.weight" for i in range(3)], format="pt", license="MIT"))
        (model / "other.safetensors").write_bytes(safetensors(["more"], license="GPL"))
        for made in (["convert", "--compress", "zstd", "m.safetensors",
                      "c.zt"], ["split", "-n", "2", "m.safetensors", "set"]):
            subprocess.run([HEFT, *made], cwd=model, check=True)
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            found = pool.map(
                lambda i: fail_every_call(Box(HEFT, SHIM, model, root / f"box{i}"), cases[i][1]),
                range(len(cases)))
            return tap.report((name, bad) for (name, _), bad in zip(cases, found))


sys.exit(main())
