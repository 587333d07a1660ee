#!/usr/bin/env python3
"""check_dcp.py HEFT SHARED: distributed checkpoints of PyTorch (DCP) as models.

PyTorch writes the pieces, and the bytes of every tensor are compared with those of the tensor that
was cut. Skipped without PyTorch. TAP on stdout."""
import json
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import tap  # noqa: E402

try:
    import torch
    import dcp_folder as dcp
except ImportError as why:
    print(f"1..0 # SKIP {why}")
    sys.exit(0)


class CheckFailed(Exception):
    pass


class Skipped(Exception):
    pass


def require(condition, message):
    if not condition:
        raise CheckFailed(str(message))


def heft(*args, code=0):
    p = subprocess.run([HEFT, *map(str, args)], capture_output=True, check=False)
    require(code is None or p.returncode == code,
           f"{args[0]}: exit {p.returncode}, not {code}: {p.stderr.decode()[:400]}")
    return p


# ---- what Heft makes of a folder ----

def read_safetensors(path):
    data = path.read_bytes()
    n = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + n])
    header.pop("__metadata__", None)
    return {name: (t["shape"], data[8 + n + t["data_offsets"][0]:8 + n + t["data_offsets"][1]])
            for name, t in header.items()}


def bytes_of(tensor):
    flat = tensor.contiguous().flatten()
    return (flat.view(torch.int16) if flat.dtype == torch.bfloat16 else flat).numpy().tobytes()


def require_equal(folder, tensors, scratch, *options):
    out = scratch / "out.safetensors"
    heft("convert", "-f", *options, folder, out)
    found = read_safetensors(out)
    require(set(found) == set(tensors), f"{sorted(found)} instead of {sorted(tensors)}")
    for name, tensor in tensors.items():
        shape, data = found[name]
        require(shape == list(tensor.shape), f"{name}: shape {shape}")
        require(data == bytes_of(tensor), f"{name}: other bytes")


def sample(scratch, ranks=3, **more):
    g = torch.Generator().manual_seed(1)
    f = dcp.Folder(scratch / "dcp", ranks, **more)
    rows = torch.randn(7, 5, generator=g)
    f.add_object("step", 12)
    f.add_tensor("model.rows", rows, dcp.row_pieces((7, 5), ranks))
    f.add_tensor("model.half", rows.half(), dcp.column_pieces((7, 5), ranks))
    f.add_tensor("model.bf16", rows.bfloat16(), dcp.grid_pieces((7, 5), 2, 3))
    f.add_tensor("model.deep", torch.arange(2 * 3 * 4 * 5).reshape(2, 3, 4, 5),
                 [((0, 0, 0, 0), (2, 1, 4, 5)), ((0, 1, 0, 0), (2, 2, 4, 5))])
    f.add_tensor("model.bias", torch.randn(4, generator=g), [((0, ), (4, ))])
    f.add_tensor("model.none", torch.zeros(0, 3), [])
    f.add_tensor("optim.state.rows.exp_avg", rows * 2, dcp.row_pieces((7, 5), ranks))
    f.add_tensor("optim.state.rows.step", torch.tensor(3.0), [((), ())])
    return f


def every_protocol(scratch):
    for protocol in (2, 3, 4, 5):
        f = sample(scratch)
        require_equal(f.write(protocol), f.tensors, scratch)
    require_equal(f.path / ".metadata", f.tensors, scratch)


def earlier_and_other_writers(scratch):
    """Fields that earlier versions lack, Megatron's class, and pieces in the legacy format."""
    f = sample(scratch)

    def earlier(meta):
        del meta.storage_meta, meta.version
        info(meta, "model.rows").transform_descriptors = None
        info(meta, "model.rows", 1).transform_descriptors = []
        meta.planner_data = None

    require_equal(f.write(edit=earlier), f.tensors, scratch)
    require_equal(f.write(cls=dcp.MCoreMetadata, mcore_data={}), f.tensors, scratch)
    f = dcp.Folder(scratch / "legacy", 2)
    f.add_tensor("w", torch.randn(6, 4), dcp.row_pieces((6, 4), 2),
                 _use_new_zipfile_serialization=False)
    require_equal(f.write(), f.tensors, scratch)


def large_pieces(scratch):
    """Runs that are read by themselves, and runs that are read together."""
    g = torch.Generator().manual_seed(2)
    f = dcp.Folder(scratch / "large", 4)
    w = torch.randn(1500, 700, generator=g)
    f.add_tensor("rows", w, dcp.row_pieces(w.shape, 4))
    f.add_tensor("columns", w, dcp.column_pieces(w.shape, 4))
    f.add_tensor("grid", w, dcp.grid_pieces(w.shape, 7, 3))
    f.add_tensor("wide", w.reshape(30, 35000), dcp.column_pieces((30, 35000), 4))
    require_equal(f.write(), f.tensors, scratch)
    cast = {n: t.bfloat16() for n, t in f.tensors.items()}
    require_equal(f.path, cast, scratch, "--cast", "bf16")


