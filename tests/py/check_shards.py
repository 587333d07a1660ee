#!/usr/bin/env python3
"""check_shards.py HEFT: open, verify, split and merge sharded models.

Independent readers check the files that Heft writes; the shard sets come from gen_shards.py. TAP on
stdout."""
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

from checks import CheckFailed, heft, heft_json, require
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

REFUSALS = pathlib.Path(__file__).resolve().parents[1] / "refusals" / "shards.tsv"


def model_hash(path):
    return heft_json("hash", path)["model"]


def files_in(folder):
    return {p.name: p.read_bytes() for p in sorted(pathlib.Path(folder).iterdir())}


# ---- reading ----

def good_set_is_one_model(scratch):
    gen.write(scratch / "set")
    (scratch / "one.safetensors").write_bytes(gen.pack(gen.whole(), {"format": "pt"}))
    for path in (scratch / "set", scratch / "set" / gen.INDEX):
        listed = heft_json("ls", path)
        require([t["name"] for t in listed["tensors"]] == list(gen.TENSORS),
               "the order of the tensors")
        for t in listed["tensors"]:
            require(t["parts"][0]["shard"] == gen.shard_name(gen.TENSORS[t["name"]][2]),
                   f"the file of {t['name']}")
        require(listed["metadata"] == {"format": "pt"}, listed["metadata"])
        require(model_hash(path) == model_hash(scratch / "one.safetensors"), "the hash")
        require(heft_json("verify", path)["findings"] == [], "findings")
        heft("diff", path, scratch / "one.safetensors")
    for name, (_, _, data) in gen.whole().items():
        require(heft("cat", scratch / "set", name).stdout == data, f"the bytes of {name}")
    heft("stats", scratch / "set")
    heft("ids", scratch / "set")
    heft("show", scratch / "set", "a")
    info = heft_json("info", scratch / "set")
    sizes = {name: len(data) for name, data in files_in(scratch / "set").items()}
    shards = [{"name": n, "size": sizes[n], "state": "present"} for n in sizes if n != gen.INDEX]
    require(info["shards"] == shards, info["shards"])
    require(info["size"] == sum(sizes.values()), f"size {info['size']}")
    (scratch / "set" / shards[0]["name"]).unlink()
    less = heft_json("info", scratch / "set")
    require(less["shards"][0] == {"name": shards[0]["name"], "state": "missing"}, less["shards"])
    require(less["size"] == info["size"] - shards[0]["size"], f"size {less['size']}")
    require(info["bytes"] == gen.make_index()["metadata"]["total_size"], "bytes")


def good_set_converts(scratch):
    gen.write(scratch / "set")
    heft("convert", scratch / "set", scratch / "out.safetensors")
    got = read_safetensors.read(scratch / "out.safetensors", of_heft=True)
    want = [(n, hashlib.sha256(d).hexdigest()) for n, (_, _, d) in gen.whole().items()]
    require([(t["name"], t["sha256"]) for t in got["tensors"]] == want, "the written tensors")
    for suffix in ("zt", "bpk"):
        heft("convert", scratch / "set", scratch / f"out.{suffix}")
        heft("diff", scratch / "set", scratch / f"out.{suffix}")


def links_inside_the_folder_are_followed(scratch):
    gen.write(scratch / "set")
    gen.write(scratch / "linked")
    repository = scratch / "repository"
    snapshot, blobs = repository / "snapshots" / "main", repository / "blobs"
    snapshot.mkdir(parents=True)
    blobs.mkdir()
    for number, name in enumerate(sorted(files_in(scratch / "set"))):
        (scratch / "linked" / name).rename(scratch / "linked" / f"blob{number}")
        (scratch / "linked" / name).symlink_to(f"blob{number}")
        (blobs / f"{number}").write_bytes((scratch / "set" / name).read_bytes())
        (snapshot / name).symlink_to(f"../../blobs/{number}")
    heft("merge", scratch / "set", scratch / "merged.safetensors")
    for number, path in enumerate((scratch / "linked", snapshot, snapshot / gen.INDEX)):
        require(heft_json("verify", path)["findings"] == [], "findings")
        require(model_hash(path) == model_hash(scratch / "set"), "the hash")
        out = scratch / f"merged{number}.safetensors"
        heft("merge", path, out)
        require(out.read_bytes() == (scratch / "merged.safetensors").read_bytes(),
                "what was merged")


