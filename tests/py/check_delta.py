#!/usr/bin/env python3
"""check_delta.py HEFT: deltas that Heft makes are applied by numpy, those that are written without
Heft are applied by Heft, and so are the deltas of other programs; what is wrong is refused. TAP on
stdout."""
import json
import os

import pathlib
import shutil
import struct
import sys

import numpy as np

import onnx_proto as onnx
from checks import heft, heft_json, require, run
from delta_file import (apply_delta, apply_disk_delta, blake3, Delta, read_delta, read_model,
                        tensor_hash, write_disk_delta, write_model, write_patch)

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import tap  # noqa: E402

RANDOM = np.random.default_rng(7)
sys.argv[1] = os.path.abspath(sys.argv[1])  # commands run in other folders


def bf16(n):
    return (RANDOM.standard_normal(n).astype("<f4").view("<u4") >> 16).astype("<u2")


def changed(array, at):
    """Return a copy with other values at the positions."""
    unit = array.itemsize
    new = array.copy()
    new.reshape(-1).view(f"<u{unit}")[at] ^= np.array(5, f"<u{unit}")
    return new


def scattered(n, share):
    return np.flatnonzero(RANDOM.random(n) < share)


def models(scratch, more=True):
    """Write two models; with `more` tensors and metadata come and go, too."""
    n = 3 * 65536 + 777
    old = {"w": ("BF16", bf16(n).reshape(-1, 1)), "f32": ("F32", RANDOM.random(70000, "<f4")),
           "f64": ("F64", RANDOM.random(9000)), "u8": ("U8", np.arange(200001, dtype="u1")),
           "i8": ("I8", np.zeros((7, 3), "i1")), "same": ("F32", np.ones(10, "<f4")),
           "dense": ("F32", RANDOM.random(5000, "<f4")), "none": ("F32", np.ones((0, 4), "<f4")),
           "scalar": ("F64", np.array(1.5))}
    new = dict(old)
    for name, at in {"w": scattered(n, 0.01), "f32": [0, 65535, 65536, 69999], "f64": [8999],
                     "u8": [65535, 200000], "i8": [20], "scalar": [0]}.items():
        new[name] = old[name][0], changed(old[name][1], at)
    new["dense"] = "F32", old["dense"][1] * np.float32(1.01)
    if more:
        old["gone"] = "I8", np.arange(5, dtype="i1")
        old["other"] = "F32", np.zeros((2, 3), "<f4")
        new["other"] = "F32", np.ones((3, 2), "<f4")
        new["Ünïcode"] = "I64", np.arange(4, dtype="<i8")
    write_model(scratch / "old.safetensors", old, {"format": "pt", "step": "1", "gone": "x"})
    write_model(scratch / "new.safetensors", new, {"format": "pt", "step": "2", "more": "y"}
                if more else {"format": "pt", "step": "1", "gone": "x"})
    return old, new


def require_model(got, want, what):
    (tensors, metadata), (expected, about) = got, want
    require(metadata == about, f"{what}: metadata {metadata}")
    require(tensors.keys() == expected.keys(), f"{what}: {tensors.keys() ^ expected.keys()}")
    for name, (kind, shape, data) in expected.items():
        k, s, d = tensors[name]
        require((k, s) == (kind, shape) and np.array_equal(d, data), f"{what}: {name}")


def numpy_applies_what_heft_makes(scratch):
    models(scratch)
    want = read_model(scratch / "new.safetensors")
    for how in ("zstd", "zstd:19", "none"):
        heft("delta", "old.safetensors", "new.safetensors", "-o", "d.zt", "-f", "--compress", how,
             cwd=scratch)
        require_model(apply_delta(scratch / "old.safetensors", scratch / "d.zt"), want, how)
        heft("verify", scratch / "d.zt")


def digests_are_those_of_hash(scratch):
    models(scratch)
    heft("delta", "old.safetensors", "new.safetensors", "-o", "d.zt", cwd=scratch)
    rows = read_delta(scratch / "d.zt")[1]["attributes"]["heft.delta"]["tensors"]
    for member, model in (("base", "old"), ("result", "new")):
        hashes = heft_json("hash", scratch / f"{model}.safetensors", "--json")
        for t in hashes["tensors"]:
            row = rows[t["name"]]
            stated = row.get(member, row["base"] if row["change"] == "none" else None)
            require(stated == t["digest"], f"{model}: {t['name']}")


