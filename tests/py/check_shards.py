#!/usr/bin/env python3
"""check_shards.py HEFT: models in several files, opened, judged, split and merged.  What heft writes is read by
readers of its own, and the sets that it reads come from gen_shards.py.  TAP on stdout."""
import concurrent.futures
import hashlib
import json
import os
import pathlib
import signal
import struct
import subprocess
import sys
import tempfile
import time

import gen_gguf
import gen_shards as gen
import read_burnpack
import read_gguf
import read_gptrs
import read_safetensors
import read_ztensor1
import read_ztensor2
from xxh3 import xxh3

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import tap  # noqa: E402


class Wrong(Exception):
    pass


def demand(truth, complaint):
    if not truth:
        raise Wrong(str(complaint))


def heft(*args, code=0, cwd=None):
    p = subprocess.run([HEFT, *map(str, args)], capture_output=True, check=False, cwd=cwd)
    demand(code is None or p.returncode == code,
           f"{args[0]}: exit {p.returncode}, not {code}: {p.stderr.decode()[:300]}")
    return p


def heft_json(*args, code=0):
    return json.loads(heft(*args, "--json", code=code).stdout)


def model_hash(path):
    return heft_json("hash", path)["model"]


def files_in(folder):
    return {p.name: p.read_bytes() for p in sorted(pathlib.Path(folder).iterdir())}


# ---- reading ----

def good_set_is_one_model(top):
    gen.write(top / "set")
    (top / "one.safetensors").write_bytes(gen.pack(gen.whole(), {"format": "pt"}))
    for path in (top / "set", top / "set" / gen.INDEX):
        listed = heft_json("ls", path)
        demand([t["name"] for t in listed["tensors"]] == list(gen.TENSORS),
               "the order of the tensors")
        for t in listed["tensors"]:
            demand(t["parts"][0]["sibling"] == gen.name_of(gen.TENSORS[t["name"]][2]),
                   f"the file of {t['name']}")
        demand(listed["metadata"] == {"format": "pt"}, listed["metadata"])
        demand(model_hash(path) == model_hash(top / "one.safetensors"), "the hash")
        demand(heft_json("verify", path)["findings"] == [], "findings")
        heft("diff", path, top / "one.safetensors")
    for name, (_, _, data) in gen.whole().items():
        demand(heft("cat", top / "set", name).stdout == data, f"the bytes of {name}")
    heft("stats", top / "set")
    heft("ids", top / "set")
    heft("show", top / "set", "a")
    info = heft_json("info", top / "set")
    demand([s["state"] for s in info["siblings"]] == ["at hand"] * gen.COUNT, info["siblings"])
    demand(info["bytes"] == gen.index_of()["metadata"]["total_size"], "bytes")


def good_set_converts(top):
    gen.write(top / "set")
    heft("convert", top / "set", top / "out.safetensors")
    got = read_safetensors.read(top / "out.safetensors", of_heft=True)
    want = [(n, hashlib.sha256(d).hexdigest()) for n, (_, _, d) in gen.whole().items()]
    demand([(t["name"], t["sha256"]) for t in got["tensors"]] == want, "what was written")
    for suffix in ("zt", "bpk"):
        heft("convert", top / "set", top / f"out.{suffix}")
        heft("diff", top / "set", top / f"out.{suffix}")


def links_in_the_folder_are_followed(top):
    gen.write(top / "set")
    gen.write(top / "linked")
    snapshot, blobs = top / "repository" / "snapshots" / "main", top / "repository" / "blobs"
    snapshot.mkdir(parents=True)
    blobs.mkdir()
    for number, name in enumerate(sorted(files_in(top / "set"))):
        (top / "linked" / name).rename(top / "linked" / f"blob{number}")
        (top / "linked" / name).symlink_to(f"blob{number}")
        (blobs / f"{number}").write_bytes((top / "set" / name).read_bytes())
        (snapshot / name).symlink_to(f"../../blobs/{number}")
    heft("merge", top / "set", top / "merged.safetensors")
    for number, path in enumerate((top / "linked", snapshot, snapshot / gen.INDEX)):
        demand(heft_json("verify", path)["findings"] == [], "findings")
        demand(model_hash(path) == model_hash(top / "set"), "the hash")
        out = top / f"merged{number}.safetensors"
        heft("merge", path, out)
        demand(out.read_bytes() == (top / "merged.safetensors").read_bytes(), "what was merged")