def fault_check(entry):
    _, change, rule, severity, verify_code, code = entry

    def check(scratch):
        gen.write(scratch / "set")
        change(scratch / "set")
        found = heft_json("verify", scratch / "set", code=verify_code)["findings"]
        require((rule, severity) in [(f["rule"], f["severity"]) for f in found], found)
        heft("ls", scratch / "set")
        heft("info", scratch / "set")
        for args in (("hash", scratch / "set"), ("stats", scratch / "set"),
                     ("convert", scratch / "set", scratch / "o.safetensors"),
                     ("merge", scratch / "set", scratch / "o2.safetensors"),
                     ("split", "--count", 2, scratch / "set", scratch / "o")):
            heft(*args, code=code)
        heft("diff", scratch / "set", scratch / "set", code=code)
        require(
            code == 0
            or sorted(p.name for p in scratch.iterdir()
                      if p.name.startswith("o") and p.name != "outside.safetensors") == [],
            "an output file exists")
        require(code == 0 or b"incomplete" in heft("ls", scratch / "set").stderr,
               "ls does not say that the model is incomplete")
    return check


def read_refusals():
    """Return {title: [rule, offset]} from the table of indexes that must be refused."""
    rows = [line.split("\t") for line in REFUSALS.read_text().splitlines()[1:]]
    return {title: [rule, None if at == "-" else int(at)] for title, rule, at in rows}


def refusal_check(text, refusal):
    def check(scratch):
        gen.write(scratch / "set")
        (scratch / "set" / gen.INDEX).write_text(text)
        heft("ls", scratch / "set", code=3)
        found = heft_json("verify", scratch / "set" / gen.INDEX, code=1)["findings"]
        require([f["severity"] for f in found] == ["fault"], found)
        require([found[0]["rule"], found[0]["offset"]] == refusal, f"{found} instead of {refusal}")
    return check


def table_of_refusals(_):
    require(sorted(read_refusals()) == sorted(gen.REFUSED), "titles differ from gen_shards.REFUSED")


def folders_without_an_index(scratch):
    one = gen.pack(gen.tensors_in_file(1))
    for name, files, code in (("plain", ["model.safetensors"], 0), ("only", [
            "weights.safetensors", "readme.md"
    ], 0), ("two", ["a.safetensors", "b.safetensors"], 4), ("empty", [], 4), ("text", [
            "config.json"
    ], 4), ("usual", ["model.safetensors",
                      "other.safetensors"], 0), ("hidden", [".a.safetensors"], 4)):
        (scratch / name).mkdir()
        for f in files:
            (scratch / name / f).write_bytes(one if f.endswith("safetensors") else b"{}")
        heft("ls", scratch / name, code=code)


# ---- splitting ----

def big_model(scratch, name="big.safetensors", metadata=None):
    tensors = {
        f"layer.{i}.w": ("F32", [64, 8 + i], bytes(
            (i * 13 + k) % 251 for k in range(256 * (8 + i)))) for i in range(24)
    }
    tensors["bias"] = ("BF16", [7], bytes(14))
    tensors["last"] = ("U8", [5], b"abcde")
    (scratch / "raw.safetensors").write_bytes(
        gen.pack(tensors, metadata or {"format": "pt", "who": "\u00e9"}))
    heft("convert", scratch / "raw.safetensors", scratch / name)
    return tensors, scratch / name


def check_safetensors_shards(folder, tensors, max_size=None, stem="model"):
    text = (folder / f"{stem}.safetensors.index.json").read_text()
    index = json.loads(text)
    require(text == json.dumps(index, indent=2, sort_keys=True, ensure_ascii=False) + "\n",
           "the text of the index")
    require(index["metadata"] == {"total_size": sum(len(t[2]) for t in tensors.values())},
           index["metadata"])
    names = sorted(set(index["weight_map"].values()))
    require(names == [gen.shard_name(i + 1, len(names), stem) for i in range(len(names))], names)
    require(
        sorted(p.name for p in folder.iterdir()) == sorted(
            [*names, f"{stem}.safetensors.index.json"]), "other files")
    seen = []
    for name in names:
        got = read_safetensors.read(folder / name, of_heft=True)
        for t in got["tensors"]:
            require(index["weight_map"][t["name"]] == name, f"{t['name']} is not in {name}")
            require(t["sha256"] == hashlib.sha256(tensors[t["name"]][2]).hexdigest(),
                   f"the data of {t['name']}")
        seen += [t["name"] for t in got["tensors"]]
        size = (folder / name).stat().st_size
        require(max_size is None or size <= max_size or len(got["tensors"]) == 1,
                f"{name} has {size} bytes")
    require(seen == list(tensors), "the order of the tensors")
    return len(names)


