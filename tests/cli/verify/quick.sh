$HEFT convert --digest crc32c small.safetensors m.zt
$HEFT convert small.safetensors m.mag
$HEFT verify --quick m.zt m.mag
$HEFT verify --quick --strict m.mag
$HEFT verify --quick --json m.zt
$PYTHON -c '
b = bytearray(open("m.zt", "rb").read()); b[64] ^= 1; open("m.zt", "wb").write(b)'
$HEFT verify --quick m.zt; echo $?
$HEFT verify m.zt; echo $?
