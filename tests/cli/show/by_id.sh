$HEFT show small.safetensors --id 7a61e32d973b81c6075dbebe2015f2f2
$HEFT show small.safetensors
echo "exit $?"
$HEFT show small.safetensors w --id 7a61e32d973b81c6075dbebe2015f2f2
echo "exit $?"
$HEFT show small.safetensors --id 7
echo "exit $?"
