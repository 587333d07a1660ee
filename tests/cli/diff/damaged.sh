$HEFT convert --digest crc32c small.safetensors small.zt
$PYTHON -c '
b = bytearray(open("small.zt", "rb").read())
b[64] ^= 1
open("bad.zt", "wb").write(b)'
$HEFT diff bad.zt small.zt
echo "exit $?"
$HEFT diff small.zt bad.zt
echo "exit $?"
$HEFT diff --no-verify small.zt bad.zt
echo "exit $?"
