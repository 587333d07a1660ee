#!/usr/bin/env python3
"""check_written.py COMMANDS: convert samples to every generation of every format.

Independent readers check the files. With --allow-loss, Heft must name dropped content on stderr;
without the option there must be no output. TAP on stdout."""
import concurrent.futures
import json
import pathlib
import re
import struct
import subprocess
import sys
import tempfile

import commands
import read_burnpack
import read_embd
import read_gguf
import read_gptrs
import read_mag
import read_npz
import read_safetensors
import read_ztensor1
import read_ztensor2

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import tap  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
TARGETS = [("mag", None), ("mag", "1"), ("mag", "100"), ("mag", "snapshot"),
           ("gptrs-checkpoint", None), ("gptrs-archive", None), ("safetensors", None),
           ("embd", None), ("embd", "simple"), ("burnpack", None), ("burnpack", "0.20"),
           ("gguf", None), ("gguf", "2"), ("ztensor", "2"), ("npz", None), ("npy", None),
           ("ztensor", "1.0"), ("ztensor", "1.1", "--digest", "crc32c"),
           ("ztensor", "1.2", "--digest", "sha256", "--compress", "zstd")]
CANNOT_CARRY = 5
# They have no form for quantised tensors, which are refused unless the stored ones are asked for
WITHOUT_QUANTISED = ("mag", "gptrs-checkpoint", "gptrs-archive", "embd", "burnpack", "gguf")
OTHER_SPELLINGS = {"f8_e4m3": "f8_e4m3fn",
           "f4": "f4_e2m1"}  # otherwise names of safetensors are those of Heft in upper case
ALIGNMENTS = [None, 256]
SHOWN = 40  # minimum number of bytes of a name that a message shows


def comparable(t, digest="sha256"):
    """Return the comparable facts of a tensor; `digest` replaces sha256 where a part has it."""
    if t.get("layout", "dense") == "dense":
        return t["name"], t["dtype"], tuple(t["shape"] or [1]), t["sha256"]
    parts = t.get("parts") or {"data": t}
    parts = sorted((role, p.get(digest, p["sha256"])) for role, p in parts.items())
    return t["name"], t["layout"], tuple(t["shape"]), repr(parts)


def convert(source, to, version, align, out, *more):
    args = ["convert", "-v", "--to", to, *more, "--", str(source), str(out)]
    args[4:4] = ["--format-version", version] if version else []
    args[4:4] = ["--align", str(align)] if align else []
    return HEFT.run(*args)


def read_back(to, version, options, align, path, source):
    within = source.parts[-3] == to  # digests and generation are copied from the source
    if to == "safetensors":
        got = read_safetensors.read(path, of_heft=True)
        for t in got["tensors"]:
            t["dtype"] = OTHER_SPELLINGS.get(t["dtype"].lower(), t["dtype"].lower())
        return got
    if to == "mag":
        return read_mag.read(path.read_bytes())
    if to == "embd":
        return read_embd.read(path.read_bytes(), align or read_embd.ALIGN)
    if to == "burnpack":
        own = re.search(r"_(0\.2\d(-pre\.2)?)\.bpk$", source.name) if within else None
        return read_burnpack.read(path.read_bytes(), version or (own[1] if own else "0.21"))
    if to == "gguf":
        got = read_gguf.read(path.read_bytes())
        opaque = any(t["layout"] != "dense"
                     for t in got["tensors"])  # sizes of opaque types can prevent the alignment
        return got if opaque else read_gguf.read(path.read_bytes(), align)
    if to == "ztensor" and version != "2":
        algorithm = options[1] if "--digest" in options else read_ztensor1.ANY if within else None
        return read_ztensor1.read(path, version, align, algorithm)
    if to == "ztensor":
        return read_ztensor2.read(path, align and max(align, read_ztensor2.FLOOR),
                                  read_ztensor2.ANY if within else None)
    if to in ("npz", "npy"):
        return read_npz.read(path.read_bytes(), align)
    return read_gptrs.read(path.read_bytes(), align or read_gptrs.ALIGN)


def is_named(name, messages):
    """True if the messages contain the beginning of the name, up to the first escaped character."""
    return re.match(r"[^\x00-\x1f\x7f-\U0010ffff\"\\]*", name[:SHOWN])[0] in messages


def bits_of(value):
    return struct.pack(">d", value).hex() if isinstance(value,
                                                        float) else f"{int(value) % 2**64:016x}"


def is_kept(m, to, got):
    """True if metadata `m` is kept; None if the target cannot store the form of the value."""
    if to == "gguf" and "bits" in m:
        return m["key"] in got["metadata"] and bits_of(got["metadata"][m["key"]]) == m["bits"]
    if to == "mag" and got["version"] != "snapshot" and "bits" in m:
        return (m["key"], m["bits"]) in [(g["key"], g["bits"]) for g in got["metadata"]]
    if to in ("safetensors", "burnpack", "ztensor", "gguf"):
        return got["metadata"].get(m["key"]) == m["value"] if "value" in m else None
    if to == "embd" and got["version"] != "simple":
        return {"key": m["key"], "value": m["value"]} in got["metadata"] if "value" in m else None
    return False


def compare_vocabulary(want, got, messages):
    if not want.get("vocab"):
        return
    if got.get("vocab") is None:
        if "the vocabulary" not in messages:
            yield "the vocabulary is missing and not reported"
    elif got["vocab"] != want["vocab"]:
        yield "tokens are others"
    elif got["special"] != want["special"] and "special tokens are left out" not in messages:
        yield f"special ids are {got['special']}, not {want['special']}"


