#!/usr/bin/env python3
"""gen_ztensor1.py ROOT: write zTensor 0.1, 1.0, 1.1 and 1.2 samples to ROOT/ztensor, without Heft.

CBOR and zstd frames (stored and repeated blocks) are made here in plain Python."""
import hashlib
import pathlib
import struct
import sys

from cbor import Open, Pairs, Raw, encode
from samples import CASTAGNOLI, Samples, crc, describe, patch, tensor

OLD, MAGIC, ALIGN = b"ZTEN0001", b"ZTEN1000", 64
LONG = {
    "f64": "float64", "f32": "float32", "f16": "float16", "bf16": "bfloat16", "i64": "int64",
    "i32": "int32", "i16": "int16", "i8": "int8", "u64": "uint64", "u32": "uint32", "u16": "uint16",
    "u8": "uint8", "bool": "bool"
}
LOGICAL = {
    "f8_e4m3fn": ("u8", "f8_e4m3fn"), "f8_e5m2": ("u8", "f8_e5m2"),
    "f8_e4m3fnuz": ("u8", "f8_e4m3fnuz"), "f8_e5m2fnuz": ("u8", "f8_e5m2fnuz"),
    "c64": ("f32", "complex64"), "c128": ("f64", "complex128")
}
VERSIONS = {"1.0": "1.0", "1.1": "1.1.0", "1.2": "1.2.0"}


# ---- zstd ----

BLOCK = 128 << 10


def block(kind, size, content, is_last):
    return struct.pack("<I", size << 3 | kind << 1 | is_last)[:3] + content


def frame(content, window=0x38):
    """Return a frame without a content size, with stored blocks, as streaming writers do.

    The window is the smallest for blocks of 128 KiB, because readers allocate the window."""
    pieces = [content[i:i + BLOCK] for i in range(0, len(content), BLOCK)] or [b""]
    out = struct.pack("<IBB", 0xFD2FB528, 0, window)
    return out + b"".join(block(0, len(p), p, i + 1 == len(pieces)) for i, p in enumerate(pieces))


