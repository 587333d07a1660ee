#!/usr/bin/env python3
"""gen_gguf.py ROOT: write .gguf samples to ROOT/gguf, without Heft.

Good samples: versions 1 to 3 and big-endian files, every type of metadata and element, alignments,
vocabularies. Bad samples: at least one for each error of the parser, including known attacks:
counts, lengths, dimensions, alignments and offsets that overflow or are false."""
import random
import struct
import sys

import ggml_blocks
from samples import Samples, describe

KINDS = ["u8", "i8", "u16", "i16", "u32", "i32", "f32", "bool", "str", "arr", "u64", "i64", "f64"]
LETTERS = {
    "u8": "B", "i8": "b", "u16": "H", "i16": "h", "u32": "I", "i32": "i", "f32": "f", "bool": "B",
    "u64": "Q", "i64": "q", "f64": "d"
}
NONE = 2**32 - 1
SPECIAL_KEYS = ["padding", "unknown", "cls", "seperator", "mask"]
ARCH = [("general.architecture", "str", "sample")]


class Layout:
    """Encoding of numbers in a file."""

    def __init__(self, version=3, big=False):
        self.version, self.big, self.order = version, big, ">" if big else "<"

    def pack(self, letters, *values):
        return struct.pack(self.order + letters, *values)

    def length(self, n):
        return self.pack("I" if self.version == 1 else "Q", n)

    def text(self, s, length=None):
        raw = s if isinstance(s, bytes) else s.encode()
        return self.length(len(raw) if length is None else length) + raw

    def value(self, kind, value):
        if kind == "str":
            return self.text(value)
        if kind == "arr":
            inner, values = value
            return self.array(inner, len(values), b"".join(self.value(inner, v) for v in values))
        return self.pack(LETTERS[kind], value)

    def array(self, kind, count, raw):
        return self.pack(
            "I", kind if isinstance(kind, int) else KINDS.index(kind)) + self.length(count) + raw

    def entry(self, key, kind, value, length=None):
        """Encode an entry; a value of type bytes is used unchanged."""
        raw = value if isinstance(value, bytes) and kind != "str" else self.value(kind, value)
        return self.text(key, length) + self.pack(
            "I", kind if isinstance(kind, int) else KINDS.index(kind)) + raw

    def info(self, name, dims, number, offset, rank=None):
        """Encode a tensor's entry; `dims` begins with the outermost dimension."""
        raw = self.text(name) + self.pack("I", len(dims) if rank is None else rank)
        return raw + b"".join(map(self.length, reversed(dims))) + self.pack("IQ", number, offset)


