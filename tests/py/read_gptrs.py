#!/usr/bin/env python3
"""read_gptrs.py FILE: check a gpt-rs file of Heft and print the content as JSON.

This independent reader is stricter than the format: every byte must have a meaning."""
import json
import sys

from gen_gptrs import TAGS, base_id
from gen_mag import count_of, round_up
from read_mag import InvalidFile, Bytes, require, unique
from samples import SIZES, describe

TYPES = {tag: name for name, tag in TAGS.items()}
ALIGN = 64


def read_config(b):
    raw = b.take(b.numbers("I"))
    config = json.loads(raw.decode("utf-8"))
    require(
        isinstance(config, dict) and isinstance(config.get("kind"), str), f"config_json is {raw!r}")
    return config


def read_entry(b, checkpoint, has_ids):
    raw = b.take(b.numbers("I"))
    name = raw.decode("ascii" if checkpoint else "utf-8")
    if checkpoint:
        require(b.take(16) == (base_id(raw) if has_ids else bytes(16)), f"{name}: the base id")
    rank = b.numbers("I")
    require(rank >= 1, f"{name}: rank 0")
    dims = [b.numbers("Q") for _ in range(rank)]
    tag, grad, offset, length = b.numbers("IBQQ")
    require(tag in TYPES and grad in (0, 1), f"{name}: tag {tag}, flag {grad}")
    require(length == count_of(dims) * SIZES[TYPES[tag]], f"{name}: {length} bytes in shape {dims}")
    return name, TYPES[tag], dims, bool(grad), offset, length


def read(data, align=ALIGN, has_ids=True):
    b = Bytes(data)
    magic = b.take(8)
    require(magic in (b"GPTRSCHK", b"GPTRSTEN"), f"the magic {magic!r}")
    require(b.numbers("I") == 2, "the version")
    checkpoint = magic == b"GPTRSCHK"
    config = read_config(b) if checkpoint else None
    index = Bytes(b.take(b.numbers("I")))
    entries = [read_entry(index, checkpoint, has_ids) for _ in range(index.numbers("I"))]
    require(index.at == len(index.data), "the index is longer than its entries")
    unique((e[0] for e in entries), "a name")
    listed, places = [], set()
    for name, dtype, dims, grad, offset, length in entries:
        if (offset, length) in places and length:  # tied weights: the same bytes once more
            listed.append(
                {**describe(name, dtype, dims, data[offset:offset + length]), "flag": grad})
            continue
        places.add((offset, length))
        require(offset % align == 0 and offset >= round_up(b.at, align),
               f"{name} at {offset}, the last ended at {b.at}")
        b.padding(offset, 0)
        listed.append({**describe(name, dtype, dims, b.take(length)), "flag": grad})
    require(b.at == len(data), f"{len(data) - b.at} bytes follow")
    return {"format": "gptrs", "checkpoint": checkpoint, "config": config, "tensors": listed}


def main():
    for path in sys.argv[1:]:
        try:
            with open(path, "rb") as f:
                print(json.dumps(read(f.read())))
        except (InvalidFile, ValueError) as e:
            sys.exit(f"{path}: {e}")


if __name__ == "__main__":
    main()
