$PYTHON -c '
from samples import *
write_safetensors("a.safetensors", {"w": ("F32", [4, 4], f32(1, 2, 3, 4, *[0] * 12)), "v": ("F32", [3], f32(1, 0, 2))})
write_safetensors("b.safetensors", {"w": ("F32", [4, 4], f32(1, 2, 3, 5, *[0] * 12)), "v": ("F32", [3], f32(1, 0, 2))})'
$HEFT convert --sparsify 'w=csr' --sparsify 'v=coo' a.safetensors csr.zt
$HEFT convert --sparsify 'w=coo' --sparsify 'v=coo' a.safetensors coo.zt
$HEFT convert --sparsify 'w=csr' --sparsify 'v=coo' b.safetensors other.zt
for x in a.safetensors coo.zt other.zt; do
    $HEFT diff csr.zt $x; echo "exit $?"
    $HEFT diff --json csr.zt $x; echo "exit $?"
done
