#!/usr/bin/env python3
"""check_same.py COMMANDS OTHER LIMIT SAMPLES...: compare two builds of Heft, sample by sample.

COMMANDS and OTHER are programs of tests/commands.c; OTHER may be several words, for a program that
an emulator runs. SAMPLES are directories with samples (FORMAT/good and FORMAT/bad); of each
directory good or bad only LIMIT files are compared, unless LIMIT is 0. `ls`, `verify`, `hash` and
`doctor`, all with --json, must print the same bytes and end with the same status. Good samples are
converted to every format that is written: both builds must write the same bytes. Samples whose
name begins with "quantised" are always among them, and are decoded and encoded. A difference is no
failure where OTHER says that it was built without a library. TAP on stdout."""
import concurrent.futures
import json
import pathlib
import re
import sys
import tempfile

import commands

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import tap  # noqa: E402

CHECKSUM = 3  # exit status of a wrong checksum
METHODS = ["fp8", "int4:channel", "mxfp4", "mxfp8", "nvfp4"]
READS = [["ls", "--json"], ["verify", "--json"], ["hash", "--json"], ["doctor", "--json"]]
LACKS = re.compile(rb"this build (cannot|has no|lacks)|not computed|cannot be (checked|computed)"
                   rb"|unchecked|no codec|no digest|compressed with gzip; unpack it first")


def listed(folders, limit):
    """Return (path, is good) of the samples: every LIMITth part of a directory, evenly."""
    for folder in folders:
        for kind in ("good", "bad"):
            for below in sorted(pathlib.Path(folder).glob(f"**/{kind}")):
                files = [p for p in sorted(below.iterdir())
                         if p.is_file() and p.with_name(p.name + ".json").exists()]
                step = max(1, len(files) // limit) if limit else 1
                chosen = files[::step][:limit or None]
                chosen += [p for p in files if is_quantised(p) and p not in chosen]
                yield from ((path, kind == "good") for path in chosen)


def is_quantised(path):
    return path.name.startswith("quantised")


def run_both(*words, outputs=(None, None)):
    """Run a command with both builds; return their results."""
    return [build.run(*words, *([str(out)] if out else []), text=False)
            for build, out in zip(BUILDS, outputs)]


def lacks(own, other):
    """Return whether the other build says more often that a library is missing."""
    own_times, other_times = (sum(1 for _ in LACKS.finditer(r.stdout + r.stderr))
                              for r in (own, other))
    return other_times > own_times


def differences(what, own, other):
    """Compare status and output of two commands."""
    if lacks(own, other):
        LEFT_OUT.append(what)
        return
    for name in ("returncode", "stdout", "stderr"):
        a, b = getattr(own, name), getattr(other, name)
        if a != b:
            yield f"{what}: {name} is {b[:300] if name != 'returncode' else b}"
            yield f"    not {a[:300] if name != 'returncode' else a}"
            return


def check_converted(path, scratch):
    """Convert a sample to every format; compare the files."""
    ways = [(form, []) for form in FORMATS]
    if is_quantised(path):
        again = ["--force", "--requantize", "--allow-nan", "--quantize"]  # over config.json
        ways += [("safetensors", ["--dequantize=f32"]), ("safetensors", ["--dequantize=bf16"]),
                 *(("safetensors", [*again, method]) for method in METHODS)]
    for form, more in ways:
        outputs = [pathlib.Path(scratch, side, f"{path.name}.{form}") for side in ("a", "b")]
        for out in outputs:
            out.parent.mkdir(exist_ok=True)
        own, other = run_both("convert", "--allow-loss", *more, "--to", form, str(path),
                              outputs=outputs)
        if lacks(own, other):
            LEFT_OUT.append(form)
            continue
        if own.returncode != other.returncode:
            yield (f"conversion to {form} {more} ends with {other.returncode}, "
                   f"not {own.returncode}: {other.stderr[-300:]}")
        elif not own.returncode and outputs[0].read_bytes() != outputs[1].read_bytes():
            yield f"conversion to {form} {more} writes other bytes"
        for out in outputs:
            out.unlink(missing_ok=True)


def check(job):
    path, is_good = job
    found, is_unchecked = [], False
    for command in READS:
        own, other = run_both(*command, str(path))
        # A wrong checksum that the other build cannot compute is an error only here.
        if is_unchecked and own.returncode == CHECKSUM and not other.returncode:
            LEFT_OUT.append(command[0])
            continue
        is_unchecked = is_unchecked or (command[0] == "verify" and lacks(own, other))
        found += differences(command[0], own, other)
    if is_good:
        with tempfile.TemporaryDirectory() as scratch:
            found += check_converted(path, scratch)
    return "/".join(path.parts[-3:]), found


def written_formats():
    out = BUILDS[0].run("formats", "--json").stdout
    return [f["name"] for f in json.loads(out)["formats"] if f["write"]]


def main():
    jobs = list(listed(SAMPLES, LIMIT))
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        failed = tap.report(pool.map(check, jobs) if jobs else [("samples", ["there are none"])])
    print(f"# {len(LEFT_OUT)} comparisons were left out: the other build lacks a library")
    return failed or any([build.end() for build in BUILDS])


LEFT_OUT = []  # comparisons that the other build cannot make
BUILDS = [commands.Commands(sys.argv[1]), commands.Commands(sys.argv[2].split())]
LIMIT, SAMPLES = int(sys.argv[3]), sys.argv[4:]
FORMATS = written_formats()
sys.exit(main())
