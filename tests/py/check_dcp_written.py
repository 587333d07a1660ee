#!/usr/bin/env python3
"""check_dcp_written.py HEFT: distributed checkpoints (DCP) that Heft writes, read by PyTorch.

The index is unpickled by Python, with classes that stand for those of torch.distributed.checkpoint,
and each item is read by torch.load(), as PyTorch's FileSystemReader reads it. Skipped without
PyTorch. TAP on stdout."""
import io
import json
import pathlib
import pickle
import pickletools
import subprocess
import sys
import tempfile
import zipfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import tap  # noqa: E402

try:
    import torch
    import dcp_folder as dcp
except ImportError as why:
    print(f"1..0 # SKIP {why}")
    sys.exit(0)

SHARDED = "torch.distributed._shard.sharded_tensor.metadata"


class SetProperties:
    """The class of sharded tensors, whose state is a tuple."""

    def __setstate__(self, state):
        self.dtype, layout, grad, memory_format, pinned = state
        require(layout == torch.strided and not grad and not pinned, state)
        require(memory_format.name == "TORCH_CONTIGUOUS_FORMAT", state)


dcp.stand_in(SHARDED, "TensorProperties", SetProperties)
dcp.enumeration(SHARDED, "MEM_FORMAT_ENCODING")


def key_of(index):
    """PyTorch finds an item by its name and its offset; the number is a hint."""
    return index.fqn, tuple(index.offset)


class CheckFailed(Exception):
    pass


def require(condition, message):
    if not condition:
        raise CheckFailed(str(message))


def heft(*args, code=0):
    p = subprocess.run([HEFT, *map(str, args)], capture_output=True, check=False)
    require(p.returncode == code, f"{args}: exit {p.returncode}: {p.stderr.decode()[:400]}")
    return p


# ---- the reader ----

def read_item(content, info):
    """Read an item, and check that it is an archive as torch.save() writes it."""
    item = content[info.offset:info.offset + info.length]
    with zipfile.ZipFile(io.BytesIO(item)) as archive:
        require(archive.testzip() is None, "a checksum of the archive")
        names = {i.filename: i for i in archive.infolist()}
        data = names["archive/data/0"]
        require("archive/data.pkl" in names and "archive/version" in names, names)
        head = item[data.header_offset:data.header_offset + 30]
        start = data.header_offset + 30 + sum(int.from_bytes(head[i:i + 2], "little")
                                              for i in (26, 28))
        require(start % 64 == 0, f"the elements begin at {start}")
    return torch.load(io.BytesIO(item))


def read_checkpoint(folder):
    """Return the tensors by name. Items have to follow each other without a gap."""
    text = (folder / ".metadata").read_bytes()
    protocols = [arg for op, arg, _ in pickletools.genops(text) if op.name == "PROTO"]
    require(protocols == [2], protocols)
    meta = pickle.loads(text)
    require(type(meta) is dcp.Metadata, type(meta))
    files = {p.name: p.read_bytes() for p in folder.glob("*.distcp")}
    infos = {key_of(k): v for k, v in meta.storage_data.items()}
    require(len(infos) == len(meta.storage_data) == len(meta.state_dict_metadata), infos.keys())
    found, ranges = {}, {name: [] for name in files}
    for name, entry in meta.state_dict_metadata.items():
        require(type(entry) is dcp.TensorStorageMetadata and len(entry.chunks) == 1, name)
        piece = entry.chunks[0]
        info = infos[name, tuple(piece.offsets)]
        tensor = read_item(files[info.relative_path], info)
        require(type(entry.size) is torch.Size and not any(piece.offsets), name)
        require(entry.size == piece.sizes == tensor.shape, f"{name}: {entry.size}")
        require(entry.properties.dtype == tensor.dtype and tensor.is_contiguous(), name)
        require(meta.planner_data[name] == (name, ), meta.planner_data[name])
        ranges[info.relative_path].append((info.offset, info.length))
        found[name] = tensor
    for name, items in ranges.items():
        end = 0
        for at, length in sorted(items):
            require(at == end, f"{name}: an item at {at}, not {end}")
            end += length
        require(end == len(files[name]), f"{name}: bytes after the last item")
    return found


def require_tensors(found, expected):
    require(list(found) == list(expected), f"{list(found)} instead of {list(expected)}")
    for name, tensor in expected.items():
        other = found[name]
        require(other.dtype == tensor.dtype and other.shape == tensor.shape, name)
        require(torch.equal(other, tensor), f"{name}: other elements")


