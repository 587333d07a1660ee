# One file of several is not edited; damage is not written anew.
try() { "$@"; echo "= $?"; }
for to in safetensors ztensor gguf; do
    $HEFT split --count 2 --to $to --name m two.safetensors set-$to
    for f in set-$to/*; do
        cp "$f" before
        try $HEFT edit --set license=other "$f"
        cmp "$f" before
    done
    try $HEFT verify set-$to
done
$HEFT convert --to embd --cast '*=f32' two.safetensors m.weights
$PYTHON -c "
b = bytearray(open('m.weights', 'rb').read())
b[b.index(b'license')] ^= 1
open('index.weights', 'wb').write(b)
b[b.index(b'micense')] ^= 1
b[-17] ^= 1
open('data.weights', 'wb').write(b)"
for f in index data; do
    cp $f.weights before
    try $HEFT edit --set k=v $f.weights
    cmp -s $f.weights before && echo untouched
    $HEFT verify $f.weights
done