def fault(entry):
    _, change, rule, severity, verify_code, code = entry

    def check(top):
        gen.write(top / "set")
        change(top / "set")
        found = heft_json("verify", top / "set", code=verify_code)["findings"]
        demand((rule, severity) in [(f["rule"], f["severity"]) for f in found], found)
        heft("ls", top / "set")
        heft("info", top / "set")
        for args in (("hash", top / "set"), ("stats", top / "set"), ("convert", top / "set",
                                                                     top / "o.safetensors"),
                     ("merge", top / "set", top / "o2.safetensors"), ("split", "-n", 2, top / "set",
                                                                      top / "o")):
            heft(*args, code=code)
        heft("diff", top / "set", top / "set", code=code)
        demand(
            code == 0
            or sorted(p.name for p in top.iterdir()
                      if p.name.startswith("o") and p.name != "outside.safetensors") == [],
            "something was written")
        demand(code == 0 or b"incomplete" in heft("ls", top / "set").stderr,
               "ls does not say that the model is incomplete")
    return check


def refused(text):
    def check(top):
        gen.write(top / "set")
        (top / "set" / gen.INDEX).write_text(text)
        heft("ls", top / "set", code=3)
        found = heft_json("verify", top / "set" / gen.INDEX, code=1)["findings"]
        demand([f["severity"] for f in found] == ["fault"], found)
    return check


def folders(top):
    one = gen.pack(gen.of_file(1))
    for name, files, code in (("plain", ["model.safetensors"], 0), ("only", [
            "weights.safetensors", "readme.md"
    ], 0), ("two", ["a.safetensors", "b.safetensors"], 4), ("empty", [], 4), ("text", [
            "config.json"
    ], 4), ("usual", ["model.safetensors",
                      "other.safetensors"], 0), ("hidden", [".a.safetensors"], 4)):
        (top / name).mkdir()
        for f in files:
            (top / name / f).write_bytes(one if f.endswith("safetensors") else b"{}")
        heft("ls", top / name, code=code)


# ---- splitting ----

def big_model(top, name="big.safetensors", metadata=None):
    tensors = {
        f"layer.{i}.w": ("F32", [64, 8 + i], bytes(
            (i * 13 + k) % 251 for k in range(256 * (8 + i)))) for i in range(24)
    }
    tensors["bias"] = ("BF16", [7], bytes(14))
    tensors["last"] = ("U8", [5], b"abcde")
    (top / "raw.safetensors").write_bytes(
        gen.pack(tensors, metadata or {"format": "pt", "who": "\u00e9"}))
    heft("convert", top / "raw.safetensors", top / name)
    return tensors, top / name


def judge_safetensors(folder, tensors, most=None, stem="model"):
    text = (folder / f"{stem}.safetensors.index.json").read_text()
    index = json.loads(text)
    demand(text == json.dumps(index, indent=2, sort_keys=True, ensure_ascii=False) + "\n",
           "how the index is written")
    demand(index["metadata"] == {"total_size": sum(len(t[2]) for t in tensors.values())},
           index["metadata"])
    names = sorted(set(index["weight_map"].values()))
    demand(names == [gen.name_of(i + 1, len(names), stem) for i in range(len(names))], names)
    demand(
        sorted(p.name for p in folder.iterdir()) == sorted(
            [*names, f"{stem}.safetensors.index.json"]), "other files")
    seen = []
    for name in names:
        got = read_safetensors.read(folder / name, of_heft=True)
        for t in got["tensors"]:
            demand(index["weight_map"][t["name"]] == name, f"{t['name']} is not in {name}")
            demand(t["sha256"] == hashlib.sha256(tensors[t["name"]][2]).hexdigest(),
                   f"the data of {t['name']}")
        seen += [t["name"] for t in got["tensors"]]
        size = (folder / name).stat().st_size
        demand(most is None or size <= most or len(got["tensors"]) == 1, f"{name} has {size} bytes")
    demand(seen == list(tensors), "the order of the tensors")
    return len(names)


