#!/usr/bin/env python3
"""gen_flax.py ROOT: write trees of Flax (flax.serialization.msgpack_serialize) to ROOT/flax.

The bytes are written without Heft and without a library for MessagePack: nested maps, with arrays
as extension 1, numbers of NumPy as extension 3, and complex numbers of Python as extension 2."""
import math
import struct
import sys

from gen_burnrecord import Ext, F32, Raw, pack
from samples import Samples, tensor

NAMES = {
    "f32": "float32", "f64": "float64", "f16": "float16", "bf16": "bfloat16", "i64": "int64",
    "i32": "int32", "i16": "int16", "i8": "int8", "u64": "uint64", "u32": "uint32", "u16": "uint16",
    "u8": "uint8", "bool": "bool"
}
ARRAY, COMPLEX, SCALAR = 1, 2, 3


# ---- Flax's structures ----

def payload(t, name=None):
    """The content of the extension for (name, dtype, shape, bytes)."""
    return pack([list(t[2]), name or NAMES[t[1]], t[3]])


def array(t, name=None):
    return Ext(ARRAY, payload(t, name))


def fixed(kind, data):
    """An extension of 1, 2, 4, 8 or 16 bytes, whose head has no length."""
    return Raw(bytes([0xD4 + len(data).bit_length() - 1, kind]) + data)


def tree(tensors, separator="/"):
    """Nest arrays by their names."""
    root = {}
    for t in tensors:
        *path, last = t[0].split(separator)
        at = root
        for key in path:
            at = at.setdefault(key, {})
        at[last] = array(t)
    return root


def dense(prefix, seed=1, dtype="f32"):
    return [tensor(f"{prefix}/kernel", dtype, (3, 4), seed),
            tensor(f"{prefix}/bias", dtype, (4,), seed)]


def bits(x):
    return format(
        struct.unpack("<Q", struct.pack("<d" if isinstance(x, float) else "<q", x))[0], "016x")


# ---- good -------------------------------------------------------------------------------------

def good_models(s):
    listed = dense("params/Dense_0") + dense("params/Dense_1", 2, "bf16")
    s.good("model.msgpack", pack(tree(listed)), listed)
    s.good("empty_wide.msgpack", b"\xde\0\0", [])
    s.bad("empty.msgpack", pack({}), "reject", "an empty tree, or the first byte of a pickle")
    many = [tensor(f"params/layers_{i}/w", "f32", (i % 4,)) for i in range(700)]
    s.good("many.msgpack", pack(tree(many)), many)
    large = tensor("params/embedding", "f32", (100, 200))
    s.good("bin32.msgpack", pack(tree([large])), [large])
    deep = tensor("d/" * 100 + "w", "f32", (1,))
    s.good("deep.msgpack", pack(tree([deep])), [deep])
    long = tensor("x" * 40 + "/" + "y" * 300 + "/w", "f32", (2,))
    s.good("long_keys.msgpack", pack(tree([long])), [long])
    nameless = [tensor("", "f32", (2,)), tensor("a/", "f32", (2,)), tensor("b//c", "f32", (1,))]
    s.good("empty_keys.msgpack", pack(tree(nameless)), nameless)
    late = dense("params/" + "module" * 12)
    s.good("late.msgpack", pack({"step": 7, **tree(late)}), late)


def good_types(s):
    listed = [tensor(f"{dtype}/{i}", dtype, shape) for dtype in NAMES
              for i, shape in enumerate(((3, 5), (), (0,), (2, 0, 3), (1,)))]
    s.good("types.msgpack", pack(tree(listed)), listed)
    for heft, name, size in (("f8_e4m3fn", "float8_e4m3fn", 1), ("f8_e5m2", "float8_e5m2", 1),
                             ("f8_e4m3fnuz", "float8_e4m3fnuz", 1),
                             ("f8_e5m2fnuz", "float8_e5m2fnuz", 1),
                             ("f8_e8m0", "float8_e8m0fnu", 1), ("c64", "complex64", 8),
                             ("c128", "complex128", 16)):
        t = ("w", heft, (2, 3), bytes(range(6 * size)))
        s.good(f"type_{heft}.msgpack", pack({"w": array(t, name)}), [t])
    t = tensor("w", "f32", (2, 2))
    as_bytes = Ext(ARRAY, pack([[2, 2], b"float32", t[3]]))
    s.good("type_as_bytes.msgpack", pack({"w": as_bytes}), [t])


