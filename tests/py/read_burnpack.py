#!/usr/bin/env python3
"""read_burnpack.py [--generation V] FILE...: read .bpk files without Heft, as strictly as Burn
writes.

Accepted files have CBOR in its shortest form, keys in order, zeros between data, and no trailing
bytes. Element types that the generation V of Burn cannot read are errors; without V, types without
a generation that reads all of them. Prints a JSON document per file: metadata, and tensors in the
order of their data with name, dtype, shape, nbytes, sha256, param_id. Ends with status 1 at the
first invalid file."""
import hashlib
import json
import struct
import sys

TYPES = {
    "F64": ("f64", 8), "F32": ("f32", 4), "Flex32": ("f32", 4), "F16": ("f16", 2),
    "BF16": ("bf16", 2), "I64": ("i64", 8), "I32": ("i32", 4), "I16": ("i16", 2), "I8": ("i8", 1),
    "U64": ("u64", 8), "U32": ("u32", 4), "U16": ("u16", 2), "U8": ("u8", 1), "Bool": ("bool", 1)
}
BOOLS = {"Native": ("bool", 1), "U8": ("bool", 1), "U32": ("u32", 4)}
FIELDS = [["dtype", "shape", "data_offsets"], ["dtype", "shape", "data_offsets", "param_id"]]
ROOTS = ["tensors", "metadata", "scalars"]
SCALARS = {"Int": int, "UInt": int, "Float": float, "Bool": bool}
MAX_DEPTH = 128

# Quantization schemes by generation: keys in order, and the variants of each key.
GENERATIONS = ["0.19", "0.20", "0.21", "0.22-pre.2", "0.22"]
OLD_KEYS, NEW_KEYS = ["value", "param", "store", "level",
                      "mode"], ["value", "store", "mode", "tensor", "block"]
VALUES = ["Q8F", "E5M2", "E4M3", "Q4F", "E2M1", "Q2F", "Q8S", "Q4S", "Q2S"]
SCALE_TYPES = ["F32", "F16", "BF16", "UE8M0", "UE4M3"]
STORES = {"0.19": ({"Native", "U32"}, set())}  # variants without and with a dimension
LATER_STORES = {"Native"}, {"PackedNative", "PackedU32"}
MODES = {"0.22": {"Symmetric", "Lookup"}}
LEVELS = {"0.22-pre.2": {"Block", "BlockTensor"}}


class InvalidFile(Exception):
    pass


def require(condition, why):
    if not condition:
        raise InvalidFile(why)


# ---- CBOR in the shortest form ----