def split_by_size(top):
    tensors, path = big_model(top)
    counts = []
    for most in (1, 5000, 20_000, 33_333, 100_000, 10**9):
        out = top / f"out{most}"
        heft("split", "--max-size", most, path, out)
        counts.append(judge_safetensors(out, tensors, most))
        demand(heft_json("verify", out)["findings"] == [], "findings")
        demand(model_hash(out) == model_hash(path), "the hash")
        heft("merge", out, top / "again.safetensors", "--force")
        demand((top / "again.safetensors").read_bytes() == path.read_bytes(),
               "merged, it is another file")
    demand(counts == sorted(counts, reverse=True) and counts[0] == len(tensors) and counts[-1] == 1,
           counts)
    heft("split", "--max-size", "20KB", path, top / "again")
    demand(files_in(top / "again") == files_in(top / "out20000"), "the same split made other files")


def split_by_count(top):
    tensors, path = big_model(top)
    for count in (1, 2, 3, 7, len(tensors)):
        heft("split", "--count", count, "--name", "m", path, top / f"out{count}")
        demand(judge_safetensors(top / f"out{count}", tensors, stem="m") == count, "how many files")
    heft("split", "--count", len(tensors) + 1, path, top / "more", code=2)
    heft("split", "--count", 4, "--max-size", 20_000, path, top / "both")
    demand(judge_safetensors(top / "both", tensors, 20_000) > 4, "both limits")
    heft("split", path, top / "neither", code=2)
    demand(not (top / "more").exists() and not (top / "neither").exists(), "a folder was left")


def split_leaves_what_is_there(top):
    _, path = big_model(top)
    heft("split", "-n", 3, path, top / "out")
    before = files_in(top / "out")
    heft("split", "-n", 3, path, top / "out", code=2)
    demand(files_in(top / "out") == before, "something was replaced")
    other = {
        "x": ("U8", [300], bytes(300)), "y": ("U8", [300], bytes(300)),
        "z": ("U8", [300], bytes(300))
    }
    (top / "other.safetensors").write_bytes(gen.pack(other))
    (top / "out" / gen.INDEX).unlink()
    (top / "out" / gen.INDEX).mkdir()
    heft("split", "-n", 3, "--force", top / "other.safetensors", top / "out", code=None)
    kept = {p.name: p.read_bytes() for p in (top / "out").iterdir() if p.is_file()}
    demand(kept == {n: b for n, b in before.items() if n != gen.INDEX},
           "a split that failed changed files")
    (top / "out" / gen.INDEX).rmdir()
    heft("split", "-n", 3, "--force", top / "other.safetensors", top / "out")
    demand(judge_safetensors(top / "out", other) == 3, "what was forced")


def split_never_writes_its_input(top):
    _, path = big_model(top)
    heft("split", "-n", 3, path, top / "out")
    before = files_in(top / "out")
    heft("split", "-n", 3, "--force", top / "out", top / "out", code=2)
    heft("merge", "--force", top / "out", top / "out" / gen.name_of(2), code=2)
    heft("convert", "--force", top / "out", top / "out" / gen.name_of(2), code=2)
    demand(files_in(top / "out") == before, "the input was changed")


def split_killed_leaves_nothing(top):
    """A split that is killed at any moment leaves all files or none, after recovery."""
    tensors = {f"t{i}": ("U8", [1 << 22], bytes(1 << 22)) for i in range(8)}
    (top / "m.safetensors").write_bytes(gen.pack(tensors))
    for i, sign in enumerate((signal.SIGKILL, signal.SIGINT, signal.SIGTERM, signal.SIGKILL)):
        out = top / f"out{i}"
        p = subprocess.Popen([HEFT, "split", "-n", "4",
                              str(top / "m.safetensors"),
                              str(out)], stderr=subprocess.DEVNULL)
        time.sleep(0.004 * (i + 1))
        p.send_signal(sign)
        p.wait()
        if sign == signal.SIGKILL and out.exists():
            # completes or undoes a split that was killed while naming files; exit 2: no split was
            subprocess.run([HEFT, "edit", str(out)], stderr=subprocess.DEVNULL, check=False)
        names = sorted(q.name for q in out.iterdir()) if out.exists() else []
        demand(len(names) in (0, 5), names)


def split_of_other_formats(top):
    tensors, path = big_model(top)
    heft("convert", path, top / "m.bpk")
    heft("split", "-n", 2, top / "m.bpk", top / "no", code=5)
    heft("split", "-n", 2, "--to", "safetensors", "--allow-loss", top / "m.bpk", top / "out")
    demand(model_hash(top / "out") == model_hash(top / "m.bpk"), "the hash")
    demand(not (top / "no").exists(), "a folder was left")


