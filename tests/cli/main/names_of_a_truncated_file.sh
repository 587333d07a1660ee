# Names are printed from the mapped file. A command whose output waits in a pipe reads them after
# the file was truncated: the pages are gone, or contain zeros.
$PYTHON -c '
from samples import write_safetensors
write_safetensors("m.safetensors", {"w%05d" % i + "x" * 90: ("F32", [1], b"\0\0\xc0\x7f")
                                    for i in range(14000)})'
seq 200000 > vocab.txt
$HEFT convert --allow-loss --vocab vocab.txt --keep w00000* m.safetensors m.weights 2> messages
mkfifo pipe
disturbed() {
    cp m.safetensors cut.safetensors
    cp m.weights cut.weights
    $HEFT "$@" > pipe 2> messages &
    { head -c 1 > byte; truncate -s 100 cut.*; cat > rest; } < pipe
    wait $!
    echo "$*: $?, $(grep -c 'truncated while it was being read' messages) message"
}
disturbed ls cut.safetensors
disturbed ls --json cut.safetensors
disturbed ls --tree cut.safetensors
disturbed info --json cut.safetensors
disturbed ids cut.safetensors
disturbed hash cut.safetensors
disturbed stats --raw cut.safetensors
disturbed stats --raw --finite cut.safetensors
disturbed diff --json --rename s/w/v/ cut.safetensors m.safetensors
disturbed cat --part vocab cut.weights
