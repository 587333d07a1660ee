#!/usr/bin/env python3
"""run.py --reader 'COMMAND {file}' [OPTION...]: judge a reader of model weights by this corpus.

COMMAND is split as a shell does, but runs without a shell; {file} is replaced by the path of a
sample. A reader accepts a file by exit status 0 and refuses a file by any other status. A reader
that is killed by a signal, or takes longer than --timeout, fails. TAP on stdout; exit status 1 if a
sample was judged otherwise than its description says. README.md explains the descriptions."""
import argparse
import concurrent.futures
import hashlib
import json
import pathlib
import re
import shlex
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent


def arguments(words):
    p = argparse.ArgumentParser(description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--reader", metavar="COMMAND", required=True,
                   help="exit status 0 accepts {file}; JSON on stdout is compared, if there is any")
    p.add_argument("--list", metavar="COMMAND", help="prints {file} as JSON, if --reader does not")
    p.add_argument("--bytes", metavar="COMMAND", help="writes the bytes of {tensor} of {file}")
    p.add_argument("--format", metavar="NAME", action="append", help="only this folder; repeatable")
    p.add_argument("--good", action="store_true", help="only good files")
    p.add_argument("--most", metavar="N", type=int, help="at most N files of each folder")
    p.add_argument("--known", metavar="FILE", type=pathlib.Path,
                   help="samples, one a line, that may be judged otherwise")
    p.add_argument("--timeout", metavar="S", type=float, default=60, help="seconds (60)")
    p.add_argument("--jobs", metavar="N", type=int, default=2, help="readers at a time (2)")
    p.add_argument("--corpus", metavar="DIR", type=pathlib.Path, default=HERE)
    return p.parse_args(words)


class CrashedError(Exception):
    pass


def run(command, **names):
    """Return (exit status, stdout)."""
    words = [re.sub(r"\{(\w+)\}", lambda m: names.get(m[1], m[0]), w) for w in shlex.split(command)]
    try:
        p = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                           stderr=subprocess.DEVNULL, timeout=OPTIONS.timeout, check=False)
    except subprocess.TimeoutExpired:
        raise CrashedError(f"the reader took longer than {OPTIONS.timeout} s") from None
    if p.returncode < 0:
        raise CrashedError(f"the reader was killed by signal {-p.returncode}")
    return p.returncode, p.stdout


def listing(data):
    """Return the tensors of a JSON document by name, or None."""
    try:
        tensors = json.loads(data)["tensors"]
        return {t["name"]: t for t in tensors}
    except (ValueError, KeyError, TypeError):
        return None


def differences(path, want, stdout):
    """Yield how tensors differ from the description, as far as the reader describes them."""
    if OPTIONS.list:
        stdout = run(OPTIONS.list, file=str(path))[1]
    have = listing(stdout)
    if have is None and OPTIONS.list:
        yield "the list is not JSON with tensors"
    if have is not None and sorted(have) != sorted(t["name"] for t in want):
        yield f"the names are {sorted(have)}"
    for t in want:
        got = (have or {}).get(t["name"], {})
        dense = t.get("layout", "dense") == "dense"
        for key in ("dtype", "shape", "sha256"):
            if dense and t.get(key) is not None and got.get(key, t[key]) not in (t[key], None):
                yield f"{key} of {t['name']!r} is {got[key]}, not {t[key]}"
        if OPTIONS.bytes and "sha256" in t and dense and "\0" not in t["name"]:
            status, data = run(OPTIONS.bytes, file=str(path), tensor=t["name"])
            if status or hashlib.sha256(data).hexdigest() != t["sha256"]:
                yield f"the bytes of {t['name']!r} differ (exit {status})"


def judge(path):
    """Yield complaints about one sample."""
    facts = json.loads(path.with_name(path.name + ".json").read_text())
    expect = facts.get("expect", "accept")
    try:
        status, stdout = run(OPTIONS.reader, file=str(path))
        if expect == "reject" and not status:
            yield f"accepted, but: {facts['why']}"
        elif expect in ("accept", "warn") and status:
            yield f"refused (exit {status}): {facts.get('why', 'a valid file')}"
        elif "tensors" in facts:
            yield from differences(path, facts["tensors"], stdout)
    except CrashedError as e:
        yield str(e)


def samples():
    kinds = ["good"] if OPTIONS.good else ["good", "bad"]
    for folder in sorted(OPTIONS.corpus.iterdir()):
        if OPTIONS.format and folder.name not in OPTIONS.format:
            continue
        for kind in kinds:
            paths = [p.with_suffix("") for p in sorted(folder.glob(f"{kind}/*.json"))]
            step = -(-len(paths) // OPTIONS.most) if OPTIONS.most and paths else 1
            yield from paths[::step]


def main():
    known = set(OPTIONS.known.read_text().split()) if OPTIONS.known else set()
    paths = list(samples())
    failed = False
    print(f"1..{len(paths)}")
    with concurrent.futures.ThreadPoolExecutor(OPTIONS.jobs) as pool:
        results = pool.map(lambda p: list(judge(p)), paths)
        for n, (path, complaints) in enumerate(zip(paths, results), 1):
            name = path.relative_to(OPTIONS.corpus).as_posix()
            todo = " # TODO known" if name in known else ""
            failed |= bool(complaints) and not todo
            print(f"{'not ok' if complaints else 'ok'} {n} - {name}{todo}")
            for c in complaints:
                print("#   " + c.encode("unicode_escape").decode())
    return int(failed or not paths)


OPTIONS = arguments(sys.argv[1:])
sys.exit(main())
