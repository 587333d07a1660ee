$HEFT ls --raw --dtype bool --dtype u8 types.safetensors
$HEFT ls --dtype q4_0 types.safetensors
echo "exit $?"
$HEFT ls --dtype f99 types.safetensors
echo "exit $?"
echo "== other spellings, and schemes"
$HEFT ls --raw --dtype U8 --dtype Boolean --dtype int8 types.safetensors
$PYTHON -c 'from quantised_samples import write; write()'
$HEFT ls --raw --dtype fp8-block/BF16 --dtype Float32 fp8.safetensors | cut -f 1-2
$HEFT ls --dtype fp8-block/f99 fp8.safetensors
echo "exit $?"
