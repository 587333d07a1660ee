# With -q only failures are printed.
try() { echo "-- $*"; $HEFT "$@"; echo "exit $?"; } 2>&1
$HEFT convert --digest crc32c two.safetensors bad.zt
$PYTHON -c '
data = bytearray(open("bad.zt", "rb").read())
data[64] ^= 1
open("bad.zt", "wb").write(data)'
try verify -q two.safetensors
try verify -q two.safetensors bad.zt
try verify -q --json two.safetensors
try verify --key part --signature none two.safetensors
try verify --public-key pub.pem two.safetensors
try verify -j 2 two.safetensors
try stats -j 1 two.safetensors '*bias'
try hash -j 2000 two.safetensors
