#!/usr/bin/env python3
"""gen_safetensors.py ROOT: write .safetensors samples to ROOT/safetensors, without Heft.

Good samples: every element type, shapes, orders, metadata, spellings of the JSON. Bad samples: at
least one for each error of the parser, and accepted files outside the specification."""
import json
import random
import struct
import sys

from samples import Samples

# Heft's name, safetensors' name, bits
TYPES = [("bool", "BOOL", 8), ("f4_e2m1", "F4", 4), ("f6_e2m3", "F6_E2M3", 6),
         ("f6_e3m2", "F6_E3M2", 6), ("u8", "U8", 8), ("i8", "I8", 8), ("f8_e5m2", "F8_E5M2", 8),
         ("f8_e4m3fn", "F8_E4M3", 8), ("f8_e8m0", "F8_E8M0", 8), ("f8_e4m3fnuz", "F8_E4M3FNUZ", 8),
         ("f8_e5m2fnuz", "F8_E5M2FNUZ", 8), ("i16", "I16", 16), ("u16", "U16", 16),
         ("f16", "F16", 16), ("bf16", "BF16", 16), ("i32", "I32", 32), ("u32", "U32", 32),
         ("f32", "F32", 32), ("c64", "C64", 64), ("f64", "F64", 64), ("i64", "I64", 64),
         ("u64", "U64", 64)]
SPELLED = {name: (spelled, bits) for name, spelled, bits in TYPES}


def tensor(name, dtype, shape):
    count = 1
    for d in shape:
        count *= d
    size, left = divmod(count * SPELLED[dtype][1], 8)
    assert not left
    rng = random.Random(f"{name} {dtype}")
    data = rng.randbytes(size)
    if dtype == "bool":
        data = bytes(b & 1 for b in data)
    return name, dtype, tuple(shape), data


def entry(t, begin):
    return {
        "dtype": SPELLED[t[1]][0], "shape": list(t[2]), "data_offsets": [begin, begin + len(t[3])]
    }


def file_of(header, data, length=None):
    """Return a file; `header` is used unchanged, `length` replaces the first field."""
    raw = header.encode() if isinstance(header, str) else header
    return struct.pack("<Q", len(raw) if length is None else length) + raw + data


def compact(document):
    return json.dumps(document, separators=(",", ":"), ensure_ascii=False)


def pad(text, to=8):
    raw = text.encode()
    return raw + b" " * (-len(raw) % to)


def document_of(tensors, places=None, metadata=None):
    """Return (document, data); `places` lists the tensors in the order of their data."""
    begins, data = {}, b""
    for i in places or range(len(tensors)):
        begins[i] = len(data)
        data += tensors[i][3]
    document = {} if metadata is None else {"__metadata__": metadata}
    for i, t in enumerate(tensors):
        document[t[0]] = entry(t, begins[i])
    return document, data


def simple(tensors, **more):
    document, data = document_of(tensors, **more)
    return file_of(pad(compact(document)), data)


# ---- good -------------------------------------------------------------------------------------

def facts(metadata):
    return {"metadata": [{"key": k, "value": v} for k, v in metadata.items()]}


def good_types(s):
    every = [tensor(f"t.{name}", name, (3, 8)) for name, _, _ in TYPES]
    s.good("types.safetensors", simple(every), every)
    ones = [tensor(f"one {name}", name, (8 if bits < 8 else 1,)) for name, _, bits in TYPES]
    s.good("types_backwards.safetensors", simple(ones, places=list(reversed(range(len(ones))))),
           ones)


def good_shapes(s):
    shapes = [(), (1,), (0,), (2, 0, 3), (1,) * 40, (2,) * 10, (5, 1, 7)]
    tensors = [tensor(f"shape{i}", "f32", shape) for i, shape in enumerate(shapes)]
    s.good("shapes.safetensors", simple(tensors), tensors)
    empty = [tensor("none", "i64", (0,))]
    s.good("only_empty.safetensors", simple(empty), empty)
    mixed = [tensor("full", "u8", (5,)), tensor("a", "f32", (0, 9)), tensor("rest", "u8", (3,)),
             tensor("b", "u8", (0,))]
    for name, places in (("between", [0, 1, 2, 3]), ("at_front", [1, 3, 2,
                                                                  0]), ("at_end", [2, 0, 1, 3])):
        s.good(f"empty_{name}.safetensors", simple(mixed, places=places), mixed)


