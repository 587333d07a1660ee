# What people read about a damaged tensor, about many truncated tensors, and about a target that
# cannot hold the intact tensors.
$HEFT convert --digest crc32c two.safetensors bad.zt
$PYTHON -c '
from samples import f32, write_safetensors
data = bytearray(open("bad.zt", "rb").read())
data[64] ^= 1
open("bad.zt", "wb").write(data)
write_safetensors("many.safetensors", {"w%02d" % i: ("F32", [1], f32(i)) for i in range(25)})
whole = open("many.safetensors", "rb").read()
open("many.safetensors", "wb").write(whole[:-90])'
try() { echo "-- $*"; $HEFT "$@"; echo "exit $?"; } 2>&1
try doctor bad.zt
$HEFT doctor --json bad.zt | grep -o '"kind": "[^"]*"'
try doctor many.safetensors
try doctor -o out.npz types.safetensors
ls out.npz 2> none || echo "no output"
