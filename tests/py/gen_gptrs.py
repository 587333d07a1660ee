#!/usr/bin/env python3
"""gen_gptrs.py ROOT: write gpt-rs checkpoints and archives to ROOT/gptrs, without Heft.

Good samples: version 2 of three writers, version 1, and the short-lived bincode index. "rewritten"
in FILE.json is the version with which a conversion must produce the same bytes. Bad samples: at
least one for each error of the parsers."""
import json
import struct
import sys

from blake3_ref import blake3
from samples import Samples, patch, tensor

TAGS = {"f32": 0, "f16": 1, "bf16": 2, "i32": 3}
CONFIG = b'{"kind":"gpt","config":{}}'
GPT = {
    "vocab_size": 32, "context_length": 16, "embed_dim": 8, "num_layers": 1, "num_heads": 2,
    "mlp_ratio": 2, "dropout": 0.0
}
BARE = json.dumps(GPT, separators=(",", ":")).encode()
NO_ID, OTHER_ID = bytes(16), bytes([1]) + bytes(15)


def base_id(name):
    return blake3(name)[:16]


def round_up(n, to):
    return -(-n // to) * to


class Entry:
    """A tensor in the index with replaceable numbers."""

    def __init__(self, t, ident=None, grad=0):
        self.name, self.data, self.dims = t[0].encode(), t[3], list(t[2])
        self.tag, self.grad, self.length = TAGS[t[1]], grad, len(t[3])
        self.id = base_id(self.name) if ident is None else ident
        self.name_length = self.rank = self.offset = None

    def lengths(self):
        return (len(self.name) if self.name_length is None else self.name_length,
                len(self.dims) if self.rank is None else self.rank)

    def shape(self):
        return struct.pack(f"<{len(self.dims)}Q", *self.dims)

    def tail(self):
        return struct.pack("<IBQQ", self.tag, self.grad, self.offset, self.length)

    def manual(self, checkpoint):
        n, r = self.lengths()
        return (struct.pack("<I", n) + self.name + (self.id if checkpoint else b"") +
                struct.pack("<I", r) + self.shape() + self.tail())

    def bincode(self, checkpoint):
        n, r = self.lengths()
        return (struct.pack("<Q", n) + self.name + (self.id if checkpoint else b"") +
                struct.pack("<Q", r) + self.shape() + self.tail())

    def v1(self):
        n, r = self.lengths()
        return (struct.pack("<I", n) + self.name + struct.pack("<I", r) + self.shape() +
                struct.pack("<IBQ", self.tag, self.grad, self.length) + self.data)


class File:
    """A valid file of version 2 with replaceable parts."""

    def __init__(self, tensors, checkpoint=True, config=CONFIG, align=64, order=None, bincode=False,
                 gap=b"", ident=None, grads=()):
        self.checkpoint, self.bincode, self.config, self.gap = checkpoint, bincode, config, gap
        self.align, self.version, self.extra, self.trailing = align, 2, b"", b""
        self.entries = [
            Entry(t, ident, g) for t, g in zip(tensors,
                                               list(grads) + [0] * len(tensors))
        ]
        self.order = order or range(len(tensors))
        self.count = len(tensors)
        self.config_length = self.index_length = None

    def index(self):
        count = struct.pack("<Q" if self.bincode else "<I", self.count)
        kind = Entry.bincode if self.bincode else Entry.manual
        return count + b"".join(kind(e, self.checkpoint) for e in self.entries) + self.extra

    def front(self):
        index, config = self.index(), b""
        if self.checkpoint:
            length = len(self.config) if self.config_length is None else self.config_length
            config = struct.pack("<I", length) + self.config
        length = len(index) if self.index_length is None else self.index_length
        magic = b"GPTRSCHK" if self.checkpoint else b"GPTRSTEN"
        return magic + struct.pack("<I", self.version) + config + struct.pack("<I", length) + index

    def data_start(self):
        for e in self.entries:
            e.offset = 0
        return len(self.front())

    def bytes(self):
        given = [e.offset for e in self.entries]
        for e in self.entries:
            e.offset = 0
        at, places = len(self.front()), []
        for i in self.order:
            at = round_up(at, self.align) if self.align else at
            places.append((at, self.entries[i].data))
            self.entries[i].offset = at
            at += len(self.entries[i].data) + len(self.gap)
        for e, offset in zip(self.entries, given):
            e.offset = e.offset if offset is None else offset
        out = self.front()
        for at, data in places:
            fill = self.gap if at - len(out) == len(self.gap) else bytes(at - len(out))
            out += fill + data
        return out + self.trailing


def v1(tensors, checkpoint=True, config=BARE, count=None, change=None):
    entries = [Entry(t) for t in tensors]
    if change:
        change(entries)
    out = b"GPTRSCHK" if checkpoint else b"GPTRSTEN"
    out += struct.pack("<I", 1)
    if checkpoint:
        out += struct.pack("<I", len(config)) + config
    out += struct.pack("<I", len(entries) if count is None else count)
    return out + b"".join(e.v1() for e in entries)


def few():
    return [tensor("a", "f32", (2, 3)), tensor("b", "i32", (4,)), tensor("c.weight", "f32", (1, 5))]


def every_type():
    return [tensor(f"t.{t}", t, (3, 5)) for t in TAGS]


# ---- good ----

def good_version_2(s):
    def put(name, tensors, trailing=b"", extra=b"", same=False, **options):
        f = File(tensors, **options)
        f.trailing, f.extra = trailing, extra
        s.good(name, f.bytes(), tensors, **({"rewritten": "2"} if same else {}))

    for kind, checkpoint in (("chk", True), ("ten", False)):
        put(f"{kind}_empty.bin", [], checkpoint=checkpoint, same=True)
        put(f"{kind}_grads.bin", few(), checkpoint=checkpoint, grads=[1, 0, 1], same=True)
        put(f"{kind}.bin", few(), checkpoint=checkpoint, grads=[1, 0, 7])
        put(f"{kind}_unaligned.bin", few(), checkpoint=checkpoint, align=0)
        put(f"{kind}_types.bin", every_type(), checkpoint=checkpoint, same=True)
        put(f"{kind}_backwards.bin", few(), checkpoint=checkpoint, align=0, order=[2, 1, 0],
            gap=b"\xaa" * 13)
        put(f"{kind}_zero_size.bin", [tensor("z", "f32", (3, 0, 2**40)), *few()],
            checkpoint=checkpoint)
        put(f"{kind}_trailing.bin", few(), checkpoint=checkpoint, trailing=b"more")
        put(f"{kind}_long_index.bin", few(), checkpoint=checkpoint, extra=b"left")
        put(f"{kind}_empty_name.bin", [tensor("", "f32", (2,)), *few()], checkpoint=checkpoint)
        put(f"{kind}_bincode.bin", few(), checkpoint=checkpoint, align=0, bincode=True, config=BARE)
        put(f"{kind}_bincode_empty.bin", [], checkpoint=checkpoint, bincode=True, config=BARE)
        put(f"{kind}_bincode_kind.bin", few(), checkpoint=checkpoint, bincode=True)
        put(f"{kind}_bincode_short.bin", [tensor("w", "f32", ())], checkpoint=checkpoint,
            align=0, bincode=True, config=BARE)
    put("chk_no_ids.bin", few(), ident=NO_ID)
    put("ten_unicode.bin", [tensor("größe/😀", "f32",
                                   (2,)), tensor(" ", "i32", (1,))], checkpoint=False, same=True)
    put("ten_many.bin",
        [tensor(f"layers.{i}.w", "f32", (i % 7 + 1, i % 3 + 1)) for i in range(300)],
        checkpoint=False)


def good_tied(s):
    a, b = tensor("a", "f32", (4, 4)), tensor("b", "f32", (2,))
    tied = ("tied", "f32", (16,), a[3])
    f = File([a, b, tied])
    f.bytes()
    f.entries[2].data, f.entries[2].offset = b"", f.entries[0].offset
    f.entries[1].offset = None
    s.good("chk_tied.bin", f.bytes(), [a, b, tied])


def good_configs(s):
    for name, config in [
        ("runtime",
         b'{"kind":"gpt","config":{"a":[1,{"b":null}]},'
         b'"runtime":{"functional_overrides":{"x":"force=y"}}}'
         ),
        ("runtime_null", b'{"runtime":null,"kind":"gpt"}'),
        ("spaces", b' \n{"kind" : "gpt" }\t\r\n'),
        ("escapes", br'{"k\u0069nd":"\ud83d\ude00","config":"\\"}'),
        ("unicode", '{"kind":"größe"}'.encode()),
        ("unknown_keys", b'{"eos_token_ids":[2],"kind":"x","kinds":3}'),
        ("bare_and_kind", b'{"kind":"gpt",' + BARE[1:]),
    ]:
        s.good(f"chk_config_{name}.bin", File(few(), config=config).bytes(), few(), rewritten="2")


def good_version_1(s):
    s.good("chk_v1.bin", v1(few()), few())
    s.good("chk_v1_empty.bin", v1([]), [])
    s.good("chk_v1_trailing.bin", v1(few()) + b"more", few())
    s.good("ten_v1.bin", v1(few(), checkpoint=False), few())
    unicode = [tensor("größe/😀", "f32", (2,))]
    s.good("ten_v1_unicode.bin", v1(unicode, checkpoint=False), unicode)
    with_zero = [tensor("z", "f32", (0,)), *few()]
    s.good("ten_v1_zero_size.bin", v1(with_zero, checkpoint=False), with_zero)


# ---- bad ----

def bad_headers(s):
    ok = File(few()).bytes()
    s.bad("ok_control.bin", ok, "accept", "the valid file from which the others are made")
    for name, data, why in [
        ("only_magic", ok[:8], "magic number only"),
        ("version_cut", ok[:10], "the file ends in the version"),
        ("version_0", patch(ok, 8, "I", 0), "version 0"),
        ("version_3", patch(ok, 8, "I", 3), "version 3"),
        ("version_big_endian", patch(ok, 8, "I", 2 << 24), "version 2 in big-endian order"),
        ("ten_as_chk", b"GPTRSCHK" + File(few(), checkpoint=False).bytes()[8:],
         "an archive under the magic number of the other kind"),
        ("chk_as_ten", b"GPTRSTEN" + ok[8:], "a checkpoint under the magic number of the other "
                                             "kind"),
        ("config_length_cut", ok[:14], "the file ends in the length of config_json"),
        ("config_cut", ok[:20], "the file ends in config_json"),
        ("index_length_cut", ok[:16 + len(CONFIG) + 2], "the file ends in the length of the index"),
        ("index_cut", ok[:100], "the file ends in the index"),
        ("data_missing", ok[:File(few()).data_start()], "there is no payload"),
        ("data_cut", ok[:-1], "the last payload is a byte short"),
    ]:
        s.bad(name + ".bin", data, "reject", why)


def bad_configs(s):
    deep = b'{"kind":"x","config":' + b"[" * 400 + b"]" * 400 + b"}"
    cases = [
        ("empty", b"", "config_json is empty"),
        ("not_json", b'{"kind":"gpt",', "config_json ends early"),
        ("not_utf8", b'{"kind":"\xff"}', "config_json is not UTF-8"),
        ("trailing", CONFIG + b"}", "text after the value"),
        ("two_values", CONFIG + CONFIG, "two values"),
        ("list", b"[]", "not an object"),
        ("string", b'"kind"', "not an object"),
        ("kind_number", b'{"kind":3}', "kind is a number"),
        ("kind_null", b'{"kind":null}', "kind is null"),
        ("no_kind", b'{"config":{}}', "no kind"),
        ("comma", b'{"kind":"gpt",}', "a comma too many"),
        ("bad_value", b'{"kind":"gpt","config":{"a":01}}', "an invalid number, inside config"),
    ]
    for key in GPT:
        cases.append(
            (f"bare_without_{key}", json.dumps({k: v for k, v in GPT.items() if k != key}).encode(),
             f"a bare GPT configuration without {key}"))
    cases.append(("bare_negative", json.dumps(
        {**GPT, "num_heads": -2}).encode(), "a negative number of heads"))
    cases.append(("bare_text", json.dumps({**GPT, "dropout": "0"}).encode(), "dropout is text"))
    for name, config, why in cases:
        s.bad(f"config_{name}.bin", File(few(), config=config).bytes(), "reject", why)
    s.bad("config_deep.bin",
          File(few(), config=deep).bytes(), "refuse", "nested deeper than anything needs")
    s.bad("config_bare.bin", File(few(), config=BARE).bytes(), "warn", "a bare GPT configuration")
    s.bad("config_runtime_odd.bin", File(few(), config=b'{"kind":"x","runtime":3}').bytes(), "warn",
          "runtime is not an object")
    for name, field, value, why in [
        ("config_length_huge", "config_length", 2**32 - 1,
         "config_json past the end of the file"),
        ("index_length_huge", "index_length", 2**32 - 1, "an index past the end of the file"),
        ("index_length_0", "index_length", 0, "an index without a tensor count"),
        ("index_length_short", "index_length", 180, "the index ends in an entry"),
        ("index_length_shorter", "index_length", 60, "an index too small for three entries"),
        ("count_huge", "count", 2**32 - 1, "2^32 - 1 tensors"),
        ("count_one_more", "count", 4, "one entry more than stored"),
    ]:
        f = File(few())
        setattr(f, field, value)
        s.bad(name + ".bin", f.bytes(), "reject", why)
    for checkpoint in (True, False):
        f = File(few(), checkpoint=checkpoint)
        kind = "chk" if checkpoint else "ten"
        f.extra = bytes(7)
        s.bad(f"{kind}_index_longer.bin", f.bytes(), "warn",
              "an index longer than the entries", rule="gptrs/index-length")
        wide = tensor("a", "f32", (1,) * 65)
        s.bad(f"{kind}_rank_65.bin",
              File([wide], checkpoint=checkpoint).bytes(), "warn", "65 dimensions",
              rule="gptrs/rank")


ENTRIES = [
    ("tag_4", "reject", "element type 4", dict(tag=4)),
    ("tag_huge", "reject", "element type 2^32 - 1", dict(tag=2**32 - 1)),
    ("name_not_utf8", "reject", "a name that is not UTF-8", dict(name=b"\xff")),
    ("name_past_index", "reject", "a name longer than the index", dict(name_length=5000)),
    ("rank_past_index", "reject", "a shape longer than the index", dict(rank=200)),
    ("rank_huge", "reject", "2^32 - 1 dimensions", dict(rank=2**32 - 1)),
    ("rank_65536", "refuse", "more dimensions than heft supports", dict(dims=[1] * 65535 + [6])),
    ("shape_other", "reject", "the length is not that of the shape", dict(dims=[2, 4])),
    ("dim_2_63", "reject", "a dimension of 2^63", dict(dims=[2**63, 3])),
    ("shape_wraps", "reject", "the product of the shape overflows", dict(dims=[2**32, 2**32])),
    ("shape_wraps_to_0", "reject", "the product overflows to the length", dict(
        dims=[2**62, 4], length=0)),
    ("bytes_wrap", "reject", "the byte count of the shape overflows to the length",
     dict(dims=[2**62 + 6], length=24)),
    ("length_other", "reject", "the length is a byte short", dict(length=23)),
    ("length_huge", "reject", "a length of 2^63", dict(length=2**63)),
    ("offset_huge", "reject", "an offset of 2^63", dict(offset=2**63)),
    ("offset_wraps", "reject", "offset and length exceed 2^64", dict(offset=2**64 - 8)),
    ("offset_past_end", "reject", "data past the end of the file", dict(offset=10**6)),
    ("offset_0", "warn", "data that overlap the header", dict(offset=0)),
]


def changed(entry, change):
    for key, value in change.items():
        setattr(entry, key, value)


def bad_entries(s):
    for kind, checkpoint in (("chk", True), ("ten", False)):
        for name, expect, why, change in ENTRIES:
            f = File(few(), checkpoint=checkpoint)
            changed(f.entries[0], change)
            s.bad(f"{kind}_{name}.bin", f.bytes(), expect, why)
        scalar = ("s", "f32", (), b"\0\0\x80\x3f")
        s.bad(f"{kind}_rank_0.bin",
              File([scalar], checkpoint=checkpoint).bytes(), "warn", "a scalar")
        f = File([*few(), tensor("a", "f32", (1,))], checkpoint=checkpoint)
        s.bad(f"{kind}_name_twice.bin", f.bytes(), "reject", "a name twice")
        f = File(few(), checkpoint=checkpoint, align=0)
        f.bytes()
        f.entries[0].offset, f.entries[1].offset = None, f.entries[0].offset + 4
        s.bad(f"{kind}_overlap.bin", f.bytes(), "warn", "two tensors share some bytes")
    for name, ident in (("other", OTHER_ID), ("big_endian", base_id(b"a")[::-1])):
        f = File(few())
        f.entries[0].id = ident
        s.bad(f"base_id_{name}.bin", f.bytes(), "reject",
              "a base id that is not the hash of the name")
    s.bad("chk_name_not_ascii.bin", File([tensor("é", "f32", (1,))]).bytes(), "reject",
          "a name in a checkpoint that is not ASCII")


def bad_bincode(s):
    def put(name, why, change, expect="reject"):
        f = File(few(), bincode=True, config=BARE)
        changed(f.entries[0], change)
        s.bad(f"bincode_{name}.bin", f.bytes(), expect, why)

    for name, expect, why, change in ENTRIES:
        if name not in ("rank_65536", "offset_0"):
            put(name, why, change, expect)
    f = File([*few(), tensor("a", "f32", (1,))], bincode=True)
    s.bad("bincode_name_twice.bin", f.bytes(), "reject", "a name twice")
    f = File(few(), bincode=True)
    f.count = 2**40 + 3
    s.bad("bincode_count_huge.bin", f.bytes(), "reject",
          "2^40 + 3 tensors, which a bincode index cannot have")
    f.count = 4
    s.bad("bincode_count_one_more.bin", f.bytes(), "reject", "one entry more than stored")


def bad_version_1(s):
    def put(title, why, /, **change):
        s.bad(f"v1_{title}.bin", v1(few(), change=lambda entries: changed(entries[1], change)),
              "reject", why)

    put("tag_4", "element type 4", tag=4)
    put("name_not_utf8", "a name that is not UTF-8", name=b"\xff")
    put("name_not_ascii", "a name in a checkpoint that is not ASCII", name="é".encode())
    put("name_twice", "a name twice", name=b"a")
    put("name_past_end", "a name longer than the file", name_length=2**32 - 1)
    put("rank_huge", "2^32 - 1 dimensions", rank=2**32 - 1)
    put("shape_other", "the length is not that of the shape", dims=[5])
    put("shape_wraps", "the product of the shape overflows", dims=[2**62, 4], length=0)
    put("length_huge", "a length of 2^63", length=2**63)
    whole = v1(few())
    start = 16 + len(BARE)
    for name, data, why in [
        ("count_cut", whole[:start + 2], "the file ends in the tensor count"),
        ("count_huge", v1(few(), count=2**32 - 1), "2^32 - 1 tensors"),
        ("count_one_more", v1(few(), count=4), "one tensor more than stored"),
        ("record_cut", whole[:-25], "the file ends in a record"),
        ("data_cut", whole[:-1], "the last payload is a byte short"),
        ("config_other", v1(few(), config=b'{"a":1}'), "no configuration"),
    ]:
        s.bad(f"v1_{name}.bin", data, "reject", why)


def main():
    s = Samples(sys.argv[1], "gptrs")
    for write in (good_version_2, good_tied, good_configs, good_version_1, bad_headers, bad_configs,
                  bad_entries, bad_bincode, bad_version_1):
        write(s)


if __name__ == "__main__":
    main()