def split_with_a_broken_checksum(top):
    _, path = big_model(top)
    heft("convert", "--digest", "sha256", path, top / "m.zt")
    raw = bytearray((top / "m.zt").read_bytes())
    raw[3000] ^= 1
    (top / "m.zt").write_bytes(raw)
    heft("split", "-n", 2, "--to", "safetensors", top / "m.zt", top / "out", code=3)
    demand(not (top / "out").exists(), "something was written")
    heft("split", "-n", 2, "--to", "safetensors", "--no-verify", top / "m.zt", top / "out")


# ---- zTensor 2 ----

def judge_ztensor(folder, stem, tensors):
    raw = (folder / f"{stem}.zt").read_bytes()
    at, length = int.from_bytes(raw[-40:-32], "little"), int.from_bytes(raw[-32:-24], "little")
    demand(
        int.from_bytes(raw[-24:-16], "little") == xxh3(raw[at:at + length]),
        "the hash of the manifest")
    root = read_ztensor2.read_manifest(raw[at:at + length])
    files = {}
    for label, shard in root["shards"].items():
        data = (folder / f"{stem}-{label}.zt").read_bytes()
        demand(shard == {"size": len(data), "digest": f"xxh3:{xxh3(data):016x}"},
               f"what is said of file {label}")
        read_ztensor2.read(folder / f"{stem}-{label}.zt")
        files[label] = data
    demand(
        sorted(p.name for p in folder.iterdir()) == sorted(
            [f"{stem}.zt", *(f"{stem}-{s}.zt" for s in files)]), "other files")
    demand(
        list(root["objects"]) == sorted(tensors, key=lambda n: (len(n.encode()), n.encode())),
        "objects")
    for name, o in root["objects"].items():
        part = o["parts"]["data"]
        begin, size = part["blob"]
        data = files[part["shard"]][begin:begin + size]
        demand(data == tensors[name][2], f"the data of {name}")
        demand(part["digest"] == f"xxh3:{xxh3(data):016x}", f"the digest of {name}")
        demand(begin % 65536 == 0, f"where {name} lies")
    return len(files)


def split_ztensor(top):
    tensors, path = big_model(top)
    heft("convert", "--format-version", "2", path, top / "m.zt")
    for count in (1, 2, 12):
        out = top / f"out{count}"
        heft("split", "-n", count, top / "m.zt", out)
        demand(judge_ztensor(out, "m", tensors) == count, "how many files")
        for args in (out, out / "m.zt"):
            demand(heft_json("verify", args)["findings"] == [], "findings")
            demand(model_hash(args) == model_hash(path), "the hash")
        heft("merge", out, top / "again.zt", "--force")
        demand((top / "again.zt").read_bytes() == (top / "m.zt").read_bytes(),
               "merged, it is another file")
        heft("merge", *sorted(out.iterdir()), top / "again.zt", "--force")
        demand((top / "again.zt").read_bytes() == (top / "m.zt").read_bytes(),
               "merged file by file, it is another")
    changed = top / "out2" / "m-1.zt"
    raw = bytearray(changed.read_bytes())
    raw[70_000] ^= 1
    changed.write_bytes(raw)
    found = heft_json("verify", top / "out2", code=1)["findings"]
    demand({"ztensor/shard-digest"} <= {f["rule"] for f in found}, found)
    heft("merge", top / "out2", top / "no.zt", code=3)
    demand(not (top / "no.zt").exists(), "something was written")


# ---- GGUF ----

GGUF_TYPES = ("f32", "q4_0", "f16", "q8_0", "f32", "q6_k", "f32", "f32")
GGUF_META = [("general.architecture", "str", "sample"), ("general.alignment", "u32", 64),
             ("a.list", "arr", ("i32", [3, -4])),
             ("tokenizer.ggml.tokens", "arr", ("str", ["[PAD]", "b", "c"])), ("n", "u8", 7)]


def gguf_tensors():
    return [gen_gguf.tensor(f"blk.{i}", t, (4 + i, 256)) for i, t in enumerate(GGUF_TYPES)]


def gguf_name(i, count):
    return f"m-{i:05d}-of-{count:05d}.gguf"


