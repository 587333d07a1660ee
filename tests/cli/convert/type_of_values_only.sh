# An unknown layout without "data": zTensor 1.1 gives the tensor no element type, zTensor 2 gives it
# that of "values".
$PYTHON -c '
import struct
def text(s): return bytes([0x60 + len(s)]) + s.encode()
def part(t, at, n): return (b"\xa3" + text("dtype") + text(t) + text("offset") + b"\x18" + bytes([at])
                            + text("length") + b"\x18" + bytes([n]))
parts = b"\xa2" + text("values") + part("f32", 64, 16) + text("marks") + part("u64", 128, 40)
tensor = (b"\xa3" + text("shape") + b"\x82\x03\x04" + text("format") + text("my.layout")
          + text("components") + parts)
root = (b"\xa2" + text("version") + text("1.1.0") + text("objects") + b"\xa1" + text("t") + tensor)
data = b"ZTEN1000" + bytes(56) + bytes(range(16)) + bytes(48) + bytes(range(40)) + bytes(24)
open("a.zt", "wb").write(data + root + struct.pack("<Q", len(root)) + b"ZTEN1000")'
$HEFT verify a.zt
$HEFT convert -v --format-version 2 a.zt b.zt
$HEFT diff a.zt b.zt
