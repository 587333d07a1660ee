$HEFT convert --digest crc32c small.safetensors small.zt
$PYTHON -c '
b = bytearray(open("small.zt", "rb").read())
b[64] ^= 1
open("bad.zt", "wb").write(b)'
$HEFT show bad.zt w
echo "exit $?"
$HEFT show --no-verify bad.zt w
$HEFT show bad.zt h