def zstd(*options):
    def compress(item):
        return subprocess.run(["zstd", "-cq", *options], input=item, capture_output=True,
                              check=True).stdout
    return compress


def compressed_items(scratch):
    """Items that went through zstd: several frames, boxes that share a slot, and scratch space."""
    if not shutil.which("zstd"):
        raise Skipped("there is no zstd")
    f = sample(scratch, transform=("stream.zstd/1", zstd()))
    require_equal(f.write(), f.tensors, scratch)
    p = heft("verify", f.path)
    for words in (b"1400 bytes checked", b"listed as they are stored"):
        require(words in p.stdout, p.stdout)
    require(heft("cat", f.path, "model.rows[2:6,1:3]").stdout ==
            bytes_of(f.tensors["model.rows"][2:6, 1:3]), "a slice")
    require(b"step" in heft("info", f.path).stdout, "an object")
    heft("convert", "--key", "model", "--to", "dcp", f.path, scratch / "plain")
    f = sample(scratch, transform=("stream.zstd", lambda item: zstd("--no-check")(item[:300]) +
                                   zstd("-19")(item[300:])))
    require_equal(f.write(), f.tensors, scratch)
    g = torch.Generator().manual_seed(2)
    w = torch.randn(3000, 2000, generator=g)
    f = dcp.Folder(scratch / "large", 4, transform=("stream.zstd/1", zstd("-1")))
    f.add_tensor("rows", w, dcp.row_pieces(w.shape, 2))
    f.add_tensor("columns", w[:40], dcp.column_pieces((40, 2000), 400))
    require_equal(f.write(), f.tensors, scratch)
    cast = {n: t.bfloat16() for n, t in f.tensors.items()}
    require_equal(f.path, cast, scratch, "--cast", "bf16")


def damaged_compressed_items(scratch):
    if not shutil.which("zstd"):
        raise Skipped("there is no zstd")
    compress, out = zstd("--no-check", "-1"), scratch / "o.safetensors"

    def flipped(item):
        at = item.find(bytes_of(torch.tensor([1.0, 2.0])))
        return compress(item[:at] + b"\1" + item[at + 1:])

    for transform, code, words in [
            (lambda item: compress(item)[:-9], 3, b"truncated"),
            (lambda item: compress(item) + b"x", 3, b"zstd"),
            (lambda item: item, 3, b"zstd"),
            (lambda item: b"", 3, b"truncated"),
            (lambda item: compress(item[:-40]), 3, b"zip"),
            (lambda item: compress(item + bytes(1 << 20)), 3, b"more content"),
            (flipped, 3, b"does not match")]:
        f = dcp.Folder(scratch / "dcp", 1, transform=("stream.zstd/1", transform))
        f.add_tensor("w", torch.tensor([1.0, 2.0]), [((0, ), (2, ))])
        p = heft("convert", f.write(), out, code=code)
        require(words in p.stderr and b"'w'" in p.stderr and b"__0_0.distcp" in p.stderr, p.stderr)
        require(not out.exists(), "a file was written")
        heft("verify", f.path, code=1)


def keys_pick_a_subtree(scratch):
    f = sample(scratch)
    f.write()
    model = {n[len("model."):]: t for n, t in f.tensors.items() if n.startswith("model.")}
    require_equal(f.path, model, scratch, "--key", "model")
    p = heft("ls", "--key", "absent", f.path, code=None)
    require(p.returncode != 0 and b"nothing under the key" in p.stderr, p.stderr)


def objects_are_parts(scratch):
    f = sample(scratch)
    f.add_object("model.layer._extra_state", b"abc")
    f.write()
    p = heft("info", f.path)
    require(b"step, " in p.stdout and b"_extra_state" not in p.stdout, p.stdout)
    require(b"_extra_state" in heft("verify", f.path).stdout, "no note")


def other_numbers(scratch):
    """Types without a counterpart keep their name; quantized pieces have scales of their own."""
    f = sample(scratch)
    f.add_tensor("w", torch.zeros(4), [((0, ), (4, ))])
    half, q = torch.tensor([1, -2], dtype=torch.int32), torch.randn(6, 2)

    def similar(meta):
        meta.state_dict_metadata["w"].properties = dcp.TensorProperties(torch.complex32)

    f.write(edit=similar)
    p = heft("info", f.path)
    require(b"similar-type" in p.stderr and b"complex32" in p.stderr, p.stderr)
    p = heft("convert", f.path, scratch / "other.safetensors", code=3)
    require(b"not of the type" in p.stderr, p.stderr)
    for scales in ((0.5, 0.25), (0.5, 0.5)):
        f = dcp.Folder(scratch / "quantized", 2)
        f.add_tensor("half", half, [((0, ), (2, ))])
        f.add_tensor("q", q, dcp.row_pieces((6, 2), 2),
                     of=lambda p, i: torch.quantize_per_tensor(p, scales[i], 3, torch.qint8))
        f.entries["q"].properties = dcp.TensorProperties(torch.qint8)
        p = heft("convert", "-f", f.write(), scratch / "out.safetensors")
        require(b"quantized" in p.stderr, p.stderr)
        require(list(read_safetensors(scratch / "out.safetensors")) == ["half"], "integers of q")
        f.entries["q"].properties = dcp.TensorProperties(torch.int8)
        p = heft("convert", "-f", f.write(), scratch / "out.safetensors", code=3)
        require(b"not of the type" in p.stderr, p.stderr)


