#!/usr/bin/env python3
"""check_folders.py HEFT: model folders with PyTorch files, whole or sharded.

Some folders also have safetensors files. The PyTorch files are written with Python's zipfile and
pickle opcodes. TAP on stdout."""
import io
import json
import os
import pathlib
import struct
import subprocess
import sys
import tempfile
import zipfile

import gen_shards

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import tap  # noqa: E402

TENSORS = {
    "wte.weight": ([4, 3], 1), "none": ([0, 4], 1), "layer.0.w": ([2, 2], 2), "scalar": ([], 2),
    "last": ([5], 3)
}
COUNT, INDEX = 3, "pytorch_model.bin.index.json"


class CheckFailed(Exception):
    pass


def require(condition, message):
    if not condition:
        raise CheckFailed(str(message))


def heft(*args, code=0):
    p = subprocess.run([HEFT, *map(str, args)], capture_output=True, check=False)
    require(code is None or p.returncode == code,
           f"{args[0]}: exit {p.returncode}, not {code}: {p.stderr.decode()[:300]}")
    return p


def heft_json(*args, code=0):
    return json.loads(heft(*args, "--json", code=code).stdout)


# ---- files of PyTorch ----

def elements(shape):
    count = 1
    for d in shape:
        count *= d
    return count


def data_of(name):
    return struct.pack(f"<{elements(TENSORS[name][0])}f",
                       *(sum(name.encode()) + i for i in range(elements(TENSORS[name][0]))))


def text(value):
    raw = value.encode()
    return b"X" + struct.pack("<I", len(raw)) + raw


def numbers(values):
    return b"(" + b"".join(b"J" + struct.pack("<i", v) for v in values) + b"t"


def strides(shape):
    return [elements(shape[i + 1:]) for i in range(len(shape))]


def tensor(key, shape):
    storage = b"(" + text("storage") + b"ctorch\nFloatStorage\n" + text(key) + text(
        "cpu") + b"J" + struct.pack("<i", elements(shape)) + b"tQ"
    return b"ctorch._utils\n_rebuild_tensor_v2\n(" + storage + b"K\x00" + numbers(shape) + numbers(
        strides(shape)) + b"\x89NtR"


def weights(names):
    """Return an archive like that of torch.save({name: tensor})."""
    data = b"\x80\x02}(" + b"".join(
        text(n) + tensor(str(i), TENSORS[n][0]) for i, n in enumerate(names)) + b"u."
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as z:
        z.writestr("archive/data.pkl", data)
        for i, n in enumerate(names):
            z.writestr(f"archive/data/{i}", data_of(n))
        z.writestr("archive/version", b"3\n")
    return out.getvalue()


def shard_name(i):
    return f"pytorch_model-{i:05d}-of-{COUNT:05d}.bin"


def tensors_in_file(i):
    return [n for n, (_, file) in TENSORS.items() if file == i]


def make_index():
    return {
        "metadata": {"total_size": sum(len(data_of(n)) for n in TENSORS)},
        "weight_map": {n: shard_name(f) for n, (_, f) in TENSORS.items()}
    }


def write_shards(folder, index=None):
    folder.mkdir(exist_ok=True)
    for i in range(1, COUNT + 1):
        (folder / shard_name(i)).write_bytes(weights(tensors_in_file(i)))
    (folder / INDEX).write_text(json.dumps(index or make_index(), indent=2))


def rules(path, code=0):
    return [(f["rule"], f["severity"]) for f in heft_json("verify", path, code=code)["findings"]]


# ---- checks ----

def shards_are_one_model(scratch):
    write_shards(scratch / "set")
    (scratch / "whole.pt").write_bytes(weights(TENSORS))
    for path in (scratch / "set", scratch / "set" / INDEX):
        listed = heft_json("ls", path)
        require(listed["format"] == "torch", listed["format"])
        require([(t["name"], t["dtype"], t["shape"])
                for t in listed["tensors"]] == [(n, "f32", s) for n, (s, _) in TENSORS.items()],
               listed["tensors"])
        require(rules(path) == [], rules(path))
        require(
            heft_json("hash", path)["model"] == heft_json("hash", scratch / "whole.pt")["model"],
            "the hash")
        for name in TENSORS:
            require(heft("cat", path, name).stdout == data_of(name), f"the bytes of {name}")
    heft("convert", scratch / "set", scratch / "out.safetensors")
    heft("diff", scratch / "set", scratch / "out.safetensors")
    heft("show", scratch / "set", "last")
    heft("stats", scratch / "set")