def good_orders(s):
    tensors = [tensor(f"layer.{i}.weight", "f16", (i + 1, 3)) for i in range(50)]
    rng = random.Random(7)
    places = list(range(50))
    rng.shuffle(places)
    s.good("shuffled.safetensors", simple(tensors, places=places), tensors)
    t = tensors[3]
    reordered = {t[0]: dict(reversed(entry(t, 0).items()))}
    s.good("fields_backwards.safetensors", file_of(pad(compact(reordered)), t[3]), [t])


def good_metadata(s):
    one = [tensor("w", "bf16", (2, 2))]
    plain = {"format": "pt", "": "empty key", "empty": "", "nested": '{"a": [1, "\\u00e9"]}',
             "text": "line\nbreak\t\"quoted\" back\\slash \u0001 \u00e9 \U0001f600 \u2028"}
    s.good("metadata.safetensors", simple(one, metadata=plain), one, **facts(plain))
    s.good("metadata_empty.safetensors", simple(one, metadata={}), one)
    null = {"__metadata__": None, **document_of(one)[0]}
    s.good("metadata_null.safetensors", file_of(pad(compact(null)), one[0][3]), one)
    last = {**document_of(one)[0], "__metadata__": plain}
    s.good("metadata_last.safetensors", file_of(pad(compact(last)), one[0][3]), one, **facts(plain))
    many = {f"key{i}": str(i) for i in range(3000)}
    s.good("metadata_many.safetensors", simple(one, metadata=many), one, **facts(many))


def good_names(s):
    names = [
        "plain", "with space", 'quote"d', "back\\slash", "new\nline", "tab\t",
        "\u00e9\u4e2d\U0001f600", "-dash", "\u007f\u0001", "nul\0", "a/b", "__metadata",
        "__metadata__x", "x" * 5000
    ]
    tensors = [tensor(n, "u8", (i + 1,)) for i, n in enumerate(names)]
    s.good("names.safetensors", simple(tensors), tensors)
    document, data = document_of(tensors)
    ascii_only = json.dumps(document, ensure_ascii=True)
    s.good("names_escaped.safetensors", file_of(pad(ascii_only), data), tensors)
    spread = json.dumps(document, ensure_ascii=False, indent=4).replace("    ", "\t \r\n")
    s.good("spread.safetensors", file_of(pad(spread), data), tensors)
    hard = pad(
        '{"\\u0061\\/\\ud83d\\ude00":{"\\u0064type":"U\\u0038","sh\\u0061pe":[2],'
        '"data_offsets":[0,2]}}'
    )
    s.good("keys_escaped.safetensors", file_of(hard, b"ab"), [("a/\U0001f600", "u8", (2,), b"ab")])


def numbers(name, dtype, shape, *values):
    _, dtype, shape, _ = tensor(name, dtype, shape)
    code = {"i64": "q", "f32": "f", "i32": "i"}[dtype]
    return name, dtype, shape, struct.pack(f"<{len(values)}{code}", *values)