def slices(scratch):
    f = sample(scratch)
    f.write()
    p = heft("cat", f.path, "model.rows[2:6,1:3]")
    require(p.stdout == bytes_of(f.tensors["model.rows"][2:6, 1:3]), p.stdout)
    p = heft("cat", f.path, "model.bf16[::2]")
    require(p.stdout == bytes_of(f.tensors["model.bf16"][::2]), p.stdout)


def scan_knows_the_classes(scratch):
    f = sample(scratch)
    for protocol in (2, 4):
        f.write(protocol)
        heft("scan", f.path / ".metadata")


# ---- refusals ----

def chunk(meta, name, i=0):
    return meta.state_dict_metadata[name].chunks[i]


def info(meta, name, i=0):
    return [v for k, v in meta.storage_data.items() if k.fqn == name][i]


class Calls:
    def __reduce__(self):
        return (print, ("called", ))


def edits():
    """Yield what changes the index, the exit code, and words of the message."""

    def gap(meta):
        meta.state_dict_metadata["model.rows"].chunks.pop(1)

    def twice(meta):
        meta.state_dict_metadata["model.rows"].chunks.append(chunk(meta, "model.rows"))

    def listed_twice(meta):
        meta.storage_data[dcp.MetadataIndex(fqn="model.rows", offset=torch.Size((0, 0)),
                                            index=9)] = info(meta, "model.rows")

    def outside(meta):
        chunk(meta, "model.rows", 2).sizes = torch.Size((9, 5))

    def shape(meta):
        meta.state_dict_metadata["model.rows"].size = torch.Size((7, 6))

    def rank(meta):
        meta.state_dict_metadata["model.rows"].size = torch.Size((35, ))

    def negative(meta):
        chunk(meta, "model.rows").offsets = torch.Size((-1, 0))

    def folder(meta):
        info(meta, "model.rows").relative_path = "../__0_0.distcp"

    def nowhere(meta):
        meta.storage_data = {k: v for k, v in meta.storage_data.items() if k.fqn != "model.rows"}

    def length(meta):
        info(meta, "model.rows").length = 1 << 62

    def transform(meta):
        info(meta, "model.rows").transform_descriptors = ["stream.rot13"]

    def not_compressed(meta):
        info(meta, "model.rows").transform_descriptors = ["stream.zstd/1"]

    def transforms(meta):
        info(meta, "model.rows").transform_descriptors = ["stream.zstd/1", "stream.other/1"]

    def other_version(meta):
        info(meta, "step").transform_descriptors = ["stream.zstd/2"]

    def no_list(meta):
        info(meta, "model.rows").transform_descriptors = "stream.zstd/1"

    def dimensions(meta):
        meta.state_dict_metadata["model.bias"].size = torch.Size((4, ) + (1, ) * 64)

    def long_name(meta):
        meta.storage_data[dcp.MetadataIndex(fqn="n" * 5000, index=0)] = info(meta, "step")

    def many_files(meta):
        for i in range(5000):
            meta.storage_data[dcp.MetadataIndex(fqn=f"t{i}", index=0)] = dcp.StorageInfo(
                relative_path=f"__{i}_0.distcp", offset=0, length=1)

    def long_path(meta):
        info(meta, "model.rows").relative_path = "p" * 70000

    def call(meta):
        meta.version = Calls()

    def dtype(meta):
        meta.state_dict_metadata["model.rows"].properties = dcp.TensorProperties(torch.int32)

    def swapped(meta):
        chunk(meta, "model.deep").sizes, chunk(meta, "model.deep", 1).offsets = torch.Size(
            (2, 2, 4, 5)), torch.Size((0, 2, 0, 0))
        chunk(meta, "model.deep", 1).sizes = torch.Size((2, 1, 4, 5))
        for k in meta.storage_data:
            if k.fqn == "model.deep" and tuple(k.offset) == (0, 1, 0, 0):
                k.__dict__["offset"] = torch.Size((0, 2, 0, 0))

    def past(meta):
        info(meta, "model.rows").offset = 1 << 30

    def elsewhere(meta):
        info(meta, "model.rows").offset += 7

    return [(gap, 3, b"has element [3, 0]"), (twice, 3, b"two pieces have element [0, 0]"),
            (listed_twice, 3, b"listed twice"), (outside, 3, b"of dimension 0, whose size is 7"),
            (shape, 3, b"none of its 3 pieces has element [0, 5]"), (rank, 3, b"offsets and sizes"),
            (negative, 3, b"from 0 on"), (folder, 3, b"is not the name of a file"),
            (nowhere, 3, b"does not say where"), (length, 3, b"not a range of a file"),
            (transform, 5, b"'stream.rot13'"), (not_compressed, 3, b"zstd: "),
            (transforms, 5, b"'stream.other/1'"), (other_version, 5, b"'stream.zstd/2'"),
            (no_list, 3, b"transforms are not a list"),
            (dimensions, 3, b"at most 64 dimensions"), (long_name, 3, b"more than 4096 bytes"),
            (many_files, 5, b"more than 4096 files"),
            (long_path, 3, b"is not the name of a file"), (call, 3, b"calls 'print'"),
            (dtype, 3, b"not of the type and shape"), (swapped, 3, b"not of the type and shape"),
            (past, 3, b"__0_0.distcp"), (elsewhere, 3, b"__0_0.distcp")]