def split_by_size(scratch):
    tensors, path = big_model(scratch)
    counts = []
    for max_size in (1, 5000, 20_000, 33_333, 100_000, 10**9):
        out = scratch / f"out{max_size}"
        heft("split", "--max-size", max_size, path, out)
        counts.append(check_safetensors_shards(out, tensors, max_size))
        require(heft_json("verify", out)["findings"] == [], "findings")
        require(model_hash(out) == model_hash(path), "the hash")
        heft("merge", out, scratch / "again.safetensors", "--force")
        require((scratch / "again.safetensors").read_bytes() == path.read_bytes(),
               "the merged file differs")
    require(
        counts == sorted(counts, reverse=True) and counts[0] == len(tensors) and counts[-1] == 1,
        counts)
    heft("split", "--max-size", "20KB", path, scratch / "again")
    require(
        files_in(scratch / "again") == files_in(scratch / "out20000"),
        "an equal split made different files")


def split_by_count(scratch):
    tensors, path = big_model(scratch)
    for count in (1, 2, 3, 7, len(tensors)):
        heft("split", "--count", count, "--name", "m", path, scratch / f"out{count}")
        require(
            check_safetensors_shards(scratch / f"out{count}", tensors, stem="m") == count,
            "the number of files")
    heft("split", "--count", len(tensors) + 1, path, scratch / "more", code=2)
    heft("split", "--count", 4, "--max-size", 20_000, path, scratch / "both")
    require(check_safetensors_shards(scratch / "both", tensors, 20_000) > 4, "both limits")
    heft("split", path, scratch / "neither", code=2)
    require(not (scratch / "more").exists() and not (scratch / "neither").exists(),
            "a folder is left")


def split_keeps_existing_files(scratch):
    _, path = big_model(scratch)
    heft("split", "--count", 3, path, scratch / "out")
    before = files_in(scratch / "out")
    heft("split", "--count", 3, path, scratch / "out", code=2)
    require(files_in(scratch / "out") == before, "an existing file was replaced")
    other = {
        "x": ("U8", [300], bytes(300)), "y": ("U8", [300], bytes(300)),
        "z": ("U8", [300], bytes(300))
    }
    (scratch / "other.safetensors").write_bytes(gen.pack(other))
    (scratch / "out" / gen.INDEX).unlink()
    (scratch / "out" / gen.INDEX).mkdir()
    heft("split", "-c", 3, "--force", scratch / "other.safetensors", scratch / "out", code=None)
    kept = {p.name: p.read_bytes() for p in (scratch / "out").iterdir() if p.is_file()}
    require(kept == {n: b for n, b in before.items() if n != gen.INDEX},
           "a split that failed changed files")
    (scratch / "out" / gen.INDEX).rmdir()
    heft("split", "--count", 3, "--force", scratch / "other.safetensors", scratch / "out")
    require(check_safetensors_shards(scratch / "out", other) == 3, "the result of --force")


def split_never_writes_its_input(scratch):
    _, path = big_model(scratch)
    heft("split", "--count", 3, path, scratch / "out")
    before = files_in(scratch / "out")
    heft("split", "--count", 3, "--force", scratch / "out", scratch / "out", code=2)
    heft("merge", "--force", scratch / "out", scratch / "out" / gen.shard_name(2), code=2)
    heft("convert", "--force", scratch / "out", scratch / "out" / gen.shard_name(2), code=2)
    require(files_in(scratch / "out") == before, "the input was changed")


def killed_split_leaves_nothing(scratch):
    """A split that is killed at any moment leaves all files or none, after recovery."""
    tensors = {f"t{i}": ("U8", [1 << 22], bytes(1 << 22)) for i in range(8)}
    (scratch / "m.safetensors").write_bytes(gen.pack(tensors))
    for i, sign in enumerate((signal.SIGKILL, signal.SIGINT, signal.SIGTERM, signal.SIGKILL)):
        out = scratch / f"out{i}"
        p = subprocess.Popen([HEFT, "split", "--count", "4",
                              str(scratch / "m.safetensors"),
                              str(out)], stderr=subprocess.DEVNULL)
        time.sleep(0.004 * (i + 1))
        p.send_signal(sign)
        p.wait()
        if sign == signal.SIGKILL and out.exists():
            # completes or undoes a split that was killed while naming files; exit 2: no split was
            subprocess.run([HEFT, "edit", str(out)], stderr=subprocess.DEVNULL, check=False)
        names = sorted(q.name for q in out.iterdir()) if out.exists() else []
        require(len(names) in (0, 5), names)