def model():
    g = torch.Generator().manual_seed(3)
    w = torch.randn(37, 11, generator=g)
    tensors = {"w": w, "half": w.half(), "b": w[0].bfloat16(), "d": w.double(),
               "scalar": torch.tensor(2.5), "none": torch.zeros(0, 3), "flags": w > 0,
               "c": torch.complex(w, w), "deep": torch.arange(120).reshape(1, 2, 3, 4, 5),
               "äöü.weight": torch.arange(5, dtype=torch.uint8)}
    for type_ in (torch.int8, torch.int16, torch.int32, torch.int64):
        tensors[str(type_)] = torch.arange(-9, 9, dtype=type_)
    return tensors


def save(scratch, tensors):
    torch.save(tensors, scratch / "model.pt")
    return scratch / "model.pt"


# ---- checks ----

def one_file(scratch):
    tensors = model()
    heft("convert", "--to", "dcp", save(scratch, tensors), scratch / "out/")
    require({p.name for p in (scratch / "out").iterdir()} == {".metadata", "__0_0.distcp"}, "files")
    require_tensors(read_checkpoint(scratch / "out"), tensors)


def several_files(scratch):
    tensors = model()
    source = save(scratch, tensors)
    for options, files in ((["-c", 3], 3), (["-c", len(tensors)], len(tensors)),
                           (["-s", 8000], None)):
        out = scratch / f"out{options[-1]}"
        heft("split", "--to", "dcp", *options, source, out)
        names = {p.name for p in out.glob("__*")}
        require(files in (None, len(names)), names)
        require(names == {f"__{i}_0.distcp" for i in range(len(names))}, names)
        require(options[0] == "-c" or all((out / n).stat().st_size <= 8000 for n in names), "size")
        require_tensors(read_checkpoint(out), tensors)
        require(b"every byte of the tensors has a checksum" in heft("verify", out).stdout, "verify")


def many_tensors(scratch):
    """The dictionaries of the index are written in batches."""
    tensors = {f"t{i:04}": torch.tensor([float(i)]) for i in range(2500)}
    heft("split", "--to", "dcp", "-c", 2, save(scratch, tensors), scratch / "out")
    require_tensors(read_checkpoint(scratch / "out"), tensors)


def large_tensors(scratch):
    """Chunks of a tensor are written by several threads."""
    tensors = {"a": torch.randn(3000, 1000), "b": torch.randn(1 << 21).bfloat16()}
    heft("convert", "--to", "dcp", save(scratch, tensors), scratch / "out")
    require_tensors(read_checkpoint(scratch / "out"), tensors)


def pieces_are_gathered(scratch):
    """A checkpoint of three ranks becomes one of a single file."""
    f = dcp.Folder(scratch / "three", 3)
    w = torch.randn(70, 50)
    f.add_tensor("rows", w, dcp.row_pieces(w.shape, 3))
    f.add_tensor("grid", w.bfloat16(), dcp.grid_pieces(w.shape, 2, 3))
    f.add_object("step", 12)
    p = heft("convert", "--to", "dcp", f.write(), scratch / "one")
    require(b"part 'step' is left out" in p.stderr, p.stderr)
    require_tensors(read_checkpoint(scratch / "one"), f.tensors)


def changes_are_made(scratch):
    """Names, element types and the choice of tensors are those of other conversions."""
    tensors = {"a.w": torch.randn(6, 4), "a.b": torch.randn(4), "i": torch.arange(3),
               "z.w": torch.randn(2, 2)}
    out = scratch / "out"
    heft("convert", "--cast", "bf16", "--rename", "a.w=model.w", "--drop", "a.b", "--transpose",
         "z.w", "--to", "dcp", save(scratch, tensors), out)
    expected = {"model.w": tensors["a.w"].bfloat16(), "i": tensors["i"],
                "z.w": tensors["z.w"].bfloat16().T.contiguous()}
    require_tensors(read_checkpoint(out), expected)


def the_same_bytes(scratch):
    source = save(scratch, model())
    for name in ("a", "b"):
        heft("split", "--to", "dcp", "-c", 2, source, scratch / name)
    heft("split", "--to", "dcp", "-c", 2, scratch / "a", scratch / "c")
    for path in (scratch / "a").iterdir():
        for other in ("b", "c"):
            require(path.read_bytes() == (scratch / other / path.name).read_bytes(), path.name)


