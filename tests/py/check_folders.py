#!/usr/bin/env python3
"""check_folders.py HEFT: model folders with PyTorch files, whole or sharded.

Some folders also have safetensors files. The PyTorch files are written with Python's zipfile and
pickle opcodes. TAP on stdout."""
import io
import json
import os
import pathlib
import struct
import sys
import zipfile

from checks import heft, heft_json, require, run
import gen_flax
import gen_onnx
import gen_shards

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import tap  # noqa: E402

TENSORS = {
    "wte.weight": ([4, 3], 1), "none": ([0, 4], 1), "layer.0.w": ([2, 2], 2), "scalar": ([], 2),
    "last": ([5], 3)
}
COUNT, INDEX = 3, "pytorch_model.bin.index.json"


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
    require(rules(scratch / "set") == [("heft/left-out", "warning")], "findings")
    require(not_read(scratch / "set") == ["!" + INDEX], "the shards are named, too")


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


# Files of a folder; the file that is opened, or an exit code and words of the message; the files
# that notes (heft/passed-over) and warnings (heft/left-out, after a "!") name. Each file has a
# tensor with the name of the file.
MODEL, ADAPTER = "model.safetensors", "adapter_model.safetensors"
DIFFUSION = "diffusion_pytorch_model"
LISTED = "*x.safetensors"
CHOICES = [
    ([MODEL, "model.fp16.safetensors", "other.safetensors"], MODEL,
     ["model.fp16.safetensors", "!other.safetensors"]),
    ([MODEL, "model.mtp.safetensors", "model.non_ema.safetensors", "model.int8.safetensors"], MODEL,
     ["!model.mtp.safetensors", "model.int8.safetensors", "model.non_ema.safetensors"]),
    ([MODEL, f"{MODEL}.index.json{LISTED}"], MODEL, [f"!{MODEL}.index.json", "!x.safetensors"]),
    ([f"{MODEL}.index.json{LISTED}", "consolidated.safetensors"], "x.safetensors",
     ["!consolidated.safetensors"]),
    ([f"{MODEL}.index.json{LISTED}", "model-mtp.safetensors"], "x.safetensors",
     ["!model-mtp.safetensors"]),
    ([MODEL, "model.gguf"], MODEL, ["model.gguf"]),
    ([MODEL, "vocoder.pth", "last.ckpt"], MODEL, ["vocoder.pth", "last.ckpt"]),
    ([MODEL, "model.onnx", "optimizer.pt", "scheduler.pt", "rng_state_0.pth", "scaler.pt",
      "training_args.bin", "tokenizer.model", "events.out.tfevents.1"], MODEL, ["model.onnx"]),
    (["pytorch_model.bin", "vocoder.pth"], "pytorch_model.bin", ["!vocoder.pth"]),
    (["model.pt", "last.ckpt"], "model.pt", ["!last.ckpt"]),
    (["model.fp16.safetensors"], "model.fp16.safetensors", None),
    ([f"{MODEL}.index.fp16.json{LISTED}"], "x.safetensors", None),
    ([f"{MODEL}.index.fp16.json{LISTED}", "y.safetensors"], "x.safetensors", ["!y.safetensors"]),
    ([f"{DIFFUSION}.safetensors", f"{DIFFUSION}.fp16.safetensors", f"{DIFFUSION}.bin"],
     f"{DIFFUSION}.safetensors", [f"{DIFFUSION}.bin", f"{DIFFUSION}.fp16.safetensors"]),
    ([f"{DIFFUSION}.safetensors.index.json{LISTED}"], "x.safetensors", None),
    # names of indices that releases of diffusers have written
    ([f"{DIFFUSION}.safetensors.fp16.index.json{LISTED}"], "x.safetensors", None),
    ([f"{DIFFUSION}.fp16.safetensors.index.json{LISTED}"], "x.safetensors", None),
    ([f"{DIFFUSION}.bin", "optimizer.pt"], f"{DIFFUSION}.bin", None),
    ([f"{DIFFUSION}.fp16.bin"], f"{DIFFUSION}.fp16.bin", None),
    (["consolidated.safetensors", "tokenizer.safetensors"], "consolidated.safetensors",
     ["!tokenizer.safetensors"]),
    (["consolidated.00.pth", "checklist.pt"], "consolidated.00.pth", ["!checklist.pt"]),
    (["consolidated.00.pth", "consolidated.01.pth"], 4,
     "'consolidated.00.pth' and 'consolidated.01.pth': name one"),
    ([MODEL, ADAPTER], MODEL, [ADAPTER]),
    ([ADAPTER, "optimizer.pt", "training_args.bin"], ADAPTER, None),
    (["adapter_model.bin", "optimizer.pt"], "adapter_model.bin", None),
    (["a.gguf"], "a.gguf", None),
    (["a.gguf", "b.gguf"], 4, "several weight files, 'a.gguf' and 'b.gguf': name one of them"),
    (["flax_model.msgpack"], "flax_model.msgpack", None),
    (["flax_model.msgpack", "other.msgpack"], "flax_model.msgpack", ["!other.msgpack"]),
    (["flax_model.msgpack.index.json*x.msgpack"], "x.msgpack", None),
    ([MODEL, "flax_model.msgpack"], MODEL, ["flax_model.msgpack"]),
    (["pytorch_model.bin", "flax_model.msgpack", "tf_model.h5"], "pytorch_model.bin",
     ["flax_model.msgpack", "tf_model.h5"]),
    (["c.gguf", "b.gguf", "a.gguf", "d.npy"], 4,
     "4 weight files, among them 'a.gguf', 'b.gguf' and 'c.gguf'"),
    (["model.fp16.safetensors", "model.bf16.safetensors"], 4, "name one of them"),
    (["last.ckpt"], "last.ckpt", None),
    (["weights.bin", "training_args.bin"], "weights.bin", None),
    (["weights.bin", "b.gguf"], "b.gguf", ["weights.bin"]),
    # one name is the beginning of the other
    (["m.gguf", "m-Q4_K_M.gguf"], 4, "'m-Q4_K_M.gguf' and 'm.gguf': name one of them"),
    (["last.ckpt", "last-v1.ckpt"], 4, "'last-v1.ckpt' and 'last.ckpt': name one of them"),
    (["w.pt", "w-ema.pt"], 4, "'w-ema.pt' and 'w.pt': name one of them"),
    (["m.safetensors", "m-00001-of-00002.safetensors"], 4, "name one of them"),
    # distributed checkpoints
    (["__0_0.distcp"], 5, "was not finished"),
    (["__0_0.distcp", "common.pt", "metadata.json"], 5, "a distributed checkpoint (DCP)"),
    (["common.pt", "metadata.json"], 5, "a distributed checkpoint of Megatron"),
    ([MODEL, "__0_0.distcp"], MODEL, ["!__0_0.distcp"]),
    (["mp_rank_00/model.pt"], 5, "a checkpoint of Megatron"),
    (["latest", "global_step5/zero_pp_rank_0_mp_rank_00_optim_states.pt"], 5,
     "a checkpoint of DeepSpeed in the folder 'global_step5'"),
    ([MODEL, "global_step5/zero_pp_rank_0_mp_rank_00_optim_states.pt"], MODEL, []),
    (["zero_pp_rank_0_mp_rank_00_model_states.pt"], 5, "zero_to_fp32.py"),
    (["mp_rank_00_model_states.pt", "zero/fp32.pt"], 5, "universal checkpoint"),
    ([MODEL, "mp_rank_00/model.pt"], MODEL, ["!mp_rank_00"]),
    (["latest_checkpointed_iteration.txt", "iter_0000500/x.pt"], 5, "Megatron"),
    ([MODEL, "iter_0000500/x.pt"], MODEL, ["!iter_0000500"]),
    (["pytorch_model_fsdp_0/__0_0.distcp"], 5, "a distributed checkpoint (DCP)"),
    ([MODEL, "pytorch_model_fsdp_0/__0_0.distcp"], MODEL, ["!pytorch_model_fsdp_0"]),
    # modules of sentence-transformers
    ([MODEL, "modules.json", "2_Dense/model.safetensors", "1_Pooling/config.json"], MODEL,
     ["!2_Dense/model.safetensors"]),
    ([MODEL, "2_Dense/model.safetensors"], MODEL, []),
    ([MODEL, "modules.json", "query_0_Transformer/model.safetensors"], MODEL,
     ["!query_0_Transformer/model.safetensors"]),
    (["modules.json", "2_Dense/model.safetensors", "0_Transformer/model.safetensors"], 4,
     "weights in folders of modules only, such as '0_Transformer/model.safetensors'"),
    (["model.tflite"], 5, "'model.tflite' is a file of TensorFlow Lite"),
    (["model.onnx"], "model.onnx", None),
    (["openvino_model.bin"], 5, "'openvino_model.bin' is a file of OpenVINO"),
    (["tf_model.h5", "model.onnx", MODEL], MODEL, ["model.onnx", "tf_model.h5"]),
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
    (folder / name).parent.mkdir(exist_ok=True)
    suffix = name.rpartition(".")[2]
    if shard:
        (folder / name).write_text(json.dumps({"weight_map": {shard: shard}}))
        if shard and suffix == "json":
            make_weights(folder, shard)
    elif suffix == "msgpack":
        (folder / name).write_bytes(gen_flax.pack({name: gen_flax.array(("", "u8", (1,), b"x"))}))
    elif suffix == "onnx":
        (folder / name).write_bytes(gen_onnx.model(gen_onnx.graph([gen_onnx.raw((name, "u8", (1,),
                                                                                b"x"))])))
    elif suffix == "safetensors":
        (folder / name).write_bytes(gen_shards.pack({name: ("U8", [1], b"x")}))
    elif suffix in ("bin", "pt", "pth", "ckpt"):
        TENSORS[name] = ([1], 9)
        (folder / name).write_bytes(weights([name]))
        del TENSORS[name]
    else:
        (folder / name).write_bytes(gguf(name) if suffix == "gguf" else b"{}")


def not_read(folder):
    """Return the files that findings name, those of warnings with a "!"."""
    found = []
    for f in heft_json("verify", folder)["findings"]:
        if f["rule"] in ("heft/passed-over", "heft/left-out"):
            require(f["severity"] == ("note" if f["rule"] == "heft/passed-over" else "warning"), f)
            found.append("!" * (f["severity"] == "warning") + f["text"].split("'")[1])
    return found


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
        found = not_read(folder)
        strict = heft("convert", "--strict", folder, scratch / f"f{number}.mag", code=None)
        is_refused = strict.returncode == 5 and b"which was not read" in strict.stderr
        require(is_refused == any(f[0] == "!" for f in found), f"{items}: {strict.stderr}")
        require(sorted(found) == sorted(detail or []), f"{items}: {found}")


# ---- shards without an index ----

SETS = [
    [f"model-0000{i}-of-00003.safetensors" for i in (1, 2, 3)],
    [f"model-0000{i}-of-00003.safetensors" for i in (0, 1, 2)],
    [f"model_00001-of-0000{2}.safetensors", f"model_00002-of-0000{2}.safetensors"],
    [f"m-{i}-of-10.safetensors" for i in range(1, 11)],
    [f"model.fp16-0000{i}-of-00002.safetensors" for i in (1, 2)],
    [f"model-0000{i}-of-00002.fp16.safetensors" for i in (1, 2)],
    [f"0000{i}-of-00002.safetensors" for i in (1, 2)],
    [f"pytorch_model-0000{i}-of-00002.bin" for i in (1, 2)],
    [f"w_{i}_of_2.pt" for i in (1, 2)],
]


def numbered_shards_are_joined(scratch):
    for number, names in enumerate(SETS):
        folder = scratch / f"s{number}"
        folder.mkdir()
        for name in ["README.md", "config.json", *names]:
            make_weights(folder, name)
        listed = [t["name"] for t in heft_json("ls", folder)["tensors"]]
        require(sorted(listed) == sorted(names), f"{names}: {listed}")
        require(rules(folder) == [("heft/shard-joined", "note")], rules(folder))
        heft("convert", folder, scratch / f"s{number}.safetensors")
        for gone in (names[1], names[-1]):
            (folder / gone).rename(scratch / gone)
            p = heft("verify", folder, code=1)
            require(gone in p.stdout.decode(), f"{gone}: {p.stdout}")
            for command in (["convert", folder, scratch / "x.mag"], ["hash", folder],
                            ["merge", folder, scratch / "x.mag"], ["stats", folder]):
                require(gone in heft(*command, code=4).stderr.decode(), command)
            (scratch / gone).rename(folder / gone)
        (folder / names[0]).unlink()
        if number != 1: # the set from 0 is now one from 1 that lacks the last shard
            require(names[0] in heft("ls", folder, code=4).stderr.decode(), names[0])


def shards_of_every_format(scratch):
    """Each shard has padding, checksums and data of its own, which verify checks in its file."""
    writes = [("zt", ""), ("zt", "1.2"), ("zt", "2"), ("bpk", ""), ("weights", ""), ("mag", ""),
              ("gguf", ""), ("npz", ""), ("gptrs", ""), ("gten", "")]
    for suffix, version in writes:
        folder = scratch / (suffix + version)
        folder.mkdir()
        for i, name in ((1, "first"), (2, "second.name")):
            (scratch / "one.safetensors").write_bytes(
                gen_shards.pack({name: ("F32", [3 * i], bytes(range(12 * i)))}))
            heft("convert", "--force", *(["--format-version", version] if version else []),
                 *(["--to", "embd"] if suffix == "weights" else []), scratch / "one.safetensors",
                 folder / f"w-0000{i}-of-00002.{suffix}")
        found = [r for r in rules(folder) if r[0] != "gguf/architecture"]
        require(found == [("heft/shard-joined", "note")], f"{folder}: {found}")


def an_index_or_a_set_beside_another(scratch):
    folder = scratch / "two"
    folder.mkdir()
    for name in SETS[0] + SETS[4]:
        make_weights(folder, name)
    heft("ls", folder)  # the set of model.safetensors is read, its variant is another form
    require(not_read(folder) == [SETS[4][0]], not_read(folder))
    for name in SETS[3]:
        make_weights(folder, name)
    require(not_read(folder) == ["!" + SETS[3][0], SETS[4][0]], not_read(folder))


def a_shard_by_its_name(scratch):
    make_weights(scratch, SETS[0][1])
    p = heft("ls", scratch / SETS[0][1])
    require("numbered as shard 2 of 3" in p.stderr.decode(), p.stderr)
    require(rules(scratch / SETS[0][1]) == [("heft/shard-alone", "warning")], "the finding")
    for name in SETS[0]:
        make_weights(scratch, name)
    shards = [scratch / name for name in SETS[0]]
    heft("verify", "--strict", *shards)
    require(not heft("merge", *shards, scratch / "all.mag").stderr, "all shards are given")
    p = heft("merge", *shards[:2], scratch / "some.mag")
    require(p.stderr.decode().count("numbered as shard") == 2, p.stderr)
    make_weights(scratch, "m-00001-of-00001.safetensors")
    require(rules(scratch / "m-00001-of-00001.safetensors") == [], "one shard of one")


def numbers_without_limit(scratch):
    for name, code, words in (
        ("m-00001-of-99999.safetensors", 5, "99999 shards, more than 4096"),
        ("m-1-of-2.safetensors", 0, ""), ("m-01-of-2.safetensors", 4, "not shards of one set"),
    ):
        make_weights(scratch, name)
        p = heft("ls", scratch, code=code)
        require(words in p.stderr.decode(), f"{name}: {p.stderr}")
        if code == 5:
            (scratch / name).unlink()


def an_index_that_programs_damage(scratch):
    safe = gen_shards.pack({"a": ("U8", [1], b"x")})
    index = json.dumps({"weight_map": {"a": "./x.safetensors"}})
    (scratch / "x.safetensors").write_bytes(safe)
    path = scratch / "model.safetensors.index.json"
    path.write_bytes(b"\xef\xbb\xbf" + index.encode())
    require(rules(scratch) == [("safetensors/byte-order-mark", "note")], rules(scratch))
    heft("convert", scratch, scratch / "out.npz")
    (scratch / "x.safetensors").write_text("version https://git-lfs.github.com/spec/v1\noid x\n")
    require(b"is a Git LFS pointer" in heft("verify", scratch, code=1).stdout, "a pointer")
    (scratch / "x.safetensors").write_text("<!DOCTYPE html><html>")
    page = heft("verify", scratch, code=1).stdout
    require(b"an HTML page" in page and b"download this shard" in page, page)
    path.write_text('{"weight_map": {}}')
    require(("heft/shard-index", "fault") in rules(scratch, code=1), "an empty index")
    heft("hash", scratch, code=3)


def links_that_leave_the_folder(scratch):
    (scratch / "m").mkdir()
    make_weights(scratch, "elsewhere.safetensors")
    os.symlink(scratch / "elsewhere.safetensors", scratch / "m" / MODEL)
    require(b"--follow-links" in heft("ls", scratch / "m", code=4).stderr, "the hint")
    require(b"elsewhere" in heft("ls", "--follow-links", scratch / "m").stdout, "the option")


def pieces_of_tensors(scratch):
    def pack(name, at):
        info = json.dumps({"w": {"saved_offsets": [at, 0]}})
        header = json.dumps({
            "__metadata__": {"DCP_SHARDING_INFO": info},
            "w": {"dtype": "U8", "shape": [1, 2], "data_offsets": [0, 2]}
        }).encode()
        path = scratch / name
        path.write_bytes(struct.pack("<Q", len(header)) + header + b"ab")
        return path

    a = pack("shard-00001-model-00001-of-00001.safetensors", 0)
    b = pack("shard-00002-model-00001-of-00001.safetensors", 1)
    require(("heft/pieces", "warning") in rules(a), rules(a))
    require(b"pieces of tensors" in heft("info", b).stderr, "info says nothing")
    require(b"pieces of tensors" in heft("merge", a, b, scratch / "o.mag", code=5).stderr, "merge")
    (scratch / "__0_0.distcp").write_bytes(weights(["last"]))
    for command in ("info", "doctor"):
        p = heft(command, scratch / "__0_0.distcp", code=5)
        require(b"a part of a distributed checkpoint (DCP)" in p.stderr, p.stderr)


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
    the_table_decides, numbered_shards_are_joined, shards_of_every_format,
    an_index_or_a_set_beside_another, a_shard_by_its_name, numbers_without_limit,
    an_index_that_programs_damage, links_that_leave_the_folder, pieces_of_tensors,
    info_names_the_base_of_an_adapter,
    shards_are_one_model, other_suffixes, a_whole_file_comes_first, safetensors_come_before,
    two_kinds_of_other_weights, faults, refused
]


def main():
    return tap.report([(check.__name__.replace("_", " "), run(check)) for check in CHECKS])


sys.exit(main())
