#!/usr/bin/env python3
"""gen_burnrecord.py ROOT: write records of Burn's NamedMpkFileRecorder to ROOT/burn-record.

The recorder existed up to Burn 0.21. The bytes are written without Heft and without a library for
MessagePack, as rmp_serde encodes Burn's types: structs are maps by name, enum variants without a
value are text, other variants are maps with one entry, None and constants are nil."""
import gzip
import random
import struct
import sys
import zlib

from samples import Samples, describe, tensor

VERSION = "0.16.1"
NAMES = {
    "f32": "F32", "f64": "F64", "f16": "F16", "bf16": "BF16", "i64": "I64", "i32": "I32",
    "i16": "I16", "i8": "I8", "u64": "U64", "u32": "U32", "u16": "U16", "u8": "U8", "bool": "Bool"
}
SIZES = {
    "f32": 4, "f64": 8, "f16": 2, "bf16": 2, "i64": 8, "i32": 4, "i16": 2, "i8": 1, "u64": 8,
    "u32": 4, "u16": 2, "u8": 1, "bool": 1
}


# ---- MessagePack ----

class Raw(bytes):
    """Already encoded."""


class F32(float):
    """A float of four bytes."""


class Ext:
    def __init__(self, kind, data):
        self.kind, self.data = kind, data


def head(count, small, most, wide):
    """Encode a head; `small` holds counts up to `most`, `wide` has the bytes for 8 (or None), 16
    and 32 bits."""
    if count <= most:
        return bytes([small | count])
    for code, bits, layout in zip(wide, (8, 16, 32), ("B", ">H", ">I")):
        if code is not None and count < 1 << bits:
            return bytes([code]) + struct.pack(layout, count)
    raise ValueError(count)


def integer(v):
    """Encode an integer in the shortest form, as rmp does."""
    if -32 <= v < 128:
        return struct.pack("b", v) if v < 0 else bytes([v])
    forms = [(0xCC, "B"), (0xCD, ">H"), (0xCE, ">I"), (0xCF, ">Q")] if v >= 0 else [(0xD0, "b"),
                                                                                    (0xD1, ">h"),
                                                                                    (0xD2, ">i"),
                                                                                    (0xD3, ">q")]
    for code, layout in forms:
        try:
            return bytes([code]) + struct.pack(layout, v)
        except struct.error:
            pass
    raise ValueError(v)


def pack(v):
    if isinstance(v, Raw):
        return bytes(v)
    if v is None:
        return b"\xc0"
    if isinstance(v, bool):
        return b"\xc3" if v else b"\xc2"
    if isinstance(v, F32):
        return b"\xca" + struct.pack(">f", v)
    if isinstance(v, float):
        return b"\xcb" + struct.pack(">d", v)
    if isinstance(v, int):
        return integer(v)
    if isinstance(v, str):
        raw = v.encode()
        return head(len(raw), 0xA0, 31, (0xD9, 0xDA, 0xDB)) + raw
    if isinstance(v, bytes):
        return head(len(v), 0, -1, (0xC4, 0xC5, 0xC6)) + v
    if isinstance(v, (list, tuple)):
        return head(len(v), 0x90, 15, (None, 0xDC, 0xDD)) + b"".join(map(pack, v))
    if isinstance(v, dict):
        return head(len(v), 0x80, 15,
                    (None, 0xDE, 0xDF)) + b"".join(pack(k) + pack(x) for k, x in v.items())
    if isinstance(v, Ext):
        return head(len(v.data), 0, -1, (0xC7, 0xC8, 0xC9)) + bytes([v.kind]) + v.data
    raise ValueError(v)


# ---- Burn's structures ----

def metadata(floats="f32", ints="i32", version=VERSION, settings="FullPrecisionSettings"):
    return {
        "float": floats, "int": ints,
        "format": "burn_core::record::file::NamedMpkFileRecorder<"
                  f"burn_core::record::settings::{settings}>",
        "version": version, "settings": settings
    }


def record(item, about=None, **more):
    return pack({"metadata": about or metadata(), "item": item, "_b": None, **more})


def listed_meta(about):
    return [{"key": f"burn.{k}", "value": v} for k, v in about.items()]