def write_gguf_set(folder, files=3, **change):
    """change: of file number 2: no, count, tensors, name, extra tensors."""
    tensors, folder = gguf_tensors(), pathlib.Path(folder)
    folder.mkdir()
    for i in range(files):
        own = change if i == 1 else {}
        run = tensors[len(tensors) * i // files:len(tensors) *
                      (i + 1) // files] + own.get("extra", [])
        split = [("split.no", "u16", own.get("no", i)),
                 ("split.count", "u16", own.get("count", files)),
                 ("split.tensors.count", "i32", change.get("tensors", len(tensors)))]
        meta = (GGUF_META if not i else []) + ([] if own.get("plain") else split)
        (folder / gguf_name(i + 1, files)).write_bytes(
            gen_gguf.File(run, meta, align=32 if i else 64).bytes())
    return tensors


def gguf_set_is_one_model(top):
    tensors = write_gguf_set(top / "set")
    (top / "one.gguf").write_bytes(gen_gguf.File(tensors, GGUF_META, align=64).bytes())
    for path in (top / "set", top / "set" / gguf_name(1, 3)):
        listed = heft_json("ls", path)
        demand([t["name"] for t in listed["tensors"]] == [t[0] for t in tensors],
               "the order of the tensors")
        demand(not [k for k in listed["metadata"] if k.startswith("split.")], listed["metadata"])
        demand(model_hash(path) == model_hash(top / "one.gguf"), "the hash")
        found = heft_json("verify", path)["findings"]
        demand(found == [], found)
    heft("merge", top / "set", top / "m.gguf")
    demand((top / "m.gguf").read_bytes() == (top / "one.gguf").read_bytes(),
           "merged, it is another file")
    heft("merge", *sorted((top / "set").iterdir()), top / "n.gguf")
    demand((top / "n.gguf").read_bytes() == (top / "one.gguf").read_bytes(),
           "merged file by file, it is another")
    found = heft_json("verify", top / "set" / gguf_name(2, 3))["findings"]
    demand([f["rule"] for f in found] == ["heft/shard-alone"], found)


def gguf_fault(rule, code, change=None, **how):
    def check(top):
        write_gguf_set(top / "set", **how)
        if change:
            change(top / "set")
        found = heft_json("verify", top / "set" / gguf_name(1, 3), code=1)["findings"]
        demand((rule, "fault") in [(f["rule"], f["severity"]) for f in found], found)
        heft("ls", top / "set" / gguf_name(1, 3))
        heft("merge", top / "set" / gguf_name(1, 3), top / "no.gguf", code=code)
        demand(not (top / "no.gguf").exists(), "something was written")
    return check


def renamed_set(folder):
    for p in list(folder.iterdir()):
        p.rename(folder / p.name.replace("m-", "m."))
    (folder / gguf_name(1, 3).replace("m-", "m.")).rename(folder / gguf_name(1, 3))


GGUF_FAULTS = {
    "missing": gguf_fault("heft/file-missing", 4, lambda f: (f / gguf_name(2, 3)).unlink()),
    "names": gguf_fault("heft/file-missing", 4, renamed_set),
    "number": gguf_fault("heft/shard", 3, no=0),
    "count": gguf_fault("heft/shard", 3, count=4),
    "plain": gguf_fault("heft/shard", 3, plain=True),
    "total": gguf_fault("heft/shard-tensor", 3, tensors=99),
    "twice": gguf_fault("heft/shard-twice", 3, extra=gguf_tensors()[:1]),
    "cut": gguf_fault(
        "heft/shard", 3, lambda f: (f / gguf_name(3, 3)).write_bytes(
            (f / gguf_name(3, 3)).read_bytes()[:-40])),
}


def split_gguf(top):
    tensors = gguf_tensors()
    (top / "m.gguf").write_bytes(gen_gguf.File(tensors, GGUF_META, align=64).bytes())
    for count in (1, 2, 8):
        out, seen = top / f"out{count}", []
        heft("split", "-n", count, top / "m.gguf", out)
        demand(
            sorted(p.name
                   for p in out.iterdir()) == [gguf_name(i + 1, count) for i in range(count)],
            "names")
        for i in range(count):
            raw = (out / gguf_name(i + 1, count)).read_bytes()
            _, _, meta, got, rest = read_gguf.parse(raw)
            read_gguf.judge(raw, *rest, meta, None)
            split = [("split.no", "u16", i), ("split.count", "u16", count),
                     ("split.tensors.count", "i32", len(tensors))]
            demand([m for m in meta if m[0].startswith("split.")] == split, meta)
            demand([m[0] for m in meta
                    if m not in split] == ([] if i else [m[0] for m in GGUF_META]), meta)
            seen += got
        demand([(n, t, tuple(d), raw) for n, t, d, raw in seen] == [(n, t, tuple(d), raw)
                                                                    for n, t, d, raw in tensors],
               "tensors")
        demand(heft_json("verify", out)["findings"] == [], "findings")
        heft("merge", out, top / "again.gguf", "--force")
        demand((top / "again.gguf").read_bytes() == (top / "m.gguf").read_bytes(),
               "merged, it is another file")


# ---- merging ----

def merge_plain_files(top):
    for i in (1, 2, 3):
        (top / f"{i}.safetensors").write_bytes(gen.pack(gen.of_file(i), {"format": "pt"}))
    heft("merge", *(top / f"{i}.safetensors" for i in (1, 2, 3)), top / "all.safetensors")
    got = read_safetensors.read(top / "all.safetensors", of_heft=True)
    demand([t["name"] for t in got["tensors"]] == list(gen.TENSORS), "the order")
    demand(got["metadata"] == {"format": "pt"}, got["metadata"])
    heft("convert", top / "2.safetensors", top / "2.zt")
    heft("merge", top / "1.safetensors", top / "2.zt", top / "3.safetensors",
         top / "mixed.safetensors")
    demand(
        model_hash(top / "mixed.safetensors") == model_hash(top / "all.safetensors"),
        "of several formats, another model")
    gen.write(top / "set")
    heft("merge", *sorted((top / "set").iterdir()), top / "again.safetensors")
    demand((top / "again.safetensors").read_bytes() == (top / "all.safetensors").read_bytes(),
           "files beside their index")


def merge_views(top):
    """Columns stored one by one, big-endian: what is read in another order is so in a joined model, too."""
    header = "{'descr': '>f4', 'fortran_order': True, 'shape': (3, 4), }"
    header += " " * (-(10 + len(header) + 1) % 64) + "\n"
    columns = b"".join(struct.pack(">f", 4 * r + c) for c in range(4) for r in range(3))
    (top / "m.npy").write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) +
                                header.encode() + columns)
    (top / "x.safetensors").write_bytes(gen.pack({"x": ("U8", [1], b"x")}))
    heft("merge", top / "x.safetensors", top / "m.npy", top / "out.safetensors")
    names = [t["name"] for t in heft_json("ls", top / "out.safetensors")["tensors"]]
    demand(
        heft("cat", top / "out.safetensors", names[1]).stdout == struct.pack("<12f", *range(12)),
        "the numbers")


