#!/usr/bin/env python3
"""gen_npz.py ROOT: write .npz samples to ROOT/npz, without Heft, NumPy and zipfile.

Good samples: stored and deflated members, zip64, data descriptors, comments, orders. Bad samples:
archives with false fields, members with unexpected content, wrong checksums."""
import dataclasses
import struct
import sys
import zlib

import npy_bytes as npy
from samples import Samples

FULL32, FULL16 = 0xFFFFFFFF, 0xFFFF


def deflated(data, level=6):
    c = zlib.compressobj(level, zlib.DEFLATED, -15)
    return c.compress(data) + c.flush()


@dataclasses.dataclass
class Member:
    name: bytes
    content: bytes
    deflate: bool = False
    wide: bool = False  # sizes in zip64 fields, as in NumPy's archives
    descriptor: str = ""          # "signed", "plain", "wide"
    before: bytes = b""  # bytes before the member
    pad: int = 0  # size of an unknown extra field
    # False values; None is the true value.
    data: bytes = None
    size: int = None
    crc: int = None
    local: dict = dataclasses.field(default_factory=dict)
    central: dict = dataclasses.field(default_factory=dict)


def numbers(m):
    data = m.data if m.data is not None else deflated(m.content) if m.deflate else m.content
    size = len(m.content) if m.size is None else m.size
    crc = zlib.crc32(m.content) if m.crc is None else m.crc
    return data, size, crc


def fields_of(m, central):
    data, size, crc = numbers(m)
    f = {
        "version": 45 if m.wide else 20, "flags": 8 if m.descriptor else 0,
        "method": 8 if m.deflate else 0, "crc": crc, "stored": len(data), "size": size,
        "name": m.name, "extra": b""
    }
    if m.name != m.name.decode(errors="replace").encode("ascii", errors="replace"):
        f["flags"] |= 0x800
    if m.wide:
        f["extra"] += struct.pack("<HHQQ", 1, 16, size, len(data))
        f["stored"] = f["size"] = FULL32
    if m.descriptor and not central:
        f["crc"] = 0
        if not m.wide:
            f["stored"] = f["size"] = 0
    if m.pad and not central:
        f["extra"] += struct.pack("<HH", 0xD935, m.pad - 4) + bytes(m.pad - 4)
    f.update(m.central if central else m.local)
    return f


def head(m):
    f = fields_of(m, False)
    return struct.pack("<IHHHHHIIIHH", 0x04034B50, f["version"], f["flags"],
                       f["method"], 0, 0x21, f["crc"], f["stored"], f["size"], len(f["name"]),
                       len(f["extra"])) + f["name"] + f["extra"]


def descriptor(m):
    data, size, crc = numbers(m)
    if not m.descriptor:
        return b""
    layout = "<IQQ" if m.descriptor == "wide" else "<III"
    signature = b"" if m.descriptor == "plain" else b"PK\7\x08"
    return signature + struct.pack(layout, crc, len(data), size)


def entry(m, at):
    f = {"disk": 0, "at": at, "comment": b"", **fields_of(m, True)}
    return struct.pack("<IHHHHHHIIIHHHHHII", 0x02014B50, 0x314, f["version"], f["flags"],
                       f["method"], 0, 0x21, f["crc"], f["stored"], f["size"], len(f["name"]),
                       len(f["extra"]), len(f["comment"]), f["disk"], 0, 0o600 << 16,
                       f["at"]) + f["name"] + f["extra"] + f["comment"]


def archive(members, order=None, wide_end=False, comment=b"", **lies):
    out, places = b"", []
    for m in members:
        out += m.before
        places.append(len(out))
        out += head(m) + numbers(m)[0] + descriptor(m)
    directory = b"".join(entry(members[i], places[i]) for i in order or range(len(members)))
    at, end = len(out), b""
    count = len(order or members)
    if wide_end:
        end = struct.pack("<IQHHIIQQQQ", 0x06064B50, 44, 45, 45, 0, 0, count, count, len(directory),
                          at)
        end += struct.pack("<IIQI", 0x07064B50, 0, at + len(directory), 1)
    f = {"count": FULL16 if wide_end else count, "bytes": FULL32 if wide_end else len(directory),
         "at": FULL32 if wide_end else at, "disk": 0, **lies}
    end += struct.pack("<IHHHHIIH", 0x06054B50, f["disk"], f["disk"], f["count"], f["count"],
                       f["bytes"], f["at"], len(comment)) + comment
    return out + directory + end