def base32(value):
    """Encode eight little-endian bytes as BASE32_DNSSEC: 13 digits."""
    bits = int.from_bytes(value.to_bytes(8, "little"), "big") << 1
    return "".join("0123456789abcdefghijklmnopqrstuv"[bits >> 5 * i & 31]
                   for i in range(12, -1, -1))


def data(t, dtype=None):
    """TensorData: bytes, shape and type."""
    return {"bytes": t[3], "shape": list(t[2]), "dtype": dtype or NAMES[t[1]]}


def param(content, key=7):
    return {"id": base32(key) if isinstance(key, int) else key, "param": content}


def old(values, shape):
    """DataSerialize of Burn before 0.14: a list of numbers."""
    return {"value": list(values), "shape": list(shape)}


def values_of(t):
    """Return the numbers that DataSerialize stores for (name, dtype, shape, bytes)."""
    name, dtype, _, raw = t
    if dtype == "f32":
        return [Raw(b"\xca" + raw[i:i + 4][::-1]) for i in range(0, len(raw), 4)]
    if dtype == "f64":
        return [Raw(b"\xcb" + raw[i:i + 8][::-1]) for i in range(0, len(raw), 8)]
    if dtype in ("f16", "bf16"):
        return list(struct.unpack(f"<{len(raw) // 2}H", raw))
    if dtype == "bool":
        return [bool(b) for b in raw]
    code = {1: "b", 2: "h", 4: "i", 8: "q"}[SIZES[dtype]]
    return list(
        struct.unpack(f"<{len(raw) // SIZES[dtype]}{code.upper() if dtype[0] == 'u' else code}",
                      raw))


def fact(t, name=None):
    return (name or t[0], *t[1:])


def with_ids(s, name, file, listed, ids, about=None, **more):
    """Write a good sample with parameter ids."""
    tensors = [{**describe(*t), "param_id": key} for t, key in zip(listed, ids)]
    s.write(
        "good", name, file, {
            "format": "burn-record", "tensors": tensors, "metadata": listed_meta(
                about or metadata()), **more
        })


# ---- good -------------------------------------------------------------------------------------

def linear(prefix, seed=1, dtype="f32", key=100, make=data):
    w, b = tensor(f"{prefix}.weight", dtype, (3, 4), seed), tensor(f"{prefix}.bias", dtype, (4,),
                                                                   seed)
    return {"weight": param(make(w), key), "bias": param(make(b), key + 1)}, [w, b], [key, key + 1]


def model(dtype="f32", make=data):
    """A model with modules, a list of modules, an absent module, a constant and an enum."""
    first, a, i = linear("conv1", 1, dtype, 2**63 + 5, make)
    lists, b, j = zip(*(linear(f"blocks.{n}", n, dtype, 1000 * n, make) for n in range(3)))
    last, c, k = linear("norm.Batch.inner", 9, dtype, 2**64 - 2, make)
    item = {
        "conv1": first, "blocks": list(lists), "none": None, "activation": None,
        "norm": {"Batch": {"inner": last}}, "empty": {}
    }
    return item, a + [t for ts in b for t in ts] + c, i + [n for ns in j for n in ns] + k


def good_modules(s):
    item, listed, ids = model()
    with_ids(s, "model.mpk", record(item), listed, ids)
    with_ids(s, "model.mpk.gz", gzip.compress(record(item), mtime=0), listed, ids)
    half = metadata("half::binary16::f16", "i16", settings="HalfPrecisionSettings")
    item, listed, ids = model("f16")
    with_ids(s, "half.mpk", record(item, half), listed, ids, half)
    item, listed, ids = model("f64")
    double = metadata("f64", "i64", settings="DoublePrecisionSettings")
    with_ids(s, "double.mpk", record(item, double), listed, ids, double)
    about = {**metadata(), "version": "0.19.0"}
    s.good("unit.mpk", pack({"metadata": about, "item": None, "_b": []}), [],
           metadata=listed_meta(about))
    s.good("two_fields.mpk",
           pack({"metadata": about, "item": {"w": param(data(tensor("w", "f32", (2,))))}}),
           [tensor("w", "f32", (2,))])