def split_of_other_formats(scratch):
    tensors, path = big_model(scratch)
    heft("convert", path, scratch / "m.bpk")
    heft("split", "--count", 2, scratch / "m.bpk", scratch / "no", code=5)
    heft("split", "--count", 2, "--to", "safetensors", "--allow-loss", scratch / "m.bpk",
         scratch / "out")
    require(model_hash(scratch / "out") == model_hash(scratch / "m.bpk"), "the hash")
    require(not (scratch / "no").exists(), "a folder is left")


def split_with_a_broken_checksum(scratch):
    _, path = big_model(scratch)
    heft("convert", "--digest", "sha256", path, scratch / "m.zt")
    raw = bytearray((scratch / "m.zt").read_bytes())
    raw[3000] ^= 1
    (scratch / "m.zt").write_bytes(raw)
    heft("split", "--count", 2, "--to", "safetensors", scratch / "m.zt", scratch / "out", code=3)
    require(not (scratch / "out").exists(), "an output file exists")
    heft("split", "-c", 2, "--to", "safetensors", "--no-verify", scratch / "m.zt", scratch / "out")


# ---- zTensor 2 ----

def check_ztensor_shards(folder, stem, tensors):
    raw = (folder / f"{stem}.zt").read_bytes()
    at, length = int.from_bytes(raw[-40:-32], "little"), int.from_bytes(raw[-32:-24], "little")
    require(
        int.from_bytes(raw[-24:-16], "little") == xxh3(raw[at:at + length]),
        "the hash of the manifest")
    root = read_ztensor2.read_manifest(raw[at:at + length])
    files = {}
    for label, shard in root["shards"].items():
        data = (folder / f"{stem}-{label}.zt").read_bytes()
        require(shard == {"size": len(data), "digest": f"xxh3:{xxh3(data):016x}"},
               f"the table entry of shard {label}")
        read_ztensor2.read(folder / f"{stem}-{label}.zt")
        files[label] = data
    require(
        sorted(p.name for p in folder.iterdir()) == sorted(
            [f"{stem}.zt", *(f"{stem}-{s}.zt" for s in files)]), "other files")
    require(
        list(root["objects"]) == sorted(tensors, key=lambda n: (len(n.encode()), n.encode())),
        "objects")
    for name, o in root["objects"].items():
        part = o["parts"]["data"]
        begin, size = part["blob"]
        data = files[part["shard"]][begin:begin + size]
        require(data == tensors[name][2], f"the data of {name}")
        require(part["digest"] == f"xxh3:{xxh3(data):016x}", f"the digest of {name}")
        require(begin % 65536 == 0, f"the offset of {name}")
    return len(files)


def split_ztensor(scratch):
    tensors, path = big_model(scratch)
    heft("convert", "--format-version", "2", path, scratch / "m.zt")
    for count in (1, 2, 12):
        out = scratch / f"out{count}"
        heft("split", "--count", count, scratch / "m.zt", out)
        require(check_ztensor_shards(out, "m", tensors) == count, "the number of files")
        for args in (out, out / "m.zt"):
            require(heft_json("verify", args)["findings"] == [], "findings")
            require(model_hash(args) == model_hash(path), "the hash")
        heft("merge", out, scratch / "again.zt", "--force")
        require((scratch / "again.zt").read_bytes() == (scratch / "m.zt").read_bytes(),
               "the merged file differs")
        heft("merge", *sorted(out.iterdir()), scratch / "again.zt", "--force")
        require((scratch / "again.zt").read_bytes() == (scratch / "m.zt").read_bytes(),
               "the file merged shard by shard differs")
    changed = scratch / "out2" / "m-1.zt"
    raw = bytearray(changed.read_bytes())
    raw[70_000] ^= 1
    changed.write_bytes(raw)
    found = heft_json("verify", scratch / "out2", code=1)["findings"]
    require({"ztensor/shard-digest"} <= {f["rule"] for f in found}, found)
    heft("merge", scratch / "out2", scratch / "no.zt", code=3)
    require(not (scratch / "no.zt").exists(), "an output file exists")


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
    """Write a set; `change` applies to file number 2: no, count, tensors, name, extra tensors."""
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