def round_up(n, to):
    return -(-n // to) * to


class File:
    """A valid file with replaceable parts."""

    def __init__(self, tensors=(), meta=ARCH, version=3, big=False, align=32, places=None, gap=0,
                 tail=True, slack=b""):
        self.layout = layout_ = Layout(version, big)
        self.tensors, self.align, self.tail, self.slack = list(tensors), align, tail, slack
        self.entries = [layout_.entry(*m) for m in meta]
        self.counts = None
        self.magic, self.version = b"GGUF", version
        self.at, end = {}, 0
        for i in places or range(len(self.tensors)):
            self.at[i] = end
            end = round_up(end + len(self.tensors[i][3]), align) + gap
        self.infos = [layout_.info(n, d, ggml_blocks.TYPES[t][0], self.at[i])
                      for i, (n, t, d, _) in enumerate(self.tensors)]

    def replace(self, i, **change):
        n, t, d, _ = self.tensors[i]
        fields = {"name": n, "dims": d, "number": ggml_blocks.TYPES[t][0], "offset": self.at[i]}
        self.infos[i] = self.layout.info(**{**fields, **change})
        return self

    def header(self):
        layout_, counts = self.layout, self.counts or (len(self.infos), len(self.entries))
        start = self.magic + layout_.pack("I", self.version) + layout_.length(
            counts[0]) + layout_.length(counts[1])
        return start + b"".join(self.entries) + b"".join(self.infos)

    def bytes(self):
        out = self.header()
        if not self.tensors:
            return out + self.slack
        data = round_up(len(out), self.align)
        for at, i in sorted((at, i) for i, at in self.at.items()):
            _, t, _, raw = self.tensors[i]
            out += bytes(data + at -
                         len(out)) + (ggml_blocks.byteswap(t, raw) if self.layout.big else raw)
        if self.tail:
            out += bytes(round_up(len(out), self.align) - len(out))
        return out + self.slack


def tensor(name, dtype, shape):
    count = 1
    for d in shape:
        count *= d
    rng = random.Random(f"{name} {dtype}")
    if dtype in ggml_blocks.BLOCKS:
        return name, dtype, tuple(shape), ggml_blocks.draw(dtype, count, rng)
    return name, dtype, tuple(shape), rng.randbytes(count * ggml_blocks.TYPES[dtype][2])


def few():
    return [tensor("a", "f32", (2, 3)), tensor("b", "q4_0", (2, 32)), tensor("c", "f16", (3,))]


def listed(meta):
    """Return the facts of metadata without arrays."""
    facts = []
    for key, kind, value in meta:
        if kind == "str":
            facts.append({"key": key, "value": value})
        elif kind in ("f32", "f64"):
            wide = struct.unpack("<" + LETTERS[kind], struct.pack("<" + LETTERS[kind], value))[0]
            facts.append({"key": key, "bits": struct.pack(">d", wide).hex()})
        else:
            facts.append({"key": key, "bits": f"{int(value) % 2**64:016x}"})
    return facts


FLAT = [("general.architecture", "str", "llama"), ("general.name", "str", "größe 😀"),
        ("empty", "str", ""), ("u8", "u8", 255), ("i8", "i8", -128), ("u16", "u16", 65535),
        ("i16", "i16", -32768), ("llama.block_count", "u32", 32), ("i32", "i32", -2**31),
        ("llama.eps", "f32", 1e-5), ("inf", "f32", float("inf")), ("yes", "bool", 1),
        ("no", "bool", 0), ("u64", "u64", 2**64 - 1), ("i64", "i64", -2**63), ("small", "u64", 1),
        ("pi", "f64", 3.141592653589793), ("-0", "f64", -0.0)]
ARRAYS = [("general.architecture", "str", "llama"),
          *[(f"a.{k}", "arr", (k, [0, 1, 1, 0, 1])) for k in LETTERS],
          ("a.str", "arr", ("str", ["", "a", "größe", "x" * 300])), ("a.none", "arr", ("u32", [])),
          ("a.no_texts", "arr", ("str", [])), ("a.no_arrays", "arr", ("arr", [])),
          ("a.nested", "arr", ("arr", [("u8", [1, 2, 3]), ("str", ["a", "b"]),
                                       ("arr", [("f32", [0.5]), ("i64", [])]), ("arr", []),
                                       ("bool", [1])])),
          ("a.deep", "arr", ("arr", [("arr", [("arr", [("arr", [("str", ["end"])])])])])),
          ("last", "u32", 7)]
TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "größe", "", "##ing", "x" * 200]


def vocabulary(special=(0, 1, 2, 3, 4), tokens=None, kind="u32"):
    """Return (entries, facts) of a vocabulary."""
    tokens = TOKENS if tokens is None else tokens
    entries = [("tokenizer.ggml.model", "str", "bert"),
               ("tokenizer.ggml.tokens", "arr", ("str", tokens)),
               ("tokenizer.ggml.token_type", "arr", ("i32", [1] * len(tokens)))]
    entries += [(f"tokenizer.ggml.{k}_token_id", kind, i)
                for k, i in zip(SPECIAL_KEYS, special or ()) if i != NONE]
    return ARCH + entries, {
        "vocab": tokens, "special": list(special) if special else [0, 1, 2, 3, 4]
    }


# ---- good -------------------------------------------------------------------------------------