def good_leaves(s):
    one, two = tensor("a", "f64", ()), ("b", "u8", (), b"\x7f")
    scalars = {"a": Ext(SCALAR, payload(one)), "b": fixed(SCALAR, small_number())}
    s.good("scalars.msgpack", pack(scalars), [one, two])
    w = tensor("params/w", "f32", (3,))
    values = {"step": 1000, "lr": 0.25, "half": F32(0.5), "done": True, "least": -2**63}
    facts = [{"key": k, "bits": bits(float(v) if isinstance(v, float) else v)}
             for k, v in values.items()]
    s.good("numbers.msgpack", pack({**tree([w]), **values, "opt": {"1": {"count": 3}},
                                    "name": "adam"}), [w],
           metadata=[*facts, {"key": "opt/1/count", "bits": bits(3)},
                     {"key": "name", "value": "adam"}])
    more = {"name": "adam", "none": None, "raw": b"\0\xff", "list": [1, 2], "mixed": [1, "x"],
            "nothing": {}, "opt": {"0": {}, "1": {"count": 3}}}
    s.good("state.msgpack", pack({**tree([w]), **values, **more}), [w])
    complex_number = Ext(COMPLEX, pack([1.5, -2.0]))
    s.good("complex.msgpack", pack({**tree([w]), "z": complex_number}), [w])
    haiku = tensor("mlp/~/linear_0/w", "f32", (2, 2))
    s.good("haiku.msgpack", pack({"mlp/~/linear_0": {"w": array(haiku)}}), [haiku])
    listed = [tensor("list/0", "f32", (2,)), tensor("list/1/x", "u8", (2,)),
              tensor("5", "f32", (1,)), tensor("-2", "f32", (1,))]
    s.good("lists.msgpack", pack({"list": [array(listed[0]), {"x": array(listed[1])}],
                                  5: array(listed[2]), -2: array(listed[3])}), listed)


def in_pieces(t, cuts, name=None, **changes):
    """An array as Flax stores one of more than 2^30 bytes, cut before the elements `cuts`."""
    size = len(t[3]) // (math.prod(t[2]) or 1)
    ends = [*cuts, math.prod(t[2])]
    cut = [("", t[1], (b - a,), t[3][a * size:b * size]) for a, b in zip([0, *ends], ends)]
    return {"__msgpack_chunked_array__": True,
            "shape": {str(i): d for i, d in enumerate(t[2])},
            "chunks": {str(i): array(c, name) for i, c in enumerate(cut)}, **changes}


def good_pieces(s):
    a, b = tensor("a", "f32", (5, 7)), tensor("params/b/kernel", "bf16", (3, 4, 5), 2)
    c, d = tensor("c", "u8", (9,)), tensor("d", "f64", (2, 2))
    s.good("pieces.msgpack", pack({"a": in_pieces(a, [1, 8, 30]), "c": array(c), "params": {
        "b": {"kernel": in_pieces(b, [16, 32, 48])}}, "d": in_pieces(d, [])}), [a, b, c, d])
    one = in_pieces(a, [20])
    s.good("pieces_as_tree.msgpack", pack({"x": {"y": one}, "step": 3}), [("x/y", *a[1:])])
    scalar = tensor("s", "i64", ())
    s.good("pieces_scalar.msgpack", pack({"s": in_pieces(scalar, [])}), [scalar])


