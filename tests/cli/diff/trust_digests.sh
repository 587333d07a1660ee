# Equal SHA-256 in both files save reading; other digests, and values that differ, are read.
$PYTHON -c '
from samples import *
write_safetensors("a.safetensors", {"w": ("F32", [3], f32(1, 2, 3)), "v": ("F32", [1], f32(4))})
write_safetensors("c.safetensors", {"w": ("F32", [3], f32(1, 2, 3)), "v": ("F32", [1], f32(5))})'
$HEFT convert --digest sha256 a.safetensors a.zt
[ $? != 2 ] || exit
$HEFT convert --digest sha256 c.safetensors c.zt
$HEFT convert --digest sha256 --compress zstd a.safetensors packed.zt
$HEFT convert --digest crc32c a.safetensors crc.zt
$PYTHON -c '
import struct
for name in ("a.zt", "crc.zt"):
    b = bytearray(open(name, "rb").read())
    b[b.index(struct.pack("<3f", 1, 2, 3))] ^= 1
    open("bad_" + name, "wb").write(b)'
diff() { $HEFT diff "$@" > out 2> err; echo "$? $* $(cat out) $(wc -l < err)"; }
diff a.zt bad_a.zt
diff --trust-digests a.zt bad_a.zt
diff --trust-digests crc.zt bad_crc.zt
diff --trust-digests a.zt crc.zt
diff --trust-digests a.zt c.zt
diff --trust-digests a.zt packed.zt