def number(raw, at, info):
    if info < 24:
        return info, at
    require(info < 28, f"the head {raw[at - 1]:#x}")
    size = 1 << info - 24
    require(at + size <= len(raw), "the CBOR is cut short")
    v = int.from_bytes(raw[at:at + size], "big")
    require(v >= (24 if size == 1 else 256 ** (size // 2)), f"{v} in {size} bytes")
    return v, at + size


def decode(raw, at=0, depth=1):
    """Return the item at an offset and its end."""
    require(at < len(raw), "the CBOR is cut short")
    major, info = raw[at] >> 5, raw[at] & 31
    if major == 7:
        return special(raw, at)
    v, at = number(raw, at + 1, info)
    if major < 2:
        return (v if major == 0 else -1 - v), at
    if major < 4:
        require(at + v <= len(raw), "a string is cut short")
        piece = raw[at:at + v]
        return (piece if major == 2 else piece.decode("utf-8")), at + v
    require(major < 6, "a tag")
    require(depth <= MAX_DEPTH and v <= len(raw) - at, "too deep, or too many")
    items = []
    for _ in range(v * (2 if major == 5 else 1)):
        item, at = decode(raw, at, depth + 1)
        items.append(item)
    if major == 4:
        return items, at
    keys = items[::2]
    require(len({repr(k) for k in keys}) == len(keys), "a key occurs twice")
    return dict(zip(keys, items[1::2])), at


def special(raw, at):
    words = {0xF4: False, 0xF5: True, 0xF6: None}
    if raw[at] in words:
        return words[raw[at]], at + 1
    require(raw[at] in (0xF9, 0xFA, 0xFB), f"the head {raw[at]:#x}")
    letters = "efd"[raw[at] - 0xF9:]
    size = struct.calcsize(">" + letters[0])
    require(at + 1 + size <= len(raw), "a float is cut short")
    v, = struct.unpack(">" + letters[0], raw[at + 1:at + 1 + size])
    for shorter in "efd"[:raw[at] - 0xF9]:
        try:
            same = struct.unpack(">" + shorter, struct.pack(">" + shorter, v))[0] == v
        except OverflowError:
            same = False
        require(not same, f"{v} in {size} bytes")
    return v, at + 1 + size


# ---- the file ----

def up(n):
    return -(-n // 256) * 256


def is_sorted(keys):
    raw = [k.encode() for k in keys]
    return raw == sorted(raw)


# ---- quantization schemes ----

def one_entry(v, keys, why):
    require(
        isinstance(v, dict) and len(v) == 1 and next(iter(v)) in keys,
        f"unknown variant {v!r} of {why}")
    return next(iter(v.items()))


def check_one_of(v, variants, why):
    require(isinstance(v, str) and v in variants, f"unknown variant {v!r} of {why}")


def is_byte(v):
    return type(v) is int and 0 <= v < 256


def check_block_size(v):
    require(isinstance(v, dict) and list(v) == ["storage", "len"], f"a block of {v!r}")
    require(
        len(v["storage"]) == 5 and all(map(is_byte, [*v["storage"], v["len"]])),
        f"a block of {v!r}")


def check_store(v, generation):
    bare, with_dim = STORES.get(generation, LATER_STORES)
    if isinstance(v, str):
        return check_one_of(v, bare, "the store")
    _, dim = one_entry(v, with_dim, "the store")
    return require(is_u64(dim), f"packed along {dim!r}")


def check_level(v, generation):
    if isinstance(v, str):
        return check_one_of(v, {"Tensor"}, "the level")
    kind, what = one_entry(v, LEVELS.get(generation, {"Block"}), "the level")
    if kind == "Block":
        return check_block_size(what)
    require(isinstance(what, dict) and list(what) == ["block", "global"], f"levels {what!r}")
    check_block_size(what["block"])
    return check_one_of(what["global"], SCALE_TYPES, "the global scale")


def check_new_scales(scheme):
    if scheme["tensor"] is not None:
        check_one_of(scheme["tensor"], SCALE_TYPES, "the scale of the tensor")
    block = scheme["block"]
    if block is not None:
        require(isinstance(block, dict) and list(block) == ["size", "dtype"], f"blocks {block!r}")
        check_block_size(block["size"])
        check_one_of(block["dtype"], SCALE_TYPES, "the scales of blocks")


def check_scheme(scheme, generation):
    """Check that a generation reads the scheme: known variants, all fields, no other keys."""
    keys = NEW_KEYS if generation == "0.22" else OLD_KEYS
    require(isinstance(scheme, dict), f"the scheme {scheme!r}")
    for key in keys:
        require(key in scheme, f"missing field {key}")
    require(list(scheme) == keys, f"the keys of the scheme are {list(scheme)}")
    check_one_of(scheme["value"], VALUES, "the value")
    check_one_of(scheme["mode"], MODES.get(generation, {"Symmetric"}), "the mode")
    check_store(scheme["store"], generation)
    if generation == "0.22":
        return check_new_scales(scheme)
    check_one_of(scheme["param"], SCALE_TYPES, "the scale")
    return check_level(scheme["level"], generation)


def check_type(dtype, generation):
    """Check that a generation reads an element type."""
    if dtype == "Bool" or (isinstance(dtype, dict) and "Bool" in dtype):
        require((dtype == "Bool") == (generation in ("0.19", "0.20")), f"Bool as {dtype!r}")
    elif isinstance(dtype, dict):
        check_scheme(dtype["QFloat"], generation)


def readers_of(tensors, generations):
    """Return the generations that read every type, and the last error of the others."""
    left, why = [], "no generation"
    for g in generations:
        try:
            for t in tensors:
                check_type(t["stored"], g)
            left.append(g)
        except InvalidFile as e:
            why = f"Burn {g}: {e}"
    return left, why


def type_of(name, dtype):
    """heft's name and the bytes of an element, None: not to be told."""
    if isinstance(dtype, str):
        require(dtype in TYPES, f"{name!r}: dtype {dtype!r}")
        return TYPES[dtype]
    require(isinstance(dtype, dict) and len(dtype) == 1, f"{name!r}: dtype {dtype!r}")
    (kind, what), = dtype.items()
    require(kind == "QFloat" or (kind == "Bool" and what in BOOLS), f"{name!r}: dtype {dtype!r}")
    return ("u8", None) if kind == "QFloat" else BOOLS[what]


def is_u64(v):
    return type(v) is int and 0 <= v < 2**64


def check_tensor(name, d):
    require(isinstance(d, dict) and list(d) in FIELDS, f"{name!r}: the fields are {list(d)}")
    dtype, size = type_of(name, d["dtype"])
    require(
        isinstance(d["shape"], list) and all(map(is_u64, d["shape"])),
        f"{name!r}: shape {d['shape']!r}")
    offsets = d["data_offsets"]
    require(
        isinstance(offsets, list) and len(offsets) == 2 and all(map(is_u64, offsets)),
        f"{name!r}: {offsets!r}")
    require("param_id" not in d or is_u64(d["param_id"]),
            f"{name!r}: param_id {d.get('param_id')!r}")
    elements = 1
    for n in d["shape"]:
        elements *= n
    require(size is None or elements * size == offsets[1] - offsets[0],
         f"{name!r}: {offsets} for {d['shape']}")
    layout = "dense" if size else "burn.qfloat"
    return {
        "name": name, "dtype": dtype, "layout": layout, "shape": d["shape"], "begin": offsets[0],
        "end": offsets[1], "param_id": d.get("param_id"), "stored": d["dtype"]
    }


def check_root(root):
    require(
        isinstance(root, dict) and list(root) == [k for k in ROOTS if k in root],
        f"the keys are {list(root)}")
    require("tensors" in root, "no tensors")
    for key in ROOTS:
        require(isinstance(root.get(key, {}), dict), f"{key} is not a map")
        require(key == "tensors" or key not in root or root[key], f"{key} is empty")
        require(is_sorted(root.get(key, {})), f"{key} is not sorted")
    for key, value in root.get("metadata", {}).items():
        require(isinstance(value, str), f"metadata {key!r} is {value!r}, not text")
    for key, value in root.get("scalars", {}).items():
        require(isinstance(value, dict) and len(value) == 1, f"scalar {key!r} is {value!r}")
        (kind, v), = value.items()
        require(type(v) is SCALARS.get(kind), f"scalar {key!r} is {value!r}")


def read(raw, generation=None):
    require(len(raw) >= 10 and raw[:4] == b"NRUB", "no header")
    version, n = struct.unpack("<HI", raw[4:10])
    require(version == 1, f"version {version}")
    require(10 + n <= len(raw), "the manifest passes the end of the file")
    root, behind = decode(raw[10:10 + n])
    require(behind == n, f"the manifest ends at {behind} of {n}")
    check_root(root)
    tensors = [check_tensor(name, d) for name, d in root["tensors"].items()]
    tensors.sort(key=lambda t: (t["begin"], t["end"]))
    generations = readers_of(tensors, [generation] if generation else GENERATIONS[1:])
    require(generations[0], generations[1])
    start, at = up(10 + n), 0
    pieces = [raw[10 + n:start]]
    last = None
    for t in tensors:
        tied = last is not None and (t["begin"],
                                     t["end"]) == (last["begin"],
                                                   last["end"]) and t["end"] > t["begin"]
        if tied:  # tied weights: the same bytes once more
            t["nbytes"], t["sha256"] = last["nbytes"], last["sha256"]
            continue
        last = t
        require(t["begin"] == up(at),
                f"{t['name']!r}: its data begin at {t['begin']}, not {up(at)}")
        pieces.append(raw[start + at:start + t["begin"]])
        data = raw[start + t["begin"]:start + t["end"]]
        require(len(data) == t["end"] - t["begin"], f"{t['name']!r}: its data are cut short")
        t["nbytes"], t["sha256"] = len(data), hashlib.sha256(data).hexdigest()
        at = t["end"]
    require(not any(b"".join(pieces)), "padding that is not zero")
    require(len(raw) == start + at, f"the data end at {start + at}, the file at {len(raw)}")
    return {
        "tensors": tensors, "metadata": root.get("metadata", {}),
        "scalars": root.get("scalars", {}), "generations": generations[0]
    }


def main():
    paths, generation = sys.argv[1:], None
    if paths[:1] == ["--generation"]:
        generation, paths = paths[1], paths[2:]
    for path in paths:
        try:
            with open(path, "rb") as f:
                print(json.dumps(read(f.read(), generation), default=lambda v: f"bytes {v.hex()}"))
        except (InvalidFile, UnicodeDecodeError) as e:
            print(f"{path}: {e}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