def heft_applies_what_it_makes(scratch):
    models(scratch)
    heft("delta", "old.safetensors", "new.safetensors", "-o", "d.zt", cwd=scratch)
    heft("apply", "old.safetensors", "d.zt", "-o", "out.safetensors", cwd=scratch)
    require_model(read_model(scratch / "out.safetensors"), read_model(scratch / "new.safetensors"),
                  "the result")
    p = heft_json("apply", scratch / "old.safetensors", scratch / "d.zt", "-n", "-o",
                  scratch / "no.safetensors", "--json")
    require(p["tensors"] == {"none": 2, "sparse": 6, "xor": 1, "whole": 1, "added": 1,
                             "removed": 1} and p["metadata"] == 3, f"counts: {p}")
    require(not (scratch / "no.safetensors").exists(), "a dry run writes")


def expected_counts(old, new):
    """Return how many tensors change in which way; those of equal shape change in place."""
    counts = {"none": 0, "whole": 0, "added": len(new.keys() - old.keys()),
              "removed": len(old.keys() - new.keys()), "in place": 0}
    for name in old.keys() & new.keys():
        (kind, a), (other, b) = old[name], new[name]
        if kind != other or a.shape != b.shape:
            counts["whole"] += 1
        else:
            counts["none" if a.tobytes() == b.tobytes() else "in place"] += 1
    return counts


def counts_are_those_of_numpy(scratch):
    """Tensors come, go, change their names, types and shapes, and values, in any order."""
    for n in range(24):
        names = [f"t{i}" for i in RANDOM.permutation(12)]
        old = {name: ("F32", RANDOM.random((3, 4), "<f4"))
               for name in names[:RANDOM.integers(9)]}
        new = {}
        for name in RANDOM.permutation(list(old) or ["first"]):
            kind, t = old.get(name, ("F32", np.ones((2, 2), "<f4")))
            new |= [{}, {name: (kind, t)}, {name + ".renamed": (kind, t)},
                    {name: (kind, changed(t, [0]))}, {name: (kind, t.reshape(-1))},
                    {name: ("I32", t.view("<i4"))},
                    {name: (kind, t + 1)}][RANDOM.integers(7)]
        write_model(scratch / "old.safetensors", old, {"a": "1"})
        write_model(scratch / "new.safetensors", new, {"a": "1"})
        args = "delta", scratch / "old.safetensors", scratch / "new.safetensors"
        d = scratch / f"{n}.zt"
        for p in heft_json(*args, "-n"), heft_json(*args, "-o", d), heft_json(
                "apply", args[1], d, "-o", scratch / f"{n}.safetensors"):
            got = p["tensors"]
            got["in place"] = got.pop("sparse") + got.pop("xor")
            require(got == expected_counts(old, new), f"{got} of {old.keys()} {new.keys()}")
            require(p["metadata"] == 0, p)
        require_model(read_model(scratch / f"{n}.safetensors"),
                      read_model(scratch / "new.safetensors"), f"model {n}")


def bytes_that_change_are_those_of_numpy(scratch):
    """A tensor of which most elements change counts as a whole, unless it is for other programs."""
    old, new = models(scratch, more=False)
    elements = {name: np.count_nonzero(old[name][1].view(f"u{old[name][1].itemsize}") !=
                                       new[name][1].view(f"u{old[name][1].itemsize}"))
                for name in old}
    units = {name: old[name][1].itemsize for name in old}
    sparse = sum(elements[name] * units[name] for name in old if name != "dense")
    whole = sparse + old["dense"][1].nbytes
    single = sum(np.count_nonzero(old[name][1].reshape(-1).view("u1") !=
                                  new[name][1].reshape(-1).view("u1")) for name in old)

    def require_bytes(want, *args):
        got = heft_json(*args)["changed_bytes"]
        require(got == want, f"{args}: {got} bytes, numpy counts {want}")

    a, b, target = (scratch / f"{name}.safetensors" for name in ("old", "new", "x"))
    require_bytes(whole, "delta", a, b, "-n")
    require_bytes(whole, "delta", a, b, "-o", scratch / "d.zt")
    require_bytes(whole, "apply", a, scratch / "d.zt", "-o", target)
    for encoding, want in ("xor", sparse + elements["dense"] * 4), ("overwrite", single):
        folder = scratch / encoding
        require_bytes(single, "delta", "--disk", encoding, a, b, "-o", folder)
        require_bytes(None, "apply", a, folder, "-o", target, "-f")
        for more in ["-n"], []:
            shutil.copy(a, target)
            require_bytes(want, "apply", target, folder, "--in-place", *more)
        require_model(read_model(target), read_model(b), encoding)
    shutil.copy(a, target)
    require_bytes(whole, "apply", target, scratch / "d.zt", "--in-place")