def good_quantised(s):
    """The parts of quantised tensors, of each scheme that names and shapes tell."""
    state = json.dumps({"quant_type": "nf4", "blocksize": 64, "dtype": "bfloat16",
                        "shape": [8, 32]}).encode()
    tensors = [tensor(*row) for row in (
        ("blocks.weight", "f8_e4m3fn", (5, 40)), ("blocks.weight_scale_inv", "f32", (1, 1)),
        ("rows.weight", "f8_e5m2", (6, 32)), ("rows.weight_scale", "bf16", (6, 1)),
        ("mx8.weight", "f8_e4m3fn", (4, 64)), ("mx8.weight_scale", "u8", (4, 2)),
        ("gate_up_proj_blocks", "u8", (2, 4, 2, 16)), ("gate_up_proj_scales", "u8", (2, 4, 2)),
        ("ds.weight", "i8", (4, 16)), ("ds.scale", "f8_e8m0", (4, 1)),
        ("nv.weight", "u8", (4, 16)), ("nv.weight_scale", "f8_e4m3fn", (4, 2)),
        ("nv.weight_scale_2", "f32", ()),
        ("int.weight", "i8", (4, 8)), ("int.weight_scale", "bf16", (4, 1)),
        ("int.weight_zero_point", "i8", (4, 1)),
        ("pack.weight_packed", "i32", (8, 4)), ("pack.weight_scale", "bf16", (8, 2)),
        ("pack.weight_zero_point", "i32", (1, 2)),
        ("gptq.qweight", "i32", (4, 8)), ("gptq.qzeros", "i32", (2, 1)),
        ("gptq.scales", "f16", (2, 8)), ("gptq.g_idx", "i32", (32, )),
        ("awq.qweight", "i32", (32, 1)), ("awq.qzeros", "i32", (2, 1)),
        ("awq.scales", "f16", (2, 8)),
        ("nf4.weight", "u8", (128, 1)), ("nf4.weight.absmax", "f32", (4, )),
        ("nf4.weight.quant_map", "f32", (16, )), ("int8.weight", "i8", (4, 8)),
        ("int8.SCB", "f32", (4, )), ("bit.weight", "u8", (4, 8)),
        ("bit.weight_scale", "bf16", (1, )),
        ("mlx.weight", "u32", (4, 8)), ("mlx.scales", "u8", (4, 2)))]
    tensors.append(numbers("pack.weight_shape", "i64", (2, ), 8, 32))
    tensors.append(("nf4.weight.quant_state.bitsandbytes__nf4", "u8", (len(state), ), state))
    at = [t[0] for t in tensors].index("gptq.g_idx")
    tensors[at] = numbers("gptq.g_idx", "i32", (32, ), *([0, 1] * 16))
    s.good("quantised.safetensors", simple(tensors), tensors)


def good_headers(s):
    s.good("empty.safetensors", file_of("{}      ", b""), [])
    s.good("empty_unpadded.safetensors", file_of("{}", b""), [])
    one = [tensor("w", "f32", (3,))]
    document, data = document_of(one)
    s.good("odd_length.safetensors", file_of(compact(document) + " " * 3, data), one)
    s.good("padded_to_4096.safetensors", file_of(pad(compact(document), 4096), data), one)
    two = [tensor("u", "u8", (1,)), tensor("w", "f64", (3,))]
    s.good("unaligned.safetensors", simple(two), two)


# ---- bad --------------------------------------------------------------------------------------

F32 = '{"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}'
EIGHT = bytes(8)