# The pieces are opened when they are read, and not before.
AT_READING = ("dtype", "swapped", "past", "elsewhere", "not_compressed")


def refusals(scratch):
    for edit, code, words in edits():
        f = sample(scratch)
        f.write(edit=edit)
        out = scratch / "refused.safetensors"
        p = heft("convert", f.path, out, code=None)
        require(p.returncode == code, f"{edit.__name__}: exit {p.returncode}: {p.stderr}")
        require(words in p.stderr, f"{edit.__name__}: {p.stderr}")
        require(not out.exists(), f"{edit.__name__}: a file was written")
        heft("verify", f.path, code=1 if code == 3 else code)
        heft("ls", f.path, code=0 if edit.__name__ in AT_READING else code)


def shared_chunks(scratch):
    """A few bytes that name one tensor often take no more time than they should."""
    f = sample(scratch)

    def shared(meta):
        for i in range(2000):
            meta.state_dict_metadata[f"t{i:05}"] = meta.state_dict_metadata["model.rows"]
        for k, v in list(meta.storage_data.items()):
            if k.fqn == "model.rows":
                meta.storage_data[dcp.MetadataIndex(fqn="t00000", offset=k.offset)] = v

    f.write(edit=shared)
    meta = f.path / ".metadata"
    meta.write_bytes(re.sub(rb"t\d{5}", b"t00000", meta.read_bytes()))
    require(b"are those of other tensors" in heft("ls", f.path, code=3).stderr, "no limit")


def a_rank_is_missing(scratch):
    f = sample(scratch)
    f.add_tensor("model.mask", torch.ones(6, 2, dtype=torch.bool), dcp.row_pieces((6, 2), 3))
    f.write()
    (f.path / "__1_0.distcp").unlink()
    p = heft("convert", f.path, scratch / "o.safetensors", code=4)
    require(b"__1_0.distcp" in p.stderr, p.stderr)
    p = heft("verify", f.path, code=1) # values of the mask are among what it cannot check
    require(b"heft/file-missing" in p.stdout and not p.stderr, p)
    require(b"model.rows" in heft("ls", f.path, code=None).stdout, "ls shows what there is")
    (f.path / ".metadata").unlink()
    p = heft("info", f.path, code=5)
    require(b"was not finished" in p.stderr, p.stderr)


def damaged_bytes_are_found(scratch):
    f = sample(scratch)
    at = f.files[0].find(bytes_of(f.tensors["model.bias"]))
    require(at > 0, "the bytes of the bias")
    f.files[0][at] ^= 1
    f.write()
    p = heft("verify", f.path, code=1)
    require(b"heft/piece" in p.stdout and b"model.bias" in p.stdout, p.stdout)
    readers_refuse(f.path, scratch, "model.bias", b"__0_0.distcp")
    heft("convert", "--drop", "model.bias", f.path, scratch / "others.safetensors")


def readers_refuse(folder, scratch, tensor, *words):
    """Each command that reads the damaged tensor names it and the file, and writes nothing."""
    sound = scratch / "sound.safetensors"
    heft("convert", "-f", "--no-verify", folder, sound)
    out = [scratch / n for n in ("o.safetensors", "o.pt", "cast.safetensors")]
    cast = ["--cast", "bf16"]
    commands = [["convert", *(cast if o == out[-1] else []), folder, o] for o in out]
    commands += [["convert", folder, "-", "--to", "safetensors"],
                 ["hash", folder], ["cat", folder, tensor], ["diff", folder, sound]]
    for command in commands:
        p = heft(*command, code=3)
        require(all(w in p.stderr for w in (tensor.encode(), b"does not match", *words)), p.stderr)
        require(command[0] == "diff" or not p.stdout, f"{command}: {p.stdout[:80]}")
    require(not any(o.exists() for o in out), "a file was written")