def good_types(s):
    item, listed = {}, []
    for dtype in NAMES:
        for shape in ((3, 5), (), (0,), (2, 0, 3), (1,)):
            t = tensor(f"{dtype} {shape}", dtype, shape)
            item[t[0]] = data(t)
            listed.append(t)
    s.good("types.mpk", record(item), listed)
    flex, native, eight, wide = tensor("flex", "f32", (2,)), tensor("native", "bool", (3,)), tensor(
        "eight", "bool", (3,)), tensor("wide", "u32", (3,))
    q = ("q", "u8", (2, 3), bytes(range(10)))
    scheme = {
        "QFloat": {
            "value": "Q8S", "param": "F32", "store": {"PackedU32": 0}, "level": {"Block": [32]},
            "mode": "Symmetric", "x": None, "n": -3, "on": [True, False]
        }
    }
    item = {
        "flex": data(flex, "Flex32"), "native": data(native, {"Bool": "Native"}),
        "eight": data(eight, {"Bool": "U8"}), "wide": data(wide,
                                                           {"Bool": "U32"}), "q": data(q, scheme)
    }
    tensors = [
        {**describe(*flex), "attributes": {"stored_dtype": "Flex32"}},
        describe(*native), {**describe(*eight), "attributes": {"stored_dtype": '{"Bool":"U8"}'}},
        {**describe(*wide), "attributes": {"stored_dtype": '{"Bool":"U32"}'}},
        {
            **describe(*q), "layout": "burn.qfloat", "attributes": {
                "stored_dtype": '{"QFloat":{"value":"Q8S","param":"F32","store":{"PackedU32":0},'
                                '"level":{"Block":[32]},"mode":"Symmetric","x":null,"n":-3,'
                                '"on":[true,false]}}'
            }
        }
    ]
    s.write("good", "other_types.mpk", record(item), {"format": "burn-record", "tensors": tensors})


def good_old(s):
    """Lists of numbers: DataSerialize before 0.14, and TensorData with bytes as a list."""
    make = lambda t: old(values_of(t), t[2])
    for dtype, about in (("f32", metadata(version="0.13.2")), ("f64",
                                                               metadata("f64", "i64", "0.13.2")),
                         ("f16", metadata("half::binary16::f16", "i16", "0.12.0")),
                         ("bf16", metadata("half::bfloat::bf16", "i32", "0.13.0"))):
        item, listed, ids = model(dtype, make)
        with_ids(s, f"old_{dtype}.mpk", record(item, about), listed, ids, about)
        with_ids(s, f"old_{dtype}.mpk.gz", gzip.compress(record(item, about), mtime=0), listed, ids,
                 about)
    for dtype in ("i16", "i32", "i64"):
        edges = [
            -2**(8 * SIZES[dtype] - 1), 2**(8 * SIZES[dtype] - 1) - 1, 0, -1, 127, 128, -32, -33,
            255, 256
        ]
        code = {2: "h", 4: "i", 8: "q"}[SIZES[dtype]]
        t = ("ids", dtype, (2, 5), struct.pack(f"<10{code}", *edges))
        flags = tensor("flags", "bool", (5,))
        s.good(f"old_{dtype}.mpk",
               record({"ids": make(t), "flags": make(flags)}, metadata(ints=dtype)), [t, flags])
    long = tensor("long", "f32", (300, 70))
    some = tensor("some", "f32", (17,))
    none, scalar = tensor("none", "f32", (0, 3)), tensor("scalar", "f32", ())
    s.good("old_shapes.mpk", record({t[0]: make(t) for t in (long, some, none, scalar)}),
           [long, some, none, scalar])
    as_list = lambda t: {"bytes": list(t[3]), "shape": list(t[2]), "dtype": NAMES[t[1]]}
    item, listed, ids = model("f32", as_list)
    with_ids(s, "bytes_listed.mpk", record(item), listed, ids)
    listed = [tensor(f"x{n}", d, (7, 3))
              for n, d in enumerate(NAMES)] + [tensor("none", "f32", (0,))]
    s.good("bytes_listed_types.mpk", record({t[0]: as_list(t) for t in listed}), listed)
    # Older records call the item of a parameter "value".
    w = tensor("w", "f32", (2, 2))
    s.good("value_param.mpk", record({"w": {"id": base32(3), "value": make(w)}}), [w])


