"""gen_shards.py - sharded safetensors models, valid or with one fault.

write() writes a valid set. FAULTS lists (title, function that makes the fault, rule, severity, exit
status of verify, exit status of commands that need the whole model). REFUSED maps titles to the
text of indexes that do not open."""
import json
import os
import pathlib
import struct

STEM, COUNT = "model", 3
INDEX = f"{STEM}.safetensors.index.json"
TENSORS = {  # name: (dtype, shape, file); the order of files, and of tensors in each header
    "wte.weight": ("F32", [4, 3], 1), "a": ("I64", [2], 1), "none": ("F32", [0, 4], 2),
    "scalar": ("F64", [], 2), "half": ("BF16", [5], 2), "\u00e4 b\"c": ("U8", [3], 3),
    "flags": ("BOOL", [4], 3)
}
SIZES = {"F64": 8, "F32": 4, "I64": 8, "BF16": 2, "U8": 1, "BOOL": 1}


def shard_name(i, count=COUNT, stem=STEM):
    return f"{stem}-{i:05d}-of-{count:05d}.safetensors"


def data_of(name, dtype, shape):
    count = 1
    for d in shape:
        count *= d
    if dtype == "BOOL":
        return bytes(i & 1 for i in range(count))
    seed = sum(name.encode())
    return bytes((seed * 31 + i * 7) & 127 for i in range(count * SIZES[dtype]))


def pack(tensors, metadata=None):
    """tensors: {name: (dtype, shape, bytes)}"""
    header = {"__metadata__": metadata} if metadata else {}
    blob = b""
    for name, (dtype, shape, data) in tensors.items():
        header[name] = {
            "dtype": dtype, "shape": shape, "data_offsets": [len(blob),
                                                             len(blob) + len(data)]
        }
        blob += data
    text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + blob


def whole():
    return {n: (d, s, data_of(n, d, s)) for n, (d, s, _) in TENSORS.items()}


def tensors_in_file(i):
    return {n: t for n, t in whole().items() if TENSORS[n][2] == i}


def make_index():
    return {"metadata": {"total_size": sum(len(t[2]) for t in whole().values())},
            "weight_map": {n: shard_name(TENSORS[n][2]) for n in sorted(TENSORS)}}


def write_index(folder, index):
    (folder / INDEX).write_text(json.dumps(index, indent=2, sort_keys=True) + "\n")


def write(folder):
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True)
    for i in range(1, COUNT + 1):
        (folder / shard_name(i)).write_bytes(pack(tensors_in_file(i), {"format": "pt"}))
    write_index(folder, make_index())


# ---- faults: each changes a good set ----

def rewrite(i, change, metadata=None):
    def apply(folder):
        tensors = tensors_in_file(i)
        change(tensors)
        (folder / shard_name(i)).write_bytes(pack(tensors, metadata or {"format": "pt"}))
    return apply


def reindex(change):
    def apply(folder):
        index = make_index()
        change(index)
        write_index(folder, index)
    return apply


def remove_shard(folder):
    (folder / shard_name(2)).unlink()


def link_absolute(folder):
    outside = folder.parent / "outside.safetensors"
    (folder / shard_name(2)).rename(outside)
    (folder / shard_name(2)).symlink_to(outside)


def link_relative(folder):
    (folder / shard_name(2)).rename(folder.parent / "outside.safetensors")
    (folder / shard_name(2)).symlink_to("../outside.safetensors")


def replace_with_folder(folder):
    (folder / shard_name(2)).unlink()
    (folder / shard_name(2)).mkdir()


def replace_with_pipe(folder):
    (folder / shard_name(2)).unlink()
    os.mkfifo(folder / shard_name(2))


def truncate(folder):
    path = folder / shard_name(3)
    path.write_bytes(path.read_bytes()[:-1])


def overwrite(folder):
    (folder / shard_name(3)).write_bytes(b"\xff" * 100)


def make_empty(folder):
    (folder / shard_name(3)).write_bytes(b"")


def replace_with_index(folder):
    (folder / shard_name(3)).write_text(json.dumps(make_index()))


def replace_with_other_format(folder):
    (folder / shard_name(3)).write_bytes(b"NRUB" + bytes(60))


def list_wrong_shard(index):
    index["weight_map"]["a"] = shard_name(2)


def list_absent_tensor(index):
    index["weight_map"]["ghost"] = shard_name(1)


def remove_entry(index):
    del index["weight_map"]["a"]