# name, header, data, expect, why
HEADERS = [
    ("not_json", "{w}", b"", "reject", "a name without quotes"),
    ("truncated_json", F32[:-1], EIGHT, "reject", "the last brace is missing"),
    ("trailing_comma", F32[:-1] + ",}", EIGHT, "reject", "a comma before the brace"),
    ("trailing_text", F32 + "x", EIGHT, "reject", "text after the object"),
    ("trailing_object", F32 + "{}", EIGHT, "reject", "a second object"),
    ("trailing_nul", F32 + "\0\0", EIGHT, "reject", "padded with NUL"),
    ("array", "[]", b"", "reject", "a list instead of an object"),
    ("string", '"{}"', b"", "reject", "a text instead of an object"),
    ("blank", "        ", b"", "reject", "only spaces"),
    ("no_header", "", EIGHT, "reject", "a header of no bytes"),
    ("not_utf8_name", b'{"\xff":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}', b"x", "reject",
     "a name is not UTF-8"),
    ("surrogate_utf8", b'{"\xed\xa0\x80":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}', b"x",
     "reject", "a surrogate in UTF-8"),
    ("lone_surrogate", '{"\\ud800":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}', b"x",
     "reject", "an unpaired surrogate"),
    ("byte_order_mark", "\ufeff" + F32, EIGHT, "reject", "a byte order mark"),
    ("control_in_name", '{"a\nb":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}', b"x", "reject",
     "a raw line feed in a name"),
    ("deep",
     '{"w":{"x":' + "[" * 200 + "]" * 200 + ',"dtype":"U8","shape":[1],"data_offsets":[0,1]}}',
     b"x", "refuse", "nested deeper than readers go"),
    ("entry_number", '{"w":1}', b"", "reject", "an entry is a number"),
    ("entry_list", '{"w":["F32",[2],[0,8]]}', EIGHT, "reject", "an entry is a list"),
    ("entry_null", '{"w":null}', b"", "reject", "an entry is null"),
    ("entry_empty", '{"w":{}}', b"", "reject", "an entry without fields"),
    ("no_dtype", '{"w":{"shape":[2],"data_offsets":[0,8]}}', EIGHT, "reject", "dtype is missing"),
    ("no_shape", '{"w":{"dtype":"F32","data_offsets":[0,8]}}', EIGHT, "reject", "shape is missing"),
    ("no_offsets", '{"w":{"dtype":"F32","shape":[2]}}', EIGHT, "reject", "data_offsets is missing"),
    ("dtype_twice", '{"w":{"dtype":"F32","dtype":"F32","shape":[2],"data_offsets":[0,8]}}', EIGHT,
     "reject", "dtype twice"),
    ("shape_twice", '{"w":{"dtype":"F32","shape":[2],"shape":[2],"data_offsets":[0,8]}}', EIGHT,
     "reject", "shape twice"),
    ("offsets_twice", '{"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8],"data_offsets":[0,8]}}',
     EIGHT, "reject", "data_offsets twice"),
    ("dtype_unknown", '{"w":{"dtype":"F31","shape":[2],"data_offsets":[0,8]}}', EIGHT, "reject",
     "dtype F31"),
    ("dtype_lower", '{"w":{"dtype":"f32","shape":[2],"data_offsets":[0,8]}}', EIGHT, "reject",
     "dtype f32"),
    ("dtype_c128", '{"w":{"dtype":"C128","shape":[1],"data_offsets":[0,16]}}', bytes(16), "reject",
     "dtype C128"),
    ("dtype_number", '{"w":{"dtype":32,"shape":[2],"data_offsets":[0,8]}}', EIGHT, "reject",
     "dtype is a number"),
    ("shape_number", '{"w":{"dtype":"F32","shape":2,"data_offsets":[0,8]}}', EIGHT, "reject",
     "shape is a number"),
    ("shape_text", '{"w":{"dtype":"F32","shape":["2"],"data_offsets":[0,8]}}', EIGHT, "reject",
     "a dimension is text"),
    ("shape_nested", '{"w":{"dtype":"F32","shape":[[2]],"data_offsets":[0,8]}}', EIGHT, "reject",
     "a dimension is a list"),
    ("shape_negative", '{"w":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}}', EIGHT, "reject",
     "a negative dimension"),
    ("shape_minus_zero", '{"w":{"dtype":"F32","shape":[-0],"data_offsets":[0,0]}}', b"", "reject",
     "a dimension of -0"),
    ("shape_fraction", '{"w":{"dtype":"F32","shape":[2.0],"data_offsets":[0,8]}}', EIGHT, "reject",
     "a dimension with a fraction"),
    ("shape_exponent", '{"w":{"dtype":"F32","shape":[2e0],"data_offsets":[0,8]}}', EIGHT, "reject",
     "a dimension with an exponent"),
    ("shape_leading_zero", '{"w":{"dtype":"F32","shape":[02],"data_offsets":[0,8]}}', EIGHT,
     "reject", "a dimension with a leading zero"),
    ("shape_huge", '{"w":{"dtype":"U8","shape":[9223372036854775808,0],"data_offsets":[0,0]}}', b"",
     "reject", "a dimension of 2^63"),
    ("shape_last", '{"w":{"dtype":"U8","shape":[ 9223372036854775807,0],"data_offsets":[0,0]}}',
     b"", "accept", "a dimension of 2^63 - 1 after a space"),
    ("shape_over_64", '{"w":{"dtype":"U8","shape":[18446744073709551616],"data_offsets":[0,0]}}',
     b"", "reject", "a dimension of 2^64"),
    ("shape_overflow", '{"w":{"dtype":"U8","shape":[4294967296,4294967296],"data_offsets":[0,0]}}',
     b"", "reject", "2^64 elements"),
    ("shape_overflow_zero",
     '{"w":{"dtype":"U8","shape":[4294967296,4294967296,0],"data_offsets":[0,0]}}', b"", "reject",
     "2^64 elements times 0"),
    ("bytes_overflow", '{"w":{"dtype":"F64","shape":[2305843009213693952],"data_offsets":[0,0]}}',
     b"", "reject", "2^64 bytes"),
    ("offsets_one", '{"w":{"dtype":"F32","shape":[2],"data_offsets":[0]}}', EIGHT, "reject",
     "one offset"),
    ("offsets_three", '{"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8,8]}}', EIGHT, "reject",
     "three offsets"),
    ("offsets_fraction", '{"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8.5]}}', EIGHT,
     "reject", "an offset with a fraction"),
    ("offsets_object", '{"w":{"dtype":"F32","shape":[2],"data_offsets":{"begin":0,"end":8}}}',
     EIGHT, "reject", "offsets as an object"),
    ("offsets_text", '{"w":{"dtype":"F32","shape":[2],"data_offsets":["0","8"]}}', EIGHT, "reject",
     "offsets as text"),
    ("offsets_negative", '{"w":{"dtype":"F32","shape":[2],"data_offsets":[-8,0]}}', EIGHT, "reject",
     "a negative offset"),
    ("offsets_backwards", '{"w":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}}', EIGHT, "reject",
     "the end before the begin"),
    ("offsets_past_end", '{"w":{"dtype":"F32","shape":[4],"data_offsets":[0,16]}}', EIGHT, "reject",
     "data past the end of the file"),
    ("offsets_absolute", '{"w":{"dtype":"F32","shape":[2],"data_offsets":[63,71]}}', EIGHT,
     "reject", "offsets from the begin of the file"),
    ("size_differs", '{"w":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}}', EIGHT, "reject",
     "shape and offsets disagree"),
    ("size_half", '{"w":{"dtype":"F16","shape":[2],"data_offsets":[0,8]}}', EIGHT, "reject",
     "dtype and offsets disagree"),
    ("scalar_empty", '{"w":{"dtype":"F32","shape":[],"data_offsets":[0,0]}}', b"", "reject",
     "a scalar without bytes"),
    ("packed_f4", '{"w":{"dtype":"F4","shape":[3],"data_offsets":[0,2]}}', b"ab", "reject",
     "three F4 take a byte and a half"),
    ("packed_f6", '{"w":{"dtype":"F6_E2M3","shape":[6],"data_offsets":[0,5]}}', b"abcde", "reject",
     "six F6 take four bytes and a half"),
    ("gap_front", '{"w":{"dtype":"U8","shape":[6],"data_offsets":[2,8]}}', EIGHT, "reject",
     "two bytes before the first tensor"),
    ("gap_end", '{"w":{"dtype":"U8","shape":[6],"data_offsets":[0,6]}}', EIGHT, "reject",
     "two bytes after the last tensor"),
    ("gap_between",
     '{"v":{"dtype":"U8","shape":[3],"data_offsets":[0,3]},"w":{"dtype":"U8","shape":[4],'
     '"data_offsets":[4,8]}}',
     EIGHT, "reject", "a byte between two tensors"),
    ("overlap",
     '{"v":{"dtype":"U8","shape":[5],"data_offsets":[0,5]},"w":{"dtype":"U8","shape":[4],'
     '"data_offsets":[4,8]}}',
     EIGHT, "reject", "two tensors share a byte"),
    ("shared",
     '{"v":{"dtype":"U8","shape":[8],"data_offsets":[0,8]},"w":{"dtype":"U8","shape":[8],'
     '"data_offsets":[0,8]}}',
     EIGHT, "reject", "two tensors share all bytes"),
    ("overlap_unsorted",
     '{"v":{"dtype":"U8","shape":[4],"data_offsets":[4,8]},"w":{"dtype":"U8","shape":[5],'
     '"data_offsets":[0,5]}}',
     EIGHT, "reject", "two tensors share a byte, the later one first"),
    ("empty_inside",
     '{"v":{"dtype":"U8","shape":[8],"data_offsets":[0,8]},"w":{"dtype":"U8","shape":[0],'
     '"data_offsets":[3,3]}}',
     EIGHT, "reject", "a tensor without bytes inside another"),
    ("data_unnamed", "{}      ", EIGHT, "reject", "data and no tensors"),
    ("name_twice",
     '{"w":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"w":{"dtype":"U8","shape":[4],'
     '"data_offsets":[4,8]}}',
     EIGHT, "reject", "a name twice"),
    ("name_twice_escaped",
     '{"w":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"\\u0077":{"dtype":"U8","shape":[4],'
     '"data_offsets":[4,8]}}',
     EIGHT, "reject", "a name twice, once escaped"),
    ("metadata_number", '{"__metadata__":{"a":1}}', b"", "reject", "a number in __metadata__"),
    ("metadata_nested", '{"__metadata__":{"a":{"b":"c"}}}', b"", "reject",
     "an object in __metadata__"),
    ("metadata_null_value", '{"__metadata__":{"a":null}}', b"", "reject", "null in __metadata__"),
    ("metadata_list", '{"__metadata__":["a"]}', b"", "reject", "__metadata__ is a list"),
    ("metadata_text", '{"__metadata__":"a"}', b"", "reject", "__metadata__ is text"),
    ("metadata_twice", '{"__metadata__":{"a":"b"},"__metadata__":{"c":"d"}}', b"", "reject",
     "__metadata__ twice"),
    ("metadata_null_twice", '{"__metadata__":null,"__metadata__":{}}', b"", "reject",
     "__metadata__ twice, once null"),
    ("metadata_key_twice", '{"__metadata__":{"a":"b","c":"d","a":"b"}}', b"", "reject",
     "a metadata key twice"),
    ("metadata_tensor", '{"__metadata__":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}', EIGHT,
     "reject", "a tensor called __metadata__"),
    ("leading_space", "  " + F32, EIGHT, "warn", "spaces before the brace"),
    ("leading_newline", "\n" + F32, EIGHT, "warn", "a line feed before the brace"),
    ("padded_newline", F32 + "\n" * 2, EIGHT, "accept", "padded with line feeds"),
    ("unknown_field",
     '{"w":{"strides":[1],"dtype":"F32","x":{"a":[null,"b"]},"shape":[2],"data_offsets":[0,8]}}',
     EIGHT, "accept", "fields of other names"),
    ("unaligned_data", F32 + " ", EIGHT, "accept", "data at an odd offset"),
]


