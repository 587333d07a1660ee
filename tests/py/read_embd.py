#!/usr/bin/env python3
"""read_embd.py FILE: check an EMBD .weights file of Heft and print the content as JSON.

This independent reader is stricter than the format: every byte must have a meaning."""
import json
import sys
import zlib

from gen_embd import ALIGNED, CHECKSUMS, NONE, TYPES, VOCAB_EMBEDDED, fnv1a, round_up
from read_mag import InvalidFile, Bytes, count_of, require, unique
from samples import SIZES, describe

HEADER, FOOTER, ALIGN = 64, 16, 64
NAMES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


def read_metadata(b, size):
    start = b.at
    entries, total = b.numbers("II")
    require(size == 8 + total, f"metadata_size {size}, total_size {total}")
    meta = []
    for _ in range(entries):
        key, value = b.numbers("HH")
        meta.append({"key": b.take(key).decode("utf-8"), "value": b.take(value).decode("utf-8")})
    require(b.at == start + size, "the end of the metadata")
    unique((m["key"] for m in meta), "a metadata key")
    return meta


def read_vocabulary(b, size):
    start = b.at
    count, total, special_at = b.numbers("III")
    require(size == 12 + total + 20, f"vocab_size {size}, total_size {total}")
    require(special_at == start + 12 + total, f"special_tokens {special_at}")
    tokens = [b.take(b.numbers("H")).decode("utf-8") for _ in range(count)]
    require(b.at == special_at, "the end of the tokens")
    special = b.numbers("5I")
    require(all(i < count or i == NONE for i in special), f"special ids {special}")
    return tokens, list(special)


def read_index(b, count):
    records = []
    for _ in range(count):
        stored, kind, rank, length = b.numbers("IBBH")
        dims, offset = b.numbers("4I"), b.numbers("Q")
        require(kind < len(TYPES) and 1 <= rank <= 4, f"type {kind}, rank {rank}")
        require(all(dims[:rank]) and not any(dims[rank:]), f"shape {dims} of rank {rank}")
        records.append((stored, TYPES[kind], list(dims[:rank]), offset, length))
    names = [b.take(length) for *_, length in records]
    for name, record in zip(names, records):
        require(fnv1a(name) == record[0], f"the hash of {name}")
    return [(n.decode("utf-8"), t, d, o) for n, (_, t, d, o, _) in zip(names, records)]


def read_specified(b, align):
    require(b.numbers("HH") == (1, 0), "version 1.0")
    flags, meta_at, meta_size, vocab_at, vocab_size, index_at, tensors, data_at = b.numbers("8I")
    data_size, total = b.numbers("QQ")
    stored, reserved = b.numbers("II")
    require(reserved == 0 and total == len(b.data), f"reserved {reserved}, total {total}")
    require(stored == zlib.crc32(b.data[:56]), "the header's checksum")
    require(flags == ALIGNED | CHECKSUMS | (VOCAB_EMBEDDED if vocab_size else 0),
           f"flags {flags:#x}")
    require(meta_at == b.at, f"metadata at {meta_at}")
    meta, vocabulary = read_metadata(b, meta_size), None
    require(vocab_at == (b.at if vocab_size else 0), f"vocabulary at {vocab_at}")
    if vocab_size:
        vocabulary = read_vocabulary(b, vocab_size)
    require(index_at == b.at, f"index at {index_at}")
    records = read_index(b, tensors)
    b.padding(data_at, 0)
    require(data_at % align == 0, f"data at {data_at}")
    listed = []
    for name, dtype, dims, offset in records:
        require(data_at + offset == round_up(b.at, align), f"{name} at {offset}")
        b.padding(data_at + offset, 0)
        listed.append(describe(name, dtype, dims, b.take(count_of(dims) * SIZES[dtype])))
    require(b.at == data_at + data_size, "the end of the data")
    footer = b.at
    require(b.numbers("I") == zlib.crc32(b.data[data_at:footer]), "the data's checksum")
    require(b.numbers("I") == zlib.crc32(b.data[:footer]), "the file's checksum")
    require(b.take(4) == b"DBME" and b.numbers("I") == 0, "the footer")
    return listed, meta, vocabulary


def read_simple(b):
    version, count = b.numbers("II")
    require(version == 1, f"version {version}")
    listed = []
    for _ in range(count):
        name = b.take(b.numbers("I")).decode("utf-8")
        rank = b.numbers("I")
        require(1 <= rank <= 4, f"rank {rank}")
        dims = [b.numbers("I") for _ in range(rank)]
        require(all(dims), f"shape {dims}")
        listed.append(describe(name, "f32", dims, b.take(4 * count_of(dims))))
    tokens = [b.take(b.numbers("I")).decode("utf-8") for _ in range(b.numbers("I"))]
    special = [tokens.index(n) if n in tokens else NONE for n in NAMES]
    return listed, [], (tokens, special) if tokens else None


def read(data, align=ALIGN):
    b = Bytes(data)
    require(b.take(4) == b"EMBD", "the magic")
    specified = len(data) >= HEADER + FOOTER and data[-8:-4] == b"DBME"
    tensors, meta, vocabulary = read_specified(b, max(align,
                                                      ALIGN)) if specified else read_simple(b)
    require(b.at == len(data), f"{len(data) - b.at} bytes follow")
    unique((t["name"] for t in tensors), "a tensor")
    tokens, special = vocabulary or (None, None)
    return {
        "format": "embd", "version": "1.0" if specified else "simple", "tensors": tensors,
        "metadata": meta, "vocab": tokens, "special": special
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
