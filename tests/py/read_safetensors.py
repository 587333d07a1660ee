#!/usr/bin/env python3
"""read_safetensors.py [--writer] FILE...: read .safetensors files without Heft.

The reader is as strict as the reference (the Rust crate safetensors) and, where the crate is
lenient, as the specification. --writer also checks the promises of Heft for written files. Prints a
JSON document per file: metadata, and tensors with name, dtype, shape, nbytes, sha256. Ends with
status 1 at the first invalid file."""
import hashlib
import json
import struct
import sys

MAX_HEADER = 100_000_000
MAX_DEPTH = 128  # limit of serde_json
BITS = {
    "BOOL": 8, "F4": 4, "F6_E2M3": 6, "F6_E3M2": 6, "U8": 8, "I8": 8, "F8_E5M2": 8, "F8_E4M3": 8,
    "F8_E8M0": 8, "F8_E4M3FNUZ": 8, "F8_E5M2FNUZ": 8, "I16": 16, "U16": 16, "F16": 16, "BF16": 16,
    "I32": 32, "U32": 32, "F32": 32, "C64": 64, "F64": 64, "I64": 64, "U64": 64
}


class InvalidFile(Exception):
    pass


def require(condition, why):
    if not condition:
        raise InvalidFile(why)


def pairs(items):
    found = {}
    for key, value in items:
        require(key not in found, f"key {key!r} occurs twice")
        found[key] = value
    return found


def natural(text):
    require(not text.startswith("-"), f"a negative number: {text}")
    return int(text)


def no_float(text):
    raise InvalidFile(f"a number that is not an integer: {text}")


def depth_of(value):
    depth, level = 0, [value]
    while level:
        depth += 1
        level = [
            c for v in level if isinstance(v, (dict, list))
            for c in (v.values() if isinstance(v, dict) else v)
        ]
    return depth


def parse_header(raw):
    try:
        text = raw.decode("utf-8")
        header = json.loads(text, object_pairs_hook=pairs, parse_int=natural,
                            parse_float=no_float, parse_constant=no_float)
        text.encode("utf-8")
        json.dumps(header, ensure_ascii=False).encode("utf-8")  # no lone surrogates
    except ValueError as e:
        raise InvalidFile(f"the header is not JSON: {e}") from None
    require(isinstance(header, dict), "the header is not an object")
    require(depth_of(header) <= MAX_DEPTH, "the header is nested too deeply")
    return text, header


def count_of(value, what):
    require(type(value) is int and 0 <= value < 2**63, f"{what}: {value!r} is no size")
    return value


def check_entry(name, e):
    require(isinstance(e, dict), f"{name!r}: not an object")
    require({"dtype", "shape", "data_offsets"} <= set(e), f"{name!r}: a field is missing")
    require(isinstance(e["dtype"], str) and e["dtype"] in BITS, f"{name!r}: dtype {e['dtype']!r}")
    require(isinstance(e["shape"], list), f"{name!r}: shape {e['shape']!r}")
    offsets = e["data_offsets"]
    require(isinstance(offsets, list) and len(offsets) == 2, f"{name!r}: data_offsets {offsets!r}")
    begin, end = (count_of(o, f"{name!r}: data_offsets") for o in offsets)
    require(begin <= end, f"{name!r}: the end lies before the begin")
    elements = 1
    for d in e["shape"]:
        elements *= count_of(d, f"{name!r}: shape")
        require(elements < 2**64, f"{name!r}: the shape overflows")
    size, rest = divmod(elements * BITS[e["dtype"]], 8)
    require(not rest, f"{name!r}: the elements do not fill whole bytes")
    require(size == end - begin, f"{name!r}: {end - begin} bytes for a shape that takes {size}")
    return begin, end


def check_tiling(places, size):
    at = 0
    for begin, end, name in sorted(places):
        require(begin == at, f"{name!r}: its data begin at {begin}, those before end at {at}")
        at = end
    require(at == size, f"the tensors end at {at}, the data at {size}")


def check_metadata(metadata):
    require(metadata is None or isinstance(metadata, dict), "__metadata__ is not an object")
    for key, value in (metadata or {}).items():
        require(isinstance(value, str), f"metadata {key!r} is {value!r}, not text")
    return metadata or {}


def compact(document):
    """JSON without spaces, as safetensors writes it."""
    return json.dumps(document, separators=(",", ":"), ensure_ascii=False)


def check_writer(text, header, n, places):
    """Check the promises of Heft for written files."""
    body = text.rstrip(" ")
    require(body == compact(header), "the header is not compact JSON")
    require((8 + n) % 8 == 0, "the data do not begin at a multiple of 8")
    require(
        "__metadata__" not in header
        or (next(iter(header)) == "__metadata__" and header["__metadata__"]),
        "__metadata__ is not in front, or empty")
    for begin, _, name in places:
        e = header[name]
        require(
            list(e) == ["dtype", "shape", "data_offsets"], f"{name!r}: the fields are {list(e)}")
        require(begin % max(1, BITS[e["dtype"]] // 8) == 0,
             f"{name!r}: its data lie at {begin} of the data section")


def read(path, of_heft=False):
    with open(path, "rb") as f:
        raw = f.read()
    require(len(raw) >= 8, "shorter than the length of the header")
    n = struct.unpack("<Q", raw[:8])[0]
    require(n <= MAX_HEADER, f"a header of {n} bytes")
    require(8 + n <= len(raw), "the header passes the end of the file")
    text, header = parse_header(raw[8:8 + n])
    require(text.startswith("{"), "the header does not begin with {")
    metadata = check_metadata(header.get("__metadata__"))
    data = raw[8 + n:]
    places = [(*check_entry(k, v), k) for k, v in header.items() if k != "__metadata__"]
    check_tiling(places, len(data))
    if of_heft:
        check_writer(text, header, n, places)
    tensors = [{
        "name": k, "dtype": header[k]["dtype"], "shape": header[k]["shape"], "nbytes": end - begin,
        "sha256": hashlib.sha256(data[begin:end]).hexdigest()
    } for begin, end, k in places]
    return {"data": 8 + n, "tensors": tensors, "metadata": metadata}


def main():
    of_heft = "--writer" in sys.argv
    for path in [a for a in sys.argv[1:] if a != "--writer"]:
        try:
            print(json.dumps(read(path, of_heft)))
        except InvalidFile as e:
            print(f"{path}: {e}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