def merge_duplicates(top):
    for name, byte in (("a", b"a"), ("b", b"b")):
        (top / f"{name}.safetensors").write_bytes(
            gen.pack({"x": ("U8", [3], byte * 3), name: ("U8", [1], byte)}))
    both = [top / "a.safetensors", top / "b.safetensors"]
    p = heft("merge", *both, top / "out.safetensors", code=5)
    demand(b"'x'" in p.stderr and not (top / "out.safetensors").exists(), p.stderr)
    for rule, byte, order in (("first", b"a", ["x", "a", "b"]), ("last", b"b", ["a", "x", "b"])):
        heft("merge", "--force", "--duplicates", rule, *both, top / "out.safetensors")
        demand(heft("cat", top / "out.safetensors", "x").stdout == byte * 3, rule)
        demand([t["name"] for t in heft_json("ls", top / "out.safetensors")["tensors"]] == order,
               "order")
    heft("merge", "--duplicates", "both", *both, top / "no.safetensors", code=2)


def merge_metadata(top):
    for i, (key, value) in enumerate((("k", "1"), ("k", "2"), ("l", "3"))):
        (top / f"{i}.safetensors").write_bytes(
            gen.pack({f"t{i}": ("U8", [1], b"x")}, {"same": "s", key: value}))
    files = [top / f"{i}.safetensors" for i in range(3)]
    p = heft("merge", *files, top / "out.safetensors")
    demand(
        p.stderr.count(b"\n") == 1 and b'1.safetensors: warning: metadata "k"' in p.stderr,
        p.stderr)
    demand(
        read_safetensors.read(
            top / "out.safetensors")["metadata"] == {"same": "s", "k": "1", "l": "3"}, "metadata")
    heft("merge", "--strict", *files, top / "no.safetensors", code=5)
    heft("merge", *files, top / "out.safetensors", code=2)
    heft("merge", "--force", *files, files[0], code=2)
    demand(not (top / "no.safetensors").exists(), "something was written")


# ---- tied tensors ----

