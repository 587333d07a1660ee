#!/usr/bin/env python3
"""gen_embd.py ROOT: write EMBD .weights samples to ROOT/embd, without Heft.

Good samples: the specified layout with all accepted forms of sections, vocabularies and checksums,
and the simple stream. "rewritten" in FILE.json is the version with which a conversion must produce
the same bytes. Bad samples: at least one for each error of the parsers."""
import json
import pathlib
import struct
import sys

from samples import IEEE, Samples, crc, patch, tensor

TYPES = ["f32", "f16", "bf16", "i32", "i16", "i8", "u32", "u16", "u8"]
VOCAB_EMBEDDED, ALIGNED, CHECKSUMS, COMPRESSED = 1, 2, 4, 8
HEADER, FOOTER, CHECKED = 64, 16, 56
NONE = 2**32 - 1
META = [("model_name", "tiny"), ("hidden_size", "8"), ("größe", "😀"), ("empty", "")]
TOKENS = [
    "[PAD]", "[unused0]", "the", "##ing", "café", "張", "😀", "[UNK]", "[CLS]", "[SEP]", "[MASK]",
    "a" * 200, ""
]
SPECIAL = (0, 7, 8, 9, 10)
# Two names with equal hashes.
TWINS = ("layer.232789.weight", "layer.429192.weight")


def fnv1a(data):
    value = 0x811C9DC5
    for byte in data:
        value = (value ^ byte) * 0x01000193 & 0xFFFFFFFF
    return value


