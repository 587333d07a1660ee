$HEFT convert small.safetensors small.gptrs 2>/dev/null
$PYTHON -c '
b = bytearray(open("small.gptrs", "rb").read())
b[b.index(b"\1\0\0\0w") + 5] ^= 1
open("bad.gptrs", "wb").write(b)'
$HEFT ids bad.gptrs | cut -c1-39
