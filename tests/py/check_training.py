#!/usr/bin/env python3
"""check_training.py HEFT [EXAMPLE]: optimizer and scheduler records of Burn 0.22.

An optimizer record is a Burnpack with a tensor "ID.FIELD" for each field of a parameter's state.
The tensor has the id of the parameter. There are scalars of the same form, such as "ID.__rank", and
since July 2026 metadata "ID" with the path of the parameter. A scheduler record has only scalars.
The records are written and read without Heft. EXAMPLE is the program of examples/burn_training.c.
TAP on stdout."""
import json
import math
import pathlib
import subprocess
import sys
import tempfile

import gen_burnpack
import read_burnpack
from samples import tensor

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import tap  # noqa: E402

USAGE, CANNOT = 2, 5
W, B, S = 2**64 - 3, 81985529216486895, 7  # ids of parameters
TEXT = {W: "vnvvvvvvvvvvu", B: "tv6qn2b78khg2", S: "0s00000000000"}  # text form of Burn
PATHS = {W: "layer.weight", B: "layer.bias", S: "scale"}
SHAPES = {W: (3, 4), B: (4,)}
FIELDS = ["momentum.moment_1", "momentum.moment_2"]


def model():
    tensors = [tensor(PATHS[i], "f32", SHAPES.get(i, (1,))) for i in PATHS]
    return gen_burnpack.Pack(tensors, "0.22", {PATHS[i]: i for i in PATHS})


def optimizer(has_paths=True):
    """Return a record of Adam for two parameters, and a third parameter with scalars only."""
    tensors = [tensor(f"{i}.{field}", "f32", SHAPES[i]) for i in SHAPES for field in FIELDS]
    scalars = {f"{i}.__rank": {"UInt": len(shape)} for i, shape in SHAPES.items()}
    scalars |= {f"{i}.momentum.time": {"UInt": 12} for i in SHAPES}
    scalars |= {
        f"{S}.__rank": {"UInt": 1}, f"{S}.decayed": {"Bool": True}, f"{S}.lr": {"Float": 1e-3}
    }
    return gen_burnpack.Pack(
        tensors, "0.22", {t[0]: int(t[0].split(".")[0]) for t in tensors}, scalars=scalars,
        metadata={str(i): path for i, path in PATHS.items()} if has_paths else None)


def names_that_are_no_fields(c):
    """The id before the dot is a number without leading zeros, that of the tensor."""
    names = {"7.m": True, "07.m": False, ".m": False, "8.m": False, "7.": False, "7": False}
    pack = gen_burnpack.Pack([tensor(n, "f32", (1,)) for n in names], "0.22",
                             dict.fromkeys(names, S))
    listed = c.json("ids", c.save("names.bpk", pack.bytes()))["tensors"]
    got = {t["name"]: "field" in t for t in listed}
    c.require(got == names, got)


def scheduler():
    return gen_burnpack.Pack(
        [], "0.22", scalars={
            "0.remaining_iters": {"UInt": 90}, "0.previous_lr": {"Float": 0.1},
            "1.step": {"Int": -1}, "1.warm": {"Bool": False}
        })


def facts(path):
    """Return the content of a file without offsets, tensors sorted by name (the order of zTensor
    2)."""
    found = read_burnpack.read(path.read_bytes())
    for t in found["tensors"]:
        del t["begin"], t["end"]
    return {**found, "tensors": sorted(found["tensors"], key=lambda t: t["name"])}


class Check:
    def __init__(self, heft, folder):
        self.heft, self.folder, self.complaints = heft, folder, []

    def require(self, holds, *words):
        if not holds:
            self.complaints.append(" ".join(map(str, words))[:600])

    def save(self, name, data):
        path = self.folder / name
        path.write_bytes(data)
        return path

    def run(self, *args, code=0):
        done = subprocess.run([self.heft, *map(str, args)], capture_output=True, text=True)
        self.require(done.returncode == code, args, "ends with", done.returncode, done.stderr)
        return done

    def json(self, *args):
        return json.loads(self.run(*args, "--json").stdout)


def fields_are_listed(c, has_paths, by_model):
    record = c.save("adam.bpk", optimizer(has_paths).bytes())
    more = ["--model", c.save("model.bpk", model().bytes())] if by_model else []
    is_named = has_paths or by_model
    listed = c.json("ids", record, *more)["tensors"]
    c.require(len(listed) == len(SHAPES) * len(FIELDS), listed)
    for t in listed:
        owner, field = t["name"].split(".", 1)
        want = {"burn_id": int(owner), "burn_text": TEXT[int(owner)], "field": field,
                "parameter": PATHS[int(owner)] if is_named else None}
        c.require(want.items() <= t.items(), t, "lacks", want)
    text = c.run("ids", record, *more).stdout
    c.require((" (momentum.moment_2 of layer.bias)" in text) == is_named, text)
    c.require(("of an unknown parameter)" in text) != is_named, text)


