$HEFT ls --raw --dtype bool --dtype u8 types.safetensors
$HEFT ls --dtype q4_0 types.safetensors
echo "exit $?"
$HEFT ls --dtype f99 types.safetensors
echo "exit $?"
