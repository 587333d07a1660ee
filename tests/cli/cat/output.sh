# cat -o writes a whole file or none, and leaves an existing file and the input alone.
try() { echo "-- $*"; $HEFT "$@"; echo "exit $?"; } 2>&1
try cat two.safetensors layer.bias -o bias
$HEFT cat two.safetensors layer.bias | cmp - bias && echo "same bytes"
try cat two.safetensors layer.bias -o bias
try cat -f two.safetensors ids --npy -o bias
head -c 6 bias | tail -c 5
echo
try cat two.safetensors 'layer.weight[0:1]' -o row
wc -c < row
try cat -f two.safetensors layer.bias -o two.safetensors
try cat two.safetensors none -o never
ls never 2> none || echo "no output"
$HEFT cat two.safetensors layer.bias -o - | wc -c
