$HEFT convert small.safetensors small.gptrs 2>/dev/null
$PYTHON -c '
b = bytearray(open("small.gptrs", "rb").read())
b[b.index(b"\1\0\0\0w") + 5] ^= 1
open("bad.gptrs", "wb").write(b)'
for target in right.gptrs right.gten; do
    $HEFT convert bad.gptrs $target
    echo "exit $?"
    $HEFT convert --strict --force bad.gptrs strict-$target
    echo "exit $?"
done
$HEFT ids right.gptrs | cut -c1-39
ls strict-* 2>/dev/null