def damaged_rank_files_are_found(scratch):
    """The pieces are members of archives, whose checksums are those of the archives."""
    mesh = torch.arange(2, dtype=torch.int32)
    w, u = torch.arange(64).float().reshape(8, 8), torch.arange(64, 128).float().reshape(8, 8)

    def values(rank):
        return {"w": dcp.distribute(w, mesh, [rank], [dcp.Shard(dim=0)]),
                "u": dcp.distribute(u, mesh, [rank], [dcp.Shard(dim=1)])}

    for tensor, value in (("w", w[4:]), ("u", u[:, 4:])):
        folder = save_ranks(scratch, 2, values)
        second = folder / "model_world_size_2_rank_1.pt"
        content = bytearray(second.read_bytes())
        at = content.find(bytes_of(value))
        require(at > 0, "the bytes of the piece")
        content[at] ^= 1
        second.write_bytes(content)
        readers_refuse(folder, scratch, tensor, b"rank_1.pt")
        out = scratch / "quantised.safetensors"
        p = heft("convert", "--quantize", "int8", folder, out, code=3)
        require(b"does not match" in p.stderr and not out.exists(), p.stderr)


def damaged_quantised_pieces_are_found(scratch):
    """--dequantize compares the checksums of the pieces that it decodes, of BitNet."""
    mesh = torch.arange(2, dtype=torch.int32)
    packed = torch.arange(100, 164).to(torch.uint8).reshape(8, 8)

    def values(rank):
        return {"x.weight": dcp.distribute(packed, mesh, [rank], [dcp.Shard(dim=0)]),
                "x.weight_scale": torch.tensor([2.0])}

    folder, out = save_ranks(scratch, 2, values), scratch / "o.safetensors"
    heft("convert", "--dequantize", folder, out)
    out.unlink()
    second = folder / "model_world_size_2_rank_1.pt"
    content = bytearray(second.read_bytes())
    at = content.find(bytes_of(packed[4:]))
    require(at > 0, "the bytes of the piece")
    content[at] ^= 1
    second.write_bytes(content)
    p = heft("convert", "--dequantize", folder, out, code=3)
    require(b"does not match" in p.stderr and b"rank_1.pt" in p.stderr, p.stderr)
    require(not out.exists(), "a file was written")
    heft("convert", "--no-verify", "--dequantize", folder, out)


def joined_models_are_checked(scratch):
    """A model that is merged, a component of a pipeline, or quantised, has its pieces compared."""
    mesh = torch.arange(2, dtype=torch.int32)
    w = torch.arange(64 * 128).float().reshape(64, 128)
    ranks = save_ranks(scratch, 2, lambda r: {"w": dcp.distribute(w, mesh, [r],
                                                                   [dcp.Shard(dim=0)])})
    f = dcp.Folder(scratch / "dcp", 2)
    f.add_tensor("w", w, dcp.row_pieces(w.shape, 2))
    f.write()
    other = scratch / "other.safetensors"
    pack(other, {"b": torch.ones(3)})
    for folder, file in ((f.path, "__1_0.distcp"), (ranks, "model_world_size_2_rank_1.pt")):
        pipeline = scratch / f"pipeline-{folder.name}"
        shutil.copytree(folder, pipeline / "unet")
        (pipeline / "model_index.json").write_text(
            json.dumps({"_class_name": "P", "unet": ["diffusers", "UNet"]}))
        out = scratch / f"new-{folder.name}" / "out.safetensors"
        out.parent.mkdir()
        commands = [["merge", folder, other, out], ["convert", pipeline, out],
                    ["convert", "--quantize", "mxfp4", folder, out],
                    ["convert", "--cast", "bf16", pipeline, out], ["hash", pipeline]]
        commands += [["cat", pipeline, "unet.w"]]
        for command in commands:
            heft(*command)
            shutil.rmtree(out.parent)
            out.parent.mkdir()
        for sound in (folder, pipeline):
            p = heft("verify", sound)
            require(b"every byte of the tensors has a checksum" in p.stdout, p.stdout)
        for damaged in (folder / file, pipeline / "unet" / file):
            content = bytearray(damaged.read_bytes())
            content[content.find(bytes_of(w[32:]))] ^= 1
            damaged.write_bytes(content)
        for command in commands:
            p = heft(*command, code=3)
            require(b"'w'" in p.stderr or b"'unet.w'" in p.stderr, f"{command}: {p.stderr}")
            require(file.encode() in p.stderr and b"crc32" in p.stderr, f"{command}: {p.stderr}")
            require(not out.exists() and not p.stdout, f"{command}: something was written")
        p = heft("verify", pipeline, code=1)
        require(b'"unet.w"' in p.stdout and file.encode() in p.stdout, p.stdout)


