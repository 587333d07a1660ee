$PYTHON -c '
import struct
def text(s):
    return struct.pack("<Q", len(s.encode())) + s.encode()
def pair(key, kind, data):
    return text(key) + struct.pack("<I", kind) + data
def array(kind, *items):
    return struct.pack("<IQ", kind, len(items)) + b"".join(items)
pairs = [
    pair("u8", 0, b"\x07"), pair("i8", 1, b"\xf9"), pair("u16", 2, b"\x07\0"),
    pair("f32", 6, struct.pack("<f", 0.1)), pair("yes", 7, b"\1"),
    pair("long", 8, text("\u00e9" * 400)), pair("odd", 8, text("x" + "\u00e9" * 400)), pair("f64", 12, struct.pack("<d", 1e300)),
    pair("list", 9, array(9, array(5, struct.pack("<i", 3)), array(8, text("a"), text("b")))),
    pair("floats", 9, array(6, struct.pack("<f", 0.1), struct.pack("<f", 2))), pair("bools", 9, array(7, b"\0", b"\1")),
]
entry = text("w") + struct.pack("<IQIQ", 1, 4, 0, 0)
head = b"GGUF" + struct.pack("<IQQ", 3, 1, len(pairs)) + b"".join(pairs) + entry
open("m.gguf", "wb").write(head + b"\0" * (-len(head) % 32) + struct.pack("<4f", 1, 2, 3, 4))'
$HEFT info m.gguf
$HEFT info --json m.gguf
$HEFT convert m.gguf m.zt && $HEFT info m.zt
PYTHONPATH=$CASES/../py $PYTHON -c '
import gen_ztensor1
f = gen_ztensor1.File("1.2")
metadata = {"map": {"one": 1, "two": {"x": []}}, "single": {"one": 1}, "none": {}, "list": [1]}
open("map.zt", "wb").write(f.end(f.root({"t": f.dense(("t", "u8", (1,), b"x"))}, metadata)))'
$HEFT info map.zt | grep -A 3 Metadata
$HEFT info --json map.zt | grep -o '"metadata".*'