def changed_attributes_are_reported(scratch):
    """ONNX packs elements of 4 bits: the shape is an attribute, an array of numbers."""
    for name, shape in (("old", (2, 3)), ("same", (2, 3)), ("new", (3, 2))):
        packed = onnx.tensor("w", 22, shape, onnx.content(9, b"\x21\x43\x65"))
        graph = onnx.content(2, "g") + onnx.content(5, packed)
        (scratch / f"{name}.onnx").write_bytes(
            onnx.number(1, 10) + onnx.content(7, graph) +
            onnx.content(8, onnx.content(1, "") + onnx.number(2, 21)))
    for name, said in (("same", False), ("new", True)):
        p = heft("delta", "-n", "old.onnx", f"{name}.onnx", code=None, cwd=scratch)
        require(not p.returncode, p.stderr)
        require((b"its attributes changed" in p.stderr) == said, f"{name}: {p.stderr}")
    p = heft("delta", "-n", "--strict", "old.onnx", "new.onnx", code=None, cwd=scratch)
    require(p.returncode and b"attributes changed" in p.stderr, f"strict: {p.stderr}")


def formats_may_differ(scratch):
    models(scratch, more=False)
    heft("delta", "old.safetensors", "new.safetensors", "-o", "d.zt", cwd=scratch)
    for suffix in ("zt", "pt", "gguf"):
        drop = ["--drop", "none", "--drop", "u8"] if suffix == "gguf" else []
        old, new = scratch / f"old.{suffix}", scratch / f"new.{suffix}"
        if drop:
            heft("convert", *drop, scratch / "old.safetensors", scratch / "o.safetensors")
            heft("convert", *drop, scratch / "new.safetensors", scratch / "n.safetensors")
            heft("convert", "--allow-loss", scratch / "o.safetensors", old)
            heft("delta", old, scratch / "n.safetensors", "-o", scratch / "g.zt")
            heft("apply", old, scratch / "g.zt", "-o", scratch / "x.safetensors")
            heft("diff", scratch / "x.safetensors", scratch / "n.safetensors")
        else:
            heft("convert", "--allow-loss", scratch / "old.safetensors", old)
            heft("apply", old, scratch / "d.zt", "-o", new, "--allow-loss", "--no-verify")
            heft("diff", new, scratch / "new.safetensors")
    heft("convert", "--compress", "zstd", scratch / "old.safetensors", scratch / "c.zt")
    heft("apply", scratch / "c.zt", scratch / "d.zt", "-o", scratch / "cn.zt")
    heft("diff", scratch / "cn.zt", scratch / "new.safetensors")
    heft("split", "--count", "3", scratch / "old.safetensors", scratch / "set")
    heft("apply", scratch / "set", scratch / "d.zt", "-o", scratch / "sn.safetensors")
    heft("diff", scratch / "sn.safetensors", scratch / "new.safetensors")


def values_change_in_place(scratch):
    models(scratch, more=False)
    heft("delta", "old.safetensors", "new.safetensors", "-o", "d.zt", cwd=scratch)
    for more in ([], ["--verify"], ["--no-sync"], ["-j1"]):
        shutil.copy(scratch / "old.safetensors", scratch / "m.safetensors")
        heft("apply", scratch / "m.safetensors", scratch / "d.zt", "--in-place", *more)
        require((scratch / "m.safetensors").read_bytes() ==
                (scratch / "new.safetensors").read_bytes(), f"{more}: the bytes differ")
        require(not list(scratch.glob("*journal*")), "a journal stays")
    p = heft("apply", scratch / "m.safetensors", scratch / "d.zt", "--in-place", code=None)
    require(p.returncode == 5 and b"has other values" in p.stderr, p.stderr)


def one_percent_takes_at_most_three(scratch):
    for kind, array in (("BF16", bf16(1 << 21)), ("F32", RANDOM.random(1 << 20, "<f4")),
                        ("U8", RANDOM.integers(0, 256, 1 << 21).astype("u1"))):
        old, new = scratch / f"{kind}.safetensors", scratch / f"{kind}2.safetensors"
        write_model(old, {"w": (kind, array)})
        write_model(new, {"w": (kind, changed(array, scattered(array.size, 0.01)))})
        heft("delta", old, new, "-o", scratch / f"{kind}.zt")
        share = (scratch / f"{kind}.zt").stat().st_size / old.stat().st_size
        require(share <= 0.03, f"{kind}: {share:.4f} of the size")


