#!/usr/bin/env python3
"""check_samples.py COMMANDS SOURCE...: compare Heft with the expectations of samples.

A SOURCE is a directory with samples, or a program (gen_NAME.py) that writes samples. Each sample
FILE in good/ or bad/ has a FILE.json. For good samples FILE.json lists the tensors: name, dtype,
shape, layout, sha256, parts, ids. For bad samples "expect" is the result of verify: reject, warn,
accept, or refuse (exit status 5: a limit or a missing feature); verify must report the rule "rule"
and must not report the rule "without". The first fault must contain the text "message".

tests/refusals/NAME.tsv lists each sample that gen_NAME.py expects verify to reject, with the rule
and the offset of the first fault that verify must report ("-": a fault without an offset). TAP on
stdout."""
import concurrent.futures
import hashlib
import json
import pathlib
import struct
import subprocess
import sys
import tempfile

import commands

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import tap  # noqa: E402

SPECIAL = ["pad", "unk", "cls", "sep", "mask"]
EXIT_CODES, REFUSED = range(6), 5
REFUSALS = pathlib.Path(__file__).resolve().parents[1] / "refusals"
NAMES = {"gptrs": {"gptrs-checkpoint", "gptrs-archive"}}


class CheckFailed(Exception):
    pass


def heft(*args, codes=(0,)):
    """Run Heft; return (stdout, exit status). The status must be in `codes`."""
    p = HEFT.run(*args, text=False)
    if p.returncode not in codes:
        messages = (p.stderr or p.stdout).decode(errors="replace").strip()
        raise CheckFailed(f"{args[0]} ended with {p.returncode}: {messages[:200]}")
    return p.stdout, p.returncode


def stderr_lines(*args):
    """Return the stderr lines of a command that must succeed."""
    p = HEFT.run(*args, text=False)
    if p.returncode:
        raise CheckFailed(f"{args[0]} ended with {p.returncode}: {p.stderr[:200]}")
    return p.stderr.decode().splitlines()


def document(*args, codes=(0,)):
    out, status = heft(*args, "--json", codes=codes)
    try:
        return json.loads(out), status
    except ValueError as e:
        raise CheckFailed(f"{args[0]} --json is not JSON: {e}") from None


def same(what, got, want):
    if got != want:
        yield f"{what} is {got}, not {want}"


def stored(path):
    """Return the options for what is stored: the facts of quantised samples are of their parts."""
    return ["--raw-tensors"] if path.name.startswith(("quantised", "quantized")) else []


def same_bytes(path, tensor, want, *more):
    out, _ = heft("cat", *stored(path), *more, str(path), "--", tensor)
    yield from same(f"sha256 of {tensor} {' '.join(more)}", hashlib.sha256(out).hexdigest(), want)


def check_tensor(path, got, want):
    name, layout = want["name"], want.get("layout", "dense")
    yield from same(f"shape of {name}", got["shape"], want["shape"])
    yield from same(f"layout of {name}", got["layout"], layout)
    if want.get("dtype") and layout == "dense" and got["dtype"] is not None:
        yield from same(f"dtype of {name}", got["dtype"], want["dtype"])
    attributes = got.get("attributes") or {}
    if want.get("param_id") is not None:
        yield from same(f"param id of {name}", attributes.get("burn.param_id"), want["param_id"])
    if "\0" in name:
        return  # an argument cannot contain NUL
    if "sha256" in want:
        yield from same_bytes(path, name, want["sha256"])
    for role, part in (want.get("parts") or {}).items():
        if isinstance(part, dict) and "sha256" in part:
            yield from same_bytes(path, name, part["sha256"], "--part", role)


def check_vocabulary(path, want):
    out, _ = heft("cat", str(path), "--part", "vocab")
    yield from same("the vocabulary", out.decode(), "".join(t + "\n" for t in want["vocab"]))
    if "special" in want:
        found = document("info", str(path))[0]["vocabulary"]
        yield from same("tokens", found["tokens"], len(want["vocab"]))
        ids = [2**32 - 1 if found["special"][n] is None else found["special"][n] for n in SPECIAL]
        yield from same("special ids", ids, want["special"])


def bits_of(value):
    """Return the 64 bits of a number, in hexadecimal."""
    if value in ("NaN", "Infinity", "-Infinity"):
        value = float(value)
    if isinstance(value, float):
        return struct.pack(">d", value).hex()
    return f"{int(value) % 2**64:016x}"


def check_metadata(path, want):
    """Compare the metadata; facts have a text, the bits of a number, or nested values."""
    got = document("info", str(path))[0].get("metadata", {})
    if isinstance(want, dict):
        want = [{"key": key, "value": value} for key, value in want.items()]
    yield from same("metadata keys", sorted(got), sorted(fact["key"] for fact in want))
    for fact in want:
        value = got.get(fact["key"])
        if "bits" in fact:
            yield from same(f"bits of {fact['key']}", bits_of(value), fact["bits"])
        else:
            yield from same(f"value of {fact['key']}", value, fact.get("value", fact.get("nested")))