def good_ids(s):
    """Ids in base 32, UUIDs (Burn keeps the first half), and other texts."""
    w = tensor("w", "f32", (2,))
    cases = {
        "zero": (base32(0), 0), "most": (base32(2**64 - 1), 2**64 - 1),
        "uuid": ("550e8400-e29b-41d4-a716-446655440000", 0x550E8400E29B41D4),
        "hex": ("550e8400e29b41d4a716446655440000", 0x550E8400E29B41D4)
    }
    for name, (text, value) in cases.items():
        with_ids(s, f"id_{name}.mpk", record({"w": param(data(w), text)}), [w], [value])
    for name, text in (("word", "encoder"), ("empty", ""), ("short", base32(5)[:-1]),
                       ("bits", base32(5)[:-1] + "1"), ("upper", base32(10**18).upper() + "")):
        s.write("good", f"id_{name}.mpk", record({"w": param(data(w), text)}), {
            "format": "burn-record", "tensors": [{**describe(*w), "attributes": {"burn.id": text}}]
        })


def good_values(s):
    """Optimizers and schedulers: tensors by parameter id, and scalars."""
    m, v = tensor(f"{base32(9)}.Adam.momentum.moment_1", "f32",
                  (3,)), tensor(f"{base32(9)}.Adam.momentum.moment_2", "f32", (3,), 2)
    item = {
        base32(9): {
            "Adam": {
                "rank": 1, "momentum": {"time": 12, "moment_1": data(m),
                                        "moment_2": data(v)}, "lr": F32(0.5), "beta": 0.999,
                "done": True, "name": "adam", "none": None, "steps": [1, 2,
                                                                      -3], "mixed": [1, {"x": 2}],
                "raw": b"\0\xff", "big": 2**64 - 1, "least": -2**63, "no": []
            }
        }
    }
    s.good("optimizer.mpk", record(item), [m, v])
    bits = lambda x: format(
        struct.unpack("<Q", struct.pack("<d" if isinstance(x, float) else "<q", x))[0], "016x")
    scalars = {
        "rank": 1, "time": -12, "lr": F32(0.5), "beta": 0.999, "done": True, "least": -2**63,
        "deep": {"er": [{"x": 3}, {"y": 2**63}]}, "mixed": [1, {"x": 2}]
    }
    flat = {
        **{k: x for k, x in scalars.items() if k not in ("deep", "mixed")}, "deep.er.0.x": 3,
        "deep.er.1.y": 2**63 - 2**64, "mixed.0": 1, "mixed.1.x": 2
    }
    facts = [{"key": k, "bits": bits(float(x) if isinstance(x, float) else x)}
             for k, x in flat.items()]
    s.good("settings.mpk", record({**scalars, "name": "adam"}), [],
           metadata=[*listed_meta(metadata()), *facts, {"key": "name", "value": "adam"}])
    s.good("scheduler.mpk", record(0.25), [],
           metadata=[*listed_meta(metadata()), {"key": "value", "bits": bits(0.25)}])
    root = tensor("tensor", "f32", (2, 2))
    s.good("root.mpk", record(param(data(root))), [root])
    s.good(
        "lists.mpk",
        record([data(fact(root, "0")), [data(fact(root, "1.0"))], {"a": data(fact(root, "2.a"))}]),
        [fact(root, "0"), fact(root, "1.0"), fact(root, "2.a")])
    # Modules with the field names of TensorData.
    inner, listed, _ = linear("value", 3)
    query, more, _ = linear("shape", 4)
    s.good("names.mpk", record({"value": inner, "shape": query}), listed + more)
    third, rest, _ = linear("dtype", 5)
    s.good("names3.mpk", record({"bytes": None, "shape": query, "dtype": third}), more + rest)
    ident, listed, _ = linear("id", 6)
    s.good("names_id.mpk", record({"id": ident, "param": None}), listed)
    many = [tensor(f"layers.{i}.w", "f32", (i % 4,)) for i in range(700)]
    s.good("many.mpk", record({"layers": [{"w": param(data(t), i)} for i, t in enumerate(many)]}),
           many)
    deep, t = None, tensor("d." * 100 + "w", "f32", (1,))
    deep = data(t)
    for name in ["w"] + ["d"] * 100:
        deep = {name: deep}
    s.good("deep.mpk", record(deep), [t])
    wide = {f"field{i}": param(data(tensor(f"field{i}", "u8", (1,)))) for i in range(70)}
    s.good("map16.mpk", record(wide), [tensor(f"field{i}", "u8", (1,)) for i in range(70)])
    large = tensor("large", "f32", (100, 200))
    s.good("bin32.mpk", record({"large": data(large)}), [large])
    s.good("keys.mpk", record({5: data(fact(root, "5")), "a": {-2: data(fact(root, "a.-2"))}}),
           [fact(root, "5"), fact(root, "a.-2")])


