$HEFT convert small.safetensors m.mag
# The other polynomial: read, with a remark.
$PYTHON -c '
import zlib
b = bytearray(open("m.mag", "rb").read())
b[8:12] = zlib.crc32(b[12:98]).to_bytes(4, "little")
open("m.mag", "wb").write(b)'
$HEFT verify m.mag; echo $?
$HEFT verify --strict m.mag; echo $?
$HEFT verify --strict --json m.mag; echo $?