def check_good(path, want):
    listing, _ = document("ls", *stored(path), str(path))
    formats = NAMES.get(want["format"], {want["format"]})
    if listing["format"] not in formats:
        yield f"format is {listing['format']}, not {want['format']}"
    have = {t["name"]: t for t in listing["tensors"]}
    yield from same("names", sorted(have), sorted(t["name"] for t in want["tensors"]))
    for t in want["tensors"]:
        if t["name"] in have:
            yield from check_tensor(path, have[t["name"]], t)
    if "metadata" in want:
        yield from check_metadata(path, want["metadata"])
    if want.get("vocab"):
        yield from check_vocabulary(path, want)
    if want["format"] == "torch" and not want["tensors"]:
        yield from check_empty(path)
    else:
        heft("verify", str(path))


def check_empty(path):
    """A file of PyTorch without a tensor is no model, although it opens: that is the one fault."""
    report, status = document("verify", str(path), codes=EXIT_CODES)
    faults = [f["rule"] for f in report["findings"] if f["severity"] == "fault"]
    yield from same("verify of no tensor", (status, faults), (1, ["heft/all-left-out"]))


def read_refusals(source):
    """Return {sample: (rule, offset)}, or None if the source has no table."""
    table = REFUSALS / (pathlib.Path(source).stem.removeprefix("gen_") + ".tsv")
    if not source.endswith(".py") or not table.exists():
        return None
    rows = [line.split("\t") for line in table.read_text().splitlines()[1:]]
    return {name: (rule, None if at == "-" else int(at)) for name, rule, at in rows}


def check_refusal(report, refusal, name):
    faults = [(f["rule"], f["offset"]) for f in report["findings"] if f["severity"] == "fault"]
    if refusal is None:
        yield f"{name} has no row in the table of refusals; verify reports {faults[:1]}"
    elif faults[:1] != [refusal]:
        yield f"the first fault is {faults[:1]}, not {refusal}"


def check_bad(path, want, refusals):
    report, status = document("verify", str(path), codes=EXIT_CODES)
    severities = {f["severity"] for f in report["findings"]}
    verdict = {0: "accept", 1: "reject", REFUSED: "refuse"}.get(status, f"exit {status}")
    if verdict == "accept" and "warning" in severities:
        verdict = "warn"
    if verdict != want["expect"]:
        yield f"{verdict}, not {want['expect']}: {want['why']} ({sorted(severities)})"
    rules = {f["rule"] for f in report["findings"]}
    if want.get("rule", want["expect"]) not in {*rules, want["expect"]}:
        yield f"{want['rule']} is not reported: {want['why']} ({sorted(rules)})"
    faults = [f["text"] for f in report["findings"] if f["severity"] == "fault"]
    if want.get("message", "") not in "".join(faults[:1]):
        yield f"the first fault is {faults[:1]}, not {want['message']!r}"
    if want.get("without") in rules:
        yield f"{want['without']} is reported: {want['why']}"
    if refusals is not None and want["expect"] == "reject":
        yield from check_refusal(report, refusals.get(path.name), path.name)
    heft("ls", "--json", str(path), codes=EXIT_CODES)
    if verdict in ("warn", "accept"):
        yield from check_warnings(path)


def check_warnings(path):
    """Commands that open a file must print the warnings that verify finds without reading data: two
    lines for each rule at most.  What ls says about quantised tensors is no finding of verify."""
    findings = document("verify", "--quick", str(path))[0]["findings"]
    rules = [f["rule"] for f in findings if f["severity"] == "warning"]
    messages = stderr_lines("ls", "--raw", "--raw-tensors", str(path))
    shown = [line.split(": warning: ")[1].split(":")[0] for line in messages]
    yield from same("rules of warnings", list(dict.fromkeys(shown)), list(dict.fromkeys(rules)))
    yield from same("rules of more than two lines", [r for r in shown if shown.count(r) > 2], [])
    yield from same("messages of --quiet", stderr_lines("ls", "--raw", "--quiet", str(path)), [])


def check(job):
    path, kind, refusals = job
    if kind == "unused":
        return str(path), [f"{name} is not a sample" for name in sorted(refusals)]
    if kind == "missing":
        return str(path), ["there are no samples"]
    want = json.loads(path.with_name(path.name + ".json").read_text())
    title = "/".join(path.parts[-3:])
    try:
        found = check_good(path, want) if kind == "good" else check_bad(path, want, refusals)
        return title, list(found)
    except CheckFailed as e:
        return title, [str(e)]


def samples_below(root):
    return [
        (path.with_suffix(""), kind)
        for kind in ("good", "bad")
        for path in sorted(pathlib.Path(root).glob(f"**/{kind}/*.json"))
    ]


def main():
    with tempfile.TemporaryDirectory() as scratch:
        jobs = []
        for source in SOURCES:
            root = source
            if source.endswith(".py"):
                root = pathlib.Path(scratch, pathlib.Path(source).stem)
                subprocess.run([sys.executable, source, root], check=True,
                               stdout=subprocess.DEVNULL)
            refusals = read_refusals(source)
            found = samples_below(root) or [(pathlib.Path(root), "missing")]
            jobs += [(path, kind, refusals) for path, kind in found]
            if refusals is not None:
                names = {path.name for path, kind in found if kind == "bad"}
                unused = {n: at for n, at in refusals.items() if n not in names}
                jobs.append((f"rows of refusals of {pathlib.Path(source).stem}", "unused", unused))
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            return tap.report(pool.map(check, jobs)) or HEFT.end()


HEFT, SOURCES = commands.Commands(sys.argv[1]), sys.argv[2:]
sys.exit(main())