def the_wrong_base_is_refused(scratch):
    old, _ = models(scratch, more=False)
    heft("delta", "old.safetensors", "new.safetensors", "-o", "d.zt", cwd=scratch)
    for name, at in (("same", 3), ("w", 5), ("dense", 0)):
        other = old | {name: (old[name][0], changed(old[name][1], [at]))}
        write_model(scratch / "x.safetensors", other, {"format": "pt", "step": "1", "gone": "x"})
        p = heft("apply", "x.safetensors", "d.zt", "-o", "o.safetensors", code=None, cwd=scratch)
        require(p.returncode == 5 and f"'{name}' has other values".encode() in p.stderr, p.stderr)
        require(not (scratch / "o.safetensors").exists(), "something was written")
        before = (scratch / "x.safetensors").read_bytes()
        p = heft("apply", "x.safetensors", "d.zt", "--in-place", "--verify", code=None, cwd=scratch)
        require(p.returncode == 5 and f"'{name}'".encode() in p.stderr, p.stderr)
        require((scratch / "x.safetensors").read_bytes() == before, "the base was changed")
    for change, words in ((lambda t: t.pop("same"), b"is missing in the base"),
                          (lambda t: t.update(z=t["same"]), b"is unknown to the delta"),
                          (lambda t: t.update(w=("BF16", t["w"][1].reshape(1, -1))),
                           b"has another shape"),
                          (lambda t: t.update(w=("F16", t["w"][1])), b"has another type")):
        other = dict(old)
        change(other)
        write_model(scratch / "x.safetensors", other)
        p = heft("apply", "x.safetensors", "d.zt", "-o", "o.safetensors", code=None, cwd=scratch)
        require(p.returncode == 5 and words in p.stderr, p.stderr)


def damage_of_the_base_is_not_called_damage_of_the_delta(scratch):
    models(scratch, more=False)
    heft("delta", "old.safetensors", "new.safetensors", "-o", "d.zt", cwd=scratch)
    heft("convert", "--digest", "crc32c", "old.safetensors", "base.zt", cwd=scratch)
    at = heft_json("ls", scratch / "base.zt")["tensors"][0]["parts"][0]["offset"]
    damaged = bytearray((scratch / "base.zt").read_bytes())
    damaged[at] ^= 4
    (scratch / "base.zt").write_bytes(damaged)
    p = heft("apply", "base.zt", "d.zt", "-o", "o.zt", code=None, cwd=scratch)
    require(p.returncode == 3 and b"heft: base.zt: " in p.stderr, p.stderr)


# ---- deltas by hand ----

def small(scratch):
    """Write a base, and return it with the new values of a and b."""
    old = {"a": ("F32", RANDOM.random((100, 700), "<f4")), "b": ("U8", np.arange(9, dtype="u1")),
           "c": ("F32", np.ones(3, "<f4"))}
    new = {"a": ("F32", changed(old["a"][1], [0, 1, 65535, 65536, 69999])),
           "b": ("U8", old["b"][1][::-1].copy()), "c": old["c"]}
    write_model(scratch / "base.safetensors", old)
    return old, new


def by_hand(old, new, **parts):
    d = Delta()
    d.sparse("a", "F32", old["a"][1], new["a"][1], **parts)
    d.xor("b", "U8", old["b"][1], new["b"][1])
    d.same("c", *old["c"])
    return d


def deltas_by_hand_are_applied(scratch):
    old, new = small(scratch)
    by_hand(old, new).write(scratch / "d.zt")
    heft("apply", "base.safetensors", "d.zt", "-o", "o.safetensors", cwd=scratch)
    write_model(scratch / "want.safetensors", new)
    require_model(read_model(scratch / "o.safetensors"), read_model(scratch / "want.safetensors"),
                  "by hand")
    heft("apply", "base.safetensors", "d.zt", "--in-place", cwd=scratch)
    require((scratch / "base.safetensors").read_bytes().endswith(new["b"][1].tobytes() +
            new["c"][1].tobytes()), "in place")
    heft("diff", scratch / "base.safetensors", scratch / "want.safetensors")


def u2(*numbers):
    return np.array(numbers, "<u2").tobytes()


def u4(*numbers):
    return np.array(numbers, "<u4").tobytes()