def files_are_listed(scratch):
    """The bytes of assembled tensors are no file."""
    f = sample(scratch)
    f.write()
    names = {".metadata", *(f"__{i}_0.distcp" for i in range(len(f.files)))}
    bill = json.loads(heft("sbom", f.path).stdout)
    require({c["name"] for c in bill["components"]} == names, bill["components"])
    require(b"assembled" not in heft("info", f.path).stdout, "info lists it")
    listed = json.loads(heft("ls", "--json", "-l", f.path).stdout)
    require(len(listed["tensors"]) == len(f.tensors), listed)
    pipeline = scratch / "files"
    pipeline.mkdir()
    f.path.rename(pipeline / "unet")
    (pipeline / "model_index.json").write_text(
        json.dumps({"_class_name": "P", "unet": ["diffusers", "UNet"]}))
    bill = json.loads(heft("sbom", pipeline).stdout)
    require({c["name"] for c in bill["components"]} ==
            {"model_index.json", *(f"unet/{n}" for n in names)}, bill["components"])
    require(b"assembled" not in heft("info", pipeline).stdout, "info of a pipeline lists it")


def a_component_has_one_rank(scratch):
    mesh = torch.arange(2, dtype=torch.int32)
    w = torch.arange(64).float().reshape(8, 8)
    pipeline = scratch / "pipeline"
    unet = pipeline / "unet"
    unet.mkdir(parents=True)
    (pipeline / "model_index.json").write_text(
        json.dumps({"_class_name": "P", "unet": ["diffusers", "UNet"]}))
    for placement, code, words in ((dcp.Shard(dim=0), 3, b"'unet.w' is incomplete"),
                                   (dcp.Replicate(), 0, b"pieces")):
        torch.save({"w": dcp.distribute(w, mesh, [0], [placement])},
                   unet / "diffusion_pytorch_model.bin")
        p = heft("convert", "-f", pipeline, scratch / "out.safetensors", code=code)
        require(words in p.stderr, p.stderr)
    require(read_safetensors(scratch / "out.safetensors").keys() == {"unet.w"}, "its tensors")


# ---- pieces in safetensors ----

def pack(path, tensors, offsets=None):
    """Write a file of one rank; offsets: by name."""
    header, data = {}, b""
    for name, tensor in tensors.items():
        content = bytes_of(tensor)
        header[name] = {"dtype": "F32", "shape": list(tensor.shape),
                        "data_offsets": [len(data), len(data) + len(content)]}
        data += content
    if offsets is not None:
        info = {name: {"saved_offsets": at} for name, at in offsets.items()}
        header["__metadata__"] = {"format": "pt", "DCP_VERSION": "1.0",
                                  "DCP_SHARDING_INFO": json.dumps(info)}
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def pack_ranks(scratch, tensors, ranks):
    folder = scratch / "sharded"
    folder.mkdir(exist_ok=True)
    for rank in range(ranks):
        pieces, offsets = {}, {}
        for name, tensor in tensors.items():
            cuts = dcp.row_pieces(tensor.shape, ranks)
            if rank < len(cuts):
                at, size = cuts[rank]
                pieces[name] = tensor[tuple(slice(o, o + s) for o, s in zip(at, size))]
                offsets[name] = list(at)
        name = f"shard-{rank + 1:05d}-model-00001-of-00001.safetensors"
        pack(folder / name, pieces, offsets)
    return folder


def pieces_in_safetensors(scratch):
    tensors = {"a": torch.randn(7, 5), "b": torch.randn(9), "c": torch.randn(2, 3, 4)}
    folder = pack_ranks(scratch, tensors, 3)
    require_equal(folder, tensors, scratch)
    require(b"DCP_" not in (scratch / "out.safetensors").read_bytes(), "keys of the checkpoint")
    require(b"heft/pieces-end" in heft("verify", folder).stdout, "no warning about the end")
    heft("verify", "--strict", folder, code=1)
    p = heft("convert", "--strict", folder, scratch / "strict.safetensors", code=5)
    require(b"missing last rank" in p.stderr, p.stderr)
    middle = folder / "shard-00002-model-00001-of-00001.safetensors"
    p = heft("ls", middle)
    require(b"pieces" in p.stderr, "a piece alone")
    content = middle.read_bytes()
    middle.unlink()
    require(b"no file of rank 2" in heft("ls", folder, code=4).stderr, "a missing rank")
    middle.write_bytes(content.replace(b'\\"saved_offsets\\": [3, 0]',
                                       b'\\"saved_offsets\\": [2, 0]'))
    p = heft("convert", folder, scratch / "o.safetensors", code=3)
    require(b"two pieces have element [2, 0]" in p.stderr, p.stderr)
    for bad in (b"[3, 0, 1]", b"[-1, 0]", b'"x"', b"[3]", b"3, 0]"):
        middle.write_bytes(content)
        info = {"a": 0}
        text = content[8:8 + struct.unpack("<Q", content[:8])[0]]
        header = json.loads(text)
        info = header["__metadata__"]["DCP_SHARDING_INFO"].replace("[3, 0]", bad.decode(), 1)
        header["__metadata__"]["DCP_SHARDING_INFO"] = info
        new = json.dumps(header).encode()
        middle.write_bytes(struct.pack("<Q", len(new)) + new + content[8 + len(text):])
        heft("ls", middle, code=3)