def gguf_set_is_one_model(scratch):
    tensors = write_gguf_set(scratch / "set")
    (scratch / "one.gguf").write_bytes(gen_gguf.File(tensors, GGUF_META, align=64).bytes())
    for path in (scratch / "set", scratch / "set" / gguf_name(1, 3)):
        listed = heft_json("ls", path)
        require([t["name"] for t in listed["tensors"]] == [t[0] for t in tensors],
               "the order of the tensors")
        require(not [k for k in listed["metadata"] if k.startswith("split.")], listed["metadata"])
        require(model_hash(path) == model_hash(scratch / "one.gguf"), "the hash")
        found = heft_json("verify", path)["findings"]
        require(found == [], found)
    heft("merge", scratch / "set", scratch / "m.gguf")
    require((scratch / "m.gguf").read_bytes() == (scratch / "one.gguf").read_bytes(),
           "the merged file differs")
    heft("merge", *sorted((scratch / "set").iterdir()), scratch / "n.gguf")
    require((scratch / "n.gguf").read_bytes() == (scratch / "one.gguf").read_bytes(),
           "the file merged shard by shard differs")
    found = heft_json("verify", scratch / "set" / gguf_name(2, 3))["findings"]
    require([f["rule"] for f in found] == ["heft/shard-alone"], found)
    given = [scratch / f"part{i}.gguf" for i in (1, 2, 3)]
    for i in (1, 2, 3):
        (scratch / "set" / gguf_name(i, 3)).rename(given[i - 1])
    heft("merge", *given, scratch / "o.gguf")
    require((scratch / "o.gguf").read_bytes() == (scratch / "one.gguf").read_bytes(),
           "renamed shards that are all given")
    heft("merge", *given[:2], scratch / "no.gguf", code=4)
    heft("merge", given[0], given[2], given[1], scratch / "no.gguf", code=4)


def gguf_fault(rule, code, change=None, **how):
    def check(scratch):
        write_gguf_set(scratch / "set", **how)
        if change:
            change(scratch / "set")
        found = heft_json("verify", scratch / "set" / gguf_name(1, 3), code=1)["findings"]
        require((rule, "fault") in [(f["rule"], f["severity"]) for f in found], found)
        heft("ls", scratch / "set" / gguf_name(1, 3))
        heft("merge", scratch / "set" / gguf_name(1, 3), scratch / "no.gguf", code=code)
        require(not (scratch / "no.gguf").exists(), "an output file exists")
    return check


def renamed_set(folder):
    for p in list(folder.iterdir()):
        p.rename(folder / p.name.replace("m-", "m."))
    (folder / gguf_name(1, 3).replace("m-", "m.")).rename(folder / gguf_name(1, 3))


GGUF_FAULTS = {
    "a shard is missing": gguf_fault("heft/file-missing", 4, lambda f:
                                     (f / gguf_name(2, 3)).unlink()),
    "file names have another pattern": gguf_fault("heft/file-missing", 4, renamed_set),
    "two shards have the same number": gguf_fault("heft/shard", 3, no=0),
    "split.count is wrong": gguf_fault("heft/shard", 3, count=4),
    "a shard has no split keys": gguf_fault("heft/shard", 3, plain=True),
    "split.tensors.count is wrong": gguf_fault("heft/shard-tensor", 3, tensors=99),
    "a tensor occurs in two shards": gguf_fault("heft/shard-twice", 3, extra=gguf_tensors()[:1]),
    "a shard is truncated": gguf_fault(
        "heft/shard", 3, lambda f: (f / gguf_name(3, 3)).write_bytes(
            (f / gguf_name(3, 3)).read_bytes()[:-40])),
}


def split_gguf(scratch):
    tensors = gguf_tensors()
    (scratch / "m.gguf").write_bytes(gen_gguf.File(tensors, GGUF_META, align=64).bytes())
    for count in (1, 2, 8):
        out, seen = scratch / f"out{count}", []
        heft("split", "--count", count, scratch / "m.gguf", out)
        require(
            sorted(p.name
                   for p in out.iterdir()) == [gguf_name(i + 1, count) for i in range(count)],
            "names")
        for i in range(count):
            raw = (out / gguf_name(i + 1, count)).read_bytes()
            _, _, meta, got, rest = read_gguf.parse(raw)
            read_gguf.check_written_layout(raw, *rest, meta, None)
            split = [("split.no", "u16", i), ("split.count", "u16", count),
                     ("split.tensors.count", "i32", len(tensors))]
            require([m for m in meta if m[0].startswith("split.")] == split, meta)
            require([m[0] for m in meta
                    if m not in split] == ([] if i else [m[0] for m in GGUF_META]), meta)
            seen += got
        require([(n, t, tuple(d), raw) for n, t, d, raw in seen] == [(n, t, tuple(d), raw)
                                                                    for n, t, d, raw in tensors],
               "tensors")
        require(heft_json("verify", out)["findings"] == [], "findings")
        heft("merge", out, scratch / "again.gguf", "--force")
        require((scratch / "again.gguf").read_bytes() == (scratch / "m.gguf").read_bytes(),
               "the merged file differs")