def other_suffixes(scratch):
    for suffix in (".pt", ".pth"):
        index = {"weight_map": {"last": f"a{suffix}"}}
        (scratch / f"a{suffix}").write_bytes(weights(["last"]))
        (scratch / f"x{suffix}.index.json").write_text(json.dumps(index))
        require(
            heft("cat", scratch / f"x{suffix}.index.json", "last").stdout == data_of("last"),
            suffix)


def a_whole_file_comes_first(scratch):
    """Prefer pytorch_model.bin, as transformers does, and ignore files of a training run."""
    write_shards(scratch / "set")
    (scratch / "set" / "pytorch_model.bin").write_bytes(weights(["last"]))
    for other in ("optimizer.pt", "scheduler.pt", "rng_state.pth"):
        (scratch / "set" / other).write_bytes(weights(["scalar"]))
    (scratch / "set" / "training_args.bin").write_bytes(b"\x80\x02N.")
    require([t["name"] for t in heft_json("ls", scratch / "set")["tensors"]] == ["last"],
            "the tensors")
    require(rules(scratch / "set") == [], "findings")


def safetensors_come_before(scratch):
    safe = gen_shards.pack({"a": ("U8", [1], b"x")})
    for number, (name, torch) in enumerate([("model.safetensors", "pytorch_model.bin"),
                                            ("adapter_model.safetensors", "pytorch_model.bin"),
                                            ("adapter_model.safetensors", INDEX),
                                            ("model.safetensors.index.json", INDEX)]):
        folder = scratch / str(number)
        if torch == INDEX:
            write_shards(folder)
        else:
            folder.mkdir()
            (folder / torch).write_bytes(weights(TENSORS))
        (folder / (name if name.endswith(".safetensors") else "x.safetensors")).write_bytes(safe)
        if name.endswith(".json"):
            (folder / name).write_text(json.dumps({"weight_map": {"a": "x.safetensors"}}))
        require([t["name"] for t in heft_json("ls", folder)["tensors"]] == ["a"],
               f"{name}: the tensors")
        require(rules(folder) == [("heft/passed-over", "note")], rules(folder))
        require(torch in heft_json("verify", folder)["findings"][0]["text"],
               "the note does not name the file")
        require(rules(folder / name) == [], "a file that is named has no note")


def two_kinds_of_other_weights(scratch):
    folder = scratch / "two"
    folder.mkdir()
    (folder / "a.safetensors").write_bytes(gen_shards.pack({"a": ("U8", [1], b"x")}))
    (folder / "b.safetensors").write_bytes(gen_shards.pack({"a": ("U8", [1], b"x")}))
    (folder / "pytorch_model.bin").write_bytes(weights(TENSORS))
    heft("ls", folder, code=4)


def faults(scratch):
    write_shards(scratch / "gone")
    (scratch / "gone" / shard_name(2)).unlink()
    require(("heft/file-missing", "fault") in rules(scratch / "gone", 1), "a file that is missing")
    heft("ls", scratch / "gone")
    heft("convert", scratch / "gone", scratch / "no.safetensors", code=4)
    write_shards(scratch / "broken")
    (scratch / "broken" / shard_name(2)).write_bytes(b"PK\3\4")
    require(("heft/shard", "fault") in rules(scratch / "broken", 1), "a file that is none")
    write_shards(scratch / "link")
    (scratch / "link" / shard_name(2)).rename(scratch / "outside.bin")
    os.symlink("../outside.bin", scratch / "link" / shard_name(2))
    require(("heft/file-missing", "fault") in rules(scratch / "link", 1),
           "a link that leaves the folder")
    for name, index, rule in (("ghost", {
            "weight_map": {**make_index()["weight_map"], "ghost": shard_name(1)}
    }, "heft/shard-tensor"), ("elsewhere", {
            "weight_map": {**make_index()["weight_map"], "last": shard_name(1)}
    }, "heft/shard-tensor")):
        write_shards(scratch / name, index)
        require((rule, "fault") in rules(scratch / name, 1), name)
    write_shards(scratch / "total", {**make_index(), "metadata": {"total_size": 1}})
    require(("heft/shard-total", "warning") in rules(scratch / "total"), "total_size")
    write_shards(scratch / "word", {**make_index(), "metadata": {"total_size": 1.5}})
    require(("torch/total-size", "note") in rules(scratch / "word"),
           "a total_size that is no whole number")


