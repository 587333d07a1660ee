$HEFT convert --digest crc32c small.safetensors small.zt
$PYTHON -c '
b = bytearray(open("small.zt", "rb").read())
b[64] ^= 1
open("bad.zt", "wb").write(b)'
$HEFT stats bad.zt
echo "exit $?"
$HEFT stats --no-verify bad.zt
