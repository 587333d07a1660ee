$HEFT convert small.safetensors m.mag
$PYTHON -c '
b = bytearray(open("m.mag", "rb").read()); b[8] ^= 1; open("m.mag", "wb").write(b)'
$HEFT convert m.mag out.safetensors; echo $?; ls out.safetensors 2> /dev/null
$HEFT convert --no-verify m.mag out.safetensors; echo $?; $HEFT diff out.safetensors small.safetensors && echo equal
