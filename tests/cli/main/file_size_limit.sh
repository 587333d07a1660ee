# A limit on the size of files is an error like a full disk, not a signal.
ulimit -f 1
$HEFT convert small.safetensors small.npz; echo $?
$HEFT ls --json types.safetensors > types.json; echo $?
test ! -e small.npz
