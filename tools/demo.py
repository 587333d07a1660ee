#!/usr/bin/env python3
"""demo.py HEFT [MODEL]: convert a model to every format that Heft writes, and back to safetensors.

Without MODEL a small model is made. If a format cannot represent the model, tensors are cast to f32
or left out, and the row of the format says so. The files stay in .dev/demo."""
import collections
import json
import pathlib
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
CANNOT_CARRY = 5
# Options to try, least intrusive first, with the text for the table.
WAYS = [
    ([], "equal"),
    (["--cast", "*=f32"], "cast to f32"),
    (["--allow-loss"], "with losses"),
    (["--cast", "*=f32", "--allow-loss"], "cast to f32, with losses"),
]


def heft(*args, codes=(0,)):
    p = subprocess.run([HEFT, *map(str, args)], capture_output=True, text=True, check=False)
    if p.returncode not in codes:
        sys.exit(
            f"heft {' '.join(map(str, args))}: ended with {p.returncode}\n{p.stderr}{p.stdout}")
    return p


def convert(source, target, name):
    """Convert with the first options that succeed; return (text of the options, messages of
    heft)."""
    for options, way in WAYS:
        p = heft("convert", source, target, "--to", name, "--force", *options,
                 codes=(0, CANNOT_CARRY))
        if p.returncode == 0:
            return way, p.stderr.splitlines()
    return None, p.stderr.splitlines()


def differences(a, b):
    """Summarise the differences that heft diff finds; "" if there are none."""
    found = json.loads(heft("diff", a, b, "--json", codes=(0, 1)).stdout)
    counts = collections.Counter(c["what"] + " of" for c in found["changed"])
    counts["left out:"], counts["added:"] = len(found["only_in_a"]), len(found["only_in_b"])
    return ", ".join(f"{words} {n}" for words, n in counts.items() if n)


def round_trip(source, folder, fmt):
    """Convert to a format and back; return (row, messages, True if nothing was lost
    unexpectedly)."""
    name = fmt["name"]
    target = folder / ("model" + fmt["suffixes"][0])
    back = folder / f"back-from-{name}.safetensors"
    began = time.monotonic()
    way, messages = convert(source, target, name)
    seconds = time.monotonic() - began
    if way is None:
        return [name, "-", "-", "cannot hold it"], messages, True
    heft("verify", target)
    back_way, _ = convert(target, back, "safetensors")
    heft("verify", back)
    forward, backward = differences(source, target), differences(target, back)
    outcome = way
    if forward:
        outcome = f"{way}: {forward}" if way != "equal" else f"differs: {forward}"
    if backward or back_way != "equal":
        outcome += f"; on the way back: {backward or back_way}"
    lost = way == "equal" and (forward or backward)
    return [name, f"{target.stat().st_size:,}", f"{seconds:.3f}", outcome], messages, not lost


def main():
    folder = ROOT / ".dev/demo"
    folder.mkdir(parents=True, exist_ok=True)
    if len(sys.argv) > 2:
        source = pathlib.Path(sys.argv[2])
    else:
        source = folder / "source.safetensors"
        subprocess.run([sys.executable, ROOT / "tools/make_model.py", source], check=True)
    formats = json.loads(heft("formats", "--json").stdout)["formats"]
    print(f"{source.name}: {source.stat().st_size:,} bytes")
    print(f"{'format':<18} {'bytes':>15} {'seconds':>8}  outcome")
    all_equal = True
    for fmt in formats:
        if not fmt["write"]:
            continue
        row, messages, ok = round_trip(source, folder, fmt)
        all_equal = all_equal and ok
        print(f"{row[0]:<18} {row[1]:>15} {row[2]:>8}  {row[3]}")
        for line in messages[:5]:
            print(f"    {line}")
    return int(not all_equal)


HEFT = sys.argv[1]
sys.exit(main())
