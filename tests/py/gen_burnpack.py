#!/usr/bin/env python3
"""gen_burnpack.py ROOT: write .bpk samples to ROOT/burnpack, without Heft.

Good samples: the dialects of Burn 0.19 to 0.22, every element type, quantization schemes, orders
and spellings of the CBOR. "rewritten" in FILE.json is the version with which a conversion must
produce the same bytes, as Burn writes them. Bad samples: at least one for each error of the parser,
and files that are accepted with a warning."""
import json
import random
import struct
import sys

from samples import Samples, describe, tensor

NAMES = {
    "f64": "F64", "f32": "F32", "f16": "F16", "bf16": "BF16", "i64": "I64", "i32": "I32",
    "i16": "I16", "i8": "I8", "u64": "U64", "u32": "U32", "u16": "U16", "u8": "U8"
}


# ---- CBOR ----

class Raw(bytes):
    """Encoded CBOR."""


class Map(list):
    """A map as pairs in the given order; keys may repeat."""


def head(major, v, size=None):
    """Encode a head; `size` forces a longer number than necessary."""
    if size is None and v < 24:
        return bytes([major << 5 | v])
    for i, letter in enumerate("BHIQ"):
        if v < 256 ** (1 << i) and (size is None or size <= 1 << i):
            return bytes([major << 5 | 24 + i]) + struct.pack(">" + letter, v)
    raise ValueError(v)


def double(v):
    """Encode a float in the fewest bytes that represent the value exactly."""
    for lead, letter in ((0xF9, "e"), (0xFA, "f")):
        try:
            raw = struct.pack(">" + letter, v)
        except OverflowError:
            continue
        if struct.pack(">d", *struct.unpack(">" + letter, raw)) == struct.pack(">d", v):
            return bytes([lead]) + raw
    return b"\xfb" + struct.pack(">d", v)


def enc(v):
    if isinstance(v, Raw):
        return bytes(v)
    if v is None or isinstance(v, bool):
        return {False: b"\xf4", True: b"\xf5", None: b"\xf6"}[v]
    if isinstance(v, int):
        return head(0, v) if v >= 0 else head(1, -1 - v)
    if isinstance(v, float):
        return double(v)
    if isinstance(v, str):
        raw = v.encode()
        return head(3, len(raw)) + raw
    if isinstance(v, bytes):
        return head(2, len(v)) + v
    if isinstance(v, dict):
        v = Map(v.items())
    if isinstance(v, Map):
        return head(5, len(v)) + b"".join(enc(k) + enc(x) for k, x in v)
    return head(4, len(v)) + b"".join(map(enc, v))


def tag(n, v):
    return Raw(head(6, n) + enc(v))


def long_head(v, size):
    """Encode a number, text or list with a longer head than necessary."""
    if isinstance(v, int):
        return Raw(head(0, v, size))
    if isinstance(v, str):
        return Raw(head(3, len(v.encode()), size) + v.encode())
    return Raw(head(4, len(v), size) + b"".join(map(enc, v)))


def open_ended(v):
    """Encode with indefinite lengths; text in chunks of two characters."""
    if isinstance(v, dict):
        return Raw(b"\xbf" + b"".join(enc(k) + enc(open_ended(x)) for k, x in v.items()) + b"\xff")
    if isinstance(v, (list, tuple)):
        return Raw(b"\x9f" + b"".join(enc(open_ended(x)) for x in v) + b"\xff")
    if isinstance(v, str):
        return Raw(b"\x7f" + b"".join(enc(v[i:i + 2]) for i in range(0, len(v), 2)) + b"\xff")
    return v


# ---- packs ----