def member(content, flags=0, more=b"", crc=None, size=None, level=6, tail=b""):
    """Return a gzip file with the given header fields and checksums."""
    z = zlib.compressobj(level, zlib.DEFLATED, -15)
    body = z.compress(content) + z.flush()
    crc = zlib.crc32(content) if crc is None else crc
    size = len(content) & 0xFFFFFFFF if size is None else size
    return b"\x1f\x8b\x08" + bytes([flags]) + bytes(5) + b"\xff" + more + body + tail + struct.pack(
        "<II", crc, size)


def good_gzip(s):
    large = tensor("large", "f32", (256, 256))
    small = tensor("small", "f64", (3,))
    file = record({"large": param(data(large)), "small": param(data(small))})
    for level in (0, 1, 9):
        s.good(f"level{level}.mpk.gz", member(file, level=level), [large, small])
    named = b"\x03\x00abc" + b"model.mpk\0" + b"a comment\0" + b"\x12\x34"
    s.good("named.mpk.gz", member(file, 0x1F, named), [large, small])
    zeros = ("zeros", "f32", (1 << 15,), bytes(128 << 10))
    s.good("zeros.mpk.gz",
           member(record({"zeros": data(zeros), "noise": data(tensor("noise", "f32", (2000,)))})),
           [zeros, tensor("noise", "f32", (2000,))])


# ---- bad --------------------------------------------------------------------------------------

def bad_gzip(s):
    file = record({"w": param(data(tensor("w", "f32", (100,))))})
    s.bad("crc.mpk.gz", member(file, crc=1), "reject", "a wrong checksum of the content")
    s.bad("size_less.mpk.gz", member(file, size=len(file) - 1), "reject",
          "a length that is less than the content")
    s.bad("size_more.mpk.gz", member(file, size=len(file) + 1), "reject",
          "a length that is more than the content")
    s.bad("size_vast.mpk.gz", member(file, size=2**32 - 1), "reject", "a length of 4 GiB")
    s.bad("cut.mpk.gz", member(file)[:-20], "reject", "a truncated file")
    s.bad("more.mpk.gz", member(file, tail=b"more"), "reject", "bytes after the content")
    s.bad("flags.mpk.gz", member(file, 0x20), "reject", "a flag that is reserved")
    s.bad("method.mpk.gz", b"\x1f\x8b\x07" + member(file)[3:], "reject", "another method")
    s.bad("name_open.mpk.gz", member(b"", 8, b"x" * (70 << 10)), "reject", "a name without an end")
    zeros = {"bytes": bytes(80 << 20), "shape": [20 << 20], "dtype": "F32"}
    s.bad("bomb.mpk.gz", member(record({"w": zeros}), level=9), "refuse",
          "80 MiB of zeros that pack to 80 KiB")
    s.bad("bomb_size.mpk.gz", member(record({"w": zeros}), level=9, size=1000), "refuse",
          "80 MiB of zeros declared as 1000 bytes")
    s.bad("text.gz", gzip.compress(b"just words", mtime=0), "reject", "gzip of data that are not "
                                                                      "a record")
    s.bad("empty.gz", b"\x1f\x8b\x08", "reject", "the beginning of gzip")