def good_meta(s):
    for version in (1, 2, 3):
        s.good(f"flat_v{version}.gguf",
               File(few(), FLAT, version).bytes(), few(), metadata=listed(FLAT))
        s.good(f"arrays_v{version}.gguf", File(few(), ARRAYS, version).bytes(), few())
    s.good("flat_big_endian.gguf",
           File(few(), FLAT, big=True).bytes(), few(), metadata=listed(FLAT))
    s.good("arrays_big_endian.gguf", File(few(), ARRAYS, big=True).bytes(), few())
    s.good("only_metadata.gguf", File([], FLAT).bytes(), [], metadata=listed(FLAT))
    s.good("nothing.gguf", File([], []).bytes(), [])
    s.good("padded_nothing.gguf", File([], [], slack=bytes(8)).bytes(), [])
    layout_ = Layout()
    f = File(few())
    f.entries.append(layout_.entry("bytes", "str", b"\xff\xfe"))
    f.entries.append(layout_.entry("mixed", "arr", ("str", ["text", b"\x80"])))
    s.good("not_text.gguf", f.bytes(), few())
    broken = File(few())
    broken.entries.append(layout_.entry("tokenizer.ggml.tokens", "arr", ("str", ["a", b"\x80"])))
    s.good("token_not_text.gguf", broken.bytes(), few())


def good_types(s):
    plain = [tensor(f"t.{t}", t, (3, 5)) for t in ggml_blocks.PLAIN]
    blocks = [tensor(f"t.{t}", t, (2, e)) for t, (_, e, _) in ggml_blocks.BLOCKS.items()]
    for version in (1, 2, 3):
        s.good(f"plain_v{version}.gguf", File(plain, version=version).bytes(), plain)
    s.good("plain_big_endian.gguf", File(plain, big=True).bytes(), plain)
    s.good("blocks.gguf", File(blocks).bytes(), blocks)
    big_endian = [t for t in blocks if t[1] in ggml_blocks.NUMBERS]
    s.good("blocks_big_endian.gguf", File(big_endian, big=True).bytes(), big_endian)
    wide = [
        tensor(f"w.{t}", t, (2, 2, 1, e)) for t, (_, e, _) in ggml_blocks.BLOCKS.items() if e == 32
    ]
    s.good("blocks_wide.gguf", File(wide).bytes(), wide)


def good_later_types(s):
    """Unknown element types: the data extend to the next tensor or to the end of the file."""
    def put(name, numbers, tensors=None, sizes=(), **options):
        f = File(tensors or few(), **options)
        data = f.bytes()
        start = round_up(len(f.header()), f.align)
        ends = sorted({*f.at.values(), len(data) - start})
        facts = []
        for i, t in enumerate(f.tensors):
            fact = describe(*t)
            if i in numbers:
                f.replace(i, number=numbers[i], dims=(*t[2][:-1], 11))
                end = next(e for e in ends if e > f.at[i])
                raw = data[start + f.at[i]:start + end]
                fact = {**describe(t[0], None, (*t[2][:-1], 11), raw), "layout": "ggml.opaque"}
            facts.append(fact)
        s.write("good", f"later_{name}.gguf", f.bytes(),
                {"format": "gguf", "tensors": facts, "rewritten": "3"})

    put("first", {0: 43})
    put("middle", {1: 43})
    put("last", {2: 65535})
    put("last_no_tail", {2: 43}, tail=False)
    put("all", {0: 43, 1: 100, 2: 43})
    put("aligned", {1: 43}, meta=[*ARCH, ("general.alignment", "u32", 128)], align=128)
    put("before_empty", {0: 43},
        [tensor("a", "f32", (9,)),
         tensor("e", "f32", (0,)),
         tensor("e2", "f32", (2, 0))])


def good_shapes(s):
    shapes = [(), (1,), (7,), (2, 3), (3, 1, 2), (1, 2, 3, 4), (5, 1, 1, 1)]
    tensors = [tensor(f"r{i}", "f32", d) for i, d in enumerate(shapes)]
    s.good("shapes.gguf", File(tensors).bytes(), tensors)
    empty = [(0,), (2, 0), (0, 3), (0, 2**63 - 1), (3, 0, 2**62, 2**62)]
    tensors = [tensor(f"e{i}", "f32", d) for i, d in enumerate(empty)]
    between = [
        tensor("q", "q4_0", (3, 0)), *few(),
        tensor("q2", "q4_0", (0, 64)),
        tensor("z", "f16", (1, 0))
    ]
    s.good("empty_only.gguf", File(tensors).bytes(), tensors)
    s.good("empty_between.gguf", File(tensors[:2] + between).bytes(), tensors[:2] + between)
    s.good("empty_v1.gguf", File(between, version=1).bytes(), between)
    s.good("empty_big_endian.gguf", File(between, big=True).bytes(), between)
    names = ["größe.😀", " ", "a" * 63, "b" * 64, "c" * 300, "quote\"\\", "tab\t"]
    tensors = [tensor(n, "i8", (i + 1,)) for i, n in enumerate(names)]
    s.good("names.gguf", File(tensors).bytes(), tensors)
    many = [tensor(f"blk.{i}.weight", ("f16", "q8_0", "f32")[i % 3], (1, 32)) for i in range(150)]
    s.good("many.gguf", File(many).bytes(), many)