def round_up(n, to=64):
    return -(-n // to) * to


def raw(text):
    return text if isinstance(text, bytes) else text.encode()


class File:
    """A valid file of the specified layout with replaceable fields."""

    def __init__(self, tensors, meta=META, tokens=TOKENS, special=SPECIAL, flags=None, order="mvi",
                 align=64, gap=0, tail=0, offsets=None, checksums=True, before=False,
                 relative=False, with_ids=False, bare_size=False):
        self.tensors, self.meta, self.tokens, self.special = tensors, list(meta), tokens, special
        self.order, self.align, self.gap, self.tail = order, align, gap, tail
        self.checksums = checksums
        self.before, self.relative = before, relative
        self.with_ids, self.bare_size = with_ids, bare_size
        self.flags = flags
        self.set = {}  # fields of the header
        self.change = {}  # fields of descriptors: (number, field) -> value
        self.offsets = offsets
        self.pad = 0
        self.entries = self.meta_total = self.token_total = self.special_at = self.count = None
        self.slack = b""  # after the vocabulary, inside the section
        self.reserved = (0, 0)
        self.end = b"DBME"

    # ---- sections ----

    def metadata(self):
        body = b"".join(
            struct.pack("<HH", len(raw(k)), len(raw(v))) + raw(k) + raw(v) for k, v in self.meta)
        entries = len(self.meta) if self.entries is None else self.entries
        return struct.pack("<II", entries,
                           len(body) if self.meta_total is None else self.meta_total) + body

    def vocabulary(self, at):
        if self.tokens is None:
            return b""
        body = b"".join(struct.pack("<H", len(raw(t))) + raw(t) for t in self.tokens)
        where = 12 if self.before else 12 + len(body)
        total = len(body) + (20 if self.with_ids else 0)
        head = struct.pack("<III",
                           len(self.tokens) if self.count is None else self.count,
                           total if self.token_total is None else self.token_total,
                           (where if self.relative else at +
                            where) if self.special_at is None else self.special_at)
        ids = struct.pack("<5I", *self.special)
        return head + (ids + body if self.before else body + ids) + self.slack

    def index(self):
        out, names = b"", b""
        for i, ((name, dtype, shape, _), offset) in enumerate(zip(self.tensors, self.placed)):
            name = raw(name)
            dims = list(shape) + [0] * (4 - len(shape))
            fields = {
                "hash": fnv1a(name), "type": TYPES.index(dtype), "rank": len(shape),
                "length": len(name), "dims": dims[:4], "offset": offset
            }
            fields.update({f: v for (n, f), v in self.change.items() if n == i})
            out += struct.pack("<IBBH4IQ", fields["hash"], fields["type"], fields["rank"],
                               fields["length"], *fields["dims"], fields["offset"])
            names += name
        return out + names

    def data(self):
        """Return the data section and set self.placed to the offset of each tensor."""
        out, self.placed = bytearray(), []
        for i, (_, _, _, data) in enumerate(self.tensors):
            at = round_up(len(out), self.align) if self.offsets is None else self.offsets[i]
            self.placed.append(at)
            if at + len(data) > len(out):
                out += bytes([self.pad]) * (at + len(data) - len(out))
            out[at:at + len(data)] = data
        return bytes(out) + bytes(self.tail)

    # ---- the file ----

    def all_flags(self):
        flags = ALIGNED if self.align % 64 == 0 and self.offsets is None else 0
        flags |= VOCAB_EMBEDDED if self.tokens is not None else 0
        return (flags | (CHECKSUMS if self.checksums else 0)) if self.flags is None else self.flags

    def bytes(self):
        data, at, front = self.data(), HEADER, b""
        where = {}
        for section in self.order:
            made = {"m": self.metadata, "v": lambda at=at: self.vocabulary(at),
                    "i": self.index}[section]()
            where[section] = (at, len(made))
            front += made
            at += len(made)
        start = round_up(at, self.align) + self.gap
        front += bytes([self.pad]) * (start - at)
        total = start + len(data) + FOOTER
        meta, vocab = where["m"], where["v"]
        fields = {
            "magic": b"EMBD", "major": 1, "minor": 0, "flags": self.all_flags(), "meta_at": meta[0],
            "meta_size": meta[1] - (8 if self.bare_size else 0),
            "vocab_at": vocab[0] if vocab[1] else 0, "vocab_size": vocab[1],
            "index_at": where["i"][0], "tensors": len(
                self.tensors), "data_at": start, "data_size": len(data), "total": total
        }
        fields.update(self.set)
        header = struct.pack("<4sHHIIIIIIIIQQ", *fields.values())
        sums = self.checksums
        header += struct.pack("<II", crc(IEEE, header) if sums else 0, self.reserved[0])
        body = header + front + data
        return body + struct.pack("<II4sI",
                                  crc(IEEE, data) if sums else 0,
                                  crc(IEEE, body) if sums else 0, self.end, self.reserved[1])


class Stream:
    """A simple stream."""

    def __init__(self, tensors, tokens=TOKENS):
        self.tensors, self.tokens = tensors, tokens
        self.version, self.count, self.token_count = 1, len(tensors), len(tokens)
        self.change = {}

    def bytes(self):
        out = b"EMBD" + struct.pack("<II", self.version, self.count)
        for i, (name, _, shape, data) in enumerate(self.tensors):
            fields = {"length": len(raw(name)), "rank": len(shape), "dims": shape}
            fields.update({f: v for (n, f), v in self.change.items() if n == i})
            out += struct.pack("<I", fields["length"]) + raw(name) + struct.pack(
                "<I", fields["rank"])
            out += struct.pack(f"<{len(fields['dims'])}I", *fields["dims"]) + data
        out += struct.pack("<I", self.token_count)
        return out + b"".join(struct.pack("<I", len(raw(t))) + raw(t) for t in self.tokens)


def few():
    return [
        tensor("a.weight", "f32", (2, 3)),
        tensor("b.bias", "f16", (5,)),
        tensor("c", "u8", (3,))
    ]


def floats():
    return [
        tensor("a.weight", "f32", (2, 3)),
        tensor("größe/😀", "f32", (5,)),
        tensor("r4", "f32", (1, 2, 1, 3))
    ]


def facts(meta=(), tokens=None, special=None):
    out = {"metadata": [{"key": k, "value": v} for k, v in meta]}
    if tokens is not None:
        out["vocab"] = tokens
        out["special"] = list(special)
    return out


# ---- good ----

def good_specified(s):
    def put(name, tensors=None, change=None, same=False, **options):
        f = File(few() if tensors is None else tensors, **options)
        for key, value in (change or {}).items():
            setattr(f, key, value)
        more = {"rewritten": "1.0"} if same else {}
        s.good(name + ".weights", f.bytes(), f.tensors, **facts(f.meta, f.tokens, f.special),
               **more)

    put("small", same=True)
    put("all_types", [tensor(f"t.{t}", t, (3, 5)) for t in TYPES], same=True)
    put("ranks", [tensor(f"r{n}", "f32", (2,) * n) for n in (1, 2, 3, 4)], same=True)
    put("no_vocabulary", tokens=None, same=True)
    put("empty_vocabulary", tokens=[], special=(NONE,) * 5, same=True)
    put("no_metadata", meta=[], same=True)
    put("nothing", [], meta=[], tokens=None, same=True)
    put("no_tensors", [], same=True)
    put("no_section_of_metadata", meta=[], change={"set": {"meta_at": 0, "meta_size": 0}})
    put("no_checksums", checksums=False)
    put("no_flags", align=1, tokens=None, checksums=False)
    put("unaligned", align=1)
    put("align_4096", align=4096)
    put("gap", gap=128)
    put("tail", tail=40)
    put("backwards", offsets=[128, 64, 0])
    put("names_of_one_hash", [tensor(n, "f32", (2,)) for n in TWINS], same=True)
    put("unicode", [tensor("張量.🧠", "f32", (2,)), tensor("sp ace", "i8", (3,))], same=True)
    put("longest_name", [tensor("n" * 65535, "f32", (2,))], meta=[("k" * 65535, "v" * 65535)],
        same=True)
    put("bert_ids", tokens=[f"token{i}" for i in range(110)], special=(0, 100, 101, 102, 103),
        same=True)
    put("many", [tensor(f"layers.{i}.w", TYPES[i % 9], (i % 7 + 1, i % 3 + 1)) for i in range(300)],
        meta=[(f"k{i}", str(i)) for i in range(60)])
    put("minor_7", change={"set": {"minor": 7}})
    for order in ("vmi", "imv", "ivm", "vim"):
        put(f"order_{order}", order=order)
    for name, options in (("before", {"before": True}), ("relative", {"relative": True}),
                          ("before_relative", {"before": True, "relative": True}), ("counted", {
                              "with_ids": True
                          }), ("counted_relative", {"with_ids": True, "relative": True}),
                          ("before_counted", {"before": True, "with_ids": True})):
        put(f"special_{name}", **options)
    # Offsets from the section that are also valid offsets from the file, and vice versa.
    long = [f"token{i}" for i in range(100)]
    for relative in (False, True):
        put(f"long_vocabulary_{'relative' if relative else 'absolute'}", tokens=long,
            special=(0, 1, 2, 3, 4), relative=relative)
    put("special_none", special=(0, 7, NONE, NONE, NONE))
    put("metadata_size_without_head", bare_size=True)


def like_a_header_checksum():
    """A tensor whose bytes are, at the place of the header's checksum in the specified layout, that
    checksum."""
    name, dtype, shape, data = tensor("t.f32", "f32", (3, 5))
    before = len(Stream([(name, dtype, shape, b"")], []).bytes()) - 4  # without tokens
    begin = Stream([(name, dtype, shape, data)]).bytes()[:CHECKED]
    checksum = struct.pack("<I", crc(IEEE, begin))
    return name, dtype, shape, data[:CHECKED - before] + checksum + data[CHECKED - before + 4:]


def good_simple(s):
    def put(name, tensors, tokens):
        named = [
            tokens.index(t) if t in tokens else NONE
            for t in ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
        ]
        more = facts([], tokens, named) if tokens else facts()
        s.good(f"simple_{name}.weights", Stream(tensors, tokens).bytes(), tensors, **more)

    put("small", floats(), TOKENS)
    put("no_vocabulary", floats(), [])
    put("nothing", [], [])
    put("tokens_only", [], TOKENS)
    put("no_special", floats(), ["just", "tokens"])
    put("like_specified", [like_a_header_checksum()], TOKENS)
    put("long_token", floats(), ["x" * 70000, "[UNK]"])
    put("long_name", [tensor("n" * 70000, "f32", (2,))], [])
    put("many", [tensor(f"layers.{i}.w", "f32", (i % 7 + 1, i % 3 + 1)) for i in range(300)],
        TOKENS)
    put("large", [tensor("big", "f32", (300, 400)), tensor("small", "f32", (1,))], TOKENS)


# ---- bad ----

def changed(options=None, tensors=None, **fields):
    f = File(few() if tensors is None else tensors, **(options or {}))
    for key, value in fields.items():
        setattr(f, key, value)
    return f.bytes()


def bad_headers(s):
    ok = File(few()).bytes()
    s.bad("ok_control.weights", ok, "accept", "the valid file from which the others are made")
    for name, expect, why, fields in [
        ("major_0", "reject", "major version 0", {"major": 0}),
        ("major_2", "reject", "major version 2", {"major": 2}),
        ("minor_1", "warn", "a minor version above 0", {"minor": 1}),
        ("total_more", "reject", "the header declares one byte too many", {"total": len(ok) + 1}),
        ("total_0", "reject", "the header declares 0 bytes", {"total": 0}),
        ("flag_16", "reject", "a reserved flag", {"flags": 7 | 16}),
        ("flag_top", "reject", "the last reserved flag", {"flags": 7 | 1 << 31}),
        ("flag_compressed", "reject", "the undefined flag for compression",
         {"flags": 7 | COMPRESSED}),
        ("flag_no_vocab", "warn", "a vocabulary without the flag", {"flags": ALIGNED | CHECKSUMS}),
        ("vocab_size_0", "reject", "the flag without a vocabulary", {"vocab_size": 0}),
        ("meta_at_header", "reject", "metadata that overlap the header", {"meta_at": 60}),
        ("meta_past_end", "reject", "metadata past the end", {"meta_at": len(ok)}),
        ("meta_size_more", "reject", "metadata_size is neither with nor without the head",
         {"meta_size": 1000}),
        ("vocab_at_header", "reject", "a vocabulary that overlaps the header", {"vocab_at": 8}),
        ("vocab_past_end", "reject", "a vocabulary past the end", {"vocab_at": 2**32 - 1}),
        ("vocab_size_past_end", "reject", "a vocabulary longer than the file",
         {"vocab_size": 2**31}),
        ("vocab_size_31", "reject", "a vocabulary too short for head and ids",
         {"vocab_size": 31}),
        ("index_past_end", "reject", "an index past the end", {"index_at": len(ok)}),
        ("index_over_metadata", "reject", "an index that overlaps the "
                                          "metadata", {"index_at": HEADER}),
        ("tensors_huge", "reject", "2^32 - 1 tensors", {"tensors": NONE}),
        ("tensors_wrap", "reject", "32 times the number of tensors "
                                   "exceeds 2^32", {"tensors": 2**27 + 3}),
        ("tensors_one_more", "reject", "one tensor more than stored", {"tensors": 4}),
        ("data_over_metadata", "reject", "data that overlap the metadata", {"data_at": HEADER}),
        ("data_over_footer", "reject", "data that overlap the footer", {"data_size": len(ok)}),
        ("data_size_wraps", "reject", "offset and size of the data exceed 2^64",
         {"data_size": 2**64 - 64}),
        ("data_ends_early", "reject", "a last tensor past the end of the data",
         {"data_size": 64}),
    ]:
        s.bad(name + ".weights", changed(set=fields), expect, why)
    no_vocab = File(few(), tokens=None)
    no_vocab.set = {"vocab_at": 77}
    s.bad("vocab_at_without_size.weights", no_vocab.bytes(), "accept",
          "an offset for an empty vocabulary")


def bad_ends(s):
    ok = File(few()).bytes()
    s.bad("magic.weights", b"EMBX" + ok[4:], "reject", "a wrong magic number")
    s.bad("only_magic.weights", b"EMBD", "reject", "four bytes")
    lost = bytearray(ok)
    lost[8:16], lost[48:52] = bytes(8), bytes(4)
    s.bad("lost_header.weights", bytes(lost), "reject",
          "a header without flags, tensors and size, as of a simple stream without tensors")
    s.bad("end_magic.weights", changed(end=b"DBMF"), "reject", "wrong magic number in the footer")
    s.bad("cut_1.weights", ok[:-1], "reject", "a byte short")
    s.bad("cut_footer.weights", ok[:-FOOTER], "reject", "no footer")
    s.bad("one_more.weights", ok + b"\0", "reject", "a byte more")
    s.bad("header_only.weights", ok[:HEADER + FOOTER], "reject", "the header alone")
    s.bad("cut_to_79.weights", ok[:79], "reject", "too short for header and footer")
    s.bad("reserved_header.weights", changed(reserved=(1, 0)), "warn",
          "reserved bytes of the header")
    s.bad("reserved_footer.weights", changed(reserved=(0, 1)), "warn",
          "reserved bytes of the footer")
    early = File(few())
    early.tail = 64
    early.set = {"data_size": len(early.data()) - 64}
    s.bad("footer_apart.weights", patch_sums(early.bytes()), "warn",
          "bytes between the data and the footer")
    s.bad("padding.weights", changed(pad=1), "warn", "padding that is not 0")


def patch_sums(data):
    """Recompute the checksums for the data range in the header."""
    at, size = struct.unpack_from("<I", data, 36)[0], struct.unpack_from("<Q", data, 40)[0]
    data = patch(data, 56, "I", crc(IEEE, data[:56]))
    data = patch(data, len(data) - 16, "I", crc(IEEE, data[at:at + size]))
    return patch(data, len(data) - 12, "I", crc(IEEE, data[:-16]))


def bad_checksums(s):
    ok = File(few()).bytes()
    start = struct.unpack_from("<I", ok, 36)[0]
    s.bad("header_crc.weights", patch(ok, 56, "I", 1), "reject", "the header's checksum")
    s.bad("data_crc.weights", patch(ok, len(ok) - 16, "I", 1), "reject", "the data's checksum")
    s.bad("file_crc.weights", patch(ok, len(ok) - 12, "I", 1), "reject", "the file's checksum")
    s.bad("payload_changed.weights", patch(ok, start, "B", ok[start] ^ 1), "reject",
          "a byte of the data")
    s.bad("metadata_changed.weights", patch(ok, HEADER + 14, "B", ok[HEADER + 14] ^ 1), "reject",
          "a byte of a key")
    none = File(few(), checksums=False).bytes()
    for name, at in (("header", 56), ("data", len(none) - 16), ("file", len(none) - 12)):
        s.bad(f"unflagged_{name}_crc.weights", patch(none, at, "I", 1), "warn",
              "a wrong checksum without the checksum flag")
    unflagged = File(few(), flags=VOCAB_EMBEDDED | ALIGNED).bytes()
    s.bad("unflagged_right.weights", unflagged, "accept",
          "correct checksums without the checksum flag")


def bad_metadata(s):
    def put(name, why, expect="reject", **fields):
        s.bad(f"meta_{name}.weights", changed(**fields), expect, why)

    put("total_less", "total_size leaves a byte out", meta_total=20, set={"meta_size": 28})
    put("entries_more", "one entry more than stored", entries=len(META) + 1)
    put("entries_less", "one entry fewer than stored", entries=len(META) - 1)
    put("entries_huge", "2^32 - 1 entries", entries=NONE)
    put("size_4", "a section too small for the head", set={"meta_size": 4})
    put("key_twice", "a key twice", meta=[*META, ("hidden_size", "9")])
    put("key_not_utf8", "a key that is not UTF-8", meta=[(b"\xff", "v")])
    put("value_not_utf8", "a value that is not UTF-8", meta=[("k", b"\xed\xa0\x80")])


def bad_vocabularies(s):
    def put(name, why, expect="reject", options=None, **fields):
        s.bad(f"vocab_{name}.weights", changed(options, **fields), expect, why)

    put("count_more", "one token more than stored", count=len(TOKENS) + 1)
    put("count_less", "one token fewer than stored", count=len(TOKENS) - 1)
    put("count_huge", "2^32 - 1 tokens", count=NONE)
    put("total_more", "total_size is neither with nor without the ids", token_total=1000)
    put("token_not_utf8", "a token that is not UTF-8", tokens=["[PAD]", b"\xff"])
    put("long_token_not_utf8", "a long token that is not UTF-8", tokens=["x" * 300, b"\xc3"])
    put("split_character", "a character split over two tokens", tokens=[b"\xc3", b"\xa9"])
    put("split_over_a_length", "a length that would complete a character",
        tokens=[b"\xc4", b"x" * 0x80])
    put("token_past_end", "a token longer than the section", tokens=["[PAD]"], token_total=7,
        count=2)
    put("special_past_end", "ids past the end of the section", special_at=100000)
    put("special_0", "the ids at 0", special_at=0)
    put("special_in_tokens", "the ids inside the tokens", special_at=40)
    put("special_id", "an id beyond the last token", "warn", special=(0, 7, 8, 9, len(TOKENS)))
    put("slack", "a section with unused bytes", "warn", slack=bytes(9))


def bad_index(s):
    def put(name, why, expect="reject", tensors=None, options=None, **change):
        f = {"change": {(1, key): value for key, value in change.items()}}
        s.bad(f"index_{name}.weights", changed(options, tensors, **f), expect, why)

    put("hash", "the hash of another name", hash=fnv1a(b"b.bia"))
    put("type_9", "element type 9", type=9)
    put("type_255", "element type 255", type=255)
    put("rank_0", "rank 0", rank=0)
    put("rank_5", "rank 5", rank=5)
    put("dim_0", "a dimension of 0", dims=[0, 0, 0, 0])
    put("dim_unused", "a dimension beyond the rank", dims=[5, 1, 0, 0])
    put("shape_huge", "a shape of 2^96 elements", rank=3, dims=[NONE, NONE, NONE, 0])
    put("shape_wraps", "the byte count of a shape "
                       "overflows to 0", rank=2, dims=[2**31, 2**31, 0, 0], type=0)
    put("offset_past_end", "data past the end of the data section", offset=2**20)
    put("offset_wraps", "an offset that overflows", offset=2**64 - 64)
    put("offset_at_end", "data whose length exceeds the file", offset=128 + 64)
    put("unaligned", "an offset that is not a multiple of 64 despite the flag", offset=65)
    put("name_longer", "a name past the end of the names", length=65535)
    put("name_empty", "an empty name", "warn", [few()[0], tensor("", "f16", (5,))])
    put("name_not_utf8", "a name that is not UTF-8", "reject",
        [few()[0], (b"\xff", *tensor("x", "f16", (5,))[1:])])
    put("name_twice", "a name twice", "reject", [few()[0], tensor("a.weight", "f16", (5,))])
    put("same_place", "two tensors at the same offset", "warn", offset=0)
    back = File(few(), offsets=[64, 60, 0], flags=5)
    s.bad("index_overlap.weights", back.bytes(), "warn",
          "two tensors share bytes, and offsets do not ascend")
    aligned = File(few(), align=64)
    aligned.gap = 32
    s.bad("data_unaligned.weights", aligned.bytes(), "warn",
          "offsets are aligned, the data themselves are not")


def bad_simple(s):
    def put(name, why, expect="reject", tensors=None, tokens=TOKENS, cut=None, more=b"", **fields):
        f = Stream(floats() if tensors is None else tensors, tokens)
        for key, value in fields.items():
            setattr(f, key, value)
        s.bad(f"simple_{name}.weights", f.bytes()[:cut] + more, expect, why)

    put("ok_control", "the valid file from which the others are made", "accept")
    put("version_0", "version 0", version=0)
    put("version_2", "version 2", version=2)
    put("tensors_huge", "2^32 - 1 tensors", count=NONE)
    put("tensors_one_more", "one tensor more than stored", count=4)
    put("name_longer", "a name longer than the file", change={(0, "length"): 5000})
    put("name_huge", "a name of more than 1 MiB", change={(0, "length"): 2**20 + 1})
    put("name_not_utf8", "a name that is not UTF-8", tensors=[(b"\xff", *floats()[0][1:])])
    put("name_empty", "an empty name", "warn", [("", *floats()[0][1:])])
    put("name_twice", "a name twice", tensors=[floats()[0], floats()[0]])
    put("rank_0", "rank 0", change={(0, "rank"): 0})
    put("rank_5", "rank 5", change={(0, "rank"): 5})
    put("dim_0", "a dimension of 0", change={(0, "dims"): (0, 3)})
    put("shape_huge", "a shape of 2^62 bytes", change={(0, "dims"): (2**30, 2**30)})
    put("shape_wraps", "the byte count of a shape "
                       "exceeds 2^64", change={(0, "dims"): (2**31, 2**31)})
    put("no_tokens", "no count of tokens", tokens=[], cut=-4)
    put("tokens_more", "one token more than stored", token_count=len(TOKENS) + 1)
    put("tokens_huge", "2^32 - 1 tokens", token_count=NONE)
    put("token_cut", "the file ends in a token", tokens=["token"], cut=-1)
    put("token_huge", "a token of more than 1 MiB", tokens=["x" * (2**20 + 1)])
    put("token_not_utf8", "a token that is not UTF-8", tokens=[b"\x80"])
    put("data_cut", "the file ends in the data", cut=50)
    put("trailing", "bytes after the vocabulary", "warn", more=b"more")


# ---- companion texts ----

def texts(root):
    """Write vocabularies and a configuration in published forms to ROOT/texts."""
    folder = pathlib.Path(root, "texts")
    folder.mkdir(parents=True, exist_ok=True)
    added = [{"id": i, "content": t, "special": True} for i, t in enumerate(TOKENS) if t[:1] == "["]
    named = ["<s>", "<pad>", "</s>", "<unk>", "\u2581the", "\u2581a", "s"]
    marked = [{"id": i, "content": t, "special": True}
              for i, t in enumerate([*named[:4]])] + [{"id": 7, "content": "<mask>"}]
    pairs = {"\u0120t": 4, "he": 5, "\u0120the": 6} | {t: i for i, t in enumerate(named[:4])}
    documents = {
        "wordpiece": {
            "version": "1.0", "added_tokens": added,
            "model": {"type": "WordPiece", "vocab": {t: i for i, t in enumerate(TOKENS)}}
        },
        "unigram": {
            "added_tokens": marked, "model": {
                "type": "Unigram", "unk_id": 3, "vocab": [[t, -i / 4] for i, t in enumerate(named)]
            }
        },
        "bpe": {
            "model": {"type": "BPE", "vocab": pairs, "merges": ["\u0120 t", ["\u0120t", "he"]]},
            "added_tokens": marked
        },
        "config": {
            "_name_or_path": "some/body", "hidden_size": 8, "vocab_size": 13,
            "layer_norm_eps": 1e-12, "architectures": ["BertModel"]
        },
    }
    for name, document in documents.items():
        (folder / f"{name}.json").write_text(json.dumps(document))
    (folder / "vocab.txt").write_text("".join(t + "\n" for t in TOKENS), encoding="utf-8")


def main():
    texts(sys.argv[1])
    s = Samples(sys.argv[1], "embd")
    for write in (good_specified, good_simple, bad_headers, bad_ends, bad_checksums, bad_metadata,
                  bad_vocabularies, bad_index, bad_simple):
        write(s)


if __name__ == "__main__":
    main()