def small_number():
    """A number of NumPy in an extension of 16 bytes: its texts have longer heads than needed."""
    return b"\x93" + pack([]) + b"\xda\x00\x05uint8" + \
        b"\xc6" + struct.pack(">I", 1) + b"\x7f"


# ---- bad --------------------------------------------------------------------------------------

def bad_arrays(s):
    w = tensor("w", "f32", (2, 2))
    cases = {
        "short": ([[2, 2], "float32", w[3][:-1]], "less data than the shape has"),
        "long": ([[2, 2], "float32", w[3] + b"x"], "more data than the shape has"),
        "members_two": ([[2, 2], "float32"], "an array without data"),
        "members_four": ([[2, 2], "float32", w[3], 1], "an array of four members"),
        "not_list": ({"shape": [2, 2]}, "an array that is a map"),
        "shape_number": ([4, "float32", w[3]], "a shape that is a number"),
        "shape_negative": ([[-2, 2], "float32", w[3]], "a negative dimension"),
        "shape_vast": ([[2**62, 2**62], "float32", w[3]], "a shape of 2^124 elements"),
        "shape_text": ([["2", 2], "float32", w[3]], "a dimension that is a text"),
        "type_number": ([[2, 2], 32, w[3]], "a type that is a number"),
        "type_latin1": ([[2, 2], b"float\xe9", w[3]], "a type that is not UTF-8"),
        "data_text": ([[2, 2], "float32", "text"], "data that are a text"),
    }
    for name, (content, why) in cases.items():
        s.bad(f"{name}.msgpack", pack({"w": Ext(ARRAY, pack(content))}), "reject", why)
    good = payload(w)
    s.bad("after.msgpack", pack({"w": Ext(ARRAY, good + b"\0")}), "reject",
          "an extension that is longer than its array")
    cut = pack({"w": Ext(ARRAY, good), "x": 1})
    cut = cut.replace(bytes([len(good), ARRAY]), bytes([len(good) - 1, ARRAY]))
    s.bad("before.msgpack", cut, "reject", "an extension that is shorter than its array")
    s.bad("scalar_rank.msgpack", pack({"w": Ext(SCALAR, good)}), "reject",
          "a number of NumPy with dimensions")
    s.bad("complex_one.msgpack", pack({"a": array(w), "z": Ext(COMPLEX, pack([1.5]))}), "reject",
          "a complex number of one part")
    s.bad("complex_text.msgpack", pack({"a": array(w), "z": Ext(COMPLEX, pack(["1", "2"]))}),
          "reject", "a complex number of texts")
    s.bad("complex_number.msgpack", pack({"a": array(w), "z": Ext(COMPLEX, pack(1.5))}), "reject",
          "a complex number that is not a list")
    longer = Ext(COMPLEX, pack([1.5, 2.0]) + b"x")
    s.bad("complex_after.msgpack", pack({"a": array(w), "z": longer}), "reject",
          "bytes after the parts of a complex number")
    s.bad("extension_4.msgpack", pack({"a": array(w), "z": Ext(4, b"abc")}), "reject",
          "an extension that Flax does not have")
    s.bad("extension_time.msgpack", pack({"a": array(w), "z": Ext(255, bytes(4))}), "reject",
          "MessagePack's time")


