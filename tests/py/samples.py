"""samples.py - shared code of the sample writers: files, facts, CRCs.

A sample FILE is in ROOT/FORMAT/good or ROOT/FORMAT/bad, with facts in FILE.json. Good samples list
tensors. Bad samples have "why" and the expected result of verify: reject, warn, accept, or refuse
(a limit of heft)."""
import hashlib
import json
import pathlib
import random
import struct

SIZES = {
    "bool": 1, "u8": 1, "i8": 1, "u16": 2, "i16": 2, "f16": 2, "bf16": 2, "u32": 4, "i32": 4,
    "f32": 4, "u64": 8, "i64": 8, "f64": 8
}


class Samples:
    def __init__(self, root, format_name):
        self.format = format_name
        self.dir = pathlib.Path(root) / format_name
        for kind in ("good", "bad"):
            (self.dir / kind).mkdir(parents=True, exist_ok=True)

    def write(self, kind, name, data, facts):
        path = self.dir / kind / name
        if path.exists():
            raise ValueError(f"there are two samples {kind}/{name}")
        path.write_bytes(data)
        path.with_name(name +
                       ".json").write_text(json.dumps({"file": name, **facts}, indent=1) + "\n")

    def good(self, name, data, tensors, **more):
        listed = [describe(*t) for t in tensors]
        self.write("good", name, data, {"format": self.format, "tensors": listed, **more})

    def bad(self, name, data, expect, why, rule=None, without=None, message=None):
        """Write a bad sample. verify must report `rule` and must not report `without`; the first
        fault must contain `message`."""
        if expect not in ("reject", "warn", "accept", "refuse"):
            raise ValueError(expect)
        asked = {k: v for k, v in {"rule": rule, "without": without, "message": message}.items()
                 if v}
        self.write("bad", name, data, {"expect": expect, "why": why, **asked})


def describe(name, dtype, shape, data):
    return {
        "name": name, "dtype": dtype, "shape": list(shape), "layout": "dense", "nbytes": len(data),
        "sha256": hashlib.sha256(data).hexdigest()
    }


def tensor(name, dtype, shape, seed=1):
    """Return (name, dtype, shape, bytes) with reproducible random bytes."""
    count = 1
    for d in shape:
        count *= d
    rng = random.Random(f"{seed} {name}")
    if dtype == "bool":
        data = bytes(rng.randrange(2) for _ in range(count))
    else:
        data = rng.randbytes(count * SIZES[dtype])
    return name, dtype, tuple(shape), data


def crc_table(polynomial):
    table = []
    for i in range(256):
        for _ in range(8):
            i = i >> 1 ^ (polynomial if i & 1 else 0)
        table.append(i)
    return table


CASTAGNOLI, IEEE = crc_table(0x82F63B78), crc_table(0xEDB88320)


def crc(table, data):
    value = 0xFFFFFFFF
    for byte in data:
        value = value >> 8 ^ table[(value ^ byte) & 255]
    return value ^ 0xFFFFFFFF


def patch(data, at, layout, *values):
    """Return `data` with numbers replaced at offset `at`."""
    new = struct.pack("<" + layout, *values)
    return data[:at] + new + data[at + len(new):]


if crc(CASTAGNOLI, b"123456789") != 0xE3069283 or crc(IEEE, b"123456789") != 0xCBF43926:
    raise AssertionError("the CRC tables are wrong")