def good_places(s):
    for align in (1, 8, 16, 64, 4096):
        meta = [*ARCH, ("general.alignment", "u32", align), ("last", "str", "x")]
        s.good(f"align_{align}.gguf", File(few(), meta, align=align).bytes(), few())
    s.good("no_tail.gguf", File(few(), tail=False).bytes(), few())
    s.good("slack.gguf", File(few(), slack=b"more").bytes(), few())
    s.good("any_order.gguf", File(few(), places=[2, 0, 1]).bytes(), few())
    s.good("gaps.gguf", File(few(), gap=64).bytes(), few())
    s.good("align_32_said.gguf",
           File(few(), [("general.alignment", "u32", 32), *ARCH]).bytes(), few())


def good_vocabularies(s):
    for name, options in (("", {}), ("_v1", {"version": 1}), ("_v2", {"version": 2}),
                          ("_big_endian", {"big": True})):
        meta, facts = vocabulary()
        s.good(f"vocabulary{name}.gguf", File(few(), meta, **options).bytes(), few(), **facts)
    meta, facts = vocabulary((9, NONE, 5, NONE, 0), kind="i32")
    s.good("vocabulary_special.gguf", File([], meta).bytes(), [], **facts)
    meta, facts = vocabulary(None)
    s.good("vocabulary_by_name.gguf", File([], meta).bytes(), [], **facts)
    meta, facts = vocabulary((NONE,) * 5, ["a", "b"])
    s.good("vocabulary_plain.gguf", File([], meta).bytes(), [], **facts)
    meta, facts = vocabulary((1, 0, 0, 0, 0), [])
    s.good("vocabulary_empty.gguf", File([], meta).bytes(), [], vocab=[], special=[NONE] * 5)
    meta, facts = vocabulary((0, 1, 2, 99, 4))
    facts["special"][3] = NONE  # beyond the last token
    s.good("vocabulary_id_beyond.gguf", File([], meta).bytes(), [], **facts)
    meta, facts = vocabulary()
    meta = [(k.replace("seperator", "separator"), t, v) for k, t, v in meta]
    s.good("vocabulary_separator.gguf", File([], meta).bytes(), [], **facts)


def good_attributes(s):
    a = tensor("a", "f32", (2, 3))
    meta = [
        *ARCH, ("heft.burn.param_id/a", "str", "77"),
        ("list", "arr", ("arr", [("str", ["x", "y"]), ("u8", [1])])),
        ("heft.gptrs.requires_grad/a", "str", "true"),
        ("heft.gptrs.requires_grad/none", "str", "true"), ("after", "arr", ("str", ["z"]))
    ]
    facts = {
        "file": "attributes.gguf", "format": "gguf", "tensors": [{
            "name": "a", "dtype": "f32", "shape": [2, 3], "layout": "dense", "nbytes": 24,
            "param_id": 77, "flag": True, "sha256": describe(*a)["sha256"]
        }]
    }
    s.write("good", "attributes.gguf", File([a], meta).bytes(), facts)


# ---- bad --------------------------------------------------------------------------------------

HUGE = [2**63, 2**64 - 1, 2**61, 2**62 - 1, 2**32]


