#!/usr/bin/env python3
"""parts_of_ztensor1.py FILE: what a zTensor 1.0 to 1.2 holds, part by part and wherever they lie, as JSON.

A reader of its own: every part is in the file, at a multiple of 64, and what its digest says."""
import hashlib
import json
import struct
import sys

from read_burnpack import decode
from read_mag import Bad, demand
from samples import CASTAGNOLI, crc

MAGIC, ALIGN = b"ZTEN1000", 64


def manifest_of(data):
    """The manifest and where it begins; 1.0 ends with its length, later ones with the magic as well."""
    demand(data[:8] == MAGIC, "the magic")
    end = len(data) - (16 if data[-8:] == MAGIC else 8)
    size, = struct.unpack_from("<Q", data, end)
    demand(size <= end - 8, f"a manifest of {size} bytes")
    value, at = decode(data[end - size:end])
    demand(at == size, f"the manifest has {size} bytes, {at} of which are one item")
    return value, end - size


def check_digest(stored, text):
    name, _, digits = text.partition(":")
    demand(name in ("crc32c", "sha256"), f"digest {text}")
    if name == "sha256":
        demand(hashlib.sha256(stored).hexdigest() == digits, "a part's sha256")
    else:
        demand(crc(CASTAGNOLI, stored) == int(digits, 16), "a part's crc32c")


def read_part(data, end, p):
    at, size = p["offset"], p["length"]
    demand(at % ALIGN == 0 and 8 <= at and at + size <= end, f"a part at {at}, {size} bytes")
    stored = data[at:at + size]
    if p.get("digest"):
        check_digest(stored, p["digest"])
    return {**{k: v for k, v in p.items() if k != "offset"}, "sha256": hashlib.sha256(stored).hexdigest()}


def read(data):
    m, end = manifest_of(data)
    old = "tensors" in m
    demand(m["version"] == "1.0" if old else m["version"] in ("1.1.0", "1.2.0"), f"version {m['version']}")
    listed = []
    for name, o in m["tensors" if old else "objects"].items():
        own = {k: v for k, v in o.items() if k != "components"}
        parts = {role: read_part(data, end, p) for role, p in o["components"].items()}
        listed.append({"name": name, **own, "parts": parts})
    return {"version": m["version"], "tensors": listed, "metadata": m.get("attributes", {})}


if __name__ == "__main__":
    try:
        with open(sys.argv[1], "rb") as f:
            print(json.dumps(read(f.read()), indent=1, default=repr))
    except (Bad, KeyError, ValueError, IndexError, struct.error) as e:
        sys.exit(f"{sys.argv[1]}: {e!r}")
