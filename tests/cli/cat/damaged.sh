$HEFT convert --digest crc32c small.safetensors small.zt
$PYTHON -c '
b = bytearray(open("small.zt", "rb").read())
b[64] ^= 1
open("bad.zt", "wb").write(b)'
$HEFT cat bad.zt w
echo "exit $?"
$HEFT cat --no-verify bad.zt w | od -An -tx1
$HEFT cat bad.zt h | od -An -tx1
