try() { "$@"; echo "= $?"; }
$HEFT convert --digest crc32c two.safetensors from.zt
$PYTHON -c "
b = bytearray(open('from.zt', 'rb').read())
b[64] ^= 1
open('from.zt', 'wb').write(b)"
cp small.safetensors s; cp s t
try $HEFT append s from.zt
cmp s t && echo untouched
try $HEFT append --no-verify s from.zt
$HEFT verify s
$HEFT convert --to embd --cast '*=f32' two.safetensors m.weights
$PYTHON -c "
b = bytearray(open('m.weights', 'rb').read())
b[b.index(b'license')] ^= 1
open('m.weights', 'wb').write(b)"
cp m.weights before
try $HEFT append --cast f32 m.weights small.safetensors
try $HEFT append --dry-run --cast f32 m.weights small.safetensors
cmp m.weights before && echo untouched