# ---- merging ----

def merge_plain_files(scratch):
    for i in (1, 2, 3):
        (scratch / f"{i}.safetensors").write_bytes(
            gen.pack(gen.tensors_in_file(i), {"format": "pt"}))
    heft("merge", *(scratch / f"{i}.safetensors" for i in (1, 2, 3)), scratch / "all.safetensors")
    got = read_safetensors.read(scratch / "all.safetensors", of_heft=True)
    require([t["name"] for t in got["tensors"]] == list(gen.TENSORS), "the order")
    require(got["metadata"] == {"format": "pt"}, got["metadata"])
    heft("convert", scratch / "2.safetensors", scratch / "2.zt")
    heft("merge", scratch / "1.safetensors", scratch / "2.zt", scratch / "3.safetensors",
         scratch / "mixed.safetensors")
    require(
        model_hash(scratch / "mixed.safetensors") == model_hash(scratch / "all.safetensors"),
        "the model merged from several formats differs")
    gen.write(scratch / "set")
    heft("merge", *sorted((scratch / "set").iterdir()), scratch / "again.safetensors")
    require(
        (scratch / "again.safetensors").read_bytes() == (scratch / "all.safetensors").read_bytes(),
        "the merge of shards next to an index")


def merge_views(scratch):
    """Merge a big-endian array in Fortran order."""
    header = "{'descr': '>f4', 'fortran_order': True, 'shape': (3, 4), }"
    header += " " * (-(10 + len(header) + 1) % 64) + "\n"
    columns = b"".join(struct.pack(">f", 4 * r + c) for c in range(4) for r in range(3))
    (scratch / "m.npy").write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) +
                                header.encode() + columns)
    (scratch / "x.safetensors").write_bytes(gen.pack({"x": ("U8", [1], b"x")}))
    heft("merge", scratch / "x.safetensors", scratch / "m.npy", scratch / "out.safetensors")
    names = [t["name"] for t in heft_json("ls", scratch / "out.safetensors")["tensors"]]
    require(
        heft("cat", scratch / "out.safetensors",
             names[1]).stdout == struct.pack("<12f", *range(12)), "the numbers")


def merge_duplicates(scratch):
    for name, byte in (("a", b"a"), ("b", b"b")):
        (scratch / f"{name}.safetensors").write_bytes(
            gen.pack({"x": ("U8", [3], byte * 3), name: ("U8", [1], byte)}))
    both = [scratch / "a.safetensors", scratch / "b.safetensors"]
    p = heft("merge", *both, scratch / "out.safetensors", code=5)
    require(b"'x'" in p.stderr and not (scratch / "out.safetensors").exists(), p.stderr)
    for rule, byte, order in (("first", b"a", ["x", "a", "b"]), ("last", b"b", ["a", "x", "b"])):
        heft("merge", "--force", "--duplicates", rule, *both, scratch / "out.safetensors")
        require(heft("cat", scratch / "out.safetensors", "x").stdout == byte * 3, rule)
        require([t["name"]
                 for t in heft_json("ls", scratch / "out.safetensors")["tensors"]] == order,
                "order")
    heft("merge", "--duplicates", "both", *both, scratch / "no.safetensors", code=2)


def merge_metadata(scratch):
    for i, (key, value) in enumerate((("k", "1"), ("k", "2"), ("l", "3"))):
        (scratch / f"{i}.safetensors").write_bytes(
            gen.pack({f"t{i}": ("U8", [1], b"x")}, {"same": "s", key: value}))
    files = [scratch / f"{i}.safetensors" for i in range(3)]
    p = heft("merge", *files, scratch / "out.safetensors")
    require(
        p.stderr.count(b"\n") == 1 and b'1.safetensors: warning: metadata "k"' in p.stderr,
        p.stderr)
    require(
        read_safetensors.read(scratch / "out.safetensors")["metadata"] == {
            "same": "s", "k": "1", "l": "3", "format": "pt"
        }, "metadata")
    heft("merge", "--strict", *files, scratch / "no.safetensors", code=5)
    heft("merge", *files, scratch / "out.safetensors", code=2)
    heft("merge", "--force", *files, files[0], code=2)
    require(not (scratch / "no.safetensors").exists(), "an output file exists")


# ---- tied tensors ----

