$HEFT stats --finite two.safetensors >/dev/null
echo "exit $?"
$HEFT stats --finite types.safetensors odd b
echo "exit $?"
# The position in a large tensor, in a complex one, in a scalar, and in compressed bytes.
$PYTHON -c '
import struct
from samples import NAN, INF, f32, write_safetensors
grid = [1.0] * 20000
grid[17 * 100 + 42] = -INF
grid[19999] = NAN
write_safetensors("g.safetensors", {"grid": ("F32", [200, 100], f32(*grid)), "scalar": ("F32", [], f32(NAN)),
                                    "c": ("C64", [2, 2], f32(0, 1, 2, 3, 4, NAN, 6, 7))})'
$HEFT stats --finite --json g.safetensors | grep -o '"first.*'
echo "$($HEFT stats --finite --messages json g.safetensors 2>&1 >/dev/null | grep -c '"kind": "fault"') messages"
$HEFT convert --cast '*=f16' --drop c g.safetensors half.safetensors
$HEFT stats --finite half.safetensors >/dev/null
# In a sparse tensor, the position is that in the list of values.
$HEFT convert --keep odd --sparsify 'odd=coo' types.safetensors sparse.zt
$HEFT stats --finite --messages=json sparse.zt 2>&1 >/dev/null
