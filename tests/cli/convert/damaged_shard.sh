# An error about a model in several files names the file, and a byte of that file.
$PYTHON -c '
from samples import f32, write_safetensors
write_safetensors("m.safetensors", {"w%d" % i: ("F32", [2048], f32(i) * 2048) for i in range(4)})'
damaged() {
    $HEFT split --count 2 --to ztensor "$@" m.safetensors set
    $PYTHON -c '
with open("set/m-2.zt", "r+b") as f:
    f.seek(4100)
    f.write(b"\xff" * 8)'
}
damaged --digest sha256
$HEFT convert set o.safetensors; echo "exit $?"
$HEFT cat set w2 > data; echo "exit $?"
rm -r set
damaged --compress zstd
$HEFT convert set o.safetensors; echo "exit $?"
$HEFT cat set w2 > data; echo "exit $?"
$HEFT verify set; $HEFT convert --no-verify set o.safetensors; echo "exit $?"