def tied_tensors_stay_tied(scratch):
    data = bytes(range(200)) * 8
    (scratch / "m.safetensors").write_bytes(
        gen.pack({n: ("F32", [20, 20], data) for n in ("wte", "head")}
                 | {"other": ("F32", [2], bytes(8))}))
    heft("convert", "--format-version", "2", scratch / "m.safetensors", scratch / "m2.zt")
    listed = heft_json("ls", scratch / "m2.zt")["tensors"]
    require([t.get("tied_to")
            for t in listed] == ["head" if t["name"] == "wte" else None for t in listed]
           or [t.get("tied_to") for t in listed].count(None) == 2, listed)
    for suffix, version, how in (("zt", "1.0", []), ("zt", "1.2", []), ("zt", "1.2", [
            "--compress", "zstd"
    ]), ("zt", "1.0", ["--digest", "crc32c"]), ("gten", None, []), ("bpk", None, [])):
        out = scratch / f"out.{suffix}"
        p = heft("convert", "--force", *(["--format-version", version] if version else []), *how,
                 scratch / "m2.zt", out)
        ties = [t.get("tied_to") for t in heft_json("ls", out)["tensors"]]
        require(len(ties) - ties.count(None) == 1, f"{suffix} {version} {how}: {ties}")
        require(out.stat().st_size < 2 * len(data), f"{suffix}: {out.stat().st_size} bytes")
        require(b"heft/tied" not in p.stderr and b"shares" not in p.stderr, p.stderr)
        require(model_hash(out) == model_hash(scratch / "m.safetensors"), suffix)
        heft("verify", out)
        require(heft_json("info", out)["tied"][0]["bytes"] == len(data), "info")
        heft("convert", "--force", "--cast", "f16", out, scratch / f"cast.{suffix}")
    for suffix in ("safetensors", "mag"):
        p = heft("convert", "--force", scratch / "m2.zt", scratch / f"out.{suffix}")
        require(b"grows by 1600 bytes" in p.stderr and b"note: 1 tensor shares" in p.stderr,
               p.stderr)
        ties = [t.get("tied_to") for t in heft_json("ls", scratch / f"out.{suffix}")["tensors"]]
        require(ties == [None] * 3, ties)
        require(
            model_hash(scratch / f"out.{suffix}") == model_hash(scratch / "m.safetensors"), suffix)