def repeated(byte, count, size=None):
    """Return a frame of `count` equal bytes, 4 bytes per 128 KiB; `size` is the declared content
    size."""
    out = struct.pack("<IBB", 0xFD2FB528, 0, 0x58) if size is None else struct.pack(
        "<IBQ", 0xFD2FB528, 0xE0, size)
    blocks = -(-count // BLOCK)
    return out + b"".join(
        block(1, min(BLOCK, count - i * BLOCK), byte, i + 1 == blocks) for i in range(blocks))


SKIPPABLE = struct.pack("<II", 0x184D2A50, 3) + b"any"


# ---- files ----

def round_up(n, to):
    return -(-n // to) * to


def digest(stored, algorithm):
    if algorithm == "sha256":
        return "sha256:" + hashlib.sha256(stored).hexdigest()
    return f"crc32c:0x{crc(CASTAGNOLI, stored):08X}"


class File:
    """A file: components in the order of the calls, the manifest, the footer."""

    def __init__(self, version="1.0", fill=0):
        self.version, self.data, self.fill = version, OLD if version == "0.1" else MAGIC, fill

    def blob(self, data, align=ALIGN):
        at = round_up(len(self.data), align)
        self.data += bytes([self.fill]) * (at - len(self.data)) + data
        return at, len(data)

    def part(self, dtype, data, stored=None, algorithm=None, **more):
        """Add a component; `stored` are the compressed bytes of `data`."""
        at, size = self.blob(data if stored is None else stored)
        base, logical = LOGICAL.get(dtype, (dtype, None))
        p = {} if self.version == "1.0" else {"dtype": base, "type": logical}
        p |= {"offset": at, "length": size}
        p["uncompressed_length"] = len(
            data) if stored is not None and self.version == "1.2" else None
        p["encoding"] = None if stored is None else "zstd"
        p["digest"] = algorithm and digest(data if stored is None else stored, algorithm)
        return {k: v for k, v in p.items() if v is not None} | more

    def tensor(self, dtype, shape, layout, parts, attributes=None):
        if self.version == "1.0":
            return {
                "dtype": LONG[dtype], "shape": list(shape), "format": layout, "components": parts
            }
        more = {} if attributes is None else {"attributes": attributes}
        return {"shape": list(shape), "format": layout} | more | {"components": parts}

    def dense(self, t, attributes=None, **how):
        _, dtype, shape, data = t
        return self.tensor(dtype, shape, "dense", {"data": self.part(dtype, data, **how)},
                           attributes)

    def root(self, tensors, attributes=None):
        """Return the manifest, with keys in the order of the reference writer."""
        named = {n: tensors[n] for n in sorted(tensors, key=str.encode)}
        if self.version == "1.0":
            return {
                "version": "1.0", "generator": "samples", "attributes": attributes or {},
                "tensors": named
            }
        more = {} if attributes is None else {"attributes": attributes}
        return {"version": VERSIONS[self.version]} | more | {"objects": named}

    def end(self, manifest, length=None, tail=None):
        raw = manifest if isinstance(manifest, bytes) else encode(manifest)
        tail = tail if tail is not None else b"" if self.version in ("0.1", "1.0") else MAGIC
        return self.data + raw + struct.pack("<Q", len(raw) if length is None else length) + tail


def whole(version, tensors, attributes=None, **how):
    """Return a file of dense tensors in the given order."""
    f = File(version)
    made = {t[0]: f.dense(t, **how) for t in tensors}
    if not made and version == "1.0":
        # zeros up to offset 64: §7.1 requires a manifest shorter than the file minus 16
        f.blob(b"")
    return f.end(f.root(made, attributes))


def parts_facts(name, dtype, shape, layout, parts):
    """Return the facts of a tensor with several parts."""
    listed = {
        role: {"nbytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
        for role, data in parts.items()
    }
    return {"name": name, "dtype": dtype, "shape": list(shape), "layout": layout, "parts": listed}


def numbers(layout, values):
    return struct.pack(f"<{len(values)}{layout}", *values)


# ---- 0.1 ----

def swapped(dtype, data):
    size = {"6": 8, "3": 4, "1": 2}.get(dtype.lstrip("biuf")[:1], 1)
    return b"".join(data[i:i + size][::-1] for i in range(0, len(data), size))


def entry(f, t, layout="dense", encoding="raw", stored=None, endian="little", checksum=False,
          custom=()):
    name, dtype, shape, data = t
    stored = stored if stored is not None else swapped(dtype, data) if endian == "big" else data
    at, size = f.blob(stored)
    pairs = [("name", name), ("offset", at), ("size", size), ("dtype", LONG[dtype]),
             ("layout", layout), ("shape", list(shape)), ("encoding", encoding)]
    if encoding == "raw" and dtype not in ("u8", "i8", "bool"):
        pairs.append(("data_endianness", endian))
    if checksum:
        pairs.append(("checksum", digest(stored, "crc32c")))
    return Open(pairs + list(custom))


def good_01(s):
    every = [tensor(d, d, (2, 3)) for d in LONG]
    f = File("0.1")
    s.good("ztensor01_types.zt", f.end([entry(f, t, checksum=i % 2) for i, t in enumerate(every)]),
           every)
    f = File("0.1")
    s.good("ztensor01_big.zt", f.end([entry(f, t, endian="big", checksum=True) for t in every]),
           every)
    f = File("0.1")
    some = [tensor("z", "f32", (300,)), tensor("a", "f64", ()), ("none", "i16", (0, 4), b"")]
    packed = [
        entry(f, some[0], encoding="zstd", stored=frame(some[0][3]), checksum=True),
        entry(f, some[1]),
        entry(f, some[2])
    ]
    s.good("ztensor01_zstd.zt", f.end(packed), some)
    f = File("0.1")
    first = entry(f, some[0], encoding="zstd", stored=frame(some[0][3]))
    first.insert(7, ("data_endianness", "big"))  # applies to raw data only
    s.good("ztensor01_zstd_big.zt", f.end([first]), some[:1])
    f = File("0.1")
    custom = entry(
        f, T, custom=[("note", "héllo"), ("nested", {"a": [1, None, {"b": 2.5}]}), ("n", -1),
                      ("burn.param_id", 5)])
    s.good("ztensor01_custom.zt", f.end([custom]), [T])
    f = File("0.1")
    late = Open(reversed(entry(f, T, custom=[("more", 1)])))
    s.good("ztensor01_reversed.zt", f.end([late]), [T])
    f = File("0.1")
    least = ("", "u8", (), b"\1")
    s.good("ztensor01_least.zt", f.end([entry(f, least)]), [least])
    f = File("0.1")
    numbered = Open((i if i < 4 else k, v) for i, (k, v) in enumerate(entry(f, least)))
    s.good("ztensor01_packed.zt", f.end([numbered]), [least])
    s.good("ztensor01_empty.zt", File("0.1").end([]), [])
    s.good("ztensor01_nothing.zt", File("0.1").end(b""), [])
    f = File("0.1")
    s.good("ztensor01_open_list.zt", f.end(b"\x9f" + encode(entry(f, T)) + b"\xff"), [T])
    f = File("0.1")
    s.good(
        "ztensor01_nulls.zt",
        f.end([
            Pairs(
                entry(f, T, custom=[("checksum", None)])[:6] +
                [("encoding", None), ("data_endianness", None)])
        ]), [T])
    csr = struct.pack("<4Q5Q5f", *CSR["indptr"], *CSR["indices"], *range(5))
    coo = b"".join(struct.pack("<QQf", r, c, 1.5) for r, c in zip(*COO))
    f = File("0.1")
    listed = [
        entry(f, ("csr", "f32", (3, 4), csr), layout="sparsecsr"),
        entry(f, ("coo", "f32", (3, 4), coo), layout="sparsecoo")
    ]
    facts = [
        parts_facts("csr", "f32", (3, 4), "sparsecsr", {"data": csr}),
        parts_facts("coo", "f32", (3, 4), "sparsecoo", {"data": coo})
    ]
    s.write("good", "ztensor01_sparse.zt", f.end(listed), {"format": "ztensor", "tensors": facts})


def one_01(change=(), **how):
    """Return a file of one tensor with changed fields; None removes a field."""
    f = File("0.1")
    e = dict(entry(f, T, **how)) | dict(change)
    return f.end([Open((k, v) for k, v in e.items() if v is not None)])


NULL, UNDEFINED = Raw(b"\xf6"), Raw(b"\xf7")


def bad_01(s):
    cases = [("endianness", {"data_endianness": "middle"}, "neither big nor little"),
             ("endianness_number", {"data_endianness": 1}, "not text"),
             ("dtype", {"dtype": "float8"}, "an unknown type"),
             ("dtype_short", {"dtype": "u8"}, "a short type"),
             ("dtype_number", {"dtype": 1}, "a type that is not text"),
             ("layout_number", {"layout": 1}, "a layout that is not text"),
             ("name_number", {"name": 1}, "a name that is not text"),
             ("name_bytes", {"name": b"t"}, "a name of bytes"),
             ("offset_text", {"offset": "64"}, "an offset that is text"),
             ("offset_negative", {"offset": -64}, "a negative offset"),
             ("size_text", {"size": "8"}, "a size that is text"),
             ("size_other", {"size": 7}, "seven bytes for eight elements"),
             ("size_past", {"size": 2**40}, "beyond the end"),
             ("size_wraps", {"size": 2**64 - 64}, "offset and size exceed 64 bits"),
             ("over_magic", {"offset": 0}, "a range that overlaps the magic number"),
             ("over_manifest", {"offset": 68}, "a range that overlaps the manifest"),
             ("shape_text", {"shape": "8"}, "a shape that is text"),
             ("shape_negative", {"shape": [-8]}, "a negative dimension"),
             ("shape_null", {"shape": NULL}, "a shape that is null"),
             ("shape_large", {"shape": [2**32, 2**33]}, "2^65 elements"),
             ("encoding", {"encoding": "gzip"}, "an unknown encoding"),
             ("encoding_number", {"encoding": 1}, "an encoding that is not text"),
             ("checksum_number", {"checksum": 1}, "a checksum that is not text"),
             ("checksum_wrong", {"checksum": "crc32c:0x00000000"}, "a wrong checksum"),
             ("checksum_hex", {"checksum": "crc32c:0xXYZ"}, "a checksum of other digits")]
    for name, changes, why in cases:
        s.bad(f"ztensor01_{name}.zt", one_01(changes), "reject", why)
    for name in ("name", "offset", "size", "dtype", "layout", "shape", "encoding"):
        s.bad(f"ztensor01_no_{name}.zt", one_01({name: None}), "reject", f"no {name}")
    f = File("0.1")
    e = entry(f, T)
    made = [("entry_text", ["no map" * 20], "an entry is a text"),
            ("map", Pairs([("t", e)]), "a map of entries"), ("null", None, "null"),
            ("name_twice", [e, e], "a name twice"),
            ("key_twice", [Open([*e, ("size", 8)])], "a key twice"),
            ("key_number", [Open([*e, (b"k", 8)])], "a key that is bytes"),
            ("custom_twice", [Open([*e, ("k", 1), ("k", 2)])], "a custom field twice"),
            ("late_shape_text", [Open([("shape", "x"), *e[:5],
                                       *e[6:]])], "a shape that is text, before the name"),
            ("cut", Raw(encode([e])[:-3]), "truncated"),
            ("trailing", Raw(encode([e]) + b"\0"), "a byte after the list"),
            ("bomb", Raw(b"\x9b" + b"\xff" * 8), "2^64 entries"),
            ("many", Raw(b"\x9a\x00\x01\x00\x00" + bytes(70000)), "65,536 entries in 70,000 bytes"),
            ("deep", [Open([*e, ("k", Raw(b"\x81" * 200 + b"\0"))])], "200 levels"),
            ("odd_map", Raw(b"\x81\xbf\x78\x40" + b"k" * 64 + b"\xff"), "a key without a value")]
    for name, manifest, why in made:
        s.bad(f"ztensor01_{name}.zt", f.end(manifest), "reject", why)
    s.bad("ztensor01_cut_before_data.zt", f.end([e])[:41], "reject", "only zeros before the data")
    s.bad("ztensor01_footer.zt", f.end([e], tail=MAGIC), "reject", "the footer of 1.1")
    for name, changes, expect, why in (("unaligned", {"offset": 72,
                                                      "size": 8}, "warn", "data that begin at 72"),
                                       ("checksum_other", {"checksum": "md5:00"}, "warn",
                                        "an unknown algorithm")):
        g = File("0.1")
        entry(g, ("t", "u8", (16,), bytes(16)))
        e = dict(entry(File("0.1"), T)) | changes
        s.bad(f"ztensor01_{name}.zt", g.end([Open(e.items())]), expect, why)
    f = File("0.1")
    sparse = entry(f, ("t", "f32", (3, 4), bytes(80)), layout="sparsecsr", endian="big")
    s.bad("ztensor01_sparse_big.zt", f.end([sparse]), "warn", "sparse data, big-endian")


# ---- 1.0 to 1.2, good ----

CSR = {"indptr": [0, 2, 2, 5], "indices": [0, 3, 1, 2, 3]}
COO = [[0, 2, 2], [1, 0, 3]]
T = tensor("t", "u8", (8,))


def sorted_facts(tensors):
    return sorted(tensors, key=lambda t: t[0].encode())


def good_dense(s):
    plain = [tensor(d, d, (2, 3)) for d in LONG]
    for version in VERSIONS:
        v = version.replace(".", "")
        names = [
            tensor(n, "u8", (2,))
            for n in ("z", "é", "层.权重", "", "a b", "long" * 300, 'quote"\\', "\u0001")
        ]
        shapes = [
            tensor("scalar", "f64", ()), ("empty", "f32", (0, 2**60), b""),
            tensor("r9", "i16", (1,) * 8 + (3,)),
            tensor("cube", "bf16", (2, 1, 3))
        ]
        for name, tensors in (("types", plain), ("names", names), ("shapes", shapes), ("empty",
                                                                                       [])):
            s.good(f"ztensor{v}_{name}.zt", whole(version, tensors), sorted_facts(tensors),
                   rewritten=version)
        s.good(f"ztensor{v}_crc.zt", whole(version, plain, algorithm="crc32c"), sorted_facts(plain))
        s.good(f"ztensor{v}_sha.zt", whole(version, plain, algorithm="sha256"), sorted_facts(plain))
    data = tensor("x", "u8", (96,))[3]
    small = [(d, d, (5,), data[:5]) for d in LOGICAL if d.startswith("f8")]
    other = small + [("c64", "c64", (2, 2), data[:32]), ("c128", "c128", (2,), data[:32])]
    s.good("ztensor12_logical.zt", whole("1.2", other), sorted_facts(other), rewritten="1.2")
    f = File()
    shared = f.dense(tensor("a", "f32", (4,)))
    s.good("ztensor10_shared.zt", f.end(f.root({"a": shared, "b": shared})),
           [tensor("a", "f32", (4,)), ("b", "f32", (4,), tensor("a", "f32", (4,))[3])])


ANY = {
    "list": [1, [2, "x"], {}], "map": {"b": 1, "a": {"deep": [None, True]}}, "n": 7, "neg": -42,
    "big": 2**64 - 1, "least": -2**63, "half": 1.5, "third": 1 / 3, "nan": float("nan"),
    "yes": True, "nothing": None, "raw": b"\0\1\2", "": "empty key", "text": "héllo"
}
TEXT = {"": "empty key", "license": "MIT", "é": "层", "z": ""}


def ordered(m):
    return {k: m[k] for k in sorted(m, key=str.encode)}


def good_attributes(s):
    listed = [{"key": k, "value": v} for k, v in ordered(TEXT).items()]
    for version in VERSIONS:
        s.good(f"ztensor{version.replace('.', '')}_text.zt", whole(version, [T], ordered(TEXT)),
               [T], metadata=listed, rewritten=version)
    s.good("ztensor12_any.zt", whole("1.2", [T], ordered(ANY)), [T], rewritten="1.2")
    s.good("ztensor12_number_keys.zt", whole("1.2", [T], {"m": {1: "one", 2**40: "two"}}), [T],
           metadata=[{"key": "m", "nested": {"1": "one", "1099511627776": "two"}}])
    for version in ("1.1", "1.2"):
        f = File(version)
        o = f.dense(T, attributes={"burn.param_id": 2**63, "gptrs.requires_grad": True} | ANY)
        facts = describe(*T) | {"param_id": 2**63, "flag": True}
        s.write("good", f"ztensor{version.replace('.', '')}_own_attributes.zt",
                f.end(f.root({"t": o})), {"format": "ztensor", "tensors": [facts]})
    f = File("1.2")
    o = f.dense(T) | {"attributes": None}
    s.good("ztensor12_attributes_null.zt", f.end(f.root({"t": o})), [T])
    deep = 1
    for _ in range(120):
        deep = [deep]
    s.good("ztensor12_depth.zt", whole("1.2", [T], {"deep": deep}), [T])


def good_spellings(s):
    """Spellings that the reference reader accepts: any order, unknown keys, indefinite lengths,
    tags, long heads."""
    for version in VERSIONS:
        f, v = File(version), version.replace(".", "")
        o = f.dense(T)
        p = {"later": {"a": [1, 2]}} | dict(reversed(
            o["components"]["data"].items())) | {"encoding": "raw", "digest": None}
        o = dict(reversed((o | {"components": {"data": p}, "zzz": 1}).items()))
        root = f.root({"t": o}, {"k": "v"})
        s.good(f"ztensor{v}_reversed.zt",
               f.end(dict(reversed(root.items())) | {"future": [1, {"x": None}]}), [T])
        f = File(version)
        root = f.root({"t": f.dense(T)})
        o = f.dense(T)
        wide = Open(
            [("version",
              Raw(b"\x7f\x62" + root["version"].encode()[:2] + b"\x60" +
                  encode(root["version"][2:]) + b"\xff"))] +
            [(k,
              Open([("t",
                     Open([(a,
                            Raw(b"\x9f\x1b" + bytes(7) + b"\x08\xff") if a == "shape" else Open([(
                                "data", Open(b["data"].items()))]) if a == "components" else b)
                           for a, b in o.items()]))]) if k in ("tensors", "objects") else x)
             for k, x in root.items() if k != "version"])
        s.good(f"ztensor{v}_indefinite.zt", f.end(wide), [T])
        f = File(version)
        o = f.dense(T)
        o["shape"] = [Raw(b"\xc2\x49\0" + bytes(7) + b"\x08")]  # a bignum
        s.good(f"ztensor{v}_tagged.zt", f.end(Raw(b"\xd9\xd9\xf7" + encode(f.root({"t": o})))), [T])
    for text in ("1.0", "1.0.0", "1.0.7.1"):
        f = File()
        s.good(f"ztensor10_version_{text.replace('.', '_')}.zt",
               f.end(f.root({"t": f.dense(T)}) | {"version": text}), [T])


def good_zstd(s):
    big, flat = tensor("big", "u8", (300000,)), ("flat", "f32", (100000,), bytes(400000))
    two, empty = tensor("two", "i32", (10, 10)), ("empty", "f64", (0,), b"")
    tensors = [big, flat, two, empty]
    encoded = {
        "big": frame(big[3]), "flat": repeated(b"\0", 400000),
        "two": SKIPPABLE + frame(two[3][:100]) + SKIPPABLE + frame(two[3][100:]),
        "empty": frame(b"")
    }
    for version in VERSIONS:
        f = File(version)
        made = {t[0]: f.dense(t, stored=encoded[t[0]], algorithm="crc32c") for t in tensors}
        s.good(f"ztensor{version.replace('.', '')}_zstd.zt", f.end(f.root(made)),
               sorted_facts(tensors))


def good_layouts(s):
    values = tensor("v", "f32", (5,))[3]
    csr = {
        "values": values, "indices": numbers("Q", CSR["indices"]),
        "indptr": numbers("Q", CSR["indptr"])
    }
    coo = {"values": values[:12], "coords": numbers("Q", COO[0] + COO[1])}
    none = {"values": b"", "coords": b""}
    rows = {"values": b"", "indices": b"", "indptr": bytes(8)}
    four = {"data": bytes(range(128)), "scale": bytes(32), "zero_point": bytes(range(8))}
    group = {"packed_weight": bytes(range(64)), "scales": bytes(16), "zeros": bytes(4)}
    shapes = {
        "csr": ([3, 4], "sparse_csr", csr), "coo": ([3, 4], "sparse_coo", coo),
        "none": ([7], "sparse_coo", none), "rows": ([0, 9], "sparse_csr", rows),
        "four": ([16, 16], "quantized_4bit", four), "group": ([8, 16], "quantized_group", group)
    }
    for version in VERSIONS:
        for is_packed in (False, True):
            f, made, facts = File(version), {}, []
            for name, (shape, layout, parts) in sorted(shapes.items()):
                is_sparse = layout.startswith("sparse")
                own = "f32" if is_sparse else "u8"
                made[name] = f.tensor(
                    own, shape, layout, {
                        r: f.part("u64" if is_sparse and r != "values" else own, d,
                                  stored=frame(d) if is_packed else None) for r, d in parts.items()
                    })
                facts.append(parts_facts(name, own, shape, layout, parts))
            kind = "packed_layouts" if is_packed else "layouts"
            s.write("good", f"ztensor{version.replace('.', '')}_{kind}.zt", f.end(f.root(made)),
                    {"format": "ztensor", "tensors": facts})


def good_digests(s):
    """Checksums in every spelling, over the stored bytes, for parts of every kind."""
    stored = frame(T[3])
    for name, spelled in (("crc_small", digest(T[3],
                                               "crc32c").lower()), ("crc_short", "crc32c:0x0"),
                          ("sha_large", "sha256:" + hashlib.sha256(T[3]).hexdigest().upper())):
        t = ("t", "u8", (0,), b"") if name == "crc_short" else T
        f = File()
        s.good(f"ztensor10_{name}.zt", f.end(f.root({"t": f.dense(t, digest=spelled)})), [t])
    for algorithm in ("crc32c", "sha256"):
        f = File()
        o = f.dense(T, stored=stored, algorithm=algorithm)
        s.good(f"ztensor10_zstd_{algorithm}.zt", f.end(f.root({"t": o})), [T])
    parts = {
        "values": tensor("v", "f32", (5,))[3], "indices": numbers("Q", CSR["indices"]),
        "indptr": numbers("Q", CSR["indptr"])
    }
    f = File()
    made = {r: f.part("f32", d, stored=frame(d), algorithm="sha256") for r, d in parts.items()}
    facts = {
        "format": "ztensor", "tensors": [parts_facts("csr", "f32", [3, 4], "sparse_csr", parts)]
    }
    s.write("good", "ztensor10_csr_zstd_sha256.zt",
            f.end(f.root({"csr": f.tensor("f32", [3, 4], "sparse_csr", made)})), facts)


# ---- 1.0 to 1.2, bad ----

def base(version="1.0", **how):
    f = File(version)
    return f, f.root({"t": f.dense(T, **how)})


def change(version, path, value):
    """Return a file with a changed value in the manifest; None removes the key.

    OWN in the path stands for "tensors" or "objects"."""
    f, m = base(version)
    at = m
    names = {"OWN": "tensors" if version == "1.0" else "objects"}
    path = [names.get(key, key) for key in path]
    for key in path[:-1]:
        at = at.setdefault(key, {})
    if value is None:
        del at[path[-1]]
    else:
        at[path[-1]] = value
    return f.end(m)


TENSOR, PART, ATTRIBUTES = ("OWN", "t"), ("OWN", "t", "components", "data"), ("OWN", "t",
                                                                              "attributes")


def bad_container(s):
    for version in VERSIONS:
        v = version.replace(".", "")
        good = whole(version, [T])
        footer = 8 if version == "1.0" else 16
        at = len(good) - footer
        for name, data, why in (("length_more", patch(
                good, at, "Q", at - 7), "a manifest declared to begin in the magic number"),
                                ("length_huge", patch(good, at, "Q",
                                                      2**64 - 1), "a manifest of 2^64 - 1 bytes"),
                                ("length_less", patch(good, at, "Q",
                                                      at - 73), "the manifest begins a byte late"),
                                ("length_0", patch(good, at, "Q", 0),
                                 "a manifest of no bytes"), ("longer", good + b"\n",
                                                             "a byte after the footer"),
                                ("cut", good[:-1],
                                 "the last byte is missing"), ("tail", good[:-1] + b"\x01",
                                                               "a wrong last byte"),
                                ("magic_alone", MAGIC,
                                 "magic number only"), ("short", MAGIC + bytes(7), "15 bytes")):
            s.bad(f"ztensor{v}_{name}.zt", data, "reject", why)
    s.bad("ztensor11_twice_magic.zt", MAGIC + MAGIC, "reject", "only the two magic numbers")
    s.bad("ztensor10_first_byte.zt", b"\0" + whole("1.0", [T])[1:], "reject", "a wrong first byte")
    f, m = base("1.1")
    s.bad("ztensor11_in_10.zt", f.end(m, tail=b""), "warn",
          "the manifest of 1.1 in the container of 1.0")
    f, m = base("1.0")
    s.bad("ztensor10_in_11.zt", f.end(m, tail=MAGIC), "warn",
          "the manifest of 1.0 in the container of 1.1")
    f, m = base("1.0")
    other = {"x": {"shape": [1], "format": "dense", "components": {}}}
    s.bad("ztensor10_both.zt", f.end(m | {"objects": other}), "warn", "tensors and objects")
    f = File()
    s.bad("ztensor10_manifest_at_8.zt", f.end(f.root({})), "warn",
          "section 7.1: the manifest is as long as the file minus 16")


def bad_cbor(s):
    rest = encode({"generator": "g", "attributes": {}, "tensors": {}})[1:]
    start = b"\xa4" + encode("version")
    for name, raw, why in (("list", encode([1]), "a list"), ("null", b"\xf6", "null"),
                           ("empty", b"\xa0", "an empty map"), ("number", b"\x01", "a number"),
                           ("trailing", start + encode("1.0") + rest + b"\0",
                            "a byte after the map"),
                           ("two", start + encode("1.0") + rest + b"\xa0",
                            "two maps"), ("cut", (start + encode("1.0") + rest)[:-1], "truncated"),
                           ("utf8", start + b"\x63\x31\x2e\xff" + rest,
                            "text that is not UTF-8"), ("reserved", start + b"\x1c" + rest,
                                                        "a head that is reserved"),
                           ("simple", start + b"\xf8\x14" + rest,
                            "false in two bytes"), ("break", start + b"\xff" + rest,
                                                    "a break where nothing is open"),
                           ("odd", b"\xbf\x67version\xff",
                            "a key without a value"), ("tag", start + b"\xc0",
                                                       "a tag without an item"),
                           ("text_long", start + b"\x7b" + b"\x7f" * 8 + rest,
                            "a text of 2^63 bytes"), ("bytes_long",
                                                      start + b"\x5a\xff\xff\xff\xff" + rest,
                                                      "bytes of 4 GiB"), ("map_bomb",
                                                                          b"\xbb" + b"\xff" * 8,
                                                                          "a map of 2^64 pairs"),
                           ("list_bomb", start + b"\x9b\x0f" + b"\xff" * 7 + rest,
                            "a list of 2^60 members"), ("chunk", start + b"\x7f\x41a\xff" + rest,
                                                        "a chunk of bytes in a text"),
                           ("chunk_nested", start + b"\x7f\x7f\xff\xff" + rest,
                            "a chunk in chunks"), ("chunk_open", start + b"\x7f\x61a",
                                                   "a text that does not end"),
                           ("objects_bomb", b"\xa1\x67tensors\xbb" + b"\xff" * 8,
                            "2^64 tensors"), ("many", b"\xa1\x67tensors\xba\x00\x01\x00\x00" +
                                              bytes(140000), "65,536 tensors in 140,000 bytes"),
                           ("deep", b"\xa1\x61x" + b"\x81" * 129 + b"\0",
                            "130 levels"), ("deep_maps", b"\xa1\x61x" * 200 + b"\0",
                                            "200 levels of maps"),
                           ("deep_tags", b"\xa1\x61x" + b"\xc1" * 200 + b"\0",
                            "200 tags"), ("deep_open", b"\xbf\x61x" + b"\x9f" * 100000,
                                          "100,000 levels")):
        s.bad(f"ztensor10_cbor_{name}.zt", File().end(raw), "reject", why)


def bad_versions(s):
    for version, file_of in (("1.0", "10"), ("1.2", "12")):
        for name, value, expect, why in (
            ("none", None, "reject", "no version"), ("2", "2.0", "reject", "major version 2"),
            ("10", "10.0", "reject", "major version 10"), ("0", "0.1", "reject", "major version 0"),
            ("word", "one", "reject", "a word"), ("one", "1", "reject", "no minor version"),
            ("empty", "", "reject", "an empty text"), ("dot", "1.", "reject",
                                                       "no digits after the point"),
            ("junk", "1.0x", "reject", "text after it"), ("tail", "1.0.", "reject",
                                                                "a trailing point"),
            ("long", "1.1234567890", "warn",
             "ten digits"), ("space", " 1.0", "reject", "a leading space"), ("number", 1, "reject",
                                                                              "a number"),
            ("null", NULL, "reject", "null"), ("newer", "1.9", "warn", "a newer minor version"),
            ("much_newer", "1.123456789012345678901234567890", "warn",
             "a minor version beyond any integer"), ("wraps", "1.4294967296", "warn",
                                                     "a minor version that overflows to 0"),
            ("patch", f"{version}.99999999999", "accept", "a patch beyond 32 bits"),
            ("major", "18446744073709551617.0", "reject",
             "a major version that "
             "overflows to 1"), ("other", "1.2.0" if version == "1.0" else "1.0",
                                                  "warn", "the version of a different container")):
            s.bad(f"ztensor{file_of}_version_is_{name}.zt", change(version, ["version"], value),
                  expect, why)
    for name, value in (("right", "1.0"), ("patched", "1.0.7")):
        s.bad(f"ztensor10_version_is_{name}.zt", change("1.0", ["version"], value), "accept",
              f"the valid version {value}")


def bad_schema(s):
    part = {"dtype": "u8", "offset": 64, "length": 8}
    many = {f"c{i:03}": part for i in range(256)} | {"data": part}
    padding = {"padding": "x" * 64}  # records of fewer bytes are refused before they are read
    cases = [
        ("own_missing", ("OWN",), None, "no tensors"),
        ("own_list", ("OWN",), [], "tensors are a list"),
        ("own_null", ("OWN",), NULL, "tensors are null"),
        ("name_bytes", ("OWN",), Pairs([(b"t", padding)]), "a name of bytes"),
        ("name_number", ("OWN",), Pairs([(7, padding)]), "a name that is a number"),
        ("tensor_null", TENSOR, NULL, "a tensor is null"),
        ("tensor_list", TENSOR, ["no map" * 9], "a tensor is a list"),
        ("no_shape", (*TENSOR, "shape"), None, "no shape"),
        ("no_format", (*TENSOR, "format"), None, "no format"),
        ("no_components", TENSOR, {"shape": [8], "format": "dense", "dtype": "uint8", **padding},
         "no components"),
        ("shape_map", (*TENSOR, "shape"), {}, "a shape that is a map"),
        ("shape_null", (*TENSOR, "shape"), NULL, "a shape that is null"),
        ("shape_text", (*TENSOR, "shape"), ["8"], "a dimension that is text"),
        ("shape_float", (*TENSOR, "shape"), [8.0], "a dimension that is a float"),
        ("shape_negative", (*TENSOR, "shape"), [-8], "a negative dimension"),
        ("shape_bignum", (*TENSOR, "shape"), [Raw(b"\xc2\x49\1" + bytes(8))],
         "a dimension of 2^64"),
        ("shape_large", (*TENSOR, "shape"), [2**32, 2**33], "2^65 elements"),
        ("shape_other", (*TENSOR, "shape"), [9], "nine elements in eight bytes"),
        ("format_number", (*TENSOR, "format"), 1, "a format that is not text"),
        ("format_null", (*TENSOR, "format"), NULL, "a format that is null"),
        ("components_list", (*TENSOR, "components"), [], "components are a list"),
        ("components_empty", (*TENSOR, "components"), {}, "no component"),
        ("dense_role", (*TENSOR, "components"), {"values": part}, "dense without data"),
        ("role_number", (*TENSOR, "components"), Pairs([(7, part)]), "a role that is a number"),
        ("role_twice", (*TENSOR, "components"), Pairs([("data", part),
                                                       ("data", part)]), "a role twice"),
        ("part_list", PART, [], "a component is a list"),
        ("part_null", PART, NULL, "a component is null"),
        ("no_offset", (*PART, "offset"), None, "no offset"),
        ("no_length", (*PART, "length"), None, "no length"),
        ("offset_text", (*PART, "offset"), "64", "an offset that is text"),
        ("offset_negative", (*PART, "offset"), -1, "a negative offset"),
        ("offset_past", (*PART, "offset"), 2**40, "an offset past the end"),
        ("offset_max", (*PART, "offset"), 2**64 - 8, "the largest offset"),
        ("over_magic", (*PART, "offset"), 0, "a range that overlaps the magic number"),
        ("over_manifest", (*PART, "offset"), 66, "a range that overlaps the manifest"),
        ("length_float", (*PART, "length"), 8.0, "a length that is a float"),
        ("length_other", (*PART, "length"), 7, "seven bytes for eight elements"),
        ("length_past", (*PART, "length"), 2**62, "2^62 bytes"),
        ("length_wraps", (*PART, "length"), 2**64 - 64, "offset and length exceed 64 bits"),
        ("encoding", (*PART, "encoding"), "lz4", "an unknown encoding"),
        ("encoding_case", (*PART, "encoding"), "ZSTD", "an encoding in capitals"),
        ("encoding_number", (*PART, "encoding"), 1, "an encoding that is not text"),
        ("digest_number", (*PART, "digest"), 1, "a digest that is not text"),
        ("crc_wrong", (*PART, "digest"), "crc32c:0x00000000", "a wrong checksum"),
        ("crc_long", (*PART, "digest"), "crc32c:0x000000000", "nine digits"),
        ("crc_empty", (*PART, "digest"), "crc32c:0x", "no digits"),
        ("crc_hex", (*PART, "digest"), "crc32c:0x0000000g", "no hexadecimal digits"),
        ("sha_wrong", (*PART, "digest"), "sha256:" + "0" * 64, "a wrong SHA-256"),
        ("sha_short", (*PART, "digest"), "sha256:" + "0" * 62, "a SHA-256 of 31 bytes"),
        ("attributes_list", ("attributes",), [], "attributes are a list"),
        ("attributes_text", ("attributes",), "x", "attributes are a text"),
        ("attribute_key", ("attributes",), Pairs([(1, "x")]), "an attribute whose key is a number"),
        ("attribute_twice", ("attributes",), Pairs([("a", "x"), ("a", "y")]), "an attribute twice"),
        ("attribute_twice_apart", ("attributes",), Pairs(
            [("b", "x"), ("a", "y"), ("b", "z")]), "an attribute twice, not side by side"),
    ]
    only_10 = [("no_dtype", (*TENSOR, "dtype"), None, "no dtype"),
               ("dtype", (*TENSOR, "dtype"), "float8", "an unknown dtype"),
               ("dtype_case", (*TENSOR, "dtype"), "UINT8", "a dtype in capitals"),
               ("dtype_null", (*TENSOR, "dtype"), NULL, "a dtype that is null"),
               ("generator_number", ("generator",), 1, "a generator that is not text")]
    later = [
        ("no_dtype", (*PART, "dtype"), None, "no dtype"),
        ("dtype", (*PART, "dtype"), "f7", "an unknown dtype"),
        ("dtype_number", (*PART, "dtype"), 1, "a dtype that is not text"),
        ("own_attributes_list", ATTRIBUTES, [], "a tensor's attributes are a list"),
        ("own_attribute_key", ATTRIBUTES, Pairs([(1, "x")]), "an attribute whose key is a number"),
        ("own_attribute_twice", ATTRIBUTES, Pairs([("a", 1), ("a", 2)]), "an attribute twice"),
        ("type_number", (*PART, "type"), 1, "a logical type that is not text"),
        ("decoded_text", (*PART, "uncompressed_length"), "8", "an uncompressed length that is text")
    ]
    for version in VERSIONS:
        for name, path, value, why in cases + (only_10 if version == "1.0" else later):
            s.bad(f"ztensor{version.replace('.', '')}_{name}.zt", change(version, path, value),
                  "reject", why)
        f = File(version)
        both = {"data": f.part("u8", bytes(range(8))), "scale": f.part("u8", b"scale")}
        s.bad(f"ztensor{version.replace('.', '')}_dense_and_more.zt",
              f.end(f.root({"t": f.tensor("u8", (8,), "dense", both)})), "warn",
              "section 5.1: a dense tensor with a component besides data",
              rule="ztensor/dense-component")
        s.bad(f"ztensor{version.replace('.', '')}_rank_65.zt",
              whole(version, [tensor("t", "u8", (1,) * 65)]), "warn", "65 dimensions",
              rule="ztensor/rank")
    s.bad("ztensor11_components_257.zt", change("1.1", (*TENSOR, "components"), many), "refuse",
          "257 components")


def bad_keys(s):
    """Repeated keys, and keys of invalid types."""
    for version in VERSIONS:
        own = "tensors" if version == "1.0" else "objects"
        f, m = base(version)
        o = m[own]["t"]
        p = o["components"]["data"]
        again = [
            ("root_key", Pairs([*m.items(), ("version", m["version"])])),
            ("tensor_key", m | {own: {"t": Pairs([*o.items(), ("shape", [8])])}}),
            ("part_key",
             m | {own: {"t": o | {"components": {"data": Pairs([*p.items(), ("length", 8)])}}}}),
            ("name", m | {own: Pairs([("t", o), ("t", o)])})
        ]
        for name, made in again:
            s.bad(f"ztensor{version.replace('.', '')}_{name}_twice.zt", f.end(made), "reject",
                  "a key or name twice")
        s.bad(f"ztensor{version.replace('.', '')}_key_bytes.zt",
              f.end(Pairs([*m.items(), (b"x", 1)])), "reject", "a key of bytes")
        s.bad(f"ztensor{version.replace('.', '')}_part_key_list.zt",
              f.end(m | {own: {"t": o | {"components": {"data": Pairs([*p.items(), ([1], 1)])}}}}),
              "reject", "a key that is a list")
    f, m = base()
    packed = m | {
        "tensors": {"t": m["tensors"]["t"] | {"components": {"data": Pairs([(0, 64), (1, 8)])}}}
    }
    s.bad("ztensor10_packed_keys.zt", f.end(packed), "warn",
          "numeric keys, which the first reader accepts")
    s.bad("ztensor10_packed_root.zt", f.end(Pairs(zip(range(4), m.values()))), "warn",
          "keys that are numbers, also in the root")


def bad_but_read(s):
    for name, path, value, why in (("attributes_null", ("attributes",), NULL,
                                    "attributes are null"), ("no_attributes", ("attributes",), None,
                                                             "no attributes"),
                                   ("no_generator", ("generator",), None,
                                    "no generator"), ("generator_null", ("generator",), NULL,
                                                      "a generator that is null"),
                                   ("attribute_number", ("attributes",), {"n": 1},
                                    "an attribute that is a number"),
                                   ("dtype_short", (*TENSOR, "dtype"), "u8", "a short dtype"),
                                   ("digest_unknown", (*PART, "digest"), "md5:00",
                                    "an unknown algorithm"),
                                   ("digest_bare", (*PART, "digest"), "00ff",
                                    "no algorithm"), ("crc_no_0x", (*PART,
                                                                    "digest"), "crc32c:00000000",
                                                      "a checksum in another spelling")):
        s.bad(f"ztensor10_{name}.zt", change("1.0", path, value), "warn", why)
    attributes = [("attribute_least", {"n": Raw(b"\x3b" + b"\xff" * 8)}, "a number below -2^63"),
                  ("attribute_undefined", {"u": UNDEFINED}, "an undefined value"),
                  ("attribute_simple", {"u": [Raw(b"\xf0")]}, "simple value 16"),
                  ("attribute_key_inside", {"m": Pairs([([1], 1), (2, "two"),
                                                        ("x", 1)])}, "a key that is a list")]
    for name, value, why in attributes:
        s.bad(f"ztensor12_{name}.zt", change("1.2", ("attributes",), value), "warn", why)
        s.bad(f"ztensor12_own_{name}.zt", change("1.2", ATTRIBUTES, value), "warn", why)
    for name, changes, why in (("dtype_long", {
            "dtype": "uint8"
    }, "a long dtype"), ("type_unknown", {"type": "x.odd"}, "an unknown logical type"),
                               ("type_pair", {"type": "complex64"}, "complex64 stored as u8")):
        f, m = base("1.2")
        m["objects"]["t"]["components"]["data"] |= changes
        s.bad(f"ztensor12_{name}.zt", f.end(m), "warn", why)
    f = File()
    f.blob(b"")
    at = len(f.data) + 4
    f.data += bytes(4) + T[3]
    o = f.tensor("u8", (8,), "dense", {"data": {"offset": at, "length": 8}})
    s.bad("ztensor10_unaligned.zt", f.end(f.root({"t": o})), "warn", "section 7.1: an offset of 68")
    f = File()
    at = len(f.data)
    f.data += T[3]
    o = f.tensor("u8", (8,), "dense", {"data": {"offset": at, "length": 8}})
    s.bad("ztensor10_first.zt", f.end(f.root({"t": o})), "warn",
          "an offset behind the magic number")
    f = File(fill=0xAB)
    s.bad("ztensor10_padding.zt", f.end(f.root({"t": f.dense(T)})), "warn",
          "padding that is not zero")
    f = File()
    o, dead = f.dense(T), f.blob(b"dead bytes")
    last = f.dense(tensor("u", "u8", (4,)))
    s.bad("ztensor10_unused.zt", f.end(f.root({"t": o, "u": last})), "accept",
          f"bytes at {dead[0]} that no component uses")
    f = File()
    at, _ = f.blob(bytes(100))
    o = [
        f.tensor("u8", (64,), "dense", {"data": {"offset": at + k, "length": 64}}) for k in (0, 32)
    ]
    s.bad("ztensor10_overlap.zt", f.end(f.root({"a": o[0], "b": o[1]})), "warn",
          "two components share some bytes")
    s.bad("ztensor10_nul.zt", whole("1.0", [tensor("a\0b", "u8", (2,))]), "warn", "a NUL in a name")
    s.bad("ztensor10_bool.zt", whole("1.0", [("t", "bool", (3,), b"\0\1\2")]), "warn",
          "a boolean of 2")


def bad_zstd(s):
    t = ("t", "u8", (100,), tensor("t", "u8", (100,))[3])
    good = frame(t[3])
    cases = [("broken", good[:6] + b"\xff" + good[7:], "a damaged block header"),
             ("none", b"", "nothing"), ("word", b"no zstd at all", "no frame"),
             ("cut", good[:-1], "the last byte is missing"),
             ("tail", good + b"junk", "bytes after the frame"),
             ("longer", frame(t[3] + b"x"), "101 bytes for 100"),
             ("shorter", frame(t[3][:99]), "99 bytes for 100"),
             ("two_longer", good + frame(b"x"), "a second frame with a byte too many"),
             ("window", frame(t[3], window=0xF8), "a window of 2^41 bytes"),
             ("says_more", repeated(b"x", 100, 101), "a frame that declares 101 bytes"),
             ("says_huge", repeated(b"x", 100, 2**63), "a frame that declares 2^63 bytes"),
             ("bomb", repeated(b"x", 256 << 20), "256 MiB for 100 bytes")]
    for version in VERSIONS:
        for name, stored, why in cases:
            f, v = File(version), version.replace(".", "")
            s.bad(f"ztensor{v}_zstd_{name}.zt", f.end(f.root({"t": f.dense(t, stored=stored)})),
                  "reject", why)
    for name, window, why in (("long", 0xA8, "a window of 2^31 bytes, as of zstd --long=31"),
                              ("past_limit", 0x89, "a window of 144 MiB")):
        f = File("1.0")
        s.bad(f"ztensor10_zstd_{name}.zt",
              f.end(f.root({"t": f.dense(t, stored=frame(t[3], window=window))})), "warn", why)
    f = File("1.2")
    s.bad("ztensor12_zstd_length.zt",
          f.end(f.root({"t": f.dense(t, stored=good, uncompressed_length=99)})), "reject",
          "99 bytes are announced")
    f = File("1.2")
    o = f.dense(t, stored=good)
    s.bad("ztensor12_zstd_shape.zt", f.end(f.root({"t": o | {"shape": [2**32, 2**33]}})), "reject",
          "2^65 elements")
    f = File()
    s.bad("ztensor10_zstd_digest.zt",
          f.end(f.root({"t": f.dense(t, stored=good, digest=digest(t[3], "crc32c"))})), "reject",
          "a digest of the decoded bytes")
    f = File("0.1")
    s.bad("ztensor01_zstd_broken.zt",
          f.end([entry(f, t, encoding="zstd", stored=b"no zstd at all")]), "reject", "no frame")


def sparse(version, shape, layout, **parts):
    f = File(version)
    made = {r: f.part(d, numbers({"u64": "Q", "f32": "f"}[d], v)) for r, (d, v) in parts.items()}
    return f.end(f.root({"t": f.tensor("f32", shape, layout, made)}))


def bad_sparse(s):
    csr = {
        "values": ("f32", [1.0] * 5), "indices": ("u64", CSR["indices"]),
        "indptr": ("u64", CSR["indptr"])
    }
    coo = {"values": ("f32", [1.0] * 3), "coords": ("u64", COO[0] + COO[1])}
    rows = [("csr", "rank", [3, 4, 1], {}, "three dimensions"),
            ("csr", "vector", [3], {}, "one dimension"),
            ("csr", "no_indptr", [3, 4], {"indptr": None}, "no indptr"),
            ("csr", "no_values", [3, 4], {"values": None}, "no values"),
            ("csr", "no_indices", [3, 4], {"indices": None}, "no indices"),
            ("csr", "rows", [4, 4], {}, "too few row pointers"),
            ("csr", "rows_max", [2**64 - 1, 4], {}, "2^64 row pointers"),
            ("csr", "counts", [3,
                               4], {"values": ("f32", [1.0] * 4)}, "four values for five indices"),
            ("csr", "column", [3, 3], {}, "a column out of bounds"),
            ("csr", "column_max", [3, 4], {"indices": ("u64", [0, 3, 1, 2,
                                                               2**64 - 1])}, "column 2^64 - 1"),
            ("csr", "begin", [3, 4], {"indptr": ("u64", [1, 2, 2, 5])}, "the first pointer is 1"),
            ("csr", "decrease", [3, 4], {"indptr": ("u64", [0, 3, 2, 5])}, "pointers decrease"),
            ("csr", "end", [3, 4], {"indptr": ("u64", [0, 2, 2, 4])}, "the last pointer is 4"),
            ("csr", "past", [3, 4], {"indptr": ("u64", [0, 2, 2**63, 5])}, "a pointer of 2^63"),
            ("coo", "rank", [], {}, "a scalar"),
            ("coo", "no_coords", [3, 4], {"coords": None}, "no coords"),
            ("coo", "no_values", [3, 4], {"values": None}, "no values"),
            ("coo", "bounds", [3, 3], {}, "a coordinate out of bounds"),
            ("coo", "counts", [3,
                               4], {"values": ("f32", [1.0] * 2)}, "two values for three "
                                                                   "coordinates"),
            ("coo", "whole", [3, 4], {"coords": ("u64", [0] * 5)}, "five numbers for pairs")]
    for version in VERSIONS:
        for kind, name, shape, parts, why in rows:
            own = {k: v for k, v in ((csr if kind == "csr" else coo) | parts).items() if v}
            s.bad(f"ztensor{version.replace('.', '')}_{kind}_{name}.zt",
                  sparse(version, shape, f"sparse_{kind}", **own), "reject", why)
    scalar = {"values": ("f32", [1.5]), "coords": ("u64", [])}
    for version in VERSIONS:
        for name, own, expect in (("one", scalar,
                                   "warn"), ("none", scalar | {"values": ("f32", [])}, "warn"),
                                  ("two", scalar | {"values": ("f32", [1.5, 2.0])}, "reject"),
                                  ("coords", scalar | {"coords": ("u64", [0])}, "reject")):
            s.bad(f"ztensor{version.replace('.', '')}_coo_scalar_{name}.zt",
                  sparse(version, [], "sparse_coo", **own), expect,
                  "a scalar of entries without coordinates", "ztensor/coo-rank")
    for name, columns, expect, why in (("order", [3, 0, 1, 2, 3], "accept",
                                        "columns that do not ascend, as 1.0 allows"),
                                       ("twice", [0, 0, 1, 2, 3], "warn", "a column twice")):
        s.bad(f"ztensor10_csr_{name}.zt",
              sparse("1.0", [3, 4], "sparse_csr", **csr | {"indices": ("u64", columns)}), expect,
              why)


def write_manifests(s, root):
    """Write the manifests of all samples to ROOT/cbor."""
    folder = pathlib.Path(root, "cbor")
    folder.mkdir(parents=True, exist_ok=True)
    for path in sorted(s.dir.glob("*/ztensor[01]*.zt")):
        data = path.read_bytes()
        end = len(data) - (16 if data[-8:] == MAGIC else 8)
        size = int.from_bytes(data[end:end + 8], "little") if end >= 8 else 0
        if 0 < size <= min(end - 8, 4096):
            (folder / f"{path.parent.name}_{path.stem}.cbor").write_bytes(data[end - size:end])


def main():
    s = Samples(sys.argv[1], "ztensor")
    for write in (good_01, bad_01, good_dense, good_attributes, good_spellings, good_zstd,
                  good_layouts, good_digests, bad_container, bad_cbor, bad_versions, bad_schema,
                  bad_keys, bad_but_read, bad_zstd, bad_sparse):
        write(s)
    write_manifests(s, sys.argv[1])


if __name__ == "__main__":
    main()