def bad_headers(s):
    f = File(few())
    whole = f.bytes()
    s.bad("magic.gguf", b"GGUf" + whole[4:], "reject", "wrong magic number")
    s.bad("old_magic.gguf", b"ggjt" + whole[4:], "reject", "a file older than GGUF")
    for version, big, expect in ((0, False, "reject"), (4, False, "refuse"), (77, False, "refuse"),
                                 (1, True, "reject"), (2, True, "reject"), (4, True, "refuse")):
        g = File(few(), big=big)
        g.version = version
        s.bad(f"version_{version}{'_big' if big else ''}.gguf", g.bytes(), expect,
              f"version {version}")
    for n, huge in enumerate(HUGE):
        for what in (0, 1):
            g = File(few())
            g.counts = (huge, len(g.entries)) if what == 0 else (len(g.infos), huge)
            s.bad(f"{('tensors', 'entries')[what]}_{n}.gguf", g.bytes(), "reject",
                  "an impossible count")
    for counts, name in (((3, 2), "one_entry_more"), ((4, 1), "one_tensor_more")):
        g = File(few())
        g.counts = counts
        s.bad(f"{name}.gguf", g.bytes(), "reject", "a count that is too high by one")
    g = File(few(), version=1)
    g.counts = (2**32 - 1, 1)
    s.bad("tensors_v1.gguf", g.bytes(), "reject", "an impossible count, in version 1")


def bad_entries(s):
    layout_ = Layout()

    def put(name, *entries, why, expect="reject", **options):
        f = File(few(), **options)
        f.entries += entries
        s.bad(f"{name}.gguf", f.bytes(), expect, why)

    for n, huge in enumerate(HUGE):
        put(f"key_length_{n}", layout_.text("key", huge), why="a key longer than the file")
        put(f"text_length_{n}",
            layout_.entry("k", "str", "x")[:-9] + layout_.text("x", huge),
            why="a text longer than the file")
        put(f"array_length_{n}", layout_.entry("k", 9, layout_.array("u64", huge, bytes(8))),
            why="an array longer than the file")
        put(f"texts_{n}", layout_.entry("k", 9, layout_.array("str", huge, layout_.text("a"))),
            why="more texts than the file can contain")
        put(f"arrays_{n}",
            layout_.entry("k", 9, layout_.array("arr", huge, layout_.array("u8", 0, b""))),
            why="more arrays than the file can contain")
        put(f"text_in_array_{n}",
            layout_.entry("k", 9, layout_.array("str", 1, layout_.text("a", huge))),
            why="a text of an array longer than the file")
    put("key_empty", layout_.entry("", "u8", 1), why="an empty key")
    put("key_not_text", layout_.entry(b"\xff", "u8", 1), why="a key that is not UTF-8")
    put("key_twice", layout_.entry("k", "u8", 1), layout_.entry("other", "u8", 1),
        layout_.entry("k", "u8", 1), why="a key twice")
    put("long_key", layout_.entry("k" * 65536, "u8", 1), why="a key of more than 65535 bytes",
        expect="warn")
    for kind in (13, 14, 255, 2**31, 2**32 - 1):
        put(f"kind_{kind}", layout_.entry("k", kind, bytes(16)), why="an undefined type")
        put(f"array_kind_{kind}", layout_.entry("k", 9, layout_.array(kind, 1, bytes(16))),
            why="an array of an undefined type")
        put(f"inner_kind_{kind}",
            layout_.entry("k", 9, layout_.array("arr", 1, layout_.array(kind, 1, bytes(16)))),
            why="a nested array of an undefined type")
    for byte in (2, 128, 255):
        put(f"bool_{byte}", layout_.entry("k", "bool", byte),
            why="a boolean that is neither 0 nor 1")
        put(f"bools_{byte}", layout_.entry("k", "arr", ("bool", [0, byte, 1])),
            why="a boolean in an array that is neither 0 nor 1")
    for depth, expect in ((128, "accept"), (129, "refuse"), (3000, "refuse")):
        raw = b"".join(layout_.array("arr", 1, b"")
                       for _ in range(depth)) + layout_.array("u8", 0, b"")
        put(f"depth_{depth}", layout_.entry("k", 9, raw), why="arrays in arrays", expect=expect)


