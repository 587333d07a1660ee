#!/usr/bin/env python3
"""gen_mag.py ROOT: write .mag samples to ROOT/mag, without Heft.

Good samples: both archive versions and the snapshot, every element type, every interpretation of
the checksum. "rewritten" in FILE.json is the version with which a conversion must produce the same
bytes. Bad samples: at least one for each error of the parser."""
import struct
import sys

from samples import CASTAGNOLI, IEEE, Samples, crc, patch, tensor

TYPES_1 = ["f32", "f16", "bool", "i32"]
TYPES_100 = ["f32", "f16", "bool", "u8", "i8", "u16", "i16", "u32", "i32", "u64", "i64"]
TYPES_SNAPSHOT = [
    "f32", "f16", "bf16", "bool", "u8", "i8", "u16", "i16", "u32", "i32", "u64", "i64"
]
I64, F64 = 1, 2


def round_up(n, to=64):
    return -(-n // to) * to


# ---- archives ----

def value_bits(value):
    if isinstance(value, float):
        return F64, struct.pack("<d", value)
    return I64, struct.pack("<q", value)


def meta_record(key, value=0, kind=None, key_length=None):
    own_kind, bits = value_bits(value)
    raw = key if isinstance(key, bytes) else key.encode()
    length = len(raw) if key_length is None else key_length
    return struct.pack("<I", own_kind if kind is None else kind) + bits + struct.pack("<I",
                                                                                      length) + raw


def tensor_record(name, aux, numel, offset, dims, key_length=None):
    raw = name if isinstance(name, bytes) else name.encode()
    length = len(raw) if key_length is None else key_length
    return (struct.pack("<IQQ", aux, numel, offset) + struct.pack(f"<{len(dims)}Q", *dims) +
            struct.pack("<I", length) + raw)


def count_of(dims):
    n = 1
    for d in dims:
        n *= d
    return n


def checksum(start, records, how):
    """Compute the checksum "a CRC32 of header and records" in the interpretation `how`."""
    table = IEEE if "ieee" in how else CASTAGNOLI
    if "zeroed" in how:
        return crc(table, start + bytes(4) + records)
    return crc(table, (start if "skipped" in how else b"") + records)


def header(version, records, counts, aux=0, how="", stored=None):
    covered = struct.pack("<III", *counts, aux) + records
    start = b"MAG!" + struct.pack("<I", version)
    value = checksum(start, covered, how) if stored is None else stored
    return start + struct.pack("<I", value) + covered


class Archive:
    """A valid archive with replaceable parts."""

    def __init__(self, tensors, meta=(), version=1, types=None, align=64, gap=0, pad=0xFF,
                 tail=True, slack=0, place=None):
        self.tensors, self.version, self.slack = tensors, version, slack
        self.types = types or (TYPES_1 if version == 1 else TYPES_100)
        self.align, self.gap, self.pad, self.tail = align, gap, bytes([pad]), tail
        self.metas = [meta_record(k, v) for k, v in meta]
        self.counts = None
        size = 24 + sum(map(len, self.metas)) + sum(24 + 8 * len(d) + len(n.encode())
                                                    for n, _, d, _ in tensors)
        self.end = size
        at = round_up(size, align)
        self.offsets = []
        for i in place or range(len(tensors)):
            self.offsets.append((i, at))
            at = round_up(at + len(tensors[i][3]), align) + gap
        self.offsets = [o for _, o in sorted(self.offsets)]
        self.records = [
            tensor_record(n, self.types.index(t) | len(d) << 8, count_of(d), o, d)
            for (n, t, d, _), o in zip(tensors, self.offsets)
        ]

    def replace(self, i, **change):
        """Replace numbers of record i."""
        n, t, d, _ = self.tensors[i]
        fields = {"name": n, "aux": self.types.index(t) | len(d) << 8, "numel": count_of(d),
                  "offset": self.offsets[i], "dims": d}
        self.records[i] = tensor_record(**{**fields, **change})
        return self

    def bytes(self, **how):
        counts = self.counts or (len(self.records), len(self.metas))
        out = header(self.version, b"".join(self.metas + self.records), counts, **how)
        if not self.tensors:
            return out + bytes(self.slack)
        parts = sorted((o, t[3]) for o, t in zip(self.offsets, self.tensors))
        for offset, data in parts:
            out += self.pad * (offset - len(out)) + data
        if self.tail:
            out += self.pad * (round_up(len(out)) - len(out))
        return out + bytes(self.slack)


def few():
    return [tensor("a", "f32", (2, 3)), tensor("b", "i32", (4,)), tensor("c", "f16", (3,))]


META = [("epoch", 3), ("lr", 0.5)]


def listed(meta):
    return [{
        "key": k, "type": "f64" if isinstance(v, float) else "i64",
        "bits": value_bits(v)[1][::-1].hex()
    } for k, v in meta]


def good_archives(s):
    def put(name, tensors, meta=(), how="", same=False, **options):
        archive = Archive(tensors, meta, **options)
        more = {"rewritten": str(archive.version)} if same else {}
        s.good(name, archive.bytes(how=how), tensors, metadata=listed(meta), **more)

    put("empty.mag", [], same=True)
    put("empty_100.mag", [], same=True, version=100)
    put("meta_only.mag", [], [("min", -2**63), ("max", 2**63 - 1), ("nan", float("nan")),
                              ("-0", -0.0)], slack=40)
    put("small.mag", few(), META, same=True)
    put("all_1.mag", [tensor(f"t.{t}", t, (3, 5)) for t in TYPES_1], META, same=True)
    put("all_100.mag", [tensor(f"t.{t}", t, (3, 5)) for t in TYPES_100], META, same=True,
        version=100)
    put("no_tail.mag", few(), tail=False)
    put("slack.mag", few(), slack=96)
    put("zero_padding.mag", few(), pad=0)
    put("gaps.mag", few(), gap=128)
    put("align_4096.mag", few(), align=4096)
    put("any_order.mag", few(), META, place=[2, 0, 1])
    put("ranks.mag", [tensor(f"r{n}", "f32", (1,) * (n - 1) + (2,)) for n in (1, 6, 8, 9, 255)],
        same=True)
    put("unicode.mag", [tensor("größe/😀", "f32",
                               (1,)), tensor(" ", "f32", (1,))], [("größe/😀", 1)], same=True)
    put("longest_key.mag", [tensor("t" * 65535, "f32", (1,))], [("m" * 65535, 1)], same=True)
    put("two_dictionaries.mag", [tensor("one key", "f32", (2,))], [("one key", -1)], same=True)
    put("largest_values.mag", [], [("max", 2**63 - 1), ("min", -2**63), ("inf", float("inf")),
                                   ("-inf", -float("inf"))], same=True)
    put("many.mag",
        [tensor(f"layer.{i}.w", TYPES_1[i % 4], (i % 7 + 1, i % 3 + 1)) for i in range(300)],
        [(f"k{i}", float(i) if i % 2 else i) for i in range(60)])
    for how in ("ieee", "zeroed", "ieee zeroed", "skipped", "ieee skipped"):
        put(f"crc_{how.replace(' ', '_')}.mag", few(), META, how=how)


def good_code_3(s):
    """Code 3 of version 100 was i32 at first and is u8 now; size and padding of the data decide."""
    old, new = dict(version=100, types=TYPES_1), dict(version=100)
    wide = [tensor("w", "i32", (40,)), tensor("v", "f32", (2,)), tensor("x", "i32", (5, 5))]
    many = [tensor(f"m{i}", "f32", (1,)) for i in range(10)]
    narrow = [tensor("w", "u8", (40,)), tensor("v", "f32", (2,)), tensor("x", "u8", (5, 25))]
    for name, tensors, options in [
        ("code3_i32", wide, old),
        ("code3_i32_slack", wide, {**old, "slack": 32}),
        ("code3_i32_any_order", wide, {**old, "place": [2, 1, 0]}),
        ("code3_i32_last", [tensor("w", "i32", (40,))], old),
        ("code3_i32_last_no_tail", [tensor("w", "i32", (40,))], {**old, "tail": False}),
        ("code3_i32_last_large_slack", [tensor("w", "i32", (1000,))], {**old, "slack": 16}),
        ("code3_i32_one", [tensor("w", "i32", (1,))], old),
        ("code3_i32_small", [tensor("w", "i32", (7,)),
                             tensor("x", "i32", (3,))], old),
        ("code3_i32_small_any_order",
         [tensor("w", "i32", (7,)),
          tensor("v", "f32", (900,)),
          tensor("x", "i32", (16,))], {**old, "place": [2, 1, 0]}),
        ("code3_i32_minus_ones_first", [minus_ones("w", 9),
                                        tensor("x", "i32", (3,))], old),
        ("code3_i32_far_apart", [
            t for i in range(20)
            for t in (minus_ones(f"w{i}", 2) if i != 9 else tensor("w", "i32", (2,)),
                      tensor(f"x{i}", "f32", (30000,)))
        ], old),
        ("code3_i32_gaps", [tensor("w", "i32", (40,)),
                            tensor("x", "i32", (7,))], {**old, "gap": 192}),
        ("code3_i32_last_in_large_slack", many + [tensor("w", "i32",
                                                         (100,))], {**old, "slack": 200}),
        ("code3_u8", narrow, new),
        ("code3_u8_slack", narrow, {**new, "slack": 64}),
        ("code3_u8_last_slack", [tensor("w", "u8", (20,))], {**new, "slack": 96}),
        ("code3_u8_no_tail", narrow, {**new, "tail": False}),
        ("code3_u8_small", [tensor("w", "u8", (7,)),
                            tensor("x", "u8", (3,))], new),
        ("code3_u8_gaps", narrow, {**new, "gap": 64}),
        ("code3_u8_other_code", [tensor("w", "u8", (40,)),
                                 tensor("x", "i8", (4,))], {**new, "align": 256}),
    ]:
        s.good(name + ".mag", Archive(tensors, **options).bytes(), tensors)
    for name, tensors, options in [
        ("u8_small", [tensor("w", "u8", (7,)), tensor("x", "u8", (3,))], new),
        ("u8_without_padding", many + [tensor("w", "u8", (64,))], {**new, "slack": 200}),
        ("i32_minus_ones", [minus_ones("w", 9)], old),
    ]:
        s.bad(f"code3_undecided_{name}.mag", Archive(tensors, **options).bytes(), "accept",
              "nothing decides between u8 and i32", "mag/code-3-undecided")


def minus_ones(name, count):
    """Return a tensor of -1, whose bytes look like the padding of u8 data."""
    return name, "i32", (count,), b"\xff" * 4 * count


# ---- snapshots ----

class Snapshot:
    def __init__(self, tensors, strings=None, keys=None, time=0):
        self.tensors, self.time = tensors, time
        self.strings = strings or [n.encode() for n, _, _, _ in tensors]
        self.keys = keys or list(range(len(tensors)))
        self.markers = [b"SRP!", b"MDT!", b"DSC!", b"BUF!"]
        self.aux = self.meta = 0
        self.count, self.count_strings, self.offsets, self.blob = len(tensors), len(
            self.strings), None, None
        self.descriptors, at = [], 0
        for k, (_, t, d, data) in zip(self.keys, tensors):
            self.descriptors.append([len(d) | TYPES_SNAPSHOT.index(t) << 8, k, count_of(d), at, *d])
            at += len(data)
        self.data = b"".join(t[3] for t in tensors)

    def pool(self):
        ends = [0]
        for text in self.strings:
            ends.append(ends[-1] + len(text))
        ends = self.offsets or ends
        return struct.pack("<I", self.count_strings) + struct.pack(f"<{len(ends)}I", *
                                                                   ends) + b"".join(self.strings)

    def bytes(self, stored=None):
        srp, mdt, dsc, buf = self.markers
        covered = struct.pack("<III", self.aux, self.meta,
                              self.count) + srp + self.pool() + mdt + dsc
        for d in self.descriptors:
            covered += struct.pack("<IIQQ", *d[:4]) + struct.pack(f"<{len(d) - 4}Q", *d[4:])
        value = crc(CASTAGNOLI, covered) if stored is None else stored
        return b"MAG!" + struct.pack("<IQI", 100, self.time, value) + covered + buf + self.data


def good_snapshots(s):
    def put(name, tensors, **options):
        s.good(name, Snapshot(tensors, **options).bytes(), tensors)

    put("snapshot_empty.mag", [])
    put("snapshot.mag", few(), time=1768953600)
    put("snapshot_all.mag", [tensor(f"t.{t}", t, (3, 5)) for t in TYPES_SNAPSHOT])
    put("snapshot_ranks.mag", [tensor(f"r{n}", "f32", (1,) * n) for n in (0, 1, 16)])
    put("snapshot_pool.mag", few(), strings=[b"unused", b"c", b"a", b"b"], keys=[2, 3, 1])


# ---- bad ----

def bad_headers(s):
    ok = Archive(few(), META).bytes()
    s.bad("ok_control.mag", ok, "accept", "the valid file from which the others are made")
    s.bad("payload_changed.mag", patch(ok, 192, "B", ok[192] ^ 1), "accept",
          "no checksum covers the payload")
    for name, data, why in [
        ("only_magic", b"MAG!", "four bytes"),
        ("magic_of_spring_2025", b"MAG&" + ok[4:], "the layout used before August 2025"),
        ("header_cut", ok[:23], "the header is a byte short"),
        ("version_0", patch(ok, 4, "I", 0), "version 0"),
        ("version_2", patch(ok, 4, "I", 2), "version 2"),
        ("version_101", patch(ok, 4, "I", 101), "version 101"),
        ("version_big_endian", patch(ok, 4, "I", 1 << 24), "version 1 in big-endian order"),
        ("crc_zero", Archive(few(), META).bytes(stored=0), "the checksum is 0"),
        ("crc_of_other_bytes", patch(ok, 40, "B", ok[40] ^ 1), "a key's byte was changed"),
        ("version_100_as_1_crc", patch(Archive(few(), META).bytes(how="zeroed"), 4, "I", 100),
         "a changed version, which the checksum covers"),
        ("reserved_header", Archive(few()).bytes(aux=1), "reserved bits in the header"),
    ]:
        s.bad(name + ".mag", data, "reject", why)


def bad_counts(s):
    for name, counts, why in [
        ("tensors_huge", (2**32 - 1, 2), "2^32 - 1 tensors"),
        ("tensors_one_more", (4, 2), "one tensor more than stored"),
        ("meta_huge", (3, 2**32 - 1), "2^32 - 1 metadata records"),
        ("meta_one_more", (3, 3), "a tensor is taken for metadata"),
    ]:
        a = Archive(few(), META)
        a.counts = counts
        s.bad(name + ".mag", a.bytes(), "reject", why)


def bad_meta(s):
    def put(name, why, *records, expect="reject"):
        a = Archive([], META)
        a.metas += records
        s.bad(name + ".mag", a.bytes(), expect, why)

    put("meta_type_0", "metadata type 0 is that of tensors", meta_record("k", kind=0))
    put("meta_type_3", "metadata type 3", meta_record("k", kind=3))
    put("meta_reserved", "reserved bits in a metadata record", meta_record("k", kind=0x101))
    put("meta_key_empty", "an empty metadata key", meta_record(""))
    put("meta_key_long", "a metadata key of 65536 bytes", meta_record("k" * 65536))
    put("meta_key_past_end", "a metadata key longer than the file",
        meta_record("k", key_length=60000))
    put("meta_key_overlong", "UTF-8 longer than need be", meta_record(b"\xc0\xaf"))
    put("meta_key_surrogate", "a surrogate in UTF-8", meta_record(b"\xed\xa0\x80"))
    put("meta_key_twice", "a metadata key twice", meta_record("lr", 1))
    put("meta_key_nul", "a NUL in a key, on which "
                        "Magnetron aborts", meta_record("a\0b"), expect="warn")
    whole = Archive([], META).bytes()
    s.bad("meta_cut.mag", whole[:30], "reject", "a file too small for two metadata records")
    s.bad("meta_head_cut.mag", whole[:59], "reject", "the file ends in a metadata record")
    s.bad("meta_key_cut.mag", whole[:-1], "reject", "the file ends in a metadata key")


def bad_records(s):
    def put(title, why, /, version=1, **change):
        s.bad(title + ".mag",
              Archive(few(), META, version=version).replace(0, **change).bytes(), "reject", why)

    put("reserved_tensor", "reserved bits in a tensor record", aux=0 | 2 << 8 | 1 << 16)
    put("reserved_tensor_top", "the top bit of a tensor record", aux=0 | 2 << 8 | 1 << 31)
    put("type_4_in_1", "element type 4 in version 1", aux=4 | 2 << 8)
    put("type_255", "element type 255", aux=255 | 2 << 8)
    put("type_11_in_100", "element type 11 in version 100", version=100, aux=11 | 2 << 8)
    put("key_empty", "an empty key", name="")
    put("key_long", "a key of 65536 bytes", name="k" * 65536)
    put("key_past_end", "a key longer than the file", key_length=60000)
    put("key_not_utf8", "a key that is not UTF-8", name=b"\xff")
    put("dim_0", "a dimension of 0", dims=(0, 3), numel=0)
    put("dim_2_63", "a dimension of 2^63", dims=(2**63, 1), numel=2**63)
    put("dim_2_63_minus_1", "more bytes than 2^64", dims=(2**63 - 1, 1), numel=2**63 - 1)
    put("shape_wraps", "the product of the shape overflows", dims=(2**32, 2**32), numel=0)
    put("shape_wraps_to_6", "the product of the shape overflows to 6",
        dims=(11, pow(11, -1, 2**64) * 6 % 2**64), numel=6)
    put("numel_7", "6 elements in the shape, 7 in the record", numel=7)
    put("numel_0", "6 elements in the shape, 0 in the record", numel=0)
    put("bytes_wrap", "four times the elements exceed 2^64", dims=(2**62, 1), numel=2**62)
    put("offset_huge", "an offset of 2^62", offset=2**62)
    put("offset_wraps", "offset and size exceed 2^64", offset=2**64 - 8)
    put("offset_0", "data that overlap the header", offset=0)
    put("offset_in_records", "data that overlap the records", offset=128)
    rank_0 = Archive([tensor("a", "f32", (1,))])
    rank_0.records = [tensor_record("a", 0, 1, 64, ())]
    s.bad("rank_0.mag", rank_0.bytes(), "reject", "rank 0")
    a = Archive([tensor("a longer name than need be", "f32", (2, 3)), *few()[1:]], META)
    for i in range(3):
        a.replace(i, offset=0)  # otherwise the first payload would be missing before the cut
    whole = a.bytes()[:a.end]
    s.bad("records_cut.mag", whole[:-40], "reject", "a file too small for three tensor records")
    s.bad("record_cut.mag", whole[:-14], "reject", "the file ends in a tensor record")
    s.bad("shape_cut.mag", whole[:-3], "reject", "the file ends in a shape")
    s.bad("key_cut.mag", whole[:-1], "reject", "the file ends in a key")


def bad_places(s):
    a = Archive(few())
    s.bad("data_cut.mag",
          Archive(few(), tail=False).bytes()[:-1], "reject", "the last payload is a byte short")
    s.bad("data_missing.mag", a.bytes()[:a.end], "reject", "there is no payload")
    s.bad("same_offset.mag", Archive(few()).replace(1, offset=a.offsets[0]).bytes(), "reject",
          "two tensors at the same offset")
    s.bad("overlap.mag", Archive(few()).replace(1, offset=a.offsets[0] + 8).bytes(), "reject",
          "two tensors share bytes")
    by_one = Archive([tensor("a", "f32", (2,)), tensor("b", "f32", (3,))])
    end = by_one.offsets[0] + 8
    s.bad("overlap_by_one.mag",
          by_one.replace(1, offset=end - 1).bytes(), "reject", "two tensors share one byte")
    s.bad("touching.mag",
          by_one.replace(1, offset=end).bytes(), "warn", "adjacent payloads without padding")
    far = Archive(few(), place=[2, 0, 1])
    s.bad("overlap_any_order.mag", far.replace(1, offset=far.offsets[2] + 4).bytes(), "reject",
          "two tensors share bytes, and offsets do not ascend")
    name = few()
    twice = [name[0], tensor("b", "f32", (1,)), tensor("a", "f32", (2,))]
    s.bad("key_twice.mag", Archive(twice).bytes(), "reject", "a tensor key twice")
    s.bad("misaligned.mag", Archive([tensor("a", "f32", (2,))], align=4).bytes(), "warn",
          "a payload at an offset that is not a multiple of 64")
    s.bad("rank_65.mag",
          Archive([tensor("a", "f32", (1,) * 65)]).bytes(), "warn", "65 dimensions",
          rule="mag/rank")
    s.bad("rank_64.mag",
          Archive([tensor("a", "f32", (1,) * 64)]).bytes(), "accept", "64 dimensions",
          without="mag/rank")
    s.bad("bool_2.mag",
          Archive([("a", "bool", (3,), b"\0\1\2")]).bytes(), "warn", "a boolean of 2")
    s.bad("key_nul.mag", Archive([tensor("a\0b", "f32", (2,))]).bytes(), "warn",
          "a NUL in a key, on which Magnetron aborts")


def bad_pools(s):
    def put(name, why, message=None, **change):
        p = Snapshot(few(), strings=change.pop("strings", None))
        for key, value in change.items():
            setattr(p, key, value)
        s.bad(f"snapshot_{name}.mag", p.bytes(), "reject", why, message=message)

    put("strings_too_many", "65535 strings", count_strings=65535)
    put("strings_most", "65534 strings past the end of the file", message="bytes are needed",
        count_strings=65534)
    put("pool_most", "a pool of 128 MiB past the end of the file", message="bytes are needed",
        offsets=[0, 1, 2, 128 << 20])
    put("strings_cut", "offsets past the end of the file", count_strings=60000)
    put("pool_first", "the first offset is not 0", offsets=[1, 1, 2, 3])
    put("pool_large", "a pool of more than 128 MiB", offsets=[0, 1, 2, (128 << 20) + 1])
    put("pool_cut", "a pool past the end of the file", offsets=[0, 1, 2, 10000])
    put("pool_falls", "offsets fall", offsets=[0, 2, 1, 3])
    put("string_empty", "an empty string", strings=[b"a", b"", b"c"])
    put("string_not_utf8", "a string that is not UTF-8", strings=[b"a", b"\xff", b"c"])
    put("strings_split_a_char", "a character split over two "
                                "strings", strings=[b"\xc3", b"\xa9", b"c"])
    put("string_twice", "a string twice, once without a tensor", strings=[b"a", b"b", b"c", b"a"])
    put("key_twice", "two tensors with the same name", descriptors=Snapshot(few(), keys=[0, 1,
                                                                                  1]).descriptors)
    put("no_mdt", "'MDT!' is missing", markers=[b"SRP!", b"MDT?", b"DSC!", b"BUF!"])
    put("no_dsc", "'DSC!' is missing", markers=[b"SRP!", b"MDT!", b"DSC?", b"BUF!"])
    put("no_buf", "'BUF!' is missing", markers=[b"SRP!", b"MDT!", b"DSC!", b"BUF?"])
    put("no_srp", "without 'SRP!' it is an invalid archive",
        markers=[b"SRP?", b"MDT!", b"DSC!", b"BUF!"])
    put("reserved", "reserved bits in the header", aux=1)
    put("metadata", "metadata, which no version defines", meta=4)


def bad_descriptors(s):
    def put(name, why, field, value):
        p = Snapshot(few())
        p.descriptors[1][field] = value
        s.bad(f"snapshot_{name}.mag", p.bytes(), "reject", why)

    put("key_3_of_3", "a string that is not in the pool", 1, 3)
    put("reserved_tensor", "reserved bits in a descriptor", 0, 1 | 9 << 8 | 1 << 16)
    put("type_12", "element type 12", 0, 1 | 12 << 8)
    put("numel_5", "four elements, but five declared", 2, 5)
    put("dim_0", "a dimension of 0", 4, 0)
    put("offset_moved", "an offset that leaves a gap", 3, 32)
    put("bytes_wrap", "a shape of 2^64 bytes", 4, 2**62)
    wrapping = Snapshot(few())
    wrapping.descriptors[0][2:] = [6, 0, 2**63, 2]
    s.bad("snapshot_shape_wraps.mag", wrapping.bytes(), "reject", "the product of a shape "
                                                                  "overflows")
    empty = Snapshot([tensor("z", "f32", (0,))])
    s.bad("snapshot_no_elements.mag", empty.bytes(), "reject", "a tensor without elements")
    high = Snapshot([tensor("r", "f32", (1,) * 64)])
    s.bad("snapshot_rank_64.mag", high.bytes(), "reject", "rank 64")
    most = Snapshot([tensor("r", "f32", (1,) * 63)])
    s.bad("snapshot_rank_63.mag", most.bytes(), "warn", "rank 63")
    odd = Snapshot([tensor("r", "f32", (1,) * 17)])
    s.bad("snapshot_rank_17.mag", odd.bytes(), "warn",
          "rank 17: Magnetron's tensors have 16 at most")


def bad_snapshots(s):
    bad_pools(s)
    bad_descriptors(s)
    whole = Snapshot(few()).bytes()
    data = len(Snapshot(few()).data)
    s.bad("snapshot_crc.mag", Snapshot(few()).bytes(stored=1), "reject", "a wrong checksum")
    s.bad("snapshot_cut.mag", whole[:-1], "reject", "the last payload is a byte short")
    s.bad("snapshot_descriptor_cut.mag", whole[:-data - 4 - 8], "reject",
          "the file ends in a descriptor")
    s.bad("snapshot_longer.mag", whole + b"\0", "warn", "a byte after the last payload")
    more = Snapshot(few())
    more.count = 2**32 - 1
    s.bad("snapshot_tensors_huge.mag", more.bytes(), "reject", "2^32 - 1 tensors")
    s.bad("snapshot_header_cut.mag", whole[:36], "reject", "the file ends after 'SRP!'")


def main():
    s = Samples(sys.argv[1], "mag")
    for write in (good_archives, good_code_3, good_snapshots, bad_headers, bad_counts, bad_meta,
                  bad_records, bad_places, bad_snapshots):
        write(s)


if __name__ == "__main__":
    main()