def member(t, order="<", fortran=False, version=(1, 0), align=64, suffix=".npy", **more):
    return Member((t[0] + suffix).encode(),
                  npy.array(t, order, fortran, version=version, align=align), **more)


SHAPES = [("w", "f32", (4, 5)), ("b", "f64", (7,)), ("scale", "f16", ()), ("none", "i32", (0, 3)),
          ("mask", "bool", (33,)), ("ids", "i64", (3, 2, 2)), ("z", "c64", (2, 3))]
TENSORS = [npy.tensor(*t) for t in SHAPES]


# ---- good -------------------------------------------------------------------------------------

def good_members(s):
    for word, more in (("stored", {}), ("deflated", {"deflate": True})):
        s.good(f"{word}.npz", archive([member(t, **more) for t in TENSORS]), TENSORS)
        s.good(f"{word}_numpy.npz", archive([member(t, wide=True, **more) for t in TENSORS]),
               TENSORS)
        s.good(f"{word}_big.npz", archive([member(t, ">", **more) for t in TENSORS]), TENSORS)
        s.good(f"{word}_fortran.npz", archive([member(t, fortran=True, **more) for t in TENSORS]),
               TENSORS)
        s.good(f"{word}_fortran_big.npz", archive([member(t, ">", True, **more) for t in TENSORS]),
               TENSORS)
        s.good(f"{word}_versions.npz",
               archive([member(t, version=(1 + i % 3, 0), **more) for i, t in enumerate(TENSORS)]),
               TENSORS)
        s.good(f"{word}_long_header.npz", archive([member(t, align=4096, **more) for t in TENSORS]),
               TENSORS)
        for kind in ("signed", "plain", "wide"):
            s.good(f"{word}_{kind}.npz",
                   archive([member(t, descriptor=kind, **more) for t in TENSORS]), TENSORS)
    mixed = [member(t, deflate=i % 2 == 0, wide=i % 3 == 0) for i, t in enumerate(TENSORS)]
    s.good("mixed.npz", archive(mixed), TENSORS)
    large = [npy.tensor("large", "f32", (500, 400)), npy.tensor("other", "i16", (70000,))]
    s.good("large_deflated.npz", archive([member(t, "<", True, deflate=True) for t in large]),
           large)
    s.good("large_stored.npz", archive([member(t, ">", True) for t in large]), large)
    zeros = ("zeros", "f32", (300, 1000), bytes(1200000))
    s.good("compressible.npz", archive([member(zeros, deflate=True)]), [zeros])


def good_archives(s):
    plain = [member(t) for t in TENSORS]
    s.good("empty.npz", archive([]), [])
    s.good("zip64.npz", archive(plain, wide_end=True), TENSORS)
    s.good("comment.npz", archive(plain, comment=b"made by hand"), TENSORS)
    s.good("comment_long.npz", archive(plain, comment=b"x" * 65535, wide_end=True), TENSORS)
    s.good("backwards.npz", archive(plain, order=range(len(plain) - 1, -1, -1)), TENSORS[::-1])
    s.good("padded.npz", archive([member(t, pad=4 + 7 * i) for i, t in enumerate(TENSORS)]),
           TENSORS)
    s.good("gaps.npz", archive([plain[0]] + [member(t, before=b"gap" * 50) for t in TENSORS[1:]]),
           TENSORS)
    many = [npy.tensor(f"layer.{i}.weight", "u8", (i % 5, 3)) for i in range(700)]
    s.good("many.npz", archive([member(t) for t in many]), many)
    names = ["with space", "a/b", "\u00e9\u4e2d\U0001f600", "", ".npy", "tab\t", "x" * 3000]
    named = [npy.tensor(n, "u8", (i + 1,)) for i, n in enumerate(names)]
    s.good("names.npz", archive([member(t) for t in named]), named)
    bare = [npy.tensor("bare", "f32", (3,)), npy.tensor("packed", "f32", (5,))]
    s.good(
        "no_suffix.npz",
        archive([plain[0],
                 member(bare[0], suffix=""),
                 member(bare[1], suffix="", deflate=True)]), [TENSORS[0], *bare])
    others = [
        Member(b"config.json", b'{"a": 1}'),
        Member(b"notes", b"packed notes" * 9, deflate=True),
        Member(b"folder/", b"")
    ]
    s.good("parts.npz", archive([plain[0], *others, plain[1]]), TENSORS[:2])
    s.good("parts_first.npz", archive([*others, plain[0]]), TENSORS[:1])