REFUSED = [  # parts of tensor a, change of the list, words of the message, exit code
    ({"counts": u4(3, 3)}, None, b"counts more changes", 3),
    ({"counts": u4(3, 1)}, None, b"counts fewer changes", 3),
    ({"counts": u4(0xFFFFFFFF, 6)}, None, b"counts more changes", 3),
    ({"counts": u4(0, 5)}, None, b"out of range or out of order", 3),
    ({"counts": u4(5)}, None, b"lengths contradict", 3),
    ({"gaps": u2(0, 1, 0, 0, 4463)}, None, b"out of range or out of order", 3),
    ({"gaps": u2(0, 1, 65534, 0, 4464)}, None, b"out of range or out of order", 3),
    ({"gaps": u2(0, 1, 65535, 0, 4463)}, None, b"out of range or out of order", 3),
    ({"gaps": u2(0, 1, 65534, 0)}, None, b"lengths contradict", 3),
    ({"values": u4(1, 2, 3, 4)}, None, b"lengths contradict", 3),
    ({}, lambda d: d.rows["a"].pop("base"), b"lacks a digest", 3),
    ({}, lambda d: d.rows["a"].pop("result"), b"lacks a digest", 3),
    ({}, lambda d: d.rows["a"].pop("replaced"), b"lacks a digest", 3),
    ({}, lambda d: d.rows["a"].pop("dtype"), b"other parts or types", 3),
    ({}, lambda d: d.rows["a"].pop("change"), b"does not say what changes", 3),
    ({}, lambda d: d.rows["a"].update(change="more"), b"a value of 'change'", 3),
    ({}, lambda d: d.rows["a"].update(base="0x" * 32), b"a value of 'base'", 3),
    ({}, lambda d: d.rows["a"].update(dtype="f31"), b"a value of 'dtype'", 3),
    ({}, lambda d: d.rows["a"].update(other=1), b"a value of 'other'", 3),
    ({}, lambda d: d.rows["a"].update(change="xor"), b"lacks a digest", 3),
    ({}, lambda d: d.rows["a"].update(dtype="f64"), b"other parts or types", 3),
    ({}, lambda d: d.rows["c"].update(change="removed", result="0" * 64), b"one too many", 3),
    ({}, lambda d: d.rows.pop("a"), b"is not in the list", 3),
    ({}, lambda d: d.objects.pop("a"), b"is missing in the file", 3),
    ({}, lambda d: d.rows.update(x=5), b"is not described by a map", 3),
    ({}, lambda d: d.listed.pop("tensors"), b"lists no tensors", 3),
    ({}, lambda d: d.listed.update(more=1), b"an entry 'more'", 3),
    ({}, lambda d: d.listed.update(set=[]), b"an entry 'set'", 3),
    ({}, lambda d: d.listed.update(version=2), b"version 2", 5),
    ({}, lambda d: d.listed.pop("version"), b"version 0", 5),
    ({}, lambda d: d.objects["b"].update(shape=[3, 3]), b"has another shape", 5),
]


def damaged_deltas_are_refused(scratch):
    old, new = small(scratch)
    for n, (parts, change, words, code) in enumerate(REFUSED):
        d = by_hand(old, new, **parts)
        if change:
            change(d)
        d.write(scratch / "d.zt")
        for how in (["-o", "o.safetensors", "--no-verify"], ["--in-place"]):
            before = (scratch / "base.safetensors").read_bytes()
            p = heft("apply", "base.safetensors", "d.zt", *how, code=None, cwd=scratch)
            require(p.returncode == code and words in p.stderr, f"{n} {how}: {p.stderr}")
            require((scratch / "base.safetensors").read_bytes() == before, f"{n}: changed")
            require({f.name for f in scratch.iterdir()} == {"base.safetensors", "d.zt"},
                    f"{n}: {list(scratch.iterdir())}")
    d = by_hand(old, new)
    d.xor("b", "U8", old["b"][1], new["b"][1], data=b"x" * 8)
    d.write(scratch / "d.zt")
    p = heft("apply", "base.safetensors", "d.zt", "-o", "o.safetensors", code=None, cwd=scratch)
    require(p.returncode == 3 and b"another length" in p.stderr, p.stderr)
    p = heft("apply", "base.safetensors", "base.safetensors", "-o", "o.zt", code=None, cwd=scratch)
    require(p.returncode == 3 and b"it is not a delta" in p.stderr, p.stderr)