def bad_alignments(s):
    layout_ = Layout()
    for align in (0, 3, 33, 48, 2**31 + 1, 2**32 - 1, 2**31, 2**25):
        f = File(few())
        f.entries.append(layout_.entry("general.alignment", "u32", align))
        s.bad(f"alignment_{align}.gguf", f.bytes(), "reject", f"an alignment of {align}")
    for kind, value in (("u64", 64), ("i32", 64), ("str", "64"), ("f32", 64.0), ("bool", 1),
                        ("arr", ("u32", [64]))):
        f = File(few(), align=64)
        f.entries.append(layout_.entry("general.alignment", kind, value))
        s.bad(f"alignment_{kind}.gguf", f.bytes(), "reject", "an alignment that is not a u32")
    f = File(few())
    f.entries += [layout_.entry("general.alignment", "u32", 32)] * 2
    s.bad("alignment_twice.gguf", f.bytes(), "reject", "two alignments")
    f = File(few())
    f.entries.append(layout_.entry("general.alignment", "u32", 2**24))
    s.bad("alignment_beyond.gguf", f.bytes(), "reject", "data that would begin after the end of "
                                                        "the file")
    f = File(few(), align=4)
    f.entries.append(layout_.entry("general.alignment", "u32", 4))
    s.bad("alignment_4.gguf", f.bytes(), "warn", "an alignment that is not a multiple of 8")


def bad_splits(s):
    """Files that claim to be one of several."""
    def put(name, expect, why, *entries, **more):
        f = File(few())
        f.entries += [Layout().entry(*e) for e in entries]
        s.bad(f"split_{name}.gguf", f.bytes(), expect, why, **more)

    put("last", "warn", "the last of three files", ("split.no", "u16", 2),
        ("split.count", "u16", 3))
    put("past", "reject", "the fourth of three files", ("split.no", "u16", 3),
        ("split.count", "u16", 3))
    put("count_0", "accept", "a number of files of 0", ("split.no", "u16", 3),
        ("split.count", "u16", 0))
    put("no_count", "accept", "a number without the number of files", ("split.no", "u16", 3))
    put("signed", "warn", "a signed number", ("split.no", "i32", 1), ("split.count", "i32", 3))
    put("negative", "reject", "a negative number", ("split.no", "i32", -1),
        ("split.count", "u16", 3))
    put("text", "reject", "a text as a number", ("split.no", "str", "0"),
        ("split.count", "u16", 3))
    put("real", "reject", "a real number of files", ("split.count", "f32", 3.0))
    put("4097", "refuse", "4097 files", ("split.no", "u16", 1), ("split.count", "u16", 4097))
    put("4096", "warn", "the last of 4096 files", ("split.no", "u16", 4095),
        ("split.count", "u16", 4096))