# ---- bad --------------------------------------------------------------------------------------

def lies(s):
    t = TENSORS[0]
    deflate = {"deflate": True}
    content = member(t).content
    for name, m, expect, why in (
        ("crc_stored", member(t, crc=1), "reject", "a wrong CRC-32"),
        ("crc_deflated", member(t, crc=1,
                                **deflate), "reject", "a wrong CRC-32 of compressed content"),
        ("crc_described", member(t, crc=1,
                                 descriptor="signed"), "reject", "a wrong CRC-32 in the data "
                                                                 "descriptor"),
        ("deflate_broken", member(t, data=b"\x07" + bytes(90),
                                  **deflate), "reject", "not deflated at all"),
        ("deflate_cut", member(t, data=deflated(content)[:-3],
                               **deflate), "reject", "a truncated stream"),
        ("deflate_behind", member(t, data=deflated(content) + b"x",
                                  **deflate), "reject", "a byte after the stream"),
        ("deflate_less", member(t, size=len(content) + 1,
                                **deflate), "reject", "one byte less than declared"),
        ("deflate_more", member(t, size=len(content) - 1,
                                **deflate), "reject", "one byte more than declared"),
        ("deflate_bomb", member(t, size=1 << 40, wide=True,
                                **deflate), "reject", "a TiB of two hundred bytes"),
        ("deflate_header", Member(b"x.npy", content[:40],
                                  deflate=True), "reject", "compressed, truncated in the header"),
        ("deflate_empty", Member(b"x.npy", b"", deflate=True), "reject", "compressed nothing"),
        ("stored_empty", Member(b"x.npy", b""), "reject", "an array of no bytes"),
        ("stored_size", member(t, size=7), "reject", "stored, but of two sizes"),
        ("not_an_array", Member(
            b"x.npy", b"PK\3\4 or so, but no "
                      b"array"), "reject", "a member named .npy that is not an array"),
        ("cut_array", Member(b"x.npy", content[:-1]), "reject", "an array without its last byte"),
        ("cut_deflated", Member(b"x.npy", content[:-1],
                                deflate=True), "reject", "the same fault in a compressed member"),
        ("trailing", Member(b"x.npy", content + b"more"), "warn", "bytes after an array"),
        ("trailing_deflated", Member(b"x.npy", content + b"more",
                                     deflate=True), "warn", "the same fault in a "
                                                            "compressed member"),
        ("masked", member(t, local={"flags": 0x2001},
                          central={"flags": 0x2001}), "refuse", "encrypted including the headers"),
        ("local_name", member(t, local={"name": b"v.npy"}), "reject", "a different name in the "
                                                                      "local header"),
        ("local_method", member(t, local={"method": 8}), "reject", "a different method in the "
                                                                   "local header"),
        ("local_size", member(t, local={"stored": 3}), "reject", "a different size in the local "
                                                                 "header"),
        ("local_crc", member(t, local={"crc": 3}), "reject", "a wrong CRC-32 at the data"),
        ("no_header", member(t, central={"at": 4}), "reject", "no header at the member's offset"),
        ("far", member(t, central={"at": 1 << 31}), "reject", "past the end of the file"),
        ("name_latin1", Member(b"\xe9.npy", content, central={"flags": 0},
                               local={"flags": 0}), "refuse", "a name that is not UTF-8"),
        ("name_nul", Member(b"a\0b.npy", content), "reject", "a NUL in a name"),
        ("name_none", Member(b"", content), "reject", "no name"),
    ):
        s.bad(f"{name}.npz", archive([m, member(TENSORS[1])]), expect, why)
    s.bad("deflate_half_header.npz",
          archive([member(t, data=deflated(content[:40]), **deflate), member(TENSORS[1])]),
          "reject", "a stream that ends in the header", message="truncated within the header")


def literal(descr, shape="(1,)"):
    return npy.header("{'descr': %s, 'fortran_order': False, 'shape': %s, }" % (descr, shape))