# ---- files of ranks ----

def save_ranks(scratch, ranks, values_of):
    folder = scratch / "ranks"
    folder.mkdir(exist_ok=True)
    for rank in range(ranks):
        torch.save(values_of(rank), folder / f"model_world_size_{ranks}_rank_{rank}.pt")
        torch.save({"state": {}}, folder / f"optim_world_size_{ranks}_rank_{rank}.pt")
    return folder


def dtensors(scratch):
    mesh = torch.arange(3, dtype=torch.int32)
    w, b, u = torch.randn(7, 5), torch.randn(4).bfloat16(), torch.randn(3, 8)
    plain = torch.tensor([1.5])

    def values(rank):
        return {"w": dcp.distribute(w, mesh, [rank], [dcp.Shard(dim=0)]),
                "u": dcp.distribute(u, mesh, [rank], [dcp.Shard(dim=1)]),
                "b": dcp.distribute(b, mesh, [rank], [dcp.Replicate()]), "plain": plain}

    tensors = {"w": w, "b": b, "u": u, "plain": plain}
    folder = save_ranks(scratch, 3, values)
    require_equal(folder, tensors, scratch)
    heft("verify", folder)
    p = heft("ls", folder / "model_world_size_3_rank_1.pt")
    require(b"pieces" in p.stderr, "a rank alone")
    (folder / "model_world_size_3_rank_1.pt").unlink()
    heft("convert", folder, scratch / "o.safetensors", code=4)