def a_model_is_not_a_record(c):
    path = c.save("model.bpk", model().bytes())
    for t in c.json("ids", path)["tensors"]:
        c.require(
            "field" not in t and "parameter" not in t and t["burn_text"] == TEXT[t["burn_id"]], t)
    c.require("record" not in c.json("info", path), "a model is reported as a record")


def unknown_parameters_have_no_name(c):
    record = c.save("adam.bpk", optimizer().bytes())
    pack = model()
    pack.descriptors[PATHS[W]]["param_id"] = 1
    other = c.save("other.bpk", pack.bytes())
    found = {t["burn_id"]: t["parameter"] for t in c.json("ids", record, "-m", other)["tensors"]}
    c.require(found == {W: None, B: PATHS[B]}, found)


def info_names_the_record(c):
    adam, rate = c.save("adam.bpk", optimizer().bytes()), c.save("rate.bpk", scheduler().bytes())
    c.require(
        c.json("info", adam).get("record") == {"of": "optimizer", "parameters": 3},
        c.json("info", adam))
    c.require(c.json("info", rate).get("record") == {"of": "scheduler"}, c.json("info", rate))
    text = c.run("info", adam).stdout
    c.require("optimizer, 3 parameters" in text and f"burn.scalars.{W}.momentum.time = 12" in text,
             text)
    text = c.run("info", rate).stdout
    c.require("learning rate scheduler" in text and "burn.scalars.0.previous_lr = 0.1" in text,
              text)


def records_verify(c):
    for name, pack in (("adam", optimizer()), ("bare", optimizer(False)), ("rate", scheduler())):
        path = c.save(name + ".bpk", pack.bytes())
        found = c.json("verify", path)
        c.require(found["ok"] and not [f for f in found["findings"] if f["severity"] != "note"],
                 found)


def records_survive_conversion(c, between):
    """Convert to Burnpack, directly or through `between`; a direct copy must be identical."""
    for name, pack in (("adam", optimizer()), ("bare", optimizer(False)), ("rate", scheduler())):
        path, out = c.save(name + ".bpk", pack.bytes()), c.folder / (name + ".out.bpk")
        source = path
        if between:
            source = c.folder / (name + ".zt")
            c.run("convert", "--format-version", between, "--strict", path, source)
        c.run("convert", "--format-version", "0.22", source, out)
        c.require(out.exists() and facts(out) == facts(path), name,
                 "differs after the conversion")
        if not between:
            c.require(out.read_bytes() == path.read_bytes(), name, "has a different encoding")


def lost_scalars_are_reported(c):
    path = c.save("rate.bpk", optimizer().bytes())
    done = c.run("convert", path, c.folder / "rate.safetensors")
    c.require("'burn.scalars' is left out" in done.stderr, done.stderr)
    c.run("convert", "--strict", path, c.folder / "strict.safetensors", code=CANNOT)


def scalars_are_edited_in_place(c):
    path = c.save("adam.bpk", optimizer().bytes())
    c.run("edit", "--set", f"burn.scalars.{W}.momentum.time=13", "--set",
          f"burn.scalars.{S}.lr:f64=0.5", path)
    want = optimizer()
    want.scalars[f"{W}.momentum.time"], want.scalars[f"{S}.lr"] = {"UInt": 13}, {"Float": 0.5}
    c.require(path.read_bytes() == want.bytes(), read_burnpack.read(path.read_bytes())["scalars"])


def ids_of_fields_cannot_change(c):
    path = c.save("adam.bpk", optimizer().bytes())
    name = f"{W}.momentum.moment_1"
    for args in (["--set-id", f"{name}=5"], ["--new-ids"], ["--set-id", f"{name}=none"]):
        done = c.run("convert", *args, path, c.folder / "out.bpk", code=CANNOT)
        c.require("optimizer record" in done.stderr, done.stderr)
        c.run("edit", *args, path, code=CANNOT)
    c.run("edit", "--fill-ids", path)
    c.require(path.read_bytes() == optimizer().bytes(), "the record has changed")
    c.run("convert", "--drop", "*", path, c.folder / "out.bpk", code=USAGE)