def unreadable():
    """Yield (name, member, True if damaged rather than unsupported, reason)."""
    t = TENSORS[0]
    content = member(t).content
    both = lambda **f: {"local": f, "central": f}  # noqa: E731
    for deflate, end in ((False, ""), (True, "_deflated")):
        for name, data, broken, why in (
            ("object", literal("'|O'", "()") + b"cos", False, "Python objects"),
            ("text", literal("'<U5'") + bytes(20), False, "strings"),
            ("bytes", literal("'|S3'") + bytes(3), False, "byte strings"),
            ("record", literal("[('a', '<f4')]") + bytes(4), False, "records"),
            ("extended", literal("'<f16'") + bytes(16), False, "extended precision"),
            ("named", literal("'bfloat16'") + bytes(2), False, "the name of another package"),
            ("version", b"\x93NUMPY\x09\0" + content[8:], False, "a version to come"),
            ("header", literal("'<f4'").replace(b"descr", b"discr") + bytes(4), True,
             "a header that does not parse"),
            ("header_cut", content[:40], True, "truncated in the header"),
            ("elements", content[:-1], True, "an array without its last byte"),
            ("magic", b"PK\3\4 or so, but no "
                      b"array", True, "a member named .npy that is not an array"),
        ):
            yield name + end, Member(b"x.npy", data, deflate=deflate), broken, why
    yield "encrypted", member(t, **both(flags=1)), False, "encrypted"
    yield "encrypted_described", member(t, descriptor="signed",
                                        **both(flags=9)), False, "encrypted, with a descriptor"
    yield "patched", member(t, **both(flags=0x20)), False, "patched data"
    yield "bzip2", member(t, data=b"BZh91", **both(method=12)), False, "compressed by bzip2"
    yield "aes", member(t, data=b"12", **both(method=99,
                                              flags=1)), False, "a method beyond a byte's half"
    yield "method_most", member(
        t, size=FULL32 - 1, **both(method=FULL16)), False, "a method of all ones, 4 GiB of content"
    yield "nothing", Member(b"x.npy", b""), True, "an array of no bytes"
    yield "not_deflated", member(t, data=b"\x07" + bytes(90),
                                 deflate=True), True, "not deflated at all"


def one_unreadable(s):
    """A file with one unreadable member opens; a file with only that member does not."""
    for name, m, broken, why in unreadable():
        others = [member(TENSORS[1]), m, member(TENSORS[2], deflate=True)]
        if not broken:
            s.good(f"unreadable_{name}.npz", archive(others), TENSORS[1:3])
        s.bad(f"unreadable_{name}.npz", archive(others), "reject" if broken else "warn", why,
              rule="npz/structure" if broken else "npz/unreadable")
        s.bad(f"only_{name}.npz", archive([m]), "reject" if broken else "refuse", why)
    x = literal("'<U5'") + bytes(20)
    for end, more in (("", {}), ("_deflated", {"deflate": True})):
        s.bad(f"unreadable_crc{end}.npz",
              archive([member(TENSORS[1]), Member(b"x.npy", x, crc=1, **more)]), "reject",
              "the CRC-32 of strings", rule="npz/crc32")
    s.bad("unreadable_flags.npz",
          archive([member(TENSORS[1]), member(TENSORS[0], central={"flags": 1})]), "reject",
          "encrypted only by the directory")


RISKY = [
    "../up", "a/../b", "a\\..\\b", "/etc/passwd", "a\\b", "C:x", "z:/x", "esc\x1b[31m", "tab\t",
    "del\x7f", "c1\x85"
]
HARMLESS = ["..", "...", "a/..b", "b../c", "ab:c", "1:x", ":", "./a", "a//b", "\u00e9\u00a0", "~/x"]


def names(s):
    for i, n in enumerate(RISKY):
        t = npy.tensor(n, "u8", (3,))
        s.good(f"risky_{i}.npz", archive([member(t)]), [t])
        s.bad(f"risky_{i}.npz", archive([member(t)]), "warn", f"the name {n!r}", rule="npz/name")
    for i, n in enumerate(HARMLESS):
        s.bad(f"harmless_{i}.npz", archive([member(npy.tensor(n, "u8", (3,)))]), "accept",
              f"the name {n!r}", without="npz/name")
    for name, m in (("part", Member(b"../config.json", b"{}")), ("folder", Member(b"../", b"")),
                    ("text", Member(b"../x.npy", literal("'<U5'") + bytes(20)))):
        s.bad(f"risky_{name}.npz", archive([member(TENSORS[0]), m]), "warn",
              f"the name of a {name}", rule="npz/name")


