#!/usr/bin/env python3
"""check_within.py COMMANDS SHARED: convert each sample and fixture to its own format.

What Heft prints about both files, and the decoded manifests, must be equal, or the conversion must
have reported the difference by name. TAP on stdout."""
import concurrent.futures
import json
import pathlib
import struct
import subprocess
import sys
import tempfile

import cbor
import commands

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import tap  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
READ_ONLY = {"torch"}
DEPTH = 128
REPORTED_BY = {  # difference: text that reports the difference
    "version": "can be read, but not written",
    "stored_dtype": "can be read, but not written",
    "encoding": "are stored uncompressed",
    "digest": "digest",
    "tensors": "in the container of another generation",
    "objects": "in the container of another generation",
    "attributes": "in the container of another generation",
    "gptrs.base_id": "",  # follows from the name
}


def heft(*args):
    return HEFT.run(*args)


# ---- output of the command ----

def part_facts(p):
    kind = p["digest"].split(":")[0] if p["digest"] else None
    raw = p["encoding"] == "raw"
    digest = p["digest"].lower() if raw and p["digest"] else kind
    if kind == "crc32":  # every member of an archive has a crc32
        digest = None
    return {"dtype": p["dtype"], "length": p["length"], "encoding": p["encoding"], "digest": digest}


def facts_of(path):
    ls, info = heft("ls", "-l", "--json", "--no-verify",
                    str(path)), heft("info", "--json", str(path))
    if ls.returncode:  # ls of this format may lack an option
        ls = heft("ls", "-l", "--json", str(path))
    if ls.returncode or info.returncode:
        return None
    ls, info = json.loads(ls.stdout), json.loads(info.stdout)
    facts = {k: info.get(k) for k in ("format", "version", "vocabulary", "metadata", "generator")}
    if not facts["generator"]:  # the generator of the output may be Heft
        del facts["generator"]
    if facts["format"] == "burnpack":  # the content of a Burnpack decides its generation
        del facts["version"]
    if facts["format"] == "gguf":
        facts["alignment"] = info["alignment"]  # only GGUF stores the alignment
        if facts["metadata"].get("split.count"):  # a shard becomes a file of its own
            facts["metadata"] = {
                k: v for k, v in facts["metadata"].items() if not k.startswith("split.")}
    facts["parts"] = {p["role"]: "there" for p in ls.get("parts", [])}
    facts["tensors"] = {}
    for t in ls["tensors"]:
        own = {k: v for k, v in t.items() if k not in ("name", "parts")}
        facts["tensors"][t["name"]] = own | {
            "parts": {p["role"]: part_facts(p) for p in t["parts"]}
        }
    return facts


def paths_of(v, at=()):
    if isinstance(v, dict):
        for k, inner in v.items():
            yield from paths_of(inner, (*at, str(k)))
    else:
        yield at, v


# ---- content of the manifest ----

def manifest_of(raw):
    """Return the CBOR manifest of a file, or None."""
    if raw[:4] == b"NRUB":
        return cbor.decode(raw[10:10 + struct.unpack_from("<I", raw, 6)[0]], 0, DEPTH)[0]
    if raw[:8] == b"ZTEN1000" and raw[-8:] == b"ZTEN1000":
        at = len(raw) - 16 - struct.unpack_from("<Q", raw, len(raw) - 16)[0]
    elif raw[:8] in (b"ZTEN1000", b"ZTEN0001"):
        at = len(raw) - 8 - struct.unpack_from("<Q", raw, len(raw) - 8)[0]
    elif raw[:8] == b"\x89ZT2\r\n\x1a\n":
        at = struct.unpack_from("<Q", raw, len(raw) - 40)[0]
        if not at:
            return None
    else:
        return None
    return cbor.decode(raw, at, DEPTH)[0]


NOT_COMPARED = {"offset", "length", "blob", "data_offsets",
         "generator"}  # offsets and the generator


def key_paths(v, at=()):
    """Yield the paths of all keys, including names of tensors and parts."""
    if isinstance(v, dict):
        for k, inner in v.items():
            if inner in (None, {}, "raw"):  # equals the default
                continue
            yield (*at, str(k))
            yield from key_paths(inner, (*at, str(k)))


def keys_of(path):
    try:
        m = manifest_of(path.read_bytes())
    except (ValueError, IndexError, KeyError, struct.error, TypeError):
        return None
    return {p for p in key_paths(m) if p[-1] not in NOT_COMPARED} if isinstance(m, dict) else None


# ---- comparing ----

def is_reported(at, messages):
    return any(str(k) in messages
               for k in reversed(at) if k) or REPORTED_BY.get(at[-1], "\0") in messages


def lost(before, after, messages):
    was, now = dict(paths_of(before)), dict(paths_of(after))
    for at, v in was.items():
        if at[-1] == "digest" and v and "can be read, but not written" in messages:
            v, now[at] = v.split(":")[0], (now.get(at) or "").split(":")[0]
        if now.get(at, "nothing") != v and not is_reported(at, messages):
            yield f"{'/'.join(at)[:120]}: {str(v)[:80]} became {str(now.get(at, 'nothing'))[:80]}"


def lost_keys(before, after, messages):
    for at in sorted(before - after):
        if at[:-1] in before - after:  # the parent is missing too and was reported
            continue
        if not is_reported(at[-1:], messages):
            yield f"the key {'/'.join(at)[:160]} is missing"


def check(job):
    path, out = job
    title = "/".join(path.parts[-3:])
    before = facts_of(path)
    if not before or before["format"] in READ_ONLY:
        return title, []
    p = heft("convert", "-v", "--to", before["format"], "--", str(path), str(out))
    if p.returncode in (3, 4, 5) and p.stderr:
        return title, []  # refused with a reason: damage, or a missing shard
    if p.returncode:
        return title, [f"convert ended with {p.returncode}: {p.stderr[:200]}"]
    after = facts_of(out)
    if not after:
        return title, ["the written file does not open"]
    old, new = keys_of(path), keys_of(out)
    complaints = list(lost(before, after, p.stderr))
    same_generation = before.get("version") == after.get("version")
    if old is not None and new is not None and same_generation:
        complaints += lost_keys(old, new, p.stderr)
    out.unlink()
    return title, complaints[:6]


def main():
    with tempfile.TemporaryDirectory() as scratch:
        root = pathlib.Path(scratch)
        for generator in sorted(HERE.glob("gen_*.py")):
            if generator.stem[4:] not in ("samples", "cast_vectors", "nfc_vectors"):
                subprocess.run([sys.executable, generator, root], check=True)
        paths = [
            p for p in sorted(root.glob("*/*/*"))
            if p.suffix not in (".json", ".cbor") and p.is_file()
        ]
        paths += [
            p for p in sorted(SHARED.glob("fixtures/*/*/*")) if p.suffix != ".json" and p.is_file()
        ]
        jobs = [(p, root / f"out{i}") for i, p in enumerate(paths)
                if p.parts[-2] in ("good", "bad")]
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            return tap.report(pool.map(check, jobs)) or HEFT.end()


HEFT, SHARED = commands.Commands(sys.argv[1]), pathlib.Path(sys.argv[2])
sys.exit(main())
