$HEFT show --json two.safetensors layer.weight
$HEFT show --json two.safetensors 'ids[::-1]'
$HEFT show --json types.safetensors odd
$HEFT show --json types.safetensors b
$HEFT show --json types.safetensors none
$HEFT show --json types.safetensors scalar
$HEFT show --json --cast f32 types.safetensors bf
$HEFT show --json large.safetensors line | $PYTHON -c 'import json, sys; assert json.load(sys.stdin)["values"] == list(range(1001))'
$PYTHON -c '
from samples import f32, write_safetensors
write_safetensors("c.safetensors", {"c\n": ("C64", [2], f32(1, 2, 3, -4))})'
$HEFT show --json c.safetensors 'c
'
$HEFT convert --sparsify coo two.safetensors s.zt
$HEFT show --json s.zt layer.bias
echo "exit $?"
