#!/usr/bin/env python3
"""read_mag.py FILE: check a .mag file of Heft and print the content as JSON.

This independent reader is stricter than the format: every byte must have a meaning."""
import json
import struct
import sys

from gen_mag import F64, I64, TYPES_1, TYPES_100, TYPES_SNAPSHOT, count_of, round_up
from samples import CASTAGNOLI, SIZES, crc, describe

MAX_KEY, ALIGN = 65535, 64


class InvalidFile(Exception):
    pass


def require(condition, message):
    if not condition:
        raise InvalidFile(message)


class Bytes:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, n):
        require(self.at + n <= len(self.data), f"{n} bytes at {self.at} pass the end")
        self.at += n
        return self.data[self.at - n:self.at]

    def numbers(self, layout):
        values = struct.unpack("<" + layout, self.take(struct.calcsize("<" + layout)))
        return values if len(values) > 1 else values[0]

    def padding(self, end, byte):
        require(
            self.take(end - self.at).strip(bytes([byte])) == b"",
            f"bytes before {end} are not {byte:#x}")


def read_key(b):
    length = b.numbers("I")
    require(1 <= length <= MAX_KEY, f"a key of {length} bytes")
    key = b.take(length).decode("utf-8")
    require("\0" not in key, "a key with a NUL")
    return key


def read_meta(b):
    kind = b.numbers("I")
    bits = b.take(8)
    require(kind in (I64, F64), f"metadata type {kind}")
    return {"key": read_key(b), "type": "i64" if kind == I64 else "f64", "bits": bits[::-1].hex(),
            "value": struct.unpack("<q" if kind == I64 else "<d", bits)[0]}


def check_shape(name, numel, dims):
    require(all(1 <= d < 2**63 for d in dims), f"{name}: shape {dims}")
    require(numel == count_of(dims), f"{name}: {numel} elements in shape {dims}")


def read_record(b, types):
    aux, numel, offset = b.numbers("IQQ")
    rank = aux >> 8 & 255
    require(aux >> 16 == 0 and rank >= 1 and aux & 255 < len(types), f"a tensor's aux is {aux:#x}")
    dims = [b.numbers("Q") for _ in range(rank)]
    name = read_key(b)
    check_shape(name, numel, dims)
    return name, types[aux & 255], dims, offset


def unique(names, what):
    names = list(names)
    require(len(names) == len(set(names)), f"{what} twice")


def read_archive(b, version):
    stored, tensors, metas, aux = b.numbers("IIII")
    require(aux == 0, "header aux")
    meta = [read_meta(b) for _ in range(metas)]
    records = [read_record(b, TYPES_1 if version == 1 else TYPES_100) for _ in range(tensors)]
    require(stored == crc(CASTAGNOLI, b.data[12:b.at]), "the checksum")
    unique((m["key"] for m in meta), "a metadata key")
    if records:
        b.padding(records[0][3], 0xFF)
    listed = []
    for name, dtype, dims, offset in records:
        require(offset % ALIGN == 0, f"{name} at {offset}")
        require(offset >= round_up(b.at), f"{name} at {offset} is not behind {b.at}")
        b.padding(offset, 0xFF)
        listed.append(describe(name, dtype, dims, b.take(count_of(dims) * SIZES[dtype])))
    if records:
        b.padding(round_up(b.at), 0xFF)
    return listed, meta


def read_strings(b):
    count = b.numbers("I")
    require(count + 1 <= 65535, f"{count} strings")
    offsets = [b.numbers("I") for _ in range(count + 1)]
    require(offsets[0] == 0 and offsets[-1] <= 128 << 20, "offsets of the pool")
    blob = b.take(offsets[-1])
    strings = [blob[i:j].decode("utf-8") for i, j in zip(offsets, offsets[1:])]
    require(all(strings) and offsets == sorted(offsets), "an empty string, or falling offsets")
    unique(strings, "a string")
    return strings


def read_snapshot(b):
    time, stored, aux, meta, tensors = b.numbers("QIIII")
    require((time, aux, meta) == (0, 0, 0), "time, reserved and metadata have to be 0")
    require(b.take(4) == b"SRP!", "SRP!")
    strings = read_strings(b)
    require(b.take(8) == b"MDT!DSC!", "MDT!DSC!")
    records = []
    for _ in range(tensors):
        aux, key, numel, offset = b.numbers("IIQQ")
        require(aux >> 16 == 0 and aux & 255 <= 16 and aux >> 8 < len(TYPES_SNAPSHOT),
               f"aux {aux:#x}")
        dims = [b.numbers("Q") for _ in range(aux & 255)]
        check_shape(strings[key], numel, dims)
        records.append((strings[key], TYPES_SNAPSHOT[aux >> 8], dims, offset))
    require(stored == crc(CASTAGNOLI, b.data[20:b.at]), "the checksum")
    require(b.take(4) == b"BUF!", "BUF!")
    start, listed = b.at, []
    for name, dtype, dims, offset in records:
        require(b.at == start + offset, f"{name} at {offset}")
        listed.append(describe(name, dtype, dims, b.take(count_of(dims) * SIZES[dtype])))
    require({t["name"] for t in listed} == set(strings), "a string without a tensor")
    return listed, []


def read(data):
    b = Bytes(data)
    require(b.take(4) == b"MAG!", "the magic")
    version = b.numbers("I")
    require(version in (1, 100), f"version {version}")
    snapshot = version == 100 and data[32:36] == b"SRP!"
    tensors, meta = read_snapshot(b) if snapshot else read_archive(b, version)
    require(b.at == len(data), f"{len(data) - b.at} bytes follow")
    unique((t["name"] for t in tensors), "a tensor")
    return {
        "format": "mag", "version": "snapshot" if snapshot else str(version), "tensors": tensors,
        "metadata": meta
    }


def main():
    for path in sys.argv[1:]:
        try:
            with open(path, "rb") as f:
                print(json.dumps(read(f.read())))
        except (InvalidFile, UnicodeDecodeError) as e:
            sys.exit(f"{path}: {e}")


if __name__ == "__main__":
    main()