def tied(top):
    data = bytes(range(200)) * 8
    (top / "m.safetensors").write_bytes(
        gen.pack({n: ("F32", [20, 20], data) for n in ("wte", "head")}
                 | {"other": ("F32", [2], bytes(8))}))
    heft("convert", "--format-version", "2", top / "m.safetensors", top / "m2.zt")
    listed = heft_json("ls", top / "m2.zt")["tensors"]
    demand([t.get("tied_to")
            for t in listed] == ["head" if t["name"] == "wte" else None for t in listed]
           or [t.get("tied_to") for t in listed].count(None) == 2, listed)
    for suffix, version, how in (("zt", "1.0", []), ("zt", "1.2", []), ("zt", "1.2", [
            "--compress", "zstd"
    ]), ("zt", "1.0", ["--digest", "crc32c"]), ("gten", None, []), ("bpk", None, [])):
        out = top / f"out.{suffix}"
        p = heft("convert", "--force", *(["--format-version", version] if version else []), *how,
                 top / "m2.zt", out)
        ties = [t.get("tied_to") for t in heft_json("ls", out)["tensors"]]
        demand(len(ties) - ties.count(None) == 1, f"{suffix} {version} {how}: {ties}")
        demand(out.stat().st_size < 2 * len(data), f"{suffix}: {out.stat().st_size} bytes")
        demand(b"heft/tied" not in p.stderr and b"shares" not in p.stderr, p.stderr)
        demand(model_hash(out) == model_hash(top / "m.safetensors"), suffix)
        heft("verify", out)
        demand(heft_json("info", out)["tied"][0]["bytes"] == len(data), "info")
        heft("convert", "--force", "--cast", "f16", out, top / f"cast.{suffix}")
    for suffix in ("safetensors", "mag"):
        p = heft("convert", "--force", top / "m2.zt", top / f"out.{suffix}")
        demand(b"grows by 1600 bytes" in p.stderr and b"note: 1 tensor shares" in p.stderr,
               p.stderr)
        ties = [t.get("tied_to") for t in heft_json("ls", top / f"out.{suffix}")["tensors"]]
        demand(ties == [None] * 3, ties)
        demand(model_hash(top / f"out.{suffix}") == model_hash(top / "m.safetensors"), suffix)