def round_up(n, to=256):
    return -(-n // to) * to


class Pack:
    """A valid pack with replaceable parts; `tensors` are in the order of their data."""

    def __init__(self, tensors, dialect="0.21", ids=None, stored=None, metadata=None, scalars=None,
                 align=None):
        self.tensors, self.dialect = tensors, dialect
        self.padded = dialect != "0.19"
        self.align = align or (256 if self.padded else 1)
        self.ids, self.stored = ids or {}, stored or {}
        self.metadata, self.scalars = metadata, scalars
        at = 0
        self.places = {}
        for name, _, _, data in tensors:
            at = round_up(at, self.align)
            self.places[name] = (at, at + len(data))
            at += len(data)
        self.magic, self.version, self.length = b"NRUB", 1, None
        self.descriptors = {t[0]: self.descriptor(t) for t in tensors}
        self.order = sorted(self.descriptors, key=lambda n: n.encode())
        self.more, self.pad, self.tail, self.inside = {}, 0, b"", b""

    def dtype(self, t):
        if t[0] in self.stored:
            return self.stored[t[0]]
        if t[1] == "bool":
            return "Bool" if self.dialect in ("0.19", "0.20") else {"Bool": "Native"}
        return NAMES[t[1]]

    def descriptor(self, t):
        d = {"dtype": self.dtype(t), "shape": list(t[2]), "data_offsets": list(self.places[t[0]])}
        if t[0] in self.ids:
            d["param_id"] = self.ids[t[0]]
        return d

    def document(self):
        tensors = {n: self.descriptors[n] for n in self.order}
        root = {"tensors": tensors, **self.more}
        if self.metadata:
            root["metadata"] = dict(sorted(self.metadata.items(), key=lambda kv: kv[0].encode()))
        if self.scalars:
            root["scalars"] = dict(sorted(self.scalars.items(), key=lambda kv: kv[0].encode()))
        return root

    def bytes(self, manifest=None):
        cbor = (enc(self.document()) if manifest is None else enc(manifest)) + self.inside
        out = self.magic + struct.pack("<HI", self.version,
                                       len(cbor) if self.length is None else self.length) + cbor
        fill = bytes([self.pad])
        out += fill * ((round_up(len(out)) if self.padded else len(out)) - len(out))
        start = len(out)
        for name, _, _, data in self.tensors:
            begin = start + self.places[name][0]
            out += fill * (begin - len(out)) + data
        return out + self.tail


def facts_of(tensors, stored=None, ids=None, metadata=None, quantized=(), rewritten=None):
    listed = []
    for t in tensors:
        d = describe(*t)
        if t[0] in quantized:
            d["layout"] = "burn.qfloat"
        if t[0] in (stored or {}):
            d["attributes"] = {"stored_dtype": stored[t[0]]}
        if t[0] in (ids or {}):
            d["param_id"] = ids[t[0]]
        listed.append(d)
    facts = {"format": "burnpack", "tensors": listed}
    if metadata is not None:
        facts["metadata"] = [{"key": k, "value": v} for k, v in metadata.items()]
    if rewritten:
        facts["rewritten"] = rewritten
    return facts


def spelled(dtype):
    return dtype if isinstance(dtype, str) else json.dumps(dtype, separators=(",", ":"),
                                                           ensure_ascii=False)


def few():
    return [tensor("b", "f32", (2, 3)), tensor("a", "i64", (4,)), tensor("c.d", "u8", (7,))]


# ---- good ----

def put(s, name, pack, rewritten="0.21", listed=None, texts=None, quantized=(), data=None):
    """Write a good sample; `rewritten` is None if Heft writes the file differently."""
    metadata = None if pack.scalars else pack.metadata  # a sample lists either all metadata or none
    facts = facts_of(listed or pack.tensors, texts, pack.ids, metadata, quantized, rewritten)
    s.write("good", name + ".bpk", pack.bytes() if data is None else data, facts)


def every_type(dialect):
    tensors = [tensor(f"t.{t}", t, (3, 5)) for t in NAMES]
    tensors += [tensor("flex", "f32", (2, 2)), tensor("bool", "bool", (5,))]
    stored = {"flex": "Flex32"}
    if dialect in ("0.21", "0.22"):
        tensors += [tensor("bool.u8", "bool", (3,)),
                    ("bool.u32", "u32", (2, 2), struct.pack("<4I", 0, 1, 1, 0))]
        stored.update({"bool.u8": {"Bool": "U8"}, "bool.u32": {"Bool": "U32"}})
    return tensors, stored


def good_dialects(s):
    meta = {
        "format": "burnpack", "producer": "burn", "version": "0.21.0", "\u00e9": "\U0001f600 \"\\\n"
    }
    for dialect in ("0.19", "0.20", "0.21", "0.22"):
        tensors, stored = every_type(dialect)
        ids = {t[0]: 2**64 - 1 - i for i, t in enumerate(tensors) if i % 3}
        scalars = {"step": {"Int": -3}, "rate": {"Float": 0.1}} if dialect == "0.22" else None
        p = Pack(tensors, dialect, ids, stored, meta, scalars)
        facts = facts_of(tensors, {n: spelled(d) for n, d in stored.items()}, ids,
                         meta if not scalars else None, (),
                         None if dialect == "0.19" else "0.20" if dialect == "0.20" else "0.21")
        s.write("good", f"all_{dialect}.bpk", p.bytes(), facts)


SIZE = {"storage": [8, 1, 1, 1, 1], "len": 1}
SCHEME = {
    "value": "Q8S", "param": "F32", "store": {"PackedU32": 0}, "level": "Tensor",
    "mode": "Symmetric"
}
# Quantization schemes by the generation that writes them.
SCHEMES = {
    "0.19": {
        "packed": {**SCHEME, "store": "U32"},
        "native": {**SCHEME, "value": "E2M1", "store": "Native"}
    },
    "0.21": {
        "tensor": SCHEME, "block": {
            **SCHEME, "value": "Q4S", "param": "F16", "store": "Native", "level": {"Block": SIZE}
        }
    },
    "0.22-pre.2": {
        "tensor": SCHEME, "block_tensor": {
            **SCHEME, "value": "Q4S", "param": "UE4M3",
            "level": {"BlockTensor": {"block": SIZE, "global": "F32"}}
        }
    },
    "0.22": {
        "tensor": {
            "value": "Q8F", "store": "Native", "mode": "Symmetric", "tensor": "F32", "block": None
        }, "block": {
            "value": "Q8F", "store": {"PackedNative": 1}, "mode": "Lookup", "tensor": None,
            "block": {"size": SIZE, "dtype": "UE8M0"}
        }
    },
}
# Schemes of no generation, or of incompatible generations.
ODD_SCHEMES = {
    "unknown": {
        "odd_texts": {
            "value": "\u00e9", "n": [-1, -2**63, 2**64 - 1, True, False, None, [], {}], "": {}
        }
    },
    "no_param": {"tensor": {k: v for k, v in SCHEME.items() if k != "param"}},
    "padded_0.19": {"packed": {**SCHEME, "store": "U32"}},
    "two_generations": {"tensor": SCHEME, "block": SCHEMES["0.22"]["block"]},
}
HEX_SCHEMES = {
    "float": {"value": 0.5},
    "bytes": {"value": b"\x00\xff"},
    "quote": {"value": "a\"b"},
    "number_key": {5: 1},
    "very_negative": {"value": Raw(head(1, 2**64 - 1))},
    "tagged": {"value": tag(3, 1)},
    "long": {"value": long_head(1, 8)},
    "open": {"value": open_ended([1])},
    "undefined": {"value": Raw(b"\xf7")},
}


def quantized(name, nbytes):
    return name, "u8", (2, 4), random.Random(name).randbytes(nbytes)


def quantized_pack(schemes, dialect="0.21"):
    every = [quantized(name, 5 * i) for i, name in enumerate(schemes)]
    return Pack(every, dialect,
                stored={name: {"QFloat": scheme} for name, scheme in schemes.items()})


def good_quantized(s):
    for generation, schemes in SCHEMES.items():
        p = quantized_pack(schemes, generation)
        texts = {n: spelled(d) for n, d in p.stored.items()}
        put(s, f"quantized_{generation}", p, None if generation == "0.19" else generation,
            texts=texts, quantized=texts)
    one = [quantized(f"layer.{i}", 12) for i in range(40)]
    same = {t[0]: {"QFloat": SCHEME} for t in one}
    texts = {n: spelled(d) for n, d in same.items()}
    put(s, "quantized_alike", Pack(one, stored=same), texts=texts, quantized=same)


def odd_quantized(s):
    """Schemes that no generation reads, and schemes that JSON cannot represent exactly."""
    for name, schemes in {**ODD_SCHEMES, "hex": HEX_SCHEMES}.items():
        s.bad(f"quantized_{name}.bpk",
              quantized_pack(schemes).bytes(), "warn", "schemes that no Burn reads")
    long = quantized_pack({"long": {**SCHEME, "store": {"PackedU32": long_head(0, 8)}}})
    facts = {"expect": "accept", "why": "a scheme that JSON cannot "
                                        "represent exactly", "rewritten": "0.21"}
    s.write("bad", "quantized_long.bpk", long.bytes(), facts)
    legacy = quantized_pack(SCHEMES["0.21"], "0.19")
    s.bad("quantized_unpadded_0.21.bpk", legacy.bytes(), "warn",
          "a scheme of Burn 0.20 in a file of 0.19")
    new = {"q": {"QFloat": SCHEMES["0.22"]["tensor"]}}
    boolean = Pack([tensor("b", "bool", (3,)), quantized("q", 12)], "0.20", stored=new)
    s.bad("quantized_0.22_with_text_bool.bpk", boolean.bytes(), "warn",
          "a scheme of Burn 0.22 beside a Bool of 0.20")


def good_shapes(s):
    shapes = [(), (1,), (0,), (2, 0, 3), (1,) * 30, (2,) * 10, (5, 1, 7), (0, 2**63, 2**63),
              (2**64 - 1, 0)]
    tensors = [(f"s{i}", "f32", d, b"" if 0 in d else tensor(str(i), "f32", d)[3])
               for i, d in enumerate(shapes)]
    put(s, "shapes", Pack(tensors))
    put(s, "only_empty", Pack([tensor("none", "i64", (0,))]))
    tail = [tensor("w", "u8", (5,)), tensor("x", "f32", (0, 9)), tensor("y", "u8", (0,))]
    put(s, "empty_last", Pack(tail))
    put(s, "empty_last_0.19", Pack(tail, "0.19"), None)
    put(s, "empty_first", Pack([tensor("z", "u8", (0,)), tensor("w", "u8", (5,))]))


def good_names(s):
    names = [
        "", " ", "\u00e9", "e\u0301", "\u5c42.\u6743\u91cd", "emoji\U0001f680", "a/b\\c\"d",
        "-dash", "tab\t", "x" * 5000, "\x7f\x01"
    ]
    put(s, "names", Pack([tensor(n, "u8", (i + 1,)) for i, n in enumerate(names)]))
    many = [tensor("block." * 30 + f"{i}.weight", "f16", (i % 5 + 1,)) for i in range(400)]
    random.Random(5).shuffle(many)
    put(s, "many", Pack(many, ids={t[0]: i * 77 for i, t in enumerate(many) if i > 300}))


def good_metadata(s):
    put(s, "empty", Pack([]))
    put(s, "empty_metadata", Pack([], metadata={"a": "b"}))
    for length in (195, 196, 197):  # the manifest ends before, at and behind a multiple of 256
        put(s, f"boundary_{length}",
            Pack([tensor("w", "f32", (2,))], metadata={"p": "x" * (length - 24)}))
    metadata = {
        "": "empty key", "empty": "", "burn": "\u0000\u0001",
        **{f"key{i}": str(i) for i in range(300)}
    }
    put(s, "metadata", Pack(few(), metadata=dict(sorted(metadata.items()))))
    scalars = {
        "i": {"Int": -1}, "max": {"Int": 2**63 - 1}, "min": {"Int": -2**63},
        "u": {"UInt": 2**64 - 1}, "t": {"Bool": True}, "f": {"Bool": False}, "half": {"Float": 0.5},
        "single": {"Float": 2.0**-130}, "tenth": {"Float": 0.1}, "zero": {"Float": -0.0},
        "inf": {"Float": float("-inf")}, "nan": {"Float": float("nan")}
    }
    put(s, "scalars", Pack(few(), scalars=scalars))
    p = Pack(few(), metadata={"z": "1", "a": "2"})
    unsorted = {"metadata": {"z": "1", "a": "2"}, "tensors": p.document()["tensors"]}
    put(s, "metadata_first", p, None, data=p.bytes(unsorted))
    put(s, "scalars_empty", Pack(few()), None,
        data=Pack(few()).bytes({**Pack(few()).document(), "scalars": {}}))


def good_orders(s):
    p = Pack(few())
    p.order = ["c.d", "b", "a"]
    put(s, "unsorted", p, None)
    p = Pack(few())
    p.descriptors = {n: dict(reversed(d.items())) for n, d in p.descriptors.items()}
    put(s, "fields_backwards", p, None)
    gaps = Pack(few())
    gaps.places = {"b": (512, 536), "a": (1024, 1056), "c.d": (4096, 4103)}
    gaps.descriptors = {t[0]: gaps.descriptor(t) for t in gaps.tensors}
    put(s, "gaps", gaps, None)
    put(s, "aligned_4096", Pack(few(), align=4096), None)


def good_spellings(s):
    p = Pack(few(), ids={"a": 5}, metadata={"key": "value"}, scalars={"n": {"Int": 1}})
    document = p.document()
    tensors = {
        n: {
            **d, "dtype": open_ended(d["dtype"]), "shape": open_ended(d["shape"]),
            "data_offsets": open_ended(d["data_offsets"])
        } for n, d in document["tensors"].items()
    }
    loose = {
        "tensors": open_ended(tensors), "metadata": open_ended(document["metadata"]),
        "scalars": document["scalars"]
    }
    put(s, "indefinite", p, None, data=p.bytes(open_ended(loose)))
    tensors = {tag(40, n): tag(41, {tag(7, k): tag(8, tag(9, v)) for k, v in d.items()})
               for n, d in document["tensors"].items()}
    put(s, "tagged", p, None, data=p.bytes(tag(55799, {**document, "tensors": tensors})))
    tensors = {long_head(n, 4): {long_head(k, 1): long_head(v, 8) for k, v in d.items()}
               for n, d in document["tensors"].items()}
    put(s, "long_heads", p, None, data=p.bytes({**document, "tensors": tensors}))
    tensors = {n: {k.encode(): v for k, v in d.items()} for n, d in document["tensors"].items()}
    put(s, "keys_as_bytes", p, None,
        data=p.bytes({k.encode(): v for k, v in {**document, "tensors": tensors}.items()}))
    nulls = Pack(few())
    for d in nulls.descriptors.values():
        d["param_id"] = None
    put(s, "param_id_null", nulls, None)
    more = Pack(few())
    more.more = {"later": [1, {"a": b"b"}, 0.5, tag(1, None)], "": 1}
    more.descriptors["a"].update({"more": {}, "x": [[]]})
    put(s, "unknown_keys", more, None)
    deep = Pack(few())
    deep.more = {"deep": Raw(b"\x81" * 126 + b"\x80")}
    put(s, "deep_128", deep, None)


def good_legacy(s):
    put(s, "legacy_one", Pack([tensor("w", "f32", (2,))], "0.19"), None)
    put(s, "legacy_large", Pack([tensor("w", "u8", (999,)), tensor("x", "u8", (5,))], "0.19"), None)
    put(s, "legacy_starts_aligned",
        Pack([tensor("w", "u8", (512,)), tensor("x", "u8", (3,))], "0.19"), None)
    put(s, "legacy_empty", Pack([], "0.19"), None)
    padded = Pack([tensor("w", "u8", (9,)), tensor("x", "u8", (5,))], "0.19")
    padded.tail = bytes(20)
    s.bad("legacy_tail.bpk", padded.bytes(), "warn",
          "an unaligned file with 20 bytes after the data")
    long = Pack([tensor("w", "u8", (9,)), tensor("x", "u8", (5,))], "0.19")
    long.tail = bytes(700)
    s.bad("legacy_long_tail.bpk", long.bytes(), "warn",
          "an unaligned file with 700 bytes after the data")
    zeros = Pack([("w", "u8", (512,), bytes(512))], "0.19")
    s.bad("legacy_zeros.bpk", zeros.bytes(), "warn",
          "an unaligned file that looks like a truncated aligned file")


# ---- bad ----

def bad_headers(s):
    ok = Pack(few()).bytes()
    s.bad("ok_control.bpk", ok, "accept", "the valid file from which the others are made")

    def change(name, why, expect="reject", **attributes):
        p = Pack(few())
        for key, value in attributes.items():
            setattr(p, key, value)
        s.bad(name + ".bpk", p.bytes(), expect, why)

    change("magic_swapped", "'BURN' instead of 'NRUB'", magic=b"BURN")
    change("magic_other", "'NRUC'", magic=b"NRUC")
    change("version_0", "version 0", "warn", version=0)
    change("version_2", "version 2", version=2)
    change("version_256", "version 1 in big-endian order", version=256)
    change("length_0", "a manifest of no bytes", length=0)
    change("length_huge", "a manifest of 2^32 - 1 bytes", length=2**32 - 1)
    change("tail", "a byte after the data of the last tensor", "warn", tail=b"\0")
    change("tail_long", "1000 bytes after the data of the last tensor", "warn", tail=b"\1" * 1000)
    change("padding_ff", "padding that is not zero", "warn", pad=255)
    change("inside", "bytes after the CBOR, within the declared length", "warn", inside=b"\0\0\0")
    for n in (3, 4, 9, 10, 60):
        s.bad(f"cut_{n}.bpk", ok[:n], "reject", f"truncated after {n} bytes")
    s.bad("cut_last.bpk", ok[:-1], "reject", "the last byte is missing")
    s.bad("cut_data.bpk", ok[:256], "reject", "there are no data")
    s.bad("empty_cut.bpk", Pack([]).bytes()[:-1], "reject", "a pack of nothing, truncated in the "
                                                            "padding")
    one = Pack([tensor("w", "u8", (600,))])
    whole, n = one.bytes(), len(enc(one.document()))
    s.bad("cut_to_legacy.bpk", whole[:10 + n + 600], "warn",
          "truncated to the size without padding")
    s.bad("cut_between.bpk", whole[:10 + n + 601], "reject", "truncated to a size that no writer "
                                                             "produces")


def bad_roots(s):
    def root(name, why, document, expect="reject", tensors=()):
        s.bad(f"root_{name}.bpk", Pack(list(tensors)).bytes(document), expect, why)

    good = Pack(few()).document()
    root("list", "the manifest is a list", [])
    root("empty", "no tensors", {})
    root("number_key", "a number as a key", {"tensors": {}, 1: 2})
    root("tensors_list", "tensors are a list", {"tensors": []})
    root("tensors_null", "tensors are null", {"tensors": None})
    root("tensors_twice", "tensors twice", Map([("tensors", {}), ("tensors", {})]))
    root("metadata_twice", "metadata twice",
         Map([("tensors", {}), ("metadata", {}), ("metadata", {})]))
    root("scalars_twice", "scalars twice", Map([("tensors", {}), ("scalars", {}), ("scalars", {})]))
    root("metadata_list", "metadata are a list", {"tensors": {}, "metadata": ["a"]})
    root("metadata_number", "a number as metadata", {"tensors": {}, "metadata": {"a": 5}})
    root("metadata_map", "a map as metadata", {"tensors": {}, "metadata": {"a": {}}})
    root("metadata_number_key", "metadata under a number", {"tensors": {}, "metadata": {1: "a"}})
    root("metadata_key_twice", "a metadata key twice",
         {**good, "metadata": Map([("k", "1"), ("l", ""), ("k", "2")])}, "warn", few())

    def tensor_name(name, why, key):
        """The tensor 'a' has `key` as a name; the record must be long enough to be counted."""
        tensors = Map([(key, good["tensors"]["a"])])
        root(f"name_{name}", why, {"tensors": tensors}, tensors=few()[:1])

    tensor_name("number", "a tensor under a number", 1)
    tensor_name("bytes", "a tensor under bytes", b"a")
    tensor_name("not_utf8", "a name that is not UTF-8", Raw(b"\x61\xff"))
    tensor_name("surrogate", "a surrogate in a name", Raw(b"\x63\xed\xa0\x80"))
    tensor_name("split", "a character split over two chunks", Raw(b"\x7f\x61\xc3\x61\xa9\xff"))
    root("name_twice", "a name twice",
         {"tensors": Map([*good["tensors"].items(), ("a", good["tensors"]["a"])])}, tensors=few())
    root("count_huge", "2^64 - 1 tensors", {"tensors": Raw(b"\xbb" + b"\xff" * 8)})
    root("count_large", "2^20 tensors, without their bytes",
         {"tensors": Raw(b"\xba\x00\x10\x00\x00" + bytes(9))})
    root("depth_129", "one level more than Burn reads",
         {**good, "deep": Raw(b"\x81" * 127 + b"\x80")}, tensors=few())
    root("depth_tags", "100000 tags", {"a": Raw(b"\xc1" * 100000 + b"\0")})
    root("depth_arrays", "100000 lists", {"a": Raw(b"\x81" * 100000)})
    root("break", "a stray break", {"a": Raw(b"\xff")})
    root("odd_map", "a map that ends after a key", {"tensors": Raw(b"\xbf\x61a\xff")})
    root("reserved", "a reserved head", {"a": Raw(b"\x1c")})
    root("simple", "a simple value in two bytes", {"a": Raw(b"\xf8\x14")})
    root("text_cut", "a text longer than the manifest", {"a": Raw(b"\x7a\xff\xff\xff\xff")})


def bad_scalars(s):
    def scalar(name, why, value, expect="warn"):
        s.bad(f"scalar_{name}.bpk",
              Pack(few()).bytes({**Pack(few()).document(), "scalars": value}), expect, why)

    scalar("null", "null for the scalars", None)
    scalar("list", "a list for the scalars", [1])
    scalar("unknown", "a scalar of an unknown kind",
           {"a": {"Int": 1}, "b": {"Text": "x"}, "c": {"Bool": True}})
    scalar("bare", "a number instead of a scalar", {"a": 1})
    scalar("two", "a scalar of two kinds", {"a": {"Int": 1, "UInt": 1}})
    scalar("of_list", "a list as a number", {"a": {"Int": [1, [2]]}})
    scalar("list_key", "a list as a kind", {"a": Map([(Raw(b"\x81\x01"), 1)])})
    scalar("too_large", "an Int of 2^63", {"a": {"Int": 2**63}})
    scalar("too_small", "an Int of -2^63 - 1", {"a": {"Int": -2**63 - 1}})
    scalar("negative", "a UInt of -1", {"a": {"UInt": -1}})
    scalar("float_int", "a Float of 1", {"a": {"Float": 1}})
    scalar("twice", "a scalar twice", Map([("a", {"Int": 1}), ("b", {"Int": 3}),
                                           ("a", {"Int": 2})]))
    scalar("number_key", "a scalar under a number", {1: {"Int": 1}}, "reject")
    scalar("broken", "a scalar that is not well formed", {"a": {"Int": Raw(b"\x1c")}}, "reject")


def bad_descriptors(s):
    def field(name, why, expect="reject", drop=None, **change):
        p = Pack(few())
        d = p.descriptors["a"]
        d.update(change)
        if drop:
            del d[drop]
        s.bad(f"field_{name}.bpk", p.bytes(), expect, why)

    for key in ("dtype", "shape", "data_offsets"):
        field(f"no_{key}", f"no {key}", drop=key)
        p = Pack(few())
        p.descriptors["a"] = {
            open_ended(k) if k == key else k: v for k, v in p.descriptors["a"].items()
        }
        s.bad(f"field_{key}_in_chunks.bpk", p.bytes(), "warn",
              f"the name {key} of indefinite length", rule="burnpack/indefinite-name")
    for key, shape, data in (("dtype", (0,), b""), ("shape", (), b"x"),
                             ("data_offsets", (0,), b"")):
        p = Pack([("a", "u8", shape, data)])
        del p.descriptors["a"][key]
        s.bad(f"field_only_no_{key}.bpk", p.bytes(), "reject",
              f"no {key} of a tensor that would have the right size without it")
    p = Pack(few())
    p.descriptors["a"]["dtype"] = open_ended(p.descriptors["a"]["dtype"])
    s.bad("field_type_in_chunks.bpk", p.bytes(), "warn", "a type's name of indefinite length",
          rule="burnpack/indefinite-name")
    s.bad("root_key_in_chunks.bpk",
          Pack(few()).bytes({open_ended(k): v for k, v in Pack(few()).document().items()}), "warn",
          "names of the root of indefinite length", rule="burnpack/indefinite-name")
    s.bad("rank_65.bpk",
          Pack([("a", "u8", (1,) * 65, b"x")]).bytes(), "warn", "65 dimensions",
          rule="burnpack/rank")
    s.bad("rank_64.bpk",
          Pack([("a", "u8", (1,) * 64, b"x")]).bytes(), "accept", "64 dimensions",
          without="burnpack/rank")
    field("dtype_unknown", "an unknown element type", dtype="F128")
    field("dtype_small", "an element type in small letters", dtype="i64")
    field("dtype_number", "a number as an element type", dtype=1)
    field("dtype_null", "null as an element type", dtype=None)
    field("dtype_map", "a plain element type as a map", dtype={"I64": None})
    field("dtype_empty", "an empty map as an element type", dtype={})
    field("dtype_two", "a map of two as an element type", dtype={"Bool": "Native", "QFloat": {}})
    field("dtype_open", "a map of indefinite length as an element type",
          dtype=Raw(b"\xbf\x64Bool\x66Native\xff"))
    field("dtype_number_key", "an element type under a number", dtype={1: "Native"})
    field("bool_unknown", "a Bool of U64", dtype={"Bool": "U64"})
    field("bool_null", "a Bool of null", dtype={"Bool": None})
    field("bool_bytes", "a Bool of bytes", dtype={"Bool": b"U8"})
    field("qfloat_broken", "a scheme that is not well formed", dtype={"QFloat": Raw(b"\xfc")})
    field("shape_text", "a text as a shape", shape="4")
    field("shape_null", "null as a shape", shape=None)
    field("shape_negative", "a negative dimension", shape=[-4])
    field("shape_float", "a dimension that is not an integer", shape=[4.0])
    field("shape_of_text", "a dimension in quotes", shape=["4"])
    field("shape_bignum_large", "a dimension of 2^64", shape=[tag(2, b"\1" + bytes(8))])
    field("shape_bignum", "a dimension as a bignum", "warn", shape=[tag(2, b"\0\4")])
    field("shape_bytes", "bytes as a shape", "warn", shape=b"\2\2")
    field("shape_rank", "65536 dimensions", "refuse", shape=[1] * 65536)
    field("shape_small", "fewer bytes than the shape needs", shape=[5])
    field("shape_large", "more bytes than the shape needs", shape=[3])
    field("shape_wraps", "a product that overflows to the correct size", shape=[2**62, 2, 2, 4])
    field("shape_wraps_0", "a product that overflows to 0", shape=[2**32, 2**32])
    field("bytes_wrap", "a size that overflows", shape=[2**61])
    field("offsets_one", "one offset", data_offsets=[0])
    field("offsets_three", "three offsets", data_offsets=[0, 32, 32])
    field("offsets_map", "offsets as a map", data_offsets={0: 32})
    field("offsets_text", "offsets as texts", data_offsets=["0", "32"])
    field("offsets_negative", "a negative offset", data_offsets=[-32, 0])
    field("offsets_reversed", "the end before the begin", data_offsets=[288, 256])
    field("offsets_far", "data past the end of the file", data_offsets=[2**40, 2**40 + 32])
    field("offsets_wrap", "an end of the data that overflows", data_offsets=[2**64 - 32, 2**64 - 1])
    field("offsets_bignum", "an offset as a bignum", "warn", data_offsets=[tag(2, b"\1\0"), 288])
    field("param_id_negative", "a negative id", param_id=-1)
    field("param_id_text", "a text as an id", param_id="5")
    field("param_id_bignum", "an id as a bignum", "warn", param_id=tag(2, b"\1\0"))
    field("param_id_large", "an id of 2^64", param_id=tag(2, b"\1" + bytes(8)))
    field("param_id_list", "a list as an id", param_id=[5])
    for key, value in (("dtype", "I64"), ("shape", [4]), ("data_offsets", [256,
                                                                           288]), ("param_id", 1)):
        p = Pack(few(), ids={"a": 1})
        p.descriptors["a"] = Map([*p.descriptors["a"].items(), (key, value)])
        s.bad(f"field_{key}_twice.bpk", p.bytes(), "reject", f"{key} twice")
    for name, raw in (("list", b"\x80"), ("text", b"\x61a"), ("null", b"\xf6")):
        p = Pack(few())
        p.descriptors["a"] = Raw(raw)
        document = {**p.document(), "metadata": {"padding": "x" * 64}}  # else 3 records do not fit
        s.bad(f"descriptor_{name}.bpk", p.bytes(document), "reject", f"a {name} as a descriptor")
    p = Pack(few())
    p.descriptors["a"] = Map([(1, 2), *p.descriptors["a"].items()])
    s.bad("descriptor_number_key.bpk", p.bytes(), "reject", "a number as a key of a descriptor")


def bad_places(s):
    def places(name, why, expect, **offsets):
        p = Pack(few())
        for key, place in offsets.items():
            p.descriptors[key]["data_offsets"] = list(place)
        s.bad(f"place_{name}.bpk", p.bytes(), expect, why)

    places("misaligned", "data at an offset that is not a multiple of 256", "warn", a=(260, 292))
    places("overlap", "data that overlap", "reject", a=(8, 40))
    p = Pack([tensor("a", "u8", (24,)), tensor("b", "f32", (6,))])
    p.descriptors["b"]["data_offsets"] = [0, 24]
    p.tensors.pop()
    s.bad("place_shared.bpk", p.bytes(), "warn", "two tensors with the same data")
    p = Pack([tensor("a", "bool", (3,))])
    p.tensors = [("a", "bool", (3,), b"\0\1\2")]
    s.bad("bool_2.bpk", p.bytes(), "warn", "a boolean of 2")
    nul = Pack([tensor("a\0b", "u8", (3,))])
    s.bad("name_nul.bpk", nul.bytes(), "warn", "a NUL in a name")
    gap = Pack([tensor("a", "u8", (3,)), tensor("b", "u8", (3,))])
    data = bytearray(gap.bytes())
    data[-4] = 1
    s.bad("gap_not_zero.bpk", bytes(data), "warn", "a byte between two tensors that is not zero")


def main():
    s = Samples(sys.argv[1], "burnpack")
    for write in (good_dialects, good_quantized, good_shapes, good_names, good_metadata,
                  good_orders, good_spellings, good_legacy, odd_quantized, bad_headers, bad_roots,
                  bad_scalars, bad_descriptors, bad_places):
        write(s)


if __name__ == "__main__":
    main()
