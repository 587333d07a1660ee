#!/usr/bin/env python3
"""gen_onnx.py ROOT: write ONNX models to ROOT/onnx, without Heft and without ONNX's library."""
import hashlib
import struct
import sys

from onnx_proto import content, number, tensor as proto, varint
from samples import Samples, describe, tensor

# element type: (number in ONNX, field for numbers, struct of a fixed number or None)
TYPES = {
    "f32": (1, 4, "f"), "u8": (2, 5, None), "i8": (3, 5, None), "u16": (4, 5, None),
    "i16": (5, 5, None), "i32": (6, 5, None), "i64": (7, 7, None), "bool": (9, 5, None),
    "f16": (10, 5, None), "f64": (11, 10, "d"), "u32": (12, 11, None), "u64": (13, 11, None),
    "bf16": (16, 5, None),
}
ODD = {"c64": (14, 8), "c128": (15, 16), "f8_e4m3fn": (17, 1), "f8_e4m3fnuz": (18, 1),
       "f8_e5m2": (19, 1), "f8_e5m2fnuz": (20, 1), "f8_e8m0": (24, 1)}
CODES = {1: "bB", 2: "hH", 4: "iI", 8: "qQ"}
FLOAT, INT64, STRING = 1, 7, 8


# ---- ONNX's messages --------------------------------------------------------------------------

def raw(t):
    return proto(t[0], TYPES[t[1]][0], t[2], content(9, t[3]))


def values(t):
    """The elements as integers: halves are their bits, and signed types have a sign."""
    size = {"bool": 1, "f16": 2, "bf16": 2}.get(t[1]) or int(t[1][1:]) // 8
    code = CODES[size][t[1][0] != "i"]
    return struct.unpack(f"<{len(t[3]) // size}{code}", t[3])


def packed(t, field=None):
    """The elements in one record of numbers."""
    _, own, code = TYPES[t[1]]
    data = t[3] if code else b"".join(varint(v) for v in values(t))
    return content(field or own, data)


def apart(t):
    """The elements as a record each."""
    _, field, code = TYPES[t[1]]
    if code:
        wire, size = (5, 4) if code == "f" else (1, 8)
        return b"".join(varint(field << 3 | wire) + t[3][i:i + size]
                        for i in range(0, len(t[3]), size))
    return b"".join(number(field, v) for v in values(t))


def numbers(t, data):
    return proto(t[0], TYPES[t[1]][0], t[2], data)


def node(kind, outputs, attributes=(), name="", domain="", inputs=()):
    return (b"".join(content(1, i) for i in inputs) + b"".join(content(2, o) for o in outputs) +
            content(3, name) + content(4, kind) + b"".join(content(5, a) for a in attributes) +
            content(7, domain))


def attribute(name, body):
    return content(1, name) + body


def graph(initializers=(), nodes=(), rest=b""):
    return (b"".join(content(1, n) for n in nodes) + content(2, "g") +
            b"".join(content(5, i) for i in initializers) + rest)


def model(body, rest=b""):
    opset = content(8, content(1, "") + number(2, 21)) + content(8, content(1, "my.ops") +
                                                                number(2, 3))
    return (number(1, 10) + content(2, "gen") + content(3, "1.5") + content(7, body) + opset +
            rest)


def external(t, *entries):
    """A TensorProto whose elements are in a file."""
    data = b"".join(content(13, content(1, k) + content(2, v)) for k, v in entries)
    return proto(t[0], TYPES[t[1]][0], t[2], data + number(14, 1))


def sparse(values_of, indices, shape):
    return (content(1, values_of) + content(2, indices) + b"".join(number(3, d) for d in shape))


# ---- good -------------------------------------------------------------------------------------