def tied_model(top):
    """Two pairs, far apart in the order of tensors, and equal bytes that lie in two places."""
    wte, gate = bytes(range(250)) * 320, bytes(range(7, 207)) * 300  # 80,000 and 60,000 bytes
    tensors = {"wte": ("F32", [len(wte) // 4], wte), "gate.a": ("F32", [len(gate) // 4], gate)}
    tensors |= {
        f"layer.{i}": ("F32", [7500], bytes((i + k) % 249 for k in range(30_000))) for i in range(6)
    }
    tensors |= {"gate.b": ("F32", [len(gate) // 4], gate), "head": ("F32", [len(wte) // 4], wte)}
    (top / "m.safetensors").write_bytes(gen.pack(tensors))
    heft("convert", "--format-version", "1.0", top / "m.safetensors", top / "apart.zt")
    heft("convert", "--format-version", "2", top / "m.safetensors", top / "m2.zt")
    heft("convert", "--format-version", "1.2", top / "m2.zt", top / "m.zt")
    return tensors


TIED = {"wte": "head", "gate.a": "gate.b"}


def shards_of(folder, stem):
    """{tensor: (file, where)}, by the manifest."""
    raw = (folder / f"{stem}.zt").read_bytes()
    at, length = int.from_bytes(raw[-40:-32], "little"), int.from_bytes(raw[-32:-24], "little")
    root = read_ztensor2.read_manifest(raw[at:at + length])
    return {
        n: (o["parts"]["data"]["shard"], tuple(o["parts"]["data"]["blob"]))
        for n, o in root["objects"].items()
    }


def split_keeps_ties(top):
    tensors = tied_model(top)
    once = sum(len(t[2]) for n, t in tensors.items() if n not in TIED.values())
    for how in (["-n", 2], ["-n", 4], ["-n", 8], ["-s", 1], ["-s", 300_000], ["-s", 600_000]):
        for name in ("m.zt", "m2.zt"):
            out = top / f"{name} {how[-1]}"
            heft("split", *how, "--to", "ztensor", "--name", "m", top / name, out)
            judge_ztensor(out, "m", tensors)
            places = shards_of(out, "m")
            for a, b in TIED.items():
                demand(places[a] == places[b], f"{how}: {a} at {places[a]}, {b} at {places[b]}")
            files = {f for f, _ in places.values()}
            if how[0] == "-n":
                demand(len(files) == how[1], f"{len(files)} files")
            for f in files:
                size = (out / f"m-{f}.zt").stat().st_size
                alone = {p for g, p in places.values() if g == f}
                demand(how[0] == "-n" or size <= how[1] or len(alone) == 1,
                       f"file {f} has {size} bytes")
            demand(
                sum(size for _, size in {(f, p): p[1] for f, p in places.values()}.items()) == once,
                "bytes are there twice")
            demand(model_hash(out) == model_hash(top / "m.safetensors"), "the hash")
            demand(heft_json("verify", out)["findings"] == [], "findings")
    heft("split", "-n", 9, "--to", "ztensor", top / "m2.zt", top / "nine", code=2)
    for suffix in ("safetensors", "gguf"):
        heft("split", "-n", 10, "--to", suffix, top / "m.zt", top / suffix)
        demand(model_hash(top / suffix) == model_hash(top / "m.safetensors"), suffix)


def merge_keeps_ties(top):
    tensors = tied_model(top)
    heft("split", "-n", 4, "--to", "ztensor", "--name", "m", top / "m2.zt", top / "set")
    heft("merge", top / "set", top / "again.zt")
    demand((top / "again.zt").read_bytes() == (top / "m2.zt").read_bytes(),
           "merged, it is another file")
    more = gen.pack({"more": ("F32", [1], b"abcd")})
    (top / "more.safetensors").write_bytes(more)
    for suffix, version, read in (
        ("zt", "2", lambda p: read_ztensor2.read(p, None, read_ztensor2.ANY)),
        ("bpk", None, lambda p: read_burnpack.read(p.read_bytes())),
        ("gten", None, lambda p: read_gptrs.read(p.read_bytes())),
        ("zt", "1.0", lambda p: read_ztensor1.read(p, "1.0", None, read_ztensor1.ANY)),
        ("zt", "1.2", lambda p: read_ztensor1.read(p, "1.2", None, read_ztensor1.ANY))):
        out = top / f"out.{suffix}"
        heft("merge", "--force", *(["--format-version", version] if version else []), top / "set",
             top / "more.safetensors", out)
        got = read(out)
        want = sorted((n, hashlib.sha256(t[2]).hexdigest())
                      for n, t in (tensors | {"more": ("F32", [1], b"abcd")}).items())
        demand(
            sorted((t["name"], t["sha256"]) for t in got["tensors"]) == want,
            f"{suffix} {version}: other tensors")
        listed = {t["name"]: t for t in heft_json("ls", out)["tensors"]}
        for a, b in TIED.items():
            demand(listed[a]["parts"][0]["offset"] == listed[b]["parts"][0]["offset"],
                   f"{suffix} {version}: {a} and {b} lie apart")


CHECKS = [
    good_set_is_one_model, good_set_converts, links_in_the_folder_are_followed, folders,
    split_by_size, split_by_count, split_leaves_what_is_there, split_never_writes_its_input,
    split_killed_leaves_nothing, split_of_other_formats, split_with_a_broken_checksum,
    split_ztensor, gguf_set_is_one_model, split_gguf, merge_plain_files, merge_views,
    merge_duplicates, merge_metadata, tied, split_keeps_ties, merge_keeps_ties
]


def run(title, check):
    with tempfile.TemporaryDirectory(prefix="heft-shards-") as folder:
        try:
            check(pathlib.Path(folder))
        except Wrong as e:
            return title, [str(e)]
        except (OSError, ValueError, KeyError, subprocess.SubprocessError, read_safetensors.Refused,
                read_ztensor2.Bad, read_gguf.Bad) as e:
            return title, [f"{type(e).__name__}: {e}"]
    return title, []


def main():
    jobs = [(c.__name__.replace("_", " "), c) for c in CHECKS]
    jobs += [(f"a set: {e[0]}", fault(e)) for e in gen.FAULTS]
    jobs += [(f"a set of GGUF: {name}", check) for name, check in GGUF_FAULTS.items()]
    jobs += [(f"an index: {name}", refused(text)) for name, text in gen.REFUSED.items()]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        return tap.report(pool.map(lambda j: run(*j), jobs))


if __name__ == "__main__":
    HEFT = sys.argv[1]
    sys.exit(main())