def bad_tensors(s):
    def put(file, why, expect="reject", i=0, tensors=None, **change):
        s.bad(f"{file}.gguf", File(tensors or few()).replace(i, **change).bytes(), expect, why)

    put("dim_zero_beside_beyond", "a dimension of 2^63 beside one of 0", dims=(0, 2**63))
    for n, huge in enumerate(HUGE):
        put(f"dim_{n}", "a dimension beyond the file", dims=(1, huge))
        put(f"dims_{n}", "dimensions that overflow", dims=(huge, huge, huge, huge))
    put("dims_wrap", "a product that overflows to the correct value", dims=(2**32, 2**32, 2, 3))
    put("dims_wrap_63", "a product that overflows below 0", dims=(2**31, 2**31, 4))
    put("bytes_wrap", "a byte count that overflows to a small number", dims=(2**62,))
    for rank in (5, 6, 255, 2**31, 2**32 - 1):
        put(f"rank_{rank}", "more than four dimensions", rank=rank)
    five = [tensor("five", "f32", (1, 1, 1, 1, 2))]
    s.bad("five_dims.gguf", File(five).bytes(), "reject", "five dimensions")
    for number in (4, 5, 31, 32, 33, 36, 37, 38):
        put(f"type_{number}", "an element type that was removed", expect="refuse", number=number)
    for number in (2**16, 2**31, 2**32 - 1):
        put(f"type_{number}", "an impossible element type", number=number)
    s.bad("later_big_endian.gguf", File(few(), big=True).replace(0, number=43).bytes(), "refuse",
          "big-endian blocks of unknown layout")
    s.bad("later_v1_removed.gguf",
          File(few(), version=1).replace(0, number=43).replace(1, number=4).bytes(), "refuse",
          "an element type that was removed beside a later one")
    put("later_same_place", "an unknown type at the offset of another tensor", number=43, offset=64)
    put("later_in_another", "an unknown type inside another tensor", number=43, offset=32,
        tensors=[tensor("a", "f32", (8,)), tensor("b", "f32", (32,))])
    put("later_past_the_end", "an unknown type past the end", number=43, offset=10**6 * 32)
    put("later_at_the_end", "an unknown type at the end of the data", i=2, number=43, offset=160)
    put("later_huge", "an unknown type of 2^63 elements", number=43, dims=(2**31, 2**31, 2))
    put("row_of_blocks", "rows of 3 elements in blocks of 32", number=2)
    put("row_of_256", "rows of 32 elements in blocks of 256", i=1, number=12)
    put("outer_blocks", "whole blocks in all, but not in a row", dims=(32, 3), number=8)
    for n, offset in enumerate((1, 31, 2**63, 2**64 - 32, 2**64 - 1, 10**6 * 32)):
        put(f"offset_{n}", "an invalid offset", offset=offset)
    put("offset_last", "a last tensor past the end", i=2, offset=4096)
    put("too_short", "fewer bytes than the shape needs", i=2, dims=(300,))
    put("overlap_same", "two tensors at the same offset", i=1, offset=0)
    put("overlap", "a tensor inside another",
        tensors=[tensor("a", "f32", (32,)), tensor("b", "f32", (8,))], i=1, offset=32)
    put("overlap_size", "a tensor that reaches into the next", dims=(2, 9))
    put("name_twice", "two tensors with the same name", i=2, name="a")
    put("name_not_text", "a name that is not UTF-8", name=b"\xc0\x80")
    s.bad("no_data.gguf", File(few()).header(), "reject", "the data are missing")
    cut = File(few(), tail=False).bytes()
    s.bad("one_short.gguf", cut[:-1], "reject", "the last byte is missing")
    big = File([tensor("t", "iq2_xxs", (256,))])
    big_endian = big.bytes()
    big = Layout(big=True)
    raw = b"GGUF" + big.pack("IQQ", 3, 1, 0) + big.info("t", (256,), 16, 0)
    s.bad("opaque_big_endian.gguf",
          raw + bytes(round_up(len(raw), 32) - len(raw)) + big_endian[-96:], "refuse",
          "big-endian blocks of unknown layout")
    padded = bytearray(File(few()).bytes())
    padded[-1] = 1
    s.bad("padding.gguf", bytes(padded), "accept", "padding that is not zero", "gguf/padding")
    s.bad("cut_padding.gguf",
          File(few(), tail=False).bytes(), "accept", "no padding at the end", "gguf/cut-padding")
    nested = [*ARCH, ("a", "arr", ("arr", [("u8", [1])]))]
    s.bad("nested.gguf", File(few(), nested).bytes(), "accept", "an array of arrays", "gguf/nested")
    s.bad("later_most.gguf",
          File(few()).replace(1, number=43, dims=(7 * 7 * 73 * 127, 337 * 92737, 649657)).bytes(),
          "warn", "a type newer than heft, with 2^63 - 1 elements", "gguf/type")
    s.bad("later.gguf",
          File(few()).replace(1, number=43).bytes(), "warn", "a type newer than heft", "gguf/type")


def bad_conversions(s):
    """Files damaged by a conversion of text, with U+FFFD in place of bytes."""
    whole = File([], [("general.architecture", "str", "bert"), ("bert.length", "u32", 384),
                      ("bert.eps", "f32", -1e-12), ("next", "str", "x"),
                      ("nexts", "arr", ("f32", [0.1] * 9)), ("last", "str", "y")]).bytes()
    for name, at in (("u32", whole.index(b"bert.length") + 15), ("f32",
                                                                 whole.index(b"bert.eps") + 12),
                     ("array", whole.index(b"nexts") + 5 + 4 + 4 + 8 + 16)):
        broken = whole[:at] + b"\xef\xbf\xbd" + whole[at + 1:]
        s.bad(f"replaced_{name}.gguf", broken, "reject", f"byte {at} was replaced by U+FFFD")


def main():
    s = Samples(sys.argv[1], "gguf")
    for write in (good_meta, good_types, good_later_types, good_shapes, good_places,
                  good_vocabularies, good_attributes, bad_headers, bad_entries, bad_alignments,
                  bad_splits, bad_tensors, bad_conversions):
        write(s)


if __name__ == "__main__":
    main()