def scan_finds_nothing(scratch):
    heft("convert", "--to", "dcp", save(scratch, model()), scratch / "out")
    heft("scan", scratch / "out")


def eight_bits(scratch):
    """Types that this PyTorch lacks are compared by their bytes."""
    data = bytes(range(64))
    header = json.dumps({"w": {"dtype": "F8_E4M3", "shape": [8, 8], "data_offsets": [0, 64]}})
    source = scratch / "m.safetensors"
    source.write_bytes(len(header).to_bytes(8, "little") + header.encode() + data)
    heft("convert", "--to", "dcp", source, scratch / "out")
    index = (scratch / "out" / ".metadata").read_bytes()
    require(b"float8_e4m3fn" in index, "the type of the index")
    content = (scratch / "out" / "__0_0.distcp").read_bytes()
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        require(archive.read("archive/data/0") == data, "other bytes")
        calls = [arg for op, arg, _ in pickletools.genops(archive.read("archive/data.pkl"))
                 if op.name == "GLOBAL"]
    require("torch._utils _rebuild_tensor_v3" in calls and "torch float8_e4m3fn" in calls, calls)
    heft("convert", scratch / "out", scratch / "back.safetensors")
    require((scratch / "back.safetensors").read_bytes().endswith(data), "other bytes come back")


def refused_models(scratch):
    out = scratch / "out"
    for model, to, words in [({"n" * 9000: torch.zeros(2)}, "torch", b"more than 8192 bytes"),
                             ({}, "dcp", b"needs a tensor"),
                             ({"n" * 5000: torch.zeros(2)}, "dcp", b"at most 4096 bytes")]:
        p = heft("split", "--to", to, "-c", 1, save(scratch, model), out, code=5)
        require(words in p.stderr, p.stderr)
        require(not out.exists() or not any(out.iterdir()), f"{words}: files are left")


def refusals(scratch):
    """A refused conversion leaves no file."""
    source = save(scratch, {"w": torch.randn(4, 4), "s": torch.eye(3).to_sparse()})
    out = scratch / "out"
    for args, code, words in [
        (["convert", "--to", "dcp", source, out], 5, b"only dense tensors"),
        (["convert", "--to", "dcp", "--keep", "w", source, "-"], 2, b"is a folder of files"),
        (["convert", "--to", "dcp", "--keep", "w", "--share", "1/2", source, out], 2,
         b"excludes --share"),
        (["convert", "--to", "dcp", "--keep", "w", "--format-version", "2", source, out], 2,
         b"has only one"),
        (["merge", "--to", "dcp", source, out], 5, b"is a folder of files"),
        (["convert", "--to", "dcp", "--keep", "w", source, source], 4, b""),
        (["convert", "--to", "dcp", "--strict", "--keep", "w", "--align", 4096, source, out], 5,
         b"aligns the elements"),
        (["split", "--to", "dcp", "-c", 3, source, out], 5, b"only dense tensors")]:
        p = heft(*args, code=code)
        require(words in p.stderr, p.stderr)
        require(not out.exists() or not any(out.iterdir()), f"{args}: files are left")
    p = heft("convert", "-n", "--to", "dcp", "--keep", "w", source, scratch / "dry")
    require(b" bytes" in p.stdout and not (scratch / "dry").exists(), "a dry run writes")
    heft("convert", "--to", "dcp", "--keep", "w", source, out)
    before = {p.name: p.read_bytes() for p in out.iterdir()}
    p = heft("convert", "--to", "dcp", "--keep", "w", source, out, code=2)
    require(b"already exists" in p.stderr, p.stderr)
    heft("convert", "-f", "--to", "dcp", "--keep", "w", source, out)
    require(before == {p.name: p.read_bytes() for p in out.iterdir()}, "other bytes")


HEFT = sys.argv[1]
CHECKS = [
    one_file, several_files, many_tensors, large_tensors, pieces_are_gathered, changes_are_made,
    the_same_bytes, scan_finds_nothing, eight_bits, refused_models, refusals
]


def results():
    for check in CHECKS:
        complaints = []
        with tempfile.TemporaryDirectory() as scratch:
            try:
                check(pathlib.Path(scratch))
            except CheckFailed as why:
                complaints.append(why)
        yield check.__name__.replace("_", " "), complaints


sys.exit(tap.report(results()))
