#!/usr/bin/env python3
"""check_appended.py COMMANDS: append tensors to samples, and read the results independently.

Each sample of gen_*.py is written in its own format, and Heft appends tensors. The readers in
tests/py must find the old tensors unchanged and the appended ones complete. TAP on stdout."""
import concurrent.futures
import json
import pathlib
import subprocess
import sys
import tempfile

import check_edited
import commands
import read_ztensor2
from check_edited import TARGETS, differences, read_back, normalise

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import tap  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
PREFIX = "zz appended/"  # Appended names sort after all others, so a sorted file stays sorted.
CANNOT_CONVERT = 5
# The type of the last tensor is unknown: only the end of the file gives the tensor's size.
REFUSED = {"later_last_no_tail.gguf"}
APPENDED_SAMPLES = ("types.safetensors", "shapes.safetensors")


def heft(*args):
    return check_edited.heft(*map(str, args))


def read_normalised(path, target, previous=None):
    """Read a file without offsets and without Burn generations, because appending may change
    both."""
    is_version_2 = previous and target[1] == "2" and target[0] == "ztensor"
    got = normalise(
        read_ztensor2.read(path, None, read_ztensor2.ANY, previous
                           ) if is_version_2 else read_back(*target[:3], path))
    got.pop("generations", None)
    return {
        **got, "tensors": [{k: v for k, v in t.items() if k not in ("begin", "end")}
                           for t in got["tensors"]]
    }


def model_differences(want, got):
    old, new = ({t["name"]: t for t in m["tensors"]} for m in (want, got))
    yield from differences({**want, "tensors": sorted(old)}, {**got, "tensors": sorted(new)})
    for name in sorted(set(old) & set(new)):
        yield from differences(old[name], new[name])


def convert(from_path, to_path, target, version, *args):
    version = ["--format-version", version] if version else []
    return heft("convert", "--allow-loss", "-f", "--to", target[0], *version, *target[2], *args,
                "--", from_path, to_path)


def version_of(path, target):
    """Return the format version; the content of a Burnpack decides its generation."""
    return json.loads(heft("info", "--json",
                           path).stdout)["version"] if target[0] == "burnpack" else target[1]


def check(job):
    path, target, out = job
    to, version, options, _ = target
    title = " ".join(filter(None, [f"{path.parts[-3]}/{path.name} as {to}", version, *options]))
    if convert(path, out, target, version).returncode or heft("verify", out).returncode:
        return title, []  # The target cannot represent the model, or verify reports a loss.
    complaints, first = [], read_normalised(out, target)
    appended_alone = out.with_name(out.name + " alone")
    for more in APPENDED_SAMPLES:  # The second file is appended to the result of the first append.
        previous = out.read_bytes()
        rename, more = f"s|^|{PREFIX}{more} |", out.parent / "safetensors" / "good" / more
        p = convert(more, appended_alone, target, version_of(out, target), "--rename", rename)
        if p.returncode:
            return title, [f"the appended file cannot be converted: {p.stderr}"]
        added = read_normalised(appended_alone, target)["tensors"]
        p = heft("append", *options, "--allow-loss", "--rename", rename, "--", out, more)
        if path.name in REFUSED:
            kept = p.returncode == CANNOT_CONVERT and out.read_bytes() == previous
            return title, [] if kept else [
                f"append ended with {p.returncode}, the file was{'' if kept else ' not'} left alone"
            ]
        if p.returncode:
            return title, [f"append ended with {p.returncode}: {p.stderr.strip()[:300]}"]
        if heft("verify", out).returncode:
            return title, [f"verify finds a fault after append: {heft('verify', out).stdout}"]
        first = {**first, "tensors": sorted([*first["tensors"], *added], key=lambda t: t["name"])}
        complaints += model_differences(first, read_normalised(out, target, previous))
    return title, complaints


def check_or_report(job):
    try:
        return check(job)
    except Exception as e:  # noqa: BLE001 - readers raise many types of errors
        return f"{job[0].name} as {job[1][:2]}", [repr(e)[:300]]


def main():
    with tempfile.TemporaryDirectory() as scratch:
        root = pathlib.Path(scratch)
        for generator in sorted(HERE.glob("gen_*.py")):
            if generator.stem[4:] not in ("samples", "cast_vectors", "nfc_vectors"):
                subprocess.run([sys.executable, generator, root], check=True)
        paths = [p.with_suffix("") for p in sorted(root.glob("*/good/*.json"))]
        jobs = [(p, t) for p in paths for t in TARGETS.get(p.parts[-3], [])]
        jobs = [(*job, root / f"out{i}") for i, job in enumerate(jobs)]
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            return tap.report(pool.map(check_or_report, jobs)) or check_edited.HEFT.end()


if __name__ == "__main__":
    check_edited.HEFT = commands.Commands(sys.argv[1])
    sys.exit(main())