def names_at_the_limit():
    """Return a record whose names take exactly the memory that a record of its size may take."""
    def make(prefix, last):
        item = {"p" * prefix: {f"{i:03}": data(tensor("w", "u8", (1,))) for i in range(300)}}
        return record({**item, "n" * last: data(tensor("w", "u8", (1,)))})

    for prefix in range(376, 383):
        excess = 300 * (prefix + 4) + 300 - 8 * len(make(prefix, 300)) - 32768
        last = 300 + excess // 7  # a byte more in this name allows 8 bytes more
        if excess % 7 == 0 and last > 300:
            return make(prefix, last), make(prefix, last - 1)
    raise ValueError("no such record")


def bad_records(s):
    w = tensor("w", "f32", (2, 3))
    good = data(w)

    def bad(name, expect, why, item, about=None, **more):
        s.bad(f"{name}.mpk", record(item, about, **more), expect, why)

    def bent(name, expect, why, **changes):
        bad(name, expect, why, {"w": param({**good, **changes})})

    s.bad("no_item.mpk", pack({"metadata": metadata(), "_b": None}), "reject", "no item")
    s.bad(
        "two_items.mpk",
        pack({"metadata": metadata()})[:1].replace(b"\x81", b"\x83") + pack("metadata") +
        pack(metadata()) + 2 * (pack("item") + pack(None)), "reject", "two items")
    s.bad("metadata_list.mpk", pack({"metadata": [1], "item": {}}), "reject",
          "metadata that are a list")
    s.bad("metadata_number.mpk", pack({"metadata": {**metadata(), "version": 3}, "item": {}}),
          "reject", "a version that is a number")
    s.bad("key_number.mpk", pack({"metadata": metadata(), 3: {}, "item": {}}), "reject",
          "a key that is a number")
    s.bad("trailing.mpk", record({}) + b"more", "warn", "bytes after the record")
    s.bad("cut.mpk", record({"w": param(good)})[:-9], "reject", "a truncated record")
    bad("more_keys", "accept", "an unknown key", {"w": param(good)},
        more={"a": [1, {"b": b"x"}]})
    bent("bytes_short", "reject", "fewer bytes than the shape needs", bytes=w[3][:-1])
    bent("bytes_long", "reject", "more bytes than the shape needs", bytes=w[3] + b"x")
    bent("bytes_list_short", "reject", "fewer bytes than the shape needs, as a list",
         bytes=list(w[3][:-1]))
    bent("bytes_list_large", "reject", "bytes of more than 255", bytes=[256] * 24)
    bent("bytes_list_negative", "reject", "bytes below zero", bytes=[-1] * 24)
    bent("bytes_list_floats", "reject", "bytes that are floats", bytes=[F32(1.0)] * 24)
    bent("bytes_list_doubles", "reject", "bytes that are floats of 64 bits", bytes=[1.0] * 24)
    bent("shape_negative", "reject", "a shape below zero", shape=[-2, 3])
    bent("shape_word", "reject", "a shape that is a text", shape=["2", 3])
    bent("shape_vast", "reject", "a shape that exceeds 64 bits", shape=[2**63, 2**63])
    bent("dtype_unknown", "reject", "an unknown element type", dtype="F12")
    bent("dtype_map", "reject", "an element type of two", dtype={"Bool": "Native", "F32": None})
    bent("dtype_other", "reject", "a map that is not an element type", dtype={"Float": "F32"})
    bent("dtype_bool", "reject", "an unknown kind of Bool", dtype={"Bool": "U16"})
    bent("dtype_bool_number", "reject", "a kind of Bool that is a number", dtype={"Bool": 3})
    deep = 3
    for _ in range(20):
        deep = [deep]
    bent("dtype_deep", "refuse", "a scheme of twenty levels", dtype={"QFloat": deep})
    bent("dtype_float", "refuse", "a scheme with a float", dtype={"QFloat": {"x": 0.5}})
    cut = record({"w": {**good, "dtype": {"QFloat": {"x": "y"}}}})
    s.bad("dtype_cut.mpk", cut[:cut.index(b"QFloat") + 8], "reject", "a scheme that ends early")
    for rank, expect, rule in ((64, "accept", None), (65, "warn", "burn-record/rank"),
                               (65535, "warn", "burn-record/rank")):
        wide = {**good, "shape": [2, 3] + [1] * (rank - 2)}
        s.bad(f"rank_{rank}.mpk", record({"w": param(wide)}), expect, f"{rank} dimensions",
              rule=rule)
    s.bad("name_path.mpk", record({"../w": param(good)}), "warn", "a name that looks like a path",
          rule="burn-record/name")
    bent("rank_65536", "refuse", "too many dimensions", shape=[2, 3] + [1] * 65534)
    for n, expect in ((4074, "accept"), (4075, "refuse")):
        # n + 22 bytes of JSON precede the list, with {"QFloat":
        bent(f"scheme_{n + 22}", expect, f"a list after {n + 22} bytes of a scheme",
             dtype={"QFloat": {"x": "y" * n, "z": []}})
    bad("old_mixed", "reject", "numbers of two kinds", {"w": old([F32(1.0), 2.0], [2])})
    bad("old_few", "reject", "fewer numbers than the shape has", {"w": old([F32(1.0)] * 5, [2, 3])})
    bad("old_range", "reject", "an integer outside of the type's range", {"w": old([2**40], [1])})
    bad("old_half_negative", "reject", "half precision below zero", {"w": old([-1], [1])},
        metadata("half::binary16::f16", "i16"))
    bad("old_type", "refuse", "an unknown integer type", {"w": old([1], [1])},
        metadata(ints="i128"))
    bad("old_type_float", "refuse", "an unknown float type", {"w": old([], [0])},
        metadata("f128"))
    bad("old_floats_type", "accept", "floats of a type other than in the metadata",
        {"w": old([1.0], [1])})
    bad("tensor_twice", "reject", "two tensors with the same name",
        Raw(b"\x82" + 2 * (pack("w") + pack(param(good)))))
    bad("setting_twice", "reject", "a setting that occurs twice",
        Raw(b"\x82" + 2 * (pack("w") + pack(3))))
    bad("key_list", "reject", "a key that is a list", Raw(b"\x81\x90\xc0"))
    bad("extension", "accept", "an unknown extension",
        {"when": Ext(5, b"1234"), "w": param(good)})
    bad("byte_c1", "reject", "an undefined byte", Raw(b"\xc1"))
    bad("text_latin1", "reject", "a key that is not UTF-8", Raw(b"\x81\xa1\xe9\xc0"))
    bad("array_vast", "reject", "2^32 - 1 items", Raw(b"\xdd\xff\xff\xff\xff"))
    s.bad("list_cut.mpk", record({"n": [1.0] * 9})[:-9], "reject",
          "a list of numbers that ends within a number")
    bad("map_vast", "reject", "2^32 - 1 pairs", Raw(b"\xdf\xff\xff\xff\xff"))
    bad("bin_vast", "reject", "4 GiB of bytes", Raw(b"\xc6\xff\xff\xff\xff"))
    bad("skip_vast", "reject", "more items than bytes, in a skipped value", {},
        more=Raw(b"\xdc\x00\x02" + b"\xdc\x00\x09" * 2 + b"\xc0" * 9))
    bad("deep", "refuse", "500 levels", Raw(b"\x91" * 500 + b"\xc0"))
    bad("deep_maps", "refuse", "500 levels of maps", Raw(b"\x81\xa1a" * 500 + b"\xc0"))
    long = {"x" * 4000: {"y" * 4000: {f"{i}": data(tensor("w", "u8", (1,))) for i in range(300)}}}
    bad("names", "refuse", "names far longer than the file", long)
    most, past = names_at_the_limit()
    s.bad("names_most.mpk", most, "accept", "the longest names for the size of the file")
    s.bad("names_past.mpk", past, "refuse", "names of 7 bytes more than the longest")
    bad("half_or_int", "accept", "integers that may be half precision", {"w": old([1, 2], [2])},
        metadata("half::binary16::f16", "i16"))


def main():
    s = Samples(sys.argv[1], "burn-record")
    random.seed(1)
    for write in (good_modules, good_types, good_old, good_ids, good_values, good_gzip, bad_gzip,
                  bad_records):
        write(s)


if __name__ == "__main__":
    main()
