$HEFT convert small.safetensors m.mag
$PYTHON -c '
b = bytearray(open("m.mag", "rb").read()); b[8] ^= 1; open("m.mag", "wb").write(b)'
$HEFT verify m.mag; echo $?
$HEFT verify --json m.mag; echo $?
