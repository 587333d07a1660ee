#!/usr/bin/env python3
"""check_burnrecord.py HEFT GENERATOR: convert Burn records to Burnpacks.

An independent reader must find the names, shapes, bytes and parameter ids that the generator wrote.
TAP on stdout."""
import hashlib
import json
import pathlib
import subprocess
import sys
import tempfile

import read_burnpack

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import tap  # noqa: E402


def heft(*args):
    return subprocess.run([HEFT, *map(str, args)], capture_output=True, check=False)


def compare(path, out):
    want = json.loads(path.with_name(path.name + ".json").read_text())["tensors"]
    p = heft("convert", "--force", "--allow-loss", path, out)
    if p.returncode:
        yield f"exit {p.returncode}: {p.stderr.decode()[:200]}"
        return
    got = {t["name"]: t for t in read_burnpack.read(out.read_bytes())["tensors"]}
    kept = [t for t in want if t["layout"] == "dense"]
    if not {t["name"] for t in kept} <= set(got):
        yield f"the tensors are {sorted(got)}"
        return
    for t in kept:
        actual = got[t["name"]]
        if actual["shape"] != t["shape"] or actual["sha256"] != t["sha256"]:
            yield f"{t['name']} differs"
        if actual.get("param_id") != t.get("param_id", actual.get("param_id")):
            yield f"{t['name']} has the id {actual.get('param_id')}"


def packed_is_the_same(folder):
    for packed in sorted(folder.glob("*.mpk.gz")):
        plain = packed.with_suffix("")
        if not plain.exists():
            continue
        p = heft("diff", packed, plain)
        if p.returncode:
            yield f"{packed.name}: {p.stdout.decode()[:200]}"
        rules = [f["rule"] for f in json.loads(heft("verify", "--json", packed).stdout)["findings"]]
        if "heft/gzip" not in rules:
            yield f"{packed.name}: {rules}"


def main():
    global HEFT
    HEFT, generator = sys.argv[1:]
    with tempfile.TemporaryDirectory() as name:
        scratch = pathlib.Path(name)
        subprocess.run([sys.executable, generator, scratch], check=True)
        folder = scratch / "burn-record" / "good"
        files = sorted(p for p in folder.iterdir() if p.suffix != ".json")
        results = [(p.name, list(compare(p, scratch / "out.bpk"))) for p in files]
        results.append(("compressed and plain records are equal", list(packed_is_the_same(folder))))
        return tap.report(results)


sys.exit(main())
