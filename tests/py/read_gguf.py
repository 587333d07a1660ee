#!/usr/bin/env python3
"""read_gguf.py FILE: read a GGUF file and print the content as JSON.

This reader is independent of Heft. read() also checks files of Heft more strictly than the format
requires: every byte has a meaning, data are in the order of tensors, padding is zero."""
import hashlib
import json
import struct
import sys

import ggml_blocks
from gen_gguf import KINDS, LETTERS, NONE, SPECIAL_KEYS

SPECIAL_TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


class InvalidFile(Exception):
    pass


def require(condition, message):
    if not condition:
        raise InvalidFile(message)


class Bytes:
    def __init__(self, data):
        self.data, self.at, self.order, self.wide = data, 0, "<", "Q"

    def take(self, n):
        require(self.at + n <= len(self.data), f"{n} bytes at {self.at} pass the end")
        self.at += n
        return self.data[self.at - n:self.at]

    def number(self, letter):
        return struct.unpack(self.order + letter, self.take(struct.calcsize("<" + letter)))[0]

    def length(self):
        return self.number(self.wide)

    def text(self):
        raw = self.take(self.length())
        try:
            return raw.decode()
        except UnicodeDecodeError:
            return raw

    def kind(self):
        n = self.number("I")
        require(n < len(KINDS), f"kind {n}")
        return KINDS[n]

    def value(self, kind):
        if kind == "str":
            return self.text()
        if kind == "arr":
            inner, count = self.kind(), self.length()
            return inner, [self.value(inner) for _ in range(count)]
        value = self.number(LETTERS[kind])
        if kind == "bool":
            require(value < 2, f"truth value {value}")
            return bool(value)
        return value


def parse(data):
    """Return (version, True if big-endian, [(key, type, value)], [(name, type, shape, bytes)],
    rest)."""
    b = Bytes(data)
    require(b.take(4) == b"GGUF", "the magic number is another")
    version = b.number("I")
    big = not version & 0xFFFF
    if big:
        b.order, version = ">", struct.unpack(">I", struct.pack("<I", version))[0]
    b.wide = "I" if version == 1 else "Q"
    require(version in (1, 2, 3), f"version {version}")
    tensors, entries = b.length(), b.length()
    meta = []
    for _ in range(entries):
        key = b.text()
        kind = b.kind()
        meta.append((key, kind, b.value(kind)))
    infos = []
    for _ in range(tensors):
        name, rank = b.text(), b.number("I")
        dims = [b.length() for _ in range(rank)]
        number = b.number("I")
        infos.append((name, ggml_blocks.NAMES.get(number, number), dims[::-1], b.number("Q")))
    align = dict((k, v) for k, _, v in meta).get("general.alignment", 32)
    return version, big, meta, read_data(data, b.at, infos, align, big), (b.at, infos, align)


def size_of(dtype, shape, available):
    """Return the size of a tensor; an unknown type takes all `available` bytes."""
    if isinstance(dtype, int):
        require(dtype > max(ggml_blocks.NAMES), f"element type {dtype}")
        return available if all(shape) else 0
    _, elements, size = ggml_blocks.TYPES[dtype]
    count = 1
    for d in shape:
        count *= d
    require((shape[-1] if shape else 1) % elements == 0, f"rows of {shape} in blocks of {elements}")
    return count // elements * size


def available_bytes(infos, offset, end):
    return min([i[3] for i in infos if i[3] > offset], default=end) - offset


def read_data(data, end, infos, align, big):
    start = -(-end // align) * align
    tensors = []
    for name, dtype, shape, offset in infos:
        require(offset % align == 0, f"{name}: offset {offset}")
        size = size_of(dtype, shape, available_bytes(infos, offset, len(data) - start))
        raw = data[start + offset:start + offset + size]
        require(len(raw) == size, f"{name}: {size} bytes pass the end")
        tensors.append((name, dtype, shape, ggml_blocks.byteswap(dtype, raw) if big else raw))
    return tensors


def vocabulary(meta):
    values = {k: v for k, _, v in meta}
    if "tokenizer.ggml.tokens" not in values:
        return None, None
    tokens = values["tokenizer.ggml.tokens"][1]
    values = {k.replace("separator", "seperator"): v for k, v in values.items()}
    ids = [values.get(f"tokenizer.ggml.{k}_token_id") for k in SPECIAL_KEYS]
    if all(i is None for i in ids):
        ids = [tokens.index(name) if name in tokens else None for name in SPECIAL_TOKENS]
    return tokens, [NONE if i is None or i >= len(tokens) else i for i in ids]


def check_written_layout(data, end, infos, align, meta, wanted_align):
    """Check the promises of Heft for written files."""
    require(wanted_align in (None, align), f"the alignment is {align}, not {wanted_align}")
    require(align >= 8 and not align & (align - 1), f"an alignment of {align}")
    require(all(isinstance(k, str) and 0 < len(k.encode()) <= 65535 for k, _, _ in meta),
           "a key that is none")
    require(len({k for k, _, _ in meta}) == len(meta), "a key twice")
    require(len({i[0] for i in infos}) == len(infos), "a name twice")
    require(all(1 <= len(i[2]) <= 4 and max(i[2]) < 2**63 for i in infos),
           "a shape that ggml does not take")
    start = -(-end // align) * align
    require(not data[end:start].strip(b"\0"), "padding in front of the data is not zero")
    at = 0
    for name, dtype, shape, offset in infos:
        require(offset == at, f"{name}: its data are at {offset}, not at {at}")
        size = size_of(dtype, shape, available_bytes(infos, offset, len(data) - start))
        at = at + size if isinstance(dtype, int) else -(-(at + size) // align) * align
        require(not data[start + offset + size:start + at].strip(b"\0"),
               f"{name}: padding is not zero")
    require(len(data) == start + at, f"the file has {len(data)} bytes, not {start + at}")


def read(data, align=None):
    version, big, meta, tensors, (end, infos, own) = parse(data)
    require(not big, "a big-endian file")
    check_written_layout(data, end, infos, own, meta, align)
    tokens, special = vocabulary(meta)
    listed = [{
        "name": n, "dtype": t, "shape": s,
        "layout": "ggml.opaque" if isinstance(t, int) else "dense",
        "sha256": hashlib.sha256(raw).hexdigest()
    } for n, t, s, raw in tensors]
    return {
        "version": version, "tensors": listed, "metadata": {k: v for k, _, v in meta},
        "vocab": tokens, "special": special
    }


def main():
    with open(sys.argv[1], "rb") as f:
        json.dump(read(f.read()), sys.stdout, indent=1, default=repr)
    print()


if __name__ == "__main__":
    main()