def broken_archives(s):
    two = [member(t) for t in TENSORS[:2]]
    whole = archive(two)
    s.bad("cut.npz", whole[:-1], "reject", "the last byte is missing")
    s.bad("cut_half.npz", whole[:len(whole) // 2], "reject", "truncated in the middle")
    s.bad("behind.npz", whole + b"\0", "accept", "a byte after the end",
          rule="zip/trailing-bytes")
    s.bad("magic.npz", whole[:30], "reject", "header only")
    s.bad("twice.npz", archive(two, order=[0, 0, 1]), "reject", "a member twice in the directory")
    same = [two[0], Member(two[0].name, two[1].content)]
    s.bad("same_name.npz", archive(same), "reject", "two members with the same name")
    t = npy.tensor("w", "f32", (2,))
    s.bad("same_tensor.npz", archive([member(t), member(t, suffix="")]), "reject", "w and w.npy")
    overlap = Member(b"in.npy", two[1].content)
    outer = Member(
        b"out.npy",
        npy.header("{'descr': '|u1', 'fortran_order': False, 'shape': (%d,)}" %
                   len(head(overlap) + overlap.content)) + head(overlap) + overlap.content)
    inner_at = len(head(outer)) + len(outer.content) - len(head(overlap) + overlap.content)
    directory = entry(outer, 0) + entry(overlap, inner_at)
    body = head(outer) + outer.content
    end = struct.pack("<IHHHHIIH", 0x06054B50, 0, 0, 2, 2, len(directory), len(body), 0)
    s.bad("overlap.npz", body + directory + end, "reject", "a member inside another")
    for name, expect, more, why in (
        ("disk", "refuse", {"disk": 1}, "a volume of several"),
        ("count_more", "reject", {"count": 3}, "more members than entries"),
        ("count_less", "reject", {"count": 1}, "fewer members than entries"),
        ("count_most", "reject", {"count": 65535}, "65535 members"),
        ("directory_size", "reject", {"bytes": 5}, "a directory of five bytes"),
        ("directory_place", "reject", {"at": 5}, "a directory in the first member"),
        ("directory_far", "reject", {"at": FULL32, "bytes": FULL32}, "a directory past the end"),
    ):
        s.bad(f"{name}.npz", archive(two, **more), expect, why)
    twice = Member(b"a.npy", two[0].content, wide=True)
    again = {"extra": fields_of(twice, True)["extra"] * 2}
    s.bad("wide_twice.npz", archive([dataclasses.replace(twice, central=again)]), "reject",
          "two zip64 fields of a member")
    wide = archive(two, wide_end=True)
    at = wide.index(b"PK\6\6")
    for name, offset, layout, value, why in (
        ("zip64_size", 4, "<Q", 2**64 - 1, "a zip64 record of 2^64 - 1 bytes"),
        ("zip64_count", 32, "<Q", 2**63, "2^63 members"),
        ("zip64_directory", 40, "<Q", 2**64 - 8, "a directory whose end overflows"),
        ("zip64_wraps", 40, "<Q", 2**64 - 8, "a directory after the end records, which it reaches"),
        ("zip64_place", 56 + 8, "<Q", 2**64 - 1, "a zip64 record past the end"),
        ("zip64_disk", 16, "<I", 1, "the number of its volume in the zip64 record only"),
        ("zip64_directory_disk", 20, "<I", 1, "the volume of the directory there only"),
        ("zip64_bytes", 40, "<Q", 5, "another size of the directory there"),
    ):
        bad = bytearray(wide)
        struct.pack_into(layout, bad, at + offset, value)
        if name == "zip64_count":
            struct.pack_into(layout, bad, at + 24, value)
        if name == "zip64_wraps":
            struct.pack_into("<Q", bad, at + 48, at + 8)
        s.bad(f"{name}.npz", bytes(bad), "reject", why)
    s.bad("parts_noted.npz", archive([*two, Member(b"config.json", b"{}")]), "accept",
          "a member that is not an array")
    s.bad("parts_crc.npz", archive([*two, Member(b"config.json", b"{}", crc=1)]), "reject",
          "a wrong CRC-32 of a member that is not an array")


def main():
    s = Samples(sys.argv[1], "npz")
    for make in (good_members, good_archives, lies, one_unreadable, names, broken_archives):
        make(s)


if __name__ == "__main__":
    main()
