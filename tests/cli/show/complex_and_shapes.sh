# Complex numbers, scalars, many dimensions, and rows wider than a line.
$PYTHON - <<'P'
import struct
from samples import INF, NAN, f32, write_safetensors
def npy(name, descr, shape, data):
    text = "{'descr': '%s', 'fortran_order': False, 'shape': %r, }" % (descr, shape)
    text += " " * (-(11 + len(text)) % 64) + "\n"
    with open(name + ".npy", "wb") as f:
        f.write(b"\x93NUMPY\1\0" + struct.pack("<H", len(text)) + text.encode() + data)
npy("c64", "<c8", (2, 3), f32(1, 2, 0, -0.5, 1e20, 1, NAN, INF, -INF, 0, 0, -0.0))
npy("c128", "<c16", (2,), struct.pack("<4d", 0.1, 1e-9, -1e300, 3))
npy("one", "<c8", (), f32(0, -1))
npy("nan", "<c8", (), f32(NAN, INF))
npy("real", "<c8", (), f32(3, 0))
write_safetensors("s.safetensors", {
    "yes": ("BOOL", [], b"\1"), "no": ("BOOL", [], b"\0"), "nan": ("F32", [], f32(NAN)),
    "inf": ("F64", [], struct.pack("<d", -INF)), "huge": ("F32", [], f32(1e30)),
    "f16": ("F16", [], struct.pack("<e", 0.1)), "half": ("F32", [], f32(0.5)),
    "deep": ("U8", [1] * 9 + [2] * 2, bytes(range(4))),
    "wide": ("U8", [2] * 14, bytes(1 << 14)),
    "corners": ("U8", [9] * 6, bytes(9 ** 6)), "empty": ("U8", [2, 0, 3], b"")})
P
for a in c64 c128 one nan real; do $HEFT show $a.npy data; $HEFT stats $a.npy; done
for t in yes no nan inf huge f16 half deep empty; do $HEFT show s.safetensors $t; done
for t in wide corners; do $HEFT show s.safetensors $t | tail -3; $HEFT show s.safetensors $t >/dev/null; echo "exit $?"; done