def meshes_of_two_dimensions(scratch):
    """Tensor parallelism over FSDP, and meshes that differ by rank."""
    mesh = torch.arange(4, dtype=torch.int32).reshape(2, 2)
    w, n = torch.randn(8, 6), torch.randn(6)

    def values(rank):
        at = [rank // 2, rank % 2]
        strided = [dcp.StridedShard(dim=0, split_factor=2), dcp.Shard(dim=0)]
        own = torch.tensor([rank % 2, rank % 2 + 2], dtype=torch.int32)
        return {"w": dcp.distribute(w, mesh, at, strided),
                "columns": dcp.distribute(w, mesh, at, [dcp.Shard(dim=0), dcp.Shard(dim=1)]),
                "hsdp": dcp.distribute(w, mesh, at, [dcp.Replicate(), dcp.Shard(dim=0)]),
                "n": dcp.distribute(n, own, at[:1], [dcp.Shard(dim=0)])}

    folder = save_ranks(scratch, 4, values)
    require_equal(folder, {"w": w, "columns": w, "hsdp": w, "n": n}, scratch)


def copies_are_compared(scratch):
    mesh = torch.arange(2, dtype=torch.int32)

    def values(rank):
        w = torch.arange(100000).float()
        w[70000] += rank
        return {"w": dcp.distribute(w, mesh, [rank], [dcp.Replicate()])}

    folder = save_ranks(scratch, 2, values)
    p = heft("convert", folder, scratch / "o.safetensors", code=3)
    require(b"different copies" in p.stderr and b"rank_1.pt" in p.stderr, p.stderr)
    require(b"heft/piece" in heft("verify", folder, code=1).stdout, "verify")


def sharded_tensors(scratch):
    w, b = torch.randn(7, 5), torch.randn(4)

    def values(rank):
        at, size = dcp.row_pieces((7, 5), 2)[rank]
        return {"w": dcp.sharded(w, at, size), "b": b}

    require_equal(save_ranks(scratch, 2, values), {"w": w, "b": b}, scratch)


def rank_files_are_refused(scratch):
    mesh = torch.arange(2, dtype=torch.int32)
    w = torch.randn(5, 4)

    def with_placements(*placements):
        return lambda rank: {"w": dcp.distribute(w, mesh, [rank], placements)}

    def other_shape(rank):
        return {"w": dcp.distribute(w[:4 + rank], mesh, [rank], [dcp.Shard(dim=0)])}

    def flat(rank):
        return {"0.weight": w, "_fsdp_wrapped_module._flat_param": w.flatten()}

    def edited(edit, make=None):
        """Change the state of the DTensor or ShardedTensor."""
        def values(rank):
            w2 = make(rank) if make else with_placements(dcp.Shard(dim=0))(rank)["w"]
            edit(w2.call[3], rank)
            return {"w": w2}
        return values

    def a_shard(rank):
        return dcp.sharded(w, *dcp.row_pieces((5, 4), 2)[rank])

    def no_local(state, rank):
        if rank:
            del state[1]["_local_tensor"]

    def local_none(state, rank):
        if rank:
            state[1]["_local_tensor"] = None

    def placements(state, rank):
        state[1]["_spec"].placements += (dcp.Shard(dim=1), )

    def coordinates(state, rank):
        state[1]["_spec"].mesh._coordinate_on_dim.append(0)

    def no_shard_tensor(state, rank):
        if rank:
            state[0][0].tensor = None

    def offsets(state, rank):
        state[0][0].metadata.shard_offsets.append(0)

    def quantized(rank):
        return torch.quantize_per_tensor(w[rank * 3:rank * 3 + 3], 0.5 + rank, 3, torch.qint8)

    def local_quantized(state, rank):
        state[1]["_local_tensor"] = quantized(rank)

    def beside_quantized(rank):
        return {"w": with_placements(dcp.Shard(dim=0))(rank)["w"], "q": quantized(0)}

    def bits(rank):
        return dcp.distribute(w.byte(), mesh, [rank], [dcp.Shard(dim=0)])

    def other_bits(state, rank):
        if rank:
            state[1]["_local_tensor"] = dcp.Bits(state[1]["_local_tensor"])

    for values, code, words in [
        (edited(other_bits, bits), 3, b"another element type"),
        (edited(local_quantized), 5, b"is quantized"), (beside_quantized, 5, b"is quantized"),
        (with_placements(dcp.Partial()), 5, b"neither Shard nor Replicate"),
        (with_placements(dcp.StridedShard(dim=0, split_factor=2)), 5, b"_StridedShard"),
        (edited(placements), 3, b"a placement for each dimension"),
        (edited(coordinates), 3, b"coordinates of this rank"),
        (edited(no_local), 3, b"no _local_tensor"),
        (edited(local_none), 3, b"not a tensor"),
        (edited(no_shard_tensor, a_shard), 3, b"has no tensor"),
        (edited(offsets, a_shard), 3, b"offsets and sizes"),
        (other_shape, 3, b"states another shape"), (flat, 5, b"flat parameter")]:
        folder = save_ranks(scratch, 2, values)
        p = heft("convert", "--strict", folder, scratch / "o.safetensors", code=code)
        require(words in p.stderr, f"{words}: {p.stderr}")
        require(not (scratch / "o.safetensors").exists(), f"{words}: a file was written")


# ---- files of other programs ----

def shared_folders():
    """Folders that PyTorch 2.6 has written, beside the tensors that it read back."""
    found = sorted(path.parent for path in (SHARED / "data" / "dcp").glob("*/dcp"))
    if not found and not SHARED.exists():
        raise Skipped(f"there is no {SHARED}")
    require(found, f"{SHARED} has no distributed checkpoint")
    return found


def files_of_pytorch(scratch):
    for path in shared_folders():
        for judge, key in (("expected.pt", ["--key", "model"]), ("merged.pt", [])):
            heft("convert", "-f", path / judge, scratch / "judge.safetensors")
            expected = read_safetensors(scratch / "judge.safetensors")
            heft("convert", "-f", *key, path / "dcp", scratch / "out.safetensors")
            out = {name: tensor # Heft leaves the state of an optimizer in a .pt file out
                   for name, tensor in read_safetensors(scratch / "out.safetensors").items()
                   if name in expected or not name.startswith("optim.state.")}
            require(out == expected, f"{path}, {judge}: {set(out) ^ set(expected)}")


def rank_files_of_pytorch(scratch):
    for path in shared_folders():
        heft("convert", "-f", path / "expected.pt", scratch / "judge.safetensors")
        expected = read_safetensors(scratch / "judge.safetensors")
        own = scratch / path.name
        own.mkdir()
        for file in path.glob("model_world_size_*"):
            (own / file.name).write_bytes(file.read_bytes())
        heft("convert", "-f", own, scratch / "out.safetensors")
        require(read_safetensors(scratch / "out.safetensors") == expected, f"{path}: other bytes")


HEFT, SHARED = sys.argv[1], pathlib.Path(sys.argv[2])
CHECKS = [every_protocol, earlier_and_other_writers, large_pieces, compressed_items,
          damaged_compressed_items, keys_pick_a_subtree,
          objects_are_parts, other_numbers, slices, scan_knows_the_classes, refusals, shared_chunks,
          a_rank_is_missing, damaged_bytes_are_found, damaged_rank_files_are_found,
          joined_models_are_checked, files_are_listed, damaged_quantised_pieces_are_found,
          a_component_has_one_rank, pieces_in_safetensors, dtensors, meshes_of_two_dimensions,
          copies_are_compared, sharded_tensors, rank_files_are_refused, files_of_pytorch,
          rank_files_of_pytorch]


def results():
    for check in CHECKS:
        title, complaints = check.__name__.replace("_", " "), []
        with tempfile.TemporaryDirectory() as scratch:
            try:
                check(pathlib.Path(scratch))
            except Skipped as why:
                title += f" # SKIP {why}"
            except CheckFailed as why:
                complaints.append(why)
        yield title, complaints


sys.exit(tap.report(results()))