def good_types(s):
    listed = [tensor(f"{dtype}.{i}", dtype, shape) for dtype in TYPES
              for i, shape in enumerate(((3, 5), (), (0,), (2, 0, 3), (1,), (40, 30)))]
    s.good("raw.onnx", model(graph(raw(t) for t in listed)), listed)
    s.good("packed.onnx", model(graph(numbers(t, packed(t)) for t in listed)), listed)
    s.good("apart.onnx", model(graph(numbers(t, apart(t)) for t in listed)), listed)
    a, b = tensor("a", "i64", (6,)), tensor("b", "f32", (6,))
    for name, t, size in (("i64", a, None), ("f32", b, 4)):
        first, second = ((t[0], t[1], (3,), t[3][:len(t[3]) // 2]),
                         (t[0], t[1], (3,), t[3][len(t[3]) // 2:]))
        s.good(f"mixed_{name}.onnx",
               model(graph([numbers(t, packed(first) + number(99, 5) + content(98, "other") +
                                    apart(second))])), [t])
    odd = [(k, k, (2, 3), bytes(range(6 * size))) for k, (_, size) in ODD.items()]
    odd.append(("f4", "f4_e2m1", (3, 3), bytes([0x21, 0x43, 0x65, 0x87, 0x09])))
    s.good("odd.onnx", model(graph(
        proto(t[0], ODD[t[1]][0] if t[1] in ODD else 23, t[2], content(9, t[3])) for t in odd)),
        odd)
    data = struct.pack("<4f", 1, 2, 3, 4)
    s.good("complex.onnx", model(graph([proto("c", 14, (2,), content(4, data))])),
           [("c", "c64", (2,), data)])


def good_packed_types(s):
    """Elements of 2 and 4 bits: the tensor is listed by bytes."""
    listed, protos = [], []
    for name, kind, shape, size in (("u4", 21, (3, 4), 6), ("i4", 22, (3, 3), 5),
                                    ("u2", 25, (5,), 2), ("i2", 26, (), 1)):
        data = bytes(range(0x10, 0x10 + size))
        rank = len(shape)
        listed.append((name, "u8", (1,) * (rank - 1) + (size,) if rank else (), data))
        protos.append(proto(name, kind, shape, content(9, data)))
        ints = b"".join(varint(v) for v in data)
        listed.append((name + "n", *listed[-1][1:]))
        protos.append(proto(name + "n", kind, shape, content(5, ints)))
    s.good("subbyte.onnx", model(graph(protos)), listed)


def good_places(s):
    w = [tensor(n, "f32", (2, 3), i) for i, n in enumerate(
        ("w", "c", "add/alpha", "if/then_branch/k", "if/else_branch/k", "loop/bodies/0/k",
         "loop/bodies/1/k", "f/d", "my.ops.g/d", "my.ops.g.v2/d", "training/0/initialization/t",
         "list/parts/0", "list/parts/1", "f/beta"))]
    by_name = {t[0]: t for t in w}

    def at(name, own=""):
        return raw((own, *by_name[name][1:]))

    nodes = [
        node("Constant", ["c"], [attribute("value", content(5, at("c", "ignored")))]),
        node("Mystery", ["add"], [attribute("alpha", content(5, at("add/alpha")))], "a node"),
        node("If", ["if"], [
            attribute("then_branch", content(6, graph([at("if/then_branch/k", "k")]))),
            attribute("else_branch", content(6, graph([at("if/else_branch/k", "k")])))]),
        node("Many", [], [attribute("bodies", content(11, graph([at("loop/bodies/0/k", "k")])) +
                                    content(11, graph([at("loop/bodies/1/k", "k")])))], "loop"),
        node("List", ["list"], [attribute("parts", content(10, at("list/parts/0")) +
                                          content(10, at("list/parts/1")))]),
        node("Add", ["y"], [attribute("axis", number(3, 1)), attribute("text", content(4, "no"))])]
    functions = [
        content(1, "f") + content(7, node("Constant", ["d"], [
            attribute("value", content(5, at("f/d")))])) + content(
                11, attribute("beta", content(5, at("f/beta")))),
        content(1, "g") + content(7, node("Constant", ["d"], [
            attribute("value", content(5, at("my.ops.g/d")))])) + content(10, "my.ops"),
        content(1, "g") + content(7, node("Constant", ["d"], [
            attribute("value", content(5, at("my.ops.g.v2/d")))])) + content(10, "my.ops") +
        content(13, "v2")]
    training = content(20, content(1, graph([at("training/0/initialization/t", "t")])))
    rest = b"".join(content(25, f) for f in functions) + training
    rest += content(14, content(1, "author") + content(2, "me"))
    s.good("places.onnx", model(graph([at("w", "w")], nodes), rest), w,
           metadata=[{"key": "onnx.producer_name", "value": "gen"},
                     {"key": "onnx.producer_version", "value": "1.5"},
                     {"key": "author", "value": "me"},
                     *({"key": "onnx." + k, "bits": format(v, "016x")}
                       for k, v in (("ir_version", 10), ("opset.ai.onnx", 21), ("opset.my.ops", 3),
                                    ("nodes", 9), ("functions", 3), ("inputs", 0),
                                    ("outputs", 0)))])


def good_constants(s):
    listed = [("floats", "f32", (3,), struct.pack("<3f", 1, 2, -3)),
              ("packed", "f32", (3,), struct.pack("<3f", 1, 2, -3)),
              ("ints", "i64", (3,), struct.pack("<3q", 1, -1, 2**62)),
              ("intsp", "i64", (3,), struct.pack("<3q", 1, -1, 2**62)),
              ("float", "f32", (), struct.pack("<f", 0.5)),
              ("int", "i64", (), struct.pack("<q", -7)), ("w", "f32", (1,), bytes(4))]
    floats = b"".join(varint(7 << 3 | 5) + struct.pack("<f", v) for v in (1, 2, -3))
    ints = (1, -1, 2**62)
    bodies = {"floats": floats, "packed": content(7, struct.pack("<3f", 1, 2, -3)),
              "ints": b"".join(number(8, v) for v in ints),
              "intsp": content(8, b"".join(varint(v) for v in ints)),
              "float": varint(2 << 3 | 5) + struct.pack("<f", 0.5), "int": number(3, -7)}
    nodes = [node("Constant", [k], [attribute("value_" + k, v)]) for k, v in bodies.items()]
    s.good("constants.onnx", model(graph([raw(listed[-1])], nodes)), listed)


def good_sparse(s):
    facts = []
    data, index = struct.pack("<3f", 1, 2, 3), struct.pack("<3q", 0, 4, 6)
    pairs = struct.pack("<6q", 0, 1, 1, 0, 1, 2)
    made = []
    for name, shape, layout, rank, coords in (("vector", (7,), "sparse_coo", 1, index),
                                              ("pairs", (2, 3), "onnx_coordinates", 2, pairs),
                                              ("places", (2, 4), "onnx_positions", 1, index)):
        dims = (3,) if rank == 1 else (3, 2)
        made.append(content(15, sparse(proto(name, FLOAT, (3,), content(9, data)),
                                       proto("", INT64, dims, content(9, coords)), shape)))
        facts.append({"name": name, "dtype": "f32", "shape": list(shape), "layout": layout,
                      "parts": {role: {"nbytes": len(d), "sha256": hashlib.sha256(d).hexdigest()}
                                for role, d in (("values", data), ("coords", coords))}})
    w = tensor("w", "f32", (2,))
    s.write("good", "sparse.onnx", model(graph([raw(w)], (), b"".join(made))),
            {"format": "onnx", "tensors": [*facts, describe(*w)]})


def good_models(s):
    w = tensor("w", "f32", (2, 2))
    s.good("empty.onnx", model(graph()), [])
    many = [tensor(f"layers.{i}.w", "f32", (i % 5,)) for i in range(900)]
    s.good("many.onnx", model(graph(map(raw, many))), many)
    text = proto("t", STRING, (2,), content(6, "a") + content(6, "b"))
    s.good("texts.onnx", model(graph([raw(w), text])), [w])
    new = proto("new", 77, (2,), content(9, b"1234"))
    s.good("new_type.onnx", model(graph([raw(w), new])), [w])
    s.good("no_names.onnx", number(1, 3) + content(7, graph([raw(w)])), [w])


# ---- bad --------------------------------------------------------------------------------------

def bad_tensors(s):
    w = tensor("w", "f32", (2, 2))
    kind = FLOAT
    cases = {
        "short": (proto("w", kind, (2, 2), content(9, w[3][:-1])), "less data than the shape has"),
        "long": (proto("w", kind, (2, 2), content(9, w[3] + b"x")), "more data"),
        "none": (proto("w", kind, (2, 2), b""), "no data"),
        "negative": (proto("w", kind, (-2, 2), content(9, w[3])), "a negative dimension"),
        "vast": (proto("w", kind, (2**62, 2**62), content(9, w[3])), "2^124 elements"),
        "two_fields": (proto("w", kind, (2, 2), content(9, w[3]) + packed(w)), "data twice"),
        "raw_twice": (proto("w", kind, (2, 2), content(9, w[3]) * 2), "raw data twice"),
        "other_field": (proto("w", kind, (2, 2), content(7, w[3])), "integers for floats"),
        "few_ints": (proto("w", INT64, (4,), content(7, b"\1\2\3")), "too few integers"),
        "many_ints": (proto("w", INT64, (2,), content(7, b"\1\2\3")), "too many integers"),
        "big_int": (proto("w", 3, (1,), content(5, varint(300))), "an integer beyond its type"),
        "cut_int": (proto("w", INT64, (1,), content(7, b"\xff")), "an integer that is cut"),
        "wide_int": (proto("w", INT64, (1,), content(7, b"\xff" * 10 + b"\1")), "71 bits"),
        "wire": (proto("w", INT64, (1,), varint(7 << 3 | 5) + bytes(4)), "a fixed integer"),
        "name_latin1": (proto(b"w\xe9", kind, (2, 2), content(9, w[3])), "a name not in UTF-8"),
        "name_number": (number(8, 5) + proto("w", kind, (2, 2), content(9, w[3])),
                        "a name that is a number"),
    }
    for name, (t, why) in cases.items():
        s.bad(f"{name}.onnx", model(graph([t])), "reject", why)
    segment = proto("w", kind, (2, 2), content(3, number(1, 0)) + content(9, w[3]))
    s.bad("segment.onnx", model(graph([segment])), "refuse", "a segment")
    s.bad("twice.onnx", model(graph([raw(w), raw(w)])), "reject", "two tensors with a name")


def bad_external(s):
    w = tensor("w", "f32", (2, 2))
    place = ("location", "w.bin")
    cases = {
        "missing": ([place], "a file that is missing"),
        "nowhere": ([("offset", "0")], "no location"),
        "up": ([("location", "../w.bin")], "a file outside of the folder"),
        "root": ([("location", "/etc/passwd")], "a file with an absolute path"),
        "memory": ([("location", "*/_ORT_MEM_ADDR_/*")], "an address of memory"),
        "up_inside": ([("location", "a/../../w.bin")], "a path that leaves a folder"),
        "dot": ([("location", "a/./w.bin")], "a path with a dot"),
        "double": ([("location", "a//w.bin")], "a path with two slashes"),
        "backslash": ([("location", "a\\w.bin")], "a path with a backslash"),
        "drive": ([("location", "C:/w.bin")], "a path with a drive"),
        "deep": ([("location", "a/" * 8 + "w.bin")], "a path of eight folders"),
        "folder": ([("location", "a/w.bin")], "a file in a folder, both missing"),
        "end": ([("location", "a/")], "a folder"),
        "offset_text": ([place, ("offset", "two")], "an offset that is a text"),
        "offset_sign": ([place, ("offset", "-4")], "a negative offset"),
        "offset_vast": ([place, ("offset", str(2**44 + 8))], "an offset of 16 TiB"),
        "length": ([place, ("length", "15")], "a length that the shape does not have"),
        "length_vast": ([place, ("length", "9" * 30)], "a length beyond 64 bits"),
    }
    for name, (entries, why) in cases.items():
        s.bad(f"external_{name}.onnx", model(graph([external(w, *entries)])), "reject", why)


def bad_sparse(s):
    data, index = struct.pack("<3f", 1, 2, 3), struct.pack("<3q", 0, 4, 6)
    good, places = proto("w", FLOAT, (3,), content(9, data)), proto("", INT64, (3,),
                                                                    content(9, index))
    cases = {
        "counts": (sparse(good, proto("", INT64, (2,), content(9, index[:16])), (7,)),
                   "fewer indices than values"),
        "rank": (sparse(good, proto("", INT64, (3, 3), content(9, index * 3)), (2, 4)),
                 "coordinates of another rank"),
        "index_type": (sparse(good, proto("", 6, (3,), content(9, index[:12])), (7,)),
                       "indices of 32 bits"),
        "matrix": (sparse(proto("w", FLOAT, (1, 3), content(9, data)), places, (7,)),
                   "values that are a matrix"),
        "no_indices": (content(1, good) + number(3, 7), "no indices"),
        "no_values": (content(2, places) + number(3, 7), "no values"),
    }
    for name, (body, why) in cases.items():
        s.bad(f"sparse_{name}.onnx", model(graph((), (), content(15, body))), "reject", why)


def bad_messages(s):
    w = tensor("w", "f32", (2, 2))
    good = model(graph([raw(w)]))
    s.bad("no_graph.onnx", number(1, 7) + content(2, "pytorch"), "reject", "no graph")
    s.bad("cut.onnx", good[:40], "reject", "a truncated file")
    s.bad("group.onnx", good + b"\x9b\x06\x9c\x06", "reject", "a group")
    s.bad("field_0.onnx", good + b"\x00\x00", "reject", "a field with the number 0")
    s.bad("wire_7.onnx", good + b"\x0f", "reject", "a wire type that does not exist")
    s.bad("tag_wide.onnx", good + b"\xff" * 9 + b"\x7f", "reject", "a tag of more than 64 bits")
    s.bad("past.onnx", good + varint(7 << 3 | 2) + varint(1000) + b"x", "reject",
          "a message that is longer than the file")
    s.bad("property_twice.onnx", good + 2 * content(14, content(1, "k") + content(2, "v")),
          "reject", "two properties with a key")
    deep = graph([raw(w)])
    for _ in range(40):
        deep = graph((), [node("If", ["x"], [attribute("b", content(6, deep))])])
    s.bad("deep.onnx", model(deep), "reject", "graphs inside graphs, 40 times")
    name = "n" * 1000
    deep = graph([raw(w)])
    for _ in range(6):
        deep = graph((), [node("If", [name], [attribute("b", content(6, deep))])])
    s.bad("long_names.onnx", model(deep), "refuse", "names of 6,000 bytes on the way")


def main():
    s = Samples(sys.argv[1], "onnx")
    for make in (good_types, good_packed_types, good_places, good_constants, good_sparse,
                 good_models, bad_tensors, bad_external, bad_sparse, bad_messages):
        make(s)


if __name__ == "__main__":
    main()