def wrong_field_ids_are_warned(c):
    bare, wrong, undivided = optimizer(), optimizer(), optimizer()
    name, other = f"{W}.momentum.moment_1", f"{B}.momentum.moment_2"
    del bare.descriptors[name]["param_id"]
    wrong.descriptors[other]["param_id"] = W
    undivided.descriptors["moment"] = undivided.descriptors.pop(f"{W}.momentum.moment_2")
    undivided.order = sorted(undivided.descriptors)
    for pack, tensor_name, words in ((bare, name, "has no param_id"),
                                     (wrong, other, "does not begin with its param_id"),
                                     (undivided, "moment", "does not begin with its param_id")):
        found = c.json("verify", c.save("odd.bpk", pack.bytes()))["findings"]
        odd = [f for f in found if f["rule"] == "burnpack/record-id"]
        c.require([f["tensor"] for f in odd] == [tensor_name] and words in odd[0]["text"], found)


def missing_ids_come_from_names(c):
    """Derive missing ids from the names of tensors."""
    pack = optimizer()
    for d in pack.descriptors.values():
        del d["param_id"]
    path, out = c.save("bare.bpk", pack.bytes()), c.folder / "out.bpk"
    done = c.run("convert", "-v", "--format-version", "0.22", path, out)
    c.require(out.read_bytes() == optimizer().bytes(), "the ids differ from the names")
    c.require("param_id is taken from its name" in done.stderr, done.stderr)
    c.run("edit", "--set", "note=x", path)
    ids = [t["param_id"] for t in read_burnpack.read(path.read_bytes())["tensors"]]
    c.require(ids == [None] * len(ids), "an unrelated edit made ids")


def example_prepares_training(c):
    """The example keeps existing ids, adds missing ids, and writes two moments of zeros per
    parameter."""
    if len(sys.argv) < 3:
        return
    pack = model()
    del pack.descriptors[PATHS[S]]["param_id"]
    bare, out, record = c.save("in.bpk", pack.bytes()), c.folder / "out.bpk", c.folder / "adam.bpk"
    done = subprocess.run([sys.argv[2], bare, out, record], capture_output=True, text=True)
    c.require(done.returncode == 0, done.stderr)
    ids = {t["name"]: t["param_id"] for t in read_burnpack.read(out.read_bytes())["tensors"]}
    c.require(ids[PATHS[W]] == W and ids[PATHS[B]] == B and ids[PATHS[S]] not in (None, W, B), ids)
    tensors, scalars = [], {}
    for path, i in ids.items():
        shape = SHAPES.get(i, (1,))
        tensors += [(f"{i}.{field}", "f32", shape, bytes(4 * math.prod(shape))) for field in FIELDS]
        scalars |= {f"{i}.__rank": {"UInt": len(shape)}, f"{i}.momentum.time": {"UInt": 0}}
    want = gen_burnpack.Pack(tensors, "0.22", {t[0]: int(t[0].split(".")[0]) for t in tensors},
                             scalars=scalars, metadata={str(i): path for path, i in ids.items()})
    c.require(record.read_bytes() == want.bytes(), "the record differs from that of Burn")


CASES = [
    ("fields are named by the paths of the record", fields_are_listed, True, False),
    ("fields are named by a model", fields_are_listed, False, True),
    ("fields are listed without parameter names", fields_are_listed, False, False),
    ("a model is not reported as a record", a_model_is_not_a_record),
    ("parameters missing in the model have no name", unknown_parameters_have_no_name),
    ("info names the kind of a record", info_names_the_record),
    ("verify accepts records", records_verify),
    ("a copy of a record is identical", records_survive_conversion, None),
    ("records survive zTensor 1.2 and back", records_survive_conversion, "1.2"),
    ("records survive zTensor 2 and back", records_survive_conversion, "2"),
    ("scalars are reported as a loss where the target has none", lost_scalars_are_reported),
    ("scalars of a record are edited", scalars_are_edited_in_place),
    ("names that do not begin with the id are not fields", names_that_are_no_fields),
    ("edits of the id of a single field are refused", ids_of_fields_cannot_change),
    ("fields that Burn would not find are warnings", wrong_field_ids_are_warned),
    ("missing ids are derived from the names", missing_ids_come_from_names),
    ("the example program prepares a training", example_prepares_training),
]


def main():
    results = []
    for title, case, *args in CASES:
        with tempfile.TemporaryDirectory(prefix="heft-training-") as folder:
            c = Check(sys.argv[1], pathlib.Path(folder))
            case(c, *args)
            results.append((title, c.complaints))
    return tap.report(results)


if __name__ == "__main__":
    sys.exit(main())