def tied_model(scratch):
    """Write a model with two pairs of tied tensors, far apart in the order of tensors."""
    wte, gate = bytes(range(250)) * 320, bytes(range(7, 207)) * 300  # 80,000 and 60,000 bytes
    tensors = {"wte": ("F32", [len(wte) // 4], wte), "gate.a": ("F32", [len(gate) // 4], gate)}
    tensors |= {
        f"layer.{i}": ("F32", [7500], bytes((i + k) % 249 for k in range(30_000))) for i in range(6)
    }
    tensors |= {"gate.b": ("F32", [len(gate) // 4], gate), "head": ("F32", [len(wte) // 4], wte)}
    (scratch / "m.safetensors").write_bytes(gen.pack(tensors))
    heft("convert", "--format-version", "1.0", scratch / "m.safetensors", scratch / "apart.zt")
    heft("convert", "--format-version", "2", scratch / "m.safetensors", scratch / "m2.zt")
    heft("convert", "--format-version", "1.2", scratch / "m2.zt", scratch / "m.zt")
    return tensors


TIED_PAIRS = {"wte": "head", "gate.a": "gate.b"}


def shards_of(folder, stem):
    """Return {tensor: (shard, range)} from the manifest."""
    raw = (folder / f"{stem}.zt").read_bytes()
    at, length = int.from_bytes(raw[-40:-32], "little"), int.from_bytes(raw[-32:-24], "little")
    root = read_ztensor2.read_manifest(raw[at:at + length])
    return {
        n: (o["parts"]["data"]["shard"], tuple(o["parts"]["data"]["blob"]))
        for n, o in root["objects"].items()
    }


def split_keeps_tied_tensors(scratch):
    tensors = tied_model(scratch)
    once = sum(len(t[2]) for n, t in tensors.items() if n not in TIED_PAIRS.values())
    for how in (["-c", 2], ["-c", 4], ["-c", 8], ["-s", 1], ["-s", 300_000], ["-s", 600_000]):
        for name in ("m.zt", "m2.zt"):
            out = scratch / f"{name} {how[-1]}"
            heft("split", *how, "--to", "ztensor", "--name", "m", scratch / name, out)
            check_ztensor_shards(out, "m", tensors)
            ranges = shards_of(out, "m")
            for a, b in TIED_PAIRS.items():
                require(ranges[a] == ranges[b], f"{how}: {a} at {ranges[a]}, {b} at {ranges[b]}")
            files = {f for f, _ in ranges.values()}
            if how[0] == "-c":
                require(len(files) == how[1], f"{len(files)} files")
            for f in files:
                size = (out / f"m-{f}.zt").stat().st_size
                alone = {p for g, p in ranges.values() if g == f}
                require(how[0] == "-c" or size <= how[1] or len(alone) == 1,
                       f"file {f} has {size} bytes")
            require(
                sum(size for _, size in {(f, p): p[1] for f, p in ranges.values()}.items()) == once,
                "bytes are stored twice")
            require(model_hash(out) == model_hash(scratch / "m.safetensors"), "the hash")
            require(heft_json("verify", out)["findings"] == [], "findings")
    heft("split", "--count", 9, "--to", "ztensor", scratch / "m2.zt", scratch / "nine", code=2)
    for suffix in ("safetensors", "gguf"):
        heft("split", "--count", 10, "--to", suffix, scratch / "m.zt", scratch / suffix)
        require(model_hash(scratch / suffix) == model_hash(scratch / "m.safetensors"), suffix)


def merge_keeps_tied_tensors(scratch):
    tensors = tied_model(scratch)
    heft("split", "-c", 4, "--to", "ztensor", "--name", "m", scratch / "m2.zt", scratch / "set")
    heft("merge", scratch / "set", scratch / "again.zt")
    require((scratch / "again.zt").read_bytes() == (scratch / "m2.zt").read_bytes(),
           "the merged file differs")
    more = gen.pack({"more": ("F32", [1], b"abcd")})
    (scratch / "more.safetensors").write_bytes(more)
    for suffix, version, read in (
        ("zt", "2", lambda p: read_ztensor2.read(p, None, read_ztensor2.ANY)),
        ("bpk", None, lambda p: read_burnpack.read(p.read_bytes())),
        ("gten", None, lambda p: read_gptrs.read(p.read_bytes())),
        ("zt", "1.0", lambda p: read_ztensor1.read(p, "1.0", None, read_ztensor1.ANY)),
        ("zt", "1.2", lambda p: read_ztensor1.read(p, "1.2", None, read_ztensor1.ANY))):
        out = scratch / f"out.{suffix}"
        heft("merge", "--force", *(["--format-version", version] if version else []),
             scratch / "set", scratch / "more.safetensors", out)
        got = read(out)
        want = sorted((n, hashlib.sha256(t[2]).hexdigest())
                      for n, t in (tensors | {"more": ("F32", [1], b"abcd")}).items())
        require(
            sorted((t["name"], t["sha256"]) for t in got["tensors"]) == want,
            f"{suffix} {version}: other tensors")
        listed = {t["name"]: t for t in heft_json("ls", out)["tensors"]}
        for a, b in TIED_PAIRS.items():
            require(listed[a]["parts"][0]["offset"] == listed[b]["parts"][0]["offset"],
                   f"{suffix} {version}: {a} and {b} lie apart")


CHECKS = [
    good_set_is_one_model, good_set_converts, links_inside_the_folder_are_followed,
    table_of_refusals,
    folders_without_an_index, split_by_size, split_by_count, split_keeps_existing_files,
    split_never_writes_its_input, killed_split_leaves_nothing, split_of_other_formats,
    split_with_a_broken_checksum, split_ztensor, gguf_set_is_one_model, split_gguf,
    merge_plain_files, merge_views, merge_duplicates, merge_metadata, tied_tensors_stay_tied,
    split_keeps_tied_tensors, merge_keeps_tied_tensors
]


def run(title, check):
    with tempfile.TemporaryDirectory(prefix="heft-shards-") as folder:
        try:
            check(pathlib.Path(folder))
        except CheckFailed as e:
            return title, [str(e)]
        except (OSError, ValueError, KeyError, subprocess.SubprocessError,
                read_safetensors.InvalidFile, read_ztensor2.InvalidFile,
                read_gguf.InvalidFile) as e:
            return title, [f"{type(e).__name__}: {e}"]
    return title, []


def main():
    jobs = [(c.__name__.replace("_", " "), c) for c in CHECKS]
    jobs += [(f"shard set: {e[0]}", fault_check(e)) for e in gen.FAULTS]
    jobs += [(f"GGUF shards: {name}", check) for name, check in GGUF_FAULTS.items()]
    refusals = read_refusals()
    jobs += [(f"refused index: {name}", refusal_check(text, refusals.get(name)))
             for name, text in gen.REFUSED.items()]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        return tap.report(pool.map(lambda j: run(*j), jobs))


if __name__ == "__main__":
    HEFT = sys.argv[1]
    sys.exit(main())