# Blocks of GGUF that are written in Burn's own form; check_qfloat.py compares their numbers.
BECOME_QFLOAT = ("q8_0", "q4_0")


def take_qfloat(want, got, messages):
    """Take tensors that become QFloat out of both; yield complaints about them."""
    taken = {t["name"]: t["shape"] for t in want["tensors"]
             if t.get("dtype") in BECOME_QFLOAT and all(t["shape"])}
    shapes = {t["name"]: t["shape"] for t in got["tensors"] if t["name"] in taken}
    if taken and f"{len(taken)} quantised tensor" not in messages:
        yield f"it is not said that {len(taken)} tensors become QFloat"
    if shapes != taken:
        yield f"QFloat has the shapes {shapes}, not {taken}"
    for model in (want, got):
        model["tensors"] = [t for t in model["tensors"] if t["name"] not in taken]


def compare(want, got, to, version, messages):
    if to == "burnpack":
        yield from take_qfloat(want, got, messages)
    written = [comparable(t) for t in got["tensors"]]
    expected = [
        comparable(t, "sha256_u64" if (version or "").startswith("1.") else "sha256")
        for t in want["tensors"]
    ]
    if to == "npy" and written:  # the only tensor of an .npy has no name
        written = [next((t for t in expected if t[1:] == written[0][1:]), written[0])]
    if to in ("safetensors", "ztensor"):  # the format has its own order
        written.sort(), expected.sort()
    if to == "burnpack":  # tied tensors share an offset, so the file does not store their order
        at = {t["name"]: t["begin"] for t in got["tensors"]}
        places = list(dict.fromkeys(at[t[0]] for t in expected if t in written))
        if places != sorted(places):
            yield "the order of tensors differs"
        written.sort(), expected.sort()
    if written != [t for t in expected if t in written]:
        yield "the tensors or the order of tensors differ"
    for name in [t[0] for t in expected if t not in written]:
        if not is_named(name, messages):
            yield f"{name!r} is missing and not reported"
    yield from compare_vocabulary(want, got, messages)
    for m in want.get("metadata", []):
        if is_kept(m, to, got) is False and not is_named(m["key"], messages):
            yield f"metadata {m['key']} is missing and not reported"


def refusal_fails(path, to, version, align, out):
    """Return what is wrong with the refusal of quantised tensors, or None."""
    p = convert(path, to, version, align, out, "--allow-loss")
    if p.returncode != CANNOT_CARRY or out.exists():
        return f"quantised tensors are not refused: convert ended with {p.returncode}"
    why = "has no form in Burn" if to == "burnpack" else "is quantised"
    if not all(text in p.stderr for text in (why, "--dequantize", "--raw-tensors")):
        return f"the refusal of quantised tensors says: {p.stderr.strip()[:200]}"
    return None


def check(job):
    path, (to, version, *options), align, out = job
    want = json.loads(path.with_name(path.name + ".json").read_text())
    title = " ".join([
        f"{path.parts[-3]}/{path.name} as {to}", *map(str, filter(None, (version, *options, align)))
    ])
    if path.name.startswith("quantised") and to in WITHOUT_QUANTISED:
        fails = refusal_fails(path, to, version, align, out)
        if fails:
            return title, [fails]
        options.append("--raw-tensors")
    strict = convert(path, to, version, align, out, *options)
    if strict.returncode not in (0, CANNOT_CARRY) or out.exists() != (strict.returncode == 0):
        return title, [f"convert ended with {strict.returncode}: {strict.stderr.strip()[:200]}"]
    p = convert(path, to, version, align, out, *options, "--allow-loss", "--force")
    none = ("there is no array to write", "no tensor would be written")
    if p.returncode == CANNOT_CARRY and any(text in p.stderr for text in none):
        return title, ["an output file exists"] if out.exists() else []
    if p.returncode:
        return title, [f"with --allow-loss it ended with {p.returncode}: {p.stderr.strip()[:200]}"]
    try:
        got = read_back(to, version, options, align, out, path)
    except (read_mag.InvalidFile, read_burnpack.InvalidFile, read_safetensors.InvalidFile,
            read_ztensor1.InvalidFile, read_ztensor2.InvalidFile, read_gguf.InvalidFile,
            read_npz.InvalidFile, ValueError, KeyError) as e:
        return title, [str(e)[:200]]
    finally:
        out.unlink()
    if strict.returncode == 0 and len(got["tensors"]) != len(want["tensors"]):
        return title, ["tensors were dropped without --allow-loss"]
    return title, list(compare(want, got, to, version, p.stderr))


def main():
    with tempfile.TemporaryDirectory() as scratch:
        root = pathlib.Path(scratch)
        for generator in ("gen_burnpack.py", "gen_embd.py", "gen_mag.py", "gen_gptrs.py",
                          "gen_npz.py", "gen_safetensors.py", "gen_gguf.py", "gen_ztensor1.py",
                          "gen_ztensor2.py"):
            subprocess.run([sys.executable, HERE / generator, root], check=True)
        paths = [p.with_suffix("") for p in sorted(root.glob("*/good/*.json"))]
        # every third sample is also written with --align
        jobs = [(p, t, a) for i, p in enumerate(paths) for t in TARGETS
                for a in ALIGNMENTS[:1 + (i % 3 == 0)]]
        jobs = [(*job, root / f"out{i}") for i, job in enumerate(jobs)]
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            return tap.report(pool.map(check, jobs)) or HEFT.end()


HEFT = commands.Commands(sys.argv[1])
sys.exit(main())