def bad_trees(s):
    w = tensor("w", "f32", (2, 2))
    file = pack(tree(dense("params/a")))
    s.bad("cut.msgpack", file[:-5], "reject", "a truncated file")
    s.bad("twice.msgpack", b"\x82" + 2 * (pack("w") + pack(array(w))), "reject",
          "two arrays with a name")
    s.bad("setting_twice.msgpack", b"\x83" + pack("w") + pack(array(w)) + 2 * (pack("n") + pack(1)),
          "reject", "two numbers with a name")
    s.bad("key_list.msgpack", b"\x82" + pack("w") + pack(array(w)) + b"\x90\x01", "reject",
          "a key that is a list")
    s.bad("key_latin1.msgpack", b"\x82" + pack("w") + pack(array(w)) + b"\xa1\xe9\x01", "reject",
          "a key that is not UTF-8")
    s.bad("byte_c1.msgpack", b"\x82" + pack("w") + pack(array(w)) + pack("x") + b"\xc1", "reject",
          "a byte that begins no item")
    s.bad("map_vast.msgpack", b"\xdf\0\xff\xff\xff" + pack("w") + pack(array(w)), "reject",
          "a map of 2^24 pairs")
    deep = 400 * (b"\x81" + pack("d")) + pack({"w": array(w)})
    s.bad("no_array.msgpack", pack({"step": 1, "params": {}}), "reject", "a tree without an array")
    s.bad("too_deep.msgpack", deep, "refuse", "a tree of 400 levels")
    s.bad("trailing.msgpack", pack(tree([w])) + b"more", "reject", "bytes after the tree")
    unknown = ("d", "u8", (2,), bytes(16))
    s.bad("type_unknown.msgpack", pack({**tree([w]), "d": array(unknown, "datetime64[ns]")}),
          "warn", "an array of a type that is no number", rule="flax/dtype")
    s.bad("name_path.msgpack", pack(tree([tensor("../../w", "f32", (1,))])), "warn",
          "a name that climbs out of a folder", rule="flax/name")
    rank = tensor("w", "f32", (1,) * 70)
    s.bad("rank.msgpack", pack(tree([rank])), "warn", "70 dimensions", rule="flax/rank")


def bad_pieces(s):
    a = tensor("a", "f32", (5, 7))
    good = in_pieces(a, [8, 30])
    chunks = good["chunks"]
    renamed = {str(i + 1): c for i, c in enumerate(chunks.values())}
    double = array(tensor("", "f64", (22,)))
    flat = Ext(ARRAY, payload(("", "f32", (2, 4), a[3][:32])))
    number = Ext(SCALAR, payload(("", "f32", (), a[3][:4])))
    cases = {
        "gap": ({**good, "chunks": {"0": chunks["0"], "1": chunks["1"]}}, "elements in no piece"),
        "more": ({**good, "shape": {"0": 5, "1": 6}}, "more elements than the shape has"),
        "shape_vast": ({**good, "shape": {"0": 2**40, "1": 2**40}}, "a shape of 2^80 elements"),
        "types": ({**good, "chunks": {**chunks, "1": double}}, "pieces of two types"),
        "rank": ({**good, "chunks": {**chunks, "0": flat}}, "a piece of two dimensions"),
        "scalar": ({**good, "chunks": {**chunks, "0": number}}, "a piece that is a number"),
        "number": ({**good, "chunks": {**chunks, "0": 5}}, "a piece that is no array"),
        "keys": ({**good, "chunks": renamed}, "pieces that count from 1"),
        "none": ({**good, "chunks": {}}, "no piece"),
        "list": ({**good, "chunks": list(chunks.values())}, "pieces in a list"),
        "no_shape": ({"__msgpack_chunked_array__": True, "chunks": chunks}, "no shape"),
        "other": ({"__msgpack_chunked_array__": True, "chunks": chunks, "shape": good["shape"]},
                  "pieces before the shape"),
        "negative": ({**good, "shape": {"0": -5, "1": 7}}, "a negative dimension"),
    }
    for name, (content, why) in cases.items():
        s.bad(f"pieces_{name}.msgpack", pack({"a": content}), "reject", f"in pieces: {why}")
    w = tensor("w", "f32", (2, 2))
    s.bad("pieces_unknown.msgpack",
          pack({"w": array(w), "d": in_pieces(("d", "u8", (4,), bytes(32)), [2],
                                              "datetime64[ns]")}),
          "warn", "an array in pieces of a type that is no number", rule="flax/dtype")


def main():
    s = Samples(sys.argv[1], "flax")
    good_models(s)
    good_types(s)
    good_leaves(s)
    good_pieces(s)
    bad_arrays(s)
    bad_trees(s)
    bad_pieces(s)


if __name__ == "__main__":
    main()
