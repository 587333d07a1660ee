#!/usr/bin/env python3
"""read_npz.py FILE...: read .npy and .npz files of Heft, without Heft, NumPy and zipfile.

Accepted files follow the formats and the promises of heft: version 1.0, row-major, little-endian;
members stored, in order, without gaps, aligned, with consistent headers, directory and descriptors.
Prints a JSON document per file. Ends with status 1 at the first invalid file."""
import ast
import hashlib
import json
import pathlib
import struct
import sys
import zlib

ALIGN = 64
TYPES = {
    "|b1": "bool", "|u1": "u8", "|i1": "i8", "<u2": "u16", "<i2": "i16", "<f2": "f16", "<u4": "u32",
    "<i4": "i32", "<f4": "f32", "<u8": "u64", "<i8": "i64", "<f8": "f64", "<c8": "c64",
    "<c16": "c128"
}


class InvalidFile(Exception):
    pass


def require(condition, why):
    if not condition:
        raise InvalidFile(why)


def array(raw, name, at, align):
    """Read the array in `raw`, whose first byte is byte `at` of the file."""
    require(raw[:8] == b"\x93NUMPY\1\0", f"{name}: not an array of version 1.0")
    n = struct.unpack("<H", raw[8:10])[0]
    text = raw[10:10 + n].decode("ascii")
    require(text.endswith("\n"), f"{name}: its header does not end a line")
    header = ast.literal_eval(text)
    require(
        list(header) == ["descr", "fortran_order", "shape"], f"{name}: fields are {list(header)}")
    require(header["fortran_order"] is False, f"{name}: columns first")
    require(header["descr"] in TYPES, f"{name}: type {header['descr']}")
    require((at + 10 + n) % align == 0, f"{name}: its data are at {at + 10 + n}")
    count, data = 1, raw[10 + n:]
    for d in header["shape"]:
        count *= d
    require(
        len(data) == count * int(header["descr"][2:]),
        f"{name}: {len(data)} bytes for {header['shape']}")
    return {
        "name": name, "dtype": TYPES[header["descr"]], "shape": list(header["shape"]),
        "nbytes": len(data), "sha256": hashlib.sha256(data).hexdigest()
    }


def entry(raw, at):
    (sign, _, version, flags, method, time, date, crc, stored, size, n, extra, comment, disk, _, _,
     head) = \
        struct.unpack_from("<IHHHHHHIIIHHHHHII", raw, at)
    require(sign == 0x02014B50, f"no entry at {at}")
    require((flags & ~0x800, method, time, date, comment, disk) == (8, 0, 0, 0x21, 0, 0),
         f"odd entry at {at}")
    require(stored == size and size < 2**32 - 1 and version == 20 and not extra,
            f"odd sizes at {at}")
    return raw[at + 46:at + 46 + n].decode(), flags, crc, size, head, at + 46 + n


def member(raw, name, flags, crc, size, head):
    """Return the offset of a member's data and the end of the member."""
    sign, version, local, method, _, date, *zeros, n, extra = struct.unpack_from(
        "<IHHHHHIIIHH", raw, head)
    require((sign, version, local, method, date) == (0x04034B50, 20, flags, 0, 0x21),
         f"{name}: odd header")
    require(zeros == [0, 0, 0], f"{name}: numbers before their time")
    require(raw[head + 30:head + 30 + n].decode() == name, f"{name}: another name at its data")
    require(bool(flags & 0x800) == (not name.isascii()), f"{name}: flags {flags:x}")
    padding = raw[head + 30 + n:head + 30 + n + extra]
    if extra:
        require(padding == struct.pack("<HH", 0xD935, extra - 4) + bytes(extra - 4),
             f"{name}: odd padding")
    at = head + 30 + n + extra
    require(zlib.crc32(raw[at:at + size]) == crc, f"{name}: another CRC-32")
    require(raw[at + size:at + size + 16] == b"PK\7\x08" + struct.pack("<III", crc, size, size),
         f"{name}: descriptor")
    return at, at + size + 16


def read(raw, align=None):
    align = max(align or ALIGN, ALIGN)
    if raw[:1] == b"\x93":
        return {"tensors": [array(raw, "data", 0, align)]}
    sign, disk, _, here, count, length, directory, comment = struct.unpack_from(
        "<IHHHHIIH", raw,
        len(raw) - 22)
    require((sign, disk, comment) == (0x06054B50, 0, 0) and here == count,
         "no plain end of an archive")
    require(directory + length == len(raw) - 22, "the directory does not end at the end")
    tensors, at, follows = [], directory, 0
    for _ in range(count):
        name, flags, crc, size, head, at = entry(raw, at)
        require(head == follows, f"{name}: a gap before it")
        begin, follows = member(raw, name, flags, crc, size, head)
        require(name.endswith(".npy"), f"{name} is no array")
        tensors.append(array(raw[begin:begin + size], name[:-4], begin, align))
    require(follows == directory and at == len(raw) - 22, "bytes that belong to nothing")
    return {"tensors": tensors}


def main():
    for path in sys.argv[1:]:
        try:
            print(json.dumps(read(pathlib.Path(path).read_bytes())))
        except InvalidFile as e:
            print(f"{path}: {e}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
