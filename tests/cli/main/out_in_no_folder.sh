# An output in a folder that is not there is refused, whichever command writes it.
try() { echo "-- $*"; $HEFT "$@"; echo "exit $?"; } 2>&1
try convert two.safetensors nowhere/out.zt
try merge two.safetensors nowhere/out.zt
try doctor cut.safetensors -o nowhere/out.safetensors
try report two.safetensors -o nowhere/out.html
try verify --share 1/2 -o nowhere/out two.safetensors
ls -d nowhere 2> /dev/null || echo nothing is made
