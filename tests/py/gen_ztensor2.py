#!/usr/bin/env python3
"""gen_ztensor2.py ROOT: write zTensor 2 samples to ROOT/ztensor, without Heft.

CBOR, XXH3, XXH64 and zstd frames (stored blocks) are made here in plain Python."""
import hashlib
import pathlib
import struct
import sys

from cbor import Raw, encode
from samples import Samples, tensor
from xxh3 import xxh3

MAGIC = b"\x89ZT2\r\n\x1a\n"
FLOOR, CANONICAL, FOOTER = 4096, 65536, 40
ZSTD = "zt.zstd-seekable/1"
STORAGE = {
    "bool": "u8", "f8_e4m3fn": "u8", "f8_e5m2": "u8", "f8_e4m3fnuz": "u8", "f8_e5m2fnuz": "u8",
    "f8_e8m0": "u8", "f4_e2m1": "u8", "c64": "f32", "c128": "f64"
}
LOGICAL = {"c64": "complex64", "c128": "complex128"}
PLAIN = ["f64", "f32", "f16", "bf16", "i64", "i32", "i16", "i8", "u64", "u32", "u16", "u8"]


def round_up(n, to):
    return -(-n // to) * to


def cbor(v):
    return encode(v, is_sorted=True)


# ---- zstd ----

def xxh64(b):
    p1, p2, p3, p4, p5 = (0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9,
                          0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5)
    mask = 2**64 - 1

    def rotl(v, r):
        return (v << r | v >> (64 - r)) & mask

    def step(acc, v):
        return rotl((acc + v * p2) & mask, 31) * p1 & mask

    at, n = 0, len(b)
    h = p5
    if n >= 32:
        accs = [(p1 + p2) & mask, p2, 0, -p1 & mask]
        while n - at >= 32:
            accs = [step(a, v) for a, v in zip(accs, struct.unpack_from("<4Q", b, at))]
            at += 32
        h = sum(rotl(a, r) for a, r in zip(accs, (1, 7, 12, 18))) & mask
        for a in accs:
            h = ((h ^ step(0, a)) * p1 + p4) & mask
    h = (h + n) & mask
    while n - at >= 8:
        h = (rotl(h ^ step(0, struct.unpack_from("<Q", b, at)[0]), 27) * p1 + p4) & mask
        at += 8
    if n - at >= 4:
        h = (rotl(h ^ struct.unpack_from("<I", b, at)[0] * p1 & mask, 23) * p2 + p3) & mask
        at += 4
    for byte in b[at:]:
        h = rotl(h ^ byte * p5 & mask, 11) * p1 & mask
    h = (h ^ h >> 33) * p2 & mask
    h = (h ^ h >> 29) * p3 & mask
    return h ^ h >> 32


def frame(content, checksum=True):
    """Return a zstd frame of stored blocks with a content size."""
    out = struct.pack("<IBI", 0xFD2FB528, 0xA0 | 4 * checksum, len(content))
    blocks = [content[i:i + 65536] for i in range(0, len(content), 65536)] or [b""]
    for i, block in enumerate(blocks):
        out += struct.pack("<I", len(block) << 3 | (i + 1 == len(blocks)))[:3] + block
    return out + (struct.pack("<I", xxh64(content) & 0xFFFFFFFF) if checksum else b"")


def seek_table(entries, descriptor=0, magic=0x8F92EAB1):
    table = b"".join(
        struct.pack("<II", *e) + (bytes(4) if descriptor & 0x80 else b"") for e in entries)
    table += struct.pack("<IBI", len(entries), descriptor, magic)
    return struct.pack("<II", 0x184D2A5E, len(table)) + table


def seekable(data, size, checksum=True, entries=None, **how):
    contents = [data[i:i + size] for i in range(0, len(data), size)]
    frames = [frame(c, checksum) for c in contents]
    if entries is None:
        entries = [(len(f), len(c)) for f, c in zip(frames, contents)]
    return b"".join(frames) + seek_table(entries, **how)


# ---- files ----

def digest(data, algorithm="xxh3"):
    if algorithm == "xxh3":
        return f"xxh3:{xxh3(data):016x}"
    return "sha256:" + hashlib.sha256(data).hexdigest()


class File:
    """A file: blobs in the order of the calls, the manifest, the footer."""

    def __init__(self, align=FLOOR, fill=0):
        self.data, self.align, self.fill, self.shared = MAGIC, align, fill, {}

    def blob(self, data):
        at = max(round_up(len(self.data), self.align), self.align)
        self.data += bytes([self.fill]) * (at - len(self.data)) + data
        return [at, len(data)]

    def part(self, dtype, data, share=False, algorithm="xxh3", encoded=None, **more):
        stored = data if encoded is None else encoded
        if share and stored in self.shared:
            blob = self.shared[stored]
        else:
            blob = self.shared[stored] = self.blob(stored)
        p = {"dtype": STORAGE.get(dtype, dtype), "blob": blob}
        if dtype in STORAGE:
            p["type"] = LOGICAL.get(dtype, dtype)
        if algorithm:
            p["digest"] = digest(data, algorithm)
        if encoded is not None:
            p |= {"encoding": ZSTD, "decoded_length": len(data)}
        return {k: v for k, v in (p | more).items() if v is not None}

    def dense(self, t, **how):
        _, dtype, shape, data = t
        return {
            "shape": list(shape), "layout": "dense",
            "parts": {"data": self.part(dtype, data, **how)}
        }

    def end(self, manifest, version=2, reserved=0, offset=None, length=None, hashed=None,
            tail=MAGIC):
        raw = manifest if isinstance(manifest, bytes) else cbor(manifest)
        at, size = self.blob(raw)
        footer = struct.pack("<QQQII", at if offset is None else offset,
                             size if length is None else length,
                             xxh3(raw) if hashed is None else hashed, version, reserved)
        return self.data + footer + tail


def packed_file(tensors, attributes=None, align=FLOOR):
    """Return a file in the form of §6.3 except the alignment: blobs in the order of names, equal
    content once."""
    f = File(align)
    made = {t[0]: f.dense(t, share=True) for t in sorted(tensors, key=lambda t: t[0].encode())}
    manifest = {"objects": made}
    if attributes is not None:
        manifest["attributes"] = attributes
    return f.end(manifest)


def packed(name, dtype, shape, data):
    return name, dtype, shape, bytes(data)


def parts_facts(name, dtype, shape, layout, parts):
    """Return the facts of a tensor with several parts."""
    listed = {
        role: {"nbytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
        for role, data in parts.items()
    }
    return {"name": name, "dtype": dtype, "shape": list(shape), "layout": layout, "parts": listed}


# ---- good ----

class Sorted(Samples):
    """Samples with facts in the order of encoded keys, like the file."""

    def good(self, name, data, tensors, **more):
        super().good(name, data, sorted(tensors, key=lambda t: cbor(t[0])), **more)


CSR = {"indptr": [0, 2, 2, 5], "indices": [0, 3, 1, 2, 3]}
COO = [[0, 2, 2], [1, 0, 3]]
T = tensor("t", "u8", (8,))


def numbers(layout, values):
    return struct.pack(f"<{len(values)}{layout}", *values)


def good_dense(s):
    plain = [tensor(d, d, (2, 3)) for d in PLAIN] + [tensor("flags", "bool", (2, 3))]
    bytes_of = tensor("x", "u8", (96,))[3]
    small = [packed(d, d, (5,), bytes_of[:5]) for d in STORAGE if d.startswith("f8")]
    other = [
        packed("f4_e2m1", "f4_e2m1", (3, 3), bytes_of[:4] + b"\x07"),
        packed("c64", "c64", (2, 2), bytes_of[:32]),
        packed("c128", "c128", (2,), bytes_of[:32])
    ]
    s.good("ztensor2_types.zt", packed_file(plain + small + other), plain + small + other)
    tied = [tensor("b.w", "f32", (4, 4)), ("a", "f32", (16,), tensor("b.w", "f32", (4, 4))[3]),
            ("bytes", "u8", (64,), tensor("b.w", "f32", (4, 4))[3]), tensor("c", "i8", (3,)),
            ("empty", "f32", (0, 4), b""), ("none", "u8", (0,), b""), tensor("scalar", "f64", ())]
    s.good("ztensor2_tied.zt", packed_file(tied, align=CANONICAL), tied)
    f = File()
    t, data = tied[0], tied[0][3]
    two = {"first": f.dense(t, share=True), "second": f.dense(t, share=True, algorithm="sha256"),
           "third": f.dense(t, share=True, algorithm=None)}
    listed = [(name, *t[1:3], data) for name in two]
    s.good("ztensor2_tied_digests.zt", f.end({"objects": two}), listed)
    names = [
        tensor(n, "u8", (2,))
        for n in ("é", "层.权重", "z" * 1024, "a b", "aa", "b", 'quote"\\', "\u0001")
    ]
    s.good("ztensor2_names.zt", packed_file(names), names)
    s.good("ztensor2_empty.zt", packed_file([], align=CANONICAL), [])
    ranks = [tensor("r64", "u8", (1,) * 64), tensor("r3", "i16", (2, 1, 3))]
    s.good("ztensor2_ranks.zt", packed_file(ranks), ranks)


ATTRIBUTES = {
    "text": "héllo", "n": 7, "neg": -42, "big": 2**64 - 1, "least": -2**63, "half": 1.5,
    "third": 1 / 3, "single": 3.25e30, "nan": float("nan"), "yes": True, "nothing": None,
    "raw": b"\0\1\2", "list": [1, [2, "x"],
                               {}], "map": {"b": 1, "a": {"deep": [None, True]}, "cc": 2}, "": None
}


def good_attributes(s):
    wanted = {k: v for k, v in ATTRIBUTES.items() if k}
    s.good("ztensor2_attributes.zt", packed_file([T], wanted), [T])
    f = File()
    o = f.dense(T) | {
        "attributes": {k: wanted[k]
                       for k in ("n", "map", "list", "text")} | {"burn.param_id": 2**63}
    }
    s.good("ztensor2_object_attributes.zt", f.end({"objects": {"t": o}}), [T])
    deep = []
    for _ in range(28):
        deep = [deep]
    s.good("ztensor2_depth_32.zt", packed_file([T], {"deep": [deep]}), [T])
    f = File()
    later = {"late": 0, "later": [1, 2], "latest": 0, "latterly": 0, "later_than_ever": 0}
    o = f.dense(T, **later) | {"zzz": {"k": 1}, "attributes": {"stored_dtype.none": "x"}}
    s.good("ztensor2_unknown_keys.zt", f.end({"objects": {"t": o}, "future": {"a": 1}}), [T])


def good_files(s):
    f = File(FLOOR)
    mixed = [tensor("z", "f32", (3,)), tensor("a", "i64", (2,)), tensor("m", "u8", (5,))]
    objects = {t[0]: f.dense(t, algorithm=a) for t, a in zip(mixed, ("xxh3", "sha256", None))}
    s.good("ztensor2_order.zt", f.end({"objects": objects}), mixed)
    f = File()
    old = f.end({"objects": {"old": f.dense(tensor("old", "u8", (4,)))}})
    f.data = old
    s.good("ztensor2_appended.zt", f.end({"objects": {"t": f.dense(T)}}), [T])
    f = File()
    s.good("ztensor2_reserved.zt", f.end({"objects": {"t": f.dense(T)}}, reserved=9), [T])
    s.good("ztensor2_data_shard.zt",
           MAGIC + bytes(4088) + b"payload" + bytes(32 - 8) + struct.pack("<II", 2, 0) + MAGIC, [])
    f = File(fill=0xAB)
    s.good("ztensor2_padding.zt", f.end({"objects": {"t": f.dense(T)}}), [T])


def good_zstd(s):
    f, big, small = File(), tensor("big", "u8", (200000,)), tensor("small", "f32", (3, 5))
    one, empty = tensor("one", "u16", (64,)), ("empty", "f32", (0,), b"")
    objects = {"big": f.dense(big, encoded=seekable(big[3], 65536)),
               "small": f.dense(small, encoded=seekable(small[3], 16, descriptor=0x80)),
               "one": f.dense(one, encoded=seekable(one[3], 128), algorithm="sha256"),
               "empty": f.dense(empty, encoded=seekable(b"", 16))}
    s.good("ztensor2_zstd.zt", f.end({"objects": objects}), [big, small, one, empty])


def good_layouts(s):
    f, values = File(), tensor("v", "f32", (5,))[3]
    csr = {
        "values": values, "indices": numbers("I", CSR["indices"]),
        "indptr": numbers("I", CSR["indptr"])
    }
    coo = {"values": values[:12], "coords": numbers("Q", COO[0] + COO[1])}
    mx = {"data": bytes(range(16)), "scales": b"\x7f"}
    ggml = {"data": bytes(range(36))}
    custom = {"data": b"12345", "more": b"abc"}
    index = {"values": "f32", "indices": "u32", "indptr": "u32"}
    objects = {
        "csr": {
            "shape": [3, 4], "layout": "zt.sparse_csr/1",
            "parts": {r: f.part(index[r], d) for r, d in csr.items()}
        },
        "coo": {
            "shape": [3, 4], "layout": "zt.sparse_coo/1", "parts": {
                "values": f.part("f32", coo["values"]), "coords": f.part("u64", coo["coords"])
            }
        },
        "mx": {
            "shape": [32], "layout": "zt.mx/1",
            "attributes": {"block_size": 32, "scale_form": "e8m0_exponent"}, "parts": {
                "data": f.part("f4_e2m1", mx["data"]), "scales": f.part("f8_e8m0", mx["scales"])
            }
        },
        "ggml": {
            "shape": [64], "layout": "gguf.q4_0/1",
            "attributes": {"elems_per_block": 32,
                           "block_bytes": 18}, "parts": {"data": f.part("u8", ggml["data"])}
        },
        "custom": {
            "shape": [7, 7], "layout": "x.custom/3",
            "parts": {"data": f.part("u8", custom["data"]), "more": f.part("i8", custom["more"])}
        },
    }
    facts = [
        parts_facts("csr", "f32", [3, 4], "sparse_csr", csr),
        parts_facts("coo", "f32", [3, 4], "sparse_coo", coo),
        parts_facts("mx", "f4_e2m1", [32], "zt.mx/1", mx),
        parts_facts("ggml", "u8", [64], "gguf.q4_0/1", ggml),
        parts_facts("custom", "u8", [7, 7], "x.custom/3", custom)
    ]
    for role in ("indices", "indptr"):  # other generations have only u64 indices
        facts[0]["parts"][role]["sha256_u64"] = hashlib.sha256(numbers("Q", CSR[role])).hexdigest()
    s.write("good", "ztensor2_layouts.zt", f.end({"objects": objects}),
            {"format": "ztensor", "tensors": sorted(facts, key=lambda t: cbor(t["name"]))})


# ---- bad ----

def base(align=FLOOR, **how):
    f = File(align)
    return f, {"objects": {"t": f.dense(T, **how)}}


def bad_container(s):
    f, m = base()
    whole = f.end(m)
    s.bad("ztensor2_cut.zt", whole[:-1], "reject", "the last byte is missing")
    s.bad("ztensor2_longer.zt", whole + b"\n", "reject", "a byte after the footer")
    s.bad("ztensor2_short.zt", MAGIC + bytes(39), "reject", "47 bytes")
    for name, how, why in (("version_3", {"version": 3}, "version 3"), ("tail", {
            "tail": MAGIC[:-1] + b"\0"
    }, "the footer's magic number"), ("hash", {"hashed": 1}, "a wrong hash of the manifest"),
                           ("manifest_past", {"offset": 1 << 20},
                            "a manifest past the end"),
                           ("manifest_0", {"offset": 0}, "the manifest at 0"), ("manifest_odd", {
                               "offset": 8193
                           }, "the manifest is not aligned"), ("manifest_large", {
                               "length": 1 << 31
                           }, "a manifest of 2 GiB"), ("manifest_wraps", {
                               "length": 2**64 - 4096
                           }, "offset and length exceed 64 bits"), ("shard_with_hash", {
                               "length": 0, "offset": 0
                           }, "a data shard with a hash"), ("shard_with_offset", {
                               "length": 0, "hashed": 0
                           }, "a data shard with an offset"), ("manifest_longer", {
                               "length": 100
                           }, "the manifest reaches into the footer")):
        f, m = base()
        s.bad(f"ztensor2_{name}.zt", f.end(m, **how), "reject", why)
    f, m = base()
    s.bad("ztensor2_manifest_most.zt", f.end(m, length=1 << 30), "reject", "a manifest of 1 GiB",
          message="extends past the footer")
    f, m = base()
    f.blob(b"")
    f.align = 8
    f.data += bytes(8)
    s.bad("ztensor2_manifest_moved.zt", f.end(m), "reject", "all is right but for the alignment")


def bad_cbor(s):
    for name, raw, why in (("not_a_map", cbor(
        [1]), "a list"), ("empty_manifest_map", b"\xa0", "no objects"),
                           ("trailing", cbor({"objects": {}}) + b"\0", "a byte after the map"),
                           ("long_head", b"\xa1\x78\x07objects\xa0", "a head that is too long"),
                           ("indefinite", b"\xbf\x67objects\xa0\xff", "of indefinite length"),
                           ("tag", b"\xd9\xd9\xf7\xa1\x67objects\xa0",
                            "a tag"), ("unsorted", b"\xa2\x67objects\xa0\x61a\x00",
                                       "keys are not sorted"),
                           ("twice", b"\xa2\x67objects\xa0\x67objects\xa0",
                            "a key occurs twice"), ("cut_manifest", cbor({
                                "objects": {}
                            })[:-1], "truncated"), ("utf8", b"\xa2\x61\xff\x00\x67objects\xa0",
                                                    "a key that is not UTF-8"),
                           ("wide_float", b"\xa2\x61f\xfa\x3f\x80\x00\x00\x67objects\xa0",
                            "1.0 in four bytes"), ("nan", b"\xa2\x61f\xf9\x7e\x01\x67objects\xa0",
                                                   "a NaN with a payload"),
                           ("number_key", b"\xa2\x01\x00\x67objects\xa0", "a key that is not text"),
                           ("depth", cbor({"a": Raw(b"\x81" * 32 + b"\0"), "objects": {}}),
                            "33 levels"), ("bomb",
                                           b"\xa1\x67objects\xbb\xff\xff\xff\xff\xff\xff\xff\xff",
                                           "a map of 2^64 objects")):
        s.bad(f"ztensor2_cbor_{name}.zt", File().end(raw), "reject", why)


def change(path, value):
    """Return a file with a changed value in the manifest; None removes the key."""
    f, m = base()
    at = m
    for key in path[:-1]:
        at = at.setdefault(key, {})
    if value is None:
        del at[path[-1]]
    else:
        at[path[-1]] = value
    return f.end(m)


OBJECT, PART = ("objects", "t"), ("objects", "t", "parts", "data")


def bad_schema(s):
    s.bad("ztensor2_parts_number.zt", change((*OBJECT, "parts"), 0), "reject", "parts are a number",
          message="parts is not a map")
    s.bad("ztensor2_shard_size_text.zt", change(("shards", "a.zt", "size"), "8"), "reject",
          "a size that is text, without a digest", message="the size of a shard")
    blob = [4096, 8]
    other = {"dtype": "u8", "blob": blob}
    for name, path, value, why in (
        ("objects_list", ("objects",), [], "objects is a list"), ("name_empty", ("objects", ""),
                                                                  other, "an empty name"),
        ("name_nul", ("objects", "a\0b"), other,
         "a NUL in a name"), ("name_long", ("objects", "n" * 1025), other, "a long name"),
        ("no_shape", (*OBJECT, "shape"), None, "no shape"), ("no_layout", (*OBJECT, "layout"), None,
                                                             "no layout"),
        ("no_parts", (*OBJECT, "parts"), None, "no parts"), ("parts_empty", (*OBJECT, "parts"), {},
                                                             "parts are empty"),
        ("object_list", OBJECT, ["no map" * 9],
         "an object is a list"), ("shape_text", (*OBJECT, "shape"),
                                  "8", "a shape as text"), ("shape_negative", (*OBJECT, "shape"), [
                                      -8
                                  ], "a negative dimension"), ("rank_65", (*OBJECT, "shape"),
                                                               [1] * 64 + [8], "rank 65"),
        ("shape_large", (*OBJECT, "shape"), [2**32, 2**33],
         "2^65 elements"), ("shape_other", (*OBJECT, "shape"), [9],
                            "9 elements in 8 bytes"), ("layout_number", (*OBJECT, "layout"), 1,
                                                       "a layout that is not text"),
        ("attributes", (*OBJECT, "attributes"), 1,
         "attributes that are not a map"), ("attribute_key", (*OBJECT, "attributes"), {
             1: 2
         }, "an attribute key that is not text"), ("attribute_empty", ("attributes",), {
             "": 1
         }, "an attribute without a name"), ("attribute_undefined", ("attributes",), {
             "a": Raw(b"\xf7")
         }, "an undefined attribute"), ("attribute_simple", (*OBJECT, "attributes"), {
             "a": [Raw(b"\xf0")]
         }, "an attribute that is simple value 16"), ("dense_two", (*OBJECT, "parts", "more"),
                                                      other, "a dense tensor of two parts"),
        ("dense_role", (*OBJECT, "parts"), {"values": other},
         "a dense tensor without data"), ("role_nul", (*OBJECT, "parts", "a\0"), other,
                                          "a NUL in the name of a part"), ("part_list", PART, [],
                                                                           "a part is a list"),
        ("no_blob", (*PART, "blob"), None,
         "no blob"), ("no_dtype", (*PART, "dtype"), None, "no dtype"), ("blob_3", (*PART, "blob"), [
             0, 4096, 8
         ], "three numbers in a blob"), ("blob_1", (*PART, "blob"), [4096], "one number in a blob"),
        ("blob_text", (*PART, "blob"), ["4096", 8], "a blob of text"), ("blob_0", (*PART, "blob"), [
            0, 8
        ], "a blob at 0"), ("blob_odd", (*PART, "blob"), [
            4104, 8
        ], "a blob that is not aligned"), ("blob_past", (*PART, "blob"), [
            12288, 8
        ], "a blob past the end"), ("blob_footer", (*PART, "blob"), [
            4096, 5000
        ], "a blob that reaches into the manifest"), ("blob_wraps", (*PART, "blob"), [
            4096, 2**64 - 8
        ], "offset and length exceed 64 bits"), ("dtype", (*PART, "dtype"), "bool",
                                               "a dtype that zTensor 2 does not define"),
        ("type_pair", (*PART, "type"), "complex64",
         "complex64 stored as u8"), ("encoding_alone", (*PART, "encoding"), "x.z/1",
                                "an encoding without decoded_length"),
        ("length_alone", (*PART, "decoded_length"), 8,
         "decoded_length without an encoding"), ("digest_upper", (*PART, "digest"),
                                                 "xxh3:00FF00FF00FF00FF", "a digest in upper case"),
        ("digest_short", (*PART, "digest"), "xxh3:00ff",
         "a digest that is too short"), ("digest_bare", (*PART, "digest"), "00ff00ff00ff00ff",
                                         "no algorithm"), ("digest_name_upper", (*PART, "digest"),
                                                           "XXH3:00ff00ff00ff00ff",
                                                           "an algorithm in upper case"),
        ("digest_name_space", (*PART, "digest"), "xxh3 :00ff",
         "a space in an algorithm"), ("digest_name_dash", (*PART, "digest"), "sha-256:00ff",
                                      "a dash in an algorithm"),
        ("digest_name_not_ascii", (*PART, "digest"), "ſha256:00ff",
         "a letter beyond ASCII in an algorithm"), ("digest_name_empty", (*PART, "digest"), ":00ff",
                                                    "an algorithm without a name"),
        ("digest_number", (*PART, "digest"), 1,
         "a digest that is not text"), ("shard_unknown", (*PART, "shard"), "1",
                                       "a shard that no table has"), ("shard_number", (*PART,
                                                                                       "shard"), 1,
                                                                      "a shard that is not text")):
        s.bad(f"ztensor2_{name}.zt", change(path, value), "reject", why)
    f = File()
    a, b = f.blob(bytes(8192)), [8192, 8]
    objects = {
        n: {"shape": [x[1]], "layout": "dense", "parts": {"data": {"dtype": "u8", "blob": x}}}
        for n, x in (("a", a), ("b", b))
    }
    s.bad("ztensor2_overlap.zt", f.end({"objects": objects}), "reject", "two blobs overlap")


def bad_shards(s):
    good = {"size": 4096 + 48, "digest": "xxh3:" + "0" * 16}
    for name, table, why in (("dot", {".x": good}, "a name that begins with a "
                                                   "full stop"), ("path", {
            "../x": good
    }, "a name that leaves the directory"), ("empty", {"": good}, "an empty name"), ("long", {
            "s" * 65: good
    }, "a name of 65 bytes"), ("list", [], "a list"), ("no_size", {
            "x": {"digest": good["digest"]}
    }, "no size"), ("no_digest", {"x": {"size": 4144}}, "no digest"), ("small", {
            "x": good | {"size": 47}
    }, "a shard of 47 bytes"), ("number", {1: good}, "a number as a name")):
        f, m = base()
        s.bad(f"ztensor2_shards_{name}.zt", f.end(m | {"shards": table}), "reject", why)
    # The neighbours of the ranges of characters that a name may have.
    for code in (0x20, 0x2C, 0x2F, 0x3A, 0x40, 0x5B, 0x5E, 0x60, 0x7B):
        f, m = base()
        s.bad(f"ztensor2_shards_char_{code:x}.zt", f.end(m | {"shards": {f"x{code:c}": good}}),
              "reject", f"a name with the character {code:#x}")
    for name in ("azAZ09._-", "s" * 64):
        f, m = base()
        m["objects"]["t"]["parts"]["data"] |= {"shard": name, "blob": [4096, 8]}
        s.bad(f"ztensor2_shards_name_{len(name)}.zt", f.end(m | {"shards": {name: good}}), "reject",
              "verify cannot find the shard, whose name is allowed", "heft/file-missing")
    f, m = base()
    s.bad("ztensor2_shards_algorithm.zt",
          f.end(m | {"shards": {"x": good | {"digest": "md9:00ff"}}}), "reject",
          "a digest of an unknown algorithm, of a shard that is missing", "ztensor/digest-unknown")
    f, m = base()
    m["objects"]["t"]["parts"]["data"] |= {"shard": "x", "blob": [4096, 8]}
    s.bad("ztensor2_shards_missing.zt", f.end(m | {"shards": {"x": good}}), "reject",
          "verify cannot find the shard")
    f, m = base()
    m["objects"]["t"]["parts"]["data"] |= {"shard": "x", "blob": [8192, 8]}
    s.bad("ztensor2_shards_past.zt", f.end(m | {"shards": {"x": good}}), "reject",
          "a blob past the end of the shard")
    f = File()
    objects = {
        n: {"shape": [size], "layout": "dense",
            "parts": {"data": {"dtype": "u8", "shard": "x", "blob": [at, size]}}}
        for n, at, size in (("a", 4096, 8192), ("b", 8192, 8))
    }
    s.bad("ztensor2_shards_overlap.zt",
          f.end({"objects": objects, "shards": {"x": good | {"size": 16384}}}), "reject",
          "two blobs of a shard overlap", message="shard 'x': object 'b'")


def bad_values(s):
    f, m = base(algorithm=None, digest="xxh3:" + "0" * 16)
    s.bad("ztensor2_digest_wrong.zt", f.end(m), "reject", "a digest that does not match")
    f, m = base(algorithm=None, digest="sha256:" + "0" * 64)
    s.bad("ztensor2_sha256_wrong.zt", f.end(m), "reject", "a SHA-256 that does not match")
    f, m = base(algorithm=None, digest="md9:00ff")
    s.bad("ztensor2_digest_unknown.zt", f.end(m), "warn", "an unknown algorithm")
    f = File()
    s.bad("ztensor2_bool.zt",
          f.end({"objects": {"t": f.dense(packed("t", "bool", (3,), [0, 1, 2]))}}), "reject",
          "a boolean of 2")
    f = File()
    s.bad("ztensor2_nibble.zt",
          f.end({"objects": {"t": f.dense(packed("t", "f4_e2m1", (3,), [0x11, 0x11]))}}), "reject",
          "a nonzero nibble after the last element")
    f = File()
    s.bad("ztensor2_type_unknown.zt", f.end({"objects": {"t": f.dense(T, type="x.odd")}}), "warn",
          "an unknown logical type")
    f = File()
    o = f.dense(T) | {"layout": "x.more/1"}
    o["parts"]["more"] = f.part("u8", b"more", type="x.odd")
    s.bad("ztensor2_type_unknown_more.zt", f.end({"objects": {"t": o}}), "warn",
          "an unknown logical type of a part that is not called data")
    f = File()
    o = f.dense((*T[:2], (4104,), T[3]), algorithm=None)
    o["parts"]["data"]["blob"][1] = 4104
    s.bad("ztensor2_overlaps_manifest.zt", f.end({"objects": {"t": o}}), "reject",
          "a part that ends in the manifest", message="overlap the manifest")
    f = File()
    s.bad("ztensor2_encoding_unknown.zt",
          f.end({"objects": {"t": f.dense(T, encoding="x.z/1", decoded_length=8)}}), "warn",
          "an unknown encoding")


def bad_zstd(s):
    data = tensor("t", "u8", (100,))[3]
    t = ("t", "u8", (100,), data)
    good = seekable(data, 64)
    cases = [
        ("no_table", frame(data[:64]) + frame(data[64:]), "no seek table"),
        ("no_checksum", seekable(data, 64, checksum=False), "frames without checksums"),
        ("uneven",
         frame(data[:30]) + frame(data[30:60]) + frame(data[60:]) + seek_table([(46, 30), (46, 30),
                                                                                (56, 40)]),
         "the last frame is the largest"),
        ("table_short", frame(data[:64]) + frame(data[64:]) + seek_table([(80, 64)]),
         "a frame that the table leaves out"),
        ("table_size", seekable(data, 64, entries=[(80, 60),
                                                   (52, 40)]), "a wrong size in the table"),
        ("table_past", seekable(data, 64,
                                entries=[(80, 64),
                                         (4900, 36)]), "the table points past the end of the part"),
        ("table_magic", seekable(data, 64, magic=0x8F92EAB0), "a wrong magic number"),
        ("table_count", good[:-9] + struct.pack("<I", 1 << 20) + good[-5:],
         "a table with more entries than fit"),
        ("not_a_frame", frame(data[:64]) + frame(data[64:]) + seek_table([(70, 64), (62, 36)]),
         "an entry that begins within a frame"),
        ("broken", good[:20] + b"\xff" + good[21:], "a damaged byte in a frame"),
        ("longer", seekable(data + b"x", 64), "101 bytes for 100"),
        ("shorter", seekable(data[:99], 64), "99 bytes for 100"),
        ("none", b"", "nothing"),
    ]
    for name, encoded, why in cases:
        f = File()
        s.bad(f"ztensor2_zstd_{name}.zt", f.end({"objects": {"t": f.dense(t, encoded=encoded)}}),
              "reject", why)
    f = File()
    s.bad("ztensor2_zstd_digest.zt",
          f.end({"objects": {"t": f.dense(t, encoded=good, algorithm=None, digest=digest(good))}}),
          "reject", "a digest of the stored instead of the decoded bytes")


def sparse(shape, layout, **parts):
    f = File()
    made = {
        role: f.part(dtype, numbers({"u32": "I", "u64": "Q", "f32": "f", "i64": "q"}[dtype],
                                    values)) for role, (dtype, values) in parts.items()
    }
    return f.end({"objects": {"t": {"shape": shape, "layout": layout, "parts": made}}})


def bad_sparse(s):
    values, indices, indptr = ("f32", [1.0] * 5), ("u32", CSR["indices"]), ("u32", CSR["indptr"])
    csr = {"values": values, "indices": indices, "indptr": indptr}
    for name, shape, parts, why in (("rank", [
            3, 4, 1
    ], {}, "three dimensions"), ("missing", [3, 4], {"indptr": None}, "no indptr"), ("signed", [
            3, 4
    ], {"indices": ("i64", CSR["indices"])}, "signed indices"), ("types", [3, 4], {
            "indptr": ("u64", CSR["indptr"])
    }, "two types"), ("rows", [4, 4], {}, "too few row pointers"), ("values", [3, 4], {
            "values": ("f32", [1.0] * 4)
    }, "four values for five indices"), ("column", [3, 3], {}, "a column out of bounds"),
                                    ("begin", [3, 4], {"indptr": ("u32", [1, 2, 2, 5])},
                                     "the first pointer is 1"), ("decrease", [3, 4], {
                                         "indptr": ("u32", [0, 3, 2, 5])
                                     }, "pointers decrease"), ("end", [3, 4], {
                                         "indptr": ("u32", [0, 2, 2, 4])
                                     }, "the last is 4"), ("order", [3, 4], {
                                         "indices": ("u32", [3, 0, 1, 2, 3])
                                     }, "columns that do not ascend"), ("twice", [3, 4], {
                                         "indices": ("u32", [0, 0, 1, 2, 3])
                                     }, "a column twice")):
        own = {k: v for k, v in (csr | parts).items() if v}
        s.bad(f"ztensor2_csr_{name}.zt", sparse(shape, "zt.sparse_csr/1", **own), "reject", why)
    for role in csr:  # the number of parts is right
        own = {k if k != role else "other": v for k, v in csr.items()}
        s.bad(f"ztensor2_csr_no_{role}.zt", sparse([3, 4], "zt.sparse_csr/1", **own), "reject",
              f"other in place of {role}")
    s.bad("ztensor2_csr_four.zt", sparse([3, 4], "zt.sparse_csr/1", other=values, **csr), "reject",
          "a fourth part")
    empty = {"values": ("f32", []), "indices": ("u32", []), "indptr": ("u32", [])}
    s.bad("ztensor2_csr_overflow.zt", sparse([2**64 - 1, 1], "zt.sparse_csr/1", **empty), "reject",
          "the number of row pointers overflows to 0, as many as there are", "ztensor/structure")
    coo = {"values": ("f32", [1.0] * 3), "coords": ("u64", COO[0] + COO[1])}
    for name, shape, parts, why in (("rank", [], {}, "a scalar"), ("missing", [3, 4], {
            "coords": None
    }, "no coords"), ("bounds", [3, 3], {}, "a coordinate out of bounds"), ("count", [3, 4], {
            "values": ("f32", [1.0] * 2)
    }, "two values for three coordinates"), ("signed", [3, 4], {
            "coords": ("i64", COO[0] + COO[1])
    }, "signed coordinates"), ("whole", [3,
                                                  4], {"coords": ("u64", [0] * 5)}, "five numbers"),
                                    ("twice", [3, 4], {"coords": ("u64", [0, 2, 0, 1, 0,
                                                                          1])}, "a coordinate "
                                                                                "twice")):
        own = {k: v for k, v in (coo | parts).items() if v}
        s.bad(f"ztensor2_coo_{name}.zt", sparse(shape, "zt.sparse_coo/1", **own), "reject", why)
    for role in coo:
        own = {k if k != role else "other": v for k, v in coo.items()}
        s.bad(f"ztensor2_coo_no_{role}.zt", sparse([3, 4], "zt.sparse_coo/1", **own), "reject",
              f"other in place of {role}")
    s.bad("ztensor2_coo_three.zt", sparse([3, 4], "zt.sparse_coo/1", other=values, **coo), "reject",
          "a third part")


def bad_names(s):
    """Names in form D or with misordered marks; canonical files require form C."""

    def put(name, why, rule=None, without=None, objects=("e\u0301",), part=None, attributes=None,
            more=None, **how):
        f = File(how.pop("align", CANONICAL))
        made = {n: f.dense(tensor(n, "u8", (3,)), **how) | (part or {}) for n in objects}
        s.bad(
            f"ztensor2_nfc_{name}.zt",
            f.end({
                "objects": made, **({"attributes": attributes} if attributes else {}),
                **(more or {})
            }), "accept", why, rule and "ztensor/nfc", without and "ztensor/nfc")

    put("object", "a name in form D", True)
    put("order", "combining marks in the wrong order", True, objects=("x\u0301\u0323",))
    put("never", "the sign for angstrom", True, objects=("\u212b",))
    put("hangul", "a syllable decomposed into letters", True, objects=("\u1112\u1161\u11ab",))
    put("key", "the key of an attribute in form D", True, objects=("a",), attributes={"e\u0301": 1})
    put("object_key", "the key of an object's attribute in form D", True, objects=("a",),
        part={"attributes": {"m": {"k": 1}, "e\u0301": 1}})
    put("good", "names in form C", None, True,
        objects=("\u00e9", "x\u0301", "\ud55c", "\u5c42", "\u0301"), attributes={"\u00e9": 1})
    put("value", "a value and an inner key in form D", None, True, objects=("a",),
        attributes={"a": "e\u0301", "m": {"e\u0301": 1}})
    put("aligned_4096", "an alignment other than in canonical form", None, True, align=FLOOR)
    put("sha256", "a digest other than in canonical form", None, True, algorithm="sha256")
    put("no_digest", "no digest", None, True, algorithm=None)
    put("compressed", "compressed data", None, True,
        encoded=seekable(tensor("e\u0301", "u8", (3,))[3], 16))


# ---- shard sets ----

def write_shard_set(root):
    """Write ROOT/ztensor/shards: model.zt with tensors of its own, of a data shard and of another
    model; empty.zt with a tensor without bytes in a shard that is missing."""
    folder = pathlib.Path(root, "ztensor", "shards")
    folder.mkdir(parents=True, exist_ok=True)
    names = {"here": "i16", "far": "f32", "packed": "u8", "base": "f64"}
    t = {n: tensor(n, d, (40, 25)) for n, d in names.items()}
    heap, root_file, base_file = File(), File(), File()
    parts = {
        "here": root_file.dense(t["here"]), "far": heap.dense(t["far"]),
        "packed": heap.dense(t["packed"], encoded=seekable(t["packed"][3],
                                                           400)), "base": base_file.dense(t["base"])
    }
    base = base_file.end({"objects": {"base": parts["base"]}})
    heap = heap.data + bytes(24) + struct.pack("<II", 2, 0) + MAGIC
    for name, shard in (("far", "1"), ("packed", "1"), ("base", "base.v2")):
        parts[name]["parts"]["data"]["shard"] = shard
    table = {
        "1": {"size": len(heap), "digest": digest(heap)},
        "base.v2": {"size": len(base), "digest": digest(base, "sha256")}
    }
    empty_file = File()
    empty = empty_file.dense(tensor("empty", "f32", (0,)))
    empty["parts"]["data"]["shard"] = "1"
    files = {
        "model.zt": root_file.end({"objects": parts, "shards": table}), "model-1.zt": heap,
        "model-base.v2.zt": base, "whole.zt": packed_file(t.values()),
        "empty.zt": empty_file.end({"objects": {"empty": empty}, "shards": {"1": table["1"]}})
    }
    for name, data in files.items():
        (folder / name).write_bytes(data)


def main():
    write_shard_set(sys.argv[1])
    s = Sorted(sys.argv[1], "ztensor")
    for write in (good_dense, good_attributes, good_files, good_zstd, good_layouts, bad_container,
                  bad_cbor, bad_schema, bad_shards, bad_values, bad_zstd, bad_sparse, bad_names):
        write(s)


if __name__ == "__main__":
    main()
