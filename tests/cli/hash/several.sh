# Several files, and patterns: an argument after the first that is no file is a pattern.
try() { echo "-- $*"; $HEFT "$@"; echo "exit $?"; } 2>&1
$HEFT convert -q two.safetensors two.npz 2> none
try hash two.safetensors two.npz
try hash two.safetensors 'layer.*'
try hash two.safetensors two.npz 'ids' 'layer.b*'
try hash --json two.safetensors two.npz ids
try hash two.safetensors missing.npz
try hash missing.npz ids