def refused(scratch):
    for name, shard, code in (("up", "../x.bin", 3), ("deep", "a/x.bin", 3), ("mixed",
                                                                              "x.safetensors", 5)):
        path = scratch / f"{name}.bin.index.json"
        path.write_text(json.dumps({"weight_map": {"a": "x.bin", "b": shard}}))
        heft("ls", path, code=code)
    path = scratch / "other.safetensors.index.json"
    path.write_text(json.dumps({"weight_map": {"a": "x.safetensors", "b": "x.bin"}}))
    require(b"same format" in heft("ls", path, code=5).stderr, "a PyTorch file among safetensors")
    write_shards(scratch / "set")
    heft("ls", "--key", "layer", scratch / "set", code=5)


# Files of a folder; the file that is opened, or an exit code and words of the message; the file
# that the note heft/passed-over names. Each file has a tensor with the name of the file.
MODEL, ADAPTER = "model.safetensors", "adapter_model.safetensors"
DIFFUSION = "diffusion_pytorch_model"
LISTED = "*x.safetensors"
CHOICES = [
    ([MODEL, "model.fp16.safetensors", "other.safetensors"], MODEL, None),
    ([MODEL, f"{MODEL}.index.json{LISTED}"], MODEL, None),
    ([f"{MODEL}.index.json{LISTED}", "consolidated.safetensors"], "x.safetensors", None),
    (["model.fp16.safetensors"], "model.fp16.safetensors", None),
    ([f"{MODEL}.index.fp16.json{LISTED}"], "x.safetensors", None),
    ([f"{MODEL}.index.fp16.json{LISTED}", "y.safetensors"], "x.safetensors", None),
    ([f"{DIFFUSION}.safetensors", f"{DIFFUSION}.fp16.safetensors", f"{DIFFUSION}.bin"],
     f"{DIFFUSION}.safetensors", f"{DIFFUSION}.bin"),
    ([f"{DIFFUSION}.safetensors.index.json{LISTED}"], "x.safetensors", None),
    ([f"{DIFFUSION}.bin", "optimizer.pt"], f"{DIFFUSION}.bin", None),
    ([f"{DIFFUSION}.fp16.bin"], f"{DIFFUSION}.fp16.bin", None),
    (["consolidated.safetensors", "tokenizer.safetensors"], "consolidated.safetensors", None),
    (["consolidated.00.pth", "checklist.pt"], "consolidated.00.pth", None),
    (["consolidated.00.pth", "consolidated.01.pth"], 4,
     "'consolidated.00.pth' and 'consolidated.01.pth': name one"),
    ([MODEL, ADAPTER], MODEL, ADAPTER),
    ([ADAPTER, "optimizer.pt", "training_args.bin"], ADAPTER, None),
    (["adapter_model.bin", "optimizer.pt"], "adapter_model.bin", None),
    (["a.gguf"], "a.gguf", None),
    (["a.gguf", "b.gguf"], 4, "several weight files, 'a.gguf' and 'b.gguf': name one of them"),
    (["c.gguf", "b.gguf", "a.gguf", "d.npy"], 4,
     "4 weight files, among them 'a.gguf', 'b.gguf' and 'c.gguf'"),
    (["model.fp16.safetensors", "model.bf16.safetensors"], 4, "name one of them"),
    (["last.ckpt"], "last.ckpt", None),
    (["weights.bin", "training_args.bin"], "weights.bin", None),
    (["weights.bin", "b.gguf"], "b.gguf", None),
    (["tf_model.h5"], 5, "'tf_model.h5' is a file of TensorFlow"),
    (["flax_model.msgpack"], 5, "'flax_model.msgpack' is a file of Flax"),
    (["model.onnx"], 5, "'model.onnx' is a file of ONNX"),
    (["openvino_model.bin"], 5, "'openvino_model.bin' is a file of OpenVINO"),
    (["tf_model.h5", "model.onnx", MODEL], MODEL, None),
    (["README.md", "config.json"], 4, "the folder has no weight file"),
    (["training_args.bin"], 4, "the folder has no weight file"),
    ([".hidden.safetensors"], 4, "the folder has no weight file"),
    ([f".cache.bin{LISTED}"], 4, "the folder has no weight file"),
]