def bad_files(s):
    for name, header, data, expect, why in HEADERS:
        s.bad(f"{name}.safetensors", file_of(header, data), expect, why)
    whole = file_of(F32, EIGHT)
    for t in ("F8_E4M3FNUZ", "F8_E5M2FNUZ"):
        header = (b'{"a":{"dtype":"U8","shape":[8],"data_offsets":[0,8]},'
                  b'"b":{"dtype":"%s","shape":[8],"data_offsets":[8,16]}}')
        s.bad(f"{t.lower()}.safetensors", file_of(header % t.encode(), 2 * EIGHT), "accept",
              "an element type that older readers refuse", "safetensors/fnuz")
    s.bad("cut_in_data.safetensors", whole[:-1], "reject", "the last byte is missing")
    s.bad("cut_in_header.safetensors", whole[:40], "reject", "truncated within the header")
    s.bad("cut_behind_header.safetensors", whole[:-8], "reject", "truncated after the header")
    s.bad("one_more.safetensors", whole + b"\0", "reject", "a byte after the data")
    s.bad("length_only.safetensors", struct.pack("<Q", 2), "reject", "length only")
    s.bad("seven_bytes.safetensors", whole[:7], "reject", "shorter than the length")
    for name, length, why in (("length_max", 2**64 - 1, "a header of 2^64 - 1 bytes"),
                              ("length_wraps", 2**64 - 8, "a header whose end overflows to 0"),
                              ("length_limit", 100_000_001, "a header one byte longer than the "
                                                            "limit"),
                              ("length_long", len(F32) + 9,
                               "a header one byte longer than the file"),
                              ("length_short", len(F32) - 1, "a header one byte too short"),
                              ("length_one", 1, "a header of one byte"), ("length_zero", 0,
                                                                          "a header of no bytes")):
        s.bad(f"{name}.safetensors", file_of(F32, EIGHT, length), "reject", why)


def main():
    s = Samples(sys.argv[1], "safetensors")
    for make in (good_types, good_shapes, good_orders, good_metadata, good_names, good_headers,
                 good_quantised, bad_files):
        make(s)


if __name__ == "__main__":
    main()