def checksums_of_a_delta_are_compared(scratch):
    """One bit of each kind of change is damaged, also where the result is not verified."""
    models(scratch)
    heft("delta", "old.safetensors", "new.safetensors", "-o", "d.zt", "--compress", "none",
         cwd=scratch)
    good = (scratch / "d.zt").read_bytes()
    objects = read_delta(scratch / "d.zt")[1]["objects"]
    kinds = set()
    for name, of in objects.items():
        for part, at in of["components"].items():
            if not at["length"]:
                continue
            kinds.add(part)
            bad = bytearray(good)
            bad[at["offset"] + at["length"] // 2] ^= 4
            (scratch / "bad.zt").write_bytes(bad)
            for how in ([], ["--no-verify"]):
                p = heft("apply", "old.safetensors", "bad.zt", "-o", "o.safetensors", *how,
                         code=None, cwd=scratch)
                require(p.returncode == 3 and b"digest does not match" in p.stderr
                        and b"heft: bad.zt: " in p.stderr,
                        f"{name}, {part} {how}: {p.returncode} {p.stderr}")
                require(not (scratch / "o.safetensors").exists(), f"{name}: an output")
    require(kinds == {"counts", "gaps", "values", "xor", "data"}, f"kinds: {kinds}")


def what_does_not_fit_in_place_is_refused(scratch):
    models(scratch)
    heft("delta", "old.safetensors", "new.safetensors", "-o", "all.zt", cwd=scratch)
    models(scratch, more=False)
    heft("delta", "old.safetensors", "new.safetensors", "-o", "d.zt", cwd=scratch)
    heft("convert", "--compress", "zstd", "old.safetensors", "c.zt", cwd=scratch)
    heft("convert", "--digest", "crc32c", "old.safetensors", "s.zt", cwd=scratch)
    heft("convert", "old.safetensors", "o.pt", cwd=scratch)
    heft("split", "--count", "2", "old.safetensors", "set", cwd=scratch)
    shard = sorted((scratch / "set").glob("*.safetensors"))[0]
    for base, delta, code, words in [
        ("old.safetensors", "all.zt", 5, b"adds, removes or replaces"),
        ("c.zt", "d.zt", 5, b"compressed"), ("s.zt", "d.zt", 5, b"has a checksum"),
        ("o.pt", "d.zt", 5, b"in place"), ("set", "d.zt", 4, b""),
        (shard, "d.zt", 5, b"shard"), ("absent.safetensors", "d.zt", 4, b"")]:
        p = heft("apply", base, delta, "--in-place", code=None, cwd=scratch)
        require(p.returncode == code and words in p.stderr, f"{base}: {p.returncode} {p.stderr}")
    for args in (["-o", "x.zt", "--in-place"], [], ["--verify", "-o", "x.zt"]):
        heft("apply", "old.safetensors", "d.zt", *args, code=2, cwd=scratch)
    heft("delta", "old.safetensors", "new.safetensors", code=2, cwd=scratch)
    heft("delta", "old.safetensors", "new.safetensors", "-o", "d.zt", code=2, cwd=scratch)
    heft("delta", "old.safetensors", "new.safetensors", "-o", "e.zt", "--compress", "lz4", code=2,
         cwd=scratch)


# ---- journals by hand ----

def journal(data, records, within=None, **other):
    """A journal of docs/edit.md, version 3; records: (offset, unit, positions or None, old units).
    other: values instead of right ones."""
    first, last = records[0], records[-1]
    begin = first[0]
    end = last[0] + (len(last[3]) if last[2] is None else (last[2][-1] + 1) * last[1])
    begin, length = within or (begin, end - begin)
    around = data[:min(begin, 65536)] + data[max(begin + length, len(data) - 65536):]
    out = b"HEFTJRNL" + struct.pack("<II", 3, 0)
    out += struct.pack("<QQ", other.get("size", len(data)), len(data)) + blake3(around)
    out += struct.pack("<QQ", begin, length)
    for at, unit, positions, old in records:
        count = other.get("count", len(old) // unit)
        span = other.get("span", len(old) if positions is None else (positions[-1] + 1) * unit)
        out += struct.pack("<QIIBB6x", at, span, count, other.get("unit", unit),
                           positions is not None)
        out += np.array(positions or [], "<u2").tobytes() + old
    out += other.get("more", b"")
    return out + blake3(out)


def journals_by_hand_are_undone(scratch):
    old, _ = small(scratch)
    file, beside = scratch / "base.safetensors", scratch / "base.safetensors.heft-journal"
    whole = file.read_bytes()
    at = whole.index(old["a"][1].tobytes())
    records = [(at, 4, [0, 3], whole[at:at + 4] + whole[at + 12:at + 16]),
               (at + 100, 1, None, whole[at + 100:at + 200])]
    half = bytearray(whole)
    half[at:at + 2] = b"xy"
    half[at + 12:at + 16] = b"half"
    half[at + 150:at + 200] = bytes(50)
    file.write_bytes(half)
    beside.write_bytes(journal(whole, records))
    heft("ls", file, code=4)
    heft("apply", file, file, "--in-place", "-n", code=4)
    heft("edit", file)
    require(file.read_bytes() == whole and not beside.exists(), "the old values are not back")
    for bad in ({"size": len(whole) + 1}, {"count": 3}, {"count": 0}, {"count": 70000},
                {"span": 12}, {"span": 20}, {"unit": 3}, {"unit": 0}, {"more": b"x"},
                {"within": (at + 1, 500)}, {"within": (at, 150)}, {"within": (at, 1 << 63)}):
        file.write_bytes(half)
        beside.write_bytes(journal(whole, records, **bad))
        p = heft("edit", file, code=None)
        require(p.returncode == 3 and file.read_bytes() == half, (bad, p.stderr))
        require(beside.exists(), (bad, "the journal is gone"))
    for positions in ([3, 0], [0, 0], [1, 3]):
        beside.write_bytes(journal(whole, [(at, 4, positions, records[0][3])], (at, 400), span=16))
        p = heft("edit", file, code=None)
        require(p.returncode == 3 and file.read_bytes() == half, (positions, p.stderr))
    good = journal(whole, records)
    for cut in (good[:-1], good[:90], good[:50] + b"?" + good[51:]):
        beside.write_bytes(cut)
        p = heft("edit", file, code=None)
        require(p.returncode == 3 and file.read_bytes() == half, p.stderr)


def full_disks_leave_nothing(scratch):
    models(scratch)
    p = heft("delta", "old.safetensors", "new.safetensors", "-f", "-o", "/dev/full", code=None,
             cwd=scratch)
    require(p.returncode == 4 and b"No space left" in p.stderr, p.stderr)


# ---- other programs ----

def disk_deltas_are_applied(scratch):
    models(scratch, more=False)
    want = read_model(scratch / "new.safetensors")
    kinds = ["adler32", "blake3"] + (["xxh3-128"] if shutil.which("xxhsum") else [])
    for encoding in ("xor", "overwrite"):
        for checksum in kinds:
            folder = scratch / f"{encoding}-{checksum}"
            write_disk_delta(folder, scratch / "old.safetensors", scratch / "new.safetensors",
                             encoding, checksum)
            out = scratch / f"{encoding}-{checksum}.safetensors"
            heft("apply", scratch / "old.safetensors", folder, "-o", out)
            require_model(read_model(out), want, out.name)
            shutil.copy(scratch / "old.safetensors", out)
            heft("apply", out, folder, "--in-place")
            require_model(read_model(out), want, out.name)
    p = heft("apply", "new.safetensors", "xor-blake3", "-o", "x.zt", code=None, cwd=scratch)
    require(p.returncode == 5 and b"would not have the checksum" in p.stderr, p.stderr)


def disk_deltas_are_made(scratch):
    models(scratch, more=False)
    want, _ = read_model(scratch / "new.safetensors")
    kinds = ["adler32", "blake3"] + (["xxh3-128"] if shutil.which("xxhsum") else [])
    for encoding in ("xor", "overwrite"):
        for checksum in kinds:
            folder = scratch / f"{encoding}-{checksum}"
            heft("delta", "--disk", encoding, "--checksum", checksum, "--delta-version", 12,
                 scratch / "old.safetensors", scratch / "new.safetensors", "-o", folder)
            got = apply_disk_delta(scratch / "old.safetensors", folder)
            for name, t in want.items():
                require(np.array_equal(got[name][2], t[2]), f"{folder.name}: {name}")
            about = json.loads((folder / "model.safetensors.index.json").read_text())["metadata"]
            require(about["version"] == "000012" and about["base_version"] == "000011", about)
    heft("delta", "--disk", "xor", "old.safetensors", "old.safetensors", "-o", "same", cwd=scratch)
    require([f.name for f in (scratch / "same").iterdir()] == ["model.safetensors.index.json"],
            "there are files without changes")
    got = heft_json("apply", scratch / "old.safetensors", scratch / "same", "-o",
                    scratch / "still.safetensors")
    require(not any(got["tensors"].values()), got)
    require_model(read_model(scratch / "still.safetensors"),
                  read_model(scratch / "old.safetensors"), "no change")
    heft("apply", scratch / "still.safetensors", scratch / "same", "--in-place")
    heft("verify", scratch / "same")
    for args, code in ((["--disk", "add"], 2), (["--disk", "xor", "--checksum", "md5"], 2),
                       (["--disk", "xor", "-n"], 2), (["--checksum", "blake3"], 2),
                       (["--disk", "xor", "--delta-version", 1000000], 2)):
        heft("delta", *args, "old.safetensors", "new.safetensors", "-o", "no", code=code,
             cwd=scratch)
    models(scratch)
    p = heft("delta", "--disk", "xor", "old.safetensors", "new.safetensors", "-o", "no", code=None,
             cwd=scratch)
    require(p.returncode == 5 and b"another type or shape" in p.stderr, p.stderr)
    require(not (scratch / "no").exists(), "a folder was written")


def bad_disk_deltas_are_refused(scratch):
    models(scratch, more=False)
    for member, value, words in [("delta_encoding", "add", b"encoding 'add'"),
                                 ("compression_format", "lz4", b"compression 'lz4'"),
                                 ("checksum_format", "md5", b"checksum 'md5'")]:
        folder = scratch / member
        write_disk_delta(folder, scratch / "old.safetensors", scratch / "new.safetensors", "xor",
                         "adler32")
        index = folder / "model.safetensors.index.json"
        text = json.loads(index.read_text())
        text["metadata"][member] = value
        index.write_text(json.dumps(text))
        p = heft("apply", "old.safetensors", folder, "-o", "x.zt", code=None, cwd=scratch)
        require(p.returncode == 5 and words in p.stderr, p.stderr)
    for encoding, change, words in [("xor", lambda b: b[:-3], b""),
                                    ("overwrite", lambda b: b[:9], b""),
                                    ("xor", lambda b: b"no zstd", b"zstd")]:
        folder = scratch / f"cut-{encoding}-{len(change(bytes(20)))}"
        write_disk_delta(folder, scratch / "old.safetensors", scratch / "new.safetensors",
                         encoding, "adler32")
        for file in folder.glob("*.safetensors"):
            tensors, sums = read_model(file)
            write_model(file, {n: ("U8", np.frombuffer(change(t[2].tobytes()), "u1"))
                               for n, t in tensors.items()}, sums)
        p = heft("apply", "old.safetensors", folder, "-o", "x.zt", code=None, cwd=scratch)
        require(p.returncode == 3 and words in p.stderr, f"{encoding}: {p.returncode} {p.stderr}")


def patches_are_applied(scratch):
    models(scratch, more=False)
    (old, _), (new, _) = (read_model(scratch / f"{m}.safetensors") for m in ("old", "new"))
    for encoding in ("raw", "gap_delta"):
        write_patch(scratch / "p.safetensors", scratch / "old.safetensors",
                    scratch / "new.safetensors", encoding)
        heft("apply", "old.safetensors", "p.safetensors", "-f", "-o", "o.safetensors", cwd=scratch)
        got, _ = read_model(scratch / "o.safetensors")
        for name, t in got.items():
            want = new if name == "w" else old
            require(np.array_equal(t[2], want[name][2]), f"{encoding}: {name}")
    tensors, about = read_model(scratch / "p.safetensors")
    for change, words, code in [({"sparse": "False"}, b"anchor", 5),
                                ({"encoding": "nvcomp_cascaded"}, b"nvcomp_cascaded", 5)]:
        write_model(scratch / "q.safetensors", {n: (t[0], t[2]) for n, t in tensors.items()
                                                if False}, about | change)
        p = heft("apply", "old.safetensors", "q.safetensors", "-o", "x.zt", code=None, cwd=scratch)
        require(p.returncode == code and words in p.stderr, p.stderr)
    for name, idx, val in [("order", [3, 3], [1, 2]), ("range", [3, 1 << 30], [1, 2]),
                           ("negative", [-1, 2], [1, 2]), ("count", [1, 2, 3], [1, 2])]:
        write_model(scratch / "q.safetensors", {
            "w.idx": ("I32", np.array(idx, "<i4")), "w.val": ("BF16", np.array(val, "<u2"))},
            about | {"encoding": "raw"})
        p = heft("apply", "old.safetensors", "q.safetensors", "-o", "x.zt", code=None, cwd=scratch)
        require(p.returncode == 3 and b"delta of tensor 'w'" in p.stderr, f"{name}: {p.stderr}")


CHECKS = [
    numpy_applies_what_heft_makes, digests_are_those_of_hash, heft_applies_what_it_makes,
    counts_are_those_of_numpy, bytes_that_change_are_those_of_numpy,
    changed_attributes_are_reported, formats_may_differ,
    values_change_in_place, one_percent_takes_at_most_three, the_wrong_base_is_refused,
    damage_of_the_base_is_not_called_damage_of_the_delta,
    deltas_by_hand_are_applied, damaged_deltas_are_refused, checksums_of_a_delta_are_compared,
    what_does_not_fit_in_place_is_refused, journals_by_hand_are_undone, full_disks_leave_nothing,
    disk_deltas_are_applied, disk_deltas_are_made, bad_disk_deltas_are_refused, patches_are_applied
]
sys.exit(tap.report([(check.__name__.replace("_", " "), run(check)) for check in CHECKS]))