def set_total_size(value):
    def apply(index):
        index["metadata"]["total_size"] = value
    return apply


def add_duplicate(tensors):
    tensors["a"] = whole()["a"]


def remove_shard_entries(index):
    for name in list(index["weight_map"]):
        if index["weight_map"][name] == shard_name(2):
            del index["weight_map"][name]
    index["metadata"] = {}


def add_unlisted_shard(folder):
    (folder / shard_name(1, 2)).write_bytes(pack(tensors_in_file(1)))


MISSING, BROKEN = "heft/file-missing", "heft/shard"
FAULTS = [
    ("a shard is missing", remove_shard, MISSING, "fault", 1, 4),
    ("a shard is an absolute link out of the folder", link_absolute, MISSING, "fault", 1, 4),
    ("a shard is a relative link out of the folder", link_relative, MISSING, "fault", 1, 4),
    ("a shard is a folder", replace_with_folder, MISSING, "fault", 1, 4),
    ("a shard is a pipe", replace_with_pipe, MISSING, "fault", 1, 4),
    ("a shard is truncated", truncate, BROKEN, "fault", 1, 3),
    ("a shard has unknown content", overwrite, BROKEN, "fault", 1, 3),
    ("a shard is empty", make_empty, BROKEN, "fault", 1, 3),
    ("a shard is an index", replace_with_index, BROKEN, "fault", 1, 3),
    ("a shard has another format", replace_with_other_format, BROKEN, "fault", 1, 3),
    ("the index names the wrong shard of a tensor", reindex(list_wrong_shard), "heft/shard-tensor",
     "fault", 1, 3),
    ("the index lists a tensor that no shard has", reindex(list_absent_tensor), "heft/shard-tensor",
     "fault", 1, 3),
    ("a shard has a tensor under another name", rewrite(
        1, lambda t: t.update(b=t.pop("a"))), "heft/shard-tensor", "fault", 1, 3),
    ("two shards have a tensor of the same name", rewrite(
        2, add_duplicate), "heft/shard-twice", "fault", 1, 3),
    ("the index omits a tensor", reindex(remove_entry), "heft/shard-unlisted", "warning", 0, 0),
    ("total_size is wrong", reindex(set_total_size(7)), "heft/shard-total", "warning", 0, 0),
    ("total_size is not an integer", reindex(
        set_total_size(1.5)), "safetensors/total-size", "note", 0, 0),
    ("the index omits all tensors of a shard: number", reindex(remove_shard_entries),
     "heft/shard-number", "warning", 0, 0),
    ("the index omits all tensors of a shard: extra file", reindex(remove_shard_entries),
     "heft/shard-extra", "warning", 0, 0),
    ("the folder has a shard of another set", add_unlisted_shard, "heft/shard-extra", "warning", 0,
     0),
    ("metadata of the shards differ", rewrite(
        2, lambda t: None, {"format": "np"}), "heft/shard-metadata", "warning", 0, 0),
]


def mapped_to(name):
    return json.dumps({"weight_map": {"a": name}})


REFUSED = {  # title: text of the index
    "a path to the parent folder": mapped_to("../" + shard_name(1)),
    "a path into a folder": mapped_to("sub/" + shard_name(1)),
    "an absolute path": mapped_to("/etc/passwd"),
    "a path with a backslash": mapped_to("sub\\" + shard_name(1)),
    "the name .": mapped_to("."),
    "the name ..": mapped_to(".."),
    "an empty name": mapped_to(""),
    "a NUL in a name": mapped_to("a\0b"),
    "a name of 256 bytes": mapped_to("x" * 256),
    "a number as a name": json.dumps({"weight_map": {"a": 1}}),
    "weight_map is a list": json.dumps({"weight_map": ["a"]}),
    "weight_map is missing": json.dumps({"metadata": {}, "a": "\"weight_map\""}),
    "truncated JSON": json.dumps(make_index())[:-3],
    "text after the JSON": json.dumps(make_index()) + "x",
    "a tensor is listed twice": '{"weight_map": {"a": "x.safetensors", "a": "y.safetensors"}}',
    "two weight_map": '{"weight_map": {}, "weight_map": {}}',
    "two metadata": '{"metadata": {}, "metadata": {}, "weight_map": {}}',
    "metadata are a list": '{"metadata": [], "weight_map": {}}',
    "a metadata key occurs twice": '{"metadata": {"a": "x", "a": "y"}, "weight_map": {}}',
}