def gguf(name):
    raw = name.encode()
    head = b"GGUF" + struct.pack("<IQQ", 3, 1, 0) + struct.pack("<Q", len(raw)) + raw
    head += struct.pack("<IQIQ", 1, 4, 0, 0)
    return head + bytes(-len(head) % 32) + bytes(32)


def make_weights(folder, item):
    """Write one file of a row. After a star comes the shard that an index names."""
    name, _, shard = item.partition("*")
    suffix = name.rpartition(".")[2]
    if shard:
        (folder / name).write_text(json.dumps({"weight_map": {shard: shard}}))
        if shard and suffix == "json":
            (folder / shard).write_bytes(gen_shards.pack({shard: ("U8", [1], b"x")}))
    elif suffix == "safetensors":
        (folder / name).write_bytes(gen_shards.pack({name: ("U8", [1], b"x")}))
    elif suffix in ("bin", "pt", "pth", "ckpt"):
        TENSORS[name] = ([1], 9)
        (folder / name).write_bytes(weights([name]))
        del TENSORS[name]
    else:
        (folder / name).write_bytes(gguf(name) if suffix == "gguf" else b"{}")


def the_table_decides(scratch):
    for number, (items, wanted, detail) in enumerate(CHOICES):
        folder = scratch / f"f{number}"
        folder.mkdir()
        for item in items:
            make_weights(folder, item)
        p = heft("ls", "--json", folder, code=wanted if isinstance(wanted, int) else 0)
        if isinstance(wanted, int):
            require(detail in p.stderr.decode(), f"{items}: {p.stderr.decode()}")
            continue
        names = [t["name"] for t in json.loads(p.stdout)["tensors"]]
        require(names == [wanted], f"{items}: {names}")
        notes = [f["text"] for f in heft_json("verify", folder)["findings"]
                 if f["rule"] == "heft/passed-over"]
        require(len(notes) == (1 if detail else 0) and (not detail or f"'{detail}'" in notes[0]),
                f"{items}: {notes}")


def info_names_the_base_of_an_adapter(scratch):
    for number, (text, line, member) in enumerate([
        ('{"peft_type": "LORA", "base_model_name_or_path": "o/b\\u001b"}',
         "Adapter     LORA of o/b\\x1b\n", {"type": "LORA", "base": "o/b\x1b"}),
        ('{"base_model_name_or_path": "o/b"}', "Adapter     of o/b\n",
         {"type": None, "base": "o/b"}),
        ('{"base_model_name_or_path": 3}', None, None),
        ("not JSON", None, None),
        (None, None, None),
    ]):
        folder = scratch / f"a{number}"
        folder.mkdir()
        make_weights(folder, ADAPTER)
        make_weights(folder, "other.safetensors")
        if text:
            (folder / "adapter_config.json").write_text(text)
        for path in (folder, folder / ADAPTER):
            shown = heft("info", path).stdout.decode()
            require(line in shown if line else "Adapter  " not in shown, shown)
            require(heft_json("info", path).get("adapter") == member, path)
        require("adapter" not in heft_json("info", folder / "other.safetensors"), "not an adapter")


CHECKS = [
    the_table_decides, info_names_the_base_of_an_adapter,
    shards_are_one_model, other_suffixes, a_whole_file_comes_first, safetensors_come_before,
    two_kinds_of_other_weights, faults, refused
]


def run(check):
    with tempfile.TemporaryDirectory() as scratch:
        try:
            check(pathlib.Path(scratch))
        except CheckFailed as e:
            return [str(e)]
    return []


def main():
    global HEFT
    HEFT = sys.argv[1]
    return tap.report([(check.__name__.replace("_", " "), run(check)) for check in CHECKS])


sys.exit(main())
